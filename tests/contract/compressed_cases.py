"""Compressed means for the contract; their laws and attacks are in tests/means/test_compressed*.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.means import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Estimator,
    GaussianNoise,
    Induced,
    MeanMapPinv,
    NoNoise,
    PerPartyPinv,
    QuantizedMean,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    TopKMean,
    Wangni,
)
from tests.contract.cases import Case, Make, clip_to


def sketch(
    kind: Callable[..., Estimator], noise: Callable[[float], Any] | None = None, **options: Any
) -> Make:
    """An estimator that sends three quarters of the coordinates, with a share of the noise."""

    def make(dim: int, share: float) -> Estimator:
        added = noise(share) if noise and share else NoNoise()
        return kind(dim=dim, k=max(1, 3 * dim // 4), noise=added, **options)

    return make


def _case(name: str, make: Make, *, private: bool, **more: Any) -> Case:
    more = {"reached": 0.01, "trials": 1000, "fresh": True} | more
    return Case(name=name, make=make, exact=False, private=private, **more)


ESTIMATORS = [
    _case("rand-k", sketch(RandK), private=False),
    _case("rand-k, rotated", sketch(RandK, rotate=True), private=False),
    _case("rand-k, gaussian", sketch(RandK, lambda s: GaussianNoise(0.3 * s)), private=True),
    _case(
        "rand-k, discrete laplace",
        sketch(RandK, lambda s: DiscreteLaplaceNoise(0.2 * s, steps=64)),
        private=True,
        clip=clip_to("l1"),
    ),
    _case("rand-k-spatial", sketch(RandKSpatial), private=False),
    _case(
        "rand-k-spatial, discrete gaussian",
        sketch(RandKSpatial, lambda s: DiscreteGaussianNoise(0.3 * s)),
        private=True,
    ),
    _case("rand-proj-spatial", sketch(RandProjSpatial), private=False),
    _case(
        "rand-proj-spatial, discrete gaussian",
        sketch(RandProjSpatial, lambda s: DiscreteGaussianNoise(0.3 * s, steps=100)),
        private=True,
    ),
    _case("per-party pseudo-inverses", sketch(PerPartyPinv), private=False),
    _case(
        "pseudo-inverse of the mean map", sketch(MeanMapPinv, projection="haar"), private=False, trials=2000
    ),
    _case("wangni", sketch(Wangni), private=False, close_integers=2**10),
    _case("top-k", sketch(TopKMean), private=False, close_integers=2**10),
    _case("induced", sketch(Induced), private=False, close_integers=2**10),
    _case("quantized", lambda dim, _: QuantizedMean(dim=dim, levels=4), private=False),
    _case("quantized, rotated", lambda dim, _: QuantizedMean(dim=dim, levels=8, rotate=True), private=False),
    _case("qsgd", lambda dim, _: QuantizedMean(dim=dim, levels=3, scheme="qsgd"), private=False),
]
