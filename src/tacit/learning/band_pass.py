"""Images without their finest and coarsest parts: what a model of pixels takes its noise best on.

Noise on the weights of pixels is as strong at every frequency, and what tells images apart is not: the finest
parts say little, and the coarsest are alike in most images and slow training down. A public filter takes both
away before training, at no cost in privacy. Roots then bring faint parts of an image nearer to strong ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tacit.learning.images import ImageMap
from tacit.numerics import Array

__all__ = ["BandPassFeatures"]

_FINE: Final = 1.3 / 28
_COARSE: Final = 5.0 / 28
"""Spreads of the two Gaussians, as shares of an image's shorter side (docs/theory/defaults.md)."""

_FLAT: Final = 1e-3
"""Of the norm of filtered pixels that are all 1: flatter images are not made as long as the others."""


@dataclass(frozen=True, kw_only=True)
class BandPassFeatures(ImageMap):
    """Clip pixels to public bounds, take a coarse Gaussian average of each image from a fine one, and roots.

    A filtered pixel f becomes sign(f) sqrt(|f|). Pixels are then divided by their own norm, beside a
    constant: every row has norm at most 1, whatever the record. A row with a NaN stays one, and counts as
    zero in `Records`.

    Attributes:
        lower: Public lower bounds of pixels, shape (d,), finite.
        upper: The same, >= lower.
        shape: (height, width) of an image, or (channels, height, width), of d pixels, row by row.

    Example:
        >>> features = BandPassFeatures(lower=np.zeros(784), upper=np.ones(784), shape=(28, 28))
        >>> features(np.random.default_rng(0).uniform(size=(3, 784))).shape
        (3, 785)

    Reference:
        Marr and Hildreth (1980), "Theory of edge detection", for differences of Gaussians; Perronnin, Sanchez
        and Mensink (2010), "Improving the Fisher kernel for large-scale image classification", for roots.
    """

    law = "band-pass-1"
    beside = 0.1

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return self.dim + 1

    @property
    def longest(self) -> float:
        """Most norm of filtered pixels, beside the constant."""
        return math.sqrt(1 - self.constant**2)

    @property
    def flat(self) -> float:
        """What is added to the norm of their roots before they are divided by it."""
        return _FLAT * math.sqrt(self.dim)

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        how = (self.shape, _FINE, _COARSE, _FLAT)
        return ("band-pass", self.lower.tolist(), self.upper.tolist(), how)

    def __call__(self, X: Array) -> Array:
        """Map pixels, shape (n, d), to rows of norm at most 1, shape (n, d + 1), float64."""
        self.check_pixels(X)
        rows = np.empty((len(X), self.size))
        images = self.unit_pixels(X).reshape(-1, *self.sides)
        (fine_down, fine_across), (coarse_down, coarse_across) = self.averages
        with np.errstate(invalid="ignore"):
            found = fine_down @ images @ fine_across.T - coarse_down @ images @ coarse_across.T
        pixels = rows[:, :-1]
        pixels[:] = np.copysign(np.sqrt(np.abs(found)), found).reshape(len(X), self.dim)
        pixels *= self.longest / (np.linalg.norm(pixels, axis=1, keepdims=True) + self.flat)
        rows[:, -1] = self.constant
        return rows

    @cached_property
    def averages(self) -> tuple[tuple[Array, Array], ...]:
        """The weights of Gaussian averages, down and across, fine and coarse: shapes (side, side).

        What is outside an image counts as its darkest.
        """
        height, width = self.sides

        def average(side: int, spread: float) -> Array:
            apart = np.arange(side)[:, None] - np.arange(side)
            reach = np.arange(-4 * math.ceil(spread), 4 * math.ceil(spread) + 1)
            whole = np.exp(-(reach**2) / (2 * spread**2)).sum()
            return np.asarray(np.exp(-(apart**2) / (2 * spread**2)) / whole)

        spreads = (share * min(height, width) for share in (_FINE, _COARSE))
        return tuple((average(height, one), average(width, one)) for one in spreads)
