"""Plans of aggregate trust: how many honest shares a sum holds, what that costs, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import (
    Fixed,
    Group,
    Measure,
    Plan,
    Poisson,
    Server,
    Step,
    Walk,
    with_widths,
)
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    ModularSumMean,
    NoNoise,
    SignVoteMean,
    modular_width,
)
from tacit.mechanisms import discrete_gaussian_log_pmf
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    Neighbours,
    Relation,
    Repeat,
    Sampled,
    TrustModel,
    calibrate,
    delta_of,
    epsilon_of,
)
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.aggregates import SIZES, STEPS, mean_of, plan_of, step_of


def sums_of(plan: Plan) -> list[ModularSumMean]:
    return [mean for step, _ in plan.kinds for mean in step.summed]


# --- what a plan says


def test_a_plan_is_what_was_written_down() -> None:
    made = plan_of(n_min=4, colluding=1, roster="0f" * 32)
    again = Plan.from_toml(made.to_toml())
    assert (again, again.digest()) == (made, made.digest())


@pytest.mark.parametrize(
    "case", [c for c in ESTIMATORS if c.make(3, 1).trust is TrustModel.AGGREGATE], ids=str
)
def test_every_estimator_of_aggregate_trust_may_stand_in_a_plan(case: Any) -> None:
    mean = case.make(3, 1)
    made = made_with(steps=((step_of(mean), 2),), parties=mean.shares, n_min=mean.shares, colluding=0)
    again = Plan.from_toml(made.to_toml())
    assert (again, again.digest(), made.exact) == (made, made.digest(), True)


@pytest.mark.parametrize(("field", "value"), [("roster", "1" * 64), ("n_min", 3), ("colluding", 1)])
def test_who_is_added_up_is_part_of_the_digest(field: str, value: Any) -> None:
    made = plan_of(sizes=SIZES, n_min=4, colluding=0, recover=True)
    shares = {"n_min": 3, "colluding": 3}.get(field, 4)
    changed = plan_of(step_of(mean_of(shares)), **{"n_min": 4, "recover": True, field: value})
    assert changed.digest() != made.digest()


GOOD: dict[str, Any] = {"steps": ((step_of(mean_of(3)), 2),), "parties": 4, "n_min": 4, "colluding": 1}


def made_with(**fields: Any) -> Plan:
    return Plan(**{**GOOD, "trust": TrustModel.AGGREGATE, "delta": 1e-6, **fields})


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "one share": (lambda: made_with(colluding=3), "n_min - colluding must be at least 2"),
    "no quorum": (lambda: made_with(n_min=0), "n_min"),
    "more than there are": (lambda: made_with(n_min=5), "n_min"),
    "all collude": (lambda: made_with(colluding=4), "colluding"),
    "more collude than arrive": (lambda: made_with(colluding=5), "colluding"),
    "one party": (lambda: made_with(parties=1, n_min=1, colluding=0), "n_min"),
    "negative colluders": (lambda: made_with(colluding=-1), "colluding"),
    "drop-outs that nothing recovers": (lambda: made_with(n_min=3, colluding=0), "must be all 4 parties"),
    "two sums of a step": (
        lambda: made_with(parties=5, n_min=3, colluding=1, recover=True),
        "above \\(parties \\+ colluding\\) / 2 \\(3\\)",
    ),
    "too many to recover": (
        lambda: made_with(parties=201, n_min=201, colluding=198, recover=True),
        "parties of a plan that recovers",
    ),
    "fewer shares than counted": (
        lambda: made_with(colluding=2),
        "shares must be n_min - colluding \\(2\\)",
    ),
    "more shares": (lambda: made_with(colluding=0), "shares must be n_min - colluding \\(4\\)"),
    "a roster that is no digest": (lambda: made_with(roster="ours"), "roster"),
    "a roster in capitals": (lambda: made_with(roster="A" * 64), "roster"),
    "another trust": (
        lambda: made_with(trust=TrustModel.LOCAL, n_min=0, colluding=0),
        "a step has aggregate trust, the plan local",
    ),
    "noise of the server": (
        lambda: made_with(steps=((local_step(DiscreteGaussianNoise(3.0)), 1),)),
        "a step has local trust, the plan aggregate",
    ),
    "no noise": (lambda: made_with(steps=((local_step(NoNoise()), 1),)), "a sum alone protects nobody"),
    "two widths": (
        lambda: step_of(mean_of(3, width=20), mean_of(3, width=21)),
        "same width and the same shares",
    ),
    "two shares": (lambda: step_of(mean_of(3), mean_of(2)), "same width and the same shares"),
    "honest rows": (
        lambda: Step(measures=step_of(mean_of(3)).measures, honest=4),
        "honest",
    ),
    "walks": (
        lambda: Walk(measures=step_of(mean_of(3)).measures, steps=2),
        "a walk needs local trust",
    ),
    "too wide": (lambda: mean_of(3, width=65), "width"),
    "too many grid steps": (lambda: mean_of(3, steps=2**31), "steps"),
    "roster elsewhere": (
        lambda: Plan(steps=((local_step(DiscreteGaussianNoise(3.0)), 1),), parties=4, roster="0" * 64),
        "roster and recover must be left out",
    ),
}


def local_step(noise: Any) -> Step:
    mean = AdditiveMean(dim=3, noise=noise)
    return Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),))


@pytest.mark.parametrize("case", REFUSED)
def test_plans_without_a_price_are_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(ParameterError, match=message):
        make()


def test_votes_have_no_price_in_a_sum() -> None:
    """Their decoder counts signs of single messages, so that no such estimator takes the trust model."""
    with pytest.raises(ParameterError, match="trust"):
        SignVoteMean(dim=3, trust=TrustModel.AGGREGATE)


def test_two_sums_of_one_step_need_a_quorum_that_no_plan_allows() -> None:
    """All small federations: a plan is refused exactly when two sets of parties could both be signed."""
    for n, c, t in product(range(3, 8), range(3), range(2, 8)):
        if t > n or t - c < 2:
            continue
        honest = n - c
        possible = 2 * (t - c) <= honest  # an honest party signs one set, a colluding one both
        steps = ((step_of(mean_of(t - c)), 1),)
        with pytest.raises(ParameterError, match="two sums") if possible else nullcontext():
            made_with(steps=steps, parties=n, n_min=t, colluding=c, recover=True)


# --- widths


def test_a_width_holds_the_sums_of_the_whole_plan() -> None:
    """Rows, parties, coordinates of all means, and all rounds decide, whatever the groups."""
    one, other = mean_of(dim=3), mean_of(dim=5)
    grouped = Group(steps=((step_of(one, other), 2), (step_of(one), 1)))
    (group, _), (alone, _) = with_widths(((grouped, 3), (step_of(other), 4)), SIZES)
    rounds, rows = 3 * 3 + 4, sum(SIZES)

    def needed(dim: int) -> int:
        return modular_width(rows=rows, parties=4, steps=STEPS, std=one.std, dim=dim, rounds=rounds)

    assert isinstance(group, Group)
    assert [step.summed[0].width for step, _ in group.steps] == [needed(8), needed(3)]
    assert alone.summed[0].width == needed(5)  # type: ignore[union-attr]


def test_the_widest_mean_of_a_step_decides() -> None:
    coarse, fine = mean_of(), mean_of(steps=2**20)
    ((step, _),) = with_widths(((step_of(coarse, fine), 1),), SIZES)
    assert {one.width for one in step.summed} == {  # type: ignore[union-attr]
        modular_width(rows=sum(SIZES), parties=4, steps=2**20, std=fine.std, dim=6, rounds=1)
    }


def test_samples_need_fewer_bits_only_where_their_size_is_fixed() -> None:
    """The size of a Poisson sample is secret, and may be all."""
    full, fixed, poisson = (
        with_widths(((step_of(mean_of(4, z=0.5), batch=batch), 1),), [4000] * 4)[0][0].summed[0].width  # type: ignore[union-attr]
        for batch in (Fixed(size=4000), Fixed(size=4), Poisson(rate=0.001))
    )
    assert full == poisson > fixed + 5


def test_sums_that_would_wrap_around_are_refused_by_whoever_knows_the_sizes() -> None:
    made = plan_of()
    width = sums_of(made)[0].width
    narrow = msgspec.structs.replace(made, steps=((step_of(mean_of(width=width - 1)), 4),))
    with pytest.raises(ParameterError, match=f"width must be at least {width} bits"):
        Server(narrow, SIZES, rng=np.random.default_rng(0))
    Server(made, SIZES, rng=np.random.default_rng(0))
    assert narrow.event([5], TrustModel.AGGREGATE) == made.event([5], TrustModel.AGGREGATE)  # no price


def test_more_than_64_bits_are_refused() -> None:
    with pytest.raises(ParameterError, match="64 bits"):
        with_widths(((step_of(mean_of(steps=2**30)), 1),), [2**35] * 4)


# --- prices


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT])
def test_the_price_is_that_of_the_honest_sum_and_of_a_message_alone(relation: Relation) -> None:
    """Both events by hand: s from the plan only, and the sensitivity with its rounding."""
    near = Neighbours(relation)
    made = plan_of(n_min=4, colluding=1, z=3.0, neighbours=near)
    moved = 2 if relation is Relation.REPLACE_ONE else 1
    std = 3.0 / math.sqrt(3) * moved * STEPS
    summed = made.event([5], TrustModel.AGGREGATE)
    assert isinstance(summed, Repeat)
    once = summed.part
    assert isinstance(once, DiscreteGaussianSum)
    assert (once.shares, once.dim, summed.count) == (3, 3, 4)
    assert once.std == pytest.approx(std, rel=1e-12)
    assert once.sensitivity == pytest.approx(moved * STEPS + math.sqrt(3), rel=1e-9)
    alone = DiscreteGaussian(once.std, once.sensitivity, near, 3)
    assert made.event([5], TrustModel.LOCAL) == Repeat(alone, 4)


def exact_delta(std: float, shares: int, shift: int, epsilon: float) -> float:
    """Of the sum of shares in one coordinate, moved by `shift`: convolved, and compared number by number."""
    reach = math.ceil(12 * std)
    one = np.exp(discrete_gaussian_log_pmf(np.arange(-reach, reach + 1), std))
    law = one
    for _ in range(shares - 1):
        law = np.convolve(law, one)
    p, q = np.pad(law, (shift, 0)), np.pad(law, (0, shift))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("shares", "colluding"), [(2, 0), (3, 1), (5, 0)])
def test_a_plan_costs_no_less_than_the_exact_law_of_its_sum(shares: int, colluding: int) -> None:
    """One coordinate on a tiny grid, by convolution; a share fewer, and the claim would be wrong."""
    parties = shares + colluding
    mean = mean_of(shares, z=1.2, dim=1, steps=4 * shares, neighbours=Neighbours(Relation.ZERO_OUT))
    made = plan_of(step_of(mean), rounds=1, sizes=[1] * parties, colluding=colluding)
    once = made.event([1], TrustModel.AGGREGATE)
    assert isinstance(once, DiscreteGaussianSum)
    shift = math.floor(once.sensitivity)  # a coordinate moves by whole steps
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        claimed = delta_of(once, epsilon)
        assert exact_delta(once.std, shares, shift, epsilon) <= claimed
        assert exact_delta(once.std, shares - 1, shift, epsilon) > claimed
        alone = delta_of(made.event([1], TrustModel.LOCAL), epsilon)
        assert exact_delta(once.std, 1, shift, epsilon) <= alone * (1 + 1e-9)


def test_a_calibrated_plan_costs_its_budget() -> None:
    """The noise multiplier of the honest sum is that of a continuous mechanism, but for grid and rounding."""
    from tacit.privacy import Gaussian, PrivacyBudget

    budget = PrivacyBudget(1.0, 1e-6)

    def event_at(z: float) -> Any:
        return plan_of(step_of(mean_of(4, z=z, steps=2**12)), rounds=10).event([9], TrustModel.AGGREGATE)

    z = calibrate(event_at, budget, low=1.0, high=100.0)
    free = calibrate(lambda one: Repeat(Gaussian(one), 10), budget, low=1.0, high=100.0)
    assert free < z < free * 1.01
    assert epsilon_of(event_at(z), 1e-6) <= 1.0


def test_more_colluders_cost_more_and_too_many_have_no_price() -> None:
    made = plan_of(sizes=(5, 5, 5, 5, 5), n_min=5, colluding=1)
    prices = [epsilon_of(made.with_colluding(c).event([5], TrustModel.AGGREGATE), 1e-6) for c in (0, 1, 2, 3)]
    assert prices[0] == prices[1] < prices[2] < prices[3]
    assert made.with_colluding(3).event([5], TrustModel.LOCAL) == made.event([5], TrustModel.LOCAL)
    with pytest.raises(ParameterError, match="at least 2"):
        made.with_colluding(4)
    recovers = plan_of(sizes=(5,) * 7, n_min=5, colluding=1, recover=True)
    with pytest.raises(ParameterError, match="two sums of one step"):
        recovers.with_colluding(3)


def test_two_means_of_a_step_are_one_release_and_samples_amplify() -> None:
    both = plan_of(step_of(mean_of(), mean_of()), rounds=1)
    assert epsilon_of(both.event([5], TrustModel.AGGREGATE), 1e-6) > epsilon_of(
        plan_of(rounds=1).event([5], TrustModel.AGGREGATE), 1e-6
    )
    sampled = plan_of(step_of(mean_of(), batch=Fixed(size=2)), rounds=1)
    assert isinstance(sampled.event([5], TrustModel.AGGREGATE), Sampled)


def test_noise_that_is_too_small_for_the_grid_has_no_price() -> None:
    """Below three steps a share, sums of discrete Gaussians are none."""
    made = plan_of(step_of(mean_of(4, z=2 * 2.9 / 64 / 2)), rounds=1)
    assert sums_of(made)[0].std < 3
    with pytest.raises(ParameterError, match="take more steps"):
        made.event([5], TrustModel.AGGREGATE)
