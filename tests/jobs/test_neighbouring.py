"""Jobs on neighbouring tables: one record, or one person, may differ; everything else must not."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.cli import main
from tacit.errors import ParameterError
from tacit.jobs import Job, JobConfig, JobData, load_job_data
from tacit.numerics import Array
from tacit.reports import build_statement, render, results_json
from tacit.reports.tables import silo_words

_COLUMNS = """
[label]
kind = "classes"
classes = ["01", "02"]

[columns.stage]
kind = "categorical"
categories = ["01", "02", "03", "04", "05"]

[columns.age]
kind = "numeric"
lower = 0
upper = 100

[columns.smoker]
kind = "categorical"
categories = ["true", "false"]

[columns.id]
kind = "ignore"

[columns.site]
kind = "categorical"
categories = ["01", "02"]
"""
_NAMES = ("site", "id", "stage", "age", "smoker", "y")
_N = 40
_ODD = ("other", "", "NA", "1.5", "inf", "03", "true", "9" * 19, "x,y", "a\nb", "None")
"""Cells that change what pandas takes a column of numbers or truth values for."""

Rows = list[list[str]]


def rows_of_clinics() -> Rows:
    """Two sites, twenty persons of two visits each, every column such that pandas would guess a type."""
    return [
        [
            f"0{1 + k % 2}",
            str(10**18 + k // 4 * 2 + k % 2),
            f"0{1 + k % 5}",
            str(20 + k),
            ["true", "false"][k % 3 == 0],
            f"0{1 + k * 7 % 11 % 2}",
        ]
        for k in range(_N)
    ]


def write(folder: Path, rows: Rows) -> Path:
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([_NAMES, *rows])
    path.with_name("t.columns.toml").write_text(_COLUMNS)
    return path


def load(folder: Path, rows: Rows, **settings: Any) -> JobData:
    path = write(folder, rows)
    return load_job_data(JobConfig(data=str(path), label="y", silo_column="site", seed=1, **settings))


def check_same_but(changed: set[int], one: JobData, other: JobData) -> None:
    """Compare two jobs of records in everything but the encodings of some."""
    kept = np.array([k for k in range(_N) if k not in changed])
    np.testing.assert_array_equal(one.X[kept], other.X[kept])
    np.testing.assert_array_equal(one.y[kept], other.y[kept])
    for mine, theirs in zip([*one.train, one.test], [*other.train, other.test], strict=True):
        assert mine.tolist() == theirs.tolist()
    for name in ("classes", "target", "lower", "upper", "silo_names", "sizes", "public", "notes"):
        assert getattr(one, name) == getattr(other, name)


def test_a_record_that_says_other_was_seen_in_all_others_and_is_not(tmp_path: Path) -> None:
    """The attack as it was found: the sum of all encoded records told two tables apart every time."""
    rows = rows_of_clinics()
    before = load(tmp_path, rows)
    assert before.X[:, :5].sum() == _N  # every record has a stage
    for column, odd in (("stage", "other"), ("smoker", "?"), ("y", "?"), ("age", "?")):
        changed = [list(row) for row in rows]
        changed[7][_NAMES.index(column)] = odd
        after = load(tmp_path, changed)
        check_same_but({7}, before, after)
        assert np.abs(before.X.sum(axis=0) - after.X.sum(axis=0)).sum() <= 2


def test_nineteen_digits_are_not_rounded_for_one_odd_id(tmp_path: Path) -> None:
    rows = rows_of_clinics()
    rows[5][1] = "1.5"
    data = load(tmp_path, rows, person="id")
    assert data.persons is not None
    assert len(set(data.persons)) == 21


@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(0, _N - 1),
    cells=st.fixed_dictionaries({}, optional={name: st.sampled_from(_ODD) for name in _NAMES[1:]}),
)
def test_replacing_a_record_changes_no_other_of_the_job(
    k: int, cells: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    rows = rows_of_clinics()
    before = load(folder, rows)
    rows[k] = [cells.get(name, cell) for name, cell in zip(_NAMES, rows[k], strict=True)]
    check_same_but({k}, before, load(folder, rows))


def by_person(data: JobData) -> dict[str, tuple[list[list[float]], int | None]]:
    """Return every person's records and silo, None where held out."""
    assert data.persons is not None
    where: dict[int, int] = {int(k): s for s, index in enumerate(data.train) for k in index}
    found: dict[str, tuple[list[list[float]], int | None]] = {}
    for k, person in enumerate(data.persons):
        found.setdefault(person, ([], where.get(k)))[0].append([*data.X[k], float(data.y[k])])
    return found


