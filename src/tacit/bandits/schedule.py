"""When a batched bandit decides: batches that grow by a constant factor (Girgis 2023, Section 6.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import check_count
from tacit.numerics import settle

__all__ = ["LEAST_HORIZON", "BatchSchedule"]

LEAST_HORIZON = 8
"""The shortest horizon: ln T must be 2 or more, or there is no batch."""


@dataclass(frozen=True, slots=True)
class BatchSchedule:
    """The lengths of the batches for a horizon of T rounds.

    There are L = floor(ln T - 1) batches; batch i is meant for growth^i rounds, growth = (2 T)^(1 / ln T),
    which lies between e and e^2. Lengths are rounded up action by action, and all of them may exceed T:
    whoever plays them stops before a batch that does not fit (docs/theory/bandits.md, section 1).

    Attributes:
        horizon: T, from 8 to 2**53.

    Raises:
        ParameterError: `horizon` is out of range.

    Example:
        >>> plan = BatchSchedule(1_000_000)
        >>> plan.batches, round(plan.growth, 8), round(sum(plan.lengths), 1)
        (12, 2.85814172, 457097.2)

    Reference:
        Girgis (2023), Algorithm 6.3.1, lines 1 to 4.
    """

    horizon: int

    def __post_init__(self) -> None:
        settle(self)
        check_count("horizon", self.horizon, low=LEAST_HORIZON, high=2**53)

    @property
    def growth(self) -> float:
        """The factor q = (2 T)^(1 / ln T) = e 2^(1 / ln T)."""
        return math.e * 2 ** (1 / math.log(self.horizon))

    @property
    def batches(self) -> int:
        """How many batches L there are."""
        return math.floor(math.log(self.horizon) - 1)

    @property
    def lengths(self) -> tuple[float, ...]:
        """What each batch is meant for, before rounding."""
        return tuple(self.growth**i for i in range(1, self.batches + 1))
