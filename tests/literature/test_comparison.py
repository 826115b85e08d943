"""All bounds side by side: what is called a proof is one, and guarantees use a good one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError
from tacit.literature import Bound, Status, compare, paper_epsilon
from tacit.literature.shuffling.bounds import BOUNDS
from tacit.privacy import (
    AnyOf,
    Binomial,
    Event,
    Gaussian,
    Iteration,
    Laplace,
    NonPrivate,
    Order,
    PureDP,
    Release,
    Repeat,
    Sampled,
    Shuffled,
    Zcdp,
    epsilon_of,
)
from tests.privacy.event_examples import EVENTS

DELTA = 1e-6
GRID = 1 + 1e-5  # compositions are put on a grid, rounded up; sums of Rényi bounds are not
USED = "what guarantees use"
HIDDEN: dict[str, Any] = {
    "step_times_smoothness": 1.0,
    "convex": True,
    "clip_safe": True,
    "prox_convex": True,
}


def shuffles(parties: int, local: float, rounds: int, rate: float, randomizer: str = "general") -> Event:
    batch: Event = Shuffled(local, round(parties * rate), randomizer)
    batch = batch if rate == 1 else Sampled(batch, rate)
    return batch if rounds == 1 else Repeat(batch, rounds)


def used(bounds: tuple[Bound, ...]) -> Bound:
    (found,) = [bound for bound in bounds if bound.note == USED]
    return found


def by_name(bounds: tuple[Bound, ...]) -> dict[str, float]:
    names = [bound.method for bound in bounds if bound.note != USED]
    assert len(set(names)) == len(names)
    return {bound.method: bound.epsilon for bound in bounds if bound.note != USED}


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("rounds", [1, 10])
@pytest.mark.parametrize(
    ("parties", "local"), [(100, 0.1), (100, 1.0), (100, 3.0), (3000, 0.5), (100_000, 0.1), (100_000, 3.0)]
)
def test_no_proof_is_below_a_lower_bound(parties: int, local: float, rounds: int, rate: float) -> None:
    bounds = compare(shuffles(parties, local, rounds, rate), DELTA)
    below = max(bound.epsilon for bound in bounds if bound.status is Status.LOWER_BOUND)
    proofs = [bound for bound in bounds if bound.status is Status.PROOF]
    assert below > 0
    assert min(proofs, key=lambda bound: bound.epsilon).epsilon >= below
    # One method prices all; of few messages in one round, a Rényi bound may prove a little more.
    known_exception = parties * rate <= 100 and rounds == 1 and rate == 1
    smallest = min(bound.epsilon for bound in proofs)
    assert used(bounds).epsilon * (0.9 if known_exception else 1 - 1e-9) <= smallest
    assert used(bounds).epsilon <= by_name(bounds)["no shuffler"] * (1 + 1e-9)


@pytest.mark.parametrize(
    "name", [name for name in EVENTS if "Shuffled" not in name and "shuffled" not in name]
)
def test_guarantees_use_the_smallest_proof(name: str) -> None:
    bounds = compare(EVENTS[name], 1e-5)
    assert used(bounds).epsilon == epsilon_of(EVENTS[name], 1e-5)
    proofs = [bound.epsilon for bound in bounds if bound.status is Status.PROOF]
    assert used(bounds).epsilon <= min(proofs) * GRID


@pytest.mark.parametrize(
    "event",
    [
        Repeat(Gaussian(2.0), 10),
        Repeat(Sampled(Gaussian(1.0), 0.01), 1000),
        Repeat(Laplace(5.0), 100),
        Repeat(AnyOf((Gaussian(3.0), PureDP(0.2))), 20),
        Repeat(Zcdp(0.01), 5),
        Repeat(Iteration(1.0, 50, 4, order=Order.RR, release=Release.LAST, **HIDDEN), 3),
        Binomial(1_000_000, 22, 10, rounds=5),
        Repeat(Binomial(7148, 10), 4),
    ],
    ids=lambda event: repr(event)[:40],
)
def test_guarantees_of_compositions_use_the_smallest_proof(event: Event) -> None:
    bounds = compare(event, DELTA)
    assert used(bounds).epsilon <= min(bound.epsilon for bound in bounds) * GRID
    assert len(bounds) > 1 or isinstance(event, Binomial)


def test_bounds_keep_the_status_and_the_note_of_their_source() -> None:
    known = {bound.name: bound for bound in BOUNDS}
    found = [bound for bound in compare(shuffles(10_000, 0.4, 1, 1.0), DELTA) if bound.method in known]
    assert len(found) >= 15
    for bound in found:
        assert (bound.status.value, bound.note) == (known[bound.method].status, known[bound.method].note)
    withdrawn = {b.method for b in found if b.status is Status.PAPER_ONLY}
    assert withdrawn >= {"Feldman et al. (2023)", "privacy blanket, Hoeffding"}


def test_lower_bounds_come_first_then_proofs_each_tightest_first() -> None:
    bounds = compare(shuffles(100, 1.0, 10, 1.0), DELTA)
    order = [Status.LOWER_BOUND, Status.PROOF, Status.PAPER_ONLY]
    keys = [(order.index(bound.status), bound.epsilon) for bound in bounds]
    assert keys == sorted(keys)
    assert {bound.status for bound in bounds} == set(Status)


@pytest.mark.parametrize("randomizer", ["krr:8", "laplace", "hadamard"])
def test_a_lower_bound_is_not_claimed_of_messages_that_may_hide_more(randomizer: str) -> None:
    bounds = compare(shuffles(100, 1.0, 1, 1.0, randomizer), DELTA)
    assert Status.LOWER_BOUND not in {bound.status for bound in bounds}
    general = {b.method: b for b in compare(shuffles(100, 1.0, 1, 1.0, "general"), DELTA)}
    assert used(bounds).epsilon <= general["clones, optimal composition"].epsilon * (1 + 1e-9)


def test_without_a_shuffler_the_local_level_is_composed() -> None:
    names = by_name(compare(shuffles(1000, 0.5, 10, 0.1), DELTA))
    assert names["no shuffler"] == epsilon_of(Repeat(Sampled(PureDP(0.5), 0.1), 10), DELTA)


def test_composition_theorems_are_ordered() -> None:
    names = by_name(compare(Repeat(Laplace(10.0), 400), DELTA))
    assert names["optimal composition"] < names["strong composition, tightened"] < names["strong composition"]
    assert names["basic composition"] == pytest.approx(400 * epsilon_of(Laplace(10.0), DELTA / 400))


def test_a_composition_theorem_keeps_to_the_delta_it_is_given() -> None:
    # 0.1-DP, 100 times, at delta 1e-5: the optimal theorem gives 4.306791.
    names = by_name(compare(Repeat(PureDP(0.1), 100), 1e-5))
    assert names["optimal composition"] >= 4.306791 * (1 - 1e-6)
    assert names["optimal composition"] == pytest.approx(4.306791, rel=1e-2)


@pytest.mark.parametrize(
    ("event", "energy"),
    [
        (Iteration(2.0, 20, 3), 3.0),
        (Iteration(2.0, 20, 3, 5), 3.0),
        (Iteration(2.0, 20, 3, 5, release=Release.LAST, **HIDDEN), 3 / 16),
        (Iteration(2.0, 20, 3, 5, release=Release.EPOCHS, **HIDDEN), 3 / 16),
    ],
    ids=["all", "all, some public", "last, some public", "epochs, some public"],
)
def test_the_papers_accountant_gains_from_public_steps_only_where_they_are_hidden(
    event: Iteration, energy: float
) -> None:
    bounds = compare(event, DELTA)
    printed = by_name(bounds)["paper's Rényi accountant"]
    a = energy / (2 * 2.0**2)
    assert printed == pytest.approx(a + 2 * math.sqrt(a * math.log(1 / DELTA)), rel=1e-8)
    assert used(bounds).epsilon <= printed


def test_the_papers_accountant_is_no_proof_where_public_steps_are_seen() -> None:
    # Five private and fifteen public steps an epoch, all seen: a Gaussian release of mu = sqrt(3) / 2.
    event = Iteration(2.0, 20, 3, 5)
    assert epsilon_of(event, DELTA) == pytest.approx(epsilon_of(Gaussian(2 / math.sqrt(3)), DELTA), rel=1e-9)
    assert paper_epsilon(2.0, DELTA, n=20, epochs=3, private=5) < epsilon_of(event, DELTA) / 2


def test_each_of_several_proofs_is_listed_throughout_the_rounds() -> None:
    event = AnyOf((Gaussian(1.5), PureDP(0.9)))
    names = by_name(compare(event, 1e-5))
    assert names["proof 1: analytic Gaussian"] == epsilon_of(Gaussian(1.5), 1e-5)
    assert names["proof 2: pure differential privacy"] == epsilon_of(PureDP(0.9), 1e-5)
    several = by_name(compare(Repeat(event, 3), 1e-5))
    assert several["proof 1: analytic Gaussian"] == epsilon_of(Repeat(Gaussian(1.5), 3), 1e-5)


def test_where_nothing_is_claimed_nothing_is_found() -> None:
    (only,) = compare(NonPrivate(), DELTA)
    assert math.isinf(only.epsilon)
    assert only.method == "nothing is claimed"


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_delta_outside_of_its_range_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match=r"delta must be in \(0, 1\)"):
        compare(Gaussian(1.0), delta)


def test_more_releases_than_the_theorems_take_are_compared_without_them() -> None:
    bounds = compare(Repeat(Gaussian(1e5), 20_000_000), 1e-6)
    assert not any("composition" in bound.method for bound in bounds)
    assert len(bounds) >= 2
