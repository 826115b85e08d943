"""What a silo says of the price of a plan: guarantees word for word as the statement has them, and signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from tacit.federation.network.bodies import Accepted, Considered
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.signatures import sign_claims
from tacit.federation.plan import Plan
from tacit.federation.silo import Silo
from tacit.privacy import Guarantee, Neighbours, TrustModel
from tacit.privacy.signed import raw_signature

__all__ = ["SiloClaims"]


@dataclass(frozen=True, kw_only=True)
class SiloClaims:
    """Words of one silo.

    Attributes:
        silo: Whose.
        clauses: Returns what guarantees rest on besides their events, given the neighbours of a plan.
        federation: Its name.
        key: The silo's.
    """

    silo: Silo
    clauses: Callable[[Neighbours], Sequence[str]]
    federation: str
    key: SigningKey

    def considered(self, plan: Plan, price: Guarantee) -> Considered:
        """Return what is said of a plan that was priced."""
        return Considered(*self._said(self._of(plan, price)))

    def accepted(self, plan: Plan, price: Guarantee, *, run: str) -> Accepted:
        """Return what is said of a plan whose price is reserved."""
        claims = self._of(plan, price)
        return Accepted(*self._said(claims), signature=self._signature(plan, run, claims))

    def _of(self, plan: Plan, price: Guarantee) -> list[Guarantee]:
        """Return what the silo guarantees."""
        before = [self.silo.alone(plan)] if plan.hides_among_others else []
        clauses = self.clauses(plan.neighbours)
        return [
            msgspec.structs.replace(one, assumptions=tuple(dict.fromkeys((*one.assumptions, *clauses))))
            for one in (price, *before)
        ]

    def _said(self, claims: Sequence[Guarantee]) -> tuple[bytes, bytes, int, bytes | None, bool]:
        """Return the fields of `Considered`."""
        price, *before = (claim.to_json() for claim in claims)
        silo = self.silo
        return price, b"".join(before), silo.size, silo.account, silo.simulated

    def _signature(self, plan: Plan, run: str, claims: Sequence[Guarantee]) -> bytes:
        """Return the silo's signature of its guarantees; a trusted server guarantees instead of the silo."""
        if plan.trust is TrustModel.CENTRAL:
            return b""
        signed = sign_claims(
            self.key, claims, federation=self.federation, run=run, plan=plan, signer=self.silo.name
        )
        return raw_signature(signed)
