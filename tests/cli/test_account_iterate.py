"""`tacit account iterate`: noise, statements, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.accounting import answer, check_refusal, check_statement, printed

RUN = ["iterate", "--n", "1000", "--epochs", "50", "--delta", "1e-6"]


@pytest.mark.parametrize(
    ("more", "noise"),
    [
        # sigma / G at epsilon 5: docs/theory/iteration.md, section 5.
        (["--release", "last"], 1.41329),
        (["--release", "last", "--order", "so"], 1.41329),
        (["--release", "last", "--order", "ig"], 2.00755),
        (["--release", "last", "--worst-case-order"], 2.00755),
        (["--release", "last", "--neighbours", "zero-out"], 1.41329 / 2),
        (["--release", "last", "--private", "500"], 0.32617),
        (["--release", "epochs"], 2.21662),
        (["--release", "epochs", "--order", "so"], 9.75662),
        (["--release", "epochs", "--order", "ig"], 13.85999),
        (["--release", "all", "--loss", "any", "--step-times-smoothness", "9"], 13.85999),
        (["--release", "all", "--private", "500"], 10.2648),
        (["--release", "last", "--placement", "epoch-end"], 13.85999),
        (["--release", "epochs", "--placement", "epoch-end", "--private", "500"], 10.2648),
    ],
)
def test_the_noise_has_the_tabled_values(
    more: list[str], noise: float, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([*RUN, "--epsilon", "5", *more], capsys)
    assert found["noise_multiplier"] == pytest.approx(noise, rel=3e-5)
    assert 4.9999 < found["epsilon"] <= 5


def test_noise_and_epsilon_are_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*RUN, "--noise", "1.413287"], capsys)
    assert found["epsilon"] <= 5 < answer([*RUN, "--noise", "1.41328"], capsys)["epsilon"]


@pytest.mark.parametrize("release", ["last", "epochs", "all"])
def test_a_price_is_a_statement_that_says_what_it_rests_on(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["iterate", "--n", "50", "--epochs", "4", "--delta", "1e-6", "--epsilon", "2"]
    found = answer([*argv, "--release", release], capsys)
    said = found["guarantees"][0]["sentence"]
    assert ("convex" in said) is (release != "all")
    assert ("only the last iterate leaves" in said) is (release == "last")
    assert {"last": "the last iterate", "epochs": "at the ends of epochs", "all": "all iterates"}[
        release
    ] in found["guarantees"][0]["observer"]
    check_statement(found, tmp_path / "statement.json", capsys)


def test_people_read_the_noise(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed([*RUN, "--epsilon", "5", "--private", "500"], capsys)
    assert "noise multiplier 0.326" in out
    assert "50 epochs of 1,000, the first 500 of each on private records" in out
    assert "reshuffled every epoch" in out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ([], 2, "give either --epsilon (a budget) or --noise"),
        (["--noise", "1", "--neighbours", "add-remove"], 2, "neighbours must be replace-one or zero-out"),
        (["--noise", "1", "--epsilon", "1"], 2, "give either --epsilon (a budget) or --noise"),
        (["--epsilon", "0"], 2, "epsilon must be a finite number > 0, got 0.0"),
        (["--noise", "0"], 2, "noise must be a finite number > 0, got 0.0"),
        (["--noise", "1", "--n", "0"], 2, "n must be a whole number >= 1, got 0"),
        (["--noise", "1", "--epochs", "0"], 2, "epochs must be a whole number >= 1, got 0"),
        (["--noise", "1", "--private", "0"], 2, "private must be a whole number from 1 to 1000, got 0"),
        (["--noise", "1", "--private", "1001"], 2, "private must be a whole number from 1 to 1000"),
        (["--noise", "1", "--delta", "0"], 2, "delta must be > 0 for this release"),
        (["--epsilon", "1", "--delta", "0"], 4, "choose delta > 0"),
        (["--epsilon", "1", "--delta", "2"], 2, "delta must be in [0, 1), got 2.0"),
        (["--noise", "1", "--release", "end"], 2, "release must be one of all, epochs, last"),
        (["--noise", "1", "--placement", "end"], 2, "placement must be one of every-step, epoch-end"),
        (
            ["--noise", "1", "--release", "all", "--placement", "epoch-end"],
            2,
            "placement must be every-step where all iterates are released",
        ),
        (["--noise", "1", "--order", "random"], 2, "order must be one of rr, so, ig"),
        (["--noise", "1", "--loss", "neural"], 2, "loss must be one of convex, any"),
        (
            ["--noise", "1", "--loss", "any"],
            2,
            "loss must be convex where iterates are hidden (--release last)",
        ),
        (["--noise", "1", "--step-times-smoothness", "2.1"], 2, "step-times-smoothness must be at most 2"),
        (["--noise", "1", "--step-times-smoothness", "nan"], 2, "step-times-smoothness must be a finite"),
    ],
)
def test_bad_input_is_one_line(
    more: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refusal([*RUN, *more], said, capsys, code=code)
