"""What a party sends: a label and numbers, packed to the bit."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, check_count
from tacit.means.bit_counts import read_ones, row_bytes, write_ones
from tacit.numerics import Array, IntArray, settle

__all__ = [
    "COUNTS_HEADER_BYTES",
    "HEADER_BYTES",
    "LARGEST_RADIUS",
    "MOST_COORDINATES",
    "SMALLEST_RADIUS",
    "Message",
    "Round",
    "by_sender",
    "check_released",
    "check_senders",
    "total",
]

SMALLEST_RADIUS = 2.0**-100
"""Below this radius a noisy sum counts as zero: near the smallest floats, clipping is not exact."""

LARGEST_RADIUS = 2.0**100
"""Above this radius a round is refused: sums could overflow."""

MOST_COORDINATES = 2**31
"""Coordinates of a row: a message counts its entries in 32 bits."""

_VERSION = 1
_HEADER = struct.Struct(">BBIIB")  # version, kind, label, number of entries, bits per entry
HEADER_BYTES = _HEADER.size
_INTEGERS, _COUNTS = 3, 4
_SYMBOLS = struct.Struct(">I")  # of counts: how many one-bit symbols are behind every entry
COUNTS_HEADER_BYTES = HEADER_BYTES + _SYMBOLS.size
_KINDS: dict[Any, int] = {np.dtype(np.float32): 1, np.dtype(np.float64): 2, np.dtype(np.int64): _INTEGERS}
_WIRE: dict[int, np.dtype[Any]] = {1: np.dtype(">f4"), 2: np.dtype(">f8")}
_NATIVE = {1: np.float32, 2: np.float64}


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """The public facts of one round of mean estimation.

    Attributes:
        n: Number of rows that the plan expects, >= 1; the divisor of the mean.
        radius: Norm bound of a row, 0 to `LARGEST_RADIUS`; longer rows are clipped to it.
        number: Which round of the run this is, >= 0.
        parties: How many parties hold the rows, >= 1.
        seed: Seed of the maps that all parties share, >= 0; never of noise.

    Raises:
        ParameterError: A value is out of its range.
    """

    n: int
    radius: float
    number: int = 0
    parties: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        settle(self)
        check_count("n", self.n)
        if not 0 <= self.radius <= LARGEST_RADIUS:  # stated as what is allowed: NaN fails it
            raise ParameterError(f"radius must be from 0 to 2**100, got {self.radius!r}.")
        check_count("number", self.number, low=0)
        check_count("parties", self.parties)
        check_count("seed", self.seed, low=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of one party, or what a shuffler has mixed of several.

    Some messages are multisets of one-bit symbols, each sealed by itself. Only how many are 1 matters, so a
    message holds these counts; on the wire stand all the bits, which are what is sent and counted. They come
    sorted, ones first: an order that the counts alone decide tells as little as a random one.

    Attributes:
        payload: Shape (m,): float32, float64, or int64 with `width` bits an entry, or numbers of ones.
        width: Bits of an integer entry, 1 to 64; 0 for floats.
        label: Block, level or arm that the message is about, 0 to 2**32 - 1.
        sender: Index of the party; None once a shuffler has erased it. Never on the wire.
        symbols: Number of one-bit symbols of which each entry counts the ones, below 2**32 on the wire; 0
            where the entries are what is sent.
    """

    payload: Array
    width: int = 0
    label: int = 0
    sender: int | None = None
    symbols: int = 0

    def to_bytes(self) -> bytes:
        """Pack the message: an 11-byte header, then floats, or integers of `width` bits each.

        Returns:
            Version, kind, label, number of entries and bits an entry, big-endian, then the entries, most
            significant bit first, and zero bits up to a whole byte. Counts are written as the number of
            symbols, in 32 bits, and their bits, for every entry up to a whole byte. The length depends on the
            shape, the dtype, `width` and `symbols` only.

        Raises:
            ParameterError: The payload has another shape or dtype, an entry does not fit into `width` bits or
                is no count of `symbols`, or `label` is out of range.
        """
        payload = self.payload
        kind = _KINDS.get(payload.dtype)
        if kind is None or payload.ndim != 1:
            raise ParameterError(
                "payload must have shape (m,) and dtype float32, float64 or int64, "
                f"got shape {payload.shape}, dtype {payload.dtype}."
            )
        body: list[bytes | memoryview]
        if self.symbols:
            check_count("symbols", self.symbols, high=2**32 - 1)
            if kind != _INTEGERS:
                raise ParameterError(f"payload must count in int64, got {payload.dtype}.")
            kind, width = _COUNTS, 1
            body = [_SYMBOLS.pack(self.symbols), write_ones(payload, self.symbols)]
        elif kind == _INTEGERS:
            width, body = self.width, [_pack(payload, self.width)]
        else:
            width, body = 8 * payload.itemsize, [payload.astype(_WIRE[kind]).tobytes()]
        try:
            return b"".join([_HEADER.pack(_VERSION, kind, self.label, payload.size, width), *body])
        except struct.error:
            raise ParameterError(
                "label and the number of entries must be whole numbers from 0 to 2**32 - 1, "
                f"got {self.label!r} and {payload.size}."
            ) from None

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, *, sender: int | None = None) -> Message:
        """Read what `to_bytes` wrote; no two byte strings give the same message.

        Args:
            data: From anybody; the memory used stays proportional to its length, whatever the header says.
            sender: Who sent it, as the transport knows it.

        Raises:
            ParameterError: Another version, an unknown kind, a length that does not fit the header, padding
                that is not zero, or bits of a count that are not sorted.
        """
        if len(data) < HEADER_BYTES:
            raise ParameterError(f"a message must have at least {HEADER_BYTES} bytes, got {len(data)}.")
        version, kind, label, count, width = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise ParameterError(f"the message has version {version}; this tacit reads {_VERSION}.")
        if kind == _COUNTS and width == 1:
            ones, symbols = _read_counts(data, count)
            return cls(payload=ones, label=label, sender=sender, symbols=symbols)
        wire = _WIRE.get(kind)
        known = 1 <= width <= 64 if wire is None else width == 8 * wire.itemsize
        if not known or (wire is None and kind != _INTEGERS):
            raise ParameterError(f"the message has an unknown form: kind {kind}, {width} bits an entry.")
        # Checked before anything of that size is made: the header may promise what is not there.
        length = HEADER_BYTES + (count * width + 7) // 8
        if len(data) != length:
            raise ParameterError(f"the message must have {length} bytes, got {len(data)}.")
        body = memoryview(data)[HEADER_BYTES:]
        if wire is None:
            return cls(payload=_unpack(body, count, width), width=width, label=label, sender=sender)
        payload = np.frombuffer(body, dtype=wire).astype(_NATIVE[kind])
        return cls(payload=payload, label=label, sender=sender)


