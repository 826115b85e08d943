"""Random schedules of a malicious server: at most one honest sum of enough parties follows from what left.

What follows is computed from the bytes that left, by linear algebra, and not by the code under test. The same
schedules find a fault as soon as one part of the protocol is taken away.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tacit.federation.masking.quorum import Quorum
from tacit.federation.network.keys import Purpose, VerifyKey
from tests.federation.masking.adversary import Adversary
from tests.federation.masking.recovery_world import Disk, Unguarded, World

PARTIES = ((3, 2, 0), (4, 3, 0), (4, 3, 1), (5, 3, 0), (5, 4, 2), (6, 4, 1))
"""Roster, quorum, colluders: the least quorum that is allowed."""


@pytest.fixture(autouse=True)
def _verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature that is good stays good: schedules show the same ones to every party."""
    verify = VerifyKey.verify

    @cache
    def good(key: VerifyKey, purpose: Purpose, data: bytes, signature: bytes) -> None:
        verify(key, purpose, data, signature)

    monkeypatch.setattr(VerifyKey, "verify", good)


def played(
    seed: int, sizes: tuple[int, int, int], quorum: Quorum | None = None, disk: type[Disk] = Disk
) -> Adversary:
    """One schedule of two steps, in one block or in two."""
    rng = np.random.default_rng(seed)
    parties, least, colluding = sizes
    world = World(parties, least, colluding, block=1 + seed % 2, rounds=2, quorum=quorum)
    world.disks = [disk() for _ in range(parties)]
    for party in range(parties):
        world.restart(party)
    colluders = frozenset(int(k) for k in rng.permutation(parties)[:colluding])
    adversary = Adversary(world, colluders, rng)
    adversary.play()
    return adversary


def faults_of(adversary: Adversary) -> list[str]:
    quorum = adversary.world.quorum
    fewest = max(quorum.least - quorum.colluding, 2)
    return [fault for step in adversary.steps for fault in adversary.knows(step).faults(fewest)]


class Forgetful(Disk):
    """A disk to which what a party signs and reveals comes too late: who dies in between signs again."""

    def restart(self) -> None:
        super().restart()
        late = ("masks/set/", "masks/shares/")
        self.kept = {name: value for name, value in self.kept.items() if not name.startswith(late)}
        self.ever = {name: value for name, value in self.ever.items() if not name.startswith(late)}


class Careless(Disk):
    """A disk without the answers: what was masked is masked again, with new noise, under the same masks."""

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        return make() if name.startswith("answer/") else super().keep(name, make)


def faults_in(
    sizes: tuple[int, int, int], seeds: range | tuple[int, ...], **facts: Any
) -> tuple[list[str], int]:
    """Faults of several schedules, and how many sums were opened in them."""
    faults, opened = [], 0
    for seed in seeds:
        adversary = played(seed, sizes, **facts)
        faults += [f"schedule {seed} of {sizes}: {fault}" for fault in faults_of(adversary)]
        opened += sum(bool(adversary.knows(step).sums()) for step in adversary.steps)
    return faults, opened


@pytest.mark.parametrize("sizes", PARTIES)
def test_no_schedule_shows_more_than_one_sum(sizes: tuple[int, int, int]) -> None:
    """`TACIT_SCHEDULES=500` tries more of them."""
    schedules = int(os.environ.get("TACIT_SCHEDULES", "15"))
    faults, opened = faults_in(sizes, range(1000, 1000 + schedules))
    assert not faults
    assert opened >= schedules // 10  # a server that opens nothing would test nothing


@pytest.mark.parametrize(
    ("sizes", "seeds", "facts"),
    [
        pytest.param((4, 2, 0), (8, 16, 20), {"quorum": Unguarded(4, 2, 0)}, id="quorum-of-half"),
        pytest.param(
            (5, 3, 1), (2, 60, 62), {"quorum": Unguarded(5, 3, 1)}, id="quorum-too-small-for-a-colluder"
        ),
        pytest.param((4, 3, 1), (44, 58), {"disk": Forgetful}, id="signed-and-not-stored-first"),
        pytest.param((4, 3, 0), (0, 3, 5), {"disk": Careless}, id="answers-not-stored"),
    ],
)
def test_the_same_schedules_find_what_is_missing(
    sizes: tuple[int, int, int], seeds: tuple[int, ...], facts: dict[str, Any]
) -> None:
    """Negative controls: with one part of the protocol gone, the algebra finds single vectors."""
    assert any("only" in fault for fault in faults_in(sizes, seeds, **facts)[0])
