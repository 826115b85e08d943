"""Random schedules of a malicious server over all-or-nothing masks: one sum of all honest parties, or none.

What follows from the bytes that left is computed by linear algebra, and not by the code under test. The same
schedules find a fault as soon as one part of the protocol is taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.federation.masking.agreement import derived_key, public_of, shared_secret
from tacit.federation.masking.complete import CARD_BYTES, CompleteMasks
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.fields import framed, hashed
from tacit.federation.network.keys import Purpose, SigningKey, VerifyKey
from tacit.numerics import IntArray
from tests.federation.masking.algebra import learned, stream_by_hand
from tests.federation.masking.recovery_world import Disk, KilledError, context_of, signing_keys

QUERIES, STEPS, DIM, WIDTH = (b"query", b"other"), 2, 2, 20
SIZES = ((3, 0), (3, 1), (4, 0), (4, 1), (5, 2))
"""Parties, colluders."""


@pytest.fixture(autouse=True)
def _verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature that is good stays good: schedules show the same ones to every party."""
    verify = VerifyKey.verify

    @cache
    def good(key: VerifyKey, purpose: Purpose, data: bytes, signature: bytes) -> None:
        verify(key, purpose, data, signature)

    monkeypatch.setattr(VerifyKey, "verify", good)


