"""Finite sets that stand for many actions: nets of a sphere, and actions thinned to those that differ."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from tacit.bandits.actions import check_actions
from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.numerics import Array, IntArray

__all__ = ["MOST_ACTIONS", "sphere_net", "thin_actions"]

MOST_ACTIONS = 2_000_000
"""The largest net that is built unless more are allowed."""


def sphere_net(dim: int, zeta: float, *, most: int = MOST_ACTIONS) -> Array:
    """Return points of the unit sphere such that every point of it is within zeta of one.

    A linear function is largest on the sphere, so this net stands for the unit ball as well; what it costs is
    at most zeta * |theta| of reward a round.

    Args:
        dim: Number of coordinates, >= 1.
        zeta: Covering radius, in (0, 1].
        most: Refuse a larger net.

    Returns:
        Shape (N, dim), rows of norm 1 that span the space. In the plane N = ceil(pi / (2 asin(zeta / 2)))
        equally spaced points; above, a grid on the faces of the cube around the ball, drawn onto the ball,
        which brings no two points further apart: N <= 2 dim ceil(sqrt(dim - 1) / zeta)^(dim - 1).

    Raises:
        ParameterError: An argument is out of range, or the net would be larger than `most`: the message names
            the smallest zeta that is not.

    Example:
        >>> sphere_net(2, 1e-3).shape
        (3142, 2)

    Reference:
        Girgis (2023), Lemma 6.3.1, shows that (3 / zeta)^dim + dim points are enough.
    """
    dim = check_count("dim", dim)
    zeta = check_probability("zeta", check_positive("zeta", zeta))
    most = check_count("most", most)
    if dim == 1:
        return np.array([[-1.0], [1.0]])
    if dim == 2:
        # Two points, and both are on a line: three span the plane.
        points = max(math.ceil(math.pi / (2 * math.asin(zeta / 2)) * (1 - 1e-12)), 3)
        _check_size(points, most, dim, zeta, least=2 * math.sin(math.pi / (2 * most)))
        angles = 2 * math.pi * np.arange(points) / points
        return np.column_stack([np.cos(angles), np.sin(angles)])
    cells = math.ceil(math.sqrt(dim - 1) / zeta)
    a_face = (most / (2 * dim)) ** (1 / (dim - 1))
    _check_size(2 * dim * cells ** (dim - 1), most, dim, zeta, least=math.sqrt(dim - 1) / max(a_face, 1))
    centres = (2 * np.arange(cells) + 1) / cells - 1
    grid = np.array(list(itertools.product(centres, repeat=dim - 1)))
    faces = [np.insert(grid, axis, side, axis=1) for axis in range(dim) for side in (-1.0, 1.0)]
    points_on_cube = np.concatenate(faces)
    return np.asarray(points_on_cube / np.linalg.norm(points_on_cube, axis=1, keepdims=True))


def thin_actions(actions: npt.ArrayLike, zeta: float) -> IntArray:
    """Return which actions to keep so that every action is within zeta of one that is kept.

    Farthest first: the action that is farthest from those kept is kept next; then as many more as it takes to
    span what all of them span.

    Args:
        actions: Shape (K, d), rows of norm at most 1.
        zeta: Covering radius, >= 0.

    Returns:
        Indices of rows, ascending.

    Raises:
        ParameterError: `actions` is no such array, or `zeta` is negative.

    Example:
        >>> thin_actions([[1.0, 0.0], [0.999, 0.0], [0.0, 1.0]], 0.01).tolist()
        [0, 2]
    """
    rows = check_actions(actions)
    zeta = 0.0 if zeta == 0 else check_positive("zeta", zeta)
    kept = [int(np.argmax(np.linalg.norm(rows - rows.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(rows - rows[kept[0]], axis=1)
    while distance.max() > zeta:
        kept.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(rows - rows[kept[-1]], axis=1))
    rank = int(np.linalg.matrix_rank(rows))
    for row in range(len(rows)):
        if np.linalg.matrix_rank(rows[kept]) == rank:
            break
        if np.linalg.matrix_rank(rows[[*kept, row]]) > np.linalg.matrix_rank(rows[kept]):
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.int64))


def _check_size(points: int, most: int, dim: int, zeta: float, *, least: float) -> None:
    """Refuse a net that is too large."""
    if points > most:
        raise ParameterError(
            f"zeta must be at least {least:.3g} for a net of at most {most:,} points in {dim} dimensions, "
            f"got {zeta!r} ({points:.3g} points)."
        )
