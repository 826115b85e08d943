"""`tacit federation amend`: a new roster, where a key is replaced, revoked or to expire."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import JsonFlag, print_facts, print_json, print_text
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.federation.network.cards import Card
    from tacit.jobs.deployed.amending import Amended

__all__ = ["amend"]


def amend(
    folder: Annotated[Path, typer.Option(help="Folder that `tacit federation init` has made.")],
    cards: Annotated[
        list[str] | None,
        typer.Option(
            help="Cards of parties with new keys: files separated by commas; may be repeated.",
            show_default="no new keys",
        ),
    ] = None,
    revoke: Annotated[
        str | None,
        typer.Option(
            help="Silos whose keys no longer count, separated by commas.", show_default="nobody is revoked"
        ),
    ] = None,
    expire: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=YYYY-MM-DD: the last day on which the key of a silo counts; may be repeated.",
            show_default="no new last day",
        ),
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option(help="The roster that is changed.", show_default="the latest in the folder"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Replace or revoke keys: write a new roster beside the old one, and say what everybody must do.

    Silos keep their places and sizes. Statements of old runs are verified with the roster of their run.
    """
    from tacit.jobs.deployed.amending import amend as change
    from tacit.jobs.deployed.joining import read_cards

    read = read_cards(cards or [])
    revoked = [] if revoke is None else [one.strip() for one in revoke.split(",")]
    days = dict(map(_day, expire or []))
    made = change(folder, old=roster, cards=read, revoke=revoked, expire=days, now=datetime.now(UTC))
    if json:
        print_json(
            {
                "roster": made.file,
                "before": made.old,
                "digest": made.roster.digest().hex(),
                "fingerprint": made.roster.fingerprint(),
                "cards": {one.name: one.fingerprint() for one in read},
                "certificates": dict(made.certificates),
                "silos": {one.name: _state(one.revoked, one.expires) for one in made.roster.silos},
            }
        )
        return
    facts = {"roster": f"{made.file}, in the place of {made.old}", "digits": made.roster.fingerprint()}
    facts |= {f"card of {one.name}": one.fingerprint() for one in read}
    facts |= {f"certificate of the {role}": str(path) for role, path in made.certificates.items()}
    facts |= {
        one.name: _state(one.revoked, one.expires) for one in made.roster.silos if one.revoked or one.expires
    }
    print_facts(facts)
    print_text("\n" + "\n".join(_to_do(made, read, revoked)))


def _day(text: str) -> tuple[str, date]:
    """Return a silo and its last day."""
    name, _, day = text.rpartition("=")
    try:
        return name, date.fromisoformat(day)
    except ValueError:
        raise ParameterError(f"expire must be NAME=YYYY-MM-DD, got {text!r}.") from None


def _state(revoked: bool, expires: date | None) -> str:
    """Say whether a key counts."""
    if revoked:
        return "revoked"
    return "counts" if expires is None else f"counts until {expires}"


def _to_do(made: Amended, cards: Sequence[Card], revoked: Sequence[str]) -> list[str]:
    """Say what everybody must do."""
    name = made.file.name
    todo = [
        *(f"Compare the digits of the card of {one.name} by phone first." for one in cards),
        "Between two runs, everybody:",
        f"- gets {name}, compares its digits by phone (`tacit federation fingerprint {name}`), and names it "
        "as `roster` in the configuration;",
        "- starts again: a process reads its roster once.",
    ]
    for one in cards:
        first = "stops, runs `tacit silo rotate`, and then " if one.role == "silo" else ""
        todo.append(
            f"{one.name}: {first}names its new keys in its configuration, keeps its state folder, and "
            "removes the old keys."
        )
    for role, path in made.certificates.items():
        todo.append(f"{role}: gets {path} and names it as `certificate`.")
    if revoked:
        todo.append(
            f"{', '.join(revoked)}: nothing that its key signs counts any more. A new run needs every silo: "
            "have a new card of it, or found a new federation of the cards of the others."
        )
    todo.append("Keep the old roster: statements of old runs are verified with it.")
    return todo
