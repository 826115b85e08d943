"""The kinds of noise: sensitivity with all rounding, exact grids, sums over parties, widths."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import (
    SMALLEST_RADIUS,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    NoNoise,
)
from tacit.means.noise import _summation_slack
from tacit.numerics import Array, clip_rows
from tacit.privacy import DiscreteGaussian, DiscreteLaplace, Neighbours
from tests.statistics import FALSE_ALARM, z_bound

GRIDS = (DiscreteGaussianNoise, DiscreteLaplaceNoise)
NOISES: list[AnyNoise] = [
    GaussianNoise(0.7),
    LaplaceNoise(0.7),
    DiscreteGaussianNoise(0.7, steps=2),
    DiscreteLaplaceNoise(0.7, steps=2),
]


def name(noise: AnyNoise) -> str:
    return type(noise).__name__


def exact_sum(rows: Array) -> list[Fraction]:
    """The sum of rows without rounding."""
    return [sum((Fraction(float(x)) for x in column), Fraction(0)) for column in rows.T]


# Sensitivity


@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 6),
    steps=st.integers(1, 9),
    sensitivity=st.sampled_from([1, 2]),
    log_radius=st.integers(-90, 90),
)
def test_neighbouring_sums_are_as_close_as_the_event_says(
    seed: int, dim: int, steps: int, sensitivity: int, log_radius: int
) -> None:
    rng = np.random.default_rng(seed)
    radius = 2.0**log_radius * rng.uniform(0.5, 1)
    # Half steps are where rounding moves most; opposite corners are where one row moves most.
    rows = rng.integers(-2 * steps, 2 * steps + 1, size=(4, dim)) * (radius / (2 * steps))
    rows += rng.choice([-1e-9, 0.0, 1e-9], size=(4, dim)) * radius
    new = -rows[:1] if sensitivity == 2 else np.zeros((1, dim))
    for noise in (DiscreteGaussianNoise(1.0, steps=steps), DiscreteLaplaceNoise(1.0, steps=steps)):
        first, second = (
            noise.prepare(clip_rows(x, radius, norm=noise.norm).sum(axis=0), radius)
            for x in (rows, np.vstack([new, rows[1:]]))
        )
        event = noise.event(4, dim, sensitivity=sensitivity, neighbours=Neighbours())
        assert isinstance(event, DiscreteGaussian | DiscreteLaplace)
        order = 2 if noise.norm == "l2" else 1
        assert np.linalg.norm((first - second).astype(np.float64), ord=order) <= event.sensitivity


def test_the_rounding_term_is_needed() -> None:
    noise = DiscreteLaplaceNoise(1.0, steps=3)
    # 0.5 + 3 steps rounds to 4, and 0.5 to 0: four steps apart, for a row that moved by three.
    rounded = [int(noise.prepare(np.array([s / 3]), 1.0)[0]) for s in (3.5, 0.5)]
    assert rounded == [4, 0]
    event = noise.event(2, 1, sensitivity=1, neighbours=Neighbours())
    assert isinstance(event, DiscreteLaplace)
    assert event.sensitivity == 4


@pytest.mark.parametrize("value", [1 / 3, 0.7, 1 - 2.0**-53])
@pytest.mark.parametrize("fused", [False, True])
def test_summation_errs_less_than_the_slack(value: float, fused: bool) -> None:
    n, steps = 20_000, 2**30
    rng = np.random.default_rng(5)
    rows = np.stack([np.full(n, value), value * rng.uniform(-1, 1, size=n)], axis=1)
    factors = np.full(n, 0.75)
    exact = [Fraction(3, 4) * x for x in exact_sum(rows)] if fused else exact_sum(rows)
    summed = rows.T @ factors if fused else rows.sum(axis=0)
    grid = DiscreteGaussianNoise(1.0, steps=steps).prepare(summed, 1.0)
    errors = [abs(int(g) - steps * e) for g, e in zip(grid, exact, strict=True)]
    assert max(errors) <= Fraction(1, 2) + Fraction(_summation_slack(n, steps)) / 2


def test_the_summation_term_is_needed() -> None:
    n, steps = 20_000, 2**30
    rows = np.full((n, 2), 1 / 3)
    grid = DiscreteGaussianNoise(1.0, steps=steps).prepare(rows.sum(axis=0), 1.0)
    error = abs(int(grid[0]) - steps * exact_sum(rows)[0])
    assert error > 1  # more than rounding to the grid explains, and so do neighbouring sums


@pytest.mark.parametrize("n", [1, 1000, 10**6, 10**9, 2**40])
def test_the_slack_bounds_higham_exactly(n: int) -> None:
    steps, u, m = 2**30, Fraction(1, 2**53), n + 4
    gamma = m * u / (1 - m * u)
    bound = 2 * gamma * n * steps * (1 + Fraction(1, 2**47))
    assert bound <= Fraction(_summation_slack(n, steps)) <= bound * (1 + Fraction(1, 2**38))


@pytest.mark.parametrize("noise", [DiscreteGaussianNoise(1.0), DiscreteLaplaceNoise(1.0)], ids=name)
def test_too_many_rows_are_not_priced(noise: AnyNoise) -> None:
    with pytest.raises(ParameterError, match="n must be a whole number from 1 to 1099511627776"):
        noise.event(2**40 + 1, 1, sensitivity=1, neighbours=Neighbours())


# Grids


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("log_radius", [-100, -50, 0, 50, 100])
def test_sums_are_rounded_to_the_grid(kind: Any, log_radius: int) -> None:
    noise, radius = kind(1.0, steps=10), 2.0**log_radius
    summed = np.array([0.0, 1.0, -0.26, 7.44, 0.05]) * radius
    grid = noise.prepare(summed, radius)
    assert grid.dtype == np.int64
    assert grid.tolist() == [0, 10, -3, 74, 0]
    assert np.allclose(grid * noise.unit(radius), summed, atol=0.51 * radius / 10)


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("radius", [0.0, 5e-324, 1e-300, SMALLEST_RADIUS * (1 - 2.0**-53)])
def test_next_to_radius_zero_every_sum_is_zero(noise: AnyNoise, radius: float) -> None:
    summed = np.array([0.0, 1.0, -1e300, radius])
    assert not noise.prepare(summed, radius).any()


@pytest.mark.parametrize("kind", GRIDS)
def test_huge_sums_are_saturated_with_room_for_noise(kind: Any) -> None:
    grid = kind(1.0, steps=2**30).prepare(np.array([1e30, -1e30]), 1.0)
    assert grid.tolist() == [2**62, -(2**62)]


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_grids_take_float64_sums_only(kind: Any, dtype: Any) -> None:
    with pytest.raises(ParameterError, match="must be float64"):
        kind(1.0).prepare(np.zeros(2, dtype), 1.0)


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise, *GRIDS])
@pytest.mark.parametrize("level", [0.0, -1.0, math.nan, math.inf])
def test_noise_multipliers_are_positive(kind: Any, level: float) -> None:
    with pytest.raises(ParameterError, match="noise_multiplier must be a finite number > 0"):
        kind(level)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize(
    ("level", "steps", "match"),
    [
        (1.0, 0, "steps must be"),
        (1.0, 2**30 + 1, "steps must be"),
        (1.0, 2.5, "steps must be"),
        (2.0**-21, 1, r"noise_multiplier \* steps"),
        (2.0**30, 2**30, r"noise_multiplier \* steps"),
    ],
)
def test_noise_that_cannot_be_sampled_is_refused(kind: Any, level: float, steps: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        kind(level, steps=steps)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize(("level", "steps"), [(2.0**-20, 1), (2.0**24, 2**30)])
def test_the_ends_of_the_range_can_be_sampled(kind: Any, level: float, steps: int) -> None:
    rng = np.random.default_rng(0)
    for sensitivity in (1, 2):
        noise = kind(level, steps=steps).sample(2, sensitivity=sensitivity, radius=1.0, rng=rng)
        assert noise.shape == (2,)


# Widths


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("level", [1e-3, 1.0, 50.0])
def test_a_message_holds_the_sum_and_the_noise(kind: Any, rows: int, level: float) -> None:
    noise = kind(level, steps=64)
    width = noise.entry_bits(rows, sensitivity=2)
    scales = 16 if kind is DiscreteGaussianNoise else 32
    largest = rows * 64 + scales * level * 2 * 64
    assert 2 ** (width - 1) > 2 * largest  # 32 sigma, or 64 scales: beyond lies less than 1e-27
    assert 2 ** (width - 1) <= 4 * (largest + 1)  # and no bit is wasted


@pytest.mark.parametrize("kind", GRIDS)
def test_what_does_not_fit_is_saturated(kind: Any) -> None:
    summed = np.array([-129, -128, 0, 127, 128, 2**62, -(2**63)])
    assert kind(1.0).published(summed, 8).tolist() == [-128, -128, 0, 127, 127, 127, -128]
    assert np.array_equal(kind(1.0).published(summed, 64), summed)


def test_continuous_sums_leave_as_float32() -> None:
    for noise in (GaussianNoise(1.0), LaplaceNoise(1.0)):
        assert noise.published(np.array([1 / 3]), 32).dtype == np.float32
    assert NoNoise().published(np.array([1 / 3]), 64).dtype == np.float64


# Laws


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("parties", [1, 5])
def test_the_noise_of_several_parties_adds_up(noise: AnyNoise, parties: int) -> None:
    draws, radius = 40_000, 1.5
    rng = np.random.default_rng(12)
    at_once = noise.sample(draws, sensitivity=2, radius=radius, rng=rng, parties=parties)
    alone = [noise.sample(draws, sensitivity=2, radius=radius, rng=rng) for _ in range(parties)]
    one_by_one = np.sum(alone, axis=0)
    assert stats.ks_2samp(at_once, one_by_one).pvalue > FALSE_ALARM
    variance = parties * noise.variance(sensitivity=2, radius=radius)
    # An excess kurtosis of at most 3 (Laplace) bounds the spread of the second moment.
    spread = z_bound(2) * math.sqrt(5 / draws)
    assert spread < 0.1
    assert np.mean(np.square(at_once, dtype=np.float64)) == pytest.approx(variance, rel=spread)
    assert abs(at_once.mean()) < z_bound(2) * math.sqrt(variance / draws)


def test_many_parties_are_added_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.means.noise._DRAWS_AT_ONCE", 1000)
    noise = DiscreteGaussianNoise(1.0, steps=4)
    draws = noise.sample(300, sensitivity=1, radius=1.0, rng=np.random.default_rng(3), parties=50)
    # The sum over coordinates has 15,000 independent terms.
    assert abs(draws.sum()) < z_bound(2) * 4 * math.sqrt(15_000)
    assert np.square(draws).sum() == pytest.approx(15_000 * 16, rel=z_bound(2) * math.sqrt(2 / 300))


@pytest.mark.parametrize("noise", NOISES, ids=name)
def test_a_wider_relation_and_radius_scale_the_noise(noise: AnyNoise) -> None:
    def draw(sensitivity: int, radius: float) -> Array:
        drawn = noise.sample(4000, sensitivity=sensitivity, radius=radius, rng=np.random.default_rng(8))
        return drawn * noise.unit(radius)

    assert np.allclose(draw(1, 2.0), 2 * draw(1, 1.0), rtol=1e-6)
    assert np.std(draw(2, 1.0)) == pytest.approx(2 * np.std(draw(1, 1.0)), rel=0.2)


def test_no_noise_claims_and_adds_nothing() -> None:
    noise, rng = NoNoise(), np.random.default_rng(0)
    before = rng.bit_generator.state
    assert not noise.sample(3, sensitivity=2, radius=1.0, rng=rng).any()
    assert rng.bit_generator.state == before
    assert noise.variance(sensitivity=2, radius=1.0) == 0
    assert noise.event(5, 3, sensitivity=2, neighbours=Neighbours()).curve().delta(50.0) == 1  # type: ignore[attr-defined]  # a leaf
