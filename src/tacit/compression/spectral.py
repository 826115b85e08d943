"""The spectrum of S = sum_i G_i^T G_i decides the scale and the error of every spatial decoder.

    m  = (1/d) E sum lambda / T(lambda)         over eigenvalues lambda > 0 of S
    a1 = (1/d) E sum_i tr(P_i T(S)^{+2} P_i)    for projectors P_i = G_i^T G_i: (1/d) E sum lambda / T^2
    a2 = (1/d) E sum lambda^2 / T(lambda)^2

With beta = n / m the decoder is unbiased, and its error is exactly

    MSE = ((A1 - 1) S1 + (A2 - 1) S2) / n^2,   A1 = beta^2 a1 / n,   A2 = beta^2 (a2 - a1) / (n (n - 1)),

where S1 = sum_i ||x_i||^2 and S2 = sum_{i != l} <x_i, x_l>, whatever the vectors. No data
enter here. Derived here (Jiang 2025 simulates beta): signs that all maps share, and a permutation of all
coordinates, keep the law of the maps, so that E T(S)^+ P_i is a multiple of the identity.
"""

from __future__ import annotations

import functools
import math
from typing import Literal, get_args

import numpy as np

from tacit.compression.maps import MapKind, padded_dim
from tacit.compression.moments import SpectralMoments
from tacit.compression.spectrum import flat_moments, simulate_moments
from tacit.compression.transforms import Linear, Transform, check_transform, transform_values
from tacit.errors import ParameterError, check_choice, check_count, check_positive
from tacit.numerics import Array

__all__ = ["MomentMethod", "beta_bar", "spectral_moments"]

MomentMethod = Literal["auto", "closed", "free", "mc"]
"""How moments are computed: a closed form, the limit of free probability, or simulated spectra."""

_SMALL = 256
"""Up to this dimension the limit d -> infinity is not trusted."""

_CROWDED = 16
"""From this n k / d on, the limit gives beta to 1e-4 for d >= 8, and a draw of n maps takes long."""

_COSTLY = 2048
"""Above this min(n k, d), `auto` takes the limit if there is one: a draw takes seconds there."""


def spectral_moments(
    n: int,
    k: int,
    dim: int,
    transform: Transform,
    *,
    projection: MapKind = "srht",
    method: MomentMethod = "auto",
    rel_tol: float = 2e-4,
    mse_tol: float = math.inf,
    max_draws: int = 4096,
    seed: int = 0,
) -> SpectralMoments:
    """Compute the scale and the error of a spatial decoder; results are kept for the life of the process.

    Args:
        n: Number of parties that took part, >= 1.
        k: Numbers per party, from 1 to `dim` (for `srht`, to the next power of two).
        dim: Coordinates of a vector, >= 1.
        transform: T. A function that is not `Linear` is recognised by its identity.
        projection: Kind of maps.
        method: `closed`: T = 1, `subsample`, one party, k = d, or n = 2 and k = 1 with `srht`. `free`: the
            limit d -> infinity, for `srht` and `haar` with a linear T, rho <= 1; relative error of beta below
            7e-4 at d = 64 and 3e-4 from d = 512. `mc`: simulated spectra. `auto`: closed where there is one;
            else the limit for n k >= 16 d >= 128; else simulation for d <= 256, for other maps and
            transforms, and for rho >= 0.95 with n k > d / 2; else the limit.
        rel_tol: Simulation stops when the standard error of m falls below this share of it; > 0.
        mse_tol: ... and the standard errors of a1, a2 and noise below this share of them; > 0. Decoders need
            only m, predictions of their errors the others, whose tails may be heavy.
        max_draws: ... or after that many spectra, >= 2.
        seed: Of the simulation.

    Returns:
        The moments, with the standard errors of what was simulated.

    Raises:
        ParameterError: An argument is out of range, T is not positive where it must be, or `method` does not
            cover the case.

    Cost:
        `closed` O(n); `free` O(1); `mc` O(min(n k, d)^3) per draw.

    Example:
        >>> moments = spectral_moments(10, 102, 1024, Linear(5 / 9))
        >>> round(moments.beta, 5), moments.method
        (13.02569, 'free')

    Reference:
        Derived above; the cases T(m) = m and T = 1 are Jiang (2025), Theorems 2.4.3 and 2.4.4.
    """
    check_count("n", n)
    check_count("dim", dim)
    check_choice("projection", projection, get_args(MapKind))
    check_count("k", k, high=padded_dim(projection, dim))
    check_choice("method", method, get_args(MomentMethod))
    check_positive("rel_tol", rel_tol)
    if not mse_tol > 0:
        raise ParameterError(f"mse_tol must be > 0, got {mse_tol!r}.")
    check_count("max_draws", max_draws, low=2)
    check_count("seed", seed, low=0)
    check_transform(transform, n)
    return _moments(n, k, dim, transform, projection, method, rel_tol, mse_tol, max_draws, seed)


