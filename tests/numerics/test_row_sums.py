"""No row has a say in how another one is rounded, and what the order of a sum may do is bounded."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.numerics import Array, row_products, row_sums, weighted_sum

Product = Callable[[Array, Array], Array]


def hostile(d: int, k: int, *, seed: int, dtype: Any) -> tuple[Array, Array]:
    """Rows, some of them equal, and long columns almost at right angles to all: products are all rounding."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((70, d))
    rows[20:45] = rows[20]
    columns = rng.standard_normal((d, k))
    basis, _ = np.linalg.qr(columns)
    rows -= rows @ basis @ basis.T
    columns *= 1e25
    return rows.astype(dtype), np.asarray(columns.astype(dtype) if k > 1 else columns[:, 0].astype(dtype))


def moved(rows: Array, by: int) -> Array:
    """The same rows at another address."""
    room = np.empty(rows.nbytes + 128, dtype=np.uint8)
    start = -room.ctypes.data % 64 + by
    at = room[start : start + rows.nbytes].view(rows.dtype).reshape(rows.shape)
    at[...] = rows
    return at


def differing(product: Product, rows: Array, columns: Array) -> int:
    """How many products of all that were taken are not the same to the last bit as at first."""
    first, pairs = product(rows, columns), []
    for prefix in range(len(rows)):
        pairs.append((rows[prefix:].copy(), first[prefix:]))
        pairs.append((rows[: prefix + 1].copy(), first[: prefix + 1]))
        pairs.append((np.delete(rows, prefix, axis=0), np.delete(first, prefix, axis=0)))
    pairs.extend((moved(rows, by), first) for by in (1, *range(0, 64, rows.itemsize)))
    return sum(int(np.count_nonzero(product(some, columns) != then)) for some, then in pairs)


CASES = [(d, k, dtype) for d in (1, 3, 65, 785) for k in (1, 3, 10) for dtype in (np.float32, np.float64)]


