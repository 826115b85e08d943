"""`tacit plan mean` from the outside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main

SMALL = ["plan", "mean", "--n", "100", "--dim", "16"]
SHUFFLE = [*SMALL, "--epsilon", "2", "--delta", "1e-6", "--trust", "shuffle", "--points", "1"]


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        SHUFFLE,
        [*SMALL, "--epsilon", "1", "--delta", "1e-6", "--trust", "local"],
        [*SMALL, "--trust", "none", "--bits", "250", "--correlation", "0.5"],
        [*SMALL, "--epsilon", "1", "--trust", "central", "--norm", "l1", "--public", "10"],
        [*SMALL, "--epsilon", "1", "--delta", "1e-6", "--trust", "central", "--moment", "3:2"],
    ],
)
def test_candidates_for_programs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(arguments, capsys)
    candidates = found["candidates"]
    assert candidates
    assert [one["mse"] for one in candidates] == sorted(one["mse"] for one in candidates)
    for one in candidates:
        assert one["name"]
        assert one["kind"] in {"exact", "bound"}
        assert one["bits_per_party"] >= 0
        assert "measured_mse" not in one
        assert (one["guarantee"] is None) == (found["problem"]["trust"] == "none")
        if one["epsilon"] is not None:
            assert one["epsilon"] <= found["problem"]["epsilon"]
            shuffles = found["problem"]["trust"] == "shuffle"
            assert ("provided that (1) the shuffler is honest; (2) " in one["guarantee"]) == shuffles
    if "--bits" in arguments:
        assert all(one["bits_per_party"] <= 250 for one in candidates)
    assert found["references"][-1]["name"] == "zero"


def test_simulations_add_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--trust", "none", "--bits", "250", "--simulate", "5", "--points", "1"]
    found = answer(arguments, capsys)
    for one in found["candidates"]:
        assert one["trials"] == 5
        assert one["measured_mse"] >= 0
        assert one["measured_standard_error"] >= 0
    assert answer(arguments, capsys) == found
    assert answer([*arguments, "--seed", "1"], capsys) != found
    assert main(arguments) == 0
    assert "measured" in capsys.readouterr().out


def test_the_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHUFFLE, "--all"]) == 0
    said = capsys.readouterr().out
    for word in ("mechanism", "rmse", "guarantee", "hemisphere", "central Gaussian", "zero"):
        assert word in said
    said = " ".join(said.split())
    assert re.search(
        r"hemisphere.*: provided that \(1\) the shuffler is honest; \(2\) every batch holds [0-9,]+ ", said
    )
    assert main([*SMALL, "--epsilon", "1", "--all"]) == 0
    assert "not usable" in capsys.readouterr().out


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, arguments in [
        ("none.png", [*SMALL, "--trust", "none"]),
        ("central.png", [*SMALL, "--trust", "central", "--epsilon", "1"]),
    ]:
        assert main([*arguments, "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main([*SMALL, "--trust", "none", "--plot", "plan.doc"]) == 2
    assert "plot must be a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (SMALL, "epsilon must be given"),
        ([*SMALL, "--trust", "none", "--epsilon", "1"], "must not be given"),
        ([*SMALL, "--trust", "server", "--epsilon", "1"], "trust must be"),
        ([*SMALL, "--norm", "l3", "--epsilon", "1"], "norm must be"),
        ([*SMALL, "--trust", "none", "--bits", "90"], "bits must be at least 120 a party"),
        ([*SMALL, "--epsilon", "1", "--simulate", "-1"], "simulate"),
    ],
)
def test_refusals(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
