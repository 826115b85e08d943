"""What an owner says about sums, and the sum of messages that nobody hides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation.summed import UnmaskedSums, added
from tacit.federation.sums import OpenSums


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"colluding": -1}, "colluding"),
        ({"colluding": 1.5}, "colluding"),
        ({"most_alone": 0.0}, "most_alone"),
        ({"most_alone": float("nan")}, "most_alone"),
    ],
)
def test_an_owner_says_numbers_that_mean_something(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        OpenSums(**fields)


def test_sums_wrap_as_unsigned_numbers_do() -> None:
    """Adding in int64 would overflow, and in floats lose the lowest bits."""
    top = np.array([2**63 - 1, -(2**63), 5], dtype=np.int64)
    assert added([top, top, top]).tolist() == [(3 * int(v) + 2**63) % 2**64 - 2**63 for v in top.tolist()]


def test_fewer_messages_than_asked_for_open_nothing() -> None:
    one = np.array([3, -4], dtype=np.int64)
    opener = UnmaskedSums(5, 2)
    assert opener.open(0, b"", {4: one}, lambda _, __: {}) is None
    found = opener.open(0, b"", {4: one, 1: one}, lambda _, __: {})
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([6, -8], (1, 4))
