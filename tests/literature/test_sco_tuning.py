"""Printed parameters of the shuffled methods, against values computed by hand."""

from __future__ import annotations

import math

import pytest

from tacit.errors import ParameterError
from tacit.literature import paper_tuning
from tacit.privacy import Gaussian, PrivacyBudget, calibrate


def test_reference_numbers() -> None:
    printed = paper_tuning(n=10_000, dim=10, epsilon=1.0, delta=1e-5, diameter=2.0)
    assert printed.plain_batch == pytest.approx(43.69, abs=5e-3)
    assert printed.accelerated_batch == pytest.approx(862.45, abs=5e-3)
    assert printed.stream_batch == pytest.approx(
        printed.accelerated_batch * (math.log(1e5) / math.log(1e6) ** 2) ** 0.2
    )
    assert printed.smoothness == pytest.approx((10_000 / math.log(1e6)) ** (2 / 3) / (10 ** (1 / 3) * 2))
    assert printed.descent_rounds == math.ceil(1e8 / (10 * math.log(1e10) ** 3))
    # The exact noise of the stream, at any epsilon.
    assert 2 * calibrate(Gaussian, PrivacyBudget(1.0, 1e-5)) / 100 == pytest.approx(0.074613, abs=5e-7)


def test_rounds_are_at_least_one_and_at_most_the_records() -> None:
    assert paper_tuning(n=5, dim=100, epsilon=0.1, delta=1e-5).descent_rounds == 1
    assert paper_tuning(n=10**6, dim=1, epsilon=10.0, delta=1e-5).descent_rounds == 10**6


@pytest.mark.parametrize("change", [{"n": 0}, {"dim": 0}, {"delta": 0.0}, {"delta": 1.0}, {"epsilon": -1.0}])
def test_what_is_out_of_range_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        paper_tuning(**{"n": 100, "dim": 5, "epsilon": 1.0, "delta": 1e-5, **change})  # type: ignore[arg-type]
