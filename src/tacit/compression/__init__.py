"""Sparsifiers, sketches, quantizers and the decoders of correlated means; no privacy claim is made here."""

from tacit.compression.correlation import correlation_ratio, estimate_correlation
from tacit.compression.decoders import Backend, decode_mean, decode_mean_map, decode_per_party
from tacit.compression.maps import MapKind, Maps, draw_maps, padded_dim
from tacit.compression.moments import SpectralMoments
from tacit.compression.quantizers import QSGD, Quantized, StochasticUniformQuantizer
from tacit.compression.rank import (
    RankDeficiency,
    rank_deficiency,
    subsample_full_rank_probability,
)
from tacit.compression.rotation import common_rotation
from tacit.compression.sparsifiers import (
    Sampling,
    WangniSparsifier,
    wangni_probabilities,
)
from tacit.compression.spectral import MomentMethod, beta_bar, spectral_moments
from tacit.compression.transforms import Linear, Transform, TransformName, advised_transform, transform

__all__ = [
    "QSGD",
    "Backend",
    "Linear",
    "MapKind",
    "Maps",
    "MomentMethod",
    "Quantized",
    "RankDeficiency",
    "Sampling",
    "SpectralMoments",
    "StochasticUniformQuantizer",
    "Transform",
    "TransformName",
    "WangniSparsifier",
    "advised_transform",
    "beta_bar",
    "common_rotation",
    "correlation_ratio",
    "decode_mean",
    "decode_mean_map",
    "decode_per_party",
    "draw_maps",
    "estimate_correlation",
    "padded_dim",
    "rank_deficiency",
    "spectral_moments",
    "subsample_full_rank_probability",
    "transform",
    "wangni_probabilities",
]