def total(messages: list[Message], dim: int, dtype: type[np.generic]) -> Array:
    """Add the payloads of messages.

    Args:
        messages: At least one.
        dim: Number of entries that every payload must have.
        dtype: Type that every payload must have.

    Returns:
        Shape (dim,): int64 (modulo 2**64) for int64 payloads, else float64.

    Raises:
        ParameterError: No messages, one of another length or type, a NaN or an infinity, or a sum of floats
            that overflows.
    """
    _check_any(messages)
    wide = np.int64 if dtype is np.int64 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):
        for message in messages:
            # One float among integers would turn the sum into floats and round what noise is yet to hide.
            _check_payload(message, dim, np.dtype(dtype))
        if len(messages) == 1:
            return messages[0].payload.astype(wide)
        summed = np.asarray(np.array([m.payload for m in messages]).sum(axis=0, dtype=wide))
    return summed if dtype is np.int64 else check_released(summed)


def check_senders(messages: list[Message]) -> None:
    """Refuse two messages of one sender: what is counted twice moves twice as far, under the same noise."""
    senders = [message.sender for message in messages if message.sender is not None]
    if len(set(senders)) != len(senders):
        raise ParameterError("decode needs at most one message of each sender.")


def by_sender(
    messages: list[Message], forms: Sequence[tuple[int, type[np.generic], int | None]]
) -> tuple[list[int], list[Array]]:
    """Arrange the messages of parties that each send one message per label 0, 1, ...

    Args:
        messages: In any order.
        forms: For every label: number of entries, their type, and their width (0 for floats, None for any).

    Returns:
        The senders, increasing, n of them; and for every label an array of shape (n, entries), whose rows
        belong to them.

    Raises:
        ParameterError: No messages; one without a sender, of another form, or with a NaN or an infinity; or a
            sender that did not send exactly one message of each label.
    """
    _check_any(messages)
    found: dict[tuple[int, int], Message] = {}
    for message in messages:
        if message.sender is None:
            raise ParameterError(
                "decode needs the sender of every message, which a shuffler erases: a vector is decoded by "
                "the map of its party."
            )
        check_count("sender", message.sender, low=0, high=LARGEST_COUNT)
        check_count("label", message.label, low=0, high=len(forms) - 1)
        count, dtype, width = forms[message.label]
        with np.errstate(over="ignore", invalid="ignore"):
            _check_payload(message, count, np.dtype(dtype))
        if width is not None and message.width != width:
            raise ParameterError(f"a message must have {width} bits an entry, got {message.width}.")
        key = (int(message.sender), int(message.label))
        if key in found:
            raise ParameterError(f"decode needs one message of each sender, got two of sender {key[0]}.")
        found[key] = message
    senders = sorted({sender for sender, _ in found})
    if len(found) != len(senders) * len(forms):
        raise ParameterError(f"decode needs {len(forms)} messages of each sender, got fewer of one.")
    return senders, [
        np.stack([found[sender, label].payload for sender in senders]) for label in range(len(forms))
    ]


