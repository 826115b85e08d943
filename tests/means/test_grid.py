"""Random rounding is unbiased, stays on the grid, and keeps every distance within the price."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.means.grid import (
    FIXED_HIGH,
    FastRounding,
    fixed_rows,
    on_grid,
    round_rows,
    rounded_sum,
    scaled_rows,
    scaled_sum,
)
from tacit.numerics import Array, clip_rows, row_norms
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM, z_bound


def hostile(dim: int, radius: float) -> Array:
    """Rows on and around the sphere, where rounding errors could carry them out."""
    rng = np.random.default_rng(dim)
    rows = rng.standard_normal((60, dim))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    rows[:5] = 0
    rows[:5, 0] = [1, -1, 1 + 2**-52, 1e200, -1e200]
    rows[5] = 1 / math.sqrt(dim)
    rows[6] = -1 / math.sqrt(dim)
    return np.concatenate([rows, -rows]) * radius


@pytest.mark.parametrize("dim", [1, 2, 7, 300])
@pytest.mark.parametrize("radius", [1.0, 0.1, 3e-20, 7e20])
@pytest.mark.parametrize("resolution", [1, 3, 52])
def test_no_two_rows_are_further_apart_than_priced(dim: int, radius: float, resolution: int) -> None:
    scaled = on_grid(hostile(dim, radius), radius, resolution)
    assert scaled.min() >= 0
    assert scaled.max() <= resolution
    half = len(scaled) // 2
    # Exactly, and as the uniform number sees it: a fraction counts as the next multiple of 2**-53.
    for row, opposite in zip(scaled[:half], scaled[half:], strict=True):
        away = (
            abs(Fraction(a) - Fraction(b)) + Fraction(1, 2**52) for a, b in zip(row, opposite, strict=True)
        )
        assert sum(x * x for x in away) <= resolution**2


@pytest.mark.parametrize("g", [1, 7, 52])
def test_one_rounding_of_two_rows_moves_them_by_one_step_more_at_most(g: int) -> None:
    """Rounded apart from each other, they may be two steps further, as Lemma 3.1 of Cheu et al. has it."""
    rng, furthest = np.random.default_rng(3), 0
    one, two = rng.uniform(-1, 1, (2, 4000, 1))
    moved = np.ceil(np.abs(on_grid(one, 1.0, g) - on_grid(two, 1.0, g)) - 1e-9)
    coupled = [round_rows(rows, 1.0, g, rng=np.random.default_rng(9)) for rows in (one, two)]
    assert (np.abs(coupled[0] - coupled[1]) <= moved).all()
    apart = [round_rows(rows, 1.0, g, rng=np.random.default_rng(seed)) for seed, rows in ((1, one), (2, two))]
    furthest = int((np.abs(apart[0] - apart[1]) - moved).max())
    assert furthest == (0 if g == 1 else 1)


def test_without_the_inset_rows_would_be_further_apart() -> None:
    rows = hostile(300, 0.1)
    scaled = (clip_rows(rows, 0.1) / 0.1 + 1) * 26
    half = len(rows) // 2
    squares = [
        sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True))
        for x, y in zip(scaled[:half], scaled[half:], strict=True)
    ]
    assert max(squares) > 52**2


@pytest.mark.parametrize("dim", [1, 2, 7, 300])
@pytest.mark.parametrize("radius", [1.0, 0.1, 3e-20, 7e20])
@pytest.mark.parametrize("resolution", [1, 3, 52, 2**18])
def test_no_two_fixed_rows_are_further_apart_than_priced(dim: int, radius: float, resolution: int) -> None:
    rows = hostile(dim, radius)
    rows[3:5], rows[-3] = 1e-300, np.inf
    fixed = fixed_rows(rows, radius, resolution) - (FIXED_HIGH << 32)
    assert fixed.min() >= 0
    assert fixed.max() <= resolution << 32
    half = len(fixed) // 2
    for row, opposite in zip(fixed[:half].tolist(), fixed[half:].tolist(), strict=True):
        assert sum((a - b) ** 2 for a, b in zip(row, opposite, strict=True)) <= (resolution << 32) ** 2
    # To the nearest multiple, but for rows that the smaller ball has moved.
    scaled = on_grid(rows * 0.9, radius, resolution)
    exact = fixed_rows(rows * 0.9, radius, resolution) - (FIXED_HIGH << 32)
    inside = row_norms(rows * 0.9) < 0.95 * radius
    assert np.abs(exact[inside] / 2.0**32 - scaled[inside]).max() <= 2.0**-33 + resolution * 2.0**-50


def products(rows: Array, radius: float, dtype: type[np.floating[Any]]) -> tuple[Array, Array]:
    """Factors and vectors of any length, whose products are as long as the radius allows, or a bit less."""
    finite = np.isfinite(rows).all(axis=1) & (row_norms(rows) < 1e100)
    vectors = np.where(finite[:, None], rows / radius, 0).astype(dtype)
    vectors *= (
        np.random.default_rng(3).choice([2.0**-30, 1.0, 2.0**30], size=len(rows))[:, None].astype(dtype)
    )
    norms = row_norms(vectors)
    # As slopes are clipped: no rounding may carry a product out of the ball.
    limit = radius * (1 - (2.0**-23 if dtype is np.float32 else 2.0**-50))
    factors = np.divide(limit, norms, out=np.zeros(len(rows)), where=norms > 0).astype(dtype)
    return factors, vectors


@pytest.mark.parametrize("dim", [1, 2, 7, 300])
@pytest.mark.parametrize("radius", [1.0, 0.1, 3e-20, 7e20])
@pytest.mark.parametrize(
    ("dtype", "resolution"), [(np.float32, g) for g in (1, 3, 127, 128)] + [(np.float64, 52)]
)
def test_no_two_scaled_rows_are_further_apart_than_priced(
    dim: int, radius: float, resolution: int, dtype: type[np.floating[Any]]
) -> None:
    factors, vectors = products(hostile(dim, radius), radius, dtype)
    factors[7], factors[8] = np.nan, np.inf
    fixed = scaled_rows(factors, vectors, radius, resolution)
    narrow = dtype is np.float32 and resolution <= 127
    assert fixed.dtype == (np.int32 if narrow else np.int64)
    places = 16 if narrow else 32
    high = int(np.float32(2.0**23).view(np.int32)) >> 16 if narrow else FIXED_HIGH
    rows = [[int(v) - (high << places) for v in row] for row in fixed]
    ends = resolution << places
    assert all(0 <= v <= ends for row in rows for v in row)
    assert {*rows[7], *rows[8]} == {ends // 2}
    half = len(rows) // 2
    for row, opposite in zip(rows[:half], rows[half:], strict=True):
        assert sum((a - b) ** 2 for a, b in zip(row, opposite, strict=True)) <= ends**2
    # To the nearest multiple of the products, which come a little closer to the middle.
    good = np.isfinite(factors)
    exact = factors[good, None].astype(np.float64) * vectors[good] / radius
    found = (np.array(rows)[good] / 2.0**places - resolution / 2) * 2 / resolution
    closer = math.sqrt(dim) * 2.0 ** (1 - places) / resolution + (2.0**-20 if narrow else 2.0**-40)
    assert np.abs(found - exact).max() <= closer + 2.0**-places / resolution


def test_very_many_coordinates_on_a_coarse_grid_are_not_made_shorter() -> None:
    one = np.ones(1, dtype=np.float32)
    wide = np.zeros((1, 2**12), dtype=np.float32)
    assert scaled_rows(one, wide, 1.0, 3).dtype == np.int32
    assert scaled_rows(one, wide, 1.0, 1).dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("resolution", [1, 127, 128, 2**18, 2**20])
def test_scaled_sums_have_the_law_of_rows_that_are_rounded_one_by_one(
    resolution: int, dtype: type[np.floating[Any]]
) -> None:
    rows = np.random.default_rng(6).uniform(-0.5, 0.5, (9, 3)).astype(dtype)
    factors = np.random.default_rng(7).uniform(0.5, 1, 9).astype(dtype)
    whole = rows.astype(np.float64) * factors[:, None]
    rng, trials = simulated(12, "scaled", resolution), 4000
    first = np.stack([scaled_sum(factors, rows, 1.0, resolution, rng=rng) for _ in range(trials)])
    second = np.stack([round_rows(whole, 1.0, resolution, rng=rng).sum(axis=0) for _ in range(trials)])
    for a, b in zip(first.T, second.T, strict=True):
        low = min(a.min(), b.min())
        # A row of the grid is 9 * 2**-16 of a step off at most, and the inset 2**-15 of half a step.
        table = np.stack([np.bincount(x - low, minlength=30)[:30] for x in (a, b)])
        table = table[:, table.sum(axis=0) > 20]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_a_scaled_sum_takes_from_the_stream_what_its_size_says() -> None:
    rng, other = simulated(13, "scaled"), simulated(13, "scaled")
    rows = np.ones((5, 3), dtype=np.float32)
    scaled_sum(np.zeros(5, dtype=np.float32), rows, 1.0, 4, rng=rng)
    scaled_sum(np.full(5, 0.5, dtype=np.float32), rows, 1.0, 4, rng=other)
    assert rng.bit_generator.state == other.bit_generator.state


def test_scaled_sums_leave_the_grid_nowhere_whatever_they_are_given() -> None:
    rng = simulated(14, "scaled")
    for dtype in (np.float32, np.float64):
        rows = np.array([[np.nan, 1e30], [np.inf, -1e30], [1.0, 1.0]], dtype=dtype)
        with np.errstate(all="ignore"):
            summed = scaled_sum(np.full(3, 1e20, dtype=dtype), rows, 1.0, 4, rng=rng)
        assert summed.min() >= 0
        assert summed.max() <= 12
        assert scaled_sum(
            np.ones(3, dtype=dtype), np.zeros((3, 2), dtype=dtype), 0.0, 2, rng=rng
        ).tolist() == [3, 3]
        assert scaled_sum(
            np.ones(0, dtype=dtype), np.zeros((0, 2), dtype=dtype), 1.0, 2, rng=rng
        ).tolist() == [0, 0]


@pytest.mark.parametrize("resolution", [1, 5, 2**18, 2**20])  # fixed point ends at 2**18
def test_sums_for_release_have_the_mean_and_the_variance(resolution: int) -> None:
    k, trials = 5, 6000
    rows = np.array([[0.3, -0.5, 0.1], [3.0, 4.0, 0.0], [np.nan, 0, 0], [0, 0, 0], [-0.9, 0.1, 0.2]])
    rng = simulated(9, "rounded", resolution)
    draws = np.stack([rounded_sum(rows, 1.0, resolution, rng=rng) for _ in range(trials)])
    scaled = on_grid(rows, 1.0, resolution)
    f = scaled % 1
    std = np.sqrt((f * (1 - f)).sum(axis=0))
    off = k * resolution * 1e-8 + k * 2.0**-32
    assert np.all(np.abs(draws.mean(axis=0) - scaled.sum(axis=0)) <= z_bound(3) * std / trials**0.5 + off)
    # A variance of 6000 draws errs by 2 % or so; eight of them are allowed.
    assert np.allclose(draws.var(axis=0), std**2, rtol=0.15, atol=0.02)


def test_every_sum_for_release_has_the_law_of_rows_that_are_rounded_one_by_one() -> None:
    rows = np.random.default_rng(6).uniform(-0.5, 0.5, (9, 3))
    rng = simulated(10, "rounded")
    first = np.stack([rounded_sum(rows, 1.0, 4, rng=rng) for _ in range(4000)])
    second = np.stack([round_rows(rows, 1.0, 4, rng=rng).sum(axis=0) for _ in range(4000)])
    for a, b in zip(first.T, second.T, strict=True):
        table = np.stack([np.bincount(x - 9, minlength=20) for x in (a, b)])
        table = table[:, table.sum(axis=0) > 20]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_sums_for_release_are_the_same_in_blocks_and_for_tiny_balls() -> None:
    rng = simulated(11, "rounded")
    rows = np.zeros((2**14 + 3, 17))
    rows[:, 1] = 1.0
    summed = rounded_sum(rows, 1.0, 2, rng=rng)
    assert np.delete(summed, 1).tolist() == [len(rows)] * 16
    assert 2 * len(rows) - 5 <= summed[1] <= 2 * len(rows)  # a 2**-31th below the end
    assert rounded_sum(rows, 0.0, 2, rng=rng).tolist() == [len(rows)] * 17
    assert rounded_sum(np.zeros((0, 3)), 1.0, 2, rng=rng).tolist() == [0, 0, 0]


def test_rounding_goes_up_with_the_probability_of_the_fraction() -> None:
    row, trials = np.array([[0.3, -0.77, 0.0, 0.5]]), 40_000
    rounded = round_rows(np.repeat(row, trials, axis=0), 1.0, 7, rng=simulated(1, "round"))
    scaled = on_grid(row, 1.0, 7)[0]
    assert np.allclose(scaled, (row[0] + 1) * 3.5, atol=1e-10)
    assert np.all((rounded == np.floor(scaled)) | (rounded == np.ceil(scaled)))
    f = scaled % 1
    assert np.all(np.abs(rounded.mean(axis=0) - scaled) <= z_bound(4) * np.sqrt(f * (1 - f) / trials) + 1e-12)


def test_the_ends_of_the_grid_are_reached_and_not_left() -> None:
    far = np.array([[1e9], [-1e9], [1.0], [-1.0]])
    rounded = round_rows(np.repeat(far, 500, axis=0), 1.0, 1000, rng=simulated(2, "round"))
    assert (rounded.min(), rounded.max()) == (0, 1000)
    fast = FastRounding(1.0, 1000, 1)
    assert fast.sum(np.full((500, 1), 1e9, dtype=np.float32), simulated(3, "round")) <= 500 * 1000
    assert fast.sum(np.full((500, 1), -1e9, dtype=np.float32), simulated(4, "round")) >= 0


@pytest.mark.parametrize("resolution", [1, 5, 2**14])
def test_fast_sums_have_the_mean_and_the_variance(resolution: int) -> None:
    dim, k, trials = 3, 5, 6000
    rows = np.array([[0.3, -0.5, 0.1], [3.0, 4.0, 0.0], [np.nan, 0, 0], [0, 0, 0], [-0.9, 0.1, 0.2]])
    fast, rng = FastRounding(1.0, resolution, dim), simulated(5, "fast", resolution)
    draws = np.stack([fast.sum(rows.astype(np.float32), rng) for _ in range(trials)])
    scaled = on_grid(rows, 1.0, resolution)
    f = scaled % 1
    std = np.sqrt((f * (1 - f)).sum(axis=0))
    off = k * resolution * 1e-6 + k * 2.0**-16
    assert np.all(np.abs(draws.mean(axis=0) - scaled.sum(axis=0)) <= z_bound(3) * std / trials**0.5 + off)
    # A variance of 6000 draws errs by 2 % or so; eight of them are allowed.
    assert np.allclose(draws.var(axis=0), std**2, rtol=0.15, atol=0.02)


def test_fast_and_exact_sums_have_one_law() -> None:
    rows = np.random.default_rng(6).uniform(-0.5, 0.5, (9, 3)).astype(np.float32)
    fast, rng = FastRounding(1.0, 4, 3), simulated(6, "fast")
    first = np.stack([fast.sum(rows, rng) for _ in range(4000)])
    second = np.stack([round_rows(rows, 1.0, 4, rng=rng).sum(axis=0) for _ in range(4000)])
    for a, b in zip(first.T, second.T, strict=True):
        table = np.stack([np.bincount(x - 9, minlength=20) for x in (a, b)])
        table = table[:, table.sum(axis=0) > 20]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_many_rows_are_summed_in_blocks() -> None:
    rows = np.zeros((2**15 + 3, 17), dtype=np.float32)
    rows[:, 1] = 1.0
    summed = FastRounding(1.0, 2, 17).sum(rows, simulated(7, "fast"))
    assert np.delete(summed, 1).tolist() == [len(rows)] * 16
    # A millionth below the end, each row is rounded down once in a million.
    assert 2 * len(rows) - 5 <= summed[1] <= 2 * len(rows)


def test_rows_are_left_alone() -> None:
    rows = np.array([[5.0, 0.0], [np.nan, 1.0]], dtype=np.float32)
    before = rows.copy()
    FastRounding(1.0, 3, 2).sum(rows, simulated(8, "fast"))
    round_rows(rows, 1.0, 3, rng=simulated(8, "fast"))
    rounded_sum(rows, 1.0, 3, rng=simulated(8, "fast"))
    assert np.array_equal(rows, before, equal_nan=True)
