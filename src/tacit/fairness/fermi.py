"""FERMI: training with an ERMI penalty, on the whole data or on batches of any size.

The objective is the mean cross-entropy, (l2 / 2) |theta|^2 and weight times ERMI. ERMI is a maximum over
dual variables W of means over records, so that it is a min-max problem with unbiased gradients from batches.
Other penalties are trained by the same loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize

from tacit.errors import check_count, check_non_negative, check_positive, check_probability
from tacit.fairness.penalty import Climber, Membership, Penalty
from tacit.fairness.scores import Scores, cross_entropy, probabilities
from tacit.numerics import Array, IntArray

__all__ = ["FairProblem", "Fitted", "StepSizes", "fermi", "fermi_exact"]


@dataclass(frozen=True)
class FairProblem:
    """What is minimised: records, a model, and what unfairness costs.

    Attributes:
        model: Scores of m classes.
        X: Shape (n, d), as the model takes it, float64 or float32; no copy of it is made.
        y: Place of each record's class, shape (n,).
        penalty: ERMI under a notion, or another penalty.
        membership: Condition and group of each record.
        weight: Of the penalty beside the mean loss, >= 0.
        l2: Half of it times the squared norm of the parameters is added, >= 0.
    """

    model: Scores
    X: Array
    y: IntArray
    penalty: Penalty
    membership: Membership
    weight: float
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("weight", self.weight)
        check_non_negative("l2", self.l2)

    def value(self, theta: Array) -> float:
        """Return the objective, with the penalty at its maximum over dual variables."""
        return self.both(theta)[0]

    def both(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient, shape (size,).

        By Danskin's theorem the gradient of the maximum over dual variables is that at the maximiser.
        """
        scores = self.model.scores(theta, self.X)
        F = probabilities(scores)
        value = float(cross_entropy(scores, self.y).mean()) + self.l2 / 2 * float(theta @ theta)
        slopes = _loss_slopes(F, self.y)
        if self.weight:
            unfairness, more = self.penalty.evaluate(scores, F, self.membership)
            value += self.weight * unfairness
            slopes += self.weight * more
        return value, self.model.pull(theta, self.X, slopes) / len(F) + self.l2 * theta

    def gradient(
        self, theta: Array, climber: Climber, batch: IntArray | slice = slice(None)
    ) -> tuple[Array, Array, Membership]:
        """Return the gradient of the mean over a batch, given dual variables.

        Args:
            theta: Shape (size,).
            climber: Dual variables.
            batch: Places of records.

        Returns:
            The gradient, shape (size,), and what the dual variables climb by: probabilities of the batch,
            shape (b, m), and its membership.
        """
        X, y = self.X[batch], self.y[batch]
        of = self.membership if isinstance(batch, slice) else self.membership.take(batch)
        scores = self.model.scores(theta, X)
        F = probabilities(scores)
        slopes = _loss_slopes(F, y)
        if self.weight:
            slopes += self.weight * climber.slopes(scores, F, of)
        return self.model.pull(theta, X, slopes) / len(y) + self.l2 * theta, F, of


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
        dual: Dual variables, shape (z, k, m); empty for penalties without.
        steps: Gradient steps, or iterations.
    """

    theta: Array
    dual: Array
    steps: int


def fermi_exact(
    problem: FairProblem, *, start: Array | None = None, iterations: int = 300, tolerance: float = 1e-9
) -> Fitted:
    """Minimise on the whole data by L-BFGS, with dual variables at their maximum in every step.

    Args:
        problem: Of all records.
        start: Shape (size,); None starts where the model says.
        iterations: At most so many.
        tolerance: Relative decrease of the objective at which to stop.

    Returns:
        Parameters, and no dual variables: they are a function of them.

    Reference:
        Lowy (2023), section 5.3, deterministic form of Algorithm 9.
    """
    found = optimize.minimize(
        problem.both,
        problem.model.start() if start is None else start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": check_count("iterations", iterations), "ftol": tolerance, "gtol": 1e-8},
    )
    return Fitted(np.asarray(found.x), np.empty(0), int(found.nit))


def fermi(
    problem: FairProblem,
    *,
    steps: StepSizes,
    batch_size: int,
    epochs: int,
    rng: np.random.Generator,
    start: Array | None = None,
    warmup: int = 0,
    tail: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Minimise by stochastic gradient descent and ascent, over shuffled epochs.

    Args:
        problem: Of all records.
        steps: Step sizes.
        batch_size: Records of a step, in 1..n; a rest at the end of an epoch is a smaller batch.
        epochs: Passes over the data, >= 1. With one pass each record is used once, and what is said of the
            objective holds of that of the population, too.
        rng: Shuffles records.
        start: Shape (size,); None starts where the model says.
        warmup: Epochs before these, without the penalty: the dual variables follow, and steps do not shrink.
        tail: Share of the last steps whose parameters are averaged, in [0, 1); 0 returns the last ones.
        progress: Called with the steps done and those there are.

    Raises:
        ParameterError: A number is out of range.

    Reference:
        Lowy (2023), Algorithm 9 (FERMI), Theorems 67 and 69. Steps of theta and W are both taken at the same
        point, and W stays in the ball of radius sqrt(m / min p).
    """
    n = len(problem.y)
    b, passes = check_count("batch_size", batch_size, high=n), check_count("epochs", epochs)
    before = check_count("warmup", warmup, low=0)
    averaged = check_probability("tail", tail, high_open=True)
    each = math.ceil(n / b)
    total, first_kept = (before + passes) * each, (before + passes) * each - averaged * passes * each
    theta = problem.model.start() if start is None else start.copy()
    mean, kept = np.zeros_like(theta), 0
    plain, climber = replace(problem, weight=0.0), problem.penalty.climber()
    for t, batch in enumerate(_batches(n, b, before + passes, rng)):
        now = plain if t < before * each else problem
        decay = 1 + 4 * max(0, t - before * each) / (passes * each)
        down, F, of = now.gradient(theta, climber, batch)
        theta = theta - steps.model / decay * down
        if problem.weight:
            climber.climb(F, of, steps.of_dual / decay)
        if t >= first_kept:
            kept += 1
            mean += (theta - mean) / kept
        if progress is not None:
            progress(t + 1, total)
    return Fitted(mean if kept else theta, climber.variables, total)


def _batches(n: int, b: int, epochs: int, rng: np.random.Generator) -> Iterator[IntArray | slice]:
    """Yield the batches of shuffled epochs; one of all records as it lies, which takes no copy."""
    for _ in range(epochs):
        if b == n:
            yield slice(None)
            continue
        order = rng.permutation(n)
        for first in range(0, n, b):
            yield order[first : first + b]


def _loss_slopes(F: Array, y: IntArray) -> Array:
    """Return the derivatives of each record's cross-entropy in its scores, shape (n, m)."""
    slopes = F.copy()
    slopes[np.arange(len(y)), y] -= 1.0
    return slopes
