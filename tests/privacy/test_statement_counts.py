"""An event that counts on more records, parties or messages than a statement's data have is refused."""

from __future__ import annotations

import msgspec
import pytest

from tacit.errors import VerificationError
from tacit.privacy import (
    Event,
    Gaussian,
    Neighbours,
    PureDP,
    Relation,
    Repeat,
    Sampled,
    Shuffled,
    Unit,
    guarantee,
)
from tacit.privacy.events import Drawn, Sample
from tacit.privacy.iteration import EpochSteps, Iteration, IterationSchedule, Order, Release
from tacit.privacy.shuffling import self_drawn_round
from tacit.privacy.statement import About, DataFacts, Statement
from tacit.privacy.statement_counts import check_counts

DATA = DataFacts(
    name="digits",
    public=True,
    silos=4,
    unit=Unit.RECORD,
    sizes={"a": 10, "b": 12, "c": 9, "d": 14},
    read_off=(),
    trained_with={"local": 5},
)
ONE = About(trust="local", silo="a", units=10)
ALL = About(trust="shuffle", silo="b", units=12)
ADDED = About(trust="central", units=45)
POISSON = Neighbours(Relation.ADD_REMOVE)


def drawn(*, clients: int = 4, of: int = 2, records: int = 9, messages: int = 2) -> Event:
    batch = Shuffled(1.0, messages)
    return Repeat(Drawn(batch, of / clients / records, clients=clients, drawn=of, records=records), 3)


def joined(clients: int) -> Event:
    return self_drawn_round(lambda k: Shuffled(1.0, k), clients=clients, rate=0.5)


def schedule(*epochs: EpochSteps) -> Event:
    facts = {"step_times_smoothness": 1.0, "convex": True, "clip_safe": True, "prox_convex": True}
    return IterationSchedule(1.0, epochs, **facts)  # type: ignore[arg-type]


def hidden(n: int, private: int | None) -> Event:
    facts = {"step_times_smoothness": 1.0, "convex": True, "clip_safe": True, "prox_convex": True}
    return Iteration(1.0, n, 2, private=private, order=Order.RR, release=Release.LAST, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "about", "more", "said"),
    [
        (drawn(), ALL, drawn(clients=5), "5 parties, and there are 4"),
        (drawn(), ALL, drawn(records=10), "10 records of each party, and there are 9"),
        (drawn(), ALL, drawn(messages=3), "3 messages of those that are drawn, and there are 2"),
        (joined(4), ALL, joined(5), "5 parties, and there are 4"),
        (Shuffled(1.0, 45), ALL, Shuffled(1.0, 46), "46 messages in a batch, and there are 45"),
        (Sampled(PureDP(1), 1 / 10), ONE, Sampled(PureDP(1), 1 / 11), "11 records that one is drawn of"),
        (Sampled(PureDP(1), 1 / 45), ADDED, Sampled(PureDP(1), 1 / 46), "46 records that one is drawn of"),
        (Sampled(PureDP(1), 1 / 45), ALL, Sampled(PureDP(1), 5e-324), "inf records that one is drawn of"),
        (hidden(10, None), ONE, hidden(11, None), "11 steps on records of their own, and there are 10"),
        (
            schedule(EpochSteps(private=10)),
            ONE,
            schedule(EpochSteps(private=9), EpochSteps(private=11)),
            "11 steps on records of their own, and there are 10",
        ),
        (
            schedule(EpochSteps(private=5, public=10)),
            ONE,
            schedule(EpochSteps(private=5, public=11)),
            "16 steps in an epoch, and there are 15",
        ),
        (hidden(15, 10), ONE, hidden(16, 10), "16 steps in an epoch, and there are 15"),
    ],
)
def test_there_are_as_many_as_the_data_have(event: Event, about: About, more: Event, said: str) -> None:
    check_counts(event, about, DATA)
    with pytest.raises(VerificationError, match=said):
        check_counts(more, about, DATA)


def test_what_is_not_public_or_goes_by_chance_is_not_compared() -> None:
    sizes = msgspec.structs.replace(DATA, sizes={"a": None, "b": 12, "c": 9, "d": 14})
    check_counts(Sampled(PureDP(1), 1e-3), About(trust="local", silo="a"), sizes)
    check_counts(Shuffled(1.0, 1000), ALL, sizes)
    part = Gaussian(1.0, POISSON)
    check_counts(Sampled(part, 1e-3, Sample.POISSON), ONE, DATA)


def test_a_statement_whose_event_is_of_larger_data_is_refused() -> None:
    def run(rate: float) -> Statement:
        claim = guarantee(Sampled(PureDP(1.0), rate), 0.0, observer="everybody outside silo 'a'")
        data = msgspec.structs.replace(DATA, silos=1, sizes={"a": 10}, trained_with={})
        return Statement(
            kind="train",
            released="local",
            model="linear, 3 parameters",
            guarantees=(claim,),
            about=(ONE,),
            data=data,
        )

    run(0.1).verify()
    with pytest.raises(VerificationError, match="1,001 records that one is drawn of, and there are 10"):
        run(1 / 1001).verify()
