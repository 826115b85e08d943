"""The weight of a penalty that follows a noisy violation towards the one that is wanted."""

from __future__ import annotations

import numpy as np

from tacit.numerics import Array

__all__ = ["FollowedWeight"]

_RECENT, _HEAVIEST = 0.1, 100.0
"""How much the last round counts among those before it, and the largest weight that a violation leads to."""


class FollowedWeight:
    """A weight that rises by what the violation of the last rounds is above a target, and falls below it.

    Everything that it is made of was released: it costs nothing beyond that.

    Args:
        first: The weight of the first round, >= 0.
        target: Largest violation, in [0, 1]; None keeps the weight.
    """

    def __init__(self, first: float, target: float | None) -> None:
        self.now, self._target = float(first), target
        self._rates: Array | None = None

    def follow(self, decided: Array, shares: Array) -> None:
        """Move by what one more round has released.

        Args:
            decided: Noisy share of records by condition, group and decision, shape (z, k, m).
            shares: Released share of records by condition and group, shape (z, k).
        """
        if self._target is None:
            return
        rates = decided / shares[:, :, None]
        self._rates = rates if self._rates is None else self._rates + _RECENT * (rates - self._rates)
        apart = float(np.ptp(self._rates, axis=1).max()) - self._target
        self.now = min(max(self.now + apart, 0.0), _HEAVIEST)
