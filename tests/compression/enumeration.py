"""All maps of small dimension, one by one: what expectations are exactly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from tacit.numerics import Array


def srht_maps(d: int, k: int) -> Array:
    """Return every SRHT map, shape (2^d C(d, k), k, d), from the definition."""
    H = np.array([[(-1.0) ** (a & b).bit_count() for b in range(d)] for a in range(d)])
    return np.array(
        [
            H[list(rows)] * np.array(signs) / np.sqrt(d)
            for signs in product((1.0, -1.0), repeat=d)
            for rows in combinations(range(d), k)
        ]
    )


def subsample_maps(d: int, k: int) -> Array:
    """Return every choice of k coordinates, shape (C(d, k), k, d)."""
    return np.array([np.eye(d)[list(rows)] for rows in combinations(range(d), k)])


def worlds(maps: Array, n: int) -> Iterator[Array]:
    """Yield the equally likely choices of maps of n parties, in batches of shape (m, n, k, d)."""
    for first in maps:
        rest = np.array(list(product(range(len(maps)), repeat=n - 1)))
        yield np.concatenate([np.broadcast_to(first, (len(rest), 1, *first.shape)), maps[rest]], axis=1)


def spectra(batch: Array) -> tuple[Array, Array]:
    """Return eigenvalues (m, d) and eigenvectors (m, d, d) of S for a batch of choices."""
    stacked = batch.reshape(len(batch), -1, batch.shape[-1])
    S = stacked.transpose(0, 2, 1) @ stacked
    values, vectors = np.linalg.eigh(S)
    return values, vectors


def discounted(values: Array, rho: float) -> Array:
    """Return T(lambda)^+ for eigenvalues, 0 where an eigenvalue is."""
    positive = values > 1e-9
    return np.where(positive, 1 / np.where(positive, 1 + rho * (values - 1), 1.0), 0.0)
