"""`tacit data scaffold` and `tacit data check`, on files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tacit.cli import main
from tests.jobs.tables import write_patients


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_patients(tmp_path, public=False).relative_to(tmp_path)


SCAFFOLD = "data scaffold patients.csv --label ill --person patient --silo-column site"


def test_from_files_to_a_description_that_training_takes(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(SCAFFOLD.split()) == 0
    said, then = capsys.readouterr().out.splitlines()
    assert said == "patients.columns.toml: 5 gaps to fill in, for 5 columns."
    command = shlex.split(then.removeprefix("then: tacit "))
    assert main(command) == 3
    assert "columns.age.lower, columns.age.upper" in capsys.readouterr().err
    text = Path("patients.columns.toml").read_text()
    for gap, value in (
        ('classes = ["<fill in>"]', 'classes = ["well", "ill"]'),
        ('lower = "<fill in>"', "lower = 10"),
        ('upper = "<fill in>"', "upper = 100"),
    ):
        text = text.replace(gap, value)
    Path("patients.columns.toml").write_text(text)
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 file, 180 records: 0 to mend, 0 to know."
    trained = "train --data patients.csv --label ill --person patient --silo-column site"
    assert main([*trained.split(), "--rounds", "5", "--seed", "1"]) == 0
    assert "read off" not in capsys.readouterr().err


def test_nothing_is_written_over(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("patients.columns.toml").write_text("mine")
    assert main(SCAFFOLD.split()) == 2
    assert "not there yet" in capsys.readouterr().err
    assert Path("patients.columns.toml").read_text() == "mine"


def test_a_folder_and_a_pattern_are_described_where_training_looks(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wards").mkdir()
    for name in ("north", "south"):
        Path(f"wards/{name}.csv").write_bytes(table.read_bytes())
    assert main(["data", "scaffold", "wards", "--label", "ill", "--person", "patient"]) == 0
    said, then = capsys.readouterr().out.splitlines()
    assert said.startswith("wards/columns.toml: ")
    assert then == "then: tacit data check wards"
    assert main(["data", "check", "wards/*.csv", "--label", "ill"]) == 3
    assert "columns.toml" in capsys.readouterr().err  # found, and refused for its gaps
    assert main(["data", "scaffold", "wards/*.csv", "--label", "ill", "--out", "draft.toml"]) == 0
    assert "check 'wards/*.csv' --columns draft.toml" in capsys.readouterr().out


def test_all_problems_of_all_files_are_said_at_once(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.csv").write_text("age,bmi\n1\n")
    arguments = ["data", "check", str(table), "broken.csv", "none.csv", "--label", "ill"]
    assert main(arguments) == 3
    out = capsys.readouterr().out
    for part in (
        "mend: broken.csv: broken.csv, line 2: 1 fields",
        "mend: none.csv: none.csv is not there",
        "mend: age: it is not described",
        "      [columns.age]",
        "mend: ill: the label is not described",
    ):
        assert part in out
    assert main([*arguments, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1
    assert found["records"] == 180
    assert {one["column"] for one in found["problems"]} >= {"broken.csv", "none.csv", "age", "ill"}
    assert all(set(one) == {"column", "what", "write", "must"} for one in found["problems"])


def test_cells_of_another_encoding_are_told_to_the_owner_and_not_by_training(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = table.read_text().replace("site", "place", 1)
    spec = "\n".join(
        [
            '[label]\nkind = "classes"\nclasses = ["well", "ill"]\ncolumn = "ill"',
            '[columns.age]\nkind = "numeric"\nlower = 10\nupper = 100',
            '[columns.bmi]\nkind = "numeric"\nlower = 10\nupper = 50',
            '[columns.patient]\nkind = "ignore"',
            '[columns.place]\nkind = "categorical"\ncategories = ["Köln", "Bonn"]',
        ]
    )
    Path("patients.columns.toml").write_text(spec, encoding="utf-8")
    said = {}
    for encoding in ("utf-8", "cp1252"):
        name = text.splitlines()[1].split(",")[text.splitlines()[0].split(",").index("place")]
        table.write_bytes(text.replace(name, "Köln").encode(encoding))
        assert main(["data", "check", "patients.csv"]) == 0
        checked = capsys.readouterr().out
        assert ("cells of 'place'" in checked and "WINDOWS-1252 would fit" in checked) == (
            encoding == "cp1252"
        )
        assert main(["train", "patients.csv", "--silos", "iid:3", "--rounds", "2", "--dry-run"]) == 0
        said[encoding] = capsys.readouterr()
    assert said["utf-8"] == said["cp1252"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("data check patients.csv", "label must be given"),
        ("data check patients.csv --label ill --task guess", "task must be"),
        ("data scaffold patients.csv --label sick", "sick"),
        ("data scaffold patients.csv --label ill --person nobody", "nobody"),
        ("data scaffold patients.csv --label ill --out nowhere/columns.toml", "a folder that exists"),
        ("data scaffold none.csv --label ill", "none.csv is not there"),
    ],
)
def test_mistakes_are_one_line_each(
    arguments: str, message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) != 0
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("patients.columns.toml").exists()
