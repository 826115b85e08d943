"""What a silo agrees to: plans of its own federation that its owner has seen, at no more than allowed."""

from __future__ import annotations

import math

from tacit.errors import BudgetError, ParameterError, RefusalError, printable
from tacit.federation.network.consent import Consent, Consents
from tacit.federation.network.roster import Roster
from tacit.federation.network.wire import ProposedPlan, RefusalCode, WireError
from tacit.federation.plan import Plan
from tacit.federation.silo import Silo
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel

__all__ = ["ConsentedPlans"]


class ConsentedPlans:
    """Prices what a server proposes to one silo, and refuses what nobody has agreed to.

    Args:
        silo: Data, statistics and ledger.
        roster: Of the federation.
        consents: What the owner has agreed to.
        encoding: Fingerprint of the map from records to units; a plan with another one is refused. None takes
            any.
    """

    def __init__(self, silo: Silo, *, roster: Roster, consents: Consents, encoding: str | None) -> None:
        self._silo, self._roster = silo, roster
        self._consents, self._encoding = consents, encoding

    def priced(self, proposal: ProposedPlan) -> tuple[Plan, Guarantee, PrivacyBudget | None]:
        """Return a plan that the owner has agreed to, its price, and what it may cost; refuse all else."""
        plan, run, budget = Plan.from_toml(proposal.plan), proposal.run, proposal.budget
        self._check_plan(plan, party=proposal.party, run=run)
        limit = self._agreed(plan, run).limit
        # Under central trust the silo enforces no price, and refuses a budget that it is given.
        central = plan.trust is TrustModel.CENTRAL
        price = self._silo.consider(plan, run=run, budget=budget if central and budget else limit)
        if central or not math.isfinite(price.epsilon):
            return plan, price, limit
        if limit is None:
            raise WireError(RefusalCode.CONSENT, "consent to a plan that has a price must say its limit.")
        if budget is not None and not budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"the plan costs epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above what the "
                f"server proposed: epsilon {budget.epsilon:.6g} at delta {budget.delta:.3g}."
            )
        if self._silo.ledger is None and not self._silo.simulated:
            raise RefusalError(
                "the silo keeps no ledger, and the plan counts on noise of its own: after a restart it would "
                "answer with fresh noise that nobody paid for."
            )
        return plan, price, limit

    def _agreed(self, plan: Plan, run: str) -> Consent:
        """Return the owner's consent, or refuse."""
        digest, federation = plan.digest(), self._roster.federation
        try:
            consent = self._consents.find(federation, digest, run)
            others = [
                one.plan for one in self._consents.all() if (one.federation, one.run) == (federation, run)
            ]
        except ParameterError as error:
            raise WireError(RefusalCode.CONSENT, str(error)) from error
        if consent is None:
            instead = f", but to {others[-1]}" if others else ""
            raise WireError(
                RefusalCode.CONSENT,
                f"nobody has agreed to plan {digest.hex()} in run {run!r}{instead}: `tacit silo check`.",
            )
        return consent

    def _check_plan(self, plan: Plan, *, party: int, run: str) -> None:
        """Refuse a plan of another federation or map, or that the ledger is not for."""
        place, silos, ledger = self._roster.index(self._silo.name), len(self._roster.silos), self._silo.ledger
        if party != place or not place < plan.parties <= silos:
            raise ParameterError(
                f"the silo is party {place} of {silos}; the plan is for {plan.parties} and calls it {party}."
            )
        if self._encoding is not None and plan.encoding != self._encoding:
            raise RefusalError(
                f"the plan was made for another map from records to units: its encoding is "
                f"{printable(plan.encoding)!r}, that of this silo's job {self._encoding!r}."
            )
        if ledger is None:
            return
        known = ledger.find(run)
        if known is not None and known.plan_digest != plan.digest().hex():
            raise RefusalError(f"run {run!r} was accepted with another plan; name a new run.")
        if plan.neighbours != ledger.neighbours:
            raise RefusalError(f"the ledger is about {ledger.neighbours}, the plan about {plan.neighbours}.")
