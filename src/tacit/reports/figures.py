"""Figures of experiments: lines with error bars, written as pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["draw_lines"]

# Okabe and Ito (2008) without the yellow, and a grey: distinguishable with any colour vision; markers tell
# lines apart in print. There is one marker more than there are colours, so 72 lines differ in one of them.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#717273")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
_DASHES = ("-", "--", "-.")  # a round of colours each; dotted are the reference lines

_MOST_COLUMNS = 4  # of panels, that a page is wide enough for
_MOST_TICKS = 8  # whole numbers that are all named below an axis
_CLOSE = 0.1  # of a logarithmic axis: names of points that are closer would run into each other
_DECADE = 20  # of a logarithmic axis: from its lowest to its highest, below which powers of ten say little
_MOST_MARKERS = 40  # on one line: more of them hide it
_MANY_PANELS = 4  # more of them are drawn coarser: a picture is to stay small
_COINCIDE = 2  # points in common make a part of two lines one
_MOST_WIDER = 4  # lines that lie over each other and still show
_LEGEND_LETTER = 0.075  # inches that one letter of a legend takes


def draw_lines(
    rows: Sequence[Mapping[str, object]],
    path: Path,
    *,
    x: str,
    y: str,
    error: str | None = None,
    line: str,
    panel: str | None = None,
    axis: str | None = None,
    log_x: bool,
    log_y: bool = False,
    title: str,
    legend: str | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw one line per value of `line`; rows without an x are dotted reference lines.

    Where x is text, the names of a panel stand side by side as they come, and nothing joins them.

    A line looks the same in every panel, and one legend beside the panels names it. Panels that have no
    line in common have a legend each, inside where no reference line would cross it.

    Args:
        rows: Rows of a table, all with the same keys.
        path: Picture file to write.
        x: Key of the horizontal axis.
        y: Key of the vertical axis.
        error: Key of the standard error of y; bars show two of them. None draws no bars.
        line: Key that tells lines apart.
        panel: Key that tells panels apart; None is one panel.
        axis: Key that names the horizontal axis of each panel; None names it by x.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.
        title: Above the figure.
        legend: Above the names of the lines.
        labels: What is written beside an axis in place of its key.
    """
    parts = [None] if panel is None else list(dict.fromkeys(row[panel] for row in rows))
    shares = [list(rows) if panel is None else [row for row in rows if row[panel] == part] for part in parts]
    joined = not _places(rows, x)
    styles = [_styles(share, line, joined=joined) for share in shares]
    named = _styles(rows, line, joined=joined)
    together = len(parts) > 1 and len(named) < sum(map(len, styles))
    if together:
        styles = [named] * len(parts)
    # A reference line runs through the whole panel, and through a legend in it.
    beside = together or (len(parts) == 1 and any(row[x] is None for row in rows))
    room = _LEGEND_LETTER * max(map(len, (*named, legend or ""))) + 0.6 if beside else 0.0
    figure, lines = _empty_panels(len(parts), room=room, title=title)
    all_axes = figure.axes
    for axes, part, share, looks in zip(all_axes, parts, shares, styles, strict=True):
        places = _places(share, x)
        standing = [{**row, x: places[str(row[x])]} for row in share] if places else share
        _draw_panel(axes, standing, x=x, y=y, error=error, line=line, styles=looks)
        if places:
            axes.set_xticks(range(len(places)), list(places), rotation=90, fontsize=7)
            axes.set_xlim(-0.5, len(places) - 0.5)
        else:
            _set_ticks(axes, sorted({_number(row[x]) for row in share if row[x] is not None}), log_x=log_x)
        if log_y:
            _make_logarithmic(axes)
        axes.set_xlabel(labels.get(x, x) if axis is None else str(share[0][axis]))
        if panel is not None:
            axes.set_title(f"{panel}: {part}", loc="left", fontsize=9)
    for axes in all_axes[:: math.ceil(len(parts) / lines)]:
        axes.set_ylabel(labels.get(y, y))
    if beside:
        _add_legend(figure, all_axes, named, title=legend, loc="outside right upper")
    else:
        for axes, looks in zip(all_axes, styles, strict=True):
            outside = len(looks) > len(_COLOURS) and axes is all_axes[-1] and lines == 1
            place = {"bbox_to_anchor": (1.02, 1.0), "loc": "upper left"} if outside else {}
            _add_legend(axes, [axes], looks, title=legend, **place)
    figure.savefig(path, dpi=150 if len(parts) <= _MANY_PANELS else 80)


