"""A folder of ledgers: the account of the data set, one of each silo, and one of the trusted server.

Whoever adds the noise has an account of its own; the account of the data set is charged for every run
besides, so that no cut into silos and no trust model spends the limit on the same records again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tacit.errors import LedgerError, ParameterError, check_name
from tacit.ledger.ledger import Ledger
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.neighbours import Neighbours

__all__ = [
    "CENTRAL",
    "DATA_SET",
    "OWNERS",
    "SUFFIX",
    "create_ledgers",
    "ledger_path",
    "open_ledgers",
    "open_paying",
]

CENTRAL: Final = "central"
"""The name of the trusted server's ledger; no silo may have it."""

DATA_SET: Final = "data set"
"""The name of the account of all records together; no silo may have it."""

SUFFIX: Final = ".ledger"
"""What the name of a ledger file ends in."""

OWNERS: Final = {CENTRAL: "the trusted server", DATA_SET: "the data set"}
"""Who has the ledgers that are no silo's, as messages call them."""

_SLUG_LENGTH: Final = 40
_HASH_LENGTH: Final = 12  # 48 bits: even a million names collide with a probability below 1 in 500


def ledger_path(folder: Path, silo: str) -> Path:
    """Return where the ledger of a silo lies.

    Args:
        folder: The folder of ledgers.
        silo: Name of a silo, any text; or `CENTRAL` or `DATA_SET`.

    Returns:
        A file name made of the letters a-z, digits and hyphens, readable and, by a hash of the whole name,
        another one for every silo, also where file names ignore case.

    Example:
        >>> ledger_path(Path("ledgers"), "St. Mary's").name
        'st-mary-s-e7787f2f430d.ledger'
    """
    if silo in OWNERS:
        return folder / f"{silo.replace(' ', '-')}{SUFFIX}"
    slug = re.sub(r"[^a-z0-9]+", "-", silo.lower())[:_SLUG_LENGTH].strip("-") or "silo"
    # Names with lone surrogates come from file systems and broken tables; they too need a file.
    digest = hashlib.sha256(silo.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return folder / f"{slug}-{digest}{SUFFIX}"


def create_ledgers(
    folder: Path, names: Sequence[str], *, limit: PrivacyBudget, neighbours: Neighbours
) -> list[Path]:
    """Create the ledgers of silos, and those of the data set and the trusted server where there are none yet.

    All ledgers are created or none. A folder may get more silos later, of another cut of the same records
    too; a ledger that is there stays as it is, and so does the limit of the data set.

    Args:
        folder: A folder on a local disk that only their owner may write; it is made where it is missing.
        names: Names of the silos, distinct, 1 to 200 printable characters each.
        limit: What may be spent on the data set in all, on the data of each silo, and by the server.
        neighbours: What the limits and all prices are relative to.

    Returns:
        The files that were created, in the order of `names`, then the server's and the data set's.

    Raises:
        ParameterError: No names, one that is not allowed, or one that is named twice.
        LedgerError: The folder or a ledger cannot be made, a silo has a ledger already, the folder has
            ledgers but none of the data set, or that is about other neighbours.
    """
    _check_names(names)
    for taken in (name for name in names if name in OWNERS):
        raise ParameterError(
            f"{taken!r} is the name of {OWNERS[taken]}'s ledger and cannot be a silo's; rename the silo."
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"the folder {folder} cannot be made: {error.strerror}.") from error
    for name in names:
        if (path := ledger_path(folder, name)).exists():
            raise LedgerError(f"silo {name!r} has the ledger {path} already; a ledger is never overwritten.")
    account = b""
    if any(folder.glob(f"*{SUFFIX}")):
        (whole,) = open_ledgers(folder, [DATA_SET])
        whole.close()
        account = whole.fingerprint
        if whole.neighbours != neighbours:
            raise LedgerError(
                f"the data set of {folder} is protected under {whole.neighbours}, got {neighbours}; one data "
                "set has one relation."
            )
    wanted = [*names, *(name for name in OWNERS if not ledger_path(folder, name).exists())]
    made: list[Path] = []
    try:
        # The data set's first: all others say which one it is.
        for name in sorted(wanted, key=lambda one: one != DATA_SET):
            path = ledger_path(folder, name)
            with Ledger.create(
                path, limit=limit, neighbours=neighbours, label=name, account=account
            ) as ledger:
                account = account or ledger.fingerprint
            made.append(path)
    except LedgerError:
        for path in made:  # ours, and nothing was ever reserved in them
            path.unlink(missing_ok=True)
        raise
    return [ledger_path(folder, name) for name in wanted]


def open_ledgers(folder: Path, names: Sequence[str]) -> list[Ledger]:
    """Open the ledgers of silos; all of them, or none stays open.

    Args:
        folder: A folder made by `create_ledgers`.
        names: Names of the silos, distinct; `CENTRAL` for the trusted server, `DATA_SET` for all records.

    Returns:
        The open ledgers, in the order of `names`.

    Raises:
        ParameterError: No names, one that is not allowed, or one that is named twice.
        LedgerError: A ledger is missing or damaged, or belongs to another silo or data set.
    """
    _check_names(names)
    if not folder.is_dir():
        raise LedgerError(f"{folder} is not a folder of ledgers; `tacit ledger create --silos` makes one.")
    with ExitStack() as opened:
        ledgers = []
        for name in names:
            path = ledger_path(folder, name)
            if name == DATA_SET and not path.is_file():
                raise LedgerError(
                    f"{folder} has no account of the data set: {path.name} is not there, so what was "
                    "spent on its records is unknown. Make a new folder, with what all past runs left of the "
                    "limit."
                )
            if not path.is_file():
                raise LedgerError(f"{_role(name)} has no ledger in {folder}: {path.name} is not there.")
            ledger = opened.enter_context(Ledger.open(path))
            if ledger.label != name:
                raise LedgerError(f"{path} is the ledger of {ledger.label!r}, not of {_role(name)}.")
            ledgers.append(ledger)
        if DATA_SET in names:
            _join(ledgers)
        opened.pop_all()
    return ledgers


def open_paying(place: Path, *, local: bool) -> list[Ledger]:
    """Open the ledgers that pay for one answer about all records: to be charged together, or not at all.

    Args:
        place: A folder of ledgers, or one ledger, alone or of such a folder; links are followed.
        local: Whether every record adds its own noise, so that every silo pays; else the server does.

    Returns:
        The data set's first, in a folder; a ledger that lies alone is the account of its data set.

    Raises:
        LedgerError: The folder has no account of the data set, or no ledger of who pays; a ledger was made
            in a folder, and the account of its data set is not the one beside it.
    """
    if place.exists():
        place = place.resolve()  # by a link, the account of the data set would not be found beside it
    files = _paying_files(place, local=local)
    with ExitStack() as opened:
        ledgers = [opened.enter_context(Ledger.open(file)) for file in files]
        _join(ledgers)
        opened.pop_all()
    return ledgers


def _paying_files(place: Path, *, local: bool) -> list[Path]:
    """Return the files of the ledgers that pay, the data set's first."""
    whole = ledger_path(place if place.is_dir() else place.parent, DATA_SET)
    if not place.is_dir():
        return [whole, place] if whole.exists() and whole != place else [place]
    if not whole.is_file():
        open_ledgers(place, [DATA_SET])  # says why it cannot pay
    server = ledger_path(place, CENTRAL)
    silos = [file for file in sorted(place.glob(f"*{SUFFIX}")) if file not in (server, whole)]
    if not (silos if local else server.is_file()):
        raise LedgerError(
            f"{place} holds no ledger of {'silos' if local else 'the trusted server'}; `tacit ledger create` "
            "makes them."
        )
    return [whole, *silos] if local else [whole, server]


def _join(ledgers: Sequence[Ledger]) -> None:
    """Make ledgers of a folder keep answers in the account of their data set; refuse them without it."""
    present = {ledger.fingerprint: ledger for ledger in ledgers}
    for ledger in ledgers:
        if not ledger.account:
            continue
        if ledger.account not in present:
            raise LedgerError(
                f"{ledger.path} was made in a folder of ledgers, and the account of its data set does not "
                f"lie beside it; without {ledger_path(Path(), DATA_SET).name} of that folder it pays for "
                "nothing."
            )
        ledger.join(present[ledger.account])


def _check_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be labels of different ledgers."""
    if not names:
        raise ParameterError("names must hold at least one silo, got none.")
    for name in names:
        check_name("the name of a silo", name)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ParameterError(f"names must be distinct, got {twice[0]!r} more than once.")


def _role(name: str) -> str:
    """Say whose ledger it is."""
    return OWNERS.get(name, f"silo {name!r}")
