"""The job of a federation without its data: the plan, the model and the scores of the job that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.roster import Roster, ServerEntry, SiloEntry
from tacit.jobs import Job, JobConfig
from tacit.jobs.deployed.federation_job import FederationJob, read_job
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for
from tacit.privacy import Unit
from tests.jobs.tables import write_charges, write_patients


def roster(sizes: list[int]) -> Roster:
    return Roster(
        federation="wards",
        server=ServerEntry(
            verify=SigningKey.make().public.to_text(),
            seal=OpeningKey.make().public.to_text(),
            url="https://127.0.0.1:8443",
        ),
        silos=tuple(
            SiloEntry(name=f"silo-{k}", size=size, verify=SigningKey.make().public.to_text())
            for k, size in enumerate(sizes, start=1)
        ),
    )


def digits(**changes: Any) -> JobConfig:
    return JobConfig.of({"silos": "iid:4", "delta": 1e-5, "epsilon": 4.0, "name": "demo"} | changes)


@pytest.mark.parametrize("trust", ["local", "shuffle", "central", "none"])
def test_a_data_set_gives_the_plan_of_the_job_in_one_process(trust: str) -> None:
    job = digits(trust=trust)
    whole = Job(job)
    found = FederationJob.of(job, roster(whole.data.sizes))
    (expected,) = whole.preview()
    assert found.plan.digest() == expected.plan.digest()
    assert found.run == f"demo-{trust}"
    assert found.terms.facts.silo_names == ["silo-1", "silo-2", "silo-3", "silo-4"]


def test_under_aggregate_trust_the_plan_names_whose_masks_hide_messages() -> None:
    job = digits(trust="aggregate", colluding=1)
    whole = Job(job)
    parties = roster(whole.data.sizes)
    plan = FederationJob.of(job, parties).plan
    assert plan.roster == masking_roster_of(parties).digest
    (expected,) = whole.preview()
    assert msgspec.structs.replace(plan, roster="").digest() == expected.plan.digest()
    assert FederationJob.of(job, roster(whole.data.sizes)).plan.roster != plan.roster


def test_the_model_of_public_data_is_scored() -> None:
    job = digits(trust="none", rounds=5, algorithm="accelerated")
    whole = Job(job)
    found = FederationJob.of(job, roster(whole.data.sizes))
    units = [
        found.terms.units(found.terms.rows(whole.data.X[index]), whole.data.y[index])
        for index in whole.data.train
    ]
    seen: list[int] = []
    federation = silos_for(found.settings, units, names=found.terms.facts.silo_names)
    result = found.train(federation, follow=seen.append)
    (expected,) = whole.run().results
    assert np.array_equal(result.results[0].trained.w, expected.trained.w)
    assert msgspec.structs.replace(result.results[0].scores, silos=()) == msgspec.structs.replace(
        expected.scores, silos=()
    )
    assert [one.name for one in result.results[0].scores.silos] == found.terms.facts.silo_names
    assert seen == list(range(5))


def test_a_roster_of_other_silos_is_refused() -> None:
    sizes = Job(digits()).data.sizes
    with pytest.raises(ParameterError, match="the roster must have a silo for each part of digits-odd-even"):
        FederationJob.of(digits(), roster([*sizes[:3], sizes[3] + 1]))
    with pytest.raises(ParameterError, match="columns is for tables"):
        FederationJob.of(digits(), roster(sizes), columns=Path("columns.toml"))


def tables(folder: Path, **changes: Any) -> tuple[JobConfig, Path, Path]:
    """Return a job of tables, the description of their columns, and a public table with labels."""
    public = write_charges(folder) if changes.get("task") else write_patients(folder)
    names = {"data": "wards.csv", "rounds": 3, "delta": 1e-4, "epsilon": 4.0}
    job = JobConfig.of({**names, "label": "charges" if changes.get("task") else "ill"} | changes)
    return job, folder / f"{public.stem}.columns.toml", public


@pytest.mark.parametrize("changes", [{}, {"task": "regression"}, {"person": "patient"}])
def test_tables_are_scored_on_public_records_or_not_at_all(changes: dict[str, Any], tmp_path: Path) -> None:
    job, columns, test = tables(tmp_path, **changes)
    told = roster([60, 70])
    unscored = FederationJob.of(job, told, columns=columns)
    scored = FederationJob.of(job, told, columns=columns, test=test)
    assert unscored.plan.digest() == scored.plan.digest()
    w = np.zeros(unscored.settings.objective.size)
    assert unscored._scores(w) is None
    found = scored._scores(w)
    assert found is not None
    assert found.records == len(pd.read_csv(test))
    if not changes:
        assert found.score == pytest.approx((pd.read_csv(test).ill == "well").mean())


def test_a_whole_party_is_one_unit_whatever_it_holds(tmp_path: Path) -> None:
    job, columns, _ = tables(tmp_path, algorithm="adaped")
    found = FederationJob.of(job, roster([1, 1]), columns=columns)
    assert found.plan.neighbours.unit is Unit.PARTY
    with pytest.raises(ParameterError, match=r"must be 1 in the roster.*each is one unit.*got 60, 70"):
        FederationJob.of(job, roster([60, 70]), columns=columns)


def test_columns_are_needed_and_test_records_must_fit_them(tmp_path: Path) -> None:
    job, columns, test = tables(tmp_path)
    with pytest.raises(ParameterError, match="columns must describe the tables of the silos"):
        FederationJob.of(job, roster([60, 70]))
    pd.read_csv(test).assign(more=1.0).to_csv(test, index=False)
    with pytest.warns(), pytest.raises(DataError, match="must have the described columns, and no others"):
        FederationJob.of(job, roster([60, 70]), columns=columns, test=test)


def test_public_records_scale_the_features(tmp_path: Path) -> None:
    job, columns, _ = tables(tmp_path)
    (tmp_path / "volunteers.csv").write_text("age,bmi\n60,29\n61,30\n62,31\n")
    found = FederationJob.of(job, roster([60, 70]), columns=columns, public=tmp_path / "volunteers.csv")
    assert found.terms.facts.sample is not None
    plain = FederationJob.of(job, roster([60, 70]), columns=columns)
    plans = [prepare(one.settings, [60, 70]).plan.digest() for one in (found, plain)]
    assert plans[0] != plans[1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"seed": 1}, "seed must not be set, got 1: seeded noise protects nobody"),
        ({"trust": "all"}, "trust must be one trust model"),
        ({"out": "here"}, "out must not be set between machines, got 'here'"),
        ({"data": "a.csv", "columns": "c.toml"}, "columns must not be set"),
        ({"data": "a.csv", "ledger": "l"}, "ledger must not be set"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilom": 1}, "did you mean 'epsilon'"),
    ],
)
def test_a_job_that_is_none_between_machines_is_refused(
    values: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(msgspec.toml.encode(values))
    with pytest.raises(ParameterError) as found:
        read_job(path)
    assert str(found.value).startswith(f"{path}: ")
    assert says in str(found.value)


def test_a_job_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="cannot be read: No such file"):
        read_job(tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text("epsilon = ")
    with pytest.raises(ParameterError, match=r"job\.toml"):
        read_job(tmp_path / "job.toml")