def _empty_panels(count: int, *, room: float, title: str) -> tuple[Figure, int]:
    """Return a figure of that many panels, and in how many lines they stand.

    Args:
        count: Of panels.
        room: For a legend beside them, in inches.
        title: Above them.
    """
    lines = math.ceil(count / _MOST_COLUMNS)
    columns = math.ceil(count / lines)  # six panels are three above three, not four above two
    wide, high = (4.5, 4.6) if count <= _MANY_PANELS else (3.8, 3.6)
    figure = Figure(figsize=(1.5 + wide * columns + room, high * lines), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    for unused in figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()[count:]:
        unused.remove()
    return figure, lines


def _add_legend(
    place: Figure | Axes, all_axes: Sequence[Axes], names: Iterable[str], *, title: str | None, **where: Any
) -> None:
    """Name the lines once, in the order of `names`; the first panel need not have them all."""
    handles = {
        name: handle
        for axes in all_axes
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in names if name in handles]
    if shown:
        place.legend(
            [handles[name] for name in shown], shown, frameon=False, title=title, title_fontsize=8,
            fontsize=8, **where,
        )  # fmt: skip


def _places(rows: Sequence[Mapping[str, object]], x: str) -> dict[str, int]:
    """Return where each name stands on a horizontal axis of names; none stands on one of numbers."""
    if not any(isinstance(row[x], str) for row in rows):
        return {}
    return {name: place for place, name in enumerate(dict.fromkeys(str(row[x]) for row in rows))}


def _styles(rows: Sequence[Mapping[str, object]], line: str, *, joined: bool) -> dict[str, dict[str, Any]]:
    """Return the look of every line, by its name."""
    names = dict.fromkeys(str(row[line]) for row in rows)
    return {
        name: {
            "color": _COLOURS[k % len(_COLOURS)],
            "marker": _MARKERS[k % len(_MARKERS)],
            "ls": _DASHES[k // len(_COLOURS) % len(_DASHES)] if joined else "",
        }
        for k, name in enumerate(names)
    }


def _set_ticks(axes: Axes, xs: Sequence[float], *, log_x: bool) -> None:
    """Mark the points of the horizontal axis: all of a logarithmic one, else a few whole numbers."""
    if log_x:
        axes.set_xscale("log")
        axes.set_xticks(xs, _apart(xs))
        axes.minorticks_off()
    elif len(xs) <= _MOST_TICKS and all(t.is_integer() for t in xs):
        axes.set_xticks(xs, [f"{t:.0f}" for t in xs])


def _make_logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic; of about a decade, with numbers instead of powers of ten."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < _DECADE * low:
        for named in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            named(lambda value, _: f"{value:g}")


def _apart(xs: Sequence[float]) -> list[str]:
    """Return the names of points of a logarithmic axis in ascending order, empty where there is no room."""
    names, last = [], 0.0
    for x in xs:
        room = last == 0 or math.log(x / last) >= _CLOSE * math.log(xs[-1] / xs[0])
        digits = max(3, 2 - math.floor(math.log10(x)))  # three behind the point, or three that count
        names.append(f"{round(x, digits):g}" if room else "")
        last = x if room else last
    return names


def _draw_panel(
    axes: Axes,
    rows: Sequence[Mapping[str, object]],
    *,
    x: str,
    y: str,
    error: str | None,
    line: str,
    styles: Mapping[str, dict[str, Any]],
) -> None:
    """Draw all lines of one panel; one that others run over is wider than they are, so that it shows."""
    rest: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        rest.setdefault(str(row[line]), []).append(row)
    later = {
        name: {(_number(r[x]), _number(r[y])) for r in mine if r[x] is not None}
        for name, mine in rest.items()
    }
    for name, mine in rest.items():
        points = [(_number(r[x]), _number(r[y]), _bar(r, error)) for r in mine if r[x] is not None]
        own = later.pop(name)
        over = min(sum(len(own & other) >= _COINCIDE for other in later.values()), _MOST_WIDER)
        if points:
            xs, ys, bars = zip(*points, strict=True)
            axes.errorbar(
                xs, ys, yerr=None if error is None else bars, markersize=4 + 3 * over, capsize=3, label=name,
                lw=1.5 + 2 * over, markevery=math.ceil(len(xs) / _MOST_MARKERS), **styles[name],
            )  # fmt: skip
        for row in (r for r in mine if r[x] is None):
            # A line that is nothing but a reference is named by it.
            named = None if points else name
            axes.axhline(_number(row[y]), color=styles[name]["color"], ls=":", lw=1.2, label=named)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.6)


def _bar(row: Mapping[str, object], error: str | None) -> float:
    """Return half the length of a point's error bar: two standard errors, or none where there is none."""
    return 0.0 if error is None or row[error] is None else 2 * _number(row[error])


def _number(value: object) -> float:
    """Return a cell as a number."""
    return float(str(value))
