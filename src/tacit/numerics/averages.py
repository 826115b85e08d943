"""Averages of iterates, and the weights and step size that go with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.numerics.arrays import Array, as_floats

__all__ = [
    "RunningAverage",
    "stich_schedule",
    "strongly_convex_log_weights",
    "strongly_convex_schedule",
]


@dataclass(frozen=True, slots=True, eq=False)
class RunningAverage:
    """A weighted average (1 / sum gamma_t) sum_t gamma_t w_t that stores one vector for any number of terms.

    A value: `add` gives a new one. Weights come as logarithms and only their ratios matter, so that weights
    which grow geometrically do not overflow. For the last k of T iterates, start adding at T -
    k.

    Attributes:
        mean: The average so far, float64; None before the first term.
        log_total: Logarithm of the sum of the weights so far.

    Example:
        >>> average = RunningAverage().add(np.array([1.0]), 5000.0).add(np.array([4.0]), 5000.0 + np.log(2.0))
        >>> average.value.round(9).tolist()
        [3.0]
    """

    mean: Array | None = None
    log_total: float = -math.inf

    def add(self, w: npt.ArrayLike, log_weight: float = 0.0) -> RunningAverage:
        """Include one more term.

        Args:
            w: Any shape, the same for all terms.
            log_weight: Natural logarithm of its weight; minus infinity means weight zero.

        Returns:
            The average with this term; this value stays as it is.

        Raises:
            ParameterError: another shape than before, or a weight that is NaN or infinite.
        """
        term = as_floats("w", w).astype(np.float64)
        if not log_weight < math.inf:
            raise ParameterError(f"log_weight must be a number below infinity, got {log_weight!r}.")
        if self.mean is not None and term.shape != self.mean.shape:
            raise ParameterError(
                f"w must have shape {self.mean.shape} like the terms before, got {term.shape}."
            )
        if log_weight == -math.inf:
            return self
        if self.mean is None:
            return RunningAverage(term, float(log_weight))
        log_total = float(np.logaddexp(self.log_total, log_weight))
        share = math.exp(log_weight - log_total)
        return RunningAverage(self.mean + share * (term - self.mean), log_total)

    @property
    def value(self) -> Array:
        """The average, float64.

        Raises:
            ParameterError: no term of positive weight was added.
        """
        if self.mean is None:
            raise ParameterError("an average needs at least one term of positive weight; none was added.")
        return self.mean


def strongly_convex_schedule(*, a: float, g: float, r0: float, c: float, T: int) -> float:
    """Step size for a recursion r_{t+1} <= (1 - a eta) r_t - b eta s_t + c eta^2, with b > 0.

    Args:
        a: Contraction (strong convexity), > 0.
        g: Largest inverse step size for which the recursion holds, >= a.
        r0: Bound on r_0, >= 0.
        c: Noise, >= 0; 0 gives the largest step.
        T: Number of steps, >= 1.

    Returns:
        eta = min(1 / g, ln(max(2, a^2 r0 T^2 / c)) / (a T)), to go with `strongly_convex_log_weights`.

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> round(strongly_convex_schedule(a=0.1, g=10.0, r0=1.0, c=2.0, T=1000), 7)
        0.0851719

    Reference:
        Lowy (2023), Lemma 102.
    """
    for name, value in (("a", a), ("g", g)):
        check_positive(name, value)
    for name, value in (("r0", r0), ("c", c)):
        check_non_negative(name, value)
    check_count("T", T)
    if g < a:
        raise ParameterError(f"g must be >= a, or a step of 1 / g would overshoot; got g={g!r}, a={a!r}.")
    # The logarithm of the quotient, since a tiny c would overflow the quotient.
    log_quotient = 2 * math.log(a * T) + _log(r0) - _log(c) if r0 > 0 else -math.inf
    return min(1 / g, max(math.log(2.0), log_quotient) / (a * T))


def strongly_convex_log_weights(*, a: float, eta: float, T: int) -> Array:
    """Logarithms of the weights gamma_t = (1 - a eta)^-(t + 1), t = 0, ..., T - 1.

    Args:
        a: Contraction, > 0.
        eta: Step size, > 0, with a * eta < 1.
        T: Number of steps, >= 1.

    Returns:
        Shape (T,), increasing.

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> np.exp(strongly_convex_log_weights(a=1.0, eta=0.5, T=3)).round(9).tolist()
        [2.0, 4.0, 8.0]

    Reference:
        Lowy (2023), Lemma 102.
    """
    check_positive("a", a)
    check_positive("eta", eta)
    check_count("T", T)
    if not a * eta < 1:
        raise ParameterError(f"a * eta must be < 1, got {a * eta!r}.")
    return -np.arange(1, T + 1) * math.log1p(-a * eta)


def stich_schedule(*, a: float, g: float, T: int) -> tuple[Array, Array]:
    """Steps and weights for r_{t+1} <= (1 - a eta_t) r_t - b eta_t s_t + c eta_t^2, with r_0 and c unknown.

    Few steps are of size 1/g with weights (1 - a/g)^-(t+1). Of more than g/a, the first half is of that size
    and counts for nothing; then eta_t = 2 / (a zeta_t) with zeta_t = 2g/a + t - ceil(T/2).

    Args:
        a: Contraction, > 0.
        g: Largest inverse step size for which the recursion holds, > a.
        T: Number of the last step, >= 1; there are T + 1.

    Returns:
        eta_t and ln zeta_t, each of shape (T + 1,); a weight of 0 is minus infinity.

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> steps, log_weights = stich_schedule(a=0.5, g=2.0, T=10)
        >>> steps[5:8].round(6).tolist(), np.exp(log_weights[4:8]).round(9).tolist()
        ([0.5, 0.444444, 0.4], [0.0, 8.0, 9.0, 10.0])

    Reference:
        Stich (2019), "Unified optimal analysis of the (stochastic) gradient method", arXiv:1907.04232, Lemma
        3; as Lowy (2023), Proposition 174, needs it.
    """
    check_positive("a", a)
    check_positive("g", g)
    check_count("T", T)
    if not g > a:
        raise ParameterError(f"g must be > a, got g={g!r}, a={a!r}.")
    if g / a >= T:
        return np.full(T + 1, 1 / g), strongly_convex_log_weights(a=a, eta=1 / g, T=T + 1)
    late = np.arange(T + 1) - math.ceil(T / 2)
    weights = np.where(late >= 0, 2 * g / a + late, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(late >= 0, 2 / (a * np.maximum(weights, g / a)), 1 / g), np.log(weights)


def _log(value: float) -> float:
    """Natural logarithm, minus infinity at 0."""
    return math.log(value) if value > 0 else -math.inf
