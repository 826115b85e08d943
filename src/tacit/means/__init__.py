"""Mean estimators: encode at the party, decode at the server."""

from tacit.means.adaptive import Induced, TopK, Wangni
from tacit.means.additive import AdditiveMean
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator, SumEncoder
from tacit.means.columns import ColumnMeans, ColumnMeansQuery, column_means
from tacit.means.compressed import MeanMapPinv, PerPartyPinv, RandK, RandKSpatial, RandProjSpatial
from tacit.means.message import HEADER_BYTES, LARGEST_RADIUS, SMALLEST_RADIUS, Message, Round
from tacit.means.noise import (
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from tacit.means.quantized import Quantized
from tacit.means.shuffle import shuffle

Estimator = (
    AdditiveMean
    | RandK
    | RandKSpatial
    | RandProjSpatial
    | PerPartyPinv
    | MeanMapPinv
    | Wangni
    | TopK
    | Induced
    | Quantized
)
"""Every estimator that a plan can name; a union as more arrive."""

__all__ = [
    "HEADER_BYTES",
    "LARGEST_RADIUS",
    "SMALLEST_RADIUS",
    "WORST_CASE",
    "AdditiveMean",
    "AnyNoise",
    "ColumnMeans",
    "ColumnMeansQuery",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Error",
    "Estimator",
    "Facts",
    "GaussianNoise",
    "Induced",
    "LaplaceNoise",
    "MeanEstimator",
    "MeanMapPinv",
    "Message",
    "NoNoise",
    "Noise",
    "PerPartyPinv",
    "Quantized",
    "RandK",
    "RandKSpatial",
    "RandProjSpatial",
    "Round",
    "SumEncoder",
    "TopK",
    "Wangni",
    "column_means",
    "shuffle",
]
