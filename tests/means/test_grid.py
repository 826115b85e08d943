"""Random rounding is unbiased, stays on the grid, and keeps every distance within the price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tacit.means.grid import FastRounding, on_grid, round_rows
from tacit.numerics import Array, clip_rows
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


def test_without_the_inset_rows_would_be_further_apart() -> None:
    rows = hostile(300, 0.1)
    scaled = (clip_rows(rows, 0.1) / 0.1 + 1) * 26
    half = len(rows) // 2
    squares = [
        sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True))
        for x, y in zip(scaled[:half], scaled[half:], strict=True)
    ]
    assert max(squares) > 52**2


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


@pytest.mark.parametrize("resolution", [1, 2, 5, 118, 2**14])
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
    assert np.array_equal(rows, before, equal_nan=True)
