"""Who sees what leaves the shuffler cannot tell who sent it, and the noise behind it is that of the price.

Every party sends the same contents here, so that nothing but the form could tell them apart: place, lengths,
headers, bytes, times. A classifier learns from rounds of which it is told all senders, and names the sender
of one message of each of other rounds, the one that it is surest of. What it looks at is independent of a
uniform permutation, so its hits are binomial, exactly. All shufflers that are wrong on purpose are caught.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier

from tacit.federation.answers import encode_answer
from tacit.federation.network.descriptor import SignedDescriptor
from tacit.federation.network.draws import draw_key
from tacit.federation.network.mixing import MixedRun, OpenRound
from tacit.federation.network.parcels import SealedBatch, make_parcel, open_batch
from tacit.federation.network.sealing import open_sealed
from tacit.means import BinomialMean, Message, SampledBinaryMean
from tacit.numerics import Array
from tacit.privacy import TrustModel, epsilon_of
from tacit.randomness import secure, simulated
from tests.federation.network.shuffled import World, parties_of, plan_of, world
from tests.federation.world import DIM
from tests.statistics import FALSE_ALARM, z_bound

PARTIES, SYMBOLS = 4, 2
LEARNT, TRIED = 50, 120
BINARY = SampledBinaryMean(dim=DIM, samples=SYMBOLS, local_epsilon=2.0, trust=TrustModel.SHUFFLE)


class Unpermuted:
    """Leaves everything as it came."""

    def permutation(self, n: int) -> Array:
        return np.arange(n)


class Lazy:
    """Exchanges neighbours by a coin each, once."""

    def __init__(self) -> None:
        self._rng = secure()

    def permutation(self, n: int) -> Array:
        order = np.arange(n)
        for k in range(n - 1):
            if self._rng.random() < 0.5:
                order[[k, k + 1]] = order[[k + 1, k]]
        return order


class Cut:
    """Cuts the pack now and then, as if that were mixing."""

    def __init__(self) -> None:
        self._rng = secure()

    def permutation(self, n: int) -> Array:
        return np.roll(np.arange(n), SYMBOLS * int(self._rng.random() < 0.2))


@dataclass
class Seen:
    """What is known of one message: what to look at, and who sent it."""

    features: Array
    sender: int


def rounds(made: World, count: int, *, seed: int) -> list[list[Seen]]:
    """Every message of so many rounds, with all that its receiver sees and who sent it."""
    rng, found = simulated(seed, "arrivals"), []
    clock = 0.0
    for step in range(count):
        signed = made.open(step)
        form = made.form(0)
        answer = _same_answer()
        parcels = [
            make_parcel(
                answer, form=form, party=0, bound=_BOUND, info=signed.info, key=made.who.opening.public
            )
            for _ in range(PARTIES)
        ]
        arrived = rng.permutation(PARTIES)
        times = np.zeros(PARTIES)
        for party in arrived:
            clock += rng.exponential()
            times[party] = clock
            made.send(int(party), signed, parcels[party])
        batch = made.batch(signed)
        found.append(_seen(made, signed.info, batch, parcels, arrived, times - clock))
    return found


def _seen(
    made: World, info: bytes, batch: SealedBatch, parcels: list[bytes], arrived: Any, times: Any
) -> list[Seen]:
    """Look at every message of a batch; the truth comes from the parcels, which no receiver has."""
    length = made.form(0).blob_bytes
    sender = {
        parcel[at : at + length]: party
        for party, parcel in enumerate(parcels)
        for at in range(0, len(parcel), length)
    }
    blobs = [batch.body[at : at + length] for at in range(0, len(batch.body), length)]
    seen = []
    for place, blob in enumerate(blobs):
        plain = open_sealed(blob, key=made.who.opening, info=info)
        turn = place * PARTIES // len(blobs)
        features = [place, turn, arrived[turn], len(blob), len(plain), len(blobs), batch.rows, batch.parties]
        octets = [*blob[:8], *blob[24:40], *blob[-8:], *plain]
        seen.append(Seen(np.array([*features, *times, *arrived, *octets]), sender[blob]))
    return seen


_BOUND = b"b" * 16


def _same_answer() -> bytes:
    message = Message(payload=np.zeros(SYMBOLS, dtype=np.int64), width=BINARY.randomizer.width)
    return encode_answer(((message.to_bytes(),),), _BOUND)


def hits(tmp_path: Path, rng: Any = None) -> int:
    """How many senders a classifier names rightly, one of each of `TRIED` rounds."""
    sizes = (1,) * PARTIES
    made = world(plan_of(BINARY, sizes=sizes, rounds=LEARNT + TRIED), tmp_path / "s", sizes, rng=rng)
    made.shuffling._memory._connection.execute("PRAGMA synchronous = OFF")  # nobody kills it here
    found = rounds(made, LEARNT + TRIED, seed=3)
    learnt = [one for of_round in found[:LEARNT] for one in of_round]
    forest = RandomForestClassifier(n_estimators=30, max_features=None, random_state=0)
    forest.fit(np.array([one.features for one in learnt]), [one.sender for one in learnt])
    tried = [one for of_round in found[LEARNT:] for one in of_round]
    sure = forest.predict_proba(np.array([one.features for one in tried])).reshape(TRIED, -1, PARTIES)
    right = 0
    for of_round, sure_of in zip(found[LEARNT:], sure, strict=True):
        surest = int(sure_of.max(axis=1).argmax())
        right += forest.classes_[sure_of[surest].argmax()] == of_round[surest].sender
    return right


def caught(right: int) -> bool:
    """Whether chance alone names so many rightly with a probability of `FALSE_ALARM` at most."""
    return bool(stats.binom.sf(right - 1, TRIED, 1 / PARTIES) <= FALSE_ALARM)


def test_messages_cannot_be_linked_to_parties(tmp_path: Path) -> None:
    assert not caught(hits(tmp_path))


@pytest.mark.parametrize("shuffler", [Unpermuted, Lazy, Cut])
def test_a_shuffler_that_leaks_order_is_caught(shuffler: Any, tmp_path: Path) -> None:
    assert caught(hits(tmp_path, shuffler()))


def test_every_order_is_as_likely() -> None:
    """All 24 orders of four messages, by the shuffler's own randomness: a chi-square test at 1e-7."""
    draws, rng = 1500, secure()
    orders: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        order = tuple(_mixed(np.arange(4), rng).tolist())
        orders[order] = orders.get(order, 0) + 1
    counts = [*orders.values(), *([0] * (24 - len(orders)))]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    lazy: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        order = tuple(_mixed(np.arange(4), Lazy()).tolist())
        lazy[order] = lazy.get(order, 0) + 1
    assert stats.chisquare([*lazy.values(), *([0] * (24 - len(lazy)))]).pvalue < FALSE_ALARM


