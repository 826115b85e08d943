"""What prices rest on: every event says it, every guarantee prints it, and without it nothing verifies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.federation import Disjoint, Fixed, Measure, Plan, Poisson, Step
from tacit.means import AdditiveMean, GaussianNoise
from tacit.privacy import (
    Aligned,
    AnyOf,
    Binomial,
    ByChance,
    Certified,
    Compose,
    DiscreteGaussianSum,
    Drawn,
    Event,
    Gaussian,
    Iteration,
    IterationSchedule,
    Leaf,
    Neighbours,
    ObjectivePerturbed,
    Parallel,
    PureDP,
    Relation,
    Repeat,
    Replaced,
    Sample,
    Sampled,
    SelfDrawn,
    Shuffled,
    ShuffledGaussian,
    TrustModel,
    Unit,
    assumptions_of,
    guarantee,
    neighbours_of,
    verify,
)
from tacit.privacy.arrivals import ARRIVALS, COUNTS
from tacit.privacy.events import chances_of
from tacit.privacy.guarantee import provided
from tacit.privacy.shuffling import drawn_round, self_drawn_round
from tests.privacy.event_examples import ADD_REMOVE, EVENTS

DELTA = 1e-6
SAID: dict[type[Event], str] = {
    Drawn: "at most 5 of at least 12 honest parties are drawn for a round, by chance alone, each with one "
    "record of at least 3, and nobody but the shuffler learns which parties are, "
    "or which of their records",
    Sampled: "nobody learns which records are sampled",
    Replaced: "nobody learns which records are sampled",
    Shuffled: "the shuffler is honest",
    ShuffledGaussian: "the shuffler is honest",
    Binomial: "the shuffler is honest",
    DiscreteGaussianSum: "of the messages of a step nobody sees more than one sum",
    Certified: "the teachers share no randomness",
    Iteration: "the order of the records does not depend on their values",
    IterationSchedule: "the order of the records does not depend on their values",
    ObjectivePerturbed: "every coordinate of the model is regularised",
    ByChance: "chance alone decides whose records a round is about",
    SelfDrawn: "each of 12 honest parties joins a round with probability 0.4, by chance of its own, and "
    "nobody but the shuffler learns which do, or with which of their records, at most a share of 0.333333",
    Parallel: "records are dealt to disjoint parts without looking at any of them",
}
"""A clause of every event whose price rests on more than its noise and its parts."""

RESTING = {name: event for name, event in EVENTS.items() if assumptions_of(event)}


def kinds_in(event: Event) -> set[type[Event]]:
    """Return the types of an event and all that it holds, found without the library's help."""
    found = {type(event)}
    for field in event.__struct_fields__:
        value = getattr(event, field)
        for part in value if isinstance(value, tuple) else (value,):
            found |= kinds_in(part) if isinstance(part, Event) else set()
    return found


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_states_the_conditions_of_all_that_it_holds(name: str) -> None:
    event = EVENTS[name]
    stated = assumptions_of(event)
    kinds = kinds_in(event) & set(SAID)
    kinds -= {Sampled} if SelfDrawn in kinds else set()  # whose sample the shuffler may know
    assert {SAID[kind] for kind in kinds} <= set(stated)
    assert bool(stated) == bool(kinds)
    assert len(set(stated)) == len(stated)


def is_library(kind: type[Event]) -> bool:
    return kind.__module__.startswith("tacit.")


def test_a_type_of_event_without_conditions_is_known_to_have_none() -> None:
    none = {"Gaussian", "Gdp", "Laplace", "PureDP", "ApproximateDP", "Zcdp", "DiscreteGaussian"}
    none |= {"Aligned", "DiscreteLaplace", "Renyi", "NonPrivate", "Compose", "Repeat", "AnyOf"}
    none |= {"BinomialAlone"}  # one party's own noise bits
    library = {name for name, kind in Event.registry.items() if is_library(kind)}
    assert library == none | {kind.__name__ for kind in SAID}


@pytest.mark.parametrize("name", RESTING)
def test_a_guarantee_made_in_python_says_them(name: str) -> None:
    claim = guarantee(RESTING[name], DELTA, observer="the server")
    assert claim.assumptions == assumptions_of(RESTING[name])
    if math.isfinite(claim.epsilon):
        how = "; ".join((claim.method, *chances_of(claim.event)))
        assert str(claim).endswith(f" ({how}), {provided(claim.assumptions)}.")
        assert all(clause in provided(claim.assumptions) for clause in claim.assumptions)
    verify(claim)


