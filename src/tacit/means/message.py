"""What a party sends: a label and numbers, packed to the bit."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.numerics import Array

__all__ = ["HEADER_BYTES", "Message", "Round"]

_VERSION = 1
_HEADER = struct.Struct(">BBIIB")  # version, kind, label, number of entries, bits per entry
HEADER_BYTES = _HEADER.size
_FLOATS = {1: np.dtype(">f4"), 2: np.dtype(">f8")}
_INTEGERS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """The public facts of one round of mean estimation.

    Attributes:
        n: Number of rows that the plan expects; the divisor of the mean.
        radius: Norm bound of a row; longer rows are clipped to it.
        number: Which round of the run this is.
        parties: How many parties hold the rows.
        seed: Seed of the maps that all parties share; never of noise.
    """

    n: int
    radius: float
    number: int = 0
    parties: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of one party.

    Attributes:
        payload: Shape (m,): float32, float64, or int64 with `width` bits an entry.
        width: Bits of an integer entry, 1 to 64; 0 for floats.
        label: Block, level or arm that the message is about.
        sender: Index of the party; None once a shuffler has erased it. Never on the wire.
    """

    payload: npt.NDArray[np.generic]
    width: int = 0
    label: int = 0
    sender: int | None = None

    def to_bytes(self) -> bytes:
        """Pack the message: an 11-byte header, then floats, or integers of `width` bits each."""
        dtype = self.payload.dtype
        if dtype.kind == "f":
            kind = 1 if dtype.itemsize == 4 else 2
            body = self.payload.astype(_FLOATS[kind], copy=False).tobytes()
            return _HEADER.pack(_VERSION, kind, self.label, self.payload.size, 8 * dtype.itemsize) + body
        header = _HEADER.pack(_VERSION, _INTEGERS, self.label, self.payload.size, self.width)
        return header + _pack(self.payload.astype(np.int64, copy=False), self.width)

    @classmethod
    def from_bytes(cls, data: bytes, *, sender: int | None = None) -> Message:
        """Read what `to_bytes` wrote.

        Raises:
            ParameterError: Another version, an unknown kind, or a length that does not fit the header.
        """
        if len(data) < HEADER_BYTES:
            raise ParameterError(f"a message must have at least {HEADER_BYTES} bytes, got {len(data)}.")
        version, kind, label, count, width = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise ParameterError(f"the message has version {version}; this tacit reads {_VERSION}.")
        if kind not in (*_FLOATS, _INTEGERS) or not 1 <= width <= 64:
            raise ParameterError(f"the message has an unknown form: kind {kind}, {width} bits an entry.")
        if kind in _FLOATS and width != 8 * _FLOATS[kind].itemsize:
            raise ParameterError(f"the message has {width} bits an entry for a float kind {kind}.")
        if len(data) != HEADER_BYTES + (count * width + 7) // 8:
            raise ParameterError(
                f"the message must have {HEADER_BYTES + (count * width + 7) // 8} bytes, got {len(data)}."
            )
        if kind in _FLOATS:
            dtype = _FLOATS[kind]
            payload = np.frombuffer(data, dtype=dtype, offset=HEADER_BYTES).astype(dtype.newbyteorder("="))
            return cls(payload=payload, label=label, sender=sender)
        return cls(payload=_unpack(data, count, width), width=width, label=label, sender=sender)


def _pack(values: npt.NDArray[np.int64], width: int) -> bytes:
    """Pack integers in two's complement, `width` bits each, most significant bit first."""
    if values.size and (values.min() < -(2 ** (width - 1)) or values.max() >= 2 ** (width - 1)):
        raise ParameterError(f"an entry of the message does not fit into {width} bits.")
    octets = values.astype(">i8").view(np.uint8).reshape(-1, 8)
    return np.packbits(np.unpackbits(octets, axis=1)[:, 64 - width :]).tobytes()


def _unpack(data: bytes, count: int, width: int) -> npt.NDArray[np.int64]:
    """Read what `_pack` wrote."""
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8, offset=HEADER_BYTES), count=count * width)
    bits = bits.reshape(count, width)
    sign = np.repeat(bits[:, :1], 64 - width, axis=1)
    return np.packbits(np.hstack([sign, bits]), axis=1).view(">i8").reshape(count).astype(np.int64)


def total(messages: list[Message], dim: int) -> Array:
    """Add the payloads of messages; every payload must have `dim` entries.

    Raises:
        ParameterError: No messages, or one of another length.
    """
    if not messages:
        raise ParameterError("decode needs at least one message, got none.")
    for message in messages:
        if message.payload.shape != (dim,):
            raise ParameterError(f"a message must hold {dim} numbers, got {message.payload.size}.")
    if len(messages) == 1:
        return messages[0].payload.astype(np.float64)
    stacked = np.stack([m.payload for m in messages])
    exact = stacked.dtype.kind == "i"
    return np.asarray(stacked.sum(axis=0, dtype=np.int64 if exact else np.float64), dtype=np.float64)
