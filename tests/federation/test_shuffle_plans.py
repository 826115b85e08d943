"""Plans of shuffle trust: what they say of who arrives and colludes, what they cost, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import (
    Disjoint,
    Fixed,
    Full,
    Group,
    Measure,
    Plan,
    Poisson,
    Server,
    Step,
    with_honest,
)
from tacit.means import BinomialMean, PrivUnitMean
from tacit.privacy import (
    Binomial,
    Compose,
    Parallel,
    PrivacyBudget,
    Repeat,
    Sampled,
    TrustModel,
    epsilon_of,
)
from tests.contract.mean_cases import ESTIMATORS

SIZES = (5, 9, 7)
MEAN = BinomialMean(dim=3, noise_bits=40, resolution=8)


def step(mean: Any = MEAN, **fields: Any) -> Step:
    return Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),), **fields)


def plan(*kinds: tuple[Any, int], n_min: int = 3, colluding: int = 0, **fields: Any) -> Plan:
    made = with_honest(kinds or ((step(), 4),), SIZES, n_min=n_min, colluding=colluding)
    fields = {"parties": 3, "trust": TrustModel.SHUFFLE, "delta": 1e-6, **fields}
    return Plan(steps=made, n_min=n_min, colluding=colluding, **fields)


@pytest.mark.parametrize(
    ("n_min", "colluding", "batch", "honest"),
    [
        (3, 0, Full(), 21),
        (2, 0, Full(), 12),  # 5 + 7: the largest may stay away
        (3, 1, Full(), 12),  # or collude
        (2, 1, Full(), 5),
        (3, 1, Fixed(size=4), 8),
        (3, 0, Disjoint(rate=0.2), 3),
    ],
)
def test_the_smallest_batches_are_what_can_be_counted_on(
    n_min: int, colluding: int, batch: Any, honest: int
) -> None:
    made = plan((step(batch=batch), 2), n_min=n_min, colluding=colluding)
    assert [one.honest for one, _ in made.kinds] == [honest]
    grouped = plan((Group(steps=((step(batch=batch), 1),)), 2), n_min=n_min, colluding=colluding)
    assert [one.honest for one, _ in grouped.kinds] == [honest]


def test_prices_count_the_noise_of_honest_rows_whoever_computes_them() -> None:
    made = plan(n_min=2, colluding=1)
    expected = Repeat(Binomial(5 * 40, 8, 3), 4)
    assert made.event([9], TrustModel.SHUFFLE) == made.event(SIZES, TrustModel.SHUFFLE) == expected
    sampled = plan((step(batch=Fixed(size=4)), 2))
    assert sampled.event([9], TrustModel.SHUFFLE) == Repeat(Sampled(Binomial(12 * 40, 8, 3), 4 / 9), 2)
    assert sampled.event(SIZES, TrustModel.SHUFFLE) == Repeat(Sampled(Binomial(12 * 40, 8, 3), 4 / 5), 2)
    once = plan((step(batch=Disjoint(size=2)), 2))
    assert once.event([9], TrustModel.SHUFFLE) == Parallel((Binomial(6 * 40, 8, 3),))


def test_two_means_of_one_batch_are_one_joint_event() -> None:
    both = Step(measures=(*step().measures, *step().measures))
    event = plan((both, 1)).event([5], TrustModel.SHUFFLE)
    assert event == Compose((Binomial(21 * 40, 8, 3),) * 2)


def test_more_colluders_and_fewer_arrivals_cost_more() -> None:
    prices = [
        epsilon_of(plan(n_min=a, colluding=c).event([5], TrustModel.SHUFFLE), 1e-6)
        for a, c in ((3, 0), (3, 1), (2, 1))
    ]
    assert prices == sorted(prices)
    assert prices[0] < prices[1] < prices[2]


@pytest.mark.parametrize("case", [c for c in ESTIMATORS if c.make(3, 1).trust is TrustModel.SHUFFLE], ids=str)
def test_every_shuffled_estimator_may_stand_in_a_plan(case: Any) -> None:
    mean = case.make(3, 1)
    if (getattr(mean, "n_min", None), getattr(mean, "honest_fraction", 1)) != (None, 1):
        with pytest.raises(ParameterError, match="must be left out"):
            plan((step(mean), 1))
        mean = msgspec.structs.replace(mean, n_min=None, honest_fraction=1.0)
    made = plan((step(mean), 2))
    again = Plan.from_toml(made.to_toml())
    assert (again, again.digest()) == (made, made.digest())


CHANGED: dict[str, tuple[Callable[[], object], str]] = {
    "poisson": (lambda: plan((step(batch=Poisson(rate=0.5)), 1)), "must not be Poisson"),
    "nobody arrives": (lambda: plan(n_min=1), "n_min"),
    "more than there are": (lambda: plan(n_min=4), "n_min"),
    "all collude": (lambda: plan(n_min=2, colluding=2), "colluding"),
    "one party": (lambda: plan(parties=1), "parties must be at least 2"),
    "local trust": (lambda: plan(trust=TrustModel.LOCAL), "a step has shuffle trust, the plan local"),
    "nobody honest": (
        lambda: Plan(steps=((step(), 1),), parties=3, trust=TrustModel.SHUFFLE, n_min=2),
        "honest",
    ),
    "negative": (lambda: step(honest=-1), "honest"),
    "counted twice": (
        lambda: step(BinomialMean(dim=3, noise_bits=4, resolution=2, honest_fraction=0.5)),
        "must be left out",
    ),
    "arrives twice": (
        lambda: step(BinomialMean(dim=3, noise_bits=4, resolution=2, n_min=3)),
        "must be left out",
    ),
    "local honest": (
        lambda: step(PrivUnitMean.calibrated(dim=3, budget=PrivacyBudget(1.0), n=5), honest=3),
        "honest",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_plans_without_a_price_are_refused(case: str) -> None:
    make, message = CHANGED[case]
    with pytest.raises(ParameterError, match=message):
        make()


def test_only_shuffle_trust_has_arrivals() -> None:
    local = PrivUnitMean.calibrated(dim=3, budget=PrivacyBudget(1.0), n=5)
    for n_min, colluding in ((2, 0), (0, 1)):
        with pytest.raises(ParameterError, match="must be 0 in a plan that trusts no shuffler"):
            Plan(steps=((step(local), 1),), parties=3, n_min=n_min, colluding=colluding)


@pytest.mark.parametrize("field", ["n_min", "colluding", "honest"])
def test_what_arrives_is_part_of_the_digest(field: str) -> None:
    made = plan(n_min=2)
    if field == "honest":
        (one, count), *_ = made.kinds
        other = msgspec.structs.replace(made, steps=((msgspec.structs.replace(one, honest=11), count),))
    else:
        other = msgspec.structs.replace(made, **{field: {"n_min": 3, "colluding": 1}[field]})
    assert made.digest() != other.digest()
    assert Plan.from_toml(other.to_toml()) == other


def test_who_knows_the_sizes_refuses_a_plan_that_counts_on_more_rows() -> None:
    made = plan(n_min=2)
    with pytest.raises(ParameterError, match="honest must be at most the 11 units"):
        Server(made, (5, 9, 6), rng=np.random.default_rng(0))
