"""What is said of fair learning, one statement after the other, against the rows of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes

__all__ = ["at_violation", "cheapest", "dominance", "lines_of", "near"]

Row = Mapping[str, object]

_TOLERANCES = {"error": 0.005, "violation": 0.01, "equalized odds": 0.01, "soft ERMI": 0.001, "soft": 0.01}
"""How far from the reference a quantity may be."""
_FREE = 0.002
"""A difference of test errors that half a standard error covers on the test half of Adult."""


def near(rows: Sequence[Row], tolerances: Mapping[str, float] = _TOLERANCES) -> str:
    """Say how many numbers are as near to the reference as they should be, and which are not."""
    compared, far = 0, []
    for row in rows:
        for quantity, tolerance in tolerances.items():
            expected = row.get(f"reference {quantity}")
            if expected is None:
                continue
            compared += 1
            found = number(row[quantity])
            if round(abs(found - number(expected)), 4) > tolerance:
                far.append(
                    f"{row['panel']}, {row['line']}, {number(row['weight']):g}: {quantity} {found:.4f} for "
                    f"{number(expected):.4f}"
                )
    used = {q: t for q, t in tolerances.items() if any(row.get(f"reference {q}") is not None for row in rows)}
    bounds = " and ".join(f"{tolerance:g} ({quantity})" for quantity, tolerance in used.items())
    return f"Within {bounds} of the reference: {compared - len(far)} of {compared} numbers." + (
        f" Not: {'; '.join(far)}." if far else ""
    )


def lines_of(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Return rows by panel and line."""
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault(str(row["panel"]), {}).setdefault(str(row["line"]), []).append(row)
    return found


def at_violation(rows: Sequence[Row], level: float) -> float:
    """Return the least error at a violation of at most that, of rows and of draws between two of them."""
    points = [(number(row["violation"]), number(row["error"])) for row in rows]
    best = min((error for v, error in points if v <= level), default=float("nan"))
    for v, error in points:
        for w, other in points:
            if v <= level < w:
                best = min(best, error + (other - error) * (level - v) / (w - v))
    return best


def cheapest(rows: Sequence[Row], line: str) -> Iterator[str]:
    """Yield what fairness costs: the least violation of a line, and what error it and half of it take."""
    for panel, lines in lines_of(rows).items():
        plain = next((row for row in lines[line] if number(row["weight"]) == 0), None)
        if plain is None:
            continue
        fairest = min(lines[line], key=lambda row: number(row["violation"]))
        half = at_violation(lines[line], number(plain["violation"]) / 2)
        yield (
            f"{panel}: {line} takes the violation from {number(plain['violation']):.4f} to "
            f"{number(fairest['violation']):.4f}, and the test error from {number(plain['error']):.4f} to "
            f"{number(fairest['error']):.4f}"
            + ("." if math.isnan(half) else f"; half of it costs {half - number(plain['error']):.4f}.")
        )


def dominance(rows: Sequence[Row], line: str) -> Iterator[str]:
    """Yield whether a line has at most the error of every other one, at the violations of the other."""
    for panel, lines in lines_of(rows).items():
        for other, theirs in lines.items():
            if other == line:
                continue
            gains = {
                number(row["violation"]): number(row["error"])
                - at_violation(lines[line], number(row["violation"]))
                for row in theirs
            }
            reached = {v: gain for v, gain in gains.items() if not math.isnan(gain)}
            beyond = len(gains) - len(reached)
            if not reached:
                yield f"{panel}: {line} reaches none of the violations of {other}."
                continue
            worst = min(reached.values())
            yield (
                f"{panel}: {line} has at most the error of {other} at its violations: "
                f"{yes(worst >= 0)}; within "
                f"{_FREE:g} {yes(worst >= -_FREE)}: the difference is {worst:+.4f} to "
                f"{max(reached.values()):+.4f}"
                + (f", and {beyond} of its violations {line} does not reach" if beyond else "")
                + "."
            )
