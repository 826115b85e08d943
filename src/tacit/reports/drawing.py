"""Drawings in the house style, as SVG inside a page: no global state, colours that follow its theme."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

__all__ = [
    "FONT",
    "INK",
    "MARKS",
    "MUTED",
    "RULE",
    "SERIES",
    "SIZE",
    "draw_line",
    "house_figure",
    "label_ends",
    "svg_of",
    "ticks",
]

# Stand-ins that become CSS variables of the page, so that one drawing serves light, dark and print.
INK, MUTED, RULE = "#111213", "#717273", "#e1e2e3"
SERIES = {
    "local": "#0072b2",
    "aggregate": "#cc79a7",
    "shuffle": "#009e73",
    "central": "#d55e00",
    "none": "#616263",
}
MARKS = {"local": "o", "aggregate": "v", "shuffle": "^", "central": "s", "none": "D"}
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    RULE: "--rule",
    **{color: f"--{trust}" for trust, color in SERIES.items()},
}
_NAMES = {**{trust: trust for trust in SERIES}, "none": "no privacy", "baseline": "baseline"}
_TEXT = SERIES | {"baseline": MUTED}
SIZE = (4.5, 2.75)  # inches: text stays readable at the width of a phone
FONT = 9.5


def house_figure(*, percent: bool) -> tuple[Figure, Axes]:
    """Return an empty figure in the house style, with room for labels at the right."""
    figure = Figure(figsize=SIZE)
    axes = figure.add_axes((0.13, 0.18, 0.67, 0.76))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(axis="y", color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", colors=MUTED, labelsize=FONT, length=0, pad=5)
    axes.tick_params(axis="x", length=3)
    axes.xaxis.label.set(color=MUTED, fontsize=FONT)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(ticks(percent=percent))
    return figure, axes


def ticks(*, percent: bool) -> FuncFormatter:
    """Return how numbers stand beside an axis; shares with the digits that tell close ones apart."""
    return FuncFormatter(lambda v, _: f"{100 * v:.6g} %" if percent else f"{v:,.4g}")


def draw_line(axes: Axes, trust: str, points: Sequence[tuple[float, float]], *, markers: bool) -> None:
    """Draw one series."""
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=SERIES[trust],
        lw=1.8,
        ls=(0, (4, 3)) if trust == "none" else "-",
        marker=MARKS[trust] if markers or len(points) == 1 else None,
        ms=5,
    )


def label_ends(axes: Axes, ends: Sequence[tuple[str, float, float]]) -> None:
    """Name each line where it ends, in its colour, and keep the names apart."""
    # Apart on paper: on a logarithmic axis the numbers are placed as they are drawn.
    scale = axes.transScale
    ends = sorted(ends, key=lambda end: end[2])
    heights = [scale.transform((1.0, y))[1] for _, _, y in ends]
    low, high = (scale.transform((1.0, y))[1] for y in axes.get_ylim())
    gap, right = (high - low) * 0.085, max(x for _, x, _ in ends)
    for k in range(1, len(ends)):
        heights[k] = max(heights[k], heights[k - 1] + gap)
    heights[-1] = min(heights[-1], high)  # then back down, so that none is above the picture
    for k in range(len(ends) - 2, -1, -1):
        heights[k] = min(heights[k], heights[k + 1] - gap)
    positions = [float(scale.inverted().transform((0.0, height))[1]) for height in heights]
    for (trust, x, y), position in zip(ends, positions, strict=True):
        if x < right:  # the line ends before its name
            axes.plot([x, right], [y, position], color=_TEXT[trust], lw=0.8, ls=(0, (1, 3)))
        axes.annotate(
            _NAMES[trust],
            (right, position),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            color=_TEXT[trust],
            fontsize=FONT,
            fontweight="bold",
            annotation_clip=False,
        )


def svg_of(figure: Figure, title: str) -> Markup:
    """Return a figure as an element that needs nothing from outside and takes its colours from the page."""
    target = io.StringIO()
    # Settings of the SVG writer exist as rc parameters only; the context puts them back.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(
            target,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")),
        )
    text = target.getvalue()
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text[text.index("<svg") :])
    text = re.sub(r"<svg [^>]*?viewBox", "<svg viewBox", text, count=1)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, f"var({variable})")
    return Markup(text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1))  # noqa: S704 our own drawing
