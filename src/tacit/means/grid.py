"""Rounding rows to a grid at random, up with the probability of the fraction.

`round_rows`, `rounded_sum` and `scaled_sum` are for release: the price of binomial sums covers each of their
rounding errors. `FastRounding` is for simulation at the size of real federations, where only the sum of all
rounded rows is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.means.message import SMALLEST_RADIUS
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import NORM_SLACK, Array, IntArray, clip_rows, row_norms

__all__ = [
    "FIXED_HIGH",
    "FastRounding",
    "fixed_rows",
    "on_grid",
    "round_rows",
    "rounded_sum",
    "scaled_rows",
    "scaled_sum",
    "simulated_sum",
]

_BITS = 16
"""Binary places of a grid step that `FastRounding` keeps."""

_ENTRIES_AT_ONCE = 2**18
"""Few enough for all buffers to stay in the cache of a core."""

_ROUNDED_AT_ONCE = 2**15
"""The same for sums for release."""


@dataclass(frozen=True)
class _Places:
    """How floats hold multiples of a part of a grid step: as the low half of their bits.

    Attributes:
        places: Binary places of a step that are kept.
        whole: Floats from here on are whole numbers; its bits below the places are zero.
        coarse: Steps of the finest grid whose multiples have room above `whole`.
        error: Bound on the relative error of a row that is scaled.
        floats: Their type.
        ints: Of the same bits.
        parts: Of the places alone.
    """

    places: int
    whole: float
    coarse: int
    error: float
    floats: type[np.floating[Any]]
    ints: type[np.signedinteger[Any]]
    parts: type[np.unsignedinteger[Any]]

    @property
    def high(self) -> int:
        """What the bits of `whole` are above the places."""
        return int(self.floats(self.whole).view(self.ints)) >> self.places

    def inset(self, resolution: int, dim: int) -> float:
        """How far inside the ball rows are put, relative to it, lest their multiples leave it."""
        # Half a multiple for each coordinate of either row, and as much to spare.
        return self.error + math.sqrt(dim) * (2.0**-50 + 2.0 ** (1 - self.places) / resolution)

    def per_unit(self, radius: float, resolution: int) -> float:
        """Return how many multiples a coordinate of 1 is."""
        return resolution / 2 / radius * 2.0**self.places

    def middle(self, resolution: int) -> float:
        """Return the float that stands for a coordinate of 0."""
        return self.whole + resolution * 2.0 ** (self.places - 1)


_WIDE = _Places(32, 1.5 * 2.0**52, 2**18, 2 * NORM_SLACK, np.float64, np.int64, np.uint32)
_NARROW = _Places(16, 2.0**23, 2**7 - 1, 2 * NORM_SLACK + 2.0**-21, np.float32, np.int32, np.uint16)

FIXED_HIGH = _WIDE.high
"""What the bits of the constant of `fixed_rows` are above its places; those below are zero."""

_MOST_INSET = 2.0**-10
"""Rows of very many coordinates on a very coarse grid are kept in 64 bits: all would come out shorter."""

_LARGEST = 2.0**100
"""A larger factor might overflow in single precision."""


def on_grid(rows: Array, radius: float, resolution: int) -> Array:
    """Clip rows and express them in grid steps of the range [-radius, radius] of a coordinate.

    The distance of two rows is then at most `resolution` in the L2 norm, all rounding errors of the floating
    point included, also that of the uniform number in `round_rows`.

    Args:
        rows: Shape (k, d). A row with a NaN or an infinity counts as zero.
        radius: Of the ball; below `SMALLEST_RADIUS` all rows count as zero.
        resolution: Grid steps g, >= 1.

    Returns:
        Shape (k, d), float64 in [0, g].
    """
    if radius < SMALLEST_RADIUS:
        return np.full(rows.shape, resolution / 2)
    # Taken off the ball: the error of clipping, NORM_SLACK; and those of division, shift, scaling and the
    # uniform number, 3 g 2**-53 in all for each coordinate of either row.
    inset = 2 * NORM_SLACK + 8 * math.sqrt(rows.shape[1]) * 2.0**-53
    clipped = clip_rows(rows.astype(np.float64, copy=False), radius * (1 - inset))
    return np.clip((clipped / radius + 1) * (resolution / 2), 0, resolution)


def round_rows(rows: Array, radius: float, resolution: int, *, rng: np.random.Generator) -> IntArray:
    """Round rows to the grid, each coordinate on its own.

    Args:
        rows: Shape (k, d).
        radius: Of the ball that rows are clipped to.
        resolution: Grid steps g of [-radius, radius], >= 1.
        rng: Secret randomness of the party.

    Returns:
        Shape (k, d), int64 from 0 to g; its mean is `on_grid` to one part in 2**53.

    Example:
        >>> round_rows(np.array([[1.0, 0.0], [0.0, -1.0]]), 1.0, 4, rng=np.random.default_rng(0)).tolist()
        [[4, 2], [2, 0]]
    """
    scaled = on_grid(rows, radius, resolution)
    # floor(scaled + U) could be rounded up to g + 1 in floating point.
    low = np.floor(scaled)
    return low.astype(np.int64) + (rng.random(scaled.shape) < scaled - low)


def rounded_sum(rows: Array, radius: float, resolution: int, *, rng: np.random.Generator) -> IntArray:
    """Add rows that are rounded as by `round_rows`, in a third of the time; for release too.

    On fine grids it is `round_rows`. Else rows are kept to 2**-32 of a step, the nearest multiple, and the
    ball is smaller by what that can move them: the distance of two rows is still at most `resolution`.

    Args:
        rows: Shape (k, d).
        radius: Of the ball that rows are clipped to.
        resolution: Grid steps g of [-radius, radius], >= 1.
        rng: Secret randomness of the party.

    Returns:
        Shape (d,), int64.
    """
    dim = rows.shape[1]
    summed, size = np.zeros(dim, dtype=np.int64), max(1, _ROUNDED_AT_ONCE // dim)
    coarse = resolution <= _WIDE.coarse and radius >= SMALLEST_RADIUS
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        if coarse:
            summed += _cut(fixed_rows(block, radius, resolution), rng)
        else:
            summed += round_rows(block, radius, resolution, rng=rng).sum(axis=0)
    return summed


def fixed_rows(rows: Array, radius: float, resolution: int) -> IntArray:
    """Clip rows and express them as whole multiples of 2**-32 grid steps, plus a constant.

    The distance of two rows is at most `resolution` steps in the L2 norm, as of `on_grid`.

    Args:
        rows: Shape (k, d). A row with a NaN or an infinity counts as zero.
        radius: Of the ball, >= `SMALLEST_RADIUS`.
        resolution: Grid steps g, 1 to 2**18.

    Returns:
        Shape (k, d), int64, from 0 to 2**32 g above the number whose high half is `FIXED_HIGH`.
    """
    limit = radius * (1 - _WIDE.inset(resolution, rows.shape[1]))
    norms = row_norms(rows)
    outside = ~(norms <= limit)  # stated as what may stay: a NaN fails every comparison
    odd = outside & ~((norms > 2.0**-400) & (norms < 2.0**400))
    if odd.any():
        rows = rows.astype(np.float64)
        rows[odd] = clip_rows(rows[odd], limit)
        outside &= ~odd
    factor = np.full(len(rows), _WIDE.per_unit(radius, resolution))
    factor[outside] *= limit / norms[outside]
    # At this size floats are whole numbers, and their low bits those of the number of multiples.
    shifted = np.multiply(rows, factor[:, None], dtype=np.float64)
    shifted += _WIDE.middle(resolution)
    return np.asarray(shifted.view(np.int64))


def scaled_sum(
    factors: Array, rows: Array, radius: float, resolution: int, *, rng: np.random.Generator
) -> IntArray:
    """Add rows times their factors, rounded as by `rounded_sum`, without a matrix of them; for release too.

    Args:
        factors: Shape (k,), float32 or float64; as in `scaled_rows`.
        rows: Shape (k, d), float32 or float64, finite. In exact arithmetic on these numbers, no factor times
            its row is longer than the radius, but for `NORM_SLACK`: what is longer is clipped on fine grids
            only.
        radius: Of the ball.
        resolution: Grid steps g of [-radius, radius], >= 1.
        rng: Secret randomness of the party.

    Returns:
        Shape (d,), int64, from 0 to k g.
    """
    k, dim = rows.shape
    summed, size = np.zeros(dim, dtype=np.int64), max(1, _ROUNDED_AT_ONCE // dim)
    coarse = resolution <= _WIDE.coarse and radius >= SMALLEST_RADIUS
    for start in range(0, k, size):
        few, block = factors[start : start + size], rows[start : start + size]
        if coarse:
            summed += _cut(scaled_rows(few, block, radius, resolution), rng)
        else:
            scaled = np.multiply(block, few[:, None], dtype=np.float64)
            summed += round_rows(scaled, radius, resolution, rng=rng).sum(axis=0)
    return np.clip(summed, 0, k * resolution)


def scaled_rows(factors: Array, rows: Array, radius: float, resolution: int) -> IntArray:
    """Express rows times their factors as whole multiples of a part of a grid step, plus a constant.

    The distance of two rows is at most `resolution` steps in the L2 norm, as of `on_grid`.

    Args:
        factors: Shape (k,), float32 or float64. One that is not finite counts as zero, and one with which a
            coordinate of 1 would come out as 2**100 parts of a step.
        rows: Shape (k, d), float32 or float64, finite; no product is longer than the radius.
        radius: Of the ball, >= `SMALLEST_RADIUS`.
        resolution: Grid steps g, 1 to 2**18.

    Returns:
        Shape (k, d). For rows in float32, on grids of up to 127 steps, int32 multiples of 2**-16 steps; else
        as `fixed_rows`.
    """
    dim, kind = rows.shape[1], _WIDE
    if rows.dtype == np.float32 and resolution <= _NARROW.coarse:
        kind = _NARROW if _NARROW.inset(resolution, dim) <= _MOST_INSET else _WIDE
    per_unit = kind.per_unit(radius, resolution) * (1 - kind.inset(resolution, dim))
    factors = factors.astype(np.float64) * per_unit
    factors[~(np.abs(factors) <= _LARGEST)] = 0.0  # stated as what may stay: a NaN fails every comparison
    shifted = np.multiply(rows, factors.astype(kind.floats)[:, None])
    shifted += kind.floats(kind.middle(resolution))
    return np.asarray(shifted.view(kind.ints))


def _cut(fixed: IntArray, rng: np.random.Generator) -> IntArray:
    """Round multiples to grid steps, in place, and return the sum of rows, shape (d,)."""
    kind, flat = _NARROW if fixed.dtype == np.int32 else _WIDE, fixed.reshape(-1)
    words = draw_words(-(-flat.nbytes // 16), rng).view(kind.parts)
    # Adding uniform bits at the places and cutting them off rounds up with the probability of the fraction.
    flat += words[: flat.size]
    flat >>= kind.places
    summed = fixed.sum(axis=0, dtype=kind.ints).astype(np.int64)
    return np.asarray(summed - len(fixed) * kind.high)


class FastRounding:
    """Sums of randomly rounded float32 rows, for simulation: clipped in float32, kept to 2**-16 of a step.

    Args:
        radius: Of the ball, 1e-9 to 1e9.
        resolution: Grid steps g, 1 to 2**14.
        dim: Number of coordinates.
    """

    def __init__(self, radius: float, resolution: int, dim: int) -> None:
        self.radius, self.dim = radius, dim
        self.rows = max(1, _ENTRIES_AT_ONCE // dim)
        self._middle, self._odd = divmod(resolution, 2)
        # Multiples of 2**-16 of a step around the middle, a millionth less: no rounding leaves the grid.
        self._scale = np.float32(resolution / 2 / radius * 2**_BITS * (1 - 2.0**-20))
        size = self.rows * dim
        self._scaled = np.empty(size, dtype=np.float32)
        self._fixed = np.empty(size, dtype=np.int32)
        self._bits = np.empty((size + 1) // 2, dtype=np.uint32)

    @staticmethod
    def allowed(rows: Array, radius: float, resolution: int) -> bool:
        """Whether squares of the rows neither underflow nor overflow, and sums fit into 32 bits."""
        return rows.dtype == np.float32 and 1e-9 < radius < 1e9 and resolution <= 2**14

    def sum(self, rows: Array, rng: np.random.Generator) -> IntArray:
        """Return the sum of the rounded rows, shape (dim,), for rows of shape (k, dim)."""
        summed = np.zeros(self.dim, dtype=np.int64)
        for start in range(0, len(rows), self.rows):
            summed += self._block(rows[start : start + self.rows], rng)
        return summed

    def _block(self, block: Array, rng: np.random.Generator) -> IntArray:
        with np.errstate(over="ignore", invalid="ignore"):
            inside = np.einsum("ij,ij->i", block, block) <= self.radius * self.radius
        if not inside.all():  # a NaN fails every comparison
            block = block.copy()
            block[~inside] = clip_rows(block[~inside], self.radius)
        scaled, fixed = self._scaled[: block.size], self._fixed[: block.size]
        np.multiply(block, self._scale, out=scaled.reshape(block.shape))
        np.rint(scaled, out=scaled)
        np.copyto(fixed, scaled, casting="unsafe")
        # Adding 16 uniform bits and cutting them off rounds up with the probability of the fraction.
        half = (fixed.size + 1) // 2
        words = draw_words((half + 1) // 2, rng).view(np.uint32)[:half]
        bits = np.bitwise_and(words, np.uint32(2**_BITS - 1), out=self._bits[:half]).view(np.int32)
        np.add(fixed[:half], bits, out=fixed[:half])
        bits = np.right_shift(words, np.uint32(_BITS), out=self._bits[:half]).view(np.int32)
        np.add(fixed[half:], bits[: fixed.size - half], out=fixed[half:])
        if self._odd:
            fixed += np.int32(2 ** (_BITS - 1))
        np.right_shift(fixed, np.int32(_BITS), out=fixed)
        summed = fixed.reshape(block.shape).sum(axis=0, dtype=np.int32)
        return np.asarray(summed.astype(np.int64) + len(block) * self._middle)


def simulated_sum(
    blocks: Iterable[Array], radius: float, resolution: int, *, dim: int, rng: np.random.Generator
) -> tuple[IntArray, int]:
    """Add rounded rows, by `FastRounding` where they are in float32; for simulation.

    Args:
        blocks: Of shape (k, dim) each.
        radius: Of the ball that rows are clipped to.
        resolution: Grid steps g.
        dim: Number of coordinates.
        rng: Source of the rounding.

    Returns:
        The sum, shape (dim,), and the number of rows.
    """
    summed, received, fast = np.zeros(dim, dtype=np.int64), 0, None
    for rows in blocks:
        received += len(rows)
        if FastRounding.allowed(rows, radius, resolution):
            fast = fast or FastRounding(radius, resolution, dim)
            summed += fast.sum(rows, rng)
        else:
            summed += rounded_sum(rows, radius, resolution, rng=rng)
    return summed, received
