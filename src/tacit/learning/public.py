"""Public records: what they say of the features that private ones have too, and their labels to train on.

It is looked at before anything is asked of the private records, so that nothing made of it has a price; but
a private record in it would be there for all to see (docs/theory/defaults.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import msgspec
import numpy as np
import pandas as pd

from tacit.errors import DataError
from tacit.learning.model import FeatureMap, RowMap, Scaling
from tacit.numerics import Array

__all__ = ["PublicSample"]

_PRIOR = 1.0
"""How many records that fill the bounds evenly are counted besides: a column may be constant in a sample."""


@dataclass(frozen=True)
class PublicSample:
    """Records that anybody may have, none of which is to be protected.

    Attributes:
        X: Features, shape (m, d), within the bounds.
        lower: Bounds of the features, shape (d,).
        upper: The same.
        y: Positions of classes, or targets scaled to [-1, 1], shape (m,); None where features are all that is
            known.
    """

    X: Array
    lower: Array
    upper: Array
    y: Array | None = None

    def __len__(self) -> int:
        return len(self.X)

    @classmethod
    def of(
        cls,
        given: Any,
        *,
        lower: Array,
        upper: Array,
        names: Sequence[str] | None = None,
        y: Array | None = None,
    ) -> Self:
        """Read a sample.

        Args:
            given: Numbers of shape (m, d) with m >= 1, or a frame of them.
            lower: Public lower bounds, shape (d,).
            upper: Public upper bounds.
            names: Of the private columns, where they have names.
            y: As the attribute.

        Raises:
            DataError: Another shape, other columns or another order of columns, no rows, what is no finite
                number, or values outside the bounds; the sample is public, and so are these messages.
        """
        if isinstance(given, pd.DataFrame):
            given = _in_order(given, names)
        try:
            X = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError("public must hold numbers only; encode categories as X does.") from error
        if X.ndim != 2 or X.shape[1] != lower.size or len(X) == 0:
            raise DataError(
                f"public must have shape (m, {lower.size}) with m >= 1, the columns of X, got {X.shape}."
            )
        columns = names if names is not None else [f"column {k}" for k in range(lower.size)]
        for k, column in enumerate(columns):
            if not np.isfinite(X[:, k]).all():
                raise DataError(f"public must hold finite numbers, and {column!r} has others.")
            low, high = float(X[:, k].min()), float(X[:, k].max())
            if low < lower[k] or high > upper[k]:
                raise DataError(
                    f"public must lie within the bounds, and {column!r} goes from {low:g} to {high:g}, with "
                    f"bounds of {lower[k]:g} and {upper[k]:g}: another unit, or other records?"
                )
        if y is not None and y.shape != (len(X),):
            raise DataError(f"public must have one label per record ({len(X)}), got shape {y.shape}.")
        return cls(X, lower, upper, y)

    def features(self, *, unit_rows: bool) -> FeatureMap:
        """Return the map that centres features at the means of the sample and divides them by its spreads.

        A spread is sqrt(3) times the standard deviation, so that a feature which fills its bounds evenly is
        divided by half their width, as without a sample. One record's worth of such a feature is counted
        besides: the spread of a column that is constant in m records is half the width / sqrt(m + 1). Pixels
        have one spread in common: those that are hardly ever lit must not become the longest. Rows of a
        regression are divided by the longest of the sample.
        """
        half = (self.upper - self.lower) / 2
        m, means, variances = len(self.X), self.X.mean(axis=0), self.X.var(axis=0)
        if FeatureMap(lower=self.lower, upper=self.upper).pixels:
            variances = np.full(variances.shape, variances.mean())
        means = np.clip(means, self.lower, self.upper)
        spreads = np.sqrt((3 * m * variances + _PRIOR * half**2) / (m + _PRIOR))
        spreads = np.where(half > 0, spreads, 1.0)
        longest = float(np.linalg.norm((self.X - means) / spreads, axis=1).max())
        scaling = Scaling(means=tuple(means.tolist()), spreads=tuple(spreads.tolist()), longest=1.0)
        features = FeatureMap(lower=self.lower, upper=self.upper, unit_rows=unit_rows, scaling=scaling)
        longest = math.hypot(longest, features.constant)
        return replace(features, scaling=msgspec.structs.replace(scaling, longest=longest))

    def gram(self, features: RowMap) -> Array:
        """Return the mean of x x^T over mapped rows x, shape (d + 1, d + 1), positive definite.

        One record along every direction is counted besides, as long as those of the sample are: in a
        direction that m records do not show, private ones may have a mean square of about 1 / m, and what
        steps in its metric must not do is to take it for flat.
        """
        rows = features(self.X)
        m, size = rows.shape
        even = np.eye(size) * (rows * rows).sum() / m
        return np.asarray((rows.T @ rows + even) / m)


def _in_order(frame: pd.DataFrame, names: Sequence[str] | None) -> pd.DataFrame:
    """Return a frame whose columns are those that X has, or refuse it."""
    found = [str(name) for name in frame.columns]
    if names is not None and found != list(names):
        missing = sorted(set(names) - set(found))
        others = sorted(set(found) - set(names))
        what = f"lacks {missing[0]!r}" if missing else f"has {others[0]!r}" if others else "has another order"
        raise DataError(f"public must have the columns of X in their order, and it {what}.")
    return frame
