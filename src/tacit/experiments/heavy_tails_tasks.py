"""The problems that heavy-tailed methods are compared on: their laws, what is stated of them, their risk."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import optimize

from tacit.learning import Absolute, DistanceObjective, LinearObjective, Logistic, Objective, Records, Squared
from tacit.means import MomentBound, MomentKind
from tacit.numerics import Array, L1OverBall, L2Ball, Regularizer
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = [
    "DIM",
    "Absolutes",
    "Lasso",
    "LeastSquares",
    "Methods",
    "ParetoLogistic",
    "ParetoMean",
    "Task",
]

Methods = tuple[tuple[str, bool], ...]
"""Names of algorithms, and whether all records are in every round."""

DIM = 10
_TAIL, ORDER = 2.3, 2.2
"""Of Pareto features: the tail index, above which no moment is finite, and the order that is stated."""


@dataclass(frozen=True)
class Task:
    """A law of records, a loss, and what is stated of them before a record is seen.

    Attributes:
        fresh: Records that the risk is measured on, where it has no formula.
    """

    fresh: int = 200_000

    name: ClassVar[str]
    radius: ClassVar[float]
    """Of the ball that parameters stay in; steps start at its middle."""
    smoothness: ClassVar[float]
    """Of the expected loss."""
    mu: ClassVar[float]
    """Its strong convexity, or what methods are told of it."""
    budget: ClassVar[PrivacyBudget] = PrivacyBudget(1.0, 1e-6)
    plain: ClassVar[str] = "minibatch"
    """DP-SGD, for such a loss."""
    sizes: ClassVar[tuple[int, ...]] = ()
    """Numbers of records of its own; else those of the experiment."""
    methods: ClassVar[Methods] = ()
    """What is compared on it alone; else what the experiment compares."""

    @property
    def ball(self) -> Regularizer:
        """Where parameters stay, and what is added to the risk."""
        return L2Ball(self.radius)

    @property
    def best(self) -> Array:
        """Return the parameters of the least risk, shape (10,)."""
        return _solution()

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """Loss of a record."""

    @property
    @abstractmethod
    def moment(self) -> MomentBound:
        """What is stated of gradients, anywhere in the ball."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """Draw records."""

    @abstractmethod
    def excess(self, w: Array) -> float:
        """Return how far the risk is above its minimum."""


@dataclass(frozen=True, kw_only=True)
class _Told(LinearObjective):
    """A linear model of features without a norm bound, of which the smoothness of the expected loss is told.

    Attributes:
        told: That smoothness, which all step sizes go by.
    """

    told: float

    @property
    def smoothness(self) -> float:
        """What is told; that of a record's loss has no bound."""
        return self.told


class LeastSquares(Task):
    """Features of Student's t with 6 degrees, noise with 4, in the unit ball (Lowy 2023 has no experiment).

    A t with 6 degrees has the variance 3/2 and the fourth moment 13.5, one with 4 the variance 2. So the
    excess is (1/2) (3/2) |w - w*|^2, and E |g|^2 = |w - w*|^2 (13.5 + 9 (3/2)^2) + 2 (15), 165 at most in the
    ball. The noise is that of (1/2)-zCDP, which is this budget.
    """

    name, radius, smoothness, mu = "t6, least squares", 1.0, 1.5, 1.5
    budget = PrivacyBudget(4.377178, 1e-5)

    @property
    def objective(self) -> LinearObjective:
        """Half the squared error."""
        return _Told(loss=Squared(), features=DIM, told=self.smoothness)

    @property
    def moment(self) -> MomentBound:
        """The second moment."""
        return MomentBound(2.0, math.sqrt(165.0))

    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """Draw records."""
        X = rng.standard_t(6, (n, DIM))
        return Records.of(X, X @ self.truth + rng.standard_t(4, n))

    @property
    def truth(self) -> Array:
        """Return the weights that labels follow, of length 1."""
        return _solution()

    def excess(self, w: Array) -> float:
        """Return how far the risk is above its minimum."""
        return 0.75 * float(np.sum((w - self.truth) ** 2))


class Lasso(LeastSquares):
    """The same with labels that five features make, and a penalty of 0.15 times the sum of all sizes."""

    name = "t6, lasso"
    methods = (("clipped-prox-sgd", False), ("clipped-prox-sgd", True))

    strength: ClassVar[float] = 0.15

    @property
    def ball(self) -> Regularizer:
        """The penalty, in the unit ball."""
        return L1OverBall(self.strength, self.radius)

    @property
    def truth(self) -> Array:
        """Return equal weights of five features, of length 1."""
        return np.repeat([1 / math.sqrt(5), 0.0], 5)

    @property
    def best(self) -> Array:
        """Return the minimum: features are uncorrelated, so that a soft threshold gives it."""
        return np.maximum(self.truth - self.strength / self.smoothness, 0.0)

    def excess(self, w: Array) -> float:
        """Return how far the risk, penalty included, is above its minimum."""
        return self._risk(w) - self._risk(self.best)

    def _risk(self, w: Array) -> float:
        """Return the risk up to a constant."""
        return super().excess(w) + self.strength * float(np.abs(w).sum())


