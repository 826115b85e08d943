"""WORST_CASE is the worst: no number of parties and no rows of the ball err by more than `error(n)` says."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.compression import correlation_ratio
from tacit.means import (
    WORST_CASE,
    AdditiveMean,
    BinomialMean,
    BitplaneMean,
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    HadamardMean,
    HemisphereMean,
    MeanMapPinv,
    PerPartyPinv,
    PrivUnitMean,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Round,
    SampledBinaryMean,
    SignVoteMean,
)
from tacit.means.party_sums import party_sums
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tacit.randomness import simulated
from tests.contract.cases import Case
from tests.contract.mean_cases import ESTIMATORS
from tests.statistics import z_bound

SLACK = 1 + 1e-9


@pytest.mark.parametrize("case", ESTIMATORS, ids=str)
def test_no_number_of_parties_errs_by_more(case: Case) -> None:
    mean, n = case.make(2, 1), 3
    worst = mean.error(n)
    assert mean.error(n, WORST_CASE) == worst
    for parties in range(1, n + 1):
        one = mean.error(n, Facts(parties=parties))
        assert one.variance <= worst.variance * SLACK
        assert one.bias <= worst.bias * SLACK
    twice = mean.error(n, Facts(radius=2.0))
    assert twice.bias == pytest.approx(2 * worst.bias)
    if not isinstance(mean, SignVoteMean):
        assert twice.variance == pytest.approx(4 * worst.variance)


def test_with_local_noise_every_row_has_a_party() -> None:
    for noise in (GaussianNoise(1.5), DiscreteGaussianNoise(1.5, steps=64)):
        mean = AdditiveMean(dim=3, noise=noise)
        apart, one = (mean.error(50, Facts(parties=parties)) for parties in (50, 1))
        assert mean.error(50).variance == apart.variance == pytest.approx(50 * one.variance)
        assert mean.error(50).bias == apart.bias == pytest.approx(50 * one.bias)
        assert not mean.error(50).exact
        central = msgspec.structs.replace(mean, trust=TrustModel.CENTRAL)
        assert central.error(50).variance == pytest.approx(one.variance)


SKETCHES: list[Any] = [
    RandK(dim=2, k=1, value_bits=64),
    RandK(dim=4, k=3),
    RandKSpatial(dim=2, k=1),
    RandKSpatial(dim=4, k=3, transform="max"),
    RandProjSpatial(dim=4, k=2, transform="max", projection="subsample"),
    PerPartyPinv(dim=4, k=2),
    MeanMapPinv(dim=4, k=1),
]


def adversarial(n: int, dim: int) -> list[Array]:
    """Rows on the sphere: alike, opposite, orthogonal, cancelling, and many at random; and some inside."""
    e = np.eye(dim)
    rng = np.random.default_rng(3)
    sets = [np.tile(e[0], (n, 1)), np.array([e[0] * (-1) ** k for k in range(n)]), e[np.arange(n) % dim]]
    angles = 2 * np.pi * np.arange(n) / n
    sets.append(np.outer(np.cos(angles), e[0]) + np.outer(np.sin(angles), e[1]))
    for _ in range(60):
        rows = rng.normal(size=(n, dim))
        sets.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return [*sets, *(rows * rng.random((n, 1)) for rows in sets)]


@pytest.mark.parametrize("mean", SKETCHES, ids=lambda m: f"{type(m).__name__}, {m.dim}, {m.k}")
def test_no_rows_err_by_more_through_linear_maps(mean: Any) -> None:
    n, reached = 3, 0.0
    worst = mean.error(n)
    for rows in adversarial(n, mean.dim):
        for parties in range(1, n + 1):
            sums = party_sums(rows, parties)
            S1 = float(np.sum(sums**2))
            if S1 < 1e-12:
                continue
            facts = Facts(parties=parties, squared_norms=S1, correlation=correlation_ratio(sums))
            reached = max(reached, mean.error(n, facts).variance)
    assert 0.8 * worst.variance <= reached <= worst.variance * SLACK


def test_the_worst_rows_of_rand_k_do_err_that_much() -> None:
    mean, rows = SKETCHES[0], np.tile([1.0, 0.0], (3, 1))
    found = np.array(
        [
            np.sum((mean.estimate(rows, Round(n=3, radius=1.0, number=t), rng=simulated(0)) - rows[0]) ** 2)
            for t in range(400)
        ]
    )
    assert mean.error(3).variance == 1.0
    assert abs(found.mean() - 1.0) <= z_bound(1) * found.std() / 20 + 1e-9
    assert mean.error(3, Facts(parties=3)).variance == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "mean",
    [
        BinomialMean(dim=2, noise_bits=2, resolution=3),
        BitplaneMean(dim=2, samples=1, local_epsilons=(1.0, 0.5)),
        SampledBinaryMean(dim=2, samples=1, local_epsilon=1.0, decoder="horvitz"),
        HadamardMean(dim=2, local_epsilon=1.0),
        HemisphereMean(dim=2, local_epsilon=1.0),
        PrivUnitMean(dim=2, local_epsilon=1.0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_no_rows_err_by_more_when_they_are_randomised_one_by_one(mean: Any) -> None:
    n, grid = 3, np.linspace(-1, 1, 13)
    this_round = Round(n=n, radius=1.0)
    on = mean.variance if isinstance(mean, BinomialMean) else mean.variance_on
    points = [np.array([x, y]) for x in grid for y in grid]
    # Rows are randomised apart: n times the worst row is the worst.
    reached = max(on(np.tile(point, (n, 1)), this_round) for point in points)
    assert 0.5 * mean.error(n).variance <= reached <= mean.error(n).variance * SLACK
