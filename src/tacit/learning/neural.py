"""Neural classifiers and regressors in the manner of scikit-learn: the doors of the linear ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, get_args

import msgspec
import numpy as np
from sklearn.base import RegressorMixin

from tacit.data.validated import validated
from tacit.errors import ParameterError, check_choice, check_count
from tacit.learning.architecture import Architecture, read_shape
from tacit.learning.federated import Federated, FederatedClassifier, TaskOf
from tacit.learning.fitting import Request
from tacit.learning.labelled import public_targets
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import scale_target
from tacit.learning.networks import Activation
from tacit.learning.spending import warn_without_budget
from tacit.learning.task import Task, bounded_features, feature_bounds, target_bounds
from tacit.learning.training import Trained
from tacit.means import MomentBound
from tacit.numerics import Array
from tacit.privacy.run_clauses import clauses_of_start

__all__ = ["PrivateNeuralClassifier", "PrivateNeuralRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class _Neural(Federated):
    """What both have: which network, and where it starts."""

    module: Any = None
    hidden: Any = 16
    activation: Activation = "relu"
    shape: Any = None
    start_seed: int = 0

    def _request(self, moment: MomentBound | None = None) -> Request:
        """Return the parameters, checked; a name that says private is believed, so warn where nothing is."""
        request = super()._request(moment)
        warn_without_budget(self, trust=self.trust, stacklevel=3)
        return request

    def _keep(self, task: Task, run: tuple[Trained, list[str]], notes: list[str]) -> Self:
        """Keep a finished run, whose guarantee says where training started."""
        if self.budget is None:
            return super()._keep(task, run, notes)
        network = self._network()
        named = str(network) if isinstance(network, Architecture) else None
        return super()._keep(task, run, [*notes, *clauses_of_start(named)])

    def _network(self) -> Architecture | Any:
        """Return what is trained: by its name, or a module."""
        check_choice("activation", self.activation, get_args(Activation))
        check_count("start_seed", self.start_seed, low=0)
        if self.module is not None and not isinstance(self.module, str):
            return self.module
        named = self._named()
        return named if self.shape is None else named.of_images(read_shape(self.shape))

    def _named(self) -> Architecture:
        """Return what is trained, by its name or by its hidden units."""
        if self.module is None:
            several = isinstance(self.hidden, Sequence | np.ndarray) and not isinstance(self.hidden, str)
            given = self.hidden if several else (self.hidden,)
            hidden = tuple(check_count("hidden", units) for units in given)
            if not hidden:
                raise ParameterError("hidden must be units of one hidden layer or more, got none.")
            return Architecture(kind="mlp", hidden=hidden, activation=self.activation)
        named = Architecture.of(self.module, argument="module")
        if named.kind == "linear":
            raise ParameterError(
                "module must name a network, got 'linear': that is FederatedLogisticRegression, or "
                "FederatedLinearRegression."
            )
        return msgspec.structs.replace(named, activation=self.activation)

    def _task(
        self, network: Architecture | Any, lower: Array, upper: Array, *, unit_rows: bool, **facts: Any
    ) -> Task:
        """Return the public shape of the network."""
        bounded = bounded_features(lower, upper, unit_rows=unit_rows, sample=facts["sample"])
        if isinstance(network, Architecture):
            return network.task(bounded, start_seed=self.start_seed, **facts)
        from tacit.learning.modules import architectures

        return architectures.task_of(network, bounded, shape=self.shape, start_seed=self.start_seed, **facts)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNeuralClassifier(_Neural, FederatedClassifier):
    """A network across silos, for two classes or more.

    Args:
        module: None: a perceptron of `hidden` units. "scattering" or "scattering:2", a linear model of fixed
            wavelet features of square images; "cnn", a small convolutional network of such features; or
            "package.module:Class". Or a module of PyTorch, or a class or function that makes one: it takes
            features, shape (n, *shape), each about 1, and returns one score for two classes (of the second),
            or one for each. Needs the extra `torch`, but for perceptrons with one hidden layer and wavelet
            features.
        hidden: Units of the hidden layer of a perceptron, or of each of several, the first one first. More of
            them fit more, and take more noise: it grows with the square root of the number of parameters.
        activation: "relu", "tanh" or "softplus", of perceptrons and "cnn".
        shape: Of a record, for a module of one's own: such as (1, 28, 28); None is (d,). Else of images:
            (height, width), or channels first. A perceptron then sees `BandPassFeatures` of them, which do
            better than pixels under privacy; None is no images, and square ones for "cnn" and "scattering".
        start_seed: Seed of the random weights that training starts from. They are public and cost nothing.
            A module that is given as such starts from its own.
        trust: As in `FederatedLogisticRegression`.
        budget: Privacy budget of each silo; None trains without privacy: `guarantee_` says so, and so does a
            warning, unless trust is "none".
        neighbours: As in `FederatedLogisticRegression`.
        bounds: Public bounds (lower, upper) of the features; needed with a budget.
        public: As in `FederatedLogisticRegression`.
        classes: Public labels. None reads them off `y`, with a warning under a budget.
        algorithm: "auto": averaged plain steps, as long as noise allows; or a name of `ALGORITHMS` or an
            `Algorithm` that needs neither smoothness nor convexity, such as `NoisySpider(step_size=...)`. Its
            step size has to be given.
        rounds: Number of rounds, or "auto".
        clip: Clipping bound of a unit's gradient; None is what goes with the rule, or the share that goes
            with a named algorithm; no clipping without budget. No gradient of a network has a bound of its
            own.
        l1: As in `FederatedLogisticRegression`, on the weights of all layers.
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
        model_: The trained `NetworkModel`; of wavelet features, a `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: A single one under central trust, else one for each silo.
        guarantee_alone_: As in `FederatedLogisticRegression`.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import PrivateNeuralClassifier
        >>> from tacit.privacy import PrivacyBudget
        >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
        >>> y = X[:, 0] * X[:, 1] > 0  # which no linear model can tell
        >>> model = PrivateNeuralClassifier(
        ...     trust="central", budget=PrivacyBudget(3.0, 1e-6), bounds=(-1, 1), classes=[False, True],
        ...     rounds=40, random_state=0,
        ... ).fit(X, y)
        >>> bool(model.score(X, y) > 0.85), model.guarantee_.epsilon
        (True, 3.0)

    Reference:
        Lowy (2023), Section 3.3.3, for networks over silos; Abadi et al. (2016), "Deep learning with
        differential privacy".
    """

    def _task_of(self) -> TaskOf:
        """Return what makes the task of the network."""
        network = self._network()
        return lambda lower, upper, classes, sample: self._task(
            network, lower, upper, unit_rows=True, classes=classes, sample=sample
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateNeuralRegressor(RegressorMixin, _Neural):  # type: ignore[misc]
    """A network across silos that predicts a number.

    Args:
        target_bounds: Public bounds of the target; needed with a budget, "data" reads them off the data with
            a warning.
        loss: "squared", "huber", "absolute", "quantile" or "poisson", as in `FederatedLinearRegression`.
        quantile: The same.
        threshold: The same.
        smoothing: The same.
        module: As in `PrivateNeuralClassifier`; the module returns one number.
        hidden: The same.
        activation: The same.
        shape: The same.
        start_seed: The same.
        trust: As in `FederatedLinearRegression`, as all that follow.
        budget: The same.
        neighbours: The same.
        bounds: The same.
        public: The same.
        algorithm: As in `PrivateNeuralClassifier`.
        rounds: The same.
        clip: The same, in units of the target scaled to [-1, 1].
        l1: The same.
        l2: The same.
        group_lasso: The same.
        groups: The same.
        domain: The same.
        noise: The same.
        random_state: The same.
        ledger: The same.
        n_min: The same.
        colluding: The same.
        recover: The same.

    Attributes:
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.
        model_: The trained `NetworkModel`; of wavelet features, a `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: A single one under central trust, else one for each silo.
        guarantee_alone_: As in `FederatedLogisticRegression`.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import PrivateNeuralRegressor
        >>> from tacit.privacy import PrivacyBudget
        >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 1))
        >>> model = PrivateNeuralRegressor(
        ...     trust="central", budget=PrivacyBudget(3.0, 1e-6), bounds=(-1, 1), target_bounds=(0, 1),
        ...     random_state=0,
        ... ).fit(X, X[:, 0] ** 2)
        >>> bool(model.score(X, X[:, 0] ** 2) > 0.8)
        True

    Reference:
        As for `PrivateNeuralClassifier`.
    """

    target_bounds: Any = None
    loss: str = "squared"
    quantile: float = 0.5
    threshold: float | None = None
    smoothing: float | None = None

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Targets, shape (n,).
            silos: Silo of each record, shape (n,); None: all of them are in one silo.
            persons: Person of each record, shape (n,); what is protected is then a person in one silo.

        Raises:
            TacitError: As in `FederatedLinearRegression.fit`; nothing was spent.
            ValueError: X or y is not numbers, or not finite (from scikit-learn).
        """
        records = X
        X, y = validated(self, X, y, y_numeric=True)
        y = y.astype(np.float64)
        request, network = self._request(), self._network()
        loss = LossChoice.of(
            self.loss, quantile=self.quantile, threshold=self.threshold, smoothing=self.smoothing
        )
        lower, upper, notes = feature_bounds(self.bounds, X, private=request.private)
        low, high, more = target_bounds(
            self.target_bounds, y, private=request.private, counts=loss.name == "poisson"
        )
        encode = partial(public_targets, bounds=self.target_bounds, target=(low, high))
        sample = self._sample(records, lower, upper, encode)
        task = self._task(
            network, lower, upper, unit_rows=False, target=(low, high), sample=sample, loss=loss
        )
        outcomes = task.outcomes(scale_target(y, (low, high)))
        run = request.train(task, X, outcomes, silos=silos, persons=persons, ledger=self.ledger)
        return self._keep(task, run, notes + more)
