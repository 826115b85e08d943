"""The printed bound of shuffled gradients and what exceeds it; corollaries, parameters and rates."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.learning.shuffled import (
    ShuffledMethod,
    ShuffledRun,
    SurrogateEpoch,
    largest_step_size,
    surrogate_bound,
    surrogate_epochs,
)
from tacit.literature import (
    corollary_risk,
    noise_at_rest,
    paper_risk,
    paper_shuffled_epochs,
    paper_shuffled_step_size,
    shuffled_risk_rates,
)

FACTS: dict[str, Any] = {"dim": 10, "start_distance": 3.0, "gradient_variance": 4.0}


@pytest.mark.parametrize(
    ("n", "scale", "K", "ratio"), [(10, 1e-3, 100_000, 1.665), (100, 1e-4, 10**6, 14.06)]
)
def test_a_run_exceeds_the_printed_bound_and_not_the_corrected_one(
    n: int, scale: float, K: int, ratio: float
) -> None:
    eta = scale / n
    exact = noise_at_rest(steps=n, epochs=K, dim=3, step_size=eta, noise_std=2.0)
    epoch = SurrogateEpoch(smoothness=1.0, noise_std=2.0)
    # All epochs are alike: of one epoch, with the harmonic factor of all.
    printed = paper_risk(
        [epoch], steps=n, dim=3, step_size=eta, start_distance=0.0, gradient_variance=0.0
    ).noise * (1 + math.log(K))
    assert exact / printed == pytest.approx(ratio, rel=4e-4)
    corrected = 2 * epoch.noise_error(steps=n, dim=3, step_size=eta)  # times a harmonic number above 1
    assert exact < corrected


def test_the_value_at_rest() -> None:
    found = noise_at_rest(steps=10, epochs=100_000, dim=1, step_size=1e-4, noise_std=1.0)
    assert found == pytest.approx(2.500125e-5, rel=1e-6)
    r = 0.98
    assert noise_at_rest(steps=5, epochs=1, dim=1, step_size=0.02, noise_std=1.0) == pytest.approx(
        sum(0.02**2 * r ** (2 * i) for i in range(5)) / 2
    )


def test_the_printed_noise_of_the_example_is_a_third_of_the_corrected_one() -> None:
    epochs = [SurrogateEpoch(smoothness=1.0, noise_std=5.0)] * 20
    eta = largest_step_size(epochs, steps=100, smoothness=1.0)
    found = paper_risk(epochs, steps=100, step_size=eta, **FACTS)
    assert (found.start, found.orders, found.noise) == pytest.approx((5.689062437, 1.0, 0.75), rel=1e-6)
    run = ShuffledRun(method=ShuffledMethod.PRIVATE, steps=100, epochs=20)
    corrected = corollary_risk(run, step_size=eta, noise_std=5.0, largest_smoothness=1.0, **FACTS)
    assert corrected.noise == pytest.approx(2.205295121)
    assert corrected.surrogate == 0


@pytest.mark.parametrize("method", ShuffledMethod)
def test_corollaries_are_above_the_theorem(method: ShuffledMethod) -> None:
    run = ShuffledRun(method=method, steps=40, epochs=12, share=0.25)
    ours = SurrogateEpoch(smoothness=0.8, largest_smoothness=1.0, noise_std=2.0)
    theirs = SurrogateEpoch(smoothness=0.7, largest_smoothness=1.5, dissimilarity=9.0, partial_squares=4.0)
    epochs = surrogate_epochs(run, ours, theirs)
    eta = largest_step_size(epochs, steps=40, smoothness=0.8)
    exact = surrogate_bound(epochs, steps=40, step_size=eta, smoothness=0.8, strong_convexity=0.6, **FACTS)
    loose = corollary_risk(
        run, step_size=eta, noise_std=2.0, largest_smoothness=1.0, public=theirs, beta=0.6, **FACTS
    )
    assert loose.start == pytest.approx(exact.start)
    assert loose.orders >= exact.orders
    assert loose.noise + loose.surrogate >= exact.noise + exact.surrogate
    assert (loose.noise > 0) == (method is not ShuffledMethod.PUBLIC)
    assert (loose.surrogate > 0) == (method is not ShuffledMethod.PRIVATE)


def test_prescribed_parameters() -> None:
    assert paper_shuffled_epochs(1000, 784, 5.0) == 32
    assert paper_shuffled_epochs(1000, 11, 5.0) == 2273
    eta = paper_shuffled_step_size(steps=1000, epochs=50, start_distance=8.0, largest_smoothness=2.0)
    assert eta == pytest.approx(4 / (2000 * (50 * (1 + math.log(50))) ** (1 / 3)))


def test_rates() -> None:
    found = shuffled_risk_rates(1000, 100, 0.5, share=0.25)
    root = 10 / 0.5
    assert found["dp-shuffle"].printed == pytest.approx(1000 ** (-2 / 3) * root ** (4 / 3))
    assert found["dp-shuffle"].corrected == pytest.approx(root / math.sqrt(1000))
    assert found["private-public-shuffle"].corrected == pytest.approx(root * math.sqrt(0.25 / 1000))
    assert found["interleaved-shuffle"].corrected == pytest.approx(root / math.sqrt(1000 * 751))
    assert {one.hidden for one in found.values()} == {root / 1000}
    # 1 / ((1 - p) n + 1) <= p from p = 1 / n on: interleaving never has the larger rate of the two.
    for share in (1 / 1000, 0.01, 0.5, 0.999, 1.0):
        rates = shuffled_risk_rates(1000, 100, 0.5, share=share)
        assert rates["interleaved-shuffle"].corrected <= rates["private-public-shuffle"].corrected * (
            1 + 1e-12
        )
    with pytest.raises(ParameterError, match="share must be at least"):
        shuffled_risk_rates(1000, 100, 0.5, share=0.0005)


@pytest.mark.parametrize(
    ("change", "message"), [({"step_size": -1.0}, "step_size"), ({"noise_std": math.nan}, "noise_std")]
)
def test_bounds_of_no_run_are_refused(change: Any, message: str) -> None:
    run = ShuffledRun(method=ShuffledMethod.PRIVATE, steps=100, epochs=20)
    with pytest.raises(ParameterError, match=message):
        corollary_risk(
            run, **{"step_size": 0.1, "noise_std": 1.0, "largest_smoothness": 1.0, **FACTS, **change}
        )
    with pytest.raises(ParameterError, match="the number of epochs"):
        paper_risk([], steps=100, step_size=0.1, **FACTS)
    with pytest.raises(ParameterError, match="step_size"):
        noise_at_rest(steps=1, epochs=1, dim=1, step_size=1.0, noise_std=1.0)
    with pytest.raises(ParameterError, match="epochs"):
        paper_shuffled_step_size(steps=1, epochs=0, start_distance=1.0, largest_smoothness=1.0)
