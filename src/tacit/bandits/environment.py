"""A world to play in: linear rewards of known means, drawn a batch at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from tacit.bandits.actions import NORM_SLACK, check_actions
from tacit.errors import ParameterError, check_positive
from tacit.numerics import Array, IntArray, as_floats

__all__ = ["LinearEnvironment", "RewardModel", "random_circle"]

_AT_ONCE = 1 << 20


class RewardModel(StrEnum):
    """How rewards lie around their means: +1 or -1; uniformly; or as a Gaussian that is clipped to [-1, 1].

    Clipping moves the mean, so that rewards are no longer linear: for tests of robustness only.
    """

    RADEMACHER = "rademacher"
    UNIFORM = "uniform"
    CLIPPED_GAUSSIAN = "clipped_gaussian"


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearEnvironment:
    """Rewards in [-1, 1] whose mean is linear in the action.

    Attributes:
        actions: Shape (K, d), rows of norm at most 1.
        theta: Shape (d,), norm at most 1: the mean reward of action a is the inner product of both.
        model: How rewards lie around it.
        spread: Half the width of "uniform" (cut off at 1 - |mean|), the standard deviation of
            "clipped_gaussian"; > 0.

    Raises:
        ParameterError: Shapes that do not fit, or a norm above 1.

    Example:
        >>> world = LinearEnvironment(actions=[[1.0, 0.0], [0.0, 1.0]], theta=[0.6, -0.2])
        >>> world.means.tolist(), world.best
        ([0.6, -0.2], 0.6)

    Reference:
        Girgis (2023), Assumption 6.2.1.
    """

    actions: Array
    theta: Array
    model: RewardModel = RewardModel.RADEMACHER
    spread: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", check_actions(self.actions))
        theta = as_floats("theta", self.theta).astype(np.float64)
        object.__setattr__(self, "theta", theta)
        if theta.shape != (self.actions.shape[1],):
            raise ParameterError(f"theta must have shape ({self.actions.shape[1]},), got {theta.shape}.")
        # Stated as what is allowed: NaN fails it.
        if not float(np.linalg.norm(theta)) <= 1 + NORM_SLACK:
            raise ParameterError(
                f"theta must have a norm of at most 1, got {float(np.linalg.norm(theta))!r}."
            )
        if not isinstance(self.model, RewardModel):
            raise ParameterError(f"model must be a RewardModel, got {self.model!r}.")
        check_positive("spread", self.spread)

    @property
    def means(self) -> Array:
        """Shape (K,): inner products with theta, which regret is measured by."""
        return np.asarray(np.clip(self.actions @ self.theta, -1, 1))

    @property
    def best(self) -> float:
        """The highest mean."""
        return float(self.means.max())

    @property
    def reward_means(self) -> Array:
        """Shape (K,): what rewards are on average; other than `means` where they are clipped."""
        mu = self.means
        if self.model is not RewardModel.CLIPPED_GAUSSIAN:
            return mu
        low, high = (-1 - mu) / self.spread, (1 - mu) / self.spread
        inside = stats.norm.cdf(high) - stats.norm.cdf(low)
        tails = stats.norm.sf(high) - stats.norm.cdf(low)
        return np.asarray(mu * inside + self.spread * (stats.norm.pdf(low) - stats.norm.pdf(high)) + tails)

    def regret(self, actions: IntArray, counts: IntArray) -> float:
        """Return how much less than the best action was earned on average, over all these rounds."""
        return float(((self.best - self.means[actions]) * counts).sum())

    def draw(self, action: int, n: int, rng: np.random.Generator) -> Array:
        """Return n rewards of an action, shape (n,)."""
        mu = float(self.means[action])
        if self.model is RewardModel.RADEMACHER:
            return np.where(rng.random(n) < (1 + mu) / 2, 1.0, -1.0)
        if self.model is RewardModel.UNIFORM:
            half = min(self.spread, 1 - abs(mu))
            return np.asarray(mu + rng.uniform(-half, half, n))
        return np.asarray(np.clip(rng.normal(mu, self.spread, n), -1, 1))

    def draw_high(self, actions: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
        """Return how many of these rewards are rounded to 1, where each is rounded to 1 or -1 by its value.

        A rounded reward is 1 with probability (1 + mean) / 2 whatever the model, so that this is exact.
        """
        return np.asarray(rng.binomial(counts, (1 + self.reward_means[actions]) / 2), dtype=np.int64)

    def draw_sums(self, actions: IntArray, counts: IntArray, rng: np.random.Generator) -> Array:
        """Return the sum of `counts` rewards of each action.

        Constant time for rewards of +1 and -1, one draw a reward for the other models.
        """
        if self.model is RewardModel.RADEMACHER:
            return 2.0 * self.draw_high(actions, counts, rng) - counts
        return np.array([self._long_sum(a, n, rng) for a, n in zip(actions, counts, strict=True)])

    def _long_sum(self, action: int, n: int, rng: np.random.Generator) -> float:
        """Return the sum of n rewards, some at a time."""
        return math.fsum(
            float(self.draw(action, min(_AT_ONCE, n - first), rng).sum()) for first in range(0, n, _AT_ONCE)
        )


def random_circle(n_actions: int, dim: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw actions and a parameter, all uniform on the unit sphere.

    Args:
        n_actions: K >= 1.
        dim: d >= 1.
        rng: Source of both.

    Returns:
        Actions of shape (K, d) and theta of shape (d,), of norm 1.

    Example:
        >>> actions, theta = random_circle(10, 2, np.random.default_rng(0))
        >>> actions.shape, theta.shape
        ((10, 2), (2,))
    """
    rows = rng.standard_normal((n_actions + 1, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[1:], rows[0]
