"""The plots of the report of a training run, as SVG inside the page."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from tacit.jobs import ClassScores, JobResult, TrustResult
from tacit.reports.drawing import (
    INK,
    MARKS,
    MUTED,
    SERIES,
    draw_line,
    house_figure,
    label_ends,
    svg_of,
    ticks,
)
from tacit.reports.statement import claims

__all__ = ["draw_calibration", "draw_loss_per_round", "draw_score_against_epsilon", "draw_score_per_round"]


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
        draw_line(axes, one.trust, points, markers=True)
        bars = [_two(point.standard_error) for point in result.sweep if point.trust == one.trust]
        (xs, ys), color = zip(*points, strict=True), SERIES[one.trust]
        axes.errorbar(xs, ys, yerr=bars, fmt="none", color=color, ecolor=color, elinewidth=1.0, capsize=3)
        axes.plot(*_at(result, one), marker=MARKS[one.trust], color=INK, ms=11, mfc="none", mew=1.0)
        ends.append((one.trust, *points[-1]))
    for one in (r for r in result.results if not claims(r)):
        axes.axhline(one.score, color=SERIES["none"], lw=1.2, ls=(0, (4, 3)))
        band = _two(one.scores.standard_error)
        axes.axhspan(one.score - band, one.score + band, color=SERIES["none"], alpha=0.12, lw=0)
        ends.append(("none", last, one.score))
    ends.append(_baseline(axes, last, result.results[0].scores.baseline))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({point.epsilon for point in result.sweep}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("epsilon (smaller is more private)")
    label_ends(axes, ends)
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
    axes.plot([low, high], [low, high], color=MUTED, lw=1.0, ls=(0, (1, 2)))
    for trust, points in curves.items():
        draw_line(axes, trust, points, markers=True)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(ticks(percent=True))
    axes.set_xlabel("predicted probability; upwards, how often it came true")
    axes.set_ylim(low - 0.04, min(high + 0.04, 1.02))
    label_ends(axes, [(trust, *points[-1]) for trust, points in curves.items()])
    return svg_of(figure, "How often what was predicted came true, by its predicted probability.")


def _two(standard_error: float | None) -> float:
    """Return two standard errors; none is drawn where the spread is not known."""
    return 0.0 if standard_error is None else 2 * standard_error


def _baseline(axes: Axes, x: float, score: float) -> tuple[str, float, float]:
    """Draw what guessing gives, and return the end to name."""
    axes.axhline(score, color=MUTED, lw=1.2, ls=(0, (1, 2)))
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
        draw_line(axes, trust, points, markers=False)
    axes.set_xscale("log")
    last = max(points[-1][0] for points in lines.values())
    axes.set_xticks([tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if tick <= last])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("round (logarithmic)")
    ends: list[tuple[str, float, float]] = [(trust, *points[-1]) for trust, points in lines.items()]
    if baseline is not None:
        ends.append(_baseline(axes, last, baseline))
    label_ends(axes, ends)
    return svg_of(figure, f"Held-out {metric} after each round, one line per trust model.")
