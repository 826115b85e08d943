"""The mean of vectors in an L2 ball: a public rotation spreads them evenly, then bit planes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Literal, Self

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_probability
from tacit.means.base import Error
from tacit.means.calibrated import Scale
from tacit.means.message import Round
from tacit.means.planes import BlockKind, Decoder, Planes, plane_scale, planes_of
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.shuffled_planes import plane_proposals
from tacit.means.symbols import Symbols, check_levels, symbols
from tacit.means.violations import clipped_to_unit
from tacit.numerics import (
    MAX_DENSE_DIM,
    Array,
    CosineRotation,
    Encoder,
    KashinFrame,
    OrthogonalRotation,
    RandomHadamard,
    certified_radius,
    flat_radius,
    next_power_of_two,
)
from tacit.privacy import PrivacyBudget
from tacit.randomness import PublicStream

__all__ = ["EncoderName", "RotatedMean", "clipping_bias"]

EncoderName = Literal["hadamard", "orthogonal", "cosine", "kashin"]

_ENCODERS: dict[
    str, type[RandomHadamard] | type[OrthogonalRotation] | type[CosineRotation] | type[KashinFrame]
] = {
    "hadamard": RandomHadamard,
    "orthogonal": OrthogonalRotation,
    "cosine": CosineRotation,
    "kashin": KashinFrame,
}

_KASHIN = 3.0
"""Constant c of the frame: with N >= 2 d, what no coefficients in the box can carry was below 1e-8."""


@lru_cache(maxsize=8)
def _drawn(name: EncoderName, dim: int, seed: int, number: int) -> Encoder:
    """Return the common rotation of a round: of no party, and of no data."""
    stream = PublicStream(seed, number, purpose=f"rotated mean, {name}")
    return _ENCODERS[name].draw(dim, stream)


_MATRICES = 7
"""Matrices of that size in memory while a dense rotation is drawn."""

_KAPPAS: tuple[float | None, ...] = (None, 2.0, 3.0, 4.0)
_LARGEST_MATRIX = 2000
"""What is proposed: boxes, and the dimension up to which a dense rotation is."""

_OVER_ROTATIONS = "over the public rotation, which must not depend on the rows"


class RotatedMean(RandomizedMean, frozen=True, kw_only=True, tag="rotated"):
    """Rows of an L2 ball are rotated, clipped to a box, rounded to m bits, and s bits of each plane are sent.

    The rotation is drawn anew every round from public randomness, the same for all. Privacy rests on the clip
    to the box and on the flips, never on the rotation. Where the box is not certain to hold the rotated rows,
    clipping makes a bias, and rows that agree add theirs up.

    Attributes:
        dim: Number d of coordinates, >= 1.
        samples: Number s of blocks of the D coefficients, 1 to `coded_dim`.
        local_epsilons: Level of one message of each of the m planes; see `BitplaneMean`.
        encoder: "hadamard" (D = the power of two above d), "orthogonal" or "cosine" (D = d), or "kashin"
            (D >= 2 d, a box without a logarithm).
        kappa: The box reaches kappa radius / sqrt(D); 2 to 4 is usual, and clips. None: the certified box,
            which holds all rows with probability 1 - beta over the rotation, whatever they are.
        beta: See `kappa`; in (0, 1).
        blocks: See `SampledBinaryMean`.
        decoder: See `SampledBinaryMean`.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up. The price counts n_min rows less those
            of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> import numpy as np
        >>> from tacit.means import Round
        >>> mean = RotatedMean.calibrated(
        ...     dim=100, planes=1, samples=4, budget=PrivacyBudget(4.0), n=10_000, kappa=2.0
        ... )
        >>> mean.coded_dim, mean.local_epsilons, mean.bits_per_party()
        (128, (1.0,), 112)

    Reference:
        Girgis (2023), Algorithms 3.6.1 and 3.6.2, Theorem 3.6.5 and Remark 3.6.1; radii from
        `numerics.certified_radius`, misprints in docs/errata.md.
    """

    samples: int
    local_epsilons: tuple[float, ...]
    encoder: EncoderName = "hadamard"
    kappa: float | None = None
    beta: float = 0.01
    blocks: BlockKind = "balanced"
    decoder: Decoder = "centered"

    @classmethod
    def _scale(cls, budget: PrivacyBudget, n: int, **fields: Any) -> Scale[Self]:
        return plane_scale(cls, budget, n, **fields)

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer every encoder, with certified and clipping boxes, planes m and numbers s."""
        d = problem.dim
        encoders: list[EncoderName] = ["hadamard", "kashin"]
        if next_power_of_two(d) != d:
            encoders += ["cosine", *(("orthogonal",) if d <= _LARGEST_MATRIX else ())]
        for encoder in encoders:
            D, kashin, peak = _coded_dim(d, encoder), encoder == "kashin", 2.0 if encoder == "cosine" else 1.0
            for kappa in (None,) if kashin else _KAPPAS:
                if kappa is not None and kappa**2 >= D:
                    continue
                build = partial(
                    cls,
                    dim=d,
                    encoder=encoder,
                    kappa=kappa,
                    trust=problem.observer,
                    neighbours=problem.near,
                )
                box = "" if kashin else "certified box, " if kappa is None else f"kappa={kappa:g}, "
                yield from plane_proposals(
                    problem,
                    build,
                    f"rotated ({encoder}), {box}",
                    D,
                    rotation=d * d if encoder == "orthogonal" else D * math.log2(D),
                    family="rotated",
                    norm="l2",
                    ranked=d > 1,  # a number is in a box as it is
                    bias=None if kappa is None else clipping_bias(kappa / math.sqrt(peak), peak=peak),
                    note="" if kappa is None else _OVER_ROTATIONS,
                )

    @property
    def coded_dim(self) -> int:
        """Number D of coefficients."""
        return _coded_dim(self.dim, self.encoder)

    def box(self, n: int) -> float:
        """Return what the coefficients of rows of norm 1 are clipped to.

        Args:
            n: Number of rows, which the certified box depends on.
        """
        D = self.coded_dim
        if self.encoder == "kashin":
            return _KASHIN / math.sqrt(D)
        if self.kappa is not None:
            return flat_radius(1.0, kappa=self.kappa, coded_dim=D)
        return certified_radius(1.0, n=n, coded_dim=D, beta=self.beta, peak=self._peak)

    def rotation(self, round: Round) -> Encoder:
        """Return the public rotation of a round; parties may compare its `fingerprint`."""
        return _drawn(self.encoder, self.dim, round.seed, round.number)

    @property
    def randomizer(self) -> Symbols:
        """How a row becomes one symbol for each plane and block of coefficients."""
        check_choice("encoder", self.encoder, _ENCODERS)
        check_levels("local_epsilons", self.local_epsilons)
        check_probability("beta", self.beta, low_open=True, high_open=True)
        if self.kappa is not None:
            check_positive("kappa", self.kappa)
            if self.encoder == "kashin":
                raise ParameterError(
                    "kappa must be None with the kashin encoder, whose frame has its own box."
                )
        if self.encoder == "orthogonal":
            check_count("dim with the orthogonal encoder", self.dim, high=MAX_DENSE_DIM)
        planes = self._planes()
        return symbols(
            self,
            "l2",
            planes.channels,
            lambda rows, facts, rng: planes.symbols(self._unit_interval(rows, facts), rng),
            lambda counts, reports, facts: self.rotation(facts).inverse(
                (2 * planes.total(counts, reports) - reports) * self.box(facts.n)
            ),
            self._worst,
        )

    def numbers_per_party(self, rows: int = 1) -> int:
        """Return a bound on the numbers that a party keeps to write its messages, besides its rows."""
        matrix = _MATRICES * self.dim**2 if self.encoder == "orthogonal" else 0
        return super().numbers_per_party(rows) + matrix

    def coded_variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimated coefficients on these rows, shape (k, dim).

        Dropping a padding leaves less of it: a share of about d / D.
        """
        z = self._unit_interval(clipped_to_unit(rows, round, self.dim, "l2"), round)
        scale = 2 * self.box(round.n) * round.radius / round.n
        return float(self._planes().variances(z).sum()) * scale**2

    @property
    def _peak(self) -> float:
        """D times the largest squared entry of the rotation."""
        return 2.0 if self.encoder == "cosine" and self.dim > 1 else 1.0

    def _planes(self) -> Planes:
        return planes_of(self.coded_dim, self.samples, self.local_epsilons, self.blocks, self.decoder)

    def _unit_interval(self, rows: Array, round: Round) -> Array:
        """Return the clipped coefficients of rows of the unit ball, as numbers in [0, 1]."""
        if not len(rows):
            return np.zeros((0, self.coded_dim))
        coded = self.rotation(round).forward(rows, r2=1.0)
        coded /= 2 * self.box(round.n)
        coded += 0.5
        return np.clip(coded, 0.0, 1.0, out=coded)

    def _worst(self, n: int) -> Error:
        """Bound the error of one row.

        The rows of the decoding matrix are orthonormal, so that the variance is at most both the trace of the
        coefficients' covariance and d times its largest eigenvalue. A unit vector loses at most 1 - box by
        clipping, all of it in one coefficient. The certified box B clips with probability beta at most, and
        by little: a coefficient has the tail 2 exp(-t^2 / (2 s^2)), s^2 = peak / D, hence E (|c| - B)_+^2
        <= 4 (s^2 / B)^2 exp(-B^2 / (2 s^2)), and the last factor is beta / (2 n D). The root of the mean
        square over rotations bounds the bias, and also what varies with the rotation, which all rows share.
        """
        planes, box = self._planes(), self.box(n)
        variance = min(float(planes.worst_variances().sum()), self.dim * planes.worst_spectrum())
        if self.encoder == "kashin":
            # No coefficient of F^T x exceeds sqrt(d / N): small boxes only may fail to carry a row.
            bias = 0.0 if self.dim <= _KASHIN**2 else 1e-6
        else:
            bias = max(0.0, 1 - box)
            if self.kappa is None:
                tail = self._peak / (self.coded_dim * box) * math.sqrt(2 / n)
                bias = math.sqrt(self.beta) * min(bias, tail)
        return Error(variance=(2 * box) ** 2 * variance, bias=bias, exact=False)


def _coded_dim(dim: int, encoder: EncoderName) -> int:
    """Return the number of coefficients of an encoder."""
    if encoder == "hadamard":
        return next_power_of_two(dim)
    return next_power_of_two(2 * dim) if encoder == "kashin" else dim


def clipping_bias(kappa: float, *, peak: float = 1.0) -> float:
    """Bound the root mean squared length that a box takes off a rotated unit vector.

    A coefficient w of a unit vector is sub-Gaussian with variance proxy s^2 = peak / D over the rotation
    (Hoeffding; Marchal and Arbel 2017 for the uniform one), so that

        D E (|w| - kappa s)_+^2 <= D int 2 (t - kappa s) 2 exp(-t^2 / (2 s^2)) dt
                                = 4 peak (exp(-kappa^2 / 2) - kappa sqrt(2 pi) Q(kappa)).

    The mean of clipped rows is off by at most the root mean square of what its rows lose, whatever the rows
    are, as long as they do not depend on the rotation.

    Args:
        kappa: Half-width of the box in units of s, > 0.
        peak: D times the largest squared entry of the rotation.

    Returns:
        At most 1.

    Example:
        >>> round(clipping_bias(3.0), 4)
        0.0619

    Reference:
        Derived above. Random unit vectors in 300 dimensions lose much less: 3.6e-4 against 3.8e-3, squared.
    """
    tail = math.exp(-(kappa**2) / 2) - kappa * math.sqrt(2 * math.pi) * float(special.ndtr(-kappa))
    return min(1.0, math.sqrt(4 * peak * max(tail, 0.0)))
