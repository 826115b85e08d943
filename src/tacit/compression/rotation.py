"""One orthogonal map for all parties, before sparsifying or quantizing (Jiang 2025, Appendix A.1.1)."""

from __future__ import annotations

from tacit.numerics import RandomHadamard
from tacit.randomness import PublicStream

__all__ = ["common_rotation"]


def common_rotation(dim: int, *, seed: int, round: int) -> RandomHadamard:
    """Draw the rotation that all parties of a round share: it spreads every vector over all coordinates.

    It leaves the error of Rand-k and of Rand-k-Spatial what it is; it helps quantizers, whose error grows
    with the range of the entries.

    Args:
        dim: Number of coordinates, >= 1; vectors are padded with zeros to the next power of two.
        seed: Public seed of the run, >= 0.
        round: Number of the round, >= 0.

    Raises:
        ParameterError: A number is out of range.

    Example:
        >>> import numpy as np
        >>> rotation = common_rotation(3, seed=0, round=0)
        >>> rotated = rotation.forward([[3.0, 0.0, 0.0]])
        >>> np.abs(rotated).tolist(), np.abs(rotation.inverse(rotated)).tolist()
        ([[1.5, 1.5, 1.5, 1.5]], [[3.0, 0.0, 0.0]])

    Reference:
        Jiang (2025), Appendix A.1.1.
    """
    return RandomHadamard.draw(dim, PublicStream(seed, round, purpose=f"compression/rotation/{dim}"))
