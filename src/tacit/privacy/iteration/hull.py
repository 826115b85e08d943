"""Privacy amplification by iteration: how much of a touch the noise after it hides.

Two runs of X_t = phi_t(X_{t-1}) + N(0, v_t I) on neighbouring data differ by at most s_t in step t and all
their maps are c_t-Lipschitz, c_t <= 1. Then the last iterate is mu-Gaussian-DP, where mu^2 is the least sum
of a_t^2 / v_t over the ways to absorb the shifts: the energy of a convex hull.

Source: Feldman, Mironov, Talwar and Thakurta (2018), arXiv:1808.06651; shifted interpolation by Bok, Su and
Altschuler (2024), arXiv:2403.00278; docs/theory/iteration.md, section 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive, check_probability
from tacit.privacy.curves import Array

__all__ = ["blocks_energy", "iteration_mu", "touch_energy"]

_LEAST_WIDTH = 1e-280
"""Noise below this counts as none: slopes and their squares stay finite, and less noise is never cheaper."""

_ROUND_UP = 1 + 1e-12
_CUTS = 12  # places looked at in each of three rounds, for the best epoch to cut a bounded run at


def iteration_mu(
    shifts: npt.ArrayLike,
    variances: npt.ArrayLike,
    contractions: npt.ArrayLike = 1.0,
    start: float = 0.0,
) -> float:
    """Return the Gaussian-DP level of the last iterate of a contractive noisy iteration.

    Args:
        shifts: s_t >= 0, by how much step t differs between neighbours; shape (T,) or a scalar.
        variances: v_t >= 0 of the noise per coordinate after step t; shape (T,) or a scalar.
        contractions: c_t in [0, 1], Lipschitz constant of step t for both neighbours; shape (T,) or a scalar.
        start: Distance of the two start points, in the unit of the shifts.

    Returns:
        mu, rounded up; exactly tight over all such iterations. Infinity where a shift has no noise at or
        after it. For shifts and standard deviations in units of one step's sensitivity and noise, mu^2 is
        the energy E of docs/theory/iteration.md, section 2.

    Raises:
        ParameterError: Shapes that do not fit, a negative or non-finite value, a contraction above 1.

    Example:
        >>> round(iteration_mu([1, 0, 0, 0], 1.0), 6)  # one touch, then hidden by four draws
        0.5
    """
    check_non_negative("start", start)
    s, v, c = (np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (shifts, variances, contractions))
    try:
        s, v, c = np.broadcast_arrays(s, v, c)
    except ValueError as error:
        raise ParameterError(
            f"shifts, variances and contractions must have one shape, got {s.shape}, {v.shape}, {c.shape}."
        ) from error
    if s.ndim != 1 or s.size == 0:
        raise ParameterError(f"shifts must be a vector of at least one step, got shape {s.shape}.")
    for name, values in (("shifts", s), ("variances", v), ("contractions", c)):
        if not np.all(np.isfinite(values) & (values >= 0)):
            raise ParameterError(f"{name} must be finite numbers >= 0.")
    if np.any(c > 1):
        raise ParameterError(
            f"contractions must be at most 1, got {float(c.max())!r}: a step that expands hides nothing."
        )
    return math.sqrt(_energy(s, v, c, float(start)))


def _energy(s: Array, v: Array, c: Array, start: float) -> float:
    """Return mu^2: the sum of (dS)^2 / d(tau) over the greatest convex minorant of the points (tau_t, S_t).

    Its slopes are the isotonic regression of the slopes dS / d(tau), weighted by d(tau).
    """
    # Backward weights: 1 / prod c would overflow, and only ratios of tau and S^2 matter.
    weight = np.append(np.cumprod(c[:0:-1])[::-1], 1.0)
    width, rise = v * weight**2, s * weight
    rise[0] += start * float(c[0]) * float(weight[0])
    noisy = np.flatnonzero(width > _LEAST_WIDTH)
    # A shift without noise of its own is absorbed with the next noise.
    total = np.cumsum(rise)
    if noisy.size == 0:
        return math.inf if total[-1] > 0 else 0.0
    if np.any(rise[noisy[-1] + 1 :] > 0):
        return math.inf
    width, rise = width[noisy], np.add.reduceat(rise, np.append(0, noisy[:-1] + 1))
    slope = scipy.optimize.isotonic_regression(rise / width, weights=width).x
    return float(np.sum(slope**2 * width)) * _ROUND_UP


def touch_energy(
    positions: Sequence[int],
    n: int,
    *,
    epoch_contraction: float = 1.0,
    diameter: float | None = None,
) -> float:
    """Return the energy of the last iterate when one record is touched at known positions.

    Args:
        positions: For every epoch the step that uses the record, 1..n, or 0 for none.
        n: Noisy steps per epoch.
        epoch_contraction: Lipschitz factor of the map between epochs, in (0, 1]: 1 / (1 + n eta lambda) for
            the prox of (lambda / 2) ||x||^2 with n steps of size eta.
        diameter: Largest distance of two points that an epoch may start from, in units of one step's
            sensitivity: 2 C / (eta Delta) for a ball of radius C. The first epoch starts from one known
            point. None: unbounded.

    Returns:
        mu^2 in units of (sensitivity / noise std)^2, rounded up; the run may be cut at every epoch start
        where `diameter` bounds the distance, and the best cut is taken.
    """
    check_count("n", n)
    check_probability("epoch_contraction", epoch_contraction, low_open=True)
    if diameter is not None:
        check_positive("diameter", diameter)
    at = np.asarray(positions, dtype=np.int64)
    if at.ndim != 1 or at.size == 0 or np.any((at < 0) | (at > n)):
        raise ParameterError(f"positions must be steps from 1 to {n}, or 0 for none, one for each epoch.")
    before = np.where(at > 0, at - 1, n).astype(np.float64)
    return blocks_energy(before, n - before, at > 0, epoch_contraction=epoch_contraction, diameter=diameter)


def blocks_energy(
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    touched: npt.ArrayLike,
    *,
    epoch_contraction: float,
    diameter: float | None,
) -> float:
    """Return the energy of the last iterate from the noise of each epoch, before and from its touch on.

    Args:
        before: Draws of noise before the step that uses the record, or in all; shape (K,).
        after: Draws from that step on; shape (K,).
        touched: Whether the epoch uses the record; shape (K,).
        epoch_contraction: As in `touch_energy`.
        diameter: As in `touch_energy`.
    """
    # Only the points just before a touch and the end can be vertices: two blocks of steps for each epoch.
    v = np.stack([np.asarray(before, np.float64), np.asarray(after, np.float64)], axis=1).ravel()
    used = np.asarray(touched, np.float64)
    s = np.stack([np.zeros(used.size), used], axis=1).ravel()
    c = np.ones(2 * used.size)
    c[2::2] = epoch_contraction
    energy = _energy(s, v, c, 0.0)
    if diameter is None:
        return energy

    def cut(length: int) -> float:
        # The bound is of the point after the prox, whose contraction is then spent.
        late = slice(2 * (used.size - length), None)
        fresh = c[late].copy()
        fresh[0] = 1.0
        return _energy(s[late], v[late], fresh, diameter)

    # Every cut is a proof, so it is enough to look where the best one seems to be.
    lengths = np.unique(np.geomspace(1, max(used.size - 1, 1), _CUTS).astype(np.int64)).tolist()
    for _ in range(3):
        lengths = [length for length in lengths if length < used.size]
        if not lengths:
            break
        found = [cut(length) for length in lengths]
        energy = min(energy, *found)
        best = int(np.argmin(found))
        around = lengths[max(best - 1, 0)], lengths[min(best + 1, len(lengths) - 1)]
        lengths = np.unique(np.linspace(*around, _CUTS).astype(np.int64)).tolist()
    return energy
