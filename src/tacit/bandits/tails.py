"""How far a weighted sum of Laplace noise strays: radii that hold with a stated probability."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_non_negative, check_probability
from tacit.numerics import Array, as_floats

__all__ = ["chernoff_radii", "laplace_sum_radius", "largest_radius"]

_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 36  # of golden section: a relative 3e-8 on the place, and less on the value


def laplace_sum_radius(
    coef: npt.ArrayLike,
    mult: npt.ArrayLike,
    scale: float,
    beta: float,
    *,
    method: str = "chernoff",
) -> float:
    """Return t such that a weighted sum of Laplace noise is t or more with probability at most beta.

    Args:
        coef: Shape (c,): weights l of the sum of l_i z_i.
        mult: Shape (c,): how many independent copies z_i stand behind each weight; or one number.
        scale: Scale s of every z_i, >= 0.
        beta: One-sided failure probability, in (0, 1).
        method: "chernoff", the least over lambda of (ln(1/beta) - sum ln(1 - (lambda s l_i)^2)) / lambda; or
            "closed", s c sqrt(8 ln(1/beta)) up to ln(1/beta) <= c^2 / l_max^2 and
            sqrt(2) s l_max (ln(1/beta) + c^2 / l_max^2) beyond, c^2 = sum l_i^2.

    Returns:
        t >= 0, and 0 for no noise. By Chernoff it is never above the closed form.

    Raises:
        ParameterError: Shapes that do not fit, numbers that are not finite, `beta` outside (0, 1).

    Guarantee:
        Proof, for Laplace noise and for discrete Laplace noise of the same parameter, whose moments are
        smaller (docs/theory/bandits.md, section 3). The bound printed in the reference is false: it takes a
        Laplace variable for a sub-Gaussian one of variance s^2.

    Example:
        >>> round(laplace_sum_radius([1.0], 4, 1.0, 0.0740257, method="closed"), 3)
        9.127
        >>> round(laplace_sum_radius([1.0], 4, 1.0, 0.40497), 3)
        4.0

    Reference:
        Closed form: Chan, Shi and Song (2011), Lemma 2.8; corrects Girgis (2023), Lemma E.1.2.
    """
    weights = np.abs(as_floats("coef", coef).astype(np.float64))
    if weights.ndim != 1 or not np.all(np.isfinite(weights)):
        raise ParameterError(f"coef must be finite numbers of shape (c,), got shape {weights.shape}.")
    copies = np.broadcast_to(as_floats("mult", mult).astype(np.float64), weights.shape)
    if not np.all(copies >= 0) or not np.all(np.isfinite(copies)):
        raise ParameterError("mult must be finite numbers >= 0.")
    scale = check_non_negative("scale", scale)
    log_beta = -math.log(check_probability("beta", beta, low_open=True, high_open=True))
    check_choice("method", method, ("chernoff", "closed"))
    if method == "chernoff":
        return float(chernoff_radii(weights[None, :], copies, scale, log_beta)[0])
    largest = float(weights[copies > 0].max(initial=0.0))
    if largest == 0 or scale == 0:
        return 0.0
    ratio = float(np.sum(copies * (weights / largest) ** 2))
    if log_beta <= ratio:
        return scale * largest * math.sqrt(8 * ratio * log_beta)
    return math.sqrt(2) * scale * largest * (log_beta + ratio)


def largest_radius(base: Array, coef: Array, mult: Array, scale: float, log_beta: float) -> float:
    """Return the largest of `base + chernoff_radii(coef, ...)`, with most rows looked at twice only.

    A bound at any lambda is above a row's radius, so that rows whose bound is below the radius of another one
    are out.

    Args:
        base: Shape (k,), >= 0.
        coef: Shape (k, c), >= 0.
        mult: Shape (c,), >= 0.
        scale: >= 0.
        log_beta: ln(1 / beta), > 0.
    """
    shares, largest, mult = _scaled(coef, mult)
    units = largest * scale
    first = int(np.argmax(base + units * _bound(np.full(1, 0.5), shares, mult, log_beta)))
    value, at = _minimum(shares[[first]], mult, log_beta)
    most = float(base[first] + units[first] * value[0])
    upper = base + units * _bound(at, shares, mult, log_beta)
    rest = np.flatnonzero(upper > most)
    if rest.size:
        values, _ = _minimum(shares[rest], mult, log_beta)
        most = max(most, float((base[rest] + units[rest] * values).max()))
    return most


def chernoff_radii(coef: Array, mult: Array, scale: float, log_beta: float) -> Array:
    """Return `laplace_sum_radius` by Chernoff for many sums over the same noise.

    Args:
        coef: Shape (k, c), >= 0.
        mult: Shape (c,), >= 0.
        scale: >= 0.
        log_beta: ln(1 / beta), > 0.

    Returns:
        Shape (k,). Every lambda gives a bound, so an inexact minimum is a bound still.
    """
    shares, largest, mult = _scaled(coef, mult)
    values, _ = _minimum(shares, mult, log_beta)
    return np.asarray(values * largest * scale)


def _scaled(coef: Array, mult: Array) -> tuple[Array, Array, Array]:
    """Return squared weights over the largest of each sum, these, and copies; no sums of 0 copies."""
    coef, mult = coef[:, mult > 0], mult[mult > 0]
    largest = coef.max(axis=1, initial=0.0)
    # Sums without noise are divided by 1 here, and by 0 nowhere.
    return (coef / np.where(largest > 0, largest, 1.0)[:, None]) ** 2, largest, mult


def _bound(x: Array, shares: Array, mult: Array, log_beta: float) -> Array:
    """Return the bounds in units of scale * largest at lambda = x / (scale * largest), x in (0, 1)."""
    found: Array = (log_beta - np.log1p(-(x[:, None] ** 2) * shares) @ mult) / x
    return found


def _minimum(shares: Array, mult: Array, log_beta: float) -> tuple[Array, Array]:
    """Return the least bound of each sum, and where it is; by golden section."""
    low, high = np.zeros(len(shares)), np.ones(len(shares))
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = (_bound(x, shares, mult, log_beta) for x in (left, right))
    for _ in range(_STEPS):
        # ln beta plus a convex function that is 0 at 0, over lambda: it falls, then rises.
        smaller = at_left <= at_right
        low, high = np.where(smaller, low, left), np.where(smaller, right, high)
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        fresh = _bound(np.where(smaller, left, right), shares, mult, log_beta)
        at_left, at_right = np.where(smaller, fresh, at_right), np.where(smaller, at_left, fresh)
    return np.minimum(at_left, at_right), np.where(at_left <= at_right, left, right)
