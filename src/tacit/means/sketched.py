"""Means from vectors that parties shorten by public linear maps, with or without noise.

Party i holds v_i, the sum of its clipped rows, and sends y_i = G_i v_i + z_i, k numbers. G_i is drawn from
(seed, number of the round, party), so the server needs the sender of every message and rebuilds G_i. With
n parties that answered, the server estimates the mean of the v_i and scales it to (1 / planned rows) sum v_i.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np

from tacit.compression import CommonRotation, MapKind, Maps, SpectralMoments, draw_maps, padded_dim
from tacit.errors import ParameterError, check_count
from tacit.means.base import SETTLED, WORST_CASE, Error, Facts, worst_error
from tacit.means.message import HEADER_BYTES, MOST_COORDINATES, Message, Round, by_sender, check_released
from tacit.means.noise import AnyNoise, NoNoise
from tacit.means.party_sums import party_sums
from tacit.means.traits import SumOfRows
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, next_power_of_two, settle
from tacit.privacy import Event, Neighbours, Relation, TrustModel
from tacit.randomness import PublicStream

__all__ = ["SketchedMean", "check_local", "float_values"]

_ORTHONORMAL = ("subsample", "srht", "haar")


class SketchedMean(
    SumOfRows, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator"
):
    """What all means from linear maps share; each of them names its maps, its decoder and its moments.

    The price is that of the noise on a vector of k numbers: maps with orthonormal rows bring no two vectors
    further apart, whatever the public seed. No amplification is claimed for the compression.

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

    dim: int
    k: int
    noise: AnyNoise = NoNoise()
    value_bits: Literal[32, 64] = 32
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_count("dim", self.dim, high=MOST_COORDINATES)
        check_local(self.trust, self.neighbours)
        check_on_violation(self.on_violation)
        self._check_options()
        check_count("k", self.k, high=padded_dim(self._kind, self._map_dim))
        if self.value_bits not in (32, 64):
            raise ParameterError(f"value_bits must be 32 or 64, got {self.value_bits!r}.")
        if isinstance(self.noise, NoNoise):
            return
        if self.value_bits != 32:
            raise ParameterError("value_bits must be 32 with noise, which decides itself what leaves.")
        if self._kind not in _ORTHONORMAL:
            raise ParameterError(
                f"noise needs maps with orthonormal rows (subsample, srht, haar), not {self._kind}: others "
                "may lengthen a vector."
            )
        if self.noise.norm != "l2" and (self._kind != "subsample" or self._rotated):
            raise ParameterError(
                f"noise in the {self.noise.norm} norm needs plain coordinates, as RandK sends."
            )

    def _check_options(self) -> None:
        """Refuse options that only this estimator has."""

    @property
    def sums(self) -> tuple[()]:
        """No sums are taken that others added up."""
        return ()

    @property
    def _kind(self) -> MapKind:
        """Which maps."""
        raise NotImplementedError

    @property
    def _rotated(self) -> bool:
        """Whether a rotation that all parties share comes before the maps."""
        return False

    def _mean(self, maps: Maps, Y: Array, planned: int) -> Array:
        """Estimate the mean of the (rotated) vectors from what `planned` parties or fewer sent."""
        raise NotImplementedError

    def _moments(self, parties: int) -> SpectralMoments:
        """Return what the error is computed from."""
        raise NotImplementedError

    @property
    def sensitivity(self) -> int:
        """Radii by which one unit moves a party's sum."""
        return 2 if self.neighbours.relation == Relation.REPLACE_ONE else 1

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and add up the rows of one party, and write one message with the k numbers of its sketch.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Public index of the party, from 0 to 2**63 - 1; decides its map.
            rng: Source of the noise.

        Returns:
            One message of `bits_per_party(k)` bits under replace-one, where k is public; else of
            `bits_per_party(round.n)` bits.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(rows, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        planned = len(clipped) if self.sensitivity == 2 else round.n
        summed = clipped.sum(axis=0, dtype=np.float64)
        return self.encode_sum(summed, rows=planned, round=round, party=party, rng=rng)

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write one message from the sum of a party's clipped rows; see `AdditiveMean.encode_sum`.

        Args:
            clipped_sum: Shape (dim,), float64 where noise is on a grid.
            rows: Public number of rows that the length of the message is made for.
            round: Public facts of the round.
            party: Public index of the party.
            rng: Source of the noise.

        Returns:
            One message of `bits_per_party(rows)` bits.

        Raises:
            ParameterError: `clipped_sum` has another shape or dtype.
        """
        if clipped_sum.shape != (self.dim,):
            raise ParameterError(f"clipped_sum must have shape ({self.dim},), got {clipped_sum.shape}.")
        _, _, width = self._form(rows)
        maps = self._maps(round, [party])
        Y = maps.encode(self._turned(clipped_sum[None], round))
        (payload,) = self._written(Y, maps, round, rng, width)
        return [Message(payload=payload, width=width, sender=party)]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Estimate the mean from the messages of all parties that answered.

        The factor that removes the bias is that of the parties that answered, so some may drop out; the
        divisor stays the planned n.

        Args:
            messages: One of each party that answered, with its sender, in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, one without a sender, two of one sender, one that `encode` cannot
                have written (another form, a NaN, an infinity), or an estimate that overflows.
        """
        senders, payloads = self._read(messages)
        maps = self._maps(round, senders)
        return self._released(payloads, maps, round)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does; with `round.parties` = n, one to each.
            round: Public facts of the round.
            rng: Source of all noise.

        Returns:
            Shape (dim,), float64: what `decode` makes of the messages of all parties, up to saturation of
            integers (probability below 1e-27).

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        clipped = clipped_rows(X, round.radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        maps = self._maps(round, range(round.parties))
        Y = maps.encode(self._turned(party_sums(clipped, round.parties), round))
        return self._released(self._written(Y, maps, round, rng, 64), maps, round)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what any observer learns from one round: the price of the noise on k numbers.

        Args:
            n: The most rows that a party's sum may hold; it bounds the rounding of the sum.
            trust: Whose view is priced; the noise of a party protects from all of them alike.

        Raises:
            ParameterError: `n` is not a whole number >= 1, or too large for noise on a grid.
        """
        check_count("n", n)
        return self.noise.event(
            n + self._roundings, self.k, sensitivity=self.sensitivity, neighbours=self.neighbours
        )

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits, header included, of a message made for that many rows."""
        check_count("rows", rows, low=0)
        count, dtype, width = self._form(rows)
        return 8 * (HEADER_BYTES + (count * (width or 8 * np.dtype(dtype).itemsize) + 7) // 8)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows, over the maps and the noise.

        It depends on the rows only through S1 and R of the parties' sums, and is exact where `facts` gives
        both, as far as the moments are: 1e-3 where they are a limit, and to a standard error of one per cent
        where they are simulated. Else it is a bound, or an estimate with the standard error that it states:
        the transform `max` errs by inverse eigenvalues, which have no mean where n k is next to d. Where the
        number of parties is not given, it is the largest error of 1, 2, d / k and n parties.

        Reference:
            Derived in `tacit.compression.spectral` and `tacit.compression.moments`.
        """
        check_count("n", n)
        fill = padded_dim(self._kind, self._map_dim) / self.k
        return worst_error(
            lambda known: self._error(n, known),
            n,
            facts,
            suspects=() if self._independent else (2, math.floor(fill), math.ceil(fill)),
        )

    @property
    def _independent(self) -> bool:
        """Whether the error does not depend on the correlation of the parties."""
        return False

    def _error(self, n: int, facts: Facts) -> Error:
        """Return the error for a known number of parties."""
        parties = facts.parties or 1
        moments = self._moments(parties)
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

    @property
    def _map_dim(self) -> int:
        """Coordinates of what the maps are applied to."""
        return next_power_of_two(self.dim) if self._rotated else self.dim

    @property
    def _roundings(self) -> int:
        """Rows more that cover, in the bound on float64 summation, how the maps and the dither round.

        The bound for n rows counts n + 4 roundings of vectors of norm at most n radii. A product with a dense
        f x f matrix of signs errs by f roundings of the product of sizes, whose norm is sqrt(f) times that of
        the result; fast transforms are made of such products with f <= 32, one for up to five stages, which
        is below 40 roundings a stage. A product with k unit rows errs by d roundings in each of k entries.
        The dither is at most half a step in each of k entries; a rounding of it is below sqrt(k) roundings of
        a step (below k in the L1 norm, and the bound grows with the square of what is returned here).
        """
        of_map = 0
        if self._kind == "srht":
            of_map = 40 * padded_dim(self._kind, self._map_dim).bit_length()
        elif self._kind == "haar":
            of_map = math.ceil((4 * self._map_dim + 64) * math.sqrt(self.k))
        if self._rotated:
            of_map += 40 * self._map_dim.bit_length()
        return of_map + math.isqrt(self.k) + 4

    def _form(self, rows: int) -> tuple[int, type[np.generic], int]:
        """Return the entries of a message, their type, and their width (0 for floats)."""
        noise = self.noise
        if isinstance(noise, NoNoise):
            return self.k, np.float32 if self.value_bits == 32 else np.float64, 0
        return (
            self.k,
            noise.dtype,
            noise.entry_bits(rows, sensitivity=self.sensitivity) if noise.on_grid else 0,
        )

    def _maps(self, round: Round, senders: Any) -> Maps:
        """Return the maps of parties in this round."""
        return draw_maps(self._kind, self._map_dim, self.k, senders, seed=round.seed, round=round.number)

    def _turned(self, vectors: Array, round: Round) -> Array:
        """Return the vectors that the maps are applied to."""
        return self._rotation(round).apply(vectors) if self._rotated else vectors

    def _rotation(self, round: Round) -> CommonRotation:
        """Return the rotation that all parties share in this round."""
        return CommonRotation(self.dim, seed=round.seed, round=round.number)

    def _written(self, Y: Array, maps: Maps, round: Round, rng: np.random.Generator, width: int) -> Array:
        """Return payloads, shape (n, k), from sketches of that shape."""
        noise = self.noise
        if isinstance(noise, NoNoise):
            return float_values(Y, self.value_bits)
        summed = noise.prepare(Y + self._dither(maps, round), round.radius)
        drawn = noise.sample(summed.size, sensitivity=self.sensitivity, radius=round.radius, rng=rng)
        return noise.published(summed + drawn.reshape(summed.shape), width)

    def _read(self, messages: list[Message]) -> tuple[list[int], Array]:
        """Return the senders and their payloads, shape (n, k)."""
        count, dtype, _ = self._form(1)
        # Parties may hold different numbers of rows: integers of any width are read.
        senders, (payloads,) = by_sender(messages, [(count, dtype, None)])
        return senders, payloads

    def _released(self, payloads: Array, maps: Maps, round: Round) -> Array:
        """Return the estimate from all payloads, shape (n, k)."""
        Y = payloads.astype(np.float64) * self.noise.unit(round.radius) - self._dither(maps, round)
        # Decoders are linear, and square what they get: scaled, it cannot overflow on the way.
        peak = float(np.max(np.abs(Y)))
        if peak == 0:
            return np.zeros(self.dim)
        mean = self._mean(maps, Y / peak, max(round.parties, maps.n))
        if self._rotated:
            mean = self._rotation(round).invert(mean[None])[0]
        with np.errstate(over="ignore"):
            return check_released(mean * (maps.n / round.n) * peak)

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


def check_local(trust: TrustModel, neighbours: Neighbours) -> None:
    """Refuse a trust model under which messages lose their sender, and what is not a relation.

    Raises:
        ParameterError: `trust` is not local, or `neighbours` not `Neighbours`.
    """
    if type(trust) is not TrustModel or trust is not TrustModel.LOCAL:
        raise ParameterError(
            f"trust must be TrustModel.LOCAL, got {trust!r}: a message is decoded by who sent it, and a "
            "shuffler hides that."
        )
    if type(neighbours) is not Neighbours:
        raise ParameterError(f"neighbours must be Neighbours, got {neighbours!r}.")


def float_values(values: Array, bits: int) -> Array:
    """Return values as floats of 32 or 64 bits; larger ones than float32 holds saturate."""
    if bits == 64:
        return values.astype(np.float64, copy=False)
    top = float(np.finfo(np.float32).max)
    return np.clip(values, -top, top).astype(np.float32)
