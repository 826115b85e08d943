"""`tacit audit`: what it prints, when it exits with 1, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main


def answer(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["audit", *argv, "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, Any] = json.loads(captured.out)
    return code, found


def test_a_right_mechanism_stands(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(["--mechanism", "gaussian", "--epsilon", "1", "--delta", "1e-5"], capsys)
    assert code == 0
    assert (found["claimed_epsilon"], found["confidence"], found["runs"]) == (1.0, 0.95, 1_000_000)
    assert found["refuted"] is False
    assert 0.6 < found["empirical_epsilon_lower"] <= 1.0
    assert found["attack"] == "likelihood ratio"


@pytest.mark.parametrize(
    "mechanism", ["gaussian", "laplace", "discrete-gaussian", "2rr", "krr:4", "additive"]
)
def test_half_the_noise_exits_with_1(mechanism: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--noise-factor", "0.5", "--confidence", "0.9999999", "--runs", "400000"]
    code, found = answer(["--mechanism", mechanism, *options], capsys)
    assert code == 1
    assert found["refuted"] is True
    assert found["empirical_epsilon_lower"] > found["claimed_epsilon"]


def test_training_is_attacked(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--mechanism", "training", "--delta", "0.3", "--rounds", "2", "--runs", "500", "--dim", "3"]
    sure = ["--confidence", "0.9999999"]
    for trust in ("local", "central"):
        assert answer([*options, *sure, "--trust", trust], capsys)[0] == 0
    code, found = answer([*options, *sure, "--noise-factor", "0.5"], capsys)
    assert code == 1
    assert found["event"]["count"] == 2


def test_the_same_seed_finds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (answer(["--runs", "1000", "--seed", s], capsys)[1] for s in ("1", "1", "2"))
    assert first == again
    assert first["right"] != other["right"] or first["wrong"] != other["wrong"]


def test_people_read_a_table_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--mechanism", "laplace", "--runs", "10000"]) == 0
    out = capsys.readouterr().out
    for name in ("Attack on laplace", "claimed epsilon", "lower bound", "confidence", "runs", "guesses"):
        assert name in out
    assert "\nnot refuted: the attack finds no more than is claimed\n" in out
    assert main(["audit", "--mechanism", "2rr", "--runs", "100000", "--noise-factor", "0.5"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Attack on 2rr, with 0.5 times the noise that it needs\n")
    assert "\nrefuted: epsilon is larger than claimed\nA claim that holds is refuted with prob" in out
    assert "probability 0.05 at most" in out


def test_a_plot_shows_the_attack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "attack.png"
    assert main(["audit", "--runs", "20000", "--plot", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--mechanism", "gausian"], "did you mean 'gaussian'"),
        (["--mechanism", "krr"], "must be krr:B with B from 2"),
        (["--runs", "99"], "runs must be a whole number >= 100, got 99"),
        (["--confidence", "1"], "confidence must be in (0, 1), got 1.0"),
        (["--confidence", "nan"], "confidence must be in (0, 1), got nan"),
        (["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        (["--epsilon", "0"], "epsilon must be a finite number > 0"),
        (["--noise-factor", "0"], "noise-factor must be a finite number > 0"),
        (["--rounds", "3"], "rounds is not an option of the mechanism 'gaussian'"),
        (["--mechanism", "laplace", "--dim", "3"], "dim is not an option of the mechanism 'laplace'"),
        (["--mechanism", "additive", "--trust", "shuffle"], "trust must be one of local, central"),
        (["--mechanism", "training", "--rounds", "0"], "rounds must be a whole number >= 1, got 0"),
    ],
)
def test_bad_options_are_one_line(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1


def test_any_estimator_is_attacked_by_its_tag(capsys: pytest.CaptureFixture[str]) -> None:
    attacked = ["audit", "--mechanism", "hadamard", "--trust", "shuffle", "--delta", "1e-3", "--runs", "1500"]
    assert main(attacked) == 0
    out = capsys.readouterr().out
    assert out.startswith("Attack on hadamard\n")
    assert "projection of what shuffle trust shows" in out
    assert main([*attacked, "--noise-factor", "0.1"]) == 1
    assert "refuted: epsilon is larger than claimed" in capsys.readouterr().out
    assert main(["audit", "--mechanism", "top-k"]) == 2
    assert "'top-k' offers nothing under any trust model" in capsys.readouterr().err
