"""Continuous noise, for simulation only.

A floating-point number from these functions shows in its low bits what it was added to (Mironov 2012), so it
is never deployed and carries no guarantee: noise that leaves is an integer from `sample_discrete_gaussian` or
`sample_discrete_laplace`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_non_negative
from tacit.numerics import Array

__all__ = ["sample_gamma_length", "sample_gaussian", "sample_laplace"]

_Float = type[np.float32] | type[np.float64]

_KINDS: dict[np.dtype[Any], _Float] = {np.dtype(kind): kind for kind in (np.float32, np.float64)}

_LARGEST: dict[_Float, float] = {kind: float(np.finfo(kind).max) / 100 for kind in (np.float32, np.float64)}
"""A draw may be many times the scale, and must not overflow."""


def _check(name: str, value: float, dtype: npt.DTypeLike) -> tuple[float, _Float]:
    """Refuse a scale that the type cannot hold, and any but the two types that the library computes with."""
    value = check_non_negative(name, value)
    kind: _Float | None = _KINDS.get(np.dtype(dtype))
    if kind is None:
        raise ParameterError(f"dtype must be float32 or float64, got {np.dtype(dtype)}.")
    if value > _LARGEST[kind]:
        raise ParameterError(
            f"{name} must be at most {_LARGEST[kind]:.3g} in {kind.__name__}, got {value!r}."
        )
    return value, kind


def sample_gaussian(
    std: float, size: int | tuple[int, ...], rng: np.random.Generator, *, dtype: npt.DTypeLike = np.float64
) -> Array:
    """Draw Gaussian noise of mean 0, for simulation only.

    Args:
        std: Standard deviation, finite, >= 0; 0 gives zeros.
        size: Shape of the result.
        rng: Source of the noise.
        dtype: float32 (about twice as fast) or float64.

    Returns:
        Shape `size`, of that dtype.

    Raises:
        ParameterError: `std` or `dtype` is not allowed.

    Example:
        >>> noise = sample_gaussian(2.0, (1, 2), np.random.default_rng(0), dtype=np.float32)
        >>> noise.shape, noise.dtype.name
        ((1, 2), 'float32')
    """
    std, kind = _check("std", std, dtype)
    out: Array = np.asarray(rng.standard_normal(size, dtype=kind))
    out *= kind(std)
    return out


def sample_laplace(
    scale: float, size: int | tuple[int, ...], rng: np.random.Generator, *, dtype: npt.DTypeLike = np.float64
) -> Array:
    """Draw Laplace noise of mean 0, density exp(-|x| / scale) / (2 scale), for simulation only.

    Args:
        scale: Finite, >= 0; 0 gives zeros. The variance is 2 scale**2.
        size: Shape of the result.
        rng: Source of the noise.
        dtype: float32 or float64.

    Returns:
        Shape `size`, of that dtype.

    Raises:
        ParameterError: `scale` or `dtype` is not allowed.

    Example:
        >>> sample_laplace(2.0, 3, np.random.default_rng(0)).shape
        (3,)
    """
    scale, kind = _check("scale", scale, dtype)
    # The difference of two exponentials is Laplace, in either precision; rng.laplace has float64 only.
    out: Array = np.asarray(rng.standard_exponential(size, dtype=kind))
    out -= rng.standard_exponential(size, dtype=kind)
    out *= kind(scale)
    return out


def sample_gamma_length(scale: float, dim: int, rng: np.random.Generator) -> Array:
    """Draw a vector of density proportional to exp(-|x| / scale), for simulation only.

    Args:
        scale: Finite, >= 0; 0 gives zeros. The length has the Gamma law of shape `dim`.
        dim: Number of coordinates, >= 1.
        rng: Source of the noise.

    Returns:
        Shape (dim,), float64.

    Raises:
        ParameterError: `scale` or `dim` is not allowed.

    Example:
        >>> sample_gamma_length(2.0, 3, np.random.default_rng(0)).shape
        (3,)
    """
    scale, _ = _check("scale", scale, np.float64)
    check_count("dim", dim)
    along = rng.standard_normal(dim)
    return np.asarray(along * (scale * rng.standard_gamma(dim) / np.linalg.norm(along)))
