"""The minimiser of a noisy objective."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count, check_positive
from tacit.privacy import divergences, perturbed
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events.base import Leaf
from tacit.privacy.events.leaves import Gdp, Zcdp
from tacit.privacy.neighbours import Neighbours, Part, Relation, Unit

__all__ = ["ObjectivePerturbed", "Slopes"]

_MOST_CLASSES = 10**6


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


class ObjectivePerturbed(Leaf, frozen=True, tag=True):
    """The minimiser of a sum of convex losses, a ridge on every coordinate and a Gaussian linear term.

    J(w) = sum_i loss(<w, x_i>, y_i) + (lambda / 2) |w|^2 + <b, w>, b ~ N(0, sigma^2 I), rows of norm at
    most r. For logistic loss with lambda >= r^2 / epsilon (twice that under replace-one) its delta at
    epsilon is that of a Gaussian release of the sum of gradients at one point
    (docs/theory/perturbation.md). Minimisation that is not exact is paid for by Gaussian noise on the
    minimiser, an event of its own.

    Attributes:
        noise_multiplier: sigma / (k L): noise over how far one record moves the sum of gradients. k is 2
            under replace-one, else 1; L is r for logistic loss, sqrt(2) r for multinomial, otherwise the
            bound on the slope times r. Finite, > 0.
        strength: lambda / r^2, for the objective as a sum and not a mean. Finite, > 0.
        loss: What is known of the slopes.
        neighbours: Of single records: the loss of several records together has no known price.
        curvature: Largest second derivative of the loss in <w, x>; for slopes of one or either sign only.
        classes: Number of classes, >= 2; for multinomial loss only.

    Example:
        >>> from tacit.privacy import Neighbours, Relation, epsilon_of
        >>> round(epsilon_of(ObjectivePerturbed(3.730632, 2.0), 1e-5), 5)
        1.0
    """

    continuous: ClassVar[bool] = True

    noise_multiplier: float
    strength: float
    loss: Slopes = Slopes.LOGISTIC
    neighbours: Neighbours = Neighbours()
    curvature: float | None = None
    classes: int | None = None

    method: ClassVar[str] = "objective perturbation"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_positive("strength", self.strength)
        if not isinstance(self.loss, Slopes):
            raise ParameterError(f"loss must be a Slopes, got {self.loss!r}.")
        check_facts(self.loss, self.curvature, self.classes)
        if self.neighbours.unit is not Unit.RECORD or self.neighbours.part not in (Part.ALL, Part.PRIVATE):
            raise ParameterError(
                "neighbours of a perturbed objective must differ in one whole record, whose loss depends on "
                f"one <w, x>: got {self.neighbours}."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the objective is the one that the theorems are about."""
        what = {
            Slopes.LOGISTIC: "logistic",
            Slopes.ONE_SIGN: "convex, with slopes of one sign for each record",
            Slopes.EITHER_SIGN: "convex",
            Slopes.MULTINOMIAL: f"the cross-entropy of {self.classes} classes",
        }[self.loss]
        bends = "" if self.curvature is None else f", with a curvature of at most {self.curvature!r}"
        return (
            f"the loss is {what}{bends}, and its rows and slopes are bounded as the noise was made for",
            "every coordinate of the model is regularised",
            "the objective is minimised exactly, or as nearly as another release pays for",
        )

    @property
    def _mu(self) -> float:
        """How far a record that is added moves the sum of gradients, in deviations of the noise."""
        steps = 2 if self.neighbours.relation is Relation.REPLACE_ONE else 1
        return 1 / self.noise_multiplier / steps

    @property
    def _determinant(self) -> float:
        """The logarithm of the largest factor by which a record changes the determinant of the Hessian."""
        return log_determinant(self.loss, self.strength, self.curvature, self.classes)

    @property
    def _gaussian(self) -> bool:
        """Whether it costs a Gaussian release at every epsilon."""
        return self.loss is Slopes.LOGISTIC and self.strength * self._mu * self._mu >= 2

    def repeated(self, count: int) -> Gdp | None:
        """Return `count` such releases as one Gaussian, where each costs no more than one."""
        mu = math.sqrt(count) / self.noise_multiplier
        return Gdp(mu, self.neighbours) if self._gaussian and math.isfinite(mu) else None

    @property
    def concentrated(self) -> Zcdp | None:
        """The concentrated-DP level, where it costs no more than a Gaussian release."""
        rho = 0.5 / self.noise_multiplier / self.noise_multiplier
        return Zcdp(max(rho, 1e-300), self.neighbours) if self._gaussian and math.isfinite(rho) else None

    def work(self, *, many: bool) -> float:
        """Return the size of the tables of losses, tangents and splits."""
        replaces = self.neighbours.relation is Relation.REPLACE_ONE
        return 1e6 + (1e7 * replaces) + 2e6 * many

    def curve(self) -> Curve:
        """Return the curve of this release."""
        if self._gaussian:
            return Gdp(min(1 / self.noise_multiplier, 1e300), self.neighbours).curve()
        mu, determinant = self._mu, self._determinant
        if self.loss is Slopes.LOGISTIC:
            single = perturbed.logistic_curve(mu, self.strength)
        else:
            single = perturbed.sloped_curve(
                mu,
                determinant,
                both_signs=self.loss is Slopes.EITHER_SIGN,
                corners=(self.classes or 2) - 1,
            )
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            return single
        return perturbed.replaced_by_another(single, mu=mu, determinant=determinant)

    def renyi(self, orders: Array) -> Array:
        """Return bounds on the Rényi divergences at `orders`; none under replace-one, but for a Gaussian."""
        if self._gaussian:
            return divergences.concentrated_renyi(0.5 / self.noise_multiplier / self.noise_multiplier, orders)
        if self.neighbours.relation is Relation.REPLACE_ONE:
            return super().renyi(orders)
        mu, corners = self._mu, (self.classes or 2) - 1
        above = 0.5 * orders * (orders - 1) * mu * mu  # of the order's moment of one Gaussian loss
        if self.loss is Slopes.EITHER_SIGN:
            moment = math.log(2) + special.log_ndtr((orders - 1) * mu) + above
        else:
            never = 0.0 if corners > 1 else float(special.log_ndtr(-mu / 2))
            moment = np.logaddexp(never, math.log(corners) + above + special.log_ndtr((orders - 0.5) * mu))
        return np.asarray(self._determinant + moment / (orders - 1))


def check_facts(loss: Slopes, curvature: float | None, classes: int | None) -> None:
    """Refuse facts of a loss that are missing, out of range, or of another loss."""
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
        return (classes - 1) * math.log1p(1 / classes / strength) * (1 + 1e-14)
    return math.log1p((0.25 if loss is Slopes.LOGISTIC else curvature or 0.0) / strength) * (1 + 1e-14)
