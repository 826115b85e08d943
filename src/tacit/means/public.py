"""Means with public data: a private mean, a public mean and one weight (Lowy 2023, Sections 2.2 and 2.3).

Some records are public and need no protection. Neighbours replace one private record (`part=Part.PRIVATE`);
which records are private is fixed and known. The weights are public numbers and applied to what has been
released, so the price is that of the private mean alone, whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator
from tacit.means.message import Message, Round
from tacit.means.violations import OnViolation, check_on_violation, clipped_rows
from tacit.numerics import Array, Norm, as_rows, settle
from tacit.privacy import Event, Neighbours, Part, PureDP, TrustModel

__all__ = [
    "PRIVATE_RECORD",
    "SemiPrivateMean",
    "optimal_private_weight",
    "public_mean",
    "public_variance",
    "throw_away_mean",
    "weighted_private_mean",
]

PRIVATE_RECORD = Neighbours(part=Part.PRIVATE)
"""Replacing one private record; the number of private records, and all of the public ones, stay."""


def public_mean(
    rows: npt.ArrayLike, radius: float, *, norm: Norm = "l2", on_violation: OnViolation = "error"
) -> Array:
    """Average public rows of the ball that private ones are clipped to.

    Args:
        rows: Shape (n, d), n >= 1, finite. Public: a bad one is an error, and not counted as zero.
        radius: Norm bound of a row, finite, >= 0.
        norm: Of the ball.
        on_violation: "error" refuses a row outside of the ball, "clip" scales it into the ball, as private
            ones are.

    Returns:
        Shape (d,), float64: the throw-away estimate of a mean that private and public rows share.

    Raises:
        ParameterError: No rows, another shape or dtype, a NaN or an infinity, or a row that is refused.

    Example:
        >>> public_mean([[1.0, 0.0], [0.0, 3.0]], 1.0, on_violation="clip").round(12).tolist()
        [0.5, 0.5]

    Reference:
        Lowy (2023), Lemma 17. Its mean squared error is V^2 / n, where V^2 is the variance of a row.
    """
    return np.asarray(_public_rows(rows, radius, norm, on_violation).mean(axis=0, dtype=np.float64))


def throw_away_mean(
    rows: npt.ArrayLike,
    radius: float,
    *,
    n: int,
    norm: Norm = "l2",
    on_violation: OnViolation = "error",
) -> Array:
    """Estimate the mean of n rows from the public ones among them alone: private rows count as zero.

    Args:
        rows: Shape (n_public, d), as for `public_mean`.
        radius: Norm bound of a row.
        n: Number of all rows, private and public.
        norm: Of the ball.
        on_violation: As for `public_mean`.

    Returns:
        Shape (d,), float64; off by at most (n_private / n) * radius, whatever the data are.

    Raises:
        ParameterError: As for `public_mean`, or more public rows than n.

    Reference:
        Lowy (2023), Theorem 77, which does not assume one law of all rows.
    """
    public = _public_rows(rows, radius, norm, on_violation)
    check_count("n", n, low=len(public))
    return np.asarray(public.sum(axis=0, dtype=np.float64) / n)


def public_variance(rows: npt.ArrayLike, radius: float, *, on_violation: OnViolation = "error") -> float:
    """Estimate V^2, the total variance of a row, from public rows alone.

    Args:
        rows: Shape (n, d), n >= 2, finite.
        radius: L2 norm bound of a row; V^2 never exceeds its square.
        on_violation: As for `public_mean`.

    Returns:
        sum ||x - mean||^2 / (n - 1) over the clipped rows, at most radius**2.

    Raises:
        ParameterError: Fewer than two rows, another shape or dtype, a NaN or an infinity.

    Example:
        >>> public_variance([[1.0, 0.0], [0.0, 1.0]], 1.0)
        1.0

    Reference:
        V^2 of Lowy (2023), Section 2.2.1: it sums over coordinates, and must not be read off private data.
    """
    public = _public_rows(rows, radius, "l2", on_violation).astype(np.float64)
    check_count("the number of public rows", len(public), low=2)
    found = float(np.square(public - public.mean(axis=0)).sum()) / (len(public) - 1)
    return min(found, float(radius) ** 2)


def optimal_private_weight(
    noise_variance: float, *, population_variance: float, n_private: int, n_public: int
) -> float:
    """Return the weight of the private mean with the least error for a mean that all rows share.

    Inverse variances: w = (V^2 / n_public) / (noise + V^2 / n_private + V^2 / n_public). The weight
    of one private record is r* = w / n_private in Lowy (2023).

    Args:
        noise_variance: E||private mean - mean of the private rows||^2, summed over coordinates, >= 0.
        population_variance: V^2, the total variance of a row, >= 0. Public.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.

    Returns:
        In [0, 1]; 0 where V^2 = 0.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> w = optimal_private_weight(4 / 75, population_variance=0.25, n_private=15, n_public=5)
        >>> round(w / 15, 10)  # d = 3, B = 1, rho = 0.5
        0.0277777778

    Reference:
        Lowy (2023), eq. (2.4); its (2.6) is this optimum, not a bound (docs/errata.md).
    """
    check_non_negative("noise_variance", noise_variance)
    check_non_negative("population_variance", population_variance)
    check_count("n_private", n_private)
    check_count("n_public", n_public)
    if population_variance == 0:
        return 0.0
    # In units of V^2: neither a tiny nor a huge variance divides to nothing.
    noise = noise_variance / population_variance
    return (1 / n_public) / (noise + 1 / n_private + 1 / n_public)


@dataclass(frozen=True, kw_only=True)
class SemiPrivateMean:
    """A private mean and a public mean, added up with public weights.

    `private` may be any estimator: central noise, parties' own noise, randomised rows (semi-local privacy) or
    shuffled sums. Weight 0 asks nothing of the private parties. With weight n_private / n, and the rest on
    the public rows, it estimates the mean of all rows.

    Attributes:
        private: Estimates the mean of the private rows; its neighbours must have part `PRIVATE`.
        weight: Of the private mean, in [0, 1].
        public_weight: Of the public mean, in [0, 1]; None: 1 - weight. Together at most 1.
        norm: Norm of the ball of public rows, as of private ones.
        on_violation: What becomes of a *public* row outside of the ball; the private estimator decides about
            private ones.

    Raises:
        ParameterError: A value is out of its range, or `private` protects something else.

    Example:
        >>> from tacit.means import AdditiveMean, GaussianNoise
        >>> noisy = AdditiveMean(dim=1, noise=GaussianNoise(1.0), neighbours=PRIVATE_RECORD)
        >>> mean = SemiPrivateMean(private=noisy, weight=0.0)
        >>> rng = np.random.default_rng(0)
        >>> facts, public = Round(n=8, radius=1.0), np.array([[0.25], [0.75]])
        >>> mean.estimate(np.ones((8, 1)), public, facts, rng=rng).tolist()
        [0.5]

    Reference:
        Lowy (2023), Sections 2.2.1 and 2.3.1: A = w M_private + (1 - w) M_public.
    """

    private: MeanEstimator
    weight: float
    public_weight: float | None = None
    norm: Norm = "l2"
    on_violation: OnViolation = "error"

    def __post_init__(self) -> None:
        settle(self)
        check_on_violation(self.on_violation)
        check_probability("weight", self.weight)
        if self.public_weight is not None:
            check_probability("public_weight", self.public_weight)
            if self.weight + self.public_weight > 1 + 1e-12:
                raise ParameterError(
                    f"weight + public_weight must be at most 1, got {self.weight!r} + {self.public_weight!r}."
                )
        if self.private.neighbours.part is not Part.PRIVATE:
            raise ParameterError(
                "private must have neighbours with part=Part.PRIVATE, since public rows are not protected, "
                f"got {self.private.neighbours!r}."
            )

    @property
    def dim(self) -> int:
        """Number of coordinates of a row."""
        return self.private.dim

    @property
    def neighbours(self) -> Neighbours:
        """The relation under which the private mean is priced."""
        return self.private.neighbours

    @property
    def weight_of_public(self) -> float:
        """Weight of the public mean."""
        return 1 - self.weight if self.public_weight is None else self.public_weight

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Write the messages of one party about its private rows; none with weight 0.

        Args:
            rows: Shape (k, dim), the party's private rows.
            round: Public facts; its n is the number of private rows.
            party: Index of the party.
            rng: The party's secret randomness.
        """
        return self.private.encode(rows, round, party=party, rng=rng) if self.weight else []

    def decode(
        self,
        messages: list[Message],
        public_rows: Array,
        round: Round,
        *,
        rng: np.random.Generator | None = None,
    ) -> Array:
        """Decode the private mean and add the public one.

        Args:
            messages: Of the private parties; not looked at with weight 0.
            public_rows: Shape (n_public, dim), finite; not looked at with public weight 0.
            round: Public facts; its n is the number of private rows.
            rng: Where the server adds the noise.

        Returns:
            Shape (dim,), float64.

        Raises:
            ParameterError: As for `public_mean` and the private estimator.
        """
        public = self._public(public_rows, round)
        return (
            self._combined(self.private.decode(messages, round, rng=rng), public) if self.weight else public
        )

    def estimate(
        self, private_rows: Array, public_rows: Array, round: Round, *, rng: np.random.Generator
    ) -> Array:
        """Simulate all private parties and the server at once.

        Args:
            private_rows: Shape (n_private, dim); not looked at with weight 0.
            public_rows: Shape (n_public, dim), finite; not looked at with public weight 0.
            round: Public facts; its n is the number of private rows.
            rng: Source of all randomness.

        Returns:
            Shape (dim,), float64.

        Raises:
            ParameterError: As for `public_mean` and the private estimator.
        """
        public = self._public(public_rows, round)
        if not self.weight:
            return public
        return self._combined(self.private.estimate(private_rows, round, rng=rng), public)

    def event(self, n_private: int, trust: TrustModel) -> Event:
        """Return what that observer learns of the private rows: what the private mean tells, or nothing."""
        check_count("n_private", n_private)
        return self.private.event(n_private, trust) if self.weight else PureDP(0.0, self.neighbours)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many private rows sends."""
        return self.private.bits_per_party(rows) if self.weight else 0.0

    def population_error(
        self, n_private: int, n_public: int, *, population_variance: float, facts: Facts = WORST_CASE
    ) -> Error:
        """Return the error against the mean that all rows share, exact where the private error is.

        w^2 (noise + V^2 / n_private) + u^2 V^2 / n_public, with u the weight of the public mean.

        Args:
            n_private: Number of private rows, >= 1.
            n_public: Number of public rows, >= 1.
            population_variance: V^2, the total variance of a row, 0 to radius**2. Public.
            facts: Radius and number of private parties.

        Reference:
            Derived here: both means are independent and unbiased; J(r) in Lowy (2023), Section 2.2.1.1.
        """
        check_count("n_public", n_public)
        check_non_negative("population_variance", population_variance)
        if population_variance > facts.radius**2:
            raise ParameterError(
                f"population_variance must be at most radius**2 = {facts.radius**2!r}, got "
                f"{population_variance!r}."
            )
        noise = self.private.error(n_private, facts)
        w, u = self.weight, self.weight_of_public
        variance = w * w * (noise.variance + population_variance / n_private)
        variance += u * u * population_variance / n_public
        lost = abs(1 - w - u) * facts.radius if self.public_weight is not None else 0.0
        return Error(variance=variance, bias=w * noise.bias + lost, exact=_exact(noise, w) and lost == 0)

    def empirical_error(
        self, n_private: int, n_public: int, facts: Facts = WORST_CASE, *, row_norm: float | None = None
    ) -> Error:
        """Return the error against the mean of all rows that are there, whatever they are.

        The variance is w^2 noise; the bias, a bound, is what the weights of rows miss of 1 / n, at unit norm.

        Args:
            n_private: Number of private rows, >= 1.
            n_public: Number of public rows, >= 1.
            facts: Radius and number of private parties.
            row_norm: L2 norm bound of a row, where it is less than the radius (of an L1 ball); >= 0.

        Reference:
            Lowy (2023), Theorem 77 and Proposition 28.
        """
        check_count("n_public", n_public)
        longest = facts.radius if row_norm is None else row_norm
        check_non_negative("row_norm", longest)
        noise = self.private.error(n_private, facts)
        n, w, u = n_private + n_public, self.weight, self.weight_of_public
        missed = abs(w - n_private / n) + abs(u - n_public / n)
        bias = w * noise.bias + (missed * longest if missed > 1e-12 else 0.0)
        return Error(variance=w * w * noise.variance, bias=bias, exact=_exact(noise, w) and bias == 0)

    def _public(self, rows: Array, round: Round) -> Array:
        """Return the weighted public mean."""
        if not self.weight_of_public:
            return np.zeros(self.dim)
        mean = public_mean(rows, round.radius, norm=self.norm, on_violation=self.on_violation)
        if mean.shape != (self.dim,):
            raise ParameterError(f"public_rows must have shape (n, {self.dim}), got {np.shape(rows)}.")
        return self.weight_of_public * mean

    def _combined(self, private: Array, public: Array) -> Array:
        return np.asarray(self.weight * private + public)


def weighted_private_mean(
    private: MeanEstimator,
    *,
    n_private: int,
    n_public: int,
    population_variance: float,
    facts: Facts = WORST_CASE,
    norm: Norm = "l2",
) -> SemiPrivateMean:
    """Join any private mean with public rows of the same law, with the weights of least error.

    Args:
        private: Estimates the mean of the private rows, under neighbours of part `PRIVATE`.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.
        population_variance: V^2, the total variance of a row; known, or from `public_variance`.
        facts: Radius and number of private parties.
        norm: Norm of the ball of rows.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        `optimal_private_weight`; Lowy (2023), eq. (2.4).
    """
    noise = private.error(n_private, facts)
    weight = optimal_private_weight(
        noise.mse, population_variance=population_variance, n_private=n_private, n_public=n_public
    )
    return SemiPrivateMean(private=private, weight=weight, norm=norm)


def _exact(noise: Error, weight: float) -> bool:
    return noise.exact or weight == 0


def _public_rows(rows: npt.ArrayLike, radius: float, norm: Norm, on_violation: OnViolation) -> Array:
    """Return public rows in the ball, at least one."""
    check_on_violation(on_violation)
    array = as_rows("public_rows", rows)
    check_count("the number of public rows", len(array))
    if not np.isfinite(array).all():
        raise ParameterError("public_rows must be finite: clean the public data first.")
    # Nothing is private here: silence would only hide a wrong radius.
    return clipped_rows(array, radius, ball=norm, dim=array.shape[1], refuse=on_violation != "clip")
