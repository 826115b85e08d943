"""Noise on compressed vectors: what it is priced at, that maps move nothing further, and attacks on it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.audits import audit, audit_mean, mean_target
from tacit.compression import draw_maps
from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    Induced,
    LaplaceNoise,
    QuantizedMean,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Round,
    TopKMean,
    Wangni,
)
from tacit.numerics import Array
from tacit.privacy import (
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Neighbours,
    Relation,
    TrustModel,
)
from tacit.randomness import simulated

RELATIONS = [Neighbours(relation) for relation in Relation]


@pytest.mark.parametrize("neighbours", RELATIONS, ids=str)
@pytest.mark.parametrize("trust", TrustModel)
def test_the_price_is_that_of_noise_on_k_numbers(neighbours: Neighbours, trust: TrustModel) -> None:
    for kind in (RandK, RandKSpatial, RandProjSpatial):
        event = kind(dim=64, k=6, noise=GaussianNoise(1.5), neighbours=neighbours).event(9, trust)
        assert event == Gaussian(1.5, neighbours)
    laplace = RandK(dim=64, k=6, noise=LaplaceNoise(1.5), neighbours=neighbours)
    assert laplace.event(9, trust) == Laplace(1.5, 6, neighbours)


@pytest.mark.parametrize("neighbours", RELATIONS, ids=str)
def test_rounding_and_dither_are_priced(neighbours: Neighbours) -> None:
    sensitivity = 2 if neighbours.relation is Relation.REPLACE_ONE else 1
    for steps, n in ((1, 1), (7, 20), (2**16, 1000)):
        noise = DiscreteGaussianNoise(1.5, steps=steps)
        on_k = AdditiveMean(dim=6, noise=noise, neighbours=neighbours).event(n, TrustModel.LOCAL)
        assert isinstance(on_k, DiscreteGaussian)
        for mean in (
            RandK(dim=64, k=6, noise=noise, neighbours=neighbours),
            RandK(dim=60, k=6, rotate=True, noise=noise, neighbours=neighbours),
            RandProjSpatial(dim=60, k=6, noise=noise, neighbours=neighbours),
            RandProjSpatial(dim=60, k=6, projection="haar", noise=noise, neighbours=neighbours),
        ):
            event = mean.event(n, TrustModel.LOCAL)
            assert isinstance(event, DiscreteGaussian)
            assert event.std == on_k.std
            # At least that of an uncompressed vector of k numbers, and more by roundings of floats only.
            assert on_k.sensitivity <= event.sensitivity <= on_k.sensitivity * (1 + 1e-6)
            assert event.sensitivity >= sensitivity * steps + np.sqrt(6)


def sketches(mean: Any, row: Array, round: Round) -> Array:
    """The integers that leave when the noise is off."""
    (message,) = mean.encode(row[None], round, party=3, rng=simulated(0, "no noise"))
    return np.asarray(message.payload)


OFF = 2.0**-20
"""Steps of noise: anything but zero has a probability below exp(-2**19)."""


@pytest.mark.parametrize("steps", [1, 2, 9, 2**16])
@pytest.mark.parametrize(
    "mean",
    [
        RandK(dim=24, k=6),
        RandK(dim=24, k=6, rotate=True),
        RandProjSpatial(dim=24, k=6),
        RandProjSpatial(dim=24, k=24),
        RandProjSpatial(dim=24, k=6, projection="haar"),
        RandK(dim=24, k=6, noise=DiscreteLaplaceNoise(1.0)),
    ],
    ids=lambda mean: f"{type(mean).__name__} {mean.k} {mean.code.kind}",
)
def test_neighbours_are_no_further_apart_than_is_priced(mean: Any, steps: int) -> None:
    l1 = mean.noise.norm == "l1"
    quiet = msgspec.structs.replace(
        mean, noise=(DiscreteLaplaceNoise if l1 else DiscreteGaussianNoise)(OFF / steps, steps=steps)
    )
    allowed = quiet.event(1, TrustModel.LOCAL).sensitivity
    rng, reached = np.random.default_rng(0), 0.0
    for number in range(60):
        this_round = Round(n=1, radius=1.0, number=number, seed=2)
        maps = draw_maps(mean.code.kind, mean.code.map_dim, mean.k, [3], seed=2, round=number)
        # Opposite rows that the map keeps whole, beyond the ball.
        y = rng.normal(size=mean.k) * (rng.random(mean.k) < 0.5) if number else np.eye(mean.k)[0]
        back = maps.adjoint(y[None])
        row = (
            (mean.code.rotation(this_round).inverse(back) if mean.rotate else back)[0]
            if hasattr(mean, "rotate")
            else back[0]
        )
        row = 100 * row + (number % 2) * 1e-3 * rng.normal(size=24)
        gap = sketches(quiet, row, this_round) - sketches(quiet, -row, this_round)
        distance = float(np.abs(gap).sum() if l1 else np.linalg.norm(gap))
        assert distance <= allowed
        reached = max(reached, distance)
    # Power: a map that lengthened vectors by a tenth, or a forgotten factor of two, would be seen.
    assert reached > 0.92 * 2 * steps


@pytest.mark.parametrize("kind", [Wangni, TopKMean, Induced])
def test_noise_is_refused_where_indices_tell(kind: Any) -> None:
    for noise in (GaussianNoise(1.0), DiscreteGaussianNoise(1.0), LaplaceNoise(1.0)):
        with pytest.raises(ParameterError, match="noise on values would protect nothing"):
            kind(dim=8, k=2, noise=noise)
    with pytest.raises(ParameterError, match="noise must be NoNoise"):
        QuantizedMean(dim=8, levels=4, noise=GaussianNoise(1.0))  # type: ignore[arg-type]


# Attacks

DELTA, RUNS = 0.01, 1200


def seeing(kind: Any, noise: Any, **options: Any) -> Any:
    """An estimator whose map, in the round that is attacked, keeps the first coordinate."""
    return kind(dim=4, k=4, noise=noise, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda z: seeing(RandProjSpatial, GaussianNoise(z)),
        lambda z: seeing(RandKSpatial, DiscreteGaussianNoise(z, steps=64)),
        lambda z: seeing(RandK, GaussianNoise(z), neighbours=Neighbours(Relation.ADD_REMOVE)),
    ],
)
def test_attacks_stay_below_the_claim_and_find_half_the_noise(make: Any) -> None:
    rng = simulated(4, "audit")
    found = audit_mean(make(1.0), DELTA, runs=RUNS, confidence=1 - 1e-7, rng=rng)
    assert not found.refuted
    assert found.empirical_epsilon_lower > 0.2 * found.claimed_epsilon  # power
    target = mean_target(make(0.3))
    broken = audit(
        target.run, (make(1.0).event(2, TrustModel.LOCAL), DELTA), runs=RUNS, confidence=1 - 1e-7, rng=rng
    )
    assert broken.refuted


def test_one_coordinate_of_many_earns_nothing() -> None:
    # Whoever knows the public seed attacks a coordinate that is sent: the price holds, and is reached.
    number = next(
        t
        for t in range(99)
        if 0 in draw_maps("subsample", 8, 1, [0], seed=0, round=t).operator.rows  # type: ignore[attr-defined]
    )
    mean, facts = RandK(dim=8, k=1, noise=GaussianNoise(1.0)), Round(n=1, radius=1.0, number=number)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        row = np.eye(8)[:1] * (1 if present else -1)
        return np.array([mean.encode(row, facts, party=0, rng=rng)[0].payload[0] for _ in range(size)])

    found = audit(
        run, (mean.event(1, TrustModel.LOCAL), DELTA), runs=2000, confidence=1 - 1e-7, rng=simulated(5)
    )
    assert not found.refuted
    assert found.empirical_epsilon_lower > 0.35 * found.claimed_epsilon


def test_a_sum_in_single_precision_is_refused_under_noise_on_a_grid() -> None:
    """It loses more than the price covers."""
    this_round, rng = Round(n=4, radius=1.0), simulated(0, "sums")
    for noise in (DiscreteGaussianNoise(1.0), DiscreteLaplaceNoise(1.0)):
        mean = RandK(dim=8, k=4, noise=noise)
        mean.encode_sum(np.ones(8), rows=4, round=this_round, party=0, rng=rng)
        with pytest.raises(ParameterError, match="must be float64, got float32"):
            mean.encode_sum(np.ones(8, dtype=np.float32), rows=4, round=this_round, party=0, rng=rng)