def beta_bar(
    n: int,
    k: int,
    dim: int,
    transform: Transform,
    *,
    projection: MapKind = "srht",
    method: MomentMethod = "auto",
) -> float:
    """Compute the factor that makes a spatial decoder unbiased: beta = n d / E[sum lambda / T(lambda)].

    Args:
        n: Number of parties that took part; recompute when some drop out.
        k: Numbers per party.
        dim: Coordinates of a vector.
        transform: T.
        projection: Kind of maps.
        method: As for `spectral_moments`, which also gives the standard error.

    Raises:
        ParameterError: As for `spectral_moments`.

    Example:
        >>> beta_bar(2, 1, 4, Linear(1.0), projection="subsample")
        4.571428571428571

    Reference:
        n over `m` of `spectral_moments`: derived at the top of `tacit.compression.spectral`.
    """
    return spectral_moments(n, k, dim, transform, projection=projection, method=method).beta


@functools.lru_cache(maxsize=1024)
def _moments(
    n: int,
    k: int,
    dim: int,
    T: Transform,
    kind: MapKind,
    method: MomentMethod,
    rel_tol: float,
    mse_tol: float,
    max_draws: int,
    seed: int,
) -> SpectralMoments:
    """Return the moments by the method that applies."""
    size = padded_dim(kind, dim)
    if method in ("auto", "closed"):
        sums = _closed(n, k, size, T, kind)
        if sums is not None:
            return _pack(n, k, dim, size, sums, "closed")
    if method == "closed":
        raise ParameterError(
            f"method closed has no form for {kind} with n = {n}, k = {k} and this transform."
        )
    p = k / size
    limit = isinstance(T, Linear) and T.rho <= 1 and kind in ("srht", "haar")
    if method == "free" and not limit:
        raise ParameterError("method free needs srht or haar and a linear transform with rho <= 1.")
    # At rho = 1 with n k near d, small eigenvalues count, and those of a finite d are not those of the limit.
    easy = size > _SMALL and isinstance(T, Linear) and (abs(T.rho) < 0.95 or n * p <= 0.5)
    # Many parties leave a narrow spectrum around n p, and its variance in a finite d is that of the limit.
    easy = easy or (n * p >= _CROWDED and size >= 8 and isinstance(T, Linear) and T.rho >= 0)
    if limit and (method == "free" or (method == "auto" and (easy or min(n * k, size) > _COSTLY))):
        assert isinstance(T, Linear)  # noqa: S101 - checked above; tells the type checker
        return _pack(n, k, dim, size, _free(n, p, T.rho), "free")
    return simulate_moments(
        n, k, dim, T, kind, rel_tol=rel_tol, mse_tol=mse_tol, max_draws=max_draws, seed=seed
    )


def _pack(n: int, k: int, dim: int, size: int, sums: tuple[float, ...], method: str) -> SpectralMoments:
    """Return moments that carry no error of simulation."""
    m, a1, a2, noise = sums
    return SpectralMoments(n=n, k=k, dim=dim, padded_dim=size, m=m, a1=a1, a2=a2, noise=noise, method=method)


