"""What is said of private fair models, one statement after the other, against the rows of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from tacit.experiments.report import number, yes

__all__ = ["LITERAL", "statements"]

Row = Mapping[str, object]

_NEAR = {"error": 0.005, "gap": 0.01}
"""How far from the reference a value may be."""

LITERAL = ", settings of the reference"
"""How the name of a line ends that has the settings of the reference."""

_OTHER, _ODDS = "PF-LD", ", equalized-odds"

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
    yield from _near([row for row in rows if not str(row["line"]).endswith(LITERAL)], "")
    yield from _near([row for row in rows if str(row["line"]).endswith(LITERAL)], ", with its own settings")
    yield from _free(found)
    yield from _weights(found)
    yield from _target(found)
    yield from _baselines(found)


def _is_private(line: str) -> bool:
    """Return whether a line is of DP-FERMI."""
    return line.startswith("weight") and "without" not in line and not line.endswith(LITERAL)


def _spread(row: Row) -> str:
    """Return the standard error of a value, where it has one."""
    error = row.get("standard error")
    return f" ± {number(error):.4f}" if error else ""


def _value(row: Row) -> float:
    return number(row["value"])


def _near(rows: Sequence[Row], how: str) -> Iterator[str]:
    """Yield how many values are near the reference, by measure."""
    for measure, near in _NEAR.items():
        compared = [row for row in rows if row["measure"] == measure and row["reference"] is not None]
        if compared:
            off = [row for row in compared if abs(_value(row) - number(row["reference"])) > near]
            places = "; ".join(
                f"{row['line']}, epsilon {number(row['epsilon']):g}: {_value(row):.4f}"
                f"{_spread(row)} for {number(row['reference']):.4f}"
                for row in off
            )
            yield (
                f"{measure} within {near:g} of the reference{how}: {len(compared) - len(off)} of "
                f"{len(compared)} places." + (f" Not: {places}." if off else "")
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
        if measure == "gap" and _is_private(line)
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
    private = {line: at for (measure, line), at in found.items() if measure == "gap" and _is_private(line)}
    epsilon = min(epsilon for at in private.values() for epsilon in at)
    gaps = {line: _value(at[epsilon]) for line, at in private.items() if epsilon in at}
    line = min(gaps, key=lambda one: gaps[one])
    error = _value(found["error", line][epsilon])
    yield f"The least gap at epsilon {epsilon:g} is {gaps[line]:.4f}, of {line}, at an error of {error:.4f}."


def _baselines(found: Mapping[tuple[str, str], Mapping[float, Row]]) -> Iterator[str]:
    """Yield how PF-LD does beside the line of DP-FERMI through its weights, and the ends of other methods."""
    ratios, outside = [], 0
    for (measure, line), at in found.items():
        if measure == "gap" and line.startswith(_OTHER):
            for epsilon, row in at.items():
                gap = _gap_at(_curve(found, epsilon), _value(found["error", line][epsilon]))
                outside += gap is None
                ratios += [] if gap is None else [gap / _value(row)]
    if ratios:
        yield (
            f"At equal error and epsilon the gap of DP-FERMI, between its weights, is {median(ratios):.2f} "
            f"times that of {_OTHER} (median of {len(ratios)} places, from {min(ratios):.2f} to "
            f"{max(ratios):.2f}); {outside} more places lie outside of its errors."
        )
    odds = [line for measure, line in found if measure == f"gap{_ODDS}"]
    for line in odds:
        at = found[f"gap{_ODDS}", line]
        epsilon = min(at)
        yield (
            f"Equalized odds at epsilon {epsilon:g}, {line}: a gap of {_value(at[epsilon]):.4f} at an error "
            f"of {_value(found[f'error{_ODDS}', line][epsilon]):.4f}."
        )


def _curve(found: Mapping[tuple[str, str], Mapping[float, Row]], epsilon: float) -> list[tuple[float, float]]:
    """Return error and gap of each weight of DP-FERMI, by error."""
    return sorted(
        (_value(found["error", line][epsilon]), _value(at[epsilon]))
        for (measure, line), at in found.items()
        if measure == "gap" and _is_private(line)
    )


def _gap_at(curve: Sequence[tuple[float, float]], error: float) -> float | None:
    """Return the gap at an error between two points (error, gap); None outside of them."""
    for (low, one), (high, two) in pairwise(curve):
        if low <= error <= high and low < high:
            return one + (two - one) * (error - low) / (high - low)
    return None
