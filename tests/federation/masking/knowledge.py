"""What a server with its colluders knows of one step: shares, secrets, and the sums that follow from vectors.

Nothing here asks the code that decides what leaves. Shares are recognised by their value among all that were
dealt, secrets are known from a threshold of shares on, and sums follow from linear equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tacit.federation.masking.shamir import SHARE_BYTES
from tests.federation.masking.algebra import learned

Secret = tuple[str, int]
"""What is shared: "seed" or "key" of an honest party, in one step."""


@dataclass
class StepKnowledge:
    """One step, as the adversary sees it.

    Attributes:
        honest: Honest parties.
        least: Shares that give a secret back.
        dealt: Whose secret a share belongs to, and at whose place, by its bytes; of honest dealers only.
        held: Places at which a share of a secret is known.
        vectors: With whom a seen vector is masked, by its party, what was asked, and which of its own it is.
    """

    honest: frozenset[int]
    least: int
    dealt: Mapping[bytes, tuple[Secret, int]]
    held: dict[Secret, set[int]] = field(default_factory=dict)
    vectors: dict[tuple[int, bytes, int], tuple[int, ...]] = field(default_factory=dict)

    def see_shares(self, reply: bytes) -> None:
        """Take in what a party has revealed."""
        for k in range(0, len(reply), SHARE_BYTES):
            found = self.dealt.get(reply[k : k + SHARE_BYTES])
            if found is not None:
                self.held.setdefault(found[0], set()).add(found[1])

    def known(self, kind: str) -> set[int]:
        """Honest parties whose secret of a kind is known."""
        return {
            who for (what, who), places in self.held.items() if what == kind and len(places) >= self.least
        }

    def sums(self) -> list[dict[int, int]]:
        """Return a basis of the sums of honest parties' own vectors that can be computed."""
        keys, seeds = self.known("key"), self.known("seed")
        rows: list[dict[object, int]] = []
        open_to_all: set[object] = set()
        for (party, asked, version), masked_with in self.vectors.items():
            row: dict[object, int] = {("own", party, version): 1, ("self", party, asked): 1}
            if party in seeds:
                open_to_all.add(("self", party, asked))
            for other in masked_with:
                if other == party or other not in self.honest:
                    continue  # colluders know the masks that they share
                pair = ("pair", asked, *sorted((party, other)))
                row[pair] = 1 if party < other else -1
                if party in keys or other in keys:
                    open_to_all.add(pair)
            rows.append(row)
        own = {("own", party, version) for party, _, version in self.vectors}
        return [
            {name[1]: value for name, value in found.items() if isinstance(name, tuple)}
            for found in learned(rows, open_to_all, set(own))
        ]

    def faults(self, fewest: int) -> list[str]:
        """Return what breaks the claim: at most one sum, of at least so many honest parties, once each."""
        both = self.known("key") & self.known("seed")
        faults = [f"both secrets of party {party}" for party in sorted(both)]
        sums = self.sums()
        if len(sums) > 1:
            faults.append(f"{len(sums)} sums")
        for found in sums:
            if len(set(found.values())) != 1:
                faults.append(f"a weighted sum {found}")
            if len(found) < fewest:
                faults.append(f"a sum of parties {sorted(found)} only")
        return faults


def shares_of(dealer: int, step: int, boxes: Iterable[bytes]) -> dict[bytes, tuple[Secret, int]]:
    """Return the shares of one dealer's secrets of one step of its block, by their bytes."""
    dealt: dict[bytes, tuple[Secret, int]] = {}
    for place, told in enumerate(boxes):
        for kind, at in (("key", 2 * step), ("seed", 2 * step + 1)):
            dealt[told[SHARE_BYTES * at : SHARE_BYTES * (at + 1)]] = ((kind, dealer), place)
    return dealt
