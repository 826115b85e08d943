"""A public file with the label column: what it becomes, what must be said, what of it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.cli import main
from tacit.errors import DataError, LedgerError, ParameterError, PrivacyWarning
from tacit.jobs import Job, JobConfig, Ledgers
from tacit.jobs.facts import facts_of_description
from tacit.jobs.terms import JobTerms
from tacit.learning.preparation import prepare
from tacit.privacy.run_clauses import SAMPLE
from tacit.reports import write_run
from tests.cli.verifying import check_refused, statement_of, strip
from tests.jobs.tables import write_charges, write_patients

LABELLED = "age,ill,bmi\n" + "".join(
    f"{40 + k},{'ill' if k > 12 else 'well'},{29 + k % 3}\n" for k in range(30)
)
CLAUSE = (
    "the 30 public records that the model was trained with are not protected, hold no record of the data and "
    "were not chosen by looking at them"
)


def job(folder: Path, public: str = LABELLED, **changes: Any) -> JobConfig:
    table = write_patients(folder)
    (folder / "volunteers.csv").write_text(public)
    facts = {"data": str(table), "label": "ill", "silo_column": "site", "rounds": 3, "delta": 1e-4}
    facts |= {"public": str(folder / "volunteers.csv"), "seed": 0, "algorithm": "semi-dp"}
    return JobConfig.of(facts | changes)


def test_its_labels_are_encoded_as_those_of_the_table(tmp_path: Path) -> None:
    terms = Job(job(tmp_path)).terms
    public = terms.settings("local").public
    assert public is not None
    assert public.records.y.tolist() == [0.0] * 13 + [1.0] * 17
    ages = (np.arange(40, 70) - 54) / 36
    np.testing.assert_allclose(public.records.X, terms.task.features(np.column_stack([ages, _bmi()])))


def _bmi() -> Any:
    return 2 * ((29 + np.arange(30) % 3 - 15) / 35) - 1


def test_a_regression_is_trained_on_targets_scaled_by_the_public_bounds(tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    (tmp_path / "volunteers.csv").write_text("age,bmi,charges\n40,25,0\n50,30,30000\n70,35,60000\n")
    facts = {"data": str(table), "label": "charges", "task": "regression", "rounds": 3, "seed": 0}
    facts |= {"public": str(tmp_path / "volunteers.csv"), "algorithm": "semi-dp"}
    found = Job(JobConfig.of(facts))
    public = found.terms.settings("local").public
    assert public is not None
    assert public.records.y.tolist() == [-1.0, 0.0, 1.0]
    assert found.run().results[0].trained.trained_with == 3


def test_who_does_not_train_on_them_has_the_run_of_a_file_without(tmp_path: Path) -> None:
    without = "\n".join(",".join(line.split(",")[::2]) for line in LABELLED.split())
    here, there = (Job(job(tmp_path, text, algorithm="accelerated")).run() for text in (LABELLED, without))
    assert np.array_equal(here.results[0].trained.w, there.results[0].trained.w)
    assert here.results[0].guarantees == there.results[0].guarantees
    assert SAMPLE in here.results[0].guarantees[0].assumptions


def test_an_algorithm_that_needs_labels_is_refused_without(tmp_path: Path) -> None:
    config = job(tmp_path, "age,bmi\n60,30\n50,31\n")
    for one in (config, msgspec.structs.replace(config, public=None)):
        with pytest.raises(ParameterError, match="'semi-dp' needs public records with labels"):
            Job(one).preview()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "50,sick,30\n",
            "label column 'ill' has 1 cell not of its description, such as 'sick'.*well, ill",
        ),
        ("50,,30\n", "label column 'ill' has 1 cell not of its description"),
        ("500,ill,30\n", "column 'age' has 1 cell outside the bounds"),
    ],
)
def test_records_that_do_not_fit_are_named(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as error:
        Job(job(tmp_path, LABELLED + line))
    assert "volunteers.csv" in str(error.value)


@pytest.mark.parametrize("cell", ["60001", "-1", "much", "inf", ""])
def test_targets_outside_their_bounds_are_named(cell: str, tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    (tmp_path / "volunteers.csv").write_text(f"age,bmi,charges\n40,25,0\n50,30,{cell}\n")
    facts = {"data": str(table), "label": "charges", "task": "regression", "seed": 0}
    with pytest.raises(DataError, match="each must be a number from 0 to 60000"):
        Job(JobConfig.of({**facts, "public": str(tmp_path / "volunteers.csv")}))


def test_public_labels_are_not_read_by_classes_of_the_private_ones(tmp_path: Path) -> None:
    config = job(tmp_path)
    described = tmp_path / "patients.columns.toml"
    text = described.read_text()
    described.write_text(text[text.index("[columns.age]") :])
    warned = pytest.warns(PrivacyWarning, match="read off the data")
    with warned, pytest.raises(ParameterError, match="label column ill, which needs a description"):
        Job(config)


def test_a_record_that_is_private_too_is_not_told(tmp_path: Path) -> None:
    """Whether one is would tell of a private record: nothing of a run depends on it."""
    config = job(tmp_path)
    lines = (tmp_path / "patients.csv").read_text().split("\n")
    _, _, age, bmi, ill = lines[1].split(",")
    (tmp_path / "volunteers.csv").write_text(LABELLED + f"{age},{ill},{bmi}\n")
    assert Job(config).run().results[0].trained.trained_with == 31


# What is said


def test_the_guarantee_the_statement_and_the_results_say_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = Job(job(tmp_path)).run()
    folder = write_run(result, tmp_path / "run")
    statement = json.loads((folder / "statement.json").read_text())
    assert statement["data"]["trained_with"] == {one.trust: 30 for one in result.results}
    assert all(CLAUSE in one["assumptions"] for one in statement["guarantees"])
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert "trained with 30 public records: the local model\n" in capsys.readouterr().out
    figures = json.loads((folder / "metrics.json").read_text())["results"]
    assert {one["trained_with"] for one in figures} == {30}
    model = (folder / "model.json").read_text()
    assert "the 30 public records" in model
    assert "volunteers" not in model
    assert len(model) < 4000


def _forge_nothing(_: dict[str, Any]) -> None:
    """Leave the statement as it is, without the clause."""


def _another_number(data: dict[str, Any]) -> None:
    data["data"]["trained_with"]["local"] = 29


def _another_trust(data: dict[str, Any]) -> None:
    data["data"]["trained_with"]["central"] = 30


def _no_fact(data: dict[str, Any]) -> None:
    del data["data"]["trained_with"]


def _zero(data: dict[str, Any]) -> None:
    data["data"]["trained_with"]["local"] = 0


@pytest.mark.parametrize(
    ("forge", "cut", "message"),
    [
        (_forge_nothing, True, f"leaves out what its facts say: {CLAUSE}"),
        (_another_number, False, "leaves out what its facts say: the 29 public records"),
        (_another_trust, False, "by trust models of the run, got 'central': 30"),
        (_zero, False, "by trust models of the run, got 'local': 0"),
        (_no_fact, False, f"leaves out what its facts say: {SAMPLE}"),
        (_no_fact, True, f"leaves out what its facts say: {SAMPLE}"),
    ],
)
def test_it_cannot_be_cut_out_or_changed(
    forge: Any, cut: bool, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(Job(job(tmp_path)).run(), tmp_path / "run")
    forged = statement_of(folder)
    forge(forged)
    if cut:
        strip(forged, CLAUSE)
    check_refused(folder, json.dumps(forged), message, capsys)


def test_a_clause_without_its_fact_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(Job(job(tmp_path)).run(), tmp_path / "run")
    forged = statement_of(folder)
    _no_fact(forged)
    for one in forged["guarantees"]:
        one["assumptions"].append(SAMPLE)
        del one["sentence"]
    check_refused(folder, json.dumps(forged), f"says what its facts do not: {CLAUSE}", capsys)


def test_a_dry_run_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = job(tmp_path)
    (tmp_path / "job.toml").write_text(config.to_toml())
    assert main(["train", str(tmp_path / "job.toml"), "--dry-run"]) == 0
    assert "semi-dp: trains on 30 public records besides" in " ".join(capsys.readouterr().out.split())
    assert main(["train", str(tmp_path / "job.toml"), "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["public_records"] == 30
    assert [one["trained_with"] for one in shown["runs"]] == [30]


def test_the_command_of_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = job(tmp_path)
    given = [
        "train",
        "--data",
        config.source,
        "--label",
        "ill",
        "--public",
        str(config.public),
        "--seed",
        "0",
    ]
    given += ["--epsilon", "1", "--delta", "1e-4", "--algorithm", "semi-dp", "--option", "weight=0.5"]
    assert main([*given, "--out", str(tmp_path / "runs"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert (found["algorithm"], found["trained_with"]) == ("semi-dp", 30)
    assert found["epsilon"] <= 1


# Going on with a run, and between machines


def test_a_run_does_not_go_on_with_other_labels(tmp_path: Path) -> None:
    config = job(tmp_path, seed=None, trust="local")
    accounts = f"{tmp_path}/patients.ledger"
    create = f"ledger create {accounts} --silos-from {config.source} --silo-column site"
    assert main([*create.split(), "--epsilon", "3", "--delta", "1e-3"]) == 0

    def run(config: JobConfig) -> Any:
        with Ledgers.open(Path(accounts), Job(config).data.silo_names) as ledgers:
            return Job(config).run(ledgers=ledgers).results[0].trained.w

    first = run(config)
    assert np.array_equal(run(config), first)
    (tmp_path / "volunteers.csv").write_text(LABELLED.replace("52,well", "52,ill"))
    with pytest.raises(LedgerError, match=r"another plan or price.*nothing was spent"):
        run(config)


def test_whoever_has_no_table_makes_the_same_plan_of_the_same_files(tmp_path: Path) -> None:
    config = job(tmp_path)
    ours = Job(config)
    facts = facts_of_description(
        ours.config,
        tmp_path / "patients.columns.toml",
        silo_names=ours.data.silo_names,
        sizes=ours.data.sizes,
    )
    theirs = JobTerms(ours.config, facts)
    plans = [prepare(t.settings("local"), facts.sizes).plan for t in (ours.terms, theirs)]
    assert plans[0].digest() == plans[1].digest()
    unlabelled = msgspec.structs.replace(config, algorithm="accelerated")
    assert Job(unlabelled).terms.settings("local").public is None
