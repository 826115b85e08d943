"""`tacit federation renew`: a new certificate for the same key, by the same authority."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.output import JsonFlag, print_json, print_text

__all__ = ["renew"]


def renew(
    certificate: Annotated[
        Path, typer.Argument(help="Certificate of the server or the shuffler, expired or not.")
    ],
    folder: Annotated[Path, typer.Option(help="Folder that `tacit federation init` has made.")],
    days: Annotated[int, typer.Option(help="How long the new certificate is valid, in days.")] = 397,
    json: JsonFlag = False,
) -> None:
    """Write a new certificate beside one that expires: the same key, hosts and authority.

    Nobody else has to do anything: parties believe the authority.
    """
    from tacit.jobs.deployed.amending import renew_certificate

    path, until = renew_certificate(certificate, folder=folder, now=datetime.now(UTC), days=days)
    if json:
        print_json({"certificate": path, "expires": until.isoformat()})
        return
    print_text(
        f"{path}: valid until {until:%Y-%m-%d}. Its service gets it, names it as `certificate` in its "
        "configuration, and is started again."
    )
