"""What the owner of a silo lets leave it, under whose trust, and for which price; public facts decide."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ParameterError, RefusalError
from tacit.federation.account import check_exact, check_price, price_of_silo
from tacit.federation.plan import Plan
from tacit.federation.sums import Sums
from tacit.ledger import Ledger
from tacit.privacy import Guarantee, PrivacyBudget, Relation, TrustModel, Unit

__all__ = ["Owner", "counted_by"]


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The owner's side of an agreement; the arguments of `Silo` say what the attributes are.

    Attributes:
        planned: Whether the public number of units is a planned one.
        simulated: Whether the silo's randomness can be repeated.
    """

    name: str
    planned: bool
    unit: Unit | None
    ledger: Ledger | None
    trusts_server: bool
    trusts_shuffler: bool
    sums: Sums | None
    simulated: bool

    @property
    def who(self) -> str:
        """The silo, for messages."""
        return f"silo {self.name!r}"

    def price(self, plan: Plan, size: int, *, run: str, budget: PrivacyBudget | None) -> Guarantee:
        """Return what a plan costs a silo of that public size, if its owner agrees; nothing is reserved.

        Raises:
            TacitError: As in `Silo.accept`.
        """
        self._check_units(plan, size)
        self._check_trust(plan, budget)
        price = self._charged(plan, size)
        if plan.trust is TrustModel.CENTRAL:
            return price
        check_exact(plan, who=self.who, ledger=self.ledger, simulated=self.simulated)
        check_price(price, who=self.who, run=run, budget=budget, ledger=self.ledger, plan=plan)
        if not math.isfinite(price.epsilon) and not self.trusts_server:
            raise RefusalError(
                f"the plan adds no noise to what {self.who} sends, and its owner has not allowed that: a "
                "silo that may send exact sums is made with trusts_server=True."
            )
        return price

    def alone(self, plan: Plan, size: int) -> Guarantee:
        """Return what is learnt by who sees the silo's messages alone, with their sender."""
        return price_of_silo(plan, size, name=self.name, simulated=self.simulated, alone=True)

    def _charged(self, plan: Plan, size: int) -> Guarantee:
        """Return the price of a plan under the trust that the owner shares."""
        if plan.trust is not TrustModel.AGGREGATE:
            return price_of_silo(plan, size, name=self.name, simulated=self.simulated)
        alone = self.alone(plan, size)
        if self.sums is None:  # nobody has told the silo who the others are
            return alone
        counted = counted_by(self.sums, plan, alone, who=self.who)
        if self.sums.colluding is None:
            return alone
        return price_of_silo(counted, size, name=self.name, simulated=self.simulated)

    def _check_units(self, plan: Plan, size: int) -> None:
        """Refuse a plan about other units."""
        if (plan.neighbours.relation is Relation.ADD_REMOVE) != self.planned:
            raise ParameterError(
                f"{self.who} needs `planned`, a public number of units, under add-remove neighbours, "
                "where the true number is protected, and only there; the plan has "
                f"{plan.neighbours.relation}."
            )
        unit = plan.neighbours.unit
        if self.unit is not None and unit is not self.unit:
            raise ParameterError(
                f"the units of {self.who} are of kind {self.unit}, those of the plan of kind {unit}."
            )
        if unit is Unit.PARTY and size != 1:
            raise ParameterError(
                f"plans that protect whole parties need silos of one unit, {self.name!r} has {size}."
            )

    def _check_trust(self, plan: Plan, budget: PrivacyBudget | None) -> None:
        """Refuse trust that only the plan claims, and a budget that the silo could not enforce."""
        match plan.trust:
            case TrustModel.CENTRAL:
                self._check_central(budget)
            case TrustModel.SHUFFLE if not self.trusts_shuffler:
                raise RefusalError(
                    f"the plan trusts a shuffler, the owner of {self.who} does not: make the silo with "
                    "trusts_shuffler=True, or ask for a plan of local trust."
                )
            case TrustModel.AGGREGATE if self.sums is not None and self.sums.roster:
                if self.ledger is None and not self.simulated:
                    raise RefusalError(
                        f"{self.who} keeps no ledger, and after a restart it would hide other noise by the "
                        "same masks: aggregate trust needs stored answers."
                    )
            case _:
                pass

    def _check_central(self, budget: PrivacyBudget | None) -> None:
        """Refuse to send exact sums, unless the owner trusts the server, who keeps the ledger then."""
        if self.ledger is not None:
            raise RefusalError(
                f"{self.who} keeps a ledger, so it sends nothing without noise of its own; under central "
                "trust the server keeps the ledger."
            )
        if not self.trusts_server:
            raise RefusalError(
                f"the plan trusts the server with exact sums, the owner of {self.who} does not: make the "
                "silo with trusts_server=True, or ask for a plan of local trust."
            )
        if budget is not None:
            raise RefusalError(
                f"{self.who} cannot enforce a budget under central trust, where the server adds the noise: "
                "give it to the server."
            )


def counted_by(sums: Sums, plan: Plan, alone: Guarantee, *, who: str) -> Plan:
    """Return a plan of aggregate trust as it is priced by an owner, who may count on fewer honest parties.

    Args:
        sums: What the owner says.
        plan: What will be asked.
        alone: What a message alone shows.
        who: Whose owner, for messages.

    Raises:
        RefusalError: The plan is for other parties, a message alone shows more than the owner accepts, or
            there is no price with so few honest parties.
    """
    if plan.roster != sums.roster:
        raise RefusalError(
            f"the plan is for the parties of the roster {plan.roster[:16] or 'of nobody'}, the owner of "
            f"{who} has agreed on {sums.roster[:16] or 'none'}."
        )
    if sums.most_alone is not None and not alone.epsilon <= sums.most_alone:  # NaN fails it
        raise RefusalError(
            f"the owner of {who} accepts epsilon {sums.most_alone:.6g} of a message alone, and the plan "
            f"takes {alone.epsilon:.6g} at delta {alone.delta:.3g}."
        )
    colluding = 0 if sums.colluding is None else sums.colluding
    try:
        return plan.with_colluding(colluding)
    except ParameterError as error:
        raise RefusalError(
            f"the plan has no price if {colluding} other parties collude, which the owner of {who} does "
            f"not rule out: {error}"
        ) from error