@pytest.mark.parametrize("name", RESTING)
def test_a_statement_without_any_one_of_them_is_refused(name: str) -> None:
    claim = guarantee(RESTING[name], DELTA, observer="the server", assumptions=("the sun shines",))
    for clause in assumptions_of(RESTING[name]):
        cut = tuple(said for said in claim.assumptions if said != clause)
        assert len(cut) == len(claim.assumptions) - 1
        with pytest.raises(VerificationError, match="leaves out what its price rests on") as refused:
            verify(msgspec.structs.replace(claim, assumptions=cut))
        assert clause in str(refused.value)


def test_what_a_price_rests_on_is_said_once() -> None:
    event = Compose(
        (
            Repeat(Sampled(Shuffled(1.0, 100), 0.1), 3),
            Sampled(Gaussian(1.0), 0.1),
            Parallel((Binomial(7148, 10), AnyOf((Gaussian(1.0), Iteration(1.0, 10, 2))))),
        )
    )
    assert assumptions_of(event) == (
        "the shuffler is honest",
        "every batch holds 100 honest messages",
        ARRIVALS,
        "nobody learns which records are sampled",
        COUNTS,
        "honest parties add 7,148 noise bits to every coordinate",
        "the order of the records does not depend on their values",
        "records are dealt to disjoint parts without looking at any of them",
    )
    assert assumptions_of(Gaussian(1.0)) == ()


def test_a_part_that_rests_on_nothing_cuts_no_clause_of_those_that_join() -> None:
    """A part of next to no weight would make an honest shuffler needless, or a sample no secret."""
    batch, nothing = Shuffled(1.0, 6), PureDP(1e-9)
    drawn = Drawn(batch, 0.1, clients=60, drawn=6)
    for part in (Sampled(batch, 0.1), drawn):
        found = assumptions_of(SelfDrawn((part, nothing), (0.9, 1e-9), clients=60, rate=0.2))
        assert set(assumptions_of(batch)) < set(found)
        assert (drawn.assumptions[0] in found) is (part is drawn)
    central = SelfDrawn((Sampled(Gaussian(2.0), 0.1),), (0.9,), clients=60, rate=0.2)
    assert "nobody learns which records are sampled" in assumptions_of(central)


def test_samples_within_the_batches_of_those_that_join_are_said() -> None:
    """A further sample of all batches but the first made a price 179 times smaller, and no clause said so."""
    whole = self_drawn_round(lambda k: Shuffled(1.0, k, "2rr"), clients=1000, rate=0.1)
    assert isinstance(whole, SelfDrawn)
    sizes = {clause for part in whole.parts for clause in assumptions_of(part) if "every batch" in clause}
    uneven = "what a party sends depends on how many join, as the event says"

    def forged(change: Callable[[Event, bool], Event]) -> SelfDrawn:
        """Batches of at least 39 messages, or all of them, otherwise."""
        parts = tuple(
            msgspec.structs.replace(part, part=change(part.part, k > 1))
            for k, part in enumerate(whole.parts)
            if isinstance(part, Sampled)
        )
        return SelfDrawn(parts, whole.weights[: len(parts)], clients=1000, rate=0.1)

    same = forged(lambda batch, _: Sampled(batch, 0.01))
    assert same.share == pytest.approx(0.01)
    assert uneven not in assumptions_of(same)
    assert "with which of their records, at most a share of 0.01" in assumptions_of(same)[-1]
    some = forged(lambda batch, later: Sampled(batch, 0.01) if later else batch)
    assert some.share < 0.0101
    assert "with which of their records, at most a share of" in assumptions_of(some)[-1]

    def deep(within: Callable[[Event], Event]) -> SelfDrawn:
        return forged(lambda batch, later: within(Sampled(batch, 0.01) if later else batch))

    for event in (deep(lambda one: Compose((one,))), deep(lambda one: Repeat(one, 1))):
        assert uneven in assumptions_of(event)
        assert len(sizes & set(assumptions_of(event))) == len(event.parts)


