"""What several commands of `tacit account` share: options, and the events they stand for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.choices import OneOf
from tacit.cli.names import RANDOMIZERS
from tacit.errors import ParameterError, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = [
    "Budget",
    "Delta",
    "Mechanism",
    "Plot",
    "RoundsOption",
    "SampleRate",
    "check_mechanism",
    "check_same",
    "composition",
]


Delta = Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")]
RoundsOption = Annotated[int, typer.Option(help="Number of releases on the same data.")]
Budget = Annotated[float, typer.Option(help="Privacy budget of all releases together.")]
SampleRate = Annotated[
    float,
    typer.Option(help="Share of the records or parties in a secret sample per round, in (0, 1]."),
]
Mechanism = Annotated[
    str,
    typer.Option(
        click_type=OneOf(
            RANDOMIZERS, told={"general": "any randomizer of that local epsilon"}, checked=False
        ),
        help="What each party sends: {names}.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw epsilon of every method into this picture file.", show_default="no picture"),
]


def check_mechanism(mechanism: str) -> None:
    """Refuse a local randomizer that nothing here has, or one without its number."""
    from tacit.privacy.shuffling import RANDOMIZERS, dominating

    kinds = {(stem, bool(takes)) for stem, _, takes in (r.name.partition(":") for r in RANDOMIZERS)}
    stem, _, number = mechanism.partition(":")
    if (stem, bool(number)) not in kinds:
        names = ", ".join(r.name for r in RANDOMIZERS)
        raise ParameterError(f"mechanism must be one of {names}, got {mechanism!r}.")
    try:
        dominating(mechanism, 1.0, 2)
    except ParameterError as error:
        raise ParameterError(f"mechanism {error}") from error


def check_same(name: str, stated: float | None, found: float) -> None:
    """Refuse a price that a statement writes beside the event, but does not follow from it."""
    if not math.isclose(math.inf if stated is None else stated, found, rel_tol=1e-9):
        raise ParameterError(f"{name} is {found!r}, got {stated!r}.")


def composition(part: Event, *, rounds: int, sample_rate: float) -> Event:
    """Return `rounds` releases of a part, each on a secret sample of the kind that its neighbours allow."""
    from tacit import privacy

    check_count("rounds", rounds)
    check_probability("sample-rate", sample_rate, low_open=True)
    fixed = privacy.neighbours_of(part).relation is privacy.Relation.REPLACE_ONE
    if sample_rate < 1:
        part = privacy.Sampled(part, sample_rate, privacy.Sample.FIXED if fixed else privacy.Sample.POISSON)
    return privacy.Repeat(part, rounds) if rounds > 1 else part
