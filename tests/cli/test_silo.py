"""`tacit silo`: consent, what is left, the log, and a service that ends as it should."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tacit.cli import main
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.silo_service import SiloService
from tacit.federation.network.wire import ProposedPlan, open_reply, seal_request
from tacit.jobs.deployed.silo_config import read_silo_config
from tacit.jobs.deployed.silo_job import SiloJob
from tests.federation.network.parties import NOW
from tests.jobs.deployed.silo_files import PATIENTS, write_silo


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_silo(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    """What a command prints, on both streams."""
    assert main(["silo", *words]) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    return (out if "--json" in words else " ".join(out.split())), err


def facts(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(capsys, *words, "--json")[0])
    return found


def proposed(config: Path) -> str:
    """What the silo replies to the plan of its job."""
    silo = SiloJob.of(read_silo_config(config))
    body = ProposedPlan(silo.job.plan.to_toml(), silo.job.run, silo.roster.index(silo.config.name))
    key = SigningKey.load(config.with_name("server.pem"))
    request = seal_request("accept", body, roster=silo.roster, run=silo.job.run, to=silo.config.name, key=key)
    with silo.service() as service:
        reply = open_reply(service.handle(request), request=request, roster=silo.roster, now=NOW)
    return reply.envelope.kind


def test_check_shows_the_plan_and_its_price_and_gives_no_consent_by_itself(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = told(capsys, "check", "--config", str(config))
    for words in (
        "silo-2: 60 records, all of which train",
        "linear, logistic, by",
        "5 rounds",
        "nobody but this silo",
        "epsilon 4 at delta 1e-05, before this run",
        "everybody outside silo 'silo-2', the server included",
        "consent: not given",
    ):
        assert words in out
    assert not (config.parent / "state").exists()
    found = facts(capsys, "check", "--config", str(config))
    assert (found["silo"], found["units"], found["consent"], found["reserved"]) == ("silo-2", 60, None, False)
    assert found["left"] == {"epsilon": 4.0, "delta": 1e-05}
    assert proposed(config) == "refused"


def test_accept_is_consent_to_the_plan_that_was_shown(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = facts(capsys, "check", "--config", str(config), "--accept")
    assert found["consent"] is not None
    assert proposed(config) == "accepted"
    again = facts(capsys, "check", "--config", str(config), "--accept")
    assert again["consent"] == found["consent"]
    assert again["reserved"]
    assert again["left"]["epsilon"] == pytest.approx(4.0 - found["epsilon"])
    out, _ = told(capsys, "check", "--config", str(config))
    assert "and this run is paid for" in out
    assert f"consent: given on {found['consent']}" in out


@pytest.mark.parametrize(("answer", "given"), [("y\n", True), ("n\n", False)])
def test_at_a_terminal_the_owner_is_asked(
    config: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    given: bool,
) -> None:
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    out, _ = told(capsys, "check", "--config", str(config))
    assert "Agree to this plan at this price?" in out
    assert ("consent: given" in out) is given
    assert (facts(capsys, "check", "--config", str(config))["consent"] is not None) is given


def test_under_shuffle_trust_both_observers_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_silo(tmp_path, trained={**PATIENTS, "trust": "shuffle"})
    out, _ = told(capsys, "check", "--config", str(config))
    assert "everybody who sees the shuffled batches" in out
    assert "before they are shuffled" in out
    found = facts(capsys, "check", "--config", str(config))
    assert "before they are shuffled" in found["guarantee_alone"]


def test_under_aggregate_trust_both_prices_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_silo(tmp_path, trained={**PATIENTS, "trust": "aggregate", "colluding": 1}, colluding=1)
    out, _ = told(capsys, "check", "--config", str(config))
    assert "2 shares of noise, this silo's among them; up to 1 of 3 silos may collude" in out
    found = facts(capsys, "check", "--config", str(config))
    assert "the server and up to 1 other party together" in found["guarantee"]
    assert "who see the message of silo 'silo-2' alone" in found["guarantee_alone"]
    silent = write_silo(tmp_path / "b", trained={**PATIENTS, "trust": "aggregate"}, epsilon=40.0, delta=1e-5)
    out, _ = told(capsys, "check", "--config", str(silent))
    assert "nobody: the silo's configuration has no `colluding`" in out


@pytest.mark.parametrize("trust", ["central", "none"])
def test_a_plan_that_trusts_the_server_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trust: str
) -> None:
    config = write_silo(tmp_path, trained={**PATIENTS, "trust": trust})
    out, _ = told(capsys, "check", "--config", str(config))
    assert "exact sums" in out
    assert "the silo keeps no ledger" in out
    assert facts(capsys, "check", "--config", str(config))["epsilon"] is None
    _, err = told(
        capsys, "check", "--config", str(write_silo(tmp_path / "b", trained={**PATIENTS, "trust": trust},
                                                    trusts_server=False)), code=6
    )  # fmt: skip
    assert "does not" in err or "has not allowed" in err


def test_the_log_is_shown_and_verified(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "log", "--config", str(config))
    assert "no lines" in out
    _, err = told(capsys, "log", "--config", str(config), "--verify", code=1)
    assert "there is no log" in err
    proposed(config)
    told(capsys, "check", "--config", str(config), "--accept")
    state = config.parent / "state"
    kept = config.with_name("kept.head")
    kept.write_bytes((state / "log.jsonl.head").read_bytes())
    proposed(config)
    out, _ = told(capsys, "log", "--config", str(config), "--verify")
    assert "code=consent" in out
    assert "verified: 4 lines" in out
    found = facts(capsys, "log", "--config", str(config), "--since", str(kept))
    assert found["verified"]
    assert [line["kind"] for line in found["lines"]] == ["started", "refused", "started", "accepted"]
    assert found["head"]["number"] == 4
    lines = (state / "log.jsonl").read_bytes().splitlines(keepends=True)
    (state / "log.jsonl").write_bytes(b"".join(lines[:-1]))
    for words in (("--verify",), ("--since", str(kept))):
        _, err = told(capsys, "log", "--config", str(config), *words, code=1)
        assert "cut off" in err


def test_the_silo_runs_until_it_is_stopped(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(self: SiloJob, service: SiloService, stop: asyncio.Event) -> None:
        import os
        import signal

        service.handle(b"nothing")
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 5)

    monkeypatch.setattr(SiloJob, "serve", serve)
    _, err = told(capsys, "--config", str(config), "--json-logs")
    said = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in said] == [
        "started", "ready", "no plan is agreed to: all are refused", "refused", "stopped"
    ]  # fmt: skip
    assert said[2]["until"] == f"tacit silo check --config {config} --accept"
    assert said[3]["code"] == "failed"
    assert {line["role"] for line in said} == {"silo-2"}
    _, err = told(capsys, "--config", str(config))
    assert [line.split()[1:3] for line in err.splitlines()][:2] == [
        ["silo-2:", "started"],
        ["silo-2:", "ready"],
    ]
    _, err = told(capsys, "--config", str(config), "--quiet")
    assert "warning: refused" in err
    assert "ready" not in err


def test_a_silo_that_is_revoked_does_not_start(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roster = config.with_name("roster.toml")
    roster.write_text(roster.read_text().replace('name = "silo-2"', 'revoked = true\nname = "silo-2"'))
    _, err = told(capsys, "--config", str(config), code=7)
    assert "'silo-2' is revoked in the roster" in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "Missing option '--config'"),
        (("check",), 2, "Missing option '--config'"),
        (("log",), 2, "Missing option '--config'"),
        (("--config", "gone.toml"), 2, "gone.toml cannot be read"),
        (("check", "--config", "gone.toml"), 2, "gone.toml cannot be read"),
        (("--config", "gone.toml", "log"), 2, "--config stands behind the command: tacit silo log"),
        (("chek",), 2, "Did you mean 'check'?"),
    ],
)
def test_mistakes_on_the_command_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, says: str
) -> None:
    _, err = told(capsys, *words, code=code)
    assert says in err
