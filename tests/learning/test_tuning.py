"""Batches, rounds and smoothing: reference numbers, and that each formula is where its bound is least."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning.algorithms.lan import lan_bound
from tacit.learning.tuning import (
    accelerated_batch,
    descent_rounds,
    envelope_smoothness,
    growing_groups,
    plain_batch,
)
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

LEVEL = 0.2680511232  # of epsilon 1 at delta 1e-5
FACTS = {"lipschitz": 1.0, "diameter": 2.0}


def test_the_level_is_that_of_a_gaussian_release_at_the_whole_budget() -> None:
    assert 1 / calibrate(Gaussian, PrivacyBudget(1.0, 1e-5)) == pytest.approx(LEVEL, rel=1e-7)


def test_reference_numbers() -> None:
    assert 2 * math.sqrt(10) / LEVEL == pytest.approx(23.59, abs=5e-3)
    assert plain_batch(dim=10, level=LEVEL) == 24
    batch = accelerated_batch(n=10_000, dim=10, level=LEVEL, smoothness=1.0, lipschitz=1.0, diameter=2.0)
    assert batch == pytest.approx(674.08, abs=5e-3)
    beta = envelope_smoothness(n=20_000, dim=10, level=LEVEL, lipschitz=1.0, diameter=2.0)
    assert beta == pytest.approx(44.78, abs=5e-3)
    batch = accelerated_batch(n=20_000, dim=10, level=LEVEL, smoothness=beta, lipschitz=1.0, diameter=2.0)
    assert round(batch) == 223
    assert 20_000 // 223 == 89


def test_a_batch_has_a_record_at_least_and_all_at_most() -> None:
    for level, smoothness, batch in ((1e-3, 1e-6, 10), (1e3, 1e6, 1)):
        found = accelerated_batch(
            n=10, dim=9, level=level, smoothness=smoothness, lipschitz=1.0, diameter=2.0
        )
        assert found == batch


def test_two_noises_are_one_of_root_two() -> None:
    for n, dim in ((10_000, 10), (300, 100)):
        twice = accelerated_batch(
            n=n, dim=dim, level=LEVEL, smoothness=3.0, lipschitz=1.0, diameter=2.0, noises=2
        )
        weaker = accelerated_batch(
            n=n, dim=dim, level=LEVEL / math.sqrt(2), smoothness=3.0, lipschitz=1.0, diameter=2.0
        )
        assert twice == pytest.approx(weaker)
        smooth = envelope_smoothness(n=n, dim=dim, level=LEVEL, lipschitz=1.0, diameter=2.0, noises=2)
        other = envelope_smoothness(n=n, dim=dim, level=LEVEL / math.sqrt(2), lipschitz=1.0, diameter=2.0)
        assert smooth == pytest.approx(other)


@pytest.mark.parametrize("n", [3000, 30_000, 300_000])
@pytest.mark.parametrize("dim", [3, 50])
def test_no_other_batch_has_half_the_bound(n: int, dim: int) -> None:
    """Of AC-SA with noise of 4 d L^2 / (mu m)^2, for smoothness where the privacy term counts."""

    def bound(batch: float) -> float:
        std = math.sqrt(1 / batch + 4 * dim / (LEVEL * batch) ** 2)
        return lan_bound(smoothness=1.0, noise_std=std, rounds=max(int(n / batch), 1), diameter=2.0)

    best = accelerated_batch(n=n, dim=dim, level=LEVEL, smoothness=1.0, lipschitz=1.0, diameter=2.0)
    assert bound(best) < 2 * min(bound(m) for m in np.geomspace(1, n, 200))


def test_more_rounds_of_gradient_descent_than_these_gain_nothing() -> None:
    n, dim = 1000, 50
    rounds = descent_rounds(n=n, dim=dim, level=LEVEL)
    assert rounds == math.ceil((LEVEL * n) ** 2 / (4 * dim))
    assert descent_rounds(n=100, dim=1, level=2.0) == 100

    def bound(t: int) -> float:
        return 2 * math.sqrt((1 + 4 * dim * t / (LEVEL * n) ** 2) / t)

    assert bound(rounds) < math.sqrt(2.1) * bound(100 * rounds)
    assert bound(rounds) < bound(rounds // 4)


def test_groups_grow_and_no_record_is_in_two() -> None:
    assert growing_groups(10_000) == (376, 752, 1505, 3010)
    for n in (4, 5, 16, 17, 300, 10**6):
        groups = growing_groups(n)
        assert len(groups) == max(1, math.ceil(math.log2(math.log2(n))))
        assert sum(groups) <= n
        assert all(1.5 * a <= b or a <= 3 for a, b in itertools.pairwise(groups))


@pytest.mark.parametrize("change", [{"level": 0.0}, {"dim": 0}, {"n": 0}, {"lipschitz": -1.0}, {"noises": 0}])
def test_what_is_out_of_range_is_refused(change: dict[str, float]) -> None:
    facts: dict[str, float] = {"n": 100, "dim": 5, "level": 1.0, "lipschitz": 1.0, "diameter": 1.0, **change}
    with pytest.raises(ParameterError):
        envelope_smoothness(**facts)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        accelerated_batch(**facts, smoothness=1.0)  # type: ignore[arg-type]
