from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.federation import Everybody, RandomSubset, Scheduled
from tests.statistics import FALSE_ALARM

N = 5
DRAWS = 20_000


def subset_pvalue(drawn: list[tuple[int, ...]], size: int) -> float:
    """Chi-square p-value of "all subsets are equally likely"; 2000 draws a cell, so the limit law holds."""
    cells = list(combinations(range(N), size))
    counts = [drawn.count(cell) for cell in cells]
    assert sum(counts) == len(drawn)  # nothing but sorted subsets of that size
    return float(stats.chisquare(counts).pvalue)


def test_every_subset_is_equally_likely() -> None:
    rng = np.random.default_rng(11)
    drawn = [tuple(RandomSubset(2).silos(r, N, rng).tolist()) for r in range(DRAWS)]
    assert subset_pvalue(drawn, 2) > FALSE_ALARM


def test_the_uniformity_test_sees_a_silo_that_comes_more_often() -> None:
    rng = np.random.default_rng(12)
    prob = np.array([1.2, 1, 1, 1, 1]) / 5.2
    drawn = [tuple(sorted(rng.choice(N, 2, replace=False, p=prob).tolist())) for _ in range(DRAWS)]
    assert subset_pvalue(drawn, 2) < FALSE_ALARM


def test_a_drawn_size_is_uniform_and_so_are_the_subsets_of_each_size() -> None:
    rng = np.random.default_rng(13)
    drawn = [tuple(RandomSubset((0, 2, 4)).silos(r, N, rng).tolist()) for r in range(3 * DRAWS)]
    sizes = np.bincount([len(d) for d in drawn], minlength=N + 1)
    assert sizes[[1, 3, 5]].tolist() == [0, 0, 0]
    assert stats.chisquare(sizes[[0, 2, 4]]).pvalue > FALSE_ALARM
    for size in (2, 4):
        assert subset_pvalue([d for d in drawn if len(d) == size], size) > FALSE_ALARM


def test_everybody_is_everybody() -> None:
    assert Everybody().silos(3, N, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
    assert RandomSubset(N).silos(3, N, np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]


def test_a_schedule_is_followed_and_starts_over() -> None:
    schedule = Scheduled([[3, 1], [], [0, 0, 2]])
    rng = np.random.default_rng(0)
    assert [schedule.silos(r, N, rng).tolist() for r in range(4)] == [[1, 3], [], [0, 2], [1, 3]]


def test_only_random_sets_count_as_uniform() -> None:
    assert RandomSubset(2).uniform
    assert Everybody().uniform
    assert not Scheduled([[0]]).uniform


@pytest.mark.parametrize("size", [0, -1, 1.0, True])
def test_a_bad_size_is_refused(size: int) -> None:
    with pytest.raises(ParameterError, match="size must be a whole number >= 1"):
        RandomSubset(size)


def test_bad_sizes_and_schedules_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one number of silos"):
        RandomSubset(())
    with pytest.raises(ParameterError, match="size must be a whole number >= 0, got -1"):
        RandomSubset((2, -1))
    with pytest.raises(ParameterError, match="at most the 5 silos, got 6"):
        RandomSubset((2, 6)).silos(0, N, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="at least one round"):
        Scheduled([])
    with pytest.raises(ParameterError, match="a silo of the schedule must be a whole number >= 0, got -1"):
        Scheduled([[-1]])
    with pytest.raises(ParameterError, match=r"a silo of the schedule must be a whole number >= 0, got 1\.7"):
        Scheduled([[1.7]])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="names silo 5, outside 0 to 4"):
        Scheduled([[5]]).silos(0, N, np.random.default_rng(0))
