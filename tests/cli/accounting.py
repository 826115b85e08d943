"""How tests of `tacit account` call it: its JSON, the check of its statement, the line of a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what a command prints with --json."""
    assert main(["account", *argv, "--json"]) == 0
    captured = capsys.readouterr()
    assert all(
        line.startswith(("warning: epsilon ", "warning: delta ")) for line in captured.err.splitlines()
    )
    found: dict[str, Any] = json.loads(captured.out)
    return found


def printed(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints for people, with the width of lines taken out."""
    assert main(["account", *argv]) == 0
    captured = capsys.readouterr()
    assert all(
        line.startswith(("warning: epsilon ", "warning: delta ")) for line in captured.err.splitlines()
    )
    return " ".join(captured.out.split())


def check_statement(found: dict[str, Any], path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless `tacit account verify` confirms an answer, and refuses it with a digit less."""
    path.write_text(json.dumps(found))
    assert main(["account", "verify", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in found["guarantees"]:
        assert part["sentence"] in out
    first = found["guarantees"][0]
    lowered = {**first, "epsilon": first["epsilon"] - 1e-5}
    del lowered["sentence"]
    others = found["guarantees"][1:]
    path.write_text(json.dumps({**found, "epsilon": lowered["epsilon"], "guarantees": [lowered, *others]}))
    assert main(["account", "verify", str(path)]) == 1
    assert "claims epsilon" in capsys.readouterr().err


def check_refusal(argv: list[str], said: str, capsys: pytest.CaptureFixture[str], *, code: int = 2) -> None:
    """Fail unless a command refuses in one line that says this, and prints nothing else."""
    assert main(["account", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit: ")
    assert len(captured.err.splitlines()) == 1
    assert said in captured.err
