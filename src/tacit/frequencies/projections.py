"""From unbiased estimates to frequencies: below-zero entries, and sums that are not 1."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice
from tacit.numerics import Array, as_floats, project_simplex

__all__ = ["PROJECTIONS", "project"]

PROJECTIONS: Final = {
    "none": "unbiased, as estimated",
    "sum": "the nearest numbers that add up to 1; unbiased",
    "clip": "negative entries become 0; the sum is above 1",
    "clip-normalize": "negative entries become 0, then all are divided by their sum",
    "simplex": "the nearest frequencies: least squares under both constraints (norm-sub)",
}
"""Methods of `project`, each with what it does."""


def project(estimates: npt.ArrayLike, method: str = "simplex") -> Array:
    """Make estimates consistent: post-processing, which costs no privacy.

    Args:
        estimates: Shape (..., k), unbiased.
        method: One of `PROJECTIONS`. The Euclidean projection "simplex" has the least error of them, and is
            what iterated subtraction (norm-sub) ends at; "clip-normalize" is what figures in the literature
            often show, and where frequencies are many it is several times worse.

    Returns:
        Shape (..., k), float64. A sum that clipping leaves at 0 becomes equal frequencies.

    Raises:
        ParameterError: An unknown method, or estimates that are not finite.

    Example:
        >>> project([0.7, 0.5, -0.2]).round(6).tolist()
        [0.6, 0.4, 0.0]
        >>> project([0.7, 0.5, -0.2], "clip-normalize").round(6).tolist()
        [0.583333, 0.416667, 0.0]

    Reference:
        Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li (2020), NDSS: norm-sub solves the least squares. Girgis
        (2023), section 7.7, whose figures need "clip-normalize".
    """
    check_choice("method", method, PROJECTIONS)
    found = as_floats("estimates", estimates).astype(np.float64)
    if found.ndim == 0 or found.shape[-1] == 0 or not np.isfinite(found).all():
        raise ParameterError("estimates must be finite numbers of shape (..., k), k >= 1.")
    if method == "none":
        return found
    if method == "simplex":
        return project_simplex(found)
    if method == "sum":
        return np.asarray(found + (1 - found.sum(axis=-1, keepdims=True)) / found.shape[-1])
    cut = np.maximum(found, 0.0)
    if method == "clip":
        return cut
    total = cut.sum(axis=-1, keepdims=True)
    return np.where(total > 0, cut / np.where(total > 0, total, 1.0), 1 / found.shape[-1])
