"""scikit-learn style estimators: `fit(X, y, silos=...)`, `predict`, and a guarantee that can be checked again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Self

import msgspec
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.errors import DataError, ParameterError, PrivacyWarning, check_choice
from tacit.learning.algorithms import ALGORITHMS, Algorithm
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic, Loss, Multinomial, Squared
from tacit.learning.model import FeatureMap, LinearModel, bounds_arrays, scale_target
from tacit.learning.objective import Grouped, Records
from tacit.learning.training import Settings, Trained, make_silos, train
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, Unit

__all__ = ["DEFAULT_DIAMETER", "DEFAULT_SHARE", "FederatedLinearRegression", "FederatedLogisticRegression"]

DEFAULT_DIAMETER = 150.0
"""Size of a solution for rows of norm at most 1, from public data sets (docs/tutorials/first-run.md)."""

DEFAULT_SHARE = 0.3
"""Clipping radius as a share of the Lipschitz constant: noise falls with it, and few gradients are longer."""

Trust = Literal["local", "central", "none"]


class FederatedLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression across silos, two classes or more.

    Args:
        trust: "local" (every silo protects its records from everybody), "central" (the server adds the noise)
            or "none".
        budget: What each silo may spend; None trains without privacy, and `guarantee_` says so.
        bounds: Public bounds (lower, upper) of the features, numbers or one per feature. Needed with a
            budget; "data" reads them off the data with a warning, and the guarantee then names that.
        classes: Public labels. None reads them off `y`, with a warning under a budget.
        algorithm: "accelerated", "minibatch", "multistage", "local", or an `Algorithm`.
        rounds: Number of rounds, or "auto".
        clip: Norm bound of a unit's gradient; None is 0.3 of the Lipschitz constant, no clipping without
            budget.
        noise: "discrete-gaussian" (exact, for deployment), "gaussian" (continuous, for simulation), or
            "auto": continuous where `random_state` is set.
        random_state: Seed of a simulation; None takes secret randomness from the operating system.

    Attributes:
        classes_: Labels.
        model_: The trained `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: One per silo under local trust, one in all under central trust.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tacit.learning import FederatedLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> bounds = (0.0, [30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 22, 550, 0.04, 0.2, 0.4, 0.06,
        ...     0.1, 0.03, 40, 50, 260, 4300, 0.3, 1.2, 1.3, 0.3, 0.7, 0.3])
        >>> model = FederatedLogisticRegression(budget=PrivacyBudget(4.0, 1e-5), bounds=bounds, classes=[0, 1],
        ...     random_state=0).fit(X, y, silos=np.arange(len(y)) % 5)
        >>> bool(model.score(X, y) > 0.85), model.guarantee_.epsilon
        (True, 4.0)

    Reference:
        Spec 11 §2-3.
    """

    def __init__(
        self,
        *,
        trust: Trust = "local",
        budget: PrivacyBudget | None = None,
        bounds: Any = None,
        classes: Any = None,
        algorithm: str | Algorithm = "accelerated",
        rounds: int | str = "auto",
        clip: float | None = None,
        noise: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.trust = trust
        self.budget = budget
        self.bounds = bounds
        self.classes = classes
        self.algorithm = algorithm
        self.rounds = rounds
        self.clip = clip
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Labels, shape (n,).
            silos: Which silo holds each record, shape (n,); None is one silo.
            persons: Whose each record is, shape (n,); a person in one silo is then what is protected.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        notes: list[str] = []
        if self.classes is None:
            self.classes_ = np.unique(y)
            if self.budget is not None:
                _warn("classes", notes, "the classes were read off the labels without privacy")
        else:
            self.classes_ = np.unique(np.asarray(self.classes))
            if not np.isin(y, self.classes_).all():
                raise DataError("y holds labels outside `classes`.")
        if len(self.classes_) < 2:
            raise DataError("y must hold at least two classes, got one class.")
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        features = FeatureMap(**_bounds(self, X, notes))
        many = len(self.classes_) > 2
        loss: Loss = Multinomial() if many else Logistic()
        objective = LinearObjective(
            loss=loss, features=features.size, outputs=len(self.classes_) if many else 1, feature_norm=1.0
        )
        self.trained_ = _train(self, objective, features(X), codes, silos=silos, persons=persons)
        _publish(self, notes)
        self.model_ = LinearModel(features=features, w=self.trained_.w, classes=self.classes_)
        return self

    def predict(self, X: Any) -> Array:
        """Return labels, shape (n,)."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, reset=False))

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n, classes)."""
        check_is_fitted(self)
        return self.model_.probabilities(validate_data(self, X, reset=False))

    def decision_function(self, X: Any) -> Array:
        """Return raw scores: shape (n,) for two classes, else (n, classes)."""
        check_is_fitted(self)
        return self.model_.scores(validate_data(self, X, reset=False))


class FederatedLinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Least squares across silos.

    Args:
        trust: As in `FederatedLogisticRegression`.
        budget: What each silo may spend; None trains without privacy, and `guarantee_` says so.
        bounds: Public bounds (lower, upper) of the features; needed with a budget.
        target_bounds: Public bounds of the target; needed with a budget, "data" warns as for `bounds`.
        algorithm: As in `FederatedLogisticRegression`.
        rounds: Number of rounds, or "auto".
        clip: Norm bound of a unit's gradient, in units of the target scaled to [-1, 1]; None is 0.3, no
            clipping without budget.
        noise: As in `FederatedLogisticRegression`.
        random_state: As in `FederatedLogisticRegression`.

    Attributes:
        model_: The trained `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: One per silo under local trust, one in all under central trust.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import FederatedLinearRegression
        >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
        >>> model = FederatedLinearRegression().fit(X, 2 * X[:, 0] + 1)
        >>> model.predict([[0.5]]).round(2).tolist()
        [2.0]
        >>> print(model.guarantee_)
        No privacy is claimed: everybody outside silo '0', the server included, may learn anything about the
        data.

    Reference:
        Spec 11 §2-3.
    """

    def __init__(
        self,
        *,
        trust: Trust = "local",
        budget: PrivacyBudget | None = None,
        bounds: Any = None,
        target_bounds: Any = None,
        algorithm: str | Algorithm = "accelerated",
        rounds: int | str = "auto",
        clip: float | None = None,
        noise: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.trust = trust
        self.budget = budget
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.algorithm = algorithm
        self.rounds = rounds
        self.clip = clip
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Targets, shape (n,).
            silos: Which silo holds each record, shape (n,); None is one silo.
            persons: Whose each record is, shape (n,); a person in one silo is then what is protected.
        """
        X, y = validate_data(self, X, y, y_numeric=True)
        notes: list[str] = []
        features = FeatureMap(**_bounds(self, X, notes), unit_rows=False)
        target = self._target(np.asarray(y, dtype=np.float64), notes)
        objective = LinearObjective(loss=Squared(), features=features.size, feature_norm=1.0)
        scaled = scale_target(np.asarray(y, dtype=np.float64), target)
        self.trained_ = _train(self, objective, features(X), scaled, silos=silos, persons=persons)
        _publish(self, notes)
        self.model_ = LinearModel(features=features, w=self.trained_.w, target=target)
        return self

    def predict(self, X: Any) -> Array:
        """Return targets, shape (n,)."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, reset=False))

    def _target(self, y: Array, notes: list[str]) -> tuple[float, float]:
        """Return the bounds of the target."""
        asks = isinstance(self.target_bounds, str) and self.target_bounds == "data"
        if self.target_bounds is None and self.budget is not None:
            raise ParameterError(
                "target_bounds must be given with a budget, as (lower, upper) from public knowledge; 'data' reads "
                "them off the data, which no guarantee covers."
            )
        if self.target_bounds is not None and not asks:
            low, high = self.target_bounds
            return float(low), float(high)
        if self.budget is not None:
            _warn("target_bounds", notes, "the target's bounds were read off the data without privacy")
        return float(y.min()), float(y.max())


def _bounds(estimator: Any, X: Array, notes: list[str]) -> dict[str, Array]:
    """Return the bounds of the features; only without a budget are they silently read off the data."""
    asks = isinstance(estimator.bounds, str) and estimator.bounds == "data"
    if estimator.bounds is None and estimator.budget is not None:
        raise ParameterError(
            "bounds must be given with a budget, as (lower, upper) from public knowledge; 'data' reads them off the "
            "data, which no guarantee covers."
        )
    if estimator.bounds is not None and not asks:
        lower, upper = bounds_arrays(estimator.bounds, X.shape[1])
        return {"lower": lower, "upper": upper}
    if estimator.budget is not None:
        _warn("bounds", notes, "the features' bounds were read off the data without privacy")
    return {"lower": X.min(axis=0).astype(np.float64), "upper": X.max(axis=0).astype(np.float64)}


def _warn(name: str, notes: list[str], clause: str) -> None:
    """Warn, and remember it for the guarantee."""
    warnings.warn(f"{clause}; pass `{name}` from public knowledge.", PrivacyWarning, stacklevel=4)
    notes.append(f"it does not matter that {clause}")


def _publish(estimator: Any, notes: list[str]) -> None:
    """Set `guarantees_` and `guarantee_`, with what was done outside of them."""
    guarantees = estimator.trained_.guarantees
    estimator.guarantees_ = [
        msgspec.structs.replace(g, assumptions=(*g.assumptions, *notes)) for g in guarantees
    ]
    estimator.guarantee_ = max(estimator.guarantees_, key=lambda g: g.epsilon)


@dataclass(frozen=True)
class _Split:
    """Silos by name, with the units of each."""

    names: list[str]
    units: list[Records | Grouped]


def _split(rows: Array, y: Array, silos: Any, persons: Any) -> _Split:
    """Return the units of every silo."""
    n = len(rows)
    where = np.zeros(n, dtype=np.int64) if silos is None else np.asarray(silos)
    for name, given in (("silos", where), ("persons", where if persons is None else np.asarray(persons))):
        if given.shape != (n,):
            raise DataError(f"{name} must have one entry per record ({n}), got shape {given.shape}.")
    names, codes = np.unique(where, return_inverse=True)
    units: list[Records | Grouped] = []
    for k in range(len(names)):
        records = Records.of(rows[codes == k], y[codes == k])
        units.append(records if persons is None else Grouped.of(records, np.asarray(persons)[codes == k]))
    return _Split([str(name) for name in names], units)


def _train(
    estimator: Any, objective: LinearObjective, rows: Array, y: Array, *, silos: Any, persons: Any
) -> Trained:
    """Train on mapped rows with an estimator's parameters."""
    check_choice("trust", estimator.trust, ["local", "central", "none"])
    if estimator.trust == "none" and estimator.budget is not None:
        raise ParameterError("a budget needs trust 'local' or 'central', got trust='none'.")
    seed = None
    if estimator.random_state is not None:
        seed = int(check_random_state(estimator.random_state).randint(2**31))
    private = estimator.budget is not None
    split = _split(rows, y, silos, persons)
    lipschitz = objective.lipschitz if np.isfinite(objective.lipschitz) else 1.0
    settings = Settings(
        objective=objective,
        algorithm=_algorithm(estimator),
        trust=TrustModel(estimator.trust) if private else None,
        budget=estimator.budget,
        unit=Unit.RECORD if persons is None else Unit.PERSON,
        radius=estimator.clip
        if estimator.clip is not None
        else DEFAULT_SHARE * lipschitz
        if private
        else 1e6,
        diameter=DEFAULT_DIAMETER,
        noise=_noise(estimator.noise, seeded=seed is not None),
        seed=seed,
    )
    return train(make_silos(split.units, objective, names=split.names, seed=seed), settings)


def _noise(noise: str, *, seeded: bool) -> str:
    """Return the kind of noise that "auto" stands for."""
    check_choice("noise", noise, ["auto", "gaussian", "discrete-gaussian"])
    if noise != "auto":
        return noise
    return "gaussian" if seeded else "discrete-gaussian"


def _algorithm(estimator: Any) -> Algorithm:
    """Return the algorithm that an estimator names."""
    if not isinstance(estimator.algorithm, str):
        chosen: Algorithm = estimator.algorithm
        return chosen
    check_choice("algorithm", estimator.algorithm, ALGORITHMS)
    rounds = None if estimator.rounds == "auto" else estimator.rounds
    kind: Any = ALGORITHMS[estimator.algorithm]
    built: Algorithm = (
        kind(rounds=rounds, mu=1e-3) if estimator.algorithm == "multistage" else kind(rounds=rounds)
    )
    return built
