"""Means over users who hold many samples each, private for all samples of a user at once.

Two rounds. First every user says, in one randomised bit, in which bin her own mean lies; the fullest bin is
broadcast, with its neighbours. Then every user reports her mean, clipped to that range, whose width is what
user means differ by and not what samples differ by. tau, bounds and sigma are public inputs: read off the
data without a budget, they would be releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.means.base import Error, Facts
from tacit.means.bitplanes import BitplaneMean
from tacit.means.hadamard import HadamardMean
from tacit.means.message import Round
from tacit.means.planes import plane_levels
from tacit.means.user_bins import Bins, user_means
from tacit.mechanisms import sample_laplace
from tacit.numerics import Array, RandomHadamard, as_rows, next_power_of_two, settle
from tacit.privacy import Compose, Event, Neighbours, TrustModel, Unit
from tacit.randomness import PublicStream

__all__ = [
    "UserLevelScalarMean",
    "UserLevelVectorMean",
    "central_user_mean",
]

_USERS = Neighbours(unit=Unit.PARTY)


@dataclass(frozen=True, kw_only=True, slots=True)
class UserLevelScalarMean:
    """The mean of user means of numbers in [-bound, bound], in two rounds.

    `range_mean` estimates the shares of the bins from `bins.one_hot(means)` with radius 1; its result goes
    through `bins.window` to all users; `report_mean` estimates the mean of what `centred` makes of the means,
    with the half-width as radius. `estimate` does all of it.

    Attributes:
        bound: Samples are clipped to [-bound, bound].
        tau: All user means should lie within tau of one point; see `subgaussian_tau`. Accuracy rests on it,
            privacy does not.
        local_epsilon: Pure level of both rounds of a user together.
        split: Share of the first round, in (0, 1).
        planes: Number of bits of a report, 1 to 30.
        trust: `local` or `shuffle`.
        honest_fraction: Behind a shuffler: fraction of the users, in (0, 1], who are honest. The others
            collude, and are among those that answer.
        n_min: Behind a shuffler: users below which it gives a round up. The price counts n_min users less all
            colluders. None: all must answer.

    Raises:
        ParameterError: A value is out of range.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> mean = UserLevelScalarMean(bound=10.0, tau=0.5, local_epsilon=2.0)
        >>> samples = rng.normal(2.3, 1.0, size=(5000, 100))
        >>> bool(abs(mean.estimate(samples, rng=rng) - 2.3) < 0.3)
        True

    Reference:
        Girgis (2023), Algorithms 3.7.1 to 3.7.4, Theorem 3.7.1, with the corrections of docs/errata.md.
    """

    bound: float
    tau: float
    local_epsilon: float
    split: float = 0.5
    planes: int = 1
    trust: TrustModel = TrustModel.LOCAL
    honest_fraction: float = 1.0
    n_min: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_probability("split", self.split, low_open=True, high_open=True)
        check_positive("local_epsilon", self.local_epsilon)
        _ = self.range_mean, self.report_mean

    @property
    def bins(self) -> Bins:
        """Where user means may lie."""
        return Bins(bound=self.bound, tau=self.tau)

    @property
    def range_mean(self) -> HadamardMean:
        """Estimator of the shares of the bins."""
        return HadamardMean(
            dim=self.bins.count,
            local_epsilon=self.split * self.local_epsilon,
            trust=self.trust,
            honest_fraction=self.honest_fraction,
            n_min=self.n_min,
            neighbours=_USERS,
        )

    @property
    def report_mean(self) -> BitplaneMean:
        """Estimator of the mean within the range; without a first round, it has the whole level."""
        left = 1.0 if self.bins.count == 1 else 1 - self.split
        levels = plane_levels(
            left * self.local_epsilon, planes=self.planes, samples=1, allocation="ldp", rule="level"
        )
        return BitplaneMean(
            dim=1,
            samples=1,
            local_epsilons=levels,
            trust=self.trust,
            honest_fraction=self.honest_fraction,
            n_min=self.n_min,
            neighbours=_USERS,
        )

    def centred(self, means: Array, window: tuple[float, float]) -> Array:
        """Return rows, shape (n, 1), of user means clipped to the range, minus its centre."""
        centre, half = window
        return np.clip(np.nan_to_num(means) - centre, -half, half)[:, None]

    def estimate(self, samples: npt.ArrayLike, *, rng: np.random.Generator) -> float:
        """Simulate both rounds.

        Args:
            samples: Shape (n, m), m samples of each of n users.
            rng: Source of all randomness.

        Raises:
            ParameterError: Another shape or dtype.
        """
        means, window = user_means(samples, self.bound), (0.0, self.bound)
        n = len(means)
        if self.bins.count > 1:
            shares = self.range_mean.estimate(self.bins.one_hot(means), Round(n=n, radius=1.0), rng=rng)
            window = self.bins.window(shares)
        this_round = Round(n=n, radius=window[1], number=1)
        found = self.report_mean.estimate(self.centred(means, window), this_round, rng=rng)
        return window[0] + float(found[0])

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what both rounds together tell the observer of that trust model about one user."""
        reports = self.report_mean.event(n, trust)
        if self.bins.count == 1:
            return reports
        return Compose((self.range_mean.event(n, trust), reports))

    def error(self, n: int) -> Error:
        """Return the largest error of the second round, if the range holds all user means."""
        return self.report_mean.error(n, Facts(radius=self.bins.half_width))

    def failure(self, n: int, gamma: float) -> float:
        """Bound the probability that `error` does not hold, where tau holds except with probability gamma."""
        return min(1.0, gamma + self.bins.failure(n, self.split * self.local_epsilon))


