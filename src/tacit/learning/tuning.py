"""Batches, rounds and smoothing of the shuffled methods, by explicit formulas of public facts.

Cheu, Joseph, Mao and Peng (2022) tune their methods by orders with logarithms. Here 2/mu stands in place of
log(d/delta)/epsilon, where mu is the level of a Gaussian release that costs the whole budget: of a shuffled
mean of m gradients of norm L the noise then has the variance 4 d L^2 / (mu m)^2, which is what calibrated
binomial sums reach up to some per cent. `tacit.literature.paper_tuning` has the printed forms.
"""

from __future__ import annotations

import math

from tacit.errors import check_count, check_positive

__all__ = ["accelerated_batch", "descent_rounds", "envelope_smoothness", "growing_groups", "plain_batch"]


def plain_batch(*, dim: int, level: float) -> int:
    """Return the records of a round of P_SGD: as many as make the noise as large as a gradient.

    Args:
        dim: d.
        level: mu of the Gaussian release that costs the budget, > 0.

    Returns:
        ceil(2 sqrt(d) / mu).

    Example:
        >>> plain_batch(dim=10, level=0.2680511232)
        24

    Reference:
        After Cheu, Joseph, Mao and Peng (2022), Theorem 4.1.
    """
    check_count("dim", dim)
    check_positive("level", level)
    return math.ceil(2 * math.sqrt(dim) / level)


def accelerated_batch(
    *,
    n: int,
    dim: int,
    level: float,
    smoothness: float,
    lipschitz: float,
    diameter: float,
    noises: int = 1,
) -> float:
    """Return the records of a round of P_AGD, from 1 to n; not rounded.

    It is where both terms of the bound that a batch moves are of one order: beta D^2 / T^2 of T = n/m rounds,
    and D / sqrt(T) times the noise of a mean.

    Args:
        n: Records of the whole run.
        dim: d.
        level: mu.
        smoothness: beta.
        lipschitz: L.
        diameter: D of the domain.
        noises: How many noises a mean has: 2 in a pan-private stream.

    Returns:
        (2 sqrt(noises) n^(3/2) sqrt(d) L / (mu beta D))^(2/5), clipped.

    Example:
        >>> facts = {"smoothness": 1.0, "lipschitz": 1.0, "diameter": 2.0}
        >>> round(accelerated_batch(n=10_000, dim=10, level=0.2680511232, **facts), 2)
        674.08

    Reference:
        After Cheu, Joseph, Mao and Peng (2022), Theorems 4.3 and C.3.
    """
    _check(n, dim, level, lipschitz, diameter, noises)
    check_positive("smoothness", smoothness)
    noise = 2 * math.sqrt(noises * dim) * lipschitz / level
    best = math.pow(n**1.5 * noise / (smoothness * diameter), 0.4)
    return min(max(best, 1.0), float(n))


def envelope_smoothness(
    *, n: int, dim: int, level: float, lipschitz: float, diameter: float, noises: int = 1
) -> float:
    """Return beta of the Moreau envelope that P_AGD minimises in place of a loss with a kink.

    Args:
        n: Records of the whole run.
        dim: d.
        level: mu.
        lipschitz: L.
        diameter: D of the domain.
        noises: As in `accelerated_batch`.

    Returns:
        (n mu / (2 sqrt(noises)))^(2/3) L / (d^(1/3) D).

    Example:
        >>> round(envelope_smoothness(n=20_000, dim=10, level=0.2680511232, lipschitz=1.0, diameter=2.0), 2)
        44.78

    Reference:
        After Cheu, Joseph, Mao and Peng (2022), Theorem 4.7.
    """
    _check(n, dim, level, lipschitz, diameter, noises)
    return float((n * level / (2 * math.sqrt(noises))) ** (2 / 3) * lipschitz / (dim ** (1 / 3) * diameter))


def descent_rounds(*, n: int, dim: int, level: float) -> int:
    """Return the rounds of P_GD over all records: min(n, ceil((mu n)^2 / (4 d))).

    More of them gain nothing: the noise of a round grows with their square root.

    Reference:
        After Cheu, Joseph, Mao and Peng (2022), Theorem 4.9.
    """
    check_count("n", n)
    check_count("dim", dim)
    check_positive("level", level)
    return min(n, math.ceil((level * n) ** 2 / (4 * dim)))


def growing_groups(n: int) -> tuple[int, ...]:
    """Return the records of each phase of P_GD for strongly convex losses: floor(2^(i-2) n / log2 n).

    There are ceil(log2 log2 n) phases; later ones start nearer to the solution, and need more records.

    Args:
        n: Records, at least 4.

    Example:
        >>> growing_groups(10_000)
        (376, 752, 1505, 3010)

    Reference:
        Feldman, Koren and Talwar (2020), Theorem 5.1, for Lemma B.7 of Cheu, Joseph, Mao and Peng (2022).
    """
    check_count("n", n, low=4)
    phases = max(1, math.ceil(math.log2(math.log2(n))))
    return tuple(max(1, math.floor(2 ** (i - 2) * n / math.log2(n))) for i in range(1, phases + 1))


def _check(n: int, dim: int, level: float, lipschitz: float, diameter: float, noises: int) -> None:
    """Refuse what is out of range."""
    for name, count in (("n", n), ("dim", dim), ("noises", noises)):
        check_count(name, count)
    for label, value in (("level", level), ("lipschitz", lipschitz), ("diameter", diameter)):
        check_positive(label, value)
