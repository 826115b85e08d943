"""Runs that are killed and go on: for every trust model, kind of batch and participation.

    python -m tests.federation.kills --count 1000

forks a process for each try and kills it (SIGKILL) at a random moment. However often a run is killed, it must
end with the model that it would have had, every round must give what it gave before, no unit of disjoint
batches may be in two rounds, and every ledger must equal the price once. Under shuffle trust the server must
see one batch of every round, in which nobody's noise is ever another.
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tacit.federation import (
    Batch,
    Disjoint,
    Fixed,
    Full,
    InProcess,
    Measure,
    Participation,
    Plan,
    Poisson,
    Query,
    RandomSubset,
    Scheduled,
    Server,
    Silo,
    Step,
    inprocess,
    silo_work,
    with_honest,
)
from tacit.ledger import CENTRAL, DATA_SET, Ledger, create_ledgers, open_ledgers
from tacit.ledger.file import LedgerFile
from tacit.means import BinomialMean, SignVoteMean
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, TrustModel
from tests.federation.world import (
    DELTA,
    DIM,
    GRID,
    RADIUS,
    STATISTICS,
    Rows,
    ledger_at,
    mean_of,
    plan_of,
    rows,
)

PARTIES, ROUNDS = 3, 3
DATA = [rows(k, n) for k, n in enumerate((12, 14, 18))]
SERVER = PARTIES
"""Index of the trusted server's ledger and generator, after those of the silos."""
ACCOUNT = SERVER + 1
"""Index of the account of all records, in a folder."""
_NAMES = [*(f"silo {k}" for k in range(PARTIES)), CENTRAL, DATA_SET]

_TRUSTS = (TrustModel.LOCAL, TrustModel.CENTRAL)
_BATCHES: tuple[Batch, ...] = (Full(), Fixed(size=3), Disjoint(size=2), Poisson(rate=0.3))
_MIXED = BinomialMean(dim=DIM, noise_bits=90, resolution=4)
_N_MIN = 2
_PARTICIPATIONS: tuple[Participation | None, ...] = (None, RandomSubset(2), Scheduled(((0, 2), (1,))))


@dataclass(frozen=True)
class Case:
    """One kind of run."""

    trust: TrustModel
    batch: Batch
    participation: Participation | None
    votes: bool = False
    walks: int | None = None
    keeps: bool = False
    bands: int | None = None
    folder: bool = False

    def __str__(self) -> str:
        kind = "votes" if self.votes else f"walks of {self.walks} steps" if self.walks else "means"
        kind = "states" if self.keeps else f"{self.bands} bands" if self.bands else kind
        drawn = "Everybody" if self.participation is None else type(self.participation).__name__
        account = " in a folder" if self.folder else ""
        return f"{self.trust} {type(self.batch).__name__} {drawn} {kind}{account}"

    @property
    def relation(self) -> Relation:
        return Relation.ZERO_OUT if isinstance(self.batch, Poisson) else Relation.REPLACE_ONE

    @property
    def payers(self) -> tuple[int, ...]:
        """Whose ledgers pay, by number."""
        payers = (SERVER,) if self.trust is TrustModel.CENTRAL else tuple(range(PARTIES))
        return (*payers, ACCOUNT) if self.folder else payers


CASES = [
    *(Case(*chosen) for chosen in product(_TRUSTS, _BATCHES, _PARTICIPATIONS)),
    *(Case(trust, Full(), RandomSubset(2), votes=True) for trust in _TRUSTS),
    *(
        Case(TrustModel.LOCAL, batch, RandomSubset(2), walks=2)
        for batch in (Full(), Fixed(size=3), Disjoint(size=2))
    ),
    *(Case(TrustModel.LOCAL, Full(), chosen, keeps=True) for chosen in (None, RandomSubset(2))),
    *(
        Case(trust, batch, chosen, bands=bands)
        for trust in _TRUSTS
        for batch, chosen, bands in (
            (Disjoint(size=2), None, 3),
            (Disjoint(size=2), RandomSubset(2), 2),
            (Full(), None, 2),
        )
    ),
    *(Case(trust, Disjoint(size=2), RandomSubset(2), folder=True) for trust in _TRUSTS),
    Case(TrustModel.LOCAL, Full(), RandomSubset(2), keeps=True, folder=True),
    *(Case(TrustModel.SHUFFLE, *chosen) for chosen in product(_BATCHES[:3], _PARTICIPATIONS)),
    Case(TrustModel.SHUFFLE, Full(), RandomSubset(2), keeps=True),
    Case(TrustModel.SHUFFLE, Disjoint(size=2), RandomSubset(2), folder=True),
]