def test_only_sizes_that_follow_from_who_joins_are_left_out() -> None:
    """Two batches of other sizes would make sizes needless that no party bears out."""
    batch, whole = Shuffled(1.0, 6), EVENTS["SelfDrawn"]
    assert isinstance(whole, SelfDrawn)
    sizes = [clause for part in whole.parts for clause in assumptions_of(part) if "every batch" in clause]
    assert sizes
    assert not set(sizes) & set(assumptions_of(whole))
    two = SelfDrawn((batch, Shuffled(1.0, 7)), (0.5, 0.4), clients=60, rate=0.2)
    assert {"every batch holds 6 honest messages", "every batch holds 7 honest messages"} <= set(
        assumptions_of(two)
    )
    last = whole.parts[-1]
    assert isinstance(last, Sampled)
    assert isinstance(last.part, Shuffled)
    quieter = msgspec.structs.replace(last, part=msgspec.structs.replace(last.part, local_epsilon=0.1))
    forged = {
        "rarer": msgspec.structs.replace(whole, weights=(*whole.weights[:4], 1e-3, *whole.weights[5:])),
        "more parties": msgspec.structs.replace(whole, clients=whole.clients - 1),
        "larger": msgspec.structs.replace(whole, parts=(batch, *whole.parts[1:])),
        "smaller samples": msgspec.structs.replace(
            whole, parts=(*whole.parts[:-1], msgspec.structs.replace(whole.parts[-1], rate=1.0))
        ),
        "other messages": msgspec.structs.replace(whole, parts=(*whole.parts[:-1], quieter)),
        "none alone": SelfDrawn(whole.parts[1:], whole.weights[1:], clients=12, rate=0.4),
    }
    for event in forged.values():
        said = [clause for part in event.parts for clause in assumptions_of(part) if "every batch" in clause]
        assert set(said) <= set(assumptions_of(event))
    uneven = "what a party sends depends on how many join, as the event says"
    assert [name for name, event in forged.items() if uneven in assumptions_of(event)] == ["other messages"]
    assert uneven not in assumptions_of(whole)
    alone = self_drawn_round(lambda k: Shuffled(1.0, k), clients=7, rate=0.22)
    assert isinstance(alone, SelfDrawn)
    assert alone.share == pytest.approx(1, rel=1e-12)
    rare = SelfDrawn(alone.parts[:-1], alone.weights[:-1], clients=7, rate=0.22)  # none for most parties
    assert any("every batch" in clause for clause in assumptions_of(rare))
    assert assumptions_of(rare)[-1].endswith("of their records, at most a share of 0.997475")
    several = self_drawn_round(lambda k: Shuffled(1.0, 5 * k), clients=40, rate=0.4, records=9, sampled=5)
    said = [clause for clause in assumptions_of(several) if "every batch" in clause]
    assert said == ["every batch holds 5 honest messages"]  # what one party sends


def test_what_is_not_shuffled_hides_who_is_in_it_from_the_shuffler_too() -> None:
    mixed = Compose((Gaussian(2.0), Shuffled(1e-9, 6)))
    self_drawn = SelfDrawn((Sampled(mixed, 0.1),), (0.9,), clients=60, rate=0.2)
    assert "nobody learns which records are sampled" in assumptions_of(self_drawn)
    for event in (self_drawn, Drawn(mixed, 0.1, clients=60, drawn=6)):
        said = assumptions_of(event)
        assert "nobody learns which" in said[-1]
        assert not any("nobody but" in clause for clause in said)


@pytest.mark.parametrize("name", EVENTS)
def test_no_combination_leaves_out_a_clause_of_its_parts(name: str) -> None:
    part = EVENTS[name]
    near, extra = neighbours_of(part), PureDP(1e-9, neighbours_of(part))
    fixed = near.relation is Relation.REPLACE_ONE
    both: list[Event] = [
        Compose((extra, part)),
        Repeat(part, 3),
        Parallel((part, extra)),
        ByChance((extra, part), (0.5, 0.5)),
        AnyOf((part, extra)),
        Sampled(part, 0.5, Sample.FIXED if fixed else Sample.POISSON),
        SelfDrawn((part,), (0.9,), clients=60, rate=0.2),
        SelfDrawn((extra, part), (0.1, 0.9), clients=60, rate=0.2),
    ]
    both += [Drawn(part, 0.1, clients=60, drawn=6)] if fixed else []
    for whole in both:
        lost = set(assumptions_of(part)) - set(assumptions_of(whole))
        assert lost <= {"every batch holds 1 honest messages"}, whole  # of one party that joins
    several = {kind for kind in Event.registry.values() if is_library(kind) and not issubclass(kind, Leaf)}
    assert several == {*map(type, both), Drawn, Replaced, Aligned}  # the last two: of Gaussian noise alone


