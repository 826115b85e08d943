"""What private fits without a ledger add up to in this process: told, not enforced; a ledger does that."""

from __future__ import annotations

import hashlib
import secrets
import warnings
from threading import Lock

import numpy as np

from tacit.errors import PrivacyWarning
from tacit.ledger import Cost
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget

__all__ = ["Fits", "fits_of_this_process", "warn_without_budget"]

_BYTES = 16  # of a digest: two records of a process collide by chance with a probability below 1e-20


class Fits:
    """Fits by the data that they share, recognised by keyed digests of records, in memory only.

    A record is recognised by its features alone, so that another label of the same patients counts, and so
    does every fold of a cross-validation. Fits that share a record add up, over all that are linked so: under
    basic composition this bounds what they reveal of any record, also where the folds depend on the data.
    The same patients under other features are not recognised, and equal records of two tables are.
    """

    def __init__(self) -> None:
        # Without the key, digests of a few possible records could be tried out in a dump of the memory.
        self._key = secrets.token_bytes(32)
        self._group_of: dict[bytes, int] = {}
        self._spent: dict[int, tuple[int, Cost]] = {}
        self._lock = Lock()

    def add(self, X: Array, budget: PrivacyBudget) -> tuple[int, Cost]:
        """Count one fit, and return how many share the data, this one included, and what they add up to.

        Args:
            X: Features as they were given, shape (n, d).
            budget: Of the fit.
        """
        # Adding zero makes one number of 0 and -0.
        rows = np.ascontiguousarray(X, dtype=np.float64) + 0.0
        digests = {hashlib.blake2b(row, key=self._key, digest_size=_BYTES).digest() for row in rows}
        with self._lock:
            linked = {self._group_of[one] for one in digests if one in self._group_of}
            earlier = [self._spent.pop(group) for group in linked]
            if len(linked) > 1:  # this fit links fits that had nothing in common
                digests |= {one for one, group in self._group_of.items() if group in linked}
            group = min(linked, default=len(self._group_of))
            count = 1 + sum(fits for fits, _ in earlier)
            total = Cost(
                budget.epsilon + sum(cost.epsilon for _, cost in earlier),
                budget.delta + sum(cost.delta for _, cost in earlier),
            )
            self._spent[group] = count, total
            self._group_of.update(dict.fromkeys(digests, group))
        return count, total

    def warn(self, X: Array, budget: PrivacyBudget, *, stacklevel: int) -> None:
        """Count one fit, and warn with the sum where it is not the first on its data."""
        count, total = self.add(X, budget)
        if count > 1:
            warnings.warn(
                f"this is private fit {count} on the same records in this process, and what the fits reveal "
                f"adds up: epsilon {total.epsilon:.6g} at delta {total.delta:.3g} so far. No ledger counts "
                "it; `ledger=` sets a limit.",
                PrivacyWarning,
                stacklevel=stacklevel + 1,
            )


def warn_without_budget(estimator: object, *, trust: str | None = None, stacklevel: int) -> None:
    """Warn where an estimator that promises privacy has no budget; its name is believed.

    Args:
        estimator: What is fitted.
        trust: Its trust model; "none" says that no privacy is wanted. None where it has no such trust.
        stacklevel: As `warnings.warn` has it, of the caller.
    """
    if getattr(estimator, "budget", None) is not None or trust == "none":
        return
    cure = "give a `budget`" + ("" if trust is None else ", or say trust='none'")
    warnings.warn(
        f"{type(estimator).__name__} has no budget, and trains without privacy: {cure}.",
        PrivacyWarning,
        stacklevel=stacklevel + 1,
    )


fits_of_this_process = Fits()
"""Every fit of an estimator that has a budget and neither a seed nor a ledger."""
