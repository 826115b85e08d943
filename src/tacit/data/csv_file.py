"""CSV files: one structure for all lines; many lines at once where that gives the same cells."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import numbers_of, with_commas
from tacit.data.csv_block import LONGEST, BlockCells, read_lines
from tacit.data.csv_form import SEPARATORS, csv_separator, open_csv
from tacit.errors import DataError

__all__ = ["csv_frame"]

BLOCK = 2**18
"""So many bytes are looked at at once; they and what they become fit into the cache of a processor."""
_PIECE = 2**22
"""At most so many numbers, 32 MiB, are allocated at once."""
_REPLACED = "\ufffd"
"""What decoding puts where bytes are not UTF-8."""


class _Rows(Iterator[list[str]], Protocol):
    """What `csv.reader` returns."""

    line_num: int


def csv_frame(path: Path, numeric: Collection[str]) -> pd.DataFrame:
    """Return a CSV file as a frame of text, the columns named in `numeric` as numbers; see `read_table`.

    Raises:
        DataError: As `read_table` says of files that cannot be read and structures that are broken.
    """
    separator = csv_separator(path)
    with open_csv(path) as stream, _long_cells():
        lines = _Lines(path, stream, separator)
        names = lines.header()
        kinds = [name in numeric for name in names]
        numbers, texts = _Columns(sum(kinds), np.float64), _Columns(len(kinds) - sum(kinds), object)
        for some_numbers, some_texts in lines.records(kinds):
            numbers.add(some_numbers)
            texts.add(some_texts)
    found = {True: iter(numbers.whole()), False: iter(texts.whole())}
    columns = {
        name: pd.Series(next(found[kind]), dtype=np.float64 if kind else object, copy=False)
        for name, kind in zip(names, kinds, strict=True)
    }
    return pd.DataFrame(columns, copy=False)


class _Columns:
    """Columns of one type that grow, in pieces so large that the system has their memory back at once."""

    def __init__(self, width: int, dtype: type) -> None:
        self._pieces: list[NDArray[Any]] = [np.empty((width, 0), dtype=dtype)]
        self._used = 0

    def add(self, block: NDArray[Any]) -> None:
        """Add rows, shape (rows, width)."""
        last = self._pieces[-1]
        width, rows = last.shape
        if self._used + len(block) > rows:
            self._pieces[-1] = last[:, : self._used]
            rows = max(len(block), min(2 * rows, _PIECE // max(width, 1)))
            last = np.empty((width, rows), dtype=last.dtype)
            self._pieces.append(last)
            self._used = 0
        last[:, self._used : self._used + len(block)] = block.T
        self._used += len(block)

    def whole(self) -> NDArray[Any]:
        """Return all rows, shape (width, rows), and forget them."""
        self._pieces[-1] = last = self._pieces[-1][:, : self._used]
        stop = sum(piece.shape[1] for piece in self._pieces)
        found = np.empty((len(last), stop), dtype=last.dtype)
        while self._pieces:
            piece = self._pieces.pop()
            found[:, stop - piece.shape[1] : stop] = piece
            stop -= piece.shape[1]
        return found


class _Lines:
    """The lines of a file, which are taken by blocks or one by one."""

    def __init__(self, path: Path, stream: IO[bytes], separator: str) -> None:
        self._path = path
        self._separator = separator
        self._blocks = _blocks(stream)
        self._put_back: bytes | None = None
        self._given = self._skipped = 0  # lines taken one by one, or loaded for that; lines taken by blocks
        self._rows: _Rows = csv.reader(
            self._one_by_one(), delimiter=separator, skipinitialspace=True, strict=True
        )

    def header(self) -> list[str]:
        """Return the names of the columns; one without a name is called as pandas calls it."""
        try:
            given = next((row for row in self._rows if any(cell.strip() for cell in row)), None)
        except csv.Error:
            raise self._broken(1) from None
        if given is None:
            raise DataError(f"{self._path} is empty; a header line and at least one record are needed.")
        names = [name.strip() or f"Unnamed: {k}" for k, name in enumerate(given)]
        if any(_REPLACED in name for name in names):
            raise DataError(f"{self._path}: the header is not UTF-8.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{self._path} has two columns of the same name, {twice!r}.")
        return names

    def records(self, numeric: list[bool]) -> Iterator[BlockCells]:
        """Return the records some at a time, each of as many fields as the header has."""
        while True:
            if self._rows.line_num == self._given:
                block = next(self._blocks, None)
                if block is None:
                    return
                cells = read_lines(block, numeric, separator=self._separator)
                if cells is not None:
                    self._skipped += len(cells[0])
                    yield cells
                    continue
                self._put_back = block
            columns: list[Sequence[str]] = list(zip(*self._chunk(len(numeric)), strict=True))
            if columns:
                if self._separator != ",":
                    columns = list(map(with_commas, columns))
                yield _cells(columns, numeric)

    def _one_by_one(self) -> Iterator[str]:
        """Return lines as text, as the reader of rows asks for them."""
        while True:
            block = next(self._blocks, None) if self._put_back is None else self._put_back
            if block is None:
                return
            self._put_back = None
            # A wrong byte is one cell's, and no reason to refuse all others. The reader of rows wants to see
            # the ends of lines itself.
            lines = io.StringIO(block.decode(errors="replace"), newline="").readlines()
            self._given += len(lines)
            yield from lines

    def _chunk(self, width: int) -> list[list[str]]:
        """Return the records of the lines that are loaded, and those that complete the last one."""
        ends = [self._rows.line_num]
        chunk: list[list[str]] = []
        try:
            for row in self._rows:
                chunk.append(row)
                ends.append(self._rows.line_num)
                if ends[-1] == self._given:
                    break
        except csv.Error:
            self._checked(chunk, ends, width)  # the first line at fault is named, however lines are taken
            raise self._broken(ends[-1] + 1) from None
        # All at once for speed; which line it is, is looked up only if one differs.
        return chunk if set(map(len, chunk)) == {width} else self._checked(chunk, ends, width)

    def _checked(self, rows: list[list[str]], ends: list[int], width: int) -> list[list[str]]:
        """Return the rows that are records; `ends` is the last line of each, after that of the row before."""
        found = []
        for row, before in zip(rows, ends, strict=False):
            if len(row) == width:
                found.append(row)
            elif not row and width == 1:
                found.append([""])
            elif len(row) > 1 or any(cell.strip() for cell in row):
                raise DataError(
                    f"{self._path}, line {self._skipped + before + 1}: {len(row)} fields, the header has "
                    f"{width}; text that holds a {SEPARATORS[self._separator]} must stand in double quotes, "
                    "and a missing cell is an empty one."
                )
        return found

    def _broken(self, line: int) -> DataError:
        """Return the error for quotes that do not fit; the reader's own message would not say where."""
        return DataError(
            f"{self._path}, line {self._skipped + line}: a double quote that is not closed or is followed by "
            f"other text than a {SEPARATORS[self._separator]}, or a field of more than "
            f"{csv.field_size_limit():,} characters."
        )


