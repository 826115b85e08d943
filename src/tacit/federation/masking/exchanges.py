"""What the exchanges of recoverable masks carry: sets of parties, and something of fixed length for each.

Every form is canonical: one meaning has one sequence of bytes, and everything else is refused. What kind of
share a party reveals is never written: it follows from the set that the party has signed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from tacit.errors import RefusalError

__all__ = ["FieldReader", "number_to_bytes", "parties_to_bytes", "table_to_bytes"]

_NUMBER_BYTES: Final = 8
_INDEX_BYTES: Final = 2


def number_to_bytes(number: int) -> bytes:
    """Write the number of a block or of a step."""
    return number.to_bytes(_NUMBER_BYTES)


def parties_to_bytes(parties: Sequence[int]) -> bytes:
    """Write a set of parties, given in ascending order."""
    return b"".join(index.to_bytes(_INDEX_BYTES) for index in (len(parties), *parties))


def table_to_bytes(entries: Mapping[int, bytes]) -> bytes:
    """Write a set of parties, and then what each of them has, in their order."""
    parties = sorted(entries)
    return parties_to_bytes(parties) + b"".join(entries[index] for index in parties)


class FieldReader:
    """Reads bytes that somebody else has written, field by field; errors are refusals."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        """Return the next bytes.

        Raises:
            RefusalError: There are fewer.
        """
        field = self._data[self._at : self._at + length]
        if len(field) != length:
            raise RefusalError(
                f"an exchange of masks has {len(self._data)} bytes, where {self._at + length} or more belong."
            )
        self._at += length
        return field

    def number(self) -> int:
        """Return the number of a block or of a step."""
        return int.from_bytes(self.take(_NUMBER_BYTES))

    def parties(self, count: int) -> tuple[int, ...]:
        """Return a set of parties.

        Args:
            count: How many there are in the roster.

        Raises:
            RefusalError: Not in ascending order, one of them twice, or one that is not in the roster.
        """
        size = self._index()
        found = tuple(self._index() for _ in range(min(size, count)))
        if size > count or any(a >= b for a, b in pairwise(found)) or max(found, default=0) >= count:
            raise RefusalError(f"a set of parties must be ascending indices below {count}, each once.")
        return found

    def table(self, count: int, length: int) -> dict[int, bytes]:
        """Return a set of parties, and for each so many bytes."""
        parties = self.parties(count)
        return {index: self.take(length) for index in parties}

    def end(self) -> None:
        """Refuse bytes behind the last field."""
        if self._at != len(self._data):
            raise RefusalError(f"an exchange of masks has {len(self._data)} bytes, where {self._at} belong.")

    def _index(self) -> int:
        return int.from_bytes(self.take(_INDEX_BYTES))
