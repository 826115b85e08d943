"""What algorithms take beside what they ask for, and what it takes to plan all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.case import Case
from tacit.errors import TacitError
from tacit.federation import server, shuffler, silo
from tacit.learning import ALGORITHMS, LinearObjective, Logistic, Records, Settings, make_algorithm
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for
from tacit.planning import TrainingProblem, plan_training
from tacit.privacy import PrivacyBudget, TrustModel

SILOS, RECORDS, DIM, ROUNDS = 25, 347, 50, 35
BUDGET = PrivacyBudget(3.0, 1e-6)
TRUSTS = (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL)

_WORK = (
    (silo.Silo, "_compute"),  # statistics, noise, encode
    (server.Server, "_mean"),  # decode, the server's noise
    (shuffler.Shuffler, "_mixed"),
    (silo, "encode_answer"),
    (server, "open_answer"),
    (server, "pooled"),  # where noise is correlated: decode
    (server, "release"),  # and that noise
)


class _Clock:
    """Adds up the time that is spent inside what it watches, once where that is nested."""

    def __init__(self) -> None:
        self.seconds, self.calls, self._depth = 0.0, 0, 0

    def watching(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            self.calls += 1
            self._depth += 1
            start = time.thread_time()
            try:
                return work(*args, **named)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.thread_time() - start

        return timed


@cache
def _own_seconds() -> float:
    """What a clock adds to one call that it watches, beside what it counts: the least of several runs."""
    clock, calls, found = _Clock(), 2000, []
    nothing = clock.watching(lambda: None)
    for _ in range(5):
        clock.seconds, start = 0.0, time.thread_time()
        for _ in range(calls):
            nothing()
        found.append(time.thread_time() - start - clock.seconds)
    return min(found) / calls


@contextmanager
def _clock() -> Iterator[_Clock]:
    clock = _Clock()
    patches = [mock.patch.object(owner, name, clock.watching(getattr(owner, name))) for owner, name in _WORK]
    for patch in patches:
        patch.start()
    try:
        yield clock
    finally:
        for patch in patches:
            patch.stop()


def _records(rows: int) -> list[Records]:
    rng, made = np.random.default_rng(0), []
    for _ in range(SILOS):
        X = rng.standard_normal((rows, DIM))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        made.append(Records.of(X, rng.integers(2, size=rows).astype(np.float64)))
    return made


def _outside(name: str, trust: TrustModel, records: list[Records], rounds: int, repeats: int) -> float:
    """Share of a run, after it is prepared, that is neither gradient nor noise nor codec; of the fastest."""
    settings = Settings(
        objective=LinearObjective(loss=Logistic(), features=DIM, feature_norm=1.0),
        algorithm=make_algorithm(name, rounds=rounds),
        trust=trust,
        budget=BUDGET,
    )
    federation = silos_for(settings, records, names=[str(k) for k in range(SILOS)], seed=0)
    prepared = prepare(settings, federation.sizes)
    found = []
    for again in range(repeats):
        ask = federation.open(prepared.plan, run=f"timed {again}", budget=BUDGET)
        with _clock() as clock:
            start = time.thread_time()
            settings.algorithm.run(
                ask,
                np.zeros(DIM),
                problem=prepared.problem,
                rounds=prepared.rounds,
                prox=settings.regularizer,
                follow=lambda _r, _w: None,
            )
            whole = time.thread_time() - start - clock.calls * _own_seconds()
        found.append((whole, 1 - clock.seconds / whole))
    return min(found)[1]


def _shares(smoke: bool) -> dict[str, float]:
    records, rounds = _records(20 if smoke else RECORDS), 3 if smoke else ROUNDS
    found = {}
    for name, kind in ALGORITHMS.items():
        for trust in kind.trusts[:1] if smoke else kind.trusts:
            try:
                found[f"{name}_{trust.value}"] = _outside(name, trust, records, rounds, 1 if smoke else 3)
            except TacitError:
                continue  # so few rounds, or records, that it has nothing to do
    return found


def _planning(smoke: bool) -> dict[str, float]:
    found = {}
    for trust in ("central",) if smoke else TRUSTS:
        problem = TrainingProblem(silos=SILOS, records=RECORDS, dim=DIM, trust=str(trust), budget=BUDGET)
        start = time.process_time()
        plan_training(problem)
        found[f"{trust}_seconds"] = time.process_time() - start
    return found


def _worst(shares: dict[str, float]) -> str:
    name = max(shares, key=lambda key: shares[key])
    above = sum(share > 0.3 for share in shares.values())
    return f"at most {shares[name]:.0%} ({name}), {above} of {len(shares)} above 30 %"


CASES = (
    Case(
        "algorithms/outside",
        "no method spends more than 30 % of a run outside gradient, noise and codec",
        _shares,
        _worst,
    ),
    Case(
        "algorithms/planning",
        "all methods are planned in less than 5 s of processor time",
        _planning,
        lambda m: ", ".join(f"{key.removesuffix('_seconds')} {s:.1f} s" for key, s in m.items()),
    ),
)
