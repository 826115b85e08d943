"""Who talks to whom: a party answers for its own data; a federation turns a plan into an `Ask`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tacit.federation.circle import Circle
from tacit.federation.participation import Participation
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget

__all__ = [
    "Exchange",
    "Federation",
    "Memory",
    "Party",
    "Rounds",
    "Secrets",
    "Terms",
    "Traffic",
    "Unsent",
    "Weights",
]

Weights = Literal["records", "silos"] | Sequence[float]
"""How parties count in the mean: by their records, equally, or by given p_i > 0, relative to their sum."""

Memory = Callable[[Callable[[], bytes]], bytes]
"""Returns the secret of a party's run, which its argument draws the first time."""


Exchange = Callable[[str, Mapping[int, bytes]], dict[int, bytes]]
"""Sends parties bytes for a stage of a protocol, by their index; returns the replies of those who replied."""


class Secrets(Protocol):
    """What one run keeps secret and must not lose, by name; nothing of it ever leaves."""

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the secret of this name, which `make` draws the first time; durable by then.

        Of several processes the first decides. What was wiped is refused, and not made again.
        """
        ...

    def find(self, name: str) -> bytes | None:
        """Return the secret of this name, None where there is none or none any more."""
        ...

    def wipe(self, prefix: str = "") -> None:
        """Delete for good, in all processes, every secret whose name begins so."""
        ...


@dataclass(frozen=True, slots=True)
class Unsent:
    """An answer that was computed and has not left.

    Attributes:
        store: Stores it durably, and then returns what may be sent; to be called once, by any thread.
        ledger: Where it is stored, so that what goes to one file can go together; None keeps it in memory.
    """

    store: Callable[[], bytes]
    ledger: Ledger | None = None


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Under which a party takes part in a run; all of it is public.

    Attributes:
        name: How statements call the silo.
        size: Number of units that the plan counts on.
        account: Fingerprint of the ledger by which it remembers its answers; None keeps none.
        simulated: Whether its randomness can be repeated.
        guarantee: What others learn from its answers.
        alone: What one message of it shows alone, with its sender, where the guarantee is not about that:
            before it is shuffled, or if all whose messages are added to it collude; else None.
    """

    name: str
    size: int
    account: bytes | None
    simulated: bool
    guarantee: Guarantee
    alone: Guarantee | None = None


class Party(Protocol):
    """One party with its data, as a server sees it; `Silo` is one."""

    @property
    def name(self) -> str:
        """How statements call the party."""
        ...

    @property
    def size(self) -> int:
        """Number of units that plans count on; public."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether the party's randomness can be repeated."""
        ...

    @property
    def account(self) -> bytes | None:
        """Fingerprint of the ledger by which the party remembers its answers; None keeps none."""
        ...

    @property
    def accepted(self) -> object:
        """What stands for the accepted plan and its run; every `accept` makes a new one."""
        ...

    def consider(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> Guarantee:
        """Check and price a plan as `accept` does, and reserve nothing."""
        ...

    def accept(
        self, plan: Plan, *, party: int, run: str, budget: PrivacyBudget | None, memory: Memory | None
    ) -> Guarantee:
        """Price a plan, reserve the price, and be ready to answer; return what others can learn."""
        ...

    def alone(self, plan: Plan) -> Guarantee:
        """Return what is learnt by who sees the party's messages alone, with their sender."""
        ...

    def answer(self, query: Query, circle: Circle | None = None) -> bytes:
        """Answer one query of the accepted plan: the same query with the same bytes."""
        ...

    def prepare(self, query: Query, circle: Circle | None = None) -> Unsent:
        """Compute an answer, of which nothing may leave before it is stored."""
        ...

    def exchange(self, stage: str, data: bytes) -> bytes:
        """Reply to the server at a stage of the protocol by which sums are opened."""
        ...

    def close(self) -> None:
        """End the accepted run: nothing more is answered."""
        ...


@dataclass
class Traffic:
    """What a run has sent, per party.

    Attributes:
        bits_up: Bits that each party sent, shape (parties,).
        answered: Rounds that each party answered, shape (parties,).
        skipped: Rounds in which nobody answered, or too few for a shuffler or a sum.
    """

    bits_up: Array
    answered: Array
    skipped: int = 0


class Rounds(Protocol):
    """A run that is under way: an `Ask` that knows what it costs."""

    @property
    def guarantees(self) -> list[Guarantee]:
        """What observers can learn from the whole run, agreed before its first round."""
        ...

    @property
    def guarantees_alone(self) -> list[Guarantee]:
        """What messages alone show, under shuffle and aggregate trust; none under other trust models."""
        ...

    @property
    def traffic(self) -> Traffic:
        """Bits and answers so far."""
        ...

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the estimate of every mean, each of shape (dim,)."""
        ...


class Federation(Protocol):
    """Parties that can be reached: where they are, and what carries the messages, is all that differs."""

    @property
    def sizes(self) -> Sequence[int]:
        """Public number of units of each party."""
        ...

    def open(
        self,
        plan: Plan,
        *,
        run: str,
        participation: Participation | None,
        weights: Weights,
        budget: PrivacyBudget | None,
    ) -> Rounds:
        """Have the plan priced and accepted by whoever adds the noise, and start the run."""
        ...
