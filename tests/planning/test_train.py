"""Plans of training runs: all algorithms, in order, each with a number or a reason."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.learning import ALGORITHMS, DistanceObjective, LinearObjective, Prediction
from tacit.means import MomentBound
from tacit.planning import TrainingProblem, plan_training
from tacit.privacy import PrivacyBudget

FACTS: dict[str, Any] = {"silos": 25, "records": 347, "dim": 50, "budget": PrivacyBudget(1.0, 1e-6)}


def problem(**changes: Any) -> TrainingProblem:
    return TrainingProblem(**{**FACTS, **changes})


@cache
def whole(trust: str) -> tuple[Prediction, ...]:
    """Return the plan with all algorithms, made once."""
    changes: dict[str, Any] = {"budget": None} if trust == "none" else {}
    return plan_training(problem(trust=trust, **changes))


@pytest.mark.parametrize("trust", ["none", "central", "aggregate", "shuffle", "local"])
def test_all_algorithms_are_in_it_in_order(trust: str) -> None:
    found = whole(trust)
    assert sorted(one.name for one in found) == sorted(ALGORITHMS)
    valid = [one for one in found if one.valid]
    assert list(found[: len(valid)]) == valid
    assert [one.bound for one in valid] == sorted(one.bound for one in valid)
    assert {"minibatch", "accelerated"} <= {one.name for one in valid}
    assert all(one.reason for one in found[len(valid) :])


def test_who_trusts_more_is_promised_more() -> None:
    bounds = {}
    for trust in ("central", "shuffle", "local"):
        bounds[trust] = {one.name: one.bound for one in whole(trust) if one.valid}
    assert bounds["central"]["ftrl"] < bounds["local"]["ftrl"]
    for name in ("minibatch", "accelerated"):
        assert bounds["central"][name] < bounds["shuffle"][name] < bounds["local"][name]


def test_more_records_and_more_privacy_do_what_they_should() -> None:
    names = ["accelerated"]
    (base,) = plan_training(problem(), names=names)
    (larger,) = plan_training(problem(records=3470), names=names)
    (loose,) = plan_training(problem(budget=PrivacyBudget(4.0, 1e-6)), names=names)
    (wide,) = plan_training(problem(dim=500), names=names)
    assert larger.bound < base.bound
    assert loose.bound < base.bound
    assert wide.bound > base.bound
    assert wide.bits_per_silo / wide.rounds > 9 * base.bits_per_silo / base.rounds


def test_reasons() -> None:
    def reason(name: str, **changes: Any) -> str:
        (one,) = plan_training(problem(**changes), names=[name])
        assert not one.valid
        return one.reason

    assert "trust must be local" in reason("local", trust="central")
    assert "smoothness is unknown" in reason("accelerated", smoothness=math.inf)
    assert "strong convexity" in reason("multistage")
    assert "needs a convex objective" in reason("minibatch", convexity="non-convex")
    assert "a linear model" in reason("whitened", lipschitz=2.0)
    assert "at most the 347 units" in reason("minibatch", one_pass=True, rounds=348)
    assert "more than 1,000" in reason("minibatch", rounds=20, max_bits=1000)


def test_the_objective_is_what_was_said() -> None:
    assert isinstance(problem().objective, LinearObjective)
    assert (problem().objective.lipschitz, problem().objective.smoothness) == (1.0, 0.25)
    stated = problem(lipschitz=2.0, smoothness=3.0).objective
    assert stated == DistanceObjective(size=50, lipschitz=2.0, smoothness=3.0)
    assert problem(lipschitz=2.0).beta == 0.5
    assert problem(diameter=1.0).start == 0.125  # beta D^2 / 2, less than L D


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"silos": 0}, "silos"),
        ({"records": 0}, "records"),
        ({"dim": 0}, "dim"),
        ({"trust": "nobody"}, "trust"),
        ({"budget": None}, "budget"),
        ({"diameter": 0.0}, "diameter"),
        ({"lipschitz": -1.0}, "lipschitz"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"convexity": "concave"}, "convexity"),
        ({"mu": 0.1}, "mu must be > 0 exactly"),
        ({"mu": 0.3, "convexity": "strongly-convex"}, "at most the smoothness"),
        ({"rounds": 0}, "rounds"),
        ({"max_bits": 0.0}, "max_bits"),
        ({"n_min": 5}, "n_min and colluding are for trust 'shuffle'"),
        ({"trust": "shuffle", "n_min": 26}, "n_min"),
        ({"trust": "shuffle", "n_min": 1}, "n_min"),
        ({"trust": "shuffle", "n_min": 4, "colluding": 4}, "colluding"),
        ({"l1": -1.0}, "l1"),
        ({"l2": math.inf}, "l2"),
    ],
)
def test_bad_problems_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        problem(**changes)


# Fewer silos that arrive, and penalties


def test_who_stays_away_or_colludes_costs_noise() -> None:
    names = ["minibatch"]
    (all_of,), (fewer,), (some,) = (
        plan_training(problem(trust="shuffle", **changes), names=names)
        for changes in ({}, {"n_min": 15}, {"n_min": 15, "colluding": 10})
    )
    assert all_of.bound < fewer.bound < some.bound


def test_penalties_rule_out_who_has_one_and_weaken_what_is_proven_without() -> None:
    names = ["objective-perturbation", "accelerated", "minibatch", "ftrl", "local", "phases"]
    found = {one.name: one for one in plan_training(problem(l1=0.01, l2=0.1), names=names)}
    assert "a penalty of its own, the option strength" in found["objective-perturbation"].reason
    assert found["accelerated"].caveat == ""
    assert found["minibatch"].caveat == "its bound is without the penalty"
    assert found["ftrl"].caveat.endswith("; its bound is without the penalty")
    assert "'local' takes no penalty" in found["local"].reason
    assert found["phases"].valid  # the penalty is as convex as it needs


def test_phases_count_on_strong_convexity_that_is_given_only() -> None:
    (without,) = plan_training(problem(), names=["phases"])
    assert without.reason == "it needs strong convexity, and none was given."
    (counted,) = plan_training(problem(convexity="strongly-convex", mu=0.1), names=["phases"])
    assert counted.valid
    assert counted.algorithm.mu == 0.1  # type: ignore[attr-defined]


def test_a_stated_moment_stands_in_place_of_a_bound_on_gradients() -> None:
    stated = problem(
        silos=1,
        records=10_000,
        dim=10,
        trust="central",
        moment=MomentBound(2.2, 4.0),
        diameter=4.0,
        mu=1.0,
        convexity="strongly-convex",
    )
    assert (stated.length, stated.beta) == (4.0, 2.0)
    assert stated.objective == DistanceObjective(size=10, lipschitz=math.inf, smoothness=2.0)
    own, other = plan_training(stated, names=["clipped-sgd", "minibatch"])
    assert (own.name, own.valid, own.population) == ("clipped-sgd", True, True)
    assert own.bound < other.bound
    assert other.caveat == "the bias of its clip is not in its bound"
    with pytest.raises(ParameterError, match="lipschitz must be left out where a moment is stated"):
        problem(moment=MomentBound(2.2, 4.0), lipschitz=1.0)
