"""What a server and its silos write to each other: signed envelopes, and what stands in them.

Four functions write and read all of it: `seal_request` and `open_request`, `seal_reply` and `open_reply`.
Whoever opens a message checks its length before anything of that size is made, then version, federation,
names, roster and signature, and only then looks at what it says. A request carries a fresh nonce and a reply
the digest of its request, so that no reply passes for one to another request, to another silo or of another
run; that a request is answered once per step is up to the silo, which stores what it answers.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import msgspec

from tacit.errors import AuthenticationError, ParameterError, check_choice, check_name, shown
from tacit.federation.limits import MOST_ANSWERED
from tacit.federation.network.bodies import (
    LONGEST_REST,
    Accepted,
    Answered,
    AskedRound,
    Closed,
    Closing,
    Considered,
    MaskReply,
    MaskRequest,
    Name,
    ProposedPlan,
    RefusalCode,
    Refused,
    ReplyBody,
    ReplyKind,
    RequestBody,
    RequestKind,
    Uploaded,
    WireError,
)
from tacit.federation.network.keys import SIGNATURE_BYTES, Purpose, SigningKey
from tacit.federation.network.queries import decode_query, encode_query
from tacit.federation.network.roster import SERVER, Roster

__all__ = [
    "LONGEST_REPLY",
    "LONGEST_REQUEST",
    "WIRE_VERSION",
    "Accepted",
    "Answered",
    "AskedRound",
    "Closed",
    "Closing",
    "Considered",
    "Envelope",
    "MaskReply",
    "MaskRequest",
    "Opened",
    "ProposedPlan",
    "RefusalCode",
    "Refused",
    "ReplyBody",
    "ReplyKind",
    "RequestBody",
    "RequestKind",
    "Uploaded",
    "WireError",
    "decode_query",
    "encode_query",
    "open_reply",
    "open_request",
    "seal_reply",
    "seal_request",
]

WIRE_VERSION: Final = 2

LONGEST_REQUEST: Final = 2**29
LONGEST_REPLY: Final = MOST_ANSWERED + 2**20
"""Bytes of a whole message: an answer is as long as a ledger can store, a point as long as an answer."""

_DIGEST: Final = 32
_NONCE: Final = 16


_REQUESTS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "consider": ProposedPlan,
        "accept": ProposedPlan,
        "mask": MaskRequest,
        "ask": AskedRound,
        "close": Closing,
    }
)
_REPLIES: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "considered": Considered,
        "accepted": Accepted,
        "masked": MaskReply,
        "answered": Answered,
        "uploaded": Uploaded,
        "closed": Closed,
        "refused": Refused,
    }
)
_REPLIES_TO: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "consider": frozenset({"considered", "refused"}),
        "accept": frozenset({"accepted", "refused"}),
        "mask": frozenset({"masked", "refused"}),
        "ask": frozenset({"answered", "uploaded", "refused"}),
        "close": frozenset({"closed", "refused"}),
    }
)
_LONG: Final = frozenset({"ask", "answered"})
_DECODERS: Final = MappingProxyType(
    {kind: msgspec.msgpack.Decoder(body) for kind, body in (*_REQUESTS.items(), *_REPLIES.items())}
)


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, dict=True):
    """A message with all that says whose it is and what it belongs to.

    Attributes:
        version: `WIRE_VERSION`.
        federation: Name of the federation.
        run: Name of the run.
        sender: Who wrote it: a silo's name, or `SERVER`.
        to: Whom it is for.
        kind: What stands in the body.
        body: Of that kind.
        about: In a reply the digest of the request, else empty.
        nonce: In a request fresh random bytes, else empty.
        signature: Of the sender.
    """

    version: int
    federation: Name
    run: Name
    sender: Name
    to: Name
    kind: Annotated[str, msgspec.Meta(max_length=16)]
    body: bytes
    about: Annotated[bytes, msgspec.Meta(max_length=_DIGEST)]
    nonce: Annotated[bytes, msgspec.Meta(max_length=_NONCE)]
    signature: Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)] = b""

    @cached_property
    def signed(self) -> bytes:
        """What is signed: every field; of the body its digest, so that a long one is not written again."""
        fields = (self.version, self.federation, self.run, self.sender, self.to, self.kind)
        body = hashlib.blake2b(self.body, digest_size=_DIGEST).digest()
        return _ENCODER.encode((*fields, body, self.about, self.nonce))

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that differ for any other message, a copy under another signature included."""
        return hashlib.blake2b(self.signed + self.signature, digest_size=_DIGEST).digest()

    def with_signature(self, key: SigningKey, purpose: Purpose) -> Envelope:
        """Return the same message, signed."""
        return msgspec.structs.replace(self, signature=key.sign(purpose, self.signed))

    def to_bytes(self) -> bytes:
        """Write the message."""
        return _ENCODER.encode(self)


