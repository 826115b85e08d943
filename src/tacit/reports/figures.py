"""Figures of experiments: lines with error bars, written as pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["draw_lines"]

# Okabe and Ito (2008): distinguishable with any colour vision; markers tell lines apart in print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")

_MOST_COLUMNS = 4  # of panels, that a page is wide enough for


def draw_lines(
    rows: Sequence[Mapping[str, object]],
    path: Path,
    *,
    x: str,
    y: str,
    error: str | None = None,
    line: str,
    panel: str | None = None,
    log_x: bool,
    log_y: bool = False,
    title: str,
    legend: str | None = None,
) -> None:
    """Draw one line per value of `line`; rows without an x are dotted reference lines.

    Args:
        rows: Rows of a table, all with the same keys.
        path: Picture file to write.
        x: Key of the horizontal axis.
        y: Key of the vertical axis.
        error: Key of the standard error of y; bars show two of them. None draws no bars.
        line: Key that tells lines apart.
        panel: Key that tells panels apart; None is one panel.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
        title: Above the figure.
        legend: Above the names of the lines.
    """
    parts = [None] if panel is None else list(dict.fromkeys(row[panel] for row in rows))
    columns = min(len(parts), _MOST_COLUMNS)
    lines = math.ceil(len(parts) / columns)
    figure = Figure(figsize=(1.5 + 4.5 * columns, 4.6 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    grid = figure.subplots(lines, columns, sharey=True, squeeze=False)
    all_axes = grid.ravel()[: len(parts)]
    for unused in grid.ravel()[len(parts) :]:
        unused.remove()
    for axes, part in zip(all_axes, parts, strict=True):
        mine = list(rows) if panel is None else [row for row in rows if row[panel] == part]
        _draw_panel(axes, mine, x=x, y=y, error=error, line=line)
        if log_x:
            axes.set_xscale("log")
            ticks = sorted({_number(row[x]) for row in mine if row[x] is not None})
            axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
            axes.minorticks_off()
        if log_y:
            axes.set_yscale("log")
        axes.set_xlabel(x)
        if panel is not None:
            axes.set_title(f"{panel}: {part}", loc="left", fontsize=9)
    for axes in all_axes[::columns]:
        axes.set_ylabel(y)
    drawn = [tuple(axes.get_legend_handles_labels()[1]) for axes in all_axes]
    # One legend where all panels have the same lines, else one in each.
    for axes, names in list(zip(all_axes, drawn, strict=True))[-1 if len(set(drawn)) == 1 else 0 :]:
        if not names:
            continue
        outside = len(names) > len(_COLOURS) and axes is all_axes[-1] and lines == 1
        place = {"bbox_to_anchor": (1.02, 1.0), "loc": "upper left"} if outside else {}
        axes.legend(frameon=False, title=legend, title_fontsize=8, fontsize=8, **place)
    figure.savefig(path, dpi=150)


def _draw_panel(
    axes: Axes, rows: Sequence[Mapping[str, object]], *, x: str, y: str, error: str | None, line: str
) -> None:
    """Draw all lines of one panel."""
    for k, name in enumerate(dict.fromkeys(str(row[line]) for row in rows)):
        mine = [row for row in rows if str(row[line]) == name]
        points = [(_number(r[x]), _number(r[y]), _bar(r, error)) for r in mine if r[x] is not None]
        colour = _COLOURS[k % len(_COLOURS)]
        if points:
            xs, ys, bars = zip(*points, strict=True)
            # From the second round of colours on, lines are dashed.
            dash = ("-", "--", ":")[k // len(_COLOURS) % 3]
            axes.errorbar(
                xs, ys, yerr=None if error is None else bars, color=colour, marker=_MARKERS[k % 6], ls=dash,
                markersize=4, capsize=3, label=name,
            )  # fmt: skip
        for row in (r for r in mine if r[x] is None):
            axes.axhline(_number(row[y]), color=colour, ls=":", lw=1.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)


def _bar(row: Mapping[str, object], error: str | None) -> float:
    """Return half the length of a point's error bar: two standard errors."""
    return 0.0 if error is None else 2 * _number(row[error])


def _number(value: object) -> float:
    """Return a cell as a number."""
    return float(str(value))
