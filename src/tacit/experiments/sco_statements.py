"""What Cheu, Joseph, Mao and Peng (2022) prove of the shuffled methods, and whether it came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tacit.experiments.report import number, yes

__all__ = ["THEORY", "fitted_power", "slope_statements", "statements"]

Row = Mapping[str, object]

THEORY = {"P_SGD": -1 / 2, "smoothed P_AGD": -2 / 3, "smooth P_AGD": -4 / 5, "P_GD": -1.0}
"""Powers of n that the excess goes with where noise leads: Theorems 4.1, 4.7, 4.3 and 4.9."""

_NEAR = 0.12  # how far from its power a measured one may be


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what should hold of these rows, and whether it does.

    Args:
        rows: With the keys n, method, excess, bound and without noise.
    """
    below = sum(number(row["excess"]) < number(row["bound"]) for row in rows)
    yield f"Every excess is below its bound: {yes(below == len(rows))}, {below} of {len(rows)}."
    lines = _lines(rows)
    pairs = list(zip(lines["P_SGD"], lines["smoothed P_AGD"], strict=True))
    wins = sum(number(smooth["excess"]) < number(plain["excess"]) for plain, smooth in pairs)
    yield f"Smoothed P_AGD is below P_SGD: {yes(wins == len(pairs))}, at {wins} of {len(pairs)} sizes."
    for name, line in lines.items():
        powers = [fitted_power(line, key) for key in ("excess", "bound")]
        shares = [number(row["without noise"]) / number(row["excess"]) for row in line]
        yield (
            f"{name}: the excess goes with n to the power {powers[0]:.2f}, its bound with {powers[1]:.2f}; "
            f"without noise it is {', '.join(f'{100 * share:.0f} %' for share in shares)} of that."
        )


def slope_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield with which power of n each method's excess falls where noise leads.

    Args:
        rows: With the keys n, method, excess and bound, of the methods of `THEORY`.
    """
    lines = _lines(rows)
    for name, line in lines.items():
        found, proven = fitted_power(line, "excess"), THEORY[name]
        verdict = "holds" if abs(found - proven) <= _NEAR else "does not hold"
        yield (
            f"{name} on flat losses: the excess goes with n to the power {found:.2f}, by theory "
            f"{proven:.2f}: {verdict} within {_NEAR:g}."
        )
    order = [name for name in THEORY if name in lines]
    powers = [fitted_power(lines[name], "excess") for name in order]
    yield f"Powers fall in the order {', '.join(order)}: {yes(powers == sorted(powers, reverse=True))}."
    pairs = zip(lines["P_SGD"], lines["smoothed P_AGD"], strict=True)
    sizes = [f"{a['n']}" for a, b in pairs if number(b["excess"]) < number(a["excess"])]
    yield f"Smoothed P_AGD is below P_SGD on flat losses at n = {', '.join(sizes) or 'none of them'}."


def fitted_power(line: Sequence[Row], key: str) -> float:
    """Return the slope of a column against n, both logarithmic.

    Args:
        line: Rows with n and the column.
        key: The column.
    """
    x, y = (np.log([number(row[name]) for row in line]) for name in ("n", key))
    return float(np.polyfit(x, y, 1)[0])


def _lines(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of every method."""
    names = dict.fromkeys(str(row["method"]) for row in rows)
    return {name: [row for row in rows if row["method"] == name] for name in names}
