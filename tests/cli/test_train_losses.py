"""`tacit train --loss`: from flags or TOML to scores, models, predictions and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.cli.forms import FILES, OUTPUTS
from tacit.ledger import Ledger, ledger_path
from tests.jobs.tables import SILOS, write_charges, write_patients

FLAGS = "--silo-column site --epsilon 4 --delta 1e-4 --seed 1 --rounds 12 --out runs".split()  # noqa: SIM905


@pytest.fixture
def charges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_charges(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("flags", "metric", "loss"),
    [
        ("--loss quantile --quantile 0.9", "pinball", {"name": "quantile", "quantile": 0.9}),
        ("--loss absolute --smoothing 500", "mae", {"name": "absolute", "smoothing": 500.0}),
        ("--loss huber --threshold 5e3", "mae", {"name": "huber", "threshold": 5000.0}),
        ("--loss poisson", "deviance", {"name": "poisson"}),
        ("--loss squared", "rmse", {"name": "squared"}),
        ("", "rmse", {"name": "squared"}),
    ],
)
def test_each_loss_trains_shows_and_predicts(
    flags: str, metric: str, loss: dict[str, Any], charges: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "train",
        charges.name,
        "--label",
        "charges",
        "--task",
        "regression",
        *flags.split(),
        *FLAGS,
    ]
    preview = told(capsys, *words, "--dry-run")
    msgspec.convert(preview, OUTPUTS["train --dry-run"])
    assert preview["loss"] == loss
    strong = ["--trust", "central", "--epsilon", "50", "--rounds", "150"]
    found = told(capsys, *words, *strong, "--name", "r")
    msgspec.convert(found, OUTPUTS["train"])
    assert found["loss"] == loss
    for one in found["results"]:
        assert one[metric] == one["scores"]["score"]
    # Charges are linear in age and body mass, and there is little noise.
    assert found["results"][0][metric] < 0.7 * found["results"][0]["scores"]["baseline"]
    shown = told(capsys, "model", "show", "runs/r")
    msgspec.convert(shown, OUTPUTS["model show"])
    assert (shown["loss"], shown["link"] is None) == (loss, metric != "deviance")
    assert main(["predict", "runs/r", charges.name, "--out", "new.csv"]) == 0
    predicted = pd.read_csv("new.csv").prediction
    assert np.isfinite(predicted).all()
    if metric == "deviance":
        assert predicted.between(0, 60_000).all()
    msgspec.convert(json.loads(Path("runs/r/model.json").read_text()), FILES["model.json"])
    msgspec.convert(json.loads(Path("runs/r/metrics.json").read_text()), FILES["metrics.json"])
    capsys.readouterr()
    assert main(["account", "verify", "runs/r/statement.json"]) == 0
    notes = json.loads(Path("runs/r/statement.json").read_text())["notes"]
    assert any(note.startswith("The loss is ") for note in notes) == (loss != {"name": "squared"})


def test_a_job_in_toml_says_the_same(charges: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.toml").write_text(
        f'data = "{charges.name}"\nlabel = "charges"\ntask = "regression"\nsilo_column = "site"\nseed = 1\n'
        'epsilon = 4.0\ndelta = 1e-4\nrounds = 12\nloss = "quantile"\nquantile = 0.9\nsmoothing = 0.0\n'
    )
    found = told(capsys, "train", "job.toml", "--out", "runs", "--name", "r")
    assert found["loss"] == {"name": "quantile", "quantile": 0.9, "smoothing": 0.0}
    assert found["results"][0]["algorithm"] in ("p-sgd", "ftrl")
    again = told(capsys, "train", "runs/r/job.toml", "--name", "s")
    assert again["results"][0]["pinball"] == found["results"][0]["pinball"]


def test_a_support_vector_machine_has_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = write_patients(tmp_path)
    words = ["train", table.name, "--label", "ill", "--loss", "hinge", *FLAGS, "--trust", "central"]
    found = told(capsys, *words, "--name", "r")
    msgspec.convert(found, OUTPUTS["train"])
    assert found["results"][0]["scores"]["log_loss"] is None
    assert main(["predict", "runs/r", table.name, "--out", "new.csv"]) == 0
    new = pd.read_csv("new.csv")
    assert not [name for name in new.columns if name.startswith("probability")]
    np.testing.assert_array_equal(new.score > 0, new.prediction == "ill")


def test_another_loss_is_no_resumption_and_costs_nothing(
    charges: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("charges.ledgers")
    limit = ["--epsilon", "8", "--delta", "1e-3"]
    assert main(["ledger", "create", str(folder), "--silos", ",".join(SILOS), *limit]) == 0
    private = [word for word in FLAGS if word not in ("--seed", "1")]
    words = ["train", charges.name, "--label", "charges", "--task", "regression", *private]
    words += ["--ledger", str(folder)]
    assert main([*words, "--loss", "quantile", "--quantile", "0.9", "--name", "r"]) == 0

    def spent() -> list[float]:
        found = []
        for silo in SILOS:
            with Ledger.open(ledger_path(folder, silo)) as ledger:
                found.append(ledger.spent().epsilon)
        return found

    before = spent()
    assert before == pytest.approx([4.0] * 3, rel=0.02)
    for flags in ("--loss quantile --quantile 0.8", "--loss absolute", "--loss poisson", ""):
        capsys.readouterr()
        assert main([*words, *flags.split(), "--name", "r", "--out", "others"]) != 0
        err = capsys.readouterr().err
        assert err.startswith("tacit: ")
        assert "plan" in err
    assert spent() == before


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--loss hubr", "loss must be one of auto, logistic, hinge, squared, huber"),
        ("--loss hinge", "got 'hinge'; the label of 'hinge' has task='classification'"),
        ("--quantile 0.9", "quantile is for loss='quantile', got 0.9 with loss='squared'"),
        ("--loss quantile --quantile 90", "quantile must be in (0, 1), got 90.0"),
        ("--loss huber --threshold 0", "threshold must be a finite number > 0, got 0.0"),
        ("--loss poisson --algorithm output-perturbation", "got 'poisson'; the algorithm 'auto' takes every"),
        ("--loss absolute --smoothing 0 --algorithm lan", "'absolute' has a kink: give it a smoothing"),
    ],
)
def test_what_does_not_fit_is_one_line(
    flags: str, says: str, charges: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", charges.name, "--label", "charges", "--task", "regression", "--trust", "central"]
    assert main([*words, *FLAGS, *flags.split()]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err
    assert not Path("runs").exists()


def test_bounds_below_zero_are_none_of_counts(charges: Path, capsys: pytest.CaptureFixture[str]) -> None:
    description = charges.with_name("charges.columns.toml")
    description.write_text(description.read_text().replace("lower = 0\n", "lower = -5\n", 1))
    words = [
        "train",
        charges.name,
        "--label",
        "charges",
        "--task",
        "regression",
        *FLAGS,
        "--loss",
        "poisson",
    ]
    assert main(words) == 2
    assert "the bounds of its label" in capsys.readouterr().err
