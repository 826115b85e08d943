"""How far an estimate of a reward may be off: the radius by which actions are told apart."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from tacit.bandits.reward_privacy import RewardPrivacy
from tacit.bandits.tails import largest_radius
from tacit.errors import ParameterError
from tacit.numerics import Array, IntArray

__all__ = ["Question", "RadiusMode", "confidence_radius"]


class RadiusMode(StrEnum):
    """How the radius is found.

    `SOUND` is a proof for the very actions and counts of a batch; `SEED_CORRECTED` a closed form that is
    proven; `SEED` the printed closed form, whose noise part is not, kept to redraw figures.
    """

    SEED = "seed"
    SEED_CORRECTED = "seed_corrected"
    SOUND = "sound"


class Question(NamedTuple):
    """A batch, as a radius sees it.

    Attributes:
        horizon: T.
        batches: L.
        length: What the batch was meant for, before rounding: q^i.
        alive: How many actions are left.
        rank: Dimension m of their span.
        spread: Bound on g of the design: 2 m for a core set of tolerance 2.
        counts: Shape (c,): answers of each core action.
        level: Of a sum or message.
        width: Of the range of rewards.
    """

    horizon: int
    batches: int
    length: float
    alive: int
    rank: int
    spread: float
    counts: IntArray
    level: float
    width: float


def confidence_radius(
    mode: RadiusMode, privacy: RewardPrivacy, asked: Question, influence: Array | None = None
) -> float:
    """Return a radius around the estimated rewards of all actions that are left.

    Args:
        mode: Which formula.
        privacy: Who adds noise, and of which law.
        asked: The batch.
        influence: Shape (K, c): a^T V^-1 b, how much the sum of core action b weighs in the estimate of
            action a. For `SOUND` only.

    Returns:
        gamma: under `SOUND` and `SEED_CORRECTED`, all estimates of all batches are within their radius with
        probability at least 1 - 1/T.

    Reference:
        Girgis (2023), Algorithms 6.3.1 and 6.3.2; corrected in docs/theory/bandits.md, section 3.
    """
    if mode is not RadiusMode.SOUND:
        return _closed(mode, privacy, asked)
    if influence is None:
        raise TypeError("a sound radius needs the influence of each sum on each estimate")
    log_beta = math.log(4 * asked.alive * asked.batches) + math.log(asked.horizon)
    noise = privacy.sum_noise(asked.counts, asked.level, asked.width)
    # sum_b n_b (a^T V^-1 b)^2 = a^T V^-1 a.
    if noise.shared:
        spread = np.square(influence) @ (asked.counts * noise.proxy + noise.shared)
        return math.sqrt(2 * float(spread.max()) * log_beta)
    lengths = np.sqrt(np.square(influence) @ asked.counts)
    radii = lengths * math.sqrt(2 * noise.proxy * log_beta)
    if noise.scale == 0:
        return float(radii.max())
    return largest_radius(radii, np.abs(influence), noise.copies, noise.scale, log_beta)


def _closed(mode: RadiusMode, privacy: RewardPrivacy, asked: Question) -> float:
    """Return the printed radius, or the corrected one."""
    lg = math.log(4 * asked.alive) + 2 * math.log(asked.horizon)
    q, w = asked.length, asked.spread
    radius = asked.width / 2 * math.sqrt(2 * w * lg / q)
    if not privacy.private:
        return radius
    if privacy.summed:
        # No sum weighs more than w / q, by Cauchy and Schwarz.
        if mode is RadiusMode.SEED:
            raise ParameterError("radius must be sound or seed_corrected under aggregate trust, got seed.")
        shared = privacy.sum_noise(asked.counts, asked.level, asked.width).shared
        return math.hypot(radius, w / q * math.sqrt(2 * len(asked.counts) * shared * lg))
    scale, corrected = asked.width / asked.level, mode is RadiusMode.SEED_CORRECTED
    if not corrected:
        w = 2 * asked.rank  # as printed, whatever the design
    if not privacy.by_message:
        noise = w * (len(asked.counts) + lg) * scale / q
        return radius + (math.sqrt(2) * noise if corrected else noise)
    if corrected:
        return radius + scale * max(math.sqrt(8 * w * lg / q), math.sqrt(8) * w * lg / q)
    return radius + w * math.sqrt(float(asked.counts.sum()) * lg) * scale / q
