"""Statements under trust in a sum: two observers of every silo, held together by one event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tacit.errors import VerificationError
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    DiscreteGaussianSum,
    Event,
    Guarantee,
    Repeat,
    Sampled,
    Unit,
    guarantee,
)
from tacit.privacy.run_clauses import (
    IN_ONE_PLACE,
    MASKED,
    RECOVERED,
    ROSTER,
    clauses_of_sums,
    observer_of_one,
    observer_of_sums,
)
from tacit.privacy.statement import About, DataFacts, Statement
from tacit.privacy.statement_sums import (
    colluding_of,
    of_one_share,
    shares_of,
)

SILOS = ("a", "b", "c", "it's", "e")
DELTA = 1e-5
ONE_PLACE = clauses_of_sums()


def rounds(shares: int, *, std: float = 400.0, count: int = 3) -> Event:
    """Rounds of two kinds, one of them on samples; of one share, what a message alone shows."""

    def leaf(sensitivity: float, dim: int) -> Event:
        if shares == 1:
            return DiscreteGaussian(std, sensitivity, dim=dim)
        return DiscreteGaussianSum(std, shares, sensitivity, dim=dim)

    return Compose((Repeat(leaf(100.0, 4), count), Repeat(Sampled(leaf(90.0, 7), 0.5), 2)))


def about_sums(
    name: str, *, shares: int = 3, colluding: int = 2, ways: Sequence[str] = ONE_PLACE
) -> Guarantee:
    observer = observer_of_sums(f"silo {name!r}", colluding)
    return guarantee(rounds(shares), DELTA, observer=observer, assumptions=tuple(ways))


def about_one(name: str) -> Guarantee:
    return guarantee(rounds(1), DELTA, observer=observer_of_one(f"silo {name!r}"))


def a_run(claims: Sequence[Guarantee] | None = None) -> Statement:
    found = [about_sums(name) for name in SILOS] if claims is None else claims
    return Statement(
        kind="train",
        released="aggregate",
        model="linear, 17 parameters",
        guarantees=(*found, *map(about_one, SILOS)),
        about=tuple(
            About(trust="aggregate", silo=name, units=10, **alone)
            for alone in ({}, {"alone": True})
            for name in SILOS
        ),
        data=DataFacts(
            name="digits",
            public=True,
            silos=len(SILOS),
            unit=Unit.RECORD,
            sizes=dict.fromkeys(SILOS, 10),
            read_off=(),
        ),
    )


def test_both_observers_of_every_silo_are_verified() -> None:
    a_run().verify()
    masked = [about_sums(name, ways=(ROSTER, MASKED)) for name in SILOS]
    a_run(masked).verify()
    recovered = [about_sums(name, shares=3, colluding=1, ways=(ROSTER, RECOVERED)) for name in SILOS]
    a_run(recovered).verify()


def test_a_silo_may_count_on_more_colluders_of_the_same_sums() -> None:
    careful = [about_sums("a", shares=2, colluding=3), *(about_sums(name) for name in SILOS[1:])]
    a_run(careful).verify()


def without(run: Statement, *numbers: int) -> Statement:
    kept = [k for k in range(len(run.guarantees)) if k not in numbers]
    return replace(
        run,
        guarantees=tuple(run.guarantees[k] for k in kept),
        about=tuple(run.about[k] for k in kept),
    )


def changed(run: Statement, number: int, **fields: Any) -> Statement:
    claims = list(run.guarantees)
    claims[number] = replace(claims[number], **fields)
    return replace(run, guarantees=tuple(claims))


def swapped(run: Statement) -> Statement:
    """Return it with the two guarantees of one silo in each other's place."""
    claims = list(run.guarantees)
    claims[0], claims[5] = claims[5], claims[0]
    return replace(run, guarantees=tuple(claims))


def renamed(run: Statement) -> Statement:
    """Return it with events and observers in each other's place, so that every observer fits `about`."""
    first, second = run.guarantees[0], run.guarantees[5]
    one = guarantee(second.event, DELTA, observer=first.observer, assumptions=ONE_PLACE)
    two = guarantee(first.event, DELTA, observer=second.observer)
    claims = [one, *run.guarantees[1:5], two, *run.guarantees[6:]]
    return replace(run, guarantees=tuple(claims))


