from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.federation import Disjoint, Fixed, Full, Poisson


@pytest.mark.parametrize(
    ("rate", "n", "size"), [(0.29, 100, 29), (0.1, 30, 3), (0.5, 7, 3), (0.01, 5, 1), (1.0, 9, 9)]
)
def test_a_share_is_rounded_down_as_decimals_are_read_and_never_empty(rate: float, n: int, size: int) -> None:
    assert Fixed(rate=rate).size_for(n) == size
    assert Disjoint(rate=rate).size_for(n) == size


@given(rate=st.floats(1e-6, 1.0), n=st.integers(1, 10**6))
def test_a_share_never_exceeds_the_silo(rate: float, n: int) -> None:
    size = Fixed(rate=rate).size_for(n)
    assert 1 <= size <= n
    assert size <= max(1.0, rate * n + 1e-9)


def test_a_batch_larger_than_the_silo_is_refused() -> None:
    assert Fixed(size=8).size_for(8) == 8
    with pytest.raises(ParameterError, match="at most the 7 units of the silo, got 8"):
        Fixed(size=8).size_for(7)


@pytest.mark.parametrize("kind", [Fixed, Disjoint])
@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({}, "either size or rate"),
        ({"size": 3, "rate": 0.5}, "either size or rate"),
        ({"size": 0}, "size must be a whole number"),
        ({"size": True}, "size must be a whole number"),
        ({"size": 2.0}, "size must be a whole number"),
        ({"rate": 0.0}, "rate must be in"),
        ({"rate": 1.5}, "rate must be in"),
        ({"rate": math.nan}, "rate must be in"),
    ],
)
def test_bad_parts_are_refused(kind: type[Fixed | Disjoint], given_: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(**given_)  # type: ignore[arg-type]  # wrong on purpose


def test_the_divisor_of_a_poisson_sample_is_its_exact_expectation() -> None:
    assert Poisson(0.01).expected(150) == 1.5
    assert Poisson(0.01).size_for(150) == 2
    assert Poisson(0.001).size_for(10) == 1
    with pytest.raises(ParameterError, match="rate must be in"):
        Poisson(math.nan)


def test_a_poisson_sample_of_an_expected_size_has_a_rate_in_every_silo() -> None:
    batch = Poisson(size=3)
    assert [batch.rate_for(n) for n in (3, 12, 30)] == [1.0, 0.25, 0.1]
    assert [batch.expected(n) for n in (3, 12, 30)] == [3.0, 3.0, 3.0]
    assert batch.size_for(30) == 3
    with pytest.raises(ParameterError, match="size must be at most the 2 units of the silo, got 3"):
        batch.rate_for(2)
    with pytest.raises(ParameterError, match="either size or rate"):
        Poisson()
    with pytest.raises(ParameterError, match="either size or rate"):
        Poisson(0.1, 3)


@pytest.mark.parametrize("batch", [Full(), Fixed(size=3), Disjoint(rate=0.25)])
def test_batches_of_a_known_size_expect_that_size(batch: Full | Fixed | Disjoint) -> None:
    assert batch.expected(12) == batch.size_for(12) == (12 if isinstance(batch, Full) else 3)
