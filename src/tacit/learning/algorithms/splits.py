"""How a budget is split over kinds of rounds, such that what they add together is least."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.errors import ParameterError, check_count, check_positive

__all__ = ["check_shares", "optimal_shares", "split_shares"]


def optimal_shares(
    counts: Sequence[int], weights: Sequence[float], rates: Sequence[float] = ()
) -> list[float]:
    """Return what one round of each kind may spend, for the least weighted sum of the noises' variances.

    A round of share s has noise of variance 1 / s times its weight. Gaussian rounds of share s_k on samples
    of rate q_k cost about n_k q_k^2 s_k together (exactly where q_k = 1), and these add up to 1. So
    sum a_k / s_k is least for s_k in proportion to sqrt(a_k / n_k) / q_k.

    Args:
        counts: n_k, how often each kind is asked, >= 1.
        weights: a_k > 0, the squared scale of each noise: its radius over the rows of a batch.
        rates: q_k in (0, 1], which part of the units a batch holds; none given is 1 for all.

    Returns:
        The shares s_k. Only their ratios matter for a calibrated run, whose price is always exact.

    Raises:
        ParameterError: Lists of different lengths, or a value out of its range.

    Example:
        >>> optimal_shares([1, 4], [1.0, 4.0])
        [0.2, 0.2]
    """
    rates = list(rates) or [1.0] * len(counts)
    if not len(counts) == len(weights) == len(rates) or not counts:
        raise ParameterError("counts, weights and rates must have one entry for every kind.")
    for count, weight, rate in zip(counts, weights, rates, strict=True):
        check_count("a count", count)
        check_positive("a weight", weight)
        if not 0 < rate <= 1:
            raise ParameterError(f"a rate must be in (0, 1], got {rate!r}.")
    kinds = list(zip(counts, weights, rates, strict=True))
    total = sum(q * math.sqrt(n * a) for n, a, q in kinds)
    return [math.sqrt(a / n) / (q * total) for n, a, q in kinds]


def split_shares(split: float, counts: Sequence[int], *, rate: float = 1.0) -> list[float]:
    """Return what one round of gradients may spend, and one of differences, where all gradients have `split`.

    Args:
        split: In (0, 1).
        counts: n_1 and n_2, how often each is asked, >= 1.
        rate: q, which part of the units a difference is of; gradients are of all, or of as many.

    Example:
        >>> split_shares(0.5, (2, 8))
        [0.25, 0.0625]
    """
    gradients, differences = counts
    return [split / gradients, (1 - split) / (differences * rate**2)]


def check_shares(counts: Sequence[int], shares: Sequence[float], rates: Sequence[float] = ()) -> None:
    """Refuse shares of a budget that do not add up to all of it.

    Args:
        counts: n_k, how often each kind is asked.
        shares: s_k > 0, what one round of each may spend.
        rates: q_k; none given is 1 for all.

    Raises:
        ParameterError: sum n_k q_k^2 s_k is not 1, or a share is not > 0.
    """
    rates = list(rates) or [1.0] * len(counts)
    if not len(counts) == len(shares) == len(rates):
        raise ParameterError("counts, shares and rates must have one entry for every kind.")
    for share in shares:
        check_positive("a share", share)
    total = math.fsum(n * q * q * s for n, s, q in zip(counts, shares, rates, strict=True))
    if abs(total - 1) > 1e-9:
        raise ParameterError(f"the shares of all rounds must add up to 1, got {total!r}.")
