"""How commands speak: one JSON object for programs, short tables for people, progress on the error stream."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import msgspec
import typer
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from tacit.errors import one_line, printable

__all__ = [
    "JsonFlag",
    "Update",
    "check_output",
    "print_bars",
    "print_facts",
    "print_foreign",
    "print_json",
    "print_line",
    "print_table",
    "print_text",
    "progress",
    "results_alone",
]

_FILE_WIDTH: Final = 120
_FOREIGN_WIDTH: Final = 80  # of paragraphs that hold words of others, likewise
_INDENT: Final = "  "  # of their lines, but for the first
_GAP: Final = 2  # spaces after each column of a table, where there is room
_PART: Final = 8  # letters of a long word that stay together

_BAR: Final = 40  # the longest bar
_BAR_ENDS: Final = 10  # of a bar: two blanks, two brackets, and what stands behind it

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
"""The type of the option `--json` of every command; its default is False."""


class Update(Protocol):
    """Says how far a piece of long work has come."""

    def __call__(self, done: float, total: float | None = None, /, *, note: str = "") -> None:
        """Show that `done` of `total` is done; None keeps the total, `note` is a few words beside the bar."""


def check_output() -> None:
    """Refuse a standard output that cannot be written, while nothing is spent.

    Raises:
        OSError: It is closed, read only, or a full device.
    """
    try:
        if sys.stdout is None or sys.stdout.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        try:
            number = sys.stdout.fileno()
        except io.UnsupportedOperation:  # a stream in memory
            return
        os.write(number, b"")
    except OSError as error:
        raise OSError(
            error.errno, f"cannot be written ({error.strerror}); nothing was spent", "standard output"
        ) from error


@contextmanager
def results_alone() -> Iterator[None]:
    """Send what modules of a person's own print to the error stream: the output is of results alone."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on the output stream.

    Args:
        value: Its fields; one without a version, and that is no schema, is version 1 of what the command
            prints, see `tacit.cli.forms`. Builtins, msgspec structs, dataclasses, paths, NumPy scalars and
            arrays. Infinities and NaN are written as null, which JSON can hold.

    Raises:
        TypeError: `value` holds something that has no form in JSON.
    """
    versioned = value if "version" in value or "$schema" in value else {"version": 1, **value}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(versioned, enc_hook=_plain)).decode() + "\n")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()
) -> None:
    """Print a table with a header line, after an empty line.

    Where the terminal is too narrow, cells are broken between words, those of the first column only where
    moving the columns together is not enough. Where that is not enough either, every row is a paragraph with
    a line for each of its cells; a file, which has no width, has the table as it is.

    Args:
        columns: Names of the columns.
        rows: One cell for each column; cells are shown as `str` says them, never read as markup.
        right: Columns that are set flush right, such as numbers.
    """
    cells = [[_lines(str(cell)) for cell in row] for row in rows]
    console = _console()
    widths, gap = _layout(columns, cells, console.width)
    if cells and _total(widths, gap) > console.width and _has_width():
        _print_folded(columns, cells, right, console)
        return
    # One character of the gap is the divider of the box.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, gap - 1, 0, 0))
    for name, width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    console.width = max(console.width, _total(widths, gap))
    console.print()
    console.print(table)


def _layout(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> tuple[list[int], int]:
    """Return the width of each column of a table, and the gap after each."""
    texts = list(zip(columns, *rows, strict=True))
    widths = [max(cell_len(line) for text in column for line in text.split("\n")) for column in texts]
    words = [max(map(_longest_word, column), default=1) for column in texts]
    wanted, gap = widths, _GAP
    # What gives way, and how far, until the table fits; of several columns always the widest one.
    for gap, floors in (
        (_GAP, [*wanted[:1], *words[1:]]),
        (1, [*wanted[:1], *words[1:]]),
        (_GAP, words),
        (1, words),
    ):
        widths = list(wanted)
        while _total(widths, gap) > room and widths != floors:
            _, widest = max((w, k) for k, w in enumerate(widths) if w > floors[k])
            widths[widest] -= 1
        if _total(widths, gap) <= room:
            break
    return widths, gap


def _longest_word(text: str) -> int:
    """Return the cells of the longest word, at least 1."""
    return max(map(cell_len, text.split()), default=1)


def _print_folded(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str], console: Console
) -> None:
    """Print a paragraph for each row, names in front of their cells; or above them, where these need room.

    Long words of text may be broken. A number never is: a line that it makes too long leaves the terminal.
    """
    indent = max(map(cell_len, columns)) + _GAP
    beside = indent + max(_longest_word(cell) for row in rows for cell in row) <= console.width
    for row in rows:
        console.print()
        for name, cell in zip(columns, row, strict=True):
            if not cell.strip():
                continue
            before = set_cell_size(name, indent) if beside else _INDENT
            room = max(console.width - cell_len(before), _longest_word(cell) if name in right else _PART)
            if not beside:
                console.print(Text(name))
            for line in Text(cell).wrap(console, room, overflow="fold"):
                console.print(Text(before + line.plain.rstrip()), soft_wrap=True)
                before = " " * cell_len(before)


def _total(widths: Sequence[int], gap: int) -> int:
    """Return the width of a table; a character less than a gap follows its last column."""
    return sum(widths) + gap * len(widths) - 1


def print_facts(facts: Mapping[str, object], *, title: str = "") -> None:
    """Print names and values, one pair a line; a value may wrap."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, Text(_lines(str(value))))
    console = _console()
    if title:
        console.print(Text(_lines(title), style="bold"))
    console.print(table)


