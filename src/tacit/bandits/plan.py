"""What a bandit is told before it starts: actions, horizon, privacy, and how it decides."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from tacit.bandits.actions import check_actions
from tacit.bandits.radius import RadiusMode
from tacit.bandits.reward_privacy import RewardNoise, RewardPrivacy
from tacit.bandits.schedule import BatchSchedule
from tacit.errors import ParameterError, check_finite, check_positive
from tacit.numerics import Array

__all__ = ["BanditPlan", "Tail"]

_NARROWEST = 1e-100
"""Sums of squares of what is narrower, or of the inverse, leave the range of floats."""


class Tail(StrEnum):
    """What happens once the next batch does not fit: play the best action, or the batch as far as it goes."""

    COMMIT = "commit"
    TRUNCATE = "truncate"


@dataclass(frozen=True, kw_only=True, eq=False)
class BanditPlan:
    """A batched elimination, whole; everything in it is public.

    Attributes:
        actions: Shape (K, d), rows of norm at most 1, or anything that becomes such an array.
        horizon: Number T of rounds, one client each; at least 8.
        privacy: Who is trusted, and the budget.
        radius: How far estimates may be off. Only "sound" and "seed_corrected" are proven.
        core: Whether a batch plays a small core set, or else all actions that are left, equally often.
        tol: The core set's a^T V^-1 a is at most tol times the dimension; >= 1.
        tail: What happens at the end.
        reward_range: What rewards are clipped to, before anything else; NaN becomes the lower end. Noise is
            for its width.

    Raises:
        ParameterError: A value that is not allowed.

    Example:
        >>> plan = BanditPlan(actions=[[1.0, 0.0], [0.0, 1.0]], horizon=1000)
        >>> plan.schedule.batches
        5
    """

    actions: Array
    horizon: int
    privacy: RewardPrivacy = field(default_factory=RewardPrivacy)
    radius: RadiusMode = RadiusMode.SOUND
    core: bool = True
    tol: float = 2.0
    tail: Tail = Tail.COMMIT
    reward_range: tuple[float, float] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        rows = check_actions(self.actions).copy()
        rows.setflags(write=False)
        object.__setattr__(self, "actions", rows)
        object.__setattr__(self, "horizon", BatchSchedule(self.horizon).horizon)
        if not isinstance(self.privacy, RewardPrivacy):
            raise ParameterError(f"privacy must be a RewardPrivacy, got {type(self.privacy).__name__}.")
        if self.privacy.summed and self.radius is RadiusMode.SEED:
            raise ParameterError("radius must be sound or seed_corrected under aggregate trust, got seed.")
        for name, kind in (("radius", RadiusMode), ("tail", Tail)):
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name} must be a {kind.__name__}, got {getattr(self, name)!r}.")
        if not isinstance(self.core, bool):
            raise ParameterError(f"core must be True or False, got {self.core!r}.")
        tol = check_positive("tol", self.tol)
        if tol < 1:
            raise ParameterError(f"tol must be at least 1, got {tol!r}.")
        object.__setattr__(self, "tol", tol)
        ends: object = self.reward_range
        if not isinstance(ends, tuple) or len(ends) != 2:
            raise ParameterError(f"reward_range must be a pair (low, high), got {self.reward_range!r}.")
        low, high = (check_finite("reward_range", end) for end in self.reward_range)
        if not low < high:
            raise ParameterError(f"reward_range must have low < high, got {self.reward_range!r}.")
        if not (high - low >= _NARROWEST and max(-low, high) <= 1 / _NARROWEST):
            raise ParameterError(
                f"reward_range must be at least {_NARROWEST:g} wide and within {1 / _NARROWEST:g} of 0, got "
                f"{self.reward_range!r}: state rewards in another unit."
            )
        object.__setattr__(self, "reward_range", (low, high))

    @property
    def schedule(self) -> BatchSchedule:
        """When the batches end."""
        return BatchSchedule(self.horizon)

    @property
    def width(self) -> float:
        """By how much one reward moves a sum at most."""
        return self.reward_range[1] - self.reward_range[0]

    @property
    def rounds_rewards(self) -> bool:
        """Whether rewards are rounded to an end of their range, for noise on whole numbers."""
        return self.privacy.private and self.privacy.noise is RewardNoise.DISCRETE

    def facts(self) -> dict[str, object]:
        """Return the plan as JSON can hold it; the actions by their shape and digest."""
        p = self.privacy
        rows = np.ascontiguousarray(self.actions, dtype="<f8")
        return {
            "actions": list(rows.shape),
            "actions_digest": hashlib.sha256(rows.tobytes()).hexdigest(),
            "horizon": self.horizon,
            "trust": None if p.trust is None else p.trust.value,
            "epsilon": p.epsilon if p.private else None,
            "delta": p.delta,
            "noise": p.noise.value,
            "anonymity": p.anonymity.value,
            "method": p.method.value,
            "radius": self.radius.value,
            "core": self.core,
            "tol": self.tol,
            "tail": self.tail.value,
            "reward_range": list(self.reward_range),
            **({"parties": p.parties, "colluding": p.colluding} if p.summed else {}),
        }
