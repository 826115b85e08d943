"""Games on a sum of shares of noise: the code stands, and the mistakes that break such sums are seen."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit.audits import Audit, audit, mechanism_target, sum_target
from tacit.cli import main
from tacit.errors import ParameterError
from tacit.means import DiscreteGaussianNoise, ModularSumMean
from tacit.mechanisms import sample_discrete_gaussian
from tacit.numerics import Array
from tacit.privacy import Compose, DiscreteGaussianSum, Event, PrivacyBudget, delta_of
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

SURE = 1 - FALSE_ALARM
BUDGET = PrivacyBudget(1.0, 1e-5)
Run = Callable[[bool, int, np.random.Generator], Array]


def attacked(run: Run, event: Event, delta: float, *, runs: int = 400_000, name: str = "sum") -> Audit:
    return audit(run, (event, delta), runs=runs, confidence=SURE, rng=simulated(1, "audit", name))


# Mistakes that leave a sum with less protection than its shares promise


def test_saturating_after_the_noise_is_seen() -> None:
    """Clipped messages forget the noise of whoever is at the border: one share is left of four."""
    event = DiscreteGaussianSum(5.0, 4, 10.0, dim=1)

    def run(width: int) -> Run:
        def once(present: bool, size: int, rng: np.random.Generator) -> Array:
            exact = np.array([10 if present else 0, 60, 60, 60])
            noisy = exact + sample_discrete_gaussian(5.0, (size, 4), rng)
            return np.asarray(np.clip(noisy, -width, width).sum(axis=1))

        return once

    delta = delta_of(event, 2.0)
    assert delta == pytest.approx(0.0277, abs=1e-4)
    assert attacked(run(20), event, delta).refuted
    assert not attacked(run(1000), event, delta).refuted


def test_two_sums_of_one_round_are_seen() -> None:
    """Sums with and without one party, of the same messages, differ by its message: one share is left."""
    event = DiscreteGaussianSum(3730.64 / math.sqrt(8), 8, 1000.0, dim=1)

    def run(again: bool) -> Run:
        def once(present: bool, size: int, rng: np.random.Generator) -> Array:
            first, rest = (
                sample_discrete_gaussian(event.std, (size, k), rng).sum(axis=1) + 1000 * (present and k == 1)
                for k in (1, 7)
            )
            return np.asarray((first + rest) - rest * again)

        return once

    stands, broken = attacked(run(again=False), event, 1e-5), attacked(run(again=True), event, 1e-5)
    assert stands.claimed_epsilon == pytest.approx(1.0, abs=1e-3)
    assert not stands.refuted
    assert broken.refuted
    assert broken.empirical_epsilon_lower < 3.19  # what one share alone gives


def test_two_statistics_under_one_mask_are_seen() -> None:
    """The difference of two messages under equal masks has the noise of one party, and twice the distance."""
    once = DiscreteGaussianSum(3.0, 9, 2.0, dim=1)
    event = Compose((once, once))
    delta = delta_of(event, 1.0)
    assert delta == pytest.approx(2.1e-4, abs=1e-5)

    def run(masks: int) -> Run:
        def attack(present: bool, size: int, rng: np.random.Generator) -> Array:
            both = sample_discrete_gaussian(3.0, (size, 9, 2), rng)
            both[:, 0] += np.array([1, -1]) * (1 if present else -1)
            seen = both[:, 0] if masks == 1 else both.sum(axis=1)
            return seen[:, 0] - seen[:, 1]

        return attack

    assert attacked(run(masks=1), event, delta).refuted
    assert not attacked(run(masks=2), event, delta).refuted


# The estimator itself


@pytest.mark.parametrize("colluding", [0, 1, 3])
def test_the_honest_sum_stands_and_half_the_noise_is_caught(colluding: int) -> None:
    alone = []
    for factor in (1.0, 0.5):
        target = mechanism_target("aggregate", BUDGET, noise_factor=factor, colluding=colluding)
        assert target.alone is not None
        for game, claim in ((target, 1.0), (target.alone, 1.467)):
            found = attacked(game.run, game.event, BUDGET.delta, runs=600_000, name=game.attack)
            assert found.claimed_epsilon == pytest.approx(claim, abs=2e-3)
            assert found.refuted == (factor < 1)
            alone += [found.empirical_epsilon_lower] if factor == 1 else []
    assert 0.4 < alone[0] < alone[1]  # and what a message alone shows is more


def test_more_colluders_than_are_counted_are_seen() -> None:
    """Ten parties of which eight are counted; if all others collude, one share is left."""
    share = DiscreteGaussianNoise(3.76001 / math.sqrt(8), steps=512)
    sound = sum_target(ModularSumMean(dim=1, noise=share, shares=8, width=17), parties=10, colluding=2)
    assert sound.alone is not None
    assert not attacked(sound.run, sound.event, 1e-5, runs=100_000).refuted
    assert attacked(sound.alone.run, sound.event, 1e-5, runs=100_000).refuted


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"parties": 3, "colluding": 2}, "colluding must be a whole number from 0 to 1, got 2"),
        ({"parties": 1, "colluding": 0}, "parties must be a whole number >= 2, got 1"),
        (
            {"parties": 4, "colluding": 2},
            "must leave the 3 honest parties that the price counts on, got 2 of 4",
        ),
    ],
)
def test_games_without_a_price_are_refused(counts: dict[str, int], said: str) -> None:
    mean = ModularSumMean(dim=1, noise=DiscreteGaussianNoise(1.0, steps=512), shares=3, width=30)
    with pytest.raises(ParameterError, match=said):
        sum_target(mean, parties=counts["parties"], colluding=counts["colluding"])


def test_the_command_shows_both_games(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["audit", "--mechanism", "aggregate", "--epsilon", "1", "--delta", "1e-5"]
    assert main([*options, "--json", "--runs", "100000"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["event"]["shares"] == 2
    assert found["attack"] == "sum of 3 messages less those of colluding parties (1)"
    assert found["empirical_epsilon_lower"] <= found["claimed_epsilon"] == 1.0
    alone = found["alone"]
    assert alone["event"]["event"] == "DiscreteGaussian"
    assert alone["claimed_epsilon"] > 1.4
    assert not alone["refuted"]
    assert main([*options, "--noise-factor", "0.5", "--runs", "400000"]) == 1
    assert "Attack on aggregate, with 0.5 times" in capsys.readouterr().out
