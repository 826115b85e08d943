"""Fair runs side by side, from the files that they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.errors import DataError
from tacit.reports.fair_comparison import fair_json, read_fair_numbers

NUMBERS: dict[str, Any] = {
    "version": 1,
    "run": "a",
    "data": "staff.csv",
    "sensitive": ["sex", "town"],
    "fairness": "demographic-parity",
    "fairness_weight": 3.0,
    "records": 400,
    "accuracy": 0.8,
    "violation": 0.1,
    "unconstrained_accuracy": None,
    "unconstrained_violation": None,
    "curve": [],
}


def left(tmp_path: Path, name: str, *, public: bool = False, **changed: Any) -> Path:
    """Write what is read of a run, and return its folder."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "fairness.json").write_text(json.dumps(NUMBERS | changed))
    (folder / "statement.json").write_text(json.dumps({"data": {"public": public}}))
    return folder


def test_runs_of_one_subject_are_comparable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # short names: a narrow table wraps
    open_run = left(tmp_path, "a")
    private = left(tmp_path, "b", protect="record", epsilon=1.0, delta=1e-6, sensitive=["town", "sex"])
    said = fair_json({"a": read_fair_numbers(open_run), "b": read_fair_numbers(private)})
    assert said["comparable"]
    assert said["results"][0]["standard_error"] == pytest.approx(0.02)
    assert [row["protect"] for row in said["results"]] == [None, "record"]
    assert "stay with the owner" in said["notes"][-1]
    assert main(["report", "compare", "a", "b"]) == 0
    assert "80.0 ± 2.0 %" in capsys.readouterr().out


def test_what_differs_is_named(tmp_path: Path) -> None:
    one, none = (
        left(tmp_path, "a", public=True),
        left(tmp_path, "b", public=True, accuracy=None, violation=None),
    )
    other = left(tmp_path, "c", public=True, fairness="equalized-odds", sensitive=["sex"])
    runs = {folder.name: read_fair_numbers(folder) for folder in (one, none, other)}
    assert fair_json(runs)["notes"] == [
        "These runs are not comparable: they differ in sensitive columns, notion."
    ]
    assert fair_json({"a": runs["a"], "b": runs["b"]}) | {"results": 0} == {
        "version": 1, "comparable": True, "notes": [], "results": 0,
    }  # fmt: skip


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fair = left(tmp_path, "a")
    for name, changed in (("b", {"version": 2}), ("c", {"accuracy": "much"}), ("d", {"records": None})):
        with pytest.raises(DataError, match=r"version 2|no numbers of a fair run"):
            read_fair_numbers(left(tmp_path, name, **changed))
    assert main(["report", "compare", str(fair), str(tmp_path / "nobody")]) == 3
    assert "no finished run" in capsys.readouterr().err
    assert main(["report", "compare", str(fair), str(left(tmp_path, "e")), "--plot", "x.png"]) == 2
    assert "plot is not for fair runs" in capsys.readouterr().err
