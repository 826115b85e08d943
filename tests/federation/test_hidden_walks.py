"""Hidden walks: what they cost, what they need, that only their end leaves, and that it is what they say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.audits import audit
from tacit.errors import ParameterError, RefusalError
from tacit.federation import (
    Batch,
    Crowd,
    Disjoint,
    Fixed,
    Full,
    Group,
    HiddenWalk,
    InProcess,
    Measure,
    Plan,
    Poisson,
    Query,
    Silo,
    open_answer,
)
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    LaplaceNoise,
    NoNoise,
    RandK,
    SignVoteMean,
)
from tacit.numerics import Array, clip_rows, project_l2_ball
from tacit.privacy import (
    Compose,
    Event,
    Gaussian,
    Iteration,
    Neighbours,
    NonPrivate,
    Order,
    Relation,
    Release,
    Repeat,
    TrustModel,
    epsilon_of,
)
from tests.federation.world import DIM, Rows, ledger_at, mean_of, rows, silo_of, step_of
from tests.statistics import FALSE_ALARM

LOCAL, ZERO_OUT = TrustModel.LOCAL, Relation.ZERO_OUT
NOISE = GaussianNoise(2.0)


@dataclass
class Pull:
    """The gradient of |w - x|^2 / 2; clipped, it is that of a Huber function. Every point is written down."""

    smoothness: Any = 1.0
    clip_safe: Any = True
    seen: list[Array] = field(default_factory=list)

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        if len(units):
            self.seen.append(at["w"].copy())
        return at["w"] - units.values


def walk(mean: Estimator | None = None, **changes: Any) -> HiddenWalk:
    """Three epochs of a silo of 12 units, in blocks of three."""
    estimator = mean_of(NOISE) if mean is None else mean
    facts: dict[str, Any] = {
        "measures": (Measure(statistic="pull", estimator=estimator, max_radius=1.0),),
        "batch": Fixed(size=3),
        "steps": 12,
        "order": Order.RR,
        "step_size": 0.5,
        "smoothness": 1.0,
        "domain": 4.0,
    }
    return HiddenWalk(**{**facts, **changes})


def plan_of(
    step: HiddenWalk | None = None, *, rounds: int = 1, parties: int = 1, delta: float = 1e-6
) -> Plan:
    return Plan(steps=((walk() if step is None else step, rounds),), parties=parties, delta=delta)


def silo(values: Array | None = None, pull: Any = None, **options: Any) -> tuple[Silo, Rows]:
    statistics = {"pull": Pull() if pull is None else pull}
    return silo_of(rows(1, 12) if values is None else values, statistics=statistics, **options)


def price_of(step: HiddenWalk, *sizes: int) -> Iteration:
    """The event of one walk."""
    event = plan_of(step).event(sizes, LOCAL)
    assert isinstance(event, Iteration)
    return event


def hidden(z: float, n: int, epochs: int, width: float, **changes: Any) -> Iteration:
    """The event, as the accountant is asked for it directly."""
    facts = {"step_times_smoothness": 0.5, "convex": True, "clip_safe": True, "prox_convex": True}
    return Iteration(
        z, n, epochs, **{"order": Order.RR, "release": Release.LAST, "diameter": width, **facts, **changes}
    )


# --- what it costs


@pytest.mark.parametrize("order", Order)
def test_the_price_is_that_of_the_last_iterate(order: Order) -> None:
    # The ball is 8 wide, and one of three units moves a step by 0.5 * 2 / 3.
    expected = hidden(2.0, 4, 3, 24.0, order=order)
    plan = plan_of(walk(order=order))
    price = price_of(walk(order=order), 12)
    assert msgspec.structs.replace(price, diameter=24.0) == expected
    assert price.diameter == pytest.approx(24.0)
    accepted = silo()[0].accept(plan)
    assert accepted.epsilon == pytest.approx(epsilon_of(expected, 1e-6), abs=1e-6)
    seen = epsilon_of(Repeat(Gaussian(2.0), 3), 1e-6)  # of every step: a unit is in one of each epoch
    assert accepted.epsilon < 0.8 * seen
    assert any("only the last iterate leaves" in clause for clause in accepted.assumptions)
    assert any(
        "convex with a smoothness of at most 0.5 / step size" in clause for clause in accepted.assumptions
    )


def test_under_zero_out_a_unit_moves_a_step_half_as_far() -> None:
    event = price_of(walk(mean_of(NOISE, relation=ZERO_OUT)), 12)
    assert event.neighbours == Neighbours(ZERO_OUT)
    assert event.diameter == pytest.approx(48.0)


def test_full_batches_are_epochs_of_one_step() -> None:
    event = price_of(walk(batch=Full(), steps=9), 12)
    assert (event.n, event.epochs) == (1, 9)


def test_rounds_and_other_kinds_of_rounds_compose() -> None:
    one, mean = walk(), step_of(mean_of(GaussianNoise(7.0)))
    event = price_of(one, 12)
    both = Plan(steps=((Group(steps=((one, 2), (mean, 1))), 5),), parties=1, delta=1e-6)
    assert both.event([12], LOCAL) == Repeat(Compose((Repeat(event, 2), Gaussian(7.0))), 5)


def test_all_silos_are_priced_by_the_fewest_steps_an_epoch_and_the_widest_ball() -> None:
    fixed = walk(batch=Fixed(size=2))
    together, alone = price_of(fixed, 4, 8, 12), [price_of(fixed, n) for n in (4, 8, 12)]
    assert [(event.n, event.epochs) for event in (together, *alone)] == [(2, 6), (2, 6), (4, 3), (6, 2)]
    assert epsilon_of(together, 1e-6) == max(epsilon_of(event, 1e-6) for event in alone)
    shares = walk(batch=Fixed(rate=0.26))  # blocks of 3 of 12 units, and of 10 of 40
    assert price_of(shares, 12, 40).diameter == price_of(shares, 40).diameter == pytest.approx(80.0)


def test_long_walks_in_a_ball_have_a_price_that_stays() -> None:
    few, many = (
        silo()[0].consider(plan_of(walk(steps=4 * epochs, domain=0.5))).epsilon for epochs in (50, 2000)
    )
    assert many == pytest.approx(few, rel=1e-3)
    assert many < epsilon_of(Repeat(Gaussian(2.0), 50), 1e-6) / 3


def test_without_noise_nothing_is_claimed() -> None:
    plan = plan_of(walk(mean_of(NoNoise())))
    assert plan.event([12], LOCAL) == NonPrivate()
    with pytest.raises(RefusalError, match="no noise"):
        silo(trusts_server=False)[0].accept(plan)


# --- what it needs


def changed(**changes: Any) -> Any:
    return lambda: plan_of(walk(**changes))


def noisy(mean: Any) -> Any:
    return lambda: plan_of(walk(mean()))


CONDITIONS: dict[str, tuple[Any, str]] = {
    "too long a step": (changed(step_size=2.01), "step_size <= 2 / smoothness"),
    "no step": (changed(step_size=0.0), "step_size must be a finite number > 0"),
    "unknown smoothness": (changed(smoothness=math.inf), "smoothness must be"),
    "smoothness that is no number": (changed(smoothness=math.nan), "smoothness must be"),
    "negative smoothness": (changed(smoothness=-1.0), "smoothness must be"),
    "no ball": (changed(domain=math.inf), "domain must be a finite number > 0"),
    "a ball of nothing": (changed(domain=0.0), "domain must be a finite number > 0"),
    "a ball that rounds all away": (changed(domain=1e12), r"domain must be at most 2\*\*31 times"),
    "batches drawn anew": (changed(batch=Poisson(0.25)), "batch of a hidden walk must be full or fixed"),
    "batches used once": (changed(batch=Disjoint(size=3)), "batch of a hidden walk must be full or fixed"),
    "a word for an order": (changed(order="rr"), "order must be an Order"),
    "half an epoch": (changed(steps=10), "must be whole epochs, of 4 steps for a silo of 12 units, got 10"),
    "two statistics": (changed(measures=walk().measures * 2), "exactly one statistic"),
    "noise on a grid": (noisy(lambda: mean_of(DiscreteGaussianNoise(2.0))), "sums of rows with Gaussian"),
    "noise of another law": (noisy(lambda: mean_of(LaplaceNoise(2.0))), "sums of rows with Gaussian noise"),
    "few coordinates": (noisy(lambda: RandK(dim=DIM, k=1, noise=NOISE)), "sums of rows with Gaussian noise"),
    "votes": (noisy(lambda: SignVoteMean(dim=DIM, noise=NOISE)), "a walk needs means"),
    "a server that adds the noise": (
        lambda: Plan(steps=((walk(mean_of(NOISE, trust=TrustModel.CENTRAL)), 1),), parties=1),
        "a walk needs local trust",
    ),
}  # fmt: skip
KNOWN: dict[str, tuple[Any, str]] = {
    "not known to be convex": (lambda units, at: at["w"] - units.values, "known to be the gradient of a"),
    "not convex": (Pull(clip_safe=False), "known to be the gradient of a convex loss"),
    "almost true": (Pull(clip_safe=1), "known to be the gradient of a convex loss"),
    "less smooth": (Pull(smoothness=1.01), "smoothness must be at least the 1.01"),
    "of unknown smoothness": (Pull(smoothness=math.inf), "smoothness must be at least the inf"),
    "of smoothness that is no number": (Pull(smoothness=math.nan), "smoothness must be at least the nan"),
}  # fmt: skip


def refused(plan: Any, message: str, pull: Any, tmp_path: Path) -> None:
    """The silo refuses, has spent nothing, drawn nothing, and looked at no unit."""
    rng, ledger = np.random.default_rng(3), ledger_at(tmp_path / "ledger")
    units = Rows(rows(1, 12))
    party = Silo(units, {"pull": pull}, ledger=ledger, rng=rng)
    with pytest.raises(ParameterError, match=message):
        party.accept(plan())
    assert ledger.spent().epsilon == 0
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state
    assert units.taken == []
    with pytest.raises(RefusalError, match="no plan was accepted"):
        party.answer(query())


@pytest.mark.parametrize(("plan", "message"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_plan_that_its_price_does_not_hold_for_is_refused(plan: Any, message: str, tmp_path: Path) -> None:
    pull = Pull()
    refused(plan, message, pull, tmp_path)
    assert pull.seen == []


@pytest.mark.parametrize(("pull", "message"), KNOWN.values(), ids=KNOWN)
def test_a_statistic_that_the_silo_does_not_vouch_for_is_refused(
    pull: Any, message: str, tmp_path: Path
) -> None:
    refused(plan_of, message, pull, tmp_path)


def test_add_remove_is_refused_where_the_number_of_steps_is_secret() -> None:
    relation = Relation.ADD_REMOVE
    with pytest.raises(ParameterError, match="add-remove"):
        silo(planned=12)[0].accept(plan_of(walk(mean_of(NOISE, relation=relation), batch=Full())))


def test_what_bears_the_conditions_out_is_accepted(tmp_path: Path) -> None:
    """The other side of the tests above, with the ledger that they use."""
    ledger = ledger_at(tmp_path / "ledger")
    price = silo(ledger=ledger)[0].accept(plan_of(walk(step_size=2.0)))
    assert ledger.spent().epsilon == price.epsilon
    with pytest.raises(RefusalError, match="continuous noise"):  # as of all plans with a ledger that counts
        silo(ledger=ledger, seed=None)[0].accept(plan_of())


def test_a_crowd_does_not_walk() -> None:
    with pytest.raises(ParameterError, match="clients that walk are silos"):
        Crowd(Rows(rows(1, 24)), {"pull": Pull()}, clients=2, trusts_server=True).open(plan_of(parties=2))


# --- what leaves


def query(step: int = 0, *, radius: Any = (1.0,), **points: Any) -> Query:
    return Query(step, {"w": np.zeros(DIM), **points}, radius)


WRONG: dict[str, Any] = {
    "a step size of its own": lambda: query(step_size=np.array(0.1)),
    "fewer steps": lambda: query(steps=np.array(1.0)),
    "another point": lambda: query(v=np.zeros(DIM)),
    "no point": lambda: Query(0, {}, (1.0,)),
    "a point of another shape": lambda: Query(0, {"w": np.zeros(DIM + 1)}, (1.0,)),
    "a smaller radius": lambda: query(radius=(0.5,)),
    "no radius": lambda: query(radius=(0.0,)),
    "a larger radius": lambda: query(radius=(1.5,)),
    "two radii": lambda: query(radius=(1.0, 1.0)),
    "another round": lambda: query(2),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_server_is_refused_before_a_step_is_taken(wrong: Any) -> None:
    pull = Pull()
    party, units = silo(pull=pull)
    party.accept(plan_of(rounds=2))
    with pytest.raises(RefusalError):
        party.answer(wrong())
    assert (pull.seen, units.taken) == ([], [])


def test_only_the_last_point_leaves_once() -> None:
    pull = Pull()
    party, _ = silo(pull=pull)
    party.accept(plan_of(rounds=2))
    sent = party.answer(query())
    assert len(pull.seen) == 12
    (messages,) = open_answer(sent, party=0)
    (message,) = messages
    assert message.payload.shape == (DIM,)
    inside = np.array(pull.seen)
    assert np.abs(inside - message.payload).sum(axis=1).min() > 1e-3  # none of the points on the way
    assert party.answer(query()) == sent
    assert len(pull.seen) == 12  # the same bytes, and no second walk
    with pytest.raises(RefusalError, match="answered at another point"):
        party.answer(Query(0, {"w": np.full(DIM, 1e-9)}, (1.0,)))
    assert len(party.answer(query(1))) == len(sent)


@pytest.mark.parametrize("start", [1e300, -1e30, 1e16, 5.0])
def test_a_far_start_is_brought_into_the_ball(start: float) -> None:
    """Where points are so large that rounding swallows a step, nothing would be hidden."""
    pull = Pull()
    party, _ = silo(pull=pull)
    party.accept(plan_of())
    sent = party.answer(Query(0, {"w": np.full(DIM, start)}, (1.0,)))
    points = np.array([*pull.seen, open_answer(sent, party=0)[0][0].payload])
    assert np.all(np.linalg.norm(points, axis=1) <= 4.0 * (1 + 1e-6))


# --- the law


def by_hand(values: Array, step: HiddenWalk, rng: np.random.Generator, noise: float = 0.0) -> Array:
    """The walk, written down as a loop."""
    (n, size), w = (len(values), step.batch.size_for(len(values))), np.zeros(values.shape[1])
    order = np.arange(n)
    for epoch in range(step.steps // (n // size)):
        if step.order is Order.RR or (step.order is Order.SO and epoch == 0):
            order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            gradients = clip_rows(w - values[order[start : start + size]], 1.0)
            drawn = noise * rng.normal(size=w.size) if noise else 0.0
            w = project_l2_ball(w - step.step_size * (gradients.sum(axis=0) + drawn) / size, step.domain)
    return w


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("batch", [Fixed(size=3), Fixed(size=1), Full()], ids=str)
@pytest.mark.parametrize("domain", [4.0, 0.05])
def test_without_noise_it_is_the_plain_loop(order: Order, batch: Batch, domain: float) -> None:
    values = rows(5, 12)
    step = walk(mean_of(NoNoise()), order=order, batch=batch, steps=36, domain=domain)
    party, _ = silo(values, seed=9)
    ask = InProcess([party]).open(plan_of(step, delta=0.0))
    (found,) = ask(0, {"w": np.zeros(DIM)}, (1.0,))
    np.testing.assert_allclose(found, by_hand(values, step, np.random.default_rng(9)), atol=1e-6)
    assert np.linalg.norm(found) == pytest.approx(domain) or domain > 1


def test_units_that_fill_no_block_sit_an_epoch_out() -> None:
    party, units = silo(rows(1, 14))
    party.accept(plan_of())
    party.answer(query())
    epochs = [[u for block in units.taken[k : k + 4] for u in block] for k in range(0, 12, 4)]
    assert all(len(epoch) == len(set(epoch)) == 12 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3  # reshuffled


def test_several_silos_are_averaged() -> None:
    step = walk(mean_of(NoNoise()), order=Order.IG)
    data = [rows(k, 12) for k in (1, 2)]
    ask = InProcess([silo(values)[0] for values in data]).open(plan_of(step, parties=2, delta=0.0))
    (found,) = ask(0, {"w": np.zeros(DIM)}, (1.0,))
    ends = [by_hand(values, step, np.random.default_rng(0)) for values in data]
    np.testing.assert_allclose(found, np.mean(ends, axis=0), atol=1e-6)


def ends(values: Array, step: HiddenWalk, runs: int, seed: int) -> Array:
    """Where many walks of one silo end, from 0."""
    party, _ = silo(values, seed=seed)
    party.accept(plan_of(step, rounds=runs))
    at = {"w": np.zeros(values.shape[1])}
    answers = [open_answer(party.answer(Query(r, at, (1.0,))), party=0) for r in range(runs)]
    return np.array([answer[0][0].payload for answer in answers])


def test_with_noise_its_law_is_that_of_the_plain_loop() -> None:
    values = rows(6, 4, dim=1)
    step = walk(AdditiveMean(dim=1, noise=GaussianNoise(0.4)), batch=Fixed(size=2), steps=4, domain=0.8)
    found = ends(values, step, 1500, seed=4)[:, 0]
    rng = np.random.default_rng(5)
    expected = np.array([by_hand(values, step, rng, noise=0.8)[0] for _ in range(1500)])
    assert stats.ks_2samp(found, expected).pvalue > FALSE_ALARM
    other = [by_hand(values, step, rng, noise=0.4)[0] for _ in range(1500)]  # power: half the noise
    assert stats.ks_2samp(found, other).pvalue < FALSE_ALARM


# --- an attack


@pytest.mark.parametrize("order", [Order.IG, Order.RR])
def test_an_attack_stays_below_the_claim_and_refutes_less_noise(order: Order) -> None:
    """The record that differs pulls one way or the other at every point; the other pulls back to 0."""
    data = {there: np.array([[0.0], [1e6 if there else -1e6]]) for there in (True, False)}

    def step(noise: float) -> HiddenWalk:
        mean = AdditiveMean(dim=1, noise=GaussianNoise(noise))
        return walk(mean, batch=Fixed(size=1), steps=4, order=order, step_size=1.0, domain=100.0)

    def attack(noise: float) -> Any:
        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            return ends(data[present], step(noise), size, seed=int(rng.integers(2**31)))[:, 0]

        claim: tuple[Event, float] = plan_of(step(0.8)).event([2], LOCAL), 0.1
        return audit(run, claim, runs=2000, rng=np.random.default_rng(8), confidence=0.999)

    honest = attack(0.8)
    assert not honest.refuted
    assert honest.empirical_epsilon_lower > 0.3
    assert attack(0.2).refuted


# --- as a document


def test_it_survives_toml_and_any_change_changes_the_digest() -> None:
    plan = plan_of()
    again = Plan.from_toml(plan.to_toml())
    assert (again, again.digest()) == (plan, plan.digest())
    changes: list[dict[str, Any]] = [
        {"order": Order.SO},
        {"step_size": 0.4},
        {"smoothness": 2.0},
        {"domain": 5.0},
        {"steps": 16},
    ]
    digests = {plan_of(walk(**change)).digest() for change in changes}
    assert len(digests | {plan.digest()}) == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('order = "rr"', 'order = "sorted"', "Invalid enum value 'sorted'"),
        ("step_size = 0.5", "step_size = 2.5", "step_size <= 2 / smoothness"),
        ("step_size = 0.5", 'release = "all"', "missing required field `step_size`|unknown field"),
        ("domain = 4.0", "domain = inf", "domain must be a finite number"),
        ('kind = "hidden-walk"', 'kind = "walk"', "unknown field"),
    ],
)
def test_bad_documents_are_refused(old: str, new: str, message: str) -> None:
    text = plan_of().to_toml()
    assert old in text
    with pytest.raises(ParameterError, match=message):
        Plan.from_toml(text.replace(old, new))
