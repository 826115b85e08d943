"""Contexts of a known law, made a plain linear bandit whose actions are average features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.bandits.actions import NORM_SLACK
from tacit.bandits.environment import LinearEnvironment
from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, IntArray, as_floats

__all__ = ["ContextualReduction", "contextual_gap", "reduce_contexts"]

_DECIMALS = 12
_FEWEST_SAMPLES = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextualReduction:
    """A contextual bandit as a linear one; made by `reduce_contexts`.

    Action x of the linear bandit is: be greedy for the parameter `thetas[x]`. Whoever is told x picks its own
    action by its own context, and the context goes nowhere.

    Attributes:
        actions: Shape (N, d): expected features of the greedy choice for each kept parameter, rows all
            different.
        thetas: Shape (N, d): the parameters.
        features: Shape (M, A, d): features of every action in every context.
        law: Shape (M,): probabilities of the contexts.
        standard_error: Largest standard error of an entry of `actions` where contexts are a sample, else 0;
            estimates are off by as much, and nothing in a radius covers it.
    """

    actions: Array
    thetas: Array
    features: Array
    law: Array
    standard_error: float

    def choose(self, x: int, features: npt.ArrayLike) -> int:
        """Return the action that a client plays when it is told x.

        Args:
            x: A row of `actions`.
            features: Shape (A, d): features of every action in the client's context.
        """
        return int(np.argmax(as_floats("features", features) @ self.thetas[x]))

    def world(self, theta: npt.ArrayLike) -> LinearEnvironment:
        """Return the linear bandit, for a simulation.

        Rewards of +1 and -1 whose mean is linear in the features have, over the contexts, exactly the law of
        rewards of +1 and -1 whose mean is linear in x.
        """
        return LinearEnvironment(actions=self.actions, theta=np.asarray(theta, dtype=np.float64))

    def regret(
        self, played: Sequence[tuple[int, int]], theta: npt.ArrayLike, rng: np.random.Generator
    ) -> float:
        """Return the regret against the best action of each context, with contexts drawn from their law.

        Args:
            played: Row of `actions` and number of rounds, as `BanditResult.played` has them.
            theta: Shape (d,), the true parameter.
            rng: Source of the contexts.
        """
        means = self.features @ as_floats("theta", theta)
        contexts = np.arange(len(self.law))
        total = 0.0
        for x, rounds in played:
            chosen = np.argmax(self.features @ self.thetas[x], axis=1)
            gaps = means.max(axis=1) - means[contexts, chosen]
            total += float(rng.multinomial(rounds, self.law) @ gaps)
        return total


def reduce_contexts(
    features: npt.ArrayLike,
    law: npt.ArrayLike | None = None,
    *,
    directions: int | None = None,
    sampled: bool = False,
    rng: np.random.Generator | None = None,
) -> ContextualReduction:
    """Turn a contextual bandit whose contexts have a known law into a linear bandit.

    Args:
        features: Shape (M, A, d): features of each of A actions in each of M contexts, norms at most 1.
        law: Shape (M,): probabilities of the contexts; all equal if not given.
        directions: How many parameters are tried; only their direction counts. In the plane they are equally
            spaced, and if not given every parameter is covered: one direction between any two at which some
            greedy choice changes. In higher dimensions they are random, and must be given.
        sampled: Whether the contexts are a sample from their law, of 100,000 or more.
        rng: Source of random directions, in three dimensions or more.

    Returns:
        The reduction.

    Raises:
        ParameterError: Shapes that do not fit, norms above 1, no probabilities, a small sample, or
            `directions` or `rng` missing where needed.

    Guarantee:
        A reward lies in the same range whatever the context, so that noise for rewards is noise for pairs of
        context and reward: what others see is as private in the pair as in the reward. A client's own action
        shows its context, and is not protected (joint differential privacy).

    Example:
        >>> one = reduce_contexts([[[1.0, 0.0], [0.0, 1.0]]])
        >>> sorted(one.actions.tolist())
        [[0.0, 1.0], [1.0, 0.0]]

    Reference:
        Girgis (2023), Section 6.3.1, after Hanna, Yang and Fragouli (2023); averages of features, where the
        former prints averages of actions.
    """
    phi = as_floats("features", features).astype(np.float64)
    if phi.ndim != 3 or not phi.size:
        raise ParameterError(f"features must have shape (contexts, actions, d), got {phi.shape}.")
    if not np.linalg.norm(phi, axis=2).max() <= 1 + NORM_SLACK:
        raise ParameterError("features must have norms of at most 1, and be finite.")
    p = np.full(len(phi), 1 / len(phi)) if law is None else as_floats("law", law).astype(np.float64)
    if p.shape != (len(phi),) or not np.all(p >= 0) or abs(float(p.sum()) - 1) > 1e-9:
        raise ParameterError(f"law must be {len(phi)} probabilities that add up to 1, got shape {p.shape}.")
    if sampled and len(phi) < _FEWEST_SAMPLES:
        raise ParameterError(
            f"features must be of at least {_FEWEST_SAMPLES:,} contexts where they are a sample."
        )
    tried = _directions(phi, directions, rng)
    rows = np.empty((len(tried), phi.shape[2]))
    spread = 0.0
    contexts = np.arange(len(phi))
    for k, theta in enumerate(tried):
        chosen = phi[contexts, np.argmax(phi @ theta, axis=1)]
        rows[k] = p @ chosen
        if sampled:
            spread = max(spread, float(np.sqrt((p @ (chosen - rows[k]) ** 2) / len(phi)).max()))
    _, first = np.unique(rows.round(_DECIMALS), axis=0, return_index=True)
    first.sort()
    return ContextualReduction(
        actions=rows[first], thetas=tried[first], features=phi, law=p / p.sum(), standard_error=spread
    )


def contextual_gap(horizon: int) -> float:
    """Return sqrt(2 T ln(2 T)): the regrets of the two bandits differ by no more, but for 1 chance in T."""
    return math.sqrt(2 * horizon * math.log(2 * horizon))


def _directions(phi: Array, count: int | None, rng: np.random.Generator | None) -> Array:
    """Return the parameters that are tried."""
    dim = phi.shape[2]
    if count is not None:
        check_count("directions", count, low=2)
    if dim == 1:
        return np.array([[-1.0], [1.0]])
    if dim == 2:
        angles = _breaks(phi) if count is None else 2 * np.pi * np.arange(count) / count
        return np.column_stack([np.cos(angles), np.sin(angles)])
    if count is None or rng is None:
        raise ParameterError("directions and rng must be given for features of three coordinates or more.")
    rows = rng.standard_normal((count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _breaks(phi: Array) -> IntArray | Array:
    """Return one angle between any two at which the greedy choice of some context may change."""
    gaps = (phi[:, :, None, :] - phi[:, None, :, :]).reshape(-1, 2)
    gaps = gaps[np.linalg.norm(gaps, axis=1) > 0]
    if not len(gaps):
        return np.zeros(1)
    # Both signs of a difference are there, and so are both angles at a right angle to it.
    at = np.unique(np.mod(np.arctan2(gaps[:, 1], gaps[:, 0]) + np.pi / 2, 2 * np.pi))
    return np.asarray((at + np.append(at[1:], at[0] + 2 * np.pi)) / 2)
