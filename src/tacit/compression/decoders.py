"""Estimates of the mean from what n parties sent: the Rand-k, Rand-k-Spatial and Rand-Proj-Spatial family.

All of them are (beta / n) T(S)^+ sum_i G_i^T y_i with S = sum_i G_i^T G_i (Jiang 2025, Eq 2.5). Never is a
d x d matrix formed: as g(G^T G) G^T = G^T g(G G^T) for the stacked maps G, the estimate is (beta / n) G^T z
with z = T(K)^{-1} y, K = G G^T of size n k, and products with K are fast transforms.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lsmr

from tacit.compression.maps import Maps
from tacit.compression.moments import SpectralMoments
from tacit.compression.spectral import spectral_moments
from tacit.compression.spectrum import rank_tolerance
from tacit.compression.subsample import Subsample
from tacit.compression.transforms import Linear, Transform, check_transform, transform_values
from tacit.errors import ParameterError, TacitError, check_choice, check_positive
from tacit.numerics import Array

__all__ = ["Backend", "decode_mean", "decode_mean_map", "decode_per_party"]

Backend = Literal["auto", "dense", "cg", "eigh", "lsmr", "reference"]
"""How T(K)^{-1} y is computed; see `decode_mean`."""

_DENSE = 200
"""Up to this n k, Cholesky on K takes less time than conjugate gradients that stop early."""

_EIGH = 3000
"""Up to this n k or d, an eigendecomposition takes seconds."""

_ITERATIONS = 20_000

_EXACT = 1e-10
"""Relative residual of conjugate gradients where nothing is known of the error, or more is asked for."""

_STOPPED = 5e-4
"""Share of the root mean squared error that iterations may leave: less than 0.1 per cent of the square."""

_SINGLE = 1e-5
"""Above this relative residual, iterations are tried in single precision."""

_SURE = 5
"""Standard errors by which a simulated error is taken to be smaller."""


def decode_mean(
    maps: Maps,
    Y: npt.ArrayLike,
    transform: Transform,
    *,
    beta: float | None = None,
    backend: Backend = "auto",
) -> Array:
    """Estimate the mean of the parties' vectors.

    `subsample` maps with T = 1 give Rand-k, with another T Rand-k-Spatial; other maps Rand-Proj-Spatial. More
    numbers than coordinates (n k > d) are outside the regime of the published theorems; the estimate is
    unbiased and `SpectralMoments` gives its error there too.

    Args:
        maps: The maps of the parties that answered, n of them.
        Y: Shape (n, k), finite: what they sent.
        transform: T for these n parties; must not be chosen by looking at `Y`, or the estimate is biased.
        beta: The factor that removes the bias; None for `beta_bar` of this n, k, dim and T.
        backend: `auto` counts for `subsample`, and else takes the fastest of these; where it iterates and
            `beta` is None, it stops at the statistical error. `dense`: Cholesky on K, for linear T with
            rho <= 1. `cg`: conjugate gradients to a relative residual of 1e-10, for linear
            T with rho < 1. `lsmr`: iterative least squares, for rho = 1. `eigh`: eigenvectors of K, any T.
            `reference`: eigenvectors of the d x d matrix S, slow, as the definition says.

    Returns:
        Shape (dim,), float64, unbiased for maps drawn without looking at the vectors; where `auto` stops, but
        for at most 0.05 per cent of the root mean squared error, which grows by no more than that.

    Raises:
        ParameterError: Wrong shape, NaN or infinity, T not positive on the spectrum, or a `backend` that does
            not cover T.

    Cost:
        `subsample` O(n k + d). `cg` for `srht` 2 n transforms of length d' per iteration, 10 to 30 iterations
        for rho = 1/2 and a third of them for `auto`, and memory for about n d' bytes and n k numbers.

    Example:
        >>> from tacit.compression import Linear, decode_mean, draw_maps
        >>> X = np.ones((3, 64))
        >>> maps = draw_maps("srht", 64, 16, 3, seed=0, round=0)
        >>> estimate = decode_mean(maps, maps.encode(X), Linear(0.75))
        >>> bool(np.sum((estimate - 1) ** 2) < 64 * (64 / (3 * 16)))
        True

    Reference:
        Jiang (2025), Eq 2.1, 2.2, 2.5.
    """
    check_transform(transform, maps.n)
    check_choice("backend", backend, get_args(Backend))
    if beta is not None:
        check_positive("beta", beta)
    y = maps.messages(Y)
    n = maps.n
    residual = _EXACT
    if beta is None:
        moments = spectral_moments(n, maps.k, maps.dim, transform, projection=maps.kind)
        beta = moments.beta
        if backend == "auto":
            residual = _allowed_residual(moments, transform)
    if isinstance(maps.operator, Subsample) and backend == "auto":
        return beta / n * _counted(maps.operator, y, transform)
    return beta / n * _estimate(maps, y, transform, backend, residual)


def decode_per_party(maps: Maps, Y: npt.ArrayLike) -> Array:
    """Estimate the mean by decoding every party alone: (1/n) sum_i (d/k) G_i^+ y_i, an ablation.

    Equal to `decode_mean` with T = 1 for orthonormal rows. MSE = (d/k - 1) S1 / n^2 for all maps of full row
    rank whose row space has the same law in every direction.

    Args:
        maps: The maps of the n parties.
        Y: Shape (n, k), finite.

    Returns:
        Shape (dim,), float64.

    Raises:
        ParameterError: Wrong shape, NaN or infinity.

    Reference:
        Jiang (2025), Eq A.4.
    """
    y = maps.messages(Y)
    if not maps.orthonormal:
        G = maps.matrices()
        y = np.matmul(np.linalg.pinv(G @ G.transpose(0, 2, 1)), y[:, :, None])[:, :, 0]
    return maps.adjoint_sum(y) * (maps.padded_dim / (maps.k * maps.n))


def decode_mean_map(maps: Maps, mean_message: npt.ArrayLike) -> Array:
    """Estimate the mean from the mean message alone: (d/k) (mean of G_i)^+ (mean of y_i), an ablation.

    The server needs only the sum of the messages, but the error does not fall with n: for identical vectors
    it is (d/k - 1) ||x||^2, n times that of Rand-k.

    Args:
        maps: The maps of the n parties.
        mean_message: Shape (k,), finite: (1/n) sum_i y_i.

    Returns:
        Shape (dim,), float64.

    Raises:
        ParameterError: Wrong shape, NaN or infinity.

    Reference:
        Jiang (2025), Eq A.7.
    """
    y = np.asarray(mean_message, dtype=np.float64)
    if y.shape != (maps.k,) or not np.all(np.isfinite(y)):
        raise ParameterError(f"mean_message must be finite and of shape ({maps.k},), got shape {y.shape}.")
    solved: Array = np.linalg.pinv(maps.matrices().mean(axis=0)) @ y
    return (maps.padded_dim / maps.k) * solved[: maps.dim]


def _counted(operator: Subsample, y: Array, T: Transform) -> Array:
    """Return T(S)^+ sum_i G_i^T y_i where S is diagonal: the counts M_j."""
    counts = np.maximum(operator.counts, 1).astype(np.float64)  # where nobody sent, the sum is 0
    summed = operator.back_project(y)
    if isinstance(T, Linear) and T.rho == 0:
        return summed
    return np.asarray(summed / transform_values(T, counts))


def _allowed_residual(moments: SpectralMoments, T: Transform) -> float:
    """Return the relative residual at which iterations leave `_STOPPED` of the root mean squared error.

    A residual r of ((1 - rho) I + rho K) z = y leaves, in the estimate, at most
    (beta / n) ||r|| max_lambda sqrt(lambda) / T(lambda) = (beta / n) ||r|| / sqrt(4 rho (1 - rho)) for
    0 < rho < 1. Without noise E||y||^2 = (k / d') S1, and the error is at least f S1 / n^2, with f the least
    `normalized_mse` over all correlations. Noise of variance v per number adds n k v to the first and, for
    maps that it is allowed for, more than f d' v / n to the second, as f d' <= d A1. So ||r|| <= c ||y||
    leaves a mean square of at most (_STOPPED)^2 of the error's, whatever the vectors, for
    c = _STOPPED sqrt(f 4 rho (1 - rho) d' / k) / beta.
    """
    if not isinstance(T, Linear) or not 0 < T.rho < 1:
        return _EXACT
    # Both ends: the error is linear in the correlation.
    least = min(
        moments.normalized_mse(R) - _SURE * moments.normalized_mse_stderr(R) for R in (-1.0, moments.n - 1.0)
    )
    per_number = max(least, 0.0) * moments.padded_dim / moments.k
    return max(_EXACT, _STOPPED * math.sqrt(per_number * 4 * T.rho * (1 - T.rho)) / moments.beta)


def _estimate(maps: Maps, y: Array, T: Transform, backend: Backend, residual: float) -> Array:
    """Return T(S)^+ sum_i G_i^T y_i, shape (dim,); iterations stop at a relative residual."""
    if backend == "auto":
        if isinstance(T, Linear) and (T.rho == 0 or maps.n == 1) and maps.orthonormal:
            return maps.adjoint_sum(y)
        backend = _fastest(maps, T)
    if backend == "reference":
        return _reference(maps, y, T)
    if backend == "eigh":
        return maps.adjoint_sum(_by_eigenvectors(maps.gram(), y, T))
    if not isinstance(T, Linear) or T.rho > 1:
        raise ParameterError(f"backend {backend} needs a linear transform with rho <= 1; use eigh.")
    if backend == "dense":
        return maps.adjoint_sum(_by_cholesky(maps, y, T))
    if (backend == "cg") == (T.rho == 1):
        raise ParameterError(f"backend {backend} does not cover rho = {T.rho}; cg needs < 1, lsmr needs 1.")
    return _iterated(maps, y, T, residual) if backend == "cg" else _least_squares(maps, y)


def _fastest(maps: Maps, T: Transform) -> Backend:
    """Return the back end that `auto` means."""
    sent, size = maps.n * maps.k, maps.padded_dim
    if isinstance(T, Linear) and T.rho < 1:
        return "dense" if sent <= _DENSE else "cg"
    if sent > size and size <= _EIGH:
        return "reference"
    if isinstance(T, Linear) and T.rho == 1:
        return "dense" if sent <= _EIGH else "lsmr"
    return "eigh"


def _reference(maps: Maps, y: Array, T: Transform) -> Array:
    """Return the estimate by the definition (Jiang 2025, Eq 2.5)."""
    G = maps.matrices().reshape(-1, maps.padded_dim)
    summed = G.T @ y.ravel()
    return _by_eigenvectors(G.T @ G, summed, T)[: maps.dim]


def _by_eigenvectors(matrix: Array, y: Array, T: Transform) -> Array:
    """Return T(matrix)^+ y, zero on the null space."""
    values, vectors = np.linalg.eigh(matrix)
    positive = values > rank_tolerance(values)
    vectors = vectors[:, positive]
    solved = vectors @ ((vectors.T @ y.ravel()) / transform_values(T, values[positive]))
    return np.asarray(solved.reshape(y.shape))


def _by_cholesky(maps: Maps, y: Array, T: Linear) -> Array:
    """Return z with ((1 - rho) I + rho K) z = y; for a (nearly) singular K at rho = 1, K^+ y."""
    K = maps.gram()
    M = T.rho * K
    M.flat[:: len(M) + 1] += 1 - T.rho
    norm = float(np.abs(M).sum(axis=0).max())
    factor, failed = linalg.lapack.dpotrf(M, lower=1, clean=0, overwrite_a=1)
    if T.rho == 1 and (failed or linalg.lapack.dpocon(factor, norm, uplo="L")[0] < 1e-8):
        return _by_eigenvectors(K, y, T)
    if failed:
        raise _not_positive(T)
    return np.asarray(linalg.cho_solve((factor, True), y.ravel()).reshape(y.shape))


def _iterated(maps: Maps, y: Array, T: Linear, allowed: float) -> Array:
    """Return sum_i G_i^T z_i with a residual ||y - (1 - rho) z - rho K z|| of at most `allowed` ||y||.

    Single precision halves the time. What it loses shows in the residual, which is taken in double precision
    (Moler, 1967), from products of which one is the answer.
    """
    scale = float(np.max(np.abs(y), initial=0.0)) or 1.0  # squares neither overflow nor vanish
    y = y / scale
    if allowed > _SINGLE:
        z = _conjugate_gradients(maps, y.astype(np.float32), T, 0.9 * allowed).astype(np.float64)
        summed = maps.operator.back_project(z)
        left = y - (1 - T.rho) * z - T.rho * maps.operator.project(summed)
        if np.linalg.norm(left) <= allowed * np.linalg.norm(y):
            return scale * summed[: maps.dim]
    return scale * maps.adjoint_sum(_conjugate_gradients(maps, y, T, allowed))


def _conjugate_gradients(maps: Maps, y: Array, T: Linear, allowed: float) -> Array:
    """Return z with ((1 - rho) I + rho K) z = y (Hestenes and Stiefel, 1952), K by its products only.

    Works in the precision of y, where the maps do, until the residual that it keeps is `allowed` ||y||.
    """
    z, residual = np.zeros_like(y), y.copy()
    direction = residual
    squared = float(np.vdot(residual, residual))
    enough = allowed**2 * squared
    for _ in range(_ITERATIONS):
        if squared <= enough:
            return z
        step = maps.operator.project(maps.operator.back_project(direction))
        step *= T.rho
        step += (1 - T.rho) * direction
        curvature = float(np.vdot(direction, step))
        if curvature <= 0:
            raise _not_positive(T)
        z += squared / curvature * direction
        residual = residual - squared / curvature * step
        before, squared = squared, float(np.vdot(residual, residual))
        direction = residual + squared / before * direction
    raise TacitError(f"conjugate gradients did not converge for rho = {T.rho}; take rho <= 0.95.")


def _least_squares(maps: Maps, y: Array) -> Array:
    """Return G^+ y, the estimate for T(lambda) = lambda, by LSMR (Fong and Saunders, 2011)."""
    shape = (maps.n, maps.k)
    G = LinearOperator(
        (maps.n * maps.k, maps.padded_dim),
        matvec=lambda v: maps.operator.project(v.ravel()).ravel(),
        rmatvec=lambda u: maps.operator.back_project(u.reshape(shape)),
        dtype=np.float64,
    )
    solved, stopped, *_ = lsmr(G, y.ravel(), atol=1e-13, btol=1e-13, conlim=0, maxiter=_ITERATIONS)
    if stopped == 7:  # its code for too many iterations
        raise TacitError("least squares did not converge for rho = 1; take rho <= 0.95.")
    return np.asarray(solved[: maps.dim])


def _not_positive(T: Linear) -> ParameterError:
    """Return the error of a transform that is not positive on the spectrum of these maps."""
    return ParameterError(f"transform must be > 0 on the spectrum, is not for rho = {T.rho!r}.")
