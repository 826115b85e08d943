"""Clipped subgradients and localised phases: parameters, bounds, what is asked of whom, and what it costs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import AnyStep, Ask, CorrelatedStep, Disjoint, InProcess, Measure, Plan, Step, Walk
from tacit.learning import (
    ClippedSubgradient,
    LinearObjective,
    LocalizedSubgradient,
    PhasedLocalizedSubgradient,
    Problem,
    Protection,
    Records,
    Settings,
    Squared,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms.clipped_subgradient import clipped_subgradient, regularized_distance_bound
from tacit.learning.algorithms.localized import WithinBall
from tacit.learning.algorithms.localized_phases import (
    localization_bound,
    paper_phases,
    paper_power,
    sharp_phases,
    spread_rounds,
    strongly_convex_rows,
)
from tacit.learning.preparation import prepare
from tacit.learning.training import sums_of
from tacit.means import AdditiveMean, GaussianNoise, MomentBound
from tacit.numerics import L1, Array, L1OverBall, L2Ball, Zero, clip_rows
from tacit.privacy import Gaussian, PrivacyBudget, Repeat, Sample, Sampled, TrustModel, calibrate, epsilon_of

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
BUDGET = PrivacyBudget(1.0, 1e-6)


def unheard(_round: int, _w: Array) -> None:
    pass


# One phase


def test_without_noise_it_contracts_to_the_minimum_of_the_pulled_loss() -> None:
    """h w^2 / 2 pulled to w_0: w - w^ falls by 1 - eta (h + lambda) in every step."""
    start, pull, eta, hessian = np.array([1.0, -2.0]), 0.5, 0.3, np.array([1.0, 0.2])
    best = pull * start / (hessian + pull)
    w, average = clipped_subgradient(
        lambda _r, at, _radius: (hessian * at["w"],),
        start,
        rounds=7,
        step_size=eta,
        pull=pull,
        radius=1.0,
        prox=Zero(),
        follow=unheard,
    )
    kept = 1 - eta * (hessian + pull)
    np.testing.assert_allclose(w - best, kept**7 * (start - best), rtol=1e-12)
    np.testing.assert_allclose(
        average - best, (start - best) * sum(kept**t for t in range(7)) / 7, rtol=1e-12
    )


def test_the_distance_of_the_reference_is_far_below_its_bound() -> None:
    """f = |w - x|^2 / 2, n = 64, d = 3, t4 data, lambda .5, eta .2, T = 60, C = 3, epsilon 2, radius 2.

    50 runs from one seed. About .033; the paper's bound is about 989, the sharp one about 10 times less.
    """
    rng = np.random.default_rng(0)
    X, sigma = rng.standard_t(4, (64, 3)), 2 * 3 * math.sqrt(60) / (64 * 2)
    best = X.mean(axis=0) / 1.5
    assert np.linalg.norm(best) < 2
    found = []
    for _ in range(50):
        w, _ = clipped_subgradient(
            lambda _r, at, _radius: (
                clip_rows(at["w"] - X, 3.0).mean(axis=0) + sigma * rng.standard_normal(3),
            ),
            np.zeros(3),
            rounds=60,
            step_size=0.2,
            pull=0.5,
            radius=3.0,
            prox=L2Ball(2.0),
            follow=unheard,
        )
        found.append(float(np.sum((w - best) ** 2)))
    second = float(np.mean(np.sum((np.abs(X) + 2) ** 2, axis=1)))
    known: dict[str, Any] = {
        "pull": 0.5,
        "step_size": 0.2,
        "rounds": 60,
        "start": float(np.linalg.norm(best)),
        "length": math.sqrt(second),
        "diameter": 4.0,
        "variance": 3 * sigma**2,
        "bias": second / 3,
    }
    sharp = regularized_distance_bound(**known)
    assert np.mean(found) < 0.1
    assert np.mean(found) < sharp < regularized_distance_bound(**known, method="paper") / 3


def test_what_subgradients_refuse() -> None:
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(ParameterError, match="step_size must be a finite number > 0"):
            ClippedSubgradient(step_size=wrong)
    with pytest.raises(ParameterError, match=r"step_size must be at most 2 / pull \(4\.0\), got 5\.0"):
        ClippedSubgradient(step_size=5.0, pull=0.5)
    with pytest.raises(ParameterError, match="pull must be a finite number >= 0"):
        ClippedSubgradient(pull=-1.0)
    with pytest.raises(ParameterError, match="rounds"):
        ClippedSubgradient(rounds=0)
    problem = known_problem(100, MomentBound(4, 5.0))
    with pytest.raises(ParameterError, match="needs a stated moment"):
        ClippedSubgradient().check(replace(problem, moment=None), 5)
    assert math.isinf(ClippedSubgradient(average=False).error_bound(problem, 5))
    assert math.isfinite(ClippedSubgradient(pull=0.5).error_bound(problem, 5))


# Phases


def known_problem(n: int, moment: MomentBound, **facts: Any) -> Problem:
    known: dict[str, Any] = {
        "smoothness": math.inf,
        "radius": math.inf,
        "diameter": 2.0,
        "dim": 5,
        "variance": 0.0,
        "protection": Protection(trust=CENTRAL, noise=GaussianNoise, multiplier=0.5),
        "sizes": (n,),
        "rows": n,
        "loss": Squared(),
        "moment": moment,
    }
    return Problem(**(known | facts))


@pytest.mark.parametrize(
    ("n", "epsilon", "power", "rounds"),
    [(1024, 2, 1.226217, 14053), (1024, 1, None, 8571), (256, 1, 1.213064, None)],
)
def test_phases_are_those_of_the_reference(
    n: int, epsilon: float, power: float | None, rounds: int | None
) -> None:
    d, diameter, lipschitz, r_2, r_4 = 5, 2.0, 21.0, 3.239854, 3.530628
    rate = 1 / math.sqrt(n) + math.sqrt(math.sqrt(d * math.log(n)) / (epsilon * n))
    p = paper_power(rows=n, lipschitz=lipschitz, length=r_4, rate=rate)
    phases = paper_phases(
        rows=n,
        share=1.0,
        rounds=(),
        noise=4 * d / (epsilon * n) ** 2,
        diameter=diameter,
        lipschitz=lipschitz,
        moment=MomentBound(4, r_4),
        second=r_2,
    )
    assert len(phases) == math.log2(n)
    assert sum(phase.rows for phase in phases) == n - 1
    if power is not None:
        assert p == pytest.approx(power, rel=1e-6)
    if rounds is not None:
        assert phases[0].rounds == rounds
    if (n, epsilon) != (1024, 2):
        return
    first = phases[0]
    found = (first.rows, first.pull, first.clip, first.noise_std / math.sqrt(d), first.reach)
    assert found == pytest.approx((512, 1.402, 46.56, 10.781, 29.96), rel=1e-3)
    assert 4 * first.step_size == pytest.approx(0.00135885, rel=1e-5)
    assert r_4 * diameter * rate == pytest.approx(0.599, abs=5e-4)
    for before, after in itertools.pairwise(phases):
        assert after.pull / before.pull == pytest.approx(4 * 2**p, rel=1e-9)


def test_the_minimum_of_a_phase_lies_within_its_ball() -> None:
    """|w^ - w_0| <= 2 L / lambda, of absolute losses with |x| <= L."""
    rng = np.random.default_rng(1)
    X, y, start = clip_rows(rng.standard_normal((64, 2)), 1.0), rng.standard_normal(64), np.array([0.3, -0.2])
    for pull in (0.1, 1.0, 10.0):
        w = start
        for t in range(4000):
            slope = np.sign(X @ w - y) @ X / 64 + pull * (w - start)
            w = w - slope / (pull * (t + 2))
        assert np.linalg.norm(w - start) <= 2 * 1.0 / pull


def test_sharp_phases_need_far_fewer_rounds() -> None:
    """n = 1024, epsilon = 2, f = |w - x|^2 / 2, t6 data cut at norm 20: the paper's phases take 14,053 steps.

    The reference has .027 for them. 10 runs: .023 +- .003 with 40 steps; the bound holds, and is loose.
    """
    n, d, r_4 = 1024, 5, 3.530628
    known: dict[str, Any] = {
        "rows": n,
        "share": 1.0,
        "noise": 4 * d / (2 * n) ** 2,
        "diameter": 2.0,
        "lipschitz": math.inf,
        "moment": MomentBound(4, r_4),
        "length": r_4,
        "clip": None,
        "most": math.inf,
    }
    phases = sharp_phases(**known, rounds=spread_rounds(40, [2.0**-i for i in range(1, 11)]))
    assert sum(phase.rounds for phase in phases) == 40
    excess, best = [], np.full(d, 0.5 / math.sqrt(d))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = best + clip_rows(rng.standard_t(6, (n, d)), 20.0)
        w, used = np.zeros(d), 0
        for phase in phases:
            batch = X[used : used + int(phase.rows)]
            used += len(batch)
            w, _ = clipped_subgradient(
                _noisy_mean(batch, phase.noise_std / math.sqrt(d), rng),
                w,
                rounds=phase.rounds,
                step_size=phase.step_size,
                pull=phase.pull,
                radius=phase.clip,
                prox=L2Ball(1.0),
                follow=unheard,
            )
        excess.append(float(np.sum((w - best) ** 2)) / 2)
    assert np.mean(excess) < 0.06  # the start has .125; 12 standard errors away
    assert np.mean(excess) <= localization_bound(phases, length=r_4, diameter=2.0)
    more = sharp_phases(**known, rounds=spread_rounds(640, [2.0**-i for i in range(1, 11)]))
    few = localization_bound(phases, length=r_4, diameter=2.0)
    assert localization_bound(more, length=r_4, diameter=2.0) < few


def _noisy_mean(batch: Array, std: float, rng: np.random.Generator) -> Ask:
    """The gradients of |w - x|^2 / 2."""
    return lambda _r, at, radius: (
        clip_rows(at["w"] - batch, radius[0]).mean(axis=0) + std * rng.standard_normal(batch.shape[1]),
    )


def test_runs_on_strongly_convex_losses_have_twice_the_records_each() -> None:
    for n in (4, 100, 1000, 2**20):
        shares = strongly_convex_rows(n)
        assert len(shares) == max(1, math.ceil(math.log2(math.log2(n))))
        assert sum(shares) <= 1
        sizes = [n * share for share in shares]
        assert all(math.log2(size) == round(math.log2(size)) for size in sizes)
        assert all(after in (before, 2 * before) for before, after in itertools.pairwise(sizes))
    assert strongly_convex_rows(2**20)[-1] * 2**20 >= 2**17


def test_rounds_are_spread() -> None:
    assert spread_rounds(10, [4.0, 2.0, 1.0]) == [6, 3, 1]
    assert spread_rounds(3, [100.0, 1.0, 1.0]) == [1, 1, 1]
    for total in (5, 17, 1000):
        assert sum(spread_rounds(total, [2.0**-i for i in range(5)])) == total


# A ball within a domain


@pytest.mark.parametrize(
    "prox", [L2Ball(1.0), L1OverBall(0.3, 1.0), L1(strength=0.4)], ids=["ball", "l1", "both"]
)
def test_the_proximal_point_within_a_ball_is_the_least(prox: Any) -> None:
    rng = np.random.default_rng(2)
    center, z, eta = np.array([0.7, -0.4]), np.array([2.0, 1.5]), 0.5
    within = WithinBall(prox, center, 0.35)
    found = within(eta, z)
    assert np.linalg.norm(found - center) <= 0.35 * (1 + 1e-9)

    def value(y: Array) -> float:
        return float(eta * prox.value(y) + np.sum((y - z) ** 2) / 2)

    assert math.isfinite(value(found))
    around = center + 0.35 * np.sqrt(rng.random((20_000, 1))) * _directions(rng, 20_000)
    near = found + 1e-3 * _directions(rng, 20_000)
    others = np.vstack([around, near[np.linalg.norm(near - center, axis=1) <= 0.35]])
    assert min(value(y) for y in others[::20]) >= value(found) - 1e-9
    np.testing.assert_array_equal(within(eta, center * 0.99), prox(eta, center * 0.99)) if prox == L2Ball(
        1.0
    ) else None


def _directions(rng: np.random.Generator, n: int) -> Array:
    drawn = rng.standard_normal((n, 2))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


# What it costs


class Watched:
    """Units that write down which of them are taken, round by round."""

    def __init__(self, units: Records) -> None:
        self.units, self.taken = units, list[list[int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.units, name)

    def __len__(self) -> int:
        return len(self.units)

    def take(self, index: Array) -> Records:
        self.taken.append(index.tolist())
        return self.units.take(index)


OBJECTIVE = LinearObjective(loss=Squared(), features=2)


def watched_run(plan: Plan, n: int) -> Watched:
    """Which units every round of a plan takes in a silo."""
    rng = np.random.default_rng(4)
    units = Watched(Records.of(rng.standard_normal((n, 2)), rng.standard_normal(n)))
    silos = make_silos([units], OBJECTIVE, seed=5)  # type: ignore[list-item]
    ask = InProcess(silos).open(plan)
    for number in range(plan.rounds):
        step = plan.schedule().step(number)
        ask(number, {"w": np.zeros(2)}, (step.measures[0].max_radius,))
    units.taken = [one for one in units.taken if one]  # plans are checked on no units
    return units


@pytest.mark.parametrize("sample", ["all", "sqrt"])
@pytest.mark.parametrize("phased", [False, True])
def test_a_record_is_in_one_phase_and_pays_for_its_rounds(phased: bool, sample: Any) -> None:
    """Every record's own releases, as they were made, are composed; the dearest is the price of the plan."""
    method: Any = PhasedLocalizedSubgradient(mu=0.5) if phased else LocalizedSubgradient()
    method = type(method)(rounds=25, sample=sample)
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=method,
        trust=LOCAL,
        budget=BUDGET,
        moment=MomentBound(4, 5.0),
    )
    plan = prepare(settings, [50]).plan
    assert plan.rounds == 25
    claimed = epsilon_of(plan.event([50], LOCAL), BUDGET.delta)
    assert claimed <= 1.0
    units = watched_run(plan, 50)
    prices, first, seen = {}, 0, Counter[int]()
    for step, count in plan.kinds:
        assert isinstance(step.batch, Disjoint)
        rounds = units.taken[first : first + count]
        first += count
        block = step.batch.block_for(50)
        held = set().union(*rounds)
        assert len(held) <= block
        assert all(len(set(one)) == len(one) == step.batch.size_for(50) for one in rounds)
        if sample == "all":
            assert all(set(one) == held for one in rounds)
        seen.update(held)
        once = Gaussian(step.measures[0].estimator.noise_multiplier)  # type: ignore[union-attr]
        law: Any = once
        if step.batch.sample is not None:
            law = Sampled(once, step.batch.size_for(50) / block, Sample.FIXED)
        prices[block, count] = epsilon_of(Repeat(law, count), BUDGET.delta)
    assert max(seen.values()) == 1  # no record is in two phases
    assert claimed == pytest.approx(max(prices.values()), rel=1e-6)
    if sample == "all":  # every phase costs the whole budget, whatever its length
        assert all(price == pytest.approx(1.0, rel=1e-6) for price in prices.values())


