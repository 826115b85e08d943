"""Bit planes of numbers in [0, 1], some of them sent by randomised response (Girgis 2023, Section 3.5).

A number z is rounded at random to m bits: the first m - 1 of its binary expansion, and a last one u with
E[u] = q, so that z = sum_{k < m} 2^-k b_k + 2^-(m-1) E[u]. Of every plane, each of s blocks of coordinates
gets one coordinate drawn and its bit sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np

from tacit.errors import check_choice, check_count, check_positive
from tacit.means.calibrated import Priced, Scale, usual_v
from tacit.means.symbols import Channels
from tacit.mechanisms import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    BinaryRandomizedResponse,
    lie_threshold,
    randomize_bits,
)
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = [
    "Allocation",
    "BlockKind",
    "Decoder",
    "Planes",
    "Rule",
    "largest_scale",
    "plane_levels",
    "plane_scale",
    "plane_shares",
    "planes_of",
    "quantize",
]

Made = TypeVar("Made", bound=Priced)

_MOST_PLANES = 30
"""float64 holds that many bits of a number in [0, 1] and the rest of it."""

_MOST_SYMBOLS = 2**20
"""Symbols that a party sends about one row: prices and messages take memory for each."""

BlockKind = Literal["balanced", "padded"]
Decoder = Literal["centered", "horvitz"]
Allocation = Literal["ldp", "rdp", "thesis"]
Rule = Literal["level", "v"]


def plane_shares(planes: int, allocation: Allocation) -> Array:
    """Return the share f_k of the budget that each bit plane gets.

    Args:
        planes: Number m of planes, 1 to 30.
        allocation: "ldp": the levels add up; f_k ~ W_k^(1/3) minimises sum W_k / f_k^2 at sum f_k = 1, with
            the squared weights W_k = 4^-k and W_m = 4^-(m-1). "rdp": the squares add up, as under shuffling;
            f_k = W_k^(1/4), sum f_k^2 = 1, and sum W_k / f_k^2 = 1 for every m. "thesis": what Algorithm
            3.5.1 prints, with the exponent (m + 1) / 3 for the last plane; worse, for comparison.

    Returns:
        Shape (m,).

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> plane_shares(3, "ldp").round(6).tolist()
        [0.442493, 0.278753, 0.278753]

    Reference:
        Girgis (2023), Algorithm 3.5.1, whose exponent of the last level is misprinted (docs/errata.md).
    """
    check_count("planes", planes, high=_MOST_PLANES)
    check_choice("allocation", allocation, ("ldp", "rdp", "thesis"))
    exponents = np.append(np.arange(1, planes), planes - 1).astype(np.float64)
    if allocation == "rdp":
        return np.asarray(2.0 ** (-exponents / 2))
    if allocation == "thesis":
        exponents[-1] = planes + 1
    shares = 4.0 ** (-exponents / 3)
    return np.asarray(shares / shares.sum())


def plane_levels(
    scale: float, *, planes: int, samples: int, allocation: Allocation, rule: Rule
) -> tuple[float, ...]:
    """Return the level of one message of each plane.

    Args:
        scale: What is shared out: the total level (rule "level"), or v of Girgis (2023) (rule "v"). > 0.
        planes: Number m of planes.
        samples: Number s of messages of a plane.
        allocation: See `plane_shares`.
        rule: "level": e_k = f_k scale / s. "v": v_k = f_k scale and e_k = 2 asinh(v_k / (2 s)), in which
            the error and the shuffled budget are sums of squares.

    Returns:
        Levels in [2**-30, 30]; what lies outside is moved to the end.

    Raises:
        ParameterError: An argument is out of range.
    """
    check_positive("scale", scale)
    check_count("samples", samples)
    share = plane_shares(planes, allocation) * (scale / samples)
    levels = share if rule == "level" else 2 * np.arcsinh(share / 2)
    return tuple(np.clip(levels, LOWEST_LEVEL, HIGHEST_LEVEL).tolist())


def quantize(z: Array, planes: int) -> tuple[IntArray, Array]:
    """Split numbers into their first m - 1 bits and the expectation q of the last.

    Args:
        z: Any shape, in [0, 1].
        planes: Number m of planes.

    Returns:
        (t, q), of the shape of z: t in 0, ..., 2^(m-1) - 1 holds the bits, first one highest, and
        z 2^(m-1) = t + q with q in [0, 1]. z = 1 gives all ones and q = 1: Girgis (2023), Algorithm
        3.5.1, prints no clamp, and its first "bit" would be 2 (docs/errata.md).
    """
    top = 2 ** (planes - 1)
    scaled = z * top
    whole = np.minimum(scaled.astype(np.int64), top - 1)
    return whole, np.clip(scaled - whole, 0.0, 1.0)


@lru_cache(maxsize=64)
def planes_of(
    dim: int, samples: int, local_epsilons: tuple[float, ...], blocks: BlockKind, decoder: Decoder
) -> Planes:
    """Return the same object for the same arguments: its tables are made once."""
    return Planes(dim, samples, local_epsilons, blocks, decoder)


@dataclass(frozen=True)
class Planes:
    """What is sent about the bit planes of numbers in [0, 1]^dim, and what it means.

    Attributes:
        dim: Number of coordinates.
        samples: Number s of blocks, 1 to dim: so many coordinates of each plane are sent.
        local_epsilons: Level of one message of each plane, shape (m,).
        blocks: "balanced": sizes differ by at most 1. "padded": all of size ceil(dim / s), the last ones
            filled up with coordinates that hold zeros (Girgis 2023, Algorithm 3.3.1; they waste messages).
        decoder: "centered": a coordinate that was not drawn counts as 1/2. "horvitz": as 0.
    """

    dim: int
    samples: int
    local_epsilons: tuple[float, ...]
    blocks: BlockKind = "balanced"
    decoder: Decoder = "centered"

    def __post_init__(self) -> None:
        settle(self)
        check_count("samples", self.samples, high=self.dim)
        check_choice("blocks", self.blocks, ("balanced", "padded"))
        check_choice("decoder", self.decoder, ("centered", "horvitz"))
        planes = check_count("the number of planes", len(self.local_epsilons), high=_MOST_PLANES)
        check_count(
            "the number of symbols of a row, samples x planes,", self.samples * planes, high=_MOST_SYMBOLS
        )

    @cached_property
    def sizes(self) -> IntArray:
        """Sizes a_j of the blocks, shape (s,)."""
        if self.blocks == "padded":
            return np.full(self.samples, -(-self.dim // self.samples))
        small, larger = divmod(self.dim, self.samples)
        return small + (np.arange(self.samples) < larger).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """First coordinate of each block."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def size_at(self) -> Array:
        """Size of the block of each (padded) coordinate."""
        return np.repeat(self.sizes, self.sizes).astype(np.float64)

    @cached_property
    def channels(self) -> Channels:
        """One channel for every plane and block: plane 1 first."""
        m = len(self.local_epsilons)
        return Channels(np.tile(2 * self.sizes, m), np.repeat(self.local_epsilons, self.samples))

    @cached_property
    def weights(self) -> Array:
        """Value 2^-k of a bit of each plane, shape (m,)."""
        m = len(self.local_epsilons)
        return np.asarray(2.0 ** -np.append(np.arange(1, m), m - 1))

    @cached_property
    def responses(self) -> list[BinaryRandomizedResponse]:
        """The randomised response of each plane."""
        return [BinaryRandomizedResponse(level) for level in self.local_epsilons]

    @cached_property
    def thresholds(self) -> Array:
        """How many of 2**64 words flip a bit of each plane, shape (m, 1)."""
        return np.array([[lie_threshold(e)] for e in self.local_epsilons], dtype=np.uint64)

    @cached_property
    def gaps(self) -> Array:
        """1 - 2 p of each plane, shape (m, 1)."""
        return np.array([[r.gap] for r in self.responses])

    @cached_property
    def shifts(self) -> IntArray:
        """Where the bit of each plane stands in the whole number that `quantize` returns, shape (m, 1)."""
        return np.append(np.arange(len(self.local_epsilons) - 2, -1, -1), 0)[:, None]

    def symbols(self, z: Array, rng: np.random.Generator) -> IntArray:
        """Draw coordinates, round, and flip.

        Args:
            z: Shape (k, dim), in [0, 1].
            rng: Private randomness; everything is drawn apart for each row, plane and block.

        Returns:
            Shape (k, m s): 2 (coordinate within the block) + bit.
        """
        m, s, k = len(self.local_epsilons), self.samples, len(z)
        if self.size_at.size > self.dim:
            z = np.pad(z, ((0, 0), (0, self.size_at.size - self.dim)))
        if self.sizes.max() == 1:
            place: Array | int = 0
            values = np.broadcast_to(z[:, None, :], (k, m, s))
        else:
            place = rng.integers(0, self.sizes, size=(k, m, s))
            drawn = (place + self.starts).reshape(k, m * s)
            values = np.take_along_axis(z, drawn, axis=1).reshape(k, m, s)
        whole, q = quantize(values, m)
        bits = (whole >> self.shifts) & 1
        bits[:, -1] = rng.random((k, s)) < q[:, -1]
        return (2 * place + randomize_bits(bits, self.thresholds, rng)).reshape(k, m * s)

    def total(self, counts: IntArray, reports: int) -> Array:
        """Estimate the sum of the numbers of all rows, shape (dim,), from counts of all symbols."""
        zeros, ones = np.moveaxis(counts.reshape(len(self.local_epsilons), -1, 2), 2, 0)
        if self.decoder == "centered":
            bits = reports / 2 + self.size_at * (ones - zeros) / (2 * self.gaps)
        else:
            # With p = (1 - gap) / 2: ones (1 - p) - zeros p, without taking 1 - 2 p apart.
            bits = self.size_at * (ones - zeros + (ones + zeros) * self.gaps) / (2 * self.gaps)
        return np.asarray((self.weights @ bits)[: self.dim])

    def variances(self, z: Array) -> Array:
        """Variance of the estimate of each number of each row, exactly.

        Per plane and coordinate: a sigma^2 + (a - 1) b ("horvitz") or a sigma^2 + (a - 1) / 4 ("centered"),
        with the bit b, or its expectation q in the last plane, which adds q (1 - q).

        Args:
            z: Shape (k, dim), in [0, 1].

        Returns:
            Shape (k, dim).

        Reference:
            Derived here: the levels are independent and unbiased given u, so their variances add.
        """
        m = len(self.local_epsilons)
        whole, q = quantize(z, m)
        a = self.size_at[: self.dim]
        result = self.weights[-1] ** 2 * q * (1 - q)
        for k, response in enumerate(self.responses):
            bit = q if k == m - 1 else (whole >> (m - 2 - k)) & 1
            drawn = (a - 1) * bit if self.decoder == "horvitz" else (a - 1) / 4
            result = result + self.weights[k] ** 2 * (a * response.variance + drawn)
        return np.asarray(result)

    def worst_variances(self) -> Array:
        """Largest variance of each coordinate over all rows, shape (dim,)."""
        a, W = self.size_at[: self.dim], self.weights**2
        noise = a * float(W @ [r.variance for r in self.responses])
        if self.decoder == "centered":
            return np.asarray(noise + (a - 1) / 4 * W.sum() + W[-1] / 4)
        # (a - 1) q + q (1 - q) is largest at q = 1 where a >= 2, and then at z = 1 all bits are ones.
        return np.asarray(noise + (a - 1) * W[:-1].sum() + W[-1] * np.where(a == 1, 0.25, a - 1))

    def worst_spectrum(self) -> float:
        """Bound on the largest eigenvalue of the covariance of the estimate of one row.

        Within a block only one coordinate is drawn: the second moments about 1/2 (or 0) are diagonal, and the
        covariance is at most that diagonal. The rounding adds at most W_m / 4, coordinate by coordinate.
        """
        a, W = float(self.sizes.max()), self.weights**2
        square = 0.25 if self.decoder == "centered" else 1.0
        noise = float(W @ [r.variance for r in self.responses])
        # One block of one coordinate has no sampling error at all.
        drawn = 0.0 if a == 1 else square * a * float(W.sum())
        return a * noise + drawn + float(W[-1]) / 4


