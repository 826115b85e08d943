"""What a new user mistypes: one line with argument, value and what is allowed, and nothing is spent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.data import sidecar_path

CLINICS = Path(__file__).parents[1] / "data" / "clinics.csv"
TABLE = ["train", "--data", "t.csv", "--label", "y"]
MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "a word for delta": ([*TABLE, "--delta", "small"], 2, "delta must be a number or 'auto', got 'small'."),
    "a word for rounds": ([*TABLE, "--rounds", "many"], 2, "rounds must be a number or 'auto', got 'many'."),
    "a word for a batch": ([*TABLE, "--batch", "big"], 2, "batch must be a number or 'full', got 'big'."),
    "half a round": ([*TABLE, "--rounds", "2.5"], 2, "rounds must be a whole number or "),
    "a misspelt task": (
        [*TABLE, "--task", "regresion"],
        2,
        "task must be one of classification, regression, got 'regresion'; did you mean 'regression'?",
    ),
    "a misspelt column of persons": (
        [*TABLE, "--person", "patent"],
        3,
        "person_column (--person) must be one of site, patient, age, bmi, blood_pressure, smoker, y, got "
        "'patent'; did you mean 'patient'?",
    ),
    "a person who is a label": (
        [*TABLE, "--person", "y"],
        3,
        "column 'y' cannot be both label and person_column (--person).",
    ),
    "neighbours of elsewhere": (
        [*TABLE, "--neighbours", "add-remove"],
        2,
        "neighbours must be one of replace-one, zero-out, got 'add-remove'",
    ),
    "noise of elsewhere": (
        [*TABLE, "--noise", "laplace"],
        2,
        "noise must be one of auto, gaussian, discrete-gaussian, got 'laplace'",
    ),
    "a number of silos": (
        [*TABLE, "--silos", "5"],
        2,
        "iid:N, mixture:P, dirichlet:N:ALPHA, sorted:N, got '5'; did you mean 'iid:5'?",
    ),
    "too many participants": (
        [*TABLE, "--silo-column", "site", "--participants", "9"],
        2,
        "participants must be at most the 4 silos of the data, got 9.",
    ),
    "too large a batch": (
        [*TABLE, "--silo-column", "site", "--batch", "500"],
        2,
        "batch must be at most the 148 units of the smallest silo, got 500.",
    ),
    "a hidden size": (
        [*TABLE, "--silo-column", "site", "--batch", "500", "--neighbours", "zero-out", "--delta", "1e-6"],
        2,
        "batch must be at most the units of the smallest silo, got 500.",
    ),
    "a label of another task": (
        ["train", "--data", "t.csv", "--label", "smoker", "--task", "regression"],
        3,
        "label column 'smoker' is described with classes, which do not fit the task regression.",
    ),
    "a silo of one record": (
        ["train", "--data", "t.csv", "--label", "y", "--silo-column", "bmi"],
        3,
        "too small to hold out a share test_fraction = 0.2 of its records; give another share",
    ),
    "a spreadsheet": (
        ["train", "--data", "t.xlsx", "--label", "y"],
        3,
        "t.xlsx is a spreadsheet: open it and",
    ),
    "a folder": (
        ["train", "--data", "./f", "--label", "y"],
        3,
        "the folder f holds no table; the names of tables end in .csv",
    ),
    "no ledger": (["ledger", "show", "none"], 5, "`tacit ledger create` makes the ledger of a new data set."),
    "a table for a noise function": (
        ["vote", "certify", "t.csv"],
        1,
        "the artefact t.csv is refused: a noise function must be JSON as written by tacit",
    ),
    "a text in a job": (["train", "job.toml"], 2, "epsilon must be a number, got 'two'."),
    "a text for a whole number": (["train", "seed.toml"], 2, "seed must be a whole number, got 'x'."),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_a_mistake_is_one_line_that_says_what_is_allowed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CLINICS, "t.csv")
    shutil.copy(sidecar_path(CLINICS), "t.columns.toml")
    Path("job.toml").write_text('epsilon = "two"\n')
    Path("seed.toml").write_text('seed = "x"\n')
    Path("f").mkdir()
    before = sorted(tmp_path.rglob("*"))
    argv, code, said = MISTAKES[name]
    assert main(argv) == code
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if not line.startswith("warning: ")]
    assert captured.out == ""
    assert len(errors) == 1
    assert said in errors[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_may_have_a_loud_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CLINICS, "T.CSV")
    shutil.copy(sidecar_path(CLINICS), "T.columns.toml")
    assert main(["train", "--data", "T.CSV", "--label", "y", "--rounds", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("T.CSV: 1 silo with 614 records")
