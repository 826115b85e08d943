"""Which sensitive attributes a fit is about: what one fit protects, another one may take for public."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import pandas as pd

from tacit.errors import LedgerError, printable
from tacit.ledger import Accounts, new_run
from tacit.privacy import Part

__all__ = ["attribute_names", "check_same_attributes", "run_about"]

_FIT: Final = "fit"
_LONGEST: Final = 100
_ENDING: Final = 3
"""Parts between hyphens that `new_run` puts behind a name."""


def attribute_names(sensitive: Any) -> tuple[str, ...]:
    """Return the public names of sensitive columns, as a series or a frame has them; else none.

    Example:
        >>> attribute_names(pd.Series(["f", "m"], name="sex"))
        ('sex',)
    """
    if isinstance(sensitive, pd.DataFrame):
        return tuple(printable(str(name)) for name in sensitive.columns)
    if isinstance(sensitive, pd.Series) and sensitive.name is not None:
        return (printable(str(sensitive.name)),)
    return ()


def run_about(names: tuple[str, ...]) -> str:
    """Return a fresh name of a run, which says what attributes it protects."""
    said = "+".join(sorted(names))
    if len(said) > _LONGEST:
        said = hashlib.sha256(said.encode()).hexdigest()
    return new_run(f"{_FIT}-{said}" if said else _FIT)


def check_same_attributes(accounts: Accounts, run: str) -> None:
    """Refuse ledgers that have paid for other attributes.

    Where only sensitive attributes are private, the features are public, and an attribute that one fit
    protects is a feature of another one that protects something else: no noise would cover it there.

    Args:
        accounts: Of sensitive attributes.
        run: Made by `run_about`.

    Raises:
        LedgerError: An entry is of a fit about others; nothing was spent.
    """
    wanted = _about(run)
    for ledger in (accounts.data, accounts.central, *accounts.silos):
        if ledger is None or ledger.neighbours.part is not Part.SENSITIVE:
            continue
        for entry in ledger.entries():
            if (other := _about(entry.run)) is not None and other != wanted:
                raise LedgerError(
                    f"{ledger.path} has paid for {_said(other)} as what is private, and this "
                    f"fit is about {_said(wanted)}: each takes the attributes of the other for public "
                    "features. Use a ledger for each choice of attributes, and leave the others out of the "
                    "features; nothing was spent."
                )


def _about(run: str) -> str | None:
    """Return what attributes the name of a run says; None where it is of something else."""
    kind = run.rsplit("-", _ENDING)[0]
    if kind == _FIT:
        return ""
    return kind.removeprefix(f"{_FIT}-") if kind.startswith(f"{_FIT}-") else None


def _said(about: str | None) -> str:
    """Return attributes in words."""
    return repr(about) if about else "attributes without a name"
