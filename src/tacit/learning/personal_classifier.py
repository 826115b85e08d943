"""A classifier for every silo, in the manner of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from tacit.data.validated import validated
from tacit.errors import ParameterError, check_count, printable, shown
from tacit.learning.algorithms import ALGORITHMS, Algorithm
from tacit.learning.architecture import Architecture
from tacit.learning.federated import FederatedClassifier, TaskOf
from tacit.learning.fitting import Request
from tacit.learning.model import FittedModel
from tacit.learning.silo_units import silo_codes
from tacit.learning.spending import warn_without_budget
from tacit.learning.task import Task, bounded_features
from tacit.learning.training import Trained
from tacit.means import MomentBound
from tacit.numerics import Array

__all__ = ["PersonalClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class PersonalClassifier(FederatedClassifier):
    """A model for each silo, drawn towards a common one as far as silos agree; two classes or more.

    What is protected is a whole silo: all of its records at once. Its own model is trained on its records
    without noise, never leaves it where silos are apart, and is covered by no guarantee: it is for that silo
    alone. Here one process has all of them, so that `personal_` is as private as the records are, and so is
    what `predict` says for a silo that is known. The common model is what the guarantee is about.

    Args:
        model: "linear", or "linear@28x28" of images; or a network, as "mlp:64", "cnn", "scattering" or
            "package.module:Class". Needs the extra `torch`, but for linear models, perceptrons with one
            hidden layer and wavelet features.
        start_seed: Seed of the public random weights that a network starts from, >= 0.
        trust: "local", "aggregate", "shuffle" or "none", as in `FederatedLogisticRegression`: "central" is
            refused, because there silos keep no models. Under "aggregate", noise is shared between silos.
        budget: Privacy budget of each silo, whole; None trains without privacy, with a warning unless
            trust is "none", and `guarantee_` says so.
        neighbours: "replace-one" (a silo has other records) or "zero-out" (it contributes nothing).
        bounds: Public bounds (lower, upper) of the features; needed with a budget.
        public: As in `FederatedLogisticRegression`.
        classes: Public labels. None reads them off `y`, with a warning under a budget.
        algorithm: "adaped", or an `AdaPeD`, or a `Method` of one's own that makes models of parties.
        rounds: How often silos are asked, or "auto".
        clip: Of a step's gradient in the common model; None is what goes with the algorithm, no clipping
            without budget. "auto" is refused.
        l1: 0: no penalty goes into the steps of silos.
        l2: 0.
        group_lasso: 0.
        groups: None.
        domain: None.
        noise: As in `FederatedLogisticRegression`.
        random_state: As in `FederatedLogisticRegression`.
        ledger: As in `FederatedLogisticRegression`, of whole parties.
        n_min: As in `FederatedLogisticRegression`.
        colluding: As in `FederatedLogisticRegression`.
        recover: As in `FederatedLogisticRegression`.

    Attributes:
        classes_: Labels.
        personal_: The own `FittedModel` of each silo, by its name as text: covered by no guarantee.
        model_: The common `FittedModel`.
        coef_: Weights of the common model, if it is linear, as in `FederatedLogisticRegression`.
        intercept_: Its constants, if it is linear.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.
        guarantee_: The weakest of `guarantees_`, of whole parties, of the common model alone.
        guarantees_: One for each silo.
        guarantee_alone_: As in `FederatedLogisticRegression`.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import PersonalClassifier
        >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        >>> silos = np.where(np.arange(400) % 2, "a", "b")
        >>> y = (X[:, 0] > 0) == (silos == "a")  # each is the other's opposite
        >>> model = PersonalClassifier(trust="none", random_state=0).fit(X, y, silos=silos)
        >>> bool(model.score(X, y, silos=silos) > 0.9), bool(model.score(X, y) < 0.7)
        (True, True)

    Reference:
        Ozkara, Girgis, Data and Diggavi (2023), "A statistical framework for personalized federated learning
        and estimation", ICLR, Algorithm 3.
    """

    model: str = "linear"
    start_seed: int = 0
    algorithm: str | Algorithm = "adaped"

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train; arguments and errors as in `FederatedLogisticRegression.fit`, and `persons` must be None.

        With a silo, everybody in it is protected.
        """
        return super().fit(X, y, silos=silos, persons=persons)

    def decision_function(self, X: Any, silos: Any = None) -> Array:
        """Return raw scores: shape (n,) for two classes, else (n, classes); arguments as of `predict`."""
        check_is_fitted(self)
        return self._scores(validated(self, X, reset=False), silos)

    def predict_proba(self, X: Any, silos: Any = None) -> Array:
        """Return class probabilities, shape (n, classes); arguments as of `predict`."""
        check_is_fitted(self)
        scores = self._scores(validated(self, X, reset=False), silos)
        return np.asarray(self.model_.probabilities_of(scores))

    def predict(self, X: Any, silos: Any = None) -> Array:
        """Return labels, shape (n,), of each record by the model of its silo.

        Args:
            X: Shape (n, d), finite numbers.
            silos: Silo of each record, shape (n,), compared as text; one that was not there in training gets
                the common model. None: all get it.

        Raises:
            DataError: `silos` has another shape.
            ValueError: X is not numbers, or not finite (from scikit-learn).
        """
        check_is_fitted(self)
        return np.asarray(self.model_.predictions_of(self._scores(validated(self, X, reset=False), silos)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, silos: Any = None) -> float:
        """Return the accuracy of `predict` on records and their labels."""
        return float(accuracy_score(y, self.predict(X, silos), sample_weight=sample_weight))

    def _scores(self, X: Array, silos: Any) -> Array:
        """Return raw predictions, each by the model of its silo."""
        scores = self.model_.scores(X)
        if silos is None:
            return np.asarray(scores)
        names, codes = silo_codes(silos, len(X))
        for k, name in enumerate(names):
            if (own := self.personal_.get(printable(name))) is not None:
                scores[codes == k] = own.scores(X[codes == k])
        return np.asarray(scores)

    def _task_of(self) -> TaskOf:
        """Return what makes the task."""
        kind = ALGORITHMS.get(self.algorithm) if isinstance(self.algorithm, str) else self.algorithm
        if not getattr(kind, "personal", ""):
            raise ParameterError(
                f"algorithm must be 'adaped' or an AdaPeD, got {shown(self.algorithm)}: it makes no models "
                "of silos."
            )
        architecture, seed = Architecture.of(self.model), check_count("start_seed", self.start_seed, low=0)
        return lambda lower, upper, classes, sample: architecture.task(
            bounded_features(lower, upper, unit_rows=True, sample=sample),
            classes=classes,
            sample=sample,
            start_seed=seed,
        )

    def _request(self, moment: MomentBound | None = None) -> Request:
        """Return the parameters, checked; a model of one's own sounds private, so warn where nothing is."""
        request = super()._request(moment)
        warn_without_budget(self, trust=self.trust, stacklevel=4)
        return request

    def _keep(self, task: Task, run: tuple[Trained, list[str]], notes: list[str]) -> Self:
        """Keep a finished run, with the models of silos."""
        own = zip(run[0].parties, run[0].personal, strict=True)
        self.personal_: dict[str, FittedModel] = {name: task.model(w) for name, w in own}
        return super()._keep(task, run, notes)
