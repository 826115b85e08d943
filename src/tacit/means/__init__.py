"""Mean estimators: encode at the party, decode at the server."""

from tacit.means.adaptive import Induced, TopK, Wangni
from tacit.means.additive import AdditiveMean
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator, SumEncoder
from tacit.means.binary import SampledBinaryMean
from tacit.means.bitplanes import BitplaneMean
from tacit.means.columns import ColumnMeans, ColumnMeansQuery, column_means
from tacit.means.compressed import MeanMapPinv, PerPartyPinv, RandK, RandKSpatial, RandProjSpatial
from tacit.means.hadamard import HadamardMean
from tacit.means.hemisphere import HemisphereMean
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
from tacit.means.planes import plane_levels, plane_shares
from tacit.means.privunit import PrivUnitGMean, PrivUnitMean
from tacit.means.quantized import Quantized
from tacit.means.rotated import RotatedMean
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
    | BitplaneMean
    | HadamardMean
    | HemisphereMean
    | PrivUnitGMean
    | PrivUnitMean
    | RotatedMean
    | SampledBinaryMean
)
"""Every estimator that a plan can name."""

__all__ = [
    "HEADER_BYTES",
    "LARGEST_RADIUS",
    "SMALLEST_RADIUS",
    "WORST_CASE",
    "AdditiveMean",
    "AnyNoise",
    "BitplaneMean",
    "ColumnMeans",
    "ColumnMeansQuery",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Error",
    "Estimator",
    "Facts",
    "GaussianNoise",
    "HadamardMean",
    "HemisphereMean",
    "Induced",
    "LaplaceNoise",
    "MeanEstimator",
    "MeanMapPinv",
    "Message",
    "NoNoise",
    "Noise",
    "PerPartyPinv",
    "PrivUnitGMean",
    "PrivUnitMean",
    "Quantized",
    "RandK",
    "RandKSpatial",
    "RandProjSpatial",
    "RotatedMean",
    "Round",
    "SampledBinaryMean",
    "SumEncoder",
    "TopK",
    "Wangni",
    "column_means",
    "plane_levels",
    "plane_shares",
    "shuffle",
]
