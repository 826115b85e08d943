"""`tacit mean --trust aggregate`: tables that hide each other in a sum, two prices, and who pays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli import main
from tacit.ledger import CENTRAL, DATA_SET, Ledger, create_ledgers, ledger_path
from tacit.privacy import Neighbours, PrivacyBudget

ASKED = ["--columns", "age", "bmi", "--lower", "0", "0", "--upper", "100", "60", "--epsilon", "1"]
SUMMED = [*ASKED, "--delta", "1e-6", "--trust", "aggregate"]
Data = dict[str, Any]


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    """Four tables with 50, 60, 70 and 80 rows, two for each patient of a table."""
    folder = tmp_path / "wards"
    folder.mkdir()
    rng = np.random.default_rng(3)
    for k, name in enumerate(("braga", "coimbra", "faro", "porto")):
        rows = [f"{rng.uniform(20, 90):.0f},{rng.uniform(18, 40):.1f},p{i // 2}" for i in range(50 + 10 * k)]
        (folder / f"{name}.csv").write_text("\n".join(["age,bmi,patient", *rows]) + "\n")
    return folder


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> Data:
    assert main(["mean", *words, "--json"]) == 0
    found: Data = json.loads(capsys.readouterr().out)
    return found


def test_both_prices_are_said_and_verified(
    wards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(wards), *SUMMED, "--colluding", "2"]
    found = answer([*words, "--seed", "0"], capsys)
    assert (found["n"], found["tables"], found["colluding"]) == (260, 4, 2)
    assert found["epsilon"] == 1.0 < found["epsilon_alone"]
    assert "the sum of all tables and up to 2 of them together" in found["guarantee"]
    assert "who see the message of one table alone" in found["guarantee_alone"]
    assert [one.get("alone", False) for one in found["about"]] == [False, True]
    events = [claim["event"] for claim in found["guarantees"]]
    assert [event["event"] for event in events] == ["DiscreteGaussianSum", "DiscreteGaussian"]
    assert events[0]["shares"] == 2
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "verified: 2 guarantees" in out
    assert "aggregate, one message alone:" in out
    assert main(["mean", *words, "--seed", "0"]) == 0
    assert "one message alone: (epsilon = " in " ".join(capsys.readouterr().out.split())


def test_the_noise_is_that_of_a_trusted_server_and_of_the_colluders(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    central = answer([str(wards), *ASKED, "--delta", "1e-6", "--seed", "0"], capsys)
    local = answer([str(wards), *ASKED, "--delta", "1e-6", "--seed", "0", "--trust", "local"], capsys)
    summed = answer([str(wards), *SUMMED, "--seed", "0"], capsys)
    guarded = answer([str(wards), *SUMMED, "--seed", "0", "--colluding", "2"], capsys)
    assert summed["noise_std"]["age"] == pytest.approx(central["noise_std"]["age"], rel=1e-4)
    assert guarded["noise_std"]["age"] == pytest.approx(2**0.5 * central["noise_std"]["age"], rel=1e-4)
    assert guarded["noise_std"]["age"] < local["noise_std"]["age"] / 5
    for found in (summed, guarded):
        low, high = found["confidence_interval"]["age"]
        assert low < found["mean"]["age"] < high


def test_persons_are_bounded_table_by_table(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([str(wards), *SUMMED, "--seed", "0", "--person", "patient"], capsys)
    assert found["n"] == 25 + 30 + 35 + 40  # p0 of one table and p0 of another count twice
    assert "no person has records in two silos" in found["guarantee"]
    assert "no person has records in two silos" in found["guarantee_alone"]
    central = answer([str(wards), *ASKED, "--seed", "0", "--person", "patient"], capsys)
    assert central["n"] == 40


def test_every_table_pays_the_price_of_the_sum(wards: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [file.stem for file in sorted(wards.glob("*.csv"))]
    accounts = wards / "silos.ledger"
    create_ledgers(accounts, names, limit=PrivacyBudget(2.0, 1e-5), neighbours=Neighbours())
    assert main(["mean", str(wards), *SUMMED, "--colluding", "2"]) == 0
    capsys.readouterr()
    spent = {name: Ledger.open(ledger_path(accounts, name)).spent() for name in [*names, DATA_SET, CENTRAL]}
    assert {name: (one.epsilon, one.delta) for name, one in spent.items()} == {
        **dict.fromkeys([*names, DATA_SET], (1.0, 1e-6)),
        CENTRAL: (0.0, 0.0),
    }


def test_a_total_of_several_runs_says_against_how_many_colluders_it_holds(
    wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = wards / "silos.ledger"
    names = [file.stem for file in sorted(wards.glob("*.csv"))]
    create_ledgers(accounts, names, limit=PrivacyBudget(3.0, 1e-5), neighbours=Neighbours())
    said = "no more parties collude than the statement of each of these allows for"
    assert main(["mean", str(wards), *ASKED]) == 0
    assert main(["ledger", "show", str(wards)]) == 0
    assert said not in " ".join(capsys.readouterr().out.split())
    assert main(["mean", str(wards), *SUMMED, "--colluding", "2"]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", str(wards)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert main(["ledger", "show", str(wards), "--json"]) == 0
    found = {one["label"]: one for one in json.loads(capsys.readouterr().out)["ledgers"]}
    assert len(found["faro"]["sums"]) == 1
    assert found["faro"]["sums"] == [one["run"] for one in found["faro"]["entries"]]
    assert found[DATA_SET]["sums"] == found["faro"]["sums"]
    assert len(found[DATA_SET]["entries"]) == 2
    assert found[CENTRAL]["sums"] == []


def cut(found: Data) -> None:
    found["guarantees"].pop()
    found["about"].pop()
    found["count"] = 1


def swap(found: Data) -> None:
    found["guarantees"].reverse()


def one_trust(found: Data) -> None:
    found["trust"] = "central"
    for one in found["about"]:
        one["trust"] = "central"


def fewer(found: Data) -> None:
    found["colluding"] = 1
    claim = found["guarantees"][0]
    claim["observer"] = claim["observer"].replace("up to 2", "up to 1")
    del claim["sentence"], found["guarantee"]


def cheaper(found: Data) -> None:
    found["epsilon_alone"] = found["guarantees"][1]["epsilon"] = 0.5
    del found["guarantees"][1]["sentence"], found["guarantee_alone"]


def unsaid(found: Data) -> None:
    claim = found["guarantees"][0]
    claim["assumptions"] = [one for one in claim["assumptions"] if "before all" not in one]
    del claim["sentence"], found["guarantee"]


def noisier(found: Data) -> None:
    for claim in found["guarantees"]:
        claim["event"]["std"] *= 2 if "shares" in claim["event"] else 1


def about_others(found: Data) -> None:
    found["about"][1]["units"] = 1_000


@pytest.mark.parametrize("change", [cut, swap, one_trust, fewer, cheaper, unsaid, noisier, about_others])
def test_changed_answers_are_refused(
    change: Callable[[Data], None], wards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answer([str(wards), *SUMMED, "--seed", "0", "--colluding", "2"], capsys)
    change(found)
    statement = tmp_path / "statement.json"
    statement.write_text(json.dumps(found))
    assert main(["account", "verify", str(statement)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--colluding", "3"], "colluding must be at most 2 of 4 tables"),
        (["--colluding", "-1"], "colluding must be a whole number >= 0, got -1"),
        (["--delta", "0"], "delta must be > 0 under aggregate trust"),
    ],
)
def test_what_no_sum_hides_is_refused(
    words: list[str], said: str, wards: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mean", str(wards), *SUMMED, *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len([line for line in captured.err.splitlines() if not line.startswith("warning: ")]) == 1
