"""How often to play which action: approximate G-optimal designs on a small core set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from tacit.bandits.actions import check_actions, span_of
from tacit.errors import ParameterError, check_count, check_positive
from tacit.numerics import Array, IntArray

__all__ = ["Design", "g_optimal_design", "uniform_design"]

_DROPPED = 1e-12
"""A smaller weight is rounding: it would cost one pull of its action, and one draw of noise."""
_REFACTOR = 50
"""Rank-one updates between two fresh factorisations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """Weights on a few actions.

    Attributes:
        support: Shape (c,): which rows have weight, ascending.
        weights: Shape (c,): positive, adding up to 1.
        rank: Dimension m of the span of all actions.
        width: g = max over all actions a of a^T V^+ a, V = sum of weight b b^T; at least m.
        log_det: log det V on the span, which is largest where g is least.
        converged: Whether `width` came down to what was asked.
    """

    support: IntArray
    weights: Array
    rank: int
    width: float
    log_det: float
    converged: bool


def g_optimal_design(actions: npt.ArrayLike, tol: float = 2.0, *, max_iter: int = 20_000) -> Design:
    """Find weights for which no action's estimate is much worse than it must be.

    Frank-Wolfe steps on log det V with exact line search, towards the action of the largest
    a^T V^-1 a or away from the core action of the smallest, from m independent actions of equal weight.

    Args:
        actions: Shape (K, d), rows of norm at most 1. They need not span the space: m is the dimension of
            what they span.
        tol: Stop once g <= tol * m; >= 1. By Kiefer and Wolfowitz the least g is m.
        max_iter: Steps at most.

    Returns:
        The design; `converged` is False where `max_iter` came first.

    Raises:
        ParameterError: `actions` has no rows, a norm above 1, or zeros only; `tol` below 1.

    Cost:
        O(K m) a step.

    Example:
        >>> design = g_optimal_design([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], 1.001)
        >>> design.support.tolist(), design.weights.round(3).tolist(), round(design.width, 3)
        ([0, 1], [0.5, 0.5], 2.0)

    Reference:
        Girgis (2023), Lemma 6.3.2; Kiefer and Wolfowitz (1960); away steps: Todd (2016), Chapter 3.
    """
    rows = check_actions(actions)
    tol = check_positive("tol", tol)
    if tol < 1:
        raise ParameterError(f"tol must be at least 1, got {tol!r}: no design has g below the dimension.")
    check_count("max_iter", max_iter, low=0)
    span = span_of(rows)
    x = span.rows
    m = x.shape[1]
    weights = np.zeros(len(rows))
    # Pivots of the actions as they are: long ones come first.
    weights[scipy.linalg.qr(rows.T, mode="r", pivoting=True)[1][:m]] = 1 / m
    inverse, widths = _factor(x, weights)
    for step in range(max_iter):
        if widths.max() <= tol * m:
            break
        support = np.flatnonzero(weights)
        worst, best = int(np.argmax(widths)), int(support[np.argmin(widths[support])])
        if widths[worst] / m - 1 >= 1 - widths[best] / m:
            row, share = worst, (widths[worst] / m - 1) / (widths[worst] - 1)
        else:
            row, limit = best, -weights[best] / (1 - weights[best])
            share = (widths[best] / m - 1) / (widths[best] - 1) if widths[best] > 1 else -math.inf
            share = max(share, limit)
            if share == limit:
                weights[row] = 0.0  # away altogether; the rest is scaled below
        weights *= 1 - share
        if row == worst or weights[row] > 0:
            weights[row] += share
        if step % _REFACTOR == _REFACTOR - 1 or weights[row] == 0:
            weights[weights < _DROPPED] = 0.0
            weights /= weights.sum()
            inverse, widths = _factor(x, weights)
            continue
        # Sherman and Morrison: V' = (1 - s) V + s x x^T.
        u = inverse @ x[row]
        ratio = share / (1 - share)
        factor = ratio / (1 + ratio * (x[row] @ u))
        inverse = (inverse - factor * np.outer(u, u)) / (1 - share)
        widths = (widths - factor * (x @ u) ** 2) / (1 - share)
    return _finish(x, weights, span.log_scale, tol)


def uniform_design(actions: npt.ArrayLike) -> Design:
    """Return equal weights on all actions: what there is without a core set.

    Args:
        actions: Shape (K, d), rows of norm at most 1.

    Raises:
        ParameterError: As `g_optimal_design`.

    Example:
        >>> uniform_design([[1.0, 0.0], [0.0, 1.0]]).width
        2.0
    """
    rows = check_actions(actions)
    span = span_of(rows)
    return _finish(span.rows, np.full(len(rows), 1 / len(rows)), span.log_scale, math.inf)


def _factor(x: Array, weights: Array) -> tuple[Array, Array]:
    """Return V^-1 and x^T V^-1 x for every row."""
    support = np.flatnonzero(weights)
    core = x[support]
    inverse = np.linalg.inv((core * weights[support, None]).T @ core)
    return inverse, ((x @ inverse) * x).sum(axis=1)


def _finish(x: Array, weights: Array, log_scale: float, tol: float) -> Design:
    """Return a design without weights that are nothing but rounding, measured afresh."""
    support = np.flatnonzero(weights >= _DROPPED)
    kept = weights[support] / weights[support].sum()
    full = np.zeros(len(x))
    full[support] = kept
    _, widths = _factor(x, full)
    core = x[support]
    log_det = float(np.linalg.slogdet((core * kept[:, None]).T @ core)[1]) + 2 * log_scale
    width = max(float(widths.max()), float(x.shape[1]))
    return Design(
        support=support,
        weights=kept,
        rank=x.shape[1],
        width=width,
        log_det=log_det,
        converged=width <= tol * x.shape[1] * (1 + 1e-9),
    )
