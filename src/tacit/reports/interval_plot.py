"""Estimates with their intervals, one below the other, the largest on top."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacit.numerics import Array
from tacit.reports.drawing import FONT, INK, MUTED, RULE, SERIES, SIZE, ticks

__all__ = ["draw_intervals"]

_WIDE, _NARROW, _ROW, _BELOW = 6.6, SIZE[0], 0.26, 0.5  # inches
_LETTER = 0.075  # inches, that a letter of a name takes
_LONGEST = 26  # letters of a name


def draw_intervals(
    names: Sequence[str],
    estimates: Array,
    intervals: Array,
    *,
    colour: str,
    label: str,
    percent: bool,
    threshold: float | None = None,
    faded: Sequence[bool] = (),
    from_zero: bool = True,
    wide: bool = True,
    title: str = "",
) -> Figure:
    """Draw one line for every estimate.

    Args:
        names: What is estimated; long ones are cut.
        estimates: Shape (m,).
        intervals: Shape (m, 2).
        colour: A name of `SERIES`.
        label: Below the axis.
        percent: Whether numbers are shares.
        threshold: Where to draw a line across; None draws none.
        faded: Which lines are grey; none if not given.
        from_zero: Whether the axis begins at zero.
        wide: Whether the picture fills a page, or half of it.
        title: Above a picture that stands alone.
    """
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    top = (0.22 if threshold is not None else 0.08) + (0.3 if title else 0.0)
    height = _ROW * max(len(names), 2) + _BELOW + top
    width = _WIDE if wide else _NARROW
    figure = Figure(figsize=(width, height))
    left = (0.2 + _LETTER * max((len(name) for name in shown), default=0)) / width
    axes = figure.add_axes((left, _BELOW / height, 0.97 - left, 1 - (_BELOW + top) / height))
    if title:
        figure.text(0.1 / width, 1 - 0.08 / height, _plain(title), va="top", color=INK, fontsize=FONT)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(axis="x", color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    grey = list(faded) or [False] * len(names)
    for place, (estimate, (low, high)) in enumerate(zip(estimates.tolist(), intervals.tolist(), strict=True)):
        tone = MUTED if grey[place] else SERIES[colour]
        axes.plot([low, high], [place, place], color=tone, lw=5, alpha=0.28, solid_capstyle="round")
        axes.plot([estimate], [place], marker="o", color=tone, ms=5.5)
    if threshold is not None:
        axes.axvline(threshold, color=INK, lw=1.0, ls=(0, (4, 3)))
        axes.annotate(
            f"threshold {100 * threshold:g} %" if percent else f"threshold {threshold:g}",
            (threshold, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            color=INK,
            fontsize=FONT,
        )
    axes.set_yticks(range(len(names)), list(map(_plain, shown)))
    axes.set_ylim(len(names) - 0.4, -0.6)
    if from_zero:
        right = axes.get_xlim()[1]
        lowest = min(float(intervals.min(initial=0.0)), float(estimates.min(initial=0.0)))
        axes.set_xlim(lowest - 0.015 * (right - lowest), right)
    axes.tick_params(axis="both", colors=MUTED, labelsize=FONT, length=0, pad=6)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.xaxis.label.set(color=MUTED, fontsize=FONT)
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(ticks(percent=percent))
    return figure


def _plain(text: str) -> str:
    """Return text of a file as it is: a dollar sign would start a formula."""
    return text.replace("$", r"\$")
