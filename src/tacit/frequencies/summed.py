"""A histogram of several tables: each adds a share of the noise, and only the sum is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_probability
from tacit.frequencies.bands import Band
from tacit.frequencies.central import ROWS
from tacit.frequencies.items import ItemCounts, Items
from tacit.frequencies.oracle import MOST_VALUES
from tacit.means import ModularSumMean, Round, counts_of_shares, modular_width
from tacit.mechanisms import discrete_gaussian_sum_quantile, discrete_gaussian_variance, whole_values
from tacit.numerics import Array
from tacit.privacy import Event, Neighbours, PrivacyBudget, TrustModel

__all__ = ["SummedHistogram"]

_RECORDS = Neighbours()
_MOST_SURE = 1 - 1e-9  # up to which quantiles of the noise are known


@dataclass(frozen=True, kw_only=True)
class SummedHistogram:
    """Counts of k values of several tables, of which nobody sees more than the sum, modulo a power of two.

    Attributes:
        mean: One table's counts, with its share of the noise.
        sizes: Public number of rows of each table, 2 or more tables.
        colluding: How many of the tables may add no noise and tell what they added.

    Guarantee:
        That of its event, exact: noise is drawn in whole steps, and shares are priced by what surely is in
        the sum (docs/theory/frequencies.md, section 12).

    Example:
        >>> histogram = SummedHistogram.calibrated(k=10, sizes=[500, 500], budget=PrivacyBudget(1.0, 1e-6))
        >>> round(histogram.std, 2), histogram.mean.width
        (5.98, 16)

    Reference:
        Kairouz, Liu and Steinke (2021), arXiv:2102.06387, for shares of discrete Gaussian noise.
    """

    mean: ModularSumMean
    sizes: tuple[int, ...]
    colluding: int = 0

    def __post_init__(self) -> None:
        for size in self.sizes:
            check_count("a number of units of a table", size)
        check_shares(len(self.sizes), self.colluding)
        if not self.mean.one_hot or self.mean.shares != len(self.sizes) - self.colluding:
            raise ParameterError("mean must be of one-hot rows, and count on a share of every honest table.")

    @classmethod
    def calibrated(
        cls,
        *,
        k: int,
        sizes: Sequence[int],
        budget: PrivacyBudget,
        colluding: int = 0,
        neighbours: Neighbours = _RECORDS,
    ) -> SummedHistogram:
        """Return the histogram of the least noise that meets a budget.

        Args:
            k: Number of values.
            sizes: Public number of rows of each table, 2 or more.
            budget: For whoever sees the sum, with delta > 0: noise is Gaussian.
            colluding: Tables that may add no noise and tell what they added, at most all but two.
            neighbours: Relation of the guarantee.

        Raises:
            ParameterError: A value is out of range.
            BudgetError: No noise meets the budget.
        """
        check_count("k", k, low=2, high=MOST_VALUES)
        sizes = [check_count("a number of units of a table", size, high=LARGEST_COUNT) for size in sizes]
        tables = len(sizes)
        check_shares(tables, colluding)
        mean = counts_of_shares(k=k, budget=budget, shares=tables - colluding, neighbours=neighbours)
        n, steps = sum(sizes), mean.noise.steps
        width = modular_width(rows=n, parties=tables, steps=steps, std=mean.std, dim=k, rounds=1)
        return cls(mean=msgspec.structs.replace(mean, width=width), sizes=tuple(sizes), colluding=colluding)

    @property
    def k(self) -> int:
        """Number of values."""
        return self.mean.dim

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self.sizes)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one count: of the shares of all tables."""
        return math.sqrt(self.tables * discrete_gaussian_variance(self.mean.std)) / self.mean.noise.steps

    @property
    def message_bits(self) -> int:
        """Bits of what a table sends, header included."""
        return int(self.mean.bits_per_party())

    def event(self, trust: TrustModel = TrustModel.AGGREGATE) -> Event:
        """Return what an observer learns: of the sum, or under local trust of one table's message alone."""
        return self.mean.event(max(self.sizes), trust)

    def mse(self, n: int) -> float:
        """Return the exact mean squared l2 error of the frequencies of n rows."""
        return self.k * (self.std / check_count("n", n)) ** 2

    def counts(self, values: npt.ArrayLike, rng: np.random.Generator) -> Array:
        """Have every table count its rows and add its share, and add up what they send.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1, table after table.
            rng: Source of all shares; a deployed table draws its own, from `randomness.secure()`.

        Returns:
            Shape (k,), in rows; a count may lie below 0.
        """
        held = whole_values("values", values, self.k)
        n = sum(self.sizes)
        if held.shape != (n,):
            raise ParameterError(f"values must have shape ({n},), got {held.shape}.")
        facts, counted = Round(n=n, radius=1.0, parties=self.tables), ItemCounts(self.k)
        sent = [
            message
            for party, rows in enumerate(np.split(held, np.cumsum(self.sizes[:-1])))
            for message in self.mean.encode_sum(
                counted.clipped_sum(Items(rows), {}, 1.0), rows=len(rows), round=facts, party=party, rng=rng
            )
        ]
        return n * self.mean.decode(sent, facts)

    def band(self, counts: npt.ArrayLike, n: int, confidence: float = 0.95) -> Band:
        """Return intervals that hold the frequencies of all values at once, as `NoisyHistogram.band` does.

        Args:
            counts: Shape (k,), with noise.
            n: Number of rows, public.
            confidence: Probability that none of the k intervals misses, at most 1 - 1e-9 for each of them; a
                sum that wraps around, in one of 2**40 answers, is not in it.

        Raises:
            ParameterError: `confidence` is out of range.
        """
        confidence = check_probability("confidence", confidence, low_open=True, high_open=True)
        one = 1 - (1 - confidence) / self.k
        if one > _MOST_SURE:
            raise ParameterError(
                f"confidence must leave 1e-9 to each of {self.k} intervals, got {confidence!r}."
            )
        steps = discrete_gaussian_sum_quantile(self.mean.std, one, count=self.tables)
        reach, seen = steps / self.mean.noise.steps, np.asarray(counts)
        return Band.inside((seen - reach) / n, (seen + reach) / n, confidence, ROWS)


def check_shares(tables: int, colluding: int) -> None:
    """Refuse tables that cannot hide each other in a sum."""
    if tables < 2:
        raise ParameterError(
            f"aggregate trust needs two tables or more, of which only the sum is seen, got {tables}."
        )
    check_count("colluding", colluding, low=0)
    if colluding > tables - 2:
        raise ParameterError(
            f"colluding must be at most {tables - 2} of {tables} tables, so that two shares of noise are "
            f"left, got {colluding}."
        )
