"""Clients of a silo who play, and the two statistics by which a plan asks for their rewards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.errors import check_count
from tacit.numerics import Array, IntArray

__all__ = ["DEALT_REWARDS", "OWN_REWARDS", "DealtRewards", "OwnRewards", "Play", "Players"]

DEALT_REWARDS = "dealt rewards"
"""How plans name the statistic of a silo that deals the actions."""
OWN_REWARDS = "own rewards"
"""How plans name the statistic of clients that draw their own."""

Play = Callable[[IntArray, Array], Array]
"""Has clients, shape (k,), play actions, shape (k, d), one each, and returns rewards, shape (k,)."""


@dataclass(frozen=True, eq=False)
class Players:
    """Clients of a silo, who are dealt actions in an order that the silo draws and tells nobody.

    A batch takes a part of them, and ranks them by that order once: what anybody plays depends on no reward,
    and does not change where a batch is looked at in parts.

    Attributes:
        clients: Shape (n,): which ones, from 0.
        tickets: Shape (n,): their places in the secret order, or in a batch.
        size: Of the batch; 0 before one is taken.
    """

    clients: IntArray
    tickets: IntArray
    size: int = 0

    @classmethod
    def of(cls, n: int, rng: np.random.Generator) -> Players:
        """Return n clients in a secret order.

        Args:
            n: How many, >= 1.
            rng: The silo's own randomness; a deployed one passes `randomness.secure()`.

        Example:
            >>> batch = Players.of(10, np.random.default_rng(0)).take(np.array([2, 5, 7]))
            >>> len(batch), sorted(batch.tickets.tolist())
            (3, [0, 1, 2])
        """
        return cls(np.arange(check_count("n", n)), rng.permutation(n))

    def __len__(self) -> int:
        return len(self.clients)

    def take(self, index: IntArray) -> Players:
        """Return a batch of the clients, or a part of a batch."""
        tickets = self.tickets[index]
        if self.size == 0 and len(tickets):
            return Players(self.clients[index], np.argsort(np.argsort(tickets)), len(tickets))
        return Players(self.clients[index], tickets, self.size)


@dataclass(frozen=True, eq=False)
class DealtRewards:
    """What a client earns with the action that it is dealt, in the place of that action; zeros elsewhere.

    Queries name "actions", shape (c, d), the "places" of each in a row, "ends", where its share of the batch
    ends, and the "range" of rewards, which become -1 to 1. A reward outside is clipped.

    Attributes:
        play: Has clients play; each is asked once in a run whose batches are disjoint.
        dim: Places of a row: actions of the bandit.
    """

    play: Play
    dim: int

    def __call__(self, units: Players, at: Mapping[str, Array]) -> Array:
        """Return one row per client, shape (k, dim)."""
        turn = np.searchsorted(at["ends"], (units.tickets + 0.5) / max(units.size, 1))
        low, high = at["range"]
        rewards = np.asarray(self.play(units.clients, at["actions"][turn]), dtype=np.float64)
        rows = np.zeros((len(units), self.dim))
        rows[np.arange(len(units)), at["places"][turn].astype(np.int64)] = _scaled(rewards, low, high)
        return rows


@dataclass(frozen=True, eq=False)
class OwnRewards:
    """What a client would earn with every action; a randomizer draws one of them for it, and sends no other.

    Queries name "slots", shape (D, d), actions as often as they are to be drawn, and the "range" of rewards,
    which become 0 to 1.

    Attributes:
        play: Returns what clients earn. The one reward that counts is that of the drawn action.
    """

    play: Play

    def __call__(self, units: Players, at: Mapping[str, Array]) -> Array:
        """Return one row per client, shape (k, D)."""
        slots, (low, high) = at["slots"], at["range"]
        k = len(units)
        rewards = self.play(np.repeat(units.clients, len(slots)), np.tile(slots, (k, 1)))
        return (_scaled(np.asarray(rewards, dtype=np.float64), low, high).reshape(k, len(slots)) + 1) / 2


def _scaled(rewards: Array, low: float, high: float) -> Array:
    """Return rewards of a range as numbers from -1 to 1; what is no number is the lowest one."""
    inside = np.clip(np.nan_to_num(rewards, nan=low, posinf=high, neginf=low), low, high)
    return np.asarray(2 * (inside - low) / (high - low) - 1)
