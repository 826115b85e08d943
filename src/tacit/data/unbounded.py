"""Numbers without bounds, for training with a stated moment: cells as they stand, in their own units.

A cell that is missing or no finite number says so as NaN, and its whole record, but no other, counts as zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.data.columns_spec import Column, Numeric, Unbounded

__all__ = ["as_they_stand", "without_bounds"]


def without_bounds(column: Column) -> Column:
    """Return a description without bounds for a column of numbers, and any other as it is.

    A number that stands for missing cells stays; the middle of bounds that are no longer there does not.
    """
    if not isinstance(column, Numeric):
        return column
    return Unbounded(missing=None if column.missing == "middle" else column.missing)


def as_they_stand(values: NDArray[np.float64], column: Unbounded) -> NDArray[np.float64]:
    """Return the features of a column, shape (n, 1), or (n, 2) where one of them says which are missing.

    Args:
        values: Shape (n,), NaN where a cell is missing or no number.
        column: Its description.
    """
    missing = ~np.isfinite(values)
    if column.missing == "indicator":
        return np.column_stack([np.where(missing, 0.0, values), missing])
    return np.where(missing, np.nan if column.missing is None else column.missing, values)[:, None]
