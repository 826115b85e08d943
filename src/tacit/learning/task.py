"""The public shape of a linear model: its features, its labels or targets, and who says so."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import pandas as pd

from tacit.data.cells import positions, texts
from tacit.errors import DataError, ParameterError, PrivacyWarning
from tacit.learning.linear import LinearObjective
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import FeatureMap, LinearModel, RowMap, bounds_arrays, unscale_target
from tacit.learning.objective import Objective, Records
from tacit.learning.public import PublicSample
from tacit.learning.public_objective import PublicObjective
from tacit.learning.raw_features import RawFeatures, check_raw_loss
from tacit.learning.regularization import Regularization
from tacit.numerics import Array, Regularizer

__all__ = [
    "DEFAULT_DIAMETER",
    "REGRESSION_DIAMETER",
    "LinearTask",
    "PosedTask",
    "Task",
    "array_of",
    "bounded_features",
    "feature_bounds",
    "is_data",
    "label_codes",
    "labels",
    "target_bounds",
    "warned_clause",
]

DEFAULT_DIAMETER = 150.0
"""Size of a classifier for rows of norm at most 1, from public data sets (docs/tutorials/first-run.md)."""

REGRESSION_DIAMETER = 8.0
"""Size of a regression for rows of norm at most 1 and targets in [-1, 1]: 2 to 10 on public data sets."""


class Task(Protocol):
    """The public shape of a model: all that training asks of it."""

    @property
    def features(self) -> RowMap:
        """How rows are mapped."""
        ...

    @property
    def sample(self) -> PublicSample | None:
        """Public records that say how; None without."""
        ...

    @property
    def objective(self) -> Objective:
        """What is minimised, on mapped rows."""
        ...

    @property
    def gram(self) -> Array | None:
        """About the mean of x x^T over mapped rows x, from public facts; None without."""
        ...

    @property
    def diameter(self) -> float:
        """About how far a solution is from the start."""
        ...

    @property
    def start(self) -> Array | None:
        """The first point, of public facts; None is zero."""
        ...

    @property
    def public(self) -> PublicObjective | None:
        """The same on public records with labels; None without."""
        ...

    def regularizer(self, chosen: Regularization) -> Regularizer:
        """Return what is added to the mean loss."""
        ...

    def outcomes(self, y: Array) -> Array:
        """Return what the loss is of, shape (n,), for positions of classes or scaled targets."""
        ...

    def predictions(self, w: Array, rows: Array) -> Array:
        """Return raw predictions of mapped rows: shape (n,), or (n, outputs)."""
        ...

    def model(self, w: Array) -> Any:
        """Return the model with those parameters, ready to predict."""
        ...


@dataclass(frozen=True, kw_only=True)
class PosedTask:
    """What linear models and networks have in common: features, labels and a loss.

    Attributes:
        features: How rows are mapped.
        classes: Labels in order, or None for a regression.
        target: Bounds of a regression's target; None where it stays in its own units too.
        sample: Public records that say how rows are mapped, and may have labels; None without.
        loss: What is minimised; None is logistic for classes, and squared for numbers.
    """

    features: RowMap
    classes: Array | None = None
    target: tuple[float, float] | None = None
    sample: PublicSample | None = None
    loss: LossChoice | None = None

    @property
    def chosen(self) -> LossChoice:
        """The loss, as a person names it."""
        return self.loss or LossChoice.default(classifies=self.classes is not None)

    def outcomes(self, y: Array) -> Array:
        """Return what the loss is of, shape (n,): y itself, or counts in units of the link.

        Args:
            y: Positions of classes, or targets as `scale_target` scales them; NaN stays NaN.
        """
        link = self.chosen.link(self.target)
        return y if link is None or self.target is None else unscale_target(y, self.target) / link.unit

    @cached_property
    def public(self) -> PublicObjective | None:
        """What is minimised, on public records with labels; None without."""
        if self.sample is None or self.sample.y is None:
            return None
        records = Records.of(self.features(self.sample.X), self.outcomes(self.sample.y))
        return PublicObjective(cast(Task, self).objective, records)


@dataclass(frozen=True, kw_only=True)
class LinearTask(PosedTask):
    """The public shape of one linear model: its features, and what it predicts.

    Features that stay raw are for a regression with a stated moment.

    Raises:
        ParameterError: The loss is for other labels, or needs bounds that there are not.
    """

    def __post_init__(self) -> None:
        if isinstance(self.features, RawFeatures):
            check_raw_loss(self.chosen)
        self.chosen.check(classes=self._outcomes, target=self.target)

    @classmethod
    def raw(cls, dim: int, *, loss: LossChoice | None = None) -> LinearTask:
        """Return the task of `dim` features and a target in their own units, of which no bounds are known."""
        return cls(features=RawFeatures(dim=dim), loss=loss)

    @classmethod
    def of(
        cls,
        lower: Array,
        upper: Array,
        *,
        classes: Array | None = None,
        target: tuple[float, float] | None = None,
        sample: PublicSample | None = None,
        loss: LossChoice | None = None,
    ) -> LinearTask:
        """Return the task of features with these public bounds, scaled by them or by a public sample."""
        features = bounded_features(lower, upper, unit_rows=classes is not None, sample=sample)
        return cls(features=features, classes=classes, target=target, sample=sample, loss=loss)

    @property
    def objective(self) -> LinearObjective:
        """What is minimised, on mapped rows and `outcomes`."""
        return LinearObjective(
            loss=self.chosen.scaled(classes=self._outcomes, target=self.target),
            features=self.features.size,
            outputs=self._outcomes if self._outcomes > 2 else 1,
            feature_norm=math.inf if isinstance(self.features, RawFeatures) else 1.0,
        )

    @cached_property
    def gram(self) -> Array | None:
        """About the mean of x x^T over mapped rows x, from the public sample; None without."""
        if self.sample is None or isinstance(self.features, RawFeatures):
            return None
        return self.sample.gram(self.features)

    @property
    def start(self) -> None:
        """Zero: where a loss is convex, no point is better."""
        return

    @property
    def diameter(self) -> float:
        """About the size of a solution; infinite where only its domain says how far it can be."""
        if isinstance(self.features, RawFeatures):
            return math.inf
        return REGRESSION_DIAMETER if self.classes is None else DEFAULT_DIAMETER

    def regularizer(self, chosen: Regularization) -> Regularizer:
        """Return what is added to the mean loss."""
        return chosen.of_linear(features=self.objective.features, outputs=self.objective.outputs)

    def predictions(self, w: Array, rows: Array) -> Array:
        """Return raw predictions of mapped rows, in their dtype: shape (n,), or (n, outputs)."""
        said: Array = rows @ w.reshape(self.features.size, -1).astype(rows.dtype)
        return said if said.shape[1] > 1 else said[:, 0]

    def model(self, w: Array) -> LinearModel:
        """Return the model with those parameters, ready to predict."""
        return LinearModel(
            features=self.features,
            w=w,
            classes=self.classes,
            target=self.target,
            loss=self.chosen,
            link=self.chosen.link(self.target),
        )

    @property
    def _outcomes(self) -> int:
        """Number of classes; 0 for a regression."""
        return 0 if self.classes is None else len(self.classes)


def bounded_features(
    lower: Array, upper: Array, *, unit_rows: bool, sample: PublicSample | None
) -> FeatureMap:
    """Return the map of features with these public bounds, scaled by them or by a public sample."""
    if sample is None:
        return FeatureMap(lower=lower, upper=upper, unit_rows=unit_rows)
    return sample.features(unit_rows=unit_rows)


def feature_bounds(bounds: Any, X: Array, *, private: bool) -> tuple[Array, Array, list[str]]:
    """Return public bounds of the features, and clauses for the statement.

    Only without a budget are they silently read off the data.

    Args:
        bounds: As a person wrote them: (lower, upper), "data" or None.
        X: Shape (n, d).
        private: Whether there is a budget.

    Raises:
        ParameterError: None with a budget, or something that is not bounds.
    """
    if bounds is not None and not is_data(bounds):
        return *bounds_arrays(bounds, X.shape[1]), []
    _refuse_none("bounds", bounds, private=private)
    notes = [_read_off("the features' bounds", "bounds")] if private else []
    return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64), notes


def target_bounds(
    bounds: Any, y: Array, *, private: bool, counts: bool = False
) -> tuple[float, float, list[str]]:
    """Return public bounds of a regression target, and clauses for the statement; see `feature_bounds`.

    Those of counts that are read off the data start at 0, and without a budget they refuse what is below.
    """
    if bounds is not None and not is_data(bounds):
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"target_bounds must be a pair of numbers, got {bounds!r}.") from error
        if low == high:
            raise ParameterError(f"target_bounds must leave room between them, got {bounds!r}.")
        return low, high, []
    _refuse_none("target_bounds", bounds, private=private)
    notes = [_read_off("the target's bounds", "target_bounds")] if private else []
    if counts and not private and y.min() < 0:
        raise DataError("y must be >= 0 for loss='poisson', and some of it is below.")
    low, high = 0.0 if counts else float(y.min()), float(y.max())
    if not math.isfinite(high - low):
        raise DataError("y holds targets too far apart to read bounds off them; give target_bounds.")
    return low, high, notes


def labels(classes: Any, y: Array, *, private: bool) -> tuple[Array, list[str]]:
    """Return the public labels, sorted, and clauses for the statement.

    Raises:
        DataError: Fewer than two labels, or `y` holds others and there is no budget.
    """
    notes = []
    if classes is None:
        found = np.unique(y)
        if private:
            notes.append(_read_off("the classes", "classes"))
    else:
        found = np.unique(np.asarray(classes))
        # With a budget an error would tell of a record.
        if not private and np.isnan(label_codes(found, y)).any():
            raise DataError("y holds labels outside `classes`.")
    if len(found) < 2:
        raise DataError("y must hold at least two classes, got one class.")
    return found, notes


def label_codes(classes: Array, y: Any) -> Array:
    """Return every label's position in the classes, NaN for any other, whose record counts as zero.

    Labels are compared as text, each by itself: in an array, one text among numbers would make all text.
    """
    codes = positions(texts(pd.Series(array_of(y))), classes.tolist()).astype(np.float64)
    return np.where(codes < 0, np.nan, codes)


def array_of(values: Any) -> Array:
    """Return values as an array; those of a list keep their own types."""
    return np.array(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)


def is_data(bounds: Any) -> bool:
    """Whether bounds are to be read off the data."""
    return isinstance(bounds, str) and bounds == "data"


def _refuse_none(name: str, bounds: Any, *, private: bool) -> None:
    """Refuse to read bounds off the data under a budget without being asked to."""
    if bounds is None and private:
        raise ParameterError(
            f"{name} must be given with a budget, as (lower, upper) from public knowledge; 'data' reads them "
            "off the data, which no guarantee covers."
        )


def _read_off(what: str, name: str) -> str:
    """Warn that a fact was read off the data, and return the clause that says so."""
    return warned_clause(f"{what} were read off the data without privacy", f"`{name}` from public knowledge")


def warned_clause(clause: str, cure: str) -> str:
    """Warn, and return the clause for the statement."""
    warnings.warn(f"{clause}; pass {cure}.", PrivacyWarning, stacklevel=5)
    return f"it does not matter that {clause}"
