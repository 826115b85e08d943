"""The minimum of a regularised logistic loss, to a gradient that is known to be short, whatever the rows.

Labels are in the signs of the rows: row z = y x of features x and a label y in {-1, 1} has the loss
log(1 + e^-<w, z>). How long the computation takes, and whether it was easy, tells of the rows: nothing but
the minimum is returned, nothing is raised, and nothing warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from tacit.errors import check_positive
from tacit.numerics.arrays import Array

__all__ = ["least_tolerance", "logistic_minimum"]

_CURVED = 0.25
"""Largest second derivative of the loss in its prediction."""

_BLOCK = 1024  # rows that are added up at once; sums of blocks are added one by one
_UNIT = 2.0**-53
_STEPS = 20_000
"""Most Newton steps; after them come steps that are short, many, and proven to arrive. Weak penalties take
hundreds of the first kind, or billions of the second."""

_SHORTER = 1e-4
"""Share by which a Newton step must shorten a gradient, as is usual: where a long way without curvature lies
ahead, a step may be far too short for a quarter (Eisenstat and Walker 1996)."""


def logistic_minimum(rows: Array, *, strength: float, push: Array, tolerance: float) -> Array:
    """Minimise sum_i log(1 + e^-<w, z_i>) + strength |w|^2 / 2 + <push, w>.

    The gradient at the result is at most `tolerance` long in exact arithmetic, as long as that is at least
    `least_tolerance`: what is computed of it, plus a bound on its rounding, is held against it. Since the
    objective is `strength`-strongly convex, the result is at most tolerance / strength from the minimum.

    Args:
        rows: Shape (n, d), float64, of norm at most 1; any n, zero too. Rows of zeros change nothing.
        strength: Of the penalty, > 0.
        push: Shape (d,): slope of the linear term.
        tolerance: Largest norm of the gradient, > 0.

    Returns:
        Shape (d,).

    Example:
        >>> w = logistic_minimum(np.array([[1.0], [1.0]]), strength=1.0, push=np.zeros(1), tolerance=1e-9)
        >>> round(float(w[0]), 6)  # solves 2 / (1 + e^w) = w
        0.674832
    """
    check_positive("strength", strength)
    check_positive("tolerance", tolerance)
    rows = rows[rows.any(axis=1)]  # so that their number says nothing either
    with np.errstate(all="ignore"):
        return _minimum(rows, strength, push, tolerance)


def least_tolerance(n: int, dim: int, *, strength: float, push: float) -> float:
    """Return a tolerance that is reached on any n rows of that dimension, from public facts.

    At a minimum w, strength |w|^2 / 2 + <push, w> <= n log 2, the value at 0. That bounds |w|, on which the
    rounding of predictions depends. A factor of 8 is left to the steps, which round as well.

    Args:
        n: Most rows, >= 1.
        dim: d.
        strength: Of the penalty, > 0.
        push: Bound on the norm of the slope of the linear term.
    """
    reach = 2 * push / strength + math.sqrt(2 * n * math.log(2) / strength)
    return 8 * _rounding(n, dim, strength=strength, point=reach, push=push)


def _minimum(rows: Array, strength: float, push: Array, tolerance: float) -> Array:
    """Take Newton steps until the gradient is short, else steps of which every one shortens it."""
    n, dim = rows.shape
    size = float(np.linalg.norm(push))

    def gradient(w: Array) -> Array:
        return _slopes(rows, -special.expit(-(rows @ w))) + strength * w + push

    def arrived(w: Array, g: Array) -> bool:
        slack = _rounding(n, dim, strength=strength, point=float(np.linalg.norm(w)), push=size)
        return bool(_length(g) * (1 + (dim + 4) * _UNIT) + slack <= tolerance)

    w = np.zeros(dim)
    g = gradient(w)
    for _ in range(_STEPS):
        if arrived(w, g):
            return w
        found = _newton(rows, w, g, strength, gradient)
        if found is None:
            break
        w, g = found
    # The Hessian is between strength and n / 4 + strength: this step multiplies the gradient by a matrix
    # between 0 and 1 - strength / (n / 4 + strength), so that it gets as short as rounding allows.
    steepest = n * _CURVED + strength
    most = math.ceil(steepest / strength * max(math.log(max(_length(g), 1e-300) / tolerance), 1.0)) + 1
    for _ in range(most):
        if arrived(w, g):
            break
        w = w - g / steepest
        g = gradient(w)
    return w


def _newton(
    rows: Array, w: Array, g: Array, strength: float, gradient: Callable[[Array], Array]
) -> tuple[Array, Array] | None:
    """Return a point with a shorter gradient, and that gradient; None where rounding hides the way.

    The direction is the inexact Newton step of Dembo, Eisenstat and Steihaug (1982), along which the norm of
    the gradient of a strongly convex function falls.
    """
    odds = special.expit(-(rows @ w))
    weights = odds * (1 - odds)
    length = _length(g)
    direction = _conjugate(
        lambda p: _slopes(rows, weights * (rows @ p)) + strength * p, -g, min(0.1, math.sqrt(length))
    )
    step = 1.0
    while step > 1e-9:
        trial = w + step * direction
        there = gradient(trial)
        if _length(there) <= (1 - _SHORTER * step) * length:
            return trial, there
        step /= 2
    return None


def _conjugate(product: Callable[[Array], Array], right: Array, accuracy: float) -> Array:
    """Solve H p = right by conjugate gradients, to a residual of that share of its norm."""
    p = np.zeros_like(right)
    residual, along = right, right
    square = target = float(residual @ residual)
    target *= accuracy * accuracy
    for _ in range(10 * right.size + 50):
        if not square > target:
            break
        turned = product(along)
        step = square / float(along @ turned)
        p = p + step * along
        residual = residual - step * turned
        before, square = square, float(residual @ residual)
        along = residual + square / before * along
    return p


def _slopes(rows: Array, weights: Array) -> Array:
    """Return the sum of rows times weights, block by block."""
    total = np.zeros(rows.shape[1])
    for start in range(0, len(rows), _BLOCK):
        total += rows[start : start + _BLOCK].T @ weights[start : start + _BLOCK]
    return total


def _rounding(n: int, dim: int, *, strength: float, point: float, push: float) -> float:
    """Bound how far a computed gradient is from the exact one, in any order of summation within a block.

    With gamma_k = k u / (1 - k u) (Higham 2002, §3.1): a prediction errs by gamma_d |w|, which the loss turns
    into a quarter of it, beside 8 u for the slope itself; a sum of n slopes times rows of norm 1 errs by
    n gamma_h, where h is the number of additions on its longest path; the penalty, the linear term and adding
    them err by 4 u each.
    """

    def gamma(k: int) -> float:
        return k * _UNIT / (1 - k * _UNIT)

    path = min(_BLOCK, n) + -(-n // _BLOCK) + 2
    slope = _CURVED * gamma(dim + 2) * point + 8 * _UNIT
    return n * (slope + gamma(path) * (1 + slope)) + 4 * _UNIT * (strength * point + push + n)


def _length(g: Array) -> float:
    """Return the norm of a gradient; infinite where it is not a number, so that it is never accepted."""
    found = float(np.linalg.norm(g))
    return found if math.isfinite(found) else math.inf
