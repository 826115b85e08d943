"""Numerical building blocks without data and without privacy claims."""

from tacit.numerics.alphabets import hadamard_blocks, subset_size
from tacit.numerics.arrays import Array, BoolArray, IntArray, as_floats, as_rows
from tacit.numerics.averages import (
    RunningAverage,
    stich_schedule,
    strongly_convex_log_weights,
    strongly_convex_schedule,
)
from tacit.numerics.clipping import NORM_SLACK, Norm, clip_box, clip_rows, row_norms
from tacit.numerics.composite import Composite, Domain
from tacit.numerics.entropy import binary_entropy, binary_entropy_inv
from tacit.numerics.hadamard import (
    MAX_TRANSFORM_DIM,
    fwht,
    hadamard_entries,
    hadamard_matrix,
    next_power_of_two,
)
from tacit.numerics.kashin import KashinFrame
from tacit.numerics.logistic import least_tolerance, logistic_minimum
from tacit.numerics.m_sequences import HIGHEST_DEGREE, m_sequence_support, primitive_taps
from tacit.numerics.moreau import moreau_absolute, moreau_hinge, moreau_pinball
from tacit.numerics.projections import (
    Projection,
    project_box,
    project_l2_ball,
    project_simplex,
)
from tacit.numerics.prox import (
    L1,
    Box,
    ElasticNet,
    GroupLasso,
    L1OverBall,
    L2Ball,
    Regularizer,
    Simplex,
    SquaredL2,
    Zero,
)
from tacit.numerics.records import settle
from tacit.numerics.rotation_radii import certified_radius, flat_radius
from tacit.numerics.rotations import (
    MAX_DENSE_DIM,
    CosineRotation,
    Encoder,
    OrthogonalRotation,
    RandomHadamard,
)
from tacit.numerics.row_sums import row_products, weighted_sum
from tacit.numerics.samplers import (
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)
from tacit.numerics.toeplitz import (
    inverse_column,
    participation_norm,
    prefix_sum_errors,
    square_root_column,
)

__all__ = [
    "HIGHEST_DEGREE",
    "L1",
    "MAX_DENSE_DIM",
    "MAX_TRANSFORM_DIM",
    "NORM_SLACK",
    "Array",
    "BoolArray",
    "Box",
    "Composite",
    "CosineRotation",
    "Domain",
    "ElasticNet",
    "Encoder",
    "GroupLasso",
    "IntArray",
    "KashinFrame",
    "L1OverBall",
    "L2Ball",
    "Norm",
    "OrthogonalRotation",
    "Projection",
    "RandomHadamard",
    "Regularizer",
    "RunningAverage",
    "Simplex",
    "SquaredL2",
    "Zero",
    "as_floats",
    "as_rows",
    "binary_entropy",
    "binary_entropy_inv",
    "certified_radius",
    "clip_box",
    "clip_rows",
    "draw_disjoint_order",
    "flat_radius",
    "fwht",
    "hadamard_blocks",
    "hadamard_entries",
    "hadamard_matrix",
    "inverse_column",
    "least_tolerance",
    "logistic_minimum",
    "m_sequence_support",
    "moreau_absolute",
    "moreau_hinge",
    "moreau_pinball",
    "next_power_of_two",
    "participation_norm",
    "prefix_sum_errors",
    "primitive_taps",
    "project_box",
    "project_l2_ball",
    "project_simplex",
    "row_norms",
    "row_products",
    "sample_fixed",
    "sample_poisson",
    "settle",
    "square_root_column",
    "stich_schedule",
    "strongly_convex_log_weights",
    "strongly_convex_schedule",
    "subset_size",
    "take_disjoint_batch",
    "weighted_sum",
]
