"""`tacit frequencies --heavy-hitters --domain BITS`: texts and numbers that nobody lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tacit.cli import main
from tacit.frequencies import hashed_items


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "visits.csv"
    rows = range(20_000)
    page = ["a.example" if k % 4 == 0 else "" if k % 4 == 1 else f"s{k}.example" for k in rows]
    number = [str(2**63) if k % 4 == 0 else "-1" if k % 4 == 1 else str(k) for k in rows]
    pd.DataFrame({"page": page, "number": number}).to_csv(path, index=False)
    return path


def asked(table: Path, *more: str, column: str = "page") -> list[str]:
    return ["--data", str(table), "--column", column, "--epsilon", "4", "--heavy-hitters", *more]


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["frequencies", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    assert main(["frequencies", *arguments]) == code
    return capsys.readouterr().err


@pytest.mark.parametrize("trust", ["local", "shuffle", "central"])
def test_frequent_texts_are_found_and_the_statement_is_verified(
    trust: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "texts.txt"
    listed.write_text("b.example\na.example\n\n", encoding="utf-8")
    more = ["--domain", "16", "--dictionary", str(listed), "--seed", "1", "--trust", trust]
    found = answer(asked(table, *more), capsys)
    (one,) = found["heavy_hitters"]
    assert (one["item"], one["text"]) == (int(hashed_items(["a.example"], 16)[0]), "a.example")
    assert one["interval"][0] <= 0.25 <= one["interval"][1]
    assert 0 < found["detectable"] < 0.25
    assert ("epsilon_alone" in found) is (trust == "shuffle")
    file = tmp_path / "statement.json"
    changes: list[tuple[str, Any]] = [
        ("detectable", found["detectable"] / 2),
        ("false_alarm", 0.001),
        ("miss", 0.01),
        ("kept", found["kept"] + 1),
        ("bits_per_client", 1),
        ("answering", "every level" if found["answering"] == "one level" else "one level"),
        ("heavy_hitters", [{**one, "item": 2**40}]),
        ("heavy_hitters", [one, one]),
        ("heavy_hitters", [{**one, "interval": [0.0, 1.0]}]),
        ("heavy_hitters", [{**one, "interval": [one["interval"][0] + 0.001, one["interval"][1]]}]),
        ("heavy_hitters", [{**one, "interval": [one["interval"][0], one["interval"][1] - 0.001]}]),
        ("heavy_hitters", [{**one, "estimate": one["estimate"] / 2}]),
        ("heavy_hitters", [{**one, "estimate": -1e308}]),
        ("tree", [{**level, "mechanism": "oue"} for level in found["tree"]]),
        ("tree", found["tree"][:-1]),
        ("n", found["n"] + 1),
        ("bits", 17),
        ("items", "tables"),
        ("notes", found["notes"][1:]),
    ]
    file.write_text(json.dumps(found))
    assert main(["account", "verify", str(file)]) == 0
    for field, value in changes:
        file.write_text(json.dumps({**found, field: value}))
        assert main(["account", "verify", str(file)]) == 1, field
    file.write_text(json.dumps({key: value for key, value in found.items() if key != "detectable"}))
    assert main(["account", "verify", str(file)]) == 1
    capsys.readouterr()


def test_people_are_told_what_is_found_and_what_would_be(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["frequencies", *asked(table, "--domain", "16", "--seed", "1")]) == 0
    shown = capsys.readouterr().out
    assert "20000 records, 2^16 values, 1 found" in shown
    assert str(hashed_items(["a.example"], 16)[0]) in shown
    assert "--dictionary FILE reads a public list back" in shown
    assert "is found with probability 95 % at least, whatever the others hold" in shown
    few = ["--domain", "16", "--seed", "1", "--epsilon", "0.01"]
    assert main(["frequencies", *asked(table, *few)]) == 0
    assert "there are too few records for this epsilon" in capsys.readouterr().out
    assert answer(asked(table, *few), capsys)["detectable"] is None


def test_whole_numbers_count_as_they_are(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["--domain", "64", "--items", "numbers", "--trust", "central", "--seed", "1"]
    found = answer(asked(table, *numbers, column="number"), capsys)
    assert [one["item"] for one in found["heavy_hitters"]] == [2**63]
    # A cell outside of the domain is no error, which would show it, and no value.
    few = answer(asked(table, *numbers, "--domain", "16", column="number"), capsys)
    assert few["heavy_hitters"] == []
    texts = answer(asked(table, *numbers, column="page"), capsys)
    assert texts["heavy_hitters"] == []


def test_one_row_changes_no_other(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    other = tmp_path / "other.csv"
    sharp = ["--domain", "16", "--trust", "central", "--epsilon", "300", "--seed", "1"]
    for cell in ("", "x, y\u2028", "9" * 400):
        frame.loc[0, "page"] = cell
        frame.to_csv(other, index=False)
        found = answer(asked(other, *sharp), capsys)
        assert [one["estimate"] for one in found["heavy_hitters"]][:1] == [pytest.approx(4999 / 20_000)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--domain", "65"], "domain must be a whole number from 1 to 64"),
        (["--domain", "0"], "domain must be a whole number from 1 to 64"),
        (["--domain", "32", "--values", "a,b"], "values must not be given for a domain of so many bits"),
        (["--domain", "32", "--values", "a,b"], "whose values nobody lists, got 'a,b'."),
        (["--domain", "32", "--projection", "none"], "projection must not be given"),
        (["--domain", "32", "--max-message-bits", "9"], "max-message-bits must not be given"),
        (["--domain", "32", "--plot", "x.png"], "plot must not be given"),
        (["--domain", "32", "--mechanism", "hr"], "mechanism must be one of bh, krr"),
        (["--domain", "32", "--miss", "0"], "miss must be in"),
        (["--domain", "32", "--hash-seed", "-1"], "hash-seed must be a whole number"),
        (["--domain", "32", "--items", "words"], "items must be one of hashed, numbers"),
        (["--domain", "32", "--items", "numbers", "--hash-seed", "1"], "are for --items hashed"),
        (["--domain", "32", "--dictionary", "none.txt"], "dictionary must be a readable file"),
        (["--values", "a,b", "--items", "numbers"], "items is for --heavy-hitters with a --domain"),
        (["--values", "a,b", "--miss", "0.1"], "miss is for --heavy-hitters"),
        (["--domain", "32", "--trust", "shuffle", "--delta", "0"], "delta must be > 0"),
    ],
)
def test_bad_questions_are_refused(
    table: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(asked(table, *more), capsys)
