"""`tacit account compare`: every known bound on one release, side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import typer

from tacit.cli.account.options import Delta, Mechanism, Plot, RoundsOption, SampleRate
from tacit.cli.account.plots import Against, check_axis, draw_comparison
from tacit.cli.account.releases import parse_release
from tacit.cli.account.shuffled import Shuffle
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.neighbours import RelationOption
from tacit.cli.output import JsonFlag, print_json, print_table, print_text
from tacit.errors import ParameterError, check_probability

__all__ = ["compare"]

_OF_A_SHUFFLE = ("local_epsilon", "n", "rounds", "sample_rate", "mechanism", "plot")


@dataclass(frozen=True, kw_only=True)
class CompareFlags:
    """A release, or a shuffle."""

    release: Annotated[
        str | None,
        typer.Argument(
            help="A release as in `compose`, such as gaussian:2x10.",
            show_default="the shuffle of --n and --local-epsilon",
        ),
    ] = None
    delta: Delta
    local_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Local epsilon of a shuffled message, in (0, 30].", show_default="for a shuffle only"
        ),
    ] = None
    n: Annotated[
        int | None,
        typer.Option(help="Number of parties of the shuffle, at least 2.", show_default="for a shuffle only"),
    ] = None
    rounds: RoundsOption = 1
    sample_rate: SampleRate = 1.0
    mechanism: Mechanism = "general"
    neighbours: RelationOption = "replace-one"
    plot: Plot = None
    against: Against = "n"
    json: JsonFlag = False

    def check_only_release(self) -> None:
        """Refuse options of a shuffle beside a release, which says all of that itself."""
        for field in fields(self):
            if field.name in _OF_A_SHUFFLE and vars(self)[field.name] != field.default:
                raise ParameterError(
                    f"{field.name.replace('_', '-')} is for a shuffle of --local-epsilon and --n; a release "
                    "has its own numbers, and @SAMPLE_RATE and xCOUNT behind them."
                )

    def shuffle(self) -> Shuffle:
        """Return the shuffle that is compared."""
        if self.local_epsilon is None or self.n is None:
            raise ParameterError("give a release, or --local-epsilon and --n for a shuffle.")
        if self.neighbours != "replace-one":
            raise ParameterError(
                "neighbours must be replace-one for a shuffle, whose size is public; got "
                f"{self.neighbours!r}."
            )
        return Shuffle(
            local_epsilon=self.local_epsilon,
            n=self.n,
            rounds=self.rounds,
            sample_rate=self.sample_rate,
            mechanism=self.mechanism,
        )


@takes(CompareFlags)
def compare(flags: CompareFlags) -> None:
    """Compare what every method says about one release.

    A proof is a guarantee. A lower bound shows how much better any proof could be. What is marked paper
    only was published but is not proven for this release, or was withdrawn: never use it as a guarantee.
    """
    from tacit import literature

    check_axis(flags.against)
    check_probability("delta", flags.delta, low_open=True, high_open=True)
    if flags.release is not None:
        flags.check_only_release()
        event = parse_release(flags.release, neighbours=flags.neighbours)
    else:
        if flags.plot is not None:
            check_picture(flags.plot)
        event = flags.shuffle().event()
    bounds = literature.compare(event, flags.delta)
    if flags.plot is not None:
        draw_comparison(flags.plot, flags.against, flags.shuffle(), delta=flags.delta)
    if flags.json:
        print_json({"delta": flags.delta, "event": event, "bounds": bounds, "plot": flags.plot})
        return
    print_table(
        ("method", "epsilon", "status", "note"),
        [(b.method, f"{b.epsilon:.6g}", b.status.value, b.note) for b in bounds],
        right=("epsilon",),
    )
    proofs = [b for b in bounds if b.status is literature.Status.PROOF]
    used = next(b for b in proofs if b.note == "what guarantees use")
    print_text(f"\nGuarantees use {used.method}: epsilon {used.epsilon:.6g} at delta {flags.delta:g}.")
    if proofs[0].epsilon < used.epsilon * (1 - 1e-9):
        print_text(f"A tighter proof is {proofs[0].method}: epsilon {proofs[0].epsilon:.6g}.")
    if flags.plot is not None:
        print_text(f"Drawn into {flags.plot}")
