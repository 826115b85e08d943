"""Which of its points a run returns: the mean of the last ones, the last one, or that of one round."""

from __future__ import annotations

import hashlib

from tacit.numerics import Array
from tacit.randomness import PublicStream

__all__ = ["KeptPoints", "random_round"]


class KeptPoints:
    """What a run returns of the points that it goes through; no more of them is held.

    Args:
        rounds: Number of rounds.
        tail: Share of the last rounds whose points are averaged, in [0, 1); 0 keeps the last one.
        only: Number of the round whose point is kept instead, from 1 on; None keeps the mean.
    """

    def __init__(self, rounds: int, *, tail: float, only: int | None = None) -> None:
        self._rounds, self._tail, self._only = rounds, tail, only
        self._count = 0
        self.points: tuple[Array, ...] = ()

    def add(self, t: int, *points: Array) -> None:
        """Look at the points after round t, from 1 on."""
        if self._only is not None:
            self.points = points if t == self._only else self.points
        elif t > (1 - self._tail) * self._rounds or t == self._rounds:
            self._count += 1
            means = self.points or points
            self.points = tuple(m + (p - m) / self._count for m, p in zip(means, points, strict=True))


def random_round(rounds: int, run: str) -> int:
    """Draw the round whose point a run returns, uniformly, by public randomness of the run's name.

    Args:
        rounds: >= 1.
        run: Public name of the run: the same one has the same round.

    Reference:
        Lowy (2023), Theorem 76, is about the point of such a round.

    Example:
        >>> random_round(100, "june") == random_round(100, "june")
        True
    """
    seed = int.from_bytes(hashlib.sha256(run.encode("utf-8", "surrogatepass")).digest()[:7], "little")
    return 1 + int(PublicStream(seed, 0, purpose="iterate").integers(rounds, 1)[0])
