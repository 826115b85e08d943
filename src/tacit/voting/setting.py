"""What a private majority is designed for: who votes, what a vote costs, what the published bit may."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from tacit.errors import ParameterError, check_count, check_positive, check_probability, shown
from tacit.numerics import settle
from tacit.privacy.certified import Teachers, check_vote_level

__all__ = ["Setting", "Ties", "allowance"]

_NEAR = 1e-12  # by how much m = target / epsilon may miss a whole number because decimals are rounded


class Ties(StrEnum):
    """What an even number of teachers publishes when they are split evenly."""

    COIN = "coin"


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """K teachers with private binary votes, and the guarantee that their published majority must have.

    Attributes:
        teachers: K >= 1; they are independent of each other given the data.
        epsilon: Each vote is (epsilon, delta)-DP. > 0, at most 300.
        delta: In [0, 1).
        target_epsilon: Of the published bit; between epsilon and K epsilon, at most 300.
        target_delta: Of the published bit, in [delta, 1).
        ties: What an even K does at a tie; must be given then, and is only then used.
        affected: How many teachers one change of the data may reach, 1 to K, because each record reaches only
            so many, chosen without looking at it; None for all.

    Raises:
        ParameterError: A value out of its range, or an even K without `ties`.

    Reference:
        Jiang (2025), Problem 3.1.1.
    """

    teachers: int
    epsilon: float
    target_epsilon: float
    delta: float = 0.0
    target_delta: float = 0.0
    ties: Ties | None = None
    affected: int | None = None

    def __post_init__(self) -> None:
        settle(
            self
        )  # NumPy's narrow numbers would overflow where Python's do not, and an artefact has others
        check_count("teachers", self.teachers)
        for name in ("epsilon", "target_epsilon"):
            check_positive(name, getattr(self, name))
        for name in ("delta", "target_delta"):
            check_probability(name, getattr(self, name), high_open=True)
        if self.affected is not None:
            check_count("affected", self.affected)
        _ = self.voters
        if self.ties is not None and not isinstance(self.ties, Ties):
            raise ParameterError(f"ties must be a Ties or None, got {shown(self.ties)}.")
        if self.teachers % 2 == 0 and self.ties is None:
            raise ParameterError(
                f"teachers must be odd, got {self.teachers}: an even number can be tied. Add a teacher, or "
                "give ties=Ties.COIN to publish a fair coin then."
            )
        check_vote_level("target_epsilon", self.target_epsilon)
        most = self.voters.movable
        if not 1 - _NEAR <= self.allowance <= most * (1 + _NEAR):
            raise ParameterError(
                f"allowance = target_epsilon / epsilon must be in [1, {most}], got {self.allowance!r}: below "
                "1 one teacher costs more than the target, above that all votes may be published as they are."
            )
        if self.target_delta < self.delta:
            raise ParameterError(
                f"target_delta must be at least the delta of one vote, {self.delta!r}, got "
                f"{self.target_delta!r}."
            )

    @property
    def allowance(self) -> float:
        """The target in votes: m = target_epsilon / epsilon."""
        return self.target_epsilon / self.epsilon

    @property
    def whole_allowance(self) -> int:
        """The allowance rounded down, but for the rounding of decimals."""
        return min(max(math.floor(self.allowance * (1 + _NEAR)), 1), self.voters.movable)

    @property
    def majority(self) -> int:
        """h: the least count of ones that is more than half."""
        return self.teachers // 2 + 1

    @property
    def free(self) -> int:
        """How many values of gamma are free, those for l = h, ..., K."""
        return (self.teachers + 1) // 2

    @property
    def voters(self) -> Teachers:
        """What the certificate needs to know of the teachers."""
        return Teachers(count=self.teachers, epsilon=self.epsilon, delta=self.delta, affected=self.affected)

    @property
    def room(self) -> float:
        """E - 1 + 2 target_delta, the right-hand side of the privacy condition."""
        return math.expm1(self.target_epsilon) + 2 * self.target_delta


def allowance(
    teachers: int,
    epsilon: float,
    m: float,
    *,
    delta: float = 0.0,
    target_delta: float | None = None,
    ties: Ties | None = None,
    affected: int | None = None,
) -> Setting:
    """Return the setting in which the published bit may cost as much as m of the votes.

    Args:
        teachers: K >= 1.
        epsilon: Of each vote, > 0 and at most 300.
        m: The allowance, in [1, K], or up to `affected` where that is given.
        delta: Of each vote, in [0, 1).
        target_delta: Of the published bit; 1 - (1 - delta)^m if not given.
        ties: What an even K does at a tie.
        affected: How many teachers one change of the data may reach; None for all.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> allowance(11, 0.1, 3).target_epsilon
        0.30000000000000004

    Reference:
        Kairouz, Oh and Viswanath (2015), arXiv:1311.0776; docs/theory/voting.md, section 2.
    """
    check_count("teachers", teachers)
    check_positive("epsilon", epsilon)
    if affected is not None:
        check_count("affected", affected, high=teachers)
    most = teachers if affected is None else affected
    check_positive("m", m)
    if not 1 <= m <= most:
        raise ParameterError(f"m must be in [1, {most}], got {m!r}.")
    check_probability("delta", delta, high_open=True)
    if target_delta is None:
        target_delta = max(-math.expm1(m * math.log1p(-delta)), delta) if delta else 0.0
    check_probability("target_delta", target_delta, high_open=True)
    return Setting(
        teachers=int(teachers),
        epsilon=float(epsilon),
        delta=float(delta),
        target_epsilon=float(m) * float(epsilon),
        target_delta=float(target_delta),
        ties=ties,
        affected=affected,
    )
