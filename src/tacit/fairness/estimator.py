"""A fair logistic regression in the manner of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from tacit.data.validated import validated
from tacit.errors import (
    DataError,
    check_choice,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.fairness.classifier import FairClassifier
from tacit.fairness.fermi import FairProblem
from tacit.fairness.groups import Groups
from tacit.fairness.metrics import GroupRates, group_rates
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.penalties import PenaltyName, penalty_of
from tacit.fairness.scores import LinearScores, probabilities
from tacit.fairness.search import least_weight
from tacit.fairness.standard import Standard
from tacit.fairness.training import Training
from tacit.numerics import Array
from tacit.privacy import Guarantee, NonPrivate, guarantee
from tacit.randomness import simulated

__all__ = ["FairLogisticRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class FairLogisticRegression(FairClassifier):
    """Logistic regression that trades accuracy for fairness, of two classes or more; it is not private.

    It minimises the mean cross-entropy plus `weight` times ERMI, which is 0 where predictions are independent
    of the sensitive attribute, as the notion looks at them. New records need no sensitive attribute.

    Args:
        fairness: "demographic-parity", "equalized-odds" or "equal-opportunity".
        weight: Of the penalty beside the mean loss, >= 0; 0 is plain logistic regression.
        max_violation: Instead of `weight`: the largest violation that hard predictions of the training
            records may have, in [0, 1]. The least weight that has it is searched, and of two classes the cut
            of the score, too. Nothing is promised of new records.
        advantaged: For equal opportunity, the labels that it is about; None is the last of two classes.
        groups: All groups there may be, as values, or tuples of one value per column; None reads them off.
        missing: False, or which sensitive attributes are not known: True for None and NaN, any other value,
            such as -1, for that one, too. They train the model, and say nothing of fairness.
        condition_weights: "frequency" or "uniform": what a label counts in equalized odds and opportunity.
        regularizer: "ermi", or another name of `PenaltyName`, to compare with.
        solver: "exact": all records in every step (L-BFGS, with dual variables at their maximum). "sgda":
            steps of descent and ascent on batches, for any batch size.
        batch_size: Of "sgda"; the whole data where there is less.
        epochs: Of "sgda": passes over the data; None takes more of them for larger batches.
        one_pass: Of "sgda": each record is used once, in one epoch.
        step: Of "sgda": step of the model; None goes by batch size and weight.
        dual_step: Of "sgda": step of dual variables, times the weight, in (0, 1/2]; None goes by batch size.
        warmup: Of "sgda": epochs without the penalty before.
        tail: Of "sgda": share of the last steps whose parameters are averaged, in [0, 1).
        l2: Strength of a squared L2 penalty, (l2 / 2) times the squared norm of all parameters.
        standardise: Whether features are centred and divided by their spread on the training records.
        feature_bound: Features stay within [-feature_bound, feature_bound] after that; None leaves them.
        max_iter: Of "exact": most iterations.
        random_state: Seed of the order of records; None takes one from the operating system.

    Attributes:
        classes_: Labels.
        coef_: Weights of scaled features, shape (1, d) for two classes, else (classes, d).
        intercept_: Constants, shape (1,) or (classes,).
        threshold_: Of two classes: scores above it are of the second one; 0 unless `max_violation` was given.
        weight_: That of the penalty.
        rates_: Rates of hard predictions of training records by group; None without sensitive features.
        violation_: Their largest gap between groups; None without.
        soft_violation_: The same of probabilities.
        penalty_: The penalty at the end, 0 without sensitive features.
        n_iter_: Iterations or steps.
        guarantee_: Says that no privacy is claimed.
        n_features_in_: Number of features.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.

    Example:
        >>> import numpy as np
        >>> from tacit.fairness import FairLogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(0, 2, 500)
        >>> X = np.column_stack([rng.standard_normal(500) + s, rng.standard_normal(500)])
        >>> y = (X.sum(axis=1) + rng.standard_normal(500) > 0.5).astype(int)
        >>> for weight in (0, 10):
        ...     model = FairLogisticRegression(weight=weight).fit(X, y, sensitive_features=s)
        ...     print(round(model.score(X, y), 2), round(model.violation_, 2))
        0.76 0.26
        0.71 0.11

    Reference:
        Lowy (2023), Chapter 5, Algorithm 9 (FERMI).
    """

    fairness: str = "demographic-parity"
    weight: float = 1.0
    max_violation: float | None = None
    advantaged: Any = None
    groups: Any = None
    missing: Any = False
    condition_weights: str = "frequency"
    regularizer: str = "ermi"
    solver: str = "exact"
    batch_size: int = 64
    epochs: int | None = None
    one_pass: bool = False
    step: float | None = None
    dual_step: float | None = None
    warmup: int = 0
    tail: float = 0.0
    l2: float = 1e-4
    standardise: bool = True
    feature_bound: float | None = None
    max_iter: int = 300
    random_state: Any = None

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers; float32 stays as narrow.
            y: Labels, shape (n,).
            sensitive_features: Shape (n,), or (n, columns): texts or whole numbers, of which each combination
                is a group. None trains plain logistic regression, whatever the weight.

        Raises:
            DataError: One class or one group only, another number of records, a continuous sensitive column,
                missing attributes that were not declared, or a group without records of some label.
            ParameterError: A parameter is out of range, or no weight reaches `max_violation`.
            ValueError: X is not numbers, or not finite, or y no labels (from scikit-learn).
        """
        training, notion = self._checked()
        X, y = validated(self, X, y, dtype=(np.float64, np.float32))
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError("y must have two classes or more, got one class only.")
        groups = None if sensitive_features is None else self._groups(sensitive_features, len(y))
        where = Conditions.of(notion, y, classes=self.classes_, advantaged=self.advantaged)
        # Without sensitive features, one group: a penalty of weight 0 that nothing depends on.
        known = Groups(np.zeros(len(y), dtype=np.int64), (None,)) if groups is None else groups
        penalty, of = penalty_of(
            self.regularizer, known, where, len(self.classes_), weights=self.condition_weights
        )
        self.scaling_ = Standard.of(X, scale=self.standardise, bound=self.feature_bound)
        model = LinearScores(X.shape[1] + 1, len(self.classes_))
        weight = 0.0 if groups is None else self.weight
        problem = FairProblem(model, self.scaling_.transform(X), codes, penalty, of, weight, self.l2)
        rng = simulated(int(check_random_state(self.random_state).randint(2**31)))
        threshold = 0.0
        if self.max_violation is None or groups is None:
            fitted = training.fit(rng, problem)
        else:
            found = least_weight(problem, self.max_violation, partial(training.fit, rng))
            weight, fitted, threshold = found.weight, found.fitted, found.cut.threshold
        self.weight_, self.threshold_, self.n_iter_ = weight, threshold, fitted.steps
        self._keep_parameters(model, fitted.theta)
        self.guarantee_: Guarantee = guarantee(NonPrivate(), 0.0, observer="whoever sees the model")
        self._measure(problem, fitted.theta, y, groups)
        return self

    def _checked(self) -> tuple[Training, Fairness]:
        """Return the solver and the notion, of parameters that are checked before data is looked at."""
        check_non_negative("weight", self.weight)
        check_non_negative("l2", self.l2)
        check_choice("regularizer", self.regularizer, list(PenaltyName))
        check_choice("condition_weights", self.condition_weights, ["frequency", "uniform"])
        if self.max_violation is not None:
            check_probability("max_violation", self.max_violation)
        if self.feature_bound is not None:
            check_positive("feature_bound", self.feature_bound)
        training = Training(
            solver=self.solver,
            batch_size=self.batch_size,
            epochs=self.epochs,
            one_pass=self.one_pass,
            step=self.step,
            dual_step=self.dual_step,
            warmup=self.warmup,
            tail=self.tail,
            iterations=self.max_iter,
        )
        return training, Fairness.of(self.fairness)

    def _groups(self, sensitive_features: Any, n: int) -> Groups:
        """Return the group of each record, of two groups at least."""
        groups = Groups.of(sensitive_features, names=self.groups, missing=self.missing)
        if len(groups.codes) != n:
            raise DataError(
                f"sensitive_features must have one entry per record ({n}), got {len(groups.codes)}."
            )
        if len(groups) < 2:
            raise DataError("sensitive_features must have two groups or more, got one group only.")
        return groups

    def _measure(self, problem: FairProblem, theta: Array, y: Array, groups: Groups | None) -> None:
        """Keep how fair the model is on the records that it was trained on."""
        scores = problem.model.scores(theta, problem.X)
        F = probabilities(scores)
        self.rates_: GroupRates | None = None
        self.violation_: Any = None
        self.soft_violation_: Any = None
        self.penalty_ = problem.penalty.evaluate(scores, F, problem.membership)[0]
        if groups is None:
            return
        how: dict[str, Any] = {
            "sensitive_features": groups,
            "fairness": self.fairness,
            "labels": y,
            "classes": self.classes_,
            "advantaged": self.advantaged,
        }
        self.rates_ = group_rates(self.classes_[self._hard(scores)], **how)
        self.violation_, self.soft_violation_ = self.rates_.gap(), group_rates(F, **how).gap()
