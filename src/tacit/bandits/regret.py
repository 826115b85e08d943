"""What a batched bandit loses at most: a bound for planning, before anything is played."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.bandits.radius import Question, RadiusMode, confidence_radius
from tacit.bandits.reward_privacy import RewardPrivacy
from tacit.bandits.schedule import BatchSchedule
from tacit.errors import ParameterError, check_count, check_non_negative
from tacit.numerics import IntArray

__all__ = ["PlannedBatch", "RegretBound", "regret_bound"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedBatch:
    """A batch as it is expected.

    Attributes:
        number: From 1.
        rounds: Its length.
        level: Pure level of a message or of a sum.
        radius: gamma.
    """

    number: int
    rounds: int
    level: float
    radius: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RegretBound:
    """A bound on the regret, and where it comes from.

    Attributes:
        regret: The bound, for all actions and parameters of norm at most 1, with probability 1 - 1 / T, as
            long as no core set is larger than was asked for.
        proven: Whether its radius is: that of the paper is not, where there is noise.
        batches: All batches that fit.
    """

    regret: float
    proven: bool
    batches: tuple[PlannedBatch, ...]


def regret_bound(
    privacy: RewardPrivacy,
    *,
    horizon: int,
    n_actions: int,
    dim: int,
    support: int | None = None,
    radius: RadiusMode = RadiusMode.SEED_CORRECTED,
    zeta: float = 0.0,
) -> RegretBound:
    """Bound the regret of a batched elimination with a core set of tolerance 2.

    An action that is left in batch i + 1 is worse than the best by at most four radii of batch i.

    Args:
        privacy: Who is trusted, and the budget.
        horizon: Number T of rounds, >= 8.
        n_actions: Number K of actions.
        dim: Dimension m of their span.
        support: Size of the core sets, at most; larger ones cost under central trust alone. `dim` if not
            given, the least: designs tell theirs, and those of fewer actions may be larger.
        radius: A closed form: "seed_corrected", which no sound radius exceeds, or "seed".
        zeta: Covering radius of a net that the actions are; what it leaves out costs zeta a round.

    Returns:
        2 n_1 + sum over i >= 2 of min(2, 4 gamma_{i-1}) n_i + min(2, 4 gamma_L) (T - sum n_i) + T zeta, with
        n_i of equal weights: other weights may lengthen a batch by fewer than `support` rounds.

    Raises:
        ParameterError: A value out of range, or `radius` "sound", which takes the actions themselves.

    Example:
        >>> bound = regret_bound(RewardPrivacy(), horizon=1_000_000, n_actions=10, dim=2)
        >>> round(bound.regret, 1)
        200369.9

    Reference:
        Girgis (2023), Theorem 6.3.1 and (E.5), with the first batch in full.
    """
    schedule = BatchSchedule(horizon)
    n_actions, dim = check_count("n_actions", n_actions), check_count("dim", dim)
    size = dim if support is None else check_count("support", support)
    zeta = check_non_negative("zeta", zeta)
    if radius is RadiusMode.SOUND:
        raise ParameterError("radius must be seed_corrected or seed for a bound without actions, got sound.")
    batches: list[PlannedBatch] = []
    regret, left, worst = horizon * zeta, horizon, 2.0
    for number, length in enumerate(schedule.lengths, start=1):
        counts: IntArray = np.full(size, math.ceil(length / size * (1 - 1e-12)), dtype=np.int64)
        rounds = int(counts.sum())
        if rounds > left:
            break
        level = privacy.level(counts)
        asked = Question(
            horizon=horizon,
            batches=schedule.batches,
            length=length,
            alive=n_actions,
            rank=dim,
            spread=2.0 * dim,
            counts=counts,
            level=level,
            width=2.0,
        )
        gamma = confidence_radius(radius, privacy, asked)
        batches.append(PlannedBatch(number=number, rounds=rounds, level=level, radius=gamma))
        regret += worst * rounds
        left -= rounds
        worst = min(2.0, 4 * gamma)
    return RegretBound(
        regret=min(regret + worst * left, 2.0 * horizon),
        proven=radius is RadiusMode.SEED_CORRECTED or not privacy.private,
        batches=tuple(batches),
    )
