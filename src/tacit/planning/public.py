"""What to do with public rows beside private ones: throw those away, protect all, or weigh both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from tacit.errors import ParameterError, check_choice, check_count, check_non_negative, check_positive
from tacit.means import Facts, PrivUnitMean
from tacit.means.public import PRIVATE_RECORD, optimal_private_weight
from tacit.privacy import Gaussian, TrustModel, ZcdpBudget, calibrate
from tacit.privacy.budget import Budget

__all__ = ["PublicOption", "plan_public_mean"]

Target = Literal["population", "empirical"]


@dataclass(frozen=True, kw_only=True)
class PublicOption:
    """One way to use public rows.

    Attributes:
        name: "throw-away", "all-private" or "weighted".
        error: Mean squared error; of the population exactly, of the rows that are there a bound.
        weight: Of the mean of the private rows: 0 throws them away, n_private / n is the mean of all rows.
        noise: What the error owes to noise.
    """

    name: str
    error: float
    weight: float
    noise: float


def plan_public_mean(
    budget: Budget,
    dim: int,
    *,
    n_private: int,
    n_public: int,
    population_variance: float,
    radius: float = 1.0,
    trust: TrustModel = TrustModel.CENTRAL,
    target: Target = "population",
) -> tuple[PublicOption, ...]:
    """Compare what may be done with public rows, by closed forms of public facts.

    Under central trust noise is Gaussian, or Laplace where delta is 0; under local trust every private person
    sends a private unit vector, lifted. "all-private" protects public rows too.

    Args:
        budget: What a private record may lose.
        dim: Number of coordinates d, >= 1.
        n_private: Private rows, >= 1.
        n_public: Public rows, >= 1.
        population_variance: V^2, the total variance of a row, from 0 to radius^2. Public.
        radius: L2 norm bound B of a row, > 0.
        trust: central or local.
        target: "population" is the mean of the law of all rows; "empirical" that of the rows that are there,
            of any law. Every row then counts once, and what is weighed is which are protected: under local
            trust "weighted" leaves public rows as they are; of one central noise nothing is saved.

    Returns:
        All options, the least error first.

    Raises:
        ParameterError: A value out of its range.
        BudgetError: The budget cannot be met.

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> plan = plan_public_mean(
        ...     PrivacyBudget.zcdp(0.5), 3, n_private=15, n_public=5, population_variance=0.25
        ... )
        >>> [(one.name, round(one.error, 6)) for one in plan]
        [('weighted', 0.029167), ('all-private', 0.0425), ('throw-away', 0.05)]

    Reference:
        Lowy (2023), eq. (2.4) and its special cases; Theorem 77 for rows that are there.
    """
    for name, count in (("dim", dim), ("n_private", n_private), ("n_public", n_public)):
        check_count(name, count)
    radius, spread = (
        check_positive("radius", radius),
        check_non_negative("population_variance", population_variance),
    )
    if spread > radius**2:
        raise ParameterError(
            f"population_variance must be at most radius**2 = {radius**2!r}, got {spread!r}."
        )
    check_choice("target", target, get_args(Target))
    n = n_private + n_public

    def noise(rows: int) -> float:
        return _noise(budget, dim, radius, rows, trust)

    if target == "empirical":
        options = [
            PublicOption(name="throw-away", error=(n_private / n * radius) ** 2, weight=0.0, noise=0.0),
            PublicOption(name="all-private", error=noise(n), weight=n_private / n, noise=noise(n)),
        ]
        if trust is TrustModel.LOCAL:
            share = n_private / n
            left = share**2 * noise(n_private)
            options.append(PublicOption(name="weighted", error=left, weight=share, noise=left))
        return tuple(sorted(options, key=lambda one: one.error))
    own = noise(n_private)
    weight = optimal_private_weight(own, population_variance=spread, n_private=n_private, n_public=n_public)
    weighed = weight**2 * (own + spread / n_private) + (1 - weight) ** 2 * spread / n_public
    options = [
        PublicOption(name="throw-away", error=spread / n_public, weight=0.0, noise=0.0),
        PublicOption(name="all-private", error=noise(n) + spread / n, weight=n_private / n, noise=noise(n)),
        PublicOption(name="weighted", error=weighed, weight=weight, noise=weight**2 * own),
    ]
    return tuple(sorted(options, key=lambda one: one.error))


def _noise(budget: Budget, dim: int, radius: float, rows: int, trust: TrustModel) -> float:
    """Return the variance that protection adds to the mean of so many rows."""
    epsilon = None if isinstance(budget, ZcdpBudget) else float(budget.epsilon)
    pure = not isinstance(budget, ZcdpBudget) and budget.delta == 0
    match trust:
        case TrustModel.CENTRAL if pure and epsilon is not None:
            # An L1 ball of radius B sqrt(d) holds the L2 ball, and two rows are twice that apart.
            return 2 * dim * (2 * radius * math.sqrt(dim) / (rows * epsilon)) ** 2
        case TrustModel.CENTRAL:
            return dim * (2 * radius * calibrate(Gaussian, budget) / rows) ** 2
        case TrustModel.LOCAL if epsilon is not None:
            mean = PrivUnitMean(dim=dim, local_epsilon=epsilon, neighbours=PRIVATE_RECORD)
            return mean.error(rows, Facts(radius=radius)).variance
        case _:
            raise ParameterError(
                f"trust must be central, or local with an epsilon, got {trust!s} and {budget!r}."
            )
