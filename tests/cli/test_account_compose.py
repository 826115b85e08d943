"""`tacit account compose`: every way to write a release, statements, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli.account.releases import RELEASES, parse_release
from tacit.privacy import (
    ApproximateDP,
    Binomial,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    ObjectivePerturbed,
    PureDP,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    Shuffled,
    Zcdp,
    event_to_json,
    guarantee,
)
from tests.cli.accounting import answer, check_refusal, check_statement, printed

NOTHING = Neighbours(Relation.ZERO_OUT)
"""A record against its absence: what Poisson samples under replace-one are priced by."""
WRITTEN: dict[str, Event] = {
    "gaussian:2": Gaussian(2.0),
    "laplace:4": Laplace(4.0),
    "gdp:0.5": Gdp(0.5),
    "zcdp:0.1": Zcdp(0.1),
    "pure:0.3": PureDP(0.3),
    "approx:0.3,1e-9": ApproximateDP(0.3, 1e-9),
    "discrete-gaussian:40,12": DiscreteGaussian(40.0, 12.0),
    "discrete-laplace:3,2": DiscreteLaplace(3.0, 2),
    "binomial:7148,10,1": Binomial(7148, 10),
    "perturbed:4,2.5": ObjectivePerturbed(4.0, 2.5),
    "shuffle:1,1000": Shuffled(1.0, 1000),
    "shuffle:1,1e3,krr:16": Shuffled(1.0, 1000, "krr:16"),
    "gaussian:1.1@0.01x1000": Repeat(Sampled(Gaussian(1.1), 0.01, Sample.FIXED), 1000),
    "gaussian:1.1@fixed:0.01": Sampled(Gaussian(1.1), 0.01, Sample.FIXED),
    "gaussian:1.1@poisson:0.01x1000": Repeat(Replaced(Gaussian(2.2, NOTHING), 0.01), 1000),
    "gdp:0.5@poisson:0.1": Replaced(Gdp(0.25, NOTHING), 0.1),
    "discrete-gaussian:40,12@poisson:0.1": Replaced(DiscreteGaussian(40.0, 6.0, NOTHING), 0.1),
    "approx:1,1e-9@0.5x1e2": Repeat(Sampled(ApproximateDP(1.0, 1e-9), 0.5, Sample.FIXED), 100),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_release_is_what_it_says(text: str) -> None:
    assert parse_release(text, neighbours="replace-one") == WRITTEN[text]


def test_every_kind_of_release_is_tested() -> None:
    assert {text.partition(":")[0] for text in WRITTEN} == set(RELEASES)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_price_is_a_statement(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(["compose", text, "gaussian:3x4", "--delta", "1e-6"], capsys)
    check_statement(found, tmp_path / "statement.json", capsys)
    alone = [row["epsilon"] for row in found["releases"]]
    assert max(alone) <= found["epsilon"] + 1e-6
    assert [row["release"] for row in found["releases"]] == [text, "gaussian:3x4"]


def test_poisson_samples_say_what_a_record_may_contribute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--delta", "1e-5"]
    found = answer(["compose", "gaussian:1@poisson:0.01x1000", *asked], capsys)
    check_statement(found, tmp_path / "statement.json", capsys)
    same = ["epsilon", "--noise", "1", "--rounds", "1000", "--sample-rate", "0.01", "--sampling", "poisson"]
    wanted = answer([*same, *asked], capsys)
    assert found["epsilon"] == wanted["epsilon"]
    assert (
        found["epsilon"] < answer(["compose", "gaussian:1@fixed:0.01x1000", *asked], capsys)["epsilon"] / 1.8
    )
    clause = "no record contributes more than half of the sensitivity that the noise is measured in"
    assert clause in found["guarantees"][0]["assumptions"]
    claim = found["guarantees"][0]
    claim["assumptions"].remove(clause)
    del claim["sentence"]
    (tmp_path / "statement.json").write_text(json.dumps(found))
    check_refusal(["verify", str(tmp_path / "statement.json")], clause, capsys, code=1)
    of_a_sample = answer(["subsample", "gaussian:1@poisson:0.1", "--sample-rate", "0.1", *asked], capsys)
    assert clause in of_a_sample["guarantees"][0]["assumptions"]
    check_statement(of_a_sample, tmp_path / "statement.json", capsys)
    # Under the others every sample is a Poisson one, and nothing has to be said.
    for text in ("gaussian:1@0.01", "gaussian:1@poisson:0.01"):
        other = answer(["compose", text, *asked, "--neighbours", "add-remove"], capsys)
        assert clause not in other["guarantees"][0]["assumptions"]


def test_gaussian_releases_add_up_in_squares(capsys: pytest.CaptureFixture[str]) -> None:
    several = answer(["compose", "gaussian:3", "gaussian:4", "gaussian:2x2", "--delta", "1e-6"], capsys)
    z = (1 / 9 + 1 / 16 + 1 / 2) ** -0.5
    assert several["epsilon"] == answer(["compose", f"gaussian:{z!r}", "--delta", "1e-6"], capsys)["epsilon"]


def test_a_file_holds_an_event_or_a_guarantee(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    event = Compose((Gaussian(2.0), Laplace(4.0)))
    (tmp_path / "event.json").write_bytes(event_to_json(event))
    claim = guarantee(event, 1e-5, observer="the server")
    (tmp_path / "claim.json").write_bytes(claim.to_json())
    for name in ("event.json", "claim.json"):
        found = answer(["compose", str(tmp_path / name), "--delta", "1e-5"], capsys)
        assert found["epsilon"] == claim.epsilon


def test_people_read_each_price_and_that_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(["compose", "gaussian:2x10", "pure:0.1", "--delta", "1e-6"], capsys)
    assert "gaussian:2x10 8.30623" in out
    assert "pure:0.1 0.09999" in out
    assert "all together" in out


@pytest.mark.parametrize(
    ("releases", "more", "said"),
    [
        ([], [], "Missing argument 'RELEASES...'"),
        (["gaussian:1"], ["--delta", "0"], "delta must be > 0 for this release"),
        (["gaussian:1"], ["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        (["gauss:1"], [], "start with one of gaussian, laplace, gdp"),
        (["gaussian"], [], "must have the form gaussian:STD/SENSITIVITY, then perhaps @SAMPLE_RATE"),
        (["gaussian:1@0.5@0.5"], [], "must have the form gaussian:STD/SENSITIVITY"),
        (["gaussian:1,2"], [], "'gaussian:1,2': it must have the form gaussian:STD/SENSITIVITY"),
        (["gaussian:one"], [], "'gaussian:one': 'one' is not a number"),
        (["gaussian:0"], [], "'gaussian:0': noise_multiplier must be a finite number > 0"),
        (["gaussian:nan"], [], "'gaussian:nan': noise_multiplier must be a finite number > 0"),
        (["gaussian:1x0"], [], "'gaussian:1x0': COUNT must be a whole number >= 1, got 0"),
        (["gaussian:1x1.5"], [], "'gaussian:1x1.5': '1.5' must be a whole number"),
        (["gaussian:1@0"], [], "'gaussian:1@0': SAMPLE_RATE must be in (0, 1], got 0.0"),
        (["gaussian:1@2"], [], "'gaussian:1@2': SAMPLE_RATE must be in (0, 1], got 2.0"),
        (["gaussian:1@poisson:2"], [], "'gaussian:1@poisson:2': SAMPLE_RATE must be in (0, 1], got 2.0"),
        (["gaussian:1@shuffled:0.1"], [], "'shuffled:0.1' is not a number"),
        (
            ["laplace:1@poisson:0.1"],
            [],
            "'laplace:1@poisson:0.1': sampling must be 'fixed' under replace-one for all but gaussian, gdp",
        ),
        (["discrete-gaussian:1,1@poisson:0.1"], [], "continuous or on a fine grid"),
        (
            ["gaussian:1@fixed:0.1"],
            ["--neighbours", "zero-out"],
            "a fixed sample cannot be priced under zero",
        ),
        (["approx:1,2"], [], "'approx:1,2': delta must be in [0, 1), got 2.0"),
        (["binomial:100,1"], [], "must have the form binomial:TRIALS,RESOLUTION,DIM"),
        (["binomial:100,1,1.5"], [], "'1.5' must be a whole number"),
        (["shuffle:1"], [], "must have the form shuffle:LOCAL_EPSILON,PARTIES"),
        (["shuffle:1,1"], [], "PARTIES must be at least 2, got 1: a shuffle of one message hides nothing"),
        (["shuffle:1,100,magic"], [], "mechanism must be one of general, 2rr"),
        (
            ["gaussian:1", "shuffle:1,100"],
            ["--neighbours", "add-remove"],
            "'shuffle:1,100': a shuffled batch is priced under replace-one neighbours only",
        ),
        (["gaussian:1"], ["--neighbours", "swap"], "neighbours must be one of replace-one"),
        (["missing.json"], [], "the release missing.json cannot be read"),
    ],
)
def test_bad_input_is_one_line(
    releases: list[str], more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_refusal(["compose", *releases, "--delta", "1e-6", *more], said, capsys)


def test_files_of_other_neighbours_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(event_to_json(parse_release("gaussian:1", neighbours="add-remove")))
    check_refusal(["compose", str(path), "gaussian:1", "--delta", "1e-6"], "neighbours", capsys)
    path.write_text(json.dumps({"event": "Magic"}))
    assert "event must be one of" in refused(["compose", str(path), "--delta", "1e-6"], capsys)


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    from tacit.cli import main

    assert main(["account", *argv]) in (1, 2)
    return capsys.readouterr().err
