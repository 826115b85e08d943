"""How many must sign: enumerated, and through the code with the guard on and off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation.masking.quorum import Quorum
from tests.federation.masking.knowledge import StepKnowledge, shares_of
from tests.federation.masking.recovery_world import DIGEST, Disk, Unguarded, World, own_keys


def subsets(parties: frozenset[int], fewest: int) -> Iterator[frozenset[int]]:
    for size in range(fewest, len(parties) + 1):
        yield from map(frozenset, combinations(sorted(parties), size))


def two_sets_can_be_signed(parties: int, colluding: int, least: int) -> bool:
    """Whether two sets can each collect enough signatures, if honest parties sign one and colluders both."""
    everybody, liars = frozenset(range(parties)), frozenset(range(colluding))
    for a, b in combinations(subsets(everybody, least), 2):
        wanted = [
            max(0, least - len(one & liars) - len((one - other) - liars)) for one, other in ((a, b), (b, a))
        ]
        if sum(wanted) <= len((a & b) - liars):
            return True
    return False


def test_two_sets_can_be_opened_exactly_below_the_quorum() -> None:
    """All 75 cases of 3 to 7 parties."""
    cases = [(n, c, t) for n in range(3, 8) for c in range(n - 1) for t in range(c + 1, n + 1)]
    assert len(cases) == 75
    for n, c, t in cases:
        assert two_sets_can_be_signed(n, c, t) == (2 * t <= n + c), (n, c, t)
        if 2 * t > n + c and t >= c + 2:
            Quorum(n, t, c)
        else:
            with pytest.raises(RefusalError, match="least number of parties"):
                Quorum(n, t, c)


def test_more_parties_than_are_specified_are_refused() -> None:
    Quorum(200, 101, 0)
    with pytest.raises(RefusalError, match="at most 200 parties, got 201"):
        Quorum(201, 201, 0)
    with pytest.raises(RefusalError, match=r"in \[3, 4\] .* got 5"):
        Quorum(4, 5, 0)
    with pytest.raises(ParameterError):
        Quorum(4, 3, -1)
    with pytest.raises(ParameterError):
        Quorum(1, 1, 0)


def opened_sets(world: World) -> Iterator[tuple[StepKnowledge, frozenset[int]]]:
    """Every way in which a server can have one set of a step opened, with all vectors before it.

    It tells each party who has sent shares, as it likes. What a party says depends only on what it was told,
    so that each is asked once for each of that; the code of the parties decides what it says.
    """
    n, least, everybody = world.parties, world.quorum.least, frozenset(range(world.parties))
    cards = world.cards()
    sent = {k: masks.share(0, cards) for k, masks in enumerate(world.masks)}
    dealt = {}
    for k in range(n):
        dealt.update(shares_of(k, 0, own_keys(world, k).dealt(world.quorum)))
    before = [dict(disk.kept) for disk in world.disks]
    views = [[view for view in subsets(everybody, least) if k in view] for k in range(n)]
    signatures: dict[tuple[int, frozenset[int], frozenset[int]], bytes] = {}
    after: dict[tuple[int, frozenset[int], frozenset[int]], dict[str, bytes]] = {}
    for k in range(n):
        for view in views[k]:
            world.disks[k] = Disk(before[k])
            world.restart(k)
            world.masks[k].agree(0, {j: sent[j][k] for j in view if j != k})
            world.masks[k].mask(0, DIGEST, np.zeros(2, dtype=np.int64), world.width)
            masked = dict(world.disks[k].kept)
            for summed in subsets(view, least):
                if k in summed:
                    world.disks[k] = Disk(masked)
                    world.restart(k)
                    signatures[k, view, summed] = world.masks[k].sign(0, sorted(summed))
                    after[k, view, summed] = dict(world.disks[k].kept)
    revealed: dict[tuple[frozenset[int], frozenset[int], frozenset[int]], list[bytes]] = {}
    for chosen in product(*views):
        vectors = {(k, DIGEST, 0): tuple(view) for k, view in enumerate(chosen)}
        for view in set(chosen):
            for summed in subsets(view, least):
                signers = frozenset(k for k in summed if chosen[k] == view)
                if len(signers) < least:
                    continue
                if (view, summed, signers) not in revealed:
                    proof = {k: signatures[k, view, summed] for k in sorted(signers)}
                    replies = revealed[view, summed, signers] = []
                    for k in signers:
                        world.disks[k] = Disk(after[k, view, summed])
                        world.restart(k)
                        replies.append(b"".join(world.masks[k].reveal(0, proof).values()))
                knows = StepKnowledge(everybody, least, dealt, vectors=dict(vectors))
                for reply in revealed[view, summed, signers]:
                    knows.see_shares(reply)
                yield knows, summed


def test_below_the_quorum_one_signed_set_isolates_a_party() -> None:
    """Four parties, no colluder, two signatures: of 2,481 opened sets, 90 show another sum, 84 one vector."""
    world = World(4, 2, quorum=Unguarded(4, 2, 0))
    opened = other_sum = alone = 0
    for knows, summed in opened_sets(world):
        opened += 1
        sums = knows.sums()
        assert len(sums) <= 1
        for found in sums:
            other_sum += set(found) != summed
            alone += len(found) == 1
    assert (opened, other_sum, alone) == (2481, 90, 84)


def test_with_the_quorum_a_signed_set_shows_its_sum_or_nothing() -> None:
    """The same server against three signatures: of 45 opened sets, 33 show their sum and 12 nothing."""
    opened = sums_seen = 0
    for knows, summed in opened_sets(World(4, 3)):
        opened += 1
        assert not knows.faults(3)
        for found in knows.sums():
            sums_seen += 1
            assert set(found) == summed
    assert (opened, sums_seen) == (45, 33)
