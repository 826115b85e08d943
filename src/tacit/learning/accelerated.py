"""Accelerated stochastic approximation (AC-SA) and its multi-stage version, from the server's side.

Source: Lowy (2023), Algorithm 1 and Appendix B.1.6.1, after Ghadimi and Lan, "Optimal stochastic
approximation algorithms for strongly convex stochastic composite optimization", I (2012, SIAM J. Optim.
22(4)) and II (2013, SIAM J. Optim. 23(4)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.federation import Ask
from tacit.learning.minibatch import Follow
from tacit.numerics import Array, Regularizer

__all__ = ["Stage", "ac_sa", "check_strong_convexity", "convex_nu", "excess_bound", "stage", "stages"]


def ac_sa(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    nu: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
    mu: float,
    first: int = 0,
) -> Array:
    """Run AC-SA with alpha_r = 2/(r+1) and eta_r = 4 nu / (r (r+1)).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        nu: Step parameter, at least 2 beta for the bound; larger with noise (`convex_nu`).
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint.
        follow: Called after each round with the aggregate point.
        mu: Strong convexity that the steps count on; 0 for none.
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
    """Return nu for convex AC-SA: max(2 beta, V sqrt(2 R (R+1) (R+2) / 3) / D).

    It minimises 2 nu D^2 / (R (R+1)) + 4 V^2 (R+2) / (3 nu), the bound behind the lengths of the stages.

    Args:
        smoothness: beta, finite, > 0.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: R.
        diameter: D, about the distance from the start to a solution.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> convex_nu(smoothness=0.25, noise_std=0.0, rounds=100, diameter=1.0)
        0.5
    """
    check_positive("smoothness", smoothness)
    check_positive("diameter", diameter)
    check_non_negative("noise_std", noise_std)
    cubic = math.sqrt(2 * rounds * (rounds + 1) * (rounds + 2) / 3)
    return max(2 * smoothness, noise_std * cubic / diameter)


def excess_bound(*, nu: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return a bound on E F(w^ag_R) - F(w*) for convex F and nu >= 2 beta.

    2 nu D^2 / (R (R+1)) + V^2 (2R+1) / (6 nu), from

        Gamma_R eta_1 D^2 / 2 + Gamma_R sum_r alpha_r^2 V^2 / (2 Gamma_r (eta_r - beta alpha_r^2))

    with Gamma_r = 2 / (r (r+1)) and eta_r - beta alpha_r^2 >= 2 nu / (r (r+1)).
    Source: Ghadimi and Lan (2012), Propositions 4 and 5; (C.50) of Lowy (2023) without its bias B. A 2
    stands there for the 1/2 before V^2, which is all that max_d alpha <N, d> - c |d|^2 / 2 leaves.

    Args:
        nu: Step parameter.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: R.
        diameter: D >= |w_0 - w*|.
    """
    return 2 * nu * diameter**2 / (rounds * (rounds + 1)) + noise_std**2 * (2 * rounds + 1) / (6 * nu)


@dataclass(frozen=True)
class Stage:
    """One stage of the multi-stage method: so many rounds with this nu."""

    rounds: int
    nu: float


def stage(k: int, *, smoothness: float, mu: float, gap: float, noise_std: float) -> Stage:
    """Return stage k = 1, 2, ... of multi-stage AC-SA, which brings the bound on the gap to Delta 2^-k.

    Args:
        k: Number of the stage.
        smoothness: beta.
        mu: Strong convexity, 0 < mu <= beta.
        gap: Delta, a bound on F(w_0) - F*.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.

    Raises:
        ParameterError: mu outside (0, beta], or gap not > 0.

    Reference:
        Lowy (2023), Appendix B.1.6.1, after Ghadimi and Lan (2013), SIAM J. Optim. 23(4), Proposition 7.
    """
    check_positive("gap", gap)
    check_strong_convexity(mu, smoothness)
    check_non_negative("noise_std", noise_std)
    check_positive("mu", mu)
    noisy = 128 * noise_std**2 / (3 * mu * gap * 2.0 ** -(k + 1))
    rounds = math.ceil(max(4 * math.sqrt(2 * smoothness / mu), noisy))
    cubic = rounds * (rounds + 1) * (rounds + 2)
    nu = math.sqrt(mu * noise_std**2 / (3 * gap * 2.0 ** -(k - 1)) * cubic)
    return Stage(rounds, max(2 * smoothness, nu))


def stages(*, smoothness: float, mu: float, gap: float, noise_std: float, rounds: int) -> tuple[Stage, ...]:
    """Return the stages that fit into `rounds`, the first ones first; none if the first is longer.

    Args:
        smoothness: beta.
        mu: Strong convexity, 0 < mu <= beta.
        gap: Delta, a bound on F(w_0) - F*.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: How many rounds there are in all.

    Raises:
        ParameterError: mu outside (0, beta], or gap not > 0.
    """
    planned: list[Stage] = []
    left = rounds
    # Beyond 2^-1000 of the first gap, float64 has nothing to halve.
    for k in range(1, 1000):
        following = stage(k, smoothness=smoothness, mu=mu, gap=gap, noise_std=noise_std)
        if following.rounds > left:
            break
        planned.append(following)
        left -= following.rounds
    return tuple(planned)


def check_strong_convexity(mu: float, smoothness: float) -> None:
    """Refuse mu outside [0, beta]: no function is more convex than smooth."""
    check_non_negative("mu", mu)
    if mu > smoothness:
        raise ParameterError(f"mu must be at most the smoothness {smoothness!r}, got {mu!r}.")
