"""The picture of `tacit frequencies`: estimates, and the intervals that hold all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.numerics import Array

__all__ = ["draw_frequencies"]

_LONGEST = 28  # characters of a name beside its bar


def draw_frequencies(
    path: Path,
    names: Sequence[str],
    estimates: Array,
    intervals: Array,
    *,
    title: str,
    confidence: float,
    threshold: float | None,
) -> None:
    """Draw one line for every value, the most frequent on top.

    Args:
        path: Picture file to write.
        names: Of the values that are shown.
        estimates: Unbiased, shape (m,).
        intervals: Their intervals, shape (m, 2).
        title: What is counted.
        confidence: That none of all intervals misses.
        threshold: Of heavy hitters; None where all are shown.
    """
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 1.6 + 0.28 * max(len(names), 3)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(names))
    axes.hlines(places, intervals[:, 0], intervals[:, 1], color="#56B4E9", lw=6, label="interval")
    axes.plot(estimates, places, "o", color="#D55E00", ms=5, label="unbiased estimate")
    if threshold is not None:
        axes.axvline(threshold, color="#000000", lw=1, ls="--", label=f"threshold {threshold:g}")
    # Names are data of a file: a dollar sign would start a formula.
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    axes.set_yticks(places, [name.replace("$", r"\$") for name in shown])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"frequency; all intervals hold with probability {100 * confidence:.10g} %")
    axes.grid(visible=True, axis="x", lw=0.4, color="#e1e2e3")
    axes.set_axisbelow(True)
    axes.set_title(title.replace("$", r"\$"), fontsize=10)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
