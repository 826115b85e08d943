"""Intervals hold what they say, for rows as they are; heavy hitters raise few false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import (
    BinaryHadamard,
    Counts,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    UnaryEncoding,
    detectable_frequency,
    heavy_hitters,
    heavy_of,
)
from tacit.frequencies.bands import Band, bernstein_radius, binomial_limits
from tests.statistics import FALSE_ALARM

BANDS: list[FrequencyOracle] = [
    BinaryHadamard(k=12, epsilon=1.0),
    BinaryHadamard(k=12, epsilon=1.0, skip_constant=False),
    BinaryHadamard(k=12, epsilon=1.0, random_bits=0.4),
    BinaryHadamard(k=12, epsilon=1.0, assignment="blocks"),
    KaryResponse(k=12, epsilon=1.0),
    HadamardResponse(k=12, epsilon=0.5),
    HadamardResponse(k=12, epsilon=2.0),
    UnaryEncoding(k=12, epsilon=1.0),
]


@pytest.mark.parametrize("others", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_limits_hold_for_sums_of_different_bits_by_enumeration(others: float, confidence: float) -> None:
    # 10 bits of one probability and 15 of another: Hoeffding's comparison, complete.
    for held in (0.0, 0.1, 0.5, 0.97, 1.0):
        law = np.convolve(
            stats.binom.pmf(np.arange(11), 10, held), stats.binom.pmf(np.arange(16), 15, others)
        )
        low, high = binomial_limits(np.arange(26), 25, confidence, intervals=1)
        mean = (10 * held + 15 * others) / 25
        inside = (low <= mean) & (mean <= high)
        assert law[inside].sum() >= confidence
        assert np.all(law[mean < low].sum() <= (1 - confidence) / 2)
        assert np.all(law[mean > high].sum() <= (1 - confidence) / 2)


def test_limits_are_those_of_clopper_and_pearson_moved_by_one() -> None:
    low, high = binomial_limits(np.array([0, 3, 10]), 10, 0.9, intervals=1)
    assert (low[0], low[1]) == pytest.approx((0.0, stats.beta.ppf(0.05, 2, 9)))
    assert (high[1], high[2]) == pytest.approx((stats.beta.ppf(0.95, 5, 6), 1.0))


def test_bernsteins_radius_is_above_the_tail() -> None:
    # n bits of probability q, each at most 1, around 0.
    for n, q in ((50, 0.02), (1000, 0.4)):
        for tail in (1e-2, 1e-6):
            radius = float(bernstein_radius(n * q, 1.0, -math.log(tail)))
            assert stats.binom.sf(n * q + radius - 1e-9, n, q) <= tail


@pytest.mark.parametrize("oracle", BANDS, ids=lambda one: f"{one.name}-{one.message_bits}")
def test_bands_hold_all_frequencies_at_once(oracle: FrequencyOracle) -> None:
    # Rows that are as uneven as rows can be, and nearly even ones. Columns by place: independent rows.
    rng, n, runs = np.random.default_rng(21), 3000, 60
    weights = np.array([0.7, 0.2, 0.1, *[0.0] * 9])
    missed, widths = 0, []
    for run in range(runs):
        p = weights if run % 2 else np.full(12, 1 / 12)
        values = rng.choice(12, n, p=p)
        truth = np.bincount(values, minlength=12) / n if oracle.message_bits > 1 else p
        band = oracle.band(oracle.collect(values, rng), 0.9)
        assert np.all((band.lower >= 0) & (band.lower <= band.upper) & (band.upper <= 1))
        missed += bool(np.any((truth < band.lower) | (truth > band.upper)))
        widths.append(float(np.mean(band.intervals[:, 1] - band.intervals[:, 0])))
    assert stats.binomtest(missed, runs, 0.1, alternative="greater").pvalue > FALSE_ALARM
    # Not wider than twice the normal interval that shares what may fail.
    if oracle.message_bits > 1:
        std = math.sqrt(float(oracle.variances(n).max()))
        assert np.mean(widths) < 2 * 2 * std * stats.norm.isf(0.1 / 24)


def test_a_band_of_a_stronger_mechanism_misses() -> None:
    # Negative control: estimates of another level are biased, and their intervals miss. Only counts that do
    # not say where they come from are read so.
    rng, n = np.random.default_rng(22), 100_000
    wrong, right = KaryResponse(k=4, epsilon=1.2), KaryResponse(k=4, epsilon=1.0)
    counts = right.collect(np.zeros(n, dtype=int), rng)
    band = wrong.band(Counts(n, counts.values), 0.9)
    assert band.upper[0] < 1


def test_where_no_value_is_held_often_there_are_few_false_alarms() -> None:
    rng, runs, n = np.random.default_rng(23), 150, 2000
    oracle = BinaryHadamard(k=64, epsilon=1.0)
    alarms = 0
    for _ in range(runs):
        found = heavy_hitters(
            oracle, oracle.collect(np.zeros(n, dtype=int), rng), threshold=0.3, false_alarm=0.1
        )
        alarms += bool(np.any(found.values != 0))
        assert found.false_alarm == pytest.approx(0.1)
    assert stats.binomtest(alarms, runs, 0.1, alternative="greater").pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "oracle", [BinaryHadamard(k=256, epsilon=1.0), HadamardResponse(k=256, epsilon=2.0)], ids=["bh", "hr"]
)
def test_a_value_at_the_detectable_frequency_is_found(oracle: FrequencyOracle) -> None:
    rng, n = np.random.default_rng(24), 20_000
    level = detectable_frequency(oracle, n, false_alarm=0.01, miss=0.1)
    found = []
    for _ in range(40):
        values = np.where(rng.random(n) < 1.15 * level, 77, rng.integers(0, 256, n))
        found.append(77 in heavy_hitters(oracle, oracle.collect(values, rng), false_alarm=0.01).values)
    assert np.mean(found) > 0.6
    fewer = [
        77 in heavy_hitters(oracle, oracle.simulate(np.full(256, 1 / 256), n, rng), false_alarm=0.01).values
        for _ in range(40)
    ]
    assert np.mean(fewer) < 0.2


def test_heavy_values_come_most_frequent_first() -> None:
    band = Band(np.array([0.1, 0.0, 0.3]), np.array([0.2, 0.1, 0.5]), 0.9)
    found = heavy_of([0.15, 0.05, 0.4], band, 0.05)
    assert found.values.tolist() == [2, 0]
    assert found.lower.tolist() == [0.3, 0.1]
    assert found.false_alarm == pytest.approx(0.05)


def test_bad_input_is_refused() -> None:
    oracle = BinaryHadamard(k=4, epsilon=1.0)
    counts = oracle.collect([0, 1], np.random.default_rng(0))
    for threshold in (-0.1, 1.0, math.nan):
        with pytest.raises(ParameterError, match="threshold"):
            heavy_hitters(oracle, counts, threshold=threshold)
    for false_alarm in (0.0, 0.5, 1.0):
        with pytest.raises(ParameterError, match="false_alarm"):
            heavy_hitters(oracle, counts, false_alarm=false_alarm)
    with pytest.raises(ParameterError, match="miss"):
        detectable_frequency(oracle, 100, miss=0.0)
    assert detectable_frequency(oracle, 2) == math.inf
