"""The linear maps by which parties shorten their vectors: party i sends y_i = G_i x_i, k numbers of d.

A map is a public function of the seed, the round and the party, so that only the k numbers travel and the
server rebuilds the map of whoever answered. Maps are scaled such that the trace
of S = sum_i G_i^T G_i is n k (on average), the scale on which a transform T(lambda) has T(1) = 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tacit.compression.count_sketch import CountSketch
from tacit.compression.dense import DenseOperator, draw_gaussian, draw_haar, draw_row_normalized
from tacit.compression.srht import Srht
from tacit.compression.subsample import Subsample
from tacit.errors import LARGEST_COUNT, ParameterError, check_choice, check_count
from tacit.numerics import Array, IntArray, as_rows, next_power_of_two
from tacit.randomness import PublicStream

__all__ = ["MapKind", "Maps", "draw_maps", "padded_dim"]

MapKind = Literal["subsample", "srht", "haar", "gaussian", "row_normalized_gaussian", "count_sketch"]
"""Kinds of maps; `subsample`, `srht` and `haar` have orthonormal rows."""

_ORTHONORMAL = ("subsample", "srht", "haar")


class _Operator(Protocol):
    """The maps of n parties on d' coordinates; every kind knows its own fast products."""

    def encode(self, X: Array) -> Array:
        """Return G_i x_i, shape (n, k), from (n, d')."""
        ...

    def adjoint(self, Y: Array) -> Array:
        """Return G_i^T y_i, shape (n, d'), from (n, k)."""
        ...

    def project(self, v: Array) -> Array:
        """Return G_i v, shape (n, k), from one vector (d',)."""
        ...

    def back_project(self, Y: Array) -> Array:
        """Return sum_i G_i^T y_i, shape (d',), from (n, k)."""
        ...

    def gram(self) -> Array:
        """Return K = G G^T, shape (n k, n k)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Maps:
    """The maps of the parties that take part in one round; made by `draw_maps`.

    Attributes:
        kind: Which maps.
        dim: Number d of coordinates of a vector.
        k: Numbers that a party sends.
        parties: Shape (n,), distinct ids; row i of an argument belongs to party `parties[i]`.
        operator: The products of this kind, on `padded_dim` coordinates.
    """

    kind: MapKind
    dim: int
    k: int
    parties: IntArray
    operator: _Operator

    @property
    def n(self) -> int:
        """Number of parties."""
        return len(self.parties)

    @property
    def padded_dim(self) -> int:
        """Coordinates that the maps work on: the next power of two for `srht`, else `dim`."""
        return padded_dim(self.kind, self.dim)

    @property
    def orthonormal(self) -> bool:
        """Whether G_i G_i^T is the identity; then a message is no longer than the vector."""
        return self.kind in _ORTHONORMAL

    def encode(self, X: npt.ArrayLike) -> Array:
        """Compute what all parties send.

        Args:
            X: Shape (n, dim), finite; row i is the vector of party `parties[i]`.

        Returns:
            Shape (n, k): row i is G_i x_i; float32 if `X` is, else float64.

        Raises:
            ParameterError: another shape or dtype, NaN or an infinity.

        Cost:
            Per party O(d' log d') for `srht`, O(d) for `subsample` and `count_sketch`, else O(k d).
        """
        rows = as_rows("X", X)
        _check_shape("X", rows, (self.n, self.dim))
        coded = self.operator.encode(self._pad(rows))
        return coded.astype(rows.dtype, copy=False)

    def adjoint(self, Y: npt.ArrayLike) -> Array:
        """Compute G_i^T y_i of every party.

        Args:
            Y: Shape (n, k), finite.

        Returns:
            Shape (n, dim), float64.

        Raises:
            ParameterError: another shape or dtype, NaN or an infinity.
        """
        return self.operator.adjoint(self.messages(Y))[:, : self.dim]

    def adjoint_sum(self, Y: npt.ArrayLike) -> Array:
        """Compute sum_i G_i^T y_i without n vectors of length d in memory.

        Args:
            Y: Shape (n, k), finite.

        Returns:
            Shape (dim,), float64.

        Raises:
            ParameterError: another shape or dtype, NaN or an infinity.
        """
        return self.operator.back_project(self.messages(Y))[: self.dim]

    def gram(self) -> Array:
        """Compute K = G G^T of the stacked maps, on all `padded_dim` coordinates.

        Returns:
            Shape (n k, n k), float64; the rows of party i are i k, ..., (i + 1) k - 1.
        """
        return self.operator.gram()

    def matrices(self) -> Array:
        """Compute the maps as matrices.

        Returns:
            Shape (n, k, padded_dim), float64.
        """
        if isinstance(self.operator, Srht):
            return self.operator.matrices()
        units = np.eye(self.k)
        return np.stack([self.operator.adjoint(np.tile(unit, (self.n, 1))) for unit in units], axis=1)

    def messages(self, Y: npt.ArrayLike) -> Array:
        """Check messages and return them in float64, shape (n, k).

        Raises:
            ParameterError: another shape or dtype, NaN or an infinity.
        """
        rows = as_rows("Y", Y)
        _check_shape("Y", rows, (self.n, self.k))
        return rows.astype(np.float64, copy=False)

    def _pad(self, rows: Array) -> Array:
        """Return rows with zeros appended up to `padded_dim`."""
        missing = self.padded_dim - self.dim
        return np.pad(rows, ((0, 0), (0, missing))) if missing else rows


def draw_maps(
    kind: MapKind,
    dim: int,
    k: int,
    parties: int | Iterable[int],
    *,
    seed: int,
    round: int,
    purpose: str = "",
) -> Maps:
    """Draw the maps of the parties of one round; equal on all machines.

    A party's map depends on `kind`, `dim`, `k`, `seed`, `round`, `purpose` and its own id only: a party draws
    its own, and the server draws those of the parties that answered.

    Args:
        kind: Which maps.
        dim: Number of coordinates of a vector, >= 1.
        k: Numbers that a party sends, from 1 to `dim` (for `srht`, to the next power of two).
        parties: How many parties (ids 0, 1, ...), or their distinct ids.
        seed: Public seed of the run, >= 0.
        round: Number of the round, >= 0. Maps of different rounds must differ, so never use one twice.
        purpose: Tells apart several sets of maps in one round, say one per cluster.

    Returns:
        The maps, drawn from one `PublicStream` per party. Normals come from `dense.draw_standard_normals`.

    Raises:
        ParameterError: unknown kind, `dim`, `k` or an id out of range, no party or one that comes twice.

    Example:
        >>> maps = draw_maps("srht", 4, 2, [0, 7], seed=1, round=0)
        >>> maps.encode([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]).shape
        (2, 2)
        >>> alone = draw_maps("srht", 4, 2, [7], seed=1, round=0)
        >>> bool((alone.gram() == maps.gram()[2:, 2:]).all())
        True

    Reference:
        Jiang (2025), Section 2.4, which names these kinds.
    """
    check_choice("kind", kind, get_args(MapKind))
    check_count("dim", dim)
    size = padded_dim(kind, dim)
    check_count("k", k, high=size)
    ids = _party_ids(parties)
    name = f"compression/{kind}/{dim}/{k}/{purpose}"
    streams = [PublicStream(seed, round, party=party, purpose=name) for party in ids]
    operator: _Operator
    match kind:
        case "subsample":
            operator = Subsample.draw(streams, size, k)
        case "srht":
            operator = Srht.draw(streams, size, k)
        case "haar":
            operator = DenseOperator(draw_haar(streams, size, k))
        case "gaussian":
            operator = DenseOperator(draw_gaussian(streams, size, k))
        case "row_normalized_gaussian":
            operator = DenseOperator(draw_row_normalized(streams, size, k))
        case "count_sketch":
            operator = CountSketch.draw(streams, size, k)
    return Maps(kind=kind, dim=dim, k=k, parties=np.array(ids, dtype=np.int64), operator=operator)


def padded_dim(kind: MapKind, dim: int) -> int:
    """Return the coordinates that maps of a kind work on: `srht` pads to the next power of two."""
    return next_power_of_two(dim) if kind == "srht" else dim


def _party_ids(parties: int | Iterable[int]) -> list[int]:
    """Return the ids of the parties."""
    if not isinstance(parties, Iterable):
        check_count("parties", parties)
        return list(range(parties))
    ids = list(parties)
    for party in ids:
        check_count("a party", party, low=0, high=LARGEST_COUNT)
    if not ids or len(set(ids)) != len(ids):
        raise ParameterError(f"parties must be one or more distinct ids, got {len(ids)} ids.")
    return [int(party) for party in ids]


def _check_shape(name: str, values: Array, shape: tuple[int, ...]) -> None:
    """Refuse another shape, NaN and infinities; no entry is quoted."""
    if values.shape != shape:
        raise ParameterError(f"{name} must have shape {shape}, got {values.shape}.")
    if not np.all(np.isfinite(values)):
        raise ParameterError(f"{name} must be finite, got a NaN or an infinity.")
