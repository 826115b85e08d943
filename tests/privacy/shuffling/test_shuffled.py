"""The event of a shuffled batch: priced alone, sampled and composed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Event,
    Gaussian,
    Neighbours,
    Relation,
    Repeat,
    Sampled,
    Unit,
    delta_of,
    epsilon_of,
)
from tacit.privacy.event_json import event_from_json, event_to_json
from tacit.privacy.pricing import method_of, pure_epsilon_of
from tacit.privacy.shuffling import Shuffled


def rounds(event: Event, rate: float, count: int) -> Event:
    return Repeat(Sampled(event, rate), count)


def test_epsilon_of_a_batch_as_specs_04_and_05() -> None:
    assert epsilon_of(Shuffled(1.0, 1000), 1e-5) == pytest.approx(0.154047, abs=1e-6)
    assert epsilon_of(Shuffled(1.0, 1000, "2rr"), 1e-5) == pytest.approx(0.125040, abs=1e-6)
    assert delta_of(Shuffled(1.0, 1000, "2rr"), 0.125040) == pytest.approx(1e-5, rel=1e-4)


@pytest.mark.parametrize(
    ("event", "delta", "epsilon"),
    [
        (Repeat(Shuffled(0.5, 10**4), 100), 1e-6, 0.241794),
        (rounds(Shuffled(1.5, 10**4), 1 / 6, 1200), 1e-5, 0.55576),
        (rounds(Shuffled(1.386294, 10**4), 1 / 6, 1200), 1e-5, 0.49038),
        (rounds(Shuffled(1.386294, 10**4, "2rr"), 1 / 6, 1200), 1e-5, 0.37890),
        (rounds(Shuffled(1.386294, 10**4), 1 / 6, 240), 1e-5, 0.20409),
        (rounds(Shuffled(1.386294, 10**4, "2rr"), 1 / 6, 240), 1e-5, 0.15764),
        (rounds(Shuffled(2.0, 10**4), 1 / 6, 480), 1e-5, 0.54291),
        (rounds(Shuffled(1.762747, 10**4), 1 / 6, 480), 1e-5, 0.43872),
        (rounds(Shuffled(1.762747, 10**4, "2rr"), 1 / 6, 480), 1e-5, 0.32687),
        (rounds(Shuffled(2.0, 10**3), 1e-3, 10**5), 1e-8, 0.20787),
    ],
)
def test_rounds_have_the_tabled_prices(event: Event, delta: float, epsilon: float) -> None:
    assert epsilon_of(event, delta) == pytest.approx(epsilon, rel=5e-4)


def test_many_rounds_of_many_parties() -> None:
    # A coarser grid, rounded up, gave 1.01774, 0.24 % more; the normal limit is 1.01522.
    found = epsilon_of(Repeat(Shuffled(0.5, 10**6), 10**5), 1e-8)
    assert found == pytest.approx(1.01534, abs=6e-6)


@pytest.mark.parametrize(
    ("messages", "rate", "shuffles", "epsilons"),
    [
        (16512, 1.0, 999, (0.486391, 1.173273, 3.229927)),
        (10000, 1.0, 199, (0.265422, 0.637894, 1.729067)),
        (1650, 0.1, 999, (0.139805, 0.339383, 0.938089)),
        (825, 0.05, 999, (0.096062, 0.234737, 0.657240)),
    ],
)
def test_rounds_of_hemisphere_reports(
    messages: int, rate: float, shuffles: int, epsilons: tuple[float, ...]
) -> None:
    for local, epsilon in zip((0.5, 1.0, 2.0), epsilons, strict=True):
        batch = Shuffled(local, messages, "2rr")
        # Two shuffles share the sample of a round; the first round has one.
        event: Event = Repeat(batch, shuffles)
        if rate < 1:
            event = Compose((Sampled(batch, rate), rounds(Repeat(batch, 2), rate, shuffles // 2)))
        assert epsilon_of(event, 1e-5) == pytest.approx(epsilon, rel=5e-4)


@pytest.mark.parametrize(
    ("parties", "local", "messages", "delta", "low", "high"),
    [
        (1000, 1.0, 10, 1e-5, 0.43832, 0.43852),
        (1000, 0.25, 40, 1e-5, 0.17070, 0.17149),
        (200, 0.5, 16, 1e-6, 0.65378, 0.65409),
        (10_000, 2.0, 100, 1e-6, 1.34677, 1.34876),
    ],
)
def test_several_shufflers_of_one_report(
    parties: int, local: float, messages: int, delta: float, low: float, high: float
) -> None:
    found = epsilon_of(Repeat(Shuffled(local, parties, "2rr"), messages), delta)
    assert low <= found <= high * 1.0005


@pytest.mark.parametrize("name", ["general", "2rr", "krr:5", "hadamard", "laplace", "privunit:0.2"])
def test_prices_are_monotone_and_below_the_local_level(name: str) -> None:
    prices = [epsilon_of(Shuffled(1.0, n, name), 1e-6) for n in (1, 10, 100, 1000)]
    assert all(a >= b for a, b in itertools.pairwise(prices))
    assert prices[0] <= 1.0
    assert pure_epsilon_of(Shuffled(1.0, 1000, name)) == pytest.approx(1.0)
    weaker = [epsilon_of(Shuffled(e, 300, name), 1e-6) for e in (0.1, 0.5, 1.0, 2.0, 4.0)]
    assert all(a < b for a, b in itertools.pairwise(weaker))
    renyi = Shuffled(1.0, 100, name).renyi(np.array([1.5, 2.0, 8.0, 1e4]))
    assert np.all(np.diff(renyi) > 0)
    assert renyi[-1] <= 1.0


def test_renyi_and_curve_agree() -> None:
    # The classical conversion of a Rényi bound may not be below the curve of the same law.
    batch, orders = Shuffled(1.0, 300), np.linspace(10, 200, 40)
    converted = np.min(batch.renyi(orders) + math.log(1e6) / (orders - 1))
    assert epsilon_of(batch, 1e-6) <= converted < 1.5 * epsilon_of(batch, 1e-6)


def test_event_combines_with_others_and_survives_a_file() -> None:
    event = Compose((Repeat(Shuffled(0.5, 1000, "krr:7"), 3), Gaussian(5.0)))
    assert event_from_json(event_to_json(event)) == event
    assert epsilon_of(event, 1e-6) > epsilon_of(Gaussian(5.0), 1e-6)
    assert "shuffling" in method_of(Shuffled(0.5, 1000), 1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 10), "local_epsilon must"),
        ((30.5, 10), "local_epsilon must"),
        ((math.nan, 10), "local_epsilon must"),
        ((1.0, 0), "parties must"),
        ((1.0, 2.5), "parties must"),
        ((1.0, True), "parties must"),
        ((1.0, 10, "clones"), "randomizer must be one of general, 2rr"),
        ((1.0, 10, "general", Neighbours(Relation.ADD_REMOVE)), "replace-one"),
        ((1.0, 10, "general", Neighbours(Relation.ZERO_OUT, Unit.PARTY)), "replace-one"),
    ],
)
def test_impossible_batches_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Shuffled(*arguments)  # type: ignore[arg-type]
