"""Which orderings of the papers hold among the rows of the comparison of all algorithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tacit.experiments.report import number

__all__ = ["conditioning_statements", "statements"]

Row = Mapping[str, object]

_ORDERINGS = (
    ("accelerated", "minibatch", None, None),
    ("lan", "p-sgd", None, None),
    ("prox-svrg", "prox-sgd", "strongly convex", None),
    ("minibatch", "local", None, "local"),
)
"""What the papers print: the first is below the second; on one task or all, under one trust model or all."""

_TRUSTS = ("central", "shuffle", "local")
_NEAR = 0.3  # how far from its power a measured one may be
_CLEAR = 2.0  # standard errors of a difference from which on it is more than chance


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield, for every ordering, whether it held in every place where both sides were measured.

    Args:
        rows: With the keys task, trust, method, passes, epsilon, excess, standard error and bound.
    """
    for first, second, task, trust in _ORDERINGS:
        for place, (low, high) in _pairs(rows, first, second):
            if task in (None, place[0]) and trust in (None, place[1]):
                yield f"{first} below {second}, {_place(place)}: {_verdict(low, high)}."
    yield from _passes(rows)
    yield from _trusts(rows)
    yield from _bounds(rows)


def conditioning_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how the excess of proximal methods goes with the condition number, and what is printed.

    Args:
        rows: With the keys kappa, method, excess and standard error, of prox-sgd and prox-svrg.
    """
    lines = {name: [row for row in rows if row["method"] == name] for name in ("prox-sgd", "prox-svrg")}
    powers = {name: _power(line) for name, line in lines.items()}
    saved = powers["prox-sgd"] - powers["prox-svrg"]
    verdict = "held" if abs(saved - 1) <= _NEAR else "did not hold"
    yield (
        f"The excess of prox-sgd goes with kappa to the power {powers['prox-sgd']:.2f}, that of prox-svrg "
        f"with {powers['prox-svrg']:.2f}: variance reduction saves a factor kappa, as printed: {verdict} "
        f"within {_NEAR:g} of the power 1."
    )
    for low, high in zip(lines["prox-svrg"], lines["prox-sgd"], strict=True):
        yield f"prox-svrg below prox-sgd at kappa {number(low['kappa']):g}: {_verdict(low, high)}."


def _power(line: Sequence[Row]) -> float:
    """Return the slope of the excess against kappa, both logarithmic."""
    x, y = (np.log([number(row[key]) for row in line]) for key in ("kappa", "excess"))
    return float(np.polyfit(x, y, 1)[0])


def _pairs(
    rows: Sequence[Row], first: str, second: str
) -> Iterator[tuple[tuple[str, str, float], tuple[Row, Row]]]:
    """Yield both rows of every task, trust model and budget that two methods were measured at."""
    found = {(row["method"], *_key(row)): row for row in rows}
    for name, *place in found:
        key = (str(place[0]), str(place[1]), number(place[2]))
        if name == first and (second, *place) in found:
            yield key, (found[name, *key], found[second, *key])


def _passes(rows: Sequence[Row]) -> Iterator[str]:
    """Say whether many passes beat one, of every method that was tried with both."""
    ends = ", one pass"
    for name in dict.fromkeys(str(row["method"]) for row in rows if str(row["method"]).endswith(ends)):
        many = name.removesuffix(ends)
        for place, (low, high) in _pairs(rows, many, name):
            if low["passes"] != high["passes"]:
                yield f"{many} in many passes below one pass, {_place(place)}: {_verdict(low, high)}."


def _trusts(rows: Sequence[Row]) -> Iterator[str]:
    """Say of how many methods the shuffled run lies strictly between central and local."""
    found = {(str(row["method"]), *_key(row)): number(row["excess"]) for row in rows}
    places = dict.fromkeys((str(row["task"]), number(row["epsilon"])) for row in rows)
    for task, epsilon in places:
        triples = {
            name: [found.get((name, task, trust, epsilon)) for trust in _TRUSTS]
            for name in dict.fromkeys(name for name, *_ in found)
        }
        whole = {name: [v for v in three if v is not None] for name, three in triples.items()}
        whole = {name: three for name, three in whole.items() if len(three) == len(_TRUSTS)}
        if not whole:
            continue
        against = [name for name, three in whole.items() if not all(a < b for a, b in pairwise(three))]
        said = f"did not hold for {', '.join(against)}" if against else "held"
        yield (
            f"Shuffle strictly between central and local, {task}, epsilon {epsilon:g}: "
            f"{len(whole) - len(against)} of {len(whole)} methods, {said}."
        )


def _bounds(rows: Sequence[Row]) -> Iterator[str]:
    """Say whether every excess is below the bound of its algorithm, where one was computed."""
    bounded = [row for row in rows if row["bound"] is not None]
    if not bounded:
        return
    above = [row for row in bounded if number(row["excess"]) > number(row["bound"])]
    names = ", ".join(dict.fromkeys(f"{row['method']} ({row['trust']}, {row['task']})" for row in above))
    said = f"did not hold for {names}" if above else "held"
    yield f"Every excess below its own bound: {len(bounded) - len(above)} of {len(bounded)}, {said}."


def _key(row: Row) -> tuple[str, str, float]:
    """Return where a row was measured."""
    return str(row["task"]), str(row["trust"]), number(row["epsilon"])


def _place(place: tuple[str, str, float]) -> str:
    """Say where two rows were measured."""
    return f"{place[0]}, {place[1]} trust, epsilon {place[2]:g}"


def _verdict(low: Row, high: Row) -> str:
    """Say whether the first is below the second, and how clearly."""
    a, b = number(low["excess"]), number(high["excess"])
    errors = math.hypot(number(low["standard error"]), number(high["standard error"]))
    chance = "" if abs(a - b) > _CLEAR * errors else ", within chance"
    return f"{'held' if a < b else 'did not hold'}{chance} ({a:.4g} against {b:.4g})"
