"""What a price takes is counted before it is computed: hostile events are refused, others are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.privacy import (
    VERIFY_WORK,
    AnyOf,
    ApproximateDP,
    Binomial,
    Certified,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Guarantee,
    Iteration,
    Laplace,
    Order,
    Parallel,
    PrivacyBudget,
    PureDP,
    Release,
    Renyi,
    Repeat,
    Sampled,
    Shuffled,
    Zcdp,
    calibrate,
    curve_of,
    delta_of,
    epsilon_of,
    event_from_json,
    guarantee,
    meets,
    renyi_of,
    rho_of,
    verify,
    work_limit,
    work_of,
)
from tests.privacy.event_examples import EVENTS


def _last(n: int, epochs: int, order: Order, diameter: float | None = None) -> Iteration:
    return Iteration(
        1.0,
        n,
        epochs,
        order=order,
        release=Release.LAST,
        step_times_smoothness=1.0,
        convex=True,
        clip_safe=True,
        prox_convex=True,
        diameter=diameter,
    )


def _proofs(depth: int) -> Event:
    """Return proofs of proofs, each beside other releases: 2 ** depth ways to compose them."""
    event: Event = AnyOf((Laplace(9.0), PureDP(0.2)))
    for k in range(depth):
        event = AnyOf((Compose((event, Laplace(9.0 + k))), PureDP(9.0)))
    return event


def _samples(depth: int) -> Event:
    """Return samples of samples, with a steep release, whose grids are as long as allowed, at each level."""
    event: Event = PureDP(30.0)
    for k in range(depth):
        event = Sampled(Compose((event, PureDP(29.0 - k / 1000))), 0.9)
    return event


def _doubled(depth: int) -> Event:
    event: Event = Gaussian(1.0)
    for k in range(depth):
        event = Parallel((event, Compose((event, Laplace(1.0 + k)))))
    return event


HOSTILE: dict[str, Callable[[], Event]] = {
    "many releases": lambda: Compose(tuple(Laplace(50.0 + k) for k in range(10_000))),
    "many samples": lambda: Compose(tuple(Sampled(Gaussian(1.0 + k), 0.1) for k in range(5_000))),
    "many batches": lambda: Compose(tuple(Shuffled(1.0, 1000 + k, "krr:5") for k in range(100))),
    "sampled batches": lambda: Repeat(
        Compose(tuple(Sampled(Shuffled(1.0, 10**9 - k, "laplace"), 1e-3) for k in range(100))), 10**9
    ),
    "proofs of proofs": lambda: Repeat(_proofs(16), 2),
    "many proofs beside many releases": lambda: Compose(
        (AnyOf(tuple(PureDP(1.0 + k) for k in range(40))), *(Laplace(50.0 + k) for k in range(40)))
    ),
    "samples of samples": lambda: _samples(40),
    "a long contracting run": lambda: _last(1000, 2**50, Order.IG, 3.0),
    "a long bounded run": lambda: _last(2**40, 10**4, Order.RR, 3.0),
    "many long runs": lambda: Compose(tuple(_last(2**40 + k, 100, Order.RR) for k in range(50))),
    "a wide table": lambda: Binomial(2**60, 2**31, 7),
    "many teachers": lambda: Certified(501, 0.5, 0.0, (0.9, 0.6) * 125 + (0.9,), 1.0),
    "all vertices": lambda: Certified(61, 0.5, 1e-9, (0.9, 0.6) * 15 + (0.9,), 1.0),
    "sampled divergences": lambda: Compose(
        tuple(Sampled(Renyi((2.0, 1e5), (0.1, 0.2 + k)), 0.1) for k in range(20))
    ),
}


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE)
def test_hostile_events_are_refused_before_anything_is_computed(build: Callable[[], Event]) -> None:
    event = build()
    with pytest.raises(ParameterError, match="too much work to price: more than the 4e\\+08 numbers"):
        work_of(event, most=VERIFY_WORK)
    with work_limit(VERIFY_WORK):
        for price in (
            lambda: epsilon_of(event, 1e-6),
            lambda: delta_of(event, 1.0),
            lambda: curve_of(event, accuracy=1e-6),
            lambda: renyi_of(event, [2.0]),
            lambda: guarantee(event, 1e-6, observer="a reader"),
            lambda: calibrate(lambda _: event, PrivacyBudget(1.0, 1e-6)),
        ):
            with pytest.raises(ParameterError, match="too much work"):
                price()


ALLOWED: dict[str, Event] = EVENTS | {
    "ten different shuffles": Compose(tuple(Shuffled(1 + k / 10, 10**6, "krr:16") for k in range(10))),
    "a large batch": Shuffled(1.0, 10**9, "krr:4"),
    "sampled large batches": Repeat(Sampled(Shuffled(1.0, 10**9, "laplace"), 1e-3), 10**9),
    "a hundred sampled steps": Compose(tuple(Sampled(Gaussian(1 + k / 9), 0.01) for k in range(100))),
    "a thousand Gaussian ones": Compose(tuple(Gaussian(1.0 + k) for k in range(1000))),
    "very many releases": Repeat(Laplace(10.0), 10**300),
    "a long run": _last(2**52, 2**52, Order.RR),
    "noise on one number": DiscreteGaussian(1000.0, 5.0, dim=1),
    "many teachers": Certified(301, 0.5, 0.0, tuple(k / 151 for k in range(151)), 1.0),
}


@pytest.mark.parametrize("event", ALLOWED.values(), ids=ALLOWED)
def test_what_people_price_is_allowed(event: Event) -> None:
    assert 0 < work_of(event) <= VERIFY_WORK


def test_the_limit_is_an_argument_and_ends_with_its_block() -> None:
    event = Compose((Laplace(2.0), Laplace(3.0)))
    claim = guarantee(event, 1e-6, observer="a reader")
    verify(claim)
    with pytest.raises(VerificationError, match="cannot be priced: this event takes too much work"):
        verify(claim, most_work=1e4)
    with work_limit(1e4):
        with pytest.raises(ParameterError, match="more than the 1e\\+04 numbers"):
            epsilon_of(event, 1e-6)
        with work_limit(1e9):
            assert epsilon_of(event, 1e-6) > 0
    assert epsilon_of(event, 1e-6) <= claim.epsilon
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="most must be"), work_limit(bad):
            pass


def test_a_hostile_statement_is_refused_by_verify() -> None:
    claim = guarantee(Laplace(2.0), 1e-6, observer="a reader")
    with pytest.raises(VerificationError, match="too much work"):
        verify(msgspec.structs.replace(claim, event=HOSTILE["many releases"]()))


@pytest.mark.parametrize("depth", [101, 400, 100_000])
def test_deep_trees_are_refused(depth: int) -> None:
    text = (
        '{"event": "Repeat", "count": 1, "part": ' * depth
        + '{"event": "PureDP", "epsilon": 0.1}'
        + "}" * depth
    )
    with pytest.raises(ParameterError, match=r"nested|depth|recursion"):
        epsilon_of(event_from_json(text), 1e-6)
    with pytest.raises(ParameterError, match="nested"):
        epsilon_of(_repeated(min(depth, 3000)), 1e-6)


def _repeated(depth: int) -> Event:
    event: Event = PureDP(0.1)
    for _ in range(depth):
        event = Repeat(event, 1)
    return event


@pytest.mark.parametrize("value", ["1e999", "1" + "0" * 400, "NaN", '"\\ud800"', "true", "null", "[]", "{}"])
@pytest.mark.parametrize("name", sorted({type(event).__name__ for event in EVENTS.values()}))
def test_fields_of_stored_events_are_refused_or_priced(name: str, value: str) -> None:
    event = next(e for e in EVENTS.values() if type(e).__name__ == name)
    for field in event.__struct_fields__:
        data = json.loads(msgspec.json.encode(event))
        data[field] = "@"
        text = json.dumps(data).replace('"@"', value)
        try:
            read = event_from_json(text)
            assert epsilon_of(read, 1e-6) >= 0
        except ParameterError as error:
            assert re.search(r"\w", str(error))  # noqa: PT017 - any library error will do


EXTREME: dict[str, Callable[[float], Event]] = {
    "Gaussian": Gaussian,
    "Gdp": Gdp,
    "Laplace": Laplace,
    "PureDP": PureDP,
    "ApproximateDP": lambda x: ApproximateDP(x, 1e-9),
    "Zcdp": Zcdp,
    "DiscreteGaussian, std": lambda x: DiscreteGaussian(x, 3.0),
    "DiscreteGaussian, one number": lambda x: DiscreteGaussian(x, 3.0, dim=1),
    "DiscreteGaussian, far": lambda x: DiscreteGaussian(2.0, x, dim=1),
    "DiscreteLaplace": lambda x: DiscreteLaplace(x, 3),
    "Shuffled": lambda x: Shuffled(x, 10),
    "Iteration": lambda x: Iteration(x, 4, 3, 2, Order.RR),
}


@pytest.mark.filterwarnings("ignore:(overflow|divide by zero|invalid value):RuntimeWarning")
@pytest.mark.parametrize("number", [5e-324, 1e-300, 1e-160, 1e-30, 3.0, 1e30, 1e160, 1e300, 1e308])
@pytest.mark.parametrize("build", EXTREME.values(), ids=EXTREME)
def test_numbers_at_the_ends_of_the_floats_are_priced_or_refused(
    build: Callable[[float], Event], number: float
) -> None:
    # Overflow and underflow end in a price that is not a number below the truth's neighbours, or in one line.
    try:
        event = build(number)
        events = (event, Repeat(event, 3), Sampled(event, 1e-300), Compose((event, Laplace(3.0))))
        prices = [(epsilon_of(one, 1e-6), delta_of(one, 1.0), rho_of(one)) for one in events]
        orders = renyi_of(event, [1 + 1e-9, 2.0, 1e300])
    except ParameterError:
        return
    for epsilon, delta, rho in prices:
        assert epsilon >= 0
        assert 0 <= delta <= 1
        assert rho >= 0
    assert not np.isnan(orders).any()
    assert prices[0][0] <= prices[1][0]


def test_counting_itself_is_bounded() -> None:
    # 2 ** 40 releases in memory of 40: the count stops at the limit.
    with pytest.raises(ParameterError, match="too much work"):
        work_of(_doubled(40), most=1e7)


def test_a_guarantee_that_is_read_back_is_priced_within_the_limit() -> None:
    claim = guarantee(
        Compose((Shuffled(1.0, 10**6, "krr:3"), Shuffled(1.1, 10**6, "krr:3"))), 1e-6, observer="the analyst"
    )
    verify(Guarantee.from_json(claim.to_json()))


@pytest.mark.parametrize(
    ("randomizer", "level", "parties"),
    [("krr:3", 8.0, 1000), ("krr:3", 7.0, 700), ("hadamard", 8.0, 1000), ("privunit:0.4", 9.0, 1000)],
)
def test_few_messages_of_a_high_level_are_counted_by_the_grid_that_they_take(
    randomizer: str, level: float, parties: int
) -> None:
    # Transforms of 2^17 points of which every frequency is heard: 0.5 to 1 s, once counted as 0.05 s.
    few = Shuffled(level, parties, randomizer)
    assert 5e7 < work_of(few) < VERIFY_WORK
    assert 5e7 < work_of(Repeat(few, 3)) < VERIFY_WORK
    assert work_of(Shuffled(1.0, 10**6, randomizer)) < 3e7  # of many messages few frequencies are left
    several = AnyOf(tuple(Shuffled(level + k * 1e-6, parties, randomizer) for k in range(12)))
    with pytest.raises(ParameterError, match="too much work"):
        work_of(several, most=VERIFY_WORK)


def test_naming_the_proof_that_wins_is_counted() -> None:
    proofs = (Shuffled(1.0, 1000), Shuffled(1.1, 1000))
    assert work_of(AnyOf(proofs)) > 1.9 * sum(work_of(proof) for proof in proofs)
    nested: Event = AnyOf(proofs)
    for k in range(30):  # a proof of a proof is priced once more at each level, not twice as often
        nested = AnyOf((nested, PureDP(2.0 + k)))
    assert work_of(nested) < 40 * work_of(AnyOf(proofs))


def test_many_points_of_stated_orders_are_counted() -> None:
    stated = Renyi(tuple(2.0 + k for k in range(500)), (0.1,) * 500)
    assert stated.work(many=True) >= 1e5 + stated.work(many=False)


@pytest.mark.parametrize("proof", [Zcdp(0.1), AnyOf((Zcdp(0.1), PureDP(0.5)))])
def test_one_concentrated_release_among_others_is_counted(proof: Event) -> None:
    # Its curve takes the best order at every point of the grid, whatever is released beside it.
    assert work_of(Compose((proof, Laplace(3.0)))) > 2.9e6 + work_of(Compose((Laplace(2.0), Laplace(3.0))))


def test_a_price_that_is_known_is_refused_all_the_same_where_less_work_is_allowed() -> None:
    event = Repeat(Laplace(3.0), 7)
    known = epsilon_of(event, 1e-5), delta_of(event, 1.0), curve_of(event, accuracy=1e-6).delta(1.0)
    with work_limit(10):
        for price in (
            lambda: epsilon_of(event, 1e-5),
            lambda: delta_of(event, 1.0),
            lambda: curve_of(event, accuracy=1e-6),
            lambda: meets(event, PrivacyBudget(9.0, 1e-5)),
        ):
            with pytest.raises(ParameterError, match="work"):
                price()
    again = epsilon_of(event, 1e-5), delta_of(event, 1.0), curve_of(event, accuracy=1e-6).delta(1.0)
    assert again == known
