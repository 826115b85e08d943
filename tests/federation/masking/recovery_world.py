"""Parties of recoverable masks on disks that can be killed, and a server that asks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError, TacitError
from tacit.federation.masking.blocks import MaskBlock, PartyKeys
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.exchanges import number_to_bytes, parties_to_bytes, table_to_bytes
from tacit.federation.masking.opening import RecoverableSums
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.recoverable import RecoverableMasks, root_name
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.network.keys import SigningKey
from tacit.ledger import WipedSecretError
from tacit.numerics import IntArray

DIGEST = b"the query"


class KilledError(Exception):
    """The process died here."""


class Disk:
    """What is left of a party when its process dies; `fuse` counts writes until it does.

    A process dies before the write (0.0), or after it and before anybody hears of it (0.5).
    """

    def __init__(self, kept: Mapping[str, bytes] | None = None) -> None:
        self.kept: dict[str, bytes] = dict(kept or {})
        self.wiped: list[str] = []
        self.ever = dict(self.kept)
        self.fuse = float("inf")

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        if name.startswith(tuple(self.wiped)):
            raise WipedSecretError(f"the secret {name!r} was wiped.")
        if name not in self.kept:
            value = make()
            if self.fuse == 0.0:
                raise KilledError
            assert self.ever.setdefault(name, value) == value, f"{name} was made twice"
            self.kept[name] = value
            if self.fuse == 0.5:
                raise KilledError
            self.fuse -= 1
        return self.kept[name]

    def find(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def restart(self) -> None:
        """A process begins."""
        self.fuse = float("inf")

    def wipe(self, prefix: str = "") -> None:
        self.wiped.append(prefix)
        self.kept = {name: value for name, value in self.kept.items() if not name.startswith(prefix)}


@cache
def signing_keys(count: int) -> tuple[SigningKey, ...]:
    return tuple(SigningKey.make() for _ in range(count))


def context_of(count: int, *, run: str = "run", plan: bytes = b"plan") -> MaskContext:
    keys = signing_keys(count)
    names = tuple(f"silo-{k}" for k in range(count))
    return MaskContext(MaskingRoster(names, tuple(key.public.raw for key in keys)), plan, run)


class Unguarded(Quorum):
    """A quorum that nobody checks."""

    def __post_init__(self) -> None:
        pass


class World:
    """All parties of a run, each on its own disk."""

    def __init__(
        self,
        parties: int,
        least: int,
        colluding: int = 0,
        *,
        block: int = 1,
        rounds: int = 4,
        width: int = 16,
        run: str = "run",
        plan: bytes = b"plan",
        quorum: Quorum | None = None,
    ) -> None:
        self.parties, self.width, self.block, self.rounds = parties, width, block, rounds
        self.context = context_of(parties, run=run, plan=plan)
        self.quorum = quorum or Quorum(parties, least, colluding)
        self.disks = [Disk() for _ in range(parties)]
        self.masks = [self.started(k) for k in range(parties)]
        self.server = self.new_server()

    def started(self, party: int) -> RecoverableMasks:
        """A process of a party, on its disk."""
        return RecoverableMasks(
            self.context,
            signing_keys(self.parties)[party],
            self.disks[party],
            quorum=self.quorum,
            rounds=self.rounds,
            block=self.block,
        )

    def restart(self, party: int) -> None:
        self.disks[party].restart()
        self.masks[party] = self.started(party)

    def new_server(self, kept: Disk | None = None) -> RecoverableSums:
        return RecoverableSums(
            self.context,
            quorum=self.quorum,
            rounds=self.rounds,
            width=lambda step: self.width,
            block=self.block,
            kept=kept,
        )

    def exchange(self, alive: Callable[[str, int], bool] = lambda stage, party: True) -> Exchanged:
        return Exchanged(self, alive)

    def cards(self, number: int = 0) -> dict[int, bytes]:
        return {k: masks.advertise(number) for k, masks in enumerate(self.masks)}

    def set_up(self, number: int = 0) -> None:
        """All parties of a block, honestly."""
        cards = self.cards(number)
        boxes = {k: masks.share(number, cards) for k, masks in enumerate(self.masks)}
        for k, masks in enumerate(self.masks):
            masks.agree(number, {j: sent[k] for j, sent in boxes.items() if j != k})

    def vectors(self, dim: int, seed: int = 0) -> list[IntArray]:
        half = 2 ** (self.width - 1)
        rng = np.random.default_rng(seed)
        return [rng.integers(-half, half, dim, dtype=np.int64) for _ in range(self.parties)]

    def same(self, a: IntArray, b: IntArray) -> bool:
        """Whether two sums are equal modulo 2**width."""
        spare = np.uint64(64 - self.width)
        return bool(np.array_equal(a.view(np.uint64) << spare, b.view(np.uint64) << spare))


def block_of(world: World, number: int = 0) -> MaskBlock:
    first = number * world.block
    return MaskBlock(world.context, number, first, min(world.block, world.rounds - first))


def own_keys(world: World, party: int, number: int = 0) -> PartyKeys:
    """What a party has drawn, off its disk."""
    return PartyKeys(world.disks[party].ever[root_name(number)], block_of(world, number), party)


class Exchanged:
    """Carries what the server says to those who are there, and counts what it carried."""

    def __init__(self, world: World, alive: Callable[[str, int], bool]) -> None:
        self._world, self._alive = world, alive
        self.carried: list[tuple[str, int, bytes, bytes]] = []
        self.refused: list[tuple[str, int, TacitError]] = []

    def __call__(self, stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
        replies: dict[int, bytes] = {}
        for party, data in requests.items():
            if not self._alive(stage, party):
                continue
            try:
                replies[party] = self._world.masks[party].respond(stage, data)
            except TacitError as error:
                self.refused.append((stage, party, error))
                continue
            self.carried.append((stage, party, data, replies[party]))
        return replies


def total(vectors: list[IntArray]) -> IntArray:
    """The sum modulo 2**64."""
    return np.asarray(np.array(vectors).view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.int64))


def sign_request(step: int, summed: list[int]) -> bytes:
    return number_to_bytes(step) + parties_to_bytes(summed)


def about(number: int, entries: Mapping[int, bytes]) -> bytes:
    return number_to_bytes(number) + table_to_bytes(entries)


def refuses(
    match: str, work: Callable[..., object], *args: object, kind: type[TacitError] = RefusalError
) -> None:
    with pytest.raises(kind, match=match):
        work(*args)


def signed_world(**facts: Any) -> tuple[World, dict[int, bytes]]:
    """Four parties that have masked step 0 and signed all of them."""
    world = World(4, 3, **facts)
    world.set_up()
    for k, vector in enumerate(world.vectors(3)):
        world.masks[k].mask(0, DIGEST, vector, world.width)
    return world, {k: masks.sign(0, (0, 1, 2, 3)) for k, masks in enumerate(world.masks)}
