"""What several commands of `tacit account` share: options, the events they stand for, and lines of tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.files import check_file
from tacit.errors import ParameterError, check_choice, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event, Neighbours

__all__ = [
    "DIGITS",
    "Delta",
    "Mechanism",
    "Plot",
    "RelationOption",
    "RoundsOption",
    "SampleRate",
    "check_local_epsilon",
    "check_mechanism",
    "check_picture",
    "check_same",
    "composition",
    "neighbours_named",
    "observer",
    "rounded_down",
    "rounded_up",
    "rounds_in_words",
    "sampled_parties",
    "shuffled_rounds",
]

DIGITS: Final = 6
_PICTURES: Final = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".webp", ".eps", ".ps", ".tif", ".tiff")

Delta = Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")]
RoundsOption = Annotated[int, typer.Option(help="Releases on the same data.")]
SampleRate = Annotated[
    float, typer.Option(help="Share of the records or parties in a secret sample per round, in (0, 1].")
]
RelationOption = Annotated[
    str,
    typer.Option(
        help="What may differ: replace-one (goes with fixed-size samples), add-remove or zero-out (with "
        "Poisson samples)."
    ),
]
Mechanism = Annotated[
    str,
    typer.Option(
        help="What each party sends: general (any randomizer of that local epsilon), 2rr, krr:B, hadamard, "
        "hadamard:K, laplace, privunit:Q."
    ),
]
Plot = Annotated[Path | None, typer.Option(help="Draw epsilon of every method into this picture file.")]


def neighbours_named(relation: str) -> Neighbours:
    """Return the neighbours of records under a relation given by name."""
    from tacit import privacy

    check_choice("neighbours", relation, [r.value for r in privacy.Relation])
    return privacy.Neighbours(privacy.Relation(relation))


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


def check_local_epsilon(value: float) -> None:
    """Refuse a local level that is not above 0, or hides nothing."""
    from tacit.privacy.shuffling.pair import check_local_level

    check_local_level("local-epsilon", value)


def check_picture(path: Path, *, name: str = "plot") -> None:
    """Refuse a picture file that could not be written, before anything is computed."""
    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(
            f"{name} must be a file that ends with one of {', '.join(_PICTURES)}, got {str(path)!r}."
        )
    check_file(name, path)


def sampled_parties(n: int, sample_rate: float) -> int:
    """Return how many of the parties take part in a round; refuse shuffles that hide nothing.

    Raises:
        ParameterError: Fewer than two parties, or fewer than two in a sample.
    """
    from tacit.privacy.shuffling.pair import MOST_PARTIES

    if n < 2:
        raise ParameterError(
            f"n must be a whole number >= 2, got {n!r}: a shuffle of one message hides nothing."
        )
    check_count("n", n, low=2, high=MOST_PARTIES)
    check_probability("sample-rate", sample_rate, low_open=True)
    present = int(sample_rate * n * (1 + 1e-12))
    if present < 2:
        raise ParameterError(
            f"sample-rate must leave at least 2 of the n = {n:,} parties in a round, got {sample_rate!r}: a "
            "shuffle of one message hides nothing."
        )
    return present


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


def shuffled_rounds(
    *, n: int, mechanism: str, messages: int = 1, rounds: int = 1, sample_rate: float = 1.0
) -> Callable[[float], Event]:
    """Return, as a function of the local epsilon, `rounds` shuffles of messages of all or of sampled parties.

    Args:
        n: Parties that exist, at least two.
        mechanism: The local randomizer, by name.
        messages: Messages of one party, each through a shuffler of its own.
        rounds: Rounds.
        sample_rate: Share of the parties that take part in a round, at least two; the sample is secret.

    Raises:
        ParameterError: A value that is not allowed; it names the option.
    """
    from tacit import privacy

    present = sampled_parties(n, sample_rate)
    check_count("messages", messages)
    check_count("rounds", rounds)
    check_mechanism(mechanism)
    # What is sampled is a whole number of parties.
    rate = present / n
    party = privacy.Neighbours(unit=privacy.Unit.PARTY)

    def event_at(local_epsilon: float) -> Event:
        # The messages of a party share one sample: they are composed before they are sampled.
        part: Event = privacy.Shuffled(local_epsilon, present, mechanism, party)
        part = privacy.Repeat(part, messages) if messages > 1 else part
        return composition(part, rounds=rounds, sample_rate=rate)

    return event_at


def rounded_up(value: float) -> float:
    """Round up to the digits that are printed, so that who copies a noise level has no less."""
    nearest = round(value, DIGITS)
    return nearest if nearest >= value else round(nearest + 10.0**-DIGITS, DIGITS)


def rounded_down(value: float) -> float:
    """Round down to the digits that are printed, so that who copies a local epsilon spends no more."""
    nearest = round(value, DIGITS)
    return nearest if nearest <= value else round(nearest - 10.0**-DIGITS, DIGITS)


def observer(rounds: int) -> str:
    """Say who looks, as it reads in "whatever ... sees"."""
    return "an observer of the release" if rounds == 1 else f"an observer of all {rounds} releases"


def rounds_in_words(rounds: int, sample_rate: float, neighbours: str) -> str:
    """Say how often, and on which records."""
    kind = "fixed-size" if neighbours == "replace-one" else "Poisson"
    sample = (
        "all records" if sample_rate == 1 else f"{kind} samples of {100 * sample_rate:.10g}% of the records"
    )
    return f"{rounds}, on {sample}"
