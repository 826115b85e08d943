"""What a plan costs, and who pays: prices are agreed and reserved before the first answer."""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec

from tacit.errors import BudgetError, ParameterError, RefusalError, VerificationError, printable
from tacit.federation.plan import Plan
from tacit.ledger import Ledger, charge, check_account
from tacit.privacy import (
    CONTINUOUS,
    VERIFY_WORK,
    Event,
    Guarantee,
    PrivacyBudget,
    TrustModel,
    guarantee,
    work_of,
)
from tacit.privacy.run_clauses import clauses_of_sums, observer_of_one, observer_of_sums
from tacit.privacy.work import allowed_work

__all__ = [
    "check_claimed_price",
    "check_exact",
    "check_price",
    "given",
    "price_of",
    "price_of_silo",
    "reserve",
]


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


def price_of_silo(
    plan: Plan, size: int, *, name: str, simulated: bool, alone: bool = False, colluding: int = 0
) -> Guarantee:
    """Return what is learnt of a silo from a whole plan.

    Args:
        plan: What will be asked.
        size: Public number of units of the silo.
        name: Of the silo.
        simulated: Whether its randomness can be repeated.
        alone: Whether by who sees its messages alone, with their sender: before they are mixed under shuffle
            trust, or if all whose messages are added to them collude under aggregate trust.
        colluding: How many others collude under aggregate trust, where that is more than the plan says.

    Raises:
        ParameterError: The plan has no price if so many collude.
    """
    who, trust = f"silo {printable(repr(name))}", TrustModel.LOCAL if alone else plan.trust
    summed = trust is TrustModel.AGGREGATE
    unseen = clauses_of_sums(roster=plan.roster, recover=plan.recover) if summed else ()
    match trust:
        case TrustModel.AGGREGATE:
            plan = plan.with_colluding(colluding)
            observer = observer_of_sums(who, plan.colluding)
        case TrustModel.SHUFFLE:
            observer = "everybody who sees the shuffled batches, the server included,"
        case _ if plan.trust is TrustModel.SHUFFLE:
            observer = f"anybody who sees the messages of {who} before they are shuffled"
        case _ if plan.trust is TrustModel.AGGREGATE:
            observer = observer_of_one(who)
        case _:
            trust = TrustModel.LOCAL  # also of a plan that trusts the server: sums without noise
            observer = f"everybody outside {who}, the server included,"
    return price_of(
        plan.event([size], trust),
        plan.delta,
        observer=observer,
        assumptions=(*given(plan, simulated=simulated), *unseen),
        simulated=simulated,
    )


def check_claimed_price(claim: Guarantee, price: Guarantee, *, who: str) -> None:
    """Refuse a claim that is not the price, as somebody else has computed it.

    Args:
        claim: What is stated. Conditions of its own may stand in it besides: they claim less.
        price: What the plan costs.
        who: Whose claim it is, for messages.

    Raises:
        VerificationError: It is about something else, or says less or more than what the plan costs.
    """
    epsilon, priced = claim.epsilon, price.epsilon
    # Machines differ in the last bits of a convolution, which is then rounded up to its last decimal.
    same = epsilon == priced or math.isclose(epsilon, priced, rel_tol=1e-9, abs_tol=1.5e-6)
    if claim.event != price.event or claim.delta != price.delta:
        raise VerificationError(f"{who} states the price of another plan than it was sent.")
    if not same or not set(price.assumptions) <= set(claim.assumptions):
        raise VerificationError(
            f"{who} states epsilon {epsilon!r}, or conditions, that are not those of the plan it was sent."
        )
    rest = {"epsilon": epsilon, "assumptions": claim.assumptions}
    if claim != msgspec.structs.replace(price, **rest):
        raise VerificationError(
            f"{who} states its price for another observer, by another method, or about other data."
        )


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
