"""The event of a shuffled batch whose messages each carry their own Gaussian noise.

One message has no pure level: it is (e0, d0)-DP for every e0, with d0 = d0(e0) from its own curve. Clones
need less than a pure level. With P and P' the laws of the target's two messages, mu_i those of n - 1 others,
and H the hockey-stick divergence at e^e0, all of them at most d0:

(1) There are laws Q, Q' with densities within e^e0 of each other, within t = d0 / (1 + e^e0) of P and P' in
    total variation (Dwork and Roth 2014, Lemma 3.17).
(2) The part of e^-e0 (Q + Q') / 2 that lies above mu_i is at most s = e^-e0 (d0 + t). Raised to it there, and
    lowered elsewhere, mu_i becomes a law nu_i >= e^-e0 (Q + Q') / 2 that is within s of it.
(3) The batch of Q (or Q') and nu_2, ..., nu_n is dominated by the pair of clones at the level e0 (Feldman,
    McMillan and Talwar 2022, whose proof asks for nothing else), and is within m = t + (n - 1) s of the real
    one.

So H_a <= (clones) + (1 + a) m. The clones show nothing beyond e0, and a divergence falls with a, hence

    delta(eps) <= clones(eps) + q,   q = (1 + e^e0) m = d0 (1 + (n - 1) (1 + 2 e^-e0)).

Their Theorem 3.8 has (e^eps + 1)(1 + e^-e0 / 2) n d0 in place of q.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tacit.errors import ParameterError, check_count, check_probability
from tacit.privacy import curves
from tacit.privacy.arrivals import ARRIVALS, HONEST
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events import DiscreteGaussian, Leaf, check_whole_unit
from tacit.privacy.neighbours import Neighbours, Relation
from tacit.privacy.shuffling.pair import LARGEST_LEVEL, MOST_PARTIES, check_local_level
from tacit.privacy.shuffling.randomizers import Dominating, dominating

__all__ = ["ShuffledGaussian", "clones_level"]

_LEAST_LEVEL = 2.0**-20
_HALVINGS = 50


class ShuffledGaussian(Leaf, frozen=True, tag=True):
    """One shuffled batch of integer vectors, each under discrete Gaussian noise of its own.

    The observer sees every noisy vector, and not whose it is. It costs no more than one message alone, nor
    than clones at the level `local_epsilon` and the chance that this is no level.

    Attributes:
        std: The parameter sigma of the noise of one coordinate of one message, in grid steps. Finite, > 0.
        sensitivity: L2 distance of two messages of one unit before the noise, in grid steps, rounding
            included. Finite, > 0.
        dim: Number of coordinates, up to 2**40.
        parties: Honest messages delivered: the smallest number the shuffler would release. 1 to 1e9.
        local_epsilon: Level at which clones are counted, > 0 and at most 30; `clones_level` chooses it.
        neighbours: A replace-one relation of whole units, because the number of messages is public.

    Example:
        >>> from tacit.privacy.pricing import epsilon_of
        >>> level = clones_level(DiscreteGaussian(1e5, 1e4, dim=10), 10_000, 1e-8)
        >>> event = ShuffledGaussian(1e5, 1e4, 10, 10_000, level)
        >>> round(level, 3), round(epsilon_of(event, 1e-6), 4), round(epsilon_of(event.alone, 1e-6), 4)
        (0.658, 0.0294, 0.3969)
    """

    continuous: ClassVar[bool] = False
    goes_by_size: ClassVar[frozenset[str]] = frozenset({"parties", "local_epsilon"})

    std: float
    sensitivity: float
    dim: int
    parties: int
    local_epsilon: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "shuffling, clones of an approximate level"

    def __post_init__(self) -> None:
        _ = self.alone
        check_count("parties", self.parties, high=MOST_PARTIES)
        check_local_level("local_epsilon", self.local_epsilon)
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "a shuffled batch is priced under replace-one neighbours only, because its size is public; "
                f"got {self.neighbours.relation.value}."
            )
        check_whole_unit("a shuffled batch", self.neighbours)

    @property
    def alone(self) -> DiscreteGaussian:
        """What one message shows to whoever sees it with its sender."""
        return DiscreteGaussian(self.std, self.sensitivity, self.neighbours, self.dim)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That messages are permuted and released in full batches only, whatever is in them."""
        return (HONEST, f"every batch holds {self.parties:,} honest messages", ARRIVALS)

    @property
    def slack(self) -> float:
        """q: what is added to every delta of the clones."""
        return _slack(self.alone.curve(), self.parties, self.local_epsilon)

    def work(self, *, many: bool) -> float:
        """Return the work of the clones' curve, and of one message's."""
        one = self._clones.work
        return 30 * one + (220 * min(one, 1e5) if many else 0.0) + self.alone.work(many=many)

    @property
    def _clones(self) -> Dominating:
        return _clones(self.local_epsilon, self.parties)

    def curve(self) -> Curve:
        """Return the curve of this release: the better of both proofs at every epsilon."""
        alone, clones, slack = self.alone.curve(), self._clones.curve(), self.slack
        return curves.minimum(
            [alone, curves.symmetric(lambda epsilon: np.minimum(clones.delta(epsilon) + slack, 1.0))]
        )

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergences at `orders`: that of one message alone."""
        return self.alone.renyi(orders)


def clones_level(alone: DiscreteGaussian, parties: int, slack: float) -> float:
    """Return the least level at which the chance that it is no level costs at most `slack`.

    Args:
        alone: What one message shows.
        parties: Honest messages of a batch, 1 to 1e9.
        slack: Largest q, in (0, 1).

    Returns:
        At most 30, where q may still be above `slack`: then only one message's own price is left.

    Raises:
        ParameterError: A value is out of its range.
    """
    check_count("parties", parties, high=MOST_PARTIES)
    check_probability("slack", slack, low_open=True, high_open=True)
    return _level(alone, parties, slack)


@lru_cache(maxsize=256)
def _level(alone: DiscreteGaussian, parties: int, slack: float) -> float:
    """Search for the level, which is rounded up."""
    curve = alone.curve()
    low, high = math.log(_LEAST_LEVEL), math.log(LARGEST_LEVEL)
    if _slack(curve, parties, math.exp(low)) <= slack:
        return _LEAST_LEVEL
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = _slack(curve, parties, math.exp(middle)) <= slack
        low, high = (low, middle) if fits else (middle, high)
    return min(math.exp(high), LARGEST_LEVEL)


def _slack(alone: Curve, parties: int, level: float) -> float:
    """Return q = d0 (1 + (n - 1) (1 + 2 e^-e0)), rounded up."""
    outside = float(alone.delta(np.array([level]))[0])
    return min(outside * (1 + (parties - 1) * (1 + 2 * math.exp(-level))) * (1 + 1e-12), 1.0)


@lru_cache(maxsize=32)
def _clones(level: float, parties: int) -> Dominating:
    return dominating("general", level, parties)
