"""The exact law of the minimiser of a perturbed objective in one or two dimensions, by its density on a grid.

Stationarity gives the noise as a function of the minimiser, b(w) = -(gradient of losses + lambda w), so the
density at w is that of the noise at b(w) times det(Hessian + lambda). Nothing here is the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

Array = npt.NDArray[np.float64]
Loss = Callable[[Array, Array], tuple[Array, Array]]
"""Maps points (n, d) and a record (d,) to gradients (n, d) and Hessians (n, d, d)."""

_TRIPLE = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
"""Coordinates of what three classes differ in; along (1, 1, 1) only the ridge acts, and no record."""


class Record(NamedTuple):
    """`weight` equal records: the label times the features, or the feature and the class of a softmax."""

    features: tuple[float, ...]
    weight: float = 1.0


def of_slope(slope: Callable[[Array], Array], curvature: Callable[[Array], Array]) -> Loss:
    """Return the loss of <w, x> with a slope and a curvature."""

    def loss(w: Array, x: Array) -> tuple[Array, Array]:
        at = w @ x
        return slope(at)[:, None] * x, curvature(at)[:, None, None] * np.outer(x, x)

    return loss


LOGISTIC = of_slope(lambda t: -special.expit(-t), lambda t: special.expit(t) * special.expit(-t))


def of_one_sign(curvature: float) -> Loss:
    """Return a smoothed hinge, of slopes between -1 and 0 that bend by at most `curvature`."""
    g = 4 * curvature
    return of_slope(
        lambda t: -special.expit(-g * t), lambda t: g * special.expit(g * t) * special.expit(-g * t)
    )


def of_either_sign(curvature: float) -> Loss:
    """Return a smoothed absolute value, of slopes between -1 and 1 that bend by at most `curvature`."""
    return of_slope(lambda t: np.tanh(curvature * t), lambda t: curvature / np.cosh(curvature * t) ** 2)


def three_classes(w: Array, record: Array) -> tuple[Array, Array]:
    """Return gradients and Hessians of the cross-entropy of softmax, for one feature and a class."""
    x, label = float(record[0]), int(record[1])
    p = special.softmax(x * (w @ _TRIPLE), axis=1)
    bend = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    return x * ((p - np.eye(3)[label]) @ _TRIPLE.T), x * x * (_TRIPLE @ bend @ _TRIPLE.T)


DataSet = Sequence[Record]


class Law(NamedTuple):
    """A density on a grid, with the weights of its points."""

    density: Array
    weights: Array


def laws(
    loss: Loss,
    data_sets: Sequence[DataSet],
    *,
    strength: float,
    sigma: float,
    dim: int,
    gamma: bool = False,
    points: int = 0,
) -> list[Law]:
    """Return the laws of the minimisers on several data sets, on a grid that covers them all.

    Args:
        loss: Of one record; rows have norm at most 1.
        data_sets: Several.
        strength: lambda.
        sigma: Deviation of each coordinate of the noise; with `gamma` the scale s of a density e^(-|b| / s).
        dim: 1 or 2.
        gamma: Whether the noise is that of pure privacy.
        points: Along each axis; 0 is enough for most.
    """

    def noise(w: Array, data: DataSet) -> tuple[Array, Array]:
        total, bend = strength * w, np.tile(strength * np.eye(dim), (len(w), 1, 1))
        for record in data:
            gradient, hessian = loss(w, np.array(record.features))
            total, bend = total + record.weight * gradient, bend + record.weight * hessian
        return -total, np.linalg.det(bend)

    def minimiser(b: Array, data: DataSet) -> Array:
        def missing(w: Array) -> Array:
            return np.asarray(noise(w[None], data)[0][0] - b)

        return np.asarray(optimize.root(missing, np.zeros(dim), tol=1e-10).x)

    far = (30.0 if gamma else 7.5) * sigma
    corners = far * np.array([[-1.0], [1.0]] if dim == 1 else _circle(16))
    ends = np.array([minimiser(b, data) for data in data_sets for b in corners])
    sides = [
        np.linspace(ends[:, k].min(), ends[:, k].max(), points or (20_001 if dim == 1 else 301))
        for k in range(dim)
    ]
    w = np.stack([side.ravel() for side in np.meshgrid(*sides, indexing="ij")], axis=1)
    weights = np.full(len(w), np.prod([side[1] - side[0] for side in sides]))
    found = []
    for data in data_sets:
        b, determinant = noise(w, data)
        length = np.linalg.norm(b, axis=1)
        if gamma:
            density = np.exp(-length / sigma) / (2 * sigma if dim == 1 else 2 * np.pi * sigma**2)
        else:
            density = np.exp(-0.5 * (length / sigma) ** 2) / (2 * np.pi * sigma**2) ** (dim / 2)
        found.append(Law(density * determinant, weights))
    return found


def _circle(count: int) -> list[list[float]]:
    return [[np.cos(t), np.sin(t)] for t in np.linspace(0, 2 * np.pi, count, endpoint=False)]


def largest_loss(first: Law, second: Law) -> float:
    """Return the largest logarithm of a ratio of densities, where neither is lost in rounding."""
    seen = np.minimum(first.density, second.density) > 1e-280
    return float(np.max(np.log(first.density[seen] / second.density[seen])))


def attack(first: Law, second: Law, epsilon: float) -> float:
    """Return what the best test gains: the integral of (p - e^epsilon q)_+."""
    return float(np.maximum(first.density - np.exp(epsilon) * second.density, 0) @ first.weights)


def total(law: Law) -> float:
    """Return the whole probability, which a grid that is fine and wide enough gives as 1."""
    return float(law.density @ law.weights)
