"""The pictures of a fair training: what fairness costs, and how groups are treated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tacit.fairness import FairnessSummary
from tacit.jobs import CurvePoint
from tacit.reports.drawing import FONT, MUTED, SERIES, house_figure, svg_of, ticks

__all__ = ["curve_svg", "draw_curve", "rates_svg"]

_BEST, _REST, _RUN = SERIES["local"], SERIES["none"], SERIES["central"]
_MOST_GROUPS = 12


def draw_curve(
    path: Path,
    points: Sequence[CurvePoint],
    *,
    notion: str,
    title: str,
    run: tuple[float, float] | None = None,
) -> None:
    """Draw accuracy against violation into a picture file.

    Args:
        path: Where to; its ending says the kind.
        points: Of several weights.
        notion: What violations are of.
        title: Above the picture.
        run: Violation and accuracy of a model that is marked; None marks none.
    """
    figure, axes = house_figure(percent=True)
    figure.set_size_inches(7.0, 4.6)
    axes.set_position((0.13, 0.13, 0.82, 0.76))
    _curve(axes, points, notion=notion, run=run)
    axes.set_ylabel("accuracy", color=MUTED, fontsize=FONT)
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    figure.savefig(path, dpi=150)


def curve_svg(points: Sequence[CurvePoint], *, notion: str, run: tuple[float, float]) -> Markup:
    """Return the same as an `<svg>` element; empty without points."""
    if not points:
        return Markup()
    figure, axes = house_figure(percent=True)
    axes.set_position((0.15, 0.18, 0.8, 0.76))
    _curve(axes, points, notion=notion, run=run)
    return svg_of(figure, f"Accuracy against violation of {notion}; this run is the star.")


def rates_svg(fair: FairnessSummary, unconstrained: FairnessSummary | None) -> Markup:
    """Return how often the last class is predicted in each group, as an `<svg>` element.

    Args:
        fair: Of the model.
        unconstrained: Of a model that no penalty held back; None leaves it out.
    """
    shown = fair.groups[:_MOST_GROUPS]
    label = list(shown[0].predicted)[-1]
    figure = Figure(figsize=(4.5, 1.3 + 0.34 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    places = list(range(len(shown)))
    now = [one.predicted[label] for one in shown]
    if unconstrained is not None:
        rates = {one.group: one.predicted[label] for one in unconstrained.groups}
        before = [rates.get(one.group, math.nan) for one in shown]
        axes.hlines(places, before, now, color=_REST, lw=1)
        axes.plot(before, places, "D", color=_REST, ms=5, label="unconstrained")
    axes.plot(now, places, "o", color=_RUN, ms=7, label="this model")
    axes.set_yticks(places, [_short(one.group) for one in shown])
    axes.set_ylim(len(shown) - 0.5, -0.6)
    axes.set_xlim(-0.02, 1.02)  # whole markers, and one scale for all runs
    axes.xaxis.set_major_formatter(ticks(percent=True))
    axes.set_xlabel(f"predicted {_short(label)}", color=MUTED, fontsize=FONT)
    axes.tick_params(colors=MUTED, labelsize=FONT, length=0)
    legend = figure.legend(fontsize=8, frameon=False, loc="outside upper right", ncols=2)
    for text in legend.get_texts():
        text.set_color(MUTED)
    return svg_of(figure, f"How often {label} is predicted in each group.")


def _curve(axes: Axes, points: Sequence[CurvePoint], *, notion: str, run: tuple[float, float] | None) -> None:
    """Draw the points, and join those that no other one beats."""
    best = sorted((point for point in points if point.pareto), key=lambda point: point.violation)
    rest = [point for point in points if not point.pareto]
    axes.plot(*_places(best), "-o", color=_BEST, ms=5, lw=1.8, label="best")
    if rest:
        axes.plot(*_places(rest), "o", mfc="none", color=_REST, ms=5, label="beaten")
    alike: dict[tuple[float, float], list[str]] = {}
    for point in sorted(points, key=lambda point: point.weight):
        alike.setdefault((point.violation, point.accuracy), []).append(f"{point.weight:g}")
    middle = max((place[0] for place in alike), default=0.0) / 2
    for place, weights in alike.items():  # weights that train the same decisions stand at one place
        inward = place[0] > middle and len(weights) > 1
        axes.annotate(
            ", ".join(weights),
            place,
            xytext=(-5 if inward else 5, -11),
            textcoords="offset points",
            ha="right" if inward else "left",
            fontsize=8,
            color=MUTED,
        )
    if run is not None:
        axes.plot(*run, "*", color=_RUN, ms=13, label="this model")
    axes.margins(0.12)  # room for the weights beside the last point
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.6g}"))
    axes.set_xlabel(f"violation of {notion}; numbers are weights")
    _legend(axes)


def _places(points: Sequence[CurvePoint]) -> tuple[list[float], list[float]]:
    """Return where points are."""
    return [one.violation for one in points], [one.accuracy for one in points]


def _legend(axes: Axes) -> None:
    """Name what is drawn, where there is room."""
    legend = axes.legend(fontsize=8, frameon=False, loc="best")
    for text in legend.get_texts():
        text.set_color(MUTED)


def _short(text: str) -> str:
    """Return a name that fits beside an axis; a dollar sign would start a formula."""
    return (text if len(text) <= 24 else f"{text[:23]}…").replace("$", r"\$")