class Opened(NamedTuple):
    """A message whose sender is known.

    Attributes:
        envelope: As it came.
        body: What it says.
    """

    envelope: Envelope
    body: Any


class _Versioned(msgspec.Struct, array_like=True):
    """What messages of every version begin with."""

    version: int


_ENCODER: Final = msgspec.msgpack.Encoder()
_VERSIONED: Final = msgspec.msgpack.Decoder(_Versioned)
_ENVELOPE: Final = msgspec.msgpack.Decoder(Envelope)
_Struct = TypeVar("_Struct")


def seal_request(
    kind: RequestKind, body: RequestBody, *, roster: Roster, run: str, to: str, key: SigningKey
) -> bytes:
    """Write and sign a request of the server.

    Args:
        kind: What is wanted.
        body: Of that kind.
        roster: Of the federation.
        run: Name of the run.
        to: Name of the silo.
        key: The server's.

    Raises:
        ParameterError: A body of another kind, a name that is not allowed, or too many bytes.
    """
    _check_body(kind, body, _REQUESTS)
    envelope = Envelope(
        version=WIRE_VERSION,
        federation=roster.federation,
        run=check_name("run", run),
        sender=SERVER,
        to=check_name("to", to),
        kind=kind,
        body=_ENCODER.encode(body),
        about=b"",
        nonce=secrets.token_bytes(_NONCE),
    )
    return _sent(envelope.with_signature(key, "request"), LONGEST_REQUEST)


def open_request(data: bytes, *, roster: Roster, silo: str, now: dt.datetime) -> Opened:
    """Read a request, at the silo that it is for.

    Args:
        data: What came.
        roster: Of the federation.
        silo: Name of this silo.
        now: The time, with its zone.

    Raises:
        WireError: Anything is wrong with it; `code` says what may be said about that.
    """
    envelope = _envelope(data, LONGEST_REQUEST)
    try:
        _check_names(envelope, roster, sender=SERVER, to=silo)
        if envelope.about or len(envelope.nonce) != _NONCE:
            raise WireError(RefusalCode.SIGNATURE, "a request is about no other, and has a nonce.")
        _check_sender(envelope, roster, silo, "request", now)
        body = _body(envelope, _REQUESTS)
        if isinstance(body, ProposedPlan) and body.run != envelope.run:
            raise WireError(RefusalCode.PLAN, "the plan is proposed for another run than the message is of.")
        return Opened(envelope, body)
    except WireError as error:
        error.request = envelope
        raise


def seal_reply(
    kind: ReplyKind, body: ReplyBody, *, request: Envelope, roster: Roster, silo: str, key: SigningKey
) -> bytes:
    """Write and sign a silo's reply.

    Args:
        kind: What it is.
        body: Of that kind.
        request: What it replies to: that of `open_request`, or for a refusal the `request` of its error.
        roster: Of the federation.
        silo: Name of this silo.
        key: The silo's.

    Raises:
        ParameterError: A body of another kind, or too many bytes.
    """
    _check_body(kind, body, _REPLIES)
    envelope = Envelope(
        version=WIRE_VERSION,
        federation=roster.federation,
        run=request.run,
        sender=silo,
        to=SERVER,
        kind=kind,
        body=_ENCODER.encode(body),
        about=request.digest,
        nonce=b"",
    )
    return _sent(envelope.with_signature(key, "reply"), LONGEST_REPLY)