def test_blocks_follow_one_another() -> None:
    """Rounds 1-3 share a block, 4-6 the next, 7 the last: 3 blocks of 10 for 7 rounds."""
    mean = AdditiveMean(dim=2, noise=GaussianNoise(2.0), trust=LOCAL, on_violation="clip")
    measure = Measure(statistic="gradient", estimator=mean, max_radius=1.0)
    batch = Disjoint(size=10, repeats=3)
    plan = Plan(steps=((Step(measures=(measure,), batch=batch), 7),), parties=1, delta=1e-5)
    assert plan.blocks(30) == [0, 30]
    assert not plan.fits(29)
    with pytest.raises(ParameterError, match="if disjoint, got 30"):
        plan.check_sizes([29])
    taken = [frozenset(one) for one in watched_run(plan, 30).taken]
    assert len(set(taken)) == 3
    assert taken[0] == taken[1] == taken[2]
    assert taken[3] == taken[4] == taken[5]
    assert len(taken[0] | taken[3] | taken[6]) == 30
    price = epsilon_of(plan.event([30], LOCAL), 1e-5)
    assert price == pytest.approx(epsilon_of(Repeat(Gaussian(2.0), 3), 1e-5), rel=1e-9)
    assert Plan.from_toml(plan.to_toml()) == plan


