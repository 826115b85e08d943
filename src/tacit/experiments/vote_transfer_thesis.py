"""What the thesis prints about private knowledge transfer, and which of it holds for measured rows.

Jiang (2025), Tables 3.1, 3.2 and B.2 to B.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

import msgspec
import numpy as np

from tacit.experiments.report import number
from tacit.privacy import general_composition

__all__ = [
    "ALLOWANCES",
    "PRINTED",
    "QUERIES",
    "SLACK",
    "Printed",
    "printed_delta",
    "statements",
    "thesis_total",
]

ALLOWANCES, QUERIES = (1, 3, 5, 7), (20, 50, 100)
SLACK = 1e-4  # delta' of the general composition of the totals

_Rows = Sequence[Mapping[str, object]]


class Printed(msgspec.Struct, frozen=True):
    """One data set of the thesis.

    Attributes:
        epsilon: Of each private teacher; its delta is 1e-4.
        order: The order that Table B.2 prints for m = 3.
        sigma: The sigma_min that Table B.2 prints for m = 3.
        answers: Lines of m, Q, mean and standard deviation of GNMax, Sub and opt in hundredths, and epsilon
            and delta of all Q answers.
    """

    epsilon: float
    order: float
    sigma: float
    answers: tuple[tuple[int, int, int, int, int, int, int, int, float, float], ...]

    @property
    def accuracy(self) -> dict[tuple[int, int], tuple[tuple[float, float], ...]]:
        """(m, Q) to (mean, standard deviation) of GNMax, Sub and opt."""
        return {
            (m, q): tuple((mean / 100, std / 100) for mean, std in zip(cells[::2], cells[1::2], strict=True))
            for m, q, *cells, _, _ in self.answers
        }

    @property
    def total(self) -> dict[tuple[int, int], tuple[float, float]]:
        """(m, Q) to (epsilon, delta) of all Q answers."""
        return {(m, q): (epsilon, delta) for m, q, *_, epsilon, delta in self.answers}


PRINTED: Mapping[str, Printed] = msgspec.toml.decode(
    (resources.files("tacit.experiments") / "tables" / "vote-knowledge-transfer.toml").read_bytes(),
    type=dict[str, Printed],
)
"""Tables 3.1, 3.2 and B.3 to B.8, as printed."""


def printed_delta(m: int, teacher_delta: float = 1e-4) -> float:
    """Return the delta of one published label, m times that of a teacher."""
    return m * teacher_delta


def thesis_total(epsilon: float, m: int, queries: int) -> tuple[float, float]:
    """Return (epsilon, delta) of all labels as the thesis composes them.

    That is proven where every label has noise of its own on votes of disjoint shards (GNMax), and not where
    the same private teachers answer all queries.
    """
    total = general_composition(m * epsilon, printed_delta(m), queries, SLACK)
    return total.epsilon, total.delta


def statements(rows: _Rows) -> Iterator[str]:
    """Say which statements of the thesis hold for some rows, one sentence each."""
    measured = [row for row in rows if row["student"] is not None]
    for data in dict.fromkeys(str(row["data"]) for row in measured):
        mine = [row for row in measured if row["data"] == data]
        yield from _about(data, {(str(r["method"]), int(str(r["m"]))): number(r["expected"]) for r in mine})
    yield from _replayed([row for row in rows if row["student"] is None])


def _about(data: str, expected: Mapping[tuple[str, int], float]) -> Iterator[str]:
    """Say what holds on one data set, by exact expected accuracy."""
    ms = sorted({m for _, m in expected})
    methods = {name for name, _ in expected}
    if "opt" in methods:
        gaps = {m: expected["opt", m] - expected["Sub", m] for m in ms}
        yield f"{data}: opt minus Sub, in points: {_points(gaps)}."
    for other in ("GNMax, Rényi", "GNMax, analytic", "staircase"):
        if other in methods:
            gaps = {m: expected["opt", m] - expected[other, m] for m in ms}
            yield f"{data}: opt minus {other}, in points: {_points(gaps)}."
    gaps = {m: expected["plain majority", m] - expected["opt", m] for m in ms}
    yield f"{data}: plain majority minus opt, in points: {_points(gaps)}."


def _replayed(rows: _Rows) -> Iterator[str]:
    """Say how near unanimous votes come to the printed accuracies of GNMax."""
    told = [row for row in rows if row["thesis"] is not None]
    if not told:
        return
    gaps = [abs(number(row["expected"]) - number(row["thesis"])) for row in told]
    allowed = [2 * number(row["thesis std"]) / np.sqrt(10) + 0.03 for row in told]
    near = sum(gap <= limit for gap, limit in zip(gaps, allowed, strict=True))
    found = "the printed accuracy is that of its noise" if near == len(told) else "noise alone is not it"
    yield (
        f"Replayed: if all teachers were always right, GNMax as the thesis calibrates it would be within "
        f"2 std / sqrt(10) + 0.03 of {near} of the {len(told)} printed accuracies (largest gap "
        f"{max(gaps):.3f}): {found}."
    )
    for row in told:
        if (row["m"], row["Q"]) == (3, 100):
            yield (
                f"{row['data']}: by its exact curve GNMax costs epsilon {number(row['epsilon']):.3f} for "
                f"100 labels at m = 3 (delta {number(row['delta']):.3f}); general composition states "
                f"{number(row['thesis epsilon']):.3f}."
            )


def _points(gaps: Mapping[int, float]) -> str:
    """Return differences in percentage points, by m."""
    # + 0.0 makes a negative zero positive.
    return ", ".join(f"{round(100 * gap, 1) + 0.0:+.1f} (m = {m})" for m, gap in gaps.items())
