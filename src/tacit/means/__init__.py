"""Mean estimators: encode at the party, decode at the server."""

from collections.abc import Mapping
from typing import get_args

from tacit.means.adaptive import Induced, TopKMean, Wangni
from tacit.means.additive import AdditiveMean
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator, ScaledEncoder, SumEncoder
from tacit.means.binary import SampledBinaryMean
from tacit.means.binomial import BinomialMean
from tacit.means.bitplanes import BitplaneMean
from tacit.means.columns import ColumnMeans, ColumnMeansQuery, column_means
from tacit.means.compressed import MeanMapPinv, PerPartyPinv, RandK, RandKSpatial, RandProjSpatial
from tacit.means.coordinate_clipped import CoordinateClippedMean
from tacit.means.counts import counts_of_shares
from tacit.means.gaussian_reports import ShuffledGaussianMean
from tacit.means.hadamard import HadamardMean
from tacit.means.heavy_tailed import BalancedMean, balanced_mean, error_under_moment
from tacit.means.hemisphere import HemisphereMean
from tacit.means.items import ItemMean
from tacit.means.local_laplace import LocalLaplaceMean
from tacit.means.lp import lp_mean
from tacit.means.message import HEADER_BYTES, LARGEST_RADIUS, SMALLEST_RADIUS, Message, Round
from tacit.means.modular import ModularSumMean, modular_width
from tacit.means.moments import (
    MomentBound,
    MomentKind,
    balanced_clip,
    clip_bias,
    clip_variance,
)
from tacit.means.multisets import multiset_bits, read_multiset, write_multiset
from tacit.means.noise import (
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    NoNoise,
)
from tacit.means.noisy_minimum import NoisyMinimum
from tacit.means.perturbed_minimum import GammaNoise, PerturbedMinimum
from tacit.means.planes import plane_levels, plane_shares
from tacit.means.privunit import PrivUnitGMean, PrivUnitMean
from tacit.means.public import (
    PRIVATE_RECORD,
    SemiPrivateMean,
    optimal_private_weight,
    public_mean,
    public_variance,
    throw_away_mean,
    weighted_private_mean,
)
from tacit.means.public_moments import block_moments, gradient_moment, phase_moment
from tacit.means.public_noise import (
    semi_local_mean,
    semi_private_empirical_mean,
    weighted_gaussian_mean,
    weighted_laplace_mean,
)
from tacit.means.quantized import QuantizedMean
from tacit.means.robust import CatoniSmoothedMean, MedianOfMeans, smoothed_influence
from tacit.means.rotated import RotatedMean
from tacit.means.shuffle import shuffle
from tacit.means.shuffled_coordinate import ShuffledCoordinateMean
from tacit.means.sign_vote import SignVoteMean
from tacit.means.traits import RandomizedRows, SumOfRows
from tacit.means.user_bins import Bins, subgaussian_tau, user_means
from tacit.means.user_level import (
    UserLevelScalarMean,
    UserLevelVectorMean,
    central_user_mean,
)

Estimator = (
    AdditiveMean
    | CoordinateClippedMean
    | ModularSumMean
    | BinomialMean
    | ShuffledCoordinateMean
    | ShuffledGaussianMean
    | RandK
    | RandKSpatial
    | RandProjSpatial
    | PerPartyPinv
    | MeanMapPinv
    | NoisyMinimum
    | PerturbedMinimum
    | Wangni
    | TopKMean
    | Induced
    | QuantizedMean
    | BitplaneMean
    | HadamardMean
    | HemisphereMean
    | ItemMean
    | LocalLaplaceMean
    | PrivUnitGMean
    | PrivUnitMean
    | RotatedMean
    | SampledBinaryMean
    | SignVoteMean
)
"""Every estimator that a plan can name."""

ESTIMATORS: Mapping[str, type[MeanEstimator]] = {
    str(one.__struct_config__.tag): one for one in get_args(Estimator)
}
"""The same by their tags."""

__all__ = [
    "ESTIMATORS",
    "HEADER_BYTES",
    "LARGEST_RADIUS",
    "PRIVATE_RECORD",
    "SMALLEST_RADIUS",
    "WORST_CASE",
    "AdditiveMean",
    "AnyNoise",
    "BalancedMean",
    "BinomialMean",
    "Bins",
    "BitplaneMean",
    "CatoniSmoothedMean",
    "ColumnMeans",
    "ColumnMeansQuery",
    "CoordinateClippedMean",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "Error",
    "Estimator",
    "Facts",
    "GammaNoise",
    "GaussianNoise",
    "HadamardMean",
    "HemisphereMean",
    "Induced",
    "ItemMean",
    "LaplaceNoise",
    "LocalLaplaceMean",
    "MeanEstimator",
    "MeanMapPinv",
    "MedianOfMeans",
    "Message",
    "ModularSumMean",
    "MomentBound",
    "MomentKind",
    "NoNoise",
    "Noise",
    "NoisyMinimum",
    "PerPartyPinv",
    "PerturbedMinimum",
    "PrivUnitGMean",
    "PrivUnitMean",
    "QuantizedMean",
    "RandK",
    "RandKSpatial",
    "RandProjSpatial",
    "RandomizedRows",
    "RotatedMean",
    "Round",
    "SampledBinaryMean",
    "ScaledEncoder",
    "SemiPrivateMean",
    "ShuffledCoordinateMean",
    "ShuffledGaussianMean",
    "SignVoteMean",
    "SumEncoder",
    "SumOfRows",
    "TopKMean",
    "UserLevelScalarMean",
    "UserLevelVectorMean",
    "Wangni",
    "balanced_clip",
    "balanced_mean",
    "block_moments",
    "central_user_mean",
    "clip_bias",
    "clip_variance",
    "column_means",
    "counts_of_shares",
    "error_under_moment",
    "gradient_moment",
    "lp_mean",
    "modular_width",
    "multiset_bits",
    "optimal_private_weight",
    "phase_moment",
    "plane_levels",
    "plane_shares",
    "public_mean",
    "public_variance",
    "read_multiset",
    "semi_local_mean",
    "semi_private_empirical_mean",
    "shuffle",
    "smoothed_influence",
    "subgaussian_tau",
    "throw_away_mean",
    "user_means",
    "weighted_gaussian_mean",
    "weighted_laplace_mean",
    "weighted_private_mean",
    "write_multiset",
]
