"""A histogram as one step of a plan: silos hold many items, and any trust model adds the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tacit.errors import LARGEST_COUNT, ParameterError, check_count
from tacit.federation import Federation, Kinds, Measure, Plan, Step, with_honest, with_widths
from tacit.frequencies.items import ITEMS
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ItemMean,
    ModularSumMean,
    counts_of_shares,
)
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, TrustModel, calibrate

__all__ = ["FederatedHistogram", "federated_histogram", "histogram_plan"]

_RECORDS = Neighbours()


def _counts_with_noise(
    k: int, budget: PrivacyBudget, trust: TrustModel, neighbours: Neighbours
) -> AdditiveMean:
    """Return the counts of the least noise that meets a budget, of a trusted server or of every silo."""

    def at(noise: DiscreteLaplaceNoise | DiscreteGaussianNoise) -> AdditiveMean:
        return AdditiveMean(dim=k, noise=noise, trust=trust, neighbours=neighbours, one_hot=True)

    # Of Laplace noise a delta saves next to nothing.
    pure = PrivacyBudget(budget.epsilon)
    scale = calibrate(lambda z: at(DiscreteLaplaceNoise(z, steps=1)).event(1, trust), pure)
    found = [at(DiscreteLaplaceNoise(scale, steps=1))]
    if budget.delta > 0:
        z = calibrate(lambda z: at(DiscreteGaussianNoise(z, steps=1)).event(1, trust), budget)
        found.append(at(DiscreteGaussianNoise(z, steps=1)))
    return min(found, key=lambda mean: mean.error(1).variance)


def _answers(k: int, budget: PrivacyBudget, rows: int, trust: TrustModel, neighbours: Neighbours) -> ItemMean:
    """Return what every record answers for itself, of the least error for a budget."""
    responses: tuple[Literal["krr", "hr"], ...] = ("krr", "hr")
    found = [
        ItemMean.calibrated(
            dim=k, budget=budget, n=rows, trust=trust, neighbours=neighbours, response=response
        )
        for response in responses
    ]
    return min(found, key=lambda mean: mean.item_variance(1))


def histogram_plan(
    *,
    k: int,
    sizes: Sequence[int],
    budget: PrivacyBudget,
    trust: TrustModel,
    neighbours: Neighbours = _RECORDS,
    each_record: bool = False,
    n_min: int | None = None,
    colluding: int = 0,
    roster: str = "",
    recover: bool = False,
    encoding: str = "",
) -> Plan:
    """Return the plan that counts k items once, with the least noise for a budget.

    Args:
        k: Number of items, from 2 to 2**24 - 1.
        sizes: Public number of units of each silo.
        budget: For the observer of the trust model: of what is published under central trust, else of what
            each silo says.
        trust: `central`: a server adds noise to the counts of all silos. `aggregate`: every silo adds a
            share, and only the sum is seen. `local`: every silo adds its own. `shuffle`: every record is
            randomised by itself, and a shuffler mixes the messages of all silos.
        neighbours: Replace-one where records are randomised one by one, of which the number is public.
        each_record: Under local trust, whether every record is randomised by itself, so that it trusts not
            even its silo.
        n_min: Under shuffle and aggregate trust, silos without which nothing is released; None: all.
        colluding: Under shuffle and aggregate trust, how many silos may tell what they sent.
        roster: See `Plan`.
        recover: See `Plan`.
        encoding: See `Plan`.

    Raises:
        ParameterError: A value is out of range, or does not go with the trust model.
        BudgetError: No noise meets the budget.

    Example:
        >>> plan = histogram_plan(
        ...     k=10, sizes=[50, 70], budget=PrivacyBudget(1.0, 1e-6), trust=TrustModel.CENTRAL
        ... )
        >>> plan.kinds[0][0].measures[0].estimator.noise
        DiscreteLaplaceNoise(noise_multiplier=1.0, steps=1)
    """
    parties = check_count("the number of silos", len(sizes))
    sizes = [check_count("a number of units of a silo", size, high=LARGEST_COUNT) for size in sizes]
    colluding = check_count("colluding", colluding, low=0, high=LARGEST_COUNT)
    if n_min is not None:
        n_min = check_count("n_min", n_min, low=0, high=LARGEST_COUNT)
    if each_record and trust is not TrustModel.LOCAL:
        raise ParameterError(f"each_record is for local trust, got {trust.value} trust.")
    together = trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE)
    fewest = (parties if n_min is None else n_min) if together else 0
    mean: AdditiveMean | ModularSumMean | ItemMean
    if trust is TrustModel.AGGREGATE:
        mean = counts_of_shares(k=k, budget=budget, shares=fewest - colluding, neighbours=neighbours)
    elif trust is TrustModel.SHUFFLE or each_record:
        rows = sum(sorted(sizes)[: fewest - colluding]) if together else 1
        mean = _answers(k, budget, rows, trust, neighbours)
    else:
        mean = _counts_with_noise(k, budget, trust, neighbours)
    kinds: Kinds = ((Step(measures=(Measure(statistic=ITEMS, estimator=mean, max_radius=1.0),)), 1),)
    if trust is TrustModel.SHUFFLE:
        kinds = with_honest(kinds, sizes, n_min=fewest, colluding=colluding)
    elif trust is TrustModel.AGGREGATE:
        kinds = with_widths(kinds, sizes)
    return Plan(
        steps=kinds,
        parties=parties,
        trust=trust,
        delta=budget.delta,
        n_min=fewest,
        colluding=colluding,
        roster=roster,
        recover=recover,
        encoding=encoding,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FederatedHistogram:
    """Frequencies of items over all silos.

    Attributes:
        estimates: Shape (k,): share of the records that hold each item, unbiased: entries may lie below 0.
        guarantees: One under central trust, else one for each silo.
        guarantees_alone: Under shuffle and aggregate trust, what the messages of each silo show alone.
        bits: Bits that all silos sent.
    """

    estimates: Array
    guarantees: tuple[Guarantee, ...]
    guarantees_alone: tuple[Guarantee, ...]
    bits: float


def federated_histogram(
    federation: Federation, plan: Plan, *, run: str = "histogram", budget: PrivacyBudget | None = None
) -> FederatedHistogram:
    """Count items once, in a federation whose silos have the statistic `ItemCounts` by the name `ITEMS`.

    Args:
        federation: Silos in one process, many clients, or a network.
        plan: As `histogram_plan` makes it.
        run: Name of the run in ledgers: the same run again costs nothing, and returns the same counts.
        budget: What each silo, or the trusted server, agrees to spend on it; see `InProcess.open`.

    Raises:
        ParameterError: The plan does not fit the silos.
        BudgetError: A price exceeds the budget or what a ledger has left.
        RefusalError: A silo does not trust whom the plan trusts.
    """
    ask = federation.open(plan, run=run, participation=None, weights="records", budget=budget)
    (estimates,) = ask(0, {}, (1.0,))
    return FederatedHistogram(
        estimates=estimates,
        guarantees=tuple(ask.guarantees),
        guarantees_alone=tuple(ask.guarantees_alone),
        bits=float(ask.traffic.bits_up.sum()),
    )
