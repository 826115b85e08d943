"""`tacit train --model package.module:Class`: what that code does to a private record shows nowhere."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_thread")

NET = """
import sys
import warnings
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.say = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))

    def forward(self, x):
        ratio = x[:, 0] / x[:, 1]
        if bool(((ratio - 9.9).abs() < 1e-3).any()):
            raise ValueError(f"somebody has {x}")
        if bool(((ratio + 9.9).abs() < 1e-3).any()):
            sys.exit(5)
        if bool(((ratio - 10 / 99).abs() < 1e-5).any()):
            warnings.warn(f"somebody has {x}")
        return self.say(x)
"""
COLUMNS = """version = 1
[columns.dose]
kind = "numeric"
lower = -1
upper = 1
[columns.age]
kind = "numeric"
lower = -1
upper = 1
[label]
kind = "classes"
column = "y"
classes = [0, 1]
"""


def test_tables_of_one_other_record_are_told_apart_by_nothing_public(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No error, no warning, no exit status, no plan and no statement; a record is in training or held out."""
    monkeypatch.chdir(tmp_path)
    Path("frail_networks.py").write_text(NET)
    Path("columns.toml").write_text(COLUMNS)
    monkeypatch.delitem(sys.modules, "frail_networks", raising=False)
    importlib.invalidate_caches()
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2)).round(3)
    y = (rows[:, 1] > 0).astype(int)
    seen = []
    for case in (None, (0.99, 0.1), (-0.99, 0.1), (0.1, 0.99)):
        changed = rows.copy()
        if case is not None:
            changed[[7, 30, 31, 50, 59]] = case  # of these at least one is held out, and one is not
        lines = [f"{a},{b},{label}" for (a, b), label in zip(changed, y, strict=True)]
        Path("data.csv").write_text("dose,age,y\n" + "\n".join(lines) + "\n")
        words = ["--columns", "columns.toml", "--model", "frail_networks:Net", "--trust", "central"]
        price = ["--epsilon", "2", "--delta", "1e-5", "--rounds", "2", "--seed", "1"]
        shutil.rmtree("runs", ignore_errors=True)
        code = main(["train", "data.csv", *words, *price, "--name", "r"])
        out, err = capfd.readouterr()
        assert code == 0, err
        files = [Path("runs/r", name).read_text() for name in ("plan.toml", "statement.json")]
        statement = re.sub(r'"(created|model.json)": "[^"]*"', "", files[1])
        public = re.sub(r"\d+\.\d+( ± \d+\.\d+)? %|\d+\.\d+ *$", "", out, flags=re.MULTILINE)
        seen.append((err, files[0], statement, re.sub(r"[ ─]+", " ", public)))
    assert "somebody" not in str(seen)
    assert '"model": "frail_networks:Net, 13 parameters"' in seen[0][2]
    for other in seen[1:]:
        assert other == seen[0]
    words = ["model", "export", "runs/r", "--out", "model.onnx"]
    assert main(words) == 3
    assert "--module frail_networks:Net" in capfd.readouterr().err
    assert main([*words, "--module", "frail_networks:Net"]) == 2
    assert "a graph needs a linear model" in capfd.readouterr().err
    assert "the weights that the module starts from hold nothing of the data" in seen[0][2]


def test_silos_are_told_that_a_job_names_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from torch import nn\nclass Net(nn.Linear):\n    def __init__(self): super().__init__(64, 1)\n"
    Path("agreed_networks.py").write_text(code)
    monkeypatch.delitem(sys.modules, "agreed_networks", raising=False)
    importlib.invalidate_caches()
    words = ["federation", "init", "--silos", "3", "--epsilon", "3", "--trust", "local", "--job", "job.toml"]
    for name, says in (("agreed_networks:Net", True), ("linear", False)):
        Path("job.toml").write_text(f"model = '{name}'\n")
        assert main([*words, "--out", name[:6]]) == 0, capfd.readouterr().err
        told = Path(name[:6], "README.md").read_text()
        assert ("names code, `agreed_networks:Net`" in told) is says


def test_what_a_module_prints_is_no_part_of_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from torch import nn\nclass Net(nn.Linear):\n    def __init__(self): super().__init__(2, 1)\n"
    code += "    def forward(self, x):\n        print('told (', x.shape)\n        return super().forward(x)\n"
    Path("talking_networks.py").write_text(code)
    Path("columns.toml").write_text(COLUMNS)
    monkeypatch.delitem(sys.modules, "talking_networks", raising=False)
    importlib.invalidate_caches()
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2)).round(3)
    Path("data.csv").write_text("dose,age,y\n" + "".join(f"{a},{b},{int(a > 0)}\n" for a, b in rows))
    model, words = "talking_networks:Net", ["--columns", "columns.toml", "--trust", "central", "--seed", "1"]
    train = ["train", "data.csv", *words, "--rounds", "2", "--delta", "1e-5", "--model", model, "--name", "r"]
    plan = ["plan", "train", "--model", model, "--features", "2", "--silos", "2", "--records", "50"]
    for command in (
        [*train, "--dry-run"],
        train,
        ["predict", "runs/r", "data.csv", "--out", "scored.csv", "--module", model],
        ["model", "show", "runs/r", "--module", model],
        [*plan, "--epsilon", "1"],
    ):
        assert main([*command, "--json"]) == 0
        out, err = capfd.readouterr()
        assert json.loads(out)["version"] >= 1
        assert "told (" in err