class Adding:
    """Every unit keeps the sum of all rows that it has sent; its row is that sum, halved."""

    state_size, state_version = DIM, 1

    def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        kept = state + (at["w"] - units.values)
        return kept / 2, kept


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder, in memory where that has files: there too, what a killed process wrote outlives it."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a name that nobody can guess
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def prepare(case: Case, folder: Path) -> None:
    """Make the ledgers; a run is killed when it has begun."""
    if case.folder:
        limit, neighbours = PrivacyBudget(1000.0, 1e-4), Neighbours(case.relation)
        create_ledgers(folder, _NAMES[:PARTIES], limit=limit, neighbours=neighbours)
        return
    for number in range(PARTIES + 1):
        ledger_at(folder / str(number), epsilon=1000.0, relation=case.relation).close()


def open_all(case: Case, folder: Path, stack: ExitStack) -> list[Ledger]:
    """Open all ledgers until the stack is closed."""
    if case.folder:
        return [stack.enter_context(one) for one in open_ledgers(folder, _NAMES)]
    return [stack.enter_context(Ledger.open(folder / str(k))) for k in range(PARTIES + 1)]


def go(case: Case, folder: Path, *, repeatable: bool) -> tuple[Array, list[Guarantee]]:
    """Begin a run or go on with it, to its end.

    Args:
        case: What runs.
        folder: With the ledgers; what every round gave and used is written down there.
        repeatable: Whether a round draws the same numbers in every process; else they are secret.
    """
    with ExitStack() as stack:
        if repeatable:
            # Drawn in whatever round comes first, it must not depend on that round's numbers.
            order = mock.patch.object(
                silo_work, "draw_disjoint_order", lambda n, _: np.random.default_rng(n).permutation(n)
            )
            stack.enter_context(order)
        ledgers = open_all(case, folder, stack)
        trail = stack.enter_context((folder / "trail").open("a"))
        rngs = [np.random.default_rng(0) if repeatable else None for _ in range(PARTIES + 1)]
        units = [Rows(values) for values in DATA]
        stack.enter_context(_watched(trail))
        local = case.trust is not TrustModel.CENTRAL  # the silos add the noise
        silos = [
            Silo(
                units[k],
                {**STATISTICS, "adding": Adding()},
                ledger=ledgers[k] if local else None,
                trusts_server=not local,
                trusts_shuffler=case.trust is TrustModel.SHUFFLE,
                rng=rngs[k],
            )
            for k in range(PARTIES)
        ]
        federation = InProcess(
            silos,
            ledger=None if local else ledgers[SERVER],
            data_ledger=ledgers[ACCOUNT] if case.folder else None,
            rng=rngs[SERVER],
        )
        ask = federation.open(_plan(case), participation=case.participation)
        w = np.zeros(DIM)
        for step in range(ROUNDS):
            for number, rng in enumerate(rngs):
                if rng is not None:
                    rng.bit_generator.state = np.random.PCG64([step, number]).state
            at = {"w": w} if case.walks is None else {"w": w, "step_size": np.asarray(0.3)}
            try:
                (mean,) = ask(step, at, (RADIUS,))
            finally:
                for number, held in enumerate(units):
                    if held.taken:
                        trail.write(f"used {number} {step} {sorted(chain(*held.taken))}\n")
                        held.taken.clear()
            w = mean if case.walks else w - 0.3 * mean
            trail.write(f"gave {step} {w.tobytes().hex()}\n")
            trail.flush()
        return w, ask.guarantees


