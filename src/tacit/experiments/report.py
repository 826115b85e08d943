"""What an experiment returns: rows, what to draw, and what must be said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.errors import ParameterError

__all__ = ["Report", "number", "yes"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Rows of a table, ready to be printed, saved and drawn.

    Attributes:
        rows: One dict per row, all with the same keys.
        x: Key of the horizontal axis.
        y: Key of the vertical axis.
        error: Key of the standard error of y; None where there is none.
        line: Key that tells the lines of the figure apart.
        panel: Key that tells its panels apart; None is one panel.
        axis: Key that names the horizontal axis of each panel, where panels differ in it; None takes x.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
        shown: Columns that a terminal is wide enough for; empty shows all.
        title: What the figure shows, as it stands above it; every further table has one, and the first may.
        labels: What is written beside an axis in place of its key.
        notes: What differs from the paper, and what was found.
        more: Further tables of the same experiment, by names that files can have.
    """

    rows: list[dict[str, object]]
    x: str
    y: str
    error: str | None
    line: str
    panel: str | None = None
    axis: str | None = None
    log_x: bool = True
    log_y: bool = False
    shown: tuple[str, ...] = ()
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    more: Mapping[str, Report] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a further table without a title: its name alone, such as the number of a figure, is none."""
        if untitled := [name for name, part in self.more.items() if not part.title]:
            raise ParameterError(f"the further table {untitled[0]!r} must have a title.")

    def markdown(self) -> str:
        """Return the rows as a Markdown table."""
        keys = list(self.rows[0])
        lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
        lines += ["| " + " | ".join(_cell(row[k]) for k in keys) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    """Return a value as it is printed."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def number(value: object) -> float:
    """Return a cell of a table as a number."""
    return float(str(value))


def yes(holds: bool) -> str:
    """Say whether a statement holds."""
    return "yes" if holds else "no"
