"""Hidden runs: what they cost, what they need, that only the last iterate leaves, and its law."""

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
    EpochKind,
    Fixed,
    Full,
    HiddenRun,
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
    GaussianNoise,
    LaplaceNoise,
    NoNoise,
    RandK,
    SignVoteMean,
)
from tacit.numerics import Array, Composite, IntArray, L2Ball, clip_rows
from tacit.privacy import (
    EpochSteps,
    Event,
    Iteration,
    IterationSchedule,
    Neighbours,
    NonPrivate,
    Order,
    Parallel,
    Placement,
    Relation,
    Release,
    Repeat,
    TrustModel,
    epsilon_of,
)
from tests.federation.world import DIM, Rows, ledger_at, mean_of, rows, silo_of
from tests.statistics import FALSE_ALARM

LOCAL, ZERO_OUT, END = TrustModel.LOCAL, Relation.ZERO_OUT, Placement.EPOCH_END
NOISE = GaussianNoise(2.0)
PRIVATE, PUBLIC = EpochKind(), EpochKind(private=0.0)
HALF = EpochKind(private=0.5, public_noise=True)


@dataclass
class Pull:
    """The gradient of |w - x|^2 / 2; clipped, it is that of a Huber function. Every point is written down."""

    smoothness: Any = 1.0
    clip_safe: Any = True
    seen: list[tuple[Array, Array]] = field(default_factory=list)

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        if len(units):
            self.seen.append((at["w"].copy(), units.values.copy()))
        return at["w"] - units.values

    def public_units(self, rows: Array, outcomes: Array) -> Rows:
        if rows.shape[1] != DIM:
            raise ParameterError(f"public must have {DIM} features, got {rows.shape[1]}.")
        return Rows(rows * outcomes[:, None])


def step_of(mean: Any = None, **changes: Any) -> HiddenRun:
    """Three epochs of a silo of 12 units, in blocks of three, half of them public."""
    estimator = mean_of(NOISE) if mean is None else mean
    facts: dict[str, Any] = {
        "measures": (Measure(statistic="pull", estimator=estimator, max_radius=1.0),),
        "batch": Fixed(size=3),
        "epochs": (msgspec.structs.replace(HALF, count=3),),
        "order": Order.RR,
        "step_size": 0.5,
        "smoothness": 1.0,
    }
    return HiddenRun(**{**facts, **changes})


def plan_of(step: HiddenRun | None = None, *, rounds: int = 1, parties: int = 1, delta: float = 1e-6) -> Plan:
    return Plan(steps=((step_of() if step is None else step, rounds),), parties=parties, delta=delta)


def silo(values: Array | None = None, pull: Any = None, **options: Any) -> tuple[Silo, Rows]:
    statistics = {"pull": Pull() if pull is None else pull}
    return silo_of(rows(1, 12) if values is None else values, statistics=statistics, **options)


def price_of(step: HiddenRun, *sizes: int) -> Event:
    return plan_of(step).event(sizes, LOCAL)


# --- what it costs

FACTS: dict[str, Any] = {"step_times_smoothness": 0.5, "convex": True, "clip_safe": True, "prox_convex": True}


def hidden(n: int, epochs: int, private: int | None = None, **changes: Any) -> Iteration:
    return Iteration(
        2.0, n, epochs, private, **{"order": Order.RR, "release": Release.LAST, **FACTS, **changes}
    )


def several(*epochs: EpochSteps) -> IterationSchedule:
    return IterationSchedule(2.0, epochs, Order.RR, **FACTS)


def times(kind: EpochKind, count: int) -> EpochKind:
    return msgspec.structs.replace(kind, count=count)


