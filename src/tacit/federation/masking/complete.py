"""All-or-nothing masks: the sum of all parties of a roster can be read, and nothing else of their messages.

Every pair of parties shares a stream for every step; the one that stands first in the roster adds it, the
other one subtracts it. Nobody ever helps the server to remove a stream, whatever it says about parties that
are gone, so that a step shows one sum or none (proof: docs/theory/masks.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from tacit.errors import AuthenticationError, ParameterError, RefusalError, check_count
from tacit.federation.masking.agreement import (
    SHARED_BYTES,
    expanded,
    extracted,
    make_private,
    public_of,
    shared_secrets,
)
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.fields import framed, hashed
from tacit.federation.masking.streams import check_vector, masked
from tacit.federation.network.keys import SIGNATURE_BYTES, SigningKey
from tacit.federation.protocols import Exchange, Secrets
from tacit.ledger import WipedSecretError
from tacit.numerics import IntArray

__all__ = ["CARD_BYTES", "CompleteMasks", "CompleteSums"]

CARD_BYTES: Final = SHARED_BYTES + SIGNATURE_BYTES
"""A party's public key for the masks of one run, and its signature of it."""

_KEY, _CARDS = "masks/key", "masks/cards"
_ALL: Final = "masks/"


class CompleteMasks:
    """The masks of one party in one run of a plan.

    The party's key for masks is made here, once for a run, by the operating system's randomness: whoever goes
    on with the run finds it among the secrets. One that was lost or wiped is never replaced, because the
    masks of another key would not cancel, and could not be told from those of a second party.

    Args:
        context: The run. The party's place in its roster is that of `key`, whatever a server says.
        key: The party's own, for signatures.
        secrets: Of the run; in the same file as its answers, so that neither is restored without the other.

    Raises:
        RefusalError: The key is not in the roster.
    """

    def __init__(self, context: MaskContext, key: SigningKey, secrets: Secrets) -> None:
        self._context, self._signing, self._secrets = context, key, secrets
        self.position = context.roster.position(key.public)
        self._shared: dict[int, bytes] | None = None
        self._masked: dict[int, bytes] = {}
        if secrets.find(_CARDS) is None or secrets.find(_KEY) is not None:
            try:
                secrets.keep(_KEY, make_private)
            except WipedSecretError:  # the run is over: what it has answered can still be sent again
                return

    def advertise(self) -> bytes:
        """Return the party's card, `CARD_BYTES` bytes, the same whenever it is asked for.

        Raises:
            RefusalError: The key is lost.
        """
        public = public_of(self._private())
        return public + self._signing.sign("sum-1", self._claim(self.position, public))

    def agree(self, cards: Sequence[bytes]) -> None:
        """Check the cards of all parties and keep them: the first ones that are good decide.

        Args:
            cards: In the order of the roster, this party's own among them.

        Raises:
            RefusalError: Not one card for each party, this party's own was replaced, two parties have one
                key, others were agreed on before, or the key is lost.
            AuthenticationError: A card is not signed by the party of its place, for this run of this plan, or
                its key is no key for masks.
        """
        roster, private = self._context.roster, self._private()
        if len(cards) != len(roster) or any(len(card) != CARD_BYTES for card in cards):
            raise RefusalError(
                f"masks need one card of {CARD_BYTES} bytes from each of {len(roster)} parties, got "
                f"{len(cards)} of other lengths or in another number."
            )
        if cards[self.position] != self.advertise():
            raise RefusalError("this party's own card was replaced: somebody else would know its masks.")
        publics = [card[:SHARED_BYTES] for card in cards]
        if len(set(publics)) < len(publics):
            raise RefusalError("two parties have one key for masks: one of them would know the other's.")
        for place, (card, verify) in enumerate(zip(cards, roster.verify_keys, strict=True)):
            try:
                verify.verify("sum-1", self._claim(place, publics[place]), card[SHARED_BYTES:])
            except AuthenticationError:
                raise AuthenticationError(
                    f"the card of party {roster.names[place]!r} is not signed by its key in the roster, for "
                    "this run of this plan."
                ) from None
        shared = self._secrets_with(private, publics)
        joined = b"".join(cards)
        if self._secrets.keep(_CARDS, lambda: joined) != joined:
            raise RefusalError("the parties of this run have agreed on other cards before.")
        self._shared = shared

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
            RefusalError: The step was masked with another vector, query or width, in this process: under the
                same masks, the difference of two vectors would be in clear. Or the parties have not agreed,
                or the key is lost.
            ParameterError: A value that is not allowed.
        """
        check_vector("vector", vector, width)
        context = self._context.step(step, query_digest, width, len(vector))
        shared = self._agreed()
        said = hashed("vector", context, vector.astype("<i8").tobytes())
        if self._masked.setdefault(step, said) != said:
            raise RefusalError(f"step {step} has been masked with another vector, query or width.")
        keys = {
            other: expanded(secret, "mask", context, *sorted((self.position, other)))
            for other, secret in shared.items()
        }
        return masked(
            vector,
            width,
            plus=(key for other, key in keys.items() if other > self.position),
            minus=(key for other, key in keys.items() if other < self.position),
        )

    def respond(self, stage: str, data: bytes) -> bytes:
        """Reply to a server's set-up: "advertise" with the card; "agree", on all cards joined, with nothing.

        Raises:
            RefusalError: Another stage, or as `advertise` and `agree`.
            AuthenticationError: As `agree`.
        """
        if stage == "advertise" and not data:
            return self.advertise()
        if stage != "agree":
            raise RefusalError(f"masks are set up by 'advertise' and 'agree', got {stage[:20]!r}.")
        whole = len(self._context.roster) * CARD_BYTES
        if len(data) != whole:
            raise RefusalError(f"the cards of all parties have {whole} bytes, got {len(data)}.")
        self.agree([data[k : k + CARD_BYTES] for k in range(0, whole, CARD_BYTES)])
        return b""

    def wipe(self) -> None:
        """Delete the keys of this run for good: nothing is masked with them any more, in any process."""
        self._shared = None
        self._secrets.wipe(_ALL)

    def _private(self) -> bytes:
        """Return the key for masks."""
        found = self._secrets.find(_KEY)
        if found is None:
            self._shared = None
            raise RefusalError(
                f"the key for the masks of run {self._context.run!r} is lost or was wiped, and masks of "
                "another one would not cancel: the run cannot go on; name a new run."
            )
        return found

    def _agreed(self) -> dict[int, bytes]:
        """Return the secrets shared with all other parties, by their places."""
        private = self._private()  # looked for every time: another process may have wiped it
        if self._shared is None:
            cards = self._secrets.find(_CARDS)
            if cards is None:
                raise RefusalError("the parties have not agreed on masks: send them all cards first.")
            starts = range(0, len(cards), CARD_BYTES)
            self._shared = self._secrets_with(private, [cards[k : k + SHARED_BYTES] for k in starts])
        return self._shared

    def _secrets_with(self, private: bytes, publics: Sequence[bytes]) -> dict[int, bytes]:
        """Return what keys for masks are expanded from, by the other party that has it too."""
        others = [place for place in range(len(publics)) if place != self.position]
        shared = shared_secrets(private, [publics[k] for k in others])
        return {other: extracted(secret) for other, secret in zip(others, shared, strict=True)}

    def _claim(self, place: int, public: bytes) -> bytes:
        """Return what a party signs of its key."""
        return framed(self._context.digest, place, public)


class CompleteSums:
    """The server's half: one exchange of cards for a run, and a sum of all parties or none.

    It holds nothing secret, and needs not be trusted.

    Args:
        parties: How many there are; their indices are their places in the roster.

    Raises:
        ParameterError: Fewer than two.
    """

    def __init__(self, parties: int) -> None:
        self._parties = check_count("parties", parties, low=2)
        self._agreed: set[int] = set()
        self._cards: bytes | None = None

    def prepare(self, step: int, exchange: Exchange) -> bool:  # noqa: ARG002 - other masks need a step
        """Have all parties agree on masks, where they have not.

        Args:
            step: The round that is next.
            exchange: Reaches the parties.

        Returns:
            Whether all have agreed; else some did not reply, and there is no sum of this round.
        """
        if self._cards is None:
            found = exchange("advertise", dict.fromkeys(range(self._parties), b""))
            if len(found) < self._parties:
                return False
            self._cards = b"".join(found[k] for k in range(self._parties))
        missing = [k for k in range(self._parties) if k not in self._agreed]
        if missing:
            self._agreed.update(exchange("agree", dict.fromkeys(missing, self._cards)))
        return len(self._agreed) == self._parties

    def ready(self, step: int) -> Collection[int]:  # noqa: ARG002
        """Return those who have agreed on masks."""
        return frozenset(self._agreed)

    def open(
        self,
        step: int,
        query_digest: bytes,  # noqa: ARG002 - nobody has to be asked about it
        answers: Mapping[int, IntArray],
        exchange: Exchange,  # noqa: ARG002
    ) -> tuple[IntArray, tuple[int, ...]] | None:
        """Return the sum of all answers modulo 2**64, and whose they are; None where one is missing.

        Args:
            step: The round.
            query_digest: Of what was asked.
            answers: Masked vectors by party, int64 of one shape.
            exchange: Reaches the parties; not used.

        Raises:
            ParameterError: An answer has another shape than the first one, or is not int64.
        """
        if set(answers) != set(range(self._parties)):
            return None
        total = np.zeros(answers[0].shape, dtype=np.uint64)
        for party, answer in answers.items():
            if answer.dtype != np.int64 or answer.shape != total.shape:
                raise ParameterError(
                    f"party {party} must answer step {step} with int64 of shape {total.shape}, got "
                    f"{answer.dtype} of shape {answer.shape}."
                )
            total += answer.view(np.uint64)
        return total.view(np.int64), tuple(range(self._parties))
