"""What every event must obey, whatever its type, and what none of them accepts."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    AnyOf,
    ApproximateDP,
    Binomial,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Leaf,
    Neighbours,
    NonPrivate,
    Parallel,
    PureDP,
    Relation,
    Renyi,
    Repeat,
    Sample,
    Sampled,
    Unit,
    Zcdp,
    curve_of,
    delta_of,
    epsilon_of,
    neighbours_of,
)
from tests.privacy.event_examples import ADD_REMOVE, EVENTS

DELTA = 1e-6
every_event = pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
NOT_CONVEX = (Zcdp, AnyOf, DiscreteGaussian, Renyi, Binomial)
"""The best of several proofs at every epsilon: below a convex curve, not convex itself."""


price = cache(epsilon_of)
"""What many laws ask for is computed once."""


def _sampled(event: Event, rate: float) -> Event:
    replaces = neighbours_of(event).relation is Relation.REPLACE_ONE
    return Sampled(event, rate, Sample.FIXED if replaces else Sample.POISSON)


def test_no_event_type_is_missing() -> None:
    tested = {type(event).__name__ for event in EVENTS.values()}
    ours = {name for name, kind in Event.registry.items() if kind.__module__.startswith("tacit.")}
    assert ours - tested == set(), "add an example to tests/privacy/event_examples.py"


def test_every_release_says_whether_it_is_a_law_of_real_numbers() -> None:
    """Statements of such laws must speak of floating point; one that does not say so would be missed."""
    leaves = [kind for kind in _kinds(Leaf) if kind is not Leaf]
    assert all("continuous" in vars(kind) for kind in leaves)
    assert {kind.__name__ for kind in leaves if kind.continuous} == {
        "Gaussian",
        "Iteration",
        "IterationSchedule",
        "Laplace",
        "ObjectivePerturbed",
    }


def _kinds(kind: Any) -> list[Any]:
    """A class and all that derive from it in the library."""
    inner = [one for sub in kind.__subclasses__() for one in _kinds(sub)]
    return [one for one in (kind, *inner) if one.__module__.startswith("tacit.")]


@every_event
def test_count_means_repetition(event: Event) -> None:
    for count in (2, 5):
        assert price(Repeat(event, count), DELTA) == price(Compose((event,) * count), DELTA)


@every_event
def test_repeating_once_changes_nothing(event: Event) -> None:
    assert price(Repeat(event, 1), DELTA) == price(event, DELTA)
    assert price(Compose((event,)), DELTA) == price(event, DELTA)


@every_event
def test_order_of_composition_does_not_matter(event: Event) -> None:
    other = Laplace(4.0, 1, neighbours_of(event))
    assert price(Compose((event, other)), DELTA) == price(Compose((other, event)), DELTA)


@every_event
def test_composition_costs_at_least_each_part_and_at_most_the_sum(event: Event) -> None:
    other = Gaussian(3.0, neighbours_of(event))
    both = price(Compose((event, other)), DELTA)
    assert both >= max(price(event, DELTA), price(other, DELTA)) * (1 - 1e-9)
    assert both <= (price(event, DELTA / 2) + price(other, DELTA / 2)) * 1.001


@every_event
def test_more_repetitions_cost_more(event: Event) -> None:
    prices = [price(Repeat(event, count), DELTA) for count in (1, 2, 5, 20)]
    assert prices == sorted(prices)
    assert prices[-1] > prices[0] or math.isinf(prices[0])


@every_event
def test_disjoint_data_cost_the_dearest_part(event: Event) -> None:
    other = Gaussian(2.0, neighbours_of(event))
    both = price(Parallel((event, other)), DELTA)
    assert both == pytest.approx(max(price(event, DELTA), price(other, DELTA)), rel=1e-3)
    assert price(Parallel((event, event)), DELTA) == price(event, DELTA)


@every_event
def test_several_proofs_cost_no_more_than_the_best(event: Event) -> None:
    other = Gaussian(2.0, neighbours_of(event))
    best = min(price(event, DELTA), price(other, DELTA))
    assert price(AnyOf((event, other)), DELTA) <= best * (1 + 1e-3)
    several = price(Repeat(AnyOf((event, other)), 5), DELTA)
    assert several <= min(price(Repeat(e, 5), DELTA) for e in (event, other)) * (1 + 1e-3)


@every_event
def test_smaller_samples_cost_less(event: Event) -> None:
    assert price(_sampled(event, 1.0), DELTA) == price(event, DELTA)
    prices = [price(_sampled(event, rate), DELTA) for rate in (1e-3, 0.1, 0.5, 0.999, 1.0)]
    assert all(low <= high * (1 + 1e-9) for low, high in itertools.pairwise(prices))


@every_event
def test_larger_deltas_cost_less(event: Event) -> None:
    prices = [price(event, delta) for delta in (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
    assert all(low <= high * (1 + 1e-3) for high, low in itertools.pairwise(prices))
    deltas = [delta_of(event, epsilon) for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0)]
    assert all(low <= high * (1 + 1e-3) for high, low in itertools.pairwise(deltas))


@every_event
def test_curves_are_curves(event: Event) -> None:
    curve = curve_of(event, accuracy=1e-9)
    epsilon = np.linspace(-6.0, 6.0, 481)
    for profile, other in ((curve.forward, curve.backward), (curve.backward, curve.forward)):
        delta = profile(epsilon)
        assert np.all((delta >= 0) & (delta <= 1 + 1e-12))
        assert np.all(np.diff(delta) <= 1e-12)
        assert np.all(delta >= -np.expm1(np.minimum(epsilon, 0.0)) - 1e-12)
        dual = -np.expm1(epsilon) + np.exp(epsilon) * other(-epsilon)
        assert np.all(np.abs(delta - dual) <= 2e-3)
    if not curve.is_symmetric:
        assert neighbours_of(event).relation is not Relation.REPLACE_ONE


@pytest.mark.parametrize("name", [n for n, e in EVENTS.items() if not isinstance(e, NOT_CONVEX)])
def test_curves_are_convex(name: str) -> None:
    if name == "Sampled, concentrated":
        return
    curve, a = curve_of(EVENTS[name], accuracy=1e-9), np.linspace(1e-3, 12.0, 4001)
    for profile in (curve.forward, curve.backward):
        delta = profile(np.log(a))
        assert np.all(delta[:-2] + delta[2:] - 2 * delta[1:-1] >= -1e-6)


@every_event
def test_pure_levels_end_the_curve(event: Event) -> None:
    level = price(event, 0.0)
    if math.isfinite(level):
        assert delta_of(event, level) == 0.0
        assert delta_of(event, level * 0.5) > 0.0


@pytest.mark.parametrize("kind", [Compose, Parallel, AnyOf])
def test_different_neighbours_refuse_to_combine(kind: Any) -> None:
    for other in (ADD_REMOVE, Neighbours(Relation.ZERO_OUT), Neighbours(unit=Unit.PARTY)):
        with pytest.raises(ParameterError, match=f"{kind.__name__} refuses to combine events of different"):
            kind((Gaussian(1.0), Repeat(Gaussian(1.0, other), 2)))


@pytest.mark.parametrize("kind", [Compose, Parallel, AnyOf])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "at least one part"),
        ([Gaussian(1.0)], "parts must be a tuple|proofs must be a tuple"),
        ((1.0,), "must be an Event, got 1.0"),
        ((Leaf(),), "does not say which neighbours"),
    ],
)
def test_parts_must_be_events(kind: Any, parts: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(parts)


@pytest.mark.parametrize(
    ("neighbours", "how"),
    [
        (Neighbours(), Sample.POISSON),
        (ADD_REMOVE, Sample.FIXED),
        (Neighbours(Relation.ZERO_OUT), Sample.FIXED),
    ],
)
def test_samples_need_the_relation_they_are_proven_for(neighbours: Neighbours, how: Sample) -> None:
    with pytest.raises(ParameterError, match="sample cannot be priced under"):
        Sampled(Gaussian(1.0, neighbours), 0.1, how)


def test_a_bare_string_is_no_sample() -> None:
    # "fixed" under add-remove would otherwise be priced as a Poisson sample.
    bare: Any = "fixed"
    with pytest.raises(ParameterError, match="how must be a Sample"):
        Sampled(Gaussian(1.0, ADD_REMOVE), 0.1, bare)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("kind", "arguments", "name"),
    [
        (kind, (*before, bad, *after), name)
        for kind, before, name, after, bads in [
            (Gaussian, (), "noise_multiplier", (), (NAN, INF, 0.0, -1.0)),
            (Gdp, (), "mu", (), (NAN, INF, -1.0)),
            (Laplace, (), "noise_multiplier", (), (NAN, INF, 0.0, -1.0)),
            (Laplace, (1.0,), "dim", (), (0, 1.5, True)),
            (PureDP, (), "epsilon", (), (NAN, INF, -0.1)),
            (ApproximateDP, (), "epsilon", (0.1,), (NAN, INF, -0.1)),
            (ApproximateDP, (1.0,), "delta", (), (NAN, -0.1, 1.0)),
            (Zcdp, (), "rho", (), (NAN, INF, 0.0, -1.0)),
            (DiscreteGaussian, (), "std", (1.0,), (NAN, INF, 0.0, -1.0)),
            (DiscreteGaussian, (1.0,), "sensitivity", (), (NAN, INF, 0.0, -1.0)),
            (DiscreteGaussian, (1.0, 1.0, Neighbours()), "dim", (), (0, -1, 1.5, True, 2**40 + 1)),
            (DiscreteLaplace, (), "scale", (1,), (NAN, INF, 0.0, -1.0)),
            (DiscreteLaplace, (1.0,), "sensitivity", (), (0, -1, 1.5)),
            (DiscreteLaplace, (1.0, 1), "dim", (), (0, -1)),
            (Repeat, (Gaussian(1.0),), "count", (), (0, -1, 1.5, NAN, True)),
            (Sampled, (Gaussian(1.0),), "rate", (), (NAN, 0.0, -0.1, 1.1, INF)),
        ]
        for bad in bads
    ],
)
def test_values_out_of_range_are_refused(kind: Any, arguments: tuple[Any, ...], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        kind(*arguments)


def test_names_are_taken_once() -> None:
    # Another event of the same name would change what a stored statement means.
    with pytest.raises(TypeError, match="an event named Gaussian already"):
        type("Gaussian", (Leaf,), {"__annotations__": {}}, frozen=True, tag=True)
    assert Event.registry["Gaussian"] is Gaussian


def test_an_abstract_leaf_has_no_price() -> None:
    assert "Leaf" not in Event.registry
    with pytest.raises(ParameterError, match="does not say which neighbours"):
        neighbours_of(Leaf())


def test_discrete_gaussian_is_priced_by_a_grid_fine_enough() -> None:
    assert DiscreteGaussian(6.3, 1.0).rounded() is None
    fine = DiscreteGaussian(9.0, 2.0).rounded()
    assert fine is not None
    # (log(5e30) + 40 log 2) / (2 pi^2) = 4.985 is what up to 2^40 coordinates give up.
    assert fine.noise_multiplier == pytest.approx(math.sqrt(81 - 4.9852) / 2, rel=1e-5)
    assert DiscreteGaussian(4.0, 2.0).concentrated == Zcdp(0.125)
    tiny = DiscreteGaussian(1e200, 1e-200)
    assert price(tiny, DELTA) == 0.0


def test_nothing_is_claimed_for_the_non_private() -> None:
    assert math.isinf(price(NonPrivate(), 1e-3))
    assert delta_of(NonPrivate(), 10.0) == 1.0
