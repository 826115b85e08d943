"""Queries as bytes, exactly: every bit of every point and radius, and nothing else."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from tacit.errors import LONGEST_NAME, ParameterError, RefusalError, shown
from tacit.federation.limits import MOST_POINTS, MOST_STATISTICS
from tacit.federation.network.bodies import RefusalCode, WireError
from tacit.federation.query import Query
from tacit.numerics import Array

__all__ = ["decode_query", "encode_query"]

_MOST_AXES: Final = 32
_LONGEST_AXIS: Final = 2**40
_DTYPES: Final = {"<f8": np.float64, "<f4": np.float32}


class _Sent(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One point: its name, its dtype, its shape, and its entries row by row."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    entries: memoryview


class _Point(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The same as it arrives."""

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    dtype: Literal["<f8", "<f4"]
    shape: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=0, le=_LONGEST_AXIS)], ...],
        msgspec.Meta(max_length=_MOST_AXES),
    ]
    entries: memoryview


class _Query(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A query as it arrives: views of what was received, since points are long."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    points: Annotated[tuple[_Point, ...], msgspec.Meta(max_length=MOST_POINTS)]
    radius: Annotated[tuple[float, ...], msgspec.Meta(max_length=MOST_STATISTICS)]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Query)


def encode_query(query: Query) -> bytes:
    """Write what `decode_query` reads; points keep their order, and no two queries have the same bytes."""
    points = tuple(
        _Sent(name, array.dtype.newbyteorder("<").str, array.shape, _little(array).data.cast("B"))
        for name, array in query.at.items()
    )
    return _ENCODER.encode((query.step, points, query.radius))


def decode_query(data: bytes) -> Query:
    """Read a query, through the door that all queries pass.

    Raises:
        WireError: The bytes are no query, a point has another size than its shape, or `Query` refuses it.
    """
    try:
        read = _DECODER.decode(data)
        at = {point.name: _array(point) for point in read.points}
        if len(at) < len(read.points):
            raise ParameterError("a point of the query stands twice.")
        return Query(read.step, at, read.radius)
    except (msgspec.MsgspecError, ParameterError, RefusalError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(RefusalCode.QUERY, f"the query cannot be read: {shown(str(error))}.") from error


def _little(array: Array) -> Array:
    """Return entries in the order in which they are sent, lowest byte first."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1)


def _array(point: _Point) -> Array:
    """Return a view of the entries of a point."""
    dtype = np.dtype(point.dtype)
    wanted = math.prod(point.shape) * dtype.itemsize
    if len(point.entries) != wanted:
        raise ParameterError(f"a point must have the {wanted:,} bytes of its shape.")
    try:
        entries = np.frombuffer(point.entries, dtype=dtype).reshape(point.shape)
    except ValueError as error:  # an empty array may have axes beyond what memory can address
        raise ParameterError("a point has a shape that no array can have.") from error
    return entries.astype(_DTYPES[point.dtype], copy=False)
