"""Images as records: their shape, and what all public maps of pixels have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.errors import DataError, ParameterError
from tacit.numerics import Array, settle

__all__ = ["ImageMap", "image_shape"]


@dataclass(frozen=True, kw_only=True)
class ImageMap:
    """What a map of pixels to rows knows of images.

    Attributes:
        lower: Public lower bounds of pixels, shape (d,), finite.
        upper: The same, >= lower.
        shape: (height, width) of an image, or (channels, height, width), of d pixels, row by row.

    Raises:
        ParameterError: It is no shape, or bounds are of other pixels, not finite or the wrong way round.
    """

    lower: Array
    upper: Array
    shape: tuple[int, ...]

    law: ClassVar[str]
    """What is made of pixels, with a version: rows of the same law are the same in every tacit."""

    beside: ClassVar[float]
    """The constant feature, beside others of norm 1."""

    def __post_init__(self) -> None:
        settle(self)
        if len(self.shape) not in (2, 3) or any(side < 1 for side in self.shape):
            raise ParameterError(f"shape must be (height, width), or channels first, got {self.shape}.")
        if self.lower.shape != (self.dim,) or self.upper.shape != (self.dim,):
            raise ParameterError(f"bounds must be of the {self.dim} pixels of {self.shape}.")
        if not np.all(np.isfinite(self.upper - self.lower) & (self.lower <= self.upper)):
            raise ParameterError("bounds must be finite with lower <= upper for every pixel.")

    @property
    def dim(self) -> int:
        """Number d of pixels."""
        return math.prod(self.shape)

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width."""
        return self.shape[-2], self.shape[-1]

    @property
    def constant(self) -> float:
        """The constant feature of rows of norm 1."""
        return self.beside / math.hypot(1.0, self.beside)

    def unit_pixels(self, X: Array) -> Array:
        """Return pixels within bounds as shares of the way between them; 0 between equal ones.

        Args:
            X: Shape (n, d).
        """
        width = self.upper - self.lower
        scale = np.divide(1.0, width, out=np.zeros(width.shape), where=width > 0)
        return np.asarray((np.clip(X, self.lower, self.upper) - self.lower) * scale)

    def check_pixels(self, X: Array) -> None:
        """Refuse records of another shape than (n, d)."""
        if X.ndim != 2 or X.shape[1] != self.dim:
            raise DataError(f"X must have shape (n, {self.dim}), got {X.shape}.")


def image_shape(pixels: int) -> tuple[int, ...]:
    """Return the shape of square images, grey or of three colours.

    Raises:
        ParameterError: There are none of so many pixels.
    """
    for colours in (1, 3):
        side = math.isqrt(pixels // colours)
        if colours * side * side == pixels and side >= 8:
            return (side, side) if colours == 1 else (colours, side, side)
    raise ParameterError(
        "model 'cnn' or 'scattering' must have pixels of square ones as features, grey or of three colours, "
        f"8 x 8 or more, got {pixels} features; name the shape of others, as in 'cnn@28x20', or take "
        "'mlp:64', which takes any features."
    )
