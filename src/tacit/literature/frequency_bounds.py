"""What no estimate of a distribution from local reports beats, as proven and as printed."""

from __future__ import annotations

import math
from typing import Literal

from scipy import special

from tacit.errors import check_choice, check_count, check_positive, check_probability
from tacit.numerics import binary_entropy, binary_entropy_inv

__all__ = ["frequency_lower_bound", "unlimited_frequency_bound"]


def frequency_lower_bound(
    k: int,
    epsilon: float,
    n: int,
    *,
    random_bits: float = 1.0,
    loss: Literal["l2", "l1"] = "l2",
    form: Literal["sound", "printed"] = "sound",
) -> float:
    """Return a lower bound on the minimax error of n reports about a distribution on k values.

    Args:
        k: Number of values, >= 2. Odd ones count as one less.
        epsilon: Pure level of a report, finite, > 0.
        n: Number of reports.
        random_bits: Bound R on the entropy of a report given the value, in (0, 1].
        loss: "l2" is the mean squared l2 error, "l1" the mean l1 error.
        form: "sound" is proven for all k, epsilon, n and R. "printed" is that of the source, which exceeds
            what its own mechanism attains where R is small, and is not proven for n below about k^2; for
            tables only.

    Returns:
        The largest of the bounds of that form.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(frequency_lower_bound(16, 1.0, 1_000_000), 12)
        6.860806e-06
        >>> frequency_lower_bound(16, 1.0, 10**7, random_bits=0.01, form="printed") > 1.309e-2  # attained
        True

    Reference:
        Girgis (2023), Theorem 7.3.1 (printed). The sound forms: van Trees with a prior of width 1 / k, and
        Assouad, with the divergence that R bits allow; docs/theory/frequencies.md, section 7.
    """
    k, n = check_count("k", k, low=2), check_count("n", n)
    epsilon = check_positive("epsilon", epsilon)
    bits = check_probability("random_bits", random_bits, low_open=True)
    check_choice("loss", loss, ("l2", "l1"))
    check_choice("form", form, ("sound", "printed"))
    t = math.tanh(epsilon / 2)
    enough = bits >= binary_entropy(float(special.expit(-epsilon)))
    p = binary_entropy_inv(bits)
    if form == "printed":
        # e^epsilon / (e^epsilon - 1)^2, without overflow.
        part = -math.exp(-epsilon) / math.expm1(-epsilon) / -math.expm1(-epsilon)
        tau = k / (16 * n * math.exp(epsilon) * t**2) if enough else k * part / (16 * n * p**2)
        return tau if loss == "l2" else math.sqrt(k * tau / 8)
    k -= k % 2
    spread = 2 * t**2
    if not enough:
        spread = min(spread, 2 * t**2 * p + (p * math.expm1(-epsilon)) ** 2 / (2 * (1 - p)))
    information = n * math.exp(min(epsilon, 700.0)) * spread
    sigma = 2 * math.sqrt(information)
    if loss == "l1":
        delta = min(1 / k, 1 / (2 * sigma))
        return k / 2 * delta * (1 - delta * sigma)
    delta = min(1 / k, 2 / (3 * sigma))
    return max(k / 2 / (information + 2 * math.pi**2 * k**2), k / 2 * delta**2 * (1 - delta * sigma))


def unlimited_frequency_bound(k: int, epsilon: float, n: int) -> float:
    """Return the lower bound on the mean squared l2 error with any randomness of Ye and Barg (2018).

    Args:
        k: Number of values, >= 2.
        epsilon: Pure level of a report, finite, > 0.
        n: Number of reports; the bound is for many.

    Returns:
        k (e^epsilon + 1)^2 / (512 n (e^epsilon - 1)^2) for e^epsilon < 3, else k / (64 n (e^epsilon - 1)).

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(unlimited_frequency_bound(100, 1.0, 1000), 6)
        0.000915
    """
    k, n = check_count("k", k, low=2), check_count("n", n)
    epsilon = check_positive("epsilon", epsilon)
    if epsilon < math.log(3):
        return k / (512 * n * math.tanh(epsilon / 2) ** 2)
    return k / (64 * n * math.expm1(min(epsilon, 700.0)))
