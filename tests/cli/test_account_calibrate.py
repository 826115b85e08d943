"""`tacit account calibrate`: what a budget allows under each trust model, priced again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.accounting import answer, check_refusal, check_statement, printed

BUDGET = ["calibrate", "--epsilon", "1", "--delta", "1e-6"]
SHUFFLE = [*BUDGET, "--trust", "shuffle"]


def shuffled(local_epsilon: float, more: list[str], capsys: pytest.CaptureFixture[str]) -> float:
    argv = ["shuffle", "--local-epsilon", repr(local_epsilon), "--delta", "1e-6", *more]
    return float(answer(argv, capsys)["epsilon"])


@pytest.mark.parametrize(
    "more",
    [
        ["--n", "300", "--rounds", "3"],
        ["--n", "1000", "--rounds", "10", "--sample-rate", "0.1"],
        ["--n", "200", "--rounds", "3", "--mechanism", "2rr"],
    ],
    ids=" ".join,
)
def test_the_local_epsilon_meets_the_budget_and_no_larger_one_does(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([*SHUFFLE, *more], capsys)
    level = found["local_epsilon"]
    assert shuffled(level, more, capsys) == found["epsilon"] <= 1
    assert shuffled(level * (1 + 1e-4), more, capsys) > 1
    assert "the shuffler is honest" in found["guarantees"][0]["assumptions"]
    check_statement(found, tmp_path / "statement.json", capsys)


def test_a_central_budget_asks_for_the_noise_of_noise(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--rounds", "100", "--sample-rate", "0.01", "--neighbours", "add-remove"]
    found = answer([*BUDGET, *more], capsys)
    asked = answer(["noise", "--epsilon", "1", "--delta", "1e-6", *more], capsys)
    assert found["noise_multiplier"] == asked["noise_multiplier"]
    assert "nobody learns which records are sampled" in found["guarantees"][0]["assumptions"]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_price_is_a_statement(trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*BUDGET, "--trust", trust, "--rounds", "7"], capsys)
    assert 0.999 < found["epsilon"] <= 1
    assert found["guarantees"][0]["epsilon"] == found["epsilon"]
    check_statement(found, tmp_path / "statement.json", capsys)


def test_a_shuffler_allows_more_than_none(capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--rounds", "1"]
    local = answer([*BUDGET, "--trust", "local", *more], capsys)["local_epsilon"]
    levels = [answer([*SHUFFLE, "--n", n, *more], capsys)["local_epsilon"] for n in ("100", "1000")]
    assert local < levels[0] < levels[1]


def test_pure_budgets_leave_the_local_level_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["calibrate", "--epsilon", "0.7", "--delta", "0", "--trust"]
    assert answer([*argv, "shuffle", "--n", "100"], capsys)["local_epsilon"] == pytest.approx(0.7, abs=2e-6)
    assert answer([*argv, "local"], capsys)["local_epsilon"] == pytest.approx(0.7, abs=2e-6)


def test_people_read_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed([*SHUFFLE, "--n", "1000", "--rounds", "10", "--sample-rate", "0.1"], capsys)
    assert "local epsilon" in out
    assert "of 1 allowed" in out
    assert "1,000, a secret sample of 100 of them a round" in out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--epsilon", "0"], 2, "epsilon must be a finite number > 0, got 0.0"),
        (["--epsilon", "-1"], 2, "epsilon must be a finite number > 0, got -1.0"),
        (["--delta", "0"], 4, "choose delta > 0"),
        (["--delta", "2"], 2, "delta must be in [0, 1), got 2.0"),
        (["--trust", "nobody"], 2, "trust must be one of central, shuffle, local"),
        (["--trust", "shuffle"], 2, "n must be given for --trust shuffle"),
        (["--trust", "shuffle", "--n", "0"], 2, "n must be a whole number >= 2, got 0"),
        (["--trust", "shuffle", "--n", "1"], 2, "got 1: a shuffle of one message hides nothing"),
        (["--trust", "shuffle", "--n", "9", "--mechanism", "magic"], 2, "mechanism must be one of general"),
        (
            ["--trust", "shuffle", "--n", "100", "--neighbours", "add-remove"],
            2,
            "neighbours must be replace-one for --trust shuffle",
        ),
        (
            ["--trust", "shuffle", "--n", "100", "--sample-rate", "0.01"],
            2,
            "sample-rate must leave at least 2 of the n = 100 parties",
        ),
        (
            ["--trust", "shuffle", "--n", "100", "--epsilon", "1e-9", "--delta", "0"],
            4,
            "no local epsilon from 1e-05 on",
        ),
        (["--trust", "local", "--sample-rate", "0.1"], 2, "sample-rate must be 1 for --trust local"),
        (["--trust", "local", "--mechanism", "2rr"], 2, "mechanism goes with --trust shuffle only"),
        (["--mechanism", "2rr"], 2, "mechanism goes with --trust shuffle only"),
        (["--rounds", "0"], 2, "rounds must be a whole number >= 1, got 0"),
        (["--sample-rate", "0"], 2, "sample-rate must be in (0, 1], got 0.0"),
        (["--neighbours", "swap"], 2, "neighbours must be one of replace-one"),
    ],
)
def test_bad_input_is_one_line(
    more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refusal([*BUDGET, *more], said, capsys, code=code)
