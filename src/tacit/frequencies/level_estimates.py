"""What each of several analysts estimates from one message of every client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_probability
from tacit.frequencies.bands import Band
from tacit.frequencies.levels import LevelledHadamard
from tacit.frequencies.secrets import OneTimeKeys
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, Neighbours
from tacit.randomness import is_secure

__all__ = ["LevelEstimate", "estimate_levels"]

_RECORDS = Neighbours()


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelEstimate:
    """What one analyst finds.

    Attributes:
        epsilon: Its level, as asked for.
        estimates: Shape (k,), unbiased.
        band: Intervals that hold all frequencies at once.
        mse: Exact mean squared l2 error against the frequencies of equally frequent values.
        guarantee: Against this analyst, alone or together with all less trusted ones.
    """

    epsilon: float
    estimates: Array
    band: Band
    mse: float
    guarantee: Guarantee


def estimate_levels(
    values: npt.ArrayLike,
    scheme: LevelledHadamard,
    *,
    confidence: float = 0.95,
    neighbours: Neighbours = _RECORDS,
    rng: np.random.Generator,
) -> tuple[LevelEstimate, ...]:
    """Publish once, and estimate as each analyst would.

    Args:
        values: Shape (n,), n >= 1, whole numbers from 0 to k - 1.
        scheme: Analysts and their levels.
        confidence: Of each analyst's band, in (0, 1).
        neighbours: A replace-one relation.
        rng: Source of columns and flips; a seeded one marks the guarantees as simulated.

    Returns:
        One estimate an analyst, the most trusted first.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> scheme = LevelledHadamard.of_levels(4, [0.5, 1, 2])
        >>> found = estimate_levels([0] * 9000 + [1] * 9000, scheme, rng=np.random.default_rng(3))
        >>> [one.epsilon for one in found], found[0].estimates.round(1).tolist()[:2]
        ([2.0, 1.0, 0.5], [0.5, 0.5])
    """
    if np.size(np.asarray(values)) == 0:
        raise ParameterError("values must be at least one, got none.")
    check_probability("confidence", confidence, low_open=True, high_open=True)
    prices = [
        scheme.price(range(j, len(scheme.epsilons)), neighbours=neighbours, simulated=not is_secure(rng))
        for j in range(len(scheme.epsilons))
    ]
    messages, keys = scheme.publish(values, rng)
    return tuple(
        _estimate_of(scheme, j, messages, key, confidence, price)
        for j, (key, price) in enumerate(zip((*keys, None), prices, strict=True))
    )


def _estimate_of(
    scheme: LevelledHadamard,
    analyst: int,
    messages: IntArray,
    key: OneTimeKeys | None,
    confidence: float,
    price: Guarantee,
) -> LevelEstimate:
    """Return what an analyst finds; its key is wiped."""
    oracle = scheme.oracles[analyst]
    counts = oracle.aggregate(scheme.view(analyst, messages, key))
    if key is not None:
        key.wipe()
    return LevelEstimate(
        epsilon=oracle.epsilon,
        estimates=oracle.estimate(counts),
        band=oracle.band(counts, confidence),
        mse=oracle.frequency_mse(counts.n),
        guarantee=price,
    )
