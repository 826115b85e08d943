"""`tacit silo`: answer for one silo, show its owner a plan with its price, and what was answered."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from tacit.cli.output import (
    JsonFlag,
    print_facts,
    print_foreign,
    print_json,
    print_line,
    print_table,
    print_text,
)
from tacit.cli.role_logs import JsonLogsFlag, QuietFlag, logs_of
from tacit.errors import VerificationError

if TYPE_CHECKING:
    from tacit.federation import Plan
    from tacit.federation.network.audit_log import LogLine
    from tacit.jobs.deployed.silo_job import PricedPlan, SiloJob

__all__ = ["app"]

ConfigOption = Annotated[Path, typer.Option(help="TOML file of the silo, as `tacit federation init` writes.")]

app = typer.Typer(
    help="Answer for one silo of a federation; ask its owner for consent; show what was answered.",
    invoke_without_command=True,
)

_DIGITS, _LONG = 12, 30  # letters of digests

_WHOM = {
    "local": "nobody but this silo: it adds all noise itself",
    "aggregate": "nobody with a message, only with the sum of all; the silo adds a share of the noise",
    "shuffle": "a shuffler that mixes messages of several silos; the silo adds a part of the noise",
    "central": "the server, which gets exact sums and adds the noise",
    "none": "the server with exact sums: no privacy is claimed",
}


@app.callback()
def run(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file of the silo, as `tacit federation init` writes.", show_default="none"),
    ] = None,
    quiet: QuietFlag = False,
    json_logs: JsonLogsFlag = False,
) -> None:
    """Answer for one silo of a federation until it is stopped; consent and log are commands of their own.

    The silo dials out, and answers only plans that its owner has agreed to (`tacit silo check`). Ctrl-C or
    SIGTERM ends it when the answer under way is finished; started again, it goes on at no cost.
    """
    if context.invoked_subcommand is not None:
        if config is not None:
            raise click.UsageError(
                f"--config stands behind the command: tacit silo {context.invoked_subcommand}."
            )
        return
    if config is None:
        raise click.UsageError("Missing option '--config'.", context)
    import asyncio

    silo = _opened(config)
    _check_active(silo)
    with logs_of(silo.config.name, quiet=quiet, json_lines=json_logs):
        asyncio.run(_serve(silo, config))


@app.command()
def check(
    config: ConfigOption,
    accept: Annotated[
        bool, typer.Option("--accept", help="Agree to the plan at its price, without being asked.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Read the silo's table, show the plan with its price and what is left, and ask for consent.

    Nothing is sent and nothing is spent: the price is reserved when the server proposes the same plan.
    """
    silo = _opened(config)
    priced = silo.priced()
    if not json:
        _show(silo, priced)
    if priced.consent is None and (accept or (not json and _asked())):
        silo.agree(priced)
        priced = silo.priced()
    if json:
        print_json(_facts(silo, priced))
    else:
        _show_consent(priced, config)


