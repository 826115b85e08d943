"""What the thesis says of frequencies from few random bits, one statement after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes
from tacit.numerics import binary_entropy

__all__ = ["NEAR", "curve_statements", "table_statements", "threshold_statements"]

Row = Mapping[str, object]

NEAR = 0.03
"""How far from the reference an l1 error may be; of estimates as they are, relatively."""
_ABOUT = 0.2  # "about so many clients"
_SAID = {"R = 1": 150_000, "R = 0.7": 850_000}
_APART = 0.05  # errors that differ by more than this are different ones
_ORDER = 2.0  # risks over k at 10 and at 1000 values, within this factor: the order is k


def curve_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Figure 7.7.

    Args:
        rows: With the keys panel, line, n, l1, standard error, reference and difference.
    """
    yield _near("7.7", rows)
    for line, said in _SAID.items():
        curve = _curve(rows, "7.7, clip-normalize", line, "n")
        n = _where(curve, 1.4)
        found = "not reached here" if n is None else f"{float(f'{n:.2g}'):,.0f}"
        yield (
            f"7.7: with {line} an l1 error of 1.4 takes about {said:,} clients: {found}; "
            f"{yes(n is not None and abs(n / said - 1) <= _ABOUT)}, within {100 * _ABOUT:g} %."
        )
    full, few = (_curve(rows, "7.7, clip-normalize", line, "n") for line in _SAID)
    yield f"7.7: fewer random bits cost accuracy at every n: {yes(all(few[n] > full[n] for n in full))}."
    nearest, ours = _curve(rows, "7.7, simplex", "R = 1", "n"), _curve(rows, "7.7, simplex", "tacit", "n")
    least = min(full[n] / nearest[n] for n in full)
    yield (
        f"7.7: the nearest frequencies have {least:.1f} times less error or better than those of the figure, "
        f"from the same messages; tacit has at most {max(ours[n] / nearest[n] for n in full):.2f} times the "
        "error of those."
    )


def threshold_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Figure 7.8.

    Args:
        rows: With the keys panel, line, epsilon, l1, standard error, reference and difference.
    """
    yield _near("7.8", rows)
    full = _curve(rows, "7.8, clip-normalize", "R = 1", "epsilon")
    for bits in (0.9, 0.6):
        few = _curve(rows, "7.8, clip-normalize", f"R = {bits:g}", "epsilon")
        # The entropy of a coin of odds e^epsilon falls as epsilon grows.
        free = [e for e in full if binary_entropy(1 / (math.exp(e) + 1)) <= bits]
        bound = [e for e in full if e not in free]
        same = max((abs(few[e] - full[e]) for e in free), default=0.0)
        more = min((few[e] - full[e] for e in bound), default=math.inf)
        yield (
            f"7.8: R = {bits:g} costs accuracy only where a coin of odds e^epsilon has more entropy: at "
            f"{_listed(bound)} by {more:.2f} or more, at {_listed(free)} by {same:.2f} or less; "
            f"{yes(same <= _APART < more)}."
        )
    yield (
        "7.8: the curve that leaves R = 1 below epsilon 0.8, as the text says, is that of R = 0.9; the "
        "caption has R = 0.6, which leaves below 1.77."
    )


def table_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what holds of Table 7.1.

    Args:
        rows: As `frequencies_randomness.table` makes them.
    """
    far = [
        row
        for row in rows
        for mine, theirs in (("random bits", "reference bits"), ("n risk", "reference n risk"))
        if row[theirs] is not None and abs(number(row[mine]) / number(row[theirs]) - 1) > 1e-3
    ]
    compared = sum(row[key] is not None for row in rows for key in ("reference bits", "reference n risk"))
    yield f"7.1: within 0.1 % of the reference: {compared - len(far)} of {compared} numbers."
    per_k: dict[str, list[float]] = {}
    for row in rows:
        per_k.setdefault(str(row["mechanism"]), []).append(number(row["n risk / k"]))
    epsilons = sorted({number(row["epsilon"]) for row in rows})
    grown: dict[str, float] = {}
    for name in per_k:
        for epsilon in epsilons:
            mine = [row for row in rows if row["mechanism"] == name and number(row["epsilon"]) == epsilon]
            mine.sort(key=lambda row: number(row["k"]))
            factor = number(mine[-1]["n risk / k"]) / number(mine[0]["n risk / k"])
            grown[name] = max(grown.get(name, 0.0), factor)
    others = max(factor for name, factor in grown.items() if name != "RR")
    yield (
        f"7.1: the risk of all but RR has the order k / n: over k it grows by {others:.2f} at most from the "
        f"least k to the largest, that of RR by {grown['RR']:.0f}; {yes(others <= _ORDER < grown['RR'])}."
    )
    at = {(str(row["mechanism"]), number(row["epsilon"]), number(row["k"])): row for row in rows}
    least = all(
        number(row["random bits"]) > number(at["BH", number(row["epsilon"]), number(row["k"])]["random bits"])
        for row in rows
        if row["mechanism"] != "BH"
    )
    yield f"7.1: only BH takes as few random bits as a coin of odds e^epsilon has: {yes(least)}."
    bounded = all(
        number(row["random bits"]) <= number(row["printed bits"]) * 1.001
        for row in rows
        if row["mechanism"] == "HR"
    )
    yield f"7.1: the printed bound on the random bits of HR holds: {yes(bounded)}."
    short = min(
        number(row["printed bits"]) / number(row["random bits"])
        for row in rows
        if row["mechanism"] == "RAPPOR"
    )
    yield (
        "7.1: the printed random bits of RAPPOR are those of flips at twice the level: as little as "
        f"{short:.2f} times what it takes."
    )


def _curve(rows: Sequence[Row], panel: str, line: str, x: str) -> dict[float, float]:
    """Return a line of a panel, by place."""
    return {number(row[x]): number(row["l1"]) for row in rows if (row["panel"], row["line"]) == (panel, line)}


def _near(figure: str, rows: Sequence[Row]) -> str:
    """Say how far the run is from the reference."""
    compared = [row for row in rows if row["reference"] is not None]
    far = 0
    for row in compared:
        allowed = NEAR * max(1.0, number(row["reference"])) + 2 * number(row["standard error"])
        far += abs(number(row["difference"])) > allowed
    return (
        f"{figure}: within {NEAR:g} of the reference, or of its share above 1, and two standard errors: "
        f"{len(compared) - far} of {len(compared)} places."
    )


def _where(curve: Mapping[float, float], level: float) -> float | None:
    """Return where a falling curve passes a level, between two places on a logarithmic axis."""
    places = sorted(curve)
    for a, b in itertools.pairwise(places):
        if curve[a] >= level >= curve[b]:
            share = (curve[a] - level) / (curve[a] - curve[b])
            return math.exp(math.log(a) + share * math.log(b / a))
    return None


def _listed(places: Sequence[float]) -> str:
    return ", ".join(f"{place:g}" for place in sorted(places)) or "none of the places"
