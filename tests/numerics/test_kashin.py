"""Kashin coefficients are flat by construction, exact where the frame carries them, each row for itself."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.numerics import Encoder, KashinFrame, hadamard_matrix
from tacit.randomness import PublicStream, simulated

Numbers = np.ndarray[Any, Any]


def draw(dim: int, **options: Any) -> KashinFrame:
    return KashinFrame.draw(dim, PublicStream(2024, 3, purpose="frame"), **options)


def dense(frame: KashinFrame) -> Numbers:
    """The frame as a matrix, from its definition."""
    size = frame.coded_dim
    rows: Numbers = hadamard_matrix(size)[frame.rows] * frame.signs / math.sqrt(size)
    return rows


def adversaries(frame: KashinFrame) -> Numbers:
    """Unit vectors that are hard for a frame: axes, flat, random, heavy-tailed, its atoms, its corners."""
    rng, matrix = simulated(1, "vectors"), dense(frame)
    corners = np.sign(rng.standard_normal((4, frame.coded_dim))) @ matrix.T
    vectors = np.vstack(
        [
            np.eye(frame.dim)[:2],
            np.ones((1, frame.dim)),
            rng.standard_normal((8, frame.dim)),
            rng.standard_cauchy((4, frame.dim)),
            matrix.T[:7],
            corners,
        ]
    )
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Numbers = vectors[norms[:, 0] > 0] / norms[norms > 0][:, None]
    return units


@pytest.mark.parametrize("dim", [1, 2, 3, 17, 64])
def test_a_tight_frame(dim: int) -> None:
    frame = draw(dim)
    assert isinstance(frame, Encoder)
    matrix = frame.inverse(np.eye(frame.coded_dim)).T
    np.testing.assert_allclose(matrix, dense(frame), rtol=0, atol=1e-14)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(dim), rtol=0, atol=1e-12)
    assert 2 * dim <= frame.coded_dim < 4 * dim


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("dim", "size", "constant", "worst"),
    [
        # Worst residuals of the plain alternation. With the correction, what fits is exact.
        (512, 1024, 2.0, 4.4e-2),
        (512, 1024, 2.5, 1e-12),
        (512, 1024, 3.0, 1e-12),
        (512, 2048, 1.75, 1.1e-4),
        (512, 2048, 2.0, 1e-12),
        (300, 512, 3.0, 1e-12),
        (20, 64, 3.0, 1e-12),
        (3, 8, 3.0, 1e-12),
        (1, 2, 3.0, 1e-12),
    ],
)
def test_flat_and_exact(dim: int, size: int, constant: float, worst: float, dtype: type) -> None:
    frame = draw(dim, coded_dim=size, constant=constant)
    rows: Any = adversaries(frame).astype(dtype)
    coded = frame.forward(rows, r2=1.0)
    assert coded.dtype == dtype
    assert coded.shape == (len(rows), size)
    assert np.abs(coded).max() <= frame.radius(1.0) == constant / math.sqrt(size)
    residual = np.linalg.norm(frame.inverse(coded) - rows, axis=1).max()
    assert residual <= max(worst, 1e-6 if dtype is np.float32 else 0)
    if worst > 1e-6:
        assert residual > worst / 20  # the oracle is one: the constant is too small there, and shows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data(), r2=st.floats(1e-6, 1e6))
def test_the_radius_holds_whatever_comes(dtype: type, data: st.DataObject, r2: float) -> None:
    width = 32 if dtype is np.float32 else 64
    entries = st.floats(width=width)  # type: ignore[arg-type]  # NaN, infinities and huge ones too
    rows = data.draw(arrays(dtype, (3, 3), elements=entries))
    frame = draw(3, constant=data.draw(st.sampled_from([1.0, 1.5, 3.0])), steps=data.draw(st.integers(1, 5)))
    coded = frame.forward(rows, r2=r2)
    bound = Fraction(frame.radius(r2))
    assert all(abs(Fraction(float(a))) <= bound for a in coded.ravel())
    for row, code in zip(rows, coded, strict=True):
        if not np.isfinite(row).all():
            assert not code.any()


def test_long_rows_are_scaled() -> None:
    frame = draw(4)
    x = np.array([3.0, 0.0, 0.0, 4.0])
    np.testing.assert_allclose(frame.inverse(frame.forward(x, r2=1.0)), x / 5, rtol=0, atol=1e-12)
    np.testing.assert_allclose(frame.inverse(frame.forward(x, r2=5.0)), x, rtol=0, atol=1e-12)


def test_a_row_is_its_own_affair() -> None:
    frame = draw(100, constant=2.0)
    rows = simulated(2, "rows").standard_normal((300, 100))  # more than one stretch of work
    together = frame.forward(rows, r2=1.0)
    for i in (0, 1, 150, 299):
        assert np.array_equal(frame.forward(rows[i], r2=1.0), together[i])
    rows[7], rows[8] = np.nan, 1e300
    others = np.delete(np.arange(300), [7, 8])
    assert np.array_equal(frame.forward(rows, r2=1.0)[others], together[others])


def test_shapes_and_copies() -> None:
    frame, rows = draw(5), simulated(3, "rows").standard_normal((2, 3, 5))
    kept, coded = rows.copy(), frame.forward(rows, r2=10.0)
    assert coded.shape == (2, 3, 16)
    assert frame.inverse(coded).shape == (2, 3, 5)
    assert frame.forward(rows[:0], r2=1.0).shape == (0, 3, 16)
    assert np.array_equal(rows, kept)


def test_the_frame_is_the_same_on_all_machines() -> None:
    frame = draw(3)
    assert frame.signs.tolist() == [-1, -1, 1, -1, -1, 1, -1, 1]
    assert frame.rows.tolist() == [6, 5, 0]
    assert frame.fingerprint == "4797db5284b099d3bddb6ce3fcdd000b"
    assert draw(3).fingerprint == frame.fingerprint
    other = KashinFrame.draw(3, PublicStream(2024, 4, purpose="frame"))
    assert len({frame.fingerprint, other.fingerprint, draw(4).fingerprint}) == 3


SIGNS, ROWS = np.ones(4, dtype=np.int8), np.array([0, 2])
BAD: list[tuple[Any, str]] = [
    (lambda: draw(0), "dim must be a whole number >= 1"),
    (lambda: draw(5, coded_dim=4), "coded_dim must be a whole number >= 5"),
    (lambda: draw(5, coded_dim=12), "power of two, got 12"),
    (lambda: draw(5, constant=0.5), "constant must be >= 1"),
    (lambda: draw(5, constant=math.nan), "constant must be a finite number > 0"),
    (lambda: draw(5, steps=0), "steps must be"),
    (lambda: KashinFrame(2, SIGNS[:3], ROWS), "power of two"),
    (lambda: KashinFrame(2, 0 * SIGNS, ROWS), r"\+1 and -1"),
    (lambda: KashinFrame(2, SIGNS, np.array([1, 1])), "distinct"),
    (lambda: KashinFrame(2, SIGNS, np.array([1, 4])), "from 0 to 3"),
    (lambda: KashinFrame(3, SIGNS, ROWS), "must be 3 distinct"),
    (lambda: draw(2).forward(np.ones((1, 3)), r2=1.0), r"\(\.\.\., 2\)"),
    (lambda: draw(2).forward(np.ones((1, 2)), r2=-1.0), "r2 must be"),
    (lambda: draw(2).inverse(np.ones((1, 2))), r"\(\.\.\., 4\)"),
    (lambda: draw(2).radius(math.inf), "r2 must be"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
