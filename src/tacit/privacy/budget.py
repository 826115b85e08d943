"""How much may be revealed."""

from __future__ import annotations

import math

import msgspec

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.numerics import settle

__all__ = ["DECIMAL", "DIGITS", "Budget", "PrivacyBudget", "ZcdpBudget", "stated_epsilon"]

DECIMAL = 1 + 1e-14
"""By what factor equal numbers may differ because decimals such as 0.1 are rounded: 0.01 * 1e-4 > 1e-6."""

DIGITS = 6
"""A stated epsilon is rounded up to this many decimals, so that any lowered digit is a false claim."""


class ZcdpBudget(msgspec.Struct, frozen=True):
    """A budget of zero-concentrated differential privacy.

    Attributes:
        rho: Every Rényi divergence of order alpha is at most alpha * rho. Finite, > 0.
    """

    rho: float

    def __post_init__(self) -> None:
        settle(self)
        check_positive("rho", self.rho)


class PrivacyBudget(msgspec.Struct, frozen=True):
    """An (epsilon, delta) budget.

    Attributes:
        epsilon: Finite, > 0.
        delta: In [0, 1); 0 is pure differential privacy, which no Gaussian noise can give.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        settle(self)
        check_positive("epsilon", self.epsilon)
        # Written out so that NaN is refused: it fails both comparisons.
        check_probability("delta", self.delta, high_open=True)

    @staticmethod
    def zcdp(rho: float) -> ZcdpBudget:
        """Return a budget of `rho`-zero-concentrated differential privacy (Bun and Steinke 2016)."""
        return ZcdpBudget(rho)

    def covers(self, epsilon: float, delta: float) -> bool:
        """Whether a price is within this budget, whose epsilon counts rounded up, as one that is stated.

        Args:
            epsilon: Of a price; one that a `Guarantee` states is rounded up to 6 decimals.
            delta: The same.

        Raises:
            ParameterError: One of them is NaN, which no budget covers.

        Example:
            >>> PrivacyBudget(1 / 3).covers(0.333334, 0.0), PrivacyBudget(0.333333).covers(0.333334, 0.0)
            (True, False)
        """
        if math.isnan(epsilon) or math.isnan(delta):
            raise ParameterError(f"a price cannot be NaN, got epsilon={epsilon!r}, delta={delta!r}.")
        return epsilon <= stated_epsilon(self.epsilon) and delta <= self.delta


Budget = PrivacyBudget | ZcdpBudget


def stated_epsilon(epsilon: float) -> float:
    """Return an epsilon as it is stated: rounded up to so many decimals."""
    if not math.isfinite(epsilon):
        return epsilon
    nearest = float(round(epsilon, DIGITS))
    # 0.1 + 0.2 exceeds 0.3 by the rounding of decimals alone: that is not a reason to state 0.300001.
    if epsilon <= nearest * DECIMAL:
        return nearest
    return math.ceil(epsilon * 10.0**DIGITS) / 10.0**DIGITS
