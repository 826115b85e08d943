"""Shuffled sums with binomial noise: every party sends one-bit messages, and their number hides each of them.

P_1D and P_VEC of Cheu, Joseph, Mao and Peng (2022), priced as in docs/theory/noise.md. A coordinate in
[-radius, radius] becomes a number of ones from 0 to `resolution`, rounded at random, and every row adds
`noise_bits` fair bits.
The observer of a shuffler sees as many bits as the sizes of the plan say, and the number of ones among them:
an integer sum plus Bin(n * noise_bits, 1/2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import BudgetError, ParameterError, RefusalError, check_count, check_probability
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.bit_counts import row_bytes
from tacit.means.grid import on_grid, round_rows, rounded_sum, scaled_sum, simulated_sum
from tacit.means.message import COUNTS_HEADER_BYTES, SMALLEST_RADIUS, Message, Round
from tacit.means.ones import MOST_BITS, bits_for_multiplier, received_ones
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.traits import RandomizedRows
from tacit.means.violations import OnViolation, check_on_violation, inside_rows
from tacit.mechanisms.binomial import sample_fair_binomial
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    Binomial,
    BinomialAlone,
    Event,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
    calibrate_binomial_sum,
)
from tacit.privacy.arrivals import least_honest

__all__ = ["BinomialMean"]


class BinomialMean(
    RandomizedRows,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="binomial",
):
    """A mean from one-bit messages that a shuffler mixes, one batch for every coordinate.

    Privacy needs the shuffler, who counts the rows of distinct parties that it has authenticated and holds
    back a batch of fewer than `n_min`, and enough honest parties. Only whole parties may be missing, and who
    arrives must not depend on the data or the noise of honest ones: a party that stays away because its bit
    is 1, or because its noise is not 0, tells that bit. What one party sends alone is hidden by its own
    noise bits only: little, and often not at all. `calibrated` and `for_multiplier` choose the parameters.
    The published ones are proven too, but need 400 to 540 times the standard deviation, so no constructor
    takes them (`tacit.literature.paper_vector_parameters` gives them for comparison).

    Attributes:
        dim: Number of coordinates of a row, >= 1. With one, this is the scalar sum: numbers in [0, Delta] are
            rows x - Delta/2 with radius Delta/2.
        noise_bits: Fair noise bits b that each row adds to each coordinate, >= 1.
        resolution: Grid steps g of the range of a coordinate, >= 1.
        honest_fraction: Fraction of the planned rows, in (0, 1], whose parties add their noise if they
            answer. The other parties collude, and are among those that answer.
        n_min: Rows below which the shuffler gives a round up, >= 2: what drops out takes its noise along. The
            price counts the noise of n_min rows less those of all colluders. None: all planned rows must
            arrive.
        neighbours: Replace-one only, since the number of messages is public.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.privacy import PrivacyBudget, TrustModel, guarantee
        >>> mean = BinomialMean.calibrated(PrivacyBudget(1.0, 1e-6), 10_000, 100)
        >>> mean.noise_bits, mean.resolution
        (20, 52)
        >>> guarantee(mean.event(10_000, TrustModel.SHUFFLE), 1e-6, observer="the analyst").epsilon
        0.987251

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Algorithms 1 (P_1D) and 2 (P_VEC).
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
        check_count("dim", self.dim, high=2**32)
        check_count("noise_bits", self.noise_bits, high=MOST_BITS)
        check_count("resolution", self.resolution, high=MOST_BITS)
        check_probability("honest_fraction", self.honest_fraction, low_open=True)
        if self.n_min is not None:
            check_count("n_min", self.n_min, low=2)
        check_on_violation(self.on_violation)
        if type(self.neighbours) is not Neighbours or self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "neighbours must be replace-one for binomial sums, whose number of messages is public, "
                f"got {self.neighbours!r}."
            )

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
        noise_bits: int | None = None,
        neighbours: Neighbours = Neighbours(),  # noqa: B008 - immutable
    ) -> BinomialMean:
        """Choose noise and grid that meet a budget, behind the shuffler, with few bits.

        Args:
            budget: For all rounds together; its delta must be > 0.
            n: Planned number of rows, >= 2.
            dim: Number of coordinates, >= 1.
            rounds: How many means of the same rows the budget is for.
            honest_fraction: Fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Rows below which the shuffler gives a round up, 2 to n; None: all n.
            mse_overhead: Largest relative excess of the error over the central Gaussian mechanism's.
            noise_bits: Noise bits of a row, where they are given; `mse_overhead` is then not used.
            neighbours: Unit and part; replace-one.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: No parameters meet the budget; the message says how many bits would do.

        Reference:
            docs/theory/noise.md, section 6.
        """
        check_count("n", n, low=2)
        found = calibrate_binomial_sum(
            budget,
            n,
            dim,
            rounds=rounds,
            honest_fraction=honest_fraction,
            n_min=n_min,
            mse_overhead=mse_overhead,
            noise_bits=noise_bits,
        )
        return cls(
            dim=dim,
            noise_bits=found.noise_bits,
            resolution=found.resolution,
            honest_fraction=honest_fraction,
            n_min=n_min,
            neighbours=neighbours,
        )

    @classmethod
    def for_multiplier(
        cls,
        *,
        dim: int,
        multiplier: float,
        honest: int,
        fineness: float = 1.0,
        neighbours: Neighbours = Neighbours(),  # noqa: B008 - immutable
    ) -> BinomialMean:
        """Choose noise bits whose standard deviation in the sum is at least `multiplier` sensitivities.

        The price is that of `event`, which also counts rounding and tails; a plan searches the multiplier.

        Args:
            dim: Number of coordinates, >= 1.
            multiplier: Standard deviation of the sum's noise over twice the radius, finite and > 0.
            honest: Rows that are sure to add their noise, >= 1. It becomes `n_min` where it is 2 or more:
                then fewer rows are not decoded, and `event(honest)` is the price.
            fineness: Grid steps over sqrt(dim), > 0. Rounding costs a factor of about 1 + 1 / (4 fineness^2)
                in variance, and the noise bits grow as its square.
            neighbours: Unit and part; replace-one.

        Raises:
            ParameterError: A value is out of its range, or the noise takes more than 2**31 - 1 bits a row.

        Example:
            >>> mean = BinomialMean.for_multiplier(dim=784, multiplier=5.0, honest=8_000)
            >>> mean.resolution, mean.noise_bits
            (28, 10)

        Reference:
            docs/theory/noise.md, section 6.
        """
        bits, g = bits_for_multiplier(dim=dim, multiplier=multiplier, honest=honest, fineness=fineness)
        return cls(
            dim=dim,
            noise_bits=bits,
            resolution=g,
            n_min=honest if honest > 1 else None,
            neighbours=neighbours,
        )

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer sums as accurate as a trusted server's, for many one-bit messages, and less accurate ones."""
        d, n = problem.dim, problem.n
        if problem.trust != "shuffle" or n < 2 or problem.known_budget.delta == 0:
            return
        for overhead in (0.1, 1.0):

            def make(overhead: float = overhead) -> BinomialMean:
                return cls.calibrated(
                    problem.known_budget, n, d, mse_overhead=overhead, neighbours=problem.near
                )

            try:
                found = make()
            except BudgetError:
                # Nothing ranks it; its calibration, which comes again, gives the reason.
                found = cls(dim=d, noise_bits=1, resolution=1, neighbours=problem.near)
            per_row = found.bits_per_coordinate
            yield Proposal(
                name=f"binomial sums, {per_row} bits a coordinate",
                family="binomial",
                guess=found,
                make=make,
                norm="l2",
                encode=ComputeCost("(g + b) d", float(per_row) * d),
                decode=ComputeCost("n (g + b) d", float(n) * per_row * d),
                note="every one-bit message is shuffled by itself; "
                "what one party sends is hidden by its own few noise bits only",
            )

    @property
    def bits_per_coordinate(self) -> int:
        """One-bit symbols of a row about one coordinate: g + b."""
        return self.resolution + self.noise_bits

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Write the bits of one party, those of its rows pooled: the shuffled batch is the same.

        Args:
            rows: Shape (k, dim), k >= 0. Rows are clipped; one with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the rounding and of the noise bits, which are counted exactly.

        Returns:
            One message: of the k (g + b) one-bit symbols about each coordinate, how many are 1; all are on
            the wire. No message where there is no row.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        rows = self._checked(rows, round.radius)
        ones = rounded_sum(rows, round.radius, self.resolution, rng=rng)
        return self.hidden(ones, len(rows), party=party, rng=rng)

    def encode_scaled(
        self, factors: Array, vectors: Array, round: Round, *, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write the bits of one party whose rows are multiples of vectors, as `encode` does.

        Args:
            factors: Shape (k,), float32 or float64; one that is not finite counts as zero.
            vectors: Shape (k, dim), float32 or float64, finite. No factor times its vector is longer than
                `round.radius`, but for `NORM_SLACK`.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the rounding and of the noise bits.

        Raises:
            ParameterError: Arrays of other shapes.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dim or factors.shape != vectors.shape[:1]:
            raise ParameterError(
                f"factors and vectors must have shapes (k,) and (k, {self.dim}), got {factors.shape} and "
                f"{vectors.shape}."
            )
        ones = scaled_sum(factors, vectors, round.radius, self.resolution, rng=rng)
        return self.hidden(ones, len(factors), party=party, rng=rng)

    def counts(self, rows: Array, round: Round, *, rng: np.random.Generator) -> IntArray:
        """Return how many ones each row sends about each coordinate, shape (k, dim): rounding plus noise."""
        rounded = round_rows(self._checked(rows, round.radius), round.radius, self.resolution, rng=rng)
        return rounded + sample_fair_binomial(self.noise_bits, rounded.shape, rng)

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the noise is in the messages
    ) -> Array:
        """Count the ones of every coordinate, take off the expected noise, and divide by the planned n.

        Args:
            messages: Shuffled or not, in any order; senders are ignored.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected. Rows that did not arrive count as zero.

        Raises:
            ParameterError: A message that `encode` cannot have written.
            RefusalError: Fewer rows than `n_min`: the noise would be less than what is priced. Who decodes
                has seen the batch by then: the shuffler must have given the round up before.
        """
        ones, received = received_ones(messages, self.dim, self.bits_per_coordinate)
        if received < self._fewest(round.n):
            raise RefusalError(
                f"the messages of {received} rows carry less noise than is priced: at least "
                f"{self._fewest(round.n)} rows are needed."
            )
        return self.mean_of_ones(ones, received, round)

    def estimate(self, X: Array | Iterable[Array], round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once: every row is rounded, and each coordinate gets one binomial draw.

        Not for release: what leaves goes through `encode` and `decode`, whose noise is counted bit by bit.

        Args:
            X: Shape (n, dim), or blocks of rows of shape (k, dim) each where all at once are too many.
            round: Public facts of the round.
            rng: Source of the rounding and of the noise; the latter by NumPy's `binomial`.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties. Rows in float32 are
            clipped in float32 and kept to 2**-16 of a grid step, for speed; float64 rows are not.

        Raises:
            ParameterError: Rows of another shape, or of a dtype that is not real.
            RefusalError: Fewer rows than `n_min`.

        Cost:
            About 2 ns an entry in float32, 10 in float64; memory of one block.
        """
        blocks = [X] if isinstance(X, np.ndarray) else X
        checked = (self._checked(block, round.radius) for block in blocks)
        ones, received = simulated_sum(checked, round.radius, self.resolution, dim=self.dim, rng=rng)
        if received < self._fewest(round.n):
            raise RefusalError(f"at least {self._fewest(round.n)} rows are needed, got {received}.")
        return self.mean_of_ones(
            ones + rng.binomial(received * self.noise_bits, 0.5, self.dim), received, round
        )

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Args:
            n: Planned number of rows.
            trust: Whose view is priced. Local: the messages of one party that holds those n rows, seen before
                they are shuffled. Its own noise bits alone hide them, often at no finite epsilon.

        Raises:
            ParameterError: `n` is not a whole number >= 1 or below `n_min`, or `n_min` is not above the
                number of rows that are not honest.
        """
        check_count("n", n)
        if trust == TrustModel.LOCAL:
            return BinomialAlone(self.noise_bits * n, self.resolution, self.dim, neighbours=self.neighbours)
        honest = least_honest(n, honest_fraction=self.honest_fraction, n_min=self.n_min)
        return Binomial(self.noise_bits * honest, self.resolution, self.dim, neighbours=self.neighbours)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends: whole bytes a coordinate, and a header."""
        check_count("rows", rows, low=0)
        body = self.dim * row_bytes(rows * self.bits_per_coordinate)
        return 8 * (COUNTS_HEADER_BYTES + body) if rows else 0

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows; exact but for the rounding of the rows.

        s^2 d n (b + 1) / 4 / n^2 with the step s = 2 radius / g: rounding to the grid adds at most 1/4 a row.
        `variance` gives it exactly for given rows.
        """
        check_count("n", n)
        step = 2 * facts.radius / self.resolution
        return Error(variance=step * step * self.dim * (self.noise_bits + 1) / 4 / n, exact=False)

    def variance(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate from these rows, which it therefore tells about.

        s^2 (sum of f (1 - f) + d k b / 4) / n^2, where f are the fractions of a grid step of the k rows.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        rows = self._checked(rows, round.radius)
        fractions = np.modf(on_grid(rows, round.radius, self.resolution))[0]
        step = 2 * round.radius / self.resolution
        rounding = float((fractions * (1 - fractions)).sum())
        return step * step * (rounding + self.dim * len(rows) * self.noise_bits / 4) / round.n**2

    def hidden(self, ones: IntArray, rows: int, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Return the message of a party whose rounded rows add up to `ones`, its noise bits added."""
        ones += sample_fair_binomial(rows * self.noise_bits, self.dim, rng)
        symbols = rows * self.bits_per_coordinate
        return [Message(payload=ones, symbols=symbols, sender=party)] if rows else []

    def _fewest(self, n: int) -> int:
        """Return the fewest rows that are decoded when n are planned."""
        return n if self.n_min is None else self.n_min

    def _checked(self, rows: Array, radius: float) -> Array:
        """Return rows of the right shape, not yet clipped."""
        return inside_rows(rows, radius, ball="l2", dim=self.dim, refuse=self.refuses)

    def mean_of_ones(self, ones: IntArray, received: int, round: Round) -> Array:
        """Return the estimate; all is an integer until the last line, so nothing leaks from rounding."""
        # s (ones - b k / 2) - k radius with s = 2 radius / g, in units of radius / g.
        doubled = 2 * ones - received * self.bits_per_coordinate
        unit = round.radius / self.resolution if round.radius >= SMALLEST_RADIUS else 0.0
        return np.asarray(doubled * (unit / round.n))
