from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import LocalLaplaceMean, Message, Round
from tacit.privacy import PrivacyBudget


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.0, 1.1, 2.3, 3.0, 7.7])
@pytest.mark.parametrize("steps", [1, 100, 2**16])
def test_the_scale_is_rounded_towards_privacy(epsilon: float, steps: int) -> None:
    mean = LocalLaplaceMean(dim=3, local_epsilon=epsilon, steps=steps)
    moved = 2 * steps + 3
    assert moved / Fraction(mean.scale) <= Fraction(epsilon)
    assert mean.scale == pytest.approx(moved / epsilon, rel=1e-15)


def test_noise_that_could_not_be_sampled_is_refused_at_once_and_never_calibrated() -> None:
    with pytest.raises(ParameterError, match="local_epsilon is too small"):
        LocalLaplaceMean(dim=1, local_epsilon=2.0**-30, steps=2**30)
    least = LocalLaplaceMean.calibrated(dim=1, budget=PrivacyBudget(2.0**-23), n=1, steps=2**30)
    found = least.estimate(np.zeros((2, 1)), Round(n=2, radius=1.0), rng=np.random.default_rng(0))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("radius", [1.0, 2.0**100])
def test_sums_that_overflow_are_refused(radius: float) -> None:
    mean = LocalLaplaceMean(dim=1, local_epsilon=1.0, steps=0)
    huge = [Message(payload=np.array([1.7e308]), sender=party) for party in range(2)]
    with pytest.raises(ParameterError, match="overflow"):
        mean.decode(huge, Round(n=1, radius=radius))
