from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError, UnknownNameError
from tacit.federation import AnyStep, Batch, Disjoint, Fixed, Full, Measure, Plan, Poisson, Step, Walk
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    HadamardMean,
    NoNoise,
    SignVoteMean,
)
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Neighbours,
    NonPrivate,
    Parallel,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    TrustModel,
    Unit,
    epsilon_of,
    neighbours_of,
)
from tests.contract.cases import Case
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.world import DIM, GAUSSIAN, GRID, mean_of, plan_of, step_of

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
ZERO_OUT, ADD_REMOVE = Relation.ZERO_OUT, Relation.ADD_REMOVE
ONE = Gaussian(5.0)


def kind_of(batch: Batch, *, noise: float = 5.0, **options: Any) -> AnyStep:
    return step_of(mean_of(GaussianNoise(noise)), batch=batch, **options)


def plan_with(*steps: tuple[AnyStep, int]) -> Plan:
    return Plan(steps=steps, parties=1, delta=1e-6)


# --- prices


def test_full_batches_repeat_one_release() -> None:
    assert plan_of(mean_of(GAUSSIAN), rounds=7).event([50], LOCAL) == Repeat(ONE, 7)


def test_a_fixed_batch_is_a_sample_at_the_worst_rate_of_all_sizes() -> None:
    event = plan_of(mean_of(GAUSSIAN), rounds=7, batch=Fixed(size=5)).event([50, 20, 100], LOCAL)
    assert event == Repeat(Sampled(ONE, 0.25, Sample.FIXED), 7)


def test_the_rate_that_is_priced_is_that_of_the_rounded_size() -> None:
    event = plan_of(mean_of(GAUSSIAN), rounds=1, batch=Fixed(rate=0.01)).event([30], LOCAL)
    assert event == Sampled(ONE, 1 / 30, Sample.FIXED)  # one unit of 30 is more than a share of 0.01


@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
def test_a_poisson_batch_goes_with_zero_out_and_add_remove(relation: Relation) -> None:
    event = plan_of(mean_of(GAUSSIAN, relation=relation), rounds=2, batch=Poisson(0.1)).event([50], LOCAL)
    assert event == Repeat(Sampled(Gaussian(5.0, Neighbours(relation)), 0.1, Sample.POISSON), 2)


def test_a_poisson_batch_under_replace_one_is_priced_against_what_a_unit_contributes() -> None:
    event = plan_of(mean_of(GAUSSIAN), rounds=2, batch=Poisson(0.1)).event([50], LOCAL)
    # The noise is 5 times what replacing a unit moves, and so 10 times what one contributes.
    assert event == Repeat(Replaced(Gaussian(10.0, Neighbours(Relation.ZERO_OUT)), 0.1), 2)
    assert neighbours_of(event) == Neighbours()


def test_a_poisson_batch_of_an_expected_size_is_priced_at_the_largest_rate() -> None:
    event = plan_of(mean_of(GAUSSIAN), batch=Poisson(size=5)).event([50, 20, 100], LOCAL)
    assert event == plan_of(mean_of(GAUSSIAN), batch=Poisson(0.25)).event([50], LOCAL)


def test_a_poisson_batch_under_replace_one_needs_gaussian_noise_on_sums() -> None:
    with pytest.raises(ParameterError, match=r"priced for Gaussian noise only.*got DiscreteLaplace"):
        plan_of(mean_of(DiscreteLaplaceNoise(5.0)), batch=Poisson(0.1)).event([50], LOCAL)
    reports = HadamardMean(dim=4, local_epsilon=1.0)
    with pytest.raises(ParameterError, match="a Poisson batch needs sums of rows, got HadamardMean"):
        plan_of(reports, batch=Poisson(0.1)).event([50], LOCAL)


def test_a_fixed_batch_has_no_price_under_zero_out() -> None:
    with pytest.raises(ParameterError, match="fixed sample cannot be priced under zero-out"):
        plan_of(mean_of(GAUSSIAN, relation=ZERO_OUT), batch=Fixed(size=2)).event([50], LOCAL)


