"""Frequencies from few random bits: a run in small, the references, and verdicts that follow the rows."""

from __future__ import annotations

import pytest

from tacit.experiments import Report
from tacit.experiments.frequencies_randomness import EPSILON_GRID, N_GRID, compute, table
from tacit.experiments.frequencies_randomness_statements import (
    NEAR,
    curve_statements,
    table_statements,
    threshold_statements,
)
from tacit.experiments.reference import reference
from tacit.experiments.report import number

SEEN: list[tuple[int, int]] = []


@pytest.fixture(scope="module")
def report() -> Report:
    return compute((150_000, 850_000), (0.7, 1.0, 2.0), 4, lambda a, b: SEEN.append((a, b)))


def test_every_place_of_the_reference_is_computed(report: Report) -> None:
    places = {(panel, line) for panel, line, _ in reference("frequencies-randomness") if "7.1" not in panel}
    rows = [*report.rows, *report.more["7.8"].rows]
    assert places <= {(row["panel"], row["line"]) for row in rows}
    known = reference("frequencies-randomness")
    assert {at for panel, _, at in known if panel.startswith("7.7")} == set(N_GRID)
    assert {at for panel, _, at in known if panel.startswith("7.8")} == set(EPSILON_GRID)
    assert SEEN[-1][0] == SEEN[-1][1]


def test_a_small_run_has_the_errors_of_the_reference(report: Report) -> None:
    """The tolerance of the reference, and six standard errors: seeds are fixed, and all places hold."""
    compared = [row for row in (*report.rows, *report.more["7.8"].rows) if row["reference"] is not None]
    assert len(compared) == 17
    for row in compared:
        allowed = NEAR * max(1, number(row["reference"])) + 6 * number(row["standard error"])
        assert abs(number(row["difference"])) <= allowed, row
    assert any("R = 0.9 costs accuracy only where" in note and note.endswith("yes.") for note in report.notes)


def test_the_table_has_the_numbers_of_the_reference() -> None:
    rows = table((10, 100, 1000), (0.5, 1.0))
    compared = 0
    for row in rows:
        for mine, theirs in (("random bits", "reference bits"), ("n risk", "reference n risk")):
            if row[theirs] is not None:
                compared += 1
                assert number(row[mine]) == pytest.approx(number(row[theirs]), rel=2e-6)
    assert compared == sum(panel.startswith("7.1") for panel, _, _ in reference("frequencies-randomness"))
    by_name = {(row["mechanism"], row["epsilon"], row["k"]): row for row in rows}
    assert by_name["RAPPOR", 1.0, 1000]["printed bits"] == pytest.approx(839.941538, abs=1e-6)
    verdicts = list(table_statements(rows))
    assert sum(said.endswith("yes.") for said in verdicts) == 3
    worse = [row | {"n risk / k": 9 * number(row["k"])} for row in rows]
    assert next(said for said in table_statements(worse) if "order" in said).endswith("no.")


def _rows(figure: str, x: str, curves: dict[str, dict[float, float]]) -> list[dict[str, object]]:
    return [
        {"panel": f"{figure}, {method}", "line": line, x: at, "l1": l1}
        | {"standard error": 0.001, "reference": 1.4, "difference": l1 - 1.4}
        for method in ("clip-normalize", "simplex")
        for line, curve in curves.items()
        for at, l1 in curve.items()
    ]


def test_verdicts_turn_with_the_rows() -> None:
    full, tacit = {1e5: 1.5, 2e5: 1.3}, {1e5: 1.5, 2e5: 1.4}
    good = list(
        curve_statements(_rows("7.7", "n", {"R = 1": full, "R = 0.7": {1e5: 1.6, 2e5: 1.5}, "tacit": tacit}))
    )
    bad = list(
        curve_statements(_rows("7.7", "n", {"R = 1": full, "R = 0.7": {1e5: 1.3, 2e5: 1.2}, "tacit": tacit}))
    )
    assert good[1].endswith("140,000; yes, within 20 %.")
    assert good[2].endswith("not reached here; no, within 20 %.")
    assert (good[3][-4:], bad[3][-4:]) == ("yes.", " no.")
    levels = {0.5: 1.4, 0.7: 1.2, 1.0: 1.1, 2.0: 0.8}
    more = {0.5: 1.6, 0.7: 1.5, 1.0: 1.1, 2.0: 0.8}
    for few, said in ((more, "yes."), (levels, " no."), ({e: l1 + 1 for e, l1 in levels.items()}, " no.")):
        rows = _rows("7.8", "epsilon", {"R = 1": levels, "R = 0.9": few, "R = 0.6": more})
        assert list(threshold_statements(rows))[1][-4:] == said
