"""Shuffled silos that hold several records each: the published amplification bound, its delta mended."""

from __future__ import annotations

import math

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.privacy.composition import Total

__all__ = ["shuffle_amplification_isrl"]


def shuffle_amplification_isrl(
    epsilon: float, silos: int, records: int, slack: float, *, delta: float = 0.0
) -> Total:
    """Bound what one shuffled round of silo-private reports reveals about a record.

    eps_r = ln(1 + tanh(epsilon / 2) (8 sqrt(e^(n epsilon) ln(4 / slack) / N) + 8 e^(n epsilon) / N)), or
    epsilon where that is less; delta_r = slack + (e^eps_r + 1) 2 N n e^((n - 1) epsilon) delta. The source
    leaves out the factor e^eps_r + 1, which moving a claim between two laws costs. All silos must use one
    randomizer, and the shuffler must hide which silo sent what.

    Args:
        epsilon: Level of one silo's report about each of its records, > 0.
        silos: Number of silos N whose reports are shuffled, >= 1.
        records: Records n of a silo, >= 1.
        slack: In (0, 1); the part of delta that hiding in the crowd takes.
        delta: Of one silo's report, in [0, 1).

    Returns:
        Epsilon, delta and which term gave epsilon: "shuffled", or "local" where shuffling proves no less.

    Raises:
        ParameterError: A value out of its range, epsilon above ln(N / (16 ln(2 / slack))) / n, or a delta of
            1 or more.

    Reference:
        Lowy (2023), Theorems 109 and 110; for n = 1, Feldman, McMillan and Talwar (2021),
        Theorem 3.1.

    Example:
        >>> total = shuffle_amplification_isrl(0.1, 1000, 10, 1e-6, delta=1e-12)
        >>> round(total.epsilon, 9), total.term
        (0.079116814, 'shuffled')
    """
    epsilon, slack = (
        check_positive("epsilon", epsilon),
        check_probability("slack", slack, low_open=True, high_open=True),
    )
    N, n = check_count("silos", silos), check_count("records", records)
    delta = check_probability("delta", delta, high_open=True)
    crowd = N / (16 * math.log(2 / slack))
    if n * epsilon > math.log(crowd):
        raise ParameterError(
            f"epsilon must be at most ln(silos / (16 ln(2 / slack))) / records = "
            f"{math.log(crowd) / n:.6g} for {N} silos of {n} records and slack = {slack!r}, got {epsilon!r}."
        )
    blown = math.exp(n * epsilon)
    hidden = 8 * math.sqrt(blown * math.log(4 / slack) / N) + 8 * blown / N
    shuffled = math.log1p(math.tanh(epsilon / 2) * hidden)
    # The report alone proves epsilon at delta, which is less than the delta below.
    found = min(shuffled, epsilon)
    total = slack + (math.exp(found) + 1) * 2 * N * n * math.exp((n - 1) * epsilon) * delta
    if total >= 1:
        raise ParameterError(
            f"delta must be small enough to prove something; {delta!r} gives {total:.3g} in all."
        )
    return Total(found, total, "shuffled" if shuffled < epsilon else "local")
