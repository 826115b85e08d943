"""Means from vectors that parties shorten by public linear maps, with or without noise.

Party i holds v_i, the sum of its clipped rows, and sends y_i = G_i v_i + z_i, k numbers. G_i is drawn from
(seed, number of the round, party), so the server needs the sender of every message and rebuilds G_i. With
n parties that answered, the server estimates the mean of the v_i and scales it to (1 / planned rows) sum v_i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from tacit.compression import MapKind, Maps, SpectralMoments, common_rotation, draw_maps, padded_dim
from tacit.errors import ParameterError, check_count
from tacit.means.base import SETTLED, Error, Facts, worst_error
from tacit.means.message import Round
from tacit.means.noise import AnyNoise, DiscreteGaussianNoise, NoNoise
from tacit.means.party_sums import Form, PartySum, float_values
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, counts_that_fit, noisy
from tacit.means.violations import OnViolation
from tacit.numerics import Array, RandomHadamard, next_power_of_two
from tacit.privacy import Neighbours, TrustModel
from tacit.randomness import PublicStream

__all__ = ["Sketch", "SketchedMean"]

_ORTHONORMAL = ("subsample", "srht", "haar")
_MATRICES = ("haar", "gaussian", "row_normalized_gaussian")
_STEPS = 2**16


@dataclass(frozen=True, kw_only=True)
class Sketch:
    """A code of k numbers, from a linear map of each party; see `tacit.means.party_sums.Code`.

    The price is that of the noise on a vector of k numbers: maps with orthonormal rows bring no two vectors
    further apart, whatever the public seed. No amplification is claimed for the compression.

    Attributes:
        dim: Number of coordinates of a vector.
        k: Numbers that a party sends, from 1 to the coordinates that the maps work on.
        kind: Which maps.
        noise: What every party adds. Noise needs orthonormal rows, and in the L1 norm plain coordinates.
        sensitivity: Radii by which one unit moves a vector.
        value_bits: Bits of a number without noise: 32 or 64.
        decoded: Estimates the mean of the (rotated) vectors from maps, what was sent, shape (n, k), and how
            many parties, at least n, were planned.
        moments: What the error is computed from, for a number of parties.
        rotated: Whether a rotation that all parties share comes before the maps.
        independent: Whether the error does not depend on the correlation of the parties.

    Raises:
        ParameterError: Fields that do not go together.
    """

    dim: int
    k: int
    kind: MapKind
    noise: AnyNoise
    sensitivity: int
    value_bits: int
    decoded: Callable[[Maps, Array, int], Array]
    moments: Callable[[int], SpectralMoments]
    rotated: bool = False
    independent: bool = False

    def __post_init__(self) -> None:
        check_count("k", self.k, high=padded_dim(self.kind, self.map_dim))
        if self.value_bits not in (32, 64):
            raise ParameterError(f"value_bits must be 32 or 64, got {self.value_bits!r}.")
        if isinstance(self.noise, NoNoise):
            return
        if self.value_bits != 32:
            raise ParameterError("value_bits must be 32 with noise, which decides itself what leaves.")
        if self.kind not in _ORTHONORMAL:
            raise ParameterError(
                f"noise needs maps with orthonormal rows (subsample, srht, haar), not {self.kind}: others "
                "may lengthen a vector."
            )
        if self.noise.norm != "l2" and (self.kind != "subsample" or self.rotated):
            raise ParameterError(
                f"noise in the {self.noise.norm} norm needs plain coordinates, as RandK sends."
            )

    @property
    def map_dim(self) -> int:
        """Coordinates of what the maps are applied to."""
        return next_power_of_two(self.dim) if self.rotated else self.dim

    @property
    def forms(self) -> tuple[Form, ...]:
        """One message: parties may hold different numbers of rows, so integers of any width are read."""
        noise = self.noise
        if isinstance(noise, NoNoise):
            return (Form(self.k, np.float32 if self.value_bits == 32 else np.float64),)
        return (Form(self.k, noise.dtype, None if noise.on_grid else 0),)

    @property
    def roundings(self) -> int:
        """Rows more that cover, in the bound on float64 summation, how the maps and the dither round.

        The bound for n rows counts n + 4 roundings of vectors of norm at most n radii. A product with a dense
        f x f matrix of signs errs by f roundings of the product of sizes, whose norm is sqrt(f) times that of
        the result; fast transforms are made of such products with f <= 32, one for up to five stages, which
        is below 40 roundings a stage. A product with k unit rows errs by d roundings in each of k entries.
        The dither is at most half a step in each of k entries; a rounding of it is below sqrt(k) roundings of
        a step (below k in the L1 norm, and the bound grows with the square of what is returned here).
        """
        of_map = 0
        if self.kind == "srht":
            of_map = 40 * padded_dim(self.kind, self.map_dim).bit_length()
        elif self.kind == "haar":
            of_map = math.ceil((4 * self.map_dim + 64) * math.sqrt(self.k))
        if self.rotated:
            of_map += 40 * self.map_dim.bit_length()
        return of_map + math.isqrt(self.k) + 4

    @property
    def map_numbers(self) -> int:
        """Numbers of the map of one party, where it is a matrix."""
        return self.k * self.map_dim if self.kind in _MATRICES else 0

    def public(self, senders: Sequence[int], round: Round) -> Maps:
        """Draw the maps of parties in this round."""
        return draw_maps(self.kind, self.map_dim, self.k, senders, seed=round.seed, round=round.number)

    def rotation(self, round: Round) -> RandomHadamard:
        """Return the rotation that all parties share in this round."""
        return common_rotation(self.dim, seed=round.seed, round=round.number)

    def write(
        self, vectors: Array, public: Maps, round: Round, rng: np.random.Generator, *, width: int
    ) -> list[Array]:
        """Shorten the vectors, and add noise."""
        noise = self.noise
        Y = public.encode(self.rotation(round).forward(vectors) if self.rotated else vectors)
        if isinstance(noise, NoNoise):
            return [float_values(Y, self.value_bits)]
        summed = noise.prepare(Y + self._dither(public, round), round.radius)
        drawn = noise.sample(summed.size, sensitivity=self.sensitivity, radius=round.radius, rng=rng)
        return [noise.published(summed + drawn.reshape(summed.shape), width)]

    def read(self, payloads: list[Array], public: Maps, round: Round) -> Array:
        """Estimate the mean from what was sent."""
        Y = payloads[0].astype(np.float64) * self.noise.unit(round.radius) - self._dither(public, round)
        # Decoders are linear, and square what they get: scaled, it cannot overflow on the way.
        peak = float(np.max(np.abs(Y)))
        if peak == 0:
            return np.zeros(self.dim)
        mean = self.decoded(public, Y / peak, max(round.parties, public.n))
        if self.rotated:
            mean = self.rotation(round).inverse(mean)
        with np.errstate(over="ignore"):
            return np.asarray(mean * (public.n / round.n) * peak)

    def error(self, n: int, facts: Facts) -> Error:
        """Return the error over the maps and the noise; see `PartySum.error`."""
        fill = padded_dim(self.kind, self.map_dim) / self.k
        suspects = () if self.independent else (2, math.floor(fill), math.ceil(fill))
        return worst_error(lambda known: self._error(n, known), n, facts, suspects=suspects)

    def _error(self, n: int, facts: Facts) -> Error:
        """Return the error for a known number of parties."""
        parties = facts.parties or 1
        moments = self.moments(parties)
        ends = (-1.0, parties - 1.0) if parties > 1 else (0.0,)
        ratios = ends if facts.correlation is None else (facts.correlation,)
        # The error is linear in R: largest at an end.
        by_ratio = {R: moments.normalized_mse(R) for R in ratios}
        lowest, highest = min(by_ratio.values()), max(by_ratio.values())
        # An end whose error is not known may be the larger one.
        unsure = max(moments.normalized_mse_stderr(R) for R in ratios)
        unit = self.noise.unit(facts.radius)
        per_number = self.noise.variance(sensitivity=self.sensitivity, radius=facts.radius) * unit**2
        if self.noise.on_grid:
            per_number += unit**2 / 12  # of the dithered rounding
        squares, shares = facts.most_squared_norms(n) / n**2, (parties / n) ** 2
        known = facts.squared_norms is not None and highest - lowest <= 1e-12 * abs(highest)
        variance = highest * squares + moments.noise_mse(per_number) * shares
        stderr = (unsure * squares if squares else 0.0) + moments.noise_mse_stderr(per_number) * shares
        # Where the error vanishes, what is left of both is rounding.
        settled = stderr <= max(SETTLED * abs(variance), 1e-12 * squares)
        return Error(variance=float(variance), exact=known and settled, stderr=float(stderr))

    def _dither(self, maps: Maps, round: Round) -> Array:
        """Return what every number is shifted by before it is rounded to a grid, and shifted back after.

        With a public shift that is uniform over one step, the error of rounding is uniform and independent of
        the number (Schuchman, 1964), hence of the map: no bias, and 1/12 squared step of variance. In either
        of two data sets a number still moves by at most half a step.
        """
        if not self.noise.on_grid:
            return np.zeros((maps.n, self.k))
        shifts = [
            PublicStream(round.seed, round.number, party=int(party), purpose="means/dither").uniform(self.k)
            for party in maps.parties
        ]
        return np.asarray((np.stack(shifts) - 0.5) * self.noise.unit(round.radius))


class SketchedMean(
    PartySum, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator"
):
    """Fields of means from linear maps.

    Attributes:
        dim: Number d of coordinates of a row, >= 1.
        k: Numbers that a party sends, from 1 to the coordinates that the maps work on.
        noise: What every party adds to its k numbers. Noise in the L1 norm needs plain coordinates.
        value_bits: Bits of a number on the wire where there is no noise: 32 or 64.
        trust: `local` only: a server that does not know who sent a message cannot decode it.
        neighbours: Relation for the sensitivity of a party's sum: 2 radii under replace-one, else 1.
        on_violation: What becomes of a row outside of the ball: "clip" scales it into the ball and takes one
            that is not finite for zero; "error" refuses it. None: "error" without noise, else "clip". Errors
            tell of a row, which no price covers: with noise, they are for simulations and public data only.
    """

    _turned: ClassVar[bool] = True  # whether the maps are of all coordinates

    dim: int
    k: int
    noise: AnyNoise = NoNoise()
    value_bits: Literal[32, 64] = 32
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer local noise on k numbers, for few bits, correlated rows, or audits alone."""
        if problem.trust == "local":
            yield from cls._noisy(problem, ranked=False)

    @classmethod
    def _plain(cls, problem: MeanProblem, of: str = "", **options: Any) -> Iterator[Proposal]:
        """Offer several numbers k without privacy; only the largest where errors take seconds to compute."""
        counts = counts_that_fit(lambda k: cls(dim=problem.dim, k=k), problem)
        if cls._turned:
            # Then nothing is lost at k = d, and Rand-k is simpler.
            counts = [k for k in counts if k == counts[0] or problem.n * k <= problem.dim]
            counts = [k for k in counts if k < problem.dim]
        for k in counts:
            found = cls(dim=problem.dim, k=k, **options)
            yield cls._proposal(problem, k, f"{of}, k={k}", make=lambda found=found: found, guess=found)

    @classmethod
    def _noisy(
        cls, problem: MeanProblem, *, ranked: bool = True, note: str = "", **options: Any
    ) -> Iterator[Proposal]:
        """Offer several numbers k with local noise."""
        for k in sorted({max(1, problem.dim // share) for share in (256, 64, 16, 4)}):

            def build(z: float, k: int = k) -> SketchedMean:
                noise = DiscreteGaussianNoise(z, steps=_STEPS)
                return cls(dim=problem.dim, k=k, noise=noise, neighbours=problem.near, **options)

            guess, make = noisy(build, problem, DiscreteGaussianNoise)
            yield cls._proposal(
                problem,
                k,
                f" with Gaussian noise, k={k}",
                "noisy ",
                make=make,
                guess=guess,
                note=note,
                ranked=ranked,
            )

    @classmethod
    def _proposal(cls, problem: MeanProblem, k: int, said: str, kind: str = "", **rest: Any) -> Proposal:
        """Return a proposal of k numbers."""
        d, n, tag = problem.dim, problem.n, cls.__struct_config__.tag
        turned = d * problem.log_dim
        return Proposal(
            name=f"{tag}{said}",
            family=f"{kind}{tag}",
            norm="l2",
            encode=ComputeCost("d log d", turned) if cls._turned else ComputeCost("k", float(k)),
            decode=ComputeCost("n d log d", 20 * n * turned)
            if cls._turned
            else ComputeCost("n k + d", float(n * k + d)),
            **rest,
        )

    def _sketch(
        self,
        kind: MapKind,
        decoded: Callable[[Maps, Array, int], Array],
        moments: Callable[[int], SpectralMoments],
        *,
        rotated: bool = False,
        independent: bool = False,
    ) -> Sketch:
        """Return the code of these maps, with the fields that all means from linear maps have."""
        return Sketch(
            dim=self.dim,
            k=self.k,
            kind=kind,
            noise=self.noise,
            sensitivity=self.sensitivity,
            value_bits=self.value_bits,
            decoded=decoded,
            moments=moments,
            rotated=rotated,
            independent=independent,
        )
