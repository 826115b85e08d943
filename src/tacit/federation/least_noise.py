"""The least noise with which a plan meets a budget in every silo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.federation.plan import Plan
from tacit.privacy import PrivacyBudget, TrustModel, calibrate, meets

__all__ = ["least_multiplier"]


def least_multiplier(planned: Callable[[float], Plan], sizes: Sequence[int], budget: PrivacyBudget) -> float:
    """Return the least noise multiplier with which a plan meets the budget, in every silo by itself.

    Args:
        planned: The plan as a function of the multiplier, standard deviation / sensitivity.
        sizes: Public number of units of each silo.
        budget: What each silo (under central trust, the server) may spend.

    Raises:
        BudgetError: No noise meets the budget.
    """
    # Where silos add noise this is no silo's own price but at least each of them: the largest sampling rate
    # and, for the rounding of sums, the records of all.
    trust = planned(1.0).trust
    multiplier = calibrate(lambda z: planned(z).event(sizes, trust), budget)
    if trust is TrustModel.CENTRAL:
        return multiplier

    def affordable(multiplier: float) -> bool:
        plan = planned(multiplier)
        own = dict.fromkeys(plan.event([n], trust) for n in dict.fromkeys(sizes))
        return all(meets(event, budget) for event in own)

    # A convolution errs on the safe side, but by how much differs from price to price.
    margin = 1e-9
    while not affordable(multiplier):
        multiplier, margin = multiplier * (1 + margin), margin * 4
    return multiplier
