"""Accelerated stochastic approximation (AC-SA) and its multi-stage version, from the server's side.

Source: spec 11 §1.6 and §3 (Ghadimi and Lan 2012/2013; Algorithm 1 and B.1.6.1 of the thesis).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.federation import Ask
from tacit.learning.minibatch import Follow
from tacit.numerics import Array, Regularizer

__all__ = ["Stage", "ac_sa", "convex_nu", "stages"]


def ac_sa(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    nu: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
    mu: float = 0.0,
    first: int = 0,
) -> Array:
    """Run AC-SA with alpha_r = 2/(r+1) and eta_r = 4 nu / (r (r+1)).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        nu: Step parameter, at least 2 beta; larger with noise (`convex_nu`).
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint.
        follow: Called after each round with the aggregate point.
        mu: Strong convexity that is used in the steps.
        first: Number of the first round in the plan.

    Returns:
        The aggregate point w^ag_R, shape (size,).
    """
    aggregate = w
    for r in range(1, rounds + 1):
        a, eta = 2 / (r + 1), 4 * nu / (r * (r + 1))
        middle = (1 - a) * (mu + eta) * aggregate + a * ((1 - a) * mu + eta) * w
        middle = middle / (eta + (1 - a**2) * mu)
        (gradient,) = ask(first + r - 1, {"w": middle}, (radius,))
        target = a * mu * middle + ((1 - a) * mu + eta) * w - a * gradient
        w = prox(a / (mu + eta), target / (mu + eta))
        aggregate = a * w + (1 - a) * aggregate
        follow(first + r - 1, aggregate)
    return aggregate


def convex_nu(*, smoothness: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return nu for convex AC-SA: max(2 beta, V sqrt(2 R (R+1) (R+2) / 3) / D) (spec 11 §3).

    Args:
        smoothness: beta.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: R.
        diameter: D, about the distance from the start to a solution.
    """
    check_positive("diameter", diameter)
    cubic = math.sqrt(2 * rounds * (rounds + 1) * (rounds + 2) / 3)
    return max(2 * smoothness, noise_std * cubic / diameter)


@dataclass(frozen=True)
class Stage:
    """One stage of the multi-stage method: so many rounds with this nu."""

    rounds: int
    nu: float


def stages(*, smoothness: float, mu: float, gap: float, noise_std: float, rounds: int) -> tuple[Stage, ...]:
    """Return the stages of multi-stage AC-SA that fit into `rounds`; each halves the bound on the gap.

    Args:
        smoothness: beta.
        mu: Strong convexity, 0 < mu <= beta.
        gap: Delta, a bound on F(w_0) - F*.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: How many rounds there are in all.

    Raises:
        ParameterError: mu outside (0, beta], gap not > 0, or not even the first stage fits.
    """
    check_positive("gap", gap)
    check_positive("mu", mu)
    check_non_negative("noise_std", noise_std)
    if mu > smoothness:
        raise ParameterError(f"mu must be at most the smoothness {smoothness!r}, got {mu!r}.")
    planned: list[Stage] = []
    used, k = 0, 1
    while True:
        length = math.ceil(
            max(4 * math.sqrt(2 * smoothness / mu), 128 * noise_std**2 / (3 * mu * gap * 2.0 ** -(k + 1)))
        )
        if used + length > rounds:
            break
        cubic = length * (length + 1) * (length + 2)
        noisy = math.sqrt(mu * noise_std**2 / (3 * gap * 2.0 ** -(k - 1)) * cubic)
        planned.append(Stage(length, max(2 * smoothness, noisy)))
        used, k = used + length, k + 1
        if k > 60:
            break
    if not planned:
        raise ParameterError(f"rounds must be at least {length} for the first stage, got {rounds}.")
    return tuple(planned)
