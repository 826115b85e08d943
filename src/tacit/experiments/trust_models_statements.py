"""What theory says of the trust models, and whether it came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.experiments.report import number

__all__ = ["plain_statements", "statements"]

Row = Mapping[str, object]
Key = tuple[str, str, float]

_ORDER = ("central", "aggregate", "local")
_CLEAR = 2.0  # standard errors of a difference from which on it is more than chance
_NEAR = 1.5
"""Points of 100 that a fifth less noise is worth, at most: of n / m = 1.25 in variance."""
_PRINTED = {1.0: 11.4, 2.0: 7.1}
"""Points that sums of shares, a fifth of the silos colluding, gained against local noise in a computation
with real numbers for noise: the best of the lengths of each."""


def statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the orderings that the variance of the noise implies, and whether they held.

    Args:
        rows: With the keys data, trust, epsilon, accuracy, standard error, alone and kB sent.
    """
    found = {_key(row): row for row in rows if row["epsilon"] is not None}
    bare = {str(row["data"]): row for row in rows if row["epsilon"] is None}
    for data in dict.fromkeys(str(row["data"]) for row in rows):
        epsilons = sorted({key[2] for key in found if key[0] == data})
        for epsilon in epsilons:
            at = {trust: found[data, trust, epsilon] for trust in _ORDER if (data, trust, epsilon) in found}
            for above, below in pairwise(at):
                yield f"{data}, epsilon {epsilon:g}: {above} above {below}: {_verdict(at[above], at[below])}."
            if {"central", "aggregate"} <= at.keys():
                gap = 100 * (number(at["central"]["accuracy"]) - number(at["aggregate"]["accuracy"]))
                yield (
                    f"{data}, epsilon {epsilon:g}: aggregate within {_NEAR:g} points of central: "
                    f"{_held(gap <= _NEAR)} ({gap:.2f})."
                )
        yield from _mixed(data, found, epsilons)
        if data in bare:
            most = max((number(row["accuracy"]) for key, row in found.items() if key[0] == data), default=0.0)
            free = number(bare[data]["accuracy"])
            yield f"{data}: without privacy above all: {_held(free > most)} ({free:.4f} against {most:.4f})."
        for trust in dict.fromkeys(key[1] for key in found if key[0] == data):
            line = [found[data, trust, e] for e in epsilons if (data, trust, e) in found]
            falls = [(a, b) for a, b in pairwise(line) if _clear(a, b)]
            yield f"{data}: {trust} is more accurate for more epsilon: {_held(not falls)}."


def plain_statements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what sums of shares gain with nothing tuned, beside what was computed with real numbers.

    Args:
        rows: With the keys rounds, trust, epsilon, accuracy and standard error.
    """
    for epsilon, printed in _PRINTED.items():
        best = {
            trust: max(number(row["accuracy"]) for row in rows if _at(row, trust, epsilon))
            for trust in ("central", "aggregate, 2 collude", "local")
        }
        gain = 100 * (best["aggregate, 2 collude"] - best["local"])
        behind = 100 * (best["central"] - best["aggregate, 2 collude"])
        yield (
            f"Epsilon {epsilon:g}, the better number of rounds for each: sums of shares gain {gain:.1f} "
            f"points against local trust, where {printed:g} were computed; {behind:.1f} behind central, "
            "where 1.1 at most were."
        )
    for trust, most in (("aggregate, 2 collude", True), ("local", False)):
        for epsilon in _PRINTED:
            few, many = (
                next(row for row in rows if _at(row, trust, epsilon) and number(row["rounds"]) == rounds)
                for rounds in (20, 60)
            )
            rises = number(many["accuracy"]) > number(few["accuracy"])
            yield (
                f"Epsilon {epsilon:g}: 60 rounds {'help' if most else 'hurt'} under {trust.split(',')[0]} "
                f"trust: {_held(rises is most)}{_chance(many, few)} "
                f"({number(few['accuracy']):.4f} and {number(many['accuracy']):.4f})."
            )


def _mixed(data: str, found: Mapping[Key, Row], epsilons: Sequence[float]) -> Iterator[str]:
    """Say how sums of shares compare with a shuffler, whose noise bits hide as much and cost more."""
    for epsilon in epsilons:
        pair = [found.get((data, trust, epsilon)) for trust in ("aggregate", "shuffle")]
        one, other = pair
        if one is None or other is None:
            continue
        less = number(other["kB sent"]) / number(one["kB sent"])
        yield (
            f"{data}, epsilon {epsilon:g}: aggregate no less accurate than shuffle: "
            f"{_held(not _clear(other, one))} ({number(one['accuracy']):.4f} against "
            f"{number(other['accuracy']):.4f}), for {less:.0f} times fewer bytes of a silo."
        )


def _at(row: Row, trust: str, epsilon: float) -> bool:
    """Whether a row is of that trust model and budget."""
    return row["trust"] == trust and row["epsilon"] == epsilon


def _key(row: Row) -> Key:
    """Return where a row was measured."""
    return str(row["data"]), str(row["trust"]), number(row["epsilon"])


def _clear(above: Row, below: Row) -> bool:
    """Whether the first is above the second by more than chance."""
    errors = math.hypot(number(above["standard error"]), number(below["standard error"]))
    return number(above["accuracy"]) - number(below["accuracy"]) > _CLEAR * errors


def _verdict(above: Row, below: Row) -> str:
    """Say whether the first is above the second, and how clearly."""
    a, b = number(above["accuracy"]), number(below["accuracy"])
    return f"{_held(a > b)}{_chance(above, below)} ({a:.4f} against {b:.4f})"


def _chance(one: Row, other: Row) -> str:
    """Say where a difference may be chance."""
    return "" if _clear(one, other) or _clear(other, one) else ", within chance"


def _held(holds: bool) -> str:
    """Say whether a statement holds."""
    return "held" if holds else "did not hold"
