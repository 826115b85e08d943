"""The rules of whoever adds the noise, against curious, wrong and restarted servers: what can be seen."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.federation import Batch, Disjoint, Fixed, Full, Plan, Poisson, Query, open_answer
from tacit.means import AnyNoise, DiscreteGaussianNoise, DiscreteLaplaceNoise, LaplaceNoise, Message
from tacit.numerics import Array
from tacit.privacy import Relation
from tests.federation.world import (
    DIM,
    GAUSSIAN,
    GRID,
    ask_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
)

REPLACE, ZERO_OUT, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ZERO_OUT, Relation.ADD_REMOVE
GOOD = rows(1, 40)
PRIVATE = plan_of(mean_of(GAUSSIAN))


# --- rule 4: nothing visible depends on the data


def wild(n: int, seed: int) -> Array:
    """Private data as bad as they come."""
    rng = np.random.default_rng(seed)
    values = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, 1e6], size=(n, DIM))
    values[rng.random(n) < 0.3] = 0.5
    return np.asarray(values)


CASES: list[tuple[AnyNoise, Relation, Batch]] = [
    (GAUSSIAN, REPLACE, Full()),
    (GAUSSIAN, REPLACE, Fixed(size=5)),
    (GAUSSIAN, REPLACE, Disjoint(size=5)),
    (GRID, REPLACE, Full()),
    (GRID, REPLACE, Fixed(rate=0.3)),
    (LaplaceNoise(5.0), REPLACE, Full()),
    (DiscreteLaplaceNoise(5.0), REPLACE, Disjoint(rate=0.1)),
    (GRID, REPLACE, Poisson(0.2)),
    (GAUSSIAN, REPLACE, Poisson(0.05)),
    (GRID, ZERO_OUT, Full()),
    (GRID, ZERO_OUT, Poisson(0.2)),
    (GRID, ADD_REMOVE, Full()),
    (GRID, ADD_REMOVE, Poisson(0.05)),
    (GAUSSIAN, ADD_REMOVE, Poisson(0.2)),
    (DiscreteLaplaceNoise(5.0), ADD_REMOVE, Poisson(0.2)),
]


def visible(values: Array, plan: Plan, queries: list[Query], *, planned: int | None, seed: int) -> list[Any]:
    """All that a server can see, but for the noisy numbers: lengths, forms, refusals."""
    silo, _ = silo_of(values, seed=seed, planned=planned)
    seen: list[Any] = [silo.size, silo.accept(plan)]
    for query in queries:
        try:
            data = silo.answer(query)
            forms = [
                [(m.payload.dtype, m.payload.shape, m.width, m.label) for m in g]
                for g in open_answer(data, party=0)
            ]
            seen += [len(data), forms]
        except TacitError as error:
            seen += [type(error), str(error), error.__cause__ is None]
    return seen


@pytest.mark.parametrize(("noise", "relation", "batch"), CASES)
@pytest.mark.parametrize("statistic", ["row", "fused", "fails", "drops", "shifted"])
def test_rule_4_nothing_visible_depends_on_the_data(
    noise: AnyNoise, relation: Relation, batch: Batch, statistic: str
) -> None:
    plan = plan_of(mean_of(noise, relation=relation), rounds=6, batch=batch, statistics=(statistic, "row"))
    radii = (1.0, 1.0)
    queries = [ask_at(step, radius=radii) for step in range(3)]
    queries += [
        ask_at(3, np.full(DIM, 1.7e308), radius=radii),
        ask_at(3, radius=(0.5, 1.0)),
        ask_at(9, radius=radii),
        ask_at(4, np.zeros(DIM + 2), radius=radii),
        ask_at(5, radius=(0.0, 1e-30)),
    ]
    planned = 40 if relation is ADD_REMOVE else None
    others = [wild(40, 1), np.zeros((40, DIM)), np.full((40, DIM), np.nan)]
    if relation is ADD_REMOVE:  # then the number of units is private as well
        others += [GOOD[:1], GOOD[:0], wild(80, 2)]
    plain = visible(GOOD, plan, queries, planned=planned, seed=1)
    assert any(isinstance(form, list) for form in plain)
    for seed, values in enumerate(others):
        assert visible(values, plan, queries, planned=planned, seed=seed) == plain


@pytest.mark.parametrize("relation", [REPLACE, ZERO_OUT])
@pytest.mark.parametrize("statistic", ["row", "fused"])
def test_rule_4_the_size_of_a_poisson_sample_does_not_show(statistic: str, relation: Relation) -> None:
    mean = mean_of(DiscreteGaussianNoise(0.05), relation=relation)
    silo, units = silo_of(GOOD)
    silo.accept(plan_of(mean, rounds=200, batch=Poisson(0.1), statistics=(statistic,)))
    lengths = {len(silo.answer(ask_at(step))) for step in range(200)}
    made_for = {mean.bits_per_party(len(taken)) for taken in units.taken}
    assert len(made_for) > 1  # power: messages made for the samples would differ in length
    assert len(lengths) == 1


@pytest.mark.parametrize("relation", [REPLACE, ZERO_OUT])
def test_rule_4_a_statistic_that_leaves_units_out_does_not_shorten_a_message(relation: Relation) -> None:
    mean = mean_of(DiscreteGaussianNoise(0.05), relation=relation)
    lengths = set()
    for values in (GOOD, np.full((40, DIM), np.nan)):
        silo, _ = silo_of(values)
        silo.accept(plan_of(mean, statistics=("drops",)))
        lengths.add(len(silo.answer(ask_at(0))))
    assert mean.bits_per_party(40) != mean.bits_per_party(0)  # power
    assert len(lengths) == 1


def test_rule_4_a_walk_sends_one_point_of_one_length_whatever_happens() -> None:
    plan = plan_of(mean_of(GAUSSIAN), batch=Fixed(size=2), statistics=("shifted",), walks=3)
    lengths = set()
    for values, step_size in ((GOOD, 0.1), (wild(40, 3), 1e308), (np.full((40, DIM), np.nan), -1e308)):
        silo, _ = silo_of(values)
        silo.accept(plan)
        at = {"w": np.full(DIM, 1e30), "step_size": np.array(step_size)}
        data = silo.answer(Query(0, at, (1.0,)))
        ((message,),) = open_answer(data, party=0)
        assert message.payload.shape == (DIM,)
        lengths.add(len(data))
    assert len(lengths) == 1


# --- rule 5: samples are drawn by the silo, in secret


@pytest.mark.parametrize("batch", [Fixed(size=20), Disjoint(size=20)])
def test_rule_5_the_same_data_and_queries_give_different_secret_batches(batch: Batch) -> None:
    taken = []
    for _ in range(2):
        silo, units = silo_of(GOOD, seed=None)
        assert not silo.simulated
        price = silo.accept(plan_of(mean_of(GAUSSIAN), rounds=2, batch=batch))
        data = silo.answer(ask_at(0))
        taken.append(units.taken[0])
        # What is public: one noisy vector per statistic, and a guarantee that depends on the plan alone.
        ((message,),) = msgspec.msgpack.decode(data)["messages"]
        assert Message.from_bytes(message).payload.shape == (DIM,)
        hidden = "nobody learns which records are sampled"
        blind = "records are dealt to disjoint parts without looking at any of them"
        assert (hidden if isinstance(batch, Fixed) else blind) in price.assumptions
        assert repr(silo) == object.__repr__(silo)
    assert sorted(taken[0]) == taken[0]
    assert taken[0] != taken[1]  # equal by chance once in C(40, 20) = 1.4e11


def test_rule_5_a_fresh_sample_is_drawn_in_every_round() -> None:
    silo, units = silo_of(GOOD, seed=4)
    silo.accept(plan_of(mean_of(GAUSSIAN), rounds=30, batch=Fixed(size=20)))
    for step in range(30):
        silo.answer(ask_at(step))
    assert len({tuple(taken) for taken in units.taken}) == 30
    assert all(len(set(taken)) == 20 for taken in units.taken)


def test_rule_5_no_assumption_is_stated_where_nothing_is_sampled() -> None:
    price = silo_of(GOOD)[0].accept(PRIVATE)
    assert price.assumptions == ()
    assert price.simulated
