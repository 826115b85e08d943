"""Means of vectors in an l_p ball, by the estimator that predicts the least error."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import Facts
from tacit.means.bitplanes import BitplaneMean
from tacit.means.hadamard import HadamardMean
from tacit.means.rotated import RotatedMean
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["lp_mean"]


def lp_mean(
    p: float,
    *,
    dim: int,
    budget: PrivacyBudget,
    n: int,
    trust: TrustModel = TrustModel.LOCAL,
    honest_fraction: float = 1.0,
    n_min: int | None = None,
    planes: int = 1,
    samples: int | None = None,
) -> tuple[BitplaneMean | HadamardMean | RotatedMean, float]:
    """Pick an estimator for rows of an l_p ball.

    For p <= 2 the l_p ball lies in the l_2 ball of the same radius; for p >= 2, in that of d^(1/2 - 1/p)
    radii, and in the box of one radius. (Remark 3.4.1 of Girgis (2023) has the inclusion of the l_1 ball the
    wrong way round: its mechanism covers p = 1 only.)

    Args:
        p: >= 1; math.inf is the box.
        dim: Number d of coordinates.
        budget: For the observer of the trust model.
        n: Planned number of rows.
        trust: `local` or `shuffle`.
        honest_fraction: Behind a shuffler: fraction of the n rows whose parties are honest, in (0, 1].
        n_min: Behind a shuffler: rows below which it gives a round up, 1 to n; None: all n.
        planes: Number of bits of an entry.
        samples: Number of messages of a plane; None: ceil(epsilon) under local trust (near the optimum), all
            under shuffling.

    Returns:
        The calibrated estimator with the least predicted error, and the factor by which the radius of the l_p
        ball must be multiplied in its rounds.

    Raises:
        ParameterError: A value is out of its range.
        BudgetError: The budget cannot be met.

    Example:
        >>> mean, factor = lp_mean(math.inf, dim=4, budget=PrivacyBudget(2.0), n=1000)
        >>> type(mean).__name__, factor
        ('BitplaneMean', 1.0)

    Reference:
        Girgis (2023), Theorem 3.6.3 for the order; Remark 3.4.1 is wrong there (docs/errata.md).
    """
    if not p >= 1:
        raise ParameterError(f"p must be >= 1, got {p!r}.")
    check_count("dim", dim)

    def count(coded: int) -> int:
        if samples is not None:
            return min(samples, coded)
        return coded if trust is TrustModel.SHUFFLE else min(max(1, math.ceil(budget.epsilon)), coded)

    rotated = RotatedMean.calibrated(
        dim=dim,
        planes=planes,
        samples=count(1 << (dim - 1).bit_length()),
        budget=budget,
        n=n,
        trust=trust,
        honest_fraction=honest_fraction,
        n_min=n_min,
    )
    candidates: list[tuple[BitplaneMean | HadamardMean | RotatedMean, float]] = [
        (rotated, dim ** max(0.0, 0.5 - 1 / p))
    ]
    if p >= 2:
        # |x_c| <= ||x||_p for every p.
        box = BitplaneMean.calibrated(
            dim=dim,
            planes=planes,
            samples=count(dim),
            budget=budget,
            n=n,
            trust=trust,
            honest_fraction=honest_fraction,
            n_min=n_min,
        )
        candidates.append((box, 1.0))
    if p == 1:
        signs = HadamardMean.calibrated(
            dim=dim, budget=budget, n=n, trust=trust, honest_fraction=honest_fraction, n_min=n_min
        )
        candidates.append((signs, 1.0))
    errors = [mean.error(n, Facts(radius=factor)).mse for mean, factor in candidates]
    return candidates[int(np.argmin(errors))]