@app.command()
def log(
    config: ConfigOption,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no line was changed, moved, put in or cut off.")
    ] = False,
    since: Annotated[
        Path | None,
        typer.Option(
            help="Head of the log that was kept elsewhere: the log must go on from it.", show_default="none"
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show what the silo was asked, what it answered or refused, when, and at which price; never any data."""
    from tacit.federation.network.audit_log import head_path, read_log, read_log_head, verify_log
    from tacit.federation.network.roster import Roster
    from tacit.federation.network.silo_service import LOG_FILE
    from tacit.jobs.deployed.silo_config import read_silo_config

    settings = read_silo_config(config)
    path = settings.state / LOG_FILE
    head = None
    if verify or since is not None:
        key = Roster.load(settings.roster).verify_key(settings.name)
        if not path.exists() and not head_path(path).exists():
            raise VerificationError(f"there is no log {path}: the silo has never run, or its log is gone.")
        head = verify_log(path, key, since=None if since is None else read_log_head(since))
    lines = list(read_log(path)) if path.exists() else []
    if json:
        print_json({"log": path, "lines": lines, "head": head, "verified": None if head is None else True})
        return
    if lines:
        columns = ("line", "time (UTC)", "what", "run", "step", "more")
        print_table(columns, _cells(lines), right=("line", "step"))
    else:
        print_text("The log has no lines: the silo has not run yet.")
    if head is not None:
        text = f"{head.number} lines, each signed and none missing; the last one is {head.hash}"
        print_line(to_error=False, label="verified", text=text, colour="green")


@app.command()
def rotate(
    config: ConfigOption,
    signing: Annotated[
        Path, typer.Option(help="New private key of the silo, as `tacit federation join` made it.")
    ],
    json: JsonFlag = False,
) -> None:
    """Have the log of the silo go on under a new key: the last line by the old one names the new one.

    The silo must be stopped, and its configuration still name the old key.
    """
    from tacit.federation.network.audit_log import AuditLog
    from tacit.federation.network.keys import SigningKey
    from tacit.federation.network.silo_service import LOG_FILE
    from tacit.jobs.deployed.silo_config import read_silo_config

    settings = read_silo_config(config)
    path, old, new = settings.state / LOG_FILE, SigningKey.load(settings.signing), SigningKey.load(signing)
    number = None
    if path.exists():
        with AuditLog(path, old) as log:
            number = log.hand_over(new).number
    if json:
        print_json({"log": path, "line": number, "old": old.public.to_text(), "new": new.public.to_text()})
        return
    done = f"There is no log {path} yet" if number is None else f"Line {number} of {path} names the new key"
    print_text(
        f"{done}. Now name {signing} as `signing` in {config}, and the new roster as `roster`; then start "
        "the silo, and remove the old key."
    )


def _opened(config: Path) -> SiloJob:
    """Read the configuration of a silo and all that it names."""
    from tacit.jobs.deployed.silo_config import read_silo_config
    from tacit.jobs.deployed.silo_job import SiloJob

    return SiloJob.of(read_silo_config(config))


def _check_active(silo: SiloJob) -> None:
    """Refuse to run a silo whose key counts nowhere."""
    from datetime import UTC, datetime

    silo.roster.check_active(silo.config.name, datetime.now(UTC))


async def _serve(silo: SiloJob, config: Path) -> None:
    """Answer until Ctrl-C or SIGTERM."""
    import asyncio
    import signal

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    logger = logging.getLogger("tacit.silo")
    with silo.service() as service:
        door = silo.config.socket or silo.roster.server.url
        logger.info("ready", extra={"facts": {"at": str(door), "agreed": len(agreed := silo.consents.all())}})
        if not agreed:
            facts = {"until": f"tacit silo check --config {config} --accept"}
            logger.warning("no plan is agreed to: all are refused", extra={"facts": facts})
        await silo.serve(service, stop)
    logger.info("stopped")


def _asked() -> bool:
    """Ask the owner, who may be at a terminal."""
    return sys.stdin.isatty() and typer.confirm("Agree to this plan at this price?")


def _show(silo: SiloJob, priced: PricedPlan) -> None:
    """Print what the plan asks, of whom, and what it costs."""
    plan, unit = priced.plan, silo.job.terms.facts.unit
    statistics = dict.fromkeys(measure.statistic for kind, _ in plan.kinds for measure in kind.measures)
    units = f"{len(silo.units):,} {unit.plural}, all of which train"
    if unit == "party":
        units = "one party, all of whose records train"
    facts = {
        "federation": f"{silo.roster.federation}, {len(silo.roster.silos)} silos",
        "silo": f"{silo.config.name}: {units}",
        "run": priced.run,
        "plan": priced.plan.digest().hex(),
        "trains": f"{silo.job.terms.config.architecture}, {silo.job.terms.loss.words}, by {priced.algorithm}",
        "asks": f"{plan.rounds:,} rounds, each a mean over {unit.plural} of: {', '.join(statistics)}",
        "trusts": _WHOM[silo.job.trust],
        **_counted(silo, plan),
        "price": _price(priced),
        "left": _left(priced),
    }
    print_facts(facts)
    claims = [priced.price] if priced.alone is None else [priced.price, priced.alone]
    for claim in claims:
        print_text("")
        print_foreign(str(claim))
    print_text("")


def _counted(silo: SiloJob, plan: Plan) -> dict[str, str]:
    """Say how many others the price counts on, under aggregate trust."""
    if plan.trust != "aggregate":
        return {}
    told = silo.config.colluding
    if told is None:
        return {
            "counts on": "nobody: the silo's configuration has no `colluding`; a message alone is charged"
        }
    colluding = max(told, plan.colluding)
    return {
        "counts on": f"{plan.n_min - colluding} shares of noise, this silo's among them; up to {colluding} "
        f"of {plan.parties} silos may collude with the server"
    }


def _price(priced: PricedPlan) -> str:
    """Return the price in a few words."""
    if priced.limit is None:
        return "none of its own: the silo adds no noise"
    return f"epsilon {priced.limit.epsilon:.6g} at delta {priced.limit.delta:.3g}"


def _left(priced: PricedPlan) -> str:
    """Return what the ledger has left in words."""
    if priced.left is None:
        return "the silo keeps no ledger"
    left = f"epsilon {priced.left.epsilon:.6g} at delta {priced.left.delta:.3g}"
    return f"{left}, and this run is paid for" if priced.reserved else f"{left}, before this run"


def _show_consent(priced: PricedPlan, config: Path) -> None:
    """Say whether the owner has agreed."""
    if priced.consent is None:
        text = f"not given; without it the silo refuses: tacit silo check --config {config} --accept"
        print_line(to_error=False, label="consent", text=text, colour="yellow")
        return
    text = f"given on {priced.consent.given}, for this plan in this run"
    print_line(to_error=False, label="consent", text=text, colour="green")


def _facts(silo: SiloJob, priced: PricedPlan) -> dict[str, Any]:
    """Return all of it for programs."""
    plan, consent = priced.plan, priced.consent
    return {
        "federation": silo.roster.federation,
        "silo": silo.config.name,
        "run": priced.run,
        "plan": plan.digest().hex(),
        "trust": silo.job.trust,
        "algorithm": priced.algorithm,
        "rounds": plan.rounds,
        "units": len(silo.units),
        "unit": silo.job.terms.facts.unit,
        "epsilon": priced.price.epsilon,
        "delta": priced.price.delta,
        "guarantee": str(priced.price),
        "guarantee_alone": None if priced.alone is None else str(priced.alone),
        "left": priced.left,
        "reserved": priced.reserved,
        "consent": None if consent is None else consent.given,
    }


def _cells(lines: list[LogLine]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of a log."""
    for line in lines:
        facts = dict(line.facts)
        run, step = facts.pop("run", None), facts.pop("step", None)
        more = " ".join(f"{name}={_short(value)}" for name, value in facts.items() if value is not None)
        yield (
            str(line.number),
            line.time[:19].replace("T", " "),
            line.kind,
            "" if run is None else str(run),
            "" if step is None else str(step),
            more,
        )


def _short(value: object) -> str:
    """Return a fact as the table shows it: of digests, the first digits."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{text[:_DIGITS]}..." if len(text) > _LONG and text.isalnum() else text
