"""Descriptors: what a shuffler signs, once for a round, so that all of its parties answer one question.

A server that sends each party another model, or another key, could tell answers apart by their content or by
who can read them. So a silo answers a shuffled query only beside a descriptor, signed by the shuffler, that
names the query, the circle and the server's key.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Final, Self

import msgspec

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.answers import digest_of_run
from tacit.federation.circle import Circle
from tacit.federation.drawn import DrawnStep
from tacit.federation.network.keys import KEY_BYTES, SIGNATURE_BYTES, SealingKey, SigningKey
from tacit.federation.network.roster import SHUFFLER, Roster
from tacit.federation.plan import Plan
from tacit.federation.query import Query

__all__ = [
    "Descriptor",
    "RoundOrder",
    "RunOrder",
    "SignedDescriptor",
    "about_digest",
    "about_order",
    "about_upload",
    "check_descriptor",
]

_VERSION: Final = 2
_LONGEST: Final = 2**20


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """One round of one run at one shuffler. Public.

    Attributes:
        federation: Its name.
        run: `digest_of_run` of plan and run.
        step: Number of the round.
        query: Digest of what is asked (`Query.digest`).
        parties: Whose messages are to be mixed, by their indices, increasing.
        sizes: Public number of units of each, as in the shuffler's roster.
        accounts: Fingerprints of their ledgers, as the server has heard from them; None keeps none.
        session: The shuffler's own 16 random bytes, drawn with its memory of what it released.
        seal: The server's key, which messages are sealed with.
        n_min: Parties below which nothing is released, as in the plan.
        seconds: How long the shuffler waits, by its own clock, from when it opens or reopens the round.
        blob_bytes: Length of every sealed message of the round.
        draw: The key that words are sealed with, by which parties are drawn; empty where all are mixed.
        version: Of this form.
    """

    federation: str
    run: bytes
    step: int
    query: bytes
    parties: tuple[int, ...]
    sizes: tuple[int, ...]
    accounts: tuple[bytes | None, ...]
    session: bytes
    seal: bytes
    n_min: int
    seconds: float
    blob_bytes: int
    draw: bytes = b""
    version: int = _VERSION

    @property
    def circle(self) -> Circle:
        """Whose messages are mixed, as silos bind their answers to it."""
        return Circle(self.parties, self.sizes, self.accounts, self.session)


class SignedDescriptor(msgspec.Struct, frozen=True, dict=True):
    """A descriptor as it travels.

    Attributes:
        body: The descriptor as bytes.
        signature: By the shuffler, about them.
    """

    body: bytes
    signature: bytes

    @classmethod
    def of(cls, descriptor: Descriptor, key: SigningKey) -> Self:
        """Sign a descriptor."""
        body = msgspec.msgpack.encode(descriptor)
        return cls(body, key.sign("descriptor", body))

    @cached_property
    def info(self) -> bytes:
        """32 bytes that stand for the round; messages are sealed as parts of it."""
        return hashlib.sha256(self.body).digest()

    @property
    def round_id(self) -> str:
        """How the shuffler calls the round: 32 hexadecimal digits."""
        return self.info[:16].hex()

    @cached_property
    def descriptor(self) -> Descriptor:
        """What is signed; whether it is has to be checked by `check_descriptor`.

        Raises:
            ParameterError: Not a descriptor, or one of another version.
        """
        try:
            read = msgspec.msgpack.decode(self.body, type=Descriptor)
            _ = read.circle
        except (msgspec.MsgspecError, RefusalError, UnicodeDecodeError, RecursionError) as error:
            raise ParameterError("a shuffler's descriptor must be one: it cannot be read.") from error
        if read.version != _VERSION:
            raise ParameterError(f"the descriptor has version {read.version}; this tacit reads {_VERSION}.")
        return read

    def to_bytes(self) -> bytes:
        """Return what `from_bytes` reads: the signature, then the descriptor."""
        return self.signature + self.body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            ParameterError: Too short or too long.
        """
        if not SIGNATURE_BYTES < len(data) <= _LONGEST:
            raise ParameterError(
                f"a signed descriptor must have {SIGNATURE_BYTES + 1} to {_LONGEST} bytes, got {len(data)}."
            )
        return cls(bytes(data[SIGNATURE_BYTES:]), bytes(data[:SIGNATURE_BYTES]))


