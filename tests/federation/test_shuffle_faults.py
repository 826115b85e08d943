"""Shuffled rounds in which anything dies: a second batch of a round never has other noise in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import BudgetError, RefusalError
from tacit.federation import (
    Fixed,
    InProcess,
    Measure,
    Plan,
    Query,
    Server,
    Shuffler,
    Silo,
    SiloDownError,
    Step,
    with_honest,
)
from tacit.federation.protocols import Unsent
from tacit.means import BinomialMean, Estimator, Message, Round, shuffle
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, epsilon_of
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.world import AT, DELTA, DIM, RADIUS, STATISTICS, Rows, ledger_at, rows

SIZES = (5, 9, 7)
DATA = [rows(k, n) for k, n in enumerate(SIZES)]
MEAN = BinomialMean(dim=DIM, noise_bits=90, resolution=4)
ROUNDS = 4
SHUFFLED = [case for case in ESTIMATORS if case.make(3, 1).trust is TrustModel.SHUFFLE]

Seen = dict[int, set[tuple[int, ...]]]


def plan_of(*, n_min: int = 2, colluding: int = 0, mean: Estimator = MEAN, batch: Any = None) -> Plan:
    fields = {} if batch is None else {"batch": batch}
    kind = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=RADIUS),), **fields)
    return Plan(
        steps=with_honest(((kind, ROUNDS),), SIZES, n_min=n_min, colluding=colluding),
        parties=3,
        trust=TrustModel.SHUFFLE,
        delta=DELTA,
        n_min=n_min,
        colluding=colluding,
    )


class DeadError(BaseException):
    """Ends a process: nothing catches it."""


class Frail:
    """A silo that dies before it answers, before its answer is stored, or after that."""

    def __init__(self, silo: Silo, dies: Callable[[], bool]) -> None:
        self._silo, self._dies = silo, dies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._silo, name)

    def _live(self) -> None:
        if self._dies():
            raise SiloDownError("gone")

    def prepare(self, query: Query, circle: Any = None) -> Unsent:
        self._live()
        unsent = self._silo.prepare(query, circle)

        def store() -> bytes:
            self._live()
            answer = unsent.store()
            self._live()
            return answer

        return Unsent(store, unsent.ledger)


@contextmanager
def watched(seen: Seen, dies: Callable[[], bool], patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write down all that a server gets; shufflers and servers die before and after they do their work."""
    release, means, lock = Shuffler.release, Server.means_of_batch, Lock()

    def live() -> None:
        if dies():
            raise DeadError

    def releasing(self: Shuffler, *given: Any) -> Any:
        live()
        batch = release(self, *given)
        live()
        return batch

    def reading(self: Server, query: Query, batch: Any, **fields: Any) -> Any:
        ones = tuple(int(m.payload.sum()) for m in batch.messages[0])
        with lock:
            seen.setdefault(query.step, set()).add((batch.rows, batch.parties, *ones))
        live()
        return means(self, query, batch, **fields)

    with patch.context() as here:
        here.setattr(Shuffler, "release", releasing)
        here.setattr(Server, "means_of_batch", reading)
        yield


def dying(*seed: int) -> Callable[[], bool]:
    """Return what says, one in twelve times, that somebody dies now: one each, as threads overtake."""
    rng = np.random.default_rng(seed)
    return lambda: bool(rng.random() < 1 / 12)


def silos(ledgers: list[Any], dies: list[Callable[[], bool]]) -> list[Any]:
    """New silos, with secret noise, that remember what is in their ledgers only."""
    return [
        Frail(Silo(Rows(v), STATISTICS, name=f"s{k}", ledger=ledgers[k], trusts_shuffler=True), dies[k])
        for k, v in enumerate(DATA)
    ]


