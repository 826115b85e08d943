"""How much may be revealed."""

from __future__ import annotations

import math

import msgspec

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.numerics import settle

__all__ = ["Budget", "PrivacyBudget", "ZcdpBudget"]


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
        """Whether (epsilon, delta) is within this budget; NaN never is."""
        if math.isnan(epsilon) or math.isnan(delta):
            raise ParameterError(f"a price cannot be NaN, got epsilon={epsilon!r}, delta={delta!r}.")
        return epsilon <= self.epsilon and delta <= self.delta


Budget = PrivacyBudget | ZcdpBudget
