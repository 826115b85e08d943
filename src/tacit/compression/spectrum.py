"""Simulated spectra of S: what no closed form and no limit gives."""

from __future__ import annotations

import math

import numpy as np

from tacit.compression.maps import MapKind, Maps, draw_maps, padded_dim
from tacit.compression.moments import SpectralMoments
from tacit.compression.transforms import Transform, transform_values
from tacit.errors import ParameterError
from tacit.numerics import Array

__all__ = ["eigenvalues", "flat_moments", "rank_tolerance", "simulate_moments"]

_LARGEST = 8192
"""Largest matrix whose spectrum is computed: 512 MiB."""

_LEAST_GAP = 8
"""From this |n k - d'| on, inverse eigenvalues have a fourth moment, and their spread can be trusted."""

_EXCESS = {"gaussian": 1, "row_normalized_gaussian": -1, "count_sketch": -1}
"""A1 - 1 = (d + this) / k at T = 1, for maps whose rows are not orthonormal."""


def flat_moments(kind: MapKind, n: int, k: int, d: int) -> tuple[float, float, float, float]:
    """Compute (m, a1, a2, noise) at T = 1: the traces of S, sum_i P_i^2, S^2 and S, over d.

    Reference:
        E tr(P_i P_l) = d p^2 because the maps are independent and E P_i = p I.
    """
    p = k / d
    a1 = n * p**2 * (1 + (d + _EXCESS[kind]) / k) if kind in _EXCESS else n * p
    return n * p, a1, a1 + n * (n - 1) * p**2, n * p


def rank_tolerance(values: Array) -> float:
    """Return what separates zero from the smallest eigenvalues, which come down to 1e-10."""
    return 1e-12 * max(1.0, float(np.max(values)))


def eigenvalues(maps: Maps) -> Array:
    """Compute the min(n k, d') largest eigenvalues of S, increasing, in float64.

    Raises:
        ParameterError: min(n k, d') is above 8192.
    """
    _check_size(min(maps.n * maps.k, maps.padded_dim))
    if maps.n * maps.k <= maps.padded_dim:
        return np.linalg.eigvalsh(maps.gram())
    G = maps.matrices().reshape(-1, maps.padded_dim)
    return np.linalg.eigvalsh(G.T @ G)


def simulate_moments(
    n: int,
    k: int,
    dim: int,
    T: Transform,
    kind: MapKind,
    *,
    rel_tol: float,
    mse_tol: float,
    max_draws: int,
    seed: int,
) -> SpectralMoments:
    """Estimate the moments from draws of the maps.

    Every draw gives sums over a whole spectrum, which vary by 1e-3 only. They are regressed on the draw's
    tr(S^2), whose expectation is known (`flat_moments`): what is left varies several times less.

    Args:
        n: Number of parties.
        k: Numbers per party.
        dim: Coordinates of a vector.
        T: The transform.
        kind: Kind of maps.
        rel_tol: Stops when the standard error of m is below this share of m ...
        mse_tol: ... and those of the other moments, which decide the error, are below this share of them ...
        max_draws: ... or after that many draws.
        seed: Of the public streams that the maps are drawn from.

    Returns:
        Means and standard errors.

    Raises:
        ParameterError: T is not positive on a spectrum, or min(n k, d') is above 8192.
    """
    size = padded_dim(kind, dim)
    expected = flat_moments(kind, n, k, size)[2]
    sums: list[Array] = []
    target = min(max_draws, max(8, 4096 // size))
    while True:
        for draw in range(len(sums), target):
            maps = draw_maps(kind, dim, k, n, seed=seed, round=draw, purpose="spectrum")
            sums.append(_sums(maps, T) / size)
        mean, error = _regressed(np.array(sums), expected)
        settled = error[0] <= rel_tol * mean[0] and np.all(error[1:] <= mse_tol * mean[1:])
        if settled or target == max_draws:
            break
        target = min(max_draws, 2 * target)
    m, a1, a2, noise = mean.tolist()
    return SpectralMoments(
        n=n,
        k=k,
        dim=dim,
        padded_dim=size,
        m=m,
        a1=a1,
        a2=a2,
        noise=noise,
        m_stderr=float(error[0]),
        a1_stderr=float(error[1]),
        a2_stderr=float(error[2]),
        noise_stderr=float(error[3]),
        heavy=_heavy(n, k, size, T),
        draws=len(sums),
        method="mc",
    )


def _heavy(n: int, k: int, size: int, T: Transform) -> bool:
    """Whether eigenvalues near 0, which T does not keep away from 0, spoil the means of their inverses.

    The least positive eigenvalue of S behaves as that of a Wishart matrix: with D = |n k - d'| its density is
    about lambda^((D - 1) / 2) near 0 (Edelman 1988, SIAM J. Matrix Anal. Appl. 9(4)), so that 1 / lambda has
    a mean for D >= 2, a variance for D >= 4, and a variance of the square for D >= 8 only.
    """
    at_zero = float(transform_values(T, np.array([1e-9]))[0])
    return n > 1 and k < size and abs(n * k - size) < _LEAST_GAP and at_zero < 1e-6


def _sums(maps: Maps, T: Transform) -> Array:
    """Return the sums of m, a1, a2, noise and tr(S^2) over one spectrum."""
    n, k = maps.n, maps.k
    if maps.orthonormal:
        values = eigenvalues(maps)
        values = values[values > rank_tolerance(values)]
        share = values / transform_values(T, values)
        a1 = np.sum(share**2 / values)
        return np.array([share.sum(), a1, np.sum(share**2), a1, np.sum(values**2)])
    _check_size(n * k)
    K = maps.gram()
    values, vectors = np.linalg.eigh(K)
    positive = values > rank_tolerance(values)
    values, vectors = values[positive], vectors[:, positive]
    share = values / transform_values(T, values)
    # sum_i tr(P_i T(S)^{+2} P_i) = sum_i tr(K_ii [K T(K)^{+2}]_ii), as G f(S) G^T = K f(K).
    weighted = (vectors * (share**2 / values)).reshape(n, k, -1)
    blocks = weighted @ vectors.reshape(n, k, -1).transpose(0, 2, 1)
    own = K.reshape(n, k, n, k)[np.arange(n), :, np.arange(n)]
    a1 = np.sum(own * blocks)
    return np.array([share.sum(), a1, np.sum(share**2), np.sum(share**2 / values), np.sum(values**2)])


def _regressed(sums: Array, expected: float) -> tuple[Array, Array]:
    """Return means and standard errors of the first four columns, given the expectation of the fifth."""
    targets, control = sums[:, :4], sums[:, 4] - expected
    count = len(sums)
    centred, deviation = control - control.mean(), targets - targets.mean(axis=0)
    spread = float(centred @ centred)
    # Few draws say nothing about a slope; rounding alone is no spread.
    usable = count >= 8 and spread > 1e-20 * count * expected**2
    slope = centred @ deviation / spread if usable else np.zeros(4)
    residual = deviation - np.outer(centred, slope)
    freedom = count - (2 if usable else 1)
    error = np.sqrt((residual**2).sum(axis=0) / (freedom * count))
    if usable:
        # The error of the slope, at the distance of the control's mean from its expectation.
        error *= math.sqrt(1 + count * float(control.mean()) ** 2 / spread)
    return targets.mean(axis=0) - slope * control.mean(), error


def _check_size(size: int) -> None:
    """Refuse a matrix that would not fit."""
    if size > _LARGEST:
        raise ParameterError(
            f"simulated spectra need min(n * k, dim) <= {_LARGEST}, got {size}; for srht and haar, a linear "
            "transform needs no simulation."
        )
