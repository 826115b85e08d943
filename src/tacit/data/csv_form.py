"""How a text table is written: packing and separator by public facts alone, and its bytes as UTF-8.

The ending of a name says whether the file is packed, its first bytes in what encoding it is, and its first
line, the header, what separates cells. No record has a say, so replacing one changes how none is read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from tacit.errors import DataError

__all__ = ["SEPARATORS", "UTF16", "csv_separator", "open_csv", "recode"]

SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
"""What may stand between cells, as messages call it; where a header has equally many, the first one does."""
UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TO_CSV: Final = "export it as a CSV in UTF-8"
_STARTS: Final = (
    (b"PK\x03\x04", f"is a spreadsheet or another packed file, whatever its name says: {_TO_CSV}"),
    (b"\xd0\xcf\x11\xe0", f"is an old spreadsheet, whatever its name says: {_TO_CSV}"),
    (b"\x1f\x8b", "is packed with gzip, whatever its name says: rename it to .csv.gz"),
    (b"PAR1", "is a Parquet file, whatever its name says: rename it to .parquet"),
    (b"SQLite format 3", f"is a data base, whatever its name says: {_TO_CSV}"),
)
_START: Final = 2**20
"""So many bytes are read to find a header."""
_CHUNK: Final = 2**18


@contextmanager
def open_csv(path: Path) -> Iterator[IO[bytes]]:
    """Open a text table as a stream of UTF-8, unpacked; a unit of UTF-16 that is none is U+FFFD.

    Raises:
        DataError: The file cannot be read, or is packed and damaged.
    """
    try:
        with _unpacked(path) as stream:
            mark = stream.read(4)
            if mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
                raise DataError(f"{path} is text in UTF-32; {recode('UTF-32', str(path))}.")
            utf16 = mark.startswith(UTF16)
            stream.seek(0)
            yield cast(IO[bytes], io.BufferedReader(_FromUtf16(stream), _CHUNK)) if utf16 else stream
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{path} is no whole gzip file; copy it again, or pack it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def csv_separator(path: Path) -> str:
    """Return what separates the cells of a text table: a tab by the ending .tsv, else what its header says.

    The header says it by what it holds most often outside of double quotes.

    Raises:
        DataError: The file cannot be read, is of another kind, or its header is no text of an encoding that
            can be told. The message says what to do.
    """
    with open_csv(path) as stream:
        start = stream.read(_START)
    for mark, why in _STARTS:
        if start.startswith(mark):
            raise DataError(f"{path} {why}.")
    header = _header(path, start)
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    bare = re.sub(r'"[^"]*("|$)', "", header)
    return max(SEPARATORS, key=bare.count)


def recode(name: str, source: str) -> str:
    """Say how text of another encoding becomes UTF-8."""
    convert, file = f"iconv -f {name} -t UTF-8", shlex.quote(source)
    packed = source.lower().endswith(".gz")
    command = f"gunzip -c {file} | {convert} | gzip > NEW" if packed else f"{convert} {file} > NEW"
    return f"save it as UTF-8, for instance with `{command}`"


def _header(path: Path, start: bytes) -> str:
    """Return the first line that is not blank; cut where the start ends."""
    lines = start.splitlines(keepends=True)
    header = next((line for line in lines if line.strip()), b"")
    if b"\0" in header and header.count(b"\0") * 3 > len(header):
        name = "UTF-16LE" if header[1:2] == b"\0" else "UTF-16BE"
        raise DataError(f"{path} is text in UTF-16 without a byte order mark; {recode(name, str(path))}.")
    if b"\0" in header:
        raise DataError(f"{path}: the header holds NUL bytes, which no text has; export the table again.")
    try:
        # It may be cut within a character.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(header)
    except UnicodeDecodeError:
        # Latin-1 has no printed characters where Windows-1252, its extension, has quotes and the euro.
        raise DataError(
            f"{path}: the header is not UTF-8, but Latin-1, Windows-1252 or the like; "
            f"{recode('WINDOWS-1252', str(path))}."
        ) from None


def _unpacked(path: Path) -> BinaryIO:
    """Open a file, unpacked where its ending says that it is packed."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path))
    return path.open("rb")


class _FromUtf16(io.RawIOBase):
    """The bytes of a stream of UTF-16 as UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer; ours is this one
        more = True
        while more and not self._ready:
            found = self._stream.read(_CHUNK)
            more = bool(found)
            self._ready = self._decoder.decode(found, final=not found).encode()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count
