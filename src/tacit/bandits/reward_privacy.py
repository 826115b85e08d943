"""Who may see rewards, how much noise they get, and what it costs: one object for all trust models."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np  # noqa: F401 - of the example

from tacit.bandits.summed_rewards import count_mean, event_of_shares, proxy_of_shares
from tacit.errors import ParameterError, check_count, check_probability, real
from tacit.means import ModularSumMean
from tacit.mechanisms import HIGHEST_LEVEL, LOWEST_LEVEL, BinaryRandomizedResponse
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    CONTINUOUS,
    DiscreteLaplace,
    Event,
    Guarantee,
    Laplace,
    Neighbours,
    NonPrivate,
    Parallel,
    Part,
    PrivacyBudget,
    PureDP,
    Shuffled,
    TrustModel,
    calibrate,
    guarantee,
)
from tacit.privacy.run_clauses import clauses_of_sums
from tacit.privacy.shuffling.closed_form import paper_level

__all__ = [
    "DEALT",
    "ONCE",
    "Amplification",
    "Anonymity",
    "RewardNoise",
    "RewardPrivacy",
    "SumNoise",
    "amplified_level",
    "observers_of",
]

REWARDS = Neighbours(part=Part.REWARD)
"""One reward of one round is replaced."""
CLIENTS = Neighbours()
"""One client is replaced: all the rewards that it would give, for any action."""
ONCE = "no client answers more than one round"
"""What every guarantee of a bandit rests on."""
DEALT = "the shuffler deals the actions, and nobody else knows who plays what"
"""What hiding among all of a batch rests on."""
_MOST_PARTIES = 10**9
_MOST_SILOS = 10**6
_LEAST_GAIN = 1.001
"""What shuffling must gain to be relied on; below, the condition of an honest shuffler buys nothing."""


class RewardNoise(StrEnum):
    """How noise is made: `DISCRETE` is exact and may be deployed, `LAPLACE` is a simulation of the paper."""

    DISCRETE = "discrete"
    LAPLACE = "laplace"


class Anonymity(StrEnum):
    """Among whom a shuffled message hides: all of its batch, or those that played the same action."""

    BATCH = "batch"
    ACTION = "action"


class Amplification(StrEnum):
    """How the local level behind a shuffler is found: by the numerical accountant, or by the closed form."""

    NUMERIC = "numeric"
    PAPER = "paper"


class SumNoise(NamedTuple):
    """What the noise on the sums of a batch is, for a radius.

    Attributes:
        scale: Of Laplace noise (or of discrete noise that is no wider); 0 without.
        copies: Shape (c,): independent noises in each sum.
        proxy: One answer is sub-Gaussian with this variance, whatever else it is.
        shared: Each sum has noise besides that is sub-Gaussian with this variance.
    """

    scale: float
    copies: Array
    proxy: float
    shared: float = 0.0


class RewardPrivacy(msgspec.Struct, frozen=True, kw_only=True):
    """Who is trusted with a reward, and the budget.

    Attributes:
        trust: `CENTRAL`: a server sees rewards and adds noise to sums. `LOCAL`: every client adds noise.
            `SHUFFLE`: so does every client, a little, behind a shuffler that also deals the actions.
            `AGGREGATE`: clients trust their silo, every silo adds a share of the noise to its sums, and
            nobody sees more than the total. None: nobody protects anything.
        epsilon: Budget, > 0; of one reward under local trust. Infinity is no noise.
        delta: In (0, 1) under shuffle and aggregate trust, else 0.
        noise: "discrete" rounds a reward to an end of its range, with the right expectation, and answers by
            exact integers: discrete Laplace noise on the number of high ones, or randomized response.
        anonymity: Under shuffle trust: "batch" if the shuffler deals the actions in secret, "action" if it is
            known who played what.
        method: "numeric", or "paper" for the closed form, which finds smaller levels.
        parties: Under aggregate trust: silos that add a share in every batch, 2 or more. Else 0.
        colluding: How many of them may add no noise and tell what they added; at most all but 2.

    Raises:
        ParameterError: A value that is not allowed, or one that the trust model has no use for.

    Example:
        >>> privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6)
        >>> round(privacy.level(np.array([5_000, 5_000])), 4)
        4.797

    Reference:
        Girgis (2023), Algorithms 6.3.1, 6.3.2 and 6.4.1, with the sensitivity of rewards in [-1, 1], which is
        2 and not 1.
    """

    trust: TrustModel | None = None
    epsilon: float = math.inf
    delta: float = 0.0
    noise: RewardNoise = RewardNoise.DISCRETE
    anonymity: Anonymity = Anonymity.BATCH
    method: Amplification = Amplification.NUMERIC
    parties: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        settle(self)
        for name, kind in (("noise", RewardNoise), ("anonymity", Anonymity), ("method", Amplification)):
            if not isinstance(getattr(self, name), kind):
                raise ParameterError(f"{name} must be a {kind.__name__}, got {getattr(self, name)!r}.")
        if self.trust is not None and not isinstance(self.trust, TrustModel):
            raise ParameterError(f"trust must be a TrustModel or None, got {self.trust!r}.")
        if not real("epsilon", self.epsilon) > 0:
            raise ParameterError(f"epsilon must be a number > 0, got {self.epsilon!r}.")
        if self.trust is None and self.epsilon != math.inf:
            raise ParameterError(f"epsilon must be infinite without a trust model, got {self.epsilon!r}.")
        shuffles = self.trust is TrustModel.SHUFFLE
        self._check_shares()
        if shuffles or self.summed:
            check_probability("delta", self.delta, low_open=True, high_open=True)
            if self.delta < sys.float_info.min:
                raise ParameterError(f"delta must not be that small, got {self.delta!r}.")
        elif self.delta != 0:
            raise ParameterError(
                f"delta must be 0 but under shuffle and aggregate trust, got {self.delta!r}."
            )
        if not shuffles and (
            self.anonymity is not Anonymity.BATCH or self.method is not Amplification.NUMERIC
        ):
            raise ParameterError("anonymity and method are for shuffle trust.")
        by_message = self.trust in (TrustModel.LOCAL, TrustModel.SHUFFLE)
        if by_message and self.epsilon != math.inf and not LOWEST_LEVEL <= self.epsilon <= HIGHEST_LEVEL:
            raise ParameterError(
                f"epsilon must be in [2**-30, {HIGHEST_LEVEL:g}] under {self.trust} trust, or infinite, got "
                f"{self.epsilon!r}."
            )
        if self.trust is TrustModel.CENTRAL and self.private and not 2**-55 <= self.epsilon <= 2**20:
            raise ParameterError(
                f"epsilon must be in [2**-55, 2**20] under central trust, or infinite, got {self.epsilon!r}."
            )

    def _check_shares(self) -> None:
        """Refuse silos that cannot hide each other in a sum, and silos where nothing is hidden in one."""
        if not self.summed:
            if (self.parties, self.colluding) != (0, 0):
                raise ParameterError(
                    f"parties and colluding are for aggregate trust, got {self.parties} and {self.colluding}."
                )
            return
        check_count("parties", self.parties, low=2, high=_MOST_SILOS)
        check_count("colluding", self.colluding, low=0, high=self.parties - 2)
        if self.noise is not RewardNoise.DISCRETE:
            raise ParameterError("noise must be discrete under aggregate trust: what is added are integers.")
        if not 2**-30 <= self.epsilon <= 2**10:
            raise ParameterError(
                f"epsilon must be in [2**-30, 2**10] under aggregate trust, got {self.epsilon!r}."
            )

    @property
    def summed(self) -> bool:
        """Whether every silo adds a share of the noise."""
        return self.trust is TrustModel.AGGREGATE

    @property
    def share(self) -> ModularSumMean:
        """One silo's noise on one number of high rewards, under aggregate trust."""
        return count_mean(self.epsilon, self.delta, self.parties - self.colluding)

    @property
    def private(self) -> bool:
        """Whether there is any noise."""
        return self.epsilon != math.inf

    @property
    def by_message(self) -> bool:
        """Whether every client adds noise to its own message."""
        return self.private and self.trust in (TrustModel.LOCAL, TrustModel.SHUFFLE)

    @property
    def neighbours(self) -> Neighbours:
        """What is replaced."""
        return CLIENTS if self.trust is TrustModel.SHUFFLE else REWARDS

    def level(self, counts: IntArray) -> float:
        """Return the pure level of one sum, or of one message, in a batch of these many answers an action."""
        if self.trust is not TrustModel.SHUFFLE or not self.private:
            return self.epsilon
        return amplified_level(self.epsilon, self.delta, *self._crowd(counts), self.method)

    def _crowd(self, counts: IntArray) -> tuple[int, str]:
        """Return among how many messages one hides, and of which randomizer."""
        if self.anonymity is Anonymity.BATCH:
            # Actions are dealt like positions: the randomizers of a batch differ, and only the law that holds
            # for any of them is proven (docs/theory/bandits.md, section 4).
            return min(int(counts.sum()), _MOST_PARTIES), "general"
        name = "2rr" if self.noise is RewardNoise.DISCRETE else "laplace"
        return min(int(counts.min()), _MOST_PARTIES), name

    def event(self, counts: IntArray, level: float) -> Event:
        """Return what a batch releases to whoever sees the noisy sums, or to the server."""
        if not self.private:
            return NonPrivate(self.neighbours)
        if self.summed:
            return event_of_shares(self.share, self.neighbours, TrustModel.AGGREGATE)
        if self.trust is TrustModel.CENTRAL:
            if self.noise is RewardNoise.LAPLACE:
                return Laplace(1 / level, neighbours=self.neighbours)
            return DiscreteLaplace(1 / level, 1, neighbours=self.neighbours)
        if self.trust is TrustModel.LOCAL or level <= self.epsilon:
            return self.message_event(level)
        parties, randomizer = self._crowd(counts)
        return Shuffled(level, parties, randomizer, self.neighbours)

    def message_event(self, level: float) -> Event:
        """Return what one message releases to whoever sees it with its sender."""
        return PureDP(level, self.neighbours) if self.private else NonPrivate(self.neighbours)

    def guarantees(
        self, batches: Sequence[tuple[IntArray, float]], *, simulated: bool
    ) -> tuple[Guarantee, ...]:
        """Say what the batches of a bandit cost, one guarantee for each observer.

        Args:
            batches: Counts and level of every batch whose answers, or sums, were or will be seen.
            simulated: Whether noise came from a seeded stream.

        Returns:
            Central trust: for whoever sees the actions, or even all noisy sums. Local: for the server.
            Shuffle: for the server, and for whoever sees one message with its sender. Aggregate: for whoever
            sees the sums with up to `colluding` silos, and for whoever sees the sums of one silo alone.
        """
        observers = observers_of(self.trust if self.private else None, colluding=self.colluding)
        rests = (ONCE, CONTINUOUS) if self.private and self.noise is RewardNoise.LAPLACE else (ONCE,)
        events = tuple(dict.fromkeys(self.event(counts, level) for counts, level in batches))
        dealt = any(isinstance(event, Shuffled) for event in events) and self.anonymity is Anonymity.BATCH
        hidden = clauses_of_sums() if self.summed else ()
        whole: Event = Parallel(events) if events else PureDP(0.0, self.neighbours)
        said = [
            guarantee(
                whole if self.private else NonPrivate(self.neighbours),
                self.delta,
                observer=observers[0],
                assumptions=(*rests, *([DEALT] if dealt else []), *hidden) if self.private else (),
                simulated=simulated,
            )
        ]
        if self.summed:
            alone = event_of_shares(self.share, self.neighbours, TrustModel.LOCAL)
            said.append(
                guarantee(
                    alone if events else PureDP(0.0, self.neighbours),
                    self.delta,
                    observer=observers[1],
                    assumptions=rests,
                    simulated=simulated,
                )
            )
        if self.trust is TrustModel.SHUFFLE and self.private:
            highest = max((level for _, level in batches), default=0.0)
            said.append(
                guarantee(
                    self.message_event(highest),
                    0.0,
                    observer=observers[1],
                    assumptions=rests,
                    simulated=simulated,
                )
            )
        return tuple(said)

    def sum_noise(self, counts: IntArray, level: float, width: float) -> SumNoise:
        """Return what the sums of a batch are blurred by.

        Args:
            counts: Shape (c,): answers in each sum.
            level: As `level` returns it.
            width: Of the range of rewards.
        """
        one = counts.astype(float)
        if not self.private:
            return SumNoise(0.0, one, width**2 / 4)
        if self.summed:
            shared = width**2 * proxy_of_shares(self.share, self.parties)
            return SumNoise(0.0, one, width**2 / 4, shared)
        if not self.by_message:
            return SumNoise(width / level, one * 0 + 1, width**2 / 4)
        if self.noise is RewardNoise.LAPLACE:
            return SumNoise(width / level, one, width**2 / 4)
        # A decoded response takes two values, width / gap apart: Hoeffding.
        return SumNoise(0.0, one, (width / BinaryRandomizedResponse(level).gap) ** 2 / 4)


