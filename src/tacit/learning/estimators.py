"""scikit-learn style estimators: `fit(X, y, silos=...)`, `predict`, and a guarantee that can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from tacit.data.validated import validated
from tacit.errors import ParameterError
from tacit.learning.architecture import Architecture, read_shape
from tacit.learning.federated import Federated, FederatedClassifier, TaskOf
from tacit.learning.labelled import public_targets
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import scale_target
from tacit.learning.raw_features import read_moment
from tacit.learning.task import LinearTask, bounded_features, feature_bounds, target_bounds
from tacit.numerics import Array

__all__ = ["FederatedLinearRegression", "FederatedLogisticRegression"]


def _has_probabilities(model: FederatedLogisticRegression) -> bool:
    """Whether the loss has probabilities; scikit-learn asks for an error that says why not."""
    if model.loss == "hinge":
        raise AttributeError(
            "predict_proba needs loss='logistic', got 'hinge', whose scores are margins: use "
            "decision_function."
        )
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class FederatedLogisticRegression(FederatedClassifier):
    """Logistic regression across silos, two classes or more; or a linear support vector machine, of two.

    Args:
        loss: "logistic", or "hinge": a linear support vector machine, which has no probabilities.
        smoothing: For "hinge", half the width over which its kink at margin 1 is rounded, >= 0; None is 0.3,
            and 0 leaves the kink, which takes an algorithm that needs no smoothness ("p-sgd").
        shape: (height, width), or channels first, of images that records are the pixels of. The model is then
            linear in `BandPassFeatures` of them, which do better than pixels under privacy; None is no
            images.
        trust: "local" (every silo protects its records from everybody), "aggregate" (everybody sees only the
            sum of what two silos or more send, and every silo adds a share of the noise), "shuffle" (a
            shuffler mixes what at least two silos send, and every record brings a little of the noise),
            "central" (the server adds the noise) or "none".
        budget: Privacy budget of each silo; None trains without privacy, and `guarantee_` says so. Needs
            delta > 0, because the noise is Gaussian.
        neighbours: What may differ between data sets that must look alike: "replace-one" (a record has other
            values), "zero-out" (it contributes nothing) or "add-remove" (it is not there; the numbers of
            records are taken to be public, and the guarantee says so). The last two take half the noise for
            the same numbers of a weaker promise.
        bounds: Public bounds (lower, upper) of the features, numbers or one per feature. Needed with a
            budget; "data" reads them off the data with a warning, and the guarantee then names that.
        public: Public records, shape (m, d), with the columns of X in their order; none of them may be a
            record of X. Features are centred at their means and divided by their spreads, instead of by the
            bounds, which still clip. None goes by the bounds. A tuple (X, y) has labels too, shape (m,): some
            algorithms, such as "semi-dp", train on them beside the private ones. It needs `classes`. Pixels
            of images (`shape`) are scaled by their bounds alone: what has no other use of them is refused.
        classes: Public labels. None reads them off `y`, with a warning under a budget.
        algorithm: "auto", which goes by public facts, a name of `ALGORITHMS`, or an `Algorithm`.
        rounds: Number of rounds, or "auto": the number with the best error bound, from public facts. An
            `Algorithm` has its own.
        clip: Clipping bound of a unit's gradient; None is a share of the Lipschitz constant that goes with
            the algorithm, no clipping without budget. "auto", or an `AutoClip`, spends a part of the budget
            on a first round that chooses it, as `trained_.clip` then says.
        l1: Strength of an L1 penalty, added to the mean loss; it makes parameters zero.
        l2: Strength of a squared L2 penalty, (l2 / 2) times the squared norm. Penalties are on all
            parameters of the scaled features, the constant's included, and cost no privacy.
        group_lasso: Strength of a penalty on the norm of each group; it makes whole groups zero.
        groups: Group of each feature, d labels, from public knowledge: such as the columns that one-hot
            features were made from. Only needed with `group_lasso`.
        domain: Where parameters stay: "ball:RADIUS", for all of them, the constant's included;
            "box:LOW:HIGH", "simplex" or "simplex:TOTAL" for the weights of features, those of each class by
            themselves, and free constants; a `tacit.numerics.L2Ball`, `Box` or `Simplex`; or None. Some
            penalties have no place in some domains, and some algorithms take neither: errors say which.
        noise: "discrete-gaussian" (exact, for deployment), "gaussian" (continuous, for simulation; warns
            without `random_state`), or "auto": continuous where `random_state` is set.
        random_state: Seed of a simulation; None takes secret randomness from the operating system.
        ledger: The account of the data: a `Ledger`, or the path of one, or of a folder with one per silo (for
            several silos under local trust). Every fit is charged to it before the first answer, and refused
            where it costs more than is left; excludes `random_state`. None keeps no account: from the second
            private fit on the same records on, there is a warning with the sum.
        n_min: Under shuffle trust, and under aggregate trust with `recover`, the silos below which a round is
            given up, >= 2; None is all of them. Fewer need more noise.
        colluding: Under shuffle and aggregate trust, how many silos may tell what they sent, so that their
            noise hides nobody; below `n_min`, under aggregate trust by 2 or more.
        recover: Under aggregate trust, whether a round goes on without silos that are gone, of which `n_min`
            must be left; else all of them must answer.

    Attributes:
        classes_: Labels.
        coef_: Weights of the features scaled to [-1, 1] within their bounds, or by the public sample, so that
            their sizes compare; shape (1, d) for two classes, else (classes, d).
        intercept_: The constant of each score, shape (1,) or (classes,); a score is then divided by the
            length of the scaled record, which changes no label of two classes. Of images, both are of
            filtered pixels.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.
        model_: The trained `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: A single one under central trust, else one for each silo.
        guarantee_alone_: What is learnt by whoever sees a silo's messages alone: under shuffle trust before
            they are shuffled, under aggregate trust if all others collude. The weakest of
            `guarantees_alone_`, and much weaker than `guarantee_` or none at all. None under other trust
            models.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tacit.learning import FederatedLogisticRegression
        >>> from tacit.privacy import PrivacyBudget
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> bounds = (0.0, [30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 22, 550, 0.04, 0.2, 0.4,
        ...     0.06, 0.1, 0.03, 40, 50, 260, 4300, 0.3, 1.2, 1.3, 0.3, 0.7, 0.3])
        >>> model = FederatedLogisticRegression(
        ...     budget=PrivacyBudget(4.0, 1e-5), bounds=bounds, classes=[0, 1], random_state=0
        ... ).fit(X, y, silos=np.arange(len(y)) % 5)
        >>> bool(model.score(X, y) > 0.85), model.guarantee_.epsilon
        (True, 4.0)

    Reference:
        Lowy (2023), Sections 3.2.1 to 3.2.3.
    """

    loss: str = "logistic"
    smoothing: float | None = None
    shape: Any = None

    def _task_of(self) -> TaskOf:
        """Return what makes a linear task with the loss."""
        loss = LossChoice.of(self.loss, smoothing=self.smoothing)
        model = Architecture(image=() if self.shape is None else read_shape(self.shape))
        return lambda lower, upper, classes, sample: model.task(
            bounded_features(lower, upper, unit_rows=True, sample=sample),
            classes=classes,
            sample=sample,
            loss=loss,
        )

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # of scikit-learn
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n, classes).

        Raises:
            AttributeError: The loss is the hinge, whose scores are no probabilities.
        """
        return super().predict_proba(X)


@dataclass(kw_only=True, eq=False, repr=False)
class FederatedLinearRegression(RegressorMixin, Federated):  # type: ignore[misc]
    """Least squares across silos; or Huber, median, quantile or Poisson regression, by their loss.

    Args:
        loss: "squared"; "huber", a line for large errors, which outliers then pull less; "absolute", which
            fits the median, and "quantile" any other quantile; or "poisson" for counts and amounts >= 0: the
            log of their mean is linear in the features, and predictions are at most the upper bound.
        quantile: For "quantile": the share of targets that should lie below what is predicted, in (0, 1).
        threshold: For "huber": the error from which on it is a line, in units of the target; None is a tenth
            of the width of `target_bounds`.
        smoothing: For "absolute" and "quantile": half the width over which their kink is rounded, in units of
            the target, >= 0. None is a fiftieth of the width of `target_bounds`; 0 leaves the kink, which
            takes an algorithm that needs no smoothness ("p-sgd").
        trust: As in `FederatedLogisticRegression`.
        budget: Privacy budget of each silo; None trains without privacy, and `guarantee_` says so.
        neighbours: As in `FederatedLogisticRegression`.
        bounds: Public bounds (lower, upper) of the features; needed with a budget, unless there is a
            moment.
        public: As in `FederatedLogisticRegression`; (X, y) needs `target_bounds`.
        target_bounds: Public bounds of the target; needed with a budget, "data" warns as for `bounds`. Those
            of "poisson" start at 0 or above, and those that are read off the data at 0.
        moment: Instead of all bounds, for heavy tails: (k, r), or a `tacit.means.MomentBound`, of which
            (E |g|^k)^(1/k) <= r for the gradient g of a record's loss, at every point of the domain, with
            features and targets in their own units and a constant feature 1. It is known beforehand, or from
            public records, and sets the clip and the steps: if it is wrong the model is worse, and no
            guarantee is. Features and targets stay as they are, whatever they are; parameters stay in a
            ball, "ball:5" where `domain` says no other.
        algorithm: As in `FederatedLogisticRegression`.
        rounds: Number of rounds, or "auto".
        clip: Clipping bound of a unit's gradient, in units of the target scaled to [-1, 1] (of "poisson", in
            units of an e^2-th of the upper bound); None is 0.3 for "squared" and for others a share of their
            Lipschitz constant, no clipping without budget. A "quantile" is clipped at the whole of it: a
            smaller clip fits another quantile, one nearer to the median. With a moment, None is what follows
            from that, and costs nothing. "auto" and `AutoClip` are as in `FederatedLogisticRegression`.
        l1: As in `FederatedLogisticRegression`, beside the mean loss of scaled targets (half the mean squared
            error).
        l2: As `l1`.
        group_lasso: As in `FederatedLogisticRegression`.
        groups: As in `FederatedLogisticRegression`.
        domain: As in `FederatedLogisticRegression`.
        noise: As in `FederatedLogisticRegression`.
        random_state: As in `FederatedLogisticRegression`.
        ledger: As in `FederatedLogisticRegression`.
        n_min: As in `FederatedLogisticRegression`.
        colluding: As in `FederatedLogisticRegression`.
        recover: As in `FederatedLogisticRegression`.

    Attributes:
        coef_: Weights of the features scaled to [-1, 1] within their bounds, or by the public sample, for the
            target scaled to [-1, 1] (of "poisson", for the log of the mean); shape (d,). A score is divided
            by the most that a scaled record is long. With a moment: of features and targets as they are.
        intercept_: The constant of the score, a number; a score of 0 of "poisson" predicts an e^2-th of the
            upper bound.
        feature_names_in_: Names of the columns, shape (d,), if X was a frame.
        model_: The trained `LinearModel`.
        guarantee_: The weakest of `guarantees_`.
        guarantees_: A single one under central trust, else one for each silo.
        guarantee_alone_: What is learnt by whoever sees a silo's messages alone: under shuffle trust before
            they are shuffled, under aggregate trust if all others collude. The weakest of
            `guarantees_alone_`, and much weaker than `guarantee_` or none at all. None under other trust
            models.
        guarantees_alone_: One for each silo under shuffle and aggregate trust, else none.
        trained_: Plan, rounds, noise multiplier and traffic.
        n_features_in_: Number of features.

    Example:
        >>> import numpy as np
        >>> from tacit.learning import FederatedLinearRegression
        >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
        >>> model = FederatedLinearRegression().fit(X, 2 * X[:, 0] + 1)
        >>> model.predict([[0.5]]).round(2).tolist()
        [2.0]
        >>> print(model.guarantee_)  # doctest: +NORMALIZE_WHITESPACE
        No privacy is claimed: everybody outside silo '0', the server included, may learn anything about the
        data.

    Reference:
        Lowy (2023), Sections 3.2.1 to 3.2.3.
    """

    target_bounds: Any = None
    loss: str = "squared"
    quantile: float = 0.5
    threshold: float | None = None
    smoothing: float | None = None
    moment: Any = None

    def fit(self, X: Any, y: Any, silos: Any = None, persons: Any = None) -> Self:
        """Train.

        Args:
            X: Shape (n, d), finite numbers.
            y: Targets, shape (n,).
            silos: Silo of each record, shape (n,); None: all of them are in one silo.
            persons: Person of each record, shape (n,); what is protected is then a person in one silo.

        Raises:
            DataError: `silos` or `persons` has another shape, `public` other columns or values.
            ParameterError: A parameter is out of range, or does not fit the data; nothing was spent.
            BudgetError: The ledger has less left than the fit costs; nothing was spent.
            LedgerError: The ledger cannot be used, or is about other neighbours or silos; nothing was spent.
            ValueError: X or y is not numbers, or not finite (from scikit-learn).
        """
        records = X
        X, y = validated(self, X, y, y_numeric=True)
        y = y.astype(np.float64)
        moment = read_moment(self.moment)
        request = self._request(moment)
        loss = LossChoice.of(
            self.loss, quantile=self.quantile, threshold=self.threshold, smoothing=self.smoothing
        )
        if moment is None:
            task, notes = self._bounded(records, X, y, loss, private=request.private)
        else:
            task, notes = self._raw(X, loss), []
        outcomes = task.outcomes(scale_target(y, task.target))
        run = request.train(task, X, outcomes, silos=silos, persons=persons, ledger=self.ledger)
        self._keep(task, run, notes)
        # One output, in the shapes of scikit-learn's LinearRegression.
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        return self

    def _bounded(
        self, records: Any, X: Array, y: Array, loss: LossChoice, *, private: bool
    ) -> tuple[LinearTask, list[str]]:
        """Return the task of bounded features and targets, and clauses for the statement."""
        lower, upper, notes = feature_bounds(self.bounds, X, private=private)
        low, high, more = target_bounds(self.target_bounds, y, private=private, counts=loss.name == "poisson")
        encode = partial(public_targets, bounds=self.target_bounds, target=(low, high))
        sample = self._sample(records, lower, upper, encode)
        task = LinearTask.of(lower, upper, target=(low, high), sample=sample, loss=loss)
        return task, notes + more

    def _raw(self, X: Array, loss: LossChoice) -> LinearTask:
        """Return the task of features and targets as they are."""
        for name in ("bounds", "target_bounds", "public"):
            if (given := getattr(self, name)) is not None:
                raise ParameterError(
                    f"{name} must be None with a moment, which is of gradients of features and targets as "
                    f"they are, got a {type(given).__name__}."
                )
        return LinearTask.raw(X.shape[1], loss=loss)
