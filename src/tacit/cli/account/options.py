"""What several commands of `tacit account` share: options, the events they stand for, and lines of tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.errors import check_choice, check_count, check_probability

if TYPE_CHECKING:
    from tacit.privacy import Event, Neighbours

__all__ = [
    "DIGITS",
    "STATEMENT_VERSION",
    "Delta",
    "Mechanism",
    "Plot",
    "Relation",
    "Rounds",
    "SampleRate",
    "composition",
    "neighbours_named",
    "observer",
    "rounded_down",
    "rounded_up",
    "rounds_in_words",
    "shuffled_rounds",
]

STATEMENT_VERSION: Final = 1
DIGITS: Final = 6

Delta = Annotated[float, typer.Option(help="Probability that the bound may fail, in [0, 1).")]
Rounds = Annotated[int, typer.Option(help="Releases on the same data.")]
SampleRate = Annotated[
    float, typer.Option(help="Share of the records in a secret sample per round, in (0, 1].")
]
Relation = Annotated[
    str, typer.Option(help="replace-one (fixed-size samples), add-remove or zero-out (Poisson samples).")
]
Mechanism = Annotated[
    str,
    typer.Option(help="What each party sends: general (any randomizer), 2rr, krr:B, hadamard, laplace."),
]
Plot = Annotated[Path | None, typer.Option(help="Draw epsilon of every method into this picture file.")]


def neighbours_named(relation: str) -> Neighbours:
    """Return the neighbours of records under a relation given by name."""
    from tacit import privacy

    check_choice("neighbours", relation, [r.value for r in privacy.Relation])
    return privacy.Neighbours(privacy.Relation(relation))


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
        n: Parties that exist.
        mechanism: The local randomizer, by name.
        messages: Messages of one party, each through a shuffler of its own.
        rounds: Rounds.
        sample_rate: Share of the parties that take part in a round, at least one; the sample is secret.
    """
    from tacit import privacy

    check_count("n", n)
    check_count("messages", messages)
    check_probability("sample-rate", sample_rate, low_open=True)
    present = max(int(sample_rate * n * (1 + 1e-12)), 1)
    # What is sampled is a whole number of parties.
    rate = present / n
    party = privacy.Neighbours(unit=privacy.Unit.PARTY)

    def event_at(local_epsilon: float) -> Event:
        # The messages of a party share one sample: they are composed before they are sampled (spec 04 A9).
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
