"""`tacit predict`: new records in, scored records out, for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.jobs import load_model
from tests.jobs.tables import write_patients


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("trained")
    table = write_patients(folder)
    arguments = (
        f"train --data {table} --label ill --silo-column site --seed 1 --rounds 10 --out {folder} --name ward"
    )
    assert main(arguments.split()) == 0
    return folder / "ward"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """New records: other columns, another order, cells of all kinds."""
    path = tmp_path / "new.csv"
    path.write_text("bmi,id,age\n31,007,70\n, 8,17\n20,9,x\n")
    return path


def scored(run: Path, new: Path, out: Path, *more: str) -> int:
    return main(["predict", str(run), str(new), "--out", str(out), *more])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_every_record_gets_its_label_and_probabilities(
    run: Path, new: Path, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"scored{suffix}"
    assert scored(run, new, out) == 0
    found = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, dtype={"id": str})
    assert found.columns.tolist() == ["id", "prediction", "probability_well", "probability_ill"]
    assert found.id.str.strip().tolist() == ["007", "8", "9"]
    model = load_model(run)
    middle = pd.DataFrame({"age": [70, 18, 54], "bmi": [31, 32.5, 20]})
    assert found.prediction.tolist() == model.predict(middle).tolist()
    np.testing.assert_allclose(found.probability_ill, model.predict_proba(middle)["ill"], rtol=0, atol=6e-7)
    printed = capsys.readouterr().out
    assert "3 records" in printed
    assert "a missing one counts as its column says, or as the middle of the bounds" in " ".join(
        printed.split()
    )


def test_code_that_the_model_is_not_of_is_said_not_to_be_used(
    run: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scored(run, new, tmp_path / "scored.csv", "--module", "nowhere.nets:Net") == 0
    assert "note: --module nowhere.nets:Net is not used: the model is linear." in capsys.readouterr().err
    assert main(["model", "show", str(run), "--module", "nowhere.nets:Net"]) == 0
    assert "nowhere.nets:Net is not used" in capsys.readouterr().err


def test_programs_read_counts_of_what_did_not_fit(
    run: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scored(run, new, tmp_path / "scored.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["version"] == 1
    assert found["records"] == 3
    assert found["statement"] == load_model(run).statement_digest
    assert found["unfit"] == {
        "age": {"missing": 1, "unknown": 0, "outside": 1},
        "bmi": {"missing": 1, "unknown": 0, "outside": 0},
    }


def test_records_that_all_fit_need_no_note(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.csv").write_text("age,bmi\n40,30\n")
    assert scored(run, tmp_path / "new.csv", tmp_path / "scored.csv") == 0
    assert "note:" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("scored.xlsx", "out must end with one of .csv, .csv.gz, .parquet"),
        ("nowhere/scored.csv", "out must be a file in a folder that exists"),
        ("new.csv", "out must be another file than the table"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused(
    out: str, message: str, run: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = new.read_bytes()
    assert scored(run, new, tmp_path / out) == 2
    assert message in capsys.readouterr().err
    assert new.read_bytes() == before


def test_mistakes_are_one_line_each(
    run: Path, new: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scored.csv"
    (tmp_path / "ages.csv").write_text("age\n4\n")
    for path, table, message in (
        (tmp_path / "none", new, "cannot be read: No such file or directory"),
        (run, tmp_path / "none.csv", "none.csv"),
        (run, tmp_path / "ages.csv", f"{tmp_path / 'ages.csv'}: the table has no such column: "),
        (run / "job.toml", new, "is not a model of tacit"),
    ):
        assert scored(path, table, out) != 0
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not out.exists()
