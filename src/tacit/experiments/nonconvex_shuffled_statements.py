"""What is said of networks that differences carry on, and whether it came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["statements"]

Row = Mapping[str, object]
Lines = dict[str, dict[float | None, Row]]


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield each statement with its verdict.

    Args:
        rows: With the keys panel, method, epsilon, squared error and standard error.
    """
    panels: dict[str, Lines] = {}
    for row in rows:
        epsilon = None if row["epsilon"] is None else number(row["epsilon"])
        panels.setdefault(str(row["panel"]), {}).setdefault(str(row["method"]), {})[epsilon] = row
    for panel, lines in panels.items():
        for method, line in lines.items():
            yield _falling(f"{panel}, {method}", line)
    shuffled, central = panels["shuffled reports"], panels["trusted server"]
    yield _below_one(shuffled)
    for method in (name for name in shuffled if name != "plain"):
        yield _ordered(
            f"shuffled reports: plain errs no more than {method}", shuffled["plain"], shuffled[method]
        )
    ahead = central["mb-psgm-fg, beta 0.1"]
    for method in ("diff2-gd, period 10", "dp-gd", "mb-psgm, beta 0.1"):
        yield _ordered(f"trusted server: mb-psgm-fg errs no more than {method}", ahead, central[method])
    for panel in ("walks, equal silos", "walks, sorted silos"):
        for steps in ("5", "10"):
            one, more = panels[panel]["1 local step"], panels[panel][f"{steps} local steps"]
            yield _ordered(f"{panel}: {steps} local steps err no more than one at equal rounds", more, one)


def _falling(text: str, line: Mapping[float | None, Row]) -> str:
    """Say whether errors fall as epsilon grows."""
    known = [epsilon for epsilon in line if epsilon is not None]
    errors = [number(line[epsilon]["squared error"]) for epsilon in sorted(known)]
    slack = [number(line[epsilon]["standard error"]) for epsilon in sorted(known)]
    pairs = zip(errors, errors[1:], slack, slack[1:], strict=False)
    falls = all(b <= a + 2 * (s * s + t * t) ** 0.5 for a, b, s, t in pairs)
    return f"{text}: the error falls with epsilon: {yes(falls)}."


def _below_one(lines: Lines) -> str:
    """Say whether all errors are below that of the mean of the target."""
    private = [row for line in lines.values() for epsilon, row in line.items() if epsilon is not None]
    worst = max(number(row["squared error"]) for row in private)
    return (
        "shuffled reports: every method learns at every epsilon (below 1, the error of the mean): "
        f"{yes(worst < 1)}, at most {worst:.3f}."
    )


def _ordered(text: str, low: Mapping[float | None, Row], high: Mapping[float | None, Row]) -> str:
    """Say at how many budgets one line is no higher than another, up to two standard errors."""
    shared = sorted(epsilon for epsilon in low if epsilon is not None and epsilon in high)
    held = []
    for epsilon in shared:
        a, b = low[epsilon], high[epsilon]
        joint = (number(a["standard error"]) ** 2 + number(b["standard error"]) ** 2) ** 0.5
        if number(a["squared error"]) <= number(b["squared error"]) + 2 * joint:
            held.append(epsilon)
    verdict = yes(len(held) == len(shared))
    where = (
        ""
        if verdict == "yes"
        else f"; more at epsilon {', '.join(f'{e:g}' for e in shared if e not in held)}"
    )
    return f"{text}: {verdict}, at {len(held)} of {len(shared)}{where}."
