"""`tacit account compare`: every known bound on one release, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.account.options import (
    Delta,
    Mechanism,
    Plot,
    RelationOption,
    RoundsOption,
    SampleRate,
    check_local_epsilon,
    check_picture,
    shuffled_rounds,
)
from tacit.cli.account.plots import Against, check_axis, draw_comparison
from tacit.cli.account.releases import parse_release
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.errors import ParameterError, check_probability

__all__ = ["compare"]


def compare(
    delta: Delta,
    release: Annotated[
        str | None, typer.Argument(help="A release as in `compose`, such as gaussian:2x10; else a shuffle.")
    ] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(help="Local epsilon of a shuffled message, in (0, 30].")
    ] = None,
    n: Annotated[int | None, typer.Option(help="Number of parties of the shuffle, at least 2.")] = None,
    rounds: RoundsOption = 1,
    sample_rate: SampleRate = 1.0,
    mechanism: Mechanism = "general",
    neighbours: RelationOption = "replace-one",
    plot: Plot = None,
    against: Against = "n",
    json: JsonFlag = False,
) -> None:
    """Compare what every method says about one release.

    A proof is a guarantee. A lower bound shows how much better any proof could be. What is marked paper
    only was published but is not proven for this release, or was withdrawn: never use it as a guarantee.
    """
    from tacit import literature

    check_axis(against)
    check_probability("delta", delta, low_open=True, high_open=True)
    if release is not None:
        _check_only_release(local_epsilon, n, rounds, sample_rate, mechanism, plot)
        event = parse_release(release, neighbours=neighbours)
    elif local_epsilon is None or n is None:
        raise ParameterError("give a release, or --local-epsilon and --n for a shuffle.")
    else:
        if plot is not None:
            check_picture(plot)
        if neighbours != "replace-one":
            raise ParameterError(
                f"neighbours must be replace-one for a shuffle, whose size is public; got {neighbours!r}."
            )
        check_local_epsilon(local_epsilon)
        event = shuffled_rounds(n=n, mechanism=mechanism, rounds=rounds, sample_rate=sample_rate)(
            local_epsilon
        )
    bounds = literature.compare(event, delta)
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
    proofs = [b for b in bounds if b.status is literature.Status.PROOF]
    used = next(b for b in proofs if b.note == "what guarantees use")
    print_text(f"\nGuarantees use {used.method}: epsilon {used.epsilon:.6g} at delta {delta:g}.")
    if proofs[0].epsilon < used.epsilon * (1 - 1e-9):
        print_text(f"A tighter proof is {proofs[0].method}: epsilon {proofs[0].epsilon:.6g}.")
    if plot is not None:
        print_text(f"Drawn into {plot}")


def _check_only_release(
    local_epsilon: float | None,
    n: int | None,
    rounds: int,
    sample_rate: float,
    mechanism: str,
    plot: Path | None,
) -> None:
    """Refuse options of a shuffle beside a release, which says all of that itself."""
    given = {
        "local-epsilon": local_epsilon is not None,
        "n": n is not None,
        "rounds": rounds != 1,
        "sample-rate": sample_rate != 1,
        "mechanism": mechanism != "general",
        "plot": plot is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise ParameterError(
                f"{name} is for a shuffle of --local-epsilon and --n; a release has its own numbers, and "
                "@SAMPLE_RATE and xCOUNT behind them."
            )
