"""How often a noisy majority differs from the majority, for given votes and on average over a prior."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_probability
from tacit.numerics import Array
from tacit.privacy.certified import output_probabilities

__all__ = [
    "Prior",
    "drawn",
    "expected_majority_error",
    "leanings",
    "majority_error",
    "output_probability",
    "poisson_binomial_pmf",
    "polarised_prior",
    "uniform_prior",
]

Prior = Callable[[int, int, np.random.Generator], Array]
"""`prior(draws, teachers, rng)`: probabilities that a teacher votes 1, shape (draws, teachers), in [0, 1]."""


def poisson_binomial_pmf(p: npt.ArrayLike) -> Array:
    """Return the law of the number of ones of independent votes.

    Args:
        p: Shape (..., K), each in [0, 1].

    Returns:
        Shape (..., K + 1). Only non-negative numbers are added, so the relative error is about K 2^-53 even
        in the tails.

    Raises:
        ParameterError: A probability outside [0, 1].

    Reference:
        Derived here: one convolution with (1 - p_i, p_i) a teacher, O(K^2).
    """
    chances = np.asarray(p, dtype=np.float64)
    if chances.ndim == 0 or not np.all((chances >= 0) & (chances <= 1)):
        raise ParameterError("p must be a vector of probabilities in [0, 1], or rows of them.")
    k = chances.shape[-1]
    # The count comes first, so that each step works on whole contiguous blocks.
    law = np.zeros((k + 1, *chances.shape[:-1]))
    law[0] = 1.0
    for i in range(k):
        one = chances[..., i]
        law[1 : i + 2] = law[1 : i + 2] * (1 - one) + law[: i + 1] * one
        law[0] = law[0] * (1 - one)
    return np.moveaxis(law, 0, -1)


def output_probability(gamma: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """Return P(the published bit is 1) when teacher i votes 1 with probability p_i.

    Args:
        gamma: Shape (ceil(K / 2),).
        p: Shape (..., K).

    Returns:
        Shape (...).

    Reference:
        docs/theory/voting.md, section 2: H(p).
    """
    law = poisson_binomial_pmf(p)
    return np.asarray(law @ output_probabilities(law.shape[-1] - 1, gamma))


def majority_error(gamma: npt.ArrayLike, p: npt.ArrayLike) -> Array:
    """Return |P(published bit is 1) - P(majority is 1)|: the total variation distance of the two bits.

    Args:
        gamma: Shape (ceil(K / 2),).
        p: Shape (..., K).

    Returns:
        Shape (...), in [0, 1]: |sum over l >= h of (alpha_l - alpha_{K-l}) (1 - gamma(l))| / 2.

    Reference:
        Jiang (2025), Definition 3.3.4.
    """
    lost = 1 - np.asarray(gamma, dtype=np.float64)
    law = poisson_binomial_pmf(p)
    output_probabilities(law.shape[-1] - 1, gamma)  # shape and range
    return np.abs(leanings(law) @ lost) / 2


def leanings(law: Array) -> Array:
    """Return alpha_l - alpha_{K-l} for l = h, ..., K, of laws of shape (..., K + 1)."""
    h = law.shape[-1] // 2 if law.shape[-1] % 2 == 0 else law.shape[-1] // 2 + 1
    return np.asarray(law[..., h:] - law[..., ::-1][..., h:])


def uniform_prior(low: float = 0.0, high: float = 1.0) -> Prior:
    """Return the prior under which all p_i are independent and uniform on [low, high].

    Raises:
        ParameterError: Not 0 <= low <= high <= 1.
    """
    check_probability("low", low)
    check_probability("high", high)
    if low > high:
        raise ParameterError(f"low must be at most high = {high!r}, got {low!r}.")
    return lambda draws, teachers, rng: rng.uniform(low, high, (draws, teachers))


def polarised_prior(edge: float = 0.3) -> Prior:
    """Return the prior under which all p_i are independent and uniform on [0, edge] and [1 - edge, 1].

    Reference:
        Jiang (2025), Figure B.7: its prior T_P has an edge of 0.3.

    Raises:
        ParameterError: An edge outside [0, 1/2].
    """
    if not 0 <= edge <= 0.5:
        raise ParameterError(f"edge must be in [0, 1/2], got {edge!r}.")

    def draw(draws: int, teachers: int, rng: np.random.Generator) -> Array:
        p = rng.uniform(0, 2 * edge, (draws, teachers))
        return np.where(p > edge, p + (1 - 2 * edge), p)

    return draw


def expected_majority_error(
    gamma: npt.ArrayLike, teachers: int, prior: Prior, *, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean of `majority_error` over a prior, and its standard error.

    Args:
        gamma: Shape (ceil(K / 2),).
        teachers: K.
        prior: What the p_i are drawn from.
        draws: How many, >= 2.
        rng: Source of the draws: of simulation, no privacy rests on it.

    Raises:
        ParameterError: A prior of another shape or outside [0, 1].

    Reference:
        Jiang (2025), Eq. 3.2.
    """
    check_count("draws", draws, low=2)
    errors = majority_error(gamma, drawn(prior, draws, teachers, rng))
    return float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(draws)


def drawn(prior: Prior, draws: int, teachers: int, rng: np.random.Generator) -> Array:
    """Return draws of a prior, of the right shape and range."""
    p = np.asarray(prior(draws, teachers, rng), dtype=np.float64)
    if p.shape != (draws, teachers) or not np.all((p >= 0) & (p <= 1)):
        raise ParameterError(
            f"prior must return probabilities of shape ({draws}, {teachers}), got shape {p.shape}."
        )
    return p