@pytest.mark.parametrize("batch", [Fixed(size=2), Disjoint(size=2), Fixed(rate=1.0)])
def test_batches_of_fixed_size_are_refused_under_add_remove(batch: Batch) -> None:
    with pytest.raises(ParameterError, match="need replace-one or zero-out neighbours, got add-remove"):
        plan_of(mean_of(relation=ADD_REMOVE), batch=batch)


def test_disjoint_rounds_cost_one_release() -> None:
    assert plan_of(mean_of(GAUSSIAN), rounds=5, batch=Disjoint(size=10)).event([50], LOCAL) == Parallel(
        (ONE,)
    )
    walk = plan_of(mean_of(GAUSSIAN), rounds=5, batch=Disjoint(size=2), walks=5)
    assert walk.event([50], LOCAL) == Parallel((ONE,))  # every step of a walk has a block of its own


def test_disjoint_steps_share_one_order_and_cost_the_worst_of_them() -> None:
    plan = plan_with(
        (kind_of(Disjoint(size=5)), 2),
        (kind_of(Full(), noise=9.0), 3),
        (kind_of(Disjoint(size=7), noise=4.0), 2),
    )
    event = plan.event([50], LOCAL)
    assert event == Compose((Repeat(Gaussian(9.0), 3), Parallel((ONE, Gaussian(4.0)))))
    alone = Compose((Repeat(Gaussian(9.0), 3), Gaussian(4.0)))
    assert epsilon_of(event, 1e-6) == pytest.approx(epsilon_of(alone, 1e-6), rel=1e-3)


def test_two_statistics_on_one_batch_are_composed_before_sampling() -> None:
    plan = plan_of(mean_of(GAUSSIAN), rounds=1, batch=Fixed(size=5), statistics=("row", "shifted"))
    assert plan.event([50], LOCAL) == Sampled(Compose((ONE, ONE)), 0.1, Sample.FIXED)


@pytest.mark.parametrize("noise", [NoNoise(), GAUSSIAN])
def test_walks_need_means_and_not_votes(noise: NoNoise | GaussianNoise) -> None:
    with pytest.raises(ParameterError, match="a walk needs means: votes on signs are counted"):
        plan_of(SignVoteMean(dim=DIM, noise=noise), walks=2)


def test_a_step_with_privacy_refuses_no_row() -> None:
    for noise, allowed in ((GAUSSIAN, False), (GRID, False), (NoNoise(), True)):
        mean = msgspec.structs.replace(mean_of(noise), on_violation="error")
        if allowed:
            plan = plan_of(mean)
            assert Plan.from_toml(plan.to_toml()) == plan
            continue
        with pytest.raises(ParameterError, match="on_violation must be 'clip' in a step with privacy"):
            plan_of(mean)
    with pytest.raises(ParameterError, match="on_violation"):
        plan_of(HadamardMean(dim=DIM, local_epsilon=1.0, on_violation="error"))


@pytest.mark.parametrize("case", ESTIMATORS, ids=str)
def test_every_estimator_that_a_plan_may_name_survives_toml(case: Case) -> None:
    mean = case.make(DIM, 1)
    if mean.trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE):
        pytest.skip(f"tests/federation/test_{mean.trust.value}_plans.py")
    for way in (None, "clip"):
        plan = plan_of(msgspec.structs.replace(mean, on_violation=way))
        assert Plan.from_toml(plan.to_toml()) == plan
        assert plan.exact == mean.exact


def test_a_plan_of_votes_survives_toml() -> None:
    plan = plan_of(SignVoteMean(dim=DIM, noise=GRID))
    assert Plan.from_toml(plan.to_toml()) == plan
    assert plan.exact
    assert not plan_of(SignVoteMean(dim=DIM, noise=GAUSSIAN)).exact


def test_every_step_of_a_walk_is_priced() -> None:
    plan = plan_of(mean_of(GAUSSIAN), rounds=3, batch=Fixed(size=1), walks=4)
    assert plan.event([50], LOCAL) == Repeat(Repeat(Sampled(ONE, 0.02, Sample.FIXED), 4), 3)


