"""`tacit data`: what the registry knows is what is shown, and files are fetched once."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.data import DATASETS, PRESETS, Categorical, DataFile, DatasetInfo, Numeric, describe, names

CONTENT = b"a,b\n1,2\n"
TINY = DatasetInfo(
    name="tiny",
    title="A tiny table",
    source="nobody",
    licence="CC0",
    page="https://example.org/tiny",
    task="regression",
    target="b",
    rows=1,
    n_features=1,
    folder="tiny",
    files=(
        DataFile(name="table.csv", sha256=(hashlib.sha256(CONTENT).hexdigest(),)),
        DataFile(name="more.csv", sha256=("0" * 64,), url="https://example.org/more.csv", required=False),
    ),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_DATA_HOME", str(tmp_path))
    return tmp_path


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["data", *argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_all_data_sets_are_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["list"], capsys)
    assert found["data_home"] == str(home)
    assert [one["name"] for one in found["data_sets"]] == names()
    for one in found["data_sets"]:
        info = describe(one["name"])
        where = "embedded" if info.embedded else "absent"
        assert one == {
            "name": info.name, "task": info.task, "records": info.rows, "features": info.n_features,
            "where": where, "licence": info.licence,
        }  # fmt: skip
    assert [one["name"] for one in found["presets"]] == list(PRESETS)
    assert found["presets"][0]["sensitive"] == ["gender", "race"]
    assert main(["data", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["adult", "classification", "48,842", "59", "absent", "CC", "BY", "4.0"] in lines
    assert ["adult-ch6", "adult", "33,916", "11,306", "102", "gender"] in lines
    assert ["digits", "classification", "1,797", "64", "embedded", "CC", "BY", "4.0"] in lines


def test_required_files_make_a_data_set_present(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", TINY)
    assert answer(["describe", "tiny"], capsys)["where"] == "absent"
    (home / "tiny").mkdir()
    (home / "tiny" / "table.csv").write_bytes(CONTENT)
    found = answer(["describe", "tiny"], capsys)
    assert found["where"] == "present"
    files = [(file["name"], file["where"], file["required"], file["url"]) for file in found["files"]]
    assert files == [
        ("table.csv", "present", True, None),
        ("more.csv", "absent", False, "https://example.org/more.csv"),
    ]
    assert main(["data", "describe", "tiny"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["table.csv", "present", "placed", "by", "hand"] in lines
    assert ["more.csv", "absent,", "optional", "https://example.org/more.csv"] in lines


@pytest.mark.parametrize("name", names())
def test_a_description_says_all_that_is_known(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    info, spec = describe(name), describe(name).columns()
    found = answer(["describe", name], capsys)
    for field in ("title", "task", "target", "source", "page", "licence"):
        assert found[field] == getattr(info, field)
    assert found["sensitive"] == list(info.sensitive)
    assert list(found["columns"]) == list(spec.columns)
    for column, kind in spec.columns.items():
        if isinstance(kind, Numeric):
            assert (found["columns"][column]["lower"], found["columns"][column]["upper"]) == (
                kind.lower,
                kind.upper,
            )
        if isinstance(kind, Categorical):
            assert found["columns"][column]["categories"] == list(kind.categories)
    assert main(["data", "describe", name]) == 0
    out = capsys.readouterr().out
    for text in (info.title, info.page, f"{info.rows:,}", *info.sensitive, *spec.columns):
        assert text in " ".join(out.split())


def test_bounds_and_roles_of_columns_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "describe", "adult"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["fnlwgt", "numeric", "0", "to", "1,500,000"] in lines
    assert ["gender", "categorical,", "on", "request", "only", "Female,", "Male"] in lines
    assert ["label", "<=50K,", ">50K"] in lines


def test_an_embedded_data_set_needs_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["fetch", "digits"], capsys) == {
        "version": 1, "name": "digits", "embedded": True, "files": [],
    }  # fmt: skip
    assert main(["data", "fetch", "digits"]) == 0
    assert capsys.readouterr().out == "digits: embedded, there is nothing to fetch\n"


def test_files_that_are_there_are_not_fetched_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", TINY)
    (home / "tiny").mkdir()
    (home / "tiny" / "table.csv").write_bytes(CONTENT)

    def download(url: str, target: Any, progress: Any) -> str:
        assert url == "http://mirror.example.org/tiny/more.csv"
        target.write(b"more")
        progress(4, 4)
        return "0" * 64

    monkeypatch.setattr(sys.modules["tacit.data.fetch"], "_download", download)  # `fetch` is a function too
    mirror = ["--base-url", "http://mirror.example.org"]
    assert main(["data", "fetch", "tiny", *mirror]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"tiny: 2 files in {home / 'tiny'}\n"
    assert captured.err == ""
    assert (home / "tiny" / "more.csv").read_bytes() == b"more"


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["describe", "adlut"], 2, "got 'adlut'; did you mean 'adult'?"),
        (["fetch", "digit"], 2, "got 'digit'; did you mean 'digits'?"),
        (["fetch", "adult", "--base-url", "ftp://x"], 2, "base-url must start with http:// or https://"),
        (["fetch", "parkinsons"], 3, "no public address serves parkinsons_updrs.data"),
    ],
)
def test_bad_input_is_one_line(
    argv: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit: ")
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err


def test_a_prepared_data_set_is_described_and_fetched_as_what_it_is_made_of(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(["describe", "adult-ch6"], capsys)
    assert (found["data_set"], found["features"], found["sensitive"]) == ("adult", 102, ["gender"])
    assert main(["data", "describe", "adult-ch5"]) == 0
    assert "the official test half" in capsys.readouterr().out
    assert main(["data", "describe", "adult-ch7"]) == 2
    assert "did you mean 'adult-ch6'?" in capsys.readouterr().err
    (home / "adult").mkdir(parents=True)
    for file in describe("adult").files:
        (home / "adult" / file.name).write_bytes(b"other")
    assert main(["data", "fetch", "adult-ch6"]) == 3
    assert "adult" in capsys.readouterr().err
