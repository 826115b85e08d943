"""Attacks on whole shuffled runs, from the settings to what the server sees, with and without colluders.

Every record of the first silo has its own coordinate, and all of them are attacked at once: noise is
independent on all coordinates, so that a run is as many attacks as there are records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.federation import Ask, InProcess, Plan, Query, Silo, open_answer
from tacit.federation.answers import Answer, encode_answer
from tacit.federation.protocols import Unsent
from tacit.learning import (
    LinearObjective,
    NoisyMinibatchSGD,
    Records,
    Settings,
    Squared,
    make_silos,
    train,
    training,
)
from tacit.learning.preparation import prepare
from tacit.means import BinomialMean
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.learning.attacks import Parted, parted

LOOSE = PrivacyBudget(0.1, 0.5)
"""A delta at which some hundred runs show what noise of half the size gives away."""
CANARIES = 8
GOAL = LinearObjective(loss=Squared(), features=CANARIES, feature_norm=1.0)
SIZES = (CANARIES, 2 * CANARIES, 3 * CANARIES)
ROUNDS, RUNS = 2, 480


def settings(algorithm: Any, **fields: Any) -> Settings:
    return Settings(
        objective=GOAL, algorithm=algorithm, trust=TrustModel.SHUFFLE, budget=LOOSE, clip=1.0, **fields
    )


def mean_of(plan: Plan) -> BinomialMean:
    mean = plan.kinds[0][0].measures[0].estimator
    assert isinstance(mean, BinomialMean)
    return mean


class Colluder:
    """A party that keeps all noise back: of its rows and noise it sends zeros, as many as it should."""

    def __init__(self, silo: Silo) -> None:
        self._silo = silo

    def __getattr__(self, name: str) -> Any:
        return getattr(self._silo, name)

    def prepare(self, query: Query, circle: Any = None) -> Unsent:
        sent = self._silo.answer(query, circle)
        (messages,) = open_answer(sent, party=0)
        silent = [replace(one, payload=np.zeros_like(one.payload)) for one in messages]
        bound = msgspec.msgpack.decode(sent, type=Answer).bound
        answer = encode_answer(((*(one.to_bytes() for one in silent),),), bound)
        return Unsent(lambda: answer)


@dataclass
class Overheard:
    """A federation whose server adds up what it sees along the canaries, and whose silos may add less noise.

    Attributes:
        inner: The federation.
        divided: What the noise bits of every row are divided by, against the plan that is priced: a quarter
            of them has half the standard deviation.
    """

    inner: InProcess
    divided: int
    total: Array = field(default_factory=lambda: np.zeros(CANARIES))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def open(self, plan: Plan, *, budget: PrivacyBudget | None = None, **fields: Any) -> Any:
        (step, count), *_ = plan.kinds
        (measure,) = step.measures
        mean = mean_of(plan)
        weak = msgspec.structs.replace(mean, noise_bits=mean.noise_bits // self.divided)
        measure = msgspec.structs.replace(measure, estimator=weak)
        steps = ((msgspec.structs.replace(step, measures=(measure,)), count),)
        return _Seen(self, self.inner.open(msgspec.structs.replace(plan, steps=steps), **fields))


class _Seen:
    """The `Ask` of it."""

    def __init__(self, overheard: Overheard, ask: Ask) -> None:
        self._overheard, self._ask = overheard, ask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask, name)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        means = self._ask(step, at, radius)
        self._overheard.total += means[0]
        return means


def records(*, there: bool) -> list[Records]:
    """All gradients are 0 but those of the first silo: 1 or -1 along the record's own axis, anywhere."""
    first = Records.of(1e3 * np.eye(CANARIES), np.full(CANARIES, -1e9 if there else 1e9))
    return [first, *(Records.of(np.zeros((n, CANARIES)), np.zeros(n)) for n in SIZES[1:])]


def attacked(
    chosen: Settings,
    monkeypatch: pytest.MonkeyPatch,
    *,
    away: tuple[int, ...],
    silent: tuple[int, ...],
    divided: int = 1,
) -> Parted:
    """Attack `train` where some silos stay away and some keep their noise back."""
    silos_of = {there: records(there=there) for there in (True, False)}
    prepared = prepare(chosen, SIZES)
    monkeypatch.setattr(training, "prepare", lambda *_: prepared)  # every run is calibrated alike

    def once(present: bool, seed: int) -> Array:
        silos: list[Any] = list(make_silos(silos_of[present], GOAL, trusts_shuffler=True, seed=seed))
        for k in silent:
            silos[k] = Colluder(silos[k])
        rngs = [simulated(seed, who) for who in ("server", "shuffler")]
        inner = InProcess(silos, rng=rngs[0], shuffler_rng=rngs[1], is_down=lambda _, k: k in away)
        overheard = Overheard(inner, divided)
        train(overheard, chosen)
        return overheard.total

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        seeds = rng.integers(0, 2**62, -(-size // CANARIES))
        return np.concatenate([np.empty(0), *(once(present, int(seed)) for seed in seeds)])[:size]

    # Sums of thousands of fair bits, whose law no few hundred runs tell from a normal one.
    return parted(run, (prepared.plan.event(SIZES, TrustModel.SHUFFLE), LOOSE.delta), runs=RUNS)


@pytest.mark.parametrize(("n_min", "away", "silent"), [(3, (), ()), (3, (), (2,)), (2, (1,), (2,))])
def test_a_whole_run_stands_and_half_the_noise_is_caught(
    n_min: int, away: tuple[int, ...], silent: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many silos stay away and keep their noise back as the plan allows, and those that have the most."""
    algorithm = NoisyMinibatchSGD(rounds=ROUNDS, step_size=0.1)
    chosen = settings(algorithm, n_min=n_min, colluding=len(silent))
    found = attacked(chosen, monkeypatch, away=away, silent=silent)
    assert 0 < found.claimed_epsilon <= 0.1
    assert not found.refuted
    assert attacked(chosen, monkeypatch, away=away, silent=silent, divided=4).refuted
