"""Boxes for rotated vectors: how large a coordinate gets, and what to clip it to.

Privacy rests on the clip to the box, whatever its radius; the radius decides between bias and noise.
"""

from __future__ import annotations

import math

from tacit.errors import check_count, check_positive, check_probability

__all__ = ["certified_radius", "flat_radius"]


def certified_radius(r2: float, *, n: int, coded_dim: int, beta: float, peak: float = 1.0) -> float:
    """A box that holds all rotated vectors, except with a small probability over the rotation.

    Coordinate j of U x is a sum of independent signs times u_jk x_k with u_jk^2 <= peak / D, hence
    sub-Gaussian with variance proxy peak * r2^2 / D (Hoeffding); for the uniformly random matrix its even
    moments are (2k - 1)!! / (D (D + 2) ... (D + 2k - 2)) r2^2k, at most those of a Gaussian of variance
    r2^2 / D, which gives the same tail. A union over n D coordinates does the rest.

    Args:
        r2: Bound on the norms of the vectors, > 0. Public.
        n: Number of vectors, >= 1.
        coded_dim: Number D of coordinates, >= 1.
        beta: Probability over the rotation that some coordinate leaves the box, in (0, 1). It holds only for
            vectors that do not depend on the rotation. Privacy does not depend on it.
        peak: D times the largest squared entry of the matrix: 1 for Hadamard, 2 for cosine.

    Returns:
        r2 * min(1, sqrt(2 peak ln(2 n D / beta) / D)).

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> round(certified_radius(1.0, n=1000, coded_dim=512, beta=0.01), 6)
        0.268418

    Reference:
        Derived here by Hoeffding's inequality and a union bound; Girgis (2023), Algorithm 3.6.1, has
        10 r2 sqrt(ln(d n / beta) / d) instead, which is above r2 for all but very long vectors.
    """
    check_positive("r2", r2)
    check_count("n", n)
    check_count("coded_dim", coded_dim)
    _check_beta(beta)
    check_positive("peak", peak)
    # Each logarithm apart: 2 n D / beta overflows for tiny beta.
    log = math.log(2) + math.log(n) + math.log(coded_dim) - math.log(beta)
    return r2 * min(1.0, math.sqrt(2 * peak * log / coded_dim))


def flat_radius(r2: float, *, kappa: float, coded_dim: int) -> float:
    """A box of kappa times the typical coordinate; what lies outside is clipped, so that means are biased.

    The noise of a mechanism for boxes grows with kappa^2. For random unit vectors in 300 dimensions clipping
    costs a squared error of 1.12e-2 a vector at kappa = 2, of 3.6e-4 at 3 and of 4.6e-6 at 4 (by
    quadrature); the errors of vectors that agree add up.

    Args:
        r2: Bound on the norms of the vectors, > 0. Public.
        kappa: Usually 2 to 4, > 0.
        coded_dim: Number D of coordinates, >= 1.

    Returns:
        r2 * min(1, kappa / sqrt(D)).

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> flat_radius(1.0, kappa=3.0, coded_dim=1024)
        0.09375
    """
    check_positive("r2", r2)
    check_positive("kappa", kappa)
    check_count("coded_dim", coded_dim)
    return r2 * min(1.0, kappa / math.sqrt(coded_dim))


def _check_beta(beta: float) -> None:
    check_probability("beta", beta, low_open=True, high_open=True)
