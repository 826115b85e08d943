"""`tacit account verify`: is this statement true?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tacit.cli.account.options import STATEMENT_VERSION
from tacit.cli.output import JsonFlag, print_json, print_line, print_text
from tacit.errors import ParameterError, VerificationError

if TYPE_CHECKING:
    from tacit.privacy import Guarantee

__all__ = ["verify"]


def verify(
    file: Annotated[Path, typer.Argument(help="A statement: JSON with one guarantee or a list of them.")],
    json: JsonFlag = False,
) -> None:
    """Compute the price of every guarantee in a statement again, from its event alone."""
    claims = _read_statement(file)
    if json:
        guarantees = [claim.to_builtins() for claim in claims]
        print_json({"file": file, "verified": True, "guarantees": guarantees})
        return
    count = f"{len(claims)} guarantees" if len(claims) > 1 else "1 guarantee"
    print_line(to_error=False, label="verified", text=f"{count} in {file}", colour="green")
    # Silos of one run differ in the observer only; one sentence says it for all of them.
    said: dict[tuple[object, ...], list[Guarantee]] = {}
    for claim in claims:
        said.setdefault((claim.epsilon, claim.delta, claim.event, claim.simulated), []).append(claim)
    for alike in said.values():
        more = f" [and the same for {len(alike) - 1} more]" if len(alike) > 1 else ""
        print_text(f"\n{alike[0]}{more}")


def _read_statement(path: Path) -> list[Guarantee]:
    """Return the guarantees of a statement, each of them checked."""
    from tacit.privacy import Guarantee
    from tacit.privacy import verify as check_price

    parts = _parts_of_statement(path)
    claims = []
    for number, part in enumerate(parts, start=1):
        try:
            claims.append(Guarantee.from_builtins(part))
            check_price(claims[-1])
        except VerificationError as error:
            which = f", guarantee {number} of {len(parts)}" if len(parts) > 1 else ""
            raise VerificationError(f"{path}{which}: {error}") from error
    return claims


def _parts_of_statement(path: Path) -> list[object]:
    """Return what a statement file lists as guarantees; it may also be a single one."""
    try:
        statement = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise ParameterError(f"the statement {path} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise VerificationError(f"the statement {path} is not JSON: {error}.") from error
    if not isinstance(statement, dict):
        raise VerificationError(f"the statement {path} is not a JSON object, but {_kind(statement)}.")
    if "event" in statement:
        return [statement]
    parts = statement.get("guarantees")
    if not isinstance(parts, list) or not parts:
        raise VerificationError(
            f"the statement {path} holds no guarantees: it must be one guarantee with an `event`, or have a "
            "list `guarantees` of at least one."
        )
    if statement.get("version") != STATEMENT_VERSION:
        found = statement.get("version")
        raise VerificationError(
            f"the statement {path} has version {found!r}; this tacit reads version {STATEMENT_VERSION}."
        )
    return parts


def _kind(value: object) -> str:
    """Name the JSON type of a value that is no object."""
    return "a list" if isinstance(value, list) else "a single value"
