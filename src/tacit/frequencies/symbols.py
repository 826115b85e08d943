"""Mechanisms whose message is one symbol, which the server counts."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.oracle import FrequencyOracle
from tacit.mechanisms import whole_values
from tacit.numerics import Array, IntArray

__all__ = ["SymbolOracle"]


class SymbolOracle(FrequencyOracle, frozen=True, kw_only=True, dict=True):
    """A mechanism whose messages are symbols from 0 to M - 1; see `FrequencyOracle`."""

    @abstractmethod
    def message_law(self, p: npt.ArrayLike) -> Array:
        """Return the law of a message of a client whose value is drawn from p.

        Args:
            p: Shape (..., k).

        Returns:
            Shape (..., M).
        """

    @property
    def message_bits(self) -> int:
        """Bits of a symbol."""
        return max(1, (self.outcomes - 1).bit_length())

    def aggregate(self, messages: npt.ArrayLike) -> Counts:
        """Count symbols."""
        symbols = whole_values("messages", messages, self.outcomes).ravel()
        return self._counted(symbols.size, np.bincount(symbols, minlength=self.outcomes))

    def _counts(self, counts: Counts) -> IntArray:
        values = super()._counts(counts)
        if values.sum() != counts.n:
            raise ParameterError(f"counts must add up to {counts.n} messages, one symbol each.")
        return values

    def simulate(self, p: npt.ArrayLike, n: int, rng: np.random.Generator) -> Counts:
        """Draw a multinomial vector."""
        law = self.message_law(as_shares("p", p, self.k))
        return self._counted(check_count("n", n), rng.multinomial(n, law / law.sum()))

    def channel_matrix(self) -> Array:
        """Return the law of the message of each value."""
        self._check_matrix(self.outcomes)
        return self.message_law(np.eye(self.k))

    @property
    def _bits_drawn(self) -> int:
        return 1

    def _packed(self, messages: Array) -> npt.NDArray[np.uint8]:
        symbols = whole_values("messages", messages, self.outcomes).ravel()
        return symbols.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - self._body_bytes :]

    def _unpacked(self, rows: npt.NDArray[np.uint8], first: int) -> Array:  # noqa: ARG002 - one protocol
        symbols = np.zeros(len(rows), dtype=np.int64)
        for column in rows.T:
            symbols = symbols << 8 | column
        if np.any(symbols >= self.outcomes):
            raise ParameterError("a message holds a symbol that is in no alphabet.")
        return symbols