class World:
    """Silos that store their answers beside their keys, before they leave; a server with colluders."""

    def __init__(
        self,
        rng: np.random.Generator,
        parties: int,
        colluding: int,
        *,
        keeps_answers: bool,
    ) -> None:
        self.rng, self.context, self.keys = rng, context_of(parties), signing_keys(parties)
        self.keeps_answers = keeps_answers
        self.colluders = [int(k) for k in rng.permutation(parties)[:colluding]]
        self.honest = [k for k in range(parties) if k not in self.colluders]
        self.disks = {k: Disk() for k in self.honest}
        self.masks: dict[int, CompleteMasks] = {}
        self.private: dict[bytes, int] = {}
        """Keys for masks that colluders have, and whose they are."""
        self.cards: dict[int, list[bytes]] = {k: [] for k in range(parties)}
        self.seen: set[tuple[int, int, bytes, bytes]] = set()
        self.own: dict[tuple[int, int], list[IntArray]] = {}
        for k in self.colluders:
            for _ in range(2):  # a second one, to show to some
                private = rng.bytes(32)
                self.private[private] = k
                self.cards[k].append(self._card(self.keys[k], k, private, self.context))
        for k in self.honest:
            self.start(k)

    @staticmethod
    def _card(key: SigningKey, place: int, private: bytes, context: MaskContext) -> bytes:
        public = public_of(private)
        return public + key.sign("sum-1", framed(context.digest, place, public))

    def start(self, party: int) -> None:
        self.disks[party].restart()
        self.masks[party] = CompleteMasks(self.context, self.keys[party], self.disks[party])

    def play(self) -> None:
        """Set up, answer, and whatever else, in any order; silos die at any write and come back."""
        parties = len(self.keys)
        for turn in range(4):
            for party in self.rng.permutation(self.honest):
                if self.rng.random() < 0.15:
                    self.disks[party].fuse = float(self.rng.integers(0, 5)) / 2
                if self.rng.random() < 0.2:
                    self.start(int(party))
                if turn == 0 or self.rng.random() < 0.2:
                    self._doing(int(party), partial(self._advertise, int(party)))
                if turn == 1 or self.rng.random() < 0.2:
                    self._doing(int(party), partial(self._agree, int(party), parties))
                if turn >= 2 or self.rng.random() < 0.2:
                    for step in range(STEPS):
                        for _ in range(int(self.rng.integers(1, 4))):
                            self._doing(int(party), partial(self._answer, int(party), step))
                            if self.rng.random() < 0.3:
                                self.start(int(party))

    def _doing(self, party: int, work: Callable[[], None]) -> None:
        try:
            work()
        except TacitError:
            pass
        except KilledError:
            self.start(party)

    def _advertise(self, party: int) -> None:
        card = self.masks[party].respond("advertise", b"")
        if card not in self.cards[party]:
            self.cards[party].append(card)

    def _agree(self, party: int, parties: int) -> None:
        """With cards as they should be, or the second one of a colluder, or those of others or of nobody."""
        chosen = [
            known[int(self.rng.integers(len(known)))] if known else bytes(CARD_BYTES)
            for known in self.cards.values()
        ]
        if self.rng.random() < 0.15:
            chosen[int(self.rng.integers(parties))] = chosen[int(self.rng.integers(parties))]
        self.masks[party].respond("agree", b"".join(chosen))

    def _answer(self, party: int, step: int) -> None:
        query = QUERIES[int(self.rng.random() < 0.15)]
        disk, name = self.disks[party], f"answer/{step}"
        stored = disk.find(name) if self.keeps_answers else None
        if stored is None:
            vector = self.rng.integers(-(2**19), 2**19, DIM, dtype=np.int64)
            self.own.setdefault((party, step), []).append(vector)
            said = query + b"\0" + self.masks[party].mask(step, query, vector, WIDTH).tobytes()
            stored = disk.keep(name, lambda: said) if self.keeps_answers else said
        asked, _, answer = stored.partition(b"\0")
        if asked == query:
            self.seen.add((party, step, query, answer))

    def faults(self) -> list[str]:
        """Return what is known that should not be."""
        faults, opened = [], set[int]()
        for one in self.known():
            steps = {name[1] for name in one}  # type: ignore[index]
            silos = sorted(name[0] for name in one)  # type: ignore[index]
            queries = {name[2] for name in one}  # type: ignore[index]
            if silos != self.honest or len(set(one.values())) > 1 or len(steps | queries) > 2:
                faults.append(f"parties {silos} of steps {steps} for {queries}")
            if steps & opened:
                faults.append(f"a second sum of steps {steps}")
            opened |= steps
        return faults

    def known(self) -> list[dict[object, int]]:
        """Return the sums of vectors that the server and its colluders can compute."""
        equations = [self._equation(*one) for one in sorted(self.seen)]
        rows, known = [row for row, _ in equations], set[object]().union(*(one for _, one in equations))
        return learned(rows, known, {name for row in rows for name in row if isinstance(name, tuple)})

    def _equation(
        self, party: int, step: int, query: bytes, answer: bytes
    ) -> tuple[dict[object, int], set[object]]:
        """Return which unknowns are in a seen vector, by computing it anew; and what is known of them."""
        disk, cards = self.disks[party], self.disks[party].ever["masks/cards"]
        publics = [cards[k : k + 32] for k in range(0, len(cards), CARD_BYTES)]
        about = self.context.step(step, query, WIDTH, DIM)
        seen = np.frombuffer(answer, dtype=np.int64).view(np.uint64)
        row: dict[object, int] = {}
        known, mask = set[object](), np.zeros(DIM, dtype=np.uint64)
        for other, public in enumerate(publics):
            if other == party:
                continue
            shared = shared_secret(disk.ever["masks/key"], public)
            key = derived_key(shared, "mask", about, *sorted((party, other)))
            row[key] = 1 if other > party else -1
            stream = stream_by_hand(key, DIM, WIDTH)
            mask = mask + stream if other > party else mask - stream
            if other in self.colluders:
                known.add(key)
        versions = [
            not np.any((seen - mask - one.view(np.uint64)) % np.uint64(2**WIDTH))
            for one in self.own[party, step]
        ]
        assert sum(versions) == 1
        row[party, step, query, versions.index(True)] = 1
        return row, known


def played(seed: int, sizes: tuple[int, int], *, keeps_answers: bool = True) -> World:
    world = World(np.random.default_rng(seed), *sizes, keeps_answers=keeps_answers)
    world.play()
    return world


@pytest.mark.parametrize("sizes", SIZES)
def test_no_schedule_shows_more_than_one_sum_of_all(sizes: tuple[int, int]) -> None:
    opened = 0
    for seed in range(100):
        world = played(seed, sizes)
        assert world.faults() == [], seed
        opened += len(world.known())
    assert opened > 10  # schedules that show nothing would prove nothing


def test_the_same_schedules_find_answers_that_are_computed_twice() -> None:
    assert any(played(seed, (3, 0), keeps_answers=False).faults() for seed in range(20))


def test_the_same_schedules_find_masks_that_forget_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(self: MaskContext, step: int, query_digest: bytes, width: int, dim: int) -> bytes:
        return hashed("step", self.digest, step, width, dim)

    monkeypatch.setattr(MaskContext, "step", step)
    assert any(played(seed, (3, 0)).faults() for seed in range(60))
