"""Recoverable masks, the server's half: it leads the exchanges, and opens one sum of those who stayed.

It keeps nothing secret and is trusted with nothing: what it must not learn, no party tells it. It checks what
parties say, because one that sends rubbish should fall out, and not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from tacit.errors import AuthenticationError, RefusalError
from tacit.federation.masking.agreement import derived_key, make_private, public_of, shared_secrets
from tacit.federation.masking.blocks import STEPS_OF_BLOCK, KeyCard, MaskBlock, MaskBlocks
from tacit.federation.masking.boxes import BOX_OVERHEAD
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.exchanges import FieldReader, number_to_bytes, parties_to_bytes, table_to_bytes
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.recoverable import set_claim
from tacit.federation.masking.shamir import SHARE_BYTES, Interpolation, share_from_bytes
from tacit.federation.masking.streams import masked
from tacit.federation.plan import Plan
from tacit.federation.protocols import Exchange, Secrets
from tacit.federation.store import MemorySecrets
from tacit.federation.summed import added
from tacit.numerics import IntArray

__all__ = ["RecoverableSums"]


class RecoverableSums:
    """Opens the sum of every step over those who sent a vector, if they are a quorum.

    Args:
        context: The run.
        quorum: The plan's.
        rounds: Steps of the plan.
        width: Bits of a coordinate in a step, by its number.
        block: Steps whose keys are set up at once, as parties count them.
        kept: What the server has told the parties, by name: nothing secret. With one that is durable, a run
            goes on in another process; each party replies again to what it has replied to, and to nothing
            else.

    Raises:
        RefusalError: The quorum is about another number of parties than the roster has.
    """

    def __init__(
        self,
        context: MaskContext,
        *,
        quorum: Quorum,
        rounds: int,
        width: Callable[[int], int],
        block: int = STEPS_OF_BLOCK,
        kept: Secrets | None = None,
    ) -> None:
        if quorum.parties != len(context.roster):
            raise RefusalError(
                f"the quorum is about {quorum.parties} parties, the roster has {len(context.roster)}."
            )
        self._context, self._quorum, self._width = context, quorum, width
        self._blocks, self._kept = (
            MaskBlocks(context, rounds, block),
            MemorySecrets() if kept is None else kept,
        )
        self._boxes: tuple[int, dict[int, dict[int, bytes]], set[int]] | None = None
        self._verified: tuple[int, dict[int, KeyCard]] | None = None

    @classmethod
    def of_plan(cls, plan: Plan, context: MaskContext, kept: Secrets | None = None) -> Self:
        """Return the server's half for a plan that recovers from drop-outs; errors as `Quorum`."""
        schedule = plan.schedule()
        return cls(
            context,
            quorum=Quorum(plan.parties, plan.n_min, plan.colluding),
            rounds=schedule.rounds,
            width=lambda step: schedule.step(step).summed[0].width,
            kept=kept,
        )

    def prepare(self, step: int, exchange: Exchange) -> bool:
        """Set up the block of a step, with those parties of it that have not been set up.

        Args:
            step: The round that is next.
            exchange: Reaches the parties.

        Returns:
            Whether a quorum is ready; else there is no sum of this round.
        """
        block = self._blocks.of_step(step)
        cards = self._cards(block, exchange)
        parties = None if cards is None else self._parties(block, cards, exchange)
        if parties is None:
            return False
        if self._boxes is None or self._boxes[0] != block.number:
            return True  # another process has led these parties, and some of them are gone: the others go on
        _, boxes, ready = self._boxes
        told = {
            party: number_to_bytes(block.number)
            + table_to_bytes({sender: sent[party] for sender, sent in boxes.items() if sender != party})
            for party in set(parties) - ready
        }
        ready.update(_asked(exchange, "agree", told))
        return len(ready) >= self._quorum.least

    def ready(self, step: int) -> Collection[int]:
        """Return those who can have masks in a step: who was told the others' keys for its block."""
        block = self._blocks.of_step(step)
        if self._boxes is not None and self._boxes[0] == block.number:
            return frozenset(self._boxes[2])
        set_up = self._kept.find(f"parties/{block.number}")
        return () if set_up is None else FieldReader(set_up).parties(self._quorum.parties)

    def open(
        self, step: int, query_digest: bytes, answers: Mapping[int, IntArray], exchange: Exchange
    ) -> tuple[IntArray, tuple[int, ...]] | None:
        """Open the sum of a step.

        Args:
            step: Number of the round.
            query_digest: What was asked, the same for all parties (`Query.digest`).
            answers: The masked vectors that arrived, by party: int64, of one shape (dim,).
            exchange: Reaches the parties.

        Returns:
            The sum, centred modulo 2**width, and the parties in it, ascending; None where fewer than the
            quorum were set up, have answered, have signed or have helped.

        Raises:
            RefusalError: The shares give back another secret than they should: a party has told something
                false, and the sum cannot be opened.
        """
        block, least, count = self._blocks.of_step(step), self._quorum.least, self._quorum.parties
        cards, set_up = self._kept.find(f"cards/{block.number}"), self._kept.find(f"parties/{block.number}")
        parties = () if set_up is None else FieldReader(set_up).parties(count)
        summed = tuple(sorted(set(answers) & set(parties)))
        if cards is None or len(summed) < least:
            return None
        written = self._kept.keep(f"set/{step}", lambda: parties_to_bytes(summed))
        summed = FieldReader(written).parties(count)
        if not set(summed) <= set(answers):
            return None
        vectors = [answers[party] for party in summed]
        context = self._context.step(step, query_digest, width := self._width(step), len(vectors[0]))

        head = number_to_bytes(step)
        signed = _asked(exchange, "sign", dict.fromkeys(summed, head + written))
        signatures = self._valid(signed, set_claim(context, parties, summed))
        if len(signatures) < least:
            return None
        proof = head + table_to_bytes(dict(list(signatures.items())[:least]))
        replies = _asked(exchange, "reveal", dict.fromkeys(summed, proof))
        shares = {party: found for party, data in replies.items() if (found := _shares(data, len(parties)))}
        if len(shares) < least:
            return None

        given = Interpolation(sorted(shares)[:least])
        secrets = {
            party: given.secret([shares[helper][place] for helper in given.parties])
            for place, party in enumerate(parties)
        }
        plus, minus = self._streams(block, step, context, self._read(block, cards), summed, secrets)
        return masked(added(vectors), width, plus=plus, minus=minus), summed

    def _streams(
        self,
        block: MaskBlock,
        step: int,
        context: bytes,
        cards: Mapping[int, KeyCard],
        summed: Sequence[int],
        secrets: Mapping[int, bytes | None],
    ) -> tuple[list[bytes], list[bytes]]:
        """Return the keys of the streams to add to the sum of masked vectors, and to subtract from it."""
        plus: list[bytes] = []
        minus: list[bytes] = []
        for party, secret in secrets.items():
            public = cards[party].masking[step - block.first]
            if secret is None or (party not in summed and public_of(secret) != public):
                raise RefusalError(
                    f"the shares of a secret of party {self._context.roster.names[party]!r} give back "
                    f"another one: it, or one that told its share, has lied. Step {step} cannot be opened."
                )
            if party in summed:
                minus.append(derived_key(secret, "self", context, party))
                continue
            shown = [cards[other].masking[step - block.first] for other in summed]
            for other, shared in zip(summed, shared_secrets(secret, shown), strict=True):
                key = derived_key(shared, "mask", context, *sorted((party, other)))
                # A party adds what it shares with those behind it, and subtracts what it shares with others.
                (minus if party > other else plus).append(key)
        return plus, minus

    def _cards(self, block: MaskBlock, exchange: Exchange) -> bytes | None:
        """Return the table of all good cards of a block; None where they are too few."""
        kept = self._kept.find(f"cards/{block.number}")
        if kept is not None:
            return kept
        request = number_to_bytes(block.number)
        sent = _asked(exchange, "advertise", dict.fromkeys(range(self._quorum.parties), request))
        good: dict[int, bytes] = {}
        keys: set[bytes] = set()
        probe = make_private()
        for party, data in sorted(sent.items()):
            try:
                card = KeyCard.from_bytes(data, block, party)
                its = {card.sealing, *card.masking}
                shared_secrets(probe, its)  # parties refuse the cards of all where one key is none
            except (AuthenticationError, RefusalError):
                continue
            if len(its) == 1 + block.steps and its.isdisjoint(keys):
                good[party] = data
                keys |= its
        if len(good) < self._quorum.least:
            return None
        return self._kept.keep(f"cards/{block.number}", lambda: table_to_bytes(good))

    def _parties(self, block: MaskBlock, cards: bytes, exchange: Exchange) -> tuple[int, ...] | None:
        """Return who in a block has shared secrets, with their boxes at hand; None where too few have."""
        name, count = f"parties/{block.number}", self._quorum.parties
        shown, length = FieldReader(cards).parties(count), block.share_bytes + BOX_OVERHEAD
        kept = self._kept.find(name)
        parties = None if kept is None else FieldReader(kept).parties(count)
        if parties is not None and self._boxes is not None and self._boxes[0] == block.number:
            return parties
        request = number_to_bytes(block.number) + cards
        sent = _asked(exchange, "share", dict.fromkeys(parties or shown, request))
        boxes: dict[int, dict[int, bytes]] = {}
        for sender, data in sent.items():
            others = [party for party in shown if party != sender]
            if len(data) == length * len(others):
                boxes[sender] = {other: data[k * length : (k + 1) * length] for k, other in enumerate(others)}
        if parties is None:
            if len(boxes) < self._quorum.least:
                return None
            parties = FieldReader(self._kept.keep(name, lambda: parties_to_bytes(sorted(boxes)))).parties(
                count
            )
        if set(boxes) == set(parties):  # each must hear of the same senders as before
            self._boxes = block.number, boxes, set()
        return parties

    def _read(self, block: MaskBlock, cards: bytes) -> dict[int, KeyCard]:
        """Return the cards of a block; they are verified once, not in every step."""
        if self._verified is None or self._verified[0] != block.number:
            table = FieldReader(cards).table(self._quorum.parties, block.card_bytes)
            read = {party: KeyCard.from_bytes(card, block, party) for party, card in table.items()}
            self._verified = block.number, read
        return self._verified[1]

    def _valid(self, signed: Mapping[int, bytes], claim: bytes) -> dict[int, bytes]:
        """Return the signatures that are good, by the places of the signers, ascending."""
        valid: dict[int, bytes] = {}
        for party, signature in sorted(signed.items()):
            try:
                self._context.roster.verify_keys[party].verify("sum-2-set", claim, signature)
            except AuthenticationError:
                continue
            valid[party] = signature
        return valid


def _asked(exchange: Exchange, stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
    """Return the replies of those who were asked."""
    if not requests:
        return {}
    return {party: data for party, data in exchange(stage, requests).items() if party in requests}


def _shares(data: bytes, count: int) -> list[int] | None:
    """Return the shares that a party reveals; None if they are none."""
    try:
        reader = FieldReader(data)
        found = [share_from_bytes(reader.take(SHARE_BYTES)) for _ in range(count)]
        reader.end()
    except RefusalError:
        return None
    return found
