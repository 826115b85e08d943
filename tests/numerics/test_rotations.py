"""Rotations are orthogonal, random as they should be, and the same everywhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.numerics import (
    CosineRotation,
    Encoder,
    OrthogonalRotation,
    RandomHadamard,
    fwht,
    hadamard_matrix,
)
from tacit.randomness import PublicStream, simulated
from tests.statistics import z_bound

Rotation = RandomHadamard | CosineRotation | OrthogonalRotation
KINDS: dict[str, Callable[[int, PublicStream], Rotation]] = {
    "hadamard": RandomHadamard.draw,
    "cosine": CosineRotation.draw,
    "orthogonal": OrthogonalRotation.draw,
}


def public(round: int = 3) -> PublicStream:
    return PublicStream(2024, round, purpose="rotation")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [1, 2, 3, 8, 20, 100])
def test_orthogonal(kind: str, dim: int) -> None:
    rotation = KINDS[kind](dim, public())
    assert isinstance(rotation, Encoder)
    columns = rotation.forward(np.eye(dim))  # row j is U e_j
    np.testing.assert_allclose(columns @ columns.T, np.eye(dim), rtol=0, atol=1e-12)
    coded = np.eye(rotation.coded_dim)
    np.testing.assert_allclose(rotation.inverse(coded), columns.T, rtol=0, atol=1e-12)  # U^T
    if isinstance(rotation, RandomHadamard):
        whole = rotation.inverse(coded, truncate=False)
        np.testing.assert_allclose(whole @ whole.T, coded, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_stay_and_the_inverse_is_one(kind: str, dtype: type) -> None:
    rotation = KINDS[kind](100, public())
    rows: Any = simulated(1, "rows").standard_normal((2, 5, 100)).astype(dtype)
    kept, coded = rows.copy(), rotation.forward(rows)
    slack = 1e-5 if dtype is np.float32 else 1e-12
    assert coded.dtype == dtype
    assert coded.shape == (2, 5, rotation.coded_dim)
    norms = np.linalg.norm(rows, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(coded, axis=-1), norms, rtol=slack)
    back = rotation.inverse(coded)
    assert back.dtype == dtype
    np.testing.assert_allclose(back, rows, rtol=0, atol=slack)
    assert np.array_equal(rows, kept)
    np.testing.assert_allclose(rotation.inverse(rotation.forward(rows[0, 0])), rows[0, 0], rtol=0, atol=slack)
    assert rotation.forward(rows[:0]).shape == (0, 5, rotation.coded_dim)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_clipped_to_the_norm_where_one_is_given(kind: str) -> None:
    rotation = KINDS[kind](3, public())
    rows = np.array([[3.0, 0.0, 4.0], [0.1, 0.2, 0.2], [np.nan, 1.0, 0.0], [np.inf, 1.0, 0.0]])
    coded = rotation.forward(rows, r2=1.0)
    np.testing.assert_allclose(np.linalg.norm(coded, axis=1), [1.0, 0.3, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(rotation.inverse(coded)[0], [0.6, 0.0, 0.8], atol=1e-12)
    plain = rotation.forward(rows)
    np.testing.assert_allclose(plain[:2], rotation.forward(rows[:2]), rtol=0, atol=1e-15)
    assert not np.isfinite(plain[2:]).any()


def test_signs_are_the_same_on_all_machines() -> None:
    # Bits of the raw words of Philox, bit 0 first: pinned, since parties must agree forever.
    word = int(public().words(1)[0])
    assert word == 11074867372572893005
    rotation = RandomHadamard.draw(5, public())
    assert rotation.signs.tolist() == [1, -1, 1, 1, -1, -1, 1, -1]
    assert rotation.signs.tolist() == [2 * (word >> j & 1) - 1 for j in range(8)]
    assert rotation.fingerprint == "e461e092ca5cb61bfca5c19864436bd6"
    assert CosineRotation.draw(5, public()).signs.tolist() == [1, -1, 1, 1, -1]
    for kind in KINDS.values():
        assert kind(5, public()).fingerprint == kind(5, public()).fingerprint
    prints = [kind(d, public(r)).fingerprint for kind in KINDS.values() for d in (5, 6) for r in (3, 4)]
    assert len(set(prints)) == len(prints)


def test_the_normals_behind_the_orthogonal_matrix_are_the_documented_ones() -> None:
    words = [int(w) for w in public().words(4)]
    normals = np.array([stats.norm.ppf((w // 2**12 + 0.5) / 2**52) for w in words]).reshape(2, 2)
    first = normals[:, 0] / np.linalg.norm(normals[:, 0])  # Gram and Schmidt, positive diagonal
    second = normals[:, 1] - first * (first @ normals[:, 1])
    expected = np.column_stack([first, second / np.linalg.norm(second)])
    np.testing.assert_allclose(OrthogonalRotation.draw(2, public()).matrix, expected, rtol=0, atol=1e-12)


def test_the_orthogonal_matrix_follows_haar() -> None:
    # First entries: uniform on the sphere of R^4 has coordinates u with (1 + u) / 2 ~ Beta(3/2, 3/2).
    first = np.array([OrthogonalRotation.draw(4, public(r)).matrix[[0, 3], [0, 2]] for r in range(2000)])
    for entries in first.T:
        assert stats.kstest(entries, stats.beta(1.5, 1.5, loc=-1, scale=2).cdf).pvalue > 1e-8
    # The signs of diag(R) unfixed would leave a mean far from zero here.
    assert np.all(np.abs(first.mean(axis=0)) <= z_bound(2) * math.sqrt(1 / 4 / 2000))


def test_worked_example_of_the_sketch() -> None:
    # Rows of H D x / sqrt(d').
    plain = RandomHadamard(4, np.array([1, 1, 1, 1], dtype=np.int8))
    turned = RandomHadamard(4, np.array([1, -1, 1, 1], dtype=np.int8))
    assert plain.forward([1.0, 2.0, 3.0, 4.0])[[0, 1]].tolist() == [5.0, -1.0]
    assert turned.forward([2.0, 0.0, -1.0, 1.0])[[1, 3]].tolist() == [0.0, 2.0]


@pytest.mark.parametrize(("dim", "k"), [(3, 1), (3, 2), (3, 4), (4, 2), (5, 1), (5, 3), (1, 1)])
def test_dropping_the_padding_keeps_its_share_of_the_error(dim: int, k: int) -> None:
    # MSE = (d - 1) / (D - 1) * (D / k - 1) ||x||^2 for k of D rotated coordinates, one client,
    # by enumeration of all signs and subsets.
    x = simulated(2, "x", dim).standard_normal(dim)
    size = RandomHadamard.draw(dim, public()).coded_dim
    share = (dim - 1) / (size - 1) if dim < size else 1.0
    errors = []
    for signs in itertools.product((-1, 1), repeat=size):
        rotation = RandomHadamard(dim, np.array(signs, dtype=np.int8))
        w = rotation.forward(x)
        for kept in itertools.combinations(range(size), k) if k <= size else []:
            sketch = np.zeros(size)
            sketch[list(kept)] = w[list(kept)] * size / k
            errors.append(np.sum((rotation.inverse(sketch) - x) ** 2))
    expected = share * (size / k - 1) * (x @ x)
    assert np.mean(errors) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_common_rotation_changes_no_distance() -> None:
    # What depends on norms and inner products only stays as it is.
    rows = simulated(4, "rows").standard_normal((6, 48))
    for kind in KINDS.values():
        coded = kind(48, public()).forward(rows)
        np.testing.assert_allclose(coded @ coded.T, rows @ rows.T, rtol=0, atol=1e-11)


def test_the_transform_is_the_one_of_the_formula() -> None:
    rotation, x = RandomHadamard.draw(8, public()), simulated(5, "x").standard_normal(8)
    expected = hadamard_matrix(8) @ np.diag(rotation.signs) @ x / math.sqrt(8)
    np.testing.assert_allclose(rotation.forward(x), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        rotation.forward(x), fwht(rotation.signs * x) / math.sqrt(8), rtol=0, atol=1e-14
    )


SIGNS = np.ones(4, dtype=np.int8)
BAD: list[tuple[Any, str]] = [
    (lambda: RandomHadamard.draw(0, public()), "dim must be a whole number >= 1"),
    (lambda: RandomHadamard(3, SIGNS[:3]), r"int8 of shape \(4,\)"),
    (lambda: RandomHadamard(3, 2 * SIGNS), r"\+1 and -1"),
    (lambda: CosineRotation(4, SIGNS.astype(np.float64)), "got float64"),
    (lambda: OrthogonalRotation.draw(2049, public()), "from 1 to 2048"),
    (lambda: OrthogonalRotation(np.ones((2, 3))), "square"),
    (lambda: OrthogonalRotation(np.full((2, 2), np.nan)), "orthogonal"),
    (lambda: OrthogonalRotation(2 * np.eye(2)), "orthogonal"),
    (lambda: RandomHadamard(3, SIGNS).forward(np.ones((2, 4))), r"\(\.\.\., 3\), got shape \(2, 4\)"),
    (lambda: RandomHadamard(3, SIGNS).forward(1.0), r"\(\.\.\., 3\), got shape \(\)"),
    (lambda: RandomHadamard(3, SIGNS).forward(np.ones(3), r2=0.0), "r2 must be a finite number > 0"),
    (lambda: RandomHadamard(3, SIGNS).forward(["a", "b", "c"]), "real numbers"),
    (lambda: RandomHadamard(3, SIGNS).inverse(np.ones(3)), "was another rotation used"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
