"""`tacit account aggregate`: a sum with shares of noise, and one message alone."""

from __future__ import annotations

import math

import pytest

from tacit.cli import main
from tests.cli.accounting import answer, printed

TEN = ["aggregate", "--parties", "10", "--noise", "3.7306316348", "--dim", "65"]


def test_ten_parties_of_whom_two_collude(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*TEN, "--colluding", "2"], capsys)
    assert found["epsilon"] == pytest.approx(1.0, abs=2e-6)
    assert found["epsilon_alone"] == pytest.approx(3.186, abs=5e-4)
    assert (found["shares"], found["steps"], found["bits_of_a_coordinate"]) == (8, 512, 17)
    assert found["std_of_a_share"] == pytest.approx(1361.3, abs=0.05)
    assert "at least 8 honest parties add their share of the noise to every sum" in found["assumptions"]
    text = printed([*TEN, "--colluding", "2"], capsys)
    assert "the server and all other parties together, " in text
    assert "10, of which 10 in a sum and 8 honest at least" in text


def test_who_may_be_missing_counts_like_who_colludes(capsys: pytest.CaptureFixture[str]) -> None:
    both = [
        answer([*TEN, *more], capsys) for more in (["--n-min", "9", "--colluding", "1"], ["--colluding", "2"])
    ]
    assert both[0]["epsilon"] == both[1]["epsilon"]
    assert both[0]["std_of_a_share"] == both[1]["std_of_a_share"]


def test_rounds_cost_as_those_of_gaussian_noise(capsys: pytest.CaptureFixture[str]) -> None:
    many = answer(
        ["aggregate", "--parties", "100", "--colluding", "20", "--noise", "20", "--rounds", "16"], capsys
    )
    plain = answer(["epsilon", "--noise", "20", "--rounds", "16", "--delta", "1e-5"], capsys)
    assert many["epsilon"] == pytest.approx(plain["epsilon"], rel=1e-6)
    assert many["epsilon_alone"] > math.sqrt(60) * many["epsilon"]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--colluding", "9"], "colluding must leave at least 2 honest parties of n-min = 10, got 9."),
        (["--colluding", "-1"], "colluding must be a whole number from 0 to 9, got -1."),
        (["--n-min", "11"], "n-min must be a whole number from 2 to 10, got 11."),
        (["--steps", "1", "--dim", "1", "--noise", "1"], "take more steps"),
        (["--noise", "0"], "noise must be a finite number > 0, got 0.0."),
        (["--rounds", "0"], "rounds must be a whole number >= 1, got 0."),
        (["--noise", "1e300"], "noise_multiplier * steps must be in [2**-20, 2**54]"),
        (["--noise", "1e308"], "noise_multiplier must be a finite number > 0"),
        (["--dim", str(10**400)], "dim must be"),
        (["--parties", str(10**400)], "parties must be"),
        (["--colluding", str(10**400)], "colluding must be"),
    ],
)
def test_refusals(more: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", *TEN, *more]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert complaint in said
    assert len(said) < 300
