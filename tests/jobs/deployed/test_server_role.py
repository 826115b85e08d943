"""The server as a process: the model of the job in one process, signed, patient, and resumed at no cost."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tacit.errors import LedgerError, ParameterError, VerificationError
from tacit.federation.network.journal import RoundFacts
from tacit.federation.network.rounds import MissingSilosError
from tacit.federation.network.signatures import verify_signatures
from tacit.jobs import Job
from tacit.jobs.deployed.server_role import LEDGER_FILE, ServedRun, ServerRole, rounds_jsonl
from tacit.ledger import Ledger
from tacit.privacy.statement import Statement
from tacit.reports import build_statement, write_run
from tests.jobs.deployed.world import NAMES, consent, founded, ledger_of, server_config, silos_of


def served(folder: Path, **job: object) -> tuple[ServerRole, ServedRun]:
    fed = founded(folder, **job)
    for name in NAMES:
        consent(fed, name)
    role = ServerRole(server_config(fed))
    with silos_of(fed) as channel:
        return role, role.run(channel)


def statement_of(role: ServerRole, run: ServedRun, folder: Path) -> Statement:
    path = write_run(run.result, folder, signatures=run.signatures)
    said = json.loads((path / "statement.json").read_text())
    assert len(said.get("signatures", [])) == len(run.signatures)
    import datetime as dt

    return build_statement(
        run.result,
        run=role.job.run,
        created=dt.datetime.now(dt.UTC),
        files=[path / "model.json", path / "plan.toml"],
        signatures=run.signatures,
    )


@pytest.mark.parametrize("trust", ["local", "central"])
def test_parties_sign_what_the_statement_says(trust: str, tmp_path: Path) -> None:
    role, run = served(tmp_path, trust=trust)
    statement = statement_of(role, run, tmp_path / "out")
    assert set(verify_signatures(statement, role.roster)) == ({*NAMES} if trust == "local" else {"server"})
    edited = msgspec.structs.replace(statement.guarantees[0], observer="nobody")
    forged = msgspec.structs.replace(statement, guarantees=(edited, *statement.guarantees[1:]))
    with pytest.raises(VerificationError):
        verify_signatures(forged, role.roster)
    assert run.result.results[0].scored is not None
    assert run.bytes_up > run.result.results[0].bits_per_silo / 8
    assert run.bytes_down > 0


def test_without_noise_it_is_the_model_of_one_process(tmp_path: Path) -> None:
    role, run = served(tmp_path, trust="none", algorithm="accelerated")
    (expected,) = Job(role.job.terms.config).run().results
    assert np.array_equal(run.result.results[0].trained.w, expected.trained.w)
    assert run.signatures == ()


def test_rounds_are_told_line_by_line(tmp_path: Path) -> None:
    role, run = served(tmp_path)
    lines = [json.loads(line) for line in rounds_jsonl(run.rounds).splitlines()]
    assert [one["step"] for one in lines] == list(range(role.prepared.rounds))
    assert all(one["asked"] == one["answered"] == [0, 1, 2] for one in lines)
    assert sum(sum(one["bytes_up"]) for one in lines) == run.bytes_up


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_server_that_was_killed_goes_on_and_nothing_is_spent_again(trust: str, tmp_path: Path) -> None:
    fed = founded(tmp_path, trust=trust)
    for name in NAMES:
        consent(fed, name)

    def die(facts: RoundFacts) -> None:
        if facts.step == 1:
            raise _KilledError

    config = server_config(fed)
    with silos_of(fed) as channel, pytest.raises(_KilledError):
        ServerRole(config).run(channel, follow=die)
    if trust == "central":  # its own ledger says what the data have paid for
        path = config.state / LEDGER_FILE
        path.rename(config.state / "kept")
        with silos_of(fed) as channel:
            with pytest.raises(LedgerError, match=r"ledger.sqlite is gone, .* holds rounds of run"):
                ServerRole(config).run(channel)
            with Ledger.open(config.state / "kept") as kept:
                Ledger.create(path, limit=kept.limit, neighbours=kept.neighbours).close()
            with pytest.raises(LedgerError, match=r"does not know run .* holds rounds of run"):
                ServerRole(config).run(channel)
        (config.state / "kept").replace(path)
    asked: list[int] = []
    with silos_of(fed) as channel:
        run = ServerRole(config).run(channel, follow=lambda facts: asked.append(facts.step))
    assert asked == [2, 3]
    assert [one.step for one in run.rounds] == [0, 1, 2, 3]
    if trust == "local":
        for name in NAMES:
            with Ledger.open(ledger_of(fed, name)) as ledger:
                (entry,) = ledger.entries()
                assert entry.run == fed.job.run
                assert entry.epsilon == pytest.approx(run.result.results[0].guarantee.epsilon)


def test_nobody_pays_before_all_have_agreed(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    for name in NAMES[:2]:
        consent(fed, name)
    with silos_of(fed) as channel:
        with pytest.raises(MissingSilosError, match=r"'silo-3' \(consent\)"):
            ServerRole(server_config(fed, patience=0.5)).run(channel)
        for name in NAMES:
            with Ledger.open(ledger_of(fed, name)) as ledger:
                assert ledger.entries() == []
        consent(fed, NAMES[2])  # which is looked up when it is needed
        ServerRole(server_config(fed)).run(channel)


def test_shuffle_trust_needs_a_shuffler(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    job = fed.folder / "job.toml"
    job.write_text(job.read_text().replace('trust = "local"', 'trust = "shuffle"'))
    (fed.folder / "roster.toml").unlink()
    msgspec.structs.replace(fed.roster, shuffler=None).save(fed.folder / "roster.toml")
    with pytest.raises(ParameterError, match="names no shuffler"):
        ServerRole(server_config(fed))