MUTATIONS: dict[str, tuple[Callable[[Statement], Statement], str]] = {
    "the message alone of one silo cut": (lambda run: without(run, 5), "must be about all 5 silos"),
    "all messages alone cut": (lambda run: without(run, *range(5, 10)), "must be about all 5 silos"),
    "all sums cut": (lambda run: without(run, *range(5)), "must be about all 5 silos"),
    "guarantees swapped": (swapped, "its observer is not the one"),
    "events swapped": (renamed, "is not what an observer under 'aggregate' sees"),
    "about no silo": (
        lambda run: replace(run, about=tuple(replace(one, silo=None) for one in run.about)),
        "must be about all 5 silos",
    ),
    "said of another trust": (
        lambda run: replace(
            run, released="local", about=tuple(replace(one, trust="local") for one in run.about)
        ),
        "nothing is mixed or added up under trust 'local'",
    ),
    "more colluders than there are shares for": (
        lambda run: changed(run, 0, observer=observer_of_sums("silo 'a'", 3)),
        "counts on 3 shares of noise beside 3 colluding parties, of 5",
    ),
    "fewer colluders than agreed": (
        lambda run: changed(run, 0, observer=observer_of_sums("silo 'a'", 1)),
        "about sums of different parties",
    ),
    "colluders not said": (
        lambda run: changed(run, 0, observer="everybody outside silo 'a', the server included,"),
        "does not say how many parties may collude",
    ),
    "way of hiding cut": (
        lambda run: changed(
            run, 0, assumptions=tuple(c for c in run.guarantees[0].assumptions if c != IN_ONE_PLACE)
        ),
        "leaves out what its price rests on",
    ),
    "one silo masks and others do not": (
        lambda run: replace(run, guarantees=(about_sums("a", ways=(ROSTER, MASKED)), *run.guarantees[1:])),
        "about sums of different parties",
    ),
    "honest shares not said": (
        lambda run: changed(
            run, 0, assumptions=tuple(c for c in run.guarantees[0].assumptions if "honest parties" not in c)
        ),
        "leaves out what its price rests on",
    ),
    "a message of fewer rounds": (
        lambda run: replace(
            run,
            guarantees=(
                *run.guarantees[:5],
                guarantee(rounds(1, count=2), DELTA, observer=observer_of_one("silo 'a'")),
                *run.guarantees[6:],
            ),
        ),
        "are of different rounds",
    ),
    "a message with more noise": (
        lambda run: replace(
            run,
            guarantees=(
                *run.guarantees[:5],
                guarantee(rounds(1, std=800.0), DELTA, observer=observer_of_one("silo 'a'")),
                *run.guarantees[6:],
            ),
        ),
        "are of different rounds",
    ),
    "a lower price of the sum": (
        lambda run: changed(run, 1, epsilon=run.guarantees[1].epsilon / 2),
        "but its event costs",
    ),
    "a lower price of one message": (
        lambda run: changed(run, 6, epsilon=run.guarantees[6].epsilon / 2),
        "but its event costs",
    ),
}


@pytest.mark.parametrize("how", MUTATIONS)
def test_statements_that_contradict_themselves_are_refused(how: str) -> None:
    change, said = MUTATIONS[how]
    with pytest.raises(VerificationError, match=said):
        change(a_run()).verify()


def test_all_parties_are_in_a_sum_whose_masks_need_all_of_them() -> None:
    fewer = [about_sums(name, shares=2, ways=(ROSTER, MASKED)) for name in SILOS]
    with pytest.raises(VerificationError, match="masks come off in that of all 5"):
        a_run(fewer).verify()


def test_a_quorum_that_could_sign_two_sums_is_refused() -> None:
    two = [about_sums(name, shares=2, colluding=1, ways=(ROSTER, RECOVERED)) for name in SILOS]
    with pytest.raises(VerificationError, match="sums of 3 of 5 parties, of which two could be signed"):
        a_run(two).verify()


def test_sums_that_are_counted_with_different_shares_are_refused() -> None:
    mixed = Compose((DiscreteGaussianSum(400.0, 3, 100.0), DiscreteGaussianSum(400.0, 4, 100.0)))
    claims = [
        guarantee(mixed, DELTA, observer=observer_of_sums(f"silo {name!r}", 2), assumptions=ONE_PLACE)
        for name in SILOS
    ]
    with pytest.raises(VerificationError, match=r"counts on \[3, 4\] shares"):
        a_run(claims).verify()


def test_what_is_read_off_events_and_observers() -> None:
    assert shares_of(rounds(3)) == {3}
    assert shares_of(rounds(1)) == set()
    assert of_one_share(rounds(3)) == rounds(1)
    for colluding in (0, 1, 12):
        assert colluding_of(observer_of_sums("silo 'a'", colluding)) == colluding
    for wrong in (
        observer_of_one("silo 'a'"),
        "everybody",
        "the server and up to -1 other parties together,",
    ):
        with pytest.raises(VerificationError, match="does not say how many"):
            colluding_of(wrong)
