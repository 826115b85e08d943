"""GNMax: the noisy winner among the votes of teachers that are not private themselves.

Every teacher holds its own shard, so one record moves one vote: two counts change by one. That is another
trust model than that of `NoiseFunction`, whose teachers are private and may share their data.

Source: Papernot et al. (2018), arXiv:1802.08908; Jiang (2025), Section B.4.1.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count, check_positive, check_probability, real, shown
from tacit.mechanisms import sample_discrete_gaussian
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import DiscreteGaussian, Gaussian, Neighbours, PrivacyBudget, calibrate

__all__ = [
    "GNMax",
    "RdpBound",
    "gnmax_data_dependent_rdp",
    "gnmax_sigma_analytic",
    "gnmax_sigma_rdp",
]

_ROOT_2 = math.sqrt(2)  # a float just above the root
_MOST_CLASSES = 10**6
_MOST_EPSILON = 1e6  # far beyond any privacy; squares stay finite
_STEPS = 2.0**20  # grid steps that one sigma has at least
_ROUND_UP = 1 + 1e-12


class GNMax(msgspec.Struct, frozen=True, kw_only=True):
    """Publish the class with the most votes, after Gaussian noise on every count.

    Attributes:
        sigma: Standard deviation of the noise on each count. In [2^-10, 2^30].
        classes: C >= 2.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Papernot et al. (2018), arXiv:1802.08908. The noise is drawn exactly, from the discrete Gaussian on a
        grid of at least 2^20 steps per sigma, and priced by its own law.
    """

    sigma: float
    classes: int = 2

    def __post_init__(self) -> None:
        settle(self)
        _check_sigma(self.sigma)
        check_count("classes", self.classes, low=2, high=_MOST_CLASSES)

    @property
    def _scale(self) -> int:
        """Grid steps of one vote."""
        return 1 << max(math.ceil(math.log2(_STEPS / self.sigma)), 0)

    def release(self, votes: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Publish the noisy winner of every query.

        Args:
            votes: Shape (queries, K), classes 0, ..., C - 1 that the teachers vote for.
            rng: Source of the noise; the secure stream when the winners leave.

        Returns:
            Shape (queries,), classes.

        Raises:
            ParameterError: Votes of another shape or outside the classes.
        """
        ballots = np.asarray(votes)
        if ballots.ndim != 2 or ballots.dtype.kind not in "iu":
            raise ParameterError(
                f"votes must be whole numbers of shape (queries, K), got {ballots.dtype} of shape "
                f"{ballots.shape}."
            )
        if ballots.size and (ballots.min() < 0 or ballots.max() >= self.classes):
            raise ParameterError(f"votes must be classes from 0 to {self.classes - 1}.")
        cells = ballots.astype(np.int64) + self.classes * np.arange(len(ballots))[:, None]
        counts = np.bincount(cells.ravel(), minlength=self.classes * len(ballots))
        return self.release_counts(counts.reshape(-1, self.classes), rng)

    def release_counts(self, counts: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Publish the noisy winner for each row of counts; as `release`, with shape (queries, C)."""
        tally = _counts(counts, self.classes)
        scale = self._scale
        noise = sample_discrete_gaussian(self.sigma * scale, tally.shape, rng)
        return np.asarray((tally * scale + noise).argmax(axis=1), dtype=np.int64)

    def event(self, neighbours: Neighbours | None = None) -> DiscreteGaussian:
        """Return what one winner reveals: less than all noisy counts."""
        scale = self._scale
        return DiscreteGaussian(self.sigma * scale, _ROOT_2 * scale, neighbours or Neighbours(), self.classes)

    def correct_probability(self, margin: npt.ArrayLike) -> Array:
        """Return P(the class ahead by `margin` votes wins), of two classes."""
        if self.classes != 2:
            raise ParameterError(f"correct_probability is for 2 classes, got {self.classes}.")
        return np.asarray(special.ndtr(np.asarray(margin, dtype=np.float64) / (math.sqrt(2) * self.sigma)))


def gnmax_sigma_rdp(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the least sigma that Rényi-DP proves, and its order: Jiang (2025), in closed form.

    Args:
        epsilon: Of one published winner. Finite, > 0.
        delta: In (0, 1).

    Returns:
        (sigma, order): order = l + sqrt(l^2 - l) with l = ln(1/delta)/epsilon + 1, and sigma^2 =
        order (order - 1) / (epsilon (order - l)).

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> sigma, order = gnmax_sigma_rdp(0.2676, 3e-4)
        >>> round(sigma, 4), round(order, 3)
        (21.4605, 62.122)

    Reference:
        Jiang (2025), Theorem B.4.1, whose Table B.2 prints the start of its grid as the order.
    """
    epsilon, delta = _check_target(epsilon, delta)
    least = -math.log(delta) / epsilon + 1
    order = least + math.sqrt(least * least - least)
    if order == least:
        raise ParameterError(
            f"epsilon and delta must be smaller, got {epsilon!r} and {delta!r}: no order of Rényi-DP tells "
            "such a target from nothing."
        )
    return math.sqrt(order * (order - 1) / (epsilon * (order - least))) * _ROUND_UP, order


def gnmax_sigma_analytic(epsilon: float, delta: float) -> float:
    """Return the least sigma by the exact curve of the noisy counts, for any number of classes.

    Arguments and errors as `gnmax_sigma_rdp`.

    Reference:
        Balle and Wang (2018), arXiv:1805.06530, Theorem 8, with mu = sqrt(2) / sigma.

    Example:
        >>> round(gnmax_sigma_analytic(0.2676, 3e-4), 4)
        12.9039
    """
    epsilon, delta = _check_target(epsilon, delta)
    budget = PrivacyBudget(epsilon, delta)
    return calibrate(Gaussian, budget, low=1e-3, high=1e6) * _ROOT_2 * _ROUND_UP


class RdpBound(msgspec.Struct, frozen=True):
    """A bound on a Rényi divergence.

    Attributes:
        value: The bound.
        order: Its order.
        data_dependent: Whether it was computed from private votes, also where it is that of the Gaussian
            because of them; then it must not be published as it is.
    """

    value: float
    order: float
    data_dependent: bool


def gnmax_data_dependent_rdp(
    counts: npt.ArrayLike, sigma: float, order: float, *, both: bool = True
) -> RdpBound:
    """Return a Rényi bound of one winner that is far smaller where the teachers agree.

    Args:
        counts: Shape (C,), votes per class, C >= 2. Private.
        sigma: Standard deviation of the noise, in [2^-10, 2^30].
        order: lambda > 1.
        both: Bound the divergence in both directions; False is the printed theorem, which bounds only that of
            the law with these votes from the law with one vote moved.

    Returns:
        The bound, at most order / sigma^2; it depends on the private votes and must not be published. The
        other direction is the printed theorem at the moved votes, so both are bounded by the largest bound at
        these votes and at all that are one vote away.

    Raises:
        ParameterError: A value out of its range, counts of another shape.

    Example:
        >>> bound = gnmax_data_dependent_rdp([245, 5], 40.0, 20.0, both=False)
        >>> f"{bound.value:.6e}", bound.data_dependent
        ('1.600985e-05', True)

    Reference:
        Jiang (2025), Algorithm 11, with the logarithm of its line 11 and the exponents of lines 7 and 9 set
        right (see docs/errata.md).
    """
    _check_sigma(sigma)
    if not (math.isfinite(order) and order > 1):
        raise ParameterError(f"order must be a finite number > 1, got {order!r}.")
    votes = np.asarray(counts)
    tally = _counts(votes[None] if votes.ndim == 1 else votes, votes.shape[-1] if votes.ndim else 0)[0]
    near = _one_vote_away(tally) if both else np.empty((0, len(tally)), dtype=np.int64)
    value = max(_printed_bound(one, float(sigma), float(order)) for one in (tally, *near))
    return RdpBound(value, float(order), data_dependent=True)


def _one_vote_away(tally: IntArray) -> IntArray:
    """Return all counts in which one vote went to another class: shape (at most C (C - 1), C)."""
    classes = len(tally)
    lost, won = np.nonzero(~np.eye(classes, dtype=bool))
    moved = np.tile(tally, (len(lost), 1))
    rows = np.arange(len(lost))
    moved[rows, lost] -= 1
    moved[rows, won] += 1
    return np.asarray(moved[tally[lost] > 0])


def _printed_bound(tally: IntArray, sigma: float, order: float) -> float:
    """Return the bound of Algorithm 11, corrected, on the divergence from any law one vote away."""
    gaussian = order / sigma**2
    winner = int(tally.argmax())
    gaps = (tally[winner] - np.delete(tally, winner)).astype(np.float64)
    log_q = float(special.logsumexp(special.log_ndtr(-gaps / (math.sqrt(2) * sigma))))
    if log_q >= 0:
        return gaussian
    mu2 = sigma * math.sqrt(-log_q)
    mu1 = mu2 + 1
    e1, e2 = mu1 / sigma**2, mu2 / sigma**2
    if not (mu1 >= order and mu2 > 1):
        return gaussian
    log_limit = (mu2 - 1) * e2 - mu2 * (math.log(mu1 / (mu1 - 1)) + math.log(mu2 / (mu2 - 1)))
    log_base = (mu2 - 1) / mu2 * (log_q + e2)
    if log_q > log_limit or log_base >= 0:
        return gaussian
    log_p = math.log1p(-math.exp(log_q))
    log_a = log_p - math.log1p(-math.exp(log_base))
    log_b = e1 - log_q / (mu1 - 1)
    log_moment = np.logaddexp(log_p + (order - 1) * log_a, log_q + (order - 1) * log_b)
    value = float(log_moment) / (order - 1)
    # A value below what rounding of the logarithms hides is rounded up to that.
    value = max(value, 0.0) * _ROUND_UP + 1e-15 / (order - 1)
    return min(value, gaussian)


def _check_sigma(sigma: float) -> None:
    """Refuse noise out of the range in which everything here is computed reliably."""
    if not 2.0**-10 <= real("sigma", sigma) <= 2.0**30:  # stated as what is allowed: NaN fails it
        raise ParameterError(f"sigma must be in [2**-10, 2**30], got {shown(sigma)}.")


def _check_target(epsilon: float, delta: float) -> tuple[float, float]:
    """Return a target of approximate DP as Python's numbers; refuse what is none."""
    level = check_positive("epsilon", epsilon)
    if level > _MOST_EPSILON:
        raise ParameterError(f"epsilon must be at most {_MOST_EPSILON:g}, got {shown(epsilon)}.")
    return level, check_probability("delta", delta, low_open=True, high_open=True)


def _counts(counts: npt.ArrayLike, classes: int) -> IntArray:
    """Return votes per class of shape (queries, C), checked."""
    tally = np.asarray(counts)
    if tally.dtype.kind not in "iu" or tally.ndim != 2 or tally.shape[1] != classes or classes < 2:
        raise ParameterError(
            f"counts must be whole numbers of shape (queries, {max(classes, 2)}), got {tally.dtype} of shape "
            f"{tally.shape}."
        )
    if tally.size and (tally.min() < 0 or tally.max() > 2**20):
        raise ParameterError("counts must be from 0 to 2**20.")
    return tally.astype(np.int64)
