"""What several commands of `tacit account` share: options, and the events they stand for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.names import RANDOMIZERS
from tacit.errors import ParameterError, check_choice, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event

__all__ = [
    "Budget",
    "Delta",
    "Mechanism",
    "Plot",
    "RoundsOption",
    "SampleRate",
    "SamplingOption",
    "as_drawn",
    "check_mechanism",
    "check_same",
    "clauses_of",
    "composition",
]


Delta = Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")]
RoundsOption = Annotated[int, typer.Option(help="Number of releases on the same data.")]
Budget = Annotated[float, typer.Option(help="Privacy budget of all releases together.")]
SampleRate = Annotated[
    float,
    typer.Option(help="Share of the records or parties in a secret sample per round, in (0, 1]."),
]
_SAMPLINGS: Final = ("fixed", "poisson")
SamplingOption = Annotated[
    str | None,
    typer.Option(
        click_type=OneOf(
            _SAMPLINGS,
            told={"fixed": "always as many", "poisson": "every record on its own"},
        ),
        help="How secret samples are drawn: {names}. Under replace-one, poisson takes it that a record "
        "contributes at most half of the sensitivity, as rows of bounded length do.",
        show_default="fixed for replace-one, else poisson",
    ),
]
_HALF: Final = "no record contributes more than half of the sensitivity that the noise is measured in"

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


def composition(part: Event, *, rounds: int, sample_rate: float, sampling: str | None = None) -> Event:
    """Return `rounds` releases of a part, each on a secret sample.

    Args:
        part: What is released on one sample.
        rounds: How often.
        sample_rate: Share of the records in a sample; 1 is all of them.
        sampling: "fixed", "poisson", or None for what the neighbours of the part allow for every release.
    """
    from tacit import privacy

    check_count("rounds", rounds)
    check_probability("sample-rate", sample_rate, low_open=True)
    if sampling is not None:
        check_choice("sampling", sampling, _SAMPLINGS)
    replaced = privacy.neighbours_of(part).relation is privacy.Relation.REPLACE_ONE
    if sample_rate < 1 and replaced and sampling == "poisson":
        part = privacy.Replaced(_against_nothing(part), sample_rate)
    elif sample_rate < 1:
        fixed = replaced if sampling is None else sampling == "fixed"
        part = privacy.Sampled(part, sample_rate, privacy.Sample.FIXED if fixed else privacy.Sample.POISSON)
    return privacy.Repeat(part, rounds) if rounds > 1 else part


def as_drawn(sampling: str | None) -> dict[str, str]:
    """Return how samples are drawn as a fact of an answer; none where nobody asked for a kind."""
    return {} if sampling is None else {"sampling": sampling}


def clauses_of(asked: dict[str, Any]) -> tuple[str, ...]:
    """Return what the price of such releases rests on, by the facts of an answer, besides what events say."""
    poisson = asked.get("sampling") == "poisson" and asked["sample_rate"] < 1
    poisson = poisson or "@poisson:" in f"{asked.get('release')} {asked.get('releases')}"
    return (_HALF,) if poisson and asked.get("neighbours") == "replace-one" else ()


def _against_nothing(part: Event) -> Event:
    """Return the same noise, measured against what one record contributes: half the sensitivity."""
    from tacit import privacy

    near = privacy.Neighbours(privacy.Relation.ZERO_OUT, privacy.neighbours_of(part).unit)
    match part:
        case privacy.Gaussian(noise_multiplier=z):
            return privacy.Gaussian(2 * z, near)
        case privacy.Gdp(mu=mu):
            return privacy.Gdp(mu / 2, near)
        case privacy.DiscreteGaussian(std=std, sensitivity=steps):
            return privacy.DiscreteGaussian(std, steps / 2, near)
        case _:
            raise ParameterError(
                "sampling must be 'fixed' under replace-one for all but gaussian, gdp and discrete-gaussian "
                f"releases, got 'poisson' for {type(part).__name__}."
            )
