"""`tacit federation rotate`: new keys for a party, and the roster that names them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.output import JsonFlag, print_json, print_text

__all__ = ["rotate"]


def rotate(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the federation, with the keys of the party.", show_default=False)
    ],
    party: Annotated[str, typer.Option(help="Name of a silo, or server or shuffler.")],
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the key of a silo, and make no new one.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Make new keys for a party between two runs; the old ones count no more under the new roster.

    What was there is kept under a number. Everybody then needs the new roster, and is started again with it.
    """
    from tacit.jobs.deployed.rotation import revoke_silo, rotate_keys

    done = revoke_silo(folder, party) if revoke else rotate_keys(folder, party, now=datetime.now(UTC))
    digest = done.roster.digest().hex()
    if json:
        print_json({"party": party, "roster": digest, "changed": list(done.changed), "kept": list(done.kept)})
        return
    print_text(f"new: {', '.join(done.changed)}; kept: {', '.join(done.kept)}")
    print_text(
        f"Give {folder / 'roster.toml'} to everybody, and start all parties again. Its digest: {digest}"
    )
