"""From four hospitals' files to scored records: four commands, no pooled file, at most ten values."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.cli import main
from tacit.data import FILL_IN

WARDS = ("east", "north", "south", "west")


def write_wards(folder: Path) -> None:
    """Write a file per hospital, as these are: repeated visits, gaps, dates, ids, notes, two dialects."""
    rng = np.random.default_rng(12)
    for k, ward in enumerate(WARDS):
        n = 900
        person = rng.integers(0, 500, n)
        age, bmi = rng.integers(18, 95, 500)[person], rng.normal(27, 5, n).round(1)
        risk = (age - 55) / 12 + (bmi - 27) / 6 + rng.normal(size=n)
        frame = pd.DataFrame(
            {
                "patient_id": [f"{ward[0].upper()}{one:05d}" for one in person],
                "admitted": np.datetime64("2024-01-01") + rng.integers(0, 700, n),
                "age": np.where(rng.random(n) < 0.05, np.nan, age),
                "bmi": bmi,
                "sex": rng.choice(["f", "m", ""], n, p=[0.5, 0.47, 0.03]),
                "note": [f"seen by doctor {one}" for one in rng.integers(0, 999, n)],
                "readmitted": np.where(risk > 0, "yes", "no"),
            }
        )
        where = folder / f"{ward}.csv"
        separator, decimal = (";", ",") if k % 2 else (",", ".")
        frame.to_csv(where, index=False, sep=separator, decimal=decimal)


FILLED = ('["no", "yes"]', "0", "5", "18", "95", "12", "50", '["f", "m"]')
"""What a person writes into the gaps, from top to bottom: classes, years, ages, body mass indices, sexes."""


def fill_in(path: Path) -> None:
    """Fill the gaps as a person would."""
    head, body = path.read_text().split("version = 1\n")
    for value in FILLED:
        gap = f'["{FILL_IN}"]' if value.startswith("[") else f'"{FILL_IN}"'
        body = body.replace(gap, value, 1)
    path.write_text(f"{head}version = 1\n{body}")


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_four_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wards").mkdir()
    write_wards(Path("wards"))

    def run(command: str) -> str:
        assert main(shlex.split(command)) == 0
        return capsys.readouterr().out

    said = run("data scaffold 'wards/*.csv' --label readmitted --person patient_id --out columns.toml")
    assert f"columns.toml: {len(FILLED)} gaps to fill in" in said
    fill_in(Path("columns.toml"))
    said = run("data check 'wards/*.csv' --columns columns.toml")
    assert "4 files, 3,600 records: 0 to mend, 2 to know." in said
    found = json.loads(run("train 'wards/*.csv' --columns columns.toml --epsilon 2 --name first --json"))
    (result,) = found["results"]
    assert "replacing one person" in result["guarantee"]
    assert result["epsilon"] == 2
    assert set(json.loads(Path("runs/first/statement.json").read_text())["data"]["sizes"]) == set(WARDS)

    new = pd.read_csv("wards/east.csv", dtype=str).drop(columns="readmitted").sample(frac=1, random_state=1)
    new.to_csv("new.csv", index=False, columns=sorted(new.columns))
    run("predict first new.csv --out scored.csv")
    scored = pd.read_csv("scored.csv")
    assert scored.patient_id.tolist() == new.patient_id.tolist()
    assert scored.prediction.tolist() == tacit.load("runs/first").predict(new).tolist()
    truth = pd.read_csv("wards/east.csv").readmitted[new.index]
    assert (scored.prediction.to_numpy() == truth.to_numpy()).mean() > 0.65
    assert tacit.load("runs/first").coef_["age"] > 0
    assert run("account verify runs/first/statement.json").startswith("verified: 4 guarantees")
