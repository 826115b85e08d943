"""What Lowy (2023) states about Figures 3.6, 3.7, B.2 and B.3, and whether it came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tacit.experiments.isrl_statements import Lines, Row, inside_statement, ordered_statement, panels_of
from tacit.experiments.report import number, yes

__all__ = ["insurance_statements", "obesity_statements"]

_RMSE = "relative RMSE"
_IN_LINE = 1.1  # times the error without privacy: "in line" with it
_CLEAR = 2.0  # standard errors of a difference from which on it is more than chance


def insurance_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is stated about medical costs, with where it holds, for every panel.

    Args:
        rows: With the keys method, silos per round, epsilon, relative RMSE, standard error and inside.
    """
    pair = ("minibatch", "local")
    for panel, lines in panels_of(rows).items():
        where = f"{panel} silos"
        text = f"{where}: minibatch errs less than local"
        yield ordered_statement(f"{text}, up to epsilon 2", lines, pair, metric=_RMSE, most=2.0)
        yield ordered_statement(text, lines, pair, metric=_RMSE)
        yield _clear(where, lines, _RMSE)
        yield from _without_privacy(where, lines)
        yield from _naive(where, lines)
        yield from _largest(where, lines)
    yield inside_statement(rows)


def obesity_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is stated about levels of obesity, with where it holds, for every panel.

    Args:
        rows: With the keys method, silos per round, epsilon, test error, standard error and inside.
    """
    for panel, lines in panels_of(rows).items():
        where = f"{panel} silos per round"
        yield ordered_statement(f"{where}: minibatch errs less than local", lines, ("minibatch", "local"))
        yield _clear(where, lines, "test error")
        gaps = [
            100 * (number(lines["local"][e]["test error"]) - number(lines["minibatch"][e]["test error"]))
            for e in _epsilons(lines)
        ]
        yield (
            f"{where}: by 10 to 30 points or more at all epsilons: {yes(min(gaps) >= 10)}; by "
            f"{', '.join(f'{gap:.1f}' for gap in gaps)} points."
        )
        bare = {method: number(line[None]["test error"]) for method, line in lines.items()}
        yield (
            f"{where}: without privacy minibatch errs {bare['minibatch']:.3f} and local {bare['local']:.3f}."
        )
    yield inside_statement(rows)


def _epsilons(lines: Lines) -> list[float]:
    """Return the budgets of a panel."""
    return sorted(e for e in lines["minibatch"] if e is not None)


def _clear(where: str, lines: Lines, metric: str) -> str:
    """Say at how many budgets one of both is ahead by more than chance."""
    ahead = {"minibatch": 0, "local": 0}
    for epsilon in _epsilons(lines):
        low, high = (lines[method][epsilon] for method in ahead)
        gap = number(high[metric]) - number(low[metric])
        spread = math.hypot(number(low["standard error"]), number(high["standard error"]))
        if abs(gap) > _CLEAR * spread:
            ahead["minibatch" if gap > 0 else "local"] += 1
    return (
        f"{where}: by more than two standard errors of the difference minibatch is ahead at "
        f"{ahead['minibatch']} of {len(_epsilons(lines))} budgets, local at {ahead['local']}."
    )


def _without_privacy(where: str, lines: Lines) -> Iterator[str]:
    """Say from which budget on private minibatch is about as good as local SGD without privacy."""
    bare = number(lines["local"][None][_RMSE])
    found = {e: number(lines["minibatch"][e][_RMSE]) for e in _epsilons(lines) if e >= 2}
    if found:
        said = ", ".join(f"{value:.3f} at {e:g}" for e, value in found.items())
        yield (
            f"{where}: private minibatch is in line with local without privacy (at most 10 % above) from "
            f"epsilon 2 on: {yes(max(found.values()) <= _IN_LINE * bare)}; {said}, local {bare:.3f}."
        )


def _naive(where: str, lines: Lines) -> Iterator[str]:
    """Say how far below the mean as a prediction private minibatch is at epsilon 1."""
    if 1.0 in lines["minibatch"]:
        gain = 100 * (1 - number(lines["minibatch"][1.0][_RMSE]))
        yield (
            f"{where}: at epsilon 1 private minibatch is 30 to 40 % better than the mean cost: "
            f"{yes(gain >= 30)}; by {gain:.0f} %."
        )


def _largest(where: str, lines: Lines) -> Iterator[str]:
    """Say whether local SGD is ahead at the largest budget, as it may be."""
    last = _epsilons(lines)[-1]
    low, high = (number(lines[method][last][_RMSE]) for method in ("local", "minibatch"))
    yield f"{where}: local errs less at epsilon {last:g}: {yes(low < high)}, {low:.3f} against {high:.3f}."
