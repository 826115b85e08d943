"""What a plan costs, and who pays: prices are agreed and reserved before the first answer."""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec

from tacit.errors import BudgetError, LedgerError, RefusalError
from tacit.federation.plan import Plan
from tacit.privacy import CONTINUOUS, Event, Guarantee, PrivacyBudget, event_to_json, guarantee
from tacit.privacy.ledger import Ledger

__all__ = ["check_exact", "check_price", "given", "price_of", "reserve"]


def given(plan: Plan, *, simulated: bool) -> tuple[str, ...]:
    """Return what the price of a plan rests on besides its event, which states its own conditions.

    Args:
        plan: What is priced.
        simulated: Whether the noise is seeded, and so protects nobody anyway.
    """
    # An event is a law of real numbers; that floats stand in for them is a fact about who draws the noise.
    return (CONTINUOUS,) if plan.continuous and not simulated else ()


def check_exact(plan: Plan, *, who: str, ledger: Ledger | None, simulated: bool) -> None:
    """Refuse to charge an account for noise that its price does not describe (rounding shows the data)."""
    if ledger is not None and plan.continuous and not simulated:
        raise RefusalError(
            f"the ledger of {who} refuses continuous noise, which leaks through floating point; use discrete "
            "noise."
        )


def price_of(
    event: Event, delta: float, *, observer: str, assumptions: tuple[str, ...], simulated: bool
) -> Guarantee:
    """Return what an observer can learn; see `tacit.privacy.guarantee`."""
    price = _priced(event, delta)
    clauses = tuple(dict.fromkeys((*assumptions, *price.assumptions)))
    return msgspec.structs.replace(price, observer=observer, assumptions=clauses, simulated=simulated)


@lru_cache(maxsize=64)  # silos of one size, and checks before a reservation, ask for the same price
def _priced(event: Event, delta: float) -> Guarantee:
    """Return the price of an event, whoever looks."""
    return guarantee(event, delta, observer="anybody")


def check_price(
    price: Guarantee,
    *,
    who: str,
    run: str,
    budget: PrivacyBudget | None,
    ledger: Ledger | None,
    plan: Plan | None = None,
) -> None:
    """Refuse a price that was not agreed or that the ledger cannot pay; nothing is reserved.

    Args:
        price: Of the whole plan.
        who: Who pays, for messages.
        run: Name of the run.
        budget: What may be spent on this plan; None leaves that to the ledger.
        ledger: The account; None keeps none.
        plan: Which the price is of; None where every run has a name of its own.

    Raises:
        BudgetError: The price is above `budget` or above what the ledger has left, or infinite with a ledger.
        LedgerError: The ledger is about other neighbours, or knows the run with another plan or price.
    """
    if budget is not None and not budget.covers(price.epsilon, price.delta):
        raise BudgetError(
            f"the plan costs {who} epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above the agreed "
            f"epsilon {budget.epsilon:.6g} at delta {budget.delta:.3g}; nothing was spent."
        )
    if ledger is None:
        return
    if not math.isfinite(price.epsilon):
        raise BudgetError(f"the plan claims no privacy; the ledger of {who} refuses it.")
    if price.neighbours != ledger.neighbours:
        raise LedgerError(
            f"the ledger of {who} is about {ledger.neighbours}, the plan about {price.neighbours}."
        )
    known = next((entry for entry in ledger.entries() if entry.run == run), None)
    if known is not None:
        spent = _spent(price)
        same = (known.epsilon, known.delta) == (spent.epsilon, spent.delta)
        # Found only when this account reserves, it would come after others have paid.
        if not same or (plan is not None and known.plan_digest != plan.digest().hex()):
            raise LedgerError(
                f"run {run!r} is reserved already, with another plan or price, in the ledger of {who}; "
                "nothing was spent. Repeat it as it was, or name a new run."
            )
        return
    left = ledger.remaining()
    if not (price.epsilon <= left.epsilon and price.delta <= left.delta):
        raise BudgetError(
            f"the plan costs {who} epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above what its "
            f"ledger has left: epsilon {left.epsilon:.6g} at delta {left.delta:.3g}; nothing was spent."
        )


def reserve(ledger: Ledger, plan: Plan, price: Guarantee, *, run: str) -> None:
    """Enter a checked price in a ledger; the same run of the same plan is charged once."""
    ledger.reserve(run, price=_spent(price), plan_digest=plan.digest(), event=event_to_json(price.event))


def _spent(price: Guarantee) -> PrivacyBudget:
    """Return what a ledger is charged: a free plan is entered as well, or its answers could not be stored."""
    return PrivacyBudget(max(price.epsilon, 1e-300), price.delta)
