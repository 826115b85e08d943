"""`tacit account compare`: every known bound on one release, side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tacit.cli.account.options import Delta, Mechanism, Plot, Relation, Rounds, SampleRate, shuffled_rounds
from tacit.cli.account.plots import Against, draw_comparison
from tacit.cli.account.releases import parse_release
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.errors import ParameterError

__all__ = ["compare"]


def compare(
    delta: Delta,
    release: Annotated[
        str | None, typer.Argument(help="NAME:VALUES[@SAMPLE_RATE][xCOUNT]; without it, a shuffle.")
    ] = None,
    local_epsilon: Annotated[float | None, typer.Option(help="Local epsilon of a shuffled message.")] = None,
    n: Annotated[int | None, typer.Option(help="Parties of the shuffle.")] = None,
    rounds: Rounds = 1,
    sample_rate: SampleRate = 1.0,
    mechanism: Mechanism = "general",
    neighbours: Relation = "replace-one",
    plot: Plot = None,
    against: Against = "n",
    json: JsonFlag = False,
) -> None:
    """Show what every method says about one release.

    A proof is a guarantee. A lower bound shows how much better any proof could be. What is marked paper only
    was printed but is not proven, or was withdrawn: it must not be used as a guarantee.
    """
    from tacit import privacy

    if release is not None:
        event = parse_release(release, neighbours=neighbours)
        if plot is not None:
            raise ParameterError("plot must go with --local-epsilon and --n, a shuffle; got a release.")
    elif local_epsilon is None or n is None:
        raise ParameterError("give a release, or --local-epsilon and --n for a shuffle.")
    else:
        event = shuffled_rounds(n=n, mechanism=mechanism, rounds=rounds, sample_rate=sample_rate)(
            local_epsilon
        )
    bounds = privacy.compare(event, delta)
    if plot is not None:
        assert local_epsilon is not None and n is not None  # noqa: PT018, S101 - narrows the types
        draw_comparison(
            plot, against, local_epsilon=local_epsilon, n=n, delta=delta, rounds=rounds,
            sample_rate=sample_rate, mechanism=mechanism,
        )  # fmt: skip
    if json:
        rows: list[dict[str, Any]] = [
            {"method": b.method, "epsilon": b.epsilon, "status": b.status.value, "note": b.note}
            for b in bounds
        ]
        print_json({"delta": delta, "event": event, "bounds": rows, "plot": plot})
        return
    print_table(
        ("method", "epsilon", "status", "note"),
        [(b.method, f"{b.epsilon:.6g}", b.status.value, b.note) for b in bounds],
        right=("epsilon",),
    )
    best = min((b for b in bounds if b.status is privacy.Status.PROOF), key=lambda b: b.epsilon)
    print_text(f"\nThe tightest proof: epsilon {best.epsilon:.6g} at delta {delta:g}, by {best.method}.")
    if plot is not None:
        print_text(f"Drawn into {plot}")