PRICES: dict[str, tuple[tuple[EpochKind, ...], Event]] = {
    "all private": ((times(PRIVATE, 3),), hidden(4, 3)),
    "interleaved": ((times(HALF, 3),), hidden(4, 3, 2)),
    "private, then public": ((times(PRIVATE, 2), times(PUBLIC, 5)), hidden(4, 2)),
    "public, then private": ((times(PUBLIC, 5), times(PRIVATE, 2)), hidden(4, 2)),
    "noise at the ends": ((EpochKind(placement=END, count=3),), hidden(4, 3, placement=END)),
    "some public, noise at the ends": (
        (EpochKind(private=0.5, placement=END, count=3),),
        hidden(4, 3, 2, placement=END),
    ),
    "public steps without noise": ((EpochKind(private=0.5, count=3),), hidden(2, 3)),
    "noise on later public epochs": (
        (times(PRIVATE, 2), EpochKind(private=0.0, public_noise=True, count=2)),
        several(EpochSteps(private=4, count=2), EpochSteps(private=0, public=4, public_noise=True, count=2)),
    ),
    "public epochs between": (
        (PRIVATE, PUBLIC, PRIVATE),
        several(EpochSteps(private=4), EpochSteps(private=0, public=4), EpochSteps(private=4)),
    ),
}


@pytest.mark.parametrize(("epochs", "event"), PRICES.values(), ids=PRICES)
def test_the_price_is_that_of_the_epochs_that_private_records_are_hidden_in(
    epochs: tuple[EpochKind, ...], event: Event
) -> None:
    assert price_of(step_of(epochs=epochs), 12) == event


def test_a_silo_states_what_its_price_rests_on() -> None:
    accepted = silo(seed=None)[0].accept(plan_of())
    assert accepted.epsilon == pytest.approx(epsilon_of(hidden(4, 3, 2), 1e-6), abs=1e-6)
    said = " ".join(accepted.assumptions)
    assert "only the last iterate leaves" in said
    assert "convex with a smoothness of at most 0.5 / step size" in said
    assert "continuous noise" in said


@pytest.mark.parametrize(
    ("n", "epochs", "private", "epsilon", "sigma"),
    [
        (1000, (times(PRIVATE, 50),), 1000, 5, 1.41329),
        (1000, (times(PRIVATE, 25), times(PUBLIC, 25)), 1000, 5, 1.39629),
        (1000, (times(PUBLIC, 25), times(PRIVATE, 25)), 1000, 10, 0.82182),
        (159, (times(HALF, 50),), 80, 5, 0.82012),
        (2103, (times(HALF, 50),), 1052, 10, 0.12517),
        (1000, (EpochKind(private=0.25, public_noise=True, count=50),), 250, 5, 0.24373),
    ],
)
def test_plans_cost_what_the_reference_table_says(
    n: int, epochs: tuple[EpochKind, ...], private: int, epsilon: float, sigma: float
) -> None:
    """One record a step; sigma / G of the last iterate under reshuffling."""
    for factor, below in ((1 - 5e-5, False), (1 + 5e-5, True)):
        mean = mean_of(GaussianNoise(sigma / 2 * factor))
        event = price_of(step_of(mean, epochs=epochs, batch=Fixed(size=1)), n)
        assert isinstance(event, Iteration)
        assert event.private in (None, private)
        assert (epsilon_of(event, 1e-6) <= epsilon) is below


def test_every_order_that_may_be_drawn_is_protected_where_the_plan_says_so() -> None:
    facts: dict[str, Any] = {"epochs": (times(HALF, 3),)}
    found = price_of(step_of(worst_case_order=True, **facts), 12)
    assert found == hidden(4, 3, 2, worst_case_order=True)
    fixed = epsilon_of(price_of(step_of(order=Order.IG, **facts), 12), 1e-6)
    assert epsilon_of(found, 1e-6) == fixed > 1.05 * epsilon_of(price_of(step_of(**facts), 12), 1e-6)


def test_under_zero_out_and_in_full_batches() -> None:
    event = price_of(step_of(mean_of(NOISE, relation=ZERO_OUT), ball=4.0), 12)
    assert isinstance(event, Iteration)
    assert event.neighbours == Neighbours(ZERO_OUT)
    assert step_of(mean_of(NOISE, relation=ZERO_OUT)).moved(12) == step_of().moved(12) / 2 == 0.5 / 3 / 1
    full = price_of(step_of(batch=Full(), epochs=(times(PRIVATE, 9),)), 12)
    assert full == hidden(1, 9)


def test_silos_of_several_sizes_cost_what_the_worst_does() -> None:
    sizes = (12, 24, 36)
    together, alone = price_of(step_of(), *sizes), [price_of(step_of(), n) for n in sizes]
    assert together == Parallel(tuple(alone))
    assert epsilon_of(together, 1e-6) == pytest.approx(max(epsilon_of(one, 1e-6) for one in alone), rel=1e-9)
    assert price_of(step_of(), 12, 12, 13) == alone[0]  # the 13th sits out