# --- privacy


def _mixed(symbols: Array, rng: Any) -> Array:
    """What comes out where party k holds symbol k: by the mixing alone, as the holder of the key reads it."""
    sizes = (1,) * len(symbols)
    mean = SampledBinaryMean(dim=1, samples=1, local_epsilon=2.0, trust=TrustModel.SHUFFLE)
    held = _round_of(plan_of(mean, sizes=sizes), sizes)
    length = held.forms[0].blob_bytes
    for party, symbol in enumerate(symbols):
        held.parcels[party] = bytearray(int(symbol).to_bytes(2, "big").ljust(length, b"\0"))
    batch = held.mixed(rng)
    assert batch is not None
    octets = np.frombuffer(batch.body, dtype=np.uint8).reshape(-1, length)
    return np.asarray(octets[:, 0].astype(np.int64) * 256 + octets[:, 1])


_HELD: dict[Any, OpenRound] = {}


def _round_of(plan: Any, sizes: tuple[int, ...]) -> OpenRound:
    """An open round of all silos, whose parcels tests put in."""
    if sizes not in _HELD:
        who = parties_of(sizes)
        run = MixedRun(plan, who.roster)
        made = World(plan, who, [], None)  # type: ignore[arg-type]
        order = made.order(0, range(len(sizes)))
        draw = draw_key(who.shuffler, bytes(16))
        described = run.describe(order, active=set(range(len(sizes))), session=bytes(16), draw=draw.public)
        signed = SignedDescriptor.of(described, who.shuffler)
        _HELD[sizes] = OpenRound.of(signed, run, 0.0, draw=draw)
    return _HELD[sizes]


