"""The pair of laws that dominates a shuffled batch, when each message matters on two outcomes only.

Every message of the others falls, by a draw that its data does not steer, with probability `blanket` on the
two outcomes {own, other} that tell the target's two inputs apart, and there uniformly. The target's message
falls on its own outcome with probability `high`, on the other's with `low` = 1 - `high`. Whoever is told
which others drew from the blanket can take all other messages away: left are m = 1 + Bin(parties - 1,
blanket) messages, of which k are on the first outcome, with

    P(m, k) = B(m - 1) BinPMF(m, 1/2)(k) 2 (high k + low (m - k)) / m

and Q, with high and low exchanged; B is the law of the number of blankets.

A message that may fall elsewhere (k-RR with three symbols or more) does not fit: not telling the number of
blankets and subtracting nothing gives a smaller pair that only some data attain and other data exceed
(tests/privacy/shuffling/test_pair.py). `tacit.privacy.shuffling.blanket` bounds it.

Source: Feldman, McMillan and Talwar (2022), arXiv:2012.12803, for any local randomizer; for a message that is
one randomized response derived in docs/theory/shuffling.md, section 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.privacy.curves import Array, Curve, symmetric
from tacit.privacy.shuffling.binomial import binomial_log_pmf, counts_in_groups, half_binomial_bounds
from tacit.privacy.shuffling.loss_table import LossTable, renyi_of_law
from tacit.privacy.shuffling.renyi import clones_renyi

__all__ = ["LARGEST_LEVEL", "MOST_PARTIES", "ShuffledPair", "check_local_level"]

LARGEST_LEVEL = 30.0
"""Local levels above this are no privacy statement."""
MOST_PARTIES = 10**9
_AT_ONCE = 1 << 18  # evaluations of a binomial law that are held in memory together
_TABULATE = 1 << 18  # more evaluations than this are read off a table
_FINE, _COARSE = 4e-5, 2e-4  # relative widths of the groups of m: epsilon moves by a quarter of it
_EXACT_RENYI = 1000  # parties up to which a Rényi divergence is the full sum
_LEAST_BLANKET = 1e-30
_DEEP = 300.0  # log of what an order may weigh a table's tail by; beyond, the table is sound but loose


def check_local_level(name: str, value: float) -> None:
    """Refuse anything but a local level in (0, 30]."""
    check_positive(name, value)
    if value > LARGEST_LEVEL:
        raise ParameterError(f"{name} must be at most {LARGEST_LEVEL:g}, got {value!r}.")


@dataclass(frozen=True)
class ShuffledPair:
    """A dominating pair of a shuffled batch; see the module for its law.

    Attributes:
        parties: Messages in the batch, the target's included; honest and delivered. 1 to 1e9.
        blanket: Probability that another message falls on the two outcomes whatever its data. In [0, 1].
        high: Probability of the target's own outcome. In (1/2, 1).
        low: Probability of the other outcome: 1 - high, with the digits that a small one needs.
    """

    parties: int
    blanket: float
    high: float
    low: float

    def __post_init__(self) -> None:
        check_count("parties", self.parties, high=MOST_PARTIES)
        check_probability("blanket", self.blanket)
        check_probability("high", self.high, low_open=True)
        if not 0 < self.low < self.high or abs(self.high + self.low - 1) > 1e-12:
            raise ParameterError(f"low must be 1 - high, above 0 and below high, got {self.low!r}.")

    @classmethod
    def randomized_response(
        cls, epsilon0: float, parties: int, *, blanket: float | None = None
    ) -> ShuffledPair:
        """Return the pair whose target sends a bit by randomized response.

        Args:
            epsilon0: Local level. In (0, 30].
            parties: Messages in the batch.
            blanket: 2 / (e^epsilon0 + 1), the default, where every message is one randomized response;
                e^-epsilon0 for any randomizer of level epsilon0 (clones).
        """
        check_local_level("epsilon0", epsilon0)
        low = float(special.expit(-epsilon0))
        return cls(parties, 2 * low if blanket is None else blanket, float(special.expit(epsilon0)), low)

    @property
    def max_loss(self) -> float:
        """No privacy loss exceeds this: the target's own level."""
        # Rounded up past what the digits of two probabilities near 1/2 say about a small level.
        return math.log(self.high / self.low) * (1 + 2.0**-52) + 2.0**-50

    @property
    def work(self) -> float:
        """About how many numbers one delta takes: tails of binomial laws of up to some thousand groups."""
        deviation = math.sqrt(self.parties * self.blanket * (1 - self.blanket))
        return min(100 * (20 * deviation + 10), 1e5)

    @cached_property
    def _fine(self) -> tuple[Array, Array]:
        return self._groups(_FINE)

    @cached_property
    def _coarse(self) -> tuple[Array, Array]:
        return self._groups(_COARSE)

    def _groups(self, width: float) -> tuple[Array, Array]:
        """Return probabilities and values of m, rounded down: one more uniform bit is post-processing."""
        # Fewer blankets hide less, so one that never happens in practice may count as none.
        blanket = self.blanket if self.blanket > _LEAST_BLANKET else 0.0
        first, _, mass = counts_in_groups(self.parties - 1, blanket, width=width)
        return mass, first + 1

    def delta(self, epsilon: npt.ArrayLike) -> Array:
        """Return the hockey-stick divergence of the pair, rounded up.

        Args:
            epsilon: Any shape, each >= 0.

        Returns:
            delta, of the same shape. Up to about 50,000 expected messages on the two outcomes the sum is
            complete and within about 1e-9 of the truth; above, m is grouped: epsilon rises by 1e-5 of itself.

        Cost:
            O(min(sqrt(n), 1000)) evaluations of a binomial tail per epsilon.
        """
        return self._evaluated(np.asarray(epsilon, dtype=np.float64), self._fine)

    def _evaluated(self, eps: Array, groups: tuple[Array, Array]) -> Array:
        """Return the divergences at `eps` of any shape, from these groups of m."""
        flat = np.atleast_1d(eps).ravel()
        weight, m = groups
        rows = max(_AT_ONCE // m.size, 1)
        found = [self._sum(flat[i : i + rows, None], weight, m) for i in range(0, flat.size, rows)]
        return np.concatenate(found or [flat]).reshape(eps.shape)

    def _sum(self, eps: Array, weight: Array, m: Array) -> Array:
        """Return the divergences at `eps` of shape (r, 1), summed over the groups."""
        a_minus_1 = np.expm1(np.minimum(eps, self.max_loss))
        # high - a low, without cancellation near the largest loss.
        edge = np.maximum(-self.high * np.expm1(np.minimum(eps - self.max_loss, 0.0)), 0.0)
        # Losses above epsilon are those of j = m - k < m * share messages on the other's outcome.
        share = edge / ((self.high - self.low) * (2 + a_minus_1))
        j = np.clip(np.ceil(m * share) - 1, -1, m - 1)
        most, least = half_binomial_bounds(m - 1, j)
        value = np.maximum(edge * most - a_minus_1 * least, 0.0)
        alone = edge[:, 0]  # the target's message without any other: shuffling only takes away
        summed: Array = np.minimum(np.einsum("ij,j->i", value, weight) * (1 + 1e-13), alone)
        return summed

    @cached_property
    def _table(self) -> LossTable:
        return LossTable.of(lambda epsilon: self._evaluated(epsilon, self._coarse), self.max_loss)

    def curve(self) -> Curve:
        """Return the privacy curve: symmetric, nowhere below the pair's.

        Many epsilons at once are read off a table whose chords lie above the curve, which is convex in
        e^epsilon; composition asks for 1e5 of them.
        """

        def profile(epsilon: Array) -> Array:
            few = epsilon.size * self._fine[0].size <= _TABULATE
            return self.delta(epsilon) if few else self._table.delta(epsilon)

        return symmetric(profile, max_loss=self.max_loss)

    def renyi(self, orders: npt.ArrayLike) -> Array:
        """Return the Rényi divergence at each order > 1, in either direction, rounded up.

        Complete up to 1000 parties, since what is dropped would weigh up to e^((order - 1) epsilon0); above,
        the sum over a law on some hundred losses that dominates the pair, about 1e-4 larger.

        Args:
            orders: Shape (r,), each finite and > 1.

        Raises:
            ParameterError: An order is not finite or not above 1.
        """
        alpha = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        if not np.all(np.isfinite(alpha) & (alpha > 1)):
            raise ParameterError("orders must be finite numbers > 1.")
        if self.parties <= _EXACT_RENYI:
            return np.minimum(renyi_of_law(*self._law, alpha), self.max_loss)
        bound = np.minimum(renyi_of_law(*self._table.law(), alpha), self.max_loss)
        far = alpha > 1 + _DEEP / self.max_loss
        if far.any():
            bound[far] = np.fmin(
                bound[far], clones_renyi(self.max_loss, self.parties, alpha[far], blanket=self.blanket)
            )
        return bound

    @cached_property
    def _law(self) -> tuple[Array, Array]:
        """Return all losses >= 0 and their log-masses under (P + Q) / 2."""
        few, all_of = np.triu_indices(self.parties + 1)
        keep = (all_of >= 1) & (2 * few <= all_of)
        m, j = all_of[keep].astype(np.float64), few[keep].astype(np.float64)
        k = m - j
        loss = np.log((self.high * k + self.low * j) / (self.low * k + self.high * j))
        both_signs = np.where(2 * j < m, math.log(2), 0.0)
        log_blankets = binomial_log_pmf(m - 1, self.parties - 1, self.blanket)
        return loss, log_blankets + binomial_log_pmf(j, m, 0.5) + both_signs
