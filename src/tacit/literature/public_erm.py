"""What public data can and cannot buy in risk minimisation: bounds of throwing away, and rates."""

from __future__ import annotations

import math

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)

__all__ = ["semi_private_risk_rate", "throw_away_excess_bound", "throw_away_regression_error"]

_PROBLEMS = (
    "erm",
    "erm-strongly-convex",
    "sco",
    "sco-approximate",
    "sco-strongly-convex",
    "sco-strongly-convex-approximate",
    "local-sco",
)


def throw_away_excess_bound(
    *,
    n_private: int,
    n_public: int,
    lipschitz: float,
    diameter: float = math.inf,
    strong_convexity: float = 0.0,
) -> float:
    """Bound the excess mean loss over all records at a minimum over the public ones alone, of any data.

    L D n_private / n; of mu-strongly convex losses also (L^2 / mu) n_private^2 / (n n_public) and (L^2 / mu)
    n_private / n. Where the public minimum is approximate, what it lacks comes on top.

    Args:
        n_private: Number of private records, >= 0.
        n_public: Number of public records, >= 1.
        lipschitz: L of a record's loss, > 0.
        diameter: D of the domain, > 0; infinite where only strong convexity helps.
        strong_convexity: mu of a record's loss, >= 0.

    Returns:
        The least of the bounds that hold; infinite without a diameter and without strong convexity.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> throw_away_excess_bound(n_private=5, n_public=95, lipschitz=1.0, diameter=2.0)
        0.1

    Reference:
        Lowy (2023), Chapter 2: semi-private empirical risk minimisation.
    """
    check_count("n_private", n_private, low=0)
    check_count("n_public", n_public)
    check_positive("lipschitz", lipschitz)
    check_non_negative("strong_convexity", strong_convexity)
    if diameter != math.inf:
        check_positive("diameter", diameter)
    n = n_private + n_public
    if n_private == 0:
        return 0.0
    bound = lipschitz * diameter * n_private / n
    if strong_convexity > 0:
        bound = min(bound, lipschitz**2 / strong_convexity * n_private / n * min(n_private / n_public, 1.0))
    return bound


def throw_away_regression_error(*, n_public: int, dim: int, noise_std: float) -> float:
    """Return the expected squared error of least squares on public records, on a new record: exact.

    sigma^2 (1 + d / (n - d - 1)) for n standard normal records with outcomes of noise deviation sigma.

    Args:
        n_public: n, at least dim + 2: with fewer, the expectation is infinite.
        dim: d, >= 1.
        noise_std: sigma, > 0.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> round(throw_away_regression_error(n_public=2250, dim=2000, noise_std=0.5), 6)
        2.258032

    Reference:
        The mean of an inverse Wishart matrix.
    """
    check_count("dim", dim)
    check_count("n_public", n_public, low=dim + 2)
    check_positive("noise_std", noise_std)
    return noise_std**2 * (1 + dim / (n_public - dim - 1))


def semi_private_risk_rate(
    problem: str,
    *,
    n_private: int,
    n_public: int,
    dim: int,
    epsilon: float,
    delta: float = 0.0,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    strong_convexity: float = 0.0,
) -> float:
    """Return the order of the least excess risk of L-Lipschitz losses, with public records or without.

    | problem | rate | tight |
    |---|---|---|
    | `erm` (pure, convex) | L D min{n_priv/n, d/(n eps)} | always |
    | `erm-strongly-convex` (pure) | (L^2/mu) min{n_priv/n, d sqrt(ln n)/(n eps)}^2 | up to mu D/L, ln n |
    | `sco` (pure, convex) | L D min{1/sqrt(n_pub), d/(n eps) + 1/sqrt(n)} | as `mean` |
    | `sco-approximate` | L D min{1/sqrt(n_pub), sqrt(d ln(1/delta))/(n eps) + 1/sqrt(n)} | d = O(1) |
    | `sco-strongly-convex` (pure) | (L^2/mu) min{1/n_pub, d^2 ln n/(n eps)^2 + 1/n} | as `mean` |
    | `sco-strongly-convex-approximate` | (L^2/mu) min{1/n_pub, d ln(1/delta)/(n eps)^2 + 1/n} | d = O(1) |
    | `local-sco` | L D min{1/sqrt(n_pub), sqrt(d/(n min(eps, eps^2))) + 1/sqrt(n)} | always |

    Args:
        problem: A name of the table.
        n_private: Number of private records, >= 0.
        n_public: Number of public records, >= 0; not both 0.
        dim: Number of parameters d, >= 1.
        epsilon: Level, > 0.
        delta: In (0, 1) for the approximate ones; not used else.
        lipschitz: L, > 0.
        diameter: D, > 0; not used for strongly convex losses.
        strong_convexity: mu, > 0 for strongly convex losses; not used else.

    Returns:
        The rate, without constants.

    Raises:
        ParameterError: A value out of its range.
        UnknownNameError: An unknown problem.

    Example:
        >>> semi_private_risk_rate("erm", n_private=5, n_public=95, dim=4, epsilon=1.0)
        0.04

    Reference:
        Lowy (2023), Chapter 2: semi-private risk minimisation, empirical, stochastic and local.
    """
    check_choice("problem", problem, _PROBLEMS)
    for name, count in (("n_private", n_private), ("n_public", n_public)):
        check_count(name, count, low=0)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    check_positive("lipschitz", lipschitz)
    n = n_private + n_public
    if n == 0:
        raise ParameterError("n_private + n_public must be at least 1.")
    scale = lipschitz * check_positive("diameter", diameter)
    if "strongly" in problem:
        scale = lipschitz**2 / check_positive("strong_convexity", strong_convexity)
    noise = dim / (n * epsilon)
    if problem.endswith("approximate"):
        check_probability("delta", delta, low_open=True, high_open=True)
        noise = math.sqrt(dim * -math.log(delta)) / (n * epsilon)
    public = 1 / n_public if n_public else math.inf
    match problem:
        case "erm":
            return scale * min(n_private / n, noise)
        case "erm-strongly-convex":
            return scale * min(n_private / n, noise * math.sqrt(math.log(n))) ** 2
        case "sco" | "sco-approximate":
            return scale * min(math.sqrt(public), noise + 1 / math.sqrt(n))
        case "sco-strongly-convex":
            return scale * min(public, noise**2 * math.log(n) + 1 / n)
        case "sco-strongly-convex-approximate":
            return scale * min(public, noise**2 + 1 / n)
        case _:
            local = math.sqrt(dim / (n * min(epsilon, epsilon**2)))
            return scale * min(math.sqrt(public), local + 1 / math.sqrt(n))
