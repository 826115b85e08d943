"""`tacit server`: train one model across silos on other machines."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.interrupts import say_when_stopped
from tacit.cli.output import JsonFlag, print_json, print_text, progress
from tacit.cli.results import show_result
from tacit.cli.role_logs import JsonLogsFlag, QuietFlag, logs_of
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.federation.network.channel import Channel
    from tacit.federation.network.journal import RoundFacts
    from tacit.jobs.deployed.server_role import ServedRun, ServerRole
    from tacit.reports import RunFolder

__all__ = ["serve", "server"]

_JOB = "tacit.cli.server:serve"


def server(
    config: Annotated[Path, typer.Option(help="TOML file of the server, as `tacit federation init` writes.")],
    quiet: QuietFlag = False,
    json_logs: JsonLogsFlag = False,
    json: JsonFlag = False,
) -> None:
    """Run the server of a federation: wait for the silos, train, and write the run folder.

    Every silo considers the plan before the first one pays. A server that was stopped goes on where it was:
    rounds that are over are not asked again, and nothing is spent twice.
    """
    from tacit.jobs.deployed.configs import ServerConfig, read_config
    from tacit.jobs.deployed.server_role import ServerRole

    settings = read_config(config, ServerConfig)
    role = ServerRole(settings)
    if settings.transport == "flower":
        _hand_over(role, config)
        return
    from tacit.jobs.deployed.transports import hub_of

    with (
        logs_of("server", quiet=quiet, json_lines=json_logs),
        say_when_stopped(lambda: _when_stopped(config)),
        hub_of(role) as channel,
    ):
        served, folder = _run(role, channel, config)
    if json:
        print_json(_facts(served, folder))
    else:
        show_result(served.result, folder, roster=folder / "roster.toml")


def serve(channel: Channel, config: Path) -> None:
    """Run the server's job as the ServerApp that Flower has started; it writes the run folder.

    Args:
        channel: Flower's.
        config: TOML file of the server.
    """
    from tacit.jobs.deployed.configs import ServerConfig, read_config
    from tacit.jobs.deployed.server_role import ServerRole

    with logs_of("server", quiet=False):
        _run(ServerRole(read_config(config, ServerConfig)), channel, config)


def _run(role: ServerRole, channel: Channel, config: Path) -> tuple[ServedRun, Path]:
    """Run the job, and write its folder."""
    folder = _folder(role, config)
    try:
        with progress(role.job.run, total=role.prepared.rounds) as show:

            def follow(facts: RoundFacts) -> None:
                show(facts.step + 1)

            served = role.run(channel, follow=follow)
        _write(role, served, folder)
    finally:
        folder.give_back()
    return served, folder.path


def _hand_over(role: ServerRole, config: Path) -> None:
    """Write what Flower distributes, and say how it starts the run."""
    from tacit.federation.flower.bundle import write_bundle

    bundle = role.state / "tacit-round"
    if not bundle.exists():
        write_bundle(bundle)
    told = f'job="{_JOB}" config="{config.absolute()}"'
    print_text(
        "The configuration says transport = 'flower': Flower's SuperLink starts the server. With SuperNodes "
        "that are registered under the names of the silos, this runs the job, and goes on with it:\n\n"
        f"  flwr run {bundle} YOUR-SUPERLINK --stream --run-config {shlex.quote(told)}"
    )


def _folder(role: ServerRole, config: Path) -> RunFolder:
    """Return the folder of the run: a new one, or that of the run that was stopped."""
    from tacit.jobs import MODEL_FILE
    from tacit.reports import RunFolder, claim_folder
    from tacit.reports.run_folder import UNFINISHED

    path = role.folder
    if (path / UNFINISHED).exists():
        return RunFolder(path, path, ())
    if (path / MODEL_FILE).exists():
        raise ParameterError(
            f"{path} holds this run, finished; another one needs another name in {role.config.job}."
        )
    return claim_folder(role.job.terms.config, path, again=f"This goes on with it:\n\n{_again(config)}\n")


def _again(config: Path) -> str:
    """Return the command that goes on with a run."""
    return f"tacit server --config {config}"


def _when_stopped(config: Path) -> dict[str, str]:
    """Return what is said after Ctrl-C or SIGTERM; nothing of a demo's server, whose folder goes with it."""
    if "TACIT_PARENT" in os.environ:
        return {}
    return {"tacit": "stopped; what was paid stays paid.", "resume at no cost": _again(config)}


def _write(role: ServerRole, served: ServedRun, folder: RunFolder) -> None:
    """Write the run, and what may be told of its rounds."""
    from tacit.jobs.deployed.server_role import rounds_jsonl
    from tacit.reports import write_run

    (folder.path / "roster.toml").write_text(role.roster.to_toml(), encoding="utf-8")
    (folder.path / "rounds.jsonl").write_bytes(rounds_jsonl(served.rounds))
    write_run(served.result, folder, signatures=served.signatures)


def _facts(served: ServedRun, folder: Path) -> dict[str, Any]:
    """Return what `tacit train --json` prints, and what went over the network."""
    from tacit.reports import results_json

    return {
        **results_json(served.result, folder=folder),
        "rounds": len(served.rounds),
        "bytes_up": served.bytes_up,
        "bytes_down": served.bytes_down,
    }
