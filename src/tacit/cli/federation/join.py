"""`tacit federation join`: a party's own keys, where it lives, and a card for the founder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tacit.cli.choices import OneOf
from tacit.cli.output import JsonFlag, print_facts, print_json, print_text

if TYPE_CHECKING:
    from tacit.federation.network.cards import PartyRole

__all__ = ["join"]


def join(
    out: Annotated[Path, typer.Option(help="A new folder for the keys of this party.")],
    name: Annotated[
        str | None, typer.Option(help="How the silo is called.", show_default="the role, where it is no silo")
    ] = None,
    role: Annotated[
        str,
        typer.Option(click_type=OneOf(("silo", "shuffler", "server")), help="What the party is: {names}."),
    ] = "silo",
    size: Annotated[
        int | None,
        typer.Option(
            help="Public number of records, or persons, that the silo trains on.",
            show_default="that of a public data set",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Where a server or a shuffler is reached, https://host:port.", show_default="not on a silo"
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make the keys of one party on its own machine, and a card to send to whoever founds the federation.

    Private keys never leave the folder. The card is public; both sides compare its digits by phone.
    """
    from tacit.jobs.deployed.joining import join as make

    joined = make(out, role=cast("PartyRole", role), name=name, size=size, url=url)
    card = joined.card
    if json:
        print_json(
            {
                "name": card.name,
                "role": card.role,
                "card": joined.file,
                "keys": joined.folder / card.name,
                "fingerprint": card.fingerprint(),
            }
        )
        return
    print_facts(
        {
            "private keys": f"{joined.folder / card.name}/, for this machine alone",
            "card": f"{joined.file}, for whoever founds the federation",
            "digits": card.fingerprint(),
        }
    )
    print_text(
        "\nSend the card, and compare its digits by phone: `tacit federation init --cards` shows them."
    )
