"""What a new user mistypes: one line with argument, value and what is allowed, and nothing is spent."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.data import sidecar_path

CLINICS = Path(__file__).parents[1] / "data" / "clinics.csv"
MISTAKES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8")
)["mistake"]
FILES: dict[str, bytes] = {
    "job.toml": b'epsilon = "two"\n',
    "seed.toml": b'seed = "x"\n',
    "bad.toml": b"epsilon = [",
    "unknown.toml": b"epsilonn = 2\n",
    "odd.columns.toml": b'[columns.age]\nkind = "number"\n',
    "gaps.toml": b'[columns.age]\nkind = "numeric"\nlower = "<fill in>"\nupper = 1\n',
    "bounds.toml": b'[columns.age]\nkind = "numeric"\nlower = 5\nupper = 1\n',
    "empty.csv": b"",
    "header.csv": b"a,b\n",
    "short.csv": b"a,b\n1\n",
    "quote.csv": b'a,b\n"1,2\n',
    "twice.csv": b"a,a\n1,2\n",
    "latin.csv": "größe,b\n1,2\n".encode("latin-1"),
    "t.xlsx": b"PK\x03\x04",
    "t.parquet": b"no",
    "not.json": b"{",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table that is in order, and with files that are not."""
    made = tmp_path_factory.mktemp("mistakes")
    shutil.copy(CLINICS, made / "t.csv")
    shutil.copy(sidecar_path(CLINICS), made / "t.columns.toml")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    (made / "f").mkdir()
    return made


def test_there_are_a_hundred_of_them() -> None:
    assert len({one["command"] for one in MISTAKES}) == len(MISTAKES) >= 100


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one["command"])
@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_a_mistake_is_one_line_that_says_what_is_allowed(
    mistake: dict[str, Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert (
        main(shlex.split(mistake["command"].replace("TRAIN", "train --data t.csv --label y")))
        == mistake["code"]
    )
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if not line.startswith("warning: ")]
    assert captured.out == ""
    assert len(errors) == 1
    for part in mistake["says"]:
        assert part in errors[0]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_table_may_have_a_loud_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(CLINICS, "T.CSV")
    shutil.copy(sidecar_path(CLINICS), "T.columns.toml")
    assert main(["train", "--data", "T.CSV", "--label", "y", "--rounds", "2", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("T.CSV: 1 silo with 614 records")
