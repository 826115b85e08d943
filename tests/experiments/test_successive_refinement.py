"""Several analysts and keys: the reference to its last digit, and verdicts that follow the rows."""

from __future__ import annotations

import pytest

from tacit.experiments import Report
from tacit.experiments.reference import reference
from tacit.experiments.report import number
from tacit.experiments.successive_refinement import compute, run
from tacit.experiments.successive_refinement_statements import (
    key_statements,
    many_statements,
    pair_statements,
    saved_statements,
)


@pytest.fixture(scope="module")
def report() -> Report:
    return run(False, lambda *_: None)


def test_all_digits_of_the_reference(report: Report) -> None:
    rows = [*report.rows, *(row for part in report.more.values() for row in part.rows)]
    compared = [row for row in rows if row["reference"] is not None]
    assert len(compared) == len(reference("successive-refinement"))
    for row in compared:
        allowed = 0.005 if "saved %" in row else 1e-6
        assert abs(number(row["difference"])) <= allowed, row
    verdicts = [note for note in report.notes if note.endswith(("yes.", "no."))]
    assert len(verdicts) == 8
    assert all(note.endswith("yes.") for note in verdicts)


def test_together_is_the_largest_level_or_their_sum(report: Report) -> None:
    for row in report.more["7.10"].rows:
        if row["panel"] == "7.10, even steps" and row["analysts"] == 10:
            expected = {"one message": 2.0, "separate messages": 15.5}[str(row["line"])]
            assert number(row["together"]) == pytest.approx(expected, rel=1e-9)


def test_verdicts_turn_with_the_rows() -> None:
    small = compute((0.01, 0.5), (1, 2), (1.0, 2.0), lambda *_: None)
    assert any("at 0.5; no." in said for said in pair_statements(small.rows))
    many = small.more["7.10"].rows
    flat = [row | {"random bits": 1.0} for row in many]
    assert "bits: no." in next(said for said in many_statements(flat) if "gap" in said)
    keys = small.more["7.3"].rows
    long = [row | {"bits": 99.0} if row["line"] == "key of least entropy" else row for row in keys]
    assert "every epsilon: no; ever fewer as epsilon grows: no." in next(
        said for said in key_statements(long) if "k = 10" in said
    )
    wrong = [row | {"printed": 50.0} for row in small.more["saved"].rows]
    assert next(iter(saved_statements(wrong))).endswith("no.")
    near = [row | {"difference": 1e-3} for row in small.rows]
    assert "digits of the reference: 0 of" in next(iter(pair_statements(near)))
