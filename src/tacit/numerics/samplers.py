"""Which records a step uses: the samplers of a silo.

A record occurs at most once in a batch: sampling with replacement inside a batch would raise the sensitivity
of its mean from 2 L / K up to 2 L, which is why no such sampler exists here (docs/errata.md). The
amplification that a sampler earns (`Sampled`, `Parallel`) holds only while its indices stay secret.
"""

from __future__ import annotations

import numpy as np

from tacit.errors import ParameterError, check_count, check_probability
from tacit.numerics.arrays import IntArray

__all__ = [
    "draw_disjoint_order",
    "sample_fixed",
    "sample_poisson",
    "take_disjoint_batch",
]


def sample_fixed(n: int, size: int, rng: np.random.Generator) -> IntArray:
    """Take a uniformly random set of `size` records, without replacement.

    Goes with the replace-one relation: the size of the batch is public.

    Args:
        n: Number of records, >= 1.
        size: Records to take, from 0 to n.
        rng: Secret randomness of the silo.

    Returns:
        Shape (size,), increasing: the order carries nothing about how the set was drawn.

    Raises:
        ParameterError: `n` or `size` is out of range.

    Cost:
        O(size log size) time for size <= n / 50, else O(n + size log size).
    """
    check_count("n", n)
    check_count("size", size, low=0, high=n)
    if size > n // 2:
        # The complement of a uniform set is a uniform set, and the smaller one is cheaper to draw.
        kept = np.ones(n, dtype=np.bool_)
        kept[rng.choice(n, size=n - size, replace=False, shuffle=False)] = False
        return np.flatnonzero(kept)
    index: IntArray = rng.choice(n, size=size, replace=False, shuffle=False).astype(np.int64, copy=False)
    index.sort()
    return index


def sample_poisson(n: int, rate: float, rng: np.random.Generator) -> IntArray:
    """Take every record independently with probability `rate`.

    Goes with the add-remove and zero-out relations: the size of the batch is random and must stay secret.

    Args:
        n: Number of records, >= 0.
        rate: Probability of a record, in [0, 1].
        rng: Secret randomness of the silo.

    Returns:
        Increasing indices; their number is Binomial(n, rate). A record is taken when a 53-bit uniform number
        lies below `rate`, that is with probability `rate` rounded up to a multiple of 2**-53.

    Raises:
        ParameterError: `n` is negative or `rate` is outside [0, 1].
    """
    check_count("n", n, low=0)
    check_probability("rate", rate)
    return np.flatnonzero(rng.random(n) < rate)


def draw_disjoint_order(n: int, rng: np.random.Generator) -> IntArray:
    """Draw the secret order in which `take_disjoint_batch` uses the records.

    Args:
        n: Number of records, >= 0.
        rng: Secret randomness of the silo.

    Returns:
        Shape (n,): a uniformly random permutation of 0, ..., n - 1.

    Raises:
        ParameterError: `n` is negative or not a whole number.
    """
    check_count("n", n, low=0)
    return rng.permutation(n).astype(np.int64, copy=False)


def take_disjoint_batch(order: IntArray, start: int, size: int) -> IntArray:
    """Take the next `size` records of an order, none of which an earlier batch has used.

    Batches that do not overlap compose in parallel: the privacy of all of them is that of the worst one
    (McSherry 2009, Theorem 4).

    Args:
        order: What `draw_disjoint_order` drew; stored by the silo next to its data.
        start: Records used so far, from 0 to len(order); the next start is start + size.
        size: Records to take, >= 0.

    Returns:
        Shape (size,), increasing.

    Raises:
        ParameterError: fewer than `size` records are left. All that it names (numbers, never indices) is
            public.
    """
    check_count("start", start, low=0, high=len(order))
    check_count("size", size, low=0)
    left = len(order) - start
    if size > left:
        raise ParameterError(
            f"size must be at most the {left} records that no earlier batch has used, got {size}; "
            f"disjoint batches need rounds * size <= {len(order)}."
        )
    return np.sort(order[start : start + size])
