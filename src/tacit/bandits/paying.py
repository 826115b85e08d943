"""What a live bandit owes the data: its price once, and noise that is drawn once for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from tacit.bandits.elimination import Batch
from tacit.bandits.plan import BanditPlan
from tacit.bandits.record import RunRecord
from tacit.errors import ParameterError
from tacit.ledger import Ledger, charge, check_accounts
from tacit.numerics import IntArray
from tacit.privacy import Guarantee, TrustModel

__all__ = ["check_payers", "drawn_once", "is_kept"]


def check_payers(accounts: Sequence[Ledger], record: RunRecord, plan: BanditPlan) -> None:
    """Refuse ledgers that cannot pay for a run, before anything is played.

    Args:
        accounts: Open ledgers; none are always right.
        record: Of the run.
        plan: Of the run.

    Raises:
        BudgetError: The price exceeds what is left in one of them.
        LedgerError: One of them is about other neighbours.
        ParameterError: Nothing is to be paid: messages cost those who sent them, and simulations nobody.
    """
    if not accounts:
        return
    if plan.privacy.trust is not TrustModel.CENTRAL or record.seed is not None:
        raise ParameterError(
            "a ledger pays where the server adds the noise, under central trust: messages cost those who "
            "randomized them, and simulations and runs without privacy cost nobody."
        )
    check_accounts(accounts, _price(plan), run=record.run, plan=_digest(record.plan))


def drawn_once(
    accounts: Sequence[Ledger],
    record: RunRecord,
    plan: BanditPlan,
    batch: Batch,
    draw: Callable[[], IntArray],
) -> IntArray:
    """Pay for a run, and return the noisy sums of a batch that were drawn first, whatever is drawn now.

    A record that was put back to an older copy asks again, and gets the same sums; a record of another run
    pays anew. Killed anywhere, nothing is drawn twice that anybody has seen, and nothing is paid twice.

    Args:
        accounts: Open ledgers that pay, of which the last keeps the sums.
        record: Of the run, before the batch is answered.
        plan: Of the run.
        batch: That is answered.
        draw: Adds the noise; shape (c,).

    Raises:
        BudgetError: The price exceeds what is left; nothing was drawn.
        LedgerError: A ledger is about other neighbours, or cannot be used.
        RefusalError: The batch of that number was another one.
    """
    charge(accounts, _price(plan), run=record.run, plan=_digest(record.plan))
    sums = draw().astype("<i8").tobytes()
    kept = accounts[-1].store_answer(record.run, batch.number, query_digest=_asked(batch), answer=sums)
    return np.frombuffer(kept, dtype="<i8").astype(np.int64)


def is_kept(accounts: Sequence[Ledger], record: RunRecord, batch: Batch) -> bool:
    """Return whether the noise of a batch was drawn before, so that answering it again shows nothing new."""
    return bool(accounts) and accounts[-1].answer(record.run, batch.number) is not None


def _price(plan: BanditPlan) -> Guarantee:
    """Return the price of a whole run: its batches are about different clients, and cost as much as one."""
    one = np.ones(1, dtype=np.int64)
    return plan.privacy.guarantees([(one, plan.privacy.epsilon)], simulated=False)[0]


def _asked(batch: Batch) -> bytes:
    """Return the digest of what a batch asks."""
    return _digest([batch.number, batch.actions.tolist(), batch.counts.tolist(), batch.level])


def _digest(facts: object) -> bytes:
    """Return the digest of facts that JSON can hold."""
    return hashlib.sha256(msgspec.json.encode(facts, order="sorted")).digest()
