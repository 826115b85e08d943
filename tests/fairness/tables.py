"""Joint laws of prediction and group, with what is known of them, and records that have such a law."""

from __future__ import annotations

import numpy as np

from tacit.numerics import Array

T1 = np.array([[0.4, 0.2], [0.1, 0.3]])
T2 = np.array([[0.2, 0.05, 0.05], [0.1, 0.15, 0.05], [0.05, 0.05, 0.3]])


def records(joint: Array, n: int = 20) -> tuple[Array, Array]:
    """Return predictions and groups of n records with that joint law, which has whole numbers of them."""
    counts = np.rint(joint * n).astype(int)
    assert np.allclose(counts, joint * n)
    classes, groups = np.divmod(np.arange(joint.size), joint.shape[1])
    return np.repeat(classes, counts.ravel()), np.repeat(groups, counts.ravel())


def random_joint(rng: np.random.Generator, m: int, k: int) -> Array:
    """Return a joint law, far from independent."""
    return np.asarray(rng.dirichlet(np.full(m * k, 0.5)).reshape(m, k))
