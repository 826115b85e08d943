"""What public data can and cannot buy: rates of semi-private means, up to constants."""

from __future__ import annotations

import math

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)

__all__ = ["public_data_helps", "semi_private_rate"]


_PROBLEMS = ("mean", "mean-approximate", "mean-approximate-lower", "empirical-mean", "local-mean")


def semi_private_rate(
    problem: str, *, n_private: int, n_public: int, dim: int, epsilon: float, delta: float = 0.0
) -> float:
    """Return the order of the least squared error for rows in the unit ball.

    | problem | rate | tight |
    |---|---|---|
    | `mean` (pure) | min{1/n_pub, d^2/(n eps)^2 + 1/n} | eps <= d/8 and (n_pub <~ n eps/d or d = O(1)) |
    | `mean-approximate` | min{1/n_pub, d ln(1/delta)/(n eps)^2 + 1/n} | d = O(1) |
    | `mean-approximate-lower` | min{1/n_pub, 1/(n eps)^2 + 1/n} | d = O(1) |
    | `empirical-mean` (pure) | min{n_priv/n, d/(n eps)}^2 | always |
    | `local-mean` | min{1/n_pub, d/(n min(eps, eps^2)) + 1/n} | always |

    Risk minimisation of convex, L-Lipschitz losses on a set of diameter D has L D times the root of
    `empirical-mean` (pure, convex).

    Args:
        problem: A name of the table.
        n_private: Number of private rows, >= 0.
        n_public: Number of public rows, >= 0; not both 0.
        dim: Number of coordinates d, >= 1.
        epsilon: Level, > 0.
        delta: In (0, 1) for `mean-approximate`; not used else.

    Returns:
        The rate, without constants.

    Raises:
        ParameterError: A value out of its range.
        UnknownNameError: An unknown problem.

    Example:
        >>> semi_private_rate("empirical-mean", n_private=5, n_public=95, dim=4, epsilon=1.0)
        0.0016

    Reference:
        Lowy (2023), Theorems 16, 25 and 77.
    """
    check_choice("problem", problem, _PROBLEMS)
    n = _sizes(n_private, n_public, dim, epsilon)
    noise = dim / (n * epsilon)
    match problem:
        case "empirical-mean":
            return min(n_private / n, noise) ** 2
        case "mean":
            rate = noise * noise
        case "mean-approximate":
            check_probability("delta", delta, low_open=True, high_open=True)
            rate = noise * noise / dim * -math.log(delta)
        case "mean-approximate-lower":
            rate = noise * noise / dim / dim
        case _:
            rate = dim / (n * min(epsilon, epsilon * epsilon))
    return min(rate + 1 / n, 1 / n_public if n_public else math.inf)


def public_data_helps(problem: str, *, n_private: int, n_public: int, dim: int, epsilon: float) -> bool:
    """Whether throwing the private rows away has the better rate, up to constants.

    `empirical-mean`: n_private < d / epsilon. `local-mean`: n_public > n min(epsilon, epsilon^2) / d.

    Args:
        problem: `empirical-mean` or `local-mean`.
        n_private: Number of private rows, >= 0.
        n_public: Number of public rows, >= 0; not both 0.
        dim: Number of coordinates d, >= 1.
        epsilon: Level, > 0.

    Raises:
        ParameterError: A value out of its range.
        UnknownNameError: An unknown problem.

    Reference:
        Lowy (2023), Theorems 25 and 77.
    """
    check_choice("problem", problem, ["empirical-mean", "local-mean"])
    n = _sizes(n_private, n_public, dim, epsilon)
    if problem == "empirical-mean":
        return n_private < dim / epsilon
    return n_public > n * min(epsilon, epsilon**2) / dim


def _sizes(n_private: int, n_public: int, dim: int, epsilon: float) -> int:
    """Return the number of all rows, once all arguments are in order."""
    check_count("n_private", n_private, low=0)
    check_count("n_public", n_public, low=0)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    if n_private + n_public == 0:
        raise ParameterError("n_private + n_public must be at least 1.")
    return n_private + n_public
