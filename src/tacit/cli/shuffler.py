"""`tacit shuffler`: mix what parties send, so that nobody can tell who sent what."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.role_logs import JsonLogsFlag, QuietFlag, logs_of, until_stopped

__all__ = ["shuffler"]


def shuffler(
    config: Annotated[
        Path, typer.Option(help="TOML file of the shuffler, as `tacit federation init` writes.")
    ],
    quiet: QuietFlag = False,
    json_logs: JsonLogsFlag = False,
) -> None:
    """Run the shuffler of a federation until it is stopped.

    It sees messages that are sealed to the server, mixes those of a round once enough parties have sent, and
    hands them over once. Ctrl-C or SIGTERM ends it; started again, it goes on.
    """
    from tacit.jobs.deployed.configs import ShufflerConfig, read_config
    from tacit.jobs.deployed.shuffler_role import shuffler_running

    settings = read_config(config, ShufflerConfig)
    with logs_of("shuffler", quiet=quiet, json_lines=json_logs), shuffler_running(settings):
        log = logging.getLogger("tacit.shuffler")
        log.info("listening", extra={"facts": {"at": f"https://{settings.host}:{settings.port}"}})
        until_stopped()
        log.info("stopped")
