"""`tacit reproduce`: the list, the files it leaves, and unknown names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tacit.cli import main, output
from tacit.cli.forms import OUTPUTS
from tacit.experiments import EXPERIMENTS, Report
from tacit.privacy import Relation


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["experiments"]
    assert [e["name"] for e in listed] == list(EXPERIMENTS)
    assert main(["reproduce", "list"]) == 0
    assert "isrl-mnist-logistic" in capsys.readouterr().out


def test_a_run_prints_and_writes_table_and_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [
        {"method": m, "epsilon": e, "error": 0.25, "se": 0.01} for m in ("a", "b") for e in (None, 1.0, 2.0)
    ]
    shape: list[dict[str, object]] = [{"l": x, "gamma": 0.5, "who": "a", "part": x // 10} for x in range(60)]
    more = Report(
        rows=shape,
        x="l",
        y="gamma",
        error=None,
        line="who",
        panel="part",
        log_x=False,
        title="What the shapes are",
    )
    report = Report(
        rows=rows, x="epsilon", y="error", error="se", line="method", notes=("a note",), more={"shape": more}
    )
    stub = replace(EXPERIMENTS["isrl-mnist-logistic"], run=lambda _quick, _progress: report)
    monkeypatch.setitem(EXPERIMENTS, "isrl-mnist-logistic", stub)
    assert main(["reproduce", "isrl-mnist-logistic", "--out", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a note" in printed
    assert "further tables: shape" in printed
    folder = tmp_path / "isrl-mnist-logistic"
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert "| a |  | 0.25 | 0.01 |" in (folder / "table.md").read_text()
    assert (folder / "table.csv").read_text().count("\n") == 1 + len(rows)
    assert main(["reproduce", "isrl-mnist-logistic", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    msgspec.convert(found, OUTPUTS["reproduce"])
    assert found["rows"] == rows
    assert found["more"] == {"shape": shape}
    assert (folder / "figure-shape.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "table-shape.csv").read_text().count("\n") == 61
    assert "| 59 | 0.5 | a | 5 |" in (folder / "table.md").read_text()


def test_a_quick_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(quick: bool, _progress: object) -> Report:
        rows: list[dict[str, object]] = [{"who": "a", "x": x, "y": 2.0 if quick else 3.0} for x in (1.0, 2.0)]
        return Report(rows=rows, x="x", y="y", error=None, line="who")

    monkeypatch.setitem(
        EXPERIMENTS, "isrl-mnist-logistic", replace(EXPERIMENTS["isrl-mnist-logistic"], run=run)
    )
    call = ["reproduce", "isrl-mnist-logistic", "--out", str(tmp_path)]
    assert main(call) == 0
    full = {path.name: path.read_bytes() for path in (tmp_path / "isrl-mnist-logistic").iterdir()}
    assert main([*call, "--quick"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"isrl-mnist-logistic", "isrl-mnist-logistic-quick"}
    assert {p.name: p.read_bytes() for p in (tmp_path / "isrl-mnist-logistic").iterdir()} == full
    assert "A quick run" in (tmp_path / "isrl-mnist-logistic-quick" / "table.md").read_text()
    assert b"quick" not in full["table.md"]


def test_only_columns_of_numbers_are_flush_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, object]] = [
        {"data": "MNIST", "method": method, "epsilon": np.int64(e), "std": std, "thesis": None, "ok": e > 1}
        for method, e, std in (("GNMax, analytic", 1, 0.058412), ("a", 100, None))
    ]
    report = Report(rows=rows, x="epsilon", y="epsilon", error=None, line="method")
    stub = replace(EXPERIMENTS["isrl-mnist-logistic"], run=lambda _quick, _progress: report)
    monkeypatch.setitem(EXPERIMENTS, "isrl-mnist-logistic", stub)
    asked: list[Sequence[str]] = []
    show = output.print_table

    def noted(columns: Sequence[str], cells: list[Sequence[object]], *, right: Sequence[str]) -> None:
        asked.append(right)
        show(columns, cells, right=right)

    monkeypatch.setattr("tacit.cli.reproduce.print_table", noted)
    monkeypatch.setenv("COLUMNS", "44")
    assert main(["reproduce", "isrl-mnist-logistic", "--out", str(tmp_path)]) == 0
    assert asked == [("epsilon", "std", "thesis")]
    words = capsys.readouterr().out.split()
    assert {"GNMax,", "analytic", "0.05841", "100", "epsilon", "thesis", "False"} <= set(words)


def test_an_unknown_name_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "isrl-mnist-logistics"]) == 2
    assert "did you mean 'isrl-mnist-logistic'" in capsys.readouterr().err


def test_neighbours_are_handed_on_or_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row: dict[str, object] = {"method": "a", "epsilon": 1.0, "error": 0.25}
    report = Report(rows=[row], x="epsilon", y="error", error=None, line="method")
    asked: list[Relation] = []

    def run(_quick: bool, _progress: object, *, relation: Relation) -> Report:
        asked.append(relation)
        return report

    stub = replace(EXPERIMENTS["isrl-mnist-logistic"], run=run)
    monkeypatch.setitem(EXPERIMENTS, "isrl-mnist-logistic", stub)
    argv = ["reproduce", "isrl-mnist-logistic", "--out", str(tmp_path), "--neighbours", "add-remove"]
    assert main([*argv, "--quick"]) == 0
    assert asked == [Relation.ADD_REMOVE]
    assert (tmp_path / "isrl-mnist-logistic-add-remove-quick" / "table.md").exists()
    capsys.readouterr()
    for name in EXPERIMENTS.keys() - {"isrl-mnist-logistic"}:
        assert main(["reproduce", name, "--out", str(tmp_path), "--neighbours", "zero-out"]) == 2
        said = capsys.readouterr().err
        assert f"neighbours must be replace-one for {name}, got 'zero-out': {EXPERIMENTS[name].fixed}" in said
    assert main([*argv[:-1], "swap"]) == 2
    assert "neighbours must be one of replace-one" in capsys.readouterr().err
    assert len(list(tmp_path.iterdir())) == 1
