"""Features in their own units, which nobody can bound, and what a stated moment of gradients says instead.

Nothing is read off the data, and no guarantee depends on the moment: a gradient is clipped whatever it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from tacit.errors import DataError, ParameterError, check_count
from tacit.learning.loss_choice import LossChoice
from tacit.learning.losses import Squared
from tacit.learning.objective import LinearShape, Objective
from tacit.learning.regularization import Regularization, read_domain
from tacit.means import MomentBound
from tacit.numerics import Array, L2Ball

__all__ = [
    "RawFeatures",
    "check_raw_loss",
    "known_smoothness",
    "quadratic_smoothness",
    "read_moment",
    "within_ball",
]

_DEFAULT_DOMAIN: Final = "ball:5"
"""Where parameters stay, so that a moment can be stated of all of them: a ball of diameter 10."""


_SMALLEST: Final = 1e-6
_LARGEST: Final = 1e12
_HIGHEST: Final = 20.0
"""Values and orders of moments whose powers, times those of numbers of records, are still numbers."""


@dataclass(frozen=True, kw_only=True)
class RawFeatures:
    """The map that leaves features as they are and appends a constant 1.

    A row with what is no finite number counts as zero in `Records`, and no other row does because of it.

    Attributes:
        dim: Number d of features.
    """

    law: ClassVar[str] = ""

    dim: int

    def __post_init__(self) -> None:
        check_count("dim", self.dim)

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return self.dim + 1

    @property
    def constant(self) -> float:
        """The constant feature."""
        return 1.0

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        return ("raw", self.dim)

    def __call__(self, X: Array) -> Array:
        """Map rows.

        Args:
            X: Shape (n, d), any numbers.

        Returns:
            Shape (n, d + 1).

        Raises:
            DataError: X has another shape.
        """
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise DataError(f"X must have shape (n, {self.dim}), got {X.shape}.")
        return np.column_stack([X, np.ones(len(X))])


def read_moment(moment: object) -> MomentBound | None:
    """Return a stated moment as a person writes it: a `MomentBound`, (order, value), "ORDER:VALUE" or None.

    Raises:
        ParameterError: Anything else, or numbers out of range.
    """
    if moment is None:
        return None
    found = moment if isinstance(moment, MomentBound) else _moment_of(moment)
    if found.order > _HIGHEST:
        raise ParameterError(f"the order of a moment must be at most {_HIGHEST:g}, got {found.order!r}.")
    if not _SMALLEST <= found.value <= _LARGEST:
        raise ParameterError(
            f"the value of a moment must be from {_SMALLEST:g} to {_LARGEST:g}, got {found.value!r}: "
            "take other units."
        )
    return found


def _moment_of(moment: object) -> MomentBound:
    """Return a moment that is written as text or as a pair."""
    if isinstance(moment, str):
        return MomentBound.parse(moment)
    pair: Any = moment
    try:
        order, value = pair
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"moment must be a pair (order, value), a MomentBound or None, got {moment!r:.80}."
        ) from error
    return MomentBound(order, value)


def check_raw_loss(loss: LossChoice) -> None:
    """Refuse a loss that needs bounds of the target, or whose clipped gradients fit something else.

    Raises:
        ParameterError: The loss is for classes, for counts or for quantiles, or a length that would be a
            share of the target's width is not given.
    """
    if loss.name not in ("squared", "huber", "absolute"):
        raise ParameterError(
            "loss must be 'squared', 'huber' or 'absolute' with a moment and without bounds, got "
            f"{loss.name!r}."
        )
    for name, owner in (("threshold", "huber"), ("smoothing", "absolute")):
        if loss.name == owner and getattr(loss, name) is None:
            raise ParameterError(
                f"{name} must be given for loss={owner!r} with a moment, got None: without bounds the target "
                "has no width that it could be a share of."
            )


def within_ball(chosen: Regularization) -> Regularization:
    """Return penalties with a ball as the domain, on all of which a stated moment has to hold.

    Raises:
        ParameterError: Another domain than a ball.
    """
    if chosen.domain is None:
        return replace(chosen, domain=_DEFAULT_DOMAIN)
    if not isinstance(read_domain(chosen.domain), L2Ball):
        raise ParameterError(
            "domain must be a ball, 'ball:RADIUS', with a moment, which has to hold everywhere in it, got "
            f"{chosen.domain!r}."
        )
    return chosen


def known_smoothness(objective: Objective, moment: MomentBound | None, *, diameter: float) -> float:
    """Return the smoothness of the mean loss; infinite where nothing says it.

    That of records is that of the mean as well; where it is unknown, a moment says it for the squared loss
    (`quadratic_smoothness`).

    Args:
        objective: Of a record.
        moment: What is stated of its gradients; None where nothing is.
        diameter: Of the ball.
    """
    squared = isinstance(objective, LinearShape) and isinstance(objective.loss, Squared)
    if moment is None or not squared or math.isfinite(objective.smoothness):
        return objective.smoothness
    return quadratic_smoothness(moment, dim=objective.size, diameter=diameter)


def quadratic_smoothness(moment: MomentBound, *, dim: int, diameter: float) -> float:
    """Return a bound on the smoothness of a quadratic from one on its gradients on a ball.

    If they are at most r long on a ball of diameter D, the Hessian has a norm of at most 2 r / D: along its
    first eigenvector, gradients at the two ends are D times that apart.

    Args:
        moment: Of records, whose mean gradient is no longer.
        dim: Number of parameters.
        diameter: D.
    """
    return 2 * moment.for_ball("l2", dim=dim).value / diameter
