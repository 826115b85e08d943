"""Many lines of a CSV at once, where quotes stand around whole cells only, and no cell goes over lines.

A cell gives what it gives alone: its text, or the number that Python reads in it. The way there may depend on
the other cells of its block, and so may time, but nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import Texts, number_of, numbers_of, with_commas

__all__ = ["LONGEST", "BlockCells", "read_lines"]

Array = NDArray[np.float64]
BlockCells = tuple[Array, Texts]
"""Records: numbers, shape (rows, columns of numbers), and text, shape (rows, columns of text)."""

_COMPARED = 32
"""So many bytes of a cell are compared with those of others."""
_FIRST = np.array([2 ** (8 * k) - 1 for k in range(9)], dtype=np.uint64)
"""What leaves the first so many bytes of a word."""

LONGEST = 2**31 - 1
"""Characters of a cell. The reader's own limit, 131,072, would refuse a table for one long cell of it."""
_COMMA, _NEWLINE, _BLANK, _ZERO, _MINUS, _POINT, _QUOTE = b',\n 0-."'
_OF_NUMBERS = b"0123456789+-.eE "
# JSON writes numbers as Python does, if not all of them; msgspec rounds them correctly (by the algorithm of
# Lemire, "Number parsing at a gigabyte per second", 2021), as `float` does.
_DECODER = msgspec.json.Decoder(list[float])


