"""Arrays are read as floating point, by shape and dtype only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.numerics import as_floats, as_rows


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float64])
def test_real_numbers_become_float64(dtype: type) -> None:
    found = as_floats("w", np.ones(3, dtype=dtype))
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_nothing_is_copied_without_need() -> None:
    for dtype in (np.float32, np.float64):
        rows = np.ones((2, 3), dtype=dtype)
        assert as_rows("X", rows) is rows


def test_entries_are_not_looked_at() -> None:
    assert np.isnan(as_rows("X", [[np.nan, np.inf]])[0, 0])


@pytest.mark.parametrize("values", [["secret"], [object()], [1j], [None]])
def test_other_dtypes_are_refused_without_quoting_data(values: Any) -> None:
    with pytest.raises(ParameterError, match=r"^X must hold real numbers, got dtype \S+\.$") as caught:
        as_floats("X", values)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("shape", [(), (3,), (1, 2, 3)])
def test_rows_have_two_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match=r"^X must have shape \(n, d\), one row per record; got shape"):
        as_rows("X", np.ones(shape))
