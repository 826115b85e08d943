"""`tacit account verify` on statements of masked sums: what the plan beside them says decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tacit.cli import main
from tacit.federation.account import price_of_silo
from tacit.jobs import Job, JobConfig, JobResult
from tacit.privacy import Guarantee, guarantee
from tacit.privacy.event_json import event_from_builtins
from tacit.privacy.run_clauses import IN_ONE_PLACE, MASKED, RECOVERED, ROSTER
from tacit.privacy.statement import digest_of
from tacit.reports import write_run
from tests.jobs.tables import write_patients

SILOS = ("a", "b", "c", "d", "e")
ROSTER_DIGEST = "5e" * 32


def trained(folder: Path, **more: Any) -> JobResult:
    table = write_patients(folder, silos=SILOS)
    settings = {"data": str(table), "label": "ill", "silo_column": "site", "trust": "aggregate"}
    return Job(JobConfig.of({**settings, "colluding": 1, "rounds": 2, "seed": 0, **more})).run()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> JobResult:
    """A run whose sums need all five silos."""
    return trained(tmp_path_factory.mktemp("complete"))


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> JobResult:
    """A run whose sums need four of five silos."""
    return trained(tmp_path_factory.mktemp("partial"), recover=True, n_min=4)


def masked(job: JobResult, folder: Path, *, own: int = 0) -> Path:
    """Write a run as if its silos had masked what they send, with the guarantees that they then state.

    Args:
        job: A run in one process.
        folder: Where to.
        own: How many colluders silo "a" counts on, where that is more than the plan says.
    """
    path = write_run(job, folder / "run")
    made = replace(job.results[0].trained.plan, roster=ROSTER_DIGEST)
    (path / "plan.toml").write_text(made.to_toml())
    statement = json.loads((path / "statement.json").read_text())
    clauses = [one for one in job.results[0].guarantees[0].assumptions if "held-out" in one]

    def said(name: str, *, alone: bool) -> Guarantee:
        size = statement["data"]["sizes"][name]
        more = own if name == "a" else 0
        price = price_of_silo(made, size, name=name, simulated=True, alone=alone, colluding=more)
        return replace(price, assumptions=(*price.assumptions, *clauses))

    claims = [said(about["silo"], alone=about.get("alone", False)) for about in statement["about"]]
    statement["guarantees"] = [claim.to_builtins() for claim in claims]
    model = json.loads((path / "model.json").read_text())
    model["privacy"] = str(max(claims[: len(SILOS)], key=lambda one: one.epsilon))
    (path / "model.json").write_text(json.dumps(model))
    statement["digests"] |= {name: digest_of(path / name) for name in ("plan.toml", "model.json")}
    (path / "statement.json").write_text(json.dumps(statement))
    return path / "statement.json"


def verified(path: Path) -> bool:
    return main(["account", "verify", str(path)]) == 0


def test_masks_that_need_all_silos(
    job: JobResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = masked(job, tmp_path)
    assert verified(path)
    out = " ".join(capsys.readouterr().out.split())
    for clause in (ROSTER, MASKED, "at least 4 honest parties add their share of the noise"):
        assert clause in out
    assert IN_ONE_PLACE not in out


def test_masks_that_are_taken_off_without_silos_that_are_gone(partial: JobResult, tmp_path: Path) -> None:
    path = masked(partial, tmp_path)
    assert verified(path)
    first = json.loads(path.read_text())["guarantees"][0]
    assert {ROSTER, RECOVERED} <= set(first["assumptions"])
    assert "at least 3 honest parties" in first["sentence"]


def test_a_silo_may_count_on_more_colluders_than_the_plan(job: JobResult, tmp_path: Path) -> None:
    path = masked(job, tmp_path, own=2)
    assert verified(path)
    claims = json.loads(path.read_text())["guarantees"]
    assert ["up to 2 other parties" in one["observer"] for one in claims[:5]] == [True] + [False] * 4
    assert claims[0]["epsilon"] > claims[1]["epsilon"]


def recovered(statement: dict[str, Any]) -> None:
    for claim in statement["guarantees"][:5]:
        claim["assumptions"] = [RECOVERED if one == MASKED else one for one in claim["assumptions"]]
        del claim["sentence"]


def in_one_place(statement: dict[str, Any]) -> None:
    for claim in statement["guarantees"][:5]:
        rest = [one for one in claim["assumptions"] if one not in (MASKED, ROSTER)]
        claim["assumptions"] = [IN_ONE_PLACE, *rest]
        del claim["sentence"]


def with_one_more_share(statement: dict[str, Any]) -> None:
    """Count on a share of the noise of somebody who may collude by the plan."""
    for claim in statement["guarantees"][:5]:
        claim["observer"] = claim["observer"].replace("up to 1 other party", "up to 0 other parties")
        claim["event"] = json.loads(json.dumps(claim["event"]).replace('"shares": 4', '"shares": 5'))
        del claim["sentence"]


def exchanged_silos(statement: dict[str, Any]) -> None:
    first, second = statement["guarantees"][5:7]
    statement["guarantees"][5:7] = [second, first]


def cut_alone(statement: dict[str, Any]) -> None:
    del statement["guarantees"][9], statement["about"][9]
    statement["count"] = 9


@pytest.mark.parametrize("change", [recovered, in_one_place, with_one_more_share, exchanged_silos, cut_alone])
def test_what_the_plan_contradicts_is_refused(
    change: Callable[[dict[str, Any]], None],
    job: JobResult,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = masked(job, tmp_path)
    assert verified(path)
    statement = json.loads(path.read_text())
    change(statement)
    for claim in statement["guarantees"]:  # a forger would state the price that goes with it
        if "sentence" not in claim:
            claim["epsilon"] = repriced(claim)
    path.write_text(json.dumps(statement))
    capsys.readouterr()
    assert not verified(path)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


def repriced(claim: dict[str, Any]) -> float:
    from tacit.privacy import guarantee

    found = Guarantee.from_builtins(claim)
    return guarantee(found.event, found.delta, observer="x").epsilon


def test_a_plan_that_hides_messages_otherwise_is_another_plan(
    job: JobResult, partial: JobResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = masked(job, tmp_path)
    statement = json.loads(path.read_text())
    open_plan = job.results[0].trained.plan
    for other in (open_plan, replace(partial.results[0].trained.plan, roster=ROSTER_DIGEST)):
        (path.parent / "plan.toml").write_text(other.to_toml())
        statement["digests"]["plan.toml"] = digest_of(path.parent / "plan.toml")
        path.write_text(json.dumps(statement))
        capsys.readouterr()
        assert not verified(path)
        assert "are not of the plan that lies beside it" in capsys.readouterr().err


def test_where_sizes_are_secret_the_plan_still_says_how_many_shares_count(tmp_path: Path) -> None:
    """Five shares in place of four, and nobody who colludes, at the lower price of that."""
    job = trained(tmp_path, neighbours="zero-out", delta=1e-5)
    statement = write_run(job, tmp_path / "run") / "statement.json"
    (tmp_path / "run" / "model.json").rename(tmp_path / "model.json")
    assert verified(statement)
    found = json.loads(statement.read_text())
    assert set(found["data"]["sizes"].values()) == {None}
    lower = []
    for claim in found["guarantees"]:
        text = json.dumps({**claim, "sentence": None})
        for said, forged in (
            ('"shares": 4', '"shares": 5'),
            ("at least 4 honest", "at least 5 honest"),
            ("up to 1 other party", "up to 0 other parties"),
        ):
            text = text.replace(said, forged)
        changed = json.loads(text)
        del changed["sentence"]
        event = event_from_builtins(changed["event"])
        changed["epsilon"] = guarantee(event, claim["delta"], observer="anybody").epsilon
        lower.append(changed)
    assert lower[0]["epsilon"] < found["guarantees"][0]["epsilon"]
    statement.write_text(json.dumps({**found, "guarantees": lower}))
    assert not verified(statement)
    (tmp_path / "run" / "plan.toml").rename(tmp_path / "plan.toml")
    assert verified(statement)  # it is the plan that contradicts it
