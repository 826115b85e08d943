"""Means of rows that are clipped coordinate by coordinate, for the contract."""

from __future__ import annotations

from tacit.means import (
    CoordinateClippedMean,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    ShuffledCoordinateMean,
)
from tacit.privacy import TrustModel
from tests.contract.cases import Case, clip_to


def gaussian(dim: int, share: float) -> Estimator:
    return CoordinateClippedMean(dim=dim, noise=GaussianNoise(0.3 * share or 1e-30))


def counted(dim: int, share: float) -> Estimator:
    noise = DiscreteGaussianNoise(0.3 * share or 2.0**-20 / 2**14, steps=2**14)
    return CoordinateClippedMean(dim=dim, noise=noise, trust=TrustModel.CENTRAL)


def shuffled(dim: int, share: float) -> Estimator:
    return ShuffledCoordinateMean(dim=dim, noise_bits=max(1, round(16 * share)), resolution=8, n_min=2)


ESTIMATORS = [
    Case(name="coordinate-wise clip, gaussian, local", make=gaussian, clip=clip_to("cube"), trials=900),
    Case(
        name="coordinate-wise clip, discrete gaussian, central",
        make=counted,
        clip=clip_to("cube"),
        trials=900,
    ),
    Case(name="coordinate-wise binomial sum", make=shuffled, clip=clip_to("cube"), exact=False, trials=900),
]
