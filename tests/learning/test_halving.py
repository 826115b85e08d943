"""A step size by halving: when a run starts again, what it reads, and what all of it would cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import HalvedStep, HalvingTuner, LinearObjective, NoisyStorm, Settings, Squared, train
from tacit.learning.training import silos_for
from tacit.numerics import Array
from tacit.privacy import Gaussian, Repeat, epsilon_of
from tests.learning.algorithms.test_spider import D, data


def watched(
    losses: list[float],
) -> tuple[Callable[[float, Any], Array], Callable[[Array], float], list[float]]:
    """Return a run whose points are numbers of rounds, their losses, and the step sizes that it is given."""
    steps: list[float] = []

    def run(step: float, follow: Callable[[int, Array], None]) -> Array:
        steps.append(step)
        for r in range(len(losses)):
            follow(r, np.array([float(r)]))
        return np.array([float(len(losses))])

    return run, lambda w: losses[int(w[0])], steps


@pytest.mark.parametrize(
    ("losses", "grows"),
    [
        ([1.0, 1.06, 1.2, 1.3], True),
        ([1.0, 1.05, 1.2, 1.3], False),  # not above 1.05 times
        ([1.0, 1.1, 1.2, 1.2, 1.3, 1.4], False),  # not in a row
        ([1.0, 1.1, 1.2, 1.2, 1.3, 1.4, 1.5], True),
        ([1.0, 1.1, 1.2], False),
        ([1.0, np.inf], True),
        ([np.nan], True),
    ],
)
def test_three_losses_in_a_row_that_grow_end_a_run(losses: list[float], grows: bool) -> None:
    run, loss, steps = watched(losses)
    found = HalvingTuner(check_every=1, most_runs=3).tune(run, loss)
    assert steps == ([0.5, 0.25, 0.125] if grows else [0.5])
    assert (found.step_size, found.runs, found.stable) == (steps[-1], len(steps), not grows)
    assert found.w[0] == len(losses)  # the last goes to its end
    np.testing.assert_array_equal(found.losses, losses)


def test_losses_are_read_every_twentieth_round() -> None:
    read: list[float] = []
    run, _, _ = watched([0.0] * 65)

    def loss(w: Array) -> float:
        read.append(float(w[0]))
        return 1.0

    HalvingTuner().tune(run, loss)
    assert read == [19.0, 39.0, 59.0]


def test_points_that_are_not_finite_end_a_run_at_once() -> None:
    def run(step: float, follow: Callable[[int, Array], None]) -> Array:
        w = np.array([np.inf if step > 0.2 else 0.0])
        follow(0, w)
        return w

    assert HalvingTuner().tune(run, lambda w: float(w[0])).step_size == 0.125


def test_points_that_are_not_finite_are_not_read() -> None:
    """Or a mechanism that releases a finite loss of them would be asked more often than is priced."""
    read: list[int] = []

    def run(step: float, follow: Callable[[int, Array], None]) -> Array:
        for r in range(65):
            follow(r, np.array([np.nan if r >= 20 else float(r)]))
        return np.array([np.nan])

    def loss(w: Array) -> float:
        read.append(len(read))
        return 1.0

    found = HalvingTuner(most_runs=2).tune(run, loss)
    assert (found.runs, found.stable, len(read)) == (2, False, 2)


def test_a_federation_is_trained_with_the_step_that_halving_finds() -> None:
    goal, silos = LinearObjective(loss=Squared(), features=D, feature_norm=1.0), data()
    algorithm = NoisyStorm(rounds=30, beta=1.0)
    settings = Settings(objective=goal, algorithm=algorithm, clip=1e12)

    def run(step: float, follow: Callable[[int, Array], None]) -> Array:
        stepped = replace(settings, algorithm=msgspec.structs.replace(algorithm, step_size=step))
        names = [str(k) for k in range(len(silos))]
        return train(silos_for(stepped, silos, names=names, seed=1), stepped, follow=follow).w

    def loss(w: Array) -> float:
        return float(np.mean([goal.value(w, one).mean() for one in silos]))

    found = HalvingTuner(start=64.0, check_every=5).tune(run, loss)
    assert (found.step_size, found.runs, found.stable) == (4.0, 5, True)
    assert found.losses[-1] == loss(found.w) < loss(np.zeros(D))
    # What is clipped may go back and forth far away, at losses that do not grow: the rule does not see it.
    settings = replace(settings, clip=100.0)
    far = HalvingTuner(start=64.0, check_every=5).tune(run, loss)
    assert far.stable
    assert far.losses[-1] > 1e5 * loss(np.zeros(D))
    assert "non-privately" in HalvedStep.warning
    assert "NOT private" in str(HalvingTuner.__doc__)


def test_all_that_may_be_read_is_priced() -> None:
    """Four runs of multiplier 5 with three losses each, of multiplier 8: one Gaussian of their levels."""
    tuner = HalvingTuner(most_runs=4)
    event = tuner.at_most(Gaussian(5.0), Gaussian(8.0), rounds=65)
    whole = Gaussian((4 / 5.0**2 + 12 / 8.0**2) ** -0.5)
    assert epsilon_of(event, 1e-5) == pytest.approx(epsilon_of(whole, 1e-5), rel=1e-6)
    assert tuner.at_most(Gaussian(5.0), Gaussian(8.0), rounds=19) == Repeat(Gaussian(5.0), 4)


@pytest.mark.parametrize("name", ["start", "check_every", "factor", "patience", "most_runs"])
def test_bad_values_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        HalvingTuner(**{name: 0})