def test_the_claim_of_a_shuffled_plan_holds_against_who_looks_at_places() -> None:
    """Party 0 holds a bit, all others 0, and somebody guesses it from the message in its place, or the sum.

    If the claim is true, they are right with probability (e^eps + delta) / (1 + e^eps) at most (Kairouz, Oh
    and Viswanath 2015).
    """
    n, draws, level, delta = 60, 600, 1.5, 1e-2
    mean = SampledBinaryMean(dim=1, samples=1, local_epsilon=level, trust=TrustModel.SHUFFLE)
    plan = plan_of(mean, sizes=(1,) * n, n_min=n, rounds=1)
    claim = epsilon_of(plan.event((1,) * n, TrustModel.SHUFFLE), delta)
    assert claim < level / 3
    most = (math.exp(claim) + delta) / (1 + math.exp(claim))
    keep = math.exp(level) / (1 + math.exp(level))
    rng = simulated(5, "bits")

    def wins(order: Any) -> tuple[int, int]:
        by_place = by_sum = 0
        for _ in range(draws):
            bits = np.zeros(n, dtype=np.int64)
            bits[0] = rng.integers(2)
            sent = np.where(rng.random(n) < keep, bits, 1 - bits)
            came = _mixed(sent, order)
            by_place += int(came[0] == bits[0])
            by_sum += int((came.sum() > n * (1 - keep)) == bits[0])
        return by_place, by_sum

    def refuted(right: int) -> bool:
        return bool(stats.binom.sf(right - 1, draws, most) <= FALSE_ALARM / 2)

    by_place, by_sum = wins(secure())
    assert not refuted(by_place)
    assert not refuted(by_sum)
    leaking, _ = wins(Unpermuted())
    assert refuted(leaking)


def noise_of(mean: BinomialMean, tmp_path: Path) -> float:
    """The empirical variance of what the server learns of zeros beside that of the price."""
    sizes = (3, 4, 5)
    data = [np.zeros((n, mean.dim)) for n in sizes]
    made = world(plan_of(mean, sizes=sizes), tmp_path / f"{mean.noise_bits}", sizes, data=data)
    signed = made.open()
    for party in range(3):
        made.send(party, signed)
    batch = open_batch(made.batch(signed), form=made.form(0), info=signed.info, key=made.who.opening)
    ((message,),) = batch.messages
    centred = message.payload - sum(sizes) * (mean.resolution // 2) - sum(sizes) * mean.noise_bits / 2
    return float((centred**2).mean())


def test_the_server_sees_all_the_noise_that_was_paid_for(tmp_path: Path) -> None:
    """The mean of k squares of binomials varies by less than 2/k of its square, as their tails are thin."""
    dim, bits, rows = 3000, 40, 12
    expected, spread = rows * bits / 4, z_bound(1) * math.sqrt(2 / dim)

    def right(found: float) -> bool:
        return abs(found / expected - 1) < spread

    assert right(noise_of(BinomialMean(dim=dim, noise_bits=bits, resolution=8), tmp_path))
    assert not right(noise_of(BinomialMean(dim=dim, noise_bits=bits // 2, resolution=8), tmp_path))
