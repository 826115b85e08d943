"""What tests of `tacit account verify` share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.errors import VerificationError
from tacit.privacy.statement_file import read_statement

VERDICT = "arithmetic verified; origin not verified"
SAMPLED = "nobody learns which records are sampled"
Data = dict[str, Any]


def statement_of(folder: Path) -> Data:
    found: Data = json.loads((folder / "statement.json").read_text())
    return found


def check_refused(folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless a file is refused with exit code 1 and one line on the error stream."""
    (folder / "statement.json").write_text(text)
    assert main(["account", "verify", str(folder / "statement.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("tacit: the statement ")
    assert said in captured.err


def strip(data: Data, clause: str) -> None:
    for part in data["guarantees"]:
        assert clause in part["assumptions"]
        part["assumptions"].remove(clause)
        del part["sentence"]


def with_about(data: Data, k: int, **fields: object) -> object:
    data["about"][k].update(fields)
    return data


def reworded(data: Data, k: int, **fields: object) -> object:
    data["guarantees"][k].update(fields)
    data["guarantees"][k].pop("sentence", None)
    return data


def places(found: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the ways to every number in builtins."""
    if isinstance(found, dict | list):
        rows = found.items() if isinstance(found, dict) else enumerate(found)
        return [place for key, value in rows for place in places(value, (*way, key))]
    return [way] if isinstance(found, int | float) and not isinstance(found, bool) else []


def check_large_numbers(text: str) -> None:
    """Fail unless a statement is refused wherever a number of it is too large to compute with."""
    ways = places(json.loads(text))
    assert len(ways) > 8
    for way in ways:
        for number in (10**390, 2**62 + 1, -(10**390)):
            data = json.loads(text)
            inner = data
            for key in way[:-1]:
                inner = inner[key]
            inner[way[-1]] = number
            with pytest.raises(VerificationError, match="is too large or too long"):
                read_statement(json.dumps(data).encode())
