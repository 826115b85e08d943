"""Totals of many answers: the tables of Jiang (2025), what is sound of them, and what costs less."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature.composition import optimal_composition
from tacit.privacy import (
    AnyOf,
    Neighbours,
    Relation,
    epsilon_of,
    event_from_json,
    event_to_json,
    general_composition,
)
from tacit.randomness import simulated
from tacit.voting import (
    DEFAULT_DESIGN,
    DESIGNS,
    Accounting,
    NoiseFunction,
    PrivateVotingClassifier,
    Shards,
    VotedBy,
    allowance,
    certified,
    design,
    gamma_subsampling,
    majority_privacy_report,
    plan_designs,
    uniform_prior,
)
from tacit.voting.report import certificate_votes
from tests.voting.reference import law

MNIST = allowance(11, 0.0892, 3, delta=1e-4, target_delta=3e-4)

TOTALS = [  # Jiang (2025), Tables 3.2 and B.3 to B.7: per answer; epsilon and delta for 20, 50, 100 answers
    (0.0892, 1e-4, (1.704, 2.837, 4.202), (0.002, 0.005, 0.010)),
    (0.0852, 1e-4, (1.620, 2.695, 3.988), (0.002, 0.005, 0.010)),
    (0.2676, 3e-4, (5.352, 9.901, 15.044), (0.006, 0.015, 0.030)),
    (0.2556, 3e-4, (5.112, 9.382, 14.219), (0.006, 0.015, 0.030)),
    (0.4460, 5e-4, (8.920, 18.428, 28.926), (0.010, 0.025, 0.049)),
    (0.4260, 5e-4, (8.520, 17.398, 27.223), (0.010, 0.025, 0.049)),
    (0.6244, 7e-4, (12.488, 28.392, 45.683), (0.014, 0.035, 0.068)),
    (0.5964, 7e-4, (11.928, 26.738, 42.873), (0.014, 0.035, 0.068)),
]
OPTIMAL = {  # Kairouz, Oh and Viswanath (2015), Theorem 3.3, at the same delta
    (0.0892, 1e-4): (1.2488, 2.3192, 3.3896),
    (0.2676, 3e-4): (4.2816, 8.0280, 12.8448),
    (0.4460, 5e-4): (8.0280, 15.1640, 24.9760),
    (0.6244, 7e-4): (12.4880, 23.7272, 39.9616),
}


@pytest.mark.parametrize("row", TOTALS, ids=lambda row: str(row[0]))
def test_the_totals_of_the_tables(row: Any) -> None:
    epsilon, delta, totals, deltas = row
    for queries, total, whole in zip((20, 50, 100), totals, deltas, strict=True):
        found = general_composition(epsilon, delta, queries, 1e-4)
        assert round(found.epsilon, 3) == total
        assert round(found.delta, 3) == whole
    for queries, best in zip((20, 50, 100), OPTIMAL.get((epsilon, delta), ()), strict=False):
        target = 1 - (1 - delta) ** queries * (1 - 1e-4)
        assert optimal_composition(epsilon, delta, queries, target, form="discrete").epsilon == pytest.approx(
            best, abs=5e-5
        )


def report(noise: NoiseFunction, queries: int, voted_by: VotedBy, shards: Shards, **more: Any) -> Any:
    delta = more.pop("delta", 0.03)
    return majority_privacy_report(
        noise, queries=queries, delta=delta, voted_by=voted_by, shards=shards, **more
    )


def test_the_seeds_experiment_is_listed_as_unsound_and_costs_what_one_teacher_costs() -> None:
    noise = design(MNIST, "optimal")
    found = report(noise, 100, VotedBy.FIXED, Shards.DISJOINT, accounting=Accounting.THESIS, delta=1e-4)
    (seed,) = [bound for bound in found.bounds if not bound.sound]
    assert (round(seed.epsilon, 3), round(seed.delta, 3)) == (15.044, 0.030)
    assert found.best.epsilon == pytest.approx(0.0892, rel=1e-9)
    assert epsilon_of(found.event, 1e-4) == pytest.approx(0.0892, rel=1e-9)
    assert any("plain majority" in line for line in found.advice)
    assert any("each record reaches one teacher" in clause for clause in found.assumptions)


def test_fixed_teachers_cost_at_most_all_of_them_whatever_the_number_of_queries() -> None:
    noise = design(MNIST, "optimal")
    delta = 0.0011  # 1 - (1 - 1e-4)^11, rounded up
    prices = [
        report(noise, q, VotedBy.FIXED, Shards.SHARED, delta=delta).best.epsilon for q in (2, 20, 10**6)
    ]
    assert prices == [prices[0]] * 3
    assert prices[0] <= 11 * 0.0892 * (1 + 1e-9)  # (0.9812, 0.0011)
    one = report(noise, 1, VotedBy.FIXED, Shards.SHARED, delta=3e-4, alone=True)
    assert one.best.epsilon == pytest.approx(0.2676, rel=1e-9)
    assert "the teachers answer nothing else, before or after" in one.assumptions
    assert report(noise, 1, VotedBy.FIXED, Shards.SHARED, delta=delta).best.epsilon == prices[0]


def test_a_composition_of_fixed_teachers_is_refused_with_the_reason() -> None:
    noise = design(MNIST, "optimal-monotone")
    with pytest.raises(ParameterError, match="functions of the same models"):
        report(noise, 20, VotedBy.FIXED, Shards.SHARED, accounting=Accounting.COMPOSITION)
    assert report(noise, 20, VotedBy.FRESH, Shards.SHARED, accounting=Accounting.COMPOSITION).best.sound


def test_answers_of_fresh_teachers_compose_below_every_closed_form() -> None:
    noise = design(MNIST, "optimal-monotone")
    delta = general_composition(0.2676, 3e-4, 20, 1e-4).delta
    found = report(noise, 20, VotedBy.FRESH, Shards.SHARED, accounting=Accounting.THESIS, delta=delta)
    names = {bound.name: bound for bound in found.bounds}
    answers = names["certified answers, composed"].epsilon
    assert all(bound.sound for bound in found.bounds)
    assert answers < optimal_composition(0.2676, 3e-4, 20, delta).epsilon
    assert answers < names["all votes published"].epsilon
    assert found.best.epsilon == answers


def test_sampled_answers_of_fixed_pure_teachers_are_forced_by_few_votes() -> None:
    question = allowance(11, 0.1, 2)
    double = report(design(question, "double-subsampling"), 3, VotedBy.FIXED, Shards.SHARED, delta=1e-9)
    names = {bound.name: bound.epsilon for bound in double.bounds}
    assert names["every answer is forced by 2 votes"] == pytest.approx(3 * 2 * 0.1, rel=1e-6)
    assert double.best.epsilon == pytest.approx(0.6, rel=1e-6)
    single = report(design(allowance(11, 0.1, 5), "subsampling"), 2, VotedBy.FIXED, Shards.SHARED, delta=1e-9)
    assert "every answer is forced by 3 votes" in {bound.name for bound in single.bounds}
    # A mixture with a coin keeps the certificate; an optimal gamma has none.
    mixed = certified(0.5 * np.array(design(question, "double-subsampling").gamma), question)
    assert any("forced by 2 votes" in b.name for b in report(mixed, 3, VotedBy.FIXED, Shards.SHARED).bounds)
    best = report(design(question, "optimal"), 3, VotedBy.FIXED, Shards.SHARED)
    assert not any("forced" in bound.name for bound in best.bounds)


def test_teachers_that_a_record_does_not_reach_cost_nothing() -> None:
    noise = design(allowance(11, 0.1, 2, delta=1e-6, affected=3), "optimal-monotone")
    fixed = report(noise, 50, VotedBy.FIXED, Shards.SHARED, delta=1e-4)
    assert fixed.best.epsilon <= 0.3 * (1 + 1e-9)
    assert any("at most 3 of the teachers" in clause for clause in fixed.assumptions)
    fresh = report(noise, 50, VotedBy.FRESH, Shards.SHARED, delta=1e-3)
    everywhere = certified(noise.gamma, allowance(11, 0.1, 11, delta=1e-6))
    assert (
        fresh.best.epsilon < report(everywhere, 50, VotedBy.FRESH, Shards.SHARED, delta=1e-3).best.epsilon / 2
    )


def test_noise_on_fresh_votes_of_disjoint_shards_costs_less_than_the_votes() -> None:
    noise = design(allowance(11, 0.1, 1), "subsampling")
    found = report(noise, 100, VotedBy.FRESH, Shards.DISJOINT, delta=1e-6)
    prices = {bound.name: bound.epsilon for bound in found.bounds}
    assert prices["certified answers, composed"] < prices["each record reaches one teacher"] / 3


@pytest.mark.parametrize("voted_by", VotedBy)
@pytest.mark.parametrize("shards", Shards)
@pytest.mark.parametrize("queries", [1, 7])
def test_every_report_is_one_event_that_costs_its_best_bound(
    voted_by: VotedBy, shards: Shards, queries: int
) -> None:
    noise = design(allowance(5, 0.3, 2, delta=1e-6), "optimal-monotone")
    near = Neighbours(Relation.ADD_REMOVE)
    found = report(noise, queries, voted_by, shards, delta=1e-4, neighbours=near)
    assert event_from_json(event_to_json(found.event)) == found.event
    assert isinstance(found.event, AnyOf) or len(found.bounds) == 1
    assert epsilon_of(found.event, 1e-4) <= found.best.epsilon * (1 + 1e-9)
    assert found.best.epsilon == min(bound.epsilon for bound in found.bounds)
    if shards is Shards.DISJOINT:
        assert found.best.epsilon <= 0.3 * (1 if voted_by is VotedBy.FIXED else queries) * (1 + 1e-9)


def test_single_answers_of_fixed_teachers_do_not_add_up() -> None:
    """Fixed models answer one query four times: the certificate's prices, added up, are not a bound."""
    noise = design(allowance(15, 2.0, 1), "optimal")
    chance = noise.output_probabilities()
    # Ten of fifteen models say 1 with the chance a on one data set and b on the other; five always say 0.
    a, b = 1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(2.0))
    here, there = (law([p] * 10 + [0.0] * 5) @ chance**4 for p in (b, a))
    assert max(here - math.exp(8.0) * there, there - math.exp(8.0) * here) > 0.02
    for queries in (1, 4):
        fixed = report(noise, queries, VotedBy.FIXED, Shards.SHARED, delta=0.0)
        assert not any("certified" in bound.name for bound in fixed.bounds)
        assert fixed.best.epsilon == pytest.approx(30.0)


