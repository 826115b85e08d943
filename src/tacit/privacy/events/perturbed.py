"""The minimiser of a noisy objective."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_positive
from tacit.privacy import divergences, perturbed
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events.base import Leaf
from tacit.privacy.events.leaves import Gdp, Zcdp
from tacit.privacy.neighbours import Neighbours, Part, Relation
from tacit.privacy.slopes import Slopes, check_facts, log_determinant

__all__ = ["ObjectivePerturbed"]


class ObjectivePerturbed(Leaf, frozen=True, tag=True):
    """The minimiser of a sum of convex losses, a ridge on every coordinate and a Gaussian linear term.

    J(w) = sum_i loss(<w, x_i>, y_i) + (lambda / 2) |w|^2 + <b, w>, b ~ N(0, sigma^2 I), rows of norm at
    most r. For logistic loss with lambda >= r^2 / epsilon (twice that under replace-one) its delta at
    epsilon is that of a Gaussian release of the sum of gradients at one point
    (docs/theory/perturbation.md). Minimisation that is not exact is paid for by Gaussian noise on the
    minimiser, an event of its own.

    Attributes:
        noise_multiplier: sigma / (k L): noise over how far one unit moves the sum of gradients. k is 2
            under replace-one, else 1; L is r for logistic loss, sqrt(2) r for multinomial, otherwise the
            bound on the slope times r. Finite, > 0.
        strength: lambda / r^2, for the objective as a sum and not a mean. Finite, > 0.
        loss: What is known of the slopes.
        neighbours: Of units with one row each: several rows together have no known price.
        curvature: Largest second derivative of the loss in <w, x>; for slopes of one or either sign only.
        classes: Number of classes, >= 2; for multinomial loss only.

    Example:
        >>> from tacit.privacy import epsilon_of
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
        check_facts(self.loss, self.curvature, self.classes)
        replaces = self.neighbours.relation is Relation.REPLACE_ONE
        if not replaces and self.neighbours.part in (Part.SENSITIVE, Part.REWARD):
            raise ParameterError(
                f"neighbours of a perturbed objective must differ in a whole {self.neighbours.unit.value}, "
                "or in what it is replaced by, because without a part it still has a loss: got "
                f"{self.neighbours}."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the objective is the one that the theorems are about."""
        unit = self.neighbours.unit.value
        what = {
            Slopes.LOGISTIC: "logistic",
            Slopes.ONE_SIGN: f"convex, with slopes of a sign that the {unit} alone decides",
            Slopes.EITHER_SIGN: "convex",
            Slopes.MULTINOMIAL: f"the cross-entropy of {self.classes} classes",
        }[self.loss]
        bends = "" if self.curvature is None else f", with a curvature of at most {self.curvature:.9g}"
        return (
            f"every {unit} has one row in the objective, with a loss that is {what}{bends}",
            "every coordinate of the model is regularised",
            "the objective is minimised exactly, or as nearly as another release pays for",
        )

    @property
    def _mu(self) -> float:
        """How far a unit that is added moves the sum of gradients, in deviations of the noise."""
        steps = 2 if self.neighbours.relation is Relation.REPLACE_ONE else 1
        return 1 / self.noise_multiplier / steps

    @property
    def _is_gaussian(self) -> bool:
        """Whether it costs a Gaussian release at every epsilon."""
        return self.loss is Slopes.LOGISTIC and self.strength * self._mu * self._mu >= 2

    def repeated(self, count: int) -> Gdp | None:
        """Return `count` such releases as one Gaussian, where each costs no more than one."""
        mu = math.sqrt(count) / self.noise_multiplier
        return Gdp(mu, self.neighbours) if self._is_gaussian and math.isfinite(mu) else None

    @property
    def concentrated(self) -> Zcdp | None:
        """The concentrated-DP level, where it costs no more than a Gaussian release."""
        rho = 0.5 / self.noise_multiplier / self.noise_multiplier
        return Zcdp(max(rho, 1e-300), self.neighbours) if self._is_gaussian and math.isfinite(rho) else None

    def work(self, *, many: bool) -> float:
        """Return the size of the tables of losses, tangents and splits."""
        return 1e6 + 2e7 * (self.neighbours.relation is Relation.REPLACE_ONE) + 2e6 * many

    def curve(self) -> Curve:
        """Return the curve of this release."""
        mu = self._mu
        if self._is_gaussian:
            return Gdp(min(1 / self.noise_multiplier, 1e300), self.neighbours).curve()
        determinant = log_determinant(self.loss, self.strength, self.curvature, self.classes)
        if self.loss is Slopes.LOGISTIC:
            alone = perturbed.logistic_curve(mu, self.strength)
        else:
            either = self.loss is Slopes.EITHER_SIGN
            corners = (self.classes or 2) - 1
            alone = perturbed.sloped_curve(mu, determinant, either_sign=either, corners=corners)
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            return alone
        return perturbed.replaced_by_another(alone, mu=mu, determinant=determinant)

    def renyi(self, orders: Array) -> Array:
        """Return bounds on the Rényi divergences at `orders`; none under replace-one, but for a Gaussian."""
        if self._is_gaussian:
            return divergences.concentrated_renyi(0.5 / self.noise_multiplier / self.noise_multiplier, orders)
        if self.neighbours.relation is Relation.REPLACE_ONE:
            return super().renyi(orders)
        mu, corners = self._mu, (self.classes or 2) - 1
        with np.errstate(over="ignore"):
            one = 0.5 * orders * (orders - 1) * mu * mu  # log of the moment of one Gaussian loss
        if self.loss is Slopes.EITHER_SIGN:
            moment = math.log(2) + special.log_ndtr((orders - 1) * mu) + one
        else:
            none = float(special.log_ndtr(-mu / 2)) if corners == 1 else 0.0
            moment = np.logaddexp(none, math.log(corners) + one + special.log_ndtr((orders - 0.5) * mu))
        determinant = log_determinant(self.loss, self.strength, self.curvature, self.classes)
        return np.asarray(determinant + moment / (orders - 1))
