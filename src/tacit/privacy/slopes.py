"""What is known of a convex loss of <w, x>, and what its perturbed minimiser costs in pure epsilon."""

from __future__ import annotations

import math
from enum import StrEnum

import scipy

from tacit.errors import ParameterError, check_count, check_positive
from tacit.privacy.neighbours import Relation

__all__ = ["Slopes", "check_facts", "gamma_epsilon", "gamma_multiplier", "log_determinant"]

_MOST_CLASSES = 10**6
_ROUND_UP, _MARGIN = 1 + 1e-12, 1 + 1e-11


class Slopes(StrEnum):
    """What is known of the slopes of a convex loss of <w, x>; each has a price of its own."""

    LOGISTIC = "logistic"
    """Logistic loss as it is: its curvature is slope times (1 - slope), so that it costs nothing."""
    ONE_SIGN = "one sign"
    """The record alone decides the sign of the slope: a smoothed hinge, or clipped logistic loss."""
    EITHER_SIGN = "either sign"
    """Least squares with clipped slopes, and whatever is not known to be better."""
    MULTINOMIAL = "multinomial"
    """Cross-entropy of softmax over several classes."""


def check_facts(loss: Slopes, curvature: float | None, classes: int | None) -> None:
    """Refuse facts of a loss that are missing, out of range, or of another loss."""
    if not isinstance(loss, Slopes):
        raise ParameterError(f"loss must be a Slopes, got {loss!r}.")
    sloped = loss in (Slopes.ONE_SIGN, Slopes.EITHER_SIGN)
    for name, value, needed in (
        ("curvature", curvature, sloped),
        ("classes", classes, loss is Slopes.MULTINOMIAL),
    ):
        if (value is not None) != needed:
            word = "be given" if needed else "be None"
            raise ParameterError(f"{name} must {word} for {loss.value!r} loss, got {value!r}.")
    if curvature is not None:
        check_positive("curvature", curvature)
    if classes is not None:
        check_count("classes", classes, low=2, high=_MOST_CLASSES)


def log_determinant(
    loss: Slopes, strength: float, curvature: float | None = None, classes: int | None = None
) -> float:
    """Return the logarithm of the largest factor by which one record changes det(Hessian); rows have norm 1.

    Logistic loss bends by at most 1/4; that of K classes by the K - 1 eigenvalues of diag(p) - p p^T, which
    sum to at most 1 - 1 / K.
    """
    if classes is not None:
        return (classes - 1) * math.log1p(1 / classes / strength) * _ROUND_UP
    return math.log1p((0.25 if loss is Slopes.LOGISTIC else curvature or 0.0) / strength) * _ROUND_UP


def gamma_epsilon(
    noise_multiplier: float,
    strength: float,
    loss: Slopes = Slopes.LOGISTIC,
    relation: Relation = Relation.REPLACE_ONE,
    *,
    curvature: float | None = None,
    classes: int | None = None,
) -> float:
    """Return the pure epsilon of a perturbed minimiser whose noise b has a density e^(-|b| / s).

    Its direction is uniform, and its length has the Gamma law of shape d (dimension) and scale s. For
    logistic loss it is k r / s if lambda >= r s: the determinant is free, as for Gaussian noise.

    Args:
        noise_multiplier: s / (k L), with k and L as in `ObjectivePerturbed`.
        strength: lambda / r^2.
        loss: What is known of the slopes.
        relation: For k: 2 under replace-one, else 1.
        curvature: Largest second derivative of the loss, for slopes of one or either sign only.
        classes: Number of classes, for multinomial loss only.

    Raises:
        ParameterError: A value out of its range, or a fact of another loss.

    Reference:
        Chaudhuri, Monteleoni and Sarwate (2011), JMLR 12, Algorithm 2; docs/theory/perturbation.md.

    Example:
        >>> round(gamma_epsilon(2.0, 4.0), 9)
        0.5
    """
    z = check_positive("noise_multiplier", noise_multiplier)
    strength = check_positive("strength", strength)
    check_facts(loss, curvature, classes)
    if loss is not Slopes.LOGISTIC:
        return (log_determinant(loss, strength, curvature, classes) + 1 / z) * _ROUND_UP
    level = 1 / z / _steps(relation)
    if math.isinf(1 / z):
        return math.inf
    return (_dearest(level, strength) + 1 / z - level) * _ROUND_UP


def gamma_multiplier(
    epsilon: float,
    strength: float,
    loss: Slopes = Slopes.LOGISTIC,
    relation: Relation = Relation.REPLACE_ONE,
    *,
    curvature: float | None = None,
    classes: int | None = None,
) -> float:
    """Return a noise multiplier at which `gamma_epsilon` is at most `epsilon`, the least but for rounding.

    Arguments as there. For logistic loss it is 1 / epsilon if strength >= k / epsilon.

    Raises:
        ParameterError: A value out of its range, a fact of another loss, or a strength that is too small for
            any noise.

    Example:
        >>> round(gamma_multiplier(0.5, 4.1), 9)
        2.0
    """
    epsilon = check_positive("epsilon", epsilon)
    strength = check_positive("strength", strength)
    check_facts(loss, curvature, classes)
    least = _MARGIN / epsilon
    if loss is Slopes.LOGISTIC and strength >= _steps(relation) * least:
        return least
    determinant = log_determinant(loss, strength, curvature, classes)
    if determinant >= epsilon * (1 - 1e-9):
        raise ParameterError(
            f"strength must be larger for epsilon {epsilon!r}, got {strength!r}: its determinant alone costs "
            f"{determinant:.6g}."
        )
    most = _MARGIN / (epsilon - determinant)
    if loss is not Slopes.LOGISTIC:
        return most

    def excess(z: float) -> float:
        return gamma_epsilon(z, strength, loss, relation) - epsilon

    return float(scipy.optimize.brentq(excess, 1 / epsilon, most, xtol=1e-300, rtol=1e-13)) * _MARGIN


def _steps(relation: Relation) -> int:
    """Return how many units' worth a sum of gradients moves."""
    return 2 if relation is Relation.REPLACE_ONE else 1


def _dearest(level: float, strength: float) -> float:
    """Return max over q in [0, 1] of ln(1 + q (1 - q) / strength) + level q: at 1 if strength >= 1 / level.

    It is concave in q; its slope is 0 where level q^2 + (2 - level) q = 1 + level strength.
    """
    if strength * level >= 1:
        return level
    last = 1 + level * strength
    root = math.sqrt((2 - level) ** 2 + 4 * level * last)
    q = 2 * last / (2 - level + root) if level < 2 else (level - 2 + root) / (2 * level)
    q = min(max(q, 0.0), 1.0)
    return max(math.log1p(q * (1 - q) / strength) + level * q, level)
