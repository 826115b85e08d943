"""What is said of networks that differences carry on, and whether it came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.experiments.report import number, yes

__all__ = ["level_statements", "statements"]

Row = Mapping[str, object]
Lines = dict[str, dict[float | None, Row]]


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each statement with its verdict.

    Args:
        rows: With the keys panel, method, epsilon, squared error, standard error, squared gradient, its error
            and held-out error.
    """
    panels: dict[str, Lines] = {}
    for row in rows:
        epsilon = None if row["epsilon"] is None else number(row["epsilon"])
        panels.setdefault(str(row["panel"]), {}).setdefault(str(row["method"]), {})[epsilon] = row
    for panel, lines in panels.items():
        for method, line in lines.items():
            yield _falling(f"{panel}, {method}", line)
    shuffled, central = panels["behind a shuffler"], panels["trusted server"]
    yield _below_one(shuffled)
    plain = "plain, reports"
    for method in (name for name in shuffled if name.endswith("reports") and name != plain):
        yield _ordered(
            f"behind a shuffler: {plain}, errs no more than {method}", shuffled[plain], shuffled[method]
        )
    sums, ahead = shuffled["mb-psgm-fg, sums"], central["mb-psgm-fg"]
    yield _ordered("behind a shuffler: mb-psgm-fg errs no more than spider", sums, shuffled["spider, sums"])
    for method in ("diff2-gd", "spider", "dp-gd", "mb-psgm"):
        yield _ordered(f"trusted server: mb-psgm-fg errs no more than {method}", ahead, central[method])
        yield _shorter("trusted server", central, "mb-psgm-fg", method)
    yield _ordered("trusted server: spider errs no more than dp-gd", central["spider"], central["dp-gd"])
    for panel in ("walks, equal silos", "walks, sorted silos"):
        found = panels[panel]
        for low, high in (
            ("ce-psgm-fg, 5 steps", "mb-psgm-fg, 1 step"),
            ("ce-psgm-fg, 10 steps", "ce-psgm-fg, 5 steps"),
            ("ce-psgm-fg, 5 steps", "ce-psgm, 5 steps"),
            ("ce-psgm-fg, 5 steps", "diff2-bvr-lsgd, 5 steps"),
            ("ce-psgm-fg, 10 steps", "diff2-bvr-lsgd, 10 steps"),
        ):
            yield _ordered(f"{panel}: {low}, errs no more than {high}", found[low], found[high])
        for steps in (5, 10):
            yield _shorter(panel, found, f"ce-psgm-fg, {steps} steps", f"diff2-bvr-lsgd, {steps} steps")
    gap = max(number(row["held-out error"]) - number(row["squared error"]) for row in rows)
    yield f"Records held out err at most {gap:.3f} more than those that are trained on, in any row."


def level_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what known errors show of reports at fixed levels, and whether it came out.

    Args:
        rows: With the keys records, method, level, squared error and known, noiseless levels first.
    """
    for records in dict.fromkeys(str(row["records"]) for row in rows):
        mine = [row for row in rows if row["records"] == records]
        errors = {
            name: [number(row["squared error"]) for row in mine if row["method"] == name]
            for name in dict.fromkeys(str(row["method"]) for row in mine)
        }
        levels = [number(row["level"]) for row in mine if row["level"] is not None][: len(mine) // 3 - 1]
        for name, (_, *noisy) in errors.items():
            falls = all(b <= a for a, b in pairwise(noisy))
            yield f"{records} target, {name}: the error falls with the level: {yes(falls)}."
        *carried, plain = errors.values()
        for name, found in zip(errors, carried, strict=False):
            above = [f"{at:g}" for at, a, b in zip(levels, plain[1:], found[1:], strict=True) if a > b]
            where = f"; more at {', '.join(above)}" if above else ""
            yield f"{records} target: plain errs no more than {name} at any level: {yes(not above)}{where}."
        bare = [found[0] for found in errors.values()]
        yield (
            f"{records} target: without noise, {', '.join(errors)} err in this order: "
            f"{yes(bare == sorted(bare))}."
        )


def _falling(text: str, line: Mapping[float | None, Row]) -> str:
    """Say whether errors fall as epsilon grows."""
    known = sorted(epsilon for epsilon in line if epsilon is not None)
    pairs = [(line[a], line[b]) for a, b in pairwise(known)]
    rises = [number(b["squared error"]) - number(a["squared error"]) for a, b in pairs]
    beyond = any(rise > 2 * _joint(*pair) for rise, pair in zip(rises, pairs, strict=True))
    level = "not everywhere, but rises by no more than two standard errors"
    verdict = "no" if beyond else level if any(rise > 0 for rise in rises) else "yes"
    return f"{text}: the error falls with epsilon: {verdict}."


def _joint(a: Row, b: Row, error: str = "standard error") -> float:
    """Return the standard error of the difference of two errors."""
    return math.hypot(number(a[error]), number(b[error]))


def _shorter(panel: str, lines: Lines, low: str, high: str) -> str:
    """Say where one method ends at a gradient that is no longer than another's."""
    text = f"{panel}: the squared gradient of {low}, is no larger than that of {high}"
    return _ordered(text, lines[low], lines[high], y="squared gradient", error="its error")


def _below_one(lines: Lines) -> str:
    """Say whether all errors are below that of the mean of the target."""
    private = [row for line in lines.values() for epsilon, row in line.items() if epsilon is not None]
    worst = max((number(row["squared error"]) for row in private), default=0.0)
    return (
        "behind a shuffler: every method learns at every epsilon (below 1, the error of the mean): "
        f"{yes(worst < 1)}, at most {worst:.3f}."
    )


def _ordered(
    text: str,
    low: Mapping[float | None, Row],
    high: Mapping[float | None, Row],
    *,
    y: str = "squared error",
    error: str = "standard error",
) -> str:
    """Say at how many budgets one line is no higher than another, up to two standard errors."""
    shared = sorted(epsilon for epsilon in low if epsilon is not None and epsilon in high)
    held = []
    for epsilon in shared:
        a, b = low[epsilon], high[epsilon]
        if number(a[y]) <= number(b[y]) + 2 * _joint(a, b, error):
            held.append(epsilon)
    verdict = yes(len(held) == len(shared))
    where = (
        ""
        if verdict == "yes"
        else f"; more at epsilon {', '.join(f'{e:g}' for e in shared if e not in held)}"
    )
    return f"{text}, up to two standard errors: {verdict}, at {len(held)} of {len(shared)}{where}."