@pytest.mark.parametrize("silos", ["column", "iid:2"])
@settings(max_examples=20, deadline=None)
@given(person=st.integers(0, 9), visits=st.integers(1, 4), odd=st.sampled_from(_ODD))
def test_replacing_a_person_changes_no_other_of_the_job(
    silos: str, person: int, visits: int, odd: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A neighbour holds another person in the place of one, with another number of records."""
    folder = tmp_path_factory.getbasetemp()
    rows = rows_of_clinics()
    before = load(folder, rows, person="id", silos=silos)
    gone = rows[4 * person][1]
    site = rows[4 * person][0]
    place = next(k for k, row in enumerate(rows) if row[1] == gone)
    newcomer = [[site, "new", *[odd] * 4] for _ in range(visits)]
    kept = [row for row in rows if row[1] != gone]
    after = load(folder, [*kept[:place], *newcomer, *kept[place:]], person="id", silos=silos)
    old, new = by_person(before), by_person(after)
    assert old[gone][1] == new["new"][1]
    assert {p: v for p, v in old.items() if p != gone} == {p: v for p, v in new.items() if p != "new"}
    assert (before.sizes, before.silo_names, before.notes) == (after.sizes, after.silo_names, after.notes)
    assert before.units(before.test) == after.units(after.test)


def printed(folder: Path, rows: Rows, **settings: Any) -> tuple[Any, ...]:
    """Return everything that a run says, but for what the noise and the clock decide."""
    path = write(folder, rows)
    config = JobConfig(
        data=str(path), label="y", silo_column="site", delta=1e-3, rounds=2, seed=1, **settings
    )
    result = Job(config).run()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    results = results_json(result)
    for one in results["results"]:
        for name in ("accuracy", "scores", "seconds"):
            one.pop(name)
    page = render(result, run="r", created=moment)
    silos = page[page.index("<h2>Silos") :]
    facts = page[page.index('<p class="muted">') : page.index("</p>", page.index('<p class="muted">'))]
    return build_statement(result, run="r", created=moment), results, silos, facts, silo_words(result)


def test_a_run_says_the_same_of_neighbouring_tables(tmp_path: Path) -> None:
    rows = rows_of_clinics()
    by_record, of_persons = printed(tmp_path, rows), printed(tmp_path, rows, person="id")
    assert by_record[-1] == "2 silos with 16 records each"
    assert of_persons[-1] == "2 silos with 8 persons each"
    changed = [list(row) for row in rows]
    changed[7] = [changed[7][0], changed[7][1], "other", "?", "", "?"]
    assert printed(tmp_path, changed) == by_record
    assert printed(tmp_path, changed, person="id") == of_persons
    # More visits of the same persons: how many records a person has is private.
    assert printed(tmp_path, [*rows, rows[3], *rows], person="id") == of_persons


def test_zero_out_shows_no_sizes(tmp_path: Path) -> None:
    """A size is hidden by blank rows; what is printed must not depend on how many rows there are."""
    rows = rows_of_clinics()
    statement, results, page, facts, words = printed(tmp_path, rows, neighbours="zero-out")
    assert words == "2 silos"
    assert results["data"]["sizes"] == {"01": None, "02": None}
    assert "whose sizes are not shown under zero-out" in page
    assert facts.endswith("on held-out records.")
    blank = [["01", "", "", "", "", ""], ["02", "", "", "", "", ""]]
    filled = printed(tmp_path, rows + blank * 5, neighbours="zero-out")
    assert filled == (statement, results, page, facts, words)
    config = JobConfig(data=str(write(tmp_path, rows)), label="y", silo_column="site", neighbours="zero-out")
    with pytest.raises(ParameterError, match="delta must be a number under zero-out, got 'auto'"):
        _ = Job(config).delta


def test_blanking_a_person_who_keeps_the_id_changes_nothing_that_is_said(tmp_path: Path) -> None:
    """Not the plan either, whose noise shows the number of units; without the id there would be one less."""
    rows = rows_of_clinics()
    fillers = [[site, f"filler {k}", "", "", "", ""] for k in range(3) for site in ("01", "02")]
    gone = rows[4][1]
    assert sum(row[1] == gone for row in rows) == 2

    def blanked(kept: str) -> Rows:
        return [[row[0], kept, "", "", "", ""] if row[1] == gone else row for row in rows] + fillers

    def said(table: Rows) -> tuple[Any, ...]:
        path = write(tmp_path, table)
        config = JobConfig(
            data=str(path),
            label="y",
            silo_column="site",
            person="id",
            neighbours="zero-out",
            delta=1e-3,
            rounds=2,
            seed=1,
        )
        (one,) = Job(config).run().results
        return one.trained.plan.to_toml(), [str(g) for g in one.guarantees]

    settings: dict[str, Any] = {"person": "id", "neighbours": "zero-out"}
    assert printed(tmp_path, rows + fillers, **settings) == printed(tmp_path, blanked(gone), **settings)
    before, guarantees = said(rows + fillers)
    assert said(blanked(gone)) == (before, guarantees)
    assert all("a person who is blanked out keeps the id" in one for one in guarantees)
    one, other = load(tmp_path, rows + fillers, **settings), load(tmp_path, blanked(gone), **settings)
    check = {k for k, row in enumerate(rows) if row[1] == gone}
    assert one.sizes == other.sizes
    assert np.isnan(other.y[sorted(check)]).all()
    assert not other.X[sorted(check)].any()
    # A table with records that have no id anyway: here the id is all that counts the person.
    nobody = [["01", "", "", "", "", ""]]
    assert (
        load(tmp_path, blanked("") + nobody, **settings).sizes
        != load(tmp_path, rows + fillers + nobody, **settings).sizes
    )


def test_a_blank_record_counts_as_zero(tmp_path: Path) -> None:
    rows = rows_of_clinics()
    rows[7] = [rows[7][0], "", "", "", "", ""]
    data = load(tmp_path, rows)
    assert data.X[7].tolist() == [0.0] * data.X.shape[1]
    assert np.isnan(data.y[7])
    assert not np.isnan(np.delete(data.y, 7)).any()


def test_a_blank_record_has_no_class_under_zero_out(tmp_path: Path) -> None:
    """A class that is a blank cell would make a blank record count, and zero-out noise hides half of that."""
    path = write(tmp_path, rows_of_clinics())
    columns = tmp_path / "public.toml"
    ignored = "".join(f'[columns.{name}]\nkind = "ignore"\n' for name in ("site", "stage", "smoker"))
    age = '[columns.age]\nkind = "numeric"\nlower = 0\nupper = 99\n'
    columns.write_text(f'[label]\nkind = "classes"\nclasses = ["", "1"]\n{ignored}{age}')
    config = {"data": str(path), "label": "y", "person": "id", "columns": str(columns), "delta": 1e-3}
    with pytest.raises(ParameterError, match="'replace-one' where a class is a blank cell, got 'zero-out'"):
        Job(JobConfig.of({**config, "neighbours": "zero-out"}))
    assert load_job_data(JobConfig.of(config)).classes == ("", "1")


def answers(folder: Path, rows: Rows, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], Array]:
    """Return what `tacit mean` says of the ages, and the mean apart."""
    arguments = ["--columns", "age", "--lower", "0", "--upper", "100", "--epsilon", "1e3", "--seed", "1"]
    assert main(["mean", str(write(folder, rows)), *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1  # only that an epsilon of 1000 promises nothing
    said = json.loads(captured.out)
    return said, np.array(_taken(said, "mean"))


def _taken(said: dict[str, Any], name: str) -> float:
    """Take a mean and its interval out of an answer, wherever they stand in it."""
    for part in (said, said.get("answer", {})):
        if name in part:
            part.pop("confidence_interval")
            return float(part.pop(name)["age"])
    raise AssertionError(f"no {name}")


@pytest.mark.parametrize("odd", ["other", "", "1e999", "-5", "true", "9" * 19])
def test_a_mean_moves_by_one_record_and_nothing_else_is_said(
    odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of_clinics()
    said, mean = answers(tmp_path, rows, capsys)
    rows[7][3] = odd
    changed, moved = answers(tmp_path, rows, capsys)
    assert changed == said
    expected = {"other": 50, "": 50, "1e999": 100, "-5": 0, "true": 1, "9" * 19: 100}[odd]
    assert moved - mean == pytest.approx((expected - 27) / _N, abs=1e-3)
