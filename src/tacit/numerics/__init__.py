"""Numerical building blocks without data and without privacy claims."""

from tacit.numerics.arrays import Array, BoolArray, IntArray, as_floats, as_rows
from tacit.numerics.clipping import NORM_SLACK, Norm, clip_box, clip_factors, clip_rows, row_norms
from tacit.numerics.samplers import (
    DisjointBatches,
    disjoint_batch,
    disjoint_order,
    sample_fixed,
    sample_full,
    sample_poisson,
)

__all__ = [
    "NORM_SLACK",
    "Array",
    "BoolArray",
    "DisjointBatches",
    "IntArray",
    "Norm",
    "as_floats",
    "as_rows",
    "clip_box",
    "clip_factors",
    "clip_rows",
    "disjoint_batch",
    "disjoint_order",
    "row_norms",
    "sample_fixed",
    "sample_full",
    "sample_poisson",
]
