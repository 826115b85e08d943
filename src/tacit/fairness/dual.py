"""The dual variables of ERMI while they climb: a step costs what the groups of its batch cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.fairness.scores import pull_back
from tacit.numerics import Array, IntArray

if TYPE_CHECKING:
    from tacit.fairness.penalty import ErmiPenalty, Membership

__all__ = ["ErmiDual"]

_SMALLEST_SCALE = 1e-100


class ErmiDual:
    """W of the dual form of ERMI, and how it climbs.

    A step shrinks whole columns of W and adds to the rows of the batch's groups. The shrinking is kept aside,
    one number for each condition and class, and so are the squared norms of columns, so that one record of
    many groups moves one row.

    Args:
        penalty: ERMI under a notion; W starts where predictions that are independent of the group have it.

    Reference:
        Lowy (2023), Algorithm 9, step of W.
    """

    def __init__(self, penalty: ErmiPenalty) -> None:
        z, k, m = penalty.shape
        self._groups = k
        self._roots = np.sqrt(penalty.frequencies).ravel()
        self._rows = penalty.start().reshape(z * k, m)
        self._scale = np.ones((z, m))
        self._norms: Array = np.sum(penalty.start() ** 2, axis=1)
        self._most = penalty.radii**2

    @property
    def variables(self) -> Array:
        """W, shape (z, k, m)."""
        z, m = self._scale.shape
        return np.asarray(self._rows.reshape(z, self._groups, m) * self._scale[:, None, :])

    @property
    def norms(self) -> Array:
        """Squared norms of the columns of W, shape (z, m)."""
        return self._norms

    def slopes(self, scores: Array, probabilities: Array, of: Membership) -> Array:  # noqa: ARG002
        """Return the derivatives of the terms of these records in their scores, shape (n, m)."""
        z, cells = of.conditions, of.cells(self._groups)
        if len(of) >= len(self._rows):  # a table of all cells is then the smaller one
            z, places, cells = np.arange(len(self._rows)) // self._groups, cells, np.arange(len(self._rows))
        else:
            places = np.arange(len(of))
        costs = self._scale[z] * self._rows[cells] * (2 / self._roots[cells])[:, None] - self._norms[z]
        return pull_back(probabilities, costs.take(places, axis=0) * of.factors[:, None])

    def climb(self, probabilities: Array, of: Membership, step: float) -> None:
        """Take a step of gradient ascent on the mean term of these records, and stay within the radii."""
        cells, mass = _sums(of.cells(self._groups), of.factors[:, None] * probabilities, len(self._rows))
        mass /= len(of)
        z = cells // self._groups
        shrink = 1 - 2 * step * _sums_of_conditions(z, mass, len(self._scale))
        rows = self._scale[z] * shrink[z] * self._rows[cells]
        moved = rows + (2 * step / self._roots[cells])[:, None] * mass
        grown = _sums_of_conditions(z, moved**2 - rows**2, len(self._scale))
        self._norms = np.maximum(self._norms * shrink**2 + grown, 0.0)
        self._rescale(shrink)
        self._rows[cells] = moved / self._scale[z]
        norms = self._norms.sum(axis=1)
        if (norms > self._most).any():
            within = np.minimum(1.0, self._most / norms)[:, None]
            self._norms *= within
            self._rescale(np.sqrt(within))

    def _rescale(self, factor: Array) -> None:
        """Multiply columns of W."""
        self._scale = self._scale * factor
        if np.abs(self._scale).min() < _SMALLEST_SCALE:
            self._rows = self.variables.reshape(self._rows.shape)
            self._scale = np.ones_like(self._scale)


def _sums(cells: IntArray, values: Array, size: int) -> tuple[IntArray, Array]:
    """Return the cells that occur, each once, and the sum of the values of each: shapes (c,) and (c, m)."""
    if len(cells) == 1:
        return cells, values
    if len(cells) < size:
        cells, places = np.unique(cells, return_inverse=True)
    else:
        cells, places = np.arange(size), cells
    return cells, np.stack([np.bincount(places, column, len(cells)) for column in values.T], axis=1)


def _sums_of_conditions(z: IntArray, values: Array, size: int) -> Array:
    """Return the sum of the values of each condition, shape (size, m)."""
    if size == 1:
        return np.asarray(values.sum(axis=0, keepdims=True))
    return np.stack([np.bincount(z, column, size) for column in values.T], axis=1)
