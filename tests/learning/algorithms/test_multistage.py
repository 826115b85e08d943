"""The stages of AC-SA against independent reference values, and against their own bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning.algorithms.accelerated import ac_sa, excess_bound
from tacit.learning.algorithms.multistage import Stage, stage, stages
from tacit.numerics import Array, Zero

Gradient = Callable[[Array], Array]
D, MU, BETA = 20, 0.1, 5.0
SPECTRUM = np.geomspace(MU, BETA, D)
START = np.full(D, math.sqrt(2 / SPECTRUM.sum()))
"""Where the gap of the quadratic with this spectrum is Delta = 1."""


def run(gradient: Gradient, w: Array, part: Stage) -> Array:
    """One stage."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (7.0,)
        return (gradient(at["w"]),)

    return ac_sa(
        ask,
        w,
        rounds=part.rounds,
        nu=part.nu,
        mu=MU,
        radius=7.0,
        prox=Zero(),
        follow=lambda _r, _w: None,
    )


def gap(w: Array) -> float:
    return float((SPECTRUM * w * w).sum() / 2)


def test_stage_lengths_of_the_reference() -> None:
    lengths = [stage(k, smoothness=BETA, mu=MU, gap=1.0, noise_std=0.3).rounds for k in range(1, 6)]
    assert lengths == [154, 308, 615, 1229, 2458]
    still = stage(3, smoothness=BETA, mu=MU, gap=1.0, noise_std=0.0)
    assert still == Stage(rounds=40, nu=2 * BETA)


def test_the_nu_of_a_stage_multiplies() -> None:
    second = stage(2, smoothness=BETA, mu=MU, gap=1.0, noise_std=0.3)
    R = second.rounds
    assert second.nu == pytest.approx(math.sqrt(MU * 0.09 / (3 / 2) * R * (R + 1) * (R + 2)))


def through(planned: tuple[Stage, ...], gradient: Gradient) -> list[float]:
    """The gap after each stage."""
    w, gaps = START, []
    for part in planned:
        w = run(gradient, w, part)
        gaps.append(gap(w))
    return gaps


def test_stage_values_of_the_reference_without_noise() -> None:
    planned = stages(smoothness=BETA, mu=MU, gap=1.0, noise_std=0.0, rounds=130)
    gaps = through(planned, lambda w: SPECTRUM * w)
    assert gaps == pytest.approx([1.476e-3, 1.391e-4, 1.714e-5], rel=1e-3)


def test_stage_values_of_the_reference_with_noise() -> None:
    """Every round's noise moves the output linearly: row r of one run carries the noise of round r alone."""
    rounds, noise_std = 154 + 308 + 615, 0.3 / math.sqrt(D)
    count = iter(range(rounds))

    def noisy(w: Array) -> Array:
        slope = SPECTRUM * w
        slope[next(count)] += noise_std
        return slope

    w, means = np.tile(START, (rounds + 1, 1)), []
    for part in stages(smoothness=BETA, mu=MU, gap=1.0, noise_std=0.3, rounds=rounds):
        w = run(noisy, w, part)
        means.append(gap(w[-1]) + (SPECTRUM * (w - w[-1]) ** 2).sum() / 2)
    assert means == pytest.approx([2.4e-3, 8.5e-4, 4.1e-4], rel=0.05)  # two digits, and sampled
    assert all(mean <= 2.0**-k for k, mean in enumerate(means, start=1))


@pytest.mark.parametrize("noise_std", [0.0, 1e-2, 0.3, 10.0])
@pytest.mark.parametrize("mu", [1e-4, 1e-2, 1.0, BETA])
def test_steps_that_count_on_no_convexity_halve_the_gap_too(mu: float, noise_std: float) -> None:
    """Where the penalty is strongly convex, a stage is AC-SA from a squared distance of 2 gap / mu."""
    for k in (1, 2, 6):
        one, before = stage(k, smoothness=BETA, mu=mu, gap=1.0, noise_std=noise_std), 2.0 ** -(k - 1)
        distance = math.sqrt(2 * before / mu)
        bound = excess_bound(nu=one.nu, noise_std=noise_std, rounds=one.rounds, diameter=distance)
        assert bound < (1 / 4 + 1 / 22) * before


def test_stages_stop_where_rounds_end() -> None:
    facts = {"smoothness": BETA, "mu": MU, "gap": 1.0, "noise_std": 0.3}
    assert len(stages(rounds=154 + 308 - 1, **facts)) == 1
    assert len(stages(rounds=154 + 308, **facts)) == 2
    assert stages(rounds=153, **facts) == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mu": 6.0}, "mu must be at most the smoothness 5.0, got 6.0"),
        ({"mu": 0.0}, "mu must be a finite number > 0"),
        ({"mu": -1.0}, "mu must be a finite number >= 0"),
        ({"mu": math.nan}, "mu must be a finite number >= 0"),
        ({"gap": 0.0}, "gap must be a finite number > 0"),
        ({"noise_std": math.nan}, "noise_std must be a finite number >= 0"),
    ],
)
def test_bad_stages_are_refused(changes: dict[str, float], message: str) -> None:
    facts = {"smoothness": BETA, "mu": MU, "gap": 1.0, "noise_std": 0.3, **changes}
    with pytest.raises(ParameterError, match=message):
        stage(1, **facts)
