"""`tacit account subsample`: agreement with `epsilon`, statements, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.privacy import Gaussian, Neighbours, Relation, event_to_json
from tests.cli.accounting import answer, check_refusal, check_statement, printed

GAUSSIAN = ["subsample", "gaussian:1.5", "--sample-rate", "0.01", "--delta", "1e-5", "--rounds", "1000"]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_it_costs_what_epsilon_says(neighbours: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*GAUSSIAN, "--neighbours", neighbours], capsys)
    argv = ["epsilon", "--noise", "1.5", "--delta", "1e-5", "--rounds", "1000", "--neighbours", neighbours]
    assert found["epsilon"] == answer([*argv, "--sample-rate", "0.01"], capsys)["epsilon"]
    assert found["epsilon_without_sampling"] == pytest.approx(answer(argv, capsys)["epsilon"], abs=1e-6)
    assert found["epsilon_per_round"] < found["epsilon"] < found["epsilon_without_sampling"]
    assert found["neighbours"] == neighbours


@pytest.mark.parametrize("release", ["gaussian:1.5", "laplace:2", "shuffle:1,500", "pure:0.5"])
def test_a_price_is_a_statement(release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["subsample", release, "--sample-rate", "0.1", "--delta", "1e-5", "--rounds", "5"]
    found = answer(argv, capsys)
    assert "nobody learns which records are sampled" in found["guarantees"][0]["assumptions"]
    check_statement(found, tmp_path / "statement.json", capsys)


def test_a_sample_of_everything_hides_nothing_and_assumes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = answer(["subsample", "gaussian:2", "--sample-rate", "1", "--delta", "1e-5"], capsys)
    assert found["epsilon"] == pytest.approx(found["epsilon_without_sampling"], abs=1e-6)
    assert found["guarantees"][0]["assumptions"] == []


def test_an_event_from_a_file_brings_its_neighbours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(event_to_json(Gaussian(1.5, Neighbours(Relation.ADD_REMOVE))))
    found = answer(["subsample", str(path), *GAUSSIAN[2:]], capsys)
    assert found["neighbours"] == "add-remove"
    assert found["epsilon"] == answer([*GAUSSIAN, "--neighbours", "add-remove"], capsys)["epsilon"]


def test_people_read_both_prices(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(GAUSSIAN, capsys)
    assert "Price of gaussian:1.5 on secret samples" in out
    assert "without sampling" in out
    assert "fixed-size samples of 1% of the records" in out


@pytest.mark.parametrize(
    ("release", "more", "said"),
    [
        ("gaussian:1", ["--sample-rate", "0"], "sample-rate must be in (0, 1], got 0.0"),
        ("gaussian:1", ["--sample-rate", "2"], "sample-rate must be in (0, 1], got 2.0"),
        ("gaussian:1", ["--rounds", "0"], "rounds must be a whole number >= 1, got 0"),
        ("gaussian:1", ["--delta", "0"], "delta must be > 0 for this release"),
        ("gaussian:1", ["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        ("gaussian:1", ["--neighbours", "add"], "neighbours must be one of"),
        ("shuffle:1,100", ["--neighbours", "add-remove"], "under replace-one neighbours only"),
        ("gauss:1", [], "start with one of gaussian, laplace"),
    ],
)
def test_bad_input_is_one_line(
    release: str, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refusal(["subsample", release, "--sample-rate", "0.1", "--delta", "1e-5", *more], said, capsys)


def test_one_round_is_what_is_priced_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["subsample", "gaussian:1.5", "--sample-rate", "0.1", "--delta", "1e-6"]
    assert answer(argv, capsys) == answer([*argv, "--rounds", "1"], capsys)
