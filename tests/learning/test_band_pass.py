"""Images without their finest and coarsest parts: what is kept, and that a row is its image's only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from tacit.data import load
from tacit.errors import DataError, ParameterError
from tacit.learning import (
    BandPassFeatures,
    FeatureMap,
    FederatedLogisticRegression,
    PrivateNeuralClassifier,
    ScatteringFeatures,
)
from tacit.learning.architecture import Architecture
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget

SIDE = 28


def features(*shape: int) -> BandPassFeatures:
    shape = shape or (SIDE, SIDE)
    bound = np.ones(int(np.prod(shape)))
    return BandPassFeatures(lower=0 * bound, upper=bound, shape=shape)


def images(n: int = 4) -> Array:
    return np.random.default_rng(0).uniform(size=(n, SIDE * SIDE))


def test_rows_are_roots_of_differences_of_gaussians_beside_a_constant() -> None:
    X = images()
    rows = features()(X)
    for row, image in zip(rows, X, strict=True):
        fine, coarse = (
            ndimage.gaussian_filter(image.reshape(SIDE, SIDE), spread, mode="constant", truncate=8.0)
            for spread in (1.3, 5.0)
        )
        apart = (fine - coarse).ravel()
        expected = np.sign(apart) * np.sqrt(np.abs(apart))
        cosine = row[:-1] @ expected / np.linalg.norm(row[:-1]) / np.linalg.norm(expected)
        assert cosine == pytest.approx(
            1.0, abs=1e-4
        )  # of Gaussians that are cut off at 8, not at 4, deviations
    assert (rows[:, -1] == features().constant).all()


def test_rows_have_norm_at_most_one_whatever_the_record() -> None:
    X = np.vstack([images() * 1e300, -1e300 * images(), np.eye(3, SIDE * SIDE), np.zeros((1, SIDE * SIDE))])
    X[0, :5] = np.inf
    norms = np.linalg.norm(features()(X), axis=1)
    assert norms.max() <= 1.0
    assert norms[-1] == pytest.approx(features().constant)  # nothing is blown up


def test_rows_of_images_that_vary_are_of_one_length() -> None:
    """Noise on their weights is the same for all: what is shorter would drown in it."""
    y, x = np.mgrid[:SIDE, :SIDE]
    strokes = [1.0 * (abs(x - 13) < wide) * (abs(y - 13) < 9) for wide in (1, 3, 6)]
    norms = np.linalg.norm(features()(np.reshape(strokes, (3, -1))), axis=1)
    assert norms.min() > 0.98


def test_what_is_alike_and_what_is_fine_is_taken_away() -> None:
    y, x = np.mgrid[:SIDE, :SIDE]
    checks, stripes = (x + y) % 2, (x // 5) % 2
    kept = features()(np.stack([checks.ravel(), stripes.ravel()]).astype(float))[:, :-1].reshape(
        2, SIDE, SIDE
    )
    inside = (kept[:, 8:20, 8:20] ** 2).mean(axis=(1, 2))  # of roots
    assert inside[1] > 5 * inside[0]


def test_a_row_depends_on_its_image_alone() -> None:
    X = images(7)
    whole = features()(X)
    for i in range(7):
        np.testing.assert_array_equal(features()(X[i : i + 1])[0], whole[i])
    other = X.copy()
    other[1:] = np.nan
    again = features()(other)
    np.testing.assert_array_equal(again[0], whole[0])
    assert np.isnan(again[1:, :-1]).any(axis=1).all()


def test_each_colour_is_filtered_by_itself() -> None:
    X = np.random.default_rng(1).uniform(size=(2, 3 * 16 * 16))
    rows, alone = features(3, 16, 16)(X), features(16, 16)(X[:, :256])
    ratio = rows[:, :256] / alone[:, :256]
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(256))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^shape must be \(height, width\)"):
        features(4)
    with pytest.raises(ParameterError, match=r"^bounds must be of the 16 pixels"):
        BandPassFeatures(lower=np.zeros(15), upper=np.ones(15), shape=(4, 4))
    with pytest.raises(ParameterError, match=r"^bounds must be finite"):
        BandPassFeatures(lower=np.ones(16), upper=np.zeros(16), shape=(4, 4))
    with pytest.raises(DataError, match=r"^X must have shape \(n, 784\)"):
        features()(np.zeros((2, 5)))


@pytest.mark.parametrize(
    "name", ["linear@16x12", "mlp:64@28x28", "mlp:8,4@3x32x32", "cnn@28x20", "scattering:2@32x16"]
)
def test_names_of_models_of_images_are_read_and_said(name: str) -> None:
    assert str(Architecture.of(name)) == name


@pytest.mark.parametrize(
    "name",
    ["a.b:C@28x28", "mlp:64@28", "mlp:64@28x", "mlp:64@0x3", "mlp:64@2x2x2x2", "mlp@8x8", "cnn@pixels"],
)
def test_names_of_no_images_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=r"^model must look like one of"):
        Architecture.of(name)


def test_images_of_another_number_of_pixels_are_refused() -> None:
    bounded = FeatureMap(lower=np.zeros(60), upper=np.ones(60))
    for name in ("linear@8x8", "mlp:4@8x8", "scattering@8x8"):
        with pytest.raises(
            ParameterError, match=f"^shape must be of 60 pixels.* got .* of 64 for the model '{name}'"
        ):
            Architecture.of(name).task(bounded, classes=np.arange(3))


def test_images_need_not_be_square() -> None:
    bounded = FeatureMap(lower=np.zeros(16 * 12), upper=np.ones(16 * 12))
    assert (
        Architecture.of("scattering@16x12").task(bounded, classes=np.arange(3)).features.size == 17 * 12 + 1
    )


def test_a_perceptron_of_images_sees_them_filtered() -> None:
    data = load("digits")
    fits = [
        PrivateNeuralClassifier(trust="none", hidden=8, shape=shape, rounds=3, random_state=0).fit(
            data.X[:300], data.y[:300]
        )
        for shape in ((8, 8), None)
    ]
    seen = fits[0].model_.features.of
    assert isinstance(seen, BandPassFeatures)
    assert seen.shape == (8, 8)
    assert isinstance(fits[1].model_.features.of, FeatureMap)


def test_a_linear_model_of_images_sees_them_filtered_and_has_no_weights_of_pixels() -> None:
    data = load("digits")
    model = FederatedLogisticRegression(trust="none", shape=(8, 8), rounds=3, random_state=0).fit(
        data.X[:300], data.y[:300]
    )
    assert isinstance(model.model_.features, BandPassFeatures)
    assert model.model_.why_no_weights.endswith("this one is linear in filtered pixels of images.")
    with pytest.raises(
        ParameterError, match=r"^shape must be of 64 pixels.* of 16 for the model 'linear@4x4'"
    ):
        FederatedLogisticRegression(trust="none", shape=(4, 4)).fit(data.X[:300], data.y[:300])
    for shape, said in (
        ("8x8", "^shape must be whole"),
        ((), "^shape must be whole"),
        ((64,), "^the shape of"),
    ):
        with pytest.raises(ParameterError, match=said):
            FederatedLogisticRegression(trust="none", shape=shape).fit(data.X[:300], data.y[:300])


def test_public_records_that_scale_nothing_are_refused() -> None:
    """Pixels of images go by their bounds: without labels, only a Gram matrix has use of a public sample."""
    data = load("digits")
    facts: dict[str, Any] = {"budget": PrivacyBudget(3.0, 1e-5), "bounds": (0, 1), "random_state": 0}
    fit = data.X[100:300], data.y[100:300]
    for shape, public, algorithm in (
        ((8, 8), data.X[:100], "p-sgd"),
        ((8, 8), (data.X[:100], data.y[:100]), "p-sgd"),
    ):
        model = FederatedLogisticRegression(
            shape=shape, public=public, algorithm=algorithm, classes=range(10), rounds=3, **facts
        )
        with pytest.raises(ParameterError, match="public must be left out for images"):
            model.fit(*fit)
        for changes in ({"shape": None}, {"algorithm": "preconditioned"}):
            model.set_params(**changes).fit(*fit)
            model.set_params(shape=shape)


def test_a_law_has_a_version() -> None:
    """Whoever changes what a filter makes of pixels gives it another: `model.json` is read by it."""
    bound, image = np.ones(64), np.linspace(0, 1, 64)[None] ** 2
    for kind, law, expected in (
        (BandPassFeatures, "band-pass-1", 222.55609378575735),
        (ScatteringFeatures, "wavelets-1", 27.792155583806064),
    ):
        made = kind(lower=0 * bound, upper=bound, shape=(8, 8))
        assert made.law == law
        assert made(image)[0] @ np.arange(made.size) == pytest.approx(expected, rel=1e-6), law
