"""Public records as a person gives them to an estimator: features alone, or with their labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tacit.errors import DataError, ParameterError, shown
from tacit.learning.model import scale_target
from tacit.learning.public import PublicSample
from tacit.learning.task import array_of, is_data, label_codes
from tacit.numerics import Array

__all__ = ["public_codes", "public_sample", "public_targets"]

_WHY = "nothing that is said of public records may be read off the private ones"


def public_sample(
    public: Any,
    *,
    bounds: Any,
    lower: Array,
    upper: Array,
    given: Any,
    names: Any,
    encode: Callable[[Array], Array],
) -> PublicSample | None:
    """Return the public records of an estimator, checked; None without.

    Whether one of them is a private record too is not looked at: an answer would tell of that record.

    Args:
        public: As a person wrote it: features, or a tuple of features and labels.
        bounds: The same.
        lower: What `feature_bounds` made of them, shape (d,).
        upper: The same.
        given: The private records, of which it may not be a part.
        names: Of their columns; None where they have no names.
        encode: Makes positions of classes, or targets in [-1, 1], of labels of shape (m,), or refuses them.

    Raises:
        ParameterError: Bounds that were read off the data, the private records themselves, or a tuple of
            something else.
        DataError: As in `PublicSample.of`, and what `encode` refuses.
    """
    if public is None:
        return None
    if bounds is None or is_data(bounds):
        raise ParameterError(
            "bounds must be given with public: a sample does not say what else there may be."
        )
    features, labels = _parts(public)
    stored = isinstance(features, np.ndarray | pd.DataFrame) and isinstance(given, np.ndarray | pd.DataFrame)
    if features is given or (stored and np.shares_memory(np.asarray(features), np.asarray(given))):
        raise ParameterError("public must be other records than X: what is made of them is not protected.")
    return PublicSample.of(
        features,
        lower=lower,
        upper=upper,
        names=None if names is None else list(names),
        y=None if labels is None else encode(labels),
    )


def public_codes(labels: Array, classes: Any) -> Array:
    """Return the position of every public label in the public classes, shape (m,).

    Args:
        labels: Shape (m,).
        classes: As a person gave them.

    Raises:
        ParameterError: The classes were not given.
        DataError: A label that is none of them; it is public, and named.
    """
    if classes is None:
        raise ParameterError(f"classes must be given with the labels of public records: {_WHY}.")
    codes = label_codes(np.unique(np.asarray(classes)), labels)
    if np.isnan(codes).any():
        first = labels.tolist()[int(np.argmax(np.isnan(codes)))]
        raise DataError(f"public must have labels of the classes only, and one is {shown(first)}.")
    return codes


def public_targets(targets: Array, bounds: Any, target: tuple[float, float]) -> Array:
    """Return public targets scaled to [-1, 1], shape (m,).

    Args:
        targets: Shape (m,).
        bounds: Of the target, as a person gave them.
        target: What `target_bounds` made of these.

    Raises:
        ParameterError: The bounds were not given.
        DataError: A target that is no finite number, or outside; it is public, and named.
    """
    if bounds is None or is_data(bounds):
        raise ParameterError(f"target_bounds must be given with the targets of public records: {_WHY}.")
    try:
        y = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError("public must have targets that are numbers.") from error
    wrong = ~(np.isfinite(y) & (target[0] <= y) & (y <= target[1]))
    if wrong.any():
        raise DataError(
            f"public must have targets within their bounds {target[0]:g} and {target[1]:g}, and one is "
            f"{y[int(np.argmax(wrong))]:g}."
        )
    return scale_target(y, target)


def _parts(public: Any) -> tuple[Any, Array | None]:
    """Return features, and labels or None."""
    if not isinstance(public, tuple):
        return public, None
    if len(public) != 2:
        raise ParameterError(f"public must be X or the tuple (X, y), got a tuple of {len(public)}.")
    labels = array_of(public[1])
    if labels.ndim != 1:
        raise DataError(f"public must have labels of shape (m,), got shape {labels.shape}.")
    return public[0], labels
