"""Plans for parties with one record each behind a shuffler: bounds by hand, order, reasons."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.learning.algorithms.lan import lan_bound
from tacit.learning.tuning import growing_groups
from tacit.means import BinomialMean, Facts
from tacit.planning import ScoMethod, ScoProblem, sco_plan
from tacit.privacy import PrivacyBudget, Repeat, TrustModel, meets

BUDGET = PrivacyBudget(1.0, 1e-5)
SEQUENTIAL = {"P_SGD", "smoothed P_AGD", "pan-private AC-SA"}


def problem(**changes: Any) -> ScoProblem:
    return ScoProblem(**{"n": 20_000, "dim": 10, "budget": BUDGET, "diameter": 2.0, **changes})


def plan(**changes: Any) -> dict[str, ScoMethod]:
    return {one.name: one for one in sco_plan(problem(**changes))}


def test_losses_with_a_kink_and_their_bounds_by_hand() -> None:
    found = plan()
    plain, smoothed, descent = (found[name] for name in ("P_SGD", "smoothed P_AGD", "P_GD"))
    assert (plain.batch, plain.rounds) == (24, 833)
    noise = BinomialMean.calibrated(BUDGET, 24, 10).error(24, Facts(radius=1.0)).variance
    assert plain.bound == pytest.approx(2 * math.sqrt((1 + noise) / 833))
    assert plain.bound == pytest.approx(0.099, abs=1e-3)
    assert (smoothed.batch, smoothed.rounds) == (223, 89)
    assert smoothed.smoothness == pytest.approx(44.78, abs=5e-3)
    noise = BinomialMean.calibrated(BUDGET, 223, 10).error(223, Facts(radius=1.0)).variance
    std = math.sqrt(1 / 223 + noise)
    own = lan_bound(smoothness=smoothed.smoothness, noise_std=std, rounds=89, diameter=2.0)
    assert smoothed.bound == pytest.approx(own + 1 / (2 * smoothed.smoothness))
    # Below the generous cap 8 beta D^2 / T^2 + 4 D std / sqrt(T).
    assert own < 8 * smoothed.smoothness * 4 / 89**2 + 4 * 2 * std / math.sqrt(89)
    assert (descent.batch, descent.rounds) == (20_000, 200)
    assert (
        descent.bits == 200 * 10 * BinomialMean.calibrated(BUDGET, 20_000, 10, rounds=200).bits_per_coordinate
    )
    assert "needs a smooth loss" in found["P_AGD"].reason


def test_what_can_run_comes_first_the_least_bound_first() -> None:
    for changes in ({}, {"smoothness": 1.0}, {"smoothness": 1.0, "mu": 0.5}, {"interactivity": "sequential"}):
        found = sco_plan(problem(**changes))
        valid = [one for one in found if one.valid]
        assert list(found[: len(valid)]) == valid
        assert [one.bound for one in valid] == sorted(one.bound for one in valid)
        assert all(math.isfinite(one.bound) and one.rounds > 0 for one in valid)
        assert all(one.bound == math.inf for one in found if not one.valid)


def test_parties_that_speak_once_are_not_asked_again() -> None:
    found = plan(interactivity="sequential")
    assert {name for name, one in found.items() if one.valid} == SEQUENTIAL
    assert "each speaks in one" in found["P_GD"].reason


def test_smooth_and_strongly_convex_losses_are_promised_more() -> None:
    smooth, strong = plan(smoothness=1.0), plan(smoothness=1.0, mu=0.5)
    assert smooth["P_AGD"].bound < plan()["smoothed P_AGD"].bound
    assert "smooth already" in smooth["smoothed P_AGD"].reason
    assert "strong convexity" in smooth["phases of P_AGD"].reason
    assert strong["phases of P_AGD"].bound < strong["P_AGD"].bound
    assert strong["phases of P_GD"].bound < strong["P_GD"].bound
    assert strong["phases of P_GD"].batch == growing_groups(20_000)[-1]
    assert plan(mu=0.5)["phases of P_AGD"].smoothness > 0
    # An excess is never above that of the start, 2 L^2 / mu.
    assert plan(n=16, mu=0.9, smoothness=1.0)["phases of P_AGD"].bound <= 2 / 0.9


def test_all_of_it_costs_no_more_than_the_budget() -> None:
    """Every party is in one batch, or in all rounds of one group."""
    for one in sco_plan(problem(smoothness=1.0, mu=0.5)):
        if not one.valid or one.bits == 0 or "phases" in one.name:
            continue
        asked = one.rounds if one.name == "P_GD" else 1
        mean = problem().mean(one.batch, asked)
        assert meets(Repeat(mean.event(one.batch, TrustModel.SHUFFLE), asked), BUDGET)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 3}, "n must be"),
        ({"dim": 0}, "dim"),
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"smoothness": -1.0}, "smoothness"),
        ({"smoothness": 1.0, "mu": 1.5}, "mu must be from 0 to the smoothness"),
        ({"mu": math.inf}, "mu must be from 0"),
        ({"interactivity": "some"}, "interactivity"),
        ({"budget": PrivacyBudget(1.0, 0.0)}, "delta must be > 0"),
        ({"max_rounds": 0}, "max_rounds"),
    ],
)
def test_bad_problems_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        problem(**changes)