@pytest.mark.parametrize("batch", [None, Fixed(size=3)], ids=["all rows", "secret samples"])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_dies_the_server_sees_one_batch_of_a_round(
    seed: int, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, seen, deaths = plan_of(batch=batch), dict[int, set[tuple[int, ...]]](), 0
    refused: set[str] = set()
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=1000.0)) for k in range(3)]
        for attempt in range(25):
            frail = [dying(seed, attempt, k) for k in range(3)]
            ask = InProcess(silos(ledgers, frail)).open(made)
            with watched(seen, dying(seed, attempt, 3), monkeypatch):
                for step in range(ROUNDS):
                    try:
                        ask(step, AT, (RADIUS,))
                    except DeadError:
                        deaths += 1
                        break
                    except RefusalError as refusal:  # it is bound to others that are not here now
                        refused.add(str(refusal))
        assert deaths > 1
        assert {len(batches) for batches in seen.values()} == {1}, seen
        assert all("another point or for another party" in text for text in refused)
        prices = [Silo(Rows(v), STATISTICS, trusts_shuffler=True).consider(made).epsilon for v in DATA]
        assert [[e.epsilon for e in ledger.entries()] for ledger in ledgers] == [[p] for p in prices]


def _never() -> bool:
    return False


def _is(away: int | None, _: int, party: int) -> bool:
    """Whether a party is the one that is away."""
    return party == away


def test_two_servers_at_once_do_not_get_two_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their processes have the ledgers of the silos in common, and different silos are down for them."""
    made, seen = plan_of(), dict[int, set[tuple[int, ...]]]()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ExitStack() as stack:
            ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=1000.0)) for k in range(3)]
            asks = [
                InProcess(silos(ledgers, [_never] * 3), is_down=partial(_is, away)).open(made)
                for away in (None, 2, 1, None)
            ]
            start = Barrier(len(asks))

            def work(ask: Any) -> None:
                for step in range(ROUNDS):
                    start.wait()
                    try:
                        ask(step, AT, (RADIUS,))
                    except RefusalError:
                        continue

            with watched(seen, _never, monkeypatch), ThreadPoolExecutor(len(asks)) as pool:
                list(pool.map(work, asks))
    finally:
        sys.setswitchinterval(before)
    assert all(len(batches) == 1 for batches in seen.values()), seen


def test_threads_get_one_batch_at_one_point() -> None:
    parties = [Silo(Rows(v), STATISTICS, trusts_shuffler=True) for v in DATA]
    ask, start = InProcess(parties).open(plan_of()), Barrier(8)

    def work(k: int) -> Any:
        start.wait()
        try:
            return ask(0, {"w": np.full(DIM, float(k % 2))}, (RADIUS,))[0].tolist()
        except RefusalError:
            return None

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    answered = [one for one in found if one is not None]
    assert len(answered) == 4
    assert all(one == answered[0] for one in answered)


# --- what a shuffler leaves


def sent_by(mean: Estimator, sizes: list[int], seed: int) -> tuple[list[Message], Round]:
    """What parties with that many rows of three coordinates send."""
    rng = np.random.default_rng(seed)
    held = [rows(seed + k, n) for k, n in enumerate(sizes)]
    this_round = Round(n=sum(sizes), radius=RADIUS, parties=len(sizes))
    return [
        message for k, X in enumerate(held) for message in mean.encode(X, this_round, party=k, rng=rng)
    ], this_round


def contents(messages: list[Message]) -> list[tuple[Any, ...]]:
    """What is written in messages, whatever their order and that of symbols within; of bits, their number."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for m in messages:
        if symbols := getattr(m, "symbols", 0):  # each entry counts ones among so many bits
            counted = found.setdefault((m.label, "bits"), [0] * (m.payload.size + 1))
            counted[:] = [a + b for a, b in zip(counted, [symbols, *m.payload.tolist()], strict=True)]
            continue
        held = found.setdefault((m.label, m.width), [])
        held.extend(m.payload.tolist() if m.payload.dtype == np.int64 else [tuple(m.payload.tolist())])
    return [(*key, tuple(sorted(values))) for key, values in sorted(found.items())]


