"""PF-LD: its gradient by finite differences, that groups reach it through answers alone, and its price."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.fairness import FairUnits, LinearScores, PrivateFairLagrangian, PublicRecords
from tacit.fairness.scores import cross_entropy, probabilities
from tacit.numerics import Array
from tacit.privacy import Part
from tests.fairness.private import Overheard, conditions_of, exact_ask, method_of, training_of
from tests.fairness.problems import D, records, slope

N = 60


def lagrangian_of(**how: Any) -> PrivateFairLagrangian:
    how = {"conditions": 1, "rounds": 3, "clip": 1e5, "least_share": 0.01, "tail": 0.0, "step": 0.5, **how}
    return PrivateFairLagrangian(model=LinearScores(D, 2), groups=2, weight=5.0, **how)


def held(fairness: str = "demographic-parity") -> tuple[FairUnits, PublicRecords]:
    X, y, s = records(N, 2, 2)
    where = conditions_of(y, fairness, 2)
    return FairUnits.of(X, y, s, where.codes), PublicRecords(X, y, where.codes)


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds"])
def test_a_round_goes_down_the_lagrangian(fairness: str) -> None:
    units, public = held(fairness)
    z = 1 if fairness == "demographic-parity" else 2
    method = lagrangian_of(conditions=z, rounds=2)
    points: list[Array] = []
    start = np.array([0.5, -0.3, 0.2])
    method.run(
        exact_ask(method, units), start, n=N, public=public, follow=lambda _t, theta: points.append(theta)
    )

    def apart(theta: Array) -> Array:
        F = probabilities(method.model.scores(theta, public.X))[:, 1]
        return np.array(
            [
                [
                    F[(public.conditions == c) & (units.groups == r)].mean()
                    - F[public.conditions == c].mean()
                    for r in (0, 1)
                ]
                for c in range(z)
            ]
        )

    first = apart(start)
    multipliers, signs = method.ascent * np.abs(first), np.sign(first)

    def lagrangian(theta: Array) -> float:
        loss = cross_entropy(method.model.scores(theta, public.X), public.y).mean()
        return float(loss + np.sum(multipliers * signs * apart(theta)))

    np.testing.assert_allclose((points[0] - points[1]) / method.step, slope(lagrangian, points[0]), atol=1e-7)


def test_it_brings_groups_together_and_is_priced_as_the_other() -> None:
    units, public = held()

    def gap(rounds: int, ascent: float) -> float:
        method = lagrangian_of(rounds=rounds, ascent=ascent, tail=0.5)
        theta = method.run(exact_ask(method, units), np.zeros(D), n=N, public=public).theta
        F = probabilities(method.model.scores(theta, public.X))[:, 1]
        return float(abs(F[units.groups == 0].mean() - F[units.groups == 1].mean()))

    assert gap(300, 0.3) < 0.4 * gap(300, 1e-9)
    plans = [training_of(method).plan(1.0, [N]) for method in (lagrangian_of(), method_of(clip=1e5))]
    assert plans[0] == plans[1]
    training = training_of(lagrangian_of(clip=None))
    run = training.train(training.federation([units], seed=0), np.zeros(D), public=public)
    assert run.guarantees[0].neighbours.part is Part.SENSITIVE
    assert np.isfinite(run.theta).all()


def test_groups_reach_it_through_answers_alone() -> None:
    units, public = held()
    method = lagrangian_of(clip=None)
    overheard = Overheard(exact_ask(method, units))
    found = method.run(overheard, np.zeros(D), n=N, public=public).theta
    replies = {seen.step: seen.means for seen in overheard.seen}
    again = Overheard(lambda step, at, radius: replies[step])
    np.testing.assert_array_equal(method.run(again, np.zeros(D), n=N, public=public).theta, found)
    assert [one.radius for one in again.seen] == [one.radius for one in overheard.seen]


def test_what_it_is_not_for() -> None:
    units, _ = held()
    with pytest.raises(ParameterError, match="PF-LD"):
        lagrangian_of(part=Part.ALL)
    with pytest.raises(ParameterError, match="target"):
        lagrangian_of(target=0.1)
    with pytest.raises(ParameterError, match="ascent"):
        lagrangian_of(ascent=0.0)
    with pytest.raises(ParameterError, match="public"):
        lagrangian_of().run(exact_ask(lagrangian_of(), units), np.zeros(D), n=N)
