"""How `tacit account` prints a price: a statement for programs, a table and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.output import print_facts, print_json, print_text

if TYPE_CHECKING:
    from tacit.privacy import Guarantee
    from tacit.privacy.statement import About

__all__ = [
    "DIGITS",
    "observer",
    "print_price",
    "print_statement",
    "rounded_down",
    "rounded_up",
    "rounds_in_words",
    "warn_of_price",
]

DIGITS: Final = 6


def print_price(
    kind: str,
    *guarantees: Guarantee,
    answer: dict[str, Any],
    facts: Mapping[str, object],
    title: str,
    json: bool,
    about: tuple[About, ...] = (),
    units: int | None = None,
) -> None:
    """Print what a release costs.

    Args:
        kind: Of the statement.
        guarantees: What it holds; people read the first.
        answer: What it says at the top.
        facts: What people read, by name.
        title: Above the facts.
        json: Whether to print the statement.
        about: Whom each guarantee is about.
        units: How many units are protected, where it is known.
    """
    warn_of_price(guarantees[0], units)
    if json:
        print_statement(kind, *guarantees, answer=answer, about=about)
        return
    print_facts(facts, title=title)
    print_text(f"\n{guarantees[0]}")


def warn_of_price(price: Guarantee, units: int | None = None) -> None:
    """Warn of a price that promises next to nothing, for that many units where their number is known."""
    from tacit.privacy.weak import warn_of_weak

    warn_of_weak(price.epsilon, price.delta, units=units, unit=price.neighbours.unit)


def print_statement(
    kind: str, *guarantees: Guarantee, answer: dict[str, Any], about: tuple[About, ...] = ()
) -> None:
    """Print a statement, which `tacit account verify` accepts."""
    from tacit.privacy.statement import Statement

    print_json(Statement(kind=kind, guarantees=guarantees, about=about, answer=answer).to_builtins())


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


def rounds_in_words(rounds: int, sample_rate: float, neighbours: str, sampling: str | None = None) -> str:
    """Say how often, and on which records."""
    fixed = neighbours == "replace-one" if sampling is None else sampling == "fixed"
    kind = "fixed-size" if fixed else "Poisson"
    sample = (
        "all records" if sample_rate == 1 else f"{kind} samples of {100 * sample_rate:.10g}% of the records"
    )
    return f"{rounds}, on {sample}"
