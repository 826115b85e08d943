"""Rules for correlated means: which transform, and from which correlation on it pays."""

from __future__ import annotations

from tacit.errors import ParameterError, check_count
from tacit.means import Facts, MeanEstimator

__all__ = ["break_even_correlation"]


def break_even_correlation(estimator: MeanEstimator, other: MeanEstimator, parties: int) -> float:
    """Return the correlation R* above which an estimator has less error than another one.

    Errors are linear in R. Against Rand-k this is R* = -(A1 - d/k) / (A2 - 1), about n / 4 for `avg` and few
    numbers.

    Args:
        estimator: The one that is better for large R.
        other: The one that is better for small R.
        parties: Number n of parties, >= 2.

    Returns:
        R*, which may lie outside of [-1, n - 1].

    Raises:
        ParameterError: The errors do not cross, or the first one is better below the crossing.

    Example:
        >>> from tacit.means import RandK, RandKSpatial
        >>> mean = RandKSpatial(dim=1024, k=102)
        >>> round(break_even_correlation(mean, RandK(dim=1024, k=102), 10), 3)
        1.941

    Reference:
        Errors are linear in R: `tacit.compression.spectral`.
    """
    check_count("parties", parties, low=2)

    def gap(R: float) -> float:
        facts = Facts(parties=parties, squared_norms=float(parties), correlation=R)
        return estimator.error(parties, facts).variance - other.error(parties, facts).variance

    at_zero, at_one = gap(0.0), gap(1.0)
    slope = at_one - at_zero
    if not slope < 0:
        raise ParameterError("estimator must gain on other as the correlation grows, and does not.")
    return -at_zero / slope
