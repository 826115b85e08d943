"""The accounts that a training job is charged to, looked at before any of them is charged."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import BudgetError, LedgerError
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.privacy.ledger import Ledger

__all__ = ["Ledgers"]


@dataclass(frozen=True)
class Ledgers:
    """The accounts of a table: one per silo, the trusted server's, and that of all records together."""

    silos: list[Ledger]
    central: Ledger
    data: Ledger

    def check(self, names: list[str], *, trust: str, run: str, budget: PrivacyBudget) -> None:
        """Refuse a run that these accounts cannot bear; nothing is reserved.

        Args:
            names: Of the silos, one per ledger.
            trust: "local" charges the silos, "central" the server, and both charge the data set.
            run: What the ledgers will call the run. A local run that is known continues: silos send their
                stored answers again.
            budget: What each charged account must have left.

        Raises:
            LedgerError: Not one ledger per silo, no trust model, or a central run that is known already.
            BudgetError: An account has less left.
        """
        if trust == "none":
            raise LedgerError(
                "a table with a ledger is not trained without privacy; name another trust model."
            )
        if len(self.silos) != len(names):
            raise LedgerError(
                f"there must be one ledger per silo, got {len(self.silos)} for {len(names)} silos."
            )
        # A run that the data set has paid for and nobody else was cut short before anything was asked.
        if not _knows(self.data, run):
            _check_left(self.data, "the data set", budget)
        if trust == TrustModel.CENTRAL:
            # The server stores no answers, so a second run would have new noise that nobody paid for.
            if _knows(self.central, run):
                raise LedgerError(f"the trusted server has reserved run {run!r} already; name a new run.")
            _check_left(self.central, "the trusted server", budget)
            return
        for name, ledger in zip(names, self.silos, strict=True):
            if not _knows(ledger, run):
                _check_left(ledger, f"silo {name!r}", budget)


def _knows(ledger: Ledger, run: str) -> bool:
    """Return whether a run is reserved."""
    return ledger.knows(run)


def _check_left(ledger: Ledger, owner: str, budget: PrivacyBudget) -> None:
    """Refuse an account that has less left than a budget."""
    left = ledger.remaining()
    if not (budget.epsilon <= left.epsilon and budget.delta <= left.delta):
        raise BudgetError(
            f"the job asks for epsilon {budget.epsilon!r} at delta {budget.delta!r}, above what {owner} has "
            f"left: {left.epsilon!r} at {left.delta!r}; nothing was spent."
        )