class ParetoMean(Task):
    """The squared distance to records of positive Pareto features, scaled so that their mean has length 1.

    A feature u >= 1 has P(u > t) = t^-2.3; the moment of order 2.2 of a gradient w - x is at most the radius
    of the ball plus that of x, which is at most sqrt(d) times that of a feature, 23^(1/2.2).
    """

    name, radius, smoothness, mu = "Pareto, mean", 2.0, 1.0, 1.0

    @property
    def objective(self) -> DistanceObjective:
        """Half the squared distance."""
        return DistanceObjective(size=DIM, lipschitz=math.inf, smoothness=1.0)

    @property
    def moment(self) -> MomentBound:
        """Of the order 2.2."""
        unit = math.sqrt(DIM) * _TAIL / (_TAIL - 1)
        return MomentBound(ORDER, self.radius + _pareto_length() / unit)

    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """Draw records."""
        X = (rng.pareto(_TAIL, (n, DIM)) + 1) / (math.sqrt(DIM) * _TAIL / (_TAIL - 1))
        return Records.of(X, np.zeros(n))

    def excess(self, w: Array) -> float:
        """Return how far the risk is above its minimum."""
        return 0.5 * float(np.sum((w - _solution()) ** 2))


class ParetoLogistic(Task):
    """Logistic regression on Pareto features of either sign and variance 1; labels follow the model.

    A gradient is no longer than its record, of which the moment of order 2.2 is at most sqrt(d) times that of
    a feature. The risk is that of fresh records of the same law.
    """

    name, radius, smoothness, mu = "Pareto, logistic", 2.0, 0.25, 0.05

    @property
    def objective(self) -> LinearObjective:
        """The logistic loss."""
        return _Told(loss=Logistic(), features=DIM, told=self.smoothness)

    @property
    def moment(self) -> MomentBound:
        """Of the order 2.2."""
        return MomentBound(ORDER, _pareto_length() / math.sqrt(_TAIL / (_TAIL - 2)))

    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """Draw records."""
        signs = np.where(rng.random((n, DIM)) < 0.5, -1.0, 1.0)
        X = signs * (rng.pareto(_TAIL, (n, DIM)) + 1) / math.sqrt(_TAIL / (_TAIL - 2))
        return Records.of(X, (rng.random(n) < 1 / (1 + np.exp(-X @ _solution()))).astype(np.float64))

    @cached_property
    def _measured(self) -> tuple[Records, float]:
        """Fresh records, and the least risk on them."""
        records, goal = self.draw(self.fresh, simulated(0, "heavy-tails/fresh")), self.objective

        def risk(w: Array) -> tuple[float, Array]:
            return float(goal.value(w, records).mean()), goal.gradients(w, records).mean(axis=0)

        return records, float(optimize.minimize(risk, _solution(), jac=True, method="L-BFGS-B").fun)

    def excess(self, w: Array) -> float:
        """Return how far the risk is above its minimum."""
        records, least = self._measured
        return float(self.objective.value(w, records).mean()) - least


class Absolutes(Task):
    """Absolute errors, which have a kink, where one label of twenty is off by a hundred or so.

    Features have Student's t with 5 degrees, variance 5/3 and fourth moment 25. A gradient is as long as its
    features at most, wherever parameters are: E |x|^4 = 10 (25) + 90 (5/3)^2 = 500. The noise is that of
    2-zCDP, which is this budget.
    """

    name, radius, smoothness, mu = "absolute errors", 2.0, math.inf, 0.0
    budget = PrivacyBudget(9.997256, 1e-5)
    plain: ClassVar[str] = "p-sgd"
    sizes: ClassVar[tuple[int, ...]] = (256, 1024, 4096)
    methods = (("localized", False), ("clipped-subgradient", False))

    @property
    def objective(self) -> LinearObjective:
        """The absolute error, kink and all."""
        return LinearObjective(loss=Absolute(smoothing=math.inf), features=DIM)

    @property
    def moment(self) -> MomentBound:
        """Of the order 4, of the longest gradient in the ball."""
        return MomentBound(4.0, 500.0**0.25, MomentKind.SUP_INSIDE)

    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """Draw records."""
        X = rng.standard_t(5, (n, DIM))
        spread = np.where(rng.random(n) < 0.05, 100.0, 0.3)
        return Records.of(X, X @ _solution() + spread * rng.standard_normal(n))

    @cached_property
    def _measured(self) -> tuple[Records, float]:
        """Fresh records, and the risk of the solution on them: errors about it are symmetric."""
        records = self.draw(self.fresh, simulated(0, "heavy-tails/rough"))
        return records, float(self.objective.value(_solution(), records).mean())

    def excess(self, w: Array) -> float:
        """Return how far the risk is above its minimum."""
        records, least = self._measured
        return float(self.objective.value(w, records).mean()) - least


def _solution() -> Array:
    """Return the parameters that records follow, of length 1."""
    return np.full(DIM, 1 / math.sqrt(DIM))


def _pareto_length() -> float:
    """Return a bound on (E |u|^k)^(1/k) of d unscaled features: E u^k is a / (a - k)."""
    return math.sqrt(DIM) * math.pow(_TAIL / (_TAIL - ORDER), 1 / ORDER)