def test_clauses_have_the_numbers_and_the_units_of_their_event() -> None:
    person = Neighbours(unit=Unit.PERSON)
    poisson = Neighbours(Relation.ZERO_OUT, Unit.PARTY)
    assert "every batch holds 12,345 honest messages" in assumptions_of(Shuffled(1.0, 12_345))
    assert assumptions_of(Sampled(PureDP(1.0, person), 0.1)) == ("nobody learns which persons are sampled",)
    assert assumptions_of(Sampled(PureDP(1.0, poisson), 0.1, Sample.POISSON)) == (
        "nobody learns which parties are sampled",
    )
    assert assumptions_of(Sampled(PureDP(1.0), 1.0)) == ()  # all are in it
    assert assumptions_of(Parallel((PureDP(1.0, ADD_REMOVE),))) == (
        "which of the disjoint parts a record is in does not depend on other records",
    )


@pytest.mark.parametrize("records", [1, 3])
def test_no_statement_of_drawn_parties_says_that_the_shuffler_does_not_know_them(records: int) -> None:
    """It draws them, and of a party with one record so knows which record is in a round."""

    def once(n: int) -> Event:
        return Shuffled(1.0, n)

    for event in (
        drawn_round(once, clients=12, drawn=5, records=records),
        self_drawn_round(once, clients=12, rate=0.4, records=records),
        Repeat(self_drawn_round(once, clients=12, rate=0.4, records=records), 3),
    ):
        said = assumptions_of(event)
        assert not [clause for clause in said if clause.startswith("nobody learns which")]
        assert sum("nobody but the shuffler learns which" in clause for clause in said) == 1
    assert "learns which parties are" in assumptions_of(drawn_round(once, clients=12, drawn=5))[-1][-30:]


def test_a_certificate_says_what_it_takes_the_teachers_for() -> None:
    def certified(**facts: Any) -> tuple[str, ...]:
        whole: dict[str, Any] = {"teachers": 5, "epsilon": 0.5, "delta": 0.0, "target_epsilon": 0.5}
        return assumptions_of(Certified(**{**whole, "gamma": (0.1, 0.45, 0.9), **facts}))

    votes, apart = "every vote is private by itself with epsilon 0.5", "the teachers share no randomness"
    assert certified() == certified(affected=5) == (votes, apart)
    assert certified(delta=1e-9)[0] == f"{votes} and delta 1e-09"
    blind = "chosen without looking at any record"
    assert certified(affected=1)[2] == f"each record reaches one teacher, {blind}"
    assert certified(affected=3)[2] == f"each record reaches at most 3 of the teachers, {blind}"
    added = certified(affected=1, neighbours=Neighbours(Relation.ADD_REMOVE, Unit.PERSON))
    assert added[2] == "each person reaches one teacher, whatever the other persons are"


@pytest.mark.parametrize(
    ("batch", "clause"),
    [
        (Fixed(size=5), SAID[Sampled]),
        (Poisson(rate=0.1), SAID[Sampled]),
        (Disjoint(size=5), SAID[Parallel]),
    ],
)
def test_a_plan_says_what_its_batches_rest_on(batch: Fixed | Poisson | Disjoint, clause: str) -> None:
    relation = Relation.ZERO_OUT if isinstance(batch, Poisson) else Relation.REPLACE_ONE
    noise = GaussianNoise(noise_multiplier=2.0)
    estimator = AdditiveMean(dim=2, noise=noise, neighbours=Neighbours(relation))
    measure = Measure(statistic="gradient", estimator=estimator, max_radius=1.0)
    plan = Plan(steps=((Step(measures=(measure,), batch=batch), 3),), parties=1, delta=DELTA)
    assert assumptions_of(plan.event([50], TrustModel.LOCAL)) == (clause,)


class Trusting(Leaf, frozen=True, tag=True):
    """An event of a user's own that rests on something."""

    neighbours: Neighbours = Neighbours()

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("the moon is full",)

    def curve(self) -> Any:
        return PureDP(1.0).curve()


def test_an_event_of_a_users_own_is_held_to_its_clauses_too() -> None:
    try:
        claim = guarantee(Repeat(Trusting(), 2), 0.0, observer="anybody")
        assert str(claim).endswith("), provided that the moon is full.")
        with pytest.raises(VerificationError, match="the moon is full"):
            verify(msgspec.structs.replace(claim, assumptions=()))
    finally:
        del Event.registry["Trusting"]


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[2J", "a\u2028b", "\u202eb", "\ud800", "\x00"])
def test_texts_that_do_not_print_are_refused_when_a_guarantee_is_made(text: str) -> None:
    with pytest.raises(ParameterError, match="observer must be a printable text of 0 to 10000 characters"):
        guarantee(PureDP(1.0), 0.0, observer=text)
    with pytest.raises(ParameterError, match="assumptions must be a printable text of 0 to 10000 characters"):
        guarantee(PureDP(1.0), 0.0, observer="x", assumptions=(text,))