@contextmanager
def _watched(trail: Any) -> Iterator[None]:
    """Write down every batch that the server gets, before anything is done with it."""
    means = Server.means_of_batch

    def watched(self: Server, query: Query, batch: Any, *, asked: Sequence[int]) -> tuple[Array, ...]:
        ones = [[int(m.payload.sum()) for m in group] for group in batch.messages]
        trail.write(f"saw {query.step} {batch.parties} {batch.rows} {ones}\n")
        trail.flush()
        return means(self, query, batch, asked=asked)

    with mock.patch.object(Server, "means_of_batch", watched):
        yield


def _plan(case: Case) -> Any:
    """Return the plan of a case."""
    neighbours = Neighbours(case.relation)
    if case.trust is TrustModel.SHUFFLE:
        statistic = "adding" if case.keeps else "shifted"
        kind = Step(
            measures=(Measure(statistic=statistic, estimator=_MIXED, max_radius=RADIUS),), batch=case.batch
        )
        sizes = [len(values) for values in DATA]
        return Plan(
            steps=with_honest(((kind, ROUNDS),), sizes, n_min=_N_MIN, colluding=0),
            parties=PARTIES,
            trust=case.trust,
            delta=DELTA,
            n_min=_N_MIN,
        )
    mean: Any = mean_of(GRID, trust=case.trust, relation=case.relation)
    if case.votes:
        mean = SignVoteMean(dim=DIM, noise=GRID, trust=case.trust, neighbours=neighbours)
    return plan_of(
        mean,
        rounds=ROUNDS,
        parties=PARTIES,
        batch=case.batch,
        statistics=("adding" if case.keeps else "shifted",),
        walks=case.walks,
        bands=case.bands,
    )


@cache
def reference(case: Case) -> tuple[Array, list[Guarantee]]:
    """Return what a run that nobody kills ends with, and its price."""
    with scratch() as folder:
        prepare(case, folder)
        return go(case, folder, repeatable=True)


def check(case: Case, folder: Path, *, repeatable: bool) -> None:
    """End a run that was killed, and look at all that it left."""
    w, prices = go(case, folder, repeatable=repeatable)
    again, _ = go(case, folder, repeatable=repeatable)
    assert np.array_equal(w, again), f"{case}: the end of the run changes"
    expected, expected_prices = reference(case)
    if repeatable:
        assert np.array_equal(w, expected), f"{case}: another model than without being killed"
    assert [(p.epsilon, p.delta) for p in prices] == [(p.epsilon, p.delta) for p in expected_prices]
    _check_trail(case, folder)
    owed = dict(zip(case.payers, prices, strict=False))
    if case.folder:  # the silos hold disjoint records
        owed[ACCOUNT] = max(prices, key=lambda price: price.epsilon)
    with ExitStack() as stack:
        for number, ledger in enumerate(open_all(case, folder, stack)):
            found = [(entry.epsilon, entry.delta) for entry in ledger.entries()]
            expected_here = [(owed[number].epsilon, owed[number].delta)] if number in owed else []
            assert found == expected_here, f"{case}: ledger {number}"


def _check_trail(case: Case, folder: Path) -> None:
    """Every round gave one point, however often it was asked; disjoint batches are the same, and disjoint."""
    gave: dict[int, str] = {}
    used: dict[tuple[str, str], list[int]] = {}
    seen: dict[str, list[str]] = {}
    for line in (folder / "trail").read_text().splitlines():
        kind, *rest = line.split(" ", 3 if line.startswith("used") else 2)
        if kind == "gave":
            assert gave.setdefault(int(rest[0]), rest[1]) == rest[1], (
                f"{case}: round {rest[0]} gave two points"
            )
        elif kind == "saw":
            assert seen.setdefault(rest[0], rest[1:]) == rest[1:], f"{case}: a second batch of {rest[0]}"
        elif isinstance(case.batch, Disjoint):
            units = [int(word) for word in rest[2].strip("[]").split(",")]
            assert used.setdefault((rest[0], rest[1]), units) == units, f"{case}: another batch"
    for party in {party for party, _ in used}:
        most = Counter(unit for (one, _), units in used.items() if one == party for unit in units)
        assert set(most.values()) == {1}, f"{case}: a unit is in two rounds"


class KilledError(BaseException):
    """Ends a run in this process as a kill would: nothing catches it."""


