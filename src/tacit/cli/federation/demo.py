"""`tacit federation demo`: a whole federation on this machine, with the table that `tacit train` prints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.choices import OneOf
from tacit.cli.federation.trusting import TRUSTS, CollusionOption, MinimumOption, RecoverOption
from tacit.cli.interrupts import say_when_stopped
from tacit.cli.names import ALGORITHMS
from tacit.cli.output import JsonFlag
from tacit.cli.role_logs import QuietFlag
from tacit.errors import ParameterError, check_count

__all__ = ["demo"]

_DELTA = 1e-5


def demo(
    silos: Annotated[int, typer.Option(help="Number of silos, each a process.")] = 4,
    trust: Annotated[
        str,
        typer.Option(click_type=OneOf(TRUSTS), help="Who is trusted: {names}."),
    ] = "local",
    n_min: MinimumOption = None,
    colluding: CollusionOption = None,
    recover: RecoverOption = False,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of every silo.")] = 2.0,
    algorithm: Annotated[
        str, typer.Option(click_type=OneOf(("auto", *ALGORITHMS)), help="How to train: {names}.")
    ] = "auto",
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds.", show_default="the best by theory")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of run folders.")] = Path("runs"),
    quiet: QuietFlag = False,
    logs: Annotated[bool, typer.Option("--logs", help="Show what every role says while it runs.")] = False,
    json: JsonFlag = False,
) -> None:
    """Run the example with every role as a process of its own, on loopback, and end all of them.

    Keys, certificates and states lie in a temporary folder; the run folder stays, with the roster.
    """
    check_count("silos", silos)
    from tacit.jobs import JobConfig
    from tacit.jobs.deployed.demo import Shows, demo_federation

    if logs and quiet:
        raise ParameterError("logs and quiet exclude each other.")
    shows: Shows = "logs" if logs else "nothing" if quiet else "progress"
    asked = {"rounds": rounds, "n_min": n_min, "colluding": colluding, "recover": recover or None}
    said: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    job = JobConfig.of(
        {"silos": f"iid:{silos}", "trust": trust, "epsilon": epsilon, "delta": _DELTA, "algorithm": algorithm}
        | {"name": "federation-demo", **said}
    )
    with say_when_stopped(lambda: {"tacit": "stopped, with every process of the demo."}):
        with demo_federation(job, silos, out=out, shows=shows) as federation:
            printed = federation.run(*(["--json"] if json else []))
        sys.stdout.write(printed)
