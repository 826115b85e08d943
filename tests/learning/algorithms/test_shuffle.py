"""Shuffled gradients with hidden iterates: what is asked, where runs end, prices, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.audits import audit
from tacit.errors import ParameterError
from tacit.federation import EpochKind, HiddenRun
from tacit.learning import (
    Grouped,
    Hinge,
    LinearObjective,
    Logistic,
    Multinomial,
    NetworkObjective,
    PublicObjective,
    Records,
    Smoothed,
    Squared,
    make_algorithm,
    train,
)
from tacit.learning.algorithms import ALGORITHMS
from tacit.learning.prediction import predict
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.settings import Settings
from tacit.learning.shuffled import RecordSteps, ShuffledMethod, ShuffledRun
from tacit.learning.shuffled.statistic import HiddenGradient
from tacit.learning.training import Trained, make_silos, silos_for
from tacit.numerics import L1, Array, Box, Composite, ElasticNet, GroupLasso, L1OverBall, L2Ball, SquaredL2
from tacit.privacy import (
    Event,
    Iteration,
    IterationSchedule,
    Parallel,
    Placement,
    PrivacyBudget,
    Relation,
    Release,
    TrustModel,
    Unit,
    epsilon_of,
    verify,
)

D = 4
LOGISTIC = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
NAMES = [name for name, kind in ALGORITHMS.items() if kind.hidden]
OURS = ("dp-shuffle", "private-public-shuffle", "public-private-shuffle", "interleaved-shuffle")
TRUTH = np.array([2.0, -1.0, 0.5, 0.0])


def records(n: int, seed: int = 1, *, shift: float = 0.0) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    chance = 1 / (1 + np.exp(-5 * (X @ TRUTH) - shift))
    return Records.of(X, (rng.random(n) < chance).astype(float))


PUBLIC = PublicObjective(LOGISTIC, records(200, 2))


def settings(name: str = "dp-shuffle", *, options: Any = None, **changes: Any) -> Settings:
    facts: dict[str, Any] = {
        "objective": LOGISTIC,
        "algorithm": make_algorithm(name, **{"epochs": 4, **(options or {})}),
        "trust": TrustModel.LOCAL,
        "budget": PrivacyBudget(1.0, 1e-6),
        "clip": 0.5,
        "public": PUBLIC,
    }
    return Settings(**{**facts, **changes})


def bare(**changes: Any) -> dict[str, Any]:
    return {"trust": None, "budget": None, "clip": 100.0, **changes}


def trained(run: Settings, *data: Records, seed: int = 0, **more: Any) -> Trained:
    held = data or (records(200),)
    return train(silos_for(run, held, names=[f"s{k}" for k in range(len(held))], seed=seed), run, **more)


def run_of(prepared: Prepared) -> HiddenRun:
    ((step, _),) = prepared.plan.kinds
    assert isinstance(step, HiddenRun)
    return step


@pytest.mark.parametrize("method", [one for one in ShuffledMethod if one is not ShuffledMethod.PUBLIC])
@pytest.mark.parametrize(("share", "epochs"), [(0.5, 5), (0.5, 7), (0.3, 5), (0.75, 6)])
def test_silos_run_what_is_planned_by_that_name(method: ShuffledMethod, share: float, epochs: int) -> None:
    """Halves of an epoch, or of a step, go to the private records in both places."""
    options: dict[str, Any] = {"epochs": epochs, "placement": Placement.EVERY_STEP}
    if method.splits:
        options["private"] = share
    silo: Any = make_algorithm(method.value, **options)
    for steps in (3, 5, 10):
        planned = ShuffledRun(method=method, steps=steps, epochs=epochs, share=share).schedule
        assert planned == tuple(kind.of(steps) for kind in silo.epoch_kinds() for _ in range(kind.count))


def test_the_names() -> None:
    assert tuple(NAMES) == OURS


# --- what is asked


EPOCHS = {
    "dp-shuffle": (EpochKind(count=4),),
    "private-public-shuffle": (EpochKind(count=3), EpochKind(private=0.0, count=1)),
    "public-private-shuffle": (EpochKind(private=0.0, count=1), EpochKind(count=3)),
    "interleaved-shuffle": (EpochKind(private=0.75, public_noise=True, count=4),),
}


@pytest.mark.parametrize("name", OURS)
def test_a_run_is_the_schedule_of_its_name(name: str) -> None:
    options = {"placement": "every-step"} | ({} if name == "dp-shuffle" else {"private": 0.75})
    prepared = prepare(settings(name, options=options, regularizer=ElasticNet(l1=0.01, l2=0.02)), [200])
    step = run_of(prepared)
    assert step.epochs == EPOCHS[name]
    assert (step.l1, step.l2, step.ball, prepared.rounds) == (0.01, 0.02, None, 1)
    assert step.step_size * step.smoothness <= 2
    assert step.smoothness == pytest.approx(0.25, rel=1e-5)
    event = prepared.plan.event([200], TrustModel.LOCAL)
    assert isinstance(event, Iteration)
    assert event.release is Release.LAST
    expected = {"interleaved-shuffle": (200, 4, 150), "dp-shuffle": (200, 4, None)}
    assert (event.n, event.epochs, event.private) == expected.get(name, (200, 3, None))
    assert 0.99 < epsilon_of(event, 1e-6) <= 1.0
    assert prepared.noise_multiplier == event.noise_multiplier == prepared.means[0].noise_multiplier


def test_public_passes_with_noise_hide_more() -> None:
    options = {"placement": "every-step", "epochs": 50, "cycle": True}
    plain = prepare(settings("private-public-shuffle", options=options), [1000])
    noisy = prepare(
        settings("private-public-shuffle", options={**options, "public_noise": True, "order": "ig"}), [1000]
    )
    event = noisy.plan.event([1000], TrustModel.LOCAL)
    assert isinstance(event, IterationSchedule)
    assert event.energy == pytest.approx(0.012754841738)
    assert noisy.noise_multiplier < plain.noise_multiplier / 5


def test_who_wants_every_order_protected_pays_for_it() -> None:
    options = {"placement": "every-step"}
    average, worst = (
        prepare(settings(options={**options, **more}), [200]) for more in ({}, {"worst_case_order": True})
    )
    event = worst.plan.event([200], TrustModel.LOCAL)
    assert isinstance(event, Iteration)
    assert event.worst_case_order
    assert worst.noise_multiplier > 1.1 * average.noise_multiplier


def test_silos_of_several_sizes_share_one_noise() -> None:
    prepared = prepare(settings(), [200, 120])
    event = prepared.plan.event([200, 120], TrustModel.LOCAL)
    assert isinstance(event, Parallel)
    for n in (200, 120):
        assert epsilon_of(prepared.plan.event([n], TrustModel.LOCAL), 1e-6) <= 1.0


# --- where runs end


@pytest.mark.parametrize("regularizer", [ElasticNet(l1=0.002, l2=0.01), L1OverBall(0.002, 1.5)], ids=str)
def test_with_full_batches_it_is_proximal_gradient_descent_and_ends_at_the_minimum(regularizer: Any) -> None:
    run = settings(
        options={"epochs": 400, "batch": "full", "step_size": 4.0}, regularizer=regularizer, **bare()
    )
    held = records(200)
    w = np.zeros(D)
    for _ in range(400):
        w = regularizer(4.0, w - 4.0 * LOGISTIC.gradients(w, held).mean(axis=0))
    np.testing.assert_allclose(trained(run, held).w, w, atol=1e-5)


@pytest.mark.parametrize("name", OURS)
def test_without_noise_a_run_is_its_steps(name: str) -> None:
    run = settings(name, options={"step_size": 0.5, "order": "ig", "batch": 5}, **bare(clip=0.3))
    held, public, w = records(100), PUBLIC.records, np.zeros(D)
    for kind in run_of(prepare(run, [100])).epochs:
        for _ in range(kind.count):
            for t in range(20):
                source = held if t < 20 * kind.private else public
                start = t if t < 20 * kind.private else t - round(20 * kind.private)
                gradients = LOGISTIC.gradients(w, source.take(np.arange(5 * start, 5 * start + 5)))
                lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
                w = w - 0.5 * (gradients * np.minimum(1, 0.3 / np.maximum(lengths, 1e-12))).mean(axis=0)
    np.testing.assert_allclose(trained(run, held).w, w, atol=1e-5)


def test_several_silos_are_averaged_and_may_run_again() -> None:
    run = settings(options={"step_size": 0.5, "order": "ig", "rounds": 2}, **bare())
    seen: list[Array] = []
    both = trained(run, records(60), records(60, 3), follow=lambda _r, w: seen.append(w))
    assert both.rounds == len(seen) == 2
    once = replace(run, algorithm=make_algorithm("dp-shuffle", epochs=4, step_size=0.5, order="ig"))
    ends = [trained(replace(once, start=seen[0]), data).w for data in (records(60), records(60, 3))]
    np.testing.assert_allclose(both.w, np.mean(ends, axis=0), atol=1e-6)


@pytest.mark.parametrize("name", OURS)
def test_only_the_last_iterate_is_seen_and_the_statement_says_so(name: str) -> None:
    seen: list[Array] = []
    found = trained(settings(name), follow=lambda _r, w: seen.append(w))
    (only,) = seen
    np.testing.assert_array_equal(only, found.w)
    (claimed,) = found.guarantees
    assert "only the last iterate leaves" in " ".join(claimed.assumptions)
    verify(claimed)
    assert found.traffic.answered == [1]


def test_a_seed_repeats_a_run_and_others_do_not() -> None:
    one, two, three = (trained(settings(), seed=seed).w for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - three).max() > 1e-3


def test_public_records_help_where_few_are_private() -> None:
    """At epsilon 0.3 and 200 private records, public ones of a law nearby."""
    held, test = records(200), records(4000, 9)
    near = PublicObjective(LOGISTIC, records(200, 4, shift=0.3))

    def loss(name: str) -> float:
        run = settings(name, budget=PrivacyBudget(0.3, 1e-6), public=near, diameter=5.0)
        ends = [LOGISTIC.value(trained(run, held, seed=seed).w, test).mean() for seed in range(3)]
        return float(np.mean(ends))

    alone = loss("dp-shuffle")
    assert loss("interleaved-shuffle") < alone
    assert loss("private-public-shuffle") < alone


def test_default_steps_are_made_of_public_facts_and_bounds_are_of_private_runs() -> None:
    weak, strong = (prepare(settings(budget=PrivacyBudget(epsilon, 1e-6)), [200]) for epsilon in (0.1, 5.0))
    assert 0 < run_of(weak).step_size < run_of(strong).step_size <= 2 / 0.25
    small = settings(options={"step_size": 1e-3, "epochs": 10})
    known = prepare(small, [200])
    assert 0 < small.algorithm.error_bound(known.problem, 1) < math.inf
    assert small.algorithm.error_bound(known.problem, 2) == math.inf  # and of one run
    assert strong.problem.regularizer is not None
    assert settings().algorithm.error_bound(replace(known.problem, rows=400), 1) == math.inf
    assert predict(small, [200]).valid
    assert "with shorter steps than it takes" in predict(settings(), [200]).reason
    mixed = settings("interleaved-shuffle", options={"step_size": 1e-3})
    assert mixed.algorithm.error_bound(known.problem, 1) == math.inf


# --- what a silo computes


def test_the_fast_steps_are_those_of_the_rows() -> None:
    statistic, held = HiddenGradient(LOGISTIC), records(30)
    spoiled = Records(held.X.copy(), held.y, held.norms)
    spoiled.X[3] *= 5
    long = Records.of(spoiled.X, spoiled.y)
    index, noise = np.arange(30).reshape(15, 2), np.random.default_rng(0).normal(size=(15, D))
    w = np.zeros(D)
    for some, drawn in zip(index, noise, strict=True):
        rows = statistic(long.take(some), {"w": w})
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        clipped = rows * np.minimum(1, 0.2 / np.maximum(lengths, 1e-12))
        w = w - 0.7 * (clipped.mean(axis=0) + 0.1 * drawn)
    stepper = statistic.stepper(long)
    assert isinstance(stepper, RecordSteps)
    fast = stepper(index, np.zeros(D), radius=0.2, step_size=0.7, noise=noise, noise_std=0.1)
    np.testing.assert_allclose(fast, w, atol=1e-9)
    assert not statistic(long.take(np.array([3])), {"w": np.ones(D)}).any()  # longer than the feature norm


def test_envelopes_are_stepped_along_and_not_the_kinks_that_they_smooth() -> None:
    """A kink would carry two runs apart, whatever the plan says of the envelope."""
    goal = Smoothed(loss=Hinge(smoothing=math.inf), features=D, feature_norm=1.0, beta=0.5)
    run = settings(options={"step_size": 1.0, "order": "ig"}, **bare(objective=goal, clip=1.0, public=None))
    held, w = records(40), np.zeros(D)
    for i in [*range(40)] * 4:
        w = w - goal.gradients(w, held.take(np.array([i])))[0]
    np.testing.assert_allclose(trained(run, held).w, w, atol=1e-5)
    with pytest.raises(ParameterError, match="got those of Smoothed"):
        RecordSteps.of(goal, held)


def test_public_records_count_as_private_ones_do() -> None:
    statistic = HiddenGradient(LOGISTIC)
    units = statistic.public_units(np.eye(D) * [1.0, 1.0, 1.0, 50.0], np.array([1.0, 0.0, 1e300, 1.0]))
    rows = statistic(units, {"w": np.zeros(D)})
    np.testing.assert_array_equal(np.abs(rows).sum(axis=1) > 0, [True, True, True, False])
    with pytest.raises(ParameterError, match="must have 4 features, as private ones, got 5"):
        statistic.public_units(np.zeros((3, 5)), np.zeros(3))


# --- what is refused


def wrong(name: str = "dp-shuffle", **changes: Any) -> Any:
    return lambda: prepare(settings(name, **changes), [200])


def objective(loss: Any, **changes: Any) -> LinearObjective:
    return LinearObjective(**{"loss": loss, "features": D, "feature_norm": 1.0, **changes})


REFUSED: dict[str, tuple[Any, str]] = {
    "a trace": (wrong(options={"release": "epochs"}), "release must be 'last', got 'epochs': .* no trace"),
    "all iterates": (wrong(options={"release": "all"}), "no trace"),
    "steps too long": (wrong(options={"step_size": 8.1}), "step_size must be at most 2 / smoothness"),
    "a worst case, no flag": (wrong(options={"worst_case_order": "yes"}), "worst_case_order"),
    "no step": (wrong(options={"step_size": 0.0}), "step_size must be"),
    "no epochs": (wrong(options={"epochs": 0}), "epochs must be"),
    "another order": (wrong(options={"order": "sorted"}), "order must be one of 'ig', 'so', 'rr'"),
    "another placement": (wrong(options={"placement": "start"}), "placement must be one of 'every-step'"),
    "a large batch": (wrong(options={"batch": 201}), "201"),
    "samples": (wrong(options={"batch": {"batch": "poisson", "rate": 0.1}}), "batch must be"),
    "a kink": (wrong(objective=objective(Hinge(smoothing=math.inf))), "needs a smooth loss, got 'hinge'"),
    "several classes": (
        wrong(objective=objective(Multinomial(), outputs=3)),
        "needs one prediction per record, got 'multinomial'",
    ),
    "unknown norms": (wrong(objective=objective(Logistic(), feature_norm=math.inf)), "finite feature_norm"),
    "persons": (wrong(unit=Unit.PERSON), "needs records as units, got persons"),
    "a secret size": (wrong(relation=Relation.ADD_REMOVE), "got add-remove: the number of steps is public"),
    "a trusted server": (wrong(trust=TrustModel.CENTRAL), "trust must be local for the algorithm"),
    "group lasso": (
        wrong(regularizer=GroupLasso(0.1, np.zeros(D, dtype=np.int64))),
        "takes l1, l2 and a ball around 0",
    ),
    "a composite of groups": (
        wrong(regularizer=Composite(group_lasso=0.1, groups=np.zeros(D, dtype=np.int64))),
        "got group_lasso=0.1",
    ),
    "a box": (wrong(regularizer=Composite(domain=Box(0.0, 1.0))), "got the domain Box"),
    "a ball elsewhere": (wrong(regularizer=L2Ball(1.0, np.ones(D))), "a ball around 0"),
    "no public records": (wrong("interleaved-shuffle", public=None), "needs public records with labels"),
    "too few": (
        wrong("private-public-shuffle", public=PublicObjective(LOGISTIC, records(199))),
        "public must hold at least 200 records .* got 199; with the option cycle=true",
    ),
    "too few beside": (
        wrong("interleaved-shuffle", public=PublicObjective(LOGISTIC, records(99))),
        "public must hold at least 100 records",
    ),
    "other columns": (
        wrong(
            "interleaved-shuffle",
            public=PublicObjective(
                objective(Logistic(), features=D + 1), Records.of(np.zeros((200, D + 1)), np.zeros(200))
            ),
        ),
        "public records must have 4 features, as private ones, got 5",
    ),
    "all public": (wrong("interleaved-shuffle", options={"private": 0.0}), "above 0 and below 1, got 0.0"),
    "all private": (wrong("public-private-shuffle", options={"private": 1.0}), "the algorithm 'dp-shuffle'"),
    "a share that rounds to all": (
        wrong("private-public-shuffle", options={"private": 0.9, "epochs": 4}),
        "at least one private and one public of 4 epochs",
    ),
    "one epoch for two kinds": (
        wrong("public-private-shuffle", options={"epochs": 1}),
        "at least one private and one public of 1 epochs",
    ),
    "a share that leaves no step": (
        wrong("interleaved-shuffle", options={"private": 0.001}),
        "private must leave an epoch at least one step",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_hidden_is_refused_with_the_reason(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_networks_and_persons_are_refused_by_the_silo_too() -> None:
    network = NetworkObjective(loss=Logistic(), features=D, hidden=3)
    with pytest.raises(ParameterError, match="needs a linear model"):
        prepare(settings(objective=network), [200])
    plan = prepare(settings(), [50]).plan
    people = Grouped.of(records(50), np.arange(50))
    cases: list[tuple[Any, Any]] = [(network, records(50)), (LOGISTIC, people)]
    for objective_of, units in cases:
        (silo,) = make_silos([units], objective_of, seed=0)
        with pytest.raises(ParameterError):
            silo.accept(plan)


def test_what_bears_the_conditions_out_runs() -> None:
    """The other side of the refusals."""
    for changes in (
        {"objective": objective(Hinge())},
        {"objective": Smoothed(loss=Hinge(smoothing=math.inf), features=D, feature_norm=1.0, beta=0.5)},
        {"objective": objective(Squared())},
        {"relation": Relation.ZERO_OUT},
        {"regularizer": SquaredL2(0.1)},
        {"regularizer": L1(0.1)},
        {"regularizer": L2Ball(1.0)},
        {"options": {"step_size": 7.9}},
        {"options": {"batch": "full"}},
    ):
        made = settings(**changes)
        if isinstance(made.objective, LinearObjective):
            made = replace(made, public=None)
        assert np.isfinite(trained(made).w).all()
    few = settings(
        "interleaved-shuffle", options={"cycle": True}, public=PublicObjective(LOGISTIC, records(7))
    )
    assert np.isfinite(trained(few).w).all()


# --- an attack on the last iterate


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dp-shuffle", {"epochs": 2, "placement": "every-step"}),
        ("dp-shuffle", {"epochs": 2, "placement": "epoch-end"}),
        # The one private step is hidden by all four draws, three of them on public steps.
        ("interleaved-shuffle", {"epochs": 1, "placement": "every-step", "private": 0.25, "order": "ig"}),
        ("interleaved-shuffle", {"epochs": 1, "placement": "epoch-end", "private": 0.25, "order": "ig"}),
    ],
)
def test_membership_is_told_no_better_than_claimed_and_half_the_noise_is_caught(
    name: str, options: dict[str, Any]
) -> None:
    """Worst-case neighbours: one record pulls along the first feature or against it; others pull nowhere."""
    n, fixed = 4, {"step_size": 2.0, **options}
    still = PublicObjective(LOGISTIC, Records.of(np.zeros((n, D)), np.zeros(n)))
    run = settings(name, options=fixed, public=still, budget=PrivacyBudget(2.5, 0.05), clip=0.1)
    honest = prepare(run, [n])
    event: Event = honest.plan.event([n], TrustModel.LOCAL)

    def attack(factor: float) -> Any:
        protection = honest.problem.protection
        less = replace(
            honest.problem, protection=replace(protection, multiplier=protection.multiplier * factor)
        )
        steps = run.algorithm.steps(less, 1)
        step, _ = steps[0]
        X = np.zeros((n, D))
        X[0, 0] = 1.0

        def ends(present: bool, size: int, rng: np.random.Generator) -> Array:
            held = Records.of(X, np.full(n, 1.0 if present else 0.0))
            # As many runs as are wanted, each a round of one plan.
            many = replace_steps(honest, step, size)
            ask = silos_for(run, [held], names=["a"], seed=int(rng.integers(2**31))).open(many.plan)
            at = {"w": np.zeros(D)}
            if run_of(honest).uses_public:
                at |= {"public": np.zeros((n, D)), "public_outcomes": np.zeros(n)}
            return np.array([ask(r, at, (0.1,))[0][0] for r in range(size)])

        return audit(ends, (event, 0.05), runs=800, rng=np.random.default_rng(4), confidence=0.999)

    sound = attack(1.0)
    assert not sound.refuted
    assert sound.empirical_epsilon_lower > 0.2
    assert attack(0.5).refuted


def replace_steps(prepared: Prepared, step: Any, rounds: int) -> Prepared:
    import msgspec

    return replace(prepared, plan=msgspec.structs.replace(prepared.plan, steps=((step, rounds),)))
