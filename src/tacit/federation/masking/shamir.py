"""Shares of a secret, any `least` of which give it back, and fewer tell nothing (Shamir 1979).

A secret is a point of the field of integers modulo 2**256 + 297, which holds every key of 32 bytes. The share
of party `k` of a roster is the value of a random polynomial at `k + 1`; the secret is its value at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import mul
from typing import Final

from tacit.errors import ParameterError, RefusalError, check_count

__all__ = ["DRAW_BYTES", "FIELD", "SECRET_BYTES", "SHARE_BYTES", "Interpolation", "deal", "share_from_bytes"]

FIELD: Final = 2**256 + 297
"""The least prime above all keys (Miller-Rabin; a test repeats it)."""

SECRET_BYTES: Final = 32
SHARE_BYTES: Final = 33

DRAW_BYTES: Final = 64
"""Random bytes behind a coefficient: reduced modulo the field, they are within 2**-255 of uniform."""


def deal(secret: bytes, *, least: int, parties: int, randomness: bytes) -> tuple[int, ...]:
    """Return the shares of all parties, of `SHARE_BYTES` bytes each.

    Args:
        secret: `SECRET_BYTES` bytes.
        least: How many shares give the secret back, in [1, parties].
        parties: How many there are.
        randomness: `DRAW_BYTES` uniform bytes for each of the `least - 1` coefficients, for this secret only.

    Raises:
        ParameterError: An argument is out of range, or of another length.
    """
    check_count("parties", parties, low=1)
    check_count("least", least, low=1, high=parties)
    if len(secret) != SECRET_BYTES:
        raise ParameterError(f"a secret must have {SECRET_BYTES} bytes, got {len(secret)}.")
    if len(randomness) != DRAW_BYTES * (least - 1):
        raise ParameterError(
            f"randomness must have {DRAW_BYTES * (least - 1)} bytes for {least - 1} coefficients, got "
            f"{len(randomness)}."
        )
    draws = (randomness[k : k + DRAW_BYTES] for k in range(0, len(randomness), DRAW_BYTES))
    polynomial = (int.from_bytes(secret), *(int.from_bytes(draw) % FIELD for draw in draws))
    return tuple(sum(map(mul, polynomial, powers)) % FIELD for powers in _powers(least, parties))


def share_from_bytes(data: bytes) -> int:
    """Read a share, big-endian.

    Raises:
        RefusalError: Another length, or no point of the field: shares have one form only.
    """
    value = int.from_bytes(data)
    if len(data) != SHARE_BYTES or value >= FIELD:
        raise RefusalError("a share must be a number below 2**256 + 297, in 33 bytes.")
    return value


class Interpolation:
    """Gives secrets back from the shares of one set of parties; its weights are computed once.

    Args:
        parties: Indices of at least one party, all different: as many as `deal` was told, or more.

    Raises:
        ParameterError: No parties, or one of them twice.
    """

    __slots__ = ("_weights", "parties")

    def __init__(self, parties: Sequence[int]) -> None:
        if not parties or len(set(parties)) != len(parties) or min(parties) < 0:
            raise ParameterError(f"parties must be different indices, and at least one, got {list(parties)}.")
        self.parties = tuple(parties)
        points = [party + 1 for party in parties]
        self._weights = tuple(_weight(points, at) for at in points)

    def secret(self, shares: Sequence[int]) -> bytes | None:
        """Return the secret behind the shares of `parties`, in their order.

        None: no key has this value, so that one of the shares is wrong.
        """
        if len(shares) != len(self._weights):
            raise ParameterError(f"shares must be {len(self._weights)}, got {len(shares)}.")
        value = sum(map(mul, self._weights, shares)) % FIELD
        return None if value >> (8 * SECRET_BYTES) else value.to_bytes(SECRET_BYTES)


@cache
def _powers(least: int, parties: int) -> tuple[tuple[int, ...], ...]:
    """Return the powers of the places of all parties, reduced."""
    return tuple(tuple(pow(at, k, FIELD) for k in range(least)) for at in range(1, parties + 1))


def _weight(points: Sequence[int], at: int) -> int:
    """Return by what the value at one point counts in that at 0 (Lagrange)."""
    above = below = 1
    for other in points:
        if other != at:
            above *= other
            below *= other - at
    return above * pow(below, -1, FIELD) % FIELD
