"""`tacit account halving`: what a step size costs that is found by watching losses, if it is private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.account.options import Delta
from tacit.cli.account.output import print_price
from tacit.cli.account.releases import parse_release
from tacit.cli.neighbours import RelationOption
from tacit.cli.output import JsonFlag
from tacit.errors import ParameterError, check_count

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = ["OBSERVER", "event_of", "halving"]

OBSERVER = "an observer of all runs and of their losses"


def halving(
    run: Annotated[
        str, typer.Argument(help="What one run releases, such as gaussian:20x300; see `compose`.")
    ],
    delta: Delta,
    rounds: Annotated[int, typer.Option(help="Rounds of a run.")],
    check: Annotated[
        str | None,
        typer.Option(
            help="What one loss releases, such as laplace:50.", show_default="it is exact: nothing is private"
        ),
    ] = None,
    check_every: Annotated[int, typer.Option(help="Rounds between two losses.")] = 20,
    most_runs: Annotated[int, typer.Option(help="Most runs that may be begun.")] = 20,
    neighbours: RelationOption = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Price a step size that is found by halving: all runs that may be begun, and all their losses.

    A run whose loss grows starts again with half the step size. Losses that are read as they are have no
    price: then nothing is claimed, whatever the runs cost.
    """
    from tacit.learning import HalvedStep
    from tacit.privacy import guarantee

    if run.endswith(".json") or (check or "").endswith(".json"):
        raise ParameterError(
            "run and check must be releases as they are written, such as gaussian:20x300, got a JSON file."
        )
    asked: dict[str, Any] = {
        "run_release": run,
        "check_release": check,
        "rounds": rounds,
        "check_every": check_every,
        "most_runs": most_runs,
        "neighbours": neighbours,
    }
    price = guarantee(event_of(asked), delta, observer=OBSERVER)
    losses = most_runs * (rounds // check_every)
    exact = check is None
    print_price(
        "account halving",
        price,
        answer={"epsilon": price.epsilon, "delta": delta, "method": price.method, **asked},
        facts={
            "epsilon": "none: the losses are exact" if exact else f"{price.epsilon:.10g}",
            "delta": f"{delta:.10g}",
            "runs": f"at most {most_runs:,} of {rounds:,} rounds, each {run}",
            "losses": f"at most {losses:,}, each {check or 'as it is'}",
            "neighbours": neighbours,
            "method": price.method,
            **({"warning": HalvedStep.warning} if exact else {}),
        },
        title="Price of a step size by halving",
        json=json,
    )


def event_of(asked: dict[str, Any]) -> Event:
    """Return what was released, from the facts that an answer holds.

    Raises:
        ParameterError: A value that is not allowed.
    """
    from tacit.learning import HalvingTuner
    from tacit.privacy import NonPrivate, neighbours_of
    from tacit.privacy.composition import MOST_RELEASES

    check_count("rounds", asked["rounds"], high=MOST_RELEASES)
    check_count("check-every", asked["check_every"], high=asked["rounds"])
    check_count("most-runs", asked["most_runs"], high=MOST_RELEASES)
    tuner = HalvingTuner(check_every=asked["check_every"], most_runs=asked["most_runs"])
    run = parse_release(asked["run_release"], neighbours=asked["neighbours"])
    check: Event = NonPrivate(neighbours_of(run))
    if asked["check_release"] is not None:
        check = parse_release(asked["check_release"], neighbours=asked["neighbours"])
    return tuner.at_most(run, check, rounds=asked["rounds"])
