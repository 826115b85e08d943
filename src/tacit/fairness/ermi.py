"""Exponential Renyi mutual information: how much predictions tell of the sensitive attribute.

ERMI is the chi-square divergence between the joint law of prediction and attribute and the product of their
laws: 0 where they are independent, and at most min(m, k) - 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_count
from tacit.numerics import Array, IntArray

__all__ = [
    "ErmiBounds",
    "conditional_ermi",
    "ermi",
    "ermi_bounds",
    "ermi_dual_value",
    "ermi_optimal_dual",
    "joint_table",
    "joint_tables",
    "plug_in_bias",
]

_SUM_SLACK = 1e-9


def joint_table(predictions: npt.ArrayLike, codes: IntArray, groups: int) -> Array:
    """Return the joint shares of predicted class and group.

    Args:
        predictions: Probabilities of the classes, shape (n, m).
        codes: Group of each record, shape (n,); records at -1 are left out.
        groups: k.

    Returns:
        Shape (m, k), summing to 1; all zero where no record is counted.
    """
    return np.asarray(joint_tables(predictions, codes, groups, np.zeros(len(codes), dtype=np.int64), 1)[0])


def joint_tables(
    predictions: npt.ArrayLike, codes: IntArray, groups: int, conditions: IntArray, size: int
) -> Array:
    """Return the joint shares of predicted class and group within each condition.

    Args:
        predictions: Probabilities of the classes, shape (n, m).
        codes: Group of each record, shape (n,); records at -1 are left out.
        groups: k.
        conditions: Shape (n,), in 0..size-1; records at -1 are left out.
        size: Number of conditions.

    Returns:
        Shape (size, m, k); each table sums to 1, or is zero where no record is counted.
    """
    F = np.asarray(predictions, dtype=np.float64)
    counted = (codes >= 0) & (conditions >= 0)
    cells = conditions[counted] * groups + codes[counted]
    tables = np.stack(
        [np.bincount(cells, weights=column[counted], minlength=size * groups) for column in F.T]
    ).reshape(F.shape[1], size, groups)
    totals = np.bincount(conditions[counted], minlength=size).astype(np.float64)
    return np.asarray(np.moveaxis(tables, 1, 0) / np.maximum(totals, 1.0)[:, None, None])


def ermi(joint: npt.ArrayLike) -> float:
    """Return the exponential Renyi mutual information of a joint law.

    Args:
        joint: Shape (m, k), >= 0, summing to 1.

    Returns:
        sum p_jr^2 / (p_j p_r) - 1, in [0, min(m, k) - 1]. Classes and groups that do not occur add nothing.

    Raises:
        ParameterError: No joint law.

    Example:
        >>> round(ermi([[0.4, 0.2], [0.1, 0.3]]), 6)
        0.166667

    Reference:
        Lowy (2023), Definitions 64 and 73, Lemma 204.
    """
    p = _joint("joint", joint)
    return max(0.0, float(np.sum(_whitened(p) ** 2)) - 1.0)


def conditional_ermi(joints: npt.ArrayLike, shares: npt.ArrayLike, *, weights: str = "frequency") -> float:
    """Return the mean ERMI over conditions, such as over labels for equalized odds.

    Args:
        joints: Shape (z, m, k), one joint law for each condition.
        shares: How often each condition occurs, shape (z,), >= 0, not all zero.
        weights: "frequency", which weighs a condition by its share, or "uniform".

    Raises:
        ParameterError: No joint laws, shares of another shape, or unknown weights.

    Reference:
        Lowy (2023), Definition 73 for conditions Z.
    """
    check_choice("weights", weights, ["frequency", "uniform"])
    tables, q = np.asarray(joints, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    if tables.ndim != 3 or q.shape != (len(tables),) or not (q >= 0).all() or not 0 < q.sum() < math.inf:
        raise ParameterError(
            "joints must have shape (z, m, k) and shares (z,), not all zero, got "
            f"{tables.shape} and {q.shape}."
        )
    q = np.where(q > 0, 1.0, 0.0) if weights == "uniform" else q
    return float(sum(w * ermi(table) for w, table in zip(q / q.sum(), tables, strict=True) if w > 0))


def ermi_optimal_dual(joint: npt.ArrayLike) -> Array:
    """Return the unique W at which the dual value is the ERMI: P(S = r | prediction = j) / sqrt(p_r).

    Args:
        joint: Shape (m, k), >= 0, summing to 1.

    Returns:
        Shape (k, m), entries in [0, 1 / sqrt(p_r)], of norm at most sqrt(m / min p_r). Columns of classes
        and rows of groups that do not occur are zero.

    Raises:
        ParameterError: No joint law.

    Reference:
        Lowy (2023), Proposition 65 and Corollary 66, with its maximiser.
    """
    p = _joint("joint", joint)
    return _ratio(_ratio(p, p.sum(axis=1)[:, None]), np.sqrt(p.sum(axis=0))[None, :]).T


def ermi_dual_value(joint: npt.ArrayLike, W: npt.ArrayLike) -> float:
    """Return the value of the dual form at W, at most the ERMI and linear in the joint law.

    Args:
        joint: Shape (m, k), >= 0, summing to 1.
        W: Shape (k, m).

    Returns:
        -Tr(W P_Y W^T) + 2 Tr(W P_YS P_S^(-1/2)) - 1.

    Raises:
        ParameterError: No joint law, or W of another shape.

    Reference:
        Lowy (2023), Proposition 65.
    """
    p, dual = _joint("joint", joint), np.asarray(W, dtype=np.float64)
    if dual.shape != p.T.shape:
        raise ParameterError(f"W must have shape (k, m) = {p.T.shape}, got {dual.shape}.")
    spread = _ratio(p, np.sqrt(p.sum(axis=0))[None, :])
    return float(2 * np.sum(dual * spread.T) - np.sum(dual**2 * p.sum(axis=1)) - 1)


def plug_in_bias(classes: int, groups: int, batch: int) -> float:
    """Return the mean ERMI of a batch in which hard predictions and groups are independent.

    It is what a penalty computed inside batches sees although there is nothing to see; at a batch of one,
    ERMI is 0 whatever the law, and there is no signal at all.

    Args:
        classes: m >= 1.
        groups: k >= 1.
        batch: Number of records, >= 1.

    Returns:
        (m - 1)(k - 1) / (batch - 1), given that all classes and groups occur; 0 for one record.

    Raises:
        ParameterError: A number below 1.

    Example:
        >>> round(plug_in_bias(2, 2, 64), 7)
        0.015873

    Reference:
        The mean of Pearson's statistic under fixed margins: Haldane (1940).
    """
    m, k = check_count("classes", classes), check_count("groups", groups)
    b = check_count("batch", batch)
    return (m - 1) * (k - 1) / (b - 1) if b > 1 else 0.0


@dataclass(frozen=True)
class ErmiBounds:
    """What a joint law of small ERMI inherits under other notions.

    Attributes:
        ermi: Exponential Renyi mutual information D.
        mutual_information: Shannon's, in nats; at most ln(1 + D).
        log_ermi: ln(1 + D).
        renyi_correlation: Maximal correlation; its square is at most D, and D where there are two classes or
            two groups.
        l1: Sum of |p_jr - p_j p_r|, at most sqrt(D).
        l2: Square root of the sum of squares of the same, at most `l1`.
        parity: Bound on |p(j | r) - p(j)| of all classes and groups; exact for two of each.
        published_parity: The bound sqrt(D) / min p_r, for comparison.
    """

    ermi: float
    mutual_information: float
    log_ermi: float
    renyi_correlation: float
    l1: float
    l2: float
    parity: float
    published_parity: float


def ermi_bounds(joint: npt.ArrayLike) -> ErmiBounds:
    """Return the ERMI of a joint law beside other measures of dependence, each of which it bounds.

    Args:
        joint: Shape (m, k), >= 0, summing to 1.

    Raises:
        ParameterError: No joint law.

    Reference:
        Lowy (2023), section 5.2 and Appendix D.3. `parity` is sharper, by data processing to the table of one
        class against the rest and one group against the rest: sqrt(D p_j (1 - p_j)(1 - p_r) / p_r). Where the
        text says that ERMI is Renyi correlation for binary variables, it is its square.
    """
    p = _joint("joint", joint)
    classes, groups = p.sum(axis=1), p.sum(axis=0)
    product = np.outer(classes, groups)
    divergence = ermi(p)
    apart = np.abs(p - product)
    singular = np.linalg.svd(_whitened(p), compute_uv=False)
    inside = p > 0
    information = float(np.sum(p[inside] * np.log(p[inside] / product[inside])))
    here = groups > 0
    spread = np.outer(classes * (1 - classes), (1 - groups[here]) / groups[here])
    return ErmiBounds(
        ermi=divergence,
        mutual_information=max(0.0, information),
        log_ermi=math.log1p(divergence),
        renyi_correlation=float(min(1.0, singular[1])) if len(singular) > 1 else 0.0,
        l1=float(apart.sum()),
        l2=float(np.sqrt(np.sum(apart**2))),
        parity=math.sqrt(divergence * max(0.0, float(spread.max()))),
        published_parity=math.sqrt(divergence) / float(groups[here].min()),
    )


def _joint(name: str, joint: npt.ArrayLike) -> Array:
    """Return a joint law as float64; refuse what is none."""
    p = np.asarray(joint, dtype=np.float64)
    if p.ndim != 2 or p.size == 0 or not (p >= 0).all() or not abs(p.sum() - 1) <= _SUM_SLACK:
        raise ParameterError(
            f"{name} must be shares >= 0 of shape (classes, groups) with sum 1, got shape {p.shape}"
            f"{f' and sum {p.sum():.6g}' if p.size else ''}."
        )
    return p


def _whitened(p: Array) -> Array:
    """Return Q, p_jr / sqrt(p_j p_r): its largest singular value is 1."""
    return _ratio(p, np.sqrt(np.outer(p.sum(axis=1), p.sum(axis=0))))


def _ratio(top: Array, bottom: Array) -> Array:
    """Divide; what does not occur is zero."""
    return np.divide(
        top, bottom, out=np.zeros(np.broadcast_shapes(top.shape, bottom.shape)), where=bottom > 0
    )