def open_reply(data: bytes, *, request: bytes | Envelope, roster: Roster, now: dt.datetime) -> Opened:
    """Read a reply, at the server.

    Args:
        data: What came.
        request: What was sent, as `seal_request` returned it.
        roster: Of the federation.
        now: The time, with its zone.

    Returns:
        The reply of the silo that was asked; its body may be `Refused`.

    Raises:
        WireError: Anything is wrong with it, or it belongs to another request.
    """
    asked = request if isinstance(request, Envelope) else _envelope(request, LONGEST_REQUEST)
    envelope = _envelope(data, LONGEST_REPLY)
    _check_names(envelope, roster, sender=asked.to, to=SERVER)
    if envelope.about != asked.digest or envelope.run != asked.run or envelope.nonce:
        raise WireError(RefusalCode.SIGNATURE, f"silo {asked.to!r} replied to another request.")
    _check_sender(envelope, roster, asked.to, "reply", now)
    if envelope.kind not in _REPLIES_TO[asked.kind]:
        raise WireError(
            RefusalCode.FAILED, f"silo {asked.to!r} replied {shown(envelope.kind)} to {asked.kind!r}."
        )
    return Opened(envelope, _body(envelope, _REPLIES))


def _check_body(kind: str, body: object, kinds: Mapping[str, type[Any]]) -> None:
    """Refuse to send what the other side would not read."""
    check_choice("kind", kind, kinds)
    if type(body) is not kinds[kind]:
        raise ParameterError(f"the body of {kind!r} must be {kinds[kind].__name__}, got {shown(body)}.")


def _envelope(data: bytes, longest: int) -> Envelope:
    """Return a message of which nothing is checked but its form."""
    if len(data) > longest:
        raise WireError(RefusalCode.FAILED, f"a message has at most {longest:,} bytes, got {len(data):,}.")
    version = _read(_VERSIONED, data, "the message").version
    if version != WIRE_VERSION:
        why = f"the message has version {shown(version)}; this tacit reads {WIRE_VERSION}."
        raise WireError(RefusalCode.VERSION, why)
    return _read(_ENVELOPE, data, "the message")


def _check_names(envelope: Envelope, roster: Roster, *, sender: str, to: str) -> None:
    """Refuse a message of another federation, of somebody else, or to somebody else."""
    for what, found, wanted in (
        ("of the federation", envelope.federation, roster.federation),
        ("by", envelope.sender, sender),
        ("to", envelope.to, to),
    ):
        if found != wanted:
            raise WireError(
                RefusalCode.ROSTER, f"the message must be {what} {shown(wanted)}, got {shown(found)}."
            )
    try:
        check_name("run", envelope.run)
    except ParameterError as error:
        raise WireError(RefusalCode.ROSTER, str(error)) from error


def _check_sender(envelope: Envelope, roster: Roster, silo: str, purpose: Purpose, now: dt.datetime) -> None:
    """Refuse a message of parties that the roster does not let talk, or without the sender's signature."""
    try:
        if (why := roster.silo(silo).why_not(now)) is not None:
            raise WireError(RefusalCode.EXPIRED, f"{why}.")
        key = roster.verify_key(envelope.sender)
    except AuthenticationError as error:
        raise WireError(RefusalCode.ROSTER, str(error)) from error
    try:
        key.verify(purpose, envelope.signed, envelope.signature)
    except AuthenticationError as error:
        raise WireError(RefusalCode.SIGNATURE, str(error)) from error


def _body(envelope: Envelope, kinds: Mapping[str, type[Any]]) -> Any:
    """Return what a message says."""
    if envelope.kind not in kinds:
        raise WireError(
            RefusalCode.FAILED, f"kind must be one of {', '.join(kinds)}, got {shown(envelope.kind)}."
        )
    if envelope.kind not in _LONG and len(envelope.body) > LONGEST_REST:
        raise WireError(
            RefusalCode.FAILED,
            f"{envelope.kind!r} has at most {LONGEST_REST:,} bytes, got {len(envelope.body):,}.",
        )
    return _read(_DECODERS[envelope.kind], envelope.body, f"the body of {envelope.kind!r}")


def _read(decoder: msgspec.msgpack.Decoder[_Struct], data: bytes, what: str) -> _Struct:
    """Return what bytes say, which anybody may have written."""
    try:
        return decoder.decode(data)
    # Python counts levels of arrays, and refuses texts that are not UTF-8.
    except (msgspec.MsgspecError, ParameterError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(RefusalCode.FAILED, f"{what} cannot be read: {shown(str(error))}.") from error


def _sent(envelope: Envelope, longest: int) -> bytes:
    """Return a message as bytes, if the other side reads as many."""
    data = envelope.to_bytes()
    if len(data) > longest or (envelope.kind not in _LONG and len(envelope.body) > LONGEST_REST):
        raise ParameterError(f"a message {envelope.kind!r} of {len(data):,} bytes is too long to send.")
    return data