def test_shards_of_records_that_come_and_go_do_not_depend_on_their_places() -> None:
    noise = design(MNIST, "constant")
    added = report(
        noise, 2, VotedBy.FIXED, Shards.DISJOINT, neighbours=Neighbours(Relation.ADD_REMOVE)
    ).assumptions
    assert any("whatever the other records are" in clause for clause in added)
    replaced = report(noise, 2, VotedBy.FIXED, Shards.DISJOINT).assumptions
    assert any("without looking at any record" in clause for clause in replaced)


def test_the_rounding_of_a_subsampling_gamma_is_charged() -> None:
    """Its chances are off those of an exact mixture of majorities by at most the probability in the price."""
    for size, scale in ((3, 1.0), (3, 0.3), (5, 0.7)):
        ideal = [Fraction(scale) * g for g in exact_subsampling(11, size)]
        noise = certified(scale * gamma_subsampling(11, size), allowance(11, 0.1, 6))
        assert (forced := certificate_votes(noise)) is not None
        scaled = Fraction(noise.gamma[-1]) / ideal[-1]
        off = max(abs(Fraction(g) - scaled * i) for g, i in zip(noise.gamma, ideal, strict=True))
        assert forced[0] == (size + 1) // 2
        assert off / 2 <= forced[1]
        if size == 3 and scale == 0.3:
            assert off > 0


