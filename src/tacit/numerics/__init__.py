"""Numerical building blocks without data and without privacy claims."""

from tacit.numerics.arrays import Array, BoolArray, IntArray, as_floats, as_rows
from tacit.numerics.averages import (
    RunningAverage,
    silo_sampling_variance,
    strongly_convex_log_weights,
    strongly_convex_schedule,
    tail_average,
)
from tacit.numerics.clipping import NORM_SLACK, Norm, clip_box, clip_factors, clip_rows, row_norms
from tacit.numerics.hadamard import (
    MAX_TRANSFORM_DIM,
    fwht,
    hadamard_entries,
    hadamard_matrix,
    hadamard_row,
    next_power_of_two,
)
from tacit.numerics.kashin import KashinFrame, lyubarskii_vershynin
from tacit.numerics.moreau import moreau_absolute, moreau_hinge, moreau_pinball
from tacit.numerics.projections import (
    Projection,
    project_box,
    project_l1_ball,
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
    prox_gradient_mapping,
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
from tacit.numerics.samplers import (
    DisjointBatches,
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)

__all__ = [
    "L1",
    "MAX_DENSE_DIM",
    "MAX_TRANSFORM_DIM",
    "NORM_SLACK",
    "Array",
    "BoolArray",
    "Box",
    "CosineRotation",
    "DisjointBatches",
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
    "certified_radius",
    "clip_box",
    "clip_factors",
    "clip_rows",
    "draw_disjoint_order",
    "flat_radius",
    "fwht",
    "hadamard_entries",
    "hadamard_matrix",
    "hadamard_row",
    "lyubarskii_vershynin",
    "moreau_absolute",
    "moreau_hinge",
    "moreau_pinball",
    "next_power_of_two",
    "project_box",
    "project_l1_ball",
    "project_l2_ball",
    "project_simplex",
    "prox_gradient_mapping",
    "row_norms",
    "sample_fixed",
    "sample_poisson",
    "settle",
    "silo_sampling_variance",
    "strongly_convex_log_weights",
    "strongly_convex_schedule",
    "tail_average",
    "take_disjoint_batch",
]
