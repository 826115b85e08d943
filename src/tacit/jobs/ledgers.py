"""The accounts that a training job is charged to, looked at before any of them is charged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tacit.errors import BudgetError, LedgerError
from tacit.ledger import Accounts, Entry, Ledger
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["Ledgers"]


@dataclass(frozen=True)
class Ledgers(Accounts):
    """The accounts of a table, looked at for a whole job."""

    def check(self, names: list[str], *, trust: str, run: str, budget: PrivacyBudget) -> None:
        """Refuse a run that these accounts cannot bear; nothing is reserved.

        Args:
            names: Of the silos, one per ledger.
            trust: "central" charges the server, all others the silos, and all charge the data set.
            run: What the ledgers will call the run. A run that is known goes on at no further cost: what was
                answered is stored, and sent again.
            budget: What each charged account must have left.

        Raises:
            LedgerError: Not one ledger per silo, or no trust model.
            BudgetError: An account has less left.
        """
        if trust == "none":
            raise LedgerError(
                "a table with a ledger is not trained without privacy; name another trust model."
            )
        if trust != TrustModel.CENTRAL and len(self.silos) != len(names):
            raise LedgerError(
                f"there must be one ledger per silo, got {len(self.silos)} for {len(names)} silos."
            )
        # A run that the data set has paid for and nobody else was cut short before anything was asked.
        if self.data is not None and not self.data.knows(run):
            _check_left(self.data, "the data set", budget)
        if trust == TrustModel.CENTRAL:
            if not self.central.knows(run):
                _check_left(self.central, "the trusted server", budget)
            return
        for name, ledger in zip(names, self.silos, strict=True):
            if not ledger.knows(run):
                _check_left(ledger, f"silo {name!r}", budget)

    def reserved(self, names: Sequence[str], runs: Collection[str]) -> list[tuple[str, Entry]]:
        """Return what runs have reserved, each with whose account it is.

        Args:
            names: Of the silos, one per ledger.
            runs: Names of runs in ledgers.
        """
        accounts = [(f"silo {name!r}", one) for name, one in zip(names, self.silos, strict=False)]
        if self.data is None:
            accounts = [("the data set", self.central)]  # one ledger for everybody
        else:
            accounts = [("the data set", self.data), *accounts, ("the trusted server", self.central)]
        return [(owner, entry) for owner, one in accounts for entry in one.entries() if entry.run in runs]


def _check_left(ledger: Ledger, owner: str, budget: PrivacyBudget) -> None:
    """Refuse an account that has less left than a budget."""
    left = ledger.remaining()
    if not (budget.epsilon <= left.epsilon and budget.delta <= left.delta):
        raise BudgetError(
            f"the job asks for epsilon {budget.epsilon!r} at delta {budget.delta!r}, above what {owner} has "
            f"left: {left.epsilon!r} at {left.delta!r}; nothing was spent."
        )
