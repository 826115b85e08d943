"""`tacit train --moment`: tables without bounds, from flags to models, statements and predictions."""

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

WORDS = "train t.csv --label y --task regression --epsilon 2 --delta 1e-4 --algorithm minibatch --out runs"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table that nothing describes, with two wild records."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    X = rng.pareto(4.5, size=(600, 2)) * rng.choice([-1, 1], size=(600, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["y"] = X @ [1.0, -0.5] + 0.5
    frame = frame.astype(str)
    frame.loc[3], frame.loc[9] = ["1e400", "text", "2"], ["1e200", "", "-1e308"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def told(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_table_without_description_trains_predicts_and_is_verified(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = "--moment 4:10 --clip 4 --rounds 40"
    preview = told(capsys, f"{WORDS} {moment} --dry-run --silos iid:2")
    msgspec.convert(preview, OUTPUTS["train --dry-run"])
    assert (preview["moment"], preview["regularization"]) == ("4:10", {"domain": "ball:5"})
    assert preview["runs"][0]["means"][0]["clip"] == 4.0
    told(capsys, "ledger create t.ledger --silos-from t.csv --epsilon 9 --delta 1e-3")
    found = told(capsys, f"{WORDS} {moment} --name r")
    msgspec.convert(found, OUTPUTS["train"])
    with Ledger.open(ledger_path(Path("t.ledger"), "t")) as ledger:
        assert ledger.spent().epsilon == pytest.approx(2.0)
    assert found["results"][0]["epsilon"] == 2.0
    msgspec.json.decode(Path("runs/r/metrics.json").read_bytes(), type=FILES["metrics.json"])
    assert main(["account", "verify", "runs/r/statement.json"]) == 0
    statement = json.loads(Path("runs/r/statement.json").read_text())
    assert any("order 4 is stated to be at most 10" in note for note in statement["notes"])
    assert any("are numbers (a, b)" in note for note in statement["notes"])
    shown = told(capsys, "model show runs/r")
    told(capsys, "predict runs/r t.csv --out p.csv")
    predicted = pd.read_csv("p.csv").prediction
    frame = pd.read_csv("t.csv").iloc[10:].astype(float)
    weights = {name: one["weight"] for name, one in shown["weights"].items()}
    wanted = frame.a * weights["a"] + frame.b * weights["b"] + shown["intercept"]
    np.testing.assert_allclose(predicted[10:], wanted, rtol=1e-9)
    assert predicted[[3, 9]].isna().all()  # a record that counted as zero has no prediction either
    assert main(["predict", "runs/r", "t.csv", "--out", "p.csv"]) == 0
    assert "there is no prediction" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("trust", ["local", "central", "aggregate", "shuffle", "none"])
def test_every_trust_model_trains(trust: str, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silos = "--silos iid:2" if trust in ("aggregate", "shuffle") else ""
    found = told(capsys, f"{WORDS} --moment 2.5:4 --rounds 2 --trust {trust} {silos} --seed 0")
    assert np.isfinite(found["results"][0]["rmse"])


def test_help_and_report_speak_of_moments(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    assert "--moment" in capsys.readouterr().out
    for more in ("--dry-run", ""):
        assert main(f"{WORDS} --moment 4:10 --rounds 2 --name q --seed 0 {more}".split()) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "if it is not, the model is worse, and the guarantee the same" in said
        assert "Columns that nothing describes are numbers (a, b)" in said
    assert "stated to be at most 10" in Path("runs/q/report.html").read_text()
    Path("job.toml").write_text(
        'data = "t.csv"\nlabel = "y"\ntask = "regression"\nmoment = "4:10"\nrounds = 2\nseed = 0\n'
        'epsilon = 2.0\ndelta = 1e-4\nname = "w"\nalgorithm = "minibatch"\nout = "runs"\n'
    )
    assert main(["train", "job.toml"]) == 0
    first, second = (json.loads(Path(f"runs/{name}/model.json").read_text()) for name in "qw")
    assert first["weights"] == second["weights"]
