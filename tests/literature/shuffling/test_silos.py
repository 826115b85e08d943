"""Amplification for silos of several records: reference values, the local level, and what is refused."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.literature.shuffling.silos import shuffle_amplification_isrl


@pytest.mark.parametrize(
    ("epsilon", "records", "silos", "expected", "limit", "delta"),
    [
        (1.0, 1, 1000, 0.56620149, 1.460421, 1.005523e-6),
        (0.1, 10, 1000, 0.079116814, 0.1460421, 1.102434e-6),
        (0.01, 100, 1000, 0.0082061034, 0.01460421, 2.080929e-6),
        (0.5, 1, 10_000, 0.093868162, 3.763006, None),
    ],
)
def test_reference_values(
    epsilon: float, records: int, silos: int, expected: float, limit: float, delta: float | None
) -> None:
    found = shuffle_amplification_isrl(epsilon, silos, records, 1e-6, delta=1e-12)
    assert found.epsilon == pytest.approx(expected, rel=1e-7)
    if delta is not None:
        assert found.delta == pytest.approx(delta, rel=1e-6)
    shuffle_amplification_isrl(limit * (1 - 1e-5), silos, records, 1e-6)
    with pytest.raises(ParameterError, match="epsilon must be at most"):
        shuffle_amplification_isrl(limit * (1 + 1e-5), silos, records, 1e-6)


def test_it_grows_with_the_level_and_the_records_and_falls_with_the_silos() -> None:
    def price(epsilon: float, silos: int, records: int) -> float:
        return shuffle_amplification_isrl(epsilon, silos, records, 1e-6).epsilon

    assert price(0.05, 10_000, 5) < price(0.1, 10_000, 5) < price(0.1, 10_000, 9)
    assert price(0.1, 20_000, 5) < price(0.1, 10_000, 5)


def test_it_never_claims_more_than_the_report_alone_nor_less_than_is_proven() -> None:
    small = shuffle_amplification_isrl(0.01, 235, 1, 1e-6)
    assert small.epsilon == 0.01
    assert small.term == "local"
    for wrong in ({"epsilon": math.nan}, {"silos": 0}, {"records": 0}, {"slack": 0.0}, {"delta": 1.0}):
        with pytest.raises(ParameterError):
            shuffle_amplification_isrl(
                **({"epsilon": 0.1, "silos": 1000, "records": 2, "slack": 1e-6} | wrong)
            )
    with pytest.raises(ParameterError, match="delta must be small"):
        shuffle_amplification_isrl(0.1, 1000, 10, 1e-6, delta=1e-3)
    with pytest.raises(ParameterError, match="epsilon must be at most"):
        shuffle_amplification_isrl(8.0, 1000, 100, 1e-6)  # e^800 is no float