def test_penalties_and_balls_are_counted_on_where_they_hide_more() -> None:
    run = {"batch": Fixed(size=1), "epochs": (times(HALF, 40),)}
    plain, weak, strong, small, wide = (
        price_of(step_of(**run, **more), 100)
        for more in ({}, {"l2": 1e-6}, {"l2": 0.01}, {"ball": 1.0}, {"ball": 1e6})
    )
    assert plain == weak == wide
    assert isinstance(strong, Iteration)
    assert isinstance(small, Iteration)
    assert strong.epoch_contraction == pytest.approx(1 / (1 + 100 * 0.5 * 0.01))
    assert (small.diameter, small.epoch_contraction) == (2.0, 1.0)
    assert epsilon_of(strong, 1e-6) < epsilon_of(plain, 1e-6)
    longer = price_of(step_of(batch=Fixed(size=1), epochs=(times(PRIVATE, 500),), ball=1.0), 100)
    assert isinstance(longer, Iteration)
    assert epsilon_of(longer, 1e-6) < epsilon_of(msgspec.structs.replace(longer, diameter=None), 1e-6)


def test_runs_compose_and_without_noise_nothing_is_claimed() -> None:
    assert plan_of(rounds=4).event([12], LOCAL) == Repeat(price_of(step_of(), 12), 4)
    plan = plan_of(step_of(mean_of(NoNoise())))
    assert plan.event([12], LOCAL) == NonPrivate()
    with pytest.raises(RefusalError, match="no noise"):
        silo(trusts_server=False)[0].accept(plan)


# --- what it needs


def changed(**changes: Any) -> Any:
    return lambda: plan_of(step_of(**changes))


def noisy(mean: Any) -> Any:
    return lambda: plan_of(step_of(mean()))


