"""The parties whose messages a shuffler mixes in one round: fixed before any of them sends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from tacit.errors import LARGEST_COUNT, ParameterError, RefusalError
from tacit.federation.plan import Plan

__all__ = ["Circle", "CircleError", "check_circle"]


class CircleError(RefusalError):
    """A silo does not send to a shuffler that mixes its messages with those of such parties."""


@dataclass(frozen=True)
class Circle:
    """Whose messages one batch is made of. All of it is public.

    A party binds its answer to the circle, and keeps it bound in its ledger. Two batches of one round that
    differ by a party would show what that party sent, by their difference; so would two batches in which
    others have drawn new noise. So whoever goes on with a run mixes the same parties, with the same ledgers.

    Attributes:
        parties: Their indices, increasing.
        sizes: Public number of units of each.
        accounts: Fingerprints of the ledgers in which they keep their answers; None keeps none.
        session: Random bytes, drawn anew by every process of a run whose parties keep no ledgers: what they
            sent before is then of another circle. Empty where ledgers remember.

    Raises:
        CircleError: Indices that are not increasing whole numbers >= 0, or lists of different lengths.
    """

    parties: tuple[int, ...]
    sizes: tuple[int, ...]
    accounts: tuple[bytes | None, ...]
    session: bytes = b""
    _fits: list[Plan] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole = all(type(k) is int and 0 <= k <= LARGEST_COUNT for k in (*self.parties, *self.sizes))
        in_order = whole and all(a < b for a, b in zip(self.parties, self.parties[1:], strict=False))
        if not in_order or not len(self.parties) == len(self.sizes) == len(self.accounts):
            raise CircleError("a circle must have increasing indices of parties, with a size for each.")

    @cached_property
    def size_of(self) -> dict[int, int]:
        """Number of units by party."""
        return dict(zip(self.parties, self.sizes, strict=True))

    @cached_property
    def account_of(self) -> dict[int, bytes | None]:
        """Fingerprint of the ledger by party."""
        return dict(zip(self.parties, self.accounts, strict=True))

    @cached_property
    def keeps(self) -> bool:
        """Whether all of them keep a ledger."""
        return None not in self.accounts

    def check_honest(self, plan: Plan) -> None:
        """Refuse a plan that counts on more honest rows than these parties send.

        Silos of one process share a circle: of many thousands only one counts all of them.

        Raises:
            ParameterError: As `Plan.check_honest` does.
        """
        if not any(one is plan for one in self._fits):
            plan.check_honest(self.sizes)
            self._fits[:] = [plan]

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that differ for any other circle."""
        fields = (self.parties, self.sizes, self.accounts, self.session)
        return hashlib.blake2b(msgspec.msgpack.encode(fields), digest_size=16).digest()


def check_circle(
    circle: Circle, plan: Plan, *, party: int, size: int, account: bytes | None, who: str
) -> None:
    """Refuse a circle that does not hide a silo as its plan was priced.

    Args:
        circle: Whose messages are mixed.
        plan: That the silo has accepted.
        party: Its index in the run.
        size: Its public number of units.
        account: Fingerprint of its ledger; None keeps none.
        who: The silo, for messages.

    Raises:
        CircleError: The circle is too small, or without the silo; or others could come back with new noise.
    """
    if (
        circle.size_of.get(party) != size
        or len(circle.parties) < plan.n_min
        or circle.parties[-1] >= plan.parties
    ):
        raise CircleError(
            f"{who} is mixed with at least n_min ({plan.n_min}) parties of its plan, itself included."
        )
    if account is not None and not (circle.keeps and circle.account_of[party] == account):
        raise CircleError(f"{who} keeps a ledger, so all whom it is mixed with must keep one.")
    try:
        circle.check_honest(plan)
    except ParameterError as error:
        raise CircleError(f"{who} is mixed with too few rows: {error}") from error
