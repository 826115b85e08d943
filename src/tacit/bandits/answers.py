"""From rewards to noisy sums: what a client sends, and what a server makes of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.bandits.elimination import Batch
from tacit.bandits.environment import LinearEnvironment
from tacit.bandits.plan import BanditPlan
from tacit.bandits.summed_rewards import sums_of_shares
from tacit.errors import DataError, ParameterError
from tacit.mechanisms import BinaryRandomizedResponse, sample_discrete_laplace, sample_laplace
from tacit.numerics import Array, IntArray, as_floats
from tacit.privacy import TrustModel

__all__ = [
    "answer_pairs",
    "answer_places",
    "decode_high",
    "noisy_high",
    "reward_message",
    "round_rewards",
    "simulated_sums",
]


def round_rewards(
    rewards: npt.ArrayLike, reward_range: tuple[float, float], rng: np.random.Generator
) -> IntArray:
    """Clip rewards, and round each to an end of their range such that the mean stays what it was.

    Args:
        rewards: Any shape, real. NaN counts as the lower end: nothing visible may depend on what is wrong
            with a private number.
        reward_range: The ends.
        rng: Source of the rounding.

    Returns:
        Same shape, 1 for the upper end and 0 for the lower.

    Example:
        >>> round_rewards([-7.0, 1.0, float("nan")], (-1.0, 1.0), np.random.default_rng(0)).tolist()
        [0, 1, 0]
    """
    values = as_floats("rewards", rewards).astype(np.float64)
    low, high = reward_range
    share = (np.clip(np.nan_to_num(values, nan=low), low, high) - low) / (high - low)
    return (rng.random(share.shape) < share).astype(np.int64)


def reward_message(
    rewards: npt.ArrayLike,
    level: float,
    rng: np.random.Generator,
    *,
    reward_range: tuple[float, float] = (-1.0, 1.0),
) -> IntArray:
    """Return what a client sends for its reward under local and shuffle trust: one bit, that may lie.

    Args:
        rewards: One reward a client, any shape; clipped to the range.
        level: Pure level of the message, as the batch says it. In [2**-30, 30].
        rng: The client's own randomness; the secure stream where it is real.
        reward_range: Of the plan.

    Returns:
        Same shape, 0 and 1.

    Raises:
        ParameterError: `level` is out of range, or `rewards` are no numbers.

    Guarantee:
        Pure `level`-DP in the reward, exactly: the flip is compared in whole numbers.

    Example:
        >>> reward_message([0.3, -1.0], 1.0, np.random.default_rng(0)).shape
        (2,)

    Reference:
        Warner (1965) on rounded rewards; one bit in place of the Laplace noise of Girgis (2023), Algorithm
        6.3.2, at a lower variance.
    """
    response = BinaryRandomizedResponse(level)
    return response.sample(round_rewards(rewards, reward_range, rng), rng)


def noisy_high(high: IntArray, level: float, rng: np.random.Generator) -> IntArray:
    """Return numbers of high rewards with exact discrete Laplace noise, one draw for each sum.

    Guarantee:
        Pure `level`-DP: a reward moves one sum by 1. In rewards of +1 and -1 this is noise on the lattice of
        even numbers, of variance 8 e^-level / (1 - e^-level)^2.
    """
    return high + sample_discrete_laplace(1 / level, high.shape, rng)


def decode_high(plan: BanditPlan, batch: Batch, high: IntArray | Array) -> Array:
    """Return unbiased sums of rewards from numbers of high answers.

    Args:
        plan: Of the run.
        batch: The batch; `level` says how messages lie.
        high: Shape (c,): high rewards with noise, or messages that are 1.
    """
    ones = high.astype(np.float64)
    if plan.privacy.by_message:
        response = BinaryRandomizedResponse(batch.level)
        ones = (ones - batch.counts * response.flip_prob) / response.gap
    return np.asarray(batch.counts * plan.reward_range[0] + plan.width * ones)


def simulated_sums(
    plan: BanditPlan,
    batch: Batch,
    world: LinearEnvironment,
    rng_world: np.random.Generator,
    rng_privacy: np.random.Generator,
) -> Array:
    """Draw what a server learns of a batch, all clients at once: the law of messages one by one.

    Args:
        plan: Of the run; rewards must be in [-1, 1].
        batch: What is played.
        world: Where rewards come from.
        rng_world: Source of rewards.
        rng_privacy: Source of noise.

    Returns:
        Shape (c,): unbiased noisy sums.

    Cost:
        Constant time an action for rewards of +1 and -1, and for all models with discrete noise.
    """
    if plan.reward_range != (-1.0, 1.0):
        raise ParameterError(f"reward_range must be (-1, 1) in a simulation, got {plan.reward_range!r}.")
    privacy, level = plan.privacy, batch.level
    if plan.rounds_rewards:
        high = world.draw_high(batch.actions, batch.counts, rng_world)
        if privacy.trust is TrustModel.CENTRAL:
            return decode_high(plan, batch, noisy_high(high, level, rng_privacy))
        if privacy.summed:
            return decode_high(plan, batch, sums_of_shares(high, privacy.share, privacy.parties, rng_privacy))
        flip = BinaryRandomizedResponse(level).flip_prob
        kept = rng_privacy.binomial(high, 1 - flip)
        lies = rng_privacy.binomial(batch.counts - high, flip)
        return decode_high(plan, batch, np.asarray(kept + lies, dtype=np.int64))
    sums = world.draw_sums(batch.actions, batch.counts, rng_world)
    if not privacy.private:
        return sums
    scale = plan.width / level
    if privacy.trust is TrustModel.CENTRAL:
        return np.asarray(sums + sample_laplace(scale, sums.shape, rng_privacy))
    # A Laplace variable is a difference of exponentials, and n of them add up to Gamma laws of shape n.
    noise = rng_privacy.standard_gamma(batch.counts) - rng_privacy.standard_gamma(batch.counts)
    return np.asarray(sums + scale * noise)


def answer_pairs(actions: npt.ArrayLike, answers: npt.ArrayLike) -> tuple[IntArray, Array]:
    """Return actions and answers as arrays of one length; no answer is quoted."""
    rows, values = np.asarray(actions), as_floats("answers", answers).astype(np.float64)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or values.shape != rows.shape:
        raise DataError(
            "actions and answers must be arrays of one length, actions of whole numbers; got "
            f"{rows.dtype} of shape {rows.shape} and answers of shape {values.shape}."
        )
    return rows.astype(np.int64), values


def answer_places(batch: Batch, rows: IntArray) -> IntArray:
    """Return which of the batch's actions each row is; refuse any but the planned number of each."""
    place = np.minimum(np.searchsorted(batch.actions, rows), len(batch.actions) - 1)
    if not np.array_equal(batch.actions[place], rows):
        raise DataError(
            f"actions must be of batch {batch.number}, {batch.actions.tolist()}; others were given."
        )
    found = np.bincount(place, minlength=len(batch.actions))
    if not np.array_equal(found, batch.counts):
        wrong = int(np.flatnonzero(found != batch.counts)[0])
        raise DataError(
            f"batch {batch.number} takes {int(batch.counts[wrong])} answers for action "
            f"{int(batch.actions[wrong])}, got {int(found[wrong])}; nothing was used."
        )
    return place
