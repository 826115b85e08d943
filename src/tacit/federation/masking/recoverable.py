"""Recoverable masks, a party's half: the sum of those who stay can be opened when others drop out.

The protocol of Bonawitz et al. (2017) with signatures, for blocks of steps. In every step a party adds a
stream of its own seed, and a stream with every other party of its block; seeds and keys are shared among all,
`least` of whom can give one back. The server says who is in the sum; parties sign that set, and help to open
nothing but a set that `least` of them have signed. What is argued and what is proved:
docs/theory/recoverable-masks.md.

No decision is taken twice: what a party has decided is on disk, with its reply, before the reply leaves. All
else that it says follows from its decisions and from one secret a block, so that a party which was killed
between any two writes goes on with the same bytes.
"""

from __future__ import annotations

import secrets as system_randomness
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tacit.errors import RefusalError
from tacit.federation.masking.agreement import SHARED_BYTES, derived_key
from tacit.federation.masking.blocks import STEPS_OF_BLOCK, KeyCard, MaskBlock, MaskBlocks, PartyKeys
from tacit.federation.masking.boxes import BOX_OVERHEAD
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.exchanges import FieldReader, parties_to_bytes, table_to_bytes
from tacit.federation.masking.fields import framed, hashed
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.set_up import SetUp
from tacit.federation.masking.shamir import SHARE_BYTES, share_from_bytes
from tacit.federation.masking.streams import check_vector, masked
from tacit.federation.network.keys import SIGNATURE_BYTES, SigningKey
from tacit.federation.protocols import Secrets
from tacit.ledger import WipedSecretError
from tacit.numerics import IntArray

__all__ = ["RecoverableMasks", "name_kept_for", "root_name", "set_claim"]

_LENGTH_BYTES: Final = 8
_DIGITS: Final = 64  # of the number of a block
_ALL: Final = "masks/"


def set_claim(step_context: bytes, set_up: Sequence[int], summed: Sequence[int]) -> bytes:
    """Return what a party signs of a step.

    Args:
        step_context: `MaskContext.step`.
        set_up: Parties whose shares the signer holds, ascending: everybody who can have a mask in the sum.
        summed: Parties in the sum, ascending.
    """
    return framed(step_context, parties_to_bytes(set_up), parties_to_bytes(summed))


