"""What a job means without a record: whoever has none plans the run that those who have some expect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import DataError, ParameterError
from tacit.jobs import Job, JobConfig, JobTerms, PublicFacts, facts_of_description
from tacit.learning.preparation import prepare
from tacit.privacy import Unit
from tacit.reports import baseline_of, read_metrics, result_rows, results_json, write_run
from tacit.reports.tables import NOT_SCORED
from tests.jobs.tables import write_charges, write_patients


def job(table: Path, **changes: Any) -> JobConfig:
    facts = {"data": str(table), "label": "ill", "silo_column": "site", "rounds": 3, "delta": 1e-4}
    return JobConfig.of({**facts, "name": "ward"} | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"person": "patient"},
        {"trust": "shuffle", "n_min": 2},
        {"trust": "central", "algorithm": "accelerated", "group_lasso": 0.01},
        {"label": "charges", "task": "regression", "loss": "huber"},
        {"public": True},
    ],
)
@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_terms_of_a_description_are_those_of_the_tables(changes: dict[str, Any], tmp_path: Path) -> None:
    regression = changes.get("task") == "regression"
    table = write_charges(tmp_path) if regression else write_patients(tmp_path, visits=2)
    if changes.get("public"):
        (tmp_path / "volunteers.csv").write_text("age,bmi\n60,29\n61,30\n62,31\n")
        changes = {**changes, "public": str(tmp_path / "volunteers.csv")}
    with_records = Job(job(table, **changes))
    description = tmp_path / f"{table.stem}.columns.toml"
    facts = facts_of_description(
        with_records.config,
        description,
        silo_names=with_records.data.silo_names,
        sizes=with_records.data.sizes,
    )
    assert replace(facts, sample=None) == replace(with_records.terms.facts, sample=None)
    without = JobTerms(with_records.config, facts)
    for trust in with_records.trusts:
        ours, theirs = (prepare(t.settings(trust), facts.sizes).plan for t in (without, with_records.terms))
        assert ours.encoding
        assert ours.digest() == theirs.digest()
    assert without.clauses() == with_records.terms.clauses()


def test_another_description_is_another_plan(tmp_path: Path) -> None:
    table = write_patients(tmp_path)
    description = tmp_path / "patients.columns.toml"
    told = {"silo_names": ["a", "b"], "sizes": [50, 60]}
    here = JobTerms(job(table), facts_of_description(job(table), description, **told))  # type: ignore[arg-type]
    description.write_text(description.read_text().replace("upper = 90", "upper = 91"))
    there = JobTerms(job(table), facts_of_description(job(table), description, **told))  # type: ignore[arg-type]
    plans = [prepare(terms.settings("local"), terms.facts.sizes).plan.digest() for terms in (here, there)]
    assert plans[0] != plans[1]


def test_what_is_left_open_is_refused(tmp_path: Path) -> None:
    table = write_patients(tmp_path)
    description = tmp_path / "patients.columns.toml"
    whole = description.read_text()
    described = whole.partition("[columns")
    description.write_text("[columns" + described[2])
    with pytest.raises(DataError, match="label column 'ill' must be described"):
        facts_of_description(job(table), description, silo_names=["a"], sizes=[10])
    description.write_text(described[0])
    with pytest.raises(DataError, match="no column to be a feature"):
        facts_of_description(job(table), description, silo_names=["a"], sizes=[10])
    description.write_text(whole)
    with pytest.raises(ParameterError, match="label must be named by the job or by"):
        facts_of_description(JobConfig.of({"data": "x.csv"}), description, silo_names=["a"], sizes=[10])


@pytest.mark.filterwarnings("ignore::tacit.errors.PrivacyWarning")
def test_a_run_without_public_records_says_so_everywhere(tmp_path: Path) -> None:
    config = job(write_patients(tmp_path), out=str(tmp_path / "runs"))
    whole = Job(config).run()
    results = tuple(replace(one, scored=None) for one in whole.results)
    result = replace(whole, records=None, results=results)
    assert result_rows(result)[0].score == "not scored"
    assert baseline_of(result) == (NOT_SCORED, "")
    (said,) = results_json(result)["results"]
    assert said["scores"] is None
    assert "accuracy" not in said
    folder = write_run(result)
    (figures,) = read_metrics(folder).results
    assert (figures.metric, figures.score, figures.scores) == (None, None, None)
    assert read_metrics(folder).data.held_out is None
    page = (folder / "report.html").read_text()
    assert "Not scored: no public records" in page
    assert "What the score means" not in page
    assert "%" not in page.partition("<h2>Results</h2>")[2].partition("</table>")[0]
    for name in ("scores", "score", "metric"):
        with pytest.raises(DataError, match="was not scored"):
            getattr(result.results[0], name)
    with pytest.raises(DataError, match="stay with the parties"):
        _ = result.data


def test_facts_say_who_is_protected(tmp_path: Path) -> None:
    table = write_patients(tmp_path)
    facts: PublicFacts = facts_of_description(
        job(table, person="patient"), tmp_path / "patients.columns.toml", silo_names=["a"], sizes=[10]
    )
    assert facts.unit is Unit.PERSON
    assert not facts.public
    assert facts.feature_names == ("age", "bmi")
