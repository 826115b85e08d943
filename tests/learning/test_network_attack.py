"""Attacks on whole runs that train a network: the server knows all but one record, and sees every mean.

It computes what each of two silos would have answered at every point of the run, and takes the likelihood
ratio of the noise that is left: of Gaussian noise, no other test tells the silos better apart (Neyman and
Pearson). The record has the same features and another label, and so at every point the opposite gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.audits import Audit, audit
from tacit.federation import Ask, Group, InProcess, Plan
from tacit.learning import (
    Logistic,
    NetworkObjective,
    NoisySpider,
    RecordDifference,
    RecordGradient,
    Records,
    Settings,
    make_silos,
    train,
    training,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.means import AdditiveMean
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

LOOSE = PrivacyBudget(0.5, 0.4)
"""A delta at which some hundred runs show what half of the noise gives away."""
GOAL = NetworkObjective(loss=Logistic(), features=1, hidden=1, activation="tanh")
START = GOAL.start(3)
CLIP = 0.2
ALGORITHM = NoisySpider(rounds=3, period=3, step_size=0.1, smoothness=1e-3, split=0.4)
"""Of a guess so small that every difference is as long as its radius."""


def units(*, there: bool) -> Records:
    """A silo; the record in question is the first of it."""
    return Records.of(np.array([[1.0], [0.5], [-1.0], [0.1]]), np.array([float(there), 0.0, 1.0, 1.0]))


def asked_of(record: Records, at: Mapping[str, Array], radius: float) -> Array:
    """What a record contributes to the sum of a round."""
    kind: Any = RecordDifference(GOAL) if "previous" in at else RecordGradient(GOAL)
    return np.asarray(kind.clipped_sum(record, at, radius, np.float64))


class Watched:
    """A federation whose server keeps the log-likelihood ratio of what it sees, and whose silos may add less.

    Args:
        inner: The federation.
        truth: All records, with the one in question and with the other.
        shrunk: What noise is divided by, against the plan that is priced.
    """

    def __init__(
        self, inner: InProcess, truth: tuple[Records, Records], prepared: Prepared, shrunk: int
    ) -> None:
        self._inner, self._truth, self._prepared, self._shrunk = inner, truth, prepared, shrunk
        self.evidence = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, plan: Plan, *, budget: PrivacyBudget | None = None, **fields: Any) -> Any:
        ask = self._inner.open(quieter(plan, self._shrunk), **fields)
        return _Seen(self, ask)

    def see(self, mean: Array, at: Mapping[str, Array], radius: float) -> None:
        """Add what one mean says."""
        if radius == 0:  # no step was taken: the difference is zero whatever the records, and so is the noise
            return
        here, other = (asked_of(records, at, radius) for records in self._truth)
        name = "difference" if "previous" in at else "gradient"
        multiplier = next(m.noise_multiplier for m in self._prepared.means if m.statistic == name)
        std = 2 * radius * multiplier
        rows = len(self._truth[0])
        self.evidence += float((mean * rows - (here + other) / 2) @ (here - other)) / std**2


class _Seen:
    """The `Ask` of it."""

    def __init__(self, watched: Watched, ask: Ask) -> None:
        self._watched, self._ask = watched, ask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask, name)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        means = self._ask(step, at, radius)
        self._watched.see(means[0], at, radius[0])
        return means


def quieter(plan: Plan, shrunk: int) -> Plan:
    """The same plan with that part of its noise."""

    def kind(one: Any) -> Any:
        if isinstance(one, Group):
            return msgspec.structs.replace(one, steps=tuple((kind(step), n) for step, n in one.steps))
        (measure,) = one.measures
        mean: Any = measure.estimator
        assert isinstance(mean, AdditiveMean)
        noise: Any = mean.noise
        noise = msgspec.structs.replace(noise, noise_multiplier=noise.noise_multiplier / shrunk)
        mean = msgspec.structs.replace(mean, noise=noise)
        return msgspec.structs.replace(one, measures=(msgspec.structs.replace(measure, estimator=mean),))

    return msgspec.structs.replace(plan, steps=tuple((kind(one), n) for one, n in plan.steps))


def attacked(monkeypatch: pytest.MonkeyPatch, *, shrunk: int) -> Audit:
    """Attack `train`."""
    chosen = Settings(
        objective=GOAL,
        algorithm=ALGORITHM,
        trust=TrustModel.LOCAL,
        budget=LOOSE,
        clip=CLIP,
        start=START,
        noise="discrete-gaussian",
    )
    truth = (units(there=True), units(there=False))
    prepared = prepare(chosen, [len(truth[0])])
    monkeypatch.setattr(training, "prepare", lambda *_: prepared)  # every run is calibrated alike

    def once(present: bool, seed: int) -> float:
        parties = make_silos([truth[0] if present else truth[1]], GOAL, seed=seed)
        watched = Watched(InProcess(parties, rng=simulated(seed, "server")), truth, prepared, shrunk)
        train(watched, chosen)
        return watched.evidence

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        return np.array([once(present, int(seed)) for seed in rng.integers(0, 2**62, size)])

    return audit(
        run,
        (prepared.plan.event([len(truth[0])], TrustModel.LOCAL), LOOSE.delta),
        runs=400,
        confidence=1 - FALSE_ALARM,
        rng=simulated(1, "audit"),
        attack="likelihood ratio",
    )


def test_a_whole_run_stands_and_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a shuffler, the same sums of a silo go out in bits: those of SPIDER are attacked as such."""
    found = attacked(monkeypatch, shrunk=1)
    assert 0 < found.claimed_epsilon <= LOOSE.epsilon
    assert not found.refuted
    assert attacked(monkeypatch, shrunk=2).refuted
