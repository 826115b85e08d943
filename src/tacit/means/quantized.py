"""Means from vectors whose every coordinate is rounded at random to a few bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from tacit.compression import QSGD, Quantized, StochasticUniformQuantizer, common_rotation
from tacit.errors import ParameterError, check_choice, check_count
from tacit.means.coded import CodedMean, VectorCode
from tacit.means.message import Round
from tacit.means.party_sums import Form, float_values
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.numerics import Array, RandomHadamard, next_power_of_two

__all__ = ["QuantizedMean", "Scheme"]

Scheme = Literal["uniform", "qsgd"]
"""`uniform`: levels from the least to the largest entry. `qsgd`: multiples of norm / levels, and signs."""


class QuantizedMean(CodedMean, frozen=True, kw_only=True, tag="quantized"):
    """Every party sends every coordinate in a few bits, rounded at random; unbiased.

    Attributes:
        levels: `uniform`: L >= 2 equally spaced levels, ceil(log2 L) bits a coordinate. `qsgd`: s >= 1
            multiples of ||x|| / s, 1 + ceil(log2(s + 1)) bits.
        scheme: `uniform` (Suresh et al., 2017) or `qsgd` (Alistarh et al., 2017).
        rotate: Whether a rotation that all parties share comes first: it narrows the range of the entries.
            Vectors are padded to a power of two.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import QuantizedMean, Round
        >>> mean, X = QuantizedMean(dim=1024, levels=16, rotate=True), np.ones((10, 1024)) / 32
        >>> estimate = mean.estimate(X, Round(n=10, parties=10, radius=1.0), rng=np.random.default_rng(0))
        >>> bool(np.sum((estimate - X[0]) ** 2) < 0.02), mean.bits_per_party()
        (True, 4336)

    Reference:
        Suresh et al. (2017), ICML; Alistarh et al. (2017), NeurIPS. The grid travels as float32, which
        may move an estimate by 1e-7 of its range.
    """

    levels: int
    scheme: Scheme = "uniform"
    rotate: bool = False

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer, without privacy, both schemes with few and many levels."""
        d, n = problem.dim, problem.n
        kinds: list[tuple[Scheme, bool, int]] = [
            *(("uniform", turned, 2**bits) for bits in (1, 2, 4, 8, 16) for turned in (False, True)),
            *(("qsgd", False, levels) for levels in (1, 3, 15, 255)),
        ]
        for scheme, rotate, levels in kinds if problem.trust == "none" else ():
            found = cls(dim=d, levels=levels, scheme=scheme, rotate=rotate)
            cost = d * problem.log_dim if rotate else float(d)
            yield Proposal(
                name=f"quantized ({scheme}{', rotated' if rotate else ''}), {levels} levels",
                family="quantized",
                guess=found,
                make=lambda found=found: found,  # type: ignore[misc]
                norm="l2",
                encode=ComputeCost("d log d" if rotate else "d", cost),
                decode=ComputeCost("n d", n * d + cost),
            )

    @property
    def code(self) -> VectorCode[RandomHadamard | None]:
        """What parties send of the sums of their rows."""
        uniform = self.scheme == "uniform"
        check_choice("scheme", self.scheme, get_args(Scheme))
        check_count("levels", self.levels, low=2 if uniform else 1, high=2**31)
        d, s = next_power_of_two(self.dim) if self.rotate else self.dim, self.levels
        # A step is at most sqrt(2) ||x|| / (L - 1), and rounding to it has at most a quarter of its square.
        return VectorCode(
            forms=(
                Form(d, np.int64, (s - 1).bit_length() if uniform else 1 + s.bit_length()),
                Form(2 if uniform else 1, np.float32),
            ),
            drawn=self._rotation,
            written=self._written,
            summed=self._summed,
            variance=d / (2 * (s - 1) ** 2) if uniform else min(d / s**2, math.sqrt(d) / s),
        )

    @property
    def _middle(self) -> int:
        """What is taken off a code so that it fits into a signed integer of its width."""
        return 2 ** ((self.levels - 1).bit_length() - 1) if self.scheme == "uniform" else 0

    def _rotation(self, _: Sequence[int], round: Round) -> RandomHadamard | None:
        """Return the rotation that all parties share in this round."""
        return common_rotation(self.dim, seed=round.seed, round=round.number) if self.rotate else None

    def _written(
        self, vectors: Array, rotation: RandomHadamard | None, rng: np.random.Generator
    ) -> list[Array]:
        turned = vectors if rotation is None else rotation.forward(vectors)
        if self.scheme == "uniform":
            sent = StochasticUniformQuantizer(levels=self.levels).encode(turned, rng=rng)
            grid = np.stack([sent.offset, sent.step], axis=1)
        else:
            sent = QSGD(levels=self.levels).encode(turned, rng=rng)
            grid = sent.step[:, None]
        return [sent.codes - self._middle, float_values(grid, 32)]

    def _summed(self, payloads: list[Array], rotation: RandomHadamard | None) -> Array:
        codes, grid = payloads[0] + self._middle, payloads[1].astype(np.float64)
        low, high = (0, self.levels - 1) if self.scheme == "uniform" else (-self.levels, self.levels)
        if np.any((codes < low) | (codes > high)):
            raise ParameterError(f"a message must hold codes from {low} to {high}, and does not.")
        # The last column is the step; of `qsgd` it is the only one, and the offset zero.
        offset, step = (np.zeros(len(grid)) if self.scheme == "qsgd" else grid[:, 0]), grid[:, -1]
        if np.any(step < 0):
            raise ParameterError("a message must hold a step >= 0, and does not.")
        summed: Array = Quantized(codes, offset, step).decode().sum(axis=0)
        return summed if rotation is None else rotation.inverse(summed)
