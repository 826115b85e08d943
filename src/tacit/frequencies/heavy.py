"""Which values are frequent for sure, and how frequent one must be to be found."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import check_count, check_finite, check_probability
from tacit.frequencies.bands import Band
from tacit.frequencies.counts import Counts
from tacit.frequencies.oracle import FrequencyOracle
from tacit.numerics import Array, IntArray

__all__ = ["HeavyHitters", "detectable_frequency", "heavy_hitters", "heavy_of"]


@dataclass(frozen=True, eq=False)
class HeavyHitters:
    """The values that are held more often than a threshold, with a bound on false alarms.

    Attributes:
        values: Shape (m,), the values, most frequent first.
        estimates: Shape (m,), unbiased estimates of all values, read at these: those of the largest are
            likely too high.
        lower: Shape (m,), above the threshold.
        upper: Shape (m,).
        threshold: What frequencies are compared with.
        false_alarm: Probability that any value at or below the threshold is among them, at most.
        covers: What the frequencies are of.
    """

    values: IntArray | npt.NDArray[np.uint64]
    estimates: Array
    lower: Array
    upper: Array
    threshold: float
    false_alarm: float
    covers: str


def heavy_of(estimates: npt.ArrayLike, band: Band, threshold: float = 0.0) -> HeavyHitters:
    """Return the values whose interval lies above a threshold.

    Args:
        estimates: Shape (k,).
        band: Intervals of all values, each of which misses on either side equally often.
        threshold: A frequency in [0, 1).

    Raises:
        ParameterError: `threshold` is out of range.
    """
    threshold = check_probability("threshold", check_finite("threshold", threshold), high_open=True)
    found = np.asarray(estimates, dtype=np.float64)
    heavy = np.flatnonzero(band.lower > threshold)
    heavy = heavy[np.argsort(-found[heavy], kind="stable")]
    return HeavyHitters(
        values=heavy,
        estimates=found[heavy],
        lower=band.lower[heavy],
        upper=band.upper[heavy],
        threshold=threshold,
        false_alarm=(1 - band.confidence) / 2,
        covers=band.covers,
    )


def heavy_hitters(
    oracle: FrequencyOracle, counts: Counts, *, threshold: float = 0.0, false_alarm: float = 0.05
) -> HeavyHitters:
    """Return the values that are held more often than a threshold.

    Args:
        oracle: What the messages were made by.
        counts: Of the messages.
        threshold: A frequency in [0, 1); by default, held at all.
        false_alarm: Probability that any value at or below the threshold is reported, in (0, 1/2): for all k
            values together, whatever the data.

    Returns:
        Values, most frequent first, with intervals that hold all k frequencies with probability
        1 - 2 `false_alarm`.

    Raises:
        ParameterError: An argument is out of range, or there are no messages.

    Example:
        >>> from tacit.frequencies import BinaryHadamard
        >>> oracle, rng = BinaryHadamard(k=100, epsilon=1.0), np.random.default_rng(0)
        >>> rows = np.where(np.arange(20_000) % 4 == 0, 7, np.arange(20_000) % 100)
        >>> heavy_hitters(oracle, oracle.collect(rows, rng), false_alarm=1e-3).values.tolist()
        [7]
    """
    false_alarm = check_probability("false_alarm", false_alarm, low_open=True, high_open=True)
    check_probability("2 false_alarm", 2 * false_alarm, high_open=True)
    band = oracle.band(counts, 1 - 2 * false_alarm)
    return heavy_of(oracle.estimate(counts), band, threshold)


def detectable_frequency(
    oracle: FrequencyOracle,
    n: int,
    *,
    threshold: float = 0.0,
    false_alarm: float = 0.05,
    miss: float = 0.05,
) -> float:
    """Return about how frequent a value must be so that `heavy_hitters` finds it.

    A normal approximation of the least frequency f at which the lower end of its interval exceeds the
    threshold with probability 1 - `miss`, the other rows spread evenly over the other values. For planning:
    no guarantee rests on it.

    Args:
        oracle: What makes the messages.
        n: Number of messages.
        threshold: As in `heavy_hitters`.
        false_alarm: As in `heavy_hitters`.
        miss: Probability that such a value is not found, in (0, 1).

    Returns:
        The frequency; infinity where not even a value that all rows hold is found so.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from tacit.frequencies import BinaryHadamard
        >>> round(detectable_frequency(BinaryHadamard(k=1000, epsilon=1.0), 1_000_000), 4)
        0.012
    """
    from scipy import special

    n = check_count("n", n)
    threshold = check_probability("threshold", threshold, high_open=True)
    false_alarm = check_probability("false_alarm", false_alarm, low_open=True, high_open=True)
    miss = check_probability("miss", miss, low_open=True, high_open=True)
    radius = math.sqrt(2 * math.log(oracle.k / false_alarm))
    # The tail of a normal law at this probability, the size of the interval in standard deviations.
    radius = min(radius, float(-special.ndtri(false_alarm / oracle.k)))
    beyond = float(special.ndtri(1 - miss))

    def std(frequency: float) -> float:
        law = np.full(oracle.k, (1 - frequency) / (oracle.k - 1))
        law[0] = frequency
        return math.sqrt(float(oracle.variances(n, law)[0]))

    low, high = threshold, 1.0
    if high - (radius + beyond) * std(high) <= threshold:
        return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        found = middle - (radius + beyond) * std(middle) > threshold
        low, high = (low, middle) if found else (middle, high)
    return high