class RecoverableMasks:
    """The masks of one party in one run of a plan, with the quorum that its owner counts on.

    Args:
        context: The run. The party's place in its roster is that of `key`, whatever a server says.
        key: The party's own, for signatures.
        secrets: Of the run; in the same file as its answers, so that neither is restored without the other.
        quorum: The party's own: with the larger number of colluders, the plan's or its owner's.
        rounds: Steps of the plan.
        block: Steps whose keys are set up at once; parties with another number refuse each other's keys.

    Raises:
        RefusalError: The key is not in the roster, or the quorum is about another number of parties.
    """

    def __init__(
        self,
        context: MaskContext,
        key: SigningKey,
        secrets: Secrets,
        *,
        quorum: Quorum,
        rounds: int,
        block: int = STEPS_OF_BLOCK,
    ) -> None:
        if quorum.parties != len(context.roster):
            raise RefusalError(
                f"the quorum is about {quorum.parties} parties, the roster has {len(context.roster)}."
            )
        self._context, self._signing, self._secrets, self._quorum = context, key, secrets, quorum
        self.position = context.roster.position(key.public)
        self._blocks = MaskBlocks(context, rounds, block)
        self._opened: SetUp | None = None
        self._masked: dict[int, bytes] = {}

    def advertise(self, number: int) -> bytes:
        """Return the party's public keys for a block, the same whenever it is asked; ends earlier blocks.

        Raises:
            RefusalError: The plan has no such block, or it is over, as all before the last one are that this
                party has shown keys for, whether it has for them or not.
        """
        block = self._blocks.block(number)

        def card() -> bytes:
            try:
                root = self._secrets.keep(
                    root_name(number), lambda: system_randomness.token_bytes(SHARED_BYTES)
                )
            except WipedSecretError:
                raise self._over(number) from None
            # Who steals this silo's disk from now on opens nothing that was masked before.
            for earlier in _roots_before(number):
                self._secrets.wipe(earlier)
            return KeyCard.signed(PartyKeys(root, block, self.position), self._signing).to_bytes()

        return self._once(f"card/{number}", b"", card)

    def share(self, number: int, cards: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return the boxes for the others of a block: shares of this party's secrets.

        Args:
            number: Of the block.
            cards: Of those whose keys have arrived, this party's own among them, by their places. The first
                that are good decide.

        Raises:
            RefusalError: Fewer than the quorum, without this party, or this party's own card was replaced; a
                key stands twice; other cards were agreed on before; or the block is over.
            AuthenticationError: A card is not signed by its party for this block, or its keys are none.
        """
        block, sent = self._blocks.block(number), table_to_bytes(cards)
        others = [place for place in sorted(cards) if place != self.position]

        def boxes() -> bytes:
            if cards.get(self.position) != self.advertise(number):
                raise RefusalError("this party's own keys are missing or were replaced.")
            made.append(SetUp(self._keys(block), cards, self._quorum))
            return b"".join(map(made[0].seal, made[0].others))

        made: list[SetUp] = []
        self._check_quorum("the keys of a block", len(cards))
        joined = self._once(f"cards/{number}", sent, boxes)
        self._opened = made[0] if made else self._opened
        length = block.share_bytes + BOX_OVERHEAD
        return {other: joined[k * length : (k + 1) * length] for k, other in enumerate(others)}

    def agree(self, number: int, boxes: Mapping[int, bytes]) -> None:
        """Take the shares of the others' secrets: from now on this party masks with them.

        Args:
            number: Of the block.
            boxes: What the others have sealed for this party, by their places; the first good ones decide.

        Raises:
            RefusalError: Fewer than the quorum, this party included; somebody whose keys this party has not
                seen; a share that is no number of the field; others were agreed on before; or the block is
                over, or its keys have not been exchanged.
            AuthenticationError: A box was not sealed by its sender for this party in this block.
        """
        block = self._blocks.block(number)

        def check() -> bytes:
            set_up = self._set_up(block)
            if not set(boxes) <= set(set_up.others):
                raise RefusalError("a box must be from another party whose keys have been exchanged.")
            for sender, box in boxes.items():
                for share in _cut(set_up.open(box, sender)):
                    share_from_bytes(share)
            return b""

        self._check_quorum("the parties of a block", len(boxes) + 1)
        self._once(f"boxes/{number}", table_to_bytes(boxes), check)

    def mask(self, step: int, query_digest: bytes, vector: IntArray, width: int) -> IntArray:
        """Return the one vector of a step as it may leave, once it is stored.

        Args:
            step: Number of the round.
            query_digest: `Query.digest()`, the same for all parties.
            vector: All that the step says, noise included: int64, centred modulo 2**width, shape (dim,).
            width: Bits of a coordinate, 1 to 64.

        Returns:
            Centred modulo 2**width, shape (dim,); the same for the same arguments.

        Raises:
            RefusalError: The step was masked for another query or width, or in this process another vector,
                whose difference would be in clear; the block was not agreed on, or is over.
            ParameterError: A value that is not allowed.
        """
        check_vector("vector", vector, width)
        block = self._blocks.of_step(step)
        context = self._context.step(step, query_digest, width, len(vector))
        parties, set_up = self._agreed(block), self._set_up(block)
        said = hashed("vector", context, vector.astype("<i8").tobytes())
        asked = self._secrets.keep(f"{_ALL}context/{step}", lambda: context)
        if asked != context or self._masked.setdefault(step, said) != said:
            raise RefusalError(f"step {step} has been masked with another vector, query or width.")
        seed = derived_key(set_up.keys.seeds[step - block.first], "self", context, self.position)
        pairs = {other: set_up.mask_key(other, step, context) for other in parties if other != self.position}
        return masked(
            vector,
            width,
            plus=(seed, *(key for other, key in pairs.items() if other > self.position)),
            minus=(key for other, key in pairs.items() if other < self.position),
        )

    def sign(self, step: int, summed: Sequence[int]) -> bytes:
        """Return this party's signature of the set of a step: of one set, for ever.

        Args:
            step: Number of the round.
            summed: Places of those whose vectors the server has, ascending.

        Raises:
            RefusalError: This party has not masked the step or is not in the set; fewer than the quorum;
                somebody whose shares this party has not; or another set was signed before.
        """
        block, context = self._blocks.of_step(step), self._secrets.find(f"{_ALL}context/{step}")
        if context is None:
            raise RefusalError(f"this party has no vector in step {step}: it signs no set of it.")
        parties = self._agreed(block)
        if list(summed) != sorted(set(summed)) or not {self.position} <= set(summed) <= set(parties):
            raise RefusalError(
                "the parties of a sum must be ascending, this party among them, and all of them of its block."
            )
        self._check_quorum("the parties of a sum", len(summed))
        claim = set_claim(context, parties, summed)
        return self._once(
            f"set/{step}", parties_to_bytes(summed), lambda: self._signing.sign("sum-2-set", claim)
        )

    def reveal(self, step: int, signatures: Mapping[int, bytes]) -> dict[int, bytes]:
        """Return the shares that open the set which this party has signed, and no other.

        Which share it is follows from that set: of the seed of a party in the sum, of the key of another one.

        Args:
            step: Number of the round.
            signatures: Of the very set that this party has signed, by the places of the signers.

        Returns:
            `SHARE_BYTES` bytes for each party of the set-up.

        Raises:
            RefusalError: This party has signed no set, signatures are fewer than the quorum or by somebody
                who is not in the set, or the block is over.
            AuthenticationError: A signature is of something else.
        """
        signed, context = self._found(f"set/{step}"), self._secrets.find(f"{_ALL}context/{step}")
        if signed is None or context is None:
            raise RefusalError(f"this party has signed no set of step {step}.")
        block, summed = self._blocks.of_step(step), FieldReader(signed[0]).parties(self._quorum.parties)
        parties, roster = self._agreed(block), self._context.roster
        claim = set_claim(context, parties, summed)
        self._check_quorum("the signatures of a set", len(signatures))
        for place, signature in signatures.items():
            if place not in summed:
                raise RefusalError(f"party {place} signs a set that it is not in.")
            roster.verify_keys[place].verify("sum-2-set", claim, signature)

        def shares() -> bytes:
            told, at = self._told(block), 2 * (step - block.first)
            return b"".join(_cut(told[place])[at + (place in summed)] for place in parties)

        return dict(zip(parties, _cut(self._once(f"shares/{step}", b"", shares)), strict=True))

    def respond(self, stage: str, data: bytes) -> bytes:
        """Reply to a server's "advertise", "share", "agree", "sign" or "reveal".

        Raises:
            RefusalError: Another stage, bytes that say nothing in it, or as the method of the stage.
            AuthenticationError: As the method of the stage.
        """
        reader, count = FieldReader(data), self._quorum.parties
        number = reader.number()
        match stage:
            case "advertise":
                reader.end()
                return self.advertise(number)
            case "share":
                cards = reader.table(count, self._blocks.block(number).card_bytes)
                reader.end()
                return b"".join(self.share(number, cards).values())
            case "agree":
                boxes = reader.table(count, self._blocks.block(number).share_bytes + BOX_OVERHEAD)
                reader.end()
                self.agree(number, boxes)
                return b""
            case "sign":
                summed = reader.parties(count)
                reader.end()
                return self.sign(number, summed)
            case "reveal":
                signatures = reader.table(count, SIGNATURE_BYTES)
                reader.end()
                return b"".join(self.reveal(number, signatures).values())
        raise RefusalError(f"recoverable masks have no stage {stage[:20]!r}.")

    def wipe(self) -> None:
        """Delete all that is kept of the run, for good: nothing is masked or opened after that."""
        self._opened = None
        self._secrets.wipe(_ALL)

    def _keys(self, block: MaskBlock) -> PartyKeys:
        """Return what this party has drawn for a block."""
        # Looked for every time: another process may have wiped it.
        root = self._secrets.find(root_name(block.number))
        if root is None:
            raise self._over(block.number)
        return PartyKeys(root, block, self.position)

    def _set_up(self, block: MaskBlock) -> SetUp:
        """Return what this party knows of a block whose keys have been exchanged."""
        keys, opened = self._keys(block), self._opened
        if opened is None or opened.keys.block != block:
            exchanged = self._found(f"cards/{block.number}")
            if exchanged is None:
                raise RefusalError(f"the keys of block {block.number} have not been exchanged.")
            cards = FieldReader(exchanged[0]).table(self._quorum.parties, block.card_bytes)
            self._opened = opened = SetUp(keys, cards, self._quorum)
        return opened

    def _boxes(self, block: MaskBlock) -> dict[int, bytes]:
        """Return the boxes for this party, by their senders."""
        agreed = self._found(f"boxes/{block.number}")
        if agreed is None:
            raise RefusalError(f"the shares of block {block.number} have not been exchanged.")
        return FieldReader(agreed[0]).table(self._quorum.parties, block.share_bytes + BOX_OVERHEAD)

    def _agreed(self, block: MaskBlock) -> tuple[int, ...]:
        """Return the parties of a block whose shares this party holds, itself included, ascending."""
        return tuple(sorted((*self._boxes(block), self.position)))

    def _told(self, block: MaskBlock) -> dict[int, bytes]:
        """Return what this party was told of the secrets of all parties of a block, itself included."""
        set_up = self._set_up(block)
        told = {sender: set_up.open(box, sender) for sender, box in self._boxes(block).items()}
        return {**told, self.position: set_up.dealt[self.position]}

    def _once(self, name: str, asked: bytes, reply: Callable[[], bytes]) -> bytes:
        """Return the reply to the first request of a name, stored before it leaves; refuse other requests."""
        found = self._found(name)
        if found is None:
            made = reply()
            head = len(asked).to_bytes(_LENGTH_BYTES)
            try:
                found = _opened(self._secrets.keep(_ALL + name, lambda: head + asked + made))
            except WipedSecretError:
                raise RefusalError("the masks of this run are over, and their keys deleted.") from None
        if found[0] != asked:
            raise RefusalError(f"this party has replied to another request before ({name}).")
        return found[1]

    def _found(self, name: str) -> tuple[bytes, bytes] | None:
        """Return the first request of a name, and the reply."""
        found = self._secrets.find(_ALL + name)
        return None if found is None else _opened(found)

    def _check_quorum(self, what: str, found: int) -> None:
        """Refuse too few."""
        if found < self._quorum.least:
            raise RefusalError(f"{what} must be at least {self._quorum.least}, got {found}.")

    def _over(self, number: int) -> RefusalError:
        """Return the refusal of a block whose secrets are gone."""
        return RefusalError(
            f"block {number} of run {self._context.run!r} is over: its keys were deleted, or are lost, and "
            "are never made again."
        )


def name_kept_for(stage: str, data: bytes) -> str | None:
    """Return under which name a party keeps its reply to a request that it has not refused.

    None for a card, which is made of nothing that anybody says.
    """
    kept = {"share": "cards", "agree": "boxes", "sign": "set", "reveal": "shares"}.get(stage)
    return None if kept is None else f"{_ALL}{kept}/{FieldReader(data).number()}"


def root_name(number: int) -> str:
    """Return the name of the secret of a block; no name begins with that of another one."""
    return f"{_ALL}root/{number:0{_DIGITS}b}"


def _roots_before(number: int) -> list[str]:
    """Return what exactly the names of the secrets of all blocks before one begin with.

    Few beginnings for any number of blocks: a server must not wake old keys by counting backwards, nor keep a
    party busy by leaving most blocks out.
    """
    name = root_name(number)
    return [name[:k] + "0" for k in range(len(name) - _DIGITS, len(name)) if name[k] == "1"]


def _opened(kept: bytes) -> tuple[bytes, bytes]:
    """Return a request and its reply as they were kept."""
    end = _LENGTH_BYTES + int.from_bytes(kept[:_LENGTH_BYTES])
    return kept[_LENGTH_BYTES:end], kept[end:]


def _cut(joined: bytes) -> list[bytes]:
    """Return shares, one by one."""
    return [joined[k : k + SHARE_BYTES] for k in range(0, len(joined), SHARE_BYTES)]
