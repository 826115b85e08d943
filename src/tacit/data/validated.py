"""Records as scikit-learn checks them, without its habit of quoting what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tacit.errors import DataError

__all__ = ["validated"]

_QUOTING = ("could not convert", "Complex data", "Expected 2D array", "Found array with dim")
"""How errors of scikit-learn begin that have records in them, or too little of what is allowed."""

_NOT_FINITE = re.compile(r"(Input (\w+) contains (?:NaN|infinity)[^\n.]*)")


def validated(estimator: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """Return X, or X and y, as `sklearn.utils.validation.validate_data` does.

    Its errors are kept but for those that quote records: texts that are no numbers, complex numbers, and
    records that are no table.

    Args:
        estimator: Whose names of columns are kept or compared.
        X: Shape (n, d), numbers; an array, a frame, a list or a tensor.
        y: Shape (n,), or left out.
        checks: As of scikit-learn.

    Raises:
        DataError: X or y has another shape, or holds what is no real number, or not finite.
        ValueError: From scikit-learn: X or y is missing, or of other lengths or columns.
        TypeError: From scikit-learn: X is sparse, or holds objects that are neither numbers nor texts.
    """
    X, y = (one.detach().cpu() if hasattr(one, "detach") else one for one in (X, y))
    shape = np.shape(X) if hasattr(X, "shape") else ()
    try:
        found = validate_data(estimator, X, y, **checks)
    except ValueError as error:
        said = str(error)
        if said.startswith(_QUOTING):
            raise DataError(_refusal(said, shape, X, y)) from None  # what was raised has records in it
        if bad := _NOT_FINITE.match(said):  # several lines follow, about other libraries' estimators
            raise DataError(f"{bad[2]} must hold finite numbers: {bad[1]}.") from None
        raise
    given = found if isinstance(found, tuple) else (found,)
    for name, one in zip("Xy", given[: 2 if checks.get("y_numeric") else 1], strict=False):
        if one.dtype.kind not in "fiub":
            raise DataError(f"{name} must hold numbers, got dtype {one.dtype}.")
    return found


def _refusal(said: str, shape: tuple[int, ...], X: Any, y: Any) -> str:
    """Return what is wrong with records, in words that hold none of them."""
    if said.startswith("could not convert"):
        kinds = [f"{name} ({_kind(one)})" for name, one in (("X", X), ("y", y)) if not isinstance(one, str)]
        return f"X and y must hold numbers, and some of them are texts: got {' and '.join(kinds)}."
    if said.startswith("Complex"):
        return "X and y must hold real numbers. Complex data not supported."
    got = f"shape {shape}" if shape else f"{type(X).__name__} of another form"
    advice = "Reshape your data" if len(shape) < 2 else said.partition(".")[0]
    return (
        f"X must have shape (n, d), a row for each record, got {got}. {advice}: X.reshape(len(X), -1) makes "
        "rows, and of a module of images shape= says what a row is."
    )


def _kind(values: Any) -> str:
    """Return of which kind something is, in words."""
    kind = type(values).__name__
    return f"{kind} of dtype {values.dtype}" if hasattr(values, "dtype") else kind
