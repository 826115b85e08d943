"""What Girgis (2023) states about CLDP-SGD and its prices, and whether it came out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.experiments.report import number, yes
from tacit.learning.algorithms.shuffled_reports import report_bits, report_mean
from tacit.privacy import TrustModel

__all__ = [
    "AT_THREE",
    "CENTRAL",
    "CENTRAL_EPSILON",
    "CLEAR",
    "DIRECTION",
    "LEVEL",
    "THESIS",
    "UNIT",
    "statements",
]

THESIS, DIRECTION, UNIT = "one bit of one coordinate", "one bit of a direction", "a private unit vector"
"""Reports, the first of which is the thesis's."""

CENTRAL, AT_THREE, CLEAR = "DP-SGD, trusted server", "DP-SGD at epsilon 3", "without noise"
"""Lines beside them: at the epsilon of the thesis's report, at that of its central baseline, and at none."""

LEVEL = 1.5
"""What the thesis calls epsilon0 (its v)."""

CENTRAL_EPSILON, _ACCURACY = 3.0, 0.98
"""Of the thesis's central baseline, which others reached by another network."""

_REPORTS = THESIS, DIRECTION, UNIT

_BASELINE = 4.82
"""Epsilon of the run of 200 epochs by the accountant that the thesis compares with."""

_FEW = 1.4
"""Epsilon at which it compares accuracies."""

_TWO = "Theorem 5.4.1", "FMT22 + KOV15"
"""Its accountant, and the other."""

_WIDE = 13_170
"""Parameters of the thesis's network, as it has them."""


def statements(rows: Sequence[Mapping[str, object]], prices: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield what the thesis states, with whether it holds in these rows.

    Args:
        rows: Of runs.
        prices: Of the printed run.
    """
    for row in prices:
        level, epochs = number(row["level"]), int(number(row["epochs"]))
        at, renyi, composed = (f"v = {level:g}, {epochs} epochs", *(number(row[name]) for name in _TWO))
        if row["printed"] is not None:
            printed, near = number(row["printed"]), number(row["any report"])
            yield (
                f"{at}: the printed epsilon {printed:.2f} is that of Theorem 5.4.1 within a tenth: "
                f"{yes(abs(renyi / printed - 1) < 0.1)} ({renyi:.2f}); today's curve for any report gives "
                f"{near:.3f}, and for this one {number(row['exact']):.3f}."
            )
        if level == LEVEL and row["printed"] is not None:
            strong = number(row["FMT22 + DR14"])
            near = any(abs(found / _BASELINE - 1) < 0.1 for found in (composed, strong))
            yield (
                f"{at}: the printed baseline {_BASELINE} is within a tenth of FMT22, composed exactly or by "
                f"the strong theorem: {yes(near)} ({composed:.2f}, {strong:.2f})."
            )
        yield (
            f"{at}: Theorem 5.4.1 is below FMT22 with the exact composition: "
            f"{yes(renyi < composed)} ({renyi:.2f} against {composed:.2f})."
        )
    mine = [row for row in prices if number(row["level"]) == LEVEL]
    most = [
        max((int(number(row["epochs"])) for row in mine if number(row[name]) <= _FEW), default=0)
        for name in _TWO
    ]
    yield (
        f"v = {LEVEL}: of these numbers of epochs, epsilon {_FEW} has room for more by Theorem 5.4.1 than "
        "by FMT22 (printed: 80 % accuracy against 70.7): "
        f"{yes(most[0] > most[1])} ({most[0]} against {most[1]})."
    )
    mean = report_mean("bitplane", 1 / LEVEL, dim=_WIDE, trust=TrustModel.SHUFFLE, on_violation="clip")
    bits = report_bits(mean)
    yield (
        f"The report of {_WIDE:,} parameters has 15 bits, {32 * _WIDE // 15:,} times fewer than as many "
        f"numbers of 32: {yes(bits == 15)}."
    )
    for data in dict.fromkeys(str(row["data"]) for row in rows):
        mine = [row for row in rows if row["data"] == data]
        last = {str(row["report"]): row for row in mine}  # of the most epochs
        reports = [kind for kind in last if kind in _REPORTS]
        best = max(reports, key=lambda kind: number(last[kind]["accuracy"]))
        thesis, found = last[THESIS], last[best]
        yield (
            f"{data}, {int(number(thesis['epochs']))} epochs: the thesis's report of "
            f"{int(number(thesis['bits']))} bits reaches {number(thesis['accuracy']):.3f} at epsilon "
            f"{number(thesis['epsilon']):.2f}, the best report ({best}) {number(found['accuracy']):.3f} at "
            f"{number(found['epsilon']):.2f}."
        )
        if CENTRAL in last:
            yield _trusting(data, mine)
        if AT_THREE in last:
            bare = max(number(row["accuracy"]) for row in mine if row["report"] == AT_THREE)
            yield (
                f"{data}: DP-SGD reaches the printed {100 * _ACCURACY:.0f} % of a network at epsilon "
                f"{CENTRAL_EPSILON:g}: {yes(bare >= _ACCURACY)}, {bare:.3f}."
            )
        if CLEAR in last:
            bare = number(last[CLEAR]["accuracy"])
            above = all(bare > number(row["accuracy"]) for kind, row in last.items() if kind != CLEAR)
            yield f"{data}: without noise is above every private line: {yes(above)}, {bare:.3f}."
        for kind in (kind for kind in last if kind != CLEAR):
            first, *_, end = [row for row in mine if row["report"] == kind]
            yield f"{data}: more epochs are more accurate with {kind}: {_above(end, first)}."


def _trusting(data: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Say where DP-SGD is above every report that costs as much as it."""
    held, all_of = [], []
    for row in (row for row in rows if row["report"] == CENTRAL):
        others = [r for r in rows if r["report"] in _REPORTS and r["epsilon"] == row["epsilon"]]
        all_of.append(row)
        held += [row] if all(_above(row, other).startswith("yes") for other in others) else []
    return (
        f"{data}: DP-SGD of a trusted server is above every report of the same epsilon: "
        f"{yes(held == all_of)}, at {len(held)} of {len(all_of)} numbers of epochs."
    )


def _above(high: Mapping[str, object], low: Mapping[str, object]) -> str:
    """Say whether one accuracy is above another by more than two standard errors."""
    a, b = number(high["accuracy"]), number(low["accuracy"])
    slack = math.hypot(*(number(row["standard error"] or 0) for row in (high, low)))
    return f"{yes(a - b > 2 * slack)}, {a:.3f} for {b:.3f}"