@pytest.mark.parametrize("wrong", [Disjoint(size=2, repeats=2), Disjoint(size=4, sample=0.5)])
def test_walks_and_correlated_rounds_use_blocks_once(wrong: Disjoint) -> None:
    mean = AdditiveMean(dim=2, noise=GaussianNoise(2.0), trust=LOCAL, on_violation="clip")
    measure = Measure(statistic="gradient", estimator=mean, max_radius=1.0)

    def make(kind: type[AnyStep], **fields: Any) -> AnyStep:
        return kind(measures=(measure,), batch=wrong, **fields)

    with pytest.raises(ParameterError, match="repeats 1 and no sample"):
        make(Walk, steps=2)
    with pytest.raises(ParameterError, match="repeats 1 and no sample"):
        make(CorrelatedStep, bands=1)
    for bad in ({"repeats": 0}, {"sample": 0.0}, {"sample": 1.5}):
        with pytest.raises(ParameterError):
            Disjoint(size=2, **bad)


def test_the_releases_of_a_phase_together_tell_what_is_claimed_and_half_the_noise_more() -> None:
    """The best test on all releases of a record's phase, with the noise that the plan gives them.

    40,000 runs of 5 rounds each; an error of .012 in a rate is 4.9 standard errors of .0025.
    """
    z, rng = calibrate(Gaussian, PrivacyBudget(1.0, 1e-2)), np.random.default_rng(6)
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=LocalizedSubgradient(rounds=8),
        trust=LOCAL,
        budget=PrivacyBudget(1.0, 1e-2),
        moment=MomentBound(4, 5.0),
    )
    (step, count), *_ = prepare(settings, [8]).plan.kinds
    multiplier = step.measures[0].estimator.noise_multiplier  # type: ignore[union-attr]
    assert multiplier == pytest.approx(z * math.sqrt(count), rel=1e-6)

    def advantage(noise: float) -> float:
        """How much more likely the other side is named, beyond e^epsilon, at the best threshold."""
        here = noise * rng.standard_normal((40_000, count)).sum(axis=1) / count
        there = 1 + noise * rng.standard_normal((40_000, count)).sum(axis=1) / count
        cut = 0.5 + noise**2 / count  # where the likelihood ratio of the mean of the rounds is e
        return float(np.mean(there > cut) - math.e * np.mean(here > cut))

    assert advantage(multiplier) <= 0.01 + 0.012
    assert advantage(multiplier / 2) > 0.08


