"""What the owner of a silo says about sums, under aggregate trust: who may collude, and what hides a message.

The price of a plan that trusts nobody with a message, only with the sum of all, rests on facts that a plan
cannot prove to a silo: who the others are, how many of them may collude, and that a message is hidden until
it is added up. So the owner says them, and the plan must agree. Keys are in `tacit.federation.masking`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tacit.errors import LARGEST_COUNT, RefusalError, check_count, check_positive
from tacit.federation.plan import Plan
from tacit.federation.protocols import Secrets
from tacit.numerics import IntArray

__all__ = ["OpenSums", "SiloMasks", "Sums"]


class SiloMasks(Protocol):
    """One silo's half of the protocol that opens sums and nothing else, for one run of one plan."""

    def respond(self, stage: str, data: bytes) -> bytes:
        """Return the reply to what a server sends at a stage of the protocol.

        Raises:
            RefusalError: It is not what an honest server would send to this silo in this run.
        """
        ...

    def mask(self, step: int, query_digest: bytes, vector: IntArray, width: int) -> IntArray:
        """Return the message of a step, hidden: one for every step.

        Args:
            step: Number of the round.
            query_digest: What is asked, the same for all silos.
            vector: Shape (d,), centred residues modulo 2**width: all that the silo sends in this step.
            width: Bits of a residue.

        Raises:
            RefusalError: The step was masked for another query, or the others are not known yet.
        """
        ...

    def wipe(self) -> None:
        """Forget all keys: nothing more can be masked in this run, by this process or a later one."""
        ...


class Sums(Protocol):
    """What the owner of a silo says under aggregate trust."""

    @property
    def colluding(self) -> int | None:
        """How many other parties may collude with the server, in the owner's opinion, at the least.

        None counts on nobody: messages are hidden all the same, and charged as if each were seen alone.
        """
        ...

    @property
    def roster(self) -> str:
        """Digest of the roster that the owners have agreed on; empty where nothing is masked."""
        ...

    @property
    def most_alone(self) -> float | None:
        """Largest epsilon of a message alone that the owner accepts; None for any."""
        ...

    def check(self, plan: Plan, index: int) -> None:
        """Refuse other parties than those of the roster, or another place in it; nothing is spent yet.

        Raises:
            RefusalError: The plan is not for the parties of the roster, or the index is not the silo's own.
        """
        ...

    def masks(self, plan: Plan, run: str, index: int, secrets: Secrets) -> SiloMasks | None:
        """Return what hides the messages of an accepted run; None where nothing is masked."""
        ...


@dataclass(frozen=True, kw_only=True)
class OpenSums:
    """Whoever adds up messages is in this process, and trusted with them: nothing is masked.

    For simulations, and for data that lie on one machine: what leaves the process are sums.

    Attributes:
        colluding: How many other parties may know their own share of the noise, and tell, at the least.
        most_alone: Largest epsilon of a message alone that the owner accepts; None for any.
    """

    colluding: int = 0
    most_alone: float | None = None

    def __post_init__(self) -> None:
        check_count("colluding", self.colluding, low=0, high=LARGEST_COUNT)
        if self.most_alone is not None:
            check_positive("most_alone", self.most_alone)

    @property
    def roster(self) -> str:
        """Nobody's: nothing is masked."""
        return ""

    def check(self, plan: Plan, index: int) -> None:  # noqa: ARG002
        """Refuse a plan that names a roster: there the owner knows nobody."""
        if plan.roster:
            raise RefusalError("the plan names a roster, and the owner of the silo has agreed on none.")

    def masks(self, plan: Plan, run: str, index: int, secrets: Secrets) -> None:
        """Return nothing."""
