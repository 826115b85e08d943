"""The plots of a report, as SVG inside the page: no global state, colours that follow the page's theme."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from tacit.jobs import ClassScores, JobResult, TrustResult
from tacit.reports.statement import claims

__all__ = [
    "draw_calibration",
    "draw_loss_per_round",
    "draw_score_against_epsilon",
    "draw_score_per_round",
    "house_figure",
    "svg_of",
]

# Stand-ins that become CSS variables of the page, so that one drawing serves light, dark and print.
_INK, _MUTED, _RULE = "#111213", "#717273", "#e1e2e3"
_SERIES = {
    "local": "#0072b2",
    "aggregate": "#cc79a7",
    "shuffle": "#009e73",
    "central": "#d55e00",
    "none": "#616263",
}
_MARKS = {"local": "o", "aggregate": "v", "shuffle": "^", "central": "s", "none": "D"}
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _RULE: "--rule",
    **{color: f"--{trust}" for trust, color in _SERIES.items()},
}
_NAMES = {**{trust: trust for trust in _SERIES}, "none": "no privacy", "baseline": "baseline"}
_TEXT = _SERIES | {"baseline": _MUTED}
_SIZE = (4.5, 2.75)  # inches: text stays readable at the width of a phone
_FONT = 9.5


def draw_score_per_round(result: JobResult) -> Markup:
    """Draw the held-out score after each round, one line per trust model.

    Args:
        result: A finished simulation on public data.

    Returns:
        An `<svg>` element; empty without traces.
    """
    lines = {one.trust: [(r, score) for r, _, score in one.trace] for one in result.results if one.trace}
    if not lines:
        return Markup()
    metric = result.results[0].metric
    baseline = result.results[0].scores.baseline
    return _rounds_figure(lines, metric=metric, percent=metric == "accuracy", baseline=baseline)


def draw_loss_per_round(result: JobResult) -> Markup:
    """Draw the held-out loss after each round, one line per trust model.

    Args:
        result: A finished simulation on public data.

    Returns:
        An `<svg>` element; empty without traces.
    """
    lines = {one.trust: [(r, loss) for r, loss, _ in one.trace] for one in result.results if one.trace}
    return _rounds_figure(lines, metric="loss", percent=False)


def draw_score_against_epsilon(result: JobResult) -> Markup:
    """Draw the held-out score against the privacy budget, with the score without privacy as a line.

    Bars, and the band about that line, are two standard errors to each side.

    Args:
        result: A finished simulation on public data.

    Returns:
        An `<svg>` element; empty without a sweep.
    """
    if not result.sweep:
        return Markup()
    metric = result.results[0].metric
    figure, axes = house_figure(percent=metric == "accuracy")
    last = max(point.epsilon for point in result.sweep)
    ends = []
    for one in (r for r in result.results if claims(r)):
        points = [(point.epsilon, point.score) for point in result.sweep if point.trust == one.trust]
        _line(axes, one.trust, points, markers=True)
        bars = [_two(point.standard_error) for point in result.sweep if point.trust == one.trust]
        (xs, ys), color = zip(*points, strict=True), _SERIES[one.trust]
        axes.errorbar(xs, ys, yerr=bars, fmt="none", color=color, ecolor=color, elinewidth=1.0, capsize=3)
        axes.plot(*_at(result, one), marker=_MARKS[one.trust], color=_INK, ms=11, mfc="none", mew=1.0)
        ends.append((one.trust, *points[-1]))
    for one in (r for r in result.results if not claims(r)):
        axes.axhline(one.score, color=_SERIES["none"], lw=1.2, ls=(0, (4, 3)))
        band = _two(one.scores.standard_error)
        axes.axhspan(one.score - band, one.score + band, color=_SERIES["none"], alpha=0.12, lw=0)
        ends.append(("none", last, one.score))
    ends.append(_baseline(axes, last, result.results[0].scores.baseline))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({point.epsilon for point in result.sweep}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("epsilon (smaller is more private)")
    _label_ends(axes, ends)
    epsilon = f"{result.job.epsilon:g}"
    return svg_of(figure, f"Held-out {metric} against epsilon; this run's epsilon, {epsilon}, is circled.")


def draw_calibration(result: JobResult) -> Markup:
    """Draw how often what was predicted came true, by its predicted probability, one line per trust model.

    Args:
        result: A finished job.

    Returns:
        An `<svg>` element; empty for regressions, and where no held-out record has a label.
    """
    curves = {
        one.trust: [(point.predicted, point.observed) for point in one.scored.calibration]
        for one in result.results
        if isinstance(one.scored, ClassScores) and one.scored.calibration
    }
    if not curves:
        return Markup()
    figure, axes = house_figure(percent=True)
    low = min(min(point) for points in curves.values() for point in points)
    high = max(max(point) for points in curves.values() for point in points)
    axes.plot([low, high], [low, high], color=_MUTED, lw=1.0, ls=(0, (1, 2)))
    for trust, points in curves.items():
        _line(axes, trust, points, markers=True)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))
    axes.set_xlabel("predicted probability; upwards, how often it came true")
    axes.set_ylim(low - 0.04, min(high + 0.04, 1.02))
    _label_ends(axes, [(trust, *points[-1]) for trust, points in curves.items()])
    return svg_of(figure, "How often what was predicted came true, by its predicted probability.")


def _two(standard_error: float | None) -> float:
    """Return two standard errors; none is drawn where the spread is not known."""
    return 0.0 if standard_error is None else 2 * standard_error


def _baseline(axes: Axes, x: float, score: float) -> tuple[str, float, float]:
    """Draw what guessing gives, and return the end to name."""
    axes.axhline(score, color=_MUTED, lw=1.2, ls=(0, (1, 2)))
    return "baseline", x, score


def _at(result: JobResult, one: TrustResult) -> tuple[list[float], list[float]]:
    """Return the point of this run."""
    return [result.job.epsilon], [one.score]


def _rounds_figure(
    lines: dict[str, list[tuple[int, float]]], *, metric: str, percent: bool, baseline: float | None = None
) -> Markup:
    """Draw one line per trust model over rounds."""
    if not lines:
        return Markup()
    figure, axes = house_figure(percent=percent)
    for trust, points in lines.items():
        _line(axes, trust, points, markers=False)
    axes.set_xscale("log")
    last = max(points[-1][0] for points in lines.values())
    axes.set_xticks([tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if tick <= last])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("round (logarithmic)")
    ends: list[tuple[str, float, float]] = [(trust, *points[-1]) for trust, points in lines.items()]
    if baseline is not None:
        ends.append(_baseline(axes, last, baseline))
    _label_ends(axes, ends)
    return svg_of(figure, f"Held-out {metric} after each round, one line per trust model.")


def house_figure(*, percent: bool) -> tuple[Figure, Axes]:
    """Return an empty figure in the house style, with room for labels at the right."""
    figure = Figure(figsize=_SIZE)
    axes = figure.add_axes((0.13, 0.18, 0.67, 0.76))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_MUTED)
    axes.grid(axis="y", color=_RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", colors=_MUTED, labelsize=_FONT, length=0, pad=5)
    axes.tick_params(axis="x", length=3)
    axes.xaxis.label.set(color=_MUTED, fontsize=_FONT)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.3g} %" if percent else f"{v:,.4g}"))
    return figure, axes


def _line(axes: Axes, trust: str, points: Sequence[tuple[float, float]], *, markers: bool) -> None:
    """Draw one series."""
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=_SERIES[trust],
        lw=1.8,
        ls=(0, (4, 3)) if trust == "none" else "-",
        marker=_MARKS[trust] if markers or len(points) == 1 else None,
        ms=5,
    )


def _label_ends(axes: Axes, ends: Sequence[tuple[str, float, float]]) -> None:
    """Name each line where it ends, in its colour, and keep the names apart."""
    low, high = axes.get_ylim()
    gap, right = (high - low) * 0.085, max(x for _, x, _ in ends)
    ends = sorted(ends, key=lambda end: end[2])
    positions = [y for _, _, y in ends]
    for k in range(1, len(ends)):
        positions[k] = max(positions[k], positions[k - 1] + gap)
    positions[-1] = min(positions[-1], high)  # then back down, so that none is above the picture
    for k in range(len(ends) - 2, -1, -1):
        positions[k] = min(positions[k], positions[k + 1] - gap)
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
            fontsize=_FONT,
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