def _cells(columns: list[Sequence[str]], numeric: list[bool]) -> BlockCells:
    """Return columns of cells as `read_lines` does."""
    rows = len(columns[0])
    numbers, texts = (
        np.empty((rows, sum(numeric))),
        np.empty((rows, len(numeric) - sum(numeric)), dtype=object),
    )
    free = {True: iter(numbers.T), False: iter(texts.T)}
    for cells, kind in zip(columns, numeric, strict=True):
        next(free[kind])[:] = numbers_of(cells) if kind else cells
    return numbers, texts


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Return whole lines: the first, and then about as many as `BLOCK` bytes hold; no mark of byte order."""
    first = stream.readline(BLOCK).removeprefix(codecs.BOM_UTF8)
    rest = [first]
    if first.endswith(b"\n"):
        yield first
        rest = []
    while more := stream.read(BLOCK):
        # A carriage return may end a line too; as the last byte it may be the first half of an end.
        cut = max(more.rfind(b"\n"), more.rfind(b"\r", 0, -1)) + 1
        if cut:
            yield b"".join([*rest, more[:cut]])
            rest = [more[cut:]]
        else:
            rest.append(more)
    last = b"".join(rest)
    if last:
        yield last


@contextmanager
def _long_cells() -> Iterator[None]:
    """Read cells of any length; the limit is one of the whole process."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)
