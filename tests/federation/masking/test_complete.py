"""All-or-nothing masks: the sum of all is exact, all else is uniform, and nobody is added to strangers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from scipy import stats

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.masking.agreement import derived_key, expanded, extracted, shared_secret
from tacit.federation.masking.complete import CARD_BYTES, CompleteMasks, CompleteSums
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.fields import framed
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.streams import centred, stream_words
from tacit.federation.network.keys import SigningKey
from tacit.federation.store import MemorySecrets
from tacit.federation.summed import added
from tacit.numerics import IntArray
from tests.statistics import FALSE_ALARM

KEYS = [SigningKey.make() for _ in range(4)]
ROSTER = MaskingRoster(("a", "b", "c", "d"), tuple(key.public.raw for key in KEYS))
PLAN, QUERY = b"p" * 32, b"q" * 16


def masks(
    k: int, *, roster: MaskingRoster = ROSTER, plan: bytes = PLAN, run: str = "run", secrets: Any = None
) -> CompleteMasks:
    kept = MemorySecrets() if secrets is None else secrets
    return CompleteMasks(MaskContext(roster, plan, run), KEYS[k], kept)


def agreed(**fields: Any) -> list[CompleteMasks]:
    made = [masks(k, **fields) for k in range(4)]
    cards = [one.advertise() for one in made]
    for one in made:
        one.agree(cards)
    return made


def vectors(width: int, dim: int, *, seed: int = 0) -> list[IntArray]:
    rng = np.random.default_rng(seed)
    low, high = -(2 ** (width - 1)), 2 ** (width - 1) - 1
    return [rng.integers(low, high, size=dim, endpoint=True, dtype=np.int64) for _ in range(4)]


# --- sums


def test_the_sum_of_all_is_exact_for_every_width() -> None:
    parties = agreed()
    for width in range(1, 65):
        given = vectors(width, 5, seed=width)
        sent = [one.mask(width, QUERY, v, width) for one, v in zip(parties, given, strict=True)]
        total = centred(added(sent).view(np.uint64), width)
        np.testing.assert_array_equal(total, centred(added(given).view(np.uint64), width))
        top = 2.0 ** (width - 1)
        assert all(-top <= one.min() <= one.max() < top for one in sent)


def test_everything_but_the_sum_of_all_is_uniform() -> None:
    """Equal inputs, four bits: every set of fewer vectors, and every difference of two, are uniform."""
    width, dim = 4, 40_000
    same = np.full(dim, 3, dtype=np.int64)
    sent = [one.mask(0, QUERY, same, width) for one in agreed()]
    seen = [added([sent[k] for k in few]) for size in (1, 2, 3) for few in combinations(range(4), size)]
    seen += [sent[i] - sent[j] for i, j in combinations(range(4), 2)]
    for one in seen:
        counts = np.bincount(one % 16, minlength=16)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM / len(seen)


def test_two_seen_vectors_of_one_step_are_independent() -> None:
    """Their pairs are uniform on all pairs, though their masks share a stream."""
    same = np.zeros(60_000, dtype=np.int64)
    sent = [one.mask(0, QUERY, same, 2) for one in agreed()]
    for one, other in combinations(sent, 2):
        counts = np.bincount(4 * (one % 4) + other % 4, minlength=16)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM / 6


@pytest.mark.parametrize("changed", ["query", "width", "dim", "step", "plan", "run"])
def test_parties_that_were_asked_different_things_have_no_mask_in_common(changed: str) -> None:
    """So their sum is uniform too, whatever the server has asked of whom."""
    dim, parties = 40_000, agreed()
    at: dict[str, Any] = {"step": 0, "query": QUERY, "width": 4, "dim": dim}
    if changed == "plan":
        parties[3] = agreed(plan=b"o" * 32)[3]
    elif changed == "run":
        parties[3] = agreed(run="other")[3]
    sent = []
    for k, one in enumerate(parties):
        now = dict(at)
        if k == 3 and changed in at:
            now[changed] = {"query": b"o" * 16, "width": 5, "dim": dim + 1, "step": 1}[changed]
        zero = np.zeros(now["dim"], dtype=np.int64)
        sent.append(one.mask(now["step"], now["query"], zero, now["width"])[:dim])
    counts = np.bincount(added(sent) % 16, minlength=16)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert (added(sent) % 16 != 0).any()


def test_keys_and_streams_are_those_of_the_standards() -> None:
    """HKDF-SHA256 (RFC 5869) of an X25519 secret (RFC 7748), and ChaCha20 (RFC 8439, section 2.4.2)."""
    mine, theirs = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    shared = shared_secret(mine.private_bytes_raw(), theirs.public_key().public_bytes_raw())
    assert shared == theirs.exchange(mine.public_key())
    expected = HKDF(algorithm=SHA256(), length=32, salt=None, info=framed("mask", b"c", 1, 2)).derive(shared)
    assert derived_key(shared, "mask", b"c", 1, 2) == expected
    assert expanded(extracted(shared), "mask", b"c", 1, 2) == expected
    assert derived_key(shared, "mask", b"c", 2, 1) != expected
    words = stream_words(bytes(32), 4, 32)
    assert words.astype("<u4").tobytes().hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    assert stream_words(bytes(32), 2, 33).astype("<u8").tobytes() == words.astype("<u4").tobytes()


# --- one vector a step


def test_a_step_is_masked_once() -> None:
    one, (first, second, *_) = agreed()[0], vectors(20, 5)
    sent = one.mask(0, QUERY, first, 20)
    np.testing.assert_array_equal(one.mask(0, QUERY, first, 20), sent)
    for args in ((0, QUERY, second, 20), (0, b"o" * 16, first, 20), (0, QUERY, first, 21)):
        with pytest.raises(RefusalError, match="masked with another vector, query or width"):
            one.mask(*args)
    one.mask(1, QUERY, second, 20)


@pytest.mark.parametrize(
    ("vector", "width"),
    [
        (np.array([8], dtype=np.int64), 4),
        (np.array([-9], dtype=np.int64), 4),
        (np.array([0], dtype=np.int32), 4),
        (np.array([0.0]), 4),
        (np.zeros((1, 1), dtype=np.int64), 4),
        (np.zeros(0, dtype=np.int64), 4),
        (np.zeros(1, dtype=np.int64), 0),
        (np.zeros(1, dtype=np.int64), 65),
        ([0], 4),
    ],
)
def test_vectors_of_another_form_are_refused(vector: Any, width: int) -> None:
    with pytest.raises(ParameterError):
        agreed()[0].mask(0, QUERY, vector, width)


# --- whose masks


def test_a_party_that_comes_back_has_the_same_masks_and_one_that_lost_them_has_none() -> None:
    kept = [MemorySecrets() for _ in range(4)]
    before = [masks(k, secrets=kept[k]) for k in range(4)]
    cards = [one.advertise() for one in before]
    for one in before:
        one.agree(cards)
    zero = np.zeros(8, dtype=np.int64)
    first = before[2].mask(0, QUERY, zero, 30)
    back = masks(2, secrets=kept[2])
    assert back.advertise() == cards[2]
    np.testing.assert_array_equal(back.mask(0, QUERY, zero, 30), first)
    back.agree(cards)
    before[2].wipe()
    for again in (back, masks(2, secrets=kept[2])):
        for use in (again.advertise, lambda one=again: one.mask(1, QUERY, zero, 30)):
            with pytest.raises(RefusalError, match="lost or was wiped"):
                use()
    forgot = MemorySecrets()
    forgot.keep("masks/cards", lambda: b"".join(cards))  # a backup without the key
    with pytest.raises(RefusalError, match="lost or was wiped"):
        masks(2, secrets=forgot).mask(1, QUERY, zero, 30)


def card_of(
    key: SigningKey, position: int, *, plan: bytes = PLAN, run: str = "run", public: bytes | None = None
) -> bytes:
    """A card that somebody with that key could sign."""
    public = X25519PrivateKey.generate().public_key().public_bytes_raw() if public is None else public
    claim = framed(MaskContext(ROSTER, plan, run).digest, position, public)
    return public + key.sign("sum-1", claim)


LOW_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
]
Spoil = Callable[[list[bytes]], Sequence[bytes]]
SPOILT: dict[str, tuple[Spoil, type[Exception], str]] = {
    "a stranger": (lambda c: [*c[:3], card_of(SigningKey.make(), 3)], AuthenticationError, "not signed"),
    "another plan": (
        lambda c: [*c[:3], card_of(KEYS[3], 3, plan=b"o" * 32)],
        AuthenticationError,
        "not signed",
    ),
    "another run": (lambda c: [*c[:3], card_of(KEYS[3], 3, run="o")], AuthenticationError, "not signed"),
    "another index": (lambda c: [*c[:3], card_of(KEYS[3], 2)], AuthenticationError, "not signed"),
    "two in turn": (lambda c: [c[0], c[2], c[1], c[3]], AuthenticationError, "not signed"),
    "one key twice": (
        lambda c: [*c[:3], card_of(KEYS[3], 3, public=c[2][:32])],
        RefusalError,
        "two parties have one key",
    ),
    "my own key": (lambda c: [card_of(KEYS[0], 0), *c[1:]], RefusalError, "own card was replaced"),
    "fewer": (lambda c: c[:3], RefusalError, "one card of 96 bytes"),
    "more": (lambda c: [*c, c[3]], RefusalError, "one card of 96 bytes"),
    "shorter": (lambda c: [*c[:3], c[3][:-1]], RefusalError, "one card of 96 bytes"),
    "a bit": (lambda c: [*c[:3], c[3][:-1] + bytes([c[3][-1] ^ 1])], AuthenticationError, "not signed"),
    "another writing of a point": (
        lambda c: [*c[:3], card_of(KEYS[3], 3, public=(2**255 - 19 + 9).to_bytes(32, "little"))],
        AuthenticationError,
        "below 2\\*\\*255 - 19",
    ),
}


def of_low_order(point: bytes) -> Spoil:
    return lambda cards: [*cards[:3], card_of(KEYS[3], 3, public=point)]


SPOILT |= {
    f"low order {k}": (of_low_order(point), AuthenticationError, "small order")
    for k, point in enumerate(LOW_ORDER)
}


@pytest.mark.parametrize("case", SPOILT)
def test_cards_that_are_not_those_of_the_roster_are_refused(case: str) -> None:
    spoil, error, message = SPOILT[case]
    made = [masks(k) for k in range(4)]
    cards = [one.advertise() for one in made]
    with pytest.raises(error, match=message):
        made[0].agree(spoil(list(cards)))
    with pytest.raises(RefusalError, match="have not agreed"):
        made[0].mask(0, QUERY, np.zeros(3, dtype=np.int64), 20)
    made[0].agree(cards)  # nothing of it was kept


def test_the_first_good_cards_decide_for_good() -> None:
    kept = MemorySecrets()
    one, others = masks(0, secrets=kept), [masks(k) for k in (1, 2, 3)]
    one.agree([one.advertise(), *(other.advertise() for other in others)])
    again = masks(3)
    cards = [one.advertise(), *(other.advertise() for other in others[:2]), again.advertise()]
    for party in (one, masks(0, secrets=kept)):
        with pytest.raises(RefusalError, match="agreed on other cards before"):
            party.agree(cards)


@pytest.mark.parametrize(
    ("stage", "data"),
    [("sign", b""), ("", b""), ("advertise", b"x"), ("agree", b""), ("agree", bytes(4 * CARD_BYTES - 1))],
)
def test_a_server_that_says_something_else_is_refused(stage: str, data: bytes) -> None:
    with pytest.raises(RefusalError):
        masks(0).respond(stage, data)


def test_a_key_that_is_in_no_roster_has_no_masks() -> None:
    with pytest.raises(RefusalError, match="not in the roster"):
        CompleteMasks(MaskContext(ROSTER, PLAN, "run"), SigningKey.make(), MemorySecrets())


@pytest.mark.parametrize(
    "change",
    [
        lambda n, k: (n[:1], k[:1]),
        lambda n, k: (n[:3], k),
        lambda n, k: ((*n[:3], n[0]), k),
        lambda n, k: (n, (*k[:3], k[0])),
        lambda n, k: (n, (*k[:3], bytes(32))),
        lambda n, k: (n, (*k[:3], k[3][:31])),
        lambda n, k: ("abcd", k),
    ],
)
def test_a_roster_names_different_parties_with_keys(change: Any) -> None:
    with pytest.raises(ParameterError):
        MaskingRoster(*change(ROSTER.names, ROSTER.keys))


def test_the_digest_of_a_roster_is_that_of_no_other() -> None:
    others = [
        MaskingRoster(ROSTER.names[::-1], ROSTER.keys),
        MaskingRoster(ROSTER.names, ROSTER.keys[::-1]),
        MaskingRoster(("ab", "b", "c", "d"), ROSTER.keys),
        MaskingRoster(ROSTER.names[:3], ROSTER.keys[:3]),
    ]
    assert len({one.digest for one in (ROSTER, *others)}) == 5


# --- the server


def test_the_server_opens_the_sum_of_all_or_nothing() -> None:
    parties = [masks(k) for k in range(4)]
    away, asked = {2}, []

    def exchange(stage: str, data: Any) -> dict[int, bytes]:
        asked.append((stage, sorted(data)))
        return {k: parties[k].respond(stage, body) for k, body in data.items() if k not in away}

    server = CompleteSums(4)
    assert not server.prepare(0, exchange)
    away.clear()
    assert server.prepare(0, exchange)
    done = len(asked)
    assert server.prepare(1, exchange)
    assert len(asked) == done  # once a run
    given = vectors(20, 5)
    answers = {k: one.mask(0, QUERY, v, 20) for k, (one, v) in enumerate(zip(parties, given, strict=True))}
    for k in range(4):
        assert server.open(0, QUERY, {j: v for j, v in answers.items() if j != k}, exchange) is None
    found = server.open(0, QUERY, answers, exchange)
    assert found is not None
    np.testing.assert_array_equal(
        centred(found[0].view(np.uint64), 20), centred(added(given).view(np.uint64), 20)
    )
    assert found[1] == (0, 1, 2, 3)
    with pytest.raises(ParameterError, match="party 3 must answer"):
        server.open(0, QUERY, {**answers, 3: answers[3][:4]}, exchange)


def test_a_server_that_starts_again_finds_the_same_masks() -> None:
    parties = [masks(k) for k in range(4)]

    def exchange(stage: str, data: Any) -> dict[int, bytes]:
        return {k: parties[k].respond(stage, body) for k, body in data.items()}

    for _ in range(2):
        assert CompleteSums(4).prepare(0, exchange)


# --- bytes from elsewhere


def test_no_two_sequences_of_fields_have_the_same_bytes() -> None:
    fields: list[Any] = ["", "a", "ab", b"", b"a", b"ab", 0, 1, 97, b"\0" * 8, "b"]
    some = [(), *((a,) for a in fields), *((a, b) for a in fields for b in fields)]
    some += [("a", "b", "c"), ("ab", "c"), ("a", "bc"), ("abc",), (b"b\0\0\0\0\0\0\0\0",), (b"", b"")]
    different = {tuple((type(part), part) for part in one) for one in some}
    assert len({framed(*one) for one in some}) == len(different)
    for wrong in (-1, 2**64, True, 0.5, None, ("a",)):
        with pytest.raises(ParameterError):
            framed(wrong)  # type: ignore[arg-type]


def test_cards_that_were_changed_anyhow_are_refused_in_words() -> None:
    """Bits, lengths, places and parts: nothing but a refusal comes of it, and nothing is kept."""
    rng, made = np.random.default_rng(0), [masks(k) for k in range(4)]
    cards = b"".join(one.advertise() for one in made)
    for _ in range(2000):
        data = bytearray(cards)
        match rng.integers(5):
            case 0:
                data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
            case 1:
                data = data[: rng.integers(len(data))]
            case 2:
                data += rng.bytes(int(rng.integers(1, 200)))
            case 3:
                at, length = int(rng.integers(len(data) - 64)), int(rng.integers(1, 64))
                data[at : at + length] = rng.bytes(length)
            case _:
                one, other = (96 * int(k) for k in rng.permutation(4)[:2])
                data[one : one + 96] = data[other : other + 96]
        if data == cards:  # a random byte may be the one that it replaces
            continue
        with pytest.raises((RefusalError, AuthenticationError)):
            made[0].respond("agree", bytes(data))
    made[0].respond("agree", cards)


def test_no_seed_makes_the_same_keys_again() -> None:
    """Whatever a simulation has seeded, keys for masks are the operating system's."""
    cards = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        cards.append([masks(k).advertise() for k in range(4)])
    assert len({card[:32] for made in cards for card in made}) == 8
