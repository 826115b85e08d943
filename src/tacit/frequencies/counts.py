"""What a server keeps of messages: counts, which can be merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, IntArray, as_floats

__all__ = ["Counts", "as_shares"]


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each thing was reported; counts of two batches of messages add up.

    Attributes:
        n: Number of messages.
        values: Shape (M,), int64: of symbols, how often each came; of sets, how many hold each value.
        mechanism: What made the messages, its level included, as its `repr`; "" where nobody says.

    Raises:
        ParameterError: A count is negative, above n, or not whole.

    Example:
        >>> two = Counts(2, np.array([2, 0])) + Counts(1, np.array([0, 1]))
        >>> two.n, two.values.tolist()
        (3, [2, 1])
    """

    n: int
    values: IntArray
    mechanism: str = ""

    def __post_init__(self) -> None:
        check_count("n", self.n, low=0)
        object.__setattr__(self, "values", _whole_counts("values", self.values, self.n))

    def __add__(self, other: Counts) -> Counts:
        """Merge with the counts of other messages of the same mechanism."""
        if not isinstance(other, Counts):
            return NotImplemented
        if other.values.shape != self.values.shape:
            raise ParameterError(
                f"counts must be of one mechanism, got shapes {self.values.shape} and {other.values.shape}."
            )
        # The same shape does not show it: levels, and kinds of sets, would be estimated with the wrong bias.
        if other.mechanism != self.mechanism:
            raise ParameterError(
                f"counts must be of one mechanism, got {self.mechanism or 'an unknown one'} and "
                f"{other.mechanism or 'an unknown one'}."
            )
        return Counts(self.n + other.n, self.values + other.values, self.mechanism)


def _whole_counts(name: str, values: npt.ArrayLike, n: int) -> IntArray:
    """Read counts, shape (M,), each from 0 to n."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError(
            f"{name} must be whole numbers of shape (M,), got {array.dtype} of shape {array.shape}."
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= n:
        raise ParameterError(f"{name} must be from 0 to n = {n}; at least one lies outside.")
    return array.astype(np.int64, copy=False)


def as_shares(name: str, shares: npt.ArrayLike | None, k: int) -> Array:
    """Read shares of k values that add up to 1, in float64; None means equal ones.

    Args:
        name: What an error calls them.
        shares: Shape (k,), each >= 0, with sum 1 up to 1e-9; or None.
        k: Number of values.

    Raises:
        ParameterError: Another shape, or no shares.
    """
    if shares is None:
        return np.full(k, 1 / k)
    array = as_floats(name, shares).astype(np.float64)
    if array.shape != (k,):
        raise ParameterError(f"{name} must have shape ({k},), got {array.shape}.")
    if not (np.all(array >= 0) and abs(float(array.sum()) - 1) <= 1e-9):
        raise ParameterError(f"{name} must be numbers >= 0 that add up to 1.")
    return np.asarray(array / array.sum())
