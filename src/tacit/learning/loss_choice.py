"""Which loss, as a person names it: by a word, with lengths in the units of the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_choice, check_non_negative, check_positive, check_probability
from tacit.learning.kinks import Absolute, Hinge, Quantile
from tacit.learning.losses import Huber, Logistic, Loss, Multinomial, PoissonLoss, Squared
from tacit.numerics import Array, settle

__all__ = ["CLASS_LOSSES", "LOSSES", "NUMBER_LOSSES", "LogLink", "LossChoice"]

CLASS_LOSSES: Final = ("logistic", "hinge")
"""Losses of labels that are classes."""

NUMBER_LOSSES: Final = ("squared", "huber", "absolute", "quantile", "poisson")
"""Losses of labels that are numbers."""

LOSSES: Final = (*CLASS_LOSSES, *NUMBER_LOSSES)
"""All losses of linear models, by the names that people type."""

_ROUNDED: Final = {"hinge": 0.3, "absolute": 0.02, "quantile": 0.02}
"""Half the width over which a kink is rounded where nobody says: in margins, or of the target's width."""

_LINEAR_FROM: Final = 0.1
"""Of the target's width: where the Huber loss becomes a line where nobody says."""

_BELOW_MOST: Final = 2.0
"""A model of counts starts from the largest count over e^2: where bounds are about the largest there are, the
mean is not far from there, whatever the unit."""


class LogLink(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="link", tag="log"
):
    """The predictions of a model whose score is the log of a mean: unit * e^score, at most `most`.

    Attributes:
        unit: What a score of 0 predicts, finite, > 0.
        most: Public bound on counts, finite, > 0.
    """

    unit: float
    most: float

    def __post_init__(self) -> None:
        settle(self)
        check_positive("unit", self.unit)
        check_positive("most", self.most)

    @classmethod
    def below(cls, most: float) -> LogLink:
        """Return the link of counts up to a bound."""
        return cls(unit=check_positive("most", most) * math.exp(-_BELOW_MOST), most=most)

    @property
    def largest_score(self) -> float:
        """The score from which on predictions are `most`."""
        return math.log(self.most / self.unit)

    def __call__(self, scores: Array) -> Array:
        """Return what scores predict, in the units of the target."""
        return np.asarray(self.unit * np.exp(np.minimum(scores, self.largest_score)))


class LossChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A loss of linear models by its name, with what it needs; public.

    Attributes:
        name: One of `LOSSES`: "logistic" and "hinge" (a linear support vector machine) for classes; for
            numbers "squared", "huber" (squared near 0, then a line: outliers pull less), "absolute" (the
            median), "quantile", and "poisson" (counts and other amounts >= 0, the log of whose mean is
            linear).
        quantile: q in (0, 1), for "quantile": the share of targets that should lie below what is predicted.
        threshold: For "huber": the error from which on it is a line, in units of the target, > 0; None is a
            tenth of the width of the target's bounds.
        smoothing: For "absolute", "quantile" and "hinge": the half width over which the kink is rounded, in
            units of the target (for "hinge" of the margin, whose kink is at 1), >= 0. None is a fiftieth of
            the width of the target's bounds, and 0.3 for "hinge"; 0 leaves the kink, which takes an algorithm
            that needs no smoothness ("p-sgd").

    Raises:
        ParameterError: A value out of range, or one that the loss does not have.

    Example:
        >>> LossChoice(name="quantile", quantile=0.9, smoothing=500.0).scaled(target=(0.0, 10_000.0))
        Quantile(smoothing=10.0, quantile=0.9)

    Reference:
        Koenker and Bassett (1978) for quantiles, Huber (1964); Cheu, Joseph, Mao and Peng (2022), Theorem
        4.7, for the smoothing, which is the Moreau envelope in the prediction.
    """

    name: str
    quantile: float = 0.5
    threshold: float | None = None
    smoothing: float | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_choice("loss", self.name, LOSSES)
        check_probability("quantile", self.quantile, low_open=True, high_open=True)
        if self.threshold is not None:
            check_positive("threshold", self.threshold)
        if self.smoothing is not None:
            check_non_negative("smoothing", self.smoothing)
        self._refuse("quantile", self.quantile, unless=("quantile",), default=0.5)
        self._refuse("threshold", self.threshold, unless=("huber",))
        self._refuse("smoothing", self.smoothing, unless=tuple(_ROUNDED))

    @classmethod
    def of(cls, name: str, **said: float | None) -> LossChoice:
        """Return the choice of a name and of what was said beside it; None says nothing."""
        return cls(name=name, **{key: value for key, value in said.items() if value is not None})

    @classmethod
    def default(cls, *, classifies: bool) -> LossChoice:
        """Return what a model has where nobody says anything."""
        return cls(name="logistic" if classifies else "squared")

    @property
    def words(self) -> str:
        """The loss and what was said beside it, in words.

        Example:
            >>> LossChoice(name="quantile", quantile=0.9, smoothing=500.0).words
            'quantile (quantile 0.9, smoothing 500)'
        """
        said = {"quantile": self.quantile} if self.name == "quantile" else {}
        said |= {k: v for k in ("threshold", "smoothing") if (v := getattr(self, k)) is not None}
        return self.name + (f" ({', '.join(f'{k} {v:g}' for k, v in said.items())})" if said else "")

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return self.name in CLASS_LOSSES

    @property
    def is_default(self) -> bool:
        """Whether it is that."""
        return self == self.default(classifies=self.classifies)

    @property
    def has_probabilities(self) -> bool:
        """Whether scores stand for probabilities of classes."""
        return self.name == "logistic"

    def link(self, target: tuple[float, float] | None) -> LogLink | None:
        """Return what makes predictions of scores; None where targets are scaled, or are classes."""
        return LogLink.below(target[1]) if self.name == "poisson" and target is not None else None

    def check(self, *, classes: int = 0, target: tuple[float, float] | None = None) -> None:
        """Refuse labels that the loss is not for.

        Args:
            classes: How many there are; 0 for a regression.
            target: Bounds of a regression's target.

        Raises:
            ParameterError: Numbers for a loss of classes or the other way round, more than two classes for
                the hinge, or bounds that no counts have.
        """
        if self.classifies != (classes > 0):
            allowed, labels = (CLASS_LOSSES, "classes") if classes else (NUMBER_LOSSES, "numbers")
            raise ParameterError(
                f"loss must be {', '.join(allowed[:-1])} or {allowed[-1]} where labels are {labels}, got "
                f"{self.name!r}."
            )
        if self.name == "hinge" and classes > 2:
            raise ParameterError(
                f"loss must be 'logistic' for more than two classes, got 'hinge' and {classes} classes."
            )
        if self.name == "poisson" and target is not None and not 0 <= target[0] <= target[1] > 0:
            raise ParameterError(
                "target_bounds (of a table, the bounds of its label) must be (low, most) with 0 <= low <= "
                f"most and most > 0 for loss='poisson', got {target!r}."
            )

    def scaled(self, *, classes: int = 0, target: tuple[float, float] | None = None) -> Loss:
        """Return the loss as training has it: of targets in [-1, 1], or of counts in units of the link.

        Args:
            classes: How many there are; 0 for a regression.
            target: Bounds of a regression's target.

        Raises:
            ParameterError: As in `check`.
        """
        self.check(classes=classes, target=target)
        low, high = (-1.0, 1.0) if target is None or target[0] == target[1] else target
        half = (high - low) / 2  # units of the target in one of the model
        made: dict[str, Callable[[], Loss]] = {
            "logistic": lambda: Multinomial() if classes > 2 else Logistic(),
            "hinge": lambda: Hinge(smoothing=self._beta(1.0)),
            "squared": Squared,
            "huber": lambda: Huber(threshold=self._length(self.threshold, _LINEAR_FROM, half)),
            "absolute": lambda: Absolute(smoothing=self._beta(half)),
            "quantile": lambda: Quantile(quantile=self.quantile, smoothing=self._beta(half)),
            "poisson": lambda: PoissonLoss(most=math.exp(_BELOW_MOST)),
        }
        return made[self.name]()

    def _beta(self, half: float) -> float:
        """Return the smoothness of the envelope, for so many units of the target in one of the model."""
        width = 2 * half if self.name != "hinge" else 1.0
        rounded = _ROUNDED[self.name] * width if self.smoothing is None else self.smoothing
        return math.inf if rounded == 0 else half / rounded

    @staticmethod
    def _length(said: float | None, share: float, half: float) -> float:
        """Return a length in units of the model: what was said, or a share of the target's width."""
        return 2 * share if said is None else said / half

    def _refuse(
        self, name: str, value: float | None, *, unless: tuple[str, ...], default: float | None = None
    ) -> None:
        """Refuse what the loss does not have: that it is ignored would not be seen."""
        if value != default and self.name not in unless:
            named = " or ".join(map(repr, unless))
            raise ParameterError(f"{name} is for loss={named}, got {value!r} with loss={self.name!r}.")
