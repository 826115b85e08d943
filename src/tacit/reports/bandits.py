"""Reports of bandits: what was lost over time, which actions are left, and who learns what."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tacit.bandits import BanditPlan, BanditResult, BatchReport, Decision
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, TrustModel
from tacit.reports.answers import AnswerPage, PageFigure, PagePart, Tile, price_tiles
from tacit.reports.drawing import SERIES, draw_line, house_figure, label_ends, svg_of
from tacit.reports.interval_plot import draw_intervals

__all__ = ["draw_estimates", "draw_regret", "run_page", "simulation_page"]

_POINTS = 200
_MOST_ACTIONS = 30
_LEVEL_BATCHES = ("batch", "rounds", "left before", "played", "level", "radius", "regret")
_NONE = "none"
_SEES = {
    "central": "The server adds noise to sums of rewards before anything is decided: that limits what "
    "anybody can learn about one reward from the actions, or even from all noisy sums.",
    "aggregate": "Every silo adds a share of the noise to its sums, and nobody sees more than the total of "
    "all silos: that limits what anybody can learn about one reward.",
    "shuffle": "Every client blurs its reward a little before it is sent, and a shuffler hides whose message "
    "is whose: that limits what the server can learn about any client.",
    "local": "Every client blurs its reward before it is sent: that limits what anybody, the server "
    "included, can learn about it.",
    _NONE: "The server sees every reward as it is.",
}
_LIMITS = (
    "What a client is shown: whoever watches a client sees its action.",
    "A client that plays several rounds is protected that many times less.",
    "What is true of everybody: which action is best is what the bandit is there to learn.",
)


def draw_regret(found: Sequence[BanditResult], without: Sequence[BanditResult], *, trust: str) -> Figure:
    """Draw the regret over the rounds: means of runs, and bands of two standard errors to each side.

    Args:
        found: Runs of one plan, one world each.
        without: The same without privacy.
        trust: Of the plan, "none" without a trust model.

    Returns:
        A figure; the lines are one where the plan has no privacy.
    """
    figure, axes = house_figure(percent=False)
    ends = []
    for name, runs in _series(found, without, trust):
        last = max(sum(report.batch.rounds for report in run.batches) for run in runs)
        rounds = np.linspace(0, last, _POINTS)
        curves = np.array([np.interp(rounds, *_curve(run)) for run in runs])
        mean = curves.mean(axis=0)
        if len(runs) > 1:
            band = 2 * curves.std(axis=0, ddof=1) / math.sqrt(len(runs))
            axes.fill_between(rounds, mean - band, mean + band, color=SERIES[name], alpha=0.18, lw=0)
        draw_line(axes, name, list(zip(rounds.tolist(), mean.tolist(), strict=True)), markers=False)
        ends.append((name, float(rounds[-1]), float(mean[-1])))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _compact(value)))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.set_xlabel("rounds; upwards, regret so far")
    label_ends(axes, ends)
    return figure


def draw_estimates(decision: Decision, alive: IntArray, *, trust: str) -> Figure:
    """Draw the estimated rewards of a batch with the radius about them; grey is what was dropped.

    Args:
        decision: Of the batch.
        alive: Rows of the actions that were left before it, ascending.
        trust: Of the plan, "none" without a trust model.
    """
    order = np.argsort(-decision.estimates, kind="stable")[:_MOST_ACTIONS]
    rows = alive[order]
    middle = decision.estimates[order]
    return draw_intervals(
        [f"action {row}" for row in rows],
        middle,
        np.column_stack([middle - decision.radius, middle + decision.radius]),
        colour=trust,
        label="estimated reward, and how far it may be off",
        percent=False,
        faded=[row not in decision.state.alive for row in rows],
        from_zero=False,
        wide=False,
    )


def simulation_page(
    plan: BanditPlan, found: Sequence[BanditResult], without: Sequence[BanditResult], *, seed: int
) -> AnswerPage:
    """Return the report of simulated runs.

    Args:
        plan: Of the first run.
        found: Runs, one world each; the first is shown batch by batch.
        without: The same without privacy.
        seed: Of all of it.
    """
    trust = _trust_of(plan)
    regrets = np.array([run.regret for run in found])
    free = np.array([run.regret for run in without])
    k, d = plan.actions.shape
    figures = [
        PageFigure(
            title="Regret over time",
            picture=svg_of(
                draw_regret(found, without, trust=trust), "Regret against rounds, with and without privacy."
            ),
            caption="What was lost against always playing the best action, by the true means. "
            + (
                "Bands are two standard errors to each side; both lines are of the same worlds, so "
                "that their distance is known better. "
                if len(found) > 1
                else ""
            )
            + "The flatter, the less is lost from here on.",
        ),
        PageFigure(
            title="Actions left",
            picture=svg_of(_left_of(found, without, trust), "Actions left before each batch."),
            caption="Before each batch; an action goes once it is worse beyond doubt"
            + (", and the mean over all runs is shown." if len(found) > 1 else "."),
        ),
        PageFigure(
            title="How far estimates may be off",
            picture=svg_of(_radii(found, without, trust), "Radius of each batch."),
            caption="The radius of each batch, on a logarithmic scale. Noise widens it, most where few play.",
        ),
    ]
    tiles = [Tile(label="regret", value=_compact(float(regrets.mean())), note=_spread(regrets))]
    if plan.privacy.private:
        more = regrets - free
        tiles.append(
            Tile(
                label="without privacy",
                value=_compact(float(free.mean())),
                note=f"{_compact(float(more.mean()))} less, {_spread(more)}",
            )
        )
    tiles += [
        *price_tiles(found[0].guarantees[0]),
        Tile(
            label="best action kept",
            value=f"{sum(run.survived for run in found)} of {len(found)}",
            note="run" if len(found) == 1 else "runs",
        ),
    ]
    return _page(
        plan,
        found[0].guarantees,
        title=f"Private bandit: {k:,} actions, {plan.horizon:,} rounds",
        subtitle=f"{len(found)} simulated world{'s' if len(found) > 1 else ''} with actions of {d} "
        f"coordinates, seed {seed}.",
        tiles=tiles,
        parts=(
            PagePart(title="What privacy costs", figures=figures),
            PagePart(
                title="Batch by batch" if len(found) == 1 else "The first run, batch by batch",
                text="Level is the epsilon of one message or of one sum.",
                columns=_LEVEL_BATCHES,
                rows=[_batch_row(report) for report in found[0].batches],
            ),
        ),
        rehearsal="Worlds, rewards and noise came from a known seed. The same plan with secret noise has the "
        "guarantee above.",
        check="",
    )


def run_page(
    plan: BanditPlan,
    decisions: Sequence[tuple[IntArray, Decision]],
    guarantees: Sequence[Guarantee],
    *,
    best: int,
    finished: bool,
) -> AnswerPage:
    """Return the report of a run with real clients.

    Args:
        plan: Of the run.
        decisions: Of every answered batch, with the actions that were left before it.
        guarantees: Of the run, one for each observer.
        best: Row of the best action so far.
        finished: Whether all is learned.
    """
    trust = _trust_of(plan)
    k, d = plan.actions.shape
    left = [k, *(len(decision.state.alive) for _, decision in decisions)]
    played = decisions[-1][1].state.played if decisions else 0
    figures = []
    if decisions:
        alive, last = decisions[-1]
        shown = min(len(alive), _MOST_ACTIONS)
        figures.append(
            PageFigure(
                title=f"Estimates of batch {len(decisions)}",
                picture=svg_of(draw_estimates(last, alive, trust=trust), "Estimated rewards, last batch."),
                caption="Bars are the radius to each side; grey actions were dropped. "
                f"{shown} of {len(alive)} are shown. "
                "They follow from the noisy sums, and cost nothing more.",
            )
        )
    figure, axes = house_figure(percent=False)
    draw_line(axes, trust, list(enumerate(map(float, left))), markers=True)
    _batches_axis(axes, "batches answered; upwards, actions left")
    _from_zero(axes, max(left))
    figures.append(
        PageFigure(
            title="Actions left",
            picture=svg_of(figure, "Actions left after each batch."),
            caption="After each batch; an action goes once it is worse beyond doubt.",
        )
    )
    return _page(
        plan,
        guarantees,
        title=f"Private bandit: {k:,} actions, {plan.horizon:,} rounds",
        subtitle=f"A run with real clients and actions of {d} coordinates.",
        tiles=(
            Tile(label="best action so far", value=str(best), note=f"{left[-1]:,} of {k:,} are left"),
            *price_tiles(guarantees[0]),
            Tile(
                label="rounds answered",
                value=_compact(played),
                note=f"{len(decisions)} batches" + (", nothing more is learned" if finished else ""),
            ),
        ),
        parts=(PagePart(title="What was learned", figures=figures),),
        rehearsal="The noise came from a known seed, so this run itself protects nobody.",
        check="tacit bandit run RECORD --json > statement.json\ntacit account verify statement.json",
    )


def _page(
    plan: BanditPlan,
    guarantees: Sequence[Guarantee],
    *,
    title: str,
    subtitle: str,
    tiles: Sequence[Tile],
    parts: Sequence[PagePart],
    rehearsal: str,
    check: str,
) -> AnswerPage:
    """Return a page with what all bandits say."""
    low, high = plan.reward_range
    shuffled = plan.privacy.trust is TrustModel.SHUFFLE
    return AnswerPage(
        title=title,
        subtitle=subtitle,
        claim=_SEES[_trust_of(plan)],
        secret="one client" if shuffled else "one reward",
        guarantees=guarantees,
        rehearsal=rehearsal,
        tiles=tiles,
        parts=parts,
        protects=(
            f"Each single {'client, with all rewards that it might give' if shuffled else 'reward'}; "
            f"rewards are clipped to [{low:g}, {high:g}] first.",
            f"Against {guarantees[0].observer}.",
        ),
        limits=_LIMITS,
        check=check,
    )


def _spread(regrets: Array) -> str:
    """Say how well the mean of runs is known."""
    if len(regrets) == 1:
        return "in one world"
    error = float(regrets.std(ddof=1)) / math.sqrt(len(regrets))
    return f"± {_compact(error)} (standard error)"


def _series(
    found: Sequence[BanditResult], without: Sequence[BanditResult], trust: str
) -> list[tuple[str, Sequence[BanditResult]]]:
    """Return the lines of a picture."""
    return [(trust, found)] if trust == _NONE else [(_NONE, without), (trust, found)]


def _curve(run: BanditResult) -> tuple[Array, Array]:
    """Return rounds and regret at the ends of batches; between them it grows evenly, on average."""
    rounds = np.cumsum([0, *(report.batch.rounds for report in run.batches)])
    return rounds.astype(np.float64), np.cumsum([0.0, *(report.regret for report in run.batches)])


def _left_of(found: Sequence[BanditResult], without: Sequence[BanditResult], trust: str) -> Figure:
    """Draw how many actions are left before each batch, the mean of runs."""
    figure, axes = house_figure(percent=False)
    ends, most = [], 1
    for name, runs in _series(found, without, trust):
        batches = max(len(run.batches) for run in runs)
        counts = [[report.alive for report in run.batches] for run in runs]
        whole = np.array([row + row[-1:] * (batches - len(row)) for row in counts])
        points = list(enumerate(whole.mean(axis=0).tolist(), start=1))
        draw_line(axes, name, points, markers=True)
        ends.append((name, *points[-1]))
        most = max(most, int(whole.max()))
    _batches_axis(axes, "batch; upwards, actions left before it")
    _from_zero(axes, most)
    label_ends(axes, ends)
    return figure


def _radii(found: Sequence[BanditResult], without: Sequence[BanditResult], trust: str) -> Figure:
    """Draw the radius of each batch of the first run."""
    figure, axes = house_figure(percent=False)
    axes.set_yscale("log")
    ends = []
    for name, runs in _series(found, without, trust):
        points = [(r.batch.number, r.radius) for r in runs[0].batches if not r.batch.final]
        if points:
            draw_line(axes, name, points, markers=True)
            ends.append((name, *points[-1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()
    _batches_axis(axes, "batch; upwards, radius")
    if ends:
        label_ends(axes, ends)
    return figure


def _batches_axis(axes: Axes, label: str) -> None:
    """Number the batches below."""
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel(label)


def _from_zero(axes: Axes, most: int) -> None:
    """Let an axis of counts begin at zero, or be logarithmic where there are very many."""
    if most > 50:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _compact(value)))
        axes.minorticks_off()
    else:
        axes.set_ylim(bottom=0)


def _batch_row(report: BatchReport) -> tuple[str, ...]:
    """Return a row of the table of batches."""
    batch = report.batch
    return (
        "rest" if batch.final else str(batch.number),
        f"{batch.rounds:,}",
        f"{report.alive:,}",
        f"{len(batch.actions):,}",
        "" if batch.final or math.isinf(batch.level) else f"{batch.level:.4g}",
        "" if batch.final else f"{report.radius:.4g}",
        f"{report.regret:,.0f}",
    )


def _trust_of(plan: BanditPlan) -> str:
    """Return who is trusted, by name."""
    return _NONE if plan.privacy.trust is None else plan.privacy.trust.value


def _compact(value: float) -> str:
    """Return a number as short as people say it.

    Example:
        >>> _compact(1_250_000), _compact(980.0), _compact(23_400)
        ('1.25M', '980', '23.4k')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
