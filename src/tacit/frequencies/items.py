"""Items that the units of a silo hold, and the statistic that counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.oracle import MOST_VALUES
from tacit.numerics import Array, IntArray

__all__ = ["ITEMS", "ItemCounts", "Items"]

ITEMS = "items"
"""How plans name the statistic."""


@dataclass(frozen=True, eq=False)
class Items:
    """One item of each unit of a silo.

    Attributes:
        values: Shape (n,), whole numbers; what lies outside of a domain counts as no item.

    Raises:
        ParameterError: Another shape, or numbers that are not whole by their dtype.

    Example:
        >>> len(Items([0, 2, 2])), Items([0, 2, 2]).take(np.array([1])).values.tolist()
        (3, [2])
    """

    values: IntArray

    def __init__(self, values: npt.ArrayLike) -> None:
        held = np.asarray(values)
        if held.ndim != 1 or held.dtype.kind not in "iu":
            raise ParameterError(
                f"values must be whole numbers of shape (n,), got {held.dtype} of shape {held.shape}."
            )
        # What is too large for int64 would wrap into the domain.
        most = np.iinfo(np.int64).max
        whole = np.where(held > most, -1, held) if held.dtype == np.uint64 else held
        object.__setattr__(self, "values", whole.astype(np.int64))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: IntArray) -> Self:
        """Return the items of some units."""
        return type(self)(self.values[index])


@dataclass(frozen=True)
class ItemCounts:
    """The statistic by which a plan counts items: a one in the place of a unit's item, and zeros elsewhere.

    Replacing a unit moves two counts by one. An item outside of the domain counts as none, and nobody learns
    that there was one. Sums take O(n + k) time and memory; rows are never written out.

    Attributes:
        k: Number of items, from 2 to 2**24 - 1; an item is 0 to k - 1.

    Example:
        >>> ItemCounts(3).clipped_sum(Items([0, 2, 2, 7]), {}, 1.0).tolist()
        [1.0, 0.0, 2.0]
    """

    k: int

    one_hot: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("k", self.k, low=2, high=MOST_VALUES)

    def __call__(self, units: Items, at: Mapping[str, Array]) -> Array:  # noqa: ARG002 - the same everywhere
        """Return one row per unit, shape (n, k)."""
        return np.asarray(units.values[:, None] == np.arange(self.k), dtype=np.float64)

    def clipped_sum(
        self,
        units: Items,
        at: Mapping[str, Array],  # noqa: ARG002 - the same everywhere
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,  # noqa: ARG002 - float64 is allowed wherever float32 is
    ) -> Array:
        """Return the sum of the rows clipped to a radius, shape (k,); rows are of length 1."""
        held = units.values[(units.values >= 0) & (units.values < self.k)]
        return np.bincount(held, minlength=self.k) * min(radius, 1.0)
