"""The event of one shuffled batch."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from tacit.errors import ParameterError, check_count
from tacit.privacy.arrivals import ARRIVALS, HONEST
from tacit.privacy.curves import Array, Curve, approximate_dp_curve, minimum
from tacit.privacy.events import Leaf, check_whole_unit
from tacit.privacy.neighbours import Neighbours, Relation
from tacit.privacy.shuffling.pair import MOST_PARTIES, check_local_level
from tacit.privacy.shuffling.randomizers import Dominating, dominating

__all__ = ["Shuffled"]


class Shuffled(Leaf, frozen=True, tag=True):
    """One shuffled batch: every party randomizes one message, and the shuffler forgets who sent which.

    Several messages of one report that are shuffled apart, by independent shufflers, are a `Compose` of
    batches; on a secret sample of the parties or records they share one `Sampled`
    (docs/theory/shuffling.md, section 4).

    Attributes:
        local_epsilon: Pure level of one message by itself, > 0 and at most 30.
        parties: Honest messages delivered: the smallest number the shuffler would release. 1 to 1e9.
        randomizer: A name of `tacit.privacy.shuffling.RANDOMIZERS`; "general" holds for any message.
        neighbours: Must be a replace-one relation, because the number of messages is public, of whole units:
            messages hide among each other only if nothing else in them tells whose they are.

    Example:
        >>> from tacit.privacy.pricing import epsilon_of
        >>> round(epsilon_of(Shuffled(1.0, 10_000), 1e-6), 5)
        0.05301
        >>> round(epsilon_of(Shuffled(1.0, 10_000, "2rr"), 1e-6), 5)
        0.04321
    """

    continuous: ClassVar[bool] = False
    goes_by_size: ClassVar[frozenset[str]] = frozenset({"parties"})

    local_epsilon: float
    parties: int
    randomizer: str = "general"
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "shuffling, numerical blanket"

    def __post_init__(self) -> None:
        check_local_level("local_epsilon", self.local_epsilon)
        check_count("parties", self.parties, high=MOST_PARTIES)
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "a shuffled batch is priced under replace-one neighbours only, because its size is public; "
                f"got {self.neighbours.relation.value}."
            )
        check_whole_unit("a shuffled batch", self.neighbours)
        dominating(self.randomizer, self.local_epsilon, 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That messages are permuted and released in full batches only, whatever is in them."""
        return (HONEST, f"every batch holds {self.parties:,} honest messages", ARRIVALS)

    @property
    def dominating(self) -> Dominating:
        """The law that dominates this batch."""
        return _dominating(self.randomizer, self.local_epsilon, self.parties)

    def work(self, *, many: bool) -> float:
        """Return the work of some 30 values of the curve, or of a table of them besides."""
        one = self.dominating.work  # a table has few points at which one takes the most
        return 30 * one + (220 * min(one, 1e5) if many else 0.0)

    def curve(self) -> Curve:
        """Return the curve of this release: the dominating law's, and never above the local level's."""
        level = self.local_epsilon
        return minimum([self.dominating.curve(), approximate_dp_curve(level)])

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergence at each order > 1, in both directions."""
        return self.dominating.renyi(orders)


@lru_cache(maxsize=32)  # a law keeps its groups and its table
def _dominating(randomizer: str, local_epsilon: float, parties: int) -> Dominating:
    return dominating(randomizer, local_epsilon, parties)
