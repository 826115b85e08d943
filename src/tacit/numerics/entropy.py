"""Binary entropy, and the coin that has a given entropy."""

from __future__ import annotations

import math

from scipy import optimize

from tacit.errors import check_probability

__all__ = ["binary_entropy", "binary_entropy_inv"]

_SMALLEST = 1e-305


def binary_entropy(p: float) -> float:
    """Return the entropy of a coin in bits: -p log2 p - (1 - p) log2 (1 - p).

    Args:
        p: Probability of heads, in [0, 1].

    Raises:
        ParameterError: `p` is not in [0, 1].

    Example:
        >>> binary_entropy(0.5), round(binary_entropy(0.25), 6)
        (1.0, 0.811278)
    """
    p = check_probability("p", p)
    if p in (0.0, 1.0):
        return 0.0
    return -(p * math.log(p) + (1 - p) * math.log1p(-p)) / math.log(2)


def binary_entropy_inv(bits: float) -> float:
    """Return the probability, at most 1/2, of the coin with this entropy.

    Args:
        bits: Entropy, in [0, 1].

    Returns:
        p in [0, 1/2] with `binary_entropy(p) == bits` up to rounding; near 1 bit p is known to some 1e-8
        only, because the entropy is flat there.

    Raises:
        ParameterError: `bits` is not in [0, 1].

    Example:
        >>> round(binary_entropy_inv(0.5), 9)
        0.110027864
    """
    bits = check_probability("bits", bits)
    if bits == 0 or bits == 1:
        return bits / 2
    # In the logarithm: the entropy of a rare event is about p log2(e / p).
    low, high = math.log(_SMALLEST), math.log(0.5)
    if binary_entropy(math.exp(low)) >= bits:
        return 0.0
    root = optimize.brentq(
        lambda x: binary_entropy(math.exp(x)) / bits - 1, low, high, xtol=1e-15, rtol=1e-15
    )
    return min(math.exp(root), 0.5)
