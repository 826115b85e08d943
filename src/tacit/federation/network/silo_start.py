"""Starting a silo: its ledger, which is made once, and its service, of any units and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tacit.errors import LedgerError, ParameterError
from tacit.federation.network.audit_log import read_log
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.ledger_age import charged_runs
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.roster import Roster
from tacit.federation.network.shuffler_client import ShufflerDoor
from tacit.federation.network.silo_service import LEDGER_FILE, LOG_FILE, SiloService
from tacit.federation.query import AnyStatistic, Units
from tacit.federation.silo import Silo
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget, Unit
from tacit.privacy.budget import stated_epsilon

__all__ = ["open_own_ledger", "start_service"]


def start_service(
    units: Units,
    statistics: Mapping[str, AnyStatistic],
    *,
    name: str,
    roster: Roster,
    key: SigningKey,
    state: Path,
    limit: PrivacyBudget | None,
    neighbours: Neighbours | None = None,
    trusts_server: bool = False,
    trusts_shuffler: bool = False,
    planned: int | None = None,
    unit: Unit | None = None,
    encoding: str | None = None,
    clauses: Callable[[Neighbours], Sequence[str]] = lambda _: (),
    door: ShufflerDoor | None = None,
) -> SiloService:
    """Return the service of a silo with units and statistics of the owner's own.

    Args:
        units: The protected units.
        statistics: What can be computed from them, by the names that plans call them by.
        name: Of the silo in the roster.
        roster: Of the federation.
        key: The silo's.
        state: Folder of what must survive a restart.
        limit: Of the ledger, which is made the first time; None keeps none, for sums without noise.
        neighbours: Of the ledger; None is replacing one record.
        trusts_server: As for `Silo`.
        trusts_shuffler: As for `Silo`.
        planned: As for `Silo`.
        unit: As for `Silo`.
        encoding: As for `SiloService`.
        clauses: As for `SiloService`.
        door: As for `SiloService`.

    Raises:
        LedgerError: The ledger is gone, or has another limit or other neighbours.
        TacitError: As `Silo` and `SiloService`.
    """
    make_private_folder(state)
    ledger = None
    if limit is not None:
        ledger = open_own_ledger(state, limit=limit, neighbours=neighbours or Neighbours(), label=name)
    try:
        silo = Silo(
            units,
            statistics,
            name=name,
            planned=planned,
            unit=unit,
            ledger=ledger,
            trusts_server=trusts_server,
            trusts_shuffler=trusts_shuffler,
        )
        return SiloService(
            silo, roster=roster, key=key, state=state, encoding=encoding, clauses=clauses, door=door
        )
    except BaseException:
        if ledger is not None:
            ledger.close()
        raise


def open_own_ledger(
    state: Path, *, limit: PrivacyBudget, neighbours: Neighbours, label: str, given: bool = True
) -> Ledger:
    """Open the ledger of a silo; make it where the silo has never run.

    Args:
        state: The silo's folder.
        limit: Of the ledger.
        neighbours: Of the ledger.
        label: Its public name.
        given: Whether the owner named the limit: one that differs from the ledger's is then refused.

    Raises:
        LedgerError: A silo that has run has no ledger, or it is about other neighbours.
        ParameterError: The ledger has another limit, which can never be changed.
    """
    path = state / LEDGER_FILE
    if not path.exists():
        log = state / LOG_FILE
        if log.exists() and (charged := charged_runs(read_log(log))):
            raise LedgerError(
                f"{path} is gone, and {log} says that it paid for run {next(iter(charged))!r}: what was "
                "answered is unknown. Put the newest ledger back; if it is lost, all that it allowed counts "
                "as spent."
            )
        return Ledger.create(path, limit=limit, neighbours=neighbours, label=label)
    ledger = Ledger.open(path)
    try:
        if ledger.neighbours != neighbours:
            raise LedgerError(f"{path} is about {ledger.neighbours}, the job about {neighbours}.")
        if given and _stated(ledger.limit) != _stated(limit):
            raise ParameterError(
                f"epsilon and delta must be the limit that {path} was made with, {ledger.limit.epsilon!r} "
                f"and {ledger.limit.delta!r}, which can never be changed; got {limit.epsilon!r} and "
                f"{limit.delta!r}."
            )
    except (LedgerError, ParameterError):
        ledger.close()
        raise
    return ledger


def _stated(limit: PrivacyBudget) -> tuple[float, float]:
    """Return a limit as a ledger has it, that of one from before limits were rounded up too."""
    return stated_epsilon(limit.epsilon), limit.delta