@dataclass(frozen=True, kw_only=True, slots=True)
class UserLevelVectorMean:
    """The mean of user means of vectors: rotated, then a range for each coefficient, then bit planes.

    The users are dealt at random, by public randomness, into as many groups as there are coefficients; each
    group finds the range of one, with its whole first share of the level.

    Attributes:
        dim: Number d of coordinates, >= 1.
        bound: Bound on the L2 norm of a user's mean; longer ones are clipped.
        tau: How far a coefficient of a user's mean lies from the true one; see `coordinate_tau`.
        local_epsilon: Pure level of both rounds of a user together.
        samples: Number of coefficients that a user reports, 1 to D.
        planes: Number of bits of a coefficient.
        split: Share of the first round, in (0, 1).

    Raises:
        ParameterError: A value is out of range.

    Reference:
        Girgis (2023), Remark 3.7.4, which only sketches it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = np.array([0.8, -0.3]) + rng.normal(0, 0.01, size=(20_000, 2))
        >>> mean = UserLevelVectorMean(dim=2, bound=1.0, tau=0.1, local_epsilon=4.0, samples=2)
        >>> bool(np.abs(mean.estimate(X, seed=1, rng=rng) - [0.8, -0.3]).max() < 0.05)
        True
    """

    dim: int
    bound: float
    tau: float
    local_epsilon: float
    samples: int
    planes: int = 1
    split: float = 0.5

    def __post_init__(self) -> None:
        settle(self)
        check_count("dim", self.dim)
        check_probability("split", self.split, low_open=True, high_open=True)
        check_positive("local_epsilon", self.local_epsilon)
        _ = self.range_mean, self.report_mean

    @staticmethod
    def coordinate_tau(tau: float, *, dim: int, n: int, gamma: float) -> float:
        """Return tau for one coefficient from an L2 distance tau: tau min(1, sqrt(2 ln(2 n D / gamma) / D)).

        Raises:
            ParameterError: An argument is out of range.
        """
        check_positive("tau", tau)
        check_count("n", n)
        check_probability("gamma", gamma, low_open=True, high_open=True)
        D = next_power_of_two(dim)
        return tau * min(1.0, math.sqrt(2 * math.log(2 * n * D / gamma) / D))

    @property
    def coded_dim(self) -> int:
        """Number D of coefficients."""
        return next_power_of_two(self.dim)

    @property
    def bins(self) -> Bins:
        """Where a coefficient may lie."""
        return Bins(bound=self.bound, tau=self.tau)

    @property
    def range_mean(self) -> HadamardMean:
        """Estimator of the shares of the bins of one coefficient."""
        return HadamardMean(
            dim=self.bins.count, local_epsilon=self.split * self.local_epsilon, neighbours=_USERS
        )

    @property
    def report_mean(self) -> BitplaneMean:
        """Estimator of the mean coefficients within their ranges."""
        left = 1.0 if self.bins.count == 1 else 1 - self.split
        levels = plane_levels(
            left * self.local_epsilon,
            planes=self.planes,
            samples=self.samples,
            allocation="ldp",
            rule="level",
        )
        return BitplaneMean(
            dim=self.coded_dim, samples=self.samples, local_epsilons=levels, neighbours=_USERS
        )

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what both rounds together tell about one user; she is in one group of the first."""
        reports = self.report_mean.event(n, trust)
        if self.bins.count == 1:
            return reports
        return Compose((self.range_mean.event(n, trust), reports))

    def estimate(self, means: npt.ArrayLike, *, seed: int, rng: np.random.Generator) -> Array:
        """Simulate both rounds.

        Args:
            means: Shape (n, dim): the mean of each user's samples; n >= D.
            seed: Of the public rotation and groups.
            rng: Source of all other randomness.

        Returns:
            Shape (dim,).

        Raises:
            ParameterError: Another shape or dtype, or fewer users than coefficients.
        """
        X, D = as_rows("means", means), self.coded_dim
        if X.shape[1] != self.dim or len(X) < D:
            raise ParameterError(f"means must have shape (n, {self.dim}) with n >= {D}, got {X.shape}.")
        stream = PublicStream(seed, 0, purpose="user level")
        rotation = RandomHadamard.draw(self.dim, stream)
        coded = rotation.forward(X, r2=self.bound).astype(np.float64)
        centres, half = np.zeros(D), self.bound
        if self.bins.count > 1:
            for c, group in enumerate(np.array_split(stream.permutation(len(X)), D)):
                this_round = Round(n=len(group), radius=1.0)
                rows = self.bins.one_hot(coded[group, c])
                centres[c], half = self.bins.window(self.range_mean.estimate(rows, this_round, rng=rng))
        inside = np.clip(coded - centres, -half, half)
        found = self.report_mean.estimate(inside, Round(n=len(X), radius=half, number=1), rng=rng)
        return rotation.inverse(found + centres)


def central_user_mean(
    samples: npt.ArrayLike, *, bound: float, tau: float, epsilon: float, rng: np.random.Generator
) -> float:
    """Estimate the mean of user means with a trusted server: the baseline (in simulation only).

    Args:
        samples: Shape (n, m).
        bound: Samples are clipped to [-bound, bound].
        tau: See `UserLevelScalarMean`.
        epsilon: Pure level, half of it for each step.
        rng: Source of the randomness.

    Returns:
        The clipped mean plus Laplace noise of scale 12 tau / (n epsilon). The bin is drawn by the exponential
        mechanism with the cost max(#users below, #users above), of sensitivity 1.

    Raises:
        ParameterError: A value is out of range.

    Reference:
        Levy et al. (2021), NeurIPS, as Remark 3.7.3 of Girgis (2023) describes it.
    """
    check_positive("epsilon", epsilon)
    means, bins = user_means(samples, bound), Bins(bound=bound, tau=tau)
    counts = np.bincount(bins.index(means), minlength=bins.count)
    up_to = np.cumsum(counts)
    cost = np.maximum(up_to - counts, len(means) - up_to)
    weights = np.exp(-epsilon / 4 * (cost - cost.min()))
    window = bins.window(rng.multinomial(1, weights / weights.sum()).astype(np.float64))
    inside = np.clip(means - window[0], -window[1], window[1]).mean()
    noise = sample_laplace(2 * window[1] / (len(means) * epsilon / 2), 1, rng)
    return window[0] + float(inside + noise[0])