@pytest.mark.parametrize("by_blas", [True, False])
@pytest.mark.parametrize(("d", "k", "dtype"), CASES)
def test_a_product_depends_on_its_row_and_its_column_only(
    d: int, k: int, dtype: Any, by_blas: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_blas:
        monkeypatch.setattr(row_sums, "_any_address", lambda *_: False)
        monkeypatch.setattr(row_sums, "_alike", lambda *_: False)
    rows, columns = hostile(d, k, seed=d + k, dtype=dtype)
    products = row_products(rows, columns)
    assert products.shape == (70, k)[: columns.ndim]
    assert products.dtype == dtype
    np.testing.assert_allclose(products, rows @ columns, atol=1e25 * d * np.finfo(dtype).eps * 10)
    assert differing(row_products, rows, columns) == 0


@pytest.mark.parametrize("k", [1, 10])
def test_a_matrix_product_does_not(k: int) -> None:
    """The lemma needs its condition: if this fails, the other tests show nothing."""
    cases = [hostile(d, k, seed=d, dtype=np.float64) for d in (65, 785)]
    assert sum(differing(lambda x, w: np.asarray(x @ w), *case) for case in cases) > 0


def test_long_rows_are_taken_in_parts() -> None:
    rng = np.random.default_rng(0)
    for d in (0, 1, 2**13, 2**13 + 1, 20_000):
        rows, columns = rng.standard_normal((3, d)), rng.standard_normal((d, 2))
        np.testing.assert_allclose(row_products(rows, columns), rows @ columns, atol=1e-10)
        np.testing.assert_allclose(row_products(rows, columns[:, 0]), rows @ columns[:, 0], atol=1e-10)
        assert row_products(rows[:0], columns).shape == (0, 2)
    assert differing(row_products, *hostile(9_000, 1, seed=1, dtype=np.float32)) == 0


def test_a_blas_that_looks_at_addresses_is_found_out_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeling(rows: Array, columns: Array) -> Array:
        """As some libraries do: the numbers up to a boundary of the memory first, then the rest."""
        rows, columns = np.broadcast_arrays(rows, columns)
        out = np.empty(rows.shape[:-1])
        for index in np.ndindex(out.shape):
            x, w = rows[index], columns[index]
            first = -x.ctypes.data // 8 % 8
            out[index] = np.einsum("d,d->", x[:first], w[:first]) + np.einsum("d,d->", x[first:], w[first:])
        return out

    assert differing(peeling, *hostile(65, 1, seed=1, dtype=np.float64)) > 0
    for d in (9, 12, 65, 785):
        assert row_sums._any_address.__wrapped__(d, 8)
    monkeypatch.setattr(np, "vecdot", peeling)
    for d in (9, 12, 65, 785):
        assert not row_sums._any_address.__wrapped__(d, 8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_other_row_has_a_say_whoever_it_is(dtype: Any) -> None:
    """Others change their order, become other ones, or are no numbers at all."""
    rng, (rows, columns) = np.random.default_rng(4), hostile(785, 10, seed=3, dtype=dtype)
    first = row_products(rows, columns)
    for _ in range(20):
        order = rng.permutation(len(rows))
        np.testing.assert_array_equal(row_products(rows[order], columns), first[order])
        kept = rng.random(len(rows)) < 0.5
        others = rng.standard_normal(rows.shape) * rng.choice(
            [0, 1e-30, 1e30, np.inf, np.nan], (len(rows), 1)
        )
        with np.errstate(invalid="ignore", over="ignore"):
            mixed = row_products(np.where(kept[:, None], rows, others).astype(dtype), columns)
        np.testing.assert_array_equal(mixed[kept], first[kept])


@pytest.mark.parametrize("what", ["place", "address"])
def test_a_library_whose_places_are_not_alike_is_found_out_and_not_used(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = np.matmul

    def other(rows: Array, columns: Array, out: Array | None = None) -> Array:
        """The last place of a block, or what begins off a boundary, is added up the other way round."""
        found = plain(rows, columns)
        turned = plain(rows[..., ::-1], columns[::-1])
        if what == "place":
            found[..., -1, :] = turned[..., -1, :]
        elif rows.ctypes.data % 64:
            found = turned
        if out is None:
            return np.asarray(found)
        out[...] = found
        return out

    shapes = [(9, 3), (65, 10), (785, 2), (785, 64)]
    assert all(row_sums._alike.__wrapped__(d, k, size, (1,)) for d, k in shapes for size in (4, 8))
    monkeypatch.setattr(np, "matmul", other)
    assert not any(row_sums._alike.__wrapped__(d, k, size, (1,)) for d, k in shapes[1:] for size in (4, 8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_weighted_sums_are_sums(k: int, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    for n in (0, 1, 127, 128, 129, 512, 513, 14_000):
        rows = rng.standard_normal((n, 5)).astype(dtype)
        weights = rng.standard_normal((n, k) if k else n).astype(dtype)
        exact = rows.astype(np.longdouble).T @ weights.astype(np.longdouble)
        for wanted in (np.float32, np.float64):
            found = weighted_sum(rows, weights, dtype=wanted)
            assert found.dtype == np.float64
            single = wanted == dtype == np.float32
            np.testing.assert_allclose(found, exact, rtol=0, atol=1e-2 if single else 1e-10)


def exactly(rows: Array, weights: Array) -> list[list[Fraction]]:
    """Row times weight, without rounding."""
    return [
        [Fraction(float(weight)) * Fraction(float(x)) for x in row]
        for row, weight in zip(rows, weights, strict=True)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 8, 64, 256])
def test_one_row_moves_a_sum_by_its_length_and_the_slack_of_the_lemma(
    block: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_sums, "_BLOCK", 1)
    monkeypatch.setattr(row_sums, "_FEWEST", {np.float64: block})
    rng = np.random.default_rng(block)
    for trial in range(12):
        n, d = int(rng.integers(1, 400)), int(rng.integers(1, 6))
        rows = rng.standard_normal((n, d)).astype(dtype)
        weights = rng.standard_normal(n).astype(dtype)
        if trial % 3 == 0:
            rows[:], weights[:] = rows[0], weights[0]
        j = int(rng.integers(n))
        squared = max(sum(x * x for x in row) for row in exactly(rows, weights))
        turned = weights.copy()
        turned[j] = -turned[j]
        total = weighted_sum(rows, weights)
        u = Fraction(1, 2**53)
        slack = 2 * n * (n * u / (1 - n * u))
        for other, radii in (
            (weighted_sum(np.delete(rows, j, axis=0), np.delete(weights, j)), 1),
            (weighted_sum(rows, turned), 2),
        ):
            apart = sum(
                (Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(total, other, strict=True)
            )
            assert apart <= squared * (radii + slack) ** 2
