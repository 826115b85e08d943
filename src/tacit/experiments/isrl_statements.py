"""What Lowy (2023) states about Figures 3.5 and B.1, and whether it came out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["Lines", "Row", "inside_statement", "ordered_statement", "panels_of", "statements"]

_LARGE = 12.0  # the epsilon from which private minibatch SGD is said to beat local SGD without privacy

Row = Mapping[str, object]
Lines = Mapping[str, Mapping[float | None, Row]]
"""Method to epsilon to row."""


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the paper states, with where it holds, for every number of silos per round.

    Args:
        rows: With the keys method, silos per round, epsilon, test error, standard error and inside.
    """
    for silos, lines in panels_of(rows).items():
        where = f"{silos} silos per round"
        for method, line in lines.items():
            yield _falling(f"{where}: the test error of {method} falls with epsilon", line)
        yield ordered_statement(f"{where}: minibatch errs less than local", lines, ("minibatch", "local"))
        order = ("accelerated", "minibatch", "local")
        yield ordered_statement(f"{where}: {' < '.join(order)}", lines, order)
        yield from _without_privacy(where, lines)
    yield inside_statement(rows)


def panels_of(rows: Sequence[Row]) -> dict[object, Lines]:
    """Return the lines of every panel.

    Args:
        rows: With the keys method, silos per round and epsilon.
    """
    panels: dict[object, dict[str, dict[float | None, Row]]] = {}
    for row in rows:
        epsilon = None if row["epsilon"] is None else number(row["epsilon"])
        panels.setdefault(row["silos per round"], {}).setdefault(str(row["method"]), {})[epsilon] = row
    return dict(panels)


def inside_statement(rows: Sequence[Row]) -> str:
    """Say of how many rows the best step is not at an end of what was tried.

    Args:
        rows: With the keys method, silos per round, epsilon and inside.
    """
    ends = [
        f"{r['method']}, {r['silos per round']} silos, epsilon {r['epsilon']}"
        for r in rows
        if not r["inside"]
    ]
    return (
        f"The best step is inside of the steps that were tried in {len(rows) - len(ends)} of {len(rows)} rows"
        f"{'; at an end: ' + '; '.join(ends) if ends else ''}."
    )


def _falling(text: str, line: Mapping[float | None, Row]) -> str:
    """Say whether errors fall, up to two joint standard errors."""
    points = [line[epsilon] for epsilon in sorted(e for e in line if e is not None)]
    rises = [
        f"{a['epsilon']} to {b['epsilon']}"
        for a, b in itertools.pairwise(points)
        if number(b["test error"]) - number(a["test error"]) > 2 * _joint(a, b)
    ]
    return (
        f"{text}: {'no, it rises from ' + ', '.join(rises) if rises else 'yes, up to two standard errors'}."
    )


def ordered_statement(
    text: str, lines: Lines, order: Sequence[str], *, metric: str = "test error", most: float = math.inf
) -> str:
    """Say at which epsilons errors increase in this order of methods.

    Args:
        text: What is stated.
        lines: Of a panel.
        order: Methods, least error first.
        metric: Key of the error.
        most: Largest epsilon that the statement is about.
    """
    epsilons = sorted(e for e in lines[order[0]] if e is not None and e <= most)
    errors = {e: [number(lines[method][e][metric]) for method in order] for e in epsilons}
    holds = [e for e in epsilons if all(a < b for a, b in itertools.pairwise(errors[e]))]
    at = f", at epsilon {', '.join(f'{e:g}' for e in holds)}" if 0 < len(holds) < len(epsilons) else ""
    return f"{text}: {yes(len(holds) == len(epsilons))}, at {len(holds)} of {len(epsilons)}{at}."


def _without_privacy(where: str, lines: Lines) -> Iterator[str]:
    """Say from which epsilon on private methods err less than local SGD without privacy."""
    bare = number(lines["local"][None]["test error"])
    large = sorted(e for e in lines["minibatch"] if e is not None and e >= _LARGE)
    private = [number(lines["minibatch"][e]["test error"]) for e in large]
    holds = bool(private) and max(private) < bare
    best = min(
        number(row["test error"]) for line in lines.values() for e, row in line.items() if e is not None
    )
    yield (
        f"{where}: private minibatch errs less than local without privacy from epsilon {_LARGE:g} on: "
        f"{yes(holds)}; local without privacy errs {bare:.4f}, private minibatch "
        f"{', '.join(f'{value:.4f}' for value in private)}, the best private method {best:.4f}."
    )


def _joint(a: Row, b: Row) -> float:
    return math.hypot(number(a["standard error"]), number(b["standard error"]))
