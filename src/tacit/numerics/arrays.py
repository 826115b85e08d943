"""The array types that signatures use, and the one check of a batch of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError

__all__ = ["Array", "BoolArray", "IntArray", "as_floats", "as_rows"]


Array = npt.NDArray[Any]
"""A real array, float64 unless a docstring allows float32; docstrings state the shape."""

IntArray = npt.NDArray[np.int64]
"""Indices and counts."""

BoolArray = npt.NDArray[np.bool_]
"""Masks."""


def as_floats(name: str, values: npt.ArrayLike) -> Array:
    """View real numbers as floating point: float32 stays float32, everything else becomes float64.

    Args:
        name: What an error calls the argument.
        values: Any shape; boolean, integer or floating point. NaN and infinities pass.

    Returns:
        The same array where nothing had to change, else a copy.

    Raises:
        ParameterError: another dtype. The message gives the dtype and no entry.
    """
    array = np.asarray(values)
    # Converting text would raise an error that quotes the entry, which may be private.
    if array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def as_rows(name: str, rows: npt.ArrayLike) -> Array:
    """View a batch as floating-point rows; what depends on shape and dtype only is checked, no entry is.

    Args:
        name: What an error calls the argument.
        rows: Shape (n, d), n >= 0, d >= 0.

    Returns:
        Shape (n, d), float32 if it came so, else float64; not copied where nothing had to change.

    Raises:
        ParameterError: another number of axes, or a dtype that is not real.
    """
    array = as_floats(name, rows)
    if array.ndim != 2:
        raise ParameterError(f"{name} must have shape (n, d), one row per record; got shape {array.shape}.")
    return array
