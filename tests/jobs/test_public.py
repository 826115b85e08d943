"""A file of public records beside tables: what is made of it, and what of it is refused before a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from tacit.cli import main
from tacit.errors import DataError, LedgerError, ParameterError, PrivacyWarning, TacitError
from tacit.jobs import Job, JobConfig, Ledgers, TrainedModel, load_model
from tacit.learning import FeatureMap
from tacit.privacy.run_clauses import SAMPLE
from tacit.reports import write_run
from tests.cli.verifying import check_refused, statement_of, strip
from tests.jobs.tables import write_charges, write_patients

PUBLIC = "age,bmi\n" + "".join(f"{60 + k % 5},{29 + k % 3}\n" for k in range(30))


def job(folder: Path, public: str = PUBLIC, **changes: Any) -> JobConfig:
    table = write_patients(folder)
    (folder / "volunteers.csv").write_text(public)
    facts = {"data": str(table), "label": "ill", "silo_column": "site", "rounds": 3, "delta": 1e-4}
    return JobConfig.of({**facts, "public": str(folder / "volunteers.csv"), "seed": 0} | changes)


def mapped(model: TrainedModel) -> FeatureMap:
    """How a model of bounded features maps them."""
    assert isinstance(model.fitted.features, FeatureMap)
    return model.fitted.features


def test_features_are_scaled_by_the_file(tmp_path: Path) -> None:
    config = job(tmp_path)
    trained = Job(config).run().results[0].model
    features = mapped(trained)
    ages = (pd.read_csv(tmp_path / "volunteers.csv").age - 54) / 36  # as the bounds have it
    assert features.centre[0] == pytest.approx(ages.mean())
    assert 1 / features.scale[0] == pytest.approx(np.sqrt((3 * 30 * ages.var(ddof=0) + 1) / 31))
    by_bounds = Job(msgspec.structs.replace(config, public=None)).run().results[0].model
    assert mapped(by_bounds).scaling is None
    assert "scaling" not in json.loads(by_bounds.to_json())


@pytest.mark.parametrize("algorithm", ["auto", "preconditioned", "sufficient-statistics"])
def test_its_gram_matrix_is_in_the_place_of_a_noisy_one(algorithm: str, tmp_path: Path) -> None:
    (planned,) = Job(job(tmp_path, algorithm=algorithm, trust="central")).preview()
    assert planned.algorithm == ("preconditioned" if algorithm == "auto" else algorithm)
    assert [(mean.statistic, mean.rounds) for mean in planned.means] == [("gradient", 3)]


def test_a_model_predicts_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    folder = write_run(Job(job(tmp_path)).run(), tmp_path / "run")
    again = load_model(folder)
    frame = pd.read_csv(tmp_path / "patients.csv", dtype=str)
    trained = TrainedModel.from_json(again.to_json())
    assert mapped(again).scaling is not None
    assert np.array_equal(trained.decision_function(frame), again.decision_function(frame))
    other = json.loads(again.to_json())
    other["scaling"]["means"][0] = 2.0
    with pytest.raises(DataError, match="means must be 2 numbers within the bounds"):
        TrainedModel.from_json(json.dumps(other))


def test_columns_in_any_order_and_others_beside_them(tmp_path: Path) -> None:
    lines = [line.split(",") for line in PUBLIC.split()]
    turned = "".join(f"{bmi},x,{age}\n" for age, bmi in lines).replace("bmi,x,age", "bmi,town,age")
    one, other = (Job(job(tmp_path, text)).run().results[0].trained.w for text in (PUBLIC, turned))
    assert np.array_equal(one, other)


def test_categories_are_encoded_as_in_the_table_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    config = job(tmp_path)
    table = pd.read_csv(config.source, dtype=str).assign(
        smoker=lambda t: np.where(t.index % 3 == 0, "yes", "no")
    )
    table.to_csv(config.source, index=False)
    described = Path(config.source).with_name("patients.columns.toml")
    smoker = '\n[columns.smoker]\nkind = "categorical"\ncategories = ["no", "yes", "never"]\n'
    described.write_text(described.read_text() + smoker)
    volunteers = tmp_path / "volunteers.csv"
    volunteers.write_text("smoker,age,bmi\n" + 30 * "yes,60,30\nno,50,20\nno,50,20\n")
    features = mapped(Job(config).run().results[0].model)
    assert features.centre[2:] == pytest.approx([2 / 3, 1 / 3, 0])
    # Of a category that the sample does not have, the spread is that of one record that fills its bounds.
    assert 1 / features.scale[4] == pytest.approx(1 / np.sqrt(91))
    volunteers.write_text("smoker,age,bmi\nyes,60,30\nsometimes,50,20\n")
    with pytest.raises(DataError, match="column 'smoker' has 1 cell of unknown categories"):
        Job(config)


def test_a_regression_takes_a_file_with_missing_cells(tmp_path: Path) -> None:
    table = write_charges(tmp_path)
    (tmp_path / "volunteers.csv").write_text("age,bmi\n40,\n50,30\n")
    facts = {"data": str(table), "label": "charges", "task": "regression", "rounds": 3, "seed": 0}
    found = Job(JobConfig.of({**facts, "public": str(tmp_path / "volunteers.csv")})).run().results[0]
    assert mapped(found.model).scaling is not None


@pytest.mark.parametrize(
    ("public", "message"),
    [
        ("age\n40\n", "'bmi'"),
        ("age,bmi\n", "holds no"),
        (
            "age,bmi\n40,30\n400,30\n",
            "column 'age' has 1 cell outside the bounds",
        ),
        ("age,age\n1,2\n", "two columns"),
        ('age,bmi\n40,"29,5"\n50,"31,5"\n', "column 'bmi' has no cell that can be read"),
    ],
)
def test_another_file_is_refused(public: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TacitError, match=message) as error:
        Job(job(tmp_path, public))
    assert "volunteers.csv" in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nobody\.csv"):
        Job(msgspec.structs.replace(job(tmp_path), public=str(tmp_path / "nobody.csv")))
    for folder in ("", ".", str(tmp_path)):
        with pytest.raises(DataError, match="is a folder; name a table in it"):
            Job(msgspec.structs.replace(job(tmp_path), public=folder))


def test_the_private_table_is_no_public_file(tmp_path: Path) -> None:
    config = job(tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "patients.csv")
    for name in ("patients.csv", "link.csv"):
        with pytest.raises(ParameterError, match="public must be another file than the tables"):
            Job(msgspec.structs.replace(config, public=str(tmp_path / name)))


def test_a_file_with_a_ledger_beside_it_is_no_public_file(tmp_path: Path) -> None:
    config = job(tmp_path)
    shutil.copy(tmp_path / "patients.csv", tmp_path / "others.csv")
    shutil.copy(tmp_path / "patients.columns.toml", tmp_path / "others.columns.toml")
    create = f"ledger create {tmp_path}/others.ledger --silos-from {tmp_path}/others.csv --silo-column site"
    assert main([*create.split(), "--epsilon", "3", "--delta", "1e-3"]) == 0
    with pytest.raises(ParameterError, match=r"public must be public records, and .*others\.ledger counts"):
        Job(msgspec.structs.replace(config, public=str(tmp_path / "others.csv")))


def test_columns_that_are_not_described_are_refused(tmp_path: Path) -> None:
    config = job(tmp_path)
    write_patients(tmp_path, public=False)
    (tmp_path / "patients.columns.toml").unlink()
    warned = pytest.warns(PrivacyWarning, match="read off the data")
    with warned, pytest.raises(ParameterError, match="describe patient, age, bmi"):
        Job(config)


def test_a_data_set_takes_no_public_file() -> None:
    with pytest.raises(ParameterError, match=r"public is for a table \(a file of yours\), got 'x.csv'"):
        JobConfig(public="x.csv")


# What is said


def test_the_guarantee_and_the_statement_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(Job(job(tmp_path)).run(), tmp_path / "run")
    statement = json.loads((folder / "statement.json").read_text())
    assert statement["data"]["sample"] is True
    assert all(SAMPLE in one["assumptions"] for one in statement["guarantees"])
    assert main(["account", "verify", str(folder / "statement.json")]) == 0
    assert "features scaled by a sample of public records\n" in capsys.readouterr().out
    none = write_run(Job(job(tmp_path, trust="none")).run(), tmp_path / "none")
    assert main(["account", "verify", str(none / "statement.json")]) == 0


@pytest.mark.parametrize(
    ("fact", "clause", "message"),
    [
        (True, False, "contradict each other on whether features were scaled"),
        (False, True, f"leaves out what its facts say: {SAMPLE}"),
        (True, True, "contradict each other on whether features were scaled"),
    ],
)
def test_it_cannot_be_cut_out(
    fact: bool, clause: bool, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(Job(job(tmp_path)).run(), tmp_path / "run")
    forged = statement_of(folder)
    if fact:
        del forged["data"]["sample"]
    if clause:
        strip(forged, SAMPLE)
    check_refused(folder, json.dumps(forged), message, capsys)


def test_a_dry_run_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = job(tmp_path)
    (tmp_path / "job.toml").write_text(config.to_toml())
    assert main(["train", str(tmp_path / "job.toml"), "--dry-run"]) == 0
    assert "2 features, scaled by 30 public records" in " ".join(capsys.readouterr().out.split())
    given = ["train", "--data", config.source, "--label", "ill", "--silo-column", "site", "--seed", "0"]
    assert main([*given, "--delta", "1e-4", "--public", str(config.public), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["public_records"] == 30


# Going on with a run


def _other_sample(config: JobConfig, _: Path) -> JobConfig:
    Path(str(config.public)).write_text(PUBLIC + "80,40\n")
    return config


def _no_sample(config: JobConfig, _: Path) -> JobConfig:
    return msgspec.structs.replace(config, public=None)


def _other_bounds(config: JobConfig, described: Path) -> JobConfig:
    described.write_text(described.read_text().replace("90", "120"))
    return config


def _other_classes(config: JobConfig, described: Path) -> JobConfig:
    text = described.read_text()
    assert '["well", "ill"]' in text
    described.write_text(text.replace('["well", "ill"]', '["ill", "well"]'))
    return config


@pytest.mark.parametrize("change", [_other_sample, _no_sample, _other_bounds, _other_classes])
@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_run_does_not_go_on_with_another_map(
    trust: str, change: Callable[[JobConfig, Path], JobConfig], tmp_path: Path
) -> None:
    """Answers would be about other rows than the model, and the statement could leave out the sample."""
    config = job(tmp_path, algorithm="accelerated", trust=trust, seed=None)
    accounts = f"{tmp_path}/patients.ledger"
    create = f"ledger create {accounts} --silos-from {config.source} --silo-column site"
    assert main([*create.split(), "--epsilon", "3", "--delta", "1e-3"]) == 0

    def run(config: JobConfig) -> Any:
        data = Job(config).data
        with Ledgers.open(Path(accounts), data.silo_names) as ledgers:
            return Job(config).run(ledgers=ledgers).results[0].trained.w

    first = run(config)
    assert np.array_equal(run(config), first)
    with pytest.raises(LedgerError, match=r"another plan or price.*nothing was spent"):
        run(change(config, tmp_path / "patients.columns.toml"))