@contextmanager
def dying(*, committed: bool) -> Iterator[None]:
    """Die at a write to a ledger: after the first one, or within the second, which is then undone."""
    left = 1 if committed else 2
    transaction = LedgerFile.transaction

    @contextmanager
    def dies(self: LedgerFile, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        nonlocal left
        if left == 0:  # other threads are dead too
            raise KilledError
        if self._connection.in_transaction:  # a part of a write that is not on the disk before its end
            with transaction(self, write=write) as connection:
                yield connection
            return
        with transaction(self, write=write) as connection:
            before = connection.total_changes
            yield connection
            left -= connection.total_changes > before
            if left == 0 and not committed:
                raise KilledError
        if left == 0:
            raise KilledError

    one_by_one = mock.patch.object(inprocess, "_AT_ONCE", 1)
    with mock.patch.object(LedgerFile, "transaction", dies), one_by_one:
        yield


def kill_at_every_write(case: Case, *, committed: bool, repeatable: bool) -> int:
    """Kill a run at each of its writes in turn, going on in between; return how often it was killed."""
    kills = 0
    with scratch() as folder:
        prepare(case, folder)
        while True:
            try:
                with dying(committed=committed):
                    go(case, folder, repeatable=repeatable)
                break
            except KilledError:
                kills += 1
        check(case, folder, repeatable=repeatable)
    return kills


@dataclass
class Harness:
    """Kills processes at random moments.

    Attributes:
        rng: Draws the moments.
        kills: How many processes died before their end, by case.
        runs: How many runs were ended and looked at.
        trusts: Under which trust models.
    """

    rng: np.random.Generator
    kills: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    trusts: set[TrustModel] = field(default_factory=set)

    def run(self, case: Case, *, repeatable: bool, times: int) -> None:
        """Kill one run up to so many times, then end it and look at it."""
        reference(case)  # its price is known before the clock starts
        with scratch() as folder:
            prepare(case, folder)
            length = self._length(case)
            for _ in range(times):
                if not self._killed(
                    lambda: go(case, folder, repeatable=repeatable), self.rng.uniform(0, length)
                ):
                    break
                self.kills[str(case)] += 1
            check(case, folder, repeatable=repeatable)
            self.runs += 1
            self.trusts.add(case.trust)

    def _length(self, case: Case) -> float:
        """Return about how long a whole run takes."""
        with scratch() as folder:
            prepare(case, folder)
            start = time.perf_counter()
            go(case, folder, repeatable=True)
            return time.perf_counter() - start

    def _killed(self, work: Callable[[], object], seconds: float) -> bool:
        """Do work in another process and kill it after so many seconds; return whether it died of that."""
        child = os.fork()
        if child == 0:
            try:
                work()
            finally:
                os._exit(1 if sys.exc_info()[0] is not None else 0)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return True
        assert os.WEXITSTATUS(status) == 0, "a run that goes on has failed"
        return False


def in_turn(rng: np.random.Generator) -> list[Case]:
    """Return all cases in a random order in which the trust models take turns, as long as there are such."""
    drawn = [CASES[k] for k in rng.permutation(len(CASES))]
    groups = [[case for case in drawn if case.trust is trust] for trust in TrustModel]
    return [case for row in zip_longest(*groups) for case in row if case is not None]


def main() -> None:
    """Kill as often as the command line says, over all cases in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=6, help="most kills of one run")
    wanted = parser.parse_args()
    harness, start = Harness(np.random.default_rng(wanted.seed)), time.perf_counter()
    while harness.kills.total() < wanted.count:
        for case, repeatable in product(in_turn(harness.rng), (True, False)):
            left = wanted.count - harness.kills.total()
            if left > 0:
                harness.run(case, repeatable=repeatable, times=min(wanted.times, left))
    lines = [f"{kills:5}  {name}" for name, kills in sorted(harness.kills.items())]
    total, seconds = harness.kills.total(), time.perf_counter() - start
    cases = f"{len(harness.kills)} of {len(CASES)} cases"
    trusts = ", ".join(sorted(harness.trusts))
    lines.append(f"{total} kills of {harness.runs} runs in {cases}, {trusts} trust, {seconds:.0f} s:")
    lines.append("every run ended with the model it would have had, and every ledger equals the price once.")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
