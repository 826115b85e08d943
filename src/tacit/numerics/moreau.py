"""The Moreau envelope of the hinge loss, in closed form (Lowy 2023, Lemma 105).

The envelope f_beta(w) = min_v f(v) + (beta / 2) ||w - v||^2 is convex, beta-smooth, as Lipschitz as f (L,
not the printed 2 L: docs/errata.md; clipping and noise stay at L) and lies between f - L^2 / (2 beta) and f.
A loss phi(<x, w>) of a linear model over all of R^d reduces to one dimension: with t = <x, w> and scale =
||x||^2, what is here returns f_beta(w), and the derivative s for which its gradient is s * x and its
minimiser v = w - s * x / beta.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import check_positive
from tacit.numerics.arrays import Array, as_floats

__all__ = ["moreau_hinge"]


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
    check_positive("beta", beta)
    short, width = 1 - as_floats("t", t), as_floats("scale", scale)
    # The envelope of max_s s u over 0 <= s <= 1, u = 1 - t, is max_s s u - scale s^2 / (2 beta).
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = np.clip(beta * short / width, 0.0, 1.0)
        # Without features (0 / 0) any slope is best; that of the loss at its kink is as good as any.
        slope = np.where((short == 0) & (width == 0), 0.0, best).astype(short.dtype)
        value = (slope * short - width * slope**2 / (2 * beta)).astype(short.dtype)
    return value + 0.0, 0.0 - slope  # no negative zeros
