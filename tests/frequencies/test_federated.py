"""A histogram as a step of a plan: every trust model, in process and simulated, with ledgers and liars."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import Crowd, Fixed, InProcess, Measure, OpenSums, Plan, Silo, Step
from tacit.frequencies import (
    ITEMS,
    ItemCounts,
    Items,
    federated_histogram,
    histogram_plan,
)
from tacit.ledger import Ledger
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ModularSumMean,
    Round,
    counts_of_shares,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, Unit, guarantee
from tacit.randomness import secure, simulated

BUDGET = PrivacyBudget(1.0, 1e-6)
CENTRAL, AGGREGATE, SHUFFLE, LOCAL = (
    TrustModel.CENTRAL,
    TrustModel.AGGREGATE,
    TrustModel.SHUFFLE,
    TrustModel.LOCAL,
)
SIZES = (40, 70, 50)
HELD = [np.arange(n) % 5 for n in SIZES]
TRUTH = np.bincount(np.concatenate(HELD), minlength=6) / sum(SIZES)


def silo(held: Any, k: int = 6, *, name: str = "a silo", seed: int | None = 0, **fields: Any) -> Silo:
    trusted: dict[str, Any] = {"trusts_server": True, "trusts_shuffler": True, "sums": OpenSums()} | fields
    rng = secure() if seed is None else simulated(seed, name)
    return Silo(Items(held), {ITEMS: ItemCounts(k)}, name=name, rng=rng, **trusted)


def silos(k: int = 6, held: list[Array] = HELD, **fields: Any) -> list[Silo]:
    return [silo(one, k, name=f"silo {place}", **fields) for place, one in enumerate(held)]


def plan(trust: TrustModel, *, k: int = 6, budget: PrivacyBudget = BUDGET, **fields: Any) -> Plan:
    return histogram_plan(k=k, sizes=SIZES, budget=budget, trust=trust, **fields)


def quiet(made: Plan) -> Plan:
    """The plan with noise that is zero but with a probability of exp(-2**19), to see what is counted."""
    step = made.kinds[0][0]
    mean: Any = step.measures[0].estimator
    bare = msgspec.structs.replace(mean.noise, noise_multiplier=2.0**-20 / mean.noise.steps)
    measure = Measure(statistic=ITEMS, estimator=msgspec.structs.replace(mean, noise=bare), max_radius=1.0)
    return msgspec.structs.replace(made, steps=((Step(measures=(measure,)), 1),))


@pytest.mark.parametrize("trust", list(TrustModel))
def test_every_trust_model_counts_at_its_budget(trust: TrustModel) -> None:
    made = plan(trust)
    found = federated_histogram(InProcess(silos(), rng=simulated(1, "server")), made)
    error = made.kinds[0][0].measures[0].estimator.error(sum(SIZES))
    assert np.abs(found.estimates - TRUTH).max() < 7 * math.sqrt(error.variance)
    assert len(found.guarantees) == (1 if trust is CENTRAL else 3)
    for one in found.guarantees:
        assert 0.99 < one.epsilon <= 1
        assert one.delta == BUDGET.delta
        assert one.simulated
    assert len(found.guarantees_alone) == (3 if trust in (SHUFFLE, AGGREGATE) else 0)
    assert all(one.epsilon > 1.1 for one in found.guarantees_alone)
    assert Plan.from_toml(made.to_toml()) == made


@pytest.mark.parametrize("trust", [CENTRAL, LOCAL, AGGREGATE])
def test_counts_without_noise_are_the_counts_in_process_and_estimated(trust: TrustModel) -> None:
    made = quiet(plan(trust)) if trust is not AGGREGATE else plan(trust, budget=PrivacyBudget(500.0, 1e-6))
    found = federated_histogram(InProcess(silos(), rng=simulated(1, "server")), made).estimates
    rows = ItemCounts(6)(Items(np.concatenate(HELD)), {})
    mean = made.kinds[0][0].measures[0].estimator
    facts = Round(n=sum(SIZES), radius=1.0, parties=3)
    again = mean.estimate(rows, facts, rng=np.random.default_rng(0))
    far = 0.01 if trust is AGGREGATE else 1e-12
    assert found == pytest.approx(TRUTH, abs=far)
    assert again == pytest.approx(TRUTH, abs=far)


@pytest.mark.parametrize("trust", [CENTRAL, LOCAL, AGGREGATE])
def test_a_federation_has_the_law_of_the_estimate(trust: TrustModel) -> None:
    """2,000 counts of noise each, whose laws are compared (Smirnov); items 0 and 1 are held."""
    k, held = 2000, [np.zeros(4, dtype=int), np.ones(3, dtype=int), np.zeros(5, dtype=int)]
    made = histogram_plan(k=k, sizes=[4, 3, 5], budget=PrivacyBudget(0.5, 1e-6), trust=trust)
    found = federated_histogram(InProcess(silos(k, held), rng=simulated(2, "server")), made).estimates
    mean = made.kinds[0][0].measures[0].estimator
    rows = ItemCounts(k)(Items(np.concatenate(held)), {})
    again = mean.estimate(rows, Round(n=12, radius=1.0, parties=3), rng=np.random.default_rng(3))
    test = stats.ks_2samp(found[2:], again[2:])
    assert test.pvalue > 1e-7


def test_each_record_may_trust_nobody_and_a_crowd_has_one_record_a_client() -> None:
    made = plan(LOCAL, each_record=True, budget=PrivacyBudget(3.0))
    found = federated_histogram(InProcess(silos()), made)
    assert {one.epsilon for one in found.guarantees} == {3.0}
    crowd = Crowd(
        Items(np.concatenate(HELD)), {ITEMS: ItemCounts(6)}, trusts_shuffler=True, rng=simulated(5, "crowd")
    )
    n = sum(SIZES)
    for trust, extra in ((SHUFFLE, {}), (LOCAL, {"each_record": True})):
        many = histogram_plan(k=6, sizes=[1] * n, budget=BUDGET, trust=trust, **extra)  # type: ignore[arg-type]
        seen = federated_histogram(crowd, many)
        error = many.kinds[0][0].measures[0].estimator.error(n)
        assert np.abs(seen.estimates - TRUTH).max() < 7 * math.sqrt(error.variance)
        assert seen.guarantees[0].epsilon == pytest.approx(1.0, abs=0.01)


def test_half_the_noise_of_a_plan_costs_more_in_every_view() -> None:
    for trust in (CENTRAL, LOCAL, AGGREGATE):
        made = plan(trust)
        step = made.kinds[0][0]
        mean: Any = step.measures[0].estimator
        half = msgspec.structs.replace(mean.noise, noise_multiplier=mean.noise.noise_multiplier / 2)
        measure = Measure(
            statistic=ITEMS, estimator=msgspec.structs.replace(mean, noise=half), max_radius=1.0
        )
        halved = msgspec.structs.replace(made, steps=((Step(measures=(measure,)), 1),))
        price = guarantee(halved.event(SIZES, trust), 1e-6, observer="a test").epsilon
        assert price > 1.9


def test_items_outside_of_the_domain_count_as_none_and_nothing_shows_them() -> None:
    hostile = [np.array([0, 1, -1, 6, 10**15]), np.array([2, 2, 2, 2, 2])]
    made = quiet(histogram_plan(k=3, sizes=[5, 5], budget=BUDGET, trust=LOCAL))
    found = federated_histogram(InProcess(silos(3, hostile)), made)
    assert found.estimates == pytest.approx([0.1, 0.1, 0.5], abs=1e-12)
    honest = federated_histogram(InProcess(silos(3, [np.zeros(5, dtype=int)] * 2)), made)
    assert honest.bits == found.bits
    wide = Items(np.array([2**64 - 1, 0, 1], dtype=np.uint64))
    assert ItemCounts(3).clipped_sum(wide, {}, 1.0).tolist() == [1, 1, 0]
    for mean in (made.kinds[0][0].measures[0].estimator,):
        rows = mean.encode(
            ItemCounts(3)(Items(hostile[0]), {}), Round(n=5, radius=1.0), party=0, rng=secure()
        )
        assert rows[0].payload.tolist() == [1, 1, 0]


def test_a_statistic_that_is_not_known_to_count_is_refused() -> None:
    class Liar:
        def __call__(self, units: Items, at: Any) -> Array:
            return np.ones((len(units), 6))

    made = plan(LOCAL)
    stranger = Silo(Items(HELD[0]), {ITEMS: Liar()}, rng=simulated(0, "liar"))
    with pytest.raises(ParameterError, match="needs a statistic that is known to make such, and 'items' is"):
        stranger.consider(made, run="run", budget=None)
    with pytest.raises(ParameterError, match="known to make such"):
        Crowd(Items(HELD[0]), {ITEMS: Liar()}).open(
            histogram_plan(k=6, sizes=[1] * 40, budget=BUDGET, trust=LOCAL)
        )


def test_every_silo_pays_from_a_ledger_of_its_own_and_the_same_run_is_paid_once(tmp_path: Path) -> None:
    made = plan(AGGREGATE)
    ledgers = [
        Ledger.create(tmp_path / f"{n}.ledger", neighbours=Neighbours(), limit=PrivacyBudget(1.5, 1e-5))
        for n in range(3)
    ]
    parties = [
        silo(held, name=f"silo {n}", seed=None, ledger=ledger)
        for n, (held, ledger) in enumerate(zip(HELD, ledgers, strict=True))
    ]
    first = federated_histogram(InProcess(parties), made, run="monday")
    again = federated_histogram(InProcess(parties), made, run="monday")
    assert first.estimates.tolist() == again.estimates.tolist()
    assert not first.guarantees[0].simulated
    with pytest.raises(BudgetError):
        federated_histogram(InProcess(parties), made, run="tuesday")


def test_nobody_counts_for_whom_they_do_not_trust() -> None:
    with pytest.raises(RefusalError, match="trusts_server"):
        federated_histogram(InProcess(silos(trusts_server=False)), plan(CENTRAL))
    with pytest.raises(RefusalError, match="trusts_shuffler"):
        federated_histogram(InProcess(silos(trusts_shuffler=False)), plan(SHUFFLE))


def test_a_sample_and_another_relation_have_a_price() -> None:
    made = plan(LOCAL)
    step = msgspec.structs.replace(made.kinds[0][0], batch=Fixed(10))
    sampled = msgspec.structs.replace(made, steps=((step, 3),))
    price = guarantee(sampled.event([100], LOCAL), 1e-6, observer="a test").epsilon
    assert price < guarantee(made.event([100], LOCAL), 1e-6, observer="a test").epsilon
    near = Neighbours(Relation.ZERO_OUT, Unit.PERSON)
    alone = plan(AGGREGATE, neighbours=near)
    mean, usual = (one.kinds[0][0].measures[0].estimator for one in (alone, plan(AGGREGATE)))
    assert isinstance(mean, ModularSumMean)
    assert isinstance(usual, ModularSumMean)
    assert mean.std / mean.noise.steps == pytest.approx(
        usual.std / usual.noise.steps / math.sqrt(2), rel=0.01
    )


def test_the_noise_is_the_least_that_the_budget_allows() -> None:
    pure = plan(LOCAL, budget=PrivacyBudget(1.0)).kinds[0][0].measures[0].estimator
    assert isinstance(pure, AdditiveMean)
    assert isinstance(pure.noise, DiscreteLaplaceNoise)
    assert pure.noise.noise_multiplier * pure.moved == pytest.approx(2.0, rel=1e-9)
    large = plan(LOCAL, budget=PrivacyBudget(0.5, 0.01)).kinds[0][0].measures[0].estimator
    assert isinstance(large, AdditiveMean)
    assert isinstance(large.noise, DiscreteGaussianNoise)
    for shares in (2, 3, 100, 10_000):
        mean = counts_of_shares(k=10**5, budget=BUDGET, shares=shares)
        # That of all honest shares, in counts: next to the 5.98 of a trusted server, whatever k and shares.
        assert mean.std * math.sqrt(shares) / mean.noise.steps == pytest.approx(5.98, rel=0.005)
        assert guarantee(mean.event(10**6, AGGREGATE), 1e-6, observer="a test").epsilon <= 1
    fewer = plan(AGGREGATE, colluding=1).kinds[0][0].measures[0].estimator
    assert isinstance(fewer, ModularSumMean)
    assert fewer.shares == 2


@pytest.mark.parametrize("trust", [SHUFFLE, AGGREGATE])
def test_silos_that_tell_what_they_sent_hide_nobody(trust: TrustModel) -> None:
    made = plan(trust, colluding=1)
    found = federated_histogram(InProcess(silos(), rng=simulated(1, "server")), made)
    assert all(0.99 < one.epsilon <= 1 for one in found.guarantees)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"trust": CENTRAL, "each_record": True}, "each_record is for local trust, got central"),
        ({"trust": AGGREGATE, "budget": PrivacyBudget(1.0)}, "delta must be > 0 under aggregate trust"),
        ({"trust": AGGREGATE, "colluding": 2}, "shares must be"),
        ({"trust": LOCAL, "colluding": 1}, "n_min and colluding must be 0"),
        ({"trust": SHUFFLE, "n_min": math.nan}, "n_min must be a whole number"),
        ({"trust": SHUFFLE, "colluding": -(10**400)}, "colluding must be a whole number"),
        ({"trust": SHUFFLE, "sizes": [5, 10**400]}, "a number of units of a silo must be"),
        ({"trust": LOCAL, "sizes": []}, "the number of silos must be"),
    ],
)
def test_what_has_no_price_is_refused(fields: dict[str, Any], said: str) -> None:
    usual: dict[str, Any] = {"k": 6, "sizes": SIZES, "budget": BUDGET, "trust": LOCAL}
    with pytest.raises(ParameterError, match=said):
        histogram_plan(**(usual | fields))


def test_items_are_whole_numbers() -> None:
    for bad in ([0.5], [[1]], ["a"]):
        with pytest.raises(ParameterError, match="values must be whole numbers of shape"):
            Items(bad)
    with pytest.raises(ParameterError, match="k must be"):
        ItemCounts(1)