def exact_subsampling(teachers: int, size: int) -> list[Fraction]:
    """Twice the chance that a sample has a majority of ones, minus 1, without rounding; odd sizes."""
    return [
        2
        * Fraction(
            sum(
                math.comb(ones, j) * math.comb(teachers - ones, size - j)
                for j in range(size // 2 + 1, size + 1)
            ),
            math.comb(teachers, size),
        )
        - 1
        for ones in range(teachers // 2 + 1, teachers + 1)
    ]


def test_bad_questions_are_refused() -> None:
    noise = design(MNIST, "constant")
    for change, message in (
        ({"alone": True}, "alone is for one query"),
        ({"queries": 0}, "queries must be a whole number"),
        ({"delta": 1.0}, "delta must be in"),
        ({"voted_by": "fixed"}, "voted_by must be one of fresh, fixed"),
        ({"shards": "mixed"}, "shards must be one of shared, disjoint"),
        ({"accounting": "all"}, "accounting must be one of"),
    ):
        fields: dict[str, Any] = {
            "queries": 5,
            "delta": 1e-3,
            "voted_by": VotedBy.FRESH,
            "shards": Shards.SHARED,
        }
        with pytest.raises(ParameterError, match=message):
            majority_privacy_report(noise, **{**fields, **change})


def test_the_plan_puts_the_best_design_first() -> None:
    question = allowance(11, 0.1, 3)
    plan = plan_designs(question)
    assert [candidate.name for candidate in plan] == [
        "optimal-monotone",
        "constant",
        "double-subsampling",
        "subsampling",
        "constant-composed",
        "optimal",  # the best on average, but it falls towards unanimity
    ]
    assert [candidate.falls for candidate in plan] == [False] * 5 + [True]
    assert plan[-1].value > plan[0].value
    assert all(math.isnan(candidate.error) for candidate in plan)
    # Without a consensus another order holds: the constant beats the consensus designs.
    uniform = plan_designs(question, prior=uniform_prior(), draws=20_000, rng=simulated(1))
    assert uniform[0].name == "constant"
    tabled = {
        "constant": 0.02578,
        "optimal": 0.03774,
        "optimal-monotone": 0.03794,
        "double-subsampling": 0.06737,
        "subsampling": 0.09541,
        "constant-composed": 0.14146,
    }
    for candidate in uniform:
        assert candidate.error == pytest.approx(tabled[candidate.name], abs=6 * candidate.error_std + 1e-4)
    assert len(plan_designs(allowance(101, 0.1, 10, delta=1e-6))) == len(DESIGNS) - 1
    # Where the exact optimum does not fall, it is ranked by its worth; rounding is no fall.
    calm = {candidate.name: candidate for candidate in plan_designs(allowance(11, 0.1, 6))}
    assert calm["optimal"].falls is False
    with pytest.raises(ParameterError, match="rng must be given"):
        plan_designs(question, prior=uniform_prior())
    with pytest.raises(ParameterError, match="name must be one of"):
        design(question, "best")


def test_the_default_design_keeps_a_unanimous_vote() -> None:
    """What the exact optimum wins over the best monotone design, and what it pays for it."""
    question = allowance(35, 0.1, 3)
    plan = {candidate.name: candidate for candidate in plan_designs(question)}
    exact, calm = plan["optimal"], plan["optimal-monotone"]
    assert exact.unanimous_error == pytest.approx(0.182, abs=5e-4)
    assert calm.unanimous_error == pytest.approx(0.00147, abs=5e-6)
    assert exact.value - calm.value == pytest.approx(2.05e-4, abs=5e-7)
    assert calm.value == pytest.approx(0.43489, abs=5e-6)
    default = inspect.signature(PrivateVotingClassifier).parameters["design"].default
    assert default == DEFAULT_DESIGN == "optimal-monotone"
    assert design(question) == calm.noise
    assert next(iter(plan)) == "optimal-monotone"
    # The published bit itself, where all agree: what a user of the default sees.
    unanimous = calm.noise.output_probabilities()[-1]
    assert 1 - unanimous == pytest.approx(calm.unanimous_error, rel=1e-9)
