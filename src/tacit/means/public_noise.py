"""Means with public data for a budget: the server's noise or private unit vectors, and the best weights."""

from __future__ import annotations

import math

from tacit.errors import check_count, check_positive
from tacit.means.additive import AdditiveMean
from tacit.means.base import Facts
from tacit.means.noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from tacit.means.privunit import PrivUnitMean
from tacit.means.public import (
    PRIVATE_RECORD,
    SemiPrivateMean,
    optimal_private_weight,
    weighted_private_mean,
)
from tacit.privacy import Budget, PrivacyBudget, TrustModel, calibrate

__all__ = [
    "semi_local_mean",
    "semi_private_empirical_mean",
    "weighted_gaussian_mean",
    "weighted_laplace_mean",
]


def weighted_gaussian_mean(
    budget: Budget,
    dim: int,
    *,
    n_private: int,
    n_public: int,
    population_variance: float,
    radius: float = 1.0,
    steps: int = 2**16,
) -> SemiPrivateMean:
    """Build the weighted Gaussian estimator: a trusted server adds the noise, to private rows alone.

    Args:
        budget: (epsilon, delta), or `PrivacyBudget.zcdp(rho)`.
        dim: Number of coordinates d, >= 1.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.
        population_variance: V^2, the total variance of a row, 0 to radius**2. Public.
        radius: B, the L2 norm bound of a row, > 0; use it in the `Round` too.
        steps: Grid steps per radius of the discrete noise.

    Returns:
        The estimator with the least error; weight r n_private with r* of Lowy (2023).

    Raises:
        ParameterError: A value is out of its range.
        BudgetError: The budget cannot be met (Gaussian noise needs delta > 0).

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> mean = weighted_gaussian_mean(
        ...     PrivacyBudget.zcdp(0.5), 3, n_private=15, n_public=5, population_variance=0.25
        ... )
        >>> round(mean.weight / 15, 5)
        0.02778

    Reference:
        Lowy (2023), eq. (2.4): A_r = r sum_private + (1 - n_private r) mean_public + N(0, (2 r B z)^2).
    """
    check_positive("radius", radius)

    def private(z: float) -> AdditiveMean:
        noise = DiscreteGaussianNoise(z, steps=steps)
        return AdditiveMean(dim=dim, noise=noise, trust=TrustModel.CENTRAL, neighbours=PRIVATE_RECORD)

    z = calibrate(lambda z: private(z).event(n_private, TrustModel.CENTRAL), budget)
    return weighted_private_mean(
        private(z),
        n_private=n_private,
        n_public=n_public,
        population_variance=population_variance,
        facts=Facts(radius=radius),
    )


def weighted_laplace_mean(
    epsilon: float,
    dim: int,
    *,
    n_private: int,
    n_public: int,
    population_variance: float,
    radius: float = 1.0,
    steps: int = 2**16,
) -> SemiPrivateMean:
    """Build the weighted Laplace estimator: pure privacy; a trusted server adds the noise.

    Args:
        epsilon: Pure level, > 0.
        dim: Number of coordinates d, >= 1.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.
        population_variance: V^2, the total variance of a row in the L2 norm. Public.
        radius: The **L1** norm bound of a row, > 0; use it in the `Round` too. Rows in the L2 ball of radius
            B lie in the L1 ball of radius B sqrt(dim).
        steps: Grid steps per radius of the discrete noise.

    Returns:
        The estimator with the least error.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Section 2.2.1.1. The L1 sensitivity of a mean on the L2 ball is 2 B sqrt(d) / n.
    """
    check_positive("radius", radius)
    return weighted_private_mean(
        _laplace(epsilon, dim, n_private, steps),
        n_private=n_private,
        n_public=n_public,
        population_variance=population_variance,
        facts=Facts(radius=radius),
        norm="l1",
    )


def semi_private_empirical_mean(
    epsilon: float, dim: int, *, n_private: int, n_public: int, steps: int = 2**16
) -> SemiPrivateMean:
    """Estimate the mean of the rows that are there, of any law: throw the private ones away, or add noise.

    Private rows are thrown away iff n_private < sqrt(8) d / epsilon: sizes alone decide, so that the choice
    costs no privacy. Its squared error is at most min{n_private / n, sqrt(8) d / (n epsilon)}^2 at unit L2
    radius, which is the best possible up to constants.

    Args:
        epsilon: Pure level, > 0.
        dim: Number of coordinates d, >= 1.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.
        steps: Grid steps per radius of the discrete noise.

    Returns:
        The estimator, for rounds whose radius is the L1 norm bound of a row: B sqrt(dim) for the L2 ball.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Theorem 77.
    """
    private = _laplace(epsilon, dim, n_private, steps)
    check_count("n_public", n_public)
    n = n_private + n_public
    kept = 0 if n_private < math.sqrt(8) * dim / epsilon else n_private
    return SemiPrivateMean(private=private, weight=kept / n, public_weight=n_public / n, norm="l1")


def semi_local_mean(
    epsilon: float,
    dim: int,
    *,
    n_private: int,
    n_public: int,
    population_variance: float | None = None,
    radius: float = 1.0,
    on_sphere: bool = False,
) -> SemiPrivateMean:
    """Join private unit vectors with raw public rows: nobody is trusted with a private row (semi-local).

    Args:
        epsilon: Pure level of the one message of a private person, > 0.
        dim: Number of coordinates d, >= 1; >= 2 on the sphere.
        n_private: Number of private rows, >= 1.
        n_public: Number of public rows, >= 1.
        population_variance: V^2, the total variance of a row, for the weights of least error for the mean
            that all rows share. None: every row has weight 1 / n, for the mean of the rows that are there.
        radius: L2 norm bound of a row, > 0; use it in the `Round` too.
        on_sphere: All rows have norm `radius`, so that they need no lift; else biased.

    Returns:
        The estimator; the best, constants included, of those that average unbiased private messages.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> mean = semi_local_mean(2.0, 3, n_private=6, n_public=4, on_sphere=True)
        >>> round(mean.empirical_error(6, 4).variance, 10)
        0.2209616626

    Reference:
        Lowy (2023), Proposition 28.
    """
    check_positive("radius", radius)
    check_count("n_private", n_private)
    check_count("n_public", n_public)
    private = PrivUnitMean(
        dim=dim, local_epsilon=epsilon, lift=not on_sphere, neighbours=PRIVATE_RECORD, trust=TrustModel.LOCAL
    )
    if population_variance is None:
        return SemiPrivateMean(private=private, weight=n_private / (n_private + n_public))
    weight = optimal_private_weight(
        private.error(n_private, Facts(radius=radius)).variance,
        population_variance=population_variance,
        n_private=n_private,
        n_public=n_public,
    )
    return SemiPrivateMean(private=private, weight=weight)


def _laplace(epsilon: float, dim: int, n_private: int, steps: int) -> AdditiveMean:
    """Return the mean of private rows with discrete Laplace noise of that pure level."""
    check_positive("epsilon", epsilon)
    check_count("n_private", n_private)

    def private(b: float) -> AdditiveMean:
        noise = DiscreteLaplaceNoise(b, steps=steps)
        return AdditiveMean(dim=dim, noise=noise, trust=TrustModel.CENTRAL, neighbours=PRIVATE_RECORD)

    return private(
        calibrate(lambda b: private(b).event(n_private, TrustModel.CENTRAL), PrivacyBudget(epsilon))
    )