def print_bars(shares: Sequence[tuple[str, float]]) -> None:
    """Print one bar of plain characters a line, as long as the terminal leaves room for.

    Args:
        shares: Names, and numbers in [0, 1]. A bar is empty for 0 only, and full for 1 only.
    """
    console = _console()
    texts = [_lines(name).replace("\n", " ") for name, _ in shares]
    longest = max(map(cell_len, texts), default=0)
    label = min(longest, max(min(console.width // 2, console.width - _BAR_ENDS - _PART), _PART))
    room = min(max(console.width - label - _BAR_ENDS, _PART), _BAR)
    for text, (_, share) in zip(texts, shares, strict=True):
        marks = 0 if share <= 0 else room if share >= 1 else min(max(int(share * room), 1), room - 1)
        bar = "#" * marks + "." * (room - marks)
        percent = 100 if share >= 1 else min(max(round(100 * share), share > 0), 99)
        console.print(Text(f"{set_cell_size(text, label)}  [{bar}] {percent:3d} %"), soft_wrap=True)


def print_text(text: str) -> None:
    """Print a paragraph, wrapped to the terminal; it is never read as markup. Nothing is an empty line."""
    _console().print(Text(_lines(text)))


def print_whole(text: str) -> None:
    """Print a line that is copied, such as a command or a path; only the terminal breaks it, if it must."""
    _console().print(Text(_lines(text)), soft_wrap=True)


def print_foreign(text: str) -> None:
    """Print a paragraph that holds words of others: every line but the first is set in by two blanks.

    Else whoever wrote them could pad them so that a line of their own starts where ours do. Where the width
    of the terminal is not known, 80 columns are assumed: one that is narrower breaks lines by itself.
    """
    console = _console()
    room = console.width if _has_width() else min(console.width, _FOREIGN_WIDTH)
    room = max(room - len(_INDENT), _PART)
    for part in _lines(text).split("\n"):
        lines = Text(part).wrap(console, room, overflow="fold")
        for k, line in enumerate(lines or [Text("")]):
            shown = line.plain.rstrip()
            if shown or not k:
                sys.stdout.write((_INDENT + shown.lstrip() if k else shown) + "\n")


def print_line(*, to_error: bool, label: str, text: str, colour: str = "red") -> None:
    """Print `label: text` as exactly one line, whatever the text holds; coloured on a terminal only."""
    typer.secho(f"{label}:", fg=colour, bold=True, nl=False, err=to_error)
    typer.echo(f" {one_line(text)}", err=to_error)


@contextmanager
def progress(label: str, *, total: float | None = None, in_bytes: bool = False) -> Iterator[Update]:
    """Show progress on the error stream while the block runs; nothing where that is not a terminal.

    Args:
        label: What is being done.
        total: How much there is to do; None where that is not known yet.
        in_bytes: Whether bytes are counted; steps otherwise.

    Yields:
        The function to call after every piece of work, with what is done so far.

    Example:
        >>> with progress("training", total=10) as update:
        ...     update(1, note="loss 0.7")
    """
    console = Console(stderr=True)
    count: ProgressColumn = DownloadColumn() if in_bytes else MofNCompleteColumn()
    parts = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(
        *parts,
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        # Colours can be forced upon a notebook or a log (FORCE_COLOR); moving their cursor only litters them.
        disable=not (console.is_terminal and sys.stderr.isatty()),
    ) as bar:
        task = bar.add_task(label, total=total, note="")

        def update(done: float, total: float | None = None, /, *, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=one_line(note))

        yield update


def _console() -> Console:
    """Return a console on the stream that is standard output now."""
    # A file or a pipe has no width of its own; the 80 columns that would be assumed break long addresses.
    return Console(highlight=False, width=None if _has_width() else _FILE_WIDTH)


def _has_width() -> bool:
    """Return whether the width of what is printed is known."""
    return sys.stdout.isatty() or "COLUMNS" in os.environ


def _lines(text: str) -> str:
    """Return a text whose lines print: texts come from files as well, and could move a terminal's cursor."""
    return "\n".join(map(printable, text.split("\n")))


def _plain(value: object) -> object:
    """Return a value that JSON can hold; NumPy is asked by duck typing, as importing it is slow."""
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} has no form in JSON.")
