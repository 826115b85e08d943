"""A server that asks what no method asks: the claim is about all that it could, wherever it asks it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Plan, Query, open_answer
from tacit.learning import Algorithm, LinearObjective, Logistic, Records, Settings
from tacit.learning.algorithms import NoisyProximalSVRG, NoisySpider
from tacit.learning.preparation import prepare
from tacit.learning.training import make_silos
from tacit.means import AdditiveMean, Round
from tacit.numerics import Array
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, epsilon_of

D, N = 3, 30
GOAL = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
FAR = 1e6
HOSTILE: dict[str, tuple[Array, Array]] = {
    "opposite points": (np.array([FAR, 0, 0]), np.array([-FAR, 0, 0])),
    "unrelated points": (np.array([FAR, 0, 0]), np.zeros(D)),
    "the same point": (np.ones(D), np.ones(D)),
    "far and far": (np.full(D, 1e300), np.full(D, -1e300)),
}


def planned(algorithm: Algorithm) -> Plan:
    chosen = Settings(
        objective=GOAL, algorithm=algorithm, trust=TrustModel.LOCAL, budget=PrivacyBudget(2.0, 1e-5)
    )
    return prepare(chosen, (N,)).plan


def records(last: float) -> Records:
    """Rows along one direction; the last one may be the opposite."""
    X = np.tile([1.0, 0, 0], (N, 1))
    X[-1] *= last
    return Records.of(X, np.ones(N))


def transcript(
    made: Plan, last: float, points: tuple[Array, Array], *, skip: bool
) -> list[tuple[Any, Array]]:
    """The sums of all rounds that a hostile server asks, with the noise of one seed, and their measures."""
    (silo,) = make_silos([records(last)], GOAL, seed=5)
    silo.accept(made)
    schedule, found = made.schedule(), []
    for number in range(made.rounds):
        step = schedule.step(number)
        names = [measure.statistic for measure in step.measures]
        if skip and names == ["gradient"]:
            continue
        radius = tuple(measure.max_radius for measure in step.measures)
        at = {"w": points[0], "previous": points[1]} if "difference" in names else {"w": points[0]}
        groups = open_answer(silo.answer(Query(number, at, radius)), party=0)
        for measure, messages in zip(step.measures, groups, strict=True):
            mean = measure.estimator
            assert isinstance(mean, AdditiveMean)
            this_round = Round(n=1, radius=measure.max_radius, number=number)
            found.append((measure, mean.decode(messages, this_round)))
    return found


@pytest.mark.parametrize("skip", [False, True], ids=["asks all", "skips full gradients"])
@pytest.mark.parametrize("where", HOSTILE)
@pytest.mark.parametrize(
    "algorithm", [NoisyProximalSVRG(rounds=12), NoisySpider(rounds=12, period=4)], ids=["svrg", "spider"]
)
def test_what_a_transcript_tells_of_a_row_is_within_the_claim(
    algorithm: Algorithm, where: str, skip: bool
) -> None:
    """Two silos that differ in a row, with equal noise: what is left are the shifts that the noise hides.

    Gaussian mechanisms compose by adding (shift / standard deviation)^2: exactly what this server learns.
    """
    made = planned(algorithm)
    one, other = (transcript(made, last, HOSTILE[where], skip=skip) for last in (1.0, -1.0))
    squared, most = 0.0, 0.0
    for (measure, here), (_, there) in zip(one, other, strict=True):
        noise = measure.estimator.noise
        shift = float(np.linalg.norm(here - there))
        assert shift <= 2 * measure.max_radius * (1 + 1e-5)  # float32 messages
        squared += (shift / (2 * measure.max_radius * noise.noise_multiplier)) ** 2
        most += noise.noise_multiplier**-2
    assert len(one) >= 3
    assert squared <= most * (1 + 1e-4)
    claim = epsilon_of(made.event([N], TrustModel.LOCAL), 1e-5)
    if squared > 1e-9:
        assert epsilon_of(Gaussian(1 / math.sqrt(squared)), 1e-5) <= claim * (1 + 1e-3)
    if where == "opposite points" and not skip:  # of two rows at odds, something is seen
        assert squared > 0.01 * most


def test_the_price_is_that_of_the_plan_wherever_it_is_asked() -> None:
    made = planned(NoisyProximalSVRG(rounds=12))
    prices = set()
    for points in HOSTILE.values():
        (silo,) = make_silos([records(1.0)], GOAL, seed=5)
        prices.add(silo.accept(made).epsilon)
        kinds = [made.schedule().step(k) for k in range(made.rounds)]
        first = next(k for k, step in enumerate(kinds) if step.measures[0].statistic == "difference")
        radius = (kinds[first].measures[0].max_radius,)
        silo.answer(Query(first, {"w": points[0], "previous": points[1]}, radius))
        with pytest.raises(RefusalError, match="another point"):
            silo.answer(Query(first, {"w": np.full(D, 0.5), "previous": points[1]}, radius))
        with pytest.raises(RefusalError, match="radius must be a number in"):
            silo.answer(Query(first, {"w": points[0], "previous": points[1]}, (radius[0] * 2,)))
    assert len(prices) == 1
