"""Which method for heavy tails: the paper's closed forms, and the rounds of the least bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.means import MomentBound, MomentKind
from tacit.planning import HeavyPlan, plan_heavy_tailed
from tacit.privacy import Gaussian, PrivacyBudget, ZcdpBudget, calibrate

ONE = PrivacyBudget.zcdp(0.5)  # epsilon = 1


def planned(name: str, n: int = 10_000, dim: int = 10, order: float = 2, **facts: Any) -> HeavyPlan:
    known: dict[str, Any] = {"diameter": 2.0, "budget": ONE, "value": 5.0} | facts
    moment = MomentBound(order, known.pop("value"))
    found = plan_heavy_tailed(n, dim, known.pop("budget"), moment, **known)
    return next(one for one in found if one.name == name)


@pytest.mark.parametrize(
    ("name", "facts", "rounds", "rows", "numbers"),
    [
        (
            "clipped-ac-sa",
            {"smoothness": 10.0},
            12,
            833,
            (151.068770, 0.362710, 1.345598, 0.165488, 3.881190),
        ),
        (
            "clipped-ac-sa",
            {"smoothness": 10.0, "order": 4},
            20,
            500,
            (25.783463, 0.103134, None, None, 1.015767),
        ),
        (
            "clipped-ac-sa",
            {"n": 100_000, "dim": 50, "value": 7.0, "smoothness": 100.0},
            38,
            2631,
            (335.281538, 0.254870, None, None, 3.410837),
        ),
        (
            "clipped-sgd",
            {"smoothness": 4.0, "mu": 1.0},
            146,
            68,
            (81.026672, 2.383137, 57.161087, 0.308540, 28.633188),
        ),
        (
            "clipped-sgd",
            {"n": 100_000, "dim": 50, "order": 4, "value": 7.0, "smoothness": 10.0, "mu": 1.0},
            569,
            175,
            (34.548822, 0.394844, None, None, 1.025226),
        ),
        (
            "clipped-prox-sgd",
            {"smoothness": 4.0, "mu": 1.0, "gap": 4.0},
            50,
            200,
            (39.763536, 0.397635, 1.706139, 0.628717, 8.410735),
        ),
    ],
)
def test_closed_forms_are_those_of_the_reference(
    name: str, facts: dict[str, Any], rounds: int, rows: int, numbers: tuple[float | None, ...]
) -> None:
    found = planned(name, method="paper", **facts)
    assert (found.rounds, found.rows) == (rounds, rows)
    values = (found.clip, found.noise_std, found.variance, found.bias, found.bound)
    for value, expected in zip(values, numbers, strict=True):
        assert expected is None or value == pytest.approx(expected, rel=5e-6)


@pytest.mark.parametrize("name", ["clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd"])
def test_the_rounds_of_the_least_sharp_bound_promise_more(name: str) -> None:
    facts: dict[str, Any] = {"smoothness": 4.0, "mu": 1.0}
    sharp, paper = planned(name, **facts), planned(name, method="paper", **facts)
    assert sharp.bound < paper.bound / 2
    assert sharp.rows == 10_000 // sharp.rounds
    assert sharp.noise_std == pytest.approx(2 * sharp.clip / sharp.rows, rel=1e-12)
    assert planned(name, n=100_000, **facts).bound < sharp.bound
    tighter = planned(name, budget=PrivacyBudget.zcdp(0.01), **facts)
    assert tighter.bound > sharp.bound


def test_methods_are_ranked_and_say_what_they_lack() -> None:
    moment = MomentBound(4, 5.0)
    found = plan_heavy_tailed(10_000, 10, ONE, moment, diameter=2.0, smoothness=4.0, mu=1.0)
    assert [one.bound for one in found] == sorted(one.bound for one in found)
    assert {one.name for one in found if not one.reason} == {
        *("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd"),
        *("clipped-subgradient", "localized", "localized-phases"),
    }
    assert [one.name for one in found if not one.population] == ["clipped-subgradient"]
    rough = {one.name: one.reason for one in plan_heavy_tailed(10_000, 10, ONE, moment, diameter=2.0)}
    assert "smooth" in rough["clipped-ac-sa"]
    assert "mu > 0" in rough["localized-phases"]
    assert rough["localized"] == rough["clipped-subgradient"] == ""
    few = plan_heavy_tailed(50, 10, ONE, moment, diameter=2.0, smoothness=100.0, mu=0.1, method="paper")
    assert any("need as many records" in one.reason for one in few)


def test_budgets_and_moments_of_all_kinds() -> None:
    budget = PrivacyBudget(1.0, 1e-5)
    z = calibrate(Gaussian, budget)
    found = planned("clipped-ac-sa", budget=budget, smoothness=4.0)
    assert found.noise_std == pytest.approx(2 * z * found.clip / found.rows, rel=1e-9)
    assert found == planned("clipped-ac-sa", budget=ZcdpBudget(1 / (2 * z * z)), smoothness=4.0)
    entries = MomentBound(2, 5.0, MomentKind.COORDINATE)
    (wide, *_) = plan_heavy_tailed(10_000, 10, ONE, entries, diameter=2.0, smoothness=4.0)
    assert wide.bound > found.bound
    assert math.isfinite(planned("clipped-ac-sa", order=1.5, smoothness=4.0).bound)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 3}, "n must be a whole number >= 4"),
        ({"dim": 0}, "dim must be a whole number >= 1"),
        ({"diameter": 0.0}, "diameter must be a finite number > 0"),
        ({"diameter": math.inf}, "diameter must be a finite number > 0"),
        ({"smoothness": 1.0, "mu": 2.0}, r"mu must be at most the smoothness 1\.0, got 2\.0"),
        ({"gap": -1.0}, "gap must be a finite number > 0"),
        ({"lipschitz": 0.0}, "lipschitz must be a finite number > 0"),
        ({"budget": PrivacyBudget(1.0)}, "delta must be > 0"),
        ({"method": "printed"}, "method"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {"n": 100, "dim": 3, "budget": ONE, "diameter": 2.0} | change
    n, dim, budget = known.pop("n"), known.pop("dim"), known.pop("budget")
    with pytest.raises(ParameterError, match=message):
        plan_heavy_tailed(n, dim, budget, MomentBound(2, 5.0), **known)
