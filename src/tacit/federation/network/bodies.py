"""What stands in the messages between a server and its silos."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from tacit.errors import LARGEST_COUNT, LONGEST_NAME, ParameterError, RefusalError
from tacit.federation.limits import LONGEST_PLAN
from tacit.federation.network.keys import SIGNATURE_BYTES
from tacit.privacy import PrivacyBudget

if TYPE_CHECKING:
    from tacit.federation.network.wire import Envelope

__all__ = [
    "LONGEST_REST",
    "Accepted",
    "Answered",
    "AskedRound",
    "Closed",
    "Closing",
    "Considered",
    "MaskReply",
    "MaskRequest",
    "Name",
    "ProposedPlan",
    "RefusalCode",
    "Refused",
    "ReplyBody",
    "ReplyKind",
    "RequestBody",
    "RequestKind",
    "Uploaded",
    "WireError",
]

LONGEST_REST: Final = 2**23
"""Bytes of what is neither a query nor an answer: plans, of at most 4 bytes a character, and guarantees."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
"""Of a federation, a run or a party."""


class RefusalCode(StrEnum):
    """Why a silo refuses: all that leaves it about that. The reason in words goes to its own log."""

    VERSION = "version"  # the message is of another version
    ROSTER = "roster"  # another federation, another name, or one that is not in the roster
    SIGNATURE = "signature"  # not by the server's key
    EXPIRED = "expired"  # a key that is revoked or expired
    CONSENT = "consent"  # the silo's owner has not agreed to this plan and run
    PLAN = "plan"  # the plan cannot be read, priced, or answered from this data
    BUDGET = "budget"  # the price is above what was agreed or what is left
    QUERY = "query"  # not a query of the plan
    ANSWERED = "answered"  # the step was answered at another point or in another circle
    CIRCLE = "circle"  # the descriptor or its circle is not one that this silo joins
    SHUFFLER = "shuffler"  # the shuffler took no upload
    MASKS = "masks"  # what no honest server would say about masks, or keys for them that are gone
    BUSY = "busy"  # another run is under way
    FAILED = "failed"  # anything else


class WireError(RefusalError):
    """A message that is not read any further.

    Attributes:
        code: Which of the closed set of reasons, for whoever answers.
        request: The envelope, where a request could be read that far: what a refusal is about.
    """

    def __init__(self, code: RefusalCode, why: str, *, request: Envelope | None = None) -> None:
        super().__init__(why)
        self.code, self.request = code, request


class ProposedPlan(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A plan, to be considered or accepted.

    Attributes:
        plan: As TOML.
        run: Name of the run, that of the envelope.
        party: Index of the silo in the run.
        epsilon: Of what the silo should agree to spend at most; None leaves it to the silo.
        delta: That goes with it.
    """

    plan: Annotated[str, msgspec.Meta(max_length=LONGEST_PLAN)]
    run: Name
    party: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        self.budget  # noqa: B018  # checked as it is made

    @property
    def budget(self) -> PrivacyBudget | None:
        """What the silo should agree to spend at most."""
        if self.epsilon is None:
            if self.delta is not None:
                raise ParameterError("delta goes with an epsilon.")
            return None
        return PrivacyBudget(self.epsilon, 0.0 if self.delta is None else self.delta)


class AskedRound(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One round.

    Attributes:
        query: As `encode_query` wrote it.
        descriptor: Under shuffle trust what the shuffler signed about the round, else empty.
    """

    query: bytes
    descriptor: Annotated[bytes, msgspec.Meta(max_length=LONGEST_REST)] = b""


class MaskRequest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A stage of the protocol by which the sum of a round is opened, under aggregate trust.

    Attributes:
        stage: Its name, see `tacit.federation.masking`.
        data: What the silo needs for it.
    """

    stage: Annotated[str, msgspec.Meta(min_length=1, max_length=16)]
    data: bytes


class Closing(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The end of a run."""


class Considered(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a plan would cost a silo; nothing is reserved.

    Attributes:
        guarantee: What others could learn, as JSON, exactly as it would stand in the statement.
        alone: The same of one message alone, with its sender; empty where the guarantee is about that.
        size: Units of the silo.
        account: Fingerprint of its ledger; None where it keeps none.
        simulated: Whether its randomness can be repeated.
    """

    guarantee: bytes
    alone: bytes
    size: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_COUNT)]
    account: Annotated[bytes, msgspec.Meta(max_length=64)] | None
    simulated: bool


class Accepted(Considered, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a plan costs a silo, which has reserved it: fields as in `Considered`.

    Attributes:
        signature: Of the guarantees (`signatures.sign_claims`); empty where the silo signs none.
    """

    signature: Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)] = b""


class Answered(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The answer of a silo.

    Attributes:
        sealed: What `Silo.answer` returned, sealed to the server, about `sealing.said_in`.
    """

    sealed: bytes


class MaskReply(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a silo says at a stage.

    Attributes:
        sealed: What `Silo.exchange` returned, sealed to the server, about `sealing.said_at`.
    """

    sealed: bytes


class Uploaded(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The answer is with the shuffler."""


class Closed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The silo answers nothing more of the run."""


class Refused(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The silo does not do what it was asked.

    Attributes:
        code: Why.
    """

    code: RefusalCode


RequestKind = Literal["consider", "accept", "mask", "ask", "close"]
ReplyKind = Literal["considered", "accepted", "masked", "answered", "uploaded", "closed", "refused"]
RequestBody = ProposedPlan | MaskRequest | AskedRound | Closing
ReplyBody = Considered | Accepted | MaskReply | Answered | Uploaded | Closed | Refused
