"""Reading statements that somebody else may have written: nothing is priced before the form is checked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from tacit.errors import ParameterError, VerificationError
from tacit.privacy.guarantee import Guarantee, check_version
from tacit.privacy.statement import COMMON, KINDS, Statement
from tacit.privacy.statement_checks import which
from tacit.privacy.strict_json import read_json

__all__ = ["read_statement"]

_MOST_GUARANTEES = 10_000
_DIGITS = 64
_TRUTHS = frozenset({"simulated", "worst_case_order", "finished"})


def read_statement(data: bytes) -> Statement:
    """Read what a command wrote; a single guarantee is a statement too.

    Args:
        data: The file. It may be hostile: nothing is priced before its size, depth and fields are checked.

    Returns:
        The statement; `Statement.verify` has still to say whether it is true.

    Raises:
        VerificationError: Not strict JSON, an unknown version, kind or field, a field that is missing or
            wrong, or another number of guarantees than the statement names.
    """
    try:
        parsed = read_json(data)
    except ParameterError as error:
        raise VerificationError(f"it is not JSON that can be trusted: {error}.") from error
    if not isinstance(parsed, dict):
        found = "a list" if isinstance(parsed, list) else "a single value"
        raise VerificationError(f"it is not a JSON object, but {found}.")
    if "event" in parsed:
        return Statement(kind="guarantee", guarantees=(Guarantee.from_builtins(parsed),))
    if "kind" not in parsed and "guarantees" not in parsed:
        raise VerificationError(
            "it is JSON, but no statement; that of a run is statement.json in its folder."
        )
    check_version("the statement", parsed.get("version"))
    kind = parsed.get("kind")
    if not isinstance(kind, str) or kind not in KINDS or kind == "guarantee":
        raise VerificationError(f"kind must be one of {', '.join(list(KINDS)[1:])}, got {kind!r:.80}.")
    unknown = sorted(set(parsed) - KINDS[kind] - {"version", "kind", "count", "guarantees", *COMMON})
    if unknown:
        raise VerificationError(f"a statement of kind {kind!r} has no field {unknown[0]!r:.80}.")
    parts = parsed.get("guarantees")
    if not isinstance(parts, list) or not (parts or kind == "train"):
        raise VerificationError("it holds no guarantees: `guarantees` must be a list of at least one.")
    if len(parts) > _MOST_GUARANTEES:
        raise VerificationError(f"it may hold {_MOST_GUARANTEES:,} guarantees at most, got {len(parts):,}.")
    try:
        count = msgspec.convert(parsed.get("count"), int)
        common = {name: value for name, value in parsed.items() if name in COMMON}
        whole = msgspec.convert({"kind": kind, "guarantees": [], **common}, Statement)
    except msgspec.ValidationError as error:
        raise VerificationError(f"it cannot be read: {error}.") from error
    if count != len(parts):
        raise VerificationError(f"it names {count} guarantees and holds {len(parts)}.")
    if len(whole.about) not in ((len(parts),) if kind == "train" else (0, len(parts))):
        raise VerificationError(
            f"it holds {len(parts)} guarantees and says of {len(whole.about)} whom they are about."
        )
    _check_fields(whole)
    answer = {name: value for name, value in parsed.items() if name in KINDS[kind]}
    for name, value in answer.items():
        if isinstance(value, bool) and name not in _TRUTHS:  # true equals 1, and would pass for a number
            raise VerificationError(f"{name} at the top must not be a truth value, got {value!r}.")
    claims = tuple(_read_guarantee(part, k, len(parts)) for k, part in enumerate(parts, start=1))
    return msgspec.structs.replace(whole, guarantees=claims, answer=answer)


def _read_guarantee(part: object, number: int, count: int) -> Guarantee:
    """Read one guarantee of a statement."""
    try:
        return Guarantee.from_builtins(part)
    except VerificationError as error:
        raise VerificationError(f"{which(number, count)}{error}") from error


def _check_fields(fields: Statement) -> None:
    """Refuse files that are not beside the statement, and digests, dates and counts that are none."""
    for name, digest in fields.digests.items():
        if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
            raise VerificationError(f"digests must name files beside the statement, got {name!r:.80}.")
        if len(digest) != _DIGITS or set(digest) - set("0123456789abcdef"):
            raise VerificationError(f"the digest of {name!r} is not a SHA-256 in hexadecimal.")
    if fields.created is not None:
        try:
            datetime.fromisoformat(fields.created)
        except ValueError as error:
            raise VerificationError(
                f"created must be a date and time, got {fields.created!r:.80}."
            ) from error
    sizes: Iterable[int | None] = [] if fields.data is None else fields.data.sizes.values()
    if any(one is not None and one < 0 for one in (*(a.units for a in fields.about), *sizes)):
        raise VerificationError("numbers of units must be >= 0.")
