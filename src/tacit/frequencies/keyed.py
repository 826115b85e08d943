"""Checks of any keyed mechanism that is small enough to be written out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.counts import as_shares
from tacit.numerics import Array, IntArray, as_floats

__all__ = ["KeyedMechanism", "as_table", "column_sum_test", "entropy_bits_of"]

_MOST_ENTRIES = 10**7


def entropy_bits_of(pmf: npt.ArrayLike) -> float:
    """Return the entropy of a law in bits.

    Args:
        pmf: Shape (m,), each >= 0, adding up to 1.

    Example:
        >>> round(entropy_bits_of([0.4, 0.3, 0.2, 0.1]), 6)
        1.846439
    """
    p = as_shares("pmf", pmf, np.size(np.asarray(pmf)))
    p = p[p > 0]
    return float(-(p @ np.log2(p))) + 0.0


def as_table(name: str, numbers: npt.ArrayLike) -> IntArray:
    """Read whole numbers of any shape; raises ParameterError for anything else, also for ragged rows."""
    try:
        array = np.asarray(numbers)
    except ValueError:
        array = np.empty(0)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be whole numbers in rows of one length.")
    return array


def column_sum_test(channel: npt.ArrayLike) -> bool:
    """Whether each message has probabilities that add up to at most 1 over all values.

    No key can make a channel recoverable that fails: under one message, values need keys of their own.

    Args:
        channel: Shape (k, M): the law of a message given each value.

    Example:
        >>> column_sum_test([[0.7, 0.3], [0.3, 0.7]]), column_sum_test([[0.7, 0.3], [0.6, 0.4]])
        (True, False)
    """
    table = as_floats("channel", channel)
    if table.ndim != 2 or not (table.size and table.min() >= 0 and np.allclose(table.sum(axis=1), 1)):
        raise ParameterError(f"channel must be laws of shape (k, M), got shape {table.shape}.")
    return bool(table.sum(axis=0).max() <= 1 + 1e-12)


@dataclass(frozen=True, eq=False)
class KeyedMechanism:
    """Messages y = f(x, u) of a value x and a key u that is drawn without looking at x.

    Attributes:
        table: Shape (k, m), whole numbers >= 0: the message of each value under each key.
        pmf: Shape (m,): probabilities of the keys.

    Raises:
        ParameterError: Other shapes, no law, or above 1e7 entries.

    Example:
        >>> pad = KeyedMechanism(np.array([[0, 1], [1, 0]]), [0.75, 0.25])
        >>> round(pad.epsilon, 6), pad.is_recoverable
        (1.098612, True)

    Reference:
        Girgis (2023), (7.3) and Appendix F.
    """

    table: IntArray
    pmf: npt.ArrayLike

    def __post_init__(self) -> None:
        table = as_table("table", self.table)
        if table.ndim != 2 or 0 in table.shape or int(table.min()) < 0:
            raise ParameterError("table must be whole numbers >= 0 of shape (k, m).")
        if table.shape[0] * max(table.shape[1], int(table.max()) + 1) > _MOST_ENTRIES:
            raise ParameterError(f"table and channel must have at most {_MOST_ENTRIES} entries.")
        object.__setattr__(self, "table", table.astype(np.int64))
        object.__setattr__(self, "pmf", as_shares("pmf", self.pmf, table.shape[1]))

    def channel_matrix(self) -> Array:
        """Return the law of the message of each value, shape (k, M)."""
        k, messages = self.table.shape[0], int(self.table.max()) + 1
        places = self.table + messages * np.arange(k)[:, None]
        weights = np.broadcast_to(np.asarray(self.pmf), self.table.shape).ravel()
        return np.bincount(places.ravel(), weights, minlength=k * messages).reshape(k, messages)

    @property
    def epsilon(self) -> float:
        """Largest logarithm of a ratio of probabilities of a message; infinite if one rules a value out."""
        channel = self.channel_matrix()
        seen = channel[:, channel.max(axis=0) > 0]
        if seen.min() == 0:
            return math.inf
        return float(np.log(seen.max(axis=0) / seen.min(axis=0)).max())

    @property
    def is_recoverable(self) -> bool:
        """Whether key and message tell the value: under no key do two values share a message."""
        used = np.sort(self.table[:, np.asarray(self.pmf) > 0], axis=0)
        return bool(np.all(np.diff(used, axis=0) > 0))

    @property
    def key_entropy_bits(self) -> float:
        """Entropy of the key."""
        return entropy_bits_of(self.pmf)

    def reduce_key(self, message: int | None = None) -> Array:
        """Return a law of k keys of the same level, at most the same entropy, that `y = x + u mod k` may use.

        Args:
            message: Any message that the likeliest key leads to; None: the first one.

        Returns:
            Shape (k,), decreasing.

        Raises:
            ParameterError: The mechanism is not recoverable or has no level, or the likeliest key does not
                lead to the message.

        Reference:
            Girgis (2023), Lemma 7.5.2 and Appendix F.6.
        """
        if not (self.is_recoverable and math.isfinite(self.epsilon)):
            raise ParameterError("a key is reduced of a recoverable mechanism with a finite level only.")
        pmf = np.asarray(self.pmf)
        reached = self.table[:, int(np.argmax(pmf))]
        y = int(reached[0]) if message is None else check_count("message", message, low=0)
        if y not in reached:
            raise ParameterError(f"message must be one that the likeliest key leads to, got {message!r}.")
        unused = ~np.any(self.table == y, axis=0)
        parts = np.sort(np.concatenate([self.channel_matrix()[:, y], pmf[unused]]))[::-1]
        kept = parts[: self.table.shape[0]]
        return np.asarray(kept / kept.sum())
