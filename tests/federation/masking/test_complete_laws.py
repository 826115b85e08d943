"""The exact law of what all-or-nothing masks show: every value of every mask, through the real code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tacit.federation.masking import streams
from tacit.federation.masking.complete import CompleteMasks
from tacit.federation.masking.streams import Words
from tacit.federation.store import MemorySecrets
from tests.federation.masking.recovery_world import context_of, signing_keys

PARTIES, PAIRS = 4, 6


class Uniform:
    """In place of streams: coordinate k of a vector has the k-th of all values that all masks can have.

    Masks that a colluder knows are twos.
    """

    def __init__(self, modulus: int) -> None:
        self.modulus, self.known, self.places = modulus, set[bytes](), dict[bytes, int]()
        self.by_colluder = False

    def __call__(self, key: bytes, dim: int, width: int) -> Words:
        if self.by_colluder:
            self.known.add(key)
        kind = np.uint32 if width <= 32 else np.uint64
        if key in self.known:
            return np.full(dim, 2, dtype=kind)
        place = self.places.setdefault(key, len(self.places))
        digits: Words = (np.arange(dim) // self.modulus**place % self.modulus).astype(kind)
        return digits


def law(
    monkeypatch: pytest.MonkeyPatch,
    modulus: int,
    digests: Sequence[bytes],
    said: Sequence[int],
    *,
    colluder: int,
    seen: int,
) -> Counter[tuple[int, ...]]:
    """How often honest parties are seen to send what, over all values of their masks.

    Args:
        monkeypatch: Puts uniform numbers in the place of streams.
        modulus: Of the sum; no power of two is taken by 64 bits, which no sum here fills.
        digests: What each of the three honest parties was asked.
        said: What each says, of one coordinate.
        colluder: The place of the fourth party.
        seen: How many of the three have answered.
    """
    uniform = Uniform(modulus)
    monkeypatch.setattr(streams, "stream_words", uniform)
    context, keys = context_of(PARTIES), signing_keys(PARTIES)
    parties = [CompleteMasks(context, key, MemorySecrets()) for key in keys]
    cards = [party.advertise() for party in parties]
    for party in parties:
        party.agree(cards)
    dim, width = modulus**PAIRS, {2: 1, 4: 2}.get(modulus, 64)
    uniform.by_colluder = True
    for k, digest in enumerate(set(digests)):
        again = CompleteMasks(context, keys[colluder], parties[colluder]._secrets)
        again.mask(0, digest, np.zeros(dim, dtype=np.int64), width)
        assert len(uniform.known) == (PARTIES - 1) * (k + 1)
    uniform.by_colluder = False
    honest = [party for k, party in enumerate(parties) if k != colluder][:seen]
    half = modulus // 2 if width < 64 else 0
    vectors = [np.full(dim, (y + half) % modulus - half, dtype=np.int64) for y in said]
    sent = [
        party.mask(0, digest, vector, width) + _of_colluder(party.position, colluder)
        for party, digest, vector in zip(honest, digests, vectors, strict=False)
    ]
    return Counter(zip(*((one % modulus).tolist() for one in sent), strict=True))


def _of_colluder(place: int, colluder: int) -> int:
    """Take off the mask that the colluder knows: a party adds those of later places, subtracts others."""
    return -2 if colluder > place else 2


def by_sum(found: Counter[tuple[int, ...]], modulus: int) -> set[int]:
    return {sum(one) % modulus for one in found}


SAID = ((0, 1, 1), (1, 1, 0), (0, 0, 0))


@pytest.mark.parametrize("colluder", range(PARTIES))
@pytest.mark.parametrize("modulus", [2, 3, 4])
def test_the_sum_of_all_is_all_that_three_parties_show(
    monkeypatch: pytest.MonkeyPatch, modulus: int, colluder: int
) -> None:
    """With three values a mask: 9 of 27 outcomes, equally likely, which are those with the right sum."""
    found = [law(monkeypatch, modulus, [b"q"] * 3, y, colluder=colluder, seen=3) for y in SAID]
    for y, one in zip(SAID, found, strict=True):
        assert len(one) == modulus**2
        assert len(set(one.values())) == 1
        assert by_sum(one, modulus) == {sum(y) % modulus}
    assert found[0] == found[1]  # whoever said what


@pytest.mark.parametrize("modulus", [2, 3, 4])
@pytest.mark.parametrize(
    ("digests", "seen"),
    [
        ((b"q", b"q", b"q"), 2),
        ((b"q", b"q", b"q"), 1),
        ((b"q", b"q", b"o"), 3),
        ((b"q", b"o", b"q"), 3),
        ((b"q", b"o", b"p"), 3),
        ((b"q", b"q", b"o"), 2),
    ],
)
def test_anything_else_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, modulus: int, digests: tuple[bytes, ...], seen: int
) -> None:
    """With three values a mask: all 9 outcomes of two parties, and all 27 of three, equally likely."""
    for y in SAID:
        found = law(monkeypatch, modulus, digests, y, colluder=1, seen=seen)
        assert len(found) == modulus**seen
        assert len(set(found.values())) == 1
