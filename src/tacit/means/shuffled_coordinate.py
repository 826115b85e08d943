"""Shuffled binomial sums of rows whose coordinates are clipped one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import BudgetError, RefusalError, check_count, check_non_negative
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.binomial import BinomialMean
from tacit.means.grid import round_rows
from tacit.means.message import Message, Round
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.traits import RandomizedRows
from tacit.means.violations import OnViolation, clipped_rows, inside_rows
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    Event,
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Repeat,
    TrustModel,
    calibrate,
    meets,
)
from tacit.privacy.arrivals import least_honest

__all__ = ["ShuffledCoordinateMean"]

_GRIDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
"""Grid steps of a coordinate that a calibration tries: bits grow as their square."""

_MOST_SEARCHED = 10**8
"""Noise bits of all honest rows that it tries, or 100 of each."""


class ShuffledCoordinateMean(
    RandomizedRows,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="shuffled-coordinate",
):
    """A mean from one-bit messages that a shuffler mixes, of rows of the cube [-radius, radius]^dim.

    As `BinomialMean`, whose bits and conditions it has, but every coordinate is clipped and rounded for
    itself, to a number from 0 to `resolution`. All coordinates of a row may change by all of that: in the L2
    norm, it moves the sums by at most `resolution` * sqrt(dim), and that is priced. For rows of a cube it
    sends fewer bits than `BinomialMean` for the ball around it, whose grid is as fine: that one needs
    `resolution` * sqrt(dim) bits for what is `resolution` bits here.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise_bits: Fair noise bits b that each row adds to each coordinate, >= 1.
        resolution: Grid steps g of the range [-radius, radius] of a coordinate, >= 1.
        honest_fraction: As in `BinomialMean`.
        n_min: As in `BinomialMean`.
        neighbours: Replace-one only, since the number of messages is public.
        on_violation: What becomes of a row outside of the cube: "clip" moves its coordinates to the nearest
            that are inside. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> mean = ShuffledCoordinateMean.calibrated(PrivacyBudget(1.0, 1e-6), 10_000, 100)
        >>> mean.noise_bits, mean.resolution
        (26, 6)

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Algorithm 1, for each coordinate; Lowy (2023), Appendix C.7.2.
    """

    dim: int
    noise_bits: int
    resolution: int
    honest_fraction: float = 1.0
    n_min: int | None = None
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None
    trust: ClassVar[TrustModel] = TrustModel.SHUFFLE

    def __post_init__(self) -> None:
        settle(self)
        self._sums(self.resolution)  # which checks the fields

    @classmethod
    def calibrated(
        cls,
        budget: PrivacyBudget,
        n: int,
        dim: int,
        *,
        rounds: int = 1,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        mse_overhead: float = 0.1,
        neighbours: Neighbours = Neighbours(),  # noqa: B008 - immutable
    ) -> ShuffledCoordinateMean:
        """Choose noise and grid that meet a budget, behind the shuffler, with few bits.

        Args:
            budget: For all rounds together; its delta must be > 0.
            n: Planned number of rows, >= 2.
            dim: Number of coordinates, >= 1.
            rounds: How many means of the same rows the budget is for.
            honest_fraction: Fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Rows below which the shuffler gives a round up, 2 to n; None: all n.
            mse_overhead: Largest relative excess of the error over that of central Gaussian noise for the
                cube, >= 0; where fewer are sure to be honest, over that times n / honest.
            neighbours: Unit and part; replace-one.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: No parameters meet the budget with that error.
        """
        check_count("n", n, low=2)
        check_count("dim", dim)
        check_count("rounds", rounds)
        check_non_negative("mse_overhead", mse_overhead)
        honest = least_honest(n, honest_fraction=honest_fraction, n_min=n_min)
        multiplier = calibrate(Gaussian, budget, low=1e-6, high=1e9)
        allowed = (1 + mse_overhead) * n / honest * 4 * dim * dim * rounds * (multiplier / n) ** 2

        def build(resolution: int, bits: int) -> ShuffledCoordinateMean:
            return cls(
                dim=dim,
                noise_bits=bits,
                resolution=resolution,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            )

        most = max(_MOST_SEARCHED // honest, 100)
        for resolution in _GRIDS:
            # Gaussian noise of that variance would need about these bits; tails and rounding need more.
            guess = math.floor((2 * resolution * multiplier) ** 2 * dim * rounds / honest)
            if guess > most:
                break

            def private(bits: int, resolution: int = resolution) -> bool:
                once = build(resolution, bits).event(n, TrustModel.SHUFFLE)
                return meets(once if rounds == 1 else Repeat(once, rounds), budget)

            bits = _least(private, max(guess, 1), high=most)
            if bits is not None and build(resolution, bits).error(n).variance <= allowed:
                return build(resolution, bits)
        raise BudgetError(
            f"mse_overhead = {mse_overhead!r} cannot be met by {honest} honest parties at epsilon = "
            f"{budget.epsilon:.6g}, delta = {budget.delta:.3g} in {dim} dimensions and {rounds} rounds: "
            "allow more."
        )

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer sums as accurate as a trusted server's, where rows fill a cube or a moment is known."""
        d, n = problem.dim, problem.n
        if problem.trust != "shuffle" or n < 2 or problem.known_budget.delta == 0:
            return
        yield Proposal(
            name="binomial sums, coordinate by coordinate",
            family="binomial, coordinate by coordinate",
            make=lambda: cls.calibrated(problem.known_budget, n, d, neighbours=problem.near),
            norm="linf",
            encode=ComputeCost("(g + b) d", 100.0 * d),
            decode=ComputeCost("n (g + b) d", 100.0 * n * d),
            note="every one-bit message is shuffled by itself; "
            "what one party sends is hidden by its own few noise bits only",
            ranked=problem.norm == "linf" or problem.moment is not None,
            cube=True,
        )

    @property
    def bits_per_coordinate(self) -> int:
        """One-bit symbols of a row about one coordinate: g + b."""
        return self.resolution + self.noise_bits

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Write the bits of one party, those of its rows pooled: the shuffled batch is the same.

        Args:
            rows: Shape (k, dim), k >= 0. Coordinates are clipped; a row with a NaN or an infinity counts as
                zero.
            round: Public facts of the round; the radius is half the side of the cube.
            party: Index of the party.
            rng: Source of the rounding and of the noise bits, which are counted exactly.

        Returns:
            One message, as `BinomialMean.encode` writes it; none where there is no row.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        ones = self._rounded(rows, round, rng)
        return self._sums(self.resolution).hidden(ones.sum(axis=0), len(ones), party=party, rng=rng)

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Count the ones of every coordinate, take off the expected noise, and divide by the planned n.

        Raises:
            ParameterError: A message that `encode` cannot have written.
            RefusalError: Fewer rows than `n_min`; see `BinomialMean.decode`.
        """
        return self._sums(self.resolution).decode(messages, round, rng=rng)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once, all rows of shape (n, dim); not for release.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
            RefusalError: Fewer rows than `n_min`.
        """
        fewest = round.n if self.n_min is None else self.n_min
        inside = inside_rows(X, round.radius, ball="cube", dim=self.dim, refuse=self.refuses)
        if len(inside) < fewest:
            raise RefusalError(f"at least {fewest} rows are needed, got {len(inside)}.")
        ones = self._rounded(inside, round, rng).sum(axis=0)
        ones += rng.binomial(len(inside) * self.noise_bits, 0.5, self.dim)
        return self._sums(self.resolution).mean_of_ones(ones, len(inside), round)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round, as `BinomialMean.event`."""
        # Levels from 0 to g: rounding adds nothing to a distance of g sqrt(d), the next whole number here.
        return self._sums(math.isqrt(self.resolution**2 * self.dim - 1) + 1).event(n, trust)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends: whole bytes a coordinate, and a header."""
        return self._sums(self.resolution).bits_per_party(rows)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return a bound on the error against the mean of the clipped rows; see `BinomialMean.error`."""
        return self._sums(self.resolution).error(n, facts)

    def _rounded(self, rows: Array, round: Round, rng: np.random.Generator) -> IntArray:
        """Return the rounded rows, shape (k, dim): every coordinate is a row of one."""
        clipped = clipped_rows(rows, round.radius, ball="cube", dim=self.dim, refuse=self.refuses)
        alone = round_rows(clipped.reshape(-1, 1), round.radius, self.resolution, rng=rng)
        return alone.reshape(clipped.shape)

    def _sums(self, distance: int) -> BinomialMean:
        """The sums of one-bit messages, for rows that are that many steps apart."""
        return BinomialMean(
            dim=self.dim,
            noise_bits=self.noise_bits,
            resolution=distance,
            honest_fraction=self.honest_fraction,
            n_min=self.n_min,
            neighbours=self.neighbours,
            on_violation=self.on_violation,
        )


def _least(private: Callable[[int], bool], start: int, *, high: int) -> int | None:
    """Return the fewest noise bits that are private, of those from `start` on; None where none are."""
    low, step = start - 1, 1
    while not private(min(low + step, high)):
        if low + step >= high:
            return None
        low, step = low + step, 2 * step
    top = min(low + step, high)
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (low, middle) if private(middle) else (middle, top)
    return top
