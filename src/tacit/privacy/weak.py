"""Prices that promise next to nothing: said aloud, never refused."""

from __future__ import annotations

import math
import warnings
from typing import Final

from tacit.errors import PrivacyWarning
from tacit.privacy.neighbours import Unit

__all__ = ["MOST_EPSILON", "reveals_one", "warn_of_weak"]

MOST_EPSILON: Final = 20.0
"""Above it, a factor of e^epsilon rules no conclusion out, and nobody reads its digits any more."""


def warn_of_weak(
    epsilon: float, delta: float, *, units: int | None = None, unit: Unit = Unit.RECORD, stacklevel: int = 2
) -> None:
    """Warn of an epsilon above 20, and of a delta of at least one over the number of units.

    Args:
        epsilon: Of a budget or a price; infinity claims nothing and is no promise to warn of.
        delta: That goes with it.
        units: How many units are protected; None where that number is not public.
        unit: What is protected.
        stacklevel: As of `warnings.warn`; 2 is who calls this.

    Example:
        >>> warn_of_weak(2.0, 1e-6, units=10_000)
    """
    if MOST_EPSILON < epsilon < math.inf:
        warnings.warn(
            f"epsilon {epsilon:.10g} promises next to nothing: a factor of e^{epsilon:.10g} rules no "
            f"conclusion out. Above {MOST_EPSILON:g}, expect no privacy.",
            PrivacyWarning,
            stacklevel=stacklevel + 1,
        )
    if units is not None and epsilon < math.inf and delta * units >= 1:
        warnings.warn(reveals_one(delta, units, unit), PrivacyWarning, stacklevel=stacklevel + 1)


def reveals_one(delta: float, units: int, unit: Unit) -> str:
    """Say why a delta of at least one over the number of units is no small probability."""
    return (
        f"delta {delta!r} is not below 1 / {units:,}, one over the number of {unit.plural}: a release that "
        "shows one of them in full, picked at random, would meet it."
    )