def largest_scale(planes: int, samples: int, allocation: Allocation, rule: Rule) -> float:
    """Scale at which the first plane reaches the highest level; a larger one changes no more."""
    least = float(plane_shares(planes, allocation).min())
    top = HIGHEST_LEVEL if rule == "level" else 2 * math.sinh(HIGHEST_LEVEL / 2)
    return samples * top / least


def plane_scale(
    kind: Callable[..., Made],
    budget: PrivacyBudget,
    n: int,
    *,
    planes: int,
    samples: int,
    trust: TrustModel,
    allocation: Allocation | None = None,
    **fields: Any,
) -> Scale[Made]:
    """Scale estimators of that kind by what their planes share out; see `EachRow.calibrated`."""
    check_count("samples", samples)
    local = trust is TrustModel.LOCAL
    shares: Allocation = ("ldp" if local else "rdp") if allocation is None else allocation
    rule: Rule = "level" if local and shares != "rdp" else "v"

    def make(scale: float) -> Made:
        levels = plane_levels(scale, planes=planes, samples=samples, allocation=shares, rule=rule)
        return kind(samples=samples, local_epsilons=levels, trust=trust, **fields)

    guess = budget.epsilon if local else usual_v(budget, n, samples)
    return Scale(make, high=largest_scale(planes, samples, shares, rule), guess=guess)