def observers_of(trust: TrustModel | None, *, colluding: int = 0) -> tuple[str, ...]:
    """Return who looks, for every guarantee of a bandit; no trust model is no privacy.

    Args:
        trust: Of the bandit.
        colluding: Under aggregate trust, how many silos may tell what they added.
    """
    match trust:
        case TrustModel.CENTRAL:
            return ("an observer of the actions and the noisy sums",)
        case TrustModel.SHUFFLE:
            return ("the server", "an observer of one message and its sender")
        case TrustModel.AGGREGATE:
            return (
                "an observer of the actions and the sums of all silos and up to "
                f"{colluding} of them together",
                "the server and all other silos together, who see the sums of one silo alone,",
            )
        case _:
            return ("the server",)


@lru_cache(maxsize=4096)
def amplified_level(
    epsilon: float,
    delta: float,
    parties: int,
    randomizer: str = "general",
    method: Amplification = Amplification.NUMERIC,
) -> float:
    """Return the largest local level whose shuffled batch meets a budget.

    Args:
        epsilon: Budget of the batch, in [2**-30, 30].
        delta: In (0, 1).
        parties: Honest messages in the batch, 1 to 1e9.
        randomizer: A name of `tacit.privacy.shuffling.RANDOMIZERS`.
        method: "numeric", priced by the event `Shuffled`; or "paper", by the closed form.

    Returns:
        The level, in [epsilon, 30]; `epsilon` itself where shuffling would gain less than a thousandth.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(amplified_level(1.0, 1e-6, 10_000), 4)
        4.797
        >>> round(amplified_level(1.0, 1e-6, 10_000, method=Amplification.PAPER), 6)
        3.503714

    Reference:
        Girgis (2023), (6.10), inverted; numerically instead, after Feldman, McMillan and Talwar (2022).
    """
    if method is Amplification.PAPER:
        return min(paper_level(epsilon, parties, delta), HIGHEST_LEVEL)
    least = calibrate(
        lambda x: Shuffled(min(1 / x, HIGHEST_LEVEL), parties, randomizer),
        PrivacyBudget(epsilon, delta),
        low=1 / HIGHEST_LEVEL,
        high=1 / epsilon,
    )
    level = min(1 / least, HIGHEST_LEVEL)
    return level if level > epsilon * _LEAST_GAIN else epsilon
