"""What stands between files and training: every problem is found, at once, with the line that mends it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tacit.data import ColumnsSpec, TableProblem, find_problems

SPEC = ColumnsSpec.from_toml(
    """
    [label]
    kind = "classes"
    classes = ["no", "yes"]
    column = "y"
    [columns.age]
    kind = "numeric"
    lower = 0
    upper = 100
    [columns.sex]
    kind = "categorical"
    categories = ["f", "m"]
    [columns.born]
    kind = "date"
    reference = 2026-01-01
    lower = 0
    upper = 100
    """
)
GOOD: dict[str, list[Any]] = {
    "id": ["1", "2", "3", "4"],
    "age": ["10", "20", "30", "40"],
    "sex": ["f", "m", "f", "m"],
    "born": ["2000-01-01"] * 4,
    "y": ["no", "yes", "no", "yes"],
}


def problems(
    *changes: dict[str, list[Any] | None], spec: ColumnsSpec = SPEC, **more: Any
) -> list[TableProblem]:
    """Problems of one file per change; None takes a column away."""
    frames = {}
    for k, change in enumerate(changes):
        cells = {name: column for name, column in (GOOD | change).items() if column is not None}
        frames[f"{k}.csv"] = pd.DataFrame(cells, dtype=object)
    return find_problems(frames, spec, **({"label": "y", "person": "id"} | more))


def test_a_data_set_in_order_has_none() -> None:
    assert problems({}, {"id": ["5", "6", "7", "8"]}) == []


CASES: dict[str, tuple[list[dict[str, list[Any] | None]], str, str, str, bool]] = {
    "absent": ([{}, {"age": None, "alter": ["1"] * 4}], "age", "1.csv has no such column", "", True),
    "absent everywhere": ([{"age": None}], "age", "0.csv has no such column", 'kind = "ignore"', True),
    "absent label": ([{"y": None}], "y", "0.csv has no such column", "", True),
    "absent id": ([{"id": None}], "id", "0.csv has no such column", "", True),
    "undescribed": (
        [{"bmi": ["20.5", "21", "22", "23"]}],
        "bmi",
        "not described",
        '[columns.bmi]\nkind = "numeric"',
        True,
    ),
    "unknown": ([{"sex": ["f", "w", "x", "m"]}], "sex", "2 of 4 cells are none of the categories", "", False),
    "unknown, with the line": ([{"sex": ["f", "w", "x", "m"]}], "sex", 'merge = { OTHER = "f" }', "", False),
    "missing": (
        [{"sex": ["f", "", "NA", "m"]}],
        "sex",
        "2 of 4 cells are missing",
        'missing = "category"',
        False,
    ),
    "missing number": (
        [{"age": ["", "1", "2", "3"]}],
        "age",
        "count as the middle",
        'missing = "indicator"',
        False,
    ),
    "all missing": ([{"age": ["", "", "", ""]}], "age", "no cell holds anything", 'kind = "ignore"', False),
    "units": (
        [{"age": ["10 y", "1", "2", "3"]}],
        "age",
        "1 of 4 cells are text that is no number",
        "",
        False,
    ),
    "dates": (
        [{"born": ["1.1.2000", *GOOD["born"][1:]]}],
        "born",
        "1 of 4 cells are no date as %Y-%m-%d, and count as missing: there are %Y-%m-%d and %d.%m.%Y",
        "",
        False,
    ),
    "dates in another way": (
        [{"born": ["1.1.2000", "31.1.2000", "2.3.1999", "4.4.1950"]}],
        "born",
        "4 of 4 cells are no date as %Y-%m-%d, and count as missing.",
        'format = "%d.%m.%Y"',
        False,
    ),
    "outside": ([{"age": ["101", "1", "2", "-3"]}], "age", "2 of 4 cells lie outside", "", False),
    "labels": ([{"y": ["no", "", "maybe", "yes"]}], "y", "2 of 4 labels are no class", "", False),
    "no label": ([{"y": ["0", "1", "0", "1"]}], "y", "4 of 4 labels are no class", "", True),
    "no label of a file": (
        [{}, {"y": ["0", "1", "0", "1"], "id": list("abcd")}],
        "y",
        "and as wrong in the score; of 1.csv no label is known",
        "",
        True,
    ),
    "no id": ([{"id": ["1", "", "", "4"]}], "id", "2 of 4 records have no id", "", False),
    "two silos": (
        [{}, {"id": ["4", "5", "6", "7"]}],
        "id",
        "1 of 7 persons have records in more than one",
        "",
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_problem_is_found_with_its_cure(name: str) -> None:
    changes, column, what, write, must = CASES[name]
    found = [one for one in problems(*changes) if one.column == column]
    assert len(found) == 1
    assert what in found[0].what
    assert found[0].write.startswith(write)
    assert bool(found[0].write) == bool(write)
    assert found[0].must == must


def test_all_problems_come_at_once_and_those_to_mend_first() -> None:
    changes = [change for case in CASES.values() for change in case[0]]
    found = problems(*changes)
    assert len({(one.column, one.what) for one in found}) == len(found)
    assert {one.column for one in found} == {"age", "bmi", "sex", "born", "y", "id", "alter"}
    musts = [one.must for one in found]
    assert musts == sorted(musts, reverse=True)


def test_counts_are_by_file() -> None:
    (one,) = problems(
        {"age": ["", "", "1", "2"]}, {"id": list("5678")}, {"age": ["", "1", "2", "3"], "id": list("abcd")}
    )
    assert "3 of 12 (0.csv 2, 2.csv 1) cells are missing" in one.what


def test_what_a_description_says_of_missing_cells_is_no_problem() -> None:
    text = SPEC.to_toml().replace("upper = 100.0", 'upper = 100.0\nmissing = "indicator"', 1)
    assert problems({"age": ["", "", "1", "2"]}, spec=ColumnsSpec.from_toml(text)) == []


def test_without_a_description_all_of_it_is_proposed() -> None:
    found = problems({}, spec=ColumnsSpec())
    assert {one.column for one in found} == {"age", "sex", "born", "y"}
    assert all(one.must and one.write for one in found)


def test_numbers_without_bounds_are_an_answer_where_a_moment_can_be_stated() -> None:
    said = 'A number that nobody can bound is kind = "unbounded"'
    assert all(said in one.what for one in problems({}, spec=ColumnsSpec(), regression=True))
    assert not any(said in one.what for one in problems({}, spec=ColumnsSpec()))


def test_labels_must_fit_the_task() -> None:
    (one,) = problems({}, regression=True)
    assert "described by classes: it is for `--task classification`" in one.what
    assert '[label]\nkind = "numeric"' in one.write


def test_silos_may_be_a_column() -> None:
    frame: dict[str, list[Any] | None] = {"ward": ["a", "a", "b", "b"], "id": ["1", "2", "2", "3"]}
    (one,) = problems(frame, silo_column="ward")
    assert "1 of 3 persons" in one.what