def check_descriptor(
    data: bytes, *, roster: Roster, plan: Plan, run: str, query: Query, name: str
) -> SignedDescriptor:
    """Return the descriptor of a shuffled query if a silo may answer beside it.

    What is left for `Silo.answer` to check, with `descriptor.circle`: that the circle hides the silo.

    Args:
        data: What came with the query.
        roster: The silo's own.
        plan: The plan that the silo has accepted.
        run: The run, likewise.
        query: What the silo was asked.
        name: Of the silo.

    Raises:
        AuthenticationError: Not signed by the shuffler of the roster, or with another key for the server.
        RefusalError: It is about another federation, run or query, other sizes than the roster's, another
            `n_min` than the plan's, a circle without this silo, or draws parties where the plan does not, or
            the other way round.
        ParameterError: Not a descriptor.
    """
    signed = SignedDescriptor.from_bytes(data)
    roster.verify_key(SHUFFLER).verify("descriptor", signed.body, signed.signature)
    about = signed.descriptor
    if len(about.seal) != KEY_BYTES or SealingKey(about.seal) != roster.sealing_key:
        raise AuthenticationError("the descriptor names another key of the server than the roster.")
    expected = {
        "federation": roster.federation,
        "run": digest_of_run(plan, run),
        "step": query.step,
        "query": query.digest(),
        "n_min": plan.n_min,
    }
    for field, value in expected.items():
        if getattr(about, field) != value:
            raise RefusalError(f"the descriptor of step {query.step} is about another {field}.")
    if not about.parties or about.parties[-1] >= len(roster.silos) or roster.index(name) not in about.parties:
        raise RefusalError(f"the descriptor of step {query.step} is about a circle without silo {name!r}.")
    if about.sizes != tuple(roster.sizes[k] for k in about.parties):
        raise RefusalError("the descriptor counts on other sizes of silos than the roster.")
    schedule = plan.schedule()
    if isinstance(schedule.step(query.step), DrawnStep) != bool(about.draw):
        raise RefusalError(
            f"the descriptor of step {query.step} must have a key for words where parties are drawn, and "
            "only there."
        )
    if about.draw:
        SealingKey(about.draw)
    return signed


class RunOrder(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a server tells the shuffler of a run.

    Attributes:
        plan: As TOML; the shuffler takes all that it enforces from it.
        run: Name of the run.
    """

    plan: str
    run: str


class RoundOrder(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a server tells the shuffler of a round.

    Attributes:
        run: `digest_of_run` of plan and run.
        step: Number of the round.
        query: Digest of what will be asked (`Query.digest`).
        parties: Whose messages are to be mixed, by their indices, increasing.
        accounts: Fingerprints of their ledgers; None keeps none.
        seconds: How long to wait for them.
    """

    run: bytes
    step: int
    query: bytes
    parties: tuple[int, ...]
    accounts: tuple[bytes | None, ...]
    seconds: float


def about_upload(round_id: str, parcel: bytes | bytearray) -> bytes:
    """Return what a silo signs, for the purpose "upload": the round and the parcel."""
    return about_digest(round_id, hashlib.sha256(parcel).digest())


def about_digest(round_id: str, digest: bytes) -> bytes:
    """Return the same, from the SHA-256 of the parcel: who sends is known before any of it is read."""
    return round_id.encode() + b"\0" + digest


def about_order(what: str, body: bytes = b"") -> bytes:
    """Return what a server signs, for the purpose "order".

    Args:
        what: "run", "round", or "batch " and the round's id.
        body: The order as bytes.
    """
    return what.encode() + b"\0" + hashlib.sha256(body).digest()
