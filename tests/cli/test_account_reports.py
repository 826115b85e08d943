"""`tacit account reports`, `account halving` and `plan reports`: prices, statements, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest

from tacit.cli import main
from tacit.cli.names import REPORTS
from tacit.learning import HalvedStep, HalvingTuner
from tacit.learning.algorithms.shuffled_reports import ReportRandomizer, event_of_reports, report_mean
from tacit.literature.shuffling.rounds import cldp_epsilons
from tacit.means import multiset_bits
from tacit.privacy import Compose, Gaussian, Laplace, Repeat, Shuffled, TrustModel, epsilon_of
from tacit.privacy.shuffling import drawn_round, self_drawn_round
from tests.cli.accounting import answer, check_refusal, check_statement, printed

FEW = [
    *["reports", "--local-epsilon", "1", "--clients", "60", "--rounds", "3", "--dim", "8"],
    *["--randomizer", "hadamard", "--delta", "1e-5"],
]
HALVING = ["halving", "gaussian:20x100", "--rounds", "100", "--most-runs", "3", "--delta", "1e-5"]


def test_other_accountants_stand_beside_the_price(capsys: pytest.CaptureFixture[str]) -> None:
    """Girgis (2023) accounts with v = 1.5, whose exact level is 1.386."""
    level, sizes = 2 * math.asinh(0.75), ["--clients", "600", "--drawn", "100", "--rounds", "60"]
    facts = [*sizes, "--dim", "13170", "--randomizer", "bitplane", "--delta", "1e-5"]
    exact = answer(["reports", "--local-epsilon", str(level), *facts], capsys)
    assert exact["bits_per_client"] == 15 / 6
    others = cldp_epsilons(level, 1e-5, rounds=60, clients=600, sampled_clients=100)
    assert exact["accountants"] == {"general" if k == "curve" else k: v for k, v in others.items()}
    assert all(exact["epsilon"] <= value for value in exact["accountants"].values())


def test_a_price_is_that_of_its_rounds_and_its_statement_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mean = report_mean("hadamard", 1 / (2 * math.sinh(0.5)), dim=8, trust=TrustModel.SHUFFLE)
    one = drawn_round(lambda k: mean.event(k, TrustModel.SHUFFLE), clients=60, drawn=6, records=4)
    found = answer([*FEW, "--drawn", "6", "--records", "4"], capsys)
    assert found["epsilon"] == pytest.approx(epsilon_of(Repeat(one, 3), 1e-5), abs=1e-6)
    assert found["epsilon"] < answer([*FEW, "--drawn", "6"], capsys)["epsilon"]
    check_statement(found, tmp_path / "one.json", capsys)
    facts: dict[str, Any] = {"clients": 60, "drawn": 6, "records": 4, "sampled": 2}
    two = drawn_round(lambda k: mean.event(2 * k, TrustModel.SHUFFLE), **facts)
    assert event_of_reports(mean, rounds=3, **facts) == Repeat(two, 3)
    several = answer([*FEW, "--drawn", "6", "--records", "4", "--sampled", "2"], capsys)
    assert several["bits_per_client"] == multiset_bits(2, 16) / 10
    check_statement(several, tmp_path / "several.json", capsys)
    for name, value in (
        ("bits_per_client", 0.1),
        ("clients", 61),
        ("dim", 7),  # of as many bits and the same price
        ("accountants", {}),
        ("randomizer", "privunit"),
        ("randomizer", "none of them"),
    ):
        (tmp_path / "wrong.json").write_text(json.dumps({**found, name: value}))
        assert main(["account", "verify", str(tmp_path / "wrong.json")]) == 1, name
    capsys.readouterr()
    said = printed([*FEW, "--drawn", "6"], capsys)
    assert "60, 6 drawn in secret" in said
    assert "all of them in every round" in printed(FEW, capsys)
    assert "by Rényi" in said
    assert "nobody but the shuffler learns which parties are" in said


def test_clients_that_join_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([*FEW, "--join-rate", "0.2"], capsys)
    assert found["accountants"] == {}
    assert found["bits_per_client"] == pytest.approx(0.2 * 4)
    once = self_drawn_round(lambda k: Shuffled(1.0, k), clients=60, rate=0.2)
    assert found["epsilon"] <= epsilon_of(Repeat(once, 3), 1e-5)
    check_statement(found, tmp_path / "one.json", capsys)
    (tmp_path / "wrong.json").write_text(json.dumps({**found, "accountants": []}))
    assert main(["account", "verify", str(tmp_path / "wrong.json")]) == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--drawn", "61"], "drawn must be"),
        (["--drawn", "6", "--join-rate", "0.1"], "drawn and join-rate exclude each other"),
        (["--join-rate", "0"], "join-rate must be"),
        (["--records", "2", "--sampled", "3"], "sampled must be"),
        (["--dim", "0"], "dim must be"),
        (["--rounds", "0"], "rounds must be"),
        (["--rounds", "10000001"], "rounds must be"),
        (["--local-epsilon", "0"], "local-epsilon must be"),
    ],
)
def test_what_has_no_price_is_refused(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_refusal([*FEW, *more], said, capsys)


def test_reports_are_those_of_the_algorithm() -> None:
    assert list(REPORTS) == list(get_args(ReportRandomizer))


def test_all_runs_and_all_losses_of_a_halving_are_paid_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([*HALVING, "--check", "laplace:500"], capsys)
    event = Compose((Repeat(Gaussian(20.0), 300), Repeat(Laplace(500.0), 3 * 5)))
    assert found["epsilon"] == pytest.approx(epsilon_of(event, 1e-5), rel=1e-3)
    tuner = HalvingTuner(most_runs=3)
    whole = tuner.at_most(Repeat(Gaussian(20.0), 100), Laplace(500.0), rounds=100)
    assert found["epsilon"] == pytest.approx(epsilon_of(whole, 1e-5), abs=1e-6)
    check_statement(found, tmp_path / "one.json", capsys)
    (tmp_path / "fewer.json").write_text(json.dumps({**found, "most_runs": 2}))
    assert main(["account", "verify", str(tmp_path / "fewer.json")]) == 1


def test_losses_that_are_read_as_they_are_make_a_halving_not_private(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer(HALVING, capsys)
    assert found["epsilon"] is None
    (tmp_path / "one.json").write_text(json.dumps(found))
    assert main(["account", "verify", str(tmp_path / "one.json")]) == 0
    capsys.readouterr()
    said = printed(HALVING, capsys)
    assert HalvedStep.warning in said
    assert "No privacy is claimed" in said
    assert "none: the losses are exact" in said
    check_refusal([*HALVING, "--check", "x.json"], "got a JSON file", capsys)
    check_refusal([*HALVING, "--most-runs", "0"], "most-runs must be", capsys)
    for never in ("0", "101"):  # a run ends before its first loss: no step would be halved
        check_refusal([*HALVING, "--check-every", never], "check-every must be", capsys)


def test_ways_to_spend_a_budget_come_by_their_bound(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "reports", "--clients", "60", "--dim", "8", "--epsilon", "1", "--delta", "1e-5"]
    argv += ["--rounds", "5", "--randomizer", "hadamard"]
    argv += ["--drawn", "6", "--drawn", "60"]
    assert main([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["risk"] for one in found["plans"]] == sorted(one["risk"] for one in found["plans"])
    assert {one["drawn"] for one in found["plans"]} == {6, 60}
    for one in found["plans"]:
        facts = [f"--local-epsilon={one['local_epsilon']}", "--clients=60", f"--drawn={one['drawn']}"]
        facts += ["--rounds=5", "--dim=8", "--randomizer=hadamard", "--delta=1e-5"]
        price = answer(["reports", *facts], capsys)
        assert price["epsilon"] == pytest.approx(one["epsilon"], rel=1e-6)
        assert price["bits_per_client"] == pytest.approx(one["bits"])
    assert main(argv) == 0
    assert "60 clients of 1 record, 8 parameters, hadamard" in capsys.readouterr().out
    assert main([*argv, "--rounds", "0"]) == 2
    assert "rounds must be" in capsys.readouterr().err
    assert main([*argv, "--sampled", "2"]) == 2
    assert "sampled must be" in capsys.readouterr().err
