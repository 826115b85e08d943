"""What `tacit vote release` is told: the votes, who the teachers are, and who pays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_file
from tacit.cli.names import RELATIONS, SHARDS, VOTED_BY
from tacit.cli.neighbours import neighbours_named
from tacit.cli.output import JsonFlag
from tacit.cli.paying import SeedOption
from tacit.errors import ParameterError, VerificationError, check_choice

if TYPE_CHECKING:
    from tacit.privacy import Guarantee
    from tacit.voting import NoiseFunction

__all__ = ["Artefact", "ReleaseFlags", "TotalDelta", "read_design"]

Artefact = Annotated[Path, typer.Argument(help="A noise function, as `tacit vote design --out` writes it.")]
TotalDelta = Annotated[
    float | None,
    typer.Option(help="Delta of all bits together.", show_default="the sum of the parts' deltas"),
]


@dataclass(frozen=True, kw_only=True)
class ReleaseFlags:
    """The flags of a release."""

    artefact: Artefact
    votes: Annotated[
        Path, typer.Option(help="A .npy array of 0 and 1: one row per query, one column per teacher.")
    ]
    out: Annotated[Path, typer.Option(help="File for the published bits, as .npy.")]
    teachers_are: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(
                VOTED_BY, told={"fresh": "every vote draws new randomness", "fixed": "models trained once"}
            ),
            help="What the teachers are: {names}.",
            show_default="a price that holds for both",
        ),
    ] = None
    shards: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                SHARDS,
                told={
                    "shared": "teachers may see the same records",
                    "disjoint": "each record reaches one teacher, chosen without looking at it",
                },
            ),
            help="Which records the teachers saw: {names}.",
        ),
    ] = "shared"
    alone: Annotated[
        bool,
        typer.Option(
            "--alone",
            help="These teachers answer this one query and nothing else, ever: then fixed teachers, too, "
            "cost no more than the certificate.",
        ),
    ] = False
    delta: TotalDelta = None
    neighbours: Annotated[
        str,
        typer.Option(
            click_type=OneOf(RELATIONS), help="Neighbours under which the teachers are private: {names}."
        ),
    ] = "replace-one"
    ledger: Annotated[
        list[Path] | None,
        typer.Option(
            help="Ledger file that pays, or a folder: then its server and its data set pay. May be repeated: "
            "all of them pay, or none. Not for teachers whose training it has paid for.",
            show_default="none",
        ),
    ] = None
    seed: SeedOption = None
    json: JsonFlag = False

    def check(self) -> None:
        """Refuse flags that contradict each other."""
        if self.seed is not None and self.ledger:
            raise ParameterError("--ledger is for bits that leave; with --seed they are a simulation.")
        if self.alone and self.ledger:
            raise ParameterError(
                "--alone cannot go with --ledger, which adds up prices: those of single answers of fixed "
                "teachers do not add up."
            )
        if self.alone and self.teachers_are == "fresh":
            raise ParameterError("--alone is for fixed teachers: answers of fresh ones add up as they are.")

    def check_out(self) -> None:
        """Refuse a file for the bits that could not be written."""
        check_file("out", self.out)
        if self.out.suffix != ".npy":
            raise ParameterError(f"out must be a file that ends with .npy, got {str(self.out)!r}.")

    def price(self, noise: NoiseFunction, queries: int) -> tuple[Guarantee, tuple[str, ...]]:
        """Return the guarantee of the bits and what to note; names that nothing has are refused."""
        from tacit.voting import Shards, VotedBy, majority_guarantee

        voters = None
        if self.teachers_are is not None:
            voters = VotedBy(check_choice("teachers-are", self.teachers_are, VotedBy))
        price, notes = majority_guarantee(
            noise,
            queries=queries,
            shards=Shards(check_choice("shards", self.shards, Shards)),
            voted_by=voters,
            delta=self.delta,
            neighbours=neighbours_named(self.neighbours),
            simulated=self.seed is not None,
            alone=self.alone,
        )
        again = "publishing again draws new noise, and its price adds to this one"
        if self.alone:
            again = "publishing again breaks this guarantee: the teachers were to answer nothing else"
        elif not self.ledger and self.seed is None:
            again += ": no --ledger counts it"
        return price, (*notes, f"{again}.")


def read_design(path: Path) -> NoiseFunction:
    """Read an artefact, which certifies it again."""
    from tacit.privacy.strict_json import read_start
    from tacit.voting import NoiseFunction

    if not path.is_file():
        raise ParameterError(f"artefact must be a file that exists, got {str(path)!r}.")
    try:
        return NoiseFunction.from_json(read_start(path))
    except VerificationError as error:
        raise VerificationError(f"the artefact {path} is refused: {error}") from error
