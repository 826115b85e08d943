"""What estimators across silos share: their parameters, one run, and what a classifier asks of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit.data.validated import validated
from tacit.learning.algorithms import Algorithm
from tacit.learning.clipping import AutoClip
from tacit.learning.defaults import AUTO
from tacit.learning.fitting import Request, Trust, with_notes
from tacit.learning.labelled import public_codes, public_sample
from tacit.learning.model import LinearModel
from tacit.learning.public import PublicSample
from tacit.learning.regularization import Regularization
from tacit.learning.task import Task, feature_bounds, label_codes, labels
from tacit.learning.training import Trained
from tacit.means import MomentBound
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget

__all__ = ["Federated", "FederatedClassifier", "TaskOf"]

TaskOf = Callable[[Array, Array, Array, PublicSample | None], Task]
"""Makes a task of lower and upper bounds, classes, and public records or None."""


@dataclass(kw_only=True, eq=False, repr=False)
class Federated(BaseEstimator):  # type: ignore[misc]
    """What all of them have: their parameters, which scikit-learn reads off `__init__`, and one run."""

    trust: Trust = "local"
    budget: PrivacyBudget | None = None
    neighbours: str = "replace-one"
    bounds: Any = None
    public: Any = None
    algorithm: str | Algorithm = AUTO
    rounds: int | str = "auto"
    clip: float | str | AutoClip | None = None
    l1: float = 0.0
    l2: float = 0.0
    group_lasso: float = 0.0
    groups: Any = None
    domain: Any = None
    noise: str = "auto"
    random_state: Any = None
    ledger: Any = None
    n_min: int | None = None
    colluding: int = 0
    recover: bool = False

    def _request(self, moment: MomentBound | None = None) -> Request:
        """Return the parameters, checked."""
        return Request(
            trust=self.trust,
            budget=self.budget,
            algorithm=self.algorithm,
            rounds=self.rounds,
            clip=self.clip,
            regularization=Regularization(
                l1=self.l1,
                l2=self.l2,
                group_lasso=self.group_lasso,
                groups=self.groups,
                domain=self.domain,
            ),
            noise=self.noise,
            random_state=self.random_state,
            neighbours=self.neighbours,
            n_min=self.n_min,
            colluding=self.colluding,
            recover=self.recover,
            sampling="cheapest" if isinstance(self.algorithm, str) else "given",
            moment=moment,
        )

    def _sample(
        self, X: Any, lower: Array, upper: Array, encode: Callable[[Array], Array]
    ) -> PublicSample | None:
        """Return the public records beside private ones as they were given; `encode` is for their labels."""
        return public_sample(
            self.public,
            bounds=self.bounds,
            lower=lower,
            upper=upper,
            given=X,
            names=getattr(self, "feature_names_in_", None),
            encode=encode,
        )

    def _keep(self, task: Task, run: tuple[Trained, list[str]], notes: list[str]) -> Self:
        """Keep a finished run, with what the statement must say besides."""
        self.trained_, more = run
        self.guarantees_ = with_notes(self.trained_.guarantees, notes + more)
        self.guarantee_ = max(self.guarantees_, key=lambda g: g.epsilon)
        before = with_notes(self.trained_.guarantees_alone, notes + more)
        self.guarantees_alone_ = before
        self.guarantee_alone_ = max(before, key=lambda g: g.epsilon, default=None)
        self.model_ = task.model(self.trained_.w)
        if isinstance(self.model_, LinearModel):
            self.coef_: Any = self.model_.coef
            self.intercept_: Any = self.model_.intercept
        return self

    def predict(self, X: Any) -> Array:
        """Return labels or targets, shape (n,), for a frame too: `tacit.TrainedModel` returns frames."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(validated(self, X, reset=False)))


@dataclass(kw_only=True, eq=False, repr=False)
class FederatedClassifier(ClassifierMixin, Federated):  # type: ignore[misc]
    """A classifier: labels in, and scores, probabilities and labels out."""

    classes: Any = None

    @abstractmethod
    def _task_of(self) -> TaskOf:
        """Return what makes the task, of parameters that are checked."""

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Labels, shape (n,), compared with `classes` as text. With a budget, the record of a label that
                is none of them counts as a record of zeros.
            silos: Silo of each record, shape (n,); None: all of them are in one silo.
            persons: Person of each record, shape (n,); what is protected is then a person in one silo.

        Raises:
            DataError: `silos` or `persons` has another shape, `public` other columns or values; labels are of
                one class, or unknown without a budget.
            ParameterError: A parameter is out of range, or does not fit the data; nothing was spent.
            BudgetError: The ledger has less left than the fit costs; nothing was spent.
            LedgerError: The ledger cannot be used, or is about other neighbours or silos; nothing was spent.
            ValueError: X or y is not numbers, or not finite (from scikit-learn).
        """
        records, given = X, y
        X, y = validated(self, X, y)
        if self.classes is None:
            check_classification_targets(y)
        request, task_of = self._request(), self._task_of()
        lower, upper, notes = feature_bounds(self.bounds, X, private=request.private)
        self.classes_, more = labels(self.classes, y, private=request.private)
        sample = self._sample(records, lower, upper, partial(public_codes, classes=self.classes))
        task = task_of(lower, upper, self.classes_, sample)
        codes = label_codes(self.classes_, given if isinstance(given, list | tuple) else y)
        run = request.train(task, X, codes, silos=silos, persons=persons, ledger=self.ledger)
        return self._keep(task, run, notes + more)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n, classes)."""
        check_is_fitted(self)
        return np.asarray(self.model_.probabilities(validated(self, X, reset=False)))

    def decision_function(self, X: Any) -> Array:
        """Return raw scores: shape (n,) for two classes, else (n, classes)."""
        check_is_fitted(self)
        return np.asarray(self.model_.scores(validated(self, X, reset=False)))
