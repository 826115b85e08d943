"""`tacit frequencies` of several columns: tables, their statement, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.cli import main

VALUES = ["--values", "a=x,y", "b=0,1", "c=u,v"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "rows.csv"
    k = np.arange(4000)
    columns = {"a": np.where(k % 4 == 0, "x", "y"), "b": k % 2, "c": np.where(k % 8 < 3, "u", "v")}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def asked(table: Path, *more: str) -> list[str]:
    columns = ["--column", "a", "--column", "b", "--column", "c"]
    return ["frequencies", "--data", str(table), *columns, *VALUES, "--epsilon", "6", "--seed", "1", *more]


@pytest.mark.parametrize(
    ("trust", "kind", "tables"),
    [("local", "pairs", 3), ("local", "singles", 3), ("shuffle", "joint", 1), ("central", "pairs", 3)],
)
def test_tables_hold_the_truth_and_their_statement_is_verified(
    trust: str, kind: str, tables: int, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = asked(table, "--trust", trust, "--tables", kind, "--confidence", "0.9999999")
    assert main([*line, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert len(found["tables"]) == tables
    assert found["columns"]["a"] == ["x", "y", "other"]
    frame = pd.read_csv(table, dtype=str)
    for one in found["tables"]:
        lower, upper = np.moveaxis(np.array(one["intervals"]), -1, 0)
        names = [found["columns"][column] for column in one["columns"]]
        for place in np.ndindex(lower.shape):
            cell = {c: n[k] for c, n, k in zip(one["columns"], names, place, strict=True)}
            true = float(np.all([frame[c] == value for c, value in cell.items()], axis=0).mean())
            assert lower[place] <= true <= upper[place]
    file = tmp_path / "statement.json"
    first = found["tables"][0]
    unknown = np.array(first["estimates"], dtype=object)
    unknown.flat[0] = None
    # About the middle of each, with ends of 0 and 1 where they are.
    narrower = np.round(
        0.9 * np.array(first["intervals"]) + 0.1 * np.mean(first["intervals"], -1)[..., None], 9
    )
    changes = [
        ("tables", [{**first, "estimates": unknown.tolist()}, *found["tables"][1:]]),
        ("columns", {**found["columns"], "a": ["x", "x", "other"]}),
        ("tables", [{**first, "rmse": first["rmse"] / 2}, *found["tables"][1:]]),
        ("tables", [{**first, "n": first["n"] + 1}, *found["tables"][1:]]),
        ("tables", [{**first, "intervals": first["estimates"]}, *found["tables"][1:]]),
        (
            "tables",
            [{**first, "estimates": (2 * np.array(first["estimates"])).tolist()}, *found["tables"][1:]],
        ),
        ("tables", found["tables"][1:]),
        ("tables", 3),
        ("answering", "nobody"),
        ("bits_per_client", 0),
        ("n", found["n"] - 1),
        ("columns", {**found["columns"], "a": ["x", "y"]}),
        ("notes", found["notes"][1:]),
    ]
    if first["mechanism"] not in ("hr", "rhr"):  # whose intervals follow from no count
        changes.append(("tables", [{**first, "intervals": narrower.tolist()}, *found["tables"][1:]]))
    file.write_text(json.dumps(found))
    assert main(["account", "verify", str(file)]) == 0
    for field, value in changes:
        file.write_text(json.dumps({**found, field: value}))
        assert main(["account", "verify", str(file)]) == 1, (field, value)
    capsys.readouterr()
    assert main(line) == 0
    assert f"4000 records, {tables} table" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--column", "a"], "columns must be different ones"),
        (["--tables", "triples"], "tables must be one of joint, pairs, singles"),
        (["--trust", "aggregate", "--colluding", "0"], "trust must be local, shuffle or central for tables"),
        (["--heavy-hitters"], "heavy-hitters must not be given beside several columns"),
        (["--projection", "none"], "projection must not be given beside several columns"),
        (["--domain", "x.txt"], "domain must not be given beside several columns"),
        (["--values", "d=1"], "values must be like `--values a=a,b`"),
        (["--values", "a=1"], "values must be like"),
        (["--epsilon", "0"], "epsilon"),
    ],
)
def test_bad_questions_are_refused(
    table: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(table, *more)) == 2
    assert said in capsys.readouterr().err


def test_tables_are_for_several_columns(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["frequencies", "--data", str(table), "--column", "a", "--values", "x,y", "--epsilon", "1"]
    assert main([*line, "--tables", "joint"]) == 2
    assert "tables is for several columns" in capsys.readouterr().err
