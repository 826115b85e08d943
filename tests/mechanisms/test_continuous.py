from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.mechanisms.continuous import sample_gaussian, sample_laplace
from tests.statistics import FALSE_ALARM

SAMPLERS = {"norm": sample_gaussian, "laplace": sample_laplace}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("law", "sample"), SAMPLERS.items(), ids=SAMPLERS)
def test_the_sampler_follows_the_law(law: str, sample: Callable[..., Any], dtype: type[Any]) -> None:
    samples = sample(3.0, (200, 500), np.random.default_rng(1), dtype=dtype)
    assert samples.shape == (200, 500)
    assert samples.dtype == dtype
    flat = samples.ravel().astype(np.float64)
    assert stats.kstest(flat / 3.0, law).pvalue > FALSE_ALARM
    assert stats.kstest(flat / 3.2, law).pvalue < FALSE_ALARM  # negative control


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
def test_zero_noise_and_empty_shapes(sample: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    assert not sample(0.0, 5, rng).any()
    assert sample(1.0, 0, rng).shape == (0,)
    assert sample(1.0, (), rng).shape == ()


@pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)
def test_bad_input_is_refused_before_anything_is_drawn(sample: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    for value in (-1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match=r"(std|scale) must be a finite number >= 0"):
            sample(value, 3, rng)
    with pytest.raises(ParameterError, match=r"(std|scale) must be at most 3.4e\+36 in float32, got 1e\+39"):
        sample(1e39, 3, rng, dtype=np.float32)
    with pytest.raises(ParameterError, match="dtype must be float32 or float64, got int64"):
        sample(1.0, 3, rng, dtype=np.int64)
    assert rng.bit_generator.state == before
