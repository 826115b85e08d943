"""A plan as it is proposed to silos: what they say to it is checked, and who forgot it hears it again."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from tacit.errors import AuthenticationError, TacitError, VerificationError, printable
from tacit.federation.account import check_claimed_price, price_of_silo
from tacit.federation.network.asking import Asker, Replies
from tacit.federation.network.bodies import ProposedPlan, RefusalCode, RequestBody, RequestKind
from tacit.federation.network.journal import KeptTerms
from tacit.federation.network.roster import Roster
from tacit.federation.network.signatures import check_claims, received_signature
from tacit.federation.plan import Plan
from tacit.federation.protocols import Terms
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.privacy.run_clauses import observer_of_one, observer_of_sums

__all__ = ["MissingSilosError", "PlanProposals", "RunAsker", "missing_silos"]

_NAMED: Final = 20

_FORGOTTEN: Final = frozenset({RefusalCode.PLAN, RefusalCode.SIGNATURE})
"""What a silo says of a round when it knows no accepted plan of the run, or under an older key."""


class MissingSilosError(TacitError, ConnectionError):
    """Silos that are needed did not reply; nothing is lost, and the run can be resumed."""


class PlanProposals:
    """One plan in one run.

    Args:
        plan: What is proposed.
        run: Name of the run.
        budget: What each silo should agree to spend at most; None leaves it to the silo.
        roster: Of the federation.
        asking: Asks silos.
        deadline: Seconds that silos have to reply.
        clock: Returns the time, with its zone.
    """

    def __init__(
        self,
        plan: Plan,
        run: str,
        budget: PrivacyBudget | None,
        *,
        roster: Roster,
        asking: Asker,
        deadline: float,
        clock: Callable[[], dt.datetime],
    ) -> None:
        self._plan, self._run, self._roster, self._clock = plan, run, roster, clock
        self._asking, self._deadline = asking, deadline
        text, cost = plan.to_toml(), (None, None) if budget is None else (budget.epsilon, budget.delta)
        self._bodies = {k: ProposedPlan(text, run, k, *cost) for k in range(len(roster.silos))}

    def propose(self, kind: Literal["consider", "accept"]) -> list[KeptTerms]:
        """Return what all silos reply to the plan.

        Raises:
            MissingSilosError: Some do not reply, or refuse.
            AuthenticationError: One is revoked or expired.
        """
        for one in self._roster.silos:
            self._roster.check_active(one.name, self._clock())
        n, names = len(self._bodies), [one.name for one in self._roster.silos]
        replies = self._ask(kind, self._bodies, enough=n)
        if len(replies.bodies) < n:
            raise missing_silos(
                f"{kind} the plan",
                [name for k, name in enumerate(names) if k not in replies.bodies],
                {names[k]: code for k, code in replies.refused.items()},
                came=len(replies.bodies),
                needed=n,
            )
        return [KeptTerms.of(body) for body in replies.bodies.values()]

    def repeat(self, parties: Iterable[int], kept: Sequence[KeptTerms]) -> set[int]:
        """Have silos that forgot the run accept it again; return those that have, at the same terms.

        It costs nothing: whoever keeps the ledger that has paid for the run finds it there. One that comes
        with another ledger is not asked to pay twice.
        """
        same = set(parties)
        for kind in ("consider", "accept"):
            said = self._ask(kind, {k: self._bodies[k] for k in sorted(same)}).bodies
            same = {k for k, body in said.items() if KeptTerms.of(body).unsigned == kept[k].unsigned}
        return same

    def terms(self, party: int, kept: KeptTerms, *, signed: bool = False) -> Terms:
        """Return what a silo said, checked: what it claims must be about the plan, and with its signature.

        Raises:
            VerificationError: It states another price or size, or has not signed its guarantees.
        """
        entry, hidden = self._roster.silos[party], self._plan.hides_among_others
        claims = []
        for data, alone in [(kept.guarantee, False), *([(kept.alone, True)] if hidden else [])]:
            try:
                claim = Guarantee.from_json(data)
            except VerificationError as error:
                raise VerificationError(
                    f"what silo {entry.name!r} guarantees cannot be read: {error}"
                ) from error
            price = price_of_silo(
                self._plan,
                entry.size,
                name=entry.name,
                simulated=kept.simulated,
                alone=alone or self._counts_on_nobody(claim, entry.name),
                colluding=self._colluding(claim, entry.name),
            )
            check_claimed_price(claim, price, who=f"silo {entry.name!r}")
            claims.append(claim)
        if kept.size != entry.size:
            raise VerificationError(
                f"silo {entry.name!r} says that it has {kept.size} units, the roster says {entry.size}."
            )
        if signed:
            self._check_signature(kept.signature, claims, name=entry.name)
        return Terms(
            name=entry.name,
            size=entry.size,
            account=kept.account,
            simulated=kept.simulated,
            guarantee=claims[0],
            alone=claims[1] if hidden else None,
        )

    def _counts_on_nobody(self, claim: Guarantee, name: str) -> bool:
        """Whether a silo that hides in sums pays for what a message alone shows: its owner trusts nobody."""
        return self._plan.trust is TrustModel.AGGREGATE and claim.observer == observer_of_one(
            f"silo {printable(repr(name))}"
        )

    def _colluding(self, claim: Guarantee, name: str) -> int:
        """Return how many colluding silos a claim is about: an owner may expect more than the plan."""
        plan, who = self._plan, f"silo {printable(repr(name))}"
        if plan.trust is not TrustModel.AGGREGATE:
            return 0
        several = range(plan.colluding, plan.n_min - 1)
        return next((c for c in several if claim.observer == observer_of_sums(who, c)), plan.colluding)

    def _check_signature(self, signature: bytes, claims: Sequence[Guarantee], *, name: str) -> None:
        """Refuse a silo that does not stand behind its guarantees: nobody would believe the statement."""
        signed = received_signature(
            signature, federation=self._roster.federation, run=self._run, plan=self._plan, signer=name
        )
        try:
            check_claims(signed, claims, key=self._roster.verify_key(name))
        except AuthenticationError as error:
            raise VerificationError(f"silo {name!r} has not signed what it guarantees.") from error

    def _ask(self, kind: RequestKind, bodies: Mapping[int, RequestBody], *, enough: int = 0) -> Replies:
        return self._asking.ask(kind, bodies, run=self._run, deadline=self._deadline, enough=enough)


class RunAsker:
    """Asks the silos of one run; one that has forgotten the run accepts it again, and is asked again.

    Args:
        asking: Asks silos.
        run: Name of the run.
        proposals: Of its plan.
        terms: What silos said when they accepted it.
    """

    def __init__(
        self, asking: Asker, run: str, *, proposals: PlanProposals, terms: Sequence[KeptTerms]
    ) -> None:
        self._asking, self._run, self._proposals, self._terms = asking, run, proposals, terms
        self.present = asking.present

    def ask(
        self, kind: RequestKind, bodies: Mapping[int, RequestBody], *, deadline: float, enough: int = 0
    ) -> Replies:
        """Ask several silos at once; arguments as for `Asker.ask`."""
        until, told, back = time.monotonic() + deadline, set[int](), set[int]()
        found = self._asking.ask(kind, bodies, run=self._run, deadline=deadline, enough=enough)
        while kind != "close":
            forgot = {k for k, code in found.refused.items() if code in _FORGOTTEN} - told
            again = self._proposals.repeat(forgot, self._terms) if forgot else set()
            if not again:
                break
            told, back = told | forgot, back | again
            left = {k: body for k, body in bodies.items() if k in back or k not in found.refused}
            later = self._asking.ask(
                kind,
                {k: body for k, body in left.items() if k not in found.bodies},
                run=self._run,
                deadline=max(1.0, until - time.monotonic()),
                enough=max(0, enough - len(found.bodies)),
            )
            found = found.then(later, wanted=object)
        return found


def missing_silos(
    what: str, missing: Sequence[str], refused: Mapping[str, RefusalCode], *, came: int, needed: int
) -> MissingSilosError:
    """Return the error that names who is missing, and why where they said it."""
    each = [f"{name!r} ({refused[name].value})" for name in missing if name in refused]
    silent = [repr(name) for name in missing if name not in refused]
    said = "; ".join(
        f"{what}: {', '.join(names[:_NAMED])}"
        + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        for what, names in (("refused by", each), ("no word from", silent))
        if names
    )
    return MissingSilosError(
        f"{came} silos {what}, {needed} are needed; {said}. Nothing is lost: start the run again, and it "
        "goes on where it was."
    )