CONDITIONS: dict[str, tuple[Any, str]] = {
    "too long a step": (changed(step_size=2.01), "step_size <= 2 / smoothness"),
    "no step": (changed(step_size=0.0), "step_size must be a finite number > 0"),
    "unknown smoothness": (changed(smoothness=math.inf), "smoothness must be"),
    "smoothness that is no number": (changed(smoothness=math.nan), "smoothness must be"),
    "a ball of nothing": (changed(ball=0.0), "ball must be a finite number > 0"),
    "a ball that rounds all away": (changed(ball=1e12), r"ball must be at most .* 2\*\*31 times"),
    "steps that round away": (changed(step_size=1e-120, smoothness=1.0), "one unit moves a step by"),
    "steps that overflow": (changed(step_size=1e90, smoothness=1e-95), "one unit moves a step by"),
    "a negative penalty": (changed(l1=-1.0), "l1 must be"),
    "a penalty that is no number": (changed(l2=math.nan), "l2 must be"),
    "batches drawn anew": (changed(batch=Poisson(0.25)), "batch of a hidden run must be full or fixed"),
    "batches used once": (changed(batch=Disjoint(size=3)), "batch of a hidden run must be full or fixed"),
    "batches above the silo": (changed(batch=Fixed(size=13)), "13"),
    "a word for an order": (changed(order="rr"), "order must be an Order"),
    "no epochs": (changed(epochs=()), "the kinds of epochs"),
    "too many epochs": (changed(epochs=(times(PRIVATE, 2**17),)), "the epochs of a hidden run"),
    "too much work": (
        changed(epochs=(times(PRIVATE, 2**16),), batch=Fixed(size=1), measures=(
            Measure(statistic="pull", estimator=AdditiveMean(dim=2**13, noise=NOISE), max_radius=1.0),)),
        "steps x batch x dim of a hidden run",
    ),
    "public epochs only": (changed(epochs=(PUBLIC,)), "needs an epoch with private records"),
    "a share that leaves nothing": (changed(epochs=(EpochKind(private=0.1),)), "the share 0.1 of 4 steps"),
    "a share that leaves all": (changed(epochs=(EpochKind(private=0.9),)), "the share 0.9 of 4 steps"),
    "a share above one": (lambda: plan_of(step_of(epochs=(EpochKind(private=1.5),))), "private must be"),
    "no count": (lambda: EpochKind(count=0), "count must be"),
    "two statistics": (changed(measures=step_of().measures * 2), "exactly one statistic"),
    "noise on a grid": (noisy(lambda: mean_of(DiscreteGaussianNoise(2.0))), "sums of rows with Gaussian"),
    "noise of another law": (noisy(lambda: mean_of(LaplaceNoise(2.0))), "sums of rows with Gaussian noise"),
    "few coordinates": (noisy(lambda: RandK(dim=DIM, k=1, noise=NOISE)), "sums of rows with Gaussian noise"),
    "votes": (noisy(lambda: SignVoteMean(dim=DIM, noise=NOISE)), "sums of rows with Gaussian noise"),
    "a server that adds the noise": (
        lambda: Plan(steps=((step_of(mean_of(NOISE, trust=TrustModel.CENTRAL)), 1),), parties=1),
        "a hidden run needs local trust",
    ),
}  # fmt: skip
KNOWN: dict[str, tuple[Any, str]] = {
    "not known to be convex": (lambda units, at: at["w"] - units.values, "known to be the gradient of a"),
    "not convex": (Pull(clip_safe=False), "known to be the gradient of a convex loss"),
    "almost true": (Pull(clip_safe=1), "known to be the gradient of a convex loss"),
    "less smooth": (Pull(smoothness=1.01), "smoothness must be at least the 1.01"),
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


def test_public_records_need_a_statistic_that_takes_them(tmp_path: Path) -> None:
    @dataclass
    class Bare:
        smoothness: float = 1.0
        clip_safe: bool = True

        def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
            return at["w"] - units.values

    refused(plan_of, "needs a statistic that takes some", Bare(), tmp_path)
    silo(pull=Bare())[0].accept(plan_of(step_of(epochs=(PRIVATE,))))


def test_add_remove_is_refused_where_the_number_of_steps_is_secret() -> None:
    mean = mean_of(NOISE, relation=Relation.ADD_REMOVE)
    with pytest.raises(ParameterError, match="add-remove"):
        silo(planned=12)[0].accept(plan_of(step_of(mean, batch=Full(), epochs=(PRIVATE,))))


def test_a_crowd_runs_nothing() -> None:
    with pytest.raises(ParameterError, match="clients that walk are silos"):
        Crowd(Rows(rows(1, 24)), {"pull": Pull()}, clients=2, trusts_server=True).open(plan_of(parties=2))


# --- what leaves


def query(step: int = 0, *, radius: Any = (1.0,), public: Any = 6, **points: Any) -> Query:
    held = np.full((public, DIM), 2.0) if isinstance(public, int) else public
    known = {"public": held, "public_outcomes": np.ones(len(held))}
    return Query(step, {"w": np.zeros(DIM), **known, **points}, radius)


WRONG: dict[str, Any] = {
    "a step size of its own": lambda: query(step_size=np.array(0.1)),
    "no public records": lambda: Query(0, {"w": np.zeros(DIM)}, (1.0,)),
    "too few": lambda: query(public=5),
    "none": lambda: query(public=0),
    "other outcomes": lambda: query(public_outcomes=np.ones(7)),
    "outcomes of another shape": lambda: query(public_outcomes=np.ones((6, 1))),
    "a point of another shape": lambda: query(w=np.zeros(DIM + 1)),
    "a vector of records": lambda: query(public=np.zeros(6)),
    "another number of columns": lambda: query(public=np.zeros((6, DIM + 1))),
    "too many numbers": lambda: query(public=np.zeros((2**24 // DIM + 1, DIM), dtype=np.float32)),
    "a smaller radius": lambda: query(radius=(0.5,)),
    "no radius": lambda: query(radius=(0.0,)),
    "a larger radius": lambda: query(radius=(1.5,)),
    "another round": lambda: query(2),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_server_is_refused_before_a_step_is_taken(wrong: Any) -> None:
    pull = Pull()
    party, units = silo(pull=pull)
    party.accept(plan_of(rounds=2))
    with pytest.raises(RefusalError):
        party.answer(wrong())
    assert (pull.seen, units.taken) == ([], [])


def test_public_points_where_none_are_used_are_refused() -> None:
    party, _ = silo()
    party.accept(plan_of(step_of(epochs=(PRIVATE,))))
    with pytest.raises(RefusalError, match="needs the points w"):
        party.answer(query())


def test_only_the_last_point_leaves_once() -> None:
    pull = Pull()
    party, _ = silo(pull=pull)
    party.accept(plan_of(rounds=2))
    sent = party.answer(query())
    ((message,),) = open_answer(sent, party=0)
    assert message.payload.shape == (DIM,)
    assert message.payload.dtype == np.float32
    points = np.array([w for w, _ in pull.seen])
    assert len(points) == 12
    assert np.abs(points - message.payload).sum(axis=1).min() > 1e-3  # none of those on the way
    assert party.answer(query()) == sent
    assert len(pull.seen) == 12  # the same bytes, and no second run
    with pytest.raises(RefusalError, match="answered at another point"):
        party.answer(query(w=np.full(DIM, 1e-9)))
    with pytest.raises(RefusalError, match="answered at another point"):
        party.answer(query(public=7))
    assert len(party.answer(query(1))) == len(sent)


def test_each_epoch_uses_a_record_at_most_once_and_public_ones_in_their_order() -> None:
    pull, values = Pull(), np.arange(14.0)[:, None] * np.ones(DIM)
    party, _ = silo(values, pull=pull)
    party.accept(plan_of())
    known = -np.arange(1.0, 7.0)[:, None] * np.ones(DIM)
    party.answer(query(public=known))
    used = [seen[:, 0] for _, seen in pull.seen]
    assert len(used) == 12
    epochs = [np.concatenate(used[k : k + 4]) for k in range(0, 12, 4)]
    for epoch in epochs:
        assert len(np.unique(epoch)) == 12
        assert (epoch[:6] >= 0).all()
        np.testing.assert_array_equal(epoch[6:], -np.arange(1.0, 7.0))
    assert len({tuple(epoch) for epoch in epochs}) == 3  # reshuffled


def test_too_few_public_records_start_over_only_if_the_plan_says_so() -> None:
    pull = Pull()
    party, _ = silo(pull=pull)
    party.accept(plan_of(step_of(cycle=True)))
    known = np.arange(4.0)[:, None] * np.ones(DIM) - 100
    party.answer(query(public=known))
    np.testing.assert_array_equal(pull.seen[2][1][:, 0] + 100, [0, 1, 2])
    np.testing.assert_array_equal(pull.seen[3][1][:, 0] + 100, [3, 0, 1])


@pytest.mark.parametrize("start", [1e300, -1e30, 1e16, 5.0])
@pytest.mark.parametrize("ball", [4.0, None])
def test_a_far_start_is_brought_where_rounding_swallows_no_step(start: float, ball: float | None) -> None:
    pull = Pull()
    party, _ = silo(pull=pull)
    party.accept(plan_of(step_of(ball=ball)))
    party.answer(query(w=np.full(DIM, start)))
    assert max(np.linalg.norm(w) for w, _ in pull.seen) <= (2**31 if ball is None else 8.0)


BAD = {
    "not finite": np.nan,
    "infinite": np.inf,
    "huge": 1e200,
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_record_counts_as_zero_and_changes_nothing_else(bad: float) -> None:
    """Neither the length of the answer, nor an error, nor a step of another record."""
    values = rows(5, 12)
    spoiled = values.copy()
    spoiled[3, 0] = bad
    without = step_of(mean_of(NoNoise()), order=Order.IG, batch=Fixed(size=1), epochs=(PRIVATE,))
    found = []
    for data in (spoiled, values):
        party, _ = silo(data)
        party.accept(plan_of(without, delta=0.0))
        sent = party.answer(Query(0, {"w": np.zeros(DIM)}, (1.0,)))
        found.append((len(sent), open_answer(sent, party=0)[0][0].payload))
    assert found[0][0] == found[1][0]
    assert np.isfinite(found[0][1]).all()
    # One step of at most eta (and none where the record is no number), then contractions.
    moved = np.linalg.norm(found[0][1].astype(np.float64) - found[1][1])
    assert moved <= 0.5 * (2 if math.isfinite(bad) else 1) * (1 + 1e-6)


def test_a_statistic_that_fails_on_a_record_tells_nobody() -> None:
    class Failing(Pull):
        def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
            if np.any(units.values > 90):
                raise ValueError("a label that there is not")
            return super().__call__(units, at)

    values = rows(5, 12)
    values[4] = 100.0
    plan = plan_of(step_of(mean_of(NoNoise()), order=Order.IG, epochs=(PRIVATE,)), delta=0.0)
    party, _ = silo(values, pull=Failing())
    party.accept(plan)
    ((found,),) = open_answer(party.answer(Query(0, {"w": np.zeros(DIM)}, (1.0,))), party=0)
    w, known = np.zeros(DIM), values.copy()
    for block in np.split(known, 4):
        gradients = np.where(block > 90, 0.0, clip_rows(w - block, 1.0))
        w = w - 0.5 * gradients.sum(axis=0) / 3
    np.testing.assert_allclose(found.payload, w, atol=1e-6)


# --- the law


def by_hand(values: Array, step: HiddenRun, rng: np.random.Generator, noise: float = 0.0) -> Array:
    """The run, written down as a loop; public records are all twos."""
    n, size, w = len(values), step.batch.size_for(len(values)), np.zeros(values.shape[1])
    order: IntArray = np.arange(n)
    first = True
    for kind in step.epochs:
        for _ in range(kind.count):
            steps = n // size
            private = math.floor(kind.private * steps + 0.5)
            if private and (step.order is Order.RR or (step.order is Order.SO and first)):
                order, first = rng.permutation(n), False
            at_end = kind.placement is END
            for t in range(steps):
                mine = t < private
                batch = values[order[t * size : (t + 1) * size]] if mine else np.full((size, len(w)), 2.0)
                gradient = clip_rows(w - batch, 1.0).mean(axis=0)
                if noise and not at_end and (mine or kind.public_noise):
                    gradient = gradient + noise * rng.normal(size=w.size)
                w = w - step.step_size * gradient
            if noise and at_end and (private or kind.public_noise):
                w = w - step.step_size * noise * rng.normal(size=w.size)
            ball = L2Ball(step.ball or 1e9)
            w = Composite(l1=step.l1, l2=step.l2, domain=ball)(steps * step.step_size, w)
    return w


SCHEDULES = [(times(PRIVATE, 2),), (times(HALF, 2),), (PUBLIC, times(PRIVATE, 2), PUBLIC)]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("batch", [Fixed(size=3), Fixed(size=1), Fixed(size=5)], ids=str)
@pytest.mark.parametrize("epochs", SCHEDULES, ids=["private", "interleaved", "public around"])
def test_without_noise_it_is_the_plain_loop(order: Order, batch: Batch, epochs: Any) -> None:
    values = rows(5, 12)
    penalty = {"l1": 0.01, "l2": 0.02, "ball": 0.6}
    step = step_of(mean_of(NoNoise()), order=order, batch=batch, epochs=epochs, **penalty)
    party, _ = silo(values, seed=9)
    ask = InProcess([party]).open(plan_of(step, delta=0.0))
    at = query(public=12).at if step.uses_public else {"w": np.zeros(DIM)}
    (found,) = ask(0, at, (1.0,))
    np.testing.assert_allclose(found, by_hand(values, step, np.random.default_rng(9)), atol=1e-6)


def test_several_silos_are_averaged() -> None:
    step = step_of(mean_of(NoNoise()), order=Order.IG)
    data = [rows(k, 12) for k in (1, 2)]
    ask = InProcess([silo(values)[0] for values in data]).open(plan_of(step, parties=2, delta=0.0))
    (found,) = ask(0, query().at, (1.0,))
    ends = [by_hand(values, step, np.random.default_rng(0)) for values in data]
    np.testing.assert_allclose(found, np.mean(ends, axis=0), atol=1e-6)


def ends_of(values: Array, step: HiddenRun, runs: int, seed: int, public: float = 2.0) -> Array:
    """Where many runs of one silo end, from 0."""
    dim = values.shape[1]
    party, _ = silo(values, seed=seed)
    party.accept(plan_of(step, rounds=runs))
    at = {"w": np.zeros(dim)}
    if step.uses_public:
        at |= {"public": np.full((12, dim), public), "public_outcomes": np.ones(12)}
    answers = [open_answer(party.answer(Query(r, at, (1.0,))), party=0) for r in range(runs)]
    return np.array([answer[0][0].payload for answer in answers])


@pytest.mark.parametrize("kind", [HALF, EpochKind(private=0.5, placement=END), PRIVATE], ids=str)
def test_with_noise_its_law_is_that_of_the_plain_loop(
    kind: EpochKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.federation.test_hidden_runs.DIM", 1)
    values = rows(6, 4, dim=1)
    mean = AdditiveMean(dim=1, noise=GaussianNoise(0.4))
    step = step_of(mean, batch=Fixed(size=2), epochs=(times(kind, 2),), ball=0.8)
    found = ends_of(values, step, 600, seed=4)[:, 0]
    rng = np.random.default_rng(5)
    expected = np.array([by_hand(values, step, rng, noise=0.4)[0] for _ in range(600)], dtype=np.float32)
    assert stats.ks_2samp(found, expected).pvalue > FALSE_ALARM
    other = [by_hand(values, step, rng, noise=0.15)[0] for _ in range(600)]  # power: less noise
    assert stats.ks_2samp(found, other).pvalue < FALSE_ALARM


# --- as a document


def test_it_survives_toml_and_any_change_changes_the_digest() -> None:
    plan = plan_of()
    again = Plan.from_toml(plan.to_toml())
    assert (again, again.digest()) == (plan, plan.digest())
    changes: list[dict[str, Any]] = [
        {"order": Order.SO},
        {"step_size": 0.4},
        {"smoothness": 2.0},
        {"ball": 5.0},
        {"l1": 0.1},
        {"l2": 0.1},
        {"cycle": True},
        {"worst_case_order": True},
        {"epochs": (times(HALF, 4),)},
        {"epochs": (EpochKind(private=0.5, count=3),)},
        {"epochs": (EpochKind(private=0.5, public_noise=True, placement=END, count=3),)},
    ]
    digests = {plan_of(step_of(**change)).digest() for change in changes}
    assert len(digests | {plan.digest()}) == 12


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('order = "rr"', 'order = "sorted"', "Invalid enum value 'sorted'"),
        ("step_size = 0.5", "step_size = 2.5", "step_size <= 2 / smoothness"),
        ("step_size = 0.5", 'release = "all"', "missing required field `step_size`|unknown field"),
        ("private = 0.5", "private = 0", "needs an epoch with private records"),
        ("private = 0.5", "private = true", "float"),
        ('kind = "hidden-run"', 'kind = "walk"', "unknown field"),
    ],
)
def test_bad_documents_are_refused(old: str, new: str, message: str) -> None:
    text = plan_of().to_toml()
    assert old in text
    with pytest.raises(ParameterError, match=message):
        Plan.from_toml(text.replace(old, new))


# --- an attack


def pulled(there: bool) -> Array:
    """Four records; the first one pulls one way or the other at every point, the others stay the same."""
    return np.array([[1e6 if there else -1e6], [1e6], [1e6], [1e6]])


@pytest.mark.parametrize(
    "kind",
    [
        EpochKind(),
        EpochKind(placement=END, count=2),
        EpochKind(private=0.25, public_noise=True),
        EpochKind(private=0.25, public_noise=True, placement=END),
    ],
    ids=str,
)
def test_an_attack_stays_below_the_claim_and_refutes_half_the_noise(
    kind: EpochKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.federation.test_hidden_runs.DIM", 1)

    def step(noise: float) -> HiddenRun:
        mean = AdditiveMean(dim=1, noise=GaussianNoise(noise))
        order = Order.IG if kind.private < 1 else Order.RR
        return step_of(mean, batch=Fixed(size=1), epochs=(kind,), step_size=1.0, order=order)

    claimed = 0.6 if kind.placement is Placement.EVERY_STEP else 1.0

    def attack(noise: float) -> Any:
        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            seed = int(rng.integers(2**31))
            return ends_of(pulled(present), step(noise), size, seed=seed, public=1e6)[:, 0]

        claim: tuple[Event, float] = plan_of(step(claimed)).event([4], LOCAL), 0.1
        return audit(run, claim, runs=1000, rng=np.random.default_rng(8), confidence=0.999)

    honest = attack(claimed)
    assert not honest.refuted
    assert honest.empirical_epsilon_lower > 0.3
    assert attack(claimed / 2).refuted
