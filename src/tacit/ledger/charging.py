"""The one way to spend: a price is entered in every account that it concerns, or in none."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tacit.errors import BudgetError, LedgerError
from tacit.ledger.attributes import check_same_attributes
from tacit.ledger.folder import DATA_SET, OWNERS
from tacit.ledger.rows import Cost
from tacit.privacy.event_json import event_to_json
from tacit.privacy.neighbours import Part

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger
    from tacit.privacy.guarantee import Guarantee

__all__ = ["charge", "check_account", "check_accounts", "new_run"]

_FREE = 1e-300  # what a free plan is entered as: without an entry its answers could not be stored


def new_run(kind: str) -> str:
    """Return a name that no other run has: fresh noise is paid for every time, and clocks may stand still.

    Args:
        kind: What runs of this kind are called, such as "mean".
    """
    return f"{kind}-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(8)}"


def charge(accounts: Sequence[Ledger], price: Guarantee, *, run: str, plan: bytes) -> None:
    """Enter a price in all accounts, or in none; the same run of the same plan is charged once in each.

    All accounts are locked and looked at before the first one is charged, so that no other run can come
    between. A process that is killed while they are written may leave some of them charged: nothing has been
    answered then, and the same run pays only the others when it starts again.

    Args:
        accounts: Open ledgers; a file that is named twice pays once.
        price: Of the whole plan.
        run: Name of the run.
        plan: Digest of the plan, 1 to 64 bytes.

    Raises:
        BudgetError: The price is infinite or exceeds what is left in one of them; nothing was spent.
        LedgerError: One of them is about other neighbours or sensitive attributes, or knows the run with
            another plan or price.
        ParameterError: A name or digest that is not allowed.
    """
    check_accounts(accounts, price, run=run, plan=plan)
    different = {account.identity: account for account in accounts}
    event, cost = event_to_json(price.event), _cost(price)
    with ExitStack() as locked:
        # In one order for everybody: two runs that lock the same accounts must not wait for each other.
        for key in sorted(different):
            locked.enter_context(different[key].reserving(run, price=cost, plan_digest=plan, event=event))


def check_accounts(accounts: Sequence[Ledger], price: Guarantee, *, run: str, plan: bytes) -> None:
    """Refuse what `charge` would refuse; nothing is reserved, so another run may still come between."""
    for account in {account.identity: account for account in accounts}.values():
        label = account.label or account.path.name
        check_account(account, price, who=OWNERS.get(label, label), run=run, plan=plan)


def check_account(account: Ledger, price: Guarantee, *, who: str, run: str, plan: bytes) -> None:
    """Refuse a price that an account cannot bear, in words that name its owner; nothing is reserved.

    Args:
        account: The ledger.
        price: Of the whole plan.
        who: Whose ledger it is, for messages.
        run: Name of the run; one that has been reserved is not paid again.
        plan: Digest of the plan.

    Raises:
        BudgetError: The price is infinite, or above what is left.
        LedgerError: The ledger is about other neighbours, or knows the run with another plan or price.
    """
    if not math.isfinite(price.epsilon):
        raise BudgetError(f"the plan claims no privacy; the ledger of {who} refuses it.")
    if price.neighbours != account.neighbours:
        raise LedgerError(
            f"the ledger of {who} is about {account.neighbours}, the plan about {price.neighbours}."
        )
    known = account.find(run)
    if known is not None:
        cost = _cost(price)
        same = (known.epsilon, known.delta) == (cost.epsilon, cost.delta)
        # Found only when this account reserves, it would come after others have paid.
        if not same or known.plan_digest != plan.hex():
            payers = " or other payers" if who == OWNERS[DATA_SET] else ""
            raise LedgerError(
                f"run {run!r} is reserved already, with another plan or price{payers}, in the ledger of "
                f"{who}; nothing was spent. Repeat it as it was, or name a new run."
            )
        return
    if account.neighbours.part is Part.SENSITIVE:
        check_same_attributes(account.path, account.entries(), run)
    left = account.remaining()
    if not (price.epsilon <= left.epsilon and price.delta <= left.delta):
        raise BudgetError(
            f"the plan costs {who} epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above what its "
            f"ledger has left: epsilon {left.epsilon:.6g} at delta {left.delta:.3g}; nothing was spent."
        )


def _cost(price: Guarantee) -> Cost:
    """Return what a ledger is charged."""
    return Cost(max(price.epsilon, _FREE), price.delta)