@pytest.mark.parametrize("batch", [Full(), Fixed(size=2), Disjoint(size=2), Poisson(0.5)])
@pytest.mark.parametrize("statistics", [("row",), ("row", "shifted")])
def test_no_noise_claims_nothing_on_any_sample(batch: Batch, statistics: tuple[str, ...]) -> None:
    event = plan_of(mean_of(NoNoise()), rounds=2, batch=batch, statistics=statistics).event([50], LOCAL)
    assert epsilon_of(event, 0.5) == math.inf


def test_under_central_trust_the_server_is_promised_nothing_and_the_public_is() -> None:
    plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), rounds=2, batch=Fixed(size=5), parties=2)
    assert plan.event([50], LOCAL) == Repeat(NonPrivate(), 2)
    assert plan.event([50, 20], CENTRAL) == Repeat(Sampled(ONE, 0.25, Sample.FIXED), 2)


def _grid_sensitivity(event: Event) -> float:
    while not isinstance(event, DiscreteGaussian):
        assert isinstance(event, Repeat | Sampled)
        event = event.part
    return event.sensitivity


@pytest.mark.parametrize(
    ("relation", "batch", "rows"),
    [
        (Relation.REPLACE_ONE, Full(), 1000),
        (Relation.REPLACE_ONE, Fixed(size=10), 10),
        (ZERO_OUT, Poisson(0.01), 1000),  # all of them may happen to be drawn
        (ADD_REMOVE, Full(), 2000),  # and the true number may be twice the planned one
        (ADD_REMOVE, Poisson(0.01), 2000),
    ],
)
def test_the_rounding_of_all_rows_that_a_sum_may_hold_is_priced(
    relation: Relation, batch: Batch, rows: int
) -> None:
    mean = mean_of(GRID, relation=relation)
    found = _grid_sensitivity(plan_of(mean, batch=batch).event([1000], LOCAL))
    exact = mean.event(rows, LOCAL)
    assert isinstance(exact, DiscreteGaussian)
    assert found == exact.sensitivity
    fewer = mean.event(rows - 1, LOCAL)
    assert isinstance(fewer, DiscreteGaussian)
    assert fewer.sensitivity < exact.sensitivity  # power: the number of rows shows in the price


def test_central_prices_count_the_rows_of_all_silos() -> None:
    mean = mean_of(GRID, trust=CENTRAL)
    exact = mean.event(1500, CENTRAL)
    assert isinstance(exact, DiscreteGaussian)
    assert _grid_sensitivity(plan_of(mean).event([1000, 500], CENTRAL)) == exact.sensitivity


# --- what fits


def test_silos_that_are_too_small_are_refused() -> None:
    with pytest.raises(ParameterError, match="at most the 4 units of the silo, got 5"):
        plan_of(batch=Fixed(size=5)).event([50, 4], LOCAL)
    plan_of(batch=Disjoint(size=5), rounds=4).check_sizes([20])
    with pytest.raises(ParameterError, match="at most the 19 units of a silo if disjoint, got 20"):
        plan_of(batch=Disjoint(size=5), rounds=4).check_sizes([50, 19])
    with pytest.raises(ParameterError, match="at most the 39 units of a silo if disjoint, got 40"):
        plan_of(batch=Disjoint(size=5), rounds=4, walks=2).check_sizes([39])
    with pytest.raises(ParameterError, match="number of units of a silo must be a whole number >= 1, got 0"):
        plan_of().check_sizes([0])


def test_unknown_statistics_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'row'"):
        plan_of(statistics=("rows",)).check_statistics(["row", "label"])


def test_rounds_are_numbered_through_all_kinds() -> None:
    first, second = kind_of(Full()), kind_of(Fixed(size=2))
    plan = plan_with((first, 2), (second, 1), (first, 3))
    schedule = plan.schedule()
    kinds = [schedule.step(r) for r in range(plan.rounds)]
    assert kinds == [first, first, second, first, first, first]
    assert plan.samples
    assert not plan_with((first, 2)).samples


