"""What is said of private fair models, one statement after the other, against the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.experiments.report import number, yes

__all__ = ["statements"]

Row = Mapping[str, object]

_NEAR = {"error": 0.005, "gap": 0.01}
"""How far from the reference a value may be."""

_PRIVATE_COST = {"error": 0.01, "gap": 0.02}
"""What counts as free: at most this beside the same weight without privacy."""


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of each statement.

    Args:
        rows: With the keys measure, line, epsilon, value, standard error and reference.
    """
    found: dict[tuple[str, str], dict[float, Row]] = {}
    for row in rows:
        at = found.setdefault((str(row["measure"]), str(row["line"])), {})
        at[number(row["epsilon"])] = row
    yield from _near(rows)
    yield from _free(found)
    yield from _weights(found)
    yield from _target(found)


def _value(row: Row) -> float:
    return number(row["value"])


def _near(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many values are near the reference, by measure."""
    for measure, near in _NEAR.items():
        compared = [row for row in rows if row["measure"] == measure and row["reference"] is not None]
        if compared:
            off = [row for row in compared if abs(_value(row) - number(row["reference"])) > near]
            places = "; ".join(
                f"{row['line']}, epsilon {number(row['epsilon']):g}: {_value(row):.4f} for "
                f"{number(row['reference']):.4f}"
                for row in off
            )
            yield (
                f"{measure} within {near:g} of the reference: {len(compared) - len(off)} of {len(compared)} "
                f"places." + (f" Not: {places}." if off else "")
            )


def _free(found: Mapping[tuple[str, str], Mapping[float, Row]]) -> Iterator[str]:
    """Yield what privacy costs at each weight, at the least epsilon."""
    for (measure, line), at in sorted(found.items()):
        free = found.get((measure, f"{line}, without privacy"))
        if free is None:
            continue
        epsilon = min(at)
        cost = _value(at[epsilon]) - _value(free[epsilon])
        yield (
            f"{measure}, {line}: epsilon {epsilon:g} costs {cost:+.4f}; almost free: "
            f"{yes(cost <= _PRIVATE_COST[measure])}."
        )


def _weights(found: Mapping[tuple[str, str], Mapping[float, Row]]) -> Iterator[str]:
    """Yield whether the gap falls with the weight, at each epsilon."""
    lines = sorted(
        (number(line.removeprefix("weight ")), at)
        for (measure, line), at in found.items()
        if measure == "gap" and "without" not in line
    )
    for epsilon in sorted({epsilon for _, at in lines for epsilon in at}):
        gaps = [_value(at[epsilon]) for _, at in lines if epsilon in at]
        falls = all(one > two for one, two in pairwise(gaps))
        yield (
            f"At epsilon {epsilon:g} the gap falls with the weight: "
            f"{', '.join(f'{gap:.4f}' for gap in gaps)}; {yes(falls)}."
        )


def _target(found: Mapping[tuple[str, str], Mapping[float, Row]]) -> Iterator[str]:
    """Yield the smallest gap at the least epsilon, and the error it takes."""
    private = {
        line: at for (measure, line), at in found.items() if measure == "gap" and "without" not in line
    }
    epsilon = min(epsilon for at in private.values() for epsilon in at)
    gaps = {line: _value(at[epsilon]) for line, at in private.items() if epsilon in at}
    line = min(gaps, key=lambda one: gaps[one])
    error = _value(found["error", line][epsilon])
    yield f"The least gap at epsilon {epsilon:g} is {gaps[line]:.4f}, of {line}, at an error of {error:.4f}."
