"""Groups: kinds of rounds that a plan asks in turn, as if they had been written out one after the other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError, RefusalError
from tacit.federation import (
    Crowd,
    Disjoint,
    Fixed,
    Full,
    Group,
    InProcess,
    Kinds,
    Measure,
    Plan,
    Query,
    Silo,
    Step,
    Walk,
)
from tacit.federation.limits import MOST_KINDS, MOST_ROUNDS
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, DiscreteGaussianNoise, GaussianNoise
from tacit.numerics import Array, clip_rows
from tacit.privacy import (
    Compose,
    Gaussian,
    Parallel,
    Relation,
    Repeat,
    Sample,
    Sampled,
    TrustModel,
    epsilon_of,
)
from tests.federation.world import DIM, GAUSSIAN, GRID, Rows, ledger_at, mean_of, rows, silo_of, step_of

LOCAL, ZERO_OUT = TrustModel.LOCAL, Relation.ZERO_OUT
A, B = step_of(mean_of(GAUSSIAN)), step_of(mean_of(GaussianNoise(3.0)), batch=Fixed(rate=0.1))
ONE, OTHER = Gaussian(5.0), Sampled(Gaussian(3.0), 0.1, Sample.FIXED)


def group(*steps: Any) -> Group:
    return Group(steps=steps)


def plan_with(*steps: Any, parties: int = 1) -> Plan:
    return Plan(steps=steps, parties=parties, delta=1e-6)


def written_out(steps: Kinds) -> Kinds:
    """The same rounds without groups."""
    found: list[Any] = []
    for one, count in steps:
        found += list(one.steps) * count if isinstance(one, Group) else [(one, count)]
    return tuple(found)


# --- what it costs


def test_the_price_is_the_turn_again_and_again() -> None:
    plan = plan_with((A, 2), (group((A, 1), (B, 3)), 7), (group((B, 4)), 1))
    turn = Compose((ONE, Repeat(OTHER, 3)))
    assert plan.event([50], LOCAL) == Compose((Repeat(ONE, 2), Repeat(turn, 7), Repeat(OTHER, 4)))
    assert plan_with((group((A, 1)), 1)).event([50], LOCAL) == ONE


def test_a_group_costs_what_its_rounds_cost_written_out() -> None:
    steps = ((group((A, 1), (B, 3)), 7),)
    prices = [epsilon_of(plan_with(*one).event([50], LOCAL), 1e-6) for one in (steps, written_out(steps))]
    assert prices[0] == prices[1] > epsilon_of(Repeat(Compose((ONE, Repeat(OTHER, 3))), 6), 1e-6)


def test_disjoint_batches_of_all_turns_are_parallel() -> None:
    once = step_of(mean_of(GAUSSIAN), batch=Disjoint(size=2))
    plan = plan_with((group((once, 2), (A, 1)), 5))
    assert plan.event([50], LOCAL) == Compose((Repeat(ONE, 5), Parallel((ONE,))))
    assert plan_with((group((once, 2)), 5)).event([50], LOCAL) == Parallel((ONE,))
    assert plan.blocks(20) == [0, 20, 20]
    with pytest.raises(ParameterError, match="at most the 19 units of a silo if disjoint, got 20"):
        plan.event([19], LOCAL)


def test_thousands_of_turns_are_a_few_lines_with_one_price() -> None:
    """SPIDER with a period of two rounds (Wang et al. 2019): a gradient, then a difference of gradients."""

    def mean(share: float) -> AdditiveMean:
        return AdditiveMean(dim=DIM, noise=GaussianNoise(400 / share**0.5))

    gradient = Step(measures=(Measure(statistic="row", estimator=mean(0.8), max_radius=1.0),))
    change = Step(measures=(Measure(statistic="shifted", estimator=mean(0.2), max_radius=2.0),))
    plan = plan_with((group((gradient, 1), (change, 1)), 3000))
    assert (plan.rounds, len(plan.kinds)) == (6000, 2)
    assert len(plan.to_toml().splitlines()) < 30
    silo = silo_of(rows(1, 20), trusts_server=False)[0]
    whole = Repeat(Gaussian(400.0), 3000)  # the shares of a turn add up to one mean
    assert silo.accept(plan).epsilon == pytest.approx(epsilon_of(whole, 1e-6), abs=1e-6)
    written = [(gradient, 1), (change, 1)] * 3000
    with pytest.raises(
        ParameterError, match="number of steps of a plan must be a whole number from 1 to 1000"
    ):
        plan_with(*written)


# --- which round is which


counts = st.integers(1, 4)
kinds = st.sampled_from([A, B, step_of(batch=Disjoint(size=1)), step_of(walks=2, batch=Disjoint(size=3))])
turns = st.lists(st.tuples(kinds, counts), min_size=1, max_size=3).map(lambda steps: group(*steps))
entries = st.lists(st.tuples(st.one_of(kinds, turns), counts), min_size=1, max_size=4).map(tuple)


@given(steps=entries)
def test_rounds_are_numbered_as_if_they_were_written_out(steps: Any) -> None:
    plan, flat = plan_with(*steps), plan_with(*written_out(steps))
    schedule, expected = plan.schedule(), flat.schedule()
    seen = [0] * len(plan.kinds)
    assert plan.rounds == flat.rounds
    for number in range(plan.rounds):
        kind, earlier = schedule.place(number)
        assert kind == schedule.kind(number)
        assert schedule.steps[kind] == expected.step(number)
        assert earlier == seen[kind]
        seen[kind] += 1
    assert seen == [count for _, count in plan.kinds]
    for number in (-1, plan.rounds):
        with pytest.raises(ParameterError, match="step must be a whole number"):
            schedule.place(number)


def test_a_round_is_found_among_very_many() -> None:
    plan = plan_with((A, 5), (group((A, 1), (B, 2)), 2**38), (B, 1))
    schedule = plan.schedule()
    last = plan.rounds - 1
    found = [schedule.place(n) for n in (4, 5, 6, 7, 8, last - 1, last)]
    assert found == [(0, 4), (1, 0), (2, 0), (2, 1), (1, 1), (2, 2 * 2**38 - 1), (3, 0)]


@given(steps=entries)
def test_blocks_of_all_rounds_are_apart(steps: Any) -> None:
    plan, schedule = plan_with(*steps), plan_with(*steps).schedule()
    blocks = plan.blocks(10_000)
    used: list[int] = []
    for number in range(plan.rounds):
        kind, earlier = schedule.place(number)
        step = schedule.steps[kind]
        if isinstance(step.batch, Disjoint):
            size = step.batch.size_for(10_000) * step.batches
            used += range(blocks[kind] + earlier * size, blocks[kind] + (earlier + 1) * size)
    assert sorted(used) == list(range(blocks[-1]))
    assert all(low <= high for low, high in pairwise(blocks))


# --- what silos do


MIXED = (
    (group((step_of(batch=Disjoint(size=2)), 1), (step_of(statistics=("shifted",)), 2)), 3),
    (step_of(batch=Disjoint(size=3)), 1),
)


def answers(plan: Plan, silos: list[Silo]) -> list[Array]:
    ask = InProcess(silos).open(plan)
    return [ask(r, {"w": np.full(DIM, 0.1 * r)}, (1.0,))[0] for r in range(plan.rounds)]


def test_silos_answer_a_group_as_they_answer_its_rounds_written_out() -> None:
    found = []
    for steps in (MIXED, written_out(MIXED)):
        made = [silo_of(rows(k, 12), seed=k) for k in (1, 2)]
        found.append((answers(plan_with(*steps, parties=2), [silo for silo, _ in made]), made[0][1].taken))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    used = [unit for batch in found[0][1] for unit in batch]
    assert len(used) == len(set(used)) == 3 * 2 + 3
    np.testing.assert_allclose(  # in the second turn too, a round asks for what its place in it says
        found[0][0][4], np.mean([clip_rows(0.4 - rows(k, 12), 1.0).mean(axis=0) for k in (1, 2)], axis=0),
        atol=1e-6,
    )  # fmt: skip


def test_a_crowd_answers_the_same_rounds() -> None:
    units = Rows(rows(3, 24))
    crowd = Crowd(
        units, {"row": lambda u, _: u.values, "shifted": lambda u, at: at["w"] - u.values},
        clients=2, trusts_server=True, rng=np.random.default_rng(0),
    )  # fmt: skip
    ask = crowd.open(plan_with(*MIXED, parties=2))
    got = [ask(r, {"w": np.zeros(DIM)}, (1.0,))[0] for r in range(10)]
    np.testing.assert_allclose(got[4], -units.values.mean(axis=0), atol=1e-6)
    used = [unit for batch in units.taken if len(batch) < 24 for unit in batch]
    assert len(used) == len(set(used)) == 2 * (3 * 2 + 3)


def test_a_ledger_knows_the_rounds_of_a_group(tmp_path: Path) -> None:
    change = step_of(mean_of(GRID), statistics=("shifted",))
    plan = plan_with((group((step_of(mean_of(GRID)), 1), (change, 1)), 3))
    at, ledger = {"w": np.zeros(DIM)}, ledger_at(tmp_path / "ledger")
    given = []
    for _ in range(2):  # the second process goes on with the run
        silo, _ = silo_of(rows(1, 20), seed=None, ledger=ledger)
        silo.accept(plan)
        given.append((silo.answer(Query(3, at, (1.0,))), ledger.spent()))
        with pytest.raises(RefusalError, match="outside the accepted plan"):
            silo.answer(Query(6, at, (1.0,)))
        with pytest.raises(RefusalError, match="answered at another point"):
            silo.answer(Query(3, {"w": np.ones(DIM)}, (1.0,)))
        ledger = Ledger.open(tmp_path / "ledger")
    assert given[0] == given[1]


# --- as a document, and from a stranger


@given(steps=entries)
def test_a_plan_with_groups_survives_toml_and_its_digest_with_it(steps: Any) -> None:
    plan = plan_with(*steps)
    again = Plan.from_toml(plan.to_toml())
    assert again == plan
    assert again.digest() == plan.digest()


def test_any_change_of_a_group_changes_the_digest() -> None:
    plans = [
        plan_with((group((A, 1), (B, 2)), 3)),
        plan_with((group((A, 1), (B, 2)), 4)),
        plan_with((group((A, 2), (B, 2)), 3)),
        plan_with((group((B, 2), (A, 1)), 3)),
        plan_with((group((A, 1)), 3), (group((B, 2)), 3)),
        plan_with((A, 1), (B, 2)),
    ]
    assert len({plan.digest() for plan in plans}) == len(plans)


SMALL: Any = step_of(mean_of(DiscreteGaussianNoise(5.0)))
HOSTILE: dict[str, Any] = {
    "nothing in it": group,
    "a group in a group": lambda: group((group((A, 1)), 1)),
    "a step without a count": lambda: group(A),
    "a list": lambda: Group(steps=[(A, 1)]),  # type: ignore[arg-type]
    "no count": lambda: group((A, 0)),
    "counts that cancel": lambda: plan_with((group((A, -2)), -3)),
    "no turns": lambda: plan_with((group((A, 2)), 0)),
    "turns below zero": lambda: plan_with((group((A, 2)), -1)),
    "a bool": lambda: plan_with((group((A, True)), 1)),
    "a huge count": lambda: group((A, 10**5000)),
    "too many kinds in it": lambda: group(*[(A, 1)] * (MOST_KINDS + 1)),
    "too many kinds in all": lambda: plan_with(*[(group(*[(A, 1)] * MOST_KINDS), 1)] * 100_000),
    "too many rounds": lambda: plan_with((group((A, 2**20)), 2**20 + 1)),
    "rounds that overflow": lambda: plan_with((group((A, MOST_ROUNDS)), MOST_ROUNDS)),
    "too many rounds by walks": lambda: plan_with((group((step_of(mean_of(), walks=2**10), 2**15)), 2**16)),
    "other neighbours": lambda: plan_with((A, 1), (group((step_of(mean_of(relation=ZERO_OUT)), 1)), 1)),
    "central trust": lambda: plan_with((group((A, 1), (step_of(mean_of(trust=TrustModel.CENTRAL)), 1)), 2)),
}  # fmt: skip


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_hostile_groups_are_refused_in_one_line(make: Any) -> None:
    with pytest.raises(ParameterError) as error:
        make()
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ({"steps": []}, "steps of a group must be a whole number from 1"),
        ({"steps": [[{"kind": "group", "steps": []}, 1]]}, "Invalid value 'group'"),
        ({"steps": [[msgspec.to_builtins(SMALL), 0]]}, ">= 1"),
        ({"count": 3}, "unknown field `count`"),
        ({"measures": []}, "unknown field `measures`"),
    ],
)
def test_bad_documents_are_refused(inside: dict[str, Any], message: str) -> None:
    document = msgspec.json.decode(msgspec.json.encode(plan_with((group((SMALL, 1)), 3))))
    document["steps"][0][0] |= inside
    with pytest.raises(ParameterError, match=message):
        Plan.from_toml(msgspec.toml.encode(document).decode())


def test_what_a_plan_asks_of_silos_is_checked_inside_groups() -> None:
    assert plan_with((group((A, 1), (B, 1)), 2)).samples
    assert not plan_with((group((A, 1)), 2)).samples
    assert plan_with((group((SMALL, 1)), 2)).exact
    assert not plan_with((group((SMALL, 1), (A, 1)), 2)).exact
    with pytest.raises(ParameterError, match="statistic must be"):
        silo_of(rows(1, 9))[0].accept(plan_with((group((A, 1), (step_of(statistics=("col",)), 1)), 2)))
    walks = Walk(measures=A.measures, batch=Full(), steps=2)
    crowd = Crowd(Rows(rows(1, 4)), {"row": lambda u, _: u.values}, clients=2, trusts_server=True)
    with pytest.raises(ParameterError, match="clients that walk are silos"):
        crowd.open(plan_with((group((A, 1), (walks, 1)), 2), parties=2))