def check_released(estimate: Array) -> Array:
    """Return a result, if it is finite.

    Raises:
        ParameterError: It is not: finite numbers of hostile size were sent.
    """
    if not np.all(np.isfinite(estimate)):
        raise ParameterError("messages must not overflow when they are added; one holds huge numbers.")
    return estimate


def _check_any(messages: list[Message]) -> None:
    """Refuse an empty batch."""
    if not messages:
        raise ParameterError("decode needs at least one message, got none.")


def _check_payload(message: Message, count: int, dtype: np.dtype[Any]) -> None:
    """Refuse another form, and floats that no party can have written; huge ones may make NumPy warn."""
    payload = message.payload
    if payload.shape != (count,) or payload.dtype != dtype:
        raise ParameterError(
            f"a message must hold {count} numbers of type {dtype.name}, got shape {payload.shape}, dtype "
            f"{payload.dtype}."
        )
    # Not taken for zero: who sends a NaN has not followed the protocol, and should be left out by name.
    # One infinity or NaN makes the square infinite or NaN, in a third of the time of a look at each.
    if not (dtype.kind != "f" or math.isfinite(payload @ payload) or np.isfinite(payload).all()):
        raise ParameterError("a message must hold finite numbers, got a NaN or an infinity.")


def _read_counts(data: bytes | memoryview, count: int) -> tuple[IntArray, int]:
    """Return the counts of a message, and of how many symbols they are."""
    if len(data) < COUNTS_HEADER_BYTES:
        raise ParameterError(
            f"a message of counts must have at least {COUNTS_HEADER_BYTES} bytes, got {len(data)}."
        )
    (symbols,) = _SYMBOLS.unpack_from(data, HEADER_BYTES)
    if not symbols:
        raise ParameterError("a message of counts must have at least one symbol, got none.")
    # Checked before anything of that size is made, as above.
    length = COUNTS_HEADER_BYTES + count * row_bytes(symbols)
    if len(data) != length:
        raise ParameterError(f"the message must have {length} bytes, got {len(data)}.")
    return read_ones(memoryview(data)[COUNTS_HEADER_BYTES:], count, symbols), symbols


def _container(width: int) -> int:
    """Return the bits of the smallest machine integer that holds `width` bits."""
    return 8 if width <= 8 else 16 if width <= 16 else 32 if width <= 32 else 64


def _pack(values: IntArray, width: int) -> bytes:
    """Pack integers in two's complement, `width` bits each, most significant bit first."""
    check_count("width", width, high=64)
    if width == 1:  # -1 or 0
        negative = values < 0
        if np.count_nonzero(values + negative):
            raise ParameterError("an entry of the message does not fit into 1 bits.")
        return np.packbits(negative).tobytes()
    if (
        width < 64
        and values.size
        and not -(2 ** (width - 1)) <= values.min() <= values.max() < 2 ** (width - 1)
    ):
        raise ParameterError(f"an entry of the message does not fit into {width} bits.")
    room = _container(width)
    aligned = (values << (room - width)).astype(f">i{room // 8}")
    if room == width:
        return aligned.tobytes()
    bits = np.unpackbits(aligned.view(np.uint8)).reshape(-1, room)
    return np.packbits(bits[:, :width]).tobytes()


def _unpack(body: memoryview, count: int, width: int) -> IntArray:
    """Read what `_pack` wrote."""
    room = _container(width)
    wire = f">i{room // 8}"
    if room == width:
        return np.frombuffer(body, dtype=wire).astype(np.int64)
    padding = -count * width % 8
    if padding and body[-1] & ((1 << padding) - 1):
        raise ParameterError(f"the last {padding} bits of the message must be zero.")
    octets = np.frombuffer(body, dtype=np.uint8)
    if width == 1:
        return -np.unpackbits(octets, count=count).astype(np.int64)
    bits = np.zeros((count, room), dtype=np.uint8)
    bits[:, :width] = np.unpackbits(octets, count=count * width).reshape(count, width)
    aligned = np.packbits(bits, axis=1).view(wire).reshape(count)
    return aligned.astype(np.int64) >> (room - width)
