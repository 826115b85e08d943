"""Rates with public data, against their formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.literature import (
    public_data_helps,
    semi_private_rate,
)


def test_rates_are_the_formulas() -> None:
    sizes: dict[str, Any] = {"n_private": 900, "n_public": 100, "dim": 10, "epsilon": 0.5}
    assert semi_private_rate("mean", **sizes) == pytest.approx(100 / 500**2 + 1e-3)
    assert semi_private_rate("mean-approximate", delta=1e-6, **sizes) == pytest.approx(
        10 * math.log(1e6) / 500**2 + 1e-3
    )
    assert semi_private_rate("mean-approximate-lower", **sizes) == pytest.approx(1 / 500**2 + 1e-3)
    assert semi_private_rate("empirical-mean", **sizes) == pytest.approx((10 / 500) ** 2)
    assert semi_private_rate("local-mean", **sizes) == 1 / 100  # 10 / 250 + 1e-3 is more
    assert semi_private_rate("local-mean", **sizes | {"epsilon": 9.0}) == pytest.approx(10 / 9000 + 1e-3)
    assert semi_private_rate("mean", **sizes | {"n_public": 0, "n_private": 4}) == pytest.approx(25.25)
    assert semi_private_rate("empirical-mean", **sizes | {"n_private": 0}) == 0


def test_when_public_data_helps() -> None:
    sizes: dict[str, Any] = {"n_public": 50, "dim": 10, "epsilon": 0.5}
    assert public_data_helps("empirical-mean", n_private=19, **sizes)
    assert not public_data_helps("empirical-mean", n_private=20, **sizes)
    # 50 > (50 + n) 0.25 / 10 iff n < 1950.
    assert public_data_helps("local-mean", n_private=1949, **sizes)
    assert not public_data_helps("local-mean", n_private=1950, **sizes)


def test_bad_input_is_refused() -> None:
    sizes: dict[str, Any] = {"n_private": 9, "n_public": 1, "dim": 2, "epsilon": 1.0}
    for wrong in ({"n_private": -1}, {"n_public": 1.5}, {"dim": 0}, {"epsilon": 0.0}):
        with pytest.raises(ParameterError):
            semi_private_rate("mean", **sizes | wrong)
        with pytest.raises(ParameterError):
            public_data_helps("local-mean", **sizes | wrong)
    with pytest.raises(ParameterError, match="at least 1"):
        semi_private_rate("mean", **sizes | {"n_private": 0, "n_public": 0})
    with pytest.raises(ParameterError, match="delta"):
        semi_private_rate("mean-approximate", **sizes)
    with pytest.raises(UnknownNameError):
        semi_private_rate("means", **sizes)
    with pytest.raises(UnknownNameError):
        public_data_helps("mean", **sizes)