@cache
def _kinds(separator: str) -> bytes:
    """Return every byte as it is in JSON; 0 for what is in no number.

    A comma that separates no cells is a point: two of them, or one beside a point, are in no number.
    """
    same = {byte: byte for byte in _OF_NUMBERS}
    known = same | {_COMMA: _POINT} | dict.fromkeys([ord(separator), _NEWLINE], _COMMA)
    return bytes(known.get(byte, 0) for byte in range(256))


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Lines of equally many cells, without blanks in front of a cell.

    Attributes:
        data: All bytes, uint8; a separator or an end of line follows every cell.
        lengths: Shape (rows, columns), the bytes of every cell and what follows it.
        separator: What separates the cells of a line.
    """

    data: NDArray[np.uint8]
    lengths: NDArray[np.intp]
    separator: str

    def split(self, chosen: NDArray[np.bool_]) -> tuple[_Lines, _Lines]:
        """Return the columns that are chosen by a mask of shape (columns,), and the others."""
        kept = np.repeat(np.broadcast_to(chosen, self.lengths.shape).ravel(), self.lengths.ravel())
        return (
            _Lines(self.data[kept], self.lengths[:, chosen], self.separator),
            _Lines(self.data[~kept], self.lengths[:, ~chosen], self.separator),
        )

    def texts(self) -> Texts:
        """Return the cells as text, shape (rows, columns); those that are equal are mostly one object."""
        lengths = self.lengths.ravel()
        ends = np.cumsum(lengths) - 1
        data = self.data.copy()
        data[ends] = _NEWLINE
        like = _first_alike(data, ends - lengths + 1, lengths)
        first = np.zeros(len(like), dtype=bool)
        first[like] = True
        cells = data[np.repeat(first, lengths)][:-1].tobytes().decode(errors="replace").split("\n")
        said = np.array(self._as_read(cells), dtype=object)
        found: Texts = said[(np.cumsum(first) - 1)[like]]
        return found.reshape(self.lengths.shape)

    def _as_read(self, cells: list[str]) -> list[str]:
        """Return cells that say which number they are, where that is not what Python reads."""
        return cells if self.separator == "," else with_commas(cells)

    def numbers(self) -> Array:
        """Return the cells as numbers, shape (rows, columns)."""
        found = self._numbers_of_json()
        if found is not None:
            return found
        # Some cell is written as JSON writes no number: look for its column, and read all others at once.
        width = self.lengths.shape[1]
        if width > 1:
            return np.hstack([half.numbers() for half in self.split(np.arange(width) < width // 2)])
        return numbers_of(self.texts()[:, 0].tolist())[:, None]

    def _numbers_of_json(self) -> Array | None:
        """Return the cells as numbers, or None if one of them keeps the others from being read at once."""
        lengths = self.lengths.ravel()
        ends = np.cumsum(lengths) - 1
        starts = ends - lengths + 1
        raw = self.data.tobytes()
        text = raw.translate(_kinds(self.separator))
        odd = np.empty(0, dtype=np.intp)
        if b"\0" in text:
            data = np.frombuffer(bytearray(text), dtype=np.uint8)
            odd = np.unique(np.searchsorted(ends, np.flatnonzero(data == 0)))
            chosen = np.zeros(len(ends), dtype=bool)
            chosen[odd] = True
            data[np.repeat(chosen, lengths)] = _BLANK
            data[starts[odd]] = _ZERO
            data[ends[odd]] = _COMMA
            text = data.tobytes()
        empty = np.flatnonzero(lengths == 1)
        if empty.size:  # two of them may share a comma
            text = (b"," + text).replace(b",,", b",0,").replace(b",,", b",0,")[1:]
        try:
            cells = _DECODER.decode(b"[" + text[:-1] + b"]")
        except msgspec.DecodeError:
            return None
        if len(cells) != len(ends):
            return None  # a cell of blanks, alone
        found = np.empty(len(cells))
        struct.pack_into(
            f"{len(cells)}d", found.data, 0, *cells
        )  # in half the time of a function for objects
        # The zero of whole numbers has no sign.
        zeros = np.flatnonzero(found == 0)
        found[zeros[self.data[starts[zeros]] == _MINUS]] = -0.0
        found[empty] = np.nan
        odd_cells = [raw[a:b] for a, b in zip(starts[odd].tolist(), ends[odd].tolist(), strict=True)]
        distinct = list(set(odd_cells))
        said = self._as_read([cell.decode(errors="replace") for cell in distinct])
        known = dict(zip(distinct, map(number_of, said), strict=True))
        found[odd] = [known[cell] for cell in odd_cells]
        return found.reshape(self.lengths.shape)


def read_lines(block: bytes, numeric: Sequence[bool], *, separator: str = ",") -> BlockCells | None:
    """Return the records of a block of whole lines; None if not all lines are records that are read at once.

    Args:
        block: Bytes up to the end of a line, or of the file.
        numeric: Whether a column holds numbers, for each column.
        separator: What separates cells, one character of ASCII.

    Returns:
        What `csv.reader` and `numbers_of` would give.
    """
    lines = _lines(block, len(numeric), separator)
    if lines is None:
        return None
    chosen = np.asarray(numeric, dtype=bool)
    rows = len(lines.lengths)
    if chosen.all():
        return lines.numbers(), np.empty((rows, 0), dtype=object)
    if not chosen.any():
        return np.empty((rows, 0)), lines.texts()
    numbers, texts = lines.split(chosen)
    return numbers.numbers(), texts.texts()


def _first_alike(
    data: NDArray[np.uint8], starts: NDArray[np.intp], lengths: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return for every cell the place of the first one of the same bytes; for a long one its own.

    Cells are told apart by words of eight bytes. Each ends with an end of line, so that zeros beyond it make
    no two of them the same.
    """
    words = np.ndarray(len(data), dtype="<u8", buffer=data.tobytes() + bytes(8), strides=(1,))
    kinds = np.zeros(len(lengths), dtype=np.int64)
    used = 1
    cells = np.arange(len(lengths))
    for at in range(0, _COMPARED, 8):
        codes, found = pd.factorize(words[starts[cells] + at] & _FIRST[np.minimum(lengths[cells] - at, 8)])
        if at:
            codes, found = pd.factorize((kinds[cells] * len(found) + codes).view(np.uint64))
        kinds[cells] = used + codes
        used += len(found)
        cells = cells[lengths[cells] > at + 8]
        if not cells.size:
            break
    kinds[cells] = used + np.arange(len(cells))
    places = np.empty(used + len(cells), dtype=np.intp)
    places[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return places[kinds]


def _lines(block: bytes, width: int, separator: str) -> _Lines | None:
    """Return a block as lines of so many cells, without quotes around them; None if it is not just that."""
    if len(block) > LONGEST:
        return None
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if b"\r" in block:
            return None
    data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", dtype=np.uint8)
    newlines = data == _NEWLINE
    quotes = data == _QUOTE if b'"' in block else None
    ending = newlines | (data == ord(separator))
    if quotes is not None:
        ending &= ~np.logical_xor.accumulate(quotes)  # not behind the first of two quotes
    ends = np.flatnonzero(ending)
    # As many lines as rows of cells, and an end at the end of each row: then there is none elsewhere.
    if len(ends) != width * np.count_nonzero(newlines) or not newlines[ends[width - 1 :: width]].all():
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    led = np.flatnonzero(data[starts] == _BLANK) if b" " in block else ends[:0]
    blanks = np.zeros(len(data) if led.size else 0, dtype=np.int8)
    if led.size:
        solid = np.flatnonzero(data != _BLANK)
        blanks[starts[led]] = 1
        starts[led] = solid[np.searchsorted(solid, starts[led])]
        blanks[starts[led]] = -1
    lengths = ends - starts + 1
    if quotes is not None:
        opened = data[starts] == _QUOTE
        closed = (data[ends - 1] == _QUOTE) & (ends - 1 > starts)
        # A quote elsewhere than around a cell is one too many, or lets another cell open or close alone.
        if (opened != closed).any() or 2 * np.count_nonzero(opened) != np.count_nonzero(quotes):
            return None
        if (data[starts[opened] + 1] == _BLANK).any():
            return None
        lengths -= 2 * opened
    if led.size:
        data = data[np.cumsum(blanks, dtype=np.int8) == 0]
    if quotes is not None:
        data = np.frombuffer(data.tobytes().translate(None, b'"'), dtype=np.uint8)
    return _Lines(data, lengths.reshape(-1, width), separator)
