"""Losses with a kink and their Moreau envelopes, in the prediction or in the parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.learning.linear import LinearObjective
from tacit.learning.objective import Records
from tacit.numerics import (
    Array,
    moreau_absolute,
    moreau_hinge,
    moreau_pinball,
    settle,
)

__all__ = ["Absolute", "Hinge", "Kinked", "Quantile", "Smoothed"]


@runtime_checkable
class Kinked(Protocol):
    """A loss of one prediction whose Moreau envelope has a closed form.

    Attributes:
        smoothing: beta of its own envelope, in the prediction; infinite where it has its kink.
    """

    @property
    def smoothing(self) -> float:
        """Smoothness of its own envelope."""
        ...

    def envelope(
        self, predictions: Array, y: Array, beta: float, *, scale: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return value and slope of min_v l(v, y) + beta (p - v)^2 / (2 scale), each of shape (n,).

        The scale is 1 for the envelope in the prediction, |x|^2 for that in w, and 0 for the loss itself.
        """
        ...


class _Enveloped(msgspec.Struct, frozen=True):
    """What the losses with a kink share: by default they are their envelopes."""

    smoothing: float = 10.0

    classifies: ClassVar[bool] = False
    clips_to_another: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        if self.smoothing != math.inf:
            check_positive("smoothing", self.smoothing)

    @property
    def lipschitz(self) -> float:
        """Return 1."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """Return beta: infinite without smoothing."""
        return self.smoothing

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        return self._own(predictions, y)[0]

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return a derivative of each record's loss: at a kink, the one nearest to 0."""
        return self._own(predictions, y)[1]

    def envelope(
        self, predictions: Array, y: Array, beta: float, *, scale: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return value and slope of the envelope of the loss without smoothing."""
        raise NotImplementedError

    def _own(self, predictions: Array, y: Array) -> tuple[Array, Array]:
        """Return value and slope of the loss as it is."""
        if self.smoothing == math.inf:
            return self.envelope(predictions, y, 1.0, scale=0.0)
        return self.envelope(predictions, y, self.smoothing, scale=1.0)


class Hinge(_Enveloped, frozen=True, tag_field="loss", tag="hinge"):
    """max(0, 1 - m) with margin m = (2y - 1) p for labels y in {0, 1}, Moreau-smoothed.

    The envelope is taken in the prediction, so one beta serves records of any norm.

    Attributes:
        smoothing: beta of the envelope, > 0; the smoothed loss is at most 1 / (2 beta) below. Infinite is
            the loss with its kink.
    """

    classifies: ClassVar[bool] = True

    def envelope(
        self, predictions: Array, y: Array, beta: float, *, scale: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return value and slope of the envelope of max(0, 1 - m)."""
        sign = _sign(y)
        value, slope = moreau_hinge(sign * predictions, beta, scale=scale)
        return value, np.asarray(sign * slope)


class Absolute(_Enveloped, frozen=True, tag_field="loss", tag="absolute"):
    """|p - y|, which the median minimises, Moreau-smoothed in the prediction.

    Attributes:
        smoothing: As in `Hinge`.
    """

    def envelope(
        self, predictions: Array, y: Array, beta: float, *, scale: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return value and slope of the envelope of |p - y|: a Huber function."""
        return moreau_absolute(np.asarray(predictions - y), beta, scale=scale)


class Quantile(_Enveloped, frozen=True, kw_only=True, tag_field="loss", tag="quantile"):
    """max(q (y - p), (1 - q) (p - y)), which the q-quantile minimises, Moreau-smoothed in the prediction.

    Attributes:
        quantile: q, in [0, 1].
        smoothing: As in `Hinge`; the smoothed loss is at most max(q, 1 - q)^2 / (2 beta) below.
    """

    quantile: float = 0.5

    clips_to_another: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("quantile", self.quantile)

    @property
    def lipschitz(self) -> float:
        """Return max(q, 1 - q)."""
        return max(self.quantile, 1 - self.quantile)

    def envelope(
        self, predictions: Array, y: Array, beta: float, *, scale: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return value and slope of the envelope of the pinball loss."""
        value, slope = moreau_pinball(np.asarray(y - predictions), beta, quantile=self.quantile, scale=scale)
        return value, np.asarray(0.0 - slope)


@dataclass(frozen=True, kw_only=True)
class Smoothed(LinearObjective):
    """The Moreau envelope in the parameters, min_v f(v) + (beta / 2) |w - v|^2 of each record's loss.

    It is convex, beta-smooth, as Lipschitz as f (L), and lies between f - L^2 / (2 beta) and f: the
    smoothness is the same for records of any norm, and no bound on their norm is needed for it.

    Attributes:
        beta: Finite, > 0.

    Raises:
        ParameterError: `beta` is out of range, or the loss has no kink: it is smooth already.

    Example:
        >>> from tacit.learning import Absolute, Records, Smoothed
        >>> goal = Smoothed(loss=Absolute(smoothing=float("inf")), features=1, beta=2.0)
        >>> record = Records.of(np.array([[2.0]]), np.array([1.0]))
        >>> goal.value(np.array([0.5]), record).tolist(), goal.gradients(np.array([3.0]), record).tolist()
        ([0.0], [[2.0]])

    Reference:
        Lowy (2023), Lemma 105; Cheu, Joseph, Mao and Peng (2022), Theorem 4.7. Both print 2 L for the
        Lipschitz constant of the envelope, which is L (docs/errata.md).
    """

    beta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("beta", self.beta)
        if not isinstance(self.loss, Kinked) or self.loss.smoothing != math.inf:
            raise ParameterError(
                "loss must have a kink, as Absolute, Quantile and Hinge have with smoothing=inf; others are "
                f"smooth already, got {self.loss!r}."
            )

    @property
    def smoothness(self) -> float:
        """Return beta."""
        return self.beta

    def value(self, w: Array, records: Records) -> Array:
        """Return the smoothed loss of each record, shape (n,)."""
        return self._envelope(w, records)[0]

    def _slopes(self, w: Array, records: Records) -> Array:
        """Return the derivative of each record's envelope in its prediction, in the dtype of X."""
        return self._envelope(w, records)[1].astype(records.X.dtype, copy=False)

    def _envelope(self, w: Array, records: Records) -> tuple[Array, Array]:
        """Return value and slope of each record, by its own length."""
        loss: Any = self.loss  # known to be `Kinked`
        value, slope = loss.envelope(
            self.predictions(w, records.X), records.y, self.beta, scale=records.norms**2
        )
        return np.asarray(value), np.asarray(slope)


def _sign(y: Array) -> Array:
    """Return 2y - 1, of a label out of range that of the nearest in it: bounds hold for every label."""
    return np.asarray(np.clip(2 * y - 1, -1, 1))
