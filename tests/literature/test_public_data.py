"""Rates and lower bounds with public data, against their formulas and against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.literature import (
    le_cam_lower_bound,
    public_data_helps,
    semi_private_fano_bound,
    semi_private_rate,
    semi_private_total_variation,
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


def test_the_fano_bound_is_the_formula() -> None:
    for m, p, n_priv, n_pub, epsilon in product((2, 5), (0.0, 0.3, 1.0), (0, 7), (0, 4), (0.1, 2.0)):
        odds = (m - 1) * math.exp(-epsilon * math.ceil(n_priv * p))
        stated = odds * (1 - p) ** n_pub / (2 * (1 + odds))
        found = semi_private_fano_bound(m, mixture=p, n_private=n_priv, n_public=n_pub, epsilon=epsilon)
        assert found == pytest.approx(stated, rel=1e-12)
    huge = semi_private_fano_bound(10**400, mixture=0.5, n_private=1000, n_public=1, epsilon=1.0)
    assert huge == pytest.approx(0.25)  # e^-500 * 10^400 is large: only the public row tells
    assert 0 < semi_private_fano_bound(2, mixture=1.0, n_private=700, n_public=0, epsilon=1.0) < 1e-300


def test_randomized_response_errs_at_least_as_often_as_fano_says() -> None:
    # Two candidates, p = 1: all private rows are v, and the best test of a release on 2 rows counts.
    epsilon, n = 0.7, 2
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    error = 0.0
    for bits in product((0, 1), repeat=n):
        laws = [math.prod(keep if b == v else 1 - keep for b in bits) for v in (0, 1)]
        error += min(laws) / 2
    assert semi_private_fano_bound(2, mixture=1.0, n_private=n, n_public=0, epsilon=epsilon) <= error


def test_two_laws_are_no_better_told_apart_than_the_bound() -> None:
    gamma, epsilon = 0.2, 0.4
    kl = (1 + gamma) / 2 * math.log((1 + gamma) / (1 - gamma)) + (1 - gamma) / 2 * math.log(
        (1 - gamma) / (1 + gamma)
    )
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    for n_priv, n_pub in ((1, 0), (3, 1), (0, 2), (2, 3)):
        laws: list[list[float]] = []
        for bias in (gamma, -gamma):
            private = (1 + bias * (2 * keep - 1)) / 2
            public = (1 + bias) / 2
            ones = [private] * n_priv + [public] * n_pub
            laws.append(
                [
                    math.prod(p if b else 1 - p for p, b in zip(ones, bits, strict=True))
                    for bits in product((0, 1), repeat=n_priv + n_pub)
                ]
            )
        apart = float(np.abs(np.array(laws[0]) - laws[1]).sum() / 2)
        bound = semi_private_total_variation(
            kullback_leibler=kl, total_variation=gamma, n_private=n_priv, n_public=n_pub, epsilon=epsilon
        )
        assert apart <= bound <= 1
        # No estimate of the bias from such outputs can beat the two-point bound: the mean squared error of
        # the posterior mean under a fair coin over the two laws is what the best estimate has.
        p, q = np.array(laws)
        posterior = gamma * (p - q) / (p + q)
        risk = float((p * (posterior - gamma) ** 2 + q * (posterior + gamma) ** 2).sum() / 2)
        assert risk >= le_cam_lower_bound(gamma, bound)


def test_total_variation_at_its_ends() -> None:
    rows: dict[str, Any] = {"n_private": 3, "n_public": 2}
    full = semi_private_total_variation(
        kullback_leibler=math.inf, total_variation=1.0, epsilon=1000.0, **rows
    )
    assert full == 1
    none = semi_private_total_variation(kullback_leibler=0.0, total_variation=0.0, epsilon=1000.0, **rows)
    assert none == 0
    leak = semi_private_total_variation(
        kullback_leibler=math.inf, total_variation=0.01, n_private=3, n_public=0, epsilon=0.1, delta=0.2
    )
    assert leak == pytest.approx(0.06 * (math.expm1(0.1) + 0.2))
    assert Fraction(le_cam_lower_bound(0.5, 0.5)) == Fraction(1, 64)


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
    with pytest.raises(ParameterError, match="candidates"):
        semi_private_fano_bound(1, mixture=0.5, n_private=1, n_public=1, epsilon=1.0)
    with pytest.raises(ParameterError, match="mixture"):
        semi_private_fano_bound(2, mixture=1.5, n_private=1, n_public=1, epsilon=1.0)
    with pytest.raises(ParameterError, match="total_variation"):
        le_cam_lower_bound(0.1, 1.5)
    with pytest.raises(ParameterError, match="kullback_leibler"):
        semi_private_total_variation(
            kullback_leibler=-1.0, total_variation=0.5, n_private=1, n_public=1, epsilon=1.0
        )
