"""Post-processing under differential privacy: predictions are mixed by group, by a released table."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from tacit.errors import DataError, ParameterError, check_positive, check_probability
from tacit.fairness.attributes import attribute_names
from tacit.learning.fitting import with_notes
from tacit.ledger import charge, check_accounts, new_run, open_paying, place_of, run_about
from tacit.means import AdditiveMean, DiscreteGaussianNoise, Round
from tacit.numerics import Array, IntArray
from tacit.privacy import (
    Event,
    Neighbours,
    Part,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    calibrate,
    guarantee,
)
from tacit.privacy.event_json import event_to_json
from tacit.randomness import is_secure

_NO_PLACE = 2**40
_PUBLIC = "predictions and labels are public, and predictions were made without the groups of these records"

__all__ = ["DPEqualizedOddsPostprocessor", "equalized_odds_mixture"]


def equalized_odds_mixture(table: Array, slack: float) -> Array:
    """Return how often each group's predictions should say yes, for the least error within a slack.

    Args:
        table: Shares or counts of prediction, label and group, shape (2, 2, k), >= 0; a cell that is 0
            everywhere for a label counts as a uniform one.
        slack: Largest difference of true, and of false, positive rates between two groups, in [0, 1].

    Returns:
        P(yes | prediction, group), shape (2, k).

    Raises:
        DataError: Another shape, or a negative or not finite entry.
        ParameterError: A slack outside [0, 1].

    Reference:
        Hardt, Price and Srebro (2016), Section 3; Jagielski et al. (2019), Algorithm 1, for noisy tables.
    """
    check_probability("slack", slack)
    table = np.asarray(table, dtype=np.float64)
    if table.ndim != 3 or table.shape[:2] != (2, 2) or not (np.isfinite(table).all() and (table >= 0).all()):
        raise DataError(f"table must be of shape (2, 2, k) with entries >= 0, got shape {table.shape}.")
    k = table.shape[2]
    totals = table.sum(axis=0)
    # A label that a group lacks constrains nothing that is known.
    given = np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), 0.5)
    # The variables are the chances of a yes, prediction by prediction, and within each the groups.
    cost = (table[:, 0] - table[:, 1]).ravel()
    bounds, rows = [], []
    for label in (0, 1):
        rates = np.zeros((k, 2, k))
        rates[np.arange(k), :, np.arange(k)] = given[:, label].T
        rows += [(rates[r] - rates[q]).ravel() for r in range(k) for q in range(k) if r != q]
    bounds = [slack] * len(rows)
    found = linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=(0, 1), method="highs")
    return np.asarray(np.clip(np.asarray(found.x), 0.0, 1.0).reshape(2, k))


@dataclass
class DPEqualizedOddsPostprocessor:
    """Mixes binary predictions of any model by group, so that rates differ by about a slack at most.

    The joint table of prediction, label and group is released once. Predictions and labels are public, as
    with every other guarantee of a sensitive attribute alone, and the model must not have seen the groups of
    these records: one changed group would change predictions. Groups are needed at prediction too.

    Attributes:
        budget: What the table may cost; delta > 0.
        groups: Number of declared groups, >= 2.
        slack: Of the rates that the released table says, in [0, 1].

    Raises:
        ParameterError: A value out of range.

    Reference:
        Jagielski et al. (2019), Algorithm 1, with Gaussian noise for one replaced attribute: two cells of the
        table move by one.
    """

    budget: PrivacyBudget
    groups: int = 2
    slack: float = 0.0

    def __post_init__(self) -> None:
        check_probability("slack", self.slack)
        if self.groups < 2:
            raise ParameterError(f"groups must be at least 2, got {self.groups!r}.")
        check_positive("delta", self.budget.delta)

    def mean(self, multiplier: float) -> AdditiveMean:
        """Return how the table is released, with that noise over its sensitivity, sqrt(2)."""
        return AdditiveMean(
            dim=4 * self.groups,
            noise=DiscreteGaussianNoise(multiplier),
            trust=TrustModel.CENTRAL,
            neighbours=Neighbours(Relation.REPLACE_ONE, Unit.RECORD, Part.SENSITIVE),
            on_violation="clip",
            acute=True,
        )

    def event(self, multiplier: float, n: int) -> Event:
        """Return the price of the table of n records, with that much noise."""
        return self.mean(multiplier).event(n, TrustModel.CENTRAL)

    def fit(
        self,
        predictions: IntArray,
        labels: IntArray,
        groups: Any,
        *,
        rng: np.random.Generator,
        ledger: Any = None,
    ) -> DPEqualizedOddsPostprocessor:
        """Release the table and solve for the mixture.

        Args:
            predictions: 0 or 1, shape (n,).
            labels: 0 or 1, shape (n,).
            groups: Place of each record's group, shape (n,); any other number is no group. A series or a
                frame tells ledgers and statements what the attributes are called.
            rng: Of the noise; `tacit.randomness.secure()` in deployment.
            ledger: A `Ledger`, or the path of one or of a folder of them, that pays as a trusted server; None
                keeps no account.

        Raises:
            DataError: Arrays of other lengths, or predictions or labels that are neither 0 nor 1.
            ParameterError: A ledger with seeded noise, which protects nobody.
            BudgetError: No noise meets the budget, or the ledger has less left; nothing was spent.
            LedgerError: The ledger is about other neighbours or attributes; nothing was spent.
        """
        if ledger is not None and not is_secure(rng):
            raise ParameterError(
                "rng must be tacit.randomness.secure() with a ledger: a seed protects nobody."
            )
        names, place = attribute_names(groups), None if ledger is None else place_of(ledger)
        rows = self._rows(predictions, labels, groups)
        self.multiplier_ = calibrate(lambda multiplier: self.event(multiplier, len(rows)), self.budget)
        stated = guarantee(
            self.event(self.multiplier_, len(rows)),
            self.budget.delta,
            observer="whoever sees the mixture",
            simulated=not is_secure(rng),
        )
        asked = Round(number=0, n=len(rows), parties=1, seed=0, radius=1.0)
        run, plan = run_about(new_run("fit"), names), hashlib.sha256(event_to_json(stated.event)).digest()
        with ExitStack() as opened:
            accounts = [] if place is None else open_paying(place, local=False)
            for account in accounts:
                opened.enter_context(account)
            check_accounts(accounts, stated, run=run, plan=plan)
            noisy = np.asarray(self.mean(self.multiplier_).estimate(rows, asked, rng=rng))
            charge(accounts, stated, run=run, plan=plan)
        self.table_ = np.maximum(noisy.reshape(2, 2, self.groups), 0.0)
        self.chances_ = equalized_odds_mixture(self.table_, self.slack)
        said = f" ({', '.join(names)})" if names else ""
        (self.guarantee_,) = with_notes([stated], [_PUBLIC + said])
        return self

    def _rows(self, predictions: IntArray, labels: IntArray, groups: Any) -> Array:
        """Return the cell of each record as a one-hot row, shape (n, 4 * groups)."""
        predictions, labels, groups = np.asarray(predictions), np.asarray(labels), _places(groups)
        n = len(predictions)
        if any(each.shape != (n,) for each in (predictions, labels, groups)):
            raise DataError("predictions, labels and groups must have one entry per record.")
        if not (np.isin(predictions, (0, 1)).all() and np.isin(labels, (0, 1)).all()):
            raise DataError("predictions and labels must be 0 or 1.")
        known = groups < self.groups
        rows = np.zeros((n, 2, 2, self.groups))
        rows[np.flatnonzero(known), predictions[known], labels[known], groups[known]] = 1.0
        return rows.reshape(n, -1)

    def predict(self, predictions: IntArray, groups: Any, *, rng: np.random.Generator) -> IntArray:
        """Return mixed predictions, shape (n,), drawn at random.

        Args:
            predictions: 0 or 1, shape (n,).
            groups: Place of each record's group, shape (n,); any other number is no group, and is mixed as
                the mean of groups is.
            rng: Of the mixture.
        """
        chances = np.column_stack([self.chances_, self.chances_.mean(axis=1)])
        chosen = chances[predictions, np.minimum(_places(groups), self.groups)]
        return (rng.random(len(predictions)) < chosen).astype(np.int64)


def _places(groups: Any) -> IntArray:
    """Return whole numbers >= 0, and a very large one for whatever is none: each cell speaks for itself."""
    cells = pd.Series(np.asarray(groups).ravel())
    numbers = np.asarray(pd.to_numeric(cells, errors="coerce"), dtype=np.float64).reshape(np.shape(groups))
    whole = (numbers >= 0) & (numbers < _NO_PLACE) & (numbers == np.floor(numbers))
    return np.where(whole, np.nan_to_num(numbers), _NO_PLACE).astype(np.int64)
