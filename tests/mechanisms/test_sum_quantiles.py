"""Quantiles of sums of noise, against convolutions of the exact laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.mechanisms import discrete_gaussian_log_pmf, discrete_laplace_log_pmf
from tacit.mechanisms.sum_quantiles import discrete_gaussian_sum_quantile, discrete_laplace_sum_quantile

LAWS = {
    "gaussian": (discrete_gaussian_sum_quantile, discrete_gaussian_log_pmf),
    "laplace": (discrete_laplace_sum_quantile, discrete_laplace_log_pmf),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("width", [0.1, 0.7, 1.0, 3.3, 40.0])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("confidence", [0.1, 0.8, 0.95, 0.999, 1 - 1e-8])
def test_against_convolution(law: str, width: float, count: int, confidence: float) -> None:
    quantile, log_pmf = LAWS[law]
    reach = int(60 * width + 60)
    one = np.exp(log_pmf(np.arange(-reach, reach + 1), width))
    law_of_sum = np.array([1.0])
    for _ in range(count):
        law_of_sum = np.convolve(law_of_sum, one)
    centre = len(law_of_sum) // 2
    inside = np.cumsum(law_of_sum[centre:] + np.append(0.0, law_of_sum[centre + 1 :]))
    m = quantile(width, confidence, count=count)
    assert inside[m] >= confidence - 1e-12
    # One step less is too little, up to the safety that covers rounding.
    assert m == 0 or inside[m - 1] < confidence + 3e-12


def test_wide_laws_are_the_continuous_ones() -> None:
    assert discrete_gaussian_sum_quantile(2.0**40, 0.95) == pytest.approx(
        1.959963984540054 * 2.0**40, rel=1e-9
    )
    assert discrete_laplace_sum_quantile(2.0**40, 0.9) == pytest.approx(-np.log(0.1) * 2.0**40, rel=1e-9)
    # The difference of two gamma variables: P(|X| <= m) by integration over one of them.
    n, b = 3, 2.0**30
    m = discrete_laplace_sum_quantile(b, 0.9, count=n) / b
    grid = np.linspace(0, 60, 200_001)
    inside = stats.gamma.cdf(grid + m, n) - stats.gamma.cdf(grid - m, n)
    assert np.trapezoid(inside * stats.gamma.pdf(grid, n), grid) == pytest.approx(0.9, abs=1e-7)


def test_many_draws_are_nearly_normal() -> None:
    n, b = 100_000, 2.0**20
    expected = 1.959963984540054 * np.sqrt(2 * n) * b
    assert discrete_laplace_sum_quantile(b, 0.95, count=n) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, float("nan"), 1 - 1e-12])
def test_bad_confidence(confidence: float) -> None:
    with pytest.raises(ParameterError, match="confidence"):
        discrete_laplace_sum_quantile(1.0, confidence)
    with pytest.raises(ParameterError, match="confidence"):
        discrete_gaussian_sum_quantile(1.0, confidence)


def test_bad_laws() -> None:
    with pytest.raises(ParameterError, match="scale"):
        discrete_laplace_sum_quantile(-1.0, 0.9)
    with pytest.raises(ParameterError, match="count"):
        discrete_gaussian_sum_quantile(1.0, 0.9, count=0)
