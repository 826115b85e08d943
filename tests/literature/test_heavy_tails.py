"""Hard laws: their moments, their means, and the exact errors that clipping makes on them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from tacit.errors import ParameterError
from tacit.literature import (
    HardPrivateLaw,
    HardStatisticalLaw,
    heavy_tail_lower_rate,
)
from tacit.means import (
    AdditiveMean,
    GaussianNoise,
    Round,
    balanced_clip,
    clip_bias,
)
from tacit.privacy import TrustModel
from tests.statistics import z_bound


def hard(
    n: int = 100, dim: int = 4, order: float = 2, rho: float = 0.5, scale: float = 1.0
) -> HardPrivateLaw:
    return HardPrivateLaw.of(n=n, dim=dim, rho=rho, order=order, rng=np.random.default_rng(0), scale=scale)


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_the_hard_law_has_its_moment_and_its_mean(order: float) -> None:
    law = hard(order=order, scale=1.7)
    assert law.probability == pytest.approx(2 / (100 * math.sqrt(0.5)))
    assert (law.probability * law.length**order) ** (1 / order) == pytest.approx(law.moment.value)
    assert law.moment.value == pytest.approx(1.7 * 2)
    rows = law.draw(20_000, rng=np.random.default_rng(1))
    assert set(np.round(np.linalg.norm(rows, axis=1), 9)) == {0.0, round(law.length, 9)}
    wide = z_bound(4) * rows.std(axis=0) / math.sqrt(len(rows))
    assert np.all(np.abs(rows.mean(axis=0) - law.mean) <= wide)
    # Few rows, and every row is long.
    assert hard(n=2, dim=9).probability == 1.0


def test_the_sweep_over_clips_has_its_least_where_it_should() -> None:
    """d = 4, s = 100, epsilon = 1: least at C = 3.56 with 0.0793; 0.0953 at C = 6."""
    law = hard()
    best = law.best_clip(100, noise_multiplier=1.0)
    assert best == pytest.approx(3.56, abs=0.005)
    assert law.clipped_error(100, clip=best, noise_multiplier=1.0).mse == pytest.approx(0.0793, abs=5e-5)
    at_six = law.clipped_error(100, clip=6.0, noise_multiplier=1.0)
    assert at_six.bias == pytest.approx(0.166652939)
    assert at_six.mse == pytest.approx(0.0952675396)
    found = optimize.minimize_scalar(
        lambda clip: law.clipped_error(100, clip=clip, noise_multiplier=1.0).mse,
        bounds=(0.1, 12),
        method="bounded",
    )
    assert found.x == pytest.approx(best, rel=1e-4)
    # The clip that knows the moment only is as good as any for the worst law with that moment.
    balanced = balanced_clip(law.moment, rows=100, dim=4, noise_multiplier=1.0)
    assert law.clipped_error(100, clip=balanced, noise_multiplier=1.0).mse < 1.15 * 0.0793
    assert at_six.bias <= clip_bias(law.moment, 6.0)


def test_the_error_is_that_of_the_estimator() -> None:
    law, trials = hard(n=50, dim=2, order=3), 2000
    mean = AdditiveMean(dim=2, noise=GaussianNoise(0.5), trust=TrustModel.CENTRAL)
    rng, squares = np.random.default_rng(2), np.empty(trials)
    for t in range(trials):
        estimate = mean.estimate(law.draw(50, rng=rng), Round(n=50, radius=2.0), rng=rng)
        squares[t] = np.sum((estimate - law.mean) ** 2)
    exact = law.clipped_error(50, clip=2.0, noise_multiplier=0.5).mse
    assert abs(squares.mean() - exact) <= z_bound(1) * squares.std() / math.sqrt(trials)


@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_balanced_clip_meets_the_rate_on_the_hard_law(order: float) -> None:
    """The noise and the bias have the slope of (2 k - 2) / k in n, and of the root for linear losses."""
    sizes = np.array([10**3, 10**4, 10**5])
    errors = []
    for n in sizes.tolist():
        law = hard(n=n, order=order)
        clip = balanced_clip(law.moment, rows=n, dim=4, noise_multiplier=1.0)
        found = law.clipped_error(n, clip=clip, noise_multiplier=1.0)
        errors.append(found.mse)
        rate = heavy_tail_lower_rate(law.moment, n=n, dim=4, rho=0.5, strong_convexity=1.0)
        assert 0.02 < found.mse / rate < 5
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-(2 * order - 2) / order, abs=0.02)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_no_estimate_beats_the_bound_for_signs(n: int) -> None:
    """The posterior mean is the best of all estimates where both signs of the mean are as likely."""
    law = HardStatisticalLaw.of(n=n, dim=1, rng=np.random.default_rng(0))
    m, ones = float(np.abs(law.means[0])), np.arange(n + 1)
    up, down = (stats.binom.pmf(ones, n, (1 + s * m) / 2) for s in (1, -1))
    best = m * (up - down) / (up + down)
    risk = float(np.sum(up * (best - m) ** 2))
    bound = law.least_squared_error(n)
    assert 1 / (64 * n) <= bound <= risk
    assert bound >= (m**2 / 8) * (1 - 1 / math.sqrt(2))


def test_the_law_of_signs_has_its_mean_and_moments() -> None:
    law = HardStatisticalLaw.of(n=8, dim=3, rng=np.random.default_rng(1), scale=2.0)
    rows = law.draw(20_000, rng=np.random.default_rng(2))
    assert np.allclose(np.abs(law.mean), 2 / 4)
    assert np.all(np.abs(rows.mean(axis=0) - law.mean) <= z_bound(3) * 2 / math.sqrt(20_000))
    assert law.moment(5).value == pytest.approx(float(np.linalg.norm(rows[0])))


def test_laws_refuse_what_they_are_not() -> None:
    for corner in (np.zeros(2), np.ones((1, 2)), np.ones(0)):
        with pytest.raises(ParameterError, match="corner"):
            HardPrivateLaw(corner=corner, probability=0.5, order=2)
    for fields in ({"probability": 0.0}, {"order": 1.0}, {"scale": 0.0}):
        with pytest.raises(ParameterError):
            HardPrivateLaw(**{"corner": np.ones(1), "probability": 0.5, "order": 2.0, **fields})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="means"):
        HardStatisticalLaw(means=np.array([1.5]))
