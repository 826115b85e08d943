"""Group cuts: a fair classifier that is told the group of new records, as it is of those it learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import optimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from tacit.data.validated import validated
from tacit.errors import DataError, check_probability
from tacit.fairness.groups import Groups
from tacit.fairness.metrics import GroupRates, group_rates
from tacit.fairness.notions import Conditions, Fairness, complete_counts
from tacit.fairness.thresholds import rates_at
from tacit.numerics import Array, IntArray
from tacit.randomness import secure

__all__ = ["GroupCuts", "least_error_cuts"]

_CUTS = np.array([-np.inf, *(np.arange(1, 20) / 20), np.inf])
"""Scores above a cut are of the second class: all, those above .05, .10, ..., and none."""
_RECORDS_PER_FEATURE = 10
"""Of the rarer label; a group that has fewer is scored by the estimator of all groups alone."""
_SPARED = 0.01
"""Share of the price of fairness that is given up for rates that hold better on new records."""
_LEAST_CHANCE = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class GroupCuts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fair classifier of two classes that needs the group of new records; it is not private.

    Each record has a score: the mean of the probabilities of an estimator of all records, and of one of its
    own group. A score is fair in no way, and need not be: among rules that know the group, the most accurate
    one within a violation cuts the probability of a label elsewhere for each group, or draws one of several
    cuts. The chances of the cuts are a linear program, and any violation can be had, 0 too.

    Where new records come without their group, or where law forbids to treat groups differently, use
    `FairLogisticRegression`.

    Args:
        fairness: "demographic-parity", "equalized-odds" or "equal-opportunity".
        max_violation: The largest violation of the training records, in [0, 1], as a mean over draws. Nothing
            is promised of new records.
        estimator: What gives scores: a classifier with `predict_proba`, which is cloned. None is logistic
            regression of features divided by their spread.
        advantaged: For equal opportunity, the labels that it is about; None is the last.

    Attributes:
        classes_: The two labels.
        groups_: Names of the k groups; a single None without sensitive features.
        cuts_: Shape (c,), rising: scores above a cut are of the second class.
        chances_: Of each group to be cut there, shape (k, c), rows summing to 1.
        estimator_: Of all records.
        own_estimators_: One per group; None where a label has fewer than ten records per feature in it.
        rates_: Rates of the training records by group; None without sensitive features.
        violation_: Their largest gap between groups; None without.
        n_features_in_: Number of features.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.

    Example:
        >>> import numpy as np
        >>> from tacit.fairness import GroupCuts, parity_violation
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(0, 2, 500)
        >>> X = np.column_stack([rng.standard_normal(500) + s, rng.standard_normal(500)])
        >>> y = (X.sum(axis=1) + rng.standard_normal(500) > 0.5).astype(int)
        >>> model = GroupCuts(max_violation=0.02).fit(X, y, sensitive_features=s)
        >>> round(model.violation_, 3)
        0.02

    Reference:
        Hardt, Price and Srebro (2016), section 5: derived predictors of scores. Menon and Williamson (2018):
        the most accurate ones cut the probability of a label given features and group.
    """

    fairness: str = "demographic-parity"
    max_violation: float = 0.01
    estimator: Any = None
    advantaged: Any = None

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Labels of two classes, shape (n,).
            sensitive_features: Shape (n,), or (n, columns): texts or whole numbers, of which each combination
                is a group. None is one group: the estimator's own rule.

        Raises:
            DataError: Other than two classes, another number of records, one group only, a continuous
                sensitive column, attributes that are missing, or a group without records of some label that
                the notion looks at.
            ParameterError: A parameter is out of range.
            ValueError: X is not numbers, or not finite, or y no labels (from scikit-learn).
        """
        notion, most = Fairness.of(self.fairness), check_probability("max_violation", self.max_violation)
        X, y = validated(self, X, y, dtype=(np.float64, np.float32))
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise DataError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}."
            )
        if len(self.classes_) < 2:
            raise DataError("y must have two classes, got one class only.")
        groups = _groups(sensitive_features, len(y), None)
        if sensitive_features is not None and len(groups) < 2:
            raise DataError("sensitive_features must have two groups or more, got one group only.")
        where = Conditions.of(notion, y, classes=self.classes_, advantaged=self.advantaged)
        complete_counts(groups, where)
        self.groups_ = groups.names
        self._fit_scores(X, codes, groups.codes)
        scores = self._scores(X, groups.codes)
        self.cuts_ = _CUTS
        rates = np.nan_to_num(rates_at(scores, groups, where, self.cuts_))
        self.chances_ = least_error_cuts(_expected_errors(scores, groups, self.cuts_), rates, most)
        self.rates_: GroupRates | None = None
        self.violation_: Any = None
        if sensitive_features is not None:
            self.rates_ = group_rates(
                self._chances(scores, groups.codes),
                groups,
                fairness=notion,
                labels=y,
                classes=list(self.classes_),
                advantaged=self.advantaged,
            )
            self.violation_ = self.rates_.gap()
        return self

    def chances_of(self, X: Any, sensitive_features: Any = None) -> Array:
        """Return how often each label is said of each record, shape (n, 2): soft predictions.

        Args:
            X: Shape (n, d).
            sensitive_features: As in `fit`.

        Raises:
            DataError: No sensitive features, or a group that training had no record of.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype=(np.float64, np.float32))
        if sensitive_features is None and self.groups_ != (None,):
            raise DataError("sensitive_features must be given: each group has cuts of its own.")
        codes = _groups(sensitive_features, len(X), self.groups_).codes
        return self._chances(self._scores(X, codes), codes)

    def predict(
        self, X: Any, sensitive_features: Any = None, rng: np.random.Generator | None = None
    ) -> Array:
        """Return labels, shape (n,), drawn where the rule draws.

        Args:
            X: Shape (n, d).
            sensitive_features: As in `fit`.
            rng: Draws for each record; None takes one from the operating system.

        Raises:
            DataError: As in `chances_of`.
        """
        chances = self.chances_of(X, sensitive_features)[:, 1]
        drawn = (secure() if rng is None else rng).random(len(chances)) < chances
        return np.asarray(self.classes_[drawn.astype(np.int64)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy, as a mean over draws.

        Args:
            X: Shape (n, d).
            y: Labels, shape (n,).
            sample_weight: Shape (n,).
            sensitive_features: As in `fit`.
        """
        right = np.sum(self.chances_of(X, sensitive_features) * (np.asarray(y)[:, None] == self.classes_), 1)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _fit_scores(self, X: Array, y: IntArray, groups: IntArray) -> None:
        """Fit the estimator of all records, and those of groups that are large enough."""
        plain = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky"))
        made = plain if self.estimator is None else self.estimator
        self.estimator_ = clone(made).fit(X, y)
        self.own_estimators_: list[Any] = []
        for r in range(len(self.groups_)):
            inside = groups == r
            enough = np.bincount(y[inside], minlength=2).min() >= _RECORDS_PER_FEATURE * X.shape[1]
            own = enough and len(self.groups_) > 1
            self.own_estimators_.append(clone(made).fit(X[inside], y[inside]) if own else None)

    def _scores(self, X: Array, groups: IntArray) -> Array:
        """Return the probability of the second label for each record, shape (n,)."""
        scores = np.asarray(self.estimator_.predict_proba(X)[:, 1], dtype=np.float64)
        for r, own in enumerate(self.own_estimators_):
            inside = groups == r
            if own is not None and inside.any():
                scores[inside] = (scores[inside] + own.predict_proba(X[inside])[:, 1]) / 2
        return scores

    def _chances(self, scores: Array, groups: IntArray) -> Array:
        """Return how often each label is said, given scores: what the cuts below a score have together."""
        below = np.cumsum(self.chances_, axis=1)
        second = np.clip(below[groups, np.searchsorted(self.cuts_, scores) - 1], 0.0, 1.0)
        return np.column_stack([1 - second, second])


def least_error_cuts(errors: Array, rates: Array, max_violation: float) -> Array:
    """Return the chances of cuts by group with the least error within a violation.

    Among rules that cost at most 1 % more than the least price of the violation, it is the one that most
    often says all or nothing without a look at the score: that share of a group's rate is the same on new
    records, and the rest moves by chance.

    Args:
        errors: Share of all records that are of this group and wrong at each cut, shape (k, c). The first cut
            is below all scores and the last one above.
        rates: Share of each condition's and group's records above each cut, shape (c, z, k).
        max_violation: In [0, 1]; 0 can always be had, by saying the same of everybody.

    Returns:
        Shape (k, c), rows summing to 1.

    Reference:
        Hardt, Price and Srebro (2016), section 5.2, for any number of groups and a violation above 0.
    """
    most = check_probability("max_violation", max_violation)
    c, z, k = rates.shape
    # The variables are the chances (k, c), and the least rate of each condition, from which no group is far.
    of_group = np.zeros((z, k, k, c))
    of_group[:, np.arange(k), np.arange(k)] = np.moveaxis(rates, 0, -1)
    rows = of_group.reshape(z * k, k * c)
    least = np.kron(np.eye(z), np.ones((k, 1)))
    within = np.block([[rows, -least], [-rows, least]])
    bounds = np.concatenate([np.full(z * k, most), np.zeros(z * k)])
    sums = np.hstack([np.kron(np.eye(k), np.ones((1, c))), np.zeros((k, z))])
    cost = np.concatenate([errors.ravel(), np.zeros(z)])

    def solve(objective: Array, A: Array, b: Array) -> Any:
        return optimize.linprog(objective, A_ub=A, b_ub=b, A_eq=sums, b_eq=np.ones(k), bounds=(0, 1))

    found = solve(cost, within, bounds)
    price = max(0.0, float(found.fun) - float(errors.min(axis=1).sum()))
    blind = np.zeros((k, c))
    blind[:, [0, -1]] = -1.0
    spared = solve(
        np.concatenate([blind.ravel(), np.zeros(z)]),
        np.vstack([within, cost]),
        np.append(bounds, found.fun + _SPARED * price),
    )
    chances = np.asarray((spared if spared.success else found).x[: k * c]).reshape(k, c)
    chances[chances < _LEAST_CHANCE] = 0.0
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _expected_errors(scores: Array, groups: Groups, cuts: Array) -> Array:
    """Return the share of all records that are of a group and wrong at a cut, shape (k, c), by the scores.

    Scores are probabilities of a label: their mean error is smoother in the cut than that of the labels,
    which a choice among many cuts would fit.
    """
    k, c = len(groups), len(cuts)
    cells = groups.codes * c + np.searchsorted(cuts, scores) - 1  # the highest cut below each score
    second, first = (np.bincount(cells, weights, k * c).reshape(k, c) for weights in (scores, 1 - scores))
    missed = np.cumsum(second, axis=1) - second
    accused = np.cumsum(first[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((missed + accused) / len(scores))


def _groups(sensitive_features: Any, n: int, names: tuple[Any, ...] | None) -> Groups:
    """Return the group of each of n records; one for all without sensitive features."""
    if sensitive_features is None:
        return Groups(np.zeros(n, dtype=np.int64), (None,))
    groups = Groups.of(sensitive_features, names=names)
    if len(groups.codes) != n:
        raise DataError(f"sensitive_features must have one entry per record ({n}), got {len(groups.codes)}.")
    return groups