@pytest.mark.parametrize("number", [-1, 6, 10**30, True, 1.0, math.nan, "1", None])
def test_a_number_outside_the_plan_is_refused(number: Any) -> None:
    with pytest.raises(ParameterError, match="step must be a whole number from 0 to 5"):
        plan_of(rounds=6).schedule().kind(number)


@given(
    kinds=st.lists(
        st.tuples(st.booleans(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
        min_size=1,
        max_size=5,
    )
)
def test_blocks_of_all_rounds_are_apart(kinds: list[tuple[bool, int, int, int]]) -> None:
    steps = tuple(
        (
            step_of(batch=Disjoint(size=size) if disjoint else Full(), walks=walked if walked > 1 else None),
            count,
        )
        for disjoint, size, walked, count in kinds
    )
    plan = Plan(steps=steps, parties=1)
    used: list[int] = []
    for (step, count), start in zip(steps, plan.blocks(1000), strict=False):
        if isinstance(step.batch, Disjoint):
            size = step.batch.size_for(1000)
            for block in range(count * step.batches):
                used += range(start + block * size, start + (block + 1) * size)
    assert used == list(range(plan.blocks(1000)[-1]))


# --- the plan as a document


def plans() -> st.SearchStrategy[Plan]:
    noises = st.one_of(
        st.builds(GaussianNoise, st.floats(0.1, 100)), st.builds(DiscreteGaussianNoise, st.floats(0.1, 100))
    )
    means = st.builds(AdditiveMean, dim=st.integers(1, 5), noise=noises)
    sizes = st.integers(1, 9)
    batches = st.one_of(
        st.just(Full()),
        st.builds(Fixed, size=sizes),
        st.builds(Disjoint, size=sizes),
        st.builds(Fixed, rate=st.floats(0.01, 1)),
    )
    measures = st.builds(
        Measure, statistic=st.sampled_from(["row", "label"]), estimator=means, max_radius=st.floats(1e-3, 1e3)
    )
    several = st.lists(measures, min_size=1, max_size=2).map(tuple)
    kinds = st.one_of(
        st.builds(Step, measures=several, batch=batches),
        st.builds(Walk, measures=st.tuples(measures), batch=batches, steps=st.integers(2, 9)),
    )
    steps = st.lists(st.tuples(kinds, st.integers(1, 50)), min_size=1, max_size=3).map(tuple)
    return st.builds(
        Plan,
        steps=steps,
        parties=st.integers(1, 9),
        delta=st.floats(0, 0.5),
    )


@given(plan=plans())
def test_a_plan_survives_toml_and_its_digest_with_it(plan: Plan) -> None:
    again = Plan.from_toml(plan.to_toml())
    assert again == plan
    assert again.digest() == plan.digest()
    assert len(plan.digest()) == 32


@pytest.mark.parametrize(
    "change",
    [
        {"parties": 2},
        {"delta": 1e-7},
        {"steps": ((kind_of(Full()), 5),)},
        {"steps": ((kind_of(Full(), max_radius=1.5), 4),)},
        {"steps": ((kind_of(Full(), walks=2), 4),)},
        {"steps": ((kind_of(Full(), walks=3), 4),)},
        {"steps": ((kind_of(Full(), statistics=("row", "row")), 4),)},
        {"steps": ((kind_of(Full(), noise=5.000001), 4),)},
        {"steps": ((kind_of(Full(), statistics=("shifted",)), 4),)},
        {"steps": ((kind_of(Fixed(size=3)), 4),)},
        {"steps": ((kind_of(Disjoint(size=3)), 4),)},
        {"steps": ((kind_of(Full()), 2), (kind_of(Full()), 2))},
    ],
)
def test_any_change_changes_the_digest(change: dict[str, Any]) -> None:
    plan = plan_with((kind_of(Full()), 4))
    assert msgspec.structs.replace(plan, **change).digest() != plan.digest()


def test_a_plan_of_another_version_is_refused_before_its_fields_are_read() -> None:
    for other in (2, 5):
        text = plan_of().to_toml().replace("version = 4", f"version = {other}") + "\nnew_field = 1\n"
        with pytest.raises(ParameterError, match=f"the plan has version {other}; this tacit reads 4"):
            Plan.from_toml(text)
    with pytest.raises(ParameterError, match="version 7"):
        msgspec.structs.replace(plan_of(), version=7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("parties = 1", "parties = 0", "parties must be a whole number from 1"),
        ("parties = 1", 'parties = "1"', "Expected `int`"),
        ("parties = 1", "partys = 1", "unknown field `partys`"),
        ('trust = "local"\ndelta', 'trust = "nobody"\ndelta', "Invalid enum value 'nobody'"),
        ('trust = "local"\ndelta', 'trust = "central"\ndelta', "a step has local trust, the plan central"),
        ('batch = "full"', 'batch = "with-replacement"', "Invalid value 'with-replacement'"),
        ('batch = "full"', 'batch = "full", size = 3', "unknown field `size`"),
        ("        4,", "        0,", ">= 1"),
        ("max_radius = 1.0", "max_radius = nan", "max_radius must be a finite number > 0"),
        ("max_radius = 1.0", "max_radius = 1e40", r"max_radius must be at most 2\*\*100"),
        ("delta = 0.0", "delta = 1.0", "delta must be in"),
        ("dim = 3", "dim = 0", "dim must be a whole number"),
        ("steps = [", "steps = ", "cannot be read"),
        ('kind = "means"', 'kind = "walk"', "missing required field `steps`"),
        ('kind = "means"', 'kind = "walk", steps = 1', "steps of a walk must be a whole number from 2"),
        ('kind = "means"', 'kind = "votes"', "Invalid value 'votes'"),
        ('kind = "means"', 'kind = "means", steps = 2', "unknown field `steps`"),
    ],
)
def test_bad_documents_are_refused(old: str, new: str, message: str) -> None:
    text = plan_of().to_toml()
    assert old in text
    with pytest.raises(ParameterError, match=message):
        Plan.from_toml(text.replace(old, new))


def test_bad_steps_and_plans_are_refused() -> None:
    with pytest.raises(ParameterError, match="number of statistics of a step must be a whole number from 1"):
        Step(measures=())
    with pytest.raises(ParameterError, match="batch must be a kind of batch, got 'full'"):
        step_of(batch="full")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="a walk needs exactly one statistic, got 2"):
        step_of(statistics=("row", "shifted"), walks=2)
    with pytest.raises(ParameterError, match="a walk needs local trust"):
        step_of(mean_of(trust=CENTRAL), walks=2)
    for few in (1, 0, -1):
        with pytest.raises(ParameterError, match="steps of a walk must be a whole number from 2"):
            step_of(walks=few)
    with pytest.raises(ParameterError, match="number of steps of a plan must be a whole number from 1"):
        Plan(steps=(), parties=1)
    with pytest.raises(ParameterError, match="trust must be a TrustModel, got 'local'"):
        msgspec.structs.replace(plan_of(), trust="local")
    with pytest.raises(
        ParameterError, match="number of rounds, steps of walks included, must be a whole number from 1 to"
    ):
        plan_with((kind_of(Full()), 2**40), (kind_of(Full()), 1))


def test_steps_of_different_neighbours_are_refused() -> None:
    persons = AdditiveMean(dim=DIM, noise=GAUSSIAN, neighbours=Neighbours(unit=Unit.PERSON))
    with pytest.raises(ParameterError, match="all steps of a plan must have the same neighbours"):
        plan_with((kind_of(Full()), 1), (step_of(persons), 1))


@pytest.mark.parametrize("trust", [CENTRAL, TrustModel.SHUFFLE])
def test_rule_6_nothing_runs_under_a_trust_model_that_its_noise_is_not_made_for(trust: TrustModel) -> None:
    with pytest.raises(ParameterError, match=f"a step has local trust, the plan {trust.value}"):
        msgspec.structs.replace(plan_of(), trust=trust)
