"""`tacit plan reports`: how a budget is best spent by SGD on shuffled reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tacit.cli.account.drawn_reports import Randomizer
from tacit.cli.flags import takes
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress

__all__ = ["reports"]


@dataclass(frozen=True, kw_only=True)
class ReportFlags:
    """Clients, a model, a budget, and what is tried."""

    clients: Annotated[int, typer.Option(help="Number of honest clients.")]
    dim: Annotated[int, typer.Option(help="Number of parameters of the model.")]
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the run, behind the shuffler.")]
    delta: Annotated[float, typer.Option(help="Probability that the bound may fail.")]
    records: Annotated[int, typer.Option(help="Records of each client.")] = 1
    drawn: Annotated[
        list[int] | None,
        typer.Option(
            help="Clients that the shuffler draws in each round; may be repeated.",
            show_default="a tenth, a third and all of them",
        ),
    ] = None
    sampled: Annotated[
        list[int] | None,
        typer.Option(help="Records that a drawn client reports on; may be repeated.", show_default="1"),
    ] = None
    rounds: Annotated[
        list[int] | None,
        typer.Option(help="Numbers of rounds; may be repeated.", show_default="30, 100, 300 and 1000"),
    ] = None
    randomizer: Randomizer = "hemisphere"
    lipschitz: Annotated[float, typer.Option(help="Bound on a gradient, in the norm of its randomizer.")] = (
        1.0
    )
    diameter: Annotated[float, typer.Option(help="About the distance from the start to a solution.")] = 1.0
    json: JsonFlag = False


@takes(ReportFlags)
def reports(flags: ReportFlags) -> None:
    """Rank ways to spend a budget by CLDP-SGD: level of a report, clients and records of a round, rounds.

    The bound is on the expected excess of the last point of a convex objective.
    """
    from tacit.planning import plan_reports
    from tacit.privacy import PrivacyBudget

    with progress("calibrating") as show:
        found = plan_reports(
            PrivacyBudget(flags.epsilon, flags.delta),
            clients=flags.clients,
            dim=flags.dim,
            records=flags.records,
            drawn=flags.drawn,
            sampled=flags.sampled or (1,),
            rounds=flags.rounds or (30, 100, 300, 1000),
            randomizer=flags.randomizer,  # type: ignore[arg-type]  # one of the names
            lipschitz=flags.lipschitz,
            diameter=flags.diameter,
            progress=show,
        )
    if flags.json:
        asked = {name: value for name, value in vars(flags).items() if name != "json"}
        print_json({"version": 1, "problem": asked, "plans": [vars(one) for one in found]})
        return
    print_text(
        f"{flags.clients:,} clients of {flags.records:,} record{'' if flags.records == 1 else 's'}, "
        f"{flags.dim:,} parameters, "
        f"{flags.randomizer}: L = {flags.lipschitz:g}, D = {flags.diameter:g}"
    )
    columns = ("drawn", "records", "rounds", "report", "epsilon", "bound", "bits a round")
    rows = [
        (
            f"{one.drawn:,}",
            f"{one.sampled:,}",
            f"{one.rounds:,}",
            f"{one.local_epsilon:.4g}",
            f"{one.epsilon:.4g}",
            f"{one.risk:.3g}",
            f"{one.bits:.4g}",
        )
        for one in found
    ]
    print_table(columns, rows, right=columns)
    print_text(
        "\nreport: the exact local epsilon of a report. bound: on the expected excess of the last point, for "
        "convex objectives. bits a round: of a client, expected, where the order of its reports is not sent."
    )
