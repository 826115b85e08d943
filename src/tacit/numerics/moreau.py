"""Moreau envelopes of losses with a kink, in closed form (Lowy 2023, Lemma 105).

The envelope f_beta(w) = min_v f(v) + (beta / 2) ||w - v||^2 is convex, beta-smooth, as Lipschitz as f (L,
not the printed 2 L: docs/errata.md; clipping and noise stay at L) and lies between f - L^2 / (2 beta) and f.
A loss phi(<x, w>) of a linear model over all of R^d reduces to one dimension: with t = <x, w> and scale =
||x||^2, the functions here return f_beta(w), and the derivative s for which its gradient is s * x and its
minimiser v = w - s * x / beta.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import check_positive, check_probability
from tacit.numerics.arrays import Array, as_floats

__all__ = ["moreau_absolute", "moreau_hinge", "moreau_pinball"]


def moreau_hinge(t: npt.ArrayLike, beta: float, *, scale: npt.ArrayLike = 1.0) -> tuple[Array, Array]:
    """Envelope of the hinge loss max(0, 1 - t).

    Args:
        t: Margins y <x, w>, any shape.
        beta: Smoothness, finite, > 0.
        scale: ||x||^2 for the envelope in w, >= 0, broadcasts with `t`; 1 for the envelope in t.

    Returns:
        Value and derivative with respect to `t`, both of the shape of `t`; the derivative lies in [-1, 0].

    Raises:
        ParameterError: wrong dtype, or `beta` is out of range. Entries of `t` and `scale` may be
            private and are not checked.

    Example:
        >>> [part.tolist() for part in moreau_hinge([2.0, 0.75, -1.0], 2.0)]
        [[0.0, 0.0625, 1.75], [0.0, -0.5, -1.0]]
    """
    value, slope = _envelope(1 - as_floats("t", t), beta, scale=scale, low=0.0, high=1.0)
    return value + 0.0, 0.0 - slope  # no negative zeros


def moreau_absolute(t: npt.ArrayLike, beta: float, *, scale: npt.ArrayLike = 1.0) -> tuple[Array, Array]:
    """Envelope of the absolute loss |t|: the Huber function.

    Args:
        t: Residuals <x, w> - y, any shape.
        beta: Smoothness, finite, > 0.
        scale: ||x||^2 for the envelope in w, >= 0, broadcasts with `t`; 1 for the envelope in t.

    Returns:
        Value and derivative clip(beta t / scale, -1, 1), both of the shape of `t`.

    Raises:
        ParameterError: wrong dtype, or `beta` is out of range.

    Example:
        >>> [part.tolist() for part in moreau_absolute([-3.0, 0.25], 2.0)]
        [[2.75, 0.0625], [-1.0, 0.5]]
    """
    return _envelope(as_floats("t", t), beta, scale=scale, low=-1.0, high=1.0)


def moreau_pinball(
    t: npt.ArrayLike, beta: float, *, quantile: float, scale: npt.ArrayLike = 1.0
) -> tuple[Array, Array]:
    """Envelope of the pinball loss max(quantile t, (quantile - 1) t).

    Args:
        t: Residuals y - <x, w>, any shape; minimising the loss makes <x, w> the quantile of y.
        beta: Smoothness, finite, > 0.
        quantile: In [0, 1].
        scale: ||x||^2 for the envelope in w, >= 0, broadcasts with `t`; 1 for the envelope in t.

    Returns:
        Value and derivative clip(beta t / scale, quantile - 1, quantile), both of the shape of `t`.

    Raises:
        ParameterError: wrong dtype, or `beta` or `quantile` is out of range.

    Example:
        >>> [part.tolist() for part in moreau_pinball([4.0, -4.0], 2.0, quantile=0.75)]
        [[2.859375, 0.984375], [0.75, -0.25]]
    """
    check_probability("quantile", quantile)
    return _envelope(as_floats("t", t), beta, scale=scale, low=quantile - 1, high=quantile)


def _envelope(u: Array, beta: float, *, scale: npt.ArrayLike, low: float, high: float) -> tuple[Array, Array]:
    """Value and derivative of max_{low <= s <= high} s u - scale s^2 / (2 beta), the envelope of max s u."""
    check_positive("beta", beta)
    width = as_floats("scale", scale)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = np.clip(beta * u / width, low, high)
        # Without features (0 / 0) any slope is best; that of the loss at its kink is as good as any.
        slope = np.where((u == 0) & (width == 0), np.clip(0.0, low, high), best).astype(u.dtype)
        return (slope * u - width * slope**2 / (2 * beta)).astype(u.dtype), slope
