"""Regret of private bandits: a run in small, and verdicts that follow the rows."""

from __future__ import annotations

import math

import pytest

from tacit.experiments import Report
from tacit.experiments.private_bandits import TRUST_GRID, compute, curves
from tacit.experiments.private_bandits_statements import statements
from tacit.experiments.reference import reference

SEEN: list[tuple[int, int]] = []


@pytest.fixture(scope="module")
def report() -> Report:
    return compute((0.1, 2.0), (1.0,), {"6.2a": 3, "6.2b": 2}, lambda a, b: SEEN.append((a, b)))


def test_every_line_of_the_reference_is_computed() -> None:
    known = {(panel, line) for panel, line, _ in reference("private-bandits")}
    assert known <= {(curve.panel, curve.line) for curve in curves()}
    assert {at for panel, _, at in reference("private-bandits") if "a" in panel} == set(TRUST_GRID)


def test_a_small_run_has_the_order_of_the_reference(report: Report) -> None:
    """Three instances are off by a third (one standard error); a factor of 2.5 is allowed."""
    for row in report.rows:
        if row["ratio"] is not None:
            assert 1 / 2.5 < float(str(row["ratio"])) < 2.5, row
    by_line = {(row["panel"], row["line"], row["epsilon"]): float(str(row["regret"])) for row in report.rows}
    for mode in ("seed", "sound"):
        at = [by_line[f"6.2a, {mode}", line, 0.1] for line in ("central", "shuffled", "local")]
        assert at == sorted(at)
    assert by_line["6.2a, sound", "shuffled, tacit", 0.1] < by_line["6.2a, sound", "shuffled", 0.1]
    assert SEEN[-1][0] == SEEN[-1][1]


def _row(
    panel: str, line: str, epsilon: float, regret: float, ratio: float | None = None
) -> dict[str, object]:
    return {"panel": panel, "line": line, "epsilon": epsilon, "regret": regret} | {
        "standard error": regret / 10,
        "reference": None if ratio is None else regret / ratio,
        "ratio": ratio,
    }


def test_verdicts_turn_with_the_rows() -> None:
    def rows(local: float, whole: float) -> list[dict[str, object]]:
        made = []
        for mode in ("seed", "sound"):
            for e in (0.1, 1.0):
                a, b = f"6.2a, {mode}", f"6.2b, {mode}"
                made += [_row(a, "without privacy", e, 100.0, 1.5), _row(a, "central", e, 110.0, 1.0)]
                made += [_row(a, "shuffled", e, 120.0), _row(a, "local", e, local)]
                made += [_row(a, f"{name}, tacit", e, 90.0) for name in ("central", "shuffled", "local")]
                made += [_row(b, "core set, without privacy", e, 100.0), _row(b, "core set", e, 120.0)]
                made += [_row(b, "all actions", e, whole * e)]
        return made

    good, bad = list(statements(rows(400.0, 50.0))), list(statements(rows(110.0, 5000.0)))
    assert "4 of 8 places. Not: 6.2a, seed, without privacy, epsilon 0.1: 1.50 ± 0.15" in good[0]
    clear = "6.2a, seed: central clearly beats local up to epsilon 2"
    assert next(s for s in good if s.startswith(clear)).endswith("yes.")
    assert next(s for s in bad if s.startswith(clear)).endswith("no.")
    worse = "6.2b, sound: playing all actions is worse than a core set"
    assert next(s for s in good if s.startswith(worse)).startswith(f"{worse}: nowhere; no at 0.1, 1")
    assert next(s for s in bad if s.startswith(worse)) == f"{worse}: yes at 0.1, 1."
    assert not any(math.isnan(float(word)) for s in good for word in s.split() if word == "nan")
