"""Plans for rows of which a moment is known: every mechanism at the clip that balances it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.errors import ParameterError
from tacit.means import Facts, MomentBound, MomentKind, balanced_mean
from tacit.planning import MeanProblem, lower_bounds, measure, plan_mean, references
from tacit.privacy import PrivacyBudget, meets

BUDGET = PrivacyBudget(1.0, 1e-6)
PROBLEM = MeanProblem(n=1000, dim=10, trust="central", budget=BUDGET, moment=MomentBound(2, 3.0))


def test_the_best_is_the_balanced_mean() -> None:
    best, other = plan_mean(PROBLEM)
    found = balanced_mean(MomentBound(2, 3.0), n=1000, dim=10, budget=BUDGET)
    # One party a row, each of which rounds to the grid, costs a little.
    assert best.radius == pytest.approx(found.clip, rel=1e-3)
    assert best.mse == pytest.approx(found.error.mse, rel=2e-3)
    assert other.name == "coordinate-wise clip"
    for one in (best, other):
        assert one.estimator is not None
        assert meets(one.estimator.event(1000, PROBLEM.observer), BUDGET)
    # What is known of single entries is for cubes: here the norm may be sqrt(d) times as long.
    entries = replace(PROBLEM, moment=MomentBound(2, 1.0, MomentKind.ENTRY))
    cube, ball = sorted(plan_mean(entries), key=lambda one: one.name)[::-1]
    assert cube.name == "coordinate-wise clip"
    assert cube.mse == pytest.approx(ball.mse, rel=1e-3)


def test_a_mechanism_with_more_noise_gets_a_smaller_clip() -> None:
    found = plan_mean(replace(PROBLEM, trust="local"), points=1)
    known = [(one.estimator.error(1000, Facts(parties=1000)).mse, one) for one in found if one.estimator]
    balls = sorted(
        ((noise, one.radius) for noise, one in known if one.family != "coordinate-wise clip"),
        key=lambda pair: pair[0],
    )
    assert len(balls) > 3
    assert [radius for _, radius in balls] == sorted((radius for _, radius in balls), reverse=True)


def test_there_is_nothing_to_compare_with_but_zero() -> None:
    (zero,) = references(PROBLEM)
    assert (zero.name, zero.mse) == ("zero", 9.0)
    assert lower_bounds(PROBLEM) == ()
    with pytest.raises(ParameterError, match="no law to draw from"):
        measure(plan_mean(PROBLEM)[0], PROBLEM, trials=2)


def test_what_does_not_go_with_a_moment() -> None:
    for fields in ({"radius": 2.0}, {"norm": "linf"}, {"public": 5}, {"correlation": 0.5}):
        with pytest.raises(ParameterError, match="moment"):
            replace(PROBLEM, **fields)
    with pytest.raises(ParameterError, match="moment"):
        MeanProblem(n=10, dim=2, trust="none", moment=MomentBound(2, 1.0))
