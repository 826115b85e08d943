"""How many parties must agree on a set before anybody helps to open its sum."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import RefusalError, check_count
from tacit.federation.shares import MOST_RECOVERED

__all__ = ["Quorum"]


@dataclass(frozen=True)
class Quorum:
    """Numbers under which one step of recoverable masks opens one sum.

    With `least > (parties + colluding) / 2`, two sets of signers share a party that is honest and signs once:
    two sets would need `2 (least - colluding) <= parties - colluding` honest signers. The sum then holds
    the noise of `least - colluding` honest parties or more (docs/theory/recoverable-masks.md).

    Attributes:
        parties: Of the roster, at most `MOST_RECOVERED`.
        least: Parties in a sum, and signatures under its set.
        colluding: Parties that may work with the server: the largest number that anybody counts on, the
            plan or the owner of this silo.

    Raises:
        RefusalError: Two sets could be opened, there are too many parties, or a sum would hold the noise of
            one honest party only.
    """

    parties: int
    least: int
    colluding: int

    def __post_init__(self) -> None:
        check_count("parties", self.parties, low=2)
        check_count("least", self.least, low=1)
        check_count("colluding", self.colluding, low=0)
        if self.parties > MOST_RECOVERED:
            raise RefusalError(
                f"recoverable masks are for at most {MOST_RECOVERED} parties, got {self.parties}: every "
                "two of them share secrets in every step. Complete masks have no such limit."
            )
        lowest = max((self.parties + self.colluding) // 2 + 1, self.colluding + 2)
        if not lowest <= self.least <= self.parties:
            raise RefusalError(
                f"the least number of parties in a sum must be in [{lowest}, {self.parties}] for "
                f"{self.parties} parties of which {self.colluding} may collude, got {self.least}: with "
                "fewer, two sums of one step could be opened, or a sum would hide one party only."
            )