def _closed(n: int, k: int, d: int, T: Transform, kind: MapKind) -> tuple[float, float, float, float] | None:
    """Return (m, a1, a2, noise) where a closed form is known."""
    if isinstance(T, Linear) and T.rho == 0:
        return flat_moments(kind, n, k, d)
    if kind == "subsample":
        return _binomial(n, k / d, T)
    if kind in ("srht", "haar") and (n == 1 or k == d):
        # S is n times the identity, or one projector.
        count, weight = (k / d, 1.0) if n == 1 else (1.0, float(n))
        return _weighted(np.array([weight]), np.array([count]), T)
    if kind == "srht" and n == 2 and k == 1:
        # Two rows of length 1 with inner product c = (2 j - d) / d, j ~ Bin(d, 1/2): lambda = 1 +- c.
        from scipy import stats  # half a second that most commands can do without

        j = np.arange(d + 1)
        c = (2 * j - d) / d
        prob = np.exp(stats.binom.logpmf(j, d, 0.5)) / d
        values, weights = np.concatenate([1 + c, 1 - c]), np.concatenate([prob, prob])
        return _weighted(values[values > 0], weights[values > 0], T)
    return None


def _weighted(values: Array, weights: Array, T: Transform) -> tuple[float, float, float, float]:
    """Return the moments of projectors from a discrete spectrum; `weights` are multiplicities over d."""
    share = values / transform_values(T, values)
    a1 = float(weights @ (share**2 / values))
    return float(weights @ share), a1, float(weights @ share**2), a1


def _binomial(n: int, p: float, T: Transform) -> tuple[float, float, float, float]:
    """Return the moments of subsampling: S is diagonal, with counts M_j ~ Bin(n, p).

    m = n p E[1 / T(1 + B)], a1 = n p E[1 / T(1 + B)^2], a2 - a1 = n (n - 1) p^2 E[1 / T(2 + B')^2] with
    B ~ Bin(n - 1, p), B' ~ Bin(n - 2, p).
    """
    from scipy import stats  # half a second that most commands can do without

    inverse = 1 / transform_values(T, np.arange(1.0, n + 1))
    one = stats.binom.pmf(np.arange(n), n - 1, p)
    m, a1 = n * p * float(one @ inverse), n * p * float(one @ inverse**2)
    if n == 1:
        return m, a1, a1, a1
    two = stats.binom.pmf(np.arange(n - 1), n - 2, p)
    return m, a1, a1 + n * (n - 1) * p**2 * float(two @ inverse[1:] ** 2), a1


def _free(n: int, p: float, rho: float) -> tuple[float, float, float, float]:
    """Return the moments of n free projections of trace p, for T = 1 + rho (lambda - 1).

    v = integral of 1 / (lambda + a), a = (1 - rho) / rho, over the n-fold free convolution of the law of one
    projection (Voiculescu 1986) solves a (a + n) v^2 + (n^2 p + (n - 2) a - n) v = n - 1. With
    1 - a v = rho m and after division by a^2 this becomes

        m = 2 n p / (c + s),   c = 1 + n p rho,   s^2 = c^2 - 4 p rho (1 + rho (n - 1)),

    which holds for every rho <= 1, zero and negative ones too, and cancels nowhere. As dm/drho = a1 - a2
    and m = (1 - rho) a1 + rho a2, the other moments are a1 = m + rho m' and a2 = m - (1 - rho) m'.
    """
    c = 1 + n * p * rho
    s = math.sqrt(max(c**2 - 4 * p * rho * (1 + rho * (n - 1)), 0.0))
    if s == 0:
        raise ParameterError("method free diverges for rho = 1 at n k = d; use mc.")
    m = 2 * n * p / (c + s)
    slope = (c * n * p - 2 * p * (1 + 2 * rho * (n - 1))) / s
    derivative = -m * (n * p + slope) / (c + s)
    a1 = m + rho * derivative
    return m, a1, m - (1 - rho) * derivative, a1
