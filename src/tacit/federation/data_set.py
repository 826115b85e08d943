"""The account of a whole data set: every plan is charged to it, whoever adds the noise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np

from tacit.errors import LedgerError
from tacit.federation.account import check_exact, price_of
from tacit.federation.plan import Plan
from tacit.federation.protocols import Terms
from tacit.ledger import Ledger, charge, check_account
from tacit.privacy import TrustModel
from tacit.randomness import is_secure

__all__ = ["charge_data_set"]

_WHO = "the data set"


def charge_data_set(
    ledger: Ledger,
    plan: Plan,
    silos: Sequence[Terms],
    *,
    run: str,
    server: Ledger | None,
    rng: np.random.Generator | None,
) -> None:
    """Charge a plan to the account of all records, before any silo or server is charged.

    Silos hold disjoint records, so that unless the server is trusted the plan costs one of them what it costs
    its silo: the dearest of the silos' prices is charged (parallel composition; McSherry 2009, Theorem 4).
    Under central trust it is the server's price. Runs add up, however each of them cuts records into silos.

    Args:
        ledger: The account.
        plan: What will be asked; the silos have considered it.
        silos: Who is asked.
        run: Name of the run; the same run of the same plan, silos and ledgers is charged once.
        server: The trusted server's own account, looked at as well before anything is charged.
        rng: The server's randomness; None is secret.

    Raises:
        BudgetError: More than what is left; nothing was spent.
        LedgerError: The ledger is about other neighbours, or knows the run with another plan, price, cut
            into silos, or ledgers of who pays besides; or whoever adds the noise keeps no ledger, and would
            answer a repeated run with new noise.
        RefusalError: The plan has continuous noise.
    """
    sizes = [silo.size for silo in silos]
    if plan.trust is TrustModel.CENTRAL:
        forgets = [] if server is not None else ["the trusted server"]
        simulated = rng is not None and not is_secure(rng)
        events = [plan.event(sizes, TrustModel.CENTRAL)]
    else:
        forgets = [f"silo {silo.name!r}" for silo in silos if silo.account is None]
        simulated = any(silo.simulated for silo in silos)
        # Under aggregate trust an owner may count on fewer honest parties than the plan.
        events = [silo.guarantee.event for silo in silos]
    if forgets:
        raise LedgerError(
            f"{forgets[0]} must keep a ledger where the data set has one: without stored answers, a run that "
            "is repeated would have new noise that nobody paid for."
        )
    check_exact(plan, who=_WHO, ledger=ledger, simulated=simulated)
    prices = [
        price_of(event, plan.delta, observer="anybody", assumptions=(), simulated=simulated)
        for event in events
    ]
    price = max(prices, key=lambda one: one.epsilon)
    asked = _digest(plan, silos, server)
    check_account(ledger, price, who=_WHO, run=run, plan=asked)
    if server is not None:
        check_account(server, price, who="the trusted server", run=run, plan=plan.digest())
    charge([ledger], price, run=run, plan=asked)


def _digest(plan: Plan, silos: Sequence[Terms], server: Ledger | None) -> bytes:
    """Return what the account is charged for: the plan, the cut into silos, and who stores the answers.

    A known run costs nothing because its answers are stored. Other silos, or a ledger that was made anew,
    have no such answers: they would draw noise that nobody paid for.
    """
    payers = [] if server is None else [server.fingerprint]
    # Names are any text that Python holds, and each field says how long it is.
    cut = [(silo.name.encode("utf-8", "surrogatepass"), silo.size, silo.account) for silo in silos]
    return hashlib.sha256(msgspec.msgpack.encode((plan.digest(), cut, payers))).digest()
