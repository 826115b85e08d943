"""FERMI: training with an ERMI penalty, on the whole data or on batches of any size.

The objective is the mean cross-entropy, (l2 / 2) |theta|^2 and weight times ERMI. ERMI is a maximum over
dual variables W of means over records, so that it is a min-max problem with unbiased gradients from batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from tacit.errors import check_count, check_non_negative, check_positive
from tacit.fairness.penalty import ErmiPenalty, Membership
from tacit.fairness.scores import Scores, cross_entropy, probabilities, pull_back
from tacit.numerics import Array, IntArray

__all__ = ["FairProblem", "Fitted", "StepSizes", "fermi", "fermi_exact"]


@dataclass(frozen=True)
class FairProblem:
    """What is minimised: records, a model, and what fairness costs.

    Attributes:
        model: Scores of m classes.
        X: Shape (n, d), as the model takes it.
        y: Place of each record's class, shape (n,).
        penalty: ERMI under a notion.
        membership: Condition and group of each record.
        weight: Of the penalty beside the mean loss, >= 0.
        l2: Half of it times the squared norm of the parameters is added, >= 0.
    """

    model: Scores
    X: Array
    y: IntArray
    penalty: ErmiPenalty
    membership: Membership
    weight: float
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("weight", self.weight)
        check_non_negative("l2", self.l2)

    def value(self, theta: Array) -> float:
        """Return the objective, with ERMI at its maximum over W."""
        scores = self.model.scores(theta, self.X)
        loss = float(cross_entropy(scores, self.y).mean()) + self.l2 / 2 * float(theta @ theta)
        return loss + self.weight * self.penalty.value(probabilities(scores), self.membership)

    def gradient(self, theta: Array, W: Array, batch: IntArray | slice = slice(None)) -> tuple[Array, Array]:
        """Return the gradients in theta and in W of the mean over a batch.

        Args:
            theta: Shape (size,).
            W: Shape (z, k, m).
            batch: Places of records.

        Returns:
            Shapes (size,) and (z, k, m); the second is of the penalty alone, without its weight.
        """
        X, y, of = self.X[batch], self.y[batch], _part(self.membership, batch)
        F = probabilities(self.model.scores(theta, X))
        slopes = self.weight * pull_back(F, self.penalty.costs(W, of)) + F
        slopes[np.arange(len(y)), y] -= 1.0
        down = self.model.pull(theta, X, slopes) / len(y) + self.l2 * theta
        return down, self.penalty.dual_gradient(W, F, of)


@dataclass(frozen=True)
class StepSizes:
    """Steps of descent in theta and of ascent in W, both divided by 1 + 4 t / T.

    Attributes:
        model: Of theta, > 0.
        dual: Of W, times the weight of the penalty: in (0, 1/2], where 1/2 is the step of its curvature. None
            takes that of the model, at most 1/2.
    """

    model: float
    dual: float | None = None

    def __post_init__(self) -> None:
        check_positive("model step", self.model)
        if self.dual is not None:
            check_positive("dual step", self.dual)

    @property
    def of_dual(self) -> float:
        """Step of W, times the weight."""
        return min(self.model, 0.5) if self.dual is None else self.dual


@dataclass(frozen=True)
class Fitted:
    """What training ended with.

    Attributes:
        theta: Parameters, shape (size,).
        dual: Dual variables, shape (z, k, m).
        steps: Gradient steps, or iterations.
    """

    theta: Array
    dual: Array
    steps: int


def fermi_exact(
    problem: FairProblem, *, start: Array | None = None, iterations: int = 300, tolerance: float = 1e-9
) -> Fitted:
    """Minimise on the whole data by L-BFGS, with W at its maximum in every step.

    By Danskin's theorem the gradient of the maximum is that at the maximiser.

    Args:
        problem: Of all records.
        start: Shape (size,); None starts where the model says.
        iterations: At most so many.
        tolerance: Relative decrease of the objective at which to stop.

    Reference:
        Lowy (2023), section 5.3, deterministic form of Algorithm 9.
    """

    def both(theta: Array) -> tuple[float, Array]:
        scores = problem.model.scores(theta, problem.X)
        F = probabilities(scores)
        W = problem.penalty.optimal_dual(F, problem.membership)
        loss = float(cross_entropy(scores, problem.y).mean()) + problem.l2 / 2 * float(theta @ theta)
        slopes = F.copy()
        slopes[np.arange(len(F)), problem.y] -= 1.0
        if problem.weight:
            loss += problem.weight * problem.penalty.value(F, problem.membership)
            slopes += problem.weight * pull_back(F, problem.penalty.costs(W, problem.membership))
        return loss, problem.model.pull(theta, problem.X, slopes) / len(F) + problem.l2 * theta

    begin = problem.model.start() if start is None else start
    most = check_count("iterations", iterations)
    found = optimize.minimize(
        both,
        begin,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": most, "ftol": tolerance, "gtol": 1e-8},
    )
    F = probabilities(problem.model.scores(found.x, problem.X))
    return Fitted(np.asarray(found.x), problem.penalty.optimal_dual(F, problem.membership), int(found.nit))


def fermi(
    problem: FairProblem,
    *,
    steps: StepSizes,
    batch_size: int,
    epochs: int,
    rng: np.random.Generator,
    start: Array | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Minimise by stochastic gradient descent and ascent, over shuffled epochs.

    Args:
        problem: Of all records.
        steps: Step sizes.
        batch_size: Records of a step, in 1..n; a rest of the last batch of an epoch is a smaller batch.
        epochs: Passes over the data; one pass has the guarantee for the population, too.
        rng: Shuffles records.
        start: Shape (size,); None starts where the model says.
        progress: Called with the steps done and those there are.

    Reference:
        Lowy (2023), Algorithm 9 (FERMI), Theorems 67 and 69. Steps of theta and W are both taken at the same
        point, and W stays in the ball of radius sqrt(m / min p).
    """
    n = len(problem.y)
    b, passes = check_count("batch_size", batch_size, high=n), check_count("epochs", epochs)
    theta = problem.model.start() if start is None else start.copy()
    W = problem.penalty.start()
    total, t = passes * math.ceil(n / b), 0
    for _ in range(passes):
        order = rng.permutation(n)
        for first in range(0, n, b):
            batch = order[first : first + b]
            down, up = problem.gradient(theta, W, batch)
            decay = 1 + 4 * t / total
            theta = theta - steps.model / decay * down
            if problem.weight:
                W = problem.penalty.project(W + steps.of_dual / decay * up)
            t += 1
            if progress is not None:
                progress(t, total)
    return Fitted(theta, W, t)


def _part(of: Membership, batch: IntArray | slice) -> Membership:
    """Return the records of a batch, without a copy of all."""
    return of if isinstance(batch, slice) else of.take(batch)
