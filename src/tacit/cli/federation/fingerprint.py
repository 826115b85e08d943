"""`tacit federation fingerprint`: digits of cards and rosters, for two people to compare by phone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.output import JsonFlag, print_json, print_table

__all__ = ["fingerprint"]


def fingerprint(
    files: Annotated[list[Path], typer.Argument(help="Cards (*.card.toml) and rosters.", metavar="FILES")],
    json: JsonFlag = False,
) -> None:
    """Show the digits of cards and rosters: two files with the same digits are the same.

    A card that was changed after its party made it is refused.
    """
    from tacit.federation.network.cards import CARD_ENDING, Card
    from tacit.federation.network.roster import Roster

    found = []
    for path in files:
        read = Card.load(path) if path.name.endswith(CARD_ENDING) else Roster.load(path)
        what = f"card of {read.name}" if isinstance(read, Card) else f"roster of {read.federation}"
        found.append((str(path), what, read.fingerprint()))
    if json:
        print_json({"files": [{"file": file, "what": what, "fingerprint": one} for file, what, one in found]})
    else:
        print_table(("file", "", "digits"), found)
