from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.federation import Everybody, InProcess, Participation, RandomSubset, Scheduled
from tacit.federation.participation import asked_in, fewest_asked
from tacit.numerics import IntArray
from tacit.randomness import PublicStream
from tests.federation.world import GRID, ledger_at, mean_of, plan_of, rows, silo_of
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
    drawn = [tuple(RandomSubset(2).silos(r, N, PublicStream(11, r)).tolist()) for r in range(DRAWS)]
    assert subset_pvalue(drawn, 2) > FALSE_ALARM


def test_the_uniformity_test_sees_a_silo_that_comes_more_often() -> None:
    rng = np.random.default_rng(12)
    prob = np.array([1.2, 1, 1, 1, 1]) / 5.2
    drawn = [tuple(sorted(rng.choice(N, 2, replace=False, p=prob).tolist())) for _ in range(DRAWS)]
    assert subset_pvalue(drawn, 2) < FALSE_ALARM


def test_a_drawn_size_is_uniform_and_so_are_the_subsets_of_each_size() -> None:
    some = RandomSubset((0, 2, 4))
    drawn = [tuple(some.silos(r, N, PublicStream(13, r)).tolist()) for r in range(3 * DRAWS)]
    sizes = np.bincount([len(d) for d in drawn], minlength=N + 1)
    assert sizes[[1, 3, 5]].tolist() == [0, 0, 0]
    assert stats.chisquare(sizes[[0, 2, 4]]).pvalue > FALSE_ALARM
    for size in (2, 4):
        assert subset_pvalue([d for d in drawn if len(d) == size], size) > FALSE_ALARM


def test_everybody_is_everybody() -> None:
    assert Everybody().silos(3, N, PublicStream(0, 0)).tolist() == [0, 1, 2, 3, 4]
    assert RandomSubset(N).silos(3, N, PublicStream(0, 0)).tolist() == [0, 1, 2, 3, 4]


def test_a_schedule_is_followed_and_starts_over() -> None:
    schedule = Scheduled([[3, 1], [], [0, 0, 2]])
    assert [schedule.silos(r, N, PublicStream(0, r)).tolist() for r in range(4)] == [
        [1, 3],
        [],
        [0, 2],
        [1, 3],
    ]


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
        RandomSubset((2, 6)).silos(0, N, PublicStream(0, 0))
    with pytest.raises(ParameterError, match="at least one round"):
        Scheduled([])
    with pytest.raises(ParameterError, match="a silo of the schedule must be a whole number >= 0, got -1"):
        Scheduled([[-1]])
    with pytest.raises(ParameterError, match=r"a silo of the schedule must be a whole number >= 0, got 1\.7"):
        Scheduled([[1.7]])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="names silo 5, outside 0 to 4"):
        Scheduled([[5]]).silos(0, N, PublicStream(0, 0))


@pytest.mark.parametrize(
    ("participation", "fewest"),
    [
        (Everybody(), 5),
        (RandomSubset(2), 2),
        (RandomSubset((0, 2)), 0),
        (Scheduled([[0, 1, 1], [1, 2, 3]]), 2),
    ],
)
def test_step_sizes_are_made_for_the_fewest_silos(participation: Participation, fewest: int) -> None:
    assert fewest_asked(participation, N) == fewest


@dataclass(frozen=True)
class Own:
    """A participation from elsewhere, right or wrong."""

    least: Any = 2
    returned: Any = ()
    uniform: ClassVar[bool] = False

    def fewest(self, parties: int) -> int:
        return self.least  # type: ignore[no-any-return]

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        return np.asarray(self.returned)


@pytest.mark.parametrize(
    "returned", [(-1, 2), (2, 5), (2, 2), (3, 1), (1,), (), (0.0, 1.0), ((0, 1), (2, 3))]
)
def test_a_participation_from_elsewhere_names_silos_that_are_there(returned: Any) -> None:
    with pytest.raises(
        ParameterError, match="at least 2 increasing indices from 0 to 4, as its `fewest` says"
    ):
        asked_in(Own(returned=returned), 0, N, seed=0, fewest=2)
    assert asked_in(Own(returned=(0, 4)), 0, N, seed=0, fewest=2) == [0, 4]


@pytest.mark.parametrize("least", [-1, 6, 2.0, None, True])
def test_a_participation_from_elsewhere_says_how_many_it_asks(least: Any) -> None:
    with pytest.raises(ParameterError, match="fewest of the participation must be a whole number"):
        fewest_asked(Own(least), N)


def test_what_is_no_participation_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    class Old:
        uniform = True

        def silos(self, round: int, parties: int, rng: object) -> IntArray:
            return np.arange(parties)

    bad: list[Any] = [Old(), RandomSubset(3), Scheduled([[0], [2]])]
    said = ["got Old, which lacks fewest", "at most the 2 silos, got 3", "names silo 2, outside 0 to 1"]
    with ledger_at(tmp_path / "l") as ledger:
        silos = [silo_of(rows(k, 9), ledger=ledger if k == 0 else None)[0] for k in range(2)]
        for participation, message in zip(bad, said, strict=True):
            with pytest.raises(ParameterError, match=message):
                InProcess(silos).open(plan_of(mean_of(GRID), parties=2), participation=participation)
        assert ledger.entries() == []
