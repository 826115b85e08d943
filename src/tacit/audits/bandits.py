"""Attacks on the rewards of a batch of a bandit, as each observer of a trust model sees them."""

from __future__ import annotations

import numpy as np

from tacit.audits.attack import Target
from tacit.bandits import RewardNoise, RewardPrivacy, reward_message, round_rewards
from tacit.bandits.answers import noisy_high
from tacit.bandits.summed_rewards import less_noisy, sums_of_shares
from tacit.errors import ParameterError, check_positive
from tacit.mechanisms import BinaryRandomizedResponse
from tacit.numerics import Array, IntArray
from tacit.privacy import TrustModel

__all__ = ["reward_target"]

_FAR = 1e6
"""Rewards are that far out, so that a clip that is missing is noticed."""
_RANGE = (-1.0, 1.0)


def reward_target(privacy: RewardPrivacy, counts: IntArray, *, noise_factor: float = 1.0) -> Target:
    """Return a batch of a bandit as something to attack: one client has the highest rewards, or the lowest.

    All others have the lowest, which hides it the least. Whoever looks sees the noisy sum of its action under
    central trust, its message under local trust, and behind a shuffler the messages of the whole batch: as
    its rewards are the same for all actions, the number of ones is all that speaks for it. `Target.alone` is
    the game on its message alone.

    Args:
        privacy: Who is trusted, and the budget; with discrete noise.
        counts: Shape (c,): answers for each action of the batch.
        noise_factor: Noise that there really is over what the budget needs: levels are divided by it.

    Raises:
        ParameterError: Nothing is claimed, the noise is continuous, or `noise_factor` is no number > 0.

    Example:
        >>> from tacit.audits import audit
        >>> privacy = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0)
        >>> weak = reward_target(privacy, np.array([5, 5]), noise_factor=0.5)
        >>> audit(weak.run, (weak.event, 0.0), runs=20_000, rng=np.random.default_rng(0)).refuted
        True
    """
    if not privacy.private or privacy.noise is not RewardNoise.DISCRETE:
        raise ParameterError("privacy must claim something, with discrete noise, which is what is deployed.")
    level = privacy.level(counts)
    sent = level / check_positive("noise_factor", noise_factor)
    event = privacy.event(counts, level)

    def message(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        rewards = np.full(size, _FAR if present else -_FAR)
        return reward_message(rewards, sent, rng, reward_range=_RANGE).astype(np.float64)

    def noisy_sum(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001
        high = round_rewards(np.full(size, _FAR if present else -_FAR), _RANGE, rng)
        # The ratio grows between the two sums and is constant outside.
        return np.clip(noisy_high(high, sent, rng), 0, 1).astype(np.float64)

    def batch(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001
        # Messages of others are noise, drawn at once; that of the client is made as clients make it.
        ones = rng.binomial(int(counts.sum()) - 1, BinaryRandomizedResponse(sent).flip_prob, size)
        return ones + message(present, size, rng)

    def shared_sum(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001
        high = round_rewards(np.full(size, _FAR if present else -_FAR), _RANGE, rng)
        return sums_of_shares(high, less_noisy(privacy.share, noise_factor), privacy.parties, rng)

    alone = Target(run=message, event=privacy.message_event(level), attack="one message alone")
    match privacy.trust:
        case TrustModel.CENTRAL:
            return Target(run=noisy_sum, event=event, attack="noisy sum of the rewards of an action")
        case TrustModel.AGGREGATE:
            return Target(run=shared_sum, event=event, attack="sum of the rewards of an action of all silos")
        case TrustModel.SHUFFLE:
            attack = f"shuffled messages of {int(counts.sum())} clients"
            return Target(run=batch, event=event, attack=attack, alone=alone)
        case _:
            return Target(run=message, event=event, attack="message of a client")
