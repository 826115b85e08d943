"""How k values are laid out on the messages of a local randomizer."""

from __future__ import annotations

import math

from scipy import special

from tacit.errors import check_count, check_positive
from tacit.numerics.hadamard import next_power_of_two

__all__ = ["hadamard_blocks", "subset_size"]


def hadamard_blocks(symbols: int, epsilon: float) -> tuple[int, int]:
    """How Hadamard response lays k symbols out: in B blocks of the non-constant rows of one matrix.

    Args:
        symbols: Number k of symbols, from 2 to 2**31.
        epsilon: Pure level of the response, finite, > 0.

    Returns:
        (B, b), powers of two: B = max(1, 2**(ceil(log2 min(e^epsilon, 2 k)) - 1)) blocks of dimension b, the
        least with B (b - 1) >= k.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> hadamard_blocks(1000, 1.0), hadamard_blocks(1000, 5.0), hadamard_blocks(10, 0.5)
        ((2, 512), (128, 16), (1, 16))

    Reference:
        Acharya, Sun and Zhang (2019), AISTATS, section 5.
    """
    k = check_count("symbols", symbols, low=2, high=2**31)
    epsilon = check_positive("epsilon", epsilon)
    # e^epsilon beyond 2 k changes nothing, and would overflow further up.
    reach = math.exp(epsilon) if epsilon < 40 else math.inf
    blocks = max(1, 1 << max(math.ceil(math.log2(min(reach, 2 * k))) - 1, 0))
    return blocks, next_power_of_two(-(-k // blocks) + 1)


def subset_size(values: int, epsilon: float) -> int:
    """Return ceil(k / (e^epsilon + 1)), the size w of the sets of subset selection, from 1 to k - 1.

    Args:
        values: Number k of values, from 2 to 2**31.
        epsilon: Pure level, finite, > 0.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> subset_size(10, 1.0), subset_size(10, 5.0)
        (3, 1)
    """
    k = check_count("values", values, low=2, high=2**31)
    return min(max(math.ceil(k * float(special.expit(-check_positive("epsilon", epsilon)))), 1), k - 1)
