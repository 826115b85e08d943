"""Minibatch SGD and local SGD, from the server's side: short loops over `ask`.

Privacy is nowhere in here: clipping, noise, sampling and accounting live behind `ask`, so the same loops are
the private methods and their baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tacit.federation import Ask
from tacit.numerics import Array, Regularizer, RunningAverage

__all__ = ["Follow", "local_sgd", "minibatch_sgd"]

Follow = Callable[[int, Array], None]
"""Called after each round with its number and the current point; traces exist in simulation only."""


def minibatch_sgd(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    step_size: float,
    radius: float,
    prox: Regularizer,
    log_weights: Iterator[float],
    follow: Follow,
) -> Array:
    """Run (noisy) minibatch SGD (Lowy 2023, Algorithm 14).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        step_size: eta.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint; stays on the server.
        log_weights: ln gamma_r for r = 0, 1, ...; -inf leaves an iterate out.
        follow: Called after each round.

    Returns:
        The weighted average of w_0..w_{R-1}, shape (size,).
    """
    average = RunningAverage()
    for r in range(rounds):
        average = average.add(w, next(log_weights))
        (gradient,) = ask(r, {"w": w}, (radius,))
        w = prox(step_size, w - step_size * gradient)
        follow(r, w)
    return average.value


def local_sgd(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    local_steps: int,
    step_size: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
) -> Array:
    """Run (noisy) local SGD, FedAvg with plain steps (Lowy 2023, Appendix B.1.10).

    Args:
        ask: Returns the mean of the points that silos reach by their own steps from "w".
        w: Start, shape (size,).
        rounds: Number of rounds R.
        local_steps: Steps K that a silo takes per round; the plan says the same.
        step_size: eta of a local step.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint. The server applies it once a round, with the step K eta of the whole
            round: then a solution of the regularised problem stays where it is, up to what silos drift apart.
        follow: Called after each round.

    Returns:
        The last point, shape (size,).
    """
    for r in range(rounds):
        (mean,) = ask(r, {"w": w, "step_size": np.asarray(step_size)}, (radius,))
        w = prox(local_steps * step_size, mean)
        follow(r, w)
    return w
