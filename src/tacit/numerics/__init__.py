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
from tacit.numerics.samplers import (
    DisjointBatches,
    disjoint_batch,
    disjoint_order,
    sample_fixed,
    sample_full,
    sample_poisson,
)

__all__ = [
    "L1",
    "NORM_SLACK",
    "Array",
    "BoolArray",
    "Box",
    "DisjointBatches",
    "ElasticNet",
    "GroupLasso",
    "IntArray",
    "L1OverBall",
    "L2Ball",
    "Norm",
    "Projection",
    "Regularizer",
    "RunningAverage",
    "Simplex",
    "SquaredL2",
    "Zero",
    "as_floats",
    "as_rows",
    "clip_box",
    "clip_factors",
    "clip_rows",
    "disjoint_batch",
    "disjoint_order",
    "moreau_absolute",
    "moreau_hinge",
    "moreau_pinball",
    "project_box",
    "project_l1_ball",
    "project_l2_ball",
    "project_simplex",
    "prox_gradient_mapping",
    "row_norms",
    "sample_fixed",
    "sample_full",
    "sample_poisson",
    "silo_sampling_variance",
    "strongly_convex_log_weights",
    "strongly_convex_schedule",
    "tail_average",
]
