"""The accounts that a training run is charged to: those of a folder of ledgers, or one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tacit.errors import LedgerError
from tacit.ledger.folder import CENTRAL, DATA_SET, open_ledgers, open_paying
from tacit.ledger.ledger import Ledger

__all__ = ["Accounts"]


@dataclass(frozen=True)
class Accounts:
    """The open accounts of a data set; they are closed at the end of a `with` block.

    Attributes:
        silos: One per silo, for what silos pay under local trust; empty where none of them pays.
        central: The trusted server's.
        data: That of all records together, charged besides; None where a single ledger is that account.
    """

    silos: list[Ledger]
    central: Ledger
    data: Ledger | None

    @classmethod
    def open(cls, place: Path, silos: Sequence[str]) -> Self:
        """Open all accounts that a run may be charged to, or none.

        Args:
            place: A folder of ledgers, or a single one: it pays for a trusted server, and for the only silo.
            silos: Names of the silos that pay; none under central trust.

        Raises:
            LedgerError: An account is missing, damaged or of another silo; or a single ledger stands for
                several silos, whose answers must be stored apart.
        """
        if place.is_file():
            if len(silos) > 1:
                raise LedgerError(
                    f"{place} is a single ledger, and under local trust each of the {len(silos)} silos keeps "
                    "its own; `tacit ledger create --silos` makes a folder of them."
                )
            *whole, own = open_paying(place, local=False)
            return cls(silos=[own] if silos else [], central=own, data=whole[0] if whole else None)
        # The data set's first: where it is missing, that is what must be said.
        data, *own_ones, central = open_ledgers(place, [DATA_SET, *silos, CENTRAL])
        return cls(silos=own_ones, central=central, data=data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for ledger in (*self.silos, self.central, self.data):
            if ledger is not None:
                ledger.close()
