"""One silo of a job between machines: units, plan and price are those of the job in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from tacit.errors import BudgetError, DataError, LedgerError, ParameterError, RefusalError, TacitError
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.masked_rounds import masking_roster_of
from tacit.federation.network.silo_service import LEDGER_FILE
from tacit.federation.network.wire import ProposedPlan, open_reply, seal_request
from tacit.jobs import Job, JobConfig
from tacit.jobs.deployed.silo_config import read_silo_config
from tacit.jobs.deployed.silo_job import SiloJob
from tacit.learning.objective import Grouped, Records
from tacit.ledger import Ledger
from tacit.privacy import Guarantee, PrivacyBudget
from tests.federation.network.parties import NOW
from tests.jobs.deployed.silo_files import DIGITS, PATIENTS, write_silo


def opened(folder: Path, **fields: Any) -> SiloJob:
    return SiloJob.of(read_silo_config(write_silo(folder, **fields)))


def proposed(silo: SiloJob, folder: Path, **changes: Any) -> Any:
    """What the server of this federation hears of its plan."""
    plan = msgspec.structs.replace(silo.job.plan, **changes)
    server = SigningKey.load(folder / "server.pem")
    request = seal_request(
        "accept",
        ProposedPlan(plan.to_toml(), silo.job.run, silo.roster.index(silo.config.name)),
        roster=silo.roster,
        run=silo.job.run,
        to=silo.config.name,
        key=server,
    )
    with silo.service() as service:
        reply = service.handle(request)
    return open_reply(reply, request=request, roster=silo.roster, now=NOW)


def test_the_units_of_a_table_are_those_of_the_job_in_one_process(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    assert isinstance(silo.units, Records)
    own = pd.read_csv(tmp_path / "own.csv")
    config = JobConfig.of(
        {
            **PATIENTS,
            "label": "ill",
            "data": str(tmp_path / "own.csv"),
            "columns": str(tmp_path / "columns.toml"),
        }
    )
    whole = Job(msgspec.structs.replace(config, test_fraction=0.1))
    order = np.concatenate([whole.data.train[0], whole.data.test])
    expected = whole.terms.units(whole._rows[order], whole.data.y[order])
    back = np.argsort(order)
    assert isinstance(expected, Records)
    assert len(silo.units) == len(own) == 60
    np.testing.assert_array_equal(silo.units.X, expected.X[back])
    np.testing.assert_array_equal(silo.units.y, expected.y[back])


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("person", [None, "patient"])
def test_persons_and_regressions(tmp_path: Path, task: str, person: str | None) -> None:
    job: dict[str, Any] = {**PATIENTS, "task": task}
    if person is not None:
        job["person"] = person
    silo = opened(tmp_path, trained=job)
    assert isinstance(silo.units, Grouped if person else Records)
    priced = silo.priced()
    assert priced.price.neighbours.unit == ("person" if person else "record")
    assert priced.price.epsilon <= 4.0


def test_a_part_of_a_data_set_is_that_of_its_place(tmp_path: Path) -> None:
    whole = Job(JobConfig.of(DIGITS))
    sizes = tuple(whole.data.sizes)
    silo = opened(tmp_path, trained=DIGITS, sizes=sizes, place=2)
    expected = whole._units(whole.data.train[2])
    assert isinstance(expected, Records)
    assert isinstance(silo.units, Records)
    np.testing.assert_array_equal(silo.units.X, expected.X)
    np.testing.assert_array_equal(silo.units.y, expected.y)
    assert silo.job.plan.digest() == whole.preview()[0].plan.digest()


LOSSES = [
    ("classification", {"loss": "hinge"}),
    ("regression", {"loss": "huber"}),
    ("regression", {"loss": "quantile", "quantile": 0.9}),
    ("regression", {"loss": "poisson"}),
    ("regression", {"l2": 0.01, "domain": "ball:5"}),
]


@pytest.mark.parametrize(("task", "changes"), LOSSES)
def test_every_loss_is_priced_and_accepted(tmp_path: Path, task: str, changes: dict[str, Any]) -> None:
    silo = opened(tmp_path, trained={**PATIENTS, "task": task} | changes)
    silo.agree(silo.priced())
    reply = proposed(silo, tmp_path)
    assert reply.envelope.kind == "accepted"


def test_what_the_owner_agrees_to_is_what_the_service_reserves_and_signs(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    assert proposed(silo, tmp_path).body.code == "consent"
    priced = silo.priced()
    assert (priced.consent, priced.reserved) == (None, False)
    assert not (tmp_path / "state" / LEDGER_FILE).exists() or priced.left is not None
    silo.agree(priced)
    reply = proposed(silo, tmp_path)
    assert Guarantee.from_json(reply.body.guarantee) == priced.price
    assert any("held-out" in clause for clause in priced.price.assumptions)
    again = silo.priced()
    assert again.reserved
    assert again.consent is not None
    with Ledger.open(tmp_path / "state" / LEDGER_FILE) as ledger:
        assert ledger.limit == PrivacyBudget(4.0, 1e-5)
        assert ledger.spent().epsilon == priced.price.epsilon


def test_pricing_writes_nothing(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    silo.priced()
    assert not (tmp_path / "state").exists()


def test_a_plan_of_another_map_is_refused(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    silo.agree(silo.priced())
    assert proposed(silo, tmp_path, encoding="another").body.code == "plan"


@pytest.mark.parametrize("trust", ["shuffle", "central", "none"])
def test_whom_the_plan_trusts_the_owner_must_trust(tmp_path: Path, trust: str) -> None:
    job = {**PATIENTS, "trust": trust}
    silo = opened(tmp_path / "trusts", trained=job)
    priced = silo.priced()
    assert (priced.limit is None) == (trust != "shuffle")
    assert (priced.alone is None) == (trust != "shuffle")
    refuses = {"trusts_shuffler" if trust == "shuffle" else "trusts_server": False}
    silo = opened(tmp_path / "refuses", trained=job, **refuses)
    with pytest.raises(RefusalError, match=r"does not|has not allowed"):
        silo.priced()


def test_without_noise_of_its_own_a_silo_keeps_no_ledger(tmp_path: Path) -> None:
    silo = opened(tmp_path, trained={**PATIENTS, "trust": "central"})
    silo.agree(silo.priced())
    assert proposed(silo, tmp_path).envelope.kind == "accepted"
    assert not (tmp_path / "state" / LEDGER_FILE).exists()


def test_the_limit_of_the_ledger_is_made_once(tmp_path: Path) -> None:
    silo = opened(tmp_path, epsilon=9.0, delta=1e-4)
    assert silo.limit == PrivacyBudget(9.0, 1e-4)
    with silo.service():
        pass
    other = msgspec.structs.replace(silo.config, epsilon=10.0)
    with pytest.raises(ParameterError, match="can never be changed"), SiloJob.of(other).service():
        pass
    default = msgspec.structs.replace(silo.config, epsilon=None, delta=None)
    with SiloJob.of(default).service():
        pass


def test_a_price_above_the_limit_is_refused_before_anything_is_agreed(tmp_path: Path) -> None:
    silo = opened(tmp_path, epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetError):
        silo.priced()


def test_a_ledger_of_other_neighbours_is_refused(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    with silo.service():
        pass
    job = {**PATIENTS, "label": "ill", "neighbours": "zero-out"}
    (tmp_path / "job.toml").write_bytes(msgspec.toml.encode(job))
    with pytest.raises(LedgerError), SiloJob.of(silo.config).service():
        pass


# --- files that do not fit each other


def test_a_table_of_another_size_or_without_its_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold the 61 records that the roster says, got 60"):
        opened(tmp_path / "size", sizes=(60, 61, 60))
    path = write_silo(tmp_path / "columns")
    table = tmp_path / "columns" / "own.csv"
    frame = pd.read_csv(table)
    frame.drop(columns="bmi").to_csv(table, index=False)
    with pytest.raises(DataError):
        SiloJob.of(read_silo_config(path))
    frame.assign(weight=1.0).to_csv(table, index=False)
    with pytest.raises(DataError, match="leaves open weight"):
        SiloJob.of(read_silo_config(path))


def test_no_error_about_a_table_quotes_a_record(tmp_path: Path) -> None:
    """Cells of any kind are read; what does not fit has a public place."""
    path = write_silo(tmp_path)
    table = tmp_path / "own.csv"
    frame = pd.read_csv(table, dtype=object)
    frame.loc[3, "age"] = "Mrs Smith"
    frame.loc[4, "ill"] = "Mrs Jones"
    frame.loc[5, "bmi"] = "1e999"
    frame.to_csv(table, index=False)
    silo = SiloJob.of(read_silo_config(path))
    assert len(silo.units) == 60


def test_another_key_than_the_rosters(tmp_path: Path) -> None:
    path = write_silo(tmp_path)
    (tmp_path / "signing.pem").unlink()
    SigningKey.make().save(tmp_path / "signing.pem")
    with pytest.raises(ParameterError, match="signing must be the key that the roster has"):
        SiloJob.of(read_silo_config(path))


def test_a_table_for_a_data_set_and_none_for_a_table(tmp_path: Path) -> None:
    sizes = tuple(Job(JobConfig.of(DIGITS)).data.sizes)
    (tmp_path / "a").mkdir()
    with pytest.raises(ParameterError, match="data is for tables"):
        opened(tmp_path / "a", trained=DIGITS, sizes=sizes, data="own.csv")
    with pytest.raises(ParameterError, match="data must name the silo's own table"):
        opened(tmp_path / "b", data=None)


def test_a_silo_cannot_be_served_from_an_authority_that_is_none(tmp_path: Path) -> None:
    silo = opened(tmp_path)
    with silo.service() as service, pytest.raises(TacitError, match=r"ca\.pem"):
        asyncio.run(silo.serve(service, asyncio.Event()))


# --- every field of the configuration


BAD: dict[str, tuple[Any, str]] = {
    "name": (3, "name: Expected `str`, got `int`"),
    "roster": (["a"], "roster: must be a path"),
    "job": ("", "job: must be a path"),
    "signing": (1.5, "signing: must be a path"),
    "authority": (True, "authority: must be a path"),
    "state": ([], "state: must be a path"),
    "columns": (1, "columns"),
    "public": (1, "public"),
    "data": ("<fill in>", "data must be the silo's own table, got '<fill in>'"),
    "epsilon": (-1.0, "epsilon must be a finite number > 0"),
    "delta": (0.5, "delta goes with an epsilon"),
    "colluding": (-1, "colluding must be"),
    "most_alone": (0.0, "most_alone must be a finite number > 0"),
    "trusts_server": ("yes", "trusts_server: Expected `bool | null`, got `str`"),
    "trusts_shuffler": (1, "trusts_shuffler: Expected `bool | null`, got `int`"),
    "socket": (1, "socket"),
    "version": (9, "version must be 1, got 9"),
    "sockets": ("a", "did you mean 'socket'"),
}


@pytest.mark.parametrize(("field", "value", "match"), [(k, v, m) for k, (v, m) in BAD.items()], ids=BAD)
def test_bad_input_for_every_field_names_file_and_field(
    tmp_path: Path, field: str, value: Any, match: str
) -> None:
    path = write_silo(tmp_path, **{field: value})
    with pytest.raises(ParameterError) as caught:
        read_silo_config(path)
    assert str(path) in str(caught.value)
    assert match in str(caught.value)


@pytest.mark.parametrize("field", ["name", "roster", "job", "signing", "authority", "state"])
def test_a_field_that_is_needed(tmp_path: Path, field: str) -> None:
    changes: dict[str, Any] = {field: None}
    path = write_silo(tmp_path, **changes)
    with pytest.raises(ParameterError, match=f"missing required field `{field}`"):
        read_silo_config(path)


@pytest.mark.parametrize("field", ["roster", "job", "signing", "columns", "data"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, field: str) -> None:
    changes: dict[str, Any] = {field: "gone.csv"}
    path = write_silo(tmp_path, **changes)
    with pytest.raises(TacitError, match=r"gone\.csv"):
        SiloJob.of(read_silo_config(path))


# --- trust in a sum: what the owner says of the others


SUMS = {**PATIENTS, "trust": "aggregate", "colluding": 1}


def test_the_owner_pays_for_the_sum_and_is_told_of_a_message_alone(tmp_path: Path) -> None:
    silo = opened(tmp_path, trained=SUMS, colluding=0)
    priced = silo.priced()
    assert not (tmp_path / "state").exists()
    assert priced.plan.roster == masking_roster_of(silo.roster).digest
    assert (priced.plan.n_min, priced.plan.colluding) == (3, 1)
    assert priced.alone is not None
    assert priced.price.epsilon <= 4.0 < priced.alone.epsilon
    assert "the server and up to 1 other party together" in priced.price.observer
    silo.agree(priced)
    reply = proposed(silo, tmp_path)
    assert reply.envelope.kind == "accepted"
    assert Guarantee.from_json(reply.body.guarantee) == priced.price
    with Ledger.open(tmp_path / "state" / LEDGER_FILE) as ledger:
        assert ledger.spent().epsilon == priced.price.epsilon


def test_who_says_nothing_of_the_others_pays_for_a_message_alone(tmp_path: Path) -> None:
    with pytest.raises(BudgetError):
        opened(tmp_path / "small", trained=SUMS).priced()
    silo = opened(tmp_path, trained=SUMS, epsilon=40.0, delta=1e-5)
    priced = silo.priced()
    assert priced.price == priced.alone
    silo.agree(priced)
    assert proposed(silo, tmp_path).envelope.kind == "accepted"
    with Ledger.open(tmp_path / "state" / LEDGER_FILE) as ledger:
        assert ledger.spent().epsilon == priced.price.epsilon > 4.0


def test_an_owner_who_expects_more_colluders_pays_more_or_refuses(tmp_path: Path) -> None:
    job = {**PATIENTS, "trust": "aggregate"}
    expected = opened(tmp_path / "plan", trained=job, colluding=0).priced().price.epsilon
    silo = opened(tmp_path / "more", trained=job, colluding=1, epsilon=40.0, delta=1e-5)
    price = silo.priced().price
    assert price.epsilon > expected
    assert "up to 1 other party" in price.observer
    with pytest.raises(ParameterError, match="colluding must be"):
        opened(tmp_path / "all", trained=job, colluding=2).priced()
    with pytest.raises(RefusalError, match=r"accepts epsilon 0\.1 of a message alone"):
        opened(tmp_path / "alone", trained=job, colluding=0, most_alone=0.1).priced()


def test_a_silo_is_masked_by_its_own_roster_alone(tmp_path: Path) -> None:
    silo = opened(tmp_path, trained=SUMS, colluding=1)
    silo.agree(silo.priced())
    other = "0" * 64
    assert proposed(silo, tmp_path, roster=other).envelope.kind == "refused"
