"""What an optimal noise function maximises: sum over l >= h of c_l gamma(l), for one belief or another.

Which belief is meant matters. "One-sided" is a consensus: every teacher votes 1 with a mean probability above
one half (or below: the same by symmetry). "Expected error" is any prior. An objective never touches privacy.

Source: Jiang (2025), Eq. 3.2 and Algorithms 9 and 10. Eq. B.57 drops an absolute value, so its objective is 0
under symmetric priors (see docs/errata.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array
from tacit.voting.error import Prior, drawn, leanings, poisson_binomial_pmf

__all__ = [
    "DesignObjective",
    "check_objective",
    "expected_error",
    "monte_carlo",
    "one_sided",
]

_BATCH = 20_000  # draws at a time
_MOST_TEACHERS, _MOST_DRAWS = 10**4, 10**7


class DesignObjective(msgspec.Struct, frozen=True):
    """A linear objective.

    Attributes:
        coefficients: c_l for l = h, ..., K: ceil(K / 2) finite numbers, not all zero.
        name: What it stands for, in words.
    """

    coefficients: tuple[float, ...]
    name: str

    def __post_init__(self) -> None:
        if not self.coefficients or not all(map(math.isfinite, self.coefficients)):
            raise ParameterError("coefficients must be finite numbers, at least one.")
        if not any(self.coefficients):
            raise ParameterError(
                "coefficients must not all be zero: under a symmetric prior the signed objective vanishes, "
                "and any gamma is optimal. State a consensus with one_sided, or use expected_error."
            )

    def value(self, gamma: npt.ArrayLike) -> float:
        """Return the objective at gamma of shape (ceil(K / 2),)."""
        half = np.asarray(gamma, dtype=np.float64)
        if half.shape != (len(self.coefficients),):
            raise ParameterError(f"gamma must have shape ({len(self.coefficients)},), got {half.shape}.")
        return float(np.array(self.coefficients) @ half)


def check_objective(objective: object) -> None:
    """Refuse what is not an objective."""
    if not isinstance(objective, DesignObjective):
        raise ParameterError(f"objective must be a DesignObjective, got a {type(objective).__name__}.")


def one_sided(teachers: int, mean: npt.ArrayLike = 0.75) -> DesignObjective:
    """Return the objective of a consensus, in closed form.

    Args:
        teachers: K >= 1.
        mean: Mean of the p_i, in (1/2, 1], or one mean per teacher, shape (K,). Draws of U[1/2, 1] have 0.75.

    Returns:
        c_l = (P(L = l) - P(L = K - l)) / 2: the objective is P(bit = majority side) - 1/2 at these means.

    Raises:
        ParameterError: A mean outside (1/2, 1].

    Example:
        >>> round(one_sided(11).value(np.ones(6)), 8)
        0.46567249

    Reference:
        Jiang (2025), Eqs. B.61 and B.62.
    """
    check_count("teachers", teachers, high=_MOST_TEACHERS)
    try:
        mean = np.asarray(mean, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError("mean must be a number, or one for each teacher.") from None
    if mean.shape not in ((), (1,), (teachers,)):
        raise ParameterError(f"mean must be a number or have shape ({teachers},), got shape {mean.shape}.")
    means = np.broadcast_to(mean, (teachers,))
    if not np.all((means > 0.5) & (means <= 1)):
        raise ParameterError("mean must be in (1/2, 1]: a consensus on the side of 1.")
    shown = f"{float(means[0]):.6g}" if np.all(means == means[0]) else "given means"
    return _objective(leanings(poisson_binomial_pmf(means)) / 2, f"one-sided consensus, mean {shown}")


def monte_carlo(teachers: int, prior: Prior, *, draws: int, rng: np.random.Generator) -> DesignObjective:
    """Return the signed objective under a prior, by simulation.

    Args:
        teachers: K >= 1.
        prior: What the p_i are drawn from. Where it is symmetric about 1/2, the true coefficients are 0 and
            these are noise.
        draws: How many, >= 1.
        rng: Source of the draws; no privacy rests on it.

    Reference:
        Jiang (2025), Algorithm 9.
    """
    check_count("draws", draws, high=_MOST_DRAWS)
    total = sum(leanings(law).sum(axis=0) for law in _laws(teachers, prior, draws, rng))
    return _objective(np.asarray(total) / (2 * draws), f"signed objective, {draws} draws")


def expected_error(teachers: int, prior: Prior, *, draws: int, rng: np.random.Generator) -> DesignObjective:
    """Return the objective that lowers the expected error itself under a prior.

    Args:
        teachers: K >= 1.
        prior: What the p_i are drawn from, symmetric about 1/2 or not. Noise functions are symmetric; under
            a prior that is not, one that favours an answer might err less, at the same price.
        draws: How many, >= 1.
        rng: Source of the draws; no privacy rests on it.

    Returns:
        c_l = E[sign(sum d) d_l] / 2 with d_l = alpha_l - alpha_{K-l}: the error is the mean of
        |sum d_l (1 - gamma(l))| / 2, linear as long as noise does not turn the side that leads.

    Reference:
        Jiang (2025), Eq. 3.2, made linear here: an absolute value is, as long as its sign stays.
    """
    check_count("draws", draws, high=_MOST_DRAWS)
    total = 0.0
    for law in _laws(teachers, prior, draws, rng):
        lean = leanings(law)
        total = total + (np.sign(lean.sum(axis=1, keepdims=True)) * lean).sum(axis=0)
    return _objective(np.asarray(total) / (2 * draws), f"expected error, {draws} draws")


def _laws(teachers: int, prior: Prior, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield the laws of L of many draws, in batches."""
    check_count("teachers", teachers, high=_MOST_TEACHERS)
    sizes = [min(_BATCH, draws - start) for start in range(0, draws, _BATCH)]
    for size in sizes:
        yield poisson_binomial_pmf(drawn(prior, size, teachers, rng))


def _objective(coefficients: Array, name: str) -> DesignObjective:
    """Return an objective of an array."""
    return DesignObjective(tuple(float(c) for c in coefficients), name)
