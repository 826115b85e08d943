"""What a plan costs, and who pays: prices are agreed and reserved before the first answer."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation.plan import Plan
from tacit.ledger import Ledger, charge, check_account
from tacit.privacy import (
    CONTINUOUS,
    VERIFY_WORK,
    Event,
    Guarantee,
    PrivacyBudget,
    guarantee,
    work_of,
)
from tacit.privacy.work import allowed_work

__all__ = ["check_exact", "check_price", "given", "price_of", "reserve"]


def given(plan: Plan, *, simulated: bool) -> tuple[str, ...]:
    """Return what the price of a plan rests on besides its event, which states its own conditions.

    Args:
        plan: What is priced.
        simulated: Whether the noise is seeded, and so protects nobody anyway.
    """
    # An event is a law of real numbers; that floats stand in for them is a fact about who draws the noise.
    return () if plan.exact or simulated else (CONTINUOUS,)


def check_exact(plan: Plan, *, who: str, ledger: Ledger | None, simulated: bool) -> None:
    """Refuse to charge an account for noise that its price does not describe (rounding shows the data)."""
    if ledger is not None and not plan.exact and not simulated:
        raise RefusalError(
            f"the ledger of {who} refuses continuous noise, which leaks through floating point; use discrete "
            "noise, or an algorithm that has it."
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
    try:
        work_of(event, most=allowed_work(VERIFY_WORK))  # a plan comes from elsewhere, as a statement does
    except ParameterError as error:
        raise ParameterError(f"the plan has too many kinds of rounds to price: {error}") from error
    return guarantee(event, delta, observer="anybody")


def check_price(
    price: Guarantee,
    *,
    who: str,
    run: str,
    budget: PrivacyBudget | None,
    ledger: Ledger | None,
    plan: Plan,
) -> None:
    """Refuse a price that was not agreed or that the ledger cannot pay; nothing is reserved.

    Args:
        price: Of the whole plan.
        who: Who pays, for messages.
        run: Name of the run.
        budget: What may be spent on this plan; None leaves that to the ledger.
        ledger: The account; None keeps none.
        plan: Which the price is of.

    Raises:
        BudgetError: The price is above `budget` or above what the ledger has left, or infinite with a ledger.
        LedgerError: The ledger is about other neighbours, or knows the run with another plan or price.
    """
    if budget is not None and not budget.covers(price.epsilon, price.delta):
        raise BudgetError(
            f"the plan costs {who} epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above the agreed "
            f"epsilon {budget.epsilon:.6g} at delta {budget.delta:.3g}; nothing was spent."
        )
    if ledger is not None:
        check_account(ledger, price, who=who, run=run, plan=plan.digest())


def reserve(ledger: Ledger, plan: Plan, price: Guarantee, *, run: str) -> None:
    """Enter a checked price in a ledger; the same run of the same plan is charged once."""
    charge([ledger], price, run=run, plan=plan.digest())
