"""What public data can and cannot buy: rates and lower bounds of semi-private means.

Rates hold up to constants and are for planning. The two lower bounds are exact statements.
"""

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

__all__ = [
    "le_cam_lower_bound",
    "public_data_helps",
    "semi_private_fano_bound",
    "semi_private_rate",
    "semi_private_total_variation",
]


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

    `empirical-mean` and `erm`, convex risk minimisation: n_private < d / epsilon. `local-mean`: n_public > n
    min(epsilon, epsilon^2) / d.

    Args:
        problem: `empirical-mean`, `erm` or `local-mean`.
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
    check_choice("problem", problem, ["empirical-mean", "erm", "local-mean"])
    n = _sizes(n_private, n_public, dim, epsilon)
    if problem != "local-mean":
        return n_private < dim / epsilon
    return n_public > n * min(epsilon, epsilon**2) / dim


def semi_private_fano_bound(
    candidates: int, *, mixture: float, n_private: int, n_public: int, epsilon: float
) -> float:
    """Bound from below the error probability of telling which of several laws the rows come from.

    The laws are (1 - p) P_0 + p P_v, with candidates v. Any epsilon-semi-private test errs, averaged over v,
    with probability at least (m - 1) e^(-epsilon ceil(n_private p)) (1 - p)^n_public / (2 (1 + (m - 1)
    e^(-epsilon ceil(n_private p)))).

    Args:
        candidates: m = |V|, >= 2.
        mixture: p, in [0, 1].
        n_private: Number of private rows, >= 0.
        n_public: Number of public rows, >= 0.
        epsilon: Pure level, > 0.

    Returns:
        In [0, 1/2], computed by logarithms: neither part under- or overflows.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> semi_private_fano_bound(2, mixture=0.0, n_private=10, n_public=10, epsilon=1.0)
        0.25

    Reference:
        Lowy (2023), Theorem 79.
    """
    check_count("candidates", candidates, low=2)
    check_probability("mixture", mixture)
    check_count("n_private", n_private, low=0)
    check_count("n_public", n_public, low=0)
    check_positive("epsilon", epsilon)
    if mixture == 1 and n_public:
        return 0.0
    log_odds = math.log(candidates - 1) - epsilon * math.ceil(n_private * mixture)
    log_public = n_public * math.log1p(-mixture) if n_public else 0.0
    # odds / (1 + odds) is the logistic function of the log odds.
    log_share = (
        -math.log1p(math.exp(-log_odds)) if log_odds > 0 else log_odds - math.log1p(math.exp(log_odds))
    )
    return math.exp(log_share + log_public) / 2


def semi_private_total_variation(
    *,
    kullback_leibler: float,
    total_variation: float,
    n_private: int,
    n_public: int,
    epsilon: float,
    delta: float = 0.0,
) -> float:
    """Bound from above how well a semi-private release tells two laws of rows apart.

    min{sqrt(n KL / 2), 2 TV n_private (e^epsilon - 1 + delta) + sqrt(n_public KL / 2), 1}.

    Args:
        kullback_leibler: KL(P1, P2) of one row, >= 0; may be infinite.
        total_variation: TV(P1, P2) of one row, in [0, 1].
        n_private: Number of private rows, >= 0.
        n_public: Number of public rows, >= 0.
        epsilon: Level, > 0.
        delta: In [0, 1].

    Returns:
        The bound on the total variation of the outputs, at most 1.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Lowy (2023), Lemma 81.
    """
    if kullback_leibler != math.inf:
        check_non_negative("kullback_leibler", kullback_leibler)
    check_probability("total_variation", total_variation)
    check_count("n_private", n_private, low=0)
    check_count("n_public", n_public, low=0)
    check_positive("epsilon", epsilon)
    check_probability("delta", delta)
    plain = _pinsker(n_private + n_public, kullback_leibler)
    growth = math.expm1(epsilon) if epsilon < 700 else math.inf
    # A law that does not differ is not told apart, however large the level: 0 times infinity is 0 here.
    leaked = 2 * total_variation * n_private
    private = leaked * (growth + delta) if leaked else 0.0
    return min(plain, private + _pinsker(n_public, kullback_leibler), 1.0)


def le_cam_lower_bound(separation: float, total_variation: float) -> float:
    """Return Le Cam's two-point bound on the squared error, gamma^2 / 8 (1 - TV).

    Args:
        separation: gamma, half the distance of the two means (the bias of a sign), >= 0.
        total_variation: Of the outputs under the two laws, in [0, 1].

    Returns:
        No estimator has a smaller worst-case squared error over the two laws.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Le Cam's method, as in Lowy (2023), Appendix A.2.1.2.
    """
    check_non_negative("separation", separation)
    check_probability("total_variation", total_variation)
    return separation**2 / 8 * (1 - total_variation)


def _sizes(n_private: int, n_public: int, dim: int, epsilon: float) -> int:
    """Return the number of all rows, once all arguments are in order."""
    check_count("n_private", n_private, low=0)
    check_count("n_public", n_public, low=0)
    check_count("dim", dim)
    check_positive("epsilon", epsilon)
    if n_private + n_public == 0:
        raise ParameterError("n_private + n_public must be at least 1.")
    return n_private + n_public


def _pinsker(rows: int, kullback_leibler: float) -> float:
    return math.sqrt(rows * kullback_leibler / 2) if rows else 0.0