@pytest.mark.parametrize("case", SHUFFLED, ids=str)
@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=2, max_size=5), seed=st.integers(0, 2**32 - 1))
def test_a_batch_tells_neither_sender_nor_order_and_gives_the_same_mean(
    case: Any, sizes: list[int], seed: int
) -> None:
    mean = case.make(DIM, sum(sizes))
    messages, this_round = sent_by(mean, sizes, seed)
    rng = np.random.default_rng(seed)
    batch = shuffle(messages, rng=rng, n_min=len({m.sender for m in messages}))
    assert {m.sender for m in batch} <= {None}
    assert contents(batch) == contents(messages)
    # In which order they came leaves no trace: the same draws give the same batch, up to the permutation.
    turned = [messages[k] for k in rng.permutation(len(messages))]
    assert contents(shuffle(turned, rng=rng)) == contents(batch)
    found, plain = mean.decode(batch, this_round), mean.decode(messages, this_round)
    np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-9 * RADIUS)


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_single_bits_come_in_one_order_whoever_sent_them(sizes: list[int], seed: int) -> None:
    mean = BinomialMean(dim=2, noise_bits=3, resolution=2)
    messages, _ = sent_by_two(mean, sizes, seed)
    rng = np.random.default_rng(seed)
    turned = [messages[k] for k in rng.permutation(len(messages))]
    for one, other in zip(shuffle(messages, rng=rng), shuffle(turned, rng=rng), strict=True):
        assert one.payload.tolist() == other.payload.tolist()


def sent_by_two(mean: Estimator, sizes: list[int], seed: int) -> tuple[list[Message], Round]:
    """The same with two coordinates."""
    rng, this_round = np.random.default_rng(seed), Round(n=sum(sizes), radius=RADIUS)
    held: list[Array] = [rows(seed + k, n, dim=2) for k, n in enumerate(sizes)]
    return [m for k, X in enumerate(held) for m in mean.encode(X, this_round, party=k, rng=rng)], this_round


# --- what colluders leave


@pytest.mark.parametrize(("n_min", "colluding"), [(3, 0), (3, 1), (3, 2), (2, 1), (2, 0)])
def test_a_claim_is_that_of_the_noise_which_colluders_cannot_take_away(n_min: int, colluding: int) -> None:
    """The exact law: g ones more or less of a record, beside the fair bits of the honest rows that are sure.

    The largest silos stay away and collude. One noise bit of a row less, and the claim would be false.
    """
    mean = BinomialMean(dim=1, noise_bits=60, resolution=4)
    made = plan_of(n_min=n_min, colluding=colluding, mean=mean)
    honest = sum(sorted(SIZES)[: n_min - colluding])
    claim = epsilon_of(made.kinds[0][0].event(SIZES, TrustModel.SHUFFLE), DELTA)

    def delta(bits: int) -> float:
        """Return what a shift by g costs beyond epsilon: the worst of the two directions, which are alike."""
        ones = np.arange(bits + mean.resolution + 1)
        here, there = stats.binom.pmf(ones, bits, 0.5), stats.binom.pmf(ones - mean.resolution, bits, 0.5)
        return float(np.maximum(here - np.exp(claim) * there, 0).sum())

    assert delta(honest * mean.noise_bits) <= DELTA
    assert delta(honest * mean.noise_bits) == pytest.approx(DELTA, rel=0.05)
    assert delta(honest * (mean.noise_bits - 1)) > DELTA


def test_what_may_be_spent_bounds_what_is_mixed() -> None:
    """A silo refuses a plan in which one colluder more makes the noise too little for its budget."""
    silo = Silo(Rows(DATA[0]), STATISTICS, trusts_shuffler=True)
    price = silo.consider(plan_of(n_min=3, colluding=1))
    budget = PrivacyBudget(price.epsilon, DELTA)
    assert silo.consider(plan_of(n_min=3), budget=budget).epsilon < price.epsilon
    with pytest.raises(BudgetError, match="above the agreed epsilon"):
        silo.consider(plan_of(n_min=2, colluding=1), budget=budget)
