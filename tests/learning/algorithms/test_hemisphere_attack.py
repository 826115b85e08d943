"""A whole run on hemisphere reports: what the shuffler lets through stays below the price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from tacit.federation import Crowd, Plan, Units
from tacit.learning import LinearObjective, Logistic, NoisyLocalStorm, NoisyStorm, Records, Settings
from tacit.learning.preparation import prepare
from tacit.means import HemisphereMean
from tacit.numerics import Array, Zero
from tacit.privacy import TrustModel
from tests.learning.attacks import LOOSE, Overheard, parted

N = 12


def longest(units: Units, at: Mapping[str, Array]) -> Array:
    """Rows along the features, longer than every radius: no record does more."""
    assert isinstance(units, Records)
    return 1e9 * units.X


def quieter(plan: Plan, factor: float) -> Plan:
    """The same plan, of whose bits that share of the deviation is left, 1 / (2 sinh(epsilon0 / 2))."""

    def report(mean: Any) -> Any:
        level = 2 * math.asinh(math.sinh(mean.local_epsilon / 2) / factor)
        return msgspec.structs.replace(mean, local_epsilon=level)

    def kind(step: Any) -> Any:
        measures = (msgspec.structs.replace(one, estimator=report(one.estimator)) for one in step.measures)
        return msgspec.structs.replace(step, measures=tuple(measures))

    return msgspec.structs.replace(plan, steps=tuple((kind(step), n) for step, n in plan.steps))


def test_a_whole_run_stands_and_half_the_noise_is_caught() -> None:
    """A batch of gradients, then one of differences and one of gradients about the same records.

    Of one number a record, a mean says how many reports lie on either side, which is all that a batch shows.
    The record of one client is at one end, or at the other, where all others are. The score is the
    log-likelihood ratio of all batches of the run, for counts that are as good as normal.
    """
    settings = Settings(
        objective=LinearObjective(loss=Logistic(), features=1, feature_norm=1.0),
        algorithm=NoisyStorm(rounds=2, beta=0.4, messages="hemispheres", smoothness=1e3, step_size=0.1),
        trust=TrustModel.SHUFFLE,
        budget=LOOSE,
        clip=0.2,
    )
    honest = prepare(settings, [1] * N)
    reports = [one.estimator for step, _ in honest.plan.kinds for one in step.measures]
    assert all(isinstance(one, HemisphereMean) for one in reports)
    ends = {}
    for present in (True, False):
        X = -np.ones((N, 1))
        X[0] = 1.0 if present else -1.0
        ends[present] = Records.of(X, np.ones(N))

    def refuted(factor: float) -> bool:
        plan = quieter(honest.plan, factor)
        schedule, statistics = plan.schedule(), dict.fromkeys(settings.algorithm.statistics, longest)

        def once(present: bool, rng: np.random.Generator) -> float:
            crowd = Crowd(ends[present], statistics, trusts_shuffler=True, rng=rng)
            overheard = Overheard(crowd.open(plan))
            settings.algorithm.run(
                overheard, np.zeros(1), problem=honest.problem, rounds=2, prox=Zero(),
                follow=lambda _r, _w: None,
            )  # fmt: skip
            score = 0.0
            for seen in overheard.seen:
                step: Any = schedule.steps[schedule.kind(seen.step)]
                for one, mean, radius in zip(step.measures, seen.means, seen.radius, strict=True):
                    if radius == 0:  # the point did not move, and nobody was asked for a difference
                        continue
                    kappa = math.tanh(one.estimator.local_epsilon / 2)
                    # A report is +-radius / kappa, moves by 2 kappa of it, and varies by 1 - kappa^2.
                    score += float(mean[0]) * N * kappa / radius * kappa / (1 - kappa**2)
            return score

        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            return np.array([once(present, rng) for _ in range(size)])

        claim = honest.plan.event([1] * N, TrustModel.SHUFFLE), LOOSE.delta
        found = parted(run, claim, runs=600)
        assert 0.99 <= found.claimed_epsilon / LOOSE.epsilon <= 1 + 1e-9
        return found.refuted

    assert not refuted(1.0)
    assert refuted(0.5)


def test_walks_come_after_the_same_rounds() -> None:
    """So that what is said of reports of MB-PSGM is said of those of CE-PSGM; walks are attacked there."""
    facts: Any = {"beta": 0.4, "messages": "hemispheres", "smoothness": 1e3, "step_size": 0.1}
    settings = Settings(
        objective=LinearObjective(loss=Logistic(), features=1, feature_norm=1.0),
        algorithm=NoisyLocalStorm(rounds=4, **facts),
        trust=TrustModel.SHUFFLE,
        budget=LOOSE,
        clip=0.2,
    )
    walked = prepare(settings, [N] * 3).plan
    plain = prepare(replace(settings, algorithm=NoisyStorm(rounds=2, **facts)), [N] * 3).plan

    def asked(plan: Plan) -> list[Any]:
        steps: list[Any] = [step for step, _ in plan.kinds if not step.alone]
        return [[(one.statistic, type(one.estimator)) for one in step.measures] for step in steps]

    assert (
        asked(walked)
        == asked(plain)
        == [
            [("gradient", HemisphereMean)],
            [("difference", HemisphereMean), ("gradient", HemisphereMean)],
        ]
    )
