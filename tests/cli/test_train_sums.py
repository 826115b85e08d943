"""`tacit train --trust aggregate`: two observers of every silo, said, paid for and checked everywhere."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.app import main
from tacit.errors import ParameterError
from tacit.federation import Plan
from tacit.jobs import Job, JobConfig
from tacit.ledger import CENTRAL, DATA_SET, Ledger, ledger_path
from tacit.privacy.run_clauses import IN_ONE_PLACE, clauses_of_sums
from tests.jobs.tables import write_patients

SILOS = ("n", "o", "s", "w")
ROUNDS = ("--rounds", "3")
Data = dict[str, Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_patients(tmp_path, silos=SILOS)


def run(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["train", *words, "--out", str(tmp_path / "runs")])
    return code, *capsys.readouterr()


def on(table: Path, *more: str) -> list[str]:
    words = ["--label", "ill", "--silo-column", "site", "--trust", "aggregate", "--name", "r", *ROUNDS]
    return [str(table), *words, *more]


def statement_of(tmp_path: Path) -> tuple[Path, Data]:
    path = tmp_path / "runs" / "r" / "statement.json"
    return path, json.loads(path.read_text())


def test_a_run_says_both_observers_everywhere(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(on(table, "--seed", "0", "--colluding", "2", "--epsilon", "1"), tmp_path, capsys)
    assert code == 0, err
    found = " ".join(out.split())
    assert "aggregate, each of silos 'n', 'o', 's', 'w':" in found
    assert "aggregate, one message alone, each of silos 'n', 'o', 's', 'w':" in found
    assert "the server and up to 2 other parties together," in found
    folder = tmp_path / "runs" / "r"
    page = (folder / "report.html").read_text()
    assert "the server and up to 2 other silos included." in page
    assert "Every sum must hold the noise of 2 honest silos at least" in page
    assert "For the server and all other silos together, who see what one silo sends, epsilon is" in page
    (figures,) = json.loads((folder / "metrics.json").read_text())["results"]
    assert figures["epsilon_alone"] > figures["epsilon"] == 1.0
    plan = Plan.from_toml((folder / "plan.toml").read_text())
    assert (plan.trust, plan.n_min, plan.colluding, plan.recover) == ("aggregate", 4, 2, False)
    path, statement = statement_of(tmp_path)
    about = [(one["silo"], one.get("alone", False)) for one in statement["about"]]
    assert about == [(silo, alone) for alone in (False, True) for silo in SILOS]
    assert all(IN_ONE_PLACE in one["assumptions"] for one in statement["guarantees"][:4])
    assert main(["account", "verify", str(path)]) == 0
    assert json.loads((folder / "model.json").read_text())["trust"] == "aggregate"
    assert main(["model", "show", str(folder), "--json"]) == 0


def test_programs_get_both_prices(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = on(table, "--seed", "0", "--colluding", "1", "--json")
    (found,) = json.loads(run(words, tmp_path, capsys)[1])["results"]
    assert "up to 1 other party together," in found["guarantee"]
    assert "who see the message of silo 'n' alone," in found["guarantee_alone"]
    assert found["epsilon"] <= 2.0 < found["epsilon_alone"]
    (planned,) = json.loads(run([*words, "--dry-run"], tmp_path, capsys)[1])["runs"]
    for name in ("epsilon", "epsilon_alone", "guarantee", "guarantee_alone", "noise_multiplier", "rounds"):
        assert planned[name] == found[name]
    assert planned["noise_share"] == pytest.approx(planned["noise_multiplier"] / 3**0.5)
    # What was planned, and what was counted on the wire: an answer has its version and a length besides.
    assert planned["bits_per_silo"] == pytest.approx(found["bits_per_silo"], abs=3 * 8 * 16)
    code, out, _ = run([word for word in (*words, "--dry-run") if word != "--json"], tmp_path, capsys)
    assert code == 0
    shown = " ".join(out.split())
    assert f"each silo adds a share of the noise, {planned['noise_share']:.4g}; 3 honest shares make" in shown
    assert "aggregate, one message alone" in shown


def changed(statement: Data, how: str) -> None:
    """Change a statement of four silos, whose last four guarantees are of one message alone."""
    sums, alone = statement["guarantees"][:4], statement["guarantees"][4:]
    match how:
        case "one observer cut":
            statement["guarantees"], statement["about"] = sums, statement["about"][:4]
            statement["count"] = 4
        case "observers exchanged":
            for one in statement["about"]:
                one["alone"] = not one.get("alone", False)
        case "guarantees exchanged":
            statement["guarantees"] = [*alone, *sums]
        case "a smaller price":
            alone[0]["epsilon"] /= 2
            del alone[0]["sentence"]
        case "more colluders":
            for claim in sums:
                claim["observer"] = claim["observer"].replace("up to 2", "up to 3")
                del claim["sentence"]
        case "fewer shares and more colluders":
            for claim in sums:
                claim["observer"] = claim["observer"].replace("up to 2", "up to 1")
                text = json.dumps(claim["event"]).replace('"shares": 2', '"shares": 3')
                assert text != json.dumps(claim["event"])
                claim["event"] = json.loads(text)
                del claim["sentence"]
        case "local trust":
            for one in statement["about"]:
                one["trust"] = "local"
            statement["released"] = "local"
        case "masks that are not there":
            for claim in sums:
                claim["assumptions"].remove(IN_ONE_PLACE)
                claim["assumptions"] += clauses_of_sums(roster="keys")
                del claim["sentence"]


@pytest.mark.parametrize(
    "how",
    [
        "one observer cut",
        "observers exchanged",
        "guarantees exchanged",
        "a smaller price",
        "more colluders",
        "fewer shares and more colluders",
        "local trust",
        "masks that are not there",
    ],
)
def test_forged_statements_are_refused(
    how: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(on(table, "--seed", "0", "--colluding", "2"), tmp_path, capsys)[0] == 0
    path, statement = statement_of(tmp_path)
    changed(statement, how)
    path.write_text(json.dumps(statement))
    capsys.readouterr()
    assert main(["account", "verify", str(path)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_ledgers_of_silos_pay_the_price_of_the_sum_once(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = tmp_path / "accounts"
    made = [
        "ledger",
        "create",
        str(accounts),
        "--silos",
        ",".join(SILOS),
        "--epsilon",
        "2",
        "--delta",
        "1e-4",
    ]
    assert main(made) == 0
    words = on(table, "--epsilon", "2", "--delta", "1e-4", "--ledger", str(accounts), "--colluding", "1")
    code, _, err = run(words, tmp_path, capsys)
    assert code == 0, err
    _, statement = statement_of(tmp_path)
    prices = {one["epsilon"] for one in statement["guarantees"][:4]}
    assert {one["epsilon"] > 2 for one in statement["guarantees"][4:]} == {True}

    def spent() -> dict[str, float]:
        names = [*SILOS, DATA_SET, CENTRAL]
        return {name: Ledger.open(ledger_path(accounts, name)).spent().epsilon for name in names}

    once = spent()
    assert {once[name] for name in SILOS} <= prices
    assert (once[DATA_SET], once[CENTRAL]) == (max(prices), 0.0)
    assert run(words, tmp_path, capsys)[0] == 0  # the same run under its name: from what is stored
    assert spent() == once
    models = [json.loads((tmp_path / "runs" / name / "model.json").read_text()) for name in ("r", "r-2")]
    assert models[0] == models[1]
    assert run([*words, "--name", "another"], tmp_path, capsys)[0] != 0  # nothing is left


def test_a_word_of_a_file_for_true_or_false_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "job.toml"
    config.write_text('trust = "aggregate"\nn_min = 3\nrecover = "yes"\n')
    code, _, err = run([str(config)], tmp_path, capsys)
    assert code == 2
    assert "recover must be true or false, got 'yes'." in err


def test_sums_can_be_recovered_where_the_job_says_so(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "job.toml"
    config.write_text('trust = "aggregate"\ncolluding = 1\nn_min = 3\nrecover = true\n')
    words = [str(config), "--data", str(table), "--label", "ill", "--silo-column", "site", *ROUNDS]
    code, out, err = run([*words, "--seed", "0", "--name", "r", "--json"], tmp_path, capsys)
    assert code == 0, err
    plan = tomllib.loads((tmp_path / "runs" / "r" / "plan.toml").read_text())
    assert (plan["n_min"], plan["colluding"], plan["recover"]) == (3, 1, True)
    assert "at least 2 honest parties" in json.loads(out)["results"][0]["guarantee"]
    assert main(["account", "verify", str(tmp_path / "runs" / "r" / "statement.json")]) == 0


def test_an_interrupted_run_is_resumed_with_its_flags() -> None:
    from tacit.cli.train_flags import TrainFlags

    flags = TrainFlags(files=["t.csv"], trust="aggregate", colluding=1, n_min=3, recover=True)
    assert flags.command("r") == (
        "tacit train t.csv --trust aggregate --n-min 3 --colluding 1 --recover --name r"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trust": "aggregate", "n_min": 1}, "n_min"),
        ({"trust": "aggregate", "colluding": -1}, "colluding"),
        ({"trust": "aggregate", "n_min": 3, "colluding": 3}, r"colluding must be below n_min \(3\), got 3"),
        (
            {"trust": "local", "recover": True},
            "recover is for trust='aggregate', got True with trust='local'",
        ),
        ({"trust": "local", "n_min": 3}, "n_min and colluding are for trust='shuffle' or trust='aggregate'"),
        ({"trust": "aggregate", "algorithm": "sign-vote"}, "trust must be another than 'aggregate'"),
        ({"trust": "aggregate", "algorithm": "local"}, "trust must be another than 'aggregate'"),
        ({"trust": "aggregate", "weights": "silos"}, "weights='silos' counts silos"),
        ({"trust": "aggregate", "participants": 3}, "participants=3 draws some"),
        ({"trust": "aggregate", "noise": "gaussian"}, "noise must be 'auto' or 'discrete-gaussian'"),
        ({"trust": "aggregate", "delta": 0.0}, "delta must be > 0"),
        ({"trust": "aggregate", "recover": "yes"}, "recover must be"),
    ],
)
def test_what_no_sum_hides_is_refused(changes: Data, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        JobConfig.of(changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colluding": 9}, "colluding"),
        ({"colluding": 10}, "colluding"),
        ({"n_min": 8}, "n_min"),
        ({"n_min": 11, "recover": True}, "n_min"),
        ({"n_min": 5, "recover": True}, "n_min"),
        ({"n_min": 6, "colluding": 2, "recover": True}, "n_min"),
        ({"silos": "iid:1"}, "silo"),
    ],
)
def test_sums_of_too_few_are_refused_before_anything_is_asked(changes: Data, message: str) -> None:
    job = Job(JobConfig.of({"trust": "aggregate", "seed": 0, "delta": 1e-5, "rounds": 2, **changes}))
    with pytest.raises(ParameterError, match=message):
        job.preview()


def test_a_comparison_leaves_out_what_cannot_be_summed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, reason in (
        (["--silos", "iid:1"], "aggregate is left out: no two honest silos are left"),
        (["--colluding", "9"], "aggregate is left out: no two honest silos are left"),
        (["--participants", "4"], "aggregate is left out: every silo takes part in every sum"),
    ):
        code, out, _ = run([*words, *ROUNDS], tmp_path, capsys)
        assert code == 0
        assert reason in " ".join(out.split())
