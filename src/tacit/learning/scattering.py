"""Fixed wavelet features of images: what a convolutional network learns first, for no privacy at all.

A linear model of these features is private at a price of few parameters. Nothing is learnt in the map, so it
costs nothing, and it is the same for all parties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.learning.images import ImageMap
from tacit.numerics import Array

__all__ = ["ScatteringFeatures"]

_FLAT: Final = 1e-3
"""Of pixels in [0, 1]: a channel that varies less is not blown up to the size of the others."""

_AT_ONCE: Final = 2**18
"""Numbers of one channel that are mapped at once."""


@dataclass(frozen=True, kw_only=True)
class ScatteringFeatures(ImageMap):
    """Clip pixels to public bounds and map images to wavelet features of norm 1, beside a constant.

    Every channel of an image (its low frequencies; the size of its parts along each of L directions at each
    of J scales; of order 2 the same of those) is averaged over windows of 2^J pixels, then centred and
    divided by its own spread: nothing but the image itself says how. Rows have norm 1, so theory's constants
    hold without looking at data. A row with a NaN stays one, and counts as zero in `Records`.

    Attributes:
        lower: Public lower bounds of pixels, shape (d,), finite.
        upper: The same, >= lower.
        shape: (height, width) of an image, or (channels, height, width), of d pixels, row by row.
        order: 1, or 2 for some five times as many features, which tell more where noise is low.
        scales: J >= 1.
        orientations: L >= 1.

    Example:
        >>> features = ScatteringFeatures(lower=np.zeros(784), upper=np.ones(784), shape=(28, 28))
        >>> features(np.random.default_rng(0).uniform(size=(3, 784))).shape
        (3, 834)

    Reference:
        Bruna and Mallat (2013), "Invariant scattering convolution networks"; under privacy, Tramer and Boneh
        (2021), "Differentially private learning needs better features (or much more data)".
    """

    law = "wavelets-1"
    beside = 0.3

    order: int = 1
    scales: int = 2
    orientations: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("order", self.order, high=2)
        check_count("scales", self.scales)
        check_count("orientations", self.orientations)
        if min(self.sides) < 2 ** (self.scales + 1):
            raise ParameterError(
                f"shape must be of {2 ** (self.scales + 1)} x {2 ** (self.scales + 1)} pixels or more for "
                f"{self.scales} scales, got {self.sides[0]} x {self.sides[1]}: wavelets go by windows of "
                f"{2**self.scales} pixels, and there must be two of them."
            )

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return math.prod(self.maps) + 1

    @property
    def maps(self) -> tuple[int, int, int]:
        """Channels of all colours, and windows down and across: the shape of a row without its constant."""
        return self._channels * self.images, *self._windows

    @property
    def images(self) -> int:
        """Number of colours."""
        return self.shape[0] if len(self.shape) == 3 else 1

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        how = (self.shape, self.order, self.scales, self.orientations)
        return ("scattering", self.lower.tolist(), self.upper.tolist(), how)

    def __call__(self, X: Array) -> Array:
        """Map pixels, shape (n, d), to rows of norm 1, shape (n, size), float64."""
        self.check_pixels(X)
        rows = np.empty((len(X), self.size))
        some = max(1, _AT_ONCE // (math.prod(self._padded) * self.images))
        for start in range(0, len(X), some):
            part = X[start : start + some]
            with np.errstate(invalid="ignore"):
                rows[start : start + some, :-1] = self._mapped(part)
        rows[:, -1] = self.constant
        return rows

    def _mapped(self, X: Array) -> Array:
        """Return the features of some images, as long as with the constant makes 1."""
        images = self.unit_pixels(X).reshape(len(X) * self.images, *self.sides)
        channels = self._scattered(images)
        channels = channels.reshape(len(X), -1, math.prod(self._windows))
        channels -= channels.mean(axis=2, keepdims=True)
        channels /= channels.std(axis=2, keepdims=True) + _FLAT
        rows = channels.reshape(len(X), -1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        longest = math.sqrt(1 - self.constant**2)
        return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths != 0) * longest)

    def _scattered(self, images: Array) -> Array:
        """Return the averages of every channel of some images, shape (images, channels, windows)."""
        whole = np.fft.fft2(self._reflected(images))
        found = [self._averaged(np.fft.ifft2(whole).real)]
        for j, filters in enumerate(self._wavelets):
            for one in filters:
                size = np.abs(np.fft.ifft2(whole * one))
                found.append(self._averaged(size))
                if self.order == 2 and j + 1 < self.scales:
                    again = np.fft.fft2(size)
                    found += [
                        self._averaged(np.abs(np.fft.ifft2(again * coarse)))
                        for further in self._wavelets[j + 1 :]
                        for coarse in further
                    ]
        return np.stack(found, axis=1)

    def _averaged(self, padded: Array) -> Array:
        """Return Gaussian averages of padded images around every window."""
        across, down = self._averages
        return np.asarray(across @ padded @ down.T)

    def _reflected(self, images: Array) -> Array:
        """Return images with their own mirror image around them."""
        edge = self._edge
        return np.pad(images, ((0, 0), (edge, edge), (edge, edge)), mode="reflect")

    @property
    def _edge(self) -> int:
        """Pixels around an image: no wavelet that is averaged reaches further."""
        return int(min(2 ** (self.scales + 1), min(self.sides) - 1))

    @property
    def _padded(self) -> tuple[int, int]:
        """Height and width with the edge."""
        return self.sides[0] + 2 * self._edge, self.sides[1] + 2 * self._edge

    @property
    def _windows(self) -> tuple[int, int]:
        """Windows down and across."""
        return self.sides[0] // 2**self.scales, self.sides[1] // 2**self.scales

    @property
    def _channels(self) -> int:
        """Channels of one colour."""
        J, L = self.scales, self.orientations
        return 1 + J * L + (L * L * J * (J - 1) // 2 if self.order == 2 else 0)

    @cached_property
    def _averages(self) -> tuple[Array, Array]:
        """The weights of pixels in every window, down and across: shapes (windows, padded side)."""
        width = 0.8 * 2 ** (self.scales - 1)
        found = []
        for side, padded, windows in zip(self.sides, self._padded, self._windows, strict=True):
            centres = self._edge + (np.arange(windows) + 0.5) * side / windows - 0.5
            weights = np.exp(-((np.arange(padded) - centres[:, None]) ** 2) / (2 * width**2))
            found.append(weights / weights.sum(axis=1, keepdims=True))
        return found[0], found[1]

    @cached_property
    def _wavelets(self) -> list[list[Array]]:
        """Transforms of Morlet wavelets by scale and direction, each real, of the padded shape."""
        L = self.orientations

        def filters(j: int) -> list[Array]:
            facts = {"width": 0.8 * 2**j, "wave": 0.75 / 2**j, "slant": 4 / L}
            return [_morlet(self._padded, angle=math.pi * k / L, **facts) for k in range(L)]

        return [filters(j) for j in range(self.scales)]


def _morlet(shape: tuple[int, int], *, width: float, angle: float, wave: float, slant: float) -> Array:
    """Return the transform of a Morlet wavelet about the first pixel of a torus.

    Args:
        shape: Of the torus.
        width: Standard deviation of its Gaussian along the wave, in pixels.
        angle: Of the wave.
        wave: Its frequency, as a share of half of that of the grid.
        slant: Of the Gaussian: how much wider it is across the wave, as 1 / slant.
    """
    down, across = (np.fft.fftfreq(side) * side for side in shape)
    y, x = np.meshgrid(down, across, indexing="ij")
    along, beside = math.cos(angle) * y + math.sin(angle) * x, math.cos(angle) * x - math.sin(angle) * y
    gauss = np.exp(-(along**2 + (slant * beside) ** 2) / (2 * width**2))
    waves = gauss * np.exp(1j * math.pi * wave * along)
    waves -= gauss * (waves.sum() / gauss.sum())  # no mean: it would be the low frequencies once more
    return np.asarray(np.fft.fft2(waves).real * slant / (2 * math.pi * width**2))
