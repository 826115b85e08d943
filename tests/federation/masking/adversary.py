"""A server that says anything to anybody, its colluders, and what they know afterwards.

A party's answers are stored as a silo stores them: beside its secrets, before they leave; an answer that died
unstored is computed afresh, with new noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.errors import TacitError
from tacit.federation.masking.agreement import derived_key, public_of, shared_secret
from tacit.federation.masking.blocks import KeyCard, MaskBlock, MaskBlocks, PartyKeys
from tacit.federation.masking.boxes import BOX_OVERHEAD, seal_box
from tacit.federation.masking.exchanges import FieldReader
from tacit.federation.masking.recoverable import root_name, set_claim
from tacit.numerics import IntArray
from tests.federation.masking.algebra import stream_by_hand
from tests.federation.masking.knowledge import StepKnowledge, shares_of
from tests.federation.masking.recovery_world import KilledError, World, about, sign_request, signing_keys

DIM = 2
QUERIES = (b"the query", b"another query")
STAGES = ("advertise", "share", "agree", "answer", "sign", "reveal")


class Adversary:
    """Leads the honest parties of a world wherever it likes.

    Args:
        world: All parties; those of the colluders are not asked.
        colluders: Who work with the server.
        rng: What it tries next.
    """

    def __init__(self, world: World, colluders: frozenset[int], rng: np.random.Generator) -> None:
        self.world, self.colluders, self.rng = world, colluders, rng
        self.honest = sorted(frozenset(range(world.parties)) - colluders)
        self.blocks = MaskBlocks(world.context, world.rounds, world.block)
        self.steps = range(world.rounds)
        self.requests: list[tuple[str, int, bytes]] = []
        self.cards: dict[tuple[int, int], list[bytes]] = {}
        self.boxes: dict[tuple[int, int, int], bytes] = {}
        self.colluding: dict[tuple[int, int], PartyKeys] = {}
        self.signed: dict[tuple[int, int], list[tuple[tuple[int, ...], bytes]]] = {}
        self.seen: dict[tuple[int, int], set[tuple[bytes, bytes]]] = {}
        self.own: dict[tuple[int, int], list[IntArray]] = {}
        self.revealed: dict[int, list[bytes]] = {step: [] for step in self.steps}
        # One that lies at random opens nothing: it has two set-ups and two sums in mind, and who hears what.
        everybody = tuple(range(world.parties))
        self.views = [everybody, self._some(everybody)]
        self.sums = [self._some(everybody), self._some(self.views[1])]
        self.split = bool(rng.random() < 0.7)
        self.hears = [(int(rng.random() < 0.4), int(rng.random() < 0.5)) for _ in everybody]
        self.steady = float(rng.choice([0.8, 0.97, 1.0]))
        self.mortal, self.restarts = float(rng.choice([0.0, 0.04])), float(rng.choice([0.0, 0.3]))
        for number in range(self.blocks.of_step(world.rounds - 1).number + 1):
            for party in colluders:
                keys = [PartyKeys(rng.bytes(32), self.blocks.block(number), party) for _ in range(2)]
                signing = signing_keys(world.parties)[party]
                self.colluding[number, party] = keys[0]
                self.cards[number, party] = [KeyCard.signed(one, signing).to_bytes() for one in keys]

    def play(self) -> None:
        """One schedule: stage by stage, but for what it tries out of turn; parties die and come back."""
        for number in range(self.blocks.of_step(self.steps[-1]).number + 1):
            for turn, stage in enumerate((*STAGES, *STAGES[-2:])):
                block = self.blocks.block(number)
                if turn == len(STAGES):  # whom it has not convinced of one sum, it tells the other
                    self.hears = [(view, int(self.rng.random() < 0.5)) for view, _ in self.hears]
                for party in self.rng.permutation(self.honest):
                    for step in range(block.first, block.first + block.steps):
                        if self.rng.random() < self.mortal:
                            self.world.disks[party].fuse = float(self.rng.integers(0, 7)) / 2
                        if self.rng.random() < 0.08:
                            self.anything()
                        for again in range(2 if self.rng.random() < 0.4 else 1):
                            if again and self.rng.random() < self.restarts:
                                self.world.restart(party)
                            self.act(stage, int(party), step)

    def anything(self) -> None:
        """Some stage out of turn, or a request that was made before, or a party that starts again."""
        party, stage = int(self.rng.choice(self.honest)), str(self.rng.choice([*STAGES, "replay", "restart"]))
        if stage == "restart":
            self.world.restart(party)
        elif stage == "replay" and self.requests:
            asked, _, data = self.requests[self.rng.integers(len(self.requests))]
            self._respond(asked, party, data)
        elif stage in STAGES:
            self.act(stage, party, int(self.rng.choice(self.steps)))

    def act(self, stage: str, party: int, step: int) -> None:
        """Ask a party for one thing, in one way."""
        getattr(self, stage)(party, step)

    def advertise(self, party: int, step: int) -> None:
        number = self.blocks.of_step(step).number
        card = self._respond("advertise", party, number.to_bytes(8))
        if card is not None:
            known = self.cards.setdefault((number, party), [])
            known.extend([card] if card not in known else [])

    def share(self, party: int, step: int) -> None:
        number, cards = self.blocks.of_step(step).number, {}
        for other in range(self.world.parties) if self.rng.random() < 0.9 else self._view(party):
            known = self.cards.get((number, other), [])
            if known:
                # Sometimes the second card of a colluder, or a card of another block.
                late = len(known) > 1 and self.rng.random() < 0.1
                cards[other] = known[-1 if late else 0]
                elsewhere = self.cards.get((1 - number, other))
                if elsewhere and self.rng.random() < 0.02:
                    cards[other] = elsewhere[0]
        if any(len(card) != self.blocks.block(number).card_bytes for card in cards.values()):
            return
        reply = self._respond("share", party, about(number, cards))
        if reply is not None:
            length = self.blocks.block(number).share_bytes + BOX_OVERHEAD
            for k, other in enumerate(sorted(set(cards) - {party})):
                self.boxes[number, party, other] = reply[k * length : (k + 1) * length]

    def agree(self, party: int, step: int) -> None:
        block, boxes = self.blocks.of_step(step), {}
        mine = self.cards.get((block.number, party))
        for other in self._view(party):
            if other in self.colluders and mine:
                keys = self.colluding[block.number, other]
                shared = shared_secret(keys.sealing, KeyCard.from_bytes(mine[0], block, party).sealing)
                told = keys.dealt(self.world.quorum)[party]
                boxes[other] = seal_box(shared, told, block=block, sender=other, receiver=party)
            elif (block.number, other, party) in self.boxes:
                boxes[other] = self.boxes[block.number, other, party]
        self._respond("agree", party, about(block.number, boxes))

    def answer(self, party: int, step: int) -> None:
        query = QUERIES[int(self.rng.random() > 0.5 + self.steady / 2)]
        disk, name = self.world.disks[party], f"answer/{step}"

        def answered() -> bytes:
            stored = disk.find(name)
            if stored is None:
                half = 2 ** (self.world.width - 1)
                vector = self.rng.integers(-half, half, DIM, dtype=np.int64)
                self.own.setdefault((party, step), []).append(vector)
                masked = self.world.masks[party].mask(step, query, vector, self.world.width)
                stored = disk.keep(name, lambda: query + b"\0" + masked.tobytes())
            asked, _, said = stored.partition(b"\0")
            return said if asked == query else b""

        said = self._doing(party, answered)
        if said:
            self.seen.setdefault((party, step), set()).add((query, said))

    def sign(self, party: int, step: int) -> None:
        summed = self.sums[self._heard(party)[1]]
        signature = self._respond("sign", party, sign_request(step, list(summed)))
        if signature is not None:
            self.signed.setdefault((party, step), []).append((summed, signature))

    def reveal(self, party: int, step: int) -> None:
        """With all signatures that fit the party's own, those of colluders made to measure."""
        if (party, step) not in self.signed:
            return
        summed, mine = self.signed[party, step][-1]
        roster = self.world.context.roster
        context = [self.world.context.step(step, query, self.world.width, DIM) for query in QUERIES]
        claims = [set_claim(one, view, summed) for one in context for view in self._views()]
        for claim in claims:
            if not _is_signed(roster.verify_keys[party], claim, mine):
                continue
            table = {party: mine}
            for other in summed:
                if other in self.colluders:
                    table[other] = signing_keys(self.world.parties)[other].sign("sum-2-set", claim)
                for _, signature in self.signed.get((other, step), []):
                    if _is_signed(roster.verify_keys[other], claim, signature):
                        table[other] = signature
            reply = self._respond("reveal", party, about(step, table))
            if reply:
                self.revealed[step].append(reply)

    def knows(self, step: int) -> StepKnowledge:
        """Return what the server and the colluders know of a step."""
        block = self.blocks.of_step(step)
        dealt, held = {}, {}
        for party in self.honest:
            root = self.world.disks[party].ever.get(root_name(block.number))
            if root is not None:
                told = PartyKeys(root, block, party).dealt(self.world.quorum)
                dealt.update(shares_of(party, step - block.first, told))
                for kind in ("key", "seed"):
                    held[kind, party] = set(self.colluders)
        known = StepKnowledge(frozenset(self.honest), self.world.quorum.least, dealt, held)
        for reply in self.revealed[step]:
            known.see_shares(reply)
        for (party, at), answers in self.seen.items():
            for query, said in answers if at == step else ():
                view, version = self._understood(party, step, query, said)
                known.vectors[party, query, version] = view
        return known

    def _understood(self, party: int, step: int, query: bytes, said: bytes) -> tuple[tuple[int, ...], int]:
        """Return with whom a seen vector is masked, and which vector is in it, by computing it anew."""
        block, disk, count = self.blocks.of_step(step), self.world.disks[party], self.world.parties
        kept = [disk.ever[f"masks/{name}/{block.number}"] for name in ("cards", "boxes")]
        asked = [one[8 : 8 + int.from_bytes(one[:8])] for one in kept]
        cards = FieldReader(asked[0]).table(count, block.card_bytes)
        view = tuple(sorted((*FieldReader(asked[1]).parties(count), party)))
        mine = PartyKeys(disk.ever[root_name(block.number)], block, party)
        at, width = step - block.first, self.world.width
        context = self.world.context.step(step, query, width, DIM)
        mask = stream_by_hand(derived_key(mine.seeds[at], "self", context, party), DIM, width)
        for other in set(view) - {party}:
            start = 32 * (1 + at)
            shared = shared_secret(mine.masking[at], cards[other][start : start + 32])
            stream = stream_by_hand(derived_key(shared, "mask", context, *sorted((party, other))), DIM, width)
            mask = mask + stream if other > party else mask - stream
        seen = np.frombuffer(said, dtype=np.int64)
        versions = [
            self.world.same(seen, (one.view(np.uint64) + mask).view(np.int64))
            for one in self.own[party, step]
        ]
        assert sum(versions) == 1
        assert public_of(mine.masking[at]) == cards[party][32 * (1 + at) : 32 * (2 + at)]
        return view, versions.index(True)

    def _respond(self, stage: str, party: int, data: bytes) -> bytes | None:
        self.requests.append((stage, party, data))
        return self._doing(party, lambda: self.world.masks[party].respond(stage, data))

    def _doing(self, party: int, work: Callable[[], bytes]) -> bytes | None:
        """What a party says; nothing if it refuses or dies."""
        try:
            return work()
        except TacitError:
            return None
        except KilledError:
            self.world.restart(party)
            return None

    def _some(self, among: tuple[int, ...]) -> tuple[int, ...]:
        """A set that is large enough to be believed."""
        size = int(self.rng.integers(min(self.world.quorum.least, len(among)), len(among) + 1))
        return tuple(sorted(int(k) for k in self.rng.permutation(among)[:size]))

    def _heard(self, party: int) -> tuple[int, int]:
        """Which view and which sum a party hears of; not always the same."""
        if self.rng.random() > self.steady:
            return int(self.rng.integers(0, 2)), int(self.rng.integers(0, 2))
        return self.hears[party] if self.split else (0, 0)

    def _view(self, party: int) -> tuple[int, ...]:
        return tuple(sorted({*self.views[self._heard(party)[0]], party}))

    def _views(self) -> set[tuple[int, ...]]:
        return {tuple(sorted({*view, party})) for view in self.views for party in self.honest}


def _is_signed(verify: object, claim: bytes, signature: bytes) -> bool:
    try:
        verify.verify("sum-2-set", claim, signature)  # type: ignore[attr-defined]
    except TacitError:
        return False
    return True


__all__ = ["Adversary", "MaskBlock"]
