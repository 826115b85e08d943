"""A histogram with noise, of a server who is trusted to see the values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_probability
from tacit.frequencies.bands import Band
from tacit.frequencies.oracle import MOST_VALUES
from tacit.mechanisms import (
    discrete_gaussian_sum_quantile,
    discrete_gaussian_variance,
    discrete_laplace_sum_quantile,
    discrete_laplace_variance,
    sample_discrete_gaussian,
    sample_discrete_laplace,
    whole_values,
)
from tacit.numerics import Array, settle
from tacit.privacy import DiscreteGaussian, DiscreteLaplace, Event, Neighbours, PrivacyBudget, calibrate

__all__ = ["ROWS", "NoisyHistogram"]

_RECORDS = Neighbours()
ROWS = "the frequencies of the rows"
_MOST_SURE = 1 - 1e-9  # up to which quantiles of the noise are known


@dataclass(frozen=True, kw_only=True)
class NoisyHistogram:
    """Counts of k values, each with discrete noise of its own.

    One row moves two counts by one: by 2 in the L1 norm, by sqrt(2) in the L2 norm.

    Attributes:
        k: Number of values, from 2 to 2**24 - 1.
        scale: Of discrete Laplace noise, or the parameter sigma of discrete Gaussian noise, in rows.
        gaussian: Which of them.

    Guarantee:
        That of its event, exact: noise is drawn in whole numbers.

    Example:
        >>> histogram = NoisyHistogram.calibrated(k=10, budget=PrivacyBudget(1.0))
        >>> histogram.scale, round(histogram.mse(1000), 8)
        (2.0, 7.835e-05)

    Reference:
        Dwork et al. (2006), TCC; Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4.
    """

    k: int
    scale: float
    gaussian: bool = False

    def __post_init__(self) -> None:
        settle(self)
        check_count("k", self.k, low=2, high=MOST_VALUES)
        _ = self.std  # refuses scales that nothing is drawn at

    @classmethod
    def calibrated(
        cls, *, k: int, budget: PrivacyBudget, neighbours: Neighbours = _RECORDS
    ) -> NoisyHistogram:
        """Return the histogram of the least noise that meets a budget.

        Args:
            k: Number of values.
            budget: With a delta of 0, noise is Laplace; else the one of the two that is less.
            neighbours: A replace-one relation.

        Raises:
            BudgetError: No noise meets the budget.
        """
        # Pure privacy at epsilon is a scale of 2 / epsilon; a delta rarely allows for less.
        pure = cls(k=k, scale=calibrate(lambda b: cls(k=k, scale=b).event(neighbours), budget))
        if budget.delta == 0:
            return pure
        std = calibrate(lambda s: cls(k=k, scale=s, gaussian=True).event(neighbours), budget)
        return min(pure, cls(k=k, scale=std, gaussian=True), key=lambda one: one.std)

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one count."""
        variance = discrete_gaussian_variance if self.gaussian else discrete_laplace_variance
        return math.sqrt(variance(self.scale))

    def event(self, neighbours: Neighbours = _RECORDS) -> Event:
        """Return what an observer of the counts learns."""
        if self.gaussian:
            return DiscreteGaussian(self.scale, math.sqrt(2), neighbours, self.k)
        return DiscreteLaplace(self.scale, 2, self.k, neighbours)

    def mse(self, n: int) -> float:
        """Return the exact mean squared l2 error of the frequencies of n rows."""
        return self.k * (self.std / check_count("n", n)) ** 2

    def counts(self, values: npt.ArrayLike, rng: np.random.Generator) -> Array:
        """Count rows and add noise.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1.
            rng: Source of the noise; a deployment passes `randomness.secure()`.

        Returns:
            Shape (k,), int64; a count may lie below 0.
        """
        held = np.bincount(whole_values("values", values, self.k).ravel(), minlength=self.k)
        draw = sample_discrete_gaussian if self.gaussian else sample_discrete_laplace
        return held + draw(self.scale, self.k, rng)

    def band(self, counts: npt.ArrayLike, n: int, confidence: float = 0.95) -> Band:
        """Return intervals that hold the frequencies of all values at once.

        Args:
            counts: Shape (k,), with noise.
            n: Number of rows, public.
            confidence: Probability that none of the k intervals misses, at most 1 - 1e-9 for each of them.

        Raises:
            ParameterError: `confidence` is out of range.
        """
        confidence = check_probability("confidence", confidence, low_open=True, high_open=True)
        one = 1 - (1 - confidence) / self.k
        if one > _MOST_SURE:
            raise ParameterError(
                f"confidence must leave 1e-9 to each of {self.k} intervals, got {confidence!r}."
            )
        quantile = discrete_gaussian_sum_quantile if self.gaussian else discrete_laplace_sum_quantile
        reach = quantile(self.scale, one)
        seen = np.asarray(counts)
        return Band.inside((seen - reach) / n, (seen + reach) / n, confidence, ROWS)
