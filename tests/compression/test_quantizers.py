"""Quantizers and the rotation that helps them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.compression import QSGD, StochasticUniformQuantizer, common_rotation
from tacit.errors import ParameterError
from tacit.numerics import Array
from tests.statistics import z_bound

QUANTIZERS = (
    StochasticUniformQuantizer(levels=2),
    StochasticUniformQuantizer(levels=5),
    QSGD(levels=1),
    QSGD(levels=4),
)


def test_stated_errors() -> None:
    assert StochasticUniformQuantizer(levels=2).squared_error([[0.0, 0.25, 1.0]])[0] == pytest.approx(0.1875)
    assert QSGD(levels=1).squared_error([[3.0, 4.0]])[0] == pytest.approx(10)
    x = np.random.default_rng(0).standard_normal((3, 9))
    two = ((x.max(axis=1, keepdims=True) - x) * (x - x.min(axis=1, keepdims=True))).sum(axis=1)
    assert StochasticUniformQuantizer(levels=2).squared_error(x) == pytest.approx(two)
    bound = np.minimum(9 / 16, 3 / 4) * (x**2).sum(axis=1)
    assert np.all(QSGD(levels=4).squared_error(x) <= bound)


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=repr)
def test_quantizers_are_unbiased_with_the_stated_error(quantizer: Any) -> None:
    x, runs = np.array([0.3, -1.2, 0.0, 2.0, 0.7]), 40_000
    found = quantizer.encode(np.tile(x, (runs, 1)), rng=np.random.default_rng(0)).decode()
    bound = z_bound(6)
    deviation = found.std(axis=0)
    assert np.all(np.abs(found.mean(axis=0) - x) <= bound * deviation / math.sqrt(runs) + 1e-12)
    each = ((found - x) ** 2).sum(axis=1)
    assert abs(each.mean() - quantizer.squared_error(x[None])[0]) <= bound * each.std() / math.sqrt(runs)


@given(x=arrays(float, (2, 6), elements=st.floats(-1e300, 1e300)), levels=st.integers(2, 9))
def test_codes_stay_in_range_and_close(x: Array, levels: int) -> None:
    coded = StochasticUniformQuantizer(levels=levels).encode(x, rng=np.random.default_rng(0))
    assert coded.codes.min() >= 0
    assert coded.codes.max() <= levels - 1
    assert np.all(np.isfinite(coded.step))


def test_signed_codes() -> None:
    coded = QSGD(levels=4).encode([[3.0, -4.0, 0.0]], rng=np.random.default_rng(0))
    assert np.abs(coded.codes).max() <= 4
    assert coded.codes[0, 1] < 0
    assert coded.codes[0, 2] == 0
    assert QSGD(levels=3).encode([[0.0, -2.0]], rng=np.random.default_rng(0)).codes.tolist() == [[0, -3]]


@pytest.mark.parametrize("quantizer", QUANTIZERS, ids=repr)
def test_vectors_without_spread_are_sent_exactly(quantizer: Any) -> None:
    zero = quantizer.encode(np.zeros((2, 3)), rng=np.random.default_rng(0))
    assert not zero.decode().any()
    assert quantizer.squared_error(np.zeros((1, 3))).tolist() == [0.0]
    constant = StochasticUniformQuantizer(levels=2).encode([[7.0, 7.0]], rng=np.random.default_rng(0))
    assert constant.decode().tolist() == [[7.0, 7.0]]


@pytest.mark.parametrize("dim", [1, 3, 8, 100])
def test_the_common_rotation_is_one(dim: int) -> None:
    rotation = common_rotation(dim, seed=1, round=2)
    x = np.random.default_rng(0).standard_normal((3, dim))
    turned = rotation.forward(x)
    np.testing.assert_allclose(rotation.inverse(turned), x, atol=1e-12)
    np.testing.assert_allclose(turned @ turned.T, x @ x.T, atol=1e-10)
    np.testing.assert_array_equal(turned, common_rotation(dim, seed=1, round=2).forward(x))
    if dim > 64:
        assert np.abs(turned - common_rotation(dim, seed=1, round=3).forward(x)).max() > 0.1
    assert rotation.forward(x.astype(np.float32)).dtype == np.float32


def test_a_rotation_helps_a_quantizer() -> None:
    x = 1000 * np.eye(256)[:1] + np.random.default_rng(0).standard_normal((1, 256))
    quantizer = StochasticUniformQuantizer(levels=4)
    plain = quantizer.squared_error(x)[0]
    assert quantizer.squared_error(common_rotation(256, seed=0, round=0).forward(x))[0] < plain


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: StochasticUniformQuantizer(levels=1), "levels must be"),
        (lambda: QSGD(levels=0), "levels must be"),
        (lambda: QSGD(levels=2).squared_error([[math.nan]]), "X must be finite"),
        (lambda: StochasticUniformQuantizer(levels=2).squared_error([[math.inf]]), "X must be finite"),
        (lambda: StochasticUniformQuantizer(levels=2).squared_error(np.ones((2, 0))), "at least one column"),
        (lambda: common_rotation(0, seed=0, round=0), "dim must be"),
        (
            lambda: common_rotation(3, seed=0, round=0).forward(np.ones((2, 4))),
            r"rows must have .*, 3\)",
        ),
        (
            lambda: common_rotation(3, seed=0, round=0).inverse(np.ones((2, 3))),
            r"coded must have .*, 4\)",
        ),
    ],
)
def test_bad_arguments_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()
