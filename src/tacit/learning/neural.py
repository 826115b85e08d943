"""A classifier with one hidden layer, in the manner of scikit-learn: the doors of the linear one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count
from tacit.learning.federated import FederatedClassifier, TaskOf
from tacit.learning.losses import Logistic, Loss, Multinomial
from tacit.learning.model import FeatureMap, class_probabilities, likeliest
from tacit.learning.networks import Activation, NetworkObjective
from tacit.learning.objective import Records
from tacit.learning.public import PublicSample
from tacit.learning.public_objective import PublicObjective
from tacit.learning.regularization import Regularization
from tacit.learning.task import DEFAULT_DIAMETER, bounded_features
from tacit.numerics import Array, Regularizer

__all__ = ["FederatedNeuralClassifier", "NetworkModel", "NeuralTask"]


@dataclass(frozen=True, kw_only=True)
class NetworkModel:
    """Parameters of a network with everything that predictions need.

    Attributes:
        features: Map of raw features.
        objective: Their network.
        w: Parameters, shape (size,).
        classes: Labels by position.
    """

    features: FeatureMap
    objective: NetworkObjective
    w: Array
    classes: Array

    def scores(self, X: Array) -> Array:
        """Return raw predictions: shape (n,) for two classes, else (n, classes)."""
        return self.objective.predictions(self.w, self.features(np.asarray(X, dtype=np.float64)))

    def probabilities(self, X: Array) -> Array:
        """Return class probabilities, shape (n, classes)."""
        return class_probabilities(self.scores(X))

    def predict(self, X: Array) -> Array:
        """Return labels, shape (n,)."""
        return np.asarray(self.classes[likeliest(self.scores(X))])


@dataclass(frozen=True, kw_only=True)
class NeuralTask:
    """The public shape of a network: its features, its classes, and where it starts.

    Attributes:
        features: How rows are mapped: to norm 1.
        classes: Labels in order.
        hidden: Units of the hidden layer.
        activation: What they do with their sums.
        start_seed: Seed of the public weights that training starts from.
        sample: Public records that say how rows are mapped, and may have labels; None without.
    """

    features: FeatureMap
    classes: Array
    hidden: int
    activation: Activation
    start_seed: int
    sample: PublicSample | None = None

    @property
    def objective(self) -> NetworkObjective:
        """What is minimised, on mapped rows."""
        many = len(self.classes)
        loss: Loss = Multinomial() if many > 2 else Logistic()
        return NetworkObjective(
            loss=loss,
            features=self.features.size,
            hidden=self.hidden,
            outputs=many if many > 2 else 1,
            activation=self.activation,
        )

    @property
    def gram(self) -> None:
        """Nothing: no method of networks has use for a Gram matrix of the features."""
        return

    @property
    def diameter(self) -> float:
        """About how far a solution is."""
        return DEFAULT_DIAMETER

    @cached_property
    def public(self) -> PublicObjective | None:
        """What is minimised, on public records with labels; None without."""
        if self.sample is None or self.sample.y is None:
            return None
        return PublicObjective(self.objective, Records.of(self.features(self.sample.X), self.sample.y))

    @property
    def start(self) -> Array:
        """The first point, of public weights for rows of norm 1."""
        return self.objective.start(self.start_seed)

    def regularizer(self, chosen: Regularization) -> Regularizer:
        """Return what is added to the mean loss, on all weights.

        Raises:
            ParameterError: Groups of features, or a domain: they are about the weights of a linear model.
        """
        if chosen.group_lasso > 0 or chosen.domain is not None:
            raise ParameterError("group_lasso and domain must be left out for a network: l1 and l2 are not.")
        return chosen.of_linear(features=self.features.size, outputs=1)

    def model(self, w: Array) -> NetworkModel:
        """Return the network with those parameters, ready to predict."""
        return NetworkModel(features=self.features, objective=self.objective, w=w, classes=self.classes)


@dataclass(kw_only=True, eq=False, repr=False)
class FederatedNeuralClassifier(FederatedClassifier):
    """A network with one hidden layer across silos, for two classes or more.

    Args:
        hidden: Units of the hidden layer. More of them fit more, and take more noise: it grows with the
            square root of the number of parameters.
        activation: "relu", "tanh" or "softplus".
        start_seed: Seed of the random weights that training starts from. They are public and cost nothing.
        trust: As in `FederatedLogisticRegression`.
        budget: Privacy budget of each silo; None trains without privacy, and `guarantee_` says so.
        neighbours: As in `FederatedLogisticRegression`.
        bounds: Public bounds (lower, upper) of the features; needed with a budget.
        public: As in `FederatedLogisticRegression`.
        classes: Public labels. None reads them off `y`, with a warning under a budget.
        algorithm: "auto": averaged plain steps, as long as noise allows; or a name of `ALGORITHMS` or an
            `Algorithm` that needs neither smoothness nor convexity, such as `NoisySpider(step_size=...)`. Its
            step size has to be given.
        rounds: Number of rounds, or "auto".
        clip: Clipping bound of a unit's gradient; None is 0.2, or the share that goes with a named algorithm;
            no clipping without budget. No gradient of a network has a bound of its own.
        l1: As in `FederatedLogisticRegression`, on the weights of both layers.
        l2: As `l1`.
        group_lasso: 0: groups are of the weights of a linear model.
        groups: None.
        domain: None.
        noise: As in `FederatedLogisticRegression`.
        random_state: As in `FederatedLogisticRegression`.
        ledger: As in `FederatedLogisticRegression`.
        n_min: As in `FederatedLogisticRegression`.
        colluding: As in `FederatedLogisticRegression`.
        recover: As in `FederatedLogisticRegression`.

    Attributes:
        classes_: Labels.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.
        model_: The trained `NetworkModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: A single one under central trust, else one for each silo.
        guarantee_alone_: As in `FederatedLogisticRegression`.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import FederatedNeuralClassifier
        >>> from tacit.privacy import PrivacyBudget
        >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
        >>> y = X[:, 0] * X[:, 1] > 0  # which no linear model can tell
        >>> model = FederatedNeuralClassifier(
        ...     trust="central", budget=PrivacyBudget(3.0, 1e-6), bounds=(-1, 1), classes=[False, True],
        ...     rounds=40, random_state=0,
        ... ).fit(X, y)
        >>> bool(model.score(X, y) > 0.85), model.guarantee_.epsilon
        (True, 3.0)

    Reference:
        Lowy (2023), Section 3.3.3, for networks over silos.
    """

    hidden: int = 16
    activation: Activation = "relu"
    start_seed: int = 0

    def _task_of(self) -> TaskOf:
        """Return what makes the task of a network of that size."""
        hidden, seed = check_count("hidden", self.hidden), check_count("start_seed", self.start_seed, low=0)
        activation = self.activation
        check_choice("activation", activation, get_args(Activation))
        return lambda lower, upper, classes, sample: NeuralTask(
            features=bounded_features(lower, upper, unit_rows=True, sample=sample),
            classes=classes,
            hidden=hidden,
            activation=activation,
            start_seed=seed,
            sample=sample,
        )
