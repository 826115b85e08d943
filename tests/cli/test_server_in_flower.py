"""The server of a federation inside Flower: the run folder of `tacit server`."""

from __future__ import annotations

from pathlib import Path

from tacit.cli import main
from tacit.cli.server import serve
from tacit.federation.flower.bundle import JOB
from tests.jobs.deployed.world import NAMES, consent, founded, silos_of


def test_it_writes_the_run_that_the_configuration_names(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    for name in NAMES:
        consent(fed, name)
    with silos_of(fed) as channel:
        serve(channel, fed.folder / "server.toml")
    (statement,) = fed.folder.rglob("statement.json")
    assert main(["account", "verify", "--keys", str(fed.folder / "roster.toml"), str(statement)]) == 0
    assert (statement.parent / "model.json").is_file()
    assert len((statement.parent / "rounds.jsonl").read_text(encoding="utf-8").splitlines()) == 4


def test_the_bundle_names_it() -> None:
    assert f"{serve.__module__}:{serve.__name__}" == JOB
