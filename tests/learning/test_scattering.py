"""Wavelet features of images: their shapes, what they are blind to, and that a row is its image's only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError
from tacit.learning.images import image_shape
from tacit.learning.scattering import ScatteringFeatures
from tacit.numerics import Array

SIDE = 16


def features(side: int = SIDE, **changes: int) -> ScatteringFeatures:
    bound = np.ones(side * side)
    return ScatteringFeatures(lower=0 * bound, upper=bound, shape=(side, side), **changes)


def images(n: int = 4, side: int = SIDE) -> Array:
    return np.random.default_rng(0).uniform(size=(n, side * side))


def waves(angle: float, side: int = 32) -> Array:
    y, x = np.mgrid[:side, :side]
    return np.asarray(0.5 + 0.5 * np.cos(0.75 * math.pi * (np.cos(angle) * y + np.sin(angle) * x))).reshape(
        1, -1
    )


@pytest.mark.parametrize(("order", "channels"), [(1, 1 + 2 * 8), (2, 1 + 2 * 8 + 64)])
def test_rows_have_norm_one_and_end_with_the_constant(order: int, channels: int) -> None:
    mapped = features(order=order)
    rows = mapped(images())
    assert rows.shape == (4, mapped.size) == (4, channels * (SIDE // 4) ** 2 + 1)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert (rows[:, -1] == mapped.constant).all()


def test_a_row_says_nothing_of_how_bright_an_image_is() -> None:
    """Channels are centred and divided by their spread, but for what is nearly flat."""
    X = images()
    found, dim = features()(X), features()(0.4 + 0.5 * X)
    np.testing.assert_allclose(dim, found, atol=0.02)


def test_every_direction_has_its_own_channel() -> None:
    """A wave of the finest scale is largest in the channel of its angle, before spreads are divided out."""
    mapped = ScatteringFeatures(lower=np.zeros(1024), upper=np.ones(1024), shape=(32, 32))
    for k in range(8):
        finest = mapped._scattered(waves(k * math.pi / 8).reshape(1, 32, 32))[0, 1:9].mean(axis=(1, 2))
        assert finest.argmax() == k


def test_wavelets_see_no_constant() -> None:
    mapped = ScatteringFeatures(lower=np.zeros(1024), upper=np.ones(1024), shape=(32, 32))
    flat = mapped._scattered(np.full((1, 32, 32), 0.7))[0]
    np.testing.assert_allclose(flat[0], 0.7)
    np.testing.assert_allclose(flat[1:], 0.0, atol=1e-12)


def test_a_row_is_that_of_its_own_image() -> None:
    """Replacing one image moves no other row, to the last bit; a bad one is bad alone."""
    X = images(600)
    again = X.copy()
    again[5], again[7] = 0.0, np.nan
    first, second = features()(X), features()(again)
    others = np.delete(np.arange(600), [5, 7])
    np.testing.assert_array_equal(first[others], second[others])
    assert np.isnan(second[7, :-1]).all()
    assert (second[5, :-1] == 0).all()


def test_colours_are_channels_of_their_own() -> None:
    bound = np.ones(3 * SIDE * SIDE)
    mapped = ScatteringFeatures(lower=0 * bound, upper=bound, shape=(3, SIDE, SIDE))
    one = images()
    rows = mapped(np.hstack([one, one, one]))
    parts = rows[:, :-1].reshape(4, 3, -1)
    np.testing.assert_allclose(parts[:, 0], parts[:, 2])
    np.testing.assert_allclose(parts[:, 0] * math.sqrt(3), features()(one)[:, :-1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 3}, "order must be a whole number"),
        ({"scales": 4}, "shape must be of 32 x 32 pixels or more for 4 scales, got 16 x 16"),
        ({"orientations": 0}, "orientations must be a whole number"),
    ],
)
def test_what_is_no_map_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        features(**changes)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ParameterError, match="bounds must be of the 256 pixels"):
        ScatteringFeatures(lower=np.zeros(9), upper=np.ones(9), shape=(16, 16))
    with pytest.raises(ParameterError, match="lower <= upper"):
        ScatteringFeatures(lower=np.ones(256), upper=np.zeros(256), shape=(16, 16))
    with pytest.raises(DataError, match="X must have shape"):
        features()(np.zeros((2, 9)))
    assert image_shape(784) == (28, 28)
    assert image_shape(3072) == (3, 32, 32)
    with pytest.raises(ParameterError, match="square ones"):
        image_shape(30)
    with pytest.raises(ParameterError, match="8 x 8 or more, got 36 features; name the shape of others"):
        image_shape(36)
