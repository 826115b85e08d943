"""Figures of experiments: lines with error bars, written as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["draw_lines"]

# Okabe and Ito (2008): distinguishable with any colour vision; markers tell lines apart in print.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_lines(
    rows: Sequence[Mapping[str, object]],
    path: Path,
    *,
    x: str,
    y: str,
    error: str,
    line: str,
    log_x: bool,
    title: str,
) -> None:
    """Draw one line per value of `line`; rows without an x are dashed reference lines.

    Args:
        rows: Rows of a table, all with the same keys.
        path: Picture file to write.
        x: Key of the horizontal axis.
        y: Key of the vertical axis.
        error: Key of the standard error of y; bars show two of them.
        line: Key that tells lines apart.
        log_x: Whether the horizontal axis is logarithmic.
        title: Above the figure.
    """
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for k, name in enumerate(dict.fromkeys(str(row[line]) for row in rows)):
        mine = [row for row in rows if str(row[line]) == name]
        points = [(_number(r[x]), _number(r[y]), 2 * _number(r[error])) for r in mine if r[x] is not None]
        colour = _COLOURS[k % len(_COLOURS)]
        if points:
            xs, ys, bars = zip(*points, strict=True)
            axes.errorbar(xs, ys, yerr=bars, color=colour, marker=_MARKERS[k % 6], capsize=3, label=name)
        for row in (r for r in mine if r[x] is None):
            axes.axhline(_number(row[y]), color=colour, ls=":", lw=1.2)
    if log_x:
        axes.set_xscale("log")
        ticks = sorted({_number(row[x]) for row in rows if row[x] is not None})
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.legend(frameon=False, title="dotted: without privacy", title_fontsize=8)
    figure.savefig(path, dpi=150)


def _number(value: object) -> float:
    """Return a cell as a number."""
    return float(str(value))
