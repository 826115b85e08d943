"""Where the means of users lie: their spread, and bins that find them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.mechanisms import BinaryRandomizedResponse
from tacit.numerics import Array, IntArray, clip_box, settle

__all__ = ["Bins", "subgaussian_tau", "user_means"]

_REACH = 3
"""The range reaches three tau from the centre of the bin: the heavy bin may lie beside the true one."""


def subgaussian_tau(sigma: float, *, n: int, samples: int, gamma: float) -> float:
    """Return how far user means lie from the true mean, for all users at once.

    Args:
        sigma: Sub-Gaussian parameter of one sample, > 0. Public.
        n: Number of users.
        samples: Number of independent samples of each user.
        gamma: Probability that some user lies further away, in (0, 1).

    Returns:
        sigma sqrt(2 ln(2 n / gamma) / samples).

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(subgaussian_tau(1.0, n=5000, samples=100, gamma=0.05), 10)
        0.4940864832

    Reference:
        Girgis (2023), Definition 3.7.2, lacks the factor 2: 91% instead of 5% fail (docs/errata.md).
    """
    check_positive("sigma", sigma)
    check_count("n", n)
    check_count("samples", samples)
    check_probability("gamma", gamma, low_open=True, high_open=True)
    return sigma * math.sqrt(2 * math.log(2 * n / gamma) / samples)


def user_means(samples: npt.ArrayLike, bound: float) -> Array:
    """Average the samples of each user, clipped one by one.

    Args:
        samples: Shape (n, m). A user with a NaN or an infinity counts as zero.
        bound: Samples are clipped to [-bound, bound].

    Returns:
        Shape (n,).

    Raises:
        ParameterError: Another shape or dtype, or a bound that is not > 0.
    """
    check_positive("bound", bound)
    return np.asarray(clip_box(samples, lower=-bound, upper=bound).mean(axis=1, dtype=np.float64))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins:
    """Bins of width 2 tau that cover [-bound, bound]; the last may overhang.

    Attributes:
        bound: Of the numbers, > 0.
        tau: Half the width of a bin, > 0.

    Raises:
        ParameterError: A value is out of range, or there are more than 2**20 bins.

    Example:
        >>> bins = Bins(bound=10.0, tau=0.4940864832)
        >>> bins.count, bins.index(np.array([-10.0, 2.3])).tolist()
        (21, [0, 12])
    """

    bound: float
    tau: float

    def __post_init__(self) -> None:
        settle(self)
        check_positive("bound", self.bound)
        check_positive("tau", self.tau)
        if not self.bound / self.tau <= 2**20:
            raise ParameterError(f"tau must be at least bound / 2**20, got {self.tau!r}.")

    @property
    def count(self) -> int:
        """Number k of bins; with one, there is nothing to find."""
        return math.ceil(self.bound / self.tau)

    def index(self, values: Array) -> IntArray:
        """Bin of each number, 0 to k - 1; numbers outside belong to the nearest, a NaN counts as zero."""
        inside = np.clip(np.nan_to_num(values), -self.bound, self.bound)
        place = np.floor((inside + self.bound) / (2 * self.tau))
        return np.asarray(np.clip(place, 0, self.count - 1).astype(np.int64))

    def one_hot(self, values: Array) -> Array:
        """Rows for a mean of bins, shape (n, k)."""
        rows = np.zeros((len(values), self.count))
        rows[np.arange(len(values)), self.index(values)] = 1.0
        return rows

    def window(self, shares: Array) -> tuple[float, float]:
        """Return centre and half-width of the range around the fullest bin, from estimated shares."""
        if self.count == 1:
            return 0.0, self.bound
        return self.centre(int(np.argmax(shares))), _REACH * self.tau

    def centre(self, index: int) -> float:
        """Middle of a bin."""
        return -self.bound + (2 * index + 1) * self.tau

    @property
    def half_width(self) -> float:
        """Half the width of the range."""
        return self.bound if self.count == 1 else _REACH * self.tau

    def failure(self, n: int, epsilon: float) -> float:
        """Bound the probability that an empty bin wins, over n users with bits of level epsilon.

        It is 2 k exp(-n / (50 c^2)), c = (e^epsilon + 1) / (e^epsilon - 1), by Hoeffding with the proxy
        c^2 / n (Girgis 2023, Theorem 3.7.1, has 4 c^2 / n).
        """
        if self.count == 1:
            return 0.0
        gap = BinaryRandomizedResponse(epsilon).gap
        return min(1.0, 2 * self.count * math.exp(-n * gap**2 / 50))