# Runs


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL, TrustModel.AGGREGATE])
@pytest.mark.parametrize(
    "method",
    [
        ClippedSubgradient(rounds=10),
        LocalizedSubgradient(rounds=20),
        LocalizedSubgradient(rounds=20, sample="sqrt"),
        PhasedLocalizedSubgradient(rounds=20, mu=1.0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_they_come_nearer_to_the_minimum(method: Any, trust: TrustModel) -> None:
    """Least squares, heavy features, a generous budget; the start is .8 away."""
    rng = np.random.default_rng(7)
    best, silos = np.array([0.8, 0.0]), []
    for n in (1500, 2500):
        X = rng.standard_t(5, (n, 2)) / math.sqrt(5 / 3)
        silos.append(Records.of(X, X @ best + 0.3 * rng.standard_t(4, n)))
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=method,
        trust=trust,
        budget=PrivacyBudget(8.0, 1e-5),
        diameter=2.0,
        regularizer=L2Ball(1.0),
        moment=MomentBound(4, 8.0),
        noise="discrete-gaussian",
    )
    made = make_silos(silos, OBJECTIVE, trusts_server=trust is CENTRAL, sums=sums_of(settings), seed=8)
    out = train(in_process(made, seed=8), settings)
    assert np.linalg.norm(out.w - best) < 0.6
    assert np.linalg.norm(out.w) <= 1 + 1e-9
    assert out.guarantee.epsilon <= 8.0


def test_what_phases_refuse() -> None:
    moment = MomentBound(4, 5.0)
    for kind in (LocalizedSubgradient, PhasedLocalizedSubgradient):
        with pytest.raises(ParameterError, match="at least 4 units for phases, got 3"):
            kind().check(known_problem(3, moment), 5)
        with pytest.raises(ParameterError, match="needs a stated moment"):
            kind().check(replace(known_problem(40, moment), moment=None), 5)
        with pytest.raises(ParameterError, match="lipschitz must be given"):
            kind(method="paper").check(known_problem(40, moment), 5)
        with pytest.raises(ParameterError, match="an order above 2, 2k: got 2"):
            kind(method="paper", lipschitz=20.0).check(known_problem(40, MomentBound(2, 5.0)), 5)
        kind(method="paper", lipschitz=20.0).check(known_problem(40, moment), 5)
        with pytest.raises(ParameterError, match="an order above 2, or a clip, got 2"):
            kind().check(known_problem(40, MomentBound(2, 5.0)), 5)
        kind().check(known_problem(40, MomentBound(2, 5.0), radius=3.0), 5)
    little = known_problem(
        40, moment, protection=Protection(trust=CENTRAL, noise=GaussianNoise, multiplier=0.4)
    )
    with pytest.warns(UserWarning, match=r"at most the root of 5 parameters, got 2\.5"):
        LocalizedSubgradient(method="paper", lipschitz=20.0).check(little, 5)
    with pytest.warns(UserWarning, match="the phases read"):
        LocalizedSubgradient().check(known_problem(10**8, moment), 320)
    with pytest.raises(ParameterError, match="sample"):
        LocalizedSubgradient(sample="some")  # type: ignore[arg-type]


def test_without_privacy_a_plan_of_phases_is_no_guarantee() -> None:
    settings = Settings(
        objective=OBJECTIVE, algorithm=LocalizedSubgradient(rounds=20), moment=MomentBound(4, 5.0)
    )
    event = prepare(settings, [50]).plan.event([50], LOCAL)
    assert math.isinf(epsilon_of(event, 1e-6))
