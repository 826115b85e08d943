"""Which sensitive attributes a run protects: what one run protects, another one may take for public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tacit.errors import LONGEST_NAME, LedgerError, ParameterError
from tacit.ledger.rows import Entry

__all__ = ["check_same_attributes", "run_about"]

_ABOUT: Final = " about "
_NOBODY_SAID: Final = "?"
_LONGEST: Final = 80


def run_about(run: str, names: Sequence[str]) -> str:
    """Return the name of a run that says which sensitive attributes it protects.

    Args:
        run: Name of the run.
        names: Of the attributes, which are public; empty where nobody has named them.

    Raises:
        ParameterError: The name is too long for a ledger.

    Example:
        >>> run_about("june", ["sex", "race"])
        'june about race+sex'
    """
    said = "+".join(sorted(names)) or _NOBODY_SAID
    plain = all(name not in ("", _NOBODY_SAID) and "+" not in name for name in names)
    if not plain or _ABOUT in f"{_ABOUT}{said}"[1:] or len(said) > _LONGEST:
        said = hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
    if len(run) + len(_ABOUT) + len(said) > LONGEST_NAME:
        raise ParameterError(
            f"run must be at most {LONGEST_NAME - len(_ABOUT) - len(said)} characters where a ledger adds "
            f"which attributes it is about, got {len(run)}."
        )
    return f"{run}{_ABOUT}{said}"


def check_same_attributes(path: Path, entries: Iterable[Entry], run: str) -> None:
    """Refuse a run in a ledger of sensitive attributes that has paid for other ones.

    Where only sensitive attributes are private, the features are public, and an attribute that one run
    protects is a feature of another one that protects something else: no noise would cover it there.

    Args:
        path: Of the ledger, for the message.
        entries: All that it has paid for.
        run: Made by `run_about`; a name that says nothing is of attributes without a name.

    Raises:
        LedgerError: An entry is about others; nothing was spent.
    """
    wanted = _about(run)
    for entry in entries:
        if (other := _about(entry.run)) != wanted:
            raise LedgerError(
                f"{path} has paid for {_said(other)} as what is private, and this run is about "
                f"{_said(wanted)}: each takes the attributes of the other for public features. Use a ledger "
                "for each choice of attributes, and leave the others out of the features; nothing was spent."
            )


def _about(run: str) -> str:
    """Return what attributes the name of a run says."""
    _, told, about = run.rpartition(_ABOUT)
    return about if told else _NOBODY_SAID


def _said(about: str) -> str:
    """Return attributes in words."""
    return "attributes without a name" if about == _NOBODY_SAID else repr(about)
