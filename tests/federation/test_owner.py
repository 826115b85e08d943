"""What owners say about sums: which price is charged, whom the silo is added to, and what is never sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, RefusalError
from tacit.federation import Circle, OpenSums, Silo
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation import world
from tests.federation.aggregates import DATA, SIZES, mean_of, plan_of, step_of
from tests.federation.world import STATISTICS, Counting, Rows, ask_at, ledger_at

ROSTER = "ab" * 32
CIRCLE = Circle(tuple(range(4)), SIZES, (None,) * 4, b"session")


class Elsewhere(OpenSums):
    """An owner whose roster is another one."""

    @property
    def roster(self) -> str:
        return ROSTER


def silo(sums: Any = None, *, ledger: Ledger | None = None, seed: int | None = 1, **fields: Any) -> Silo:
    rng = None if seed is None else np.random.default_rng(seed)
    return Silo(Rows(DATA[0]), STATISTICS, name="s0", sums=sums, ledger=ledger, rng=rng, **fields)


# --- which price


def test_an_owner_that_knows_nobody_pays_for_its_message_alone(tmp_path: Path) -> None:
    made = plan_of()
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        one = silo(None, ledger=ledger)
        price = one.accept(made)
        assert price == one.alone(made)
        assert price.event == made.event([5], TrustModel.LOCAL)
        assert ledger.spent().epsilon == price.epsilon
        assert "see the message of silo 's0' alone" in price.observer


def test_an_owner_that_knows_the_others_pays_for_the_sum(tmp_path: Path) -> None:
    made = plan_of(colluding=1)
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        one = silo(OpenSums(), ledger=ledger)
        price = one.accept(made)
        assert price.event == made.event([5], TrustModel.AGGREGATE)
        assert ledger.spent().epsilon == price.epsilon < one.alone(made).epsilon
        one.accept(made)  # the same run again
        silo(OpenSums(), ledger=ledger).accept(made)
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize(("own", "counted"), [(0, 1), (1, 1), (2, 2)])
def test_the_larger_number_of_colluding_parties_is_charged(own: int, counted: int) -> None:
    made = plan_of(colluding=1)
    price = silo(OpenSums(colluding=own)).consider(made)
    event: Any = price.event
    assert event == made.with_colluding(counted).event([5], TrustModel.AGGREGATE)
    assert f"up to {counted} other part" in price.observer
    assert event.part.shares == 4 - counted


def test_the_noise_of_a_silo_is_the_plans_whoever_it_counts_on() -> None:
    """One share for all: silos that count on fewer honest parties, or hold more rows, send no other noise."""
    made = plan_of(colluding=1, z=30.0)
    sent = []
    for sums in (OpenSums(), OpenSums(colluding=2), None):
        one = silo(sums)
        one.accept(made)
        sent.append(one.answer(ask_at(0), CIRCLE))
    assert sent[0] == sent[1] == sent[2]
    larger, std = Silo(Rows(np.vstack([DATA[0]] * 40)), STATISTICS, sums=OpenSums()), []
    for one in (silo(OpenSums()), larger):
        event: Any = one.consider(made).event
        std.append((event.part.std, event.part.sensitivity))
    assert std[0][0] == std[1][0]
    assert std[0][1] < std[1][1]  # its own slack is in its own price


@pytest.mark.parametrize(("own", "recover"), [(3, False), (4, False), (2, True)])
def test_a_silo_that_trusts_too_few_others_refuses(own: int, recover: bool, tmp_path: Path) -> None:
    """One honest share, or a quorum that could open two sums of a step."""
    made = plan_of(n_min=4 - recover, colluding=0 if recover else 1, recover=recover)
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        with pytest.raises(RefusalError, match=f"no price if {own} other parties collude"):
            silo(OpenSums(colluding=own), ledger=ledger).accept(made)
        assert not ledger.entries()


def test_a_message_alone_may_be_too_much(tmp_path: Path) -> None:
    made = plan_of()
    alone = silo().alone(made).epsilon
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        with pytest.raises(RefusalError, match="of a message alone"):
            silo(OpenSums(most_alone=alone * 0.999), ledger=ledger).accept(made)
        assert not ledger.entries()
        silo(OpenSums(most_alone=alone), ledger=ledger).accept(made)


def test_the_budget_is_held_against_the_price_that_is_charged() -> None:
    made = plan_of()
    summed, alone = silo(OpenSums()).consider(made), silo().consider(made)
    budget = PrivacyBudget((summed.epsilon + alone.epsilon) / 2, made.delta)
    silo(OpenSums()).accept(made, budget=budget)
    with pytest.raises(BudgetError):
        silo().accept(made, budget=budget)


# --- whom


@pytest.mark.parametrize(
    ("sums", "roster"), [(OpenSums(), ROSTER), (Elsewhere(), ""), (Elsewhere(), "cd" * 32)]
)
def test_a_plan_for_other_parties_than_the_owners_is_refused(sums: Any, roster: str, tmp_path: Path) -> None:
    made = plan_of(roster=roster)
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        with pytest.raises(RefusalError, match="roster"):
            silo(sums, ledger=ledger).accept(made)
        assert not ledger.entries()


def test_a_silo_that_would_forget_what_it_masked_refuses() -> None:
    """After a restart it would send other noise under the same masks."""
    with pytest.raises(RefusalError, match="keeps no ledger"):
        silo(Elsewhere(), seed=None).consider(plan_of(roster=ROSTER))
    silo(Elsewhere()).consider(plan_of(roster=ROSTER))  # simulated: nothing is protected
    silo(OpenSums(), seed=None).consider(plan_of())


# --- what


def test_nothing_is_answered_without_those_it_is_added_to() -> None:
    one = silo(OpenSums())
    one.accept(plan_of())
    with pytest.raises(RefusalError, match="who is mixed with a silo"):
        one.answer(ask_at(0))
    for parties in ((0, 1, 2), (1, 2, 3)):
        with pytest.raises(RefusalError, match="mixed with at least n_min"):
            one.answer(ask_at(0), Circle(parties, tuple(SIZES[k] for k in parties), (None,) * 3))
    one.answer(ask_at(0), CIRCLE)


def test_a_step_is_answered_for_one_set_of_parties() -> None:
    one = silo(OpenSums())
    one.accept(plan_of(n_min=3, recover=True))
    first = one.answer(ask_at(0), CIRCLE)
    assert one.answer(ask_at(0), CIRCLE) == first
    with pytest.raises(RefusalError, match="another point or for another party"):
        one.answer(ask_at(0), Circle((0, 1, 2), SIZES[:3], (None,) * 3, b"session"))
    with pytest.raises(RefusalError, match="another point or for another party"):
        one.answer(ask_at(0, np.ones(3)), CIRCLE)


def test_nothing_is_computed_for_a_plan_that_is_refused() -> None:
    counting, rng = Counting(), np.random.default_rng(5)
    one = Silo(Rows(DATA[0]), {"row": counting}, sums=Elsewhere(), rng=rng)
    before = str(rng.bit_generator.state)
    coarse = step_of(mean_of(4, z=0.05))
    for made in (plan_of(), plan_of(coarse, roster=ROSTER), plan_of(roster="cd" * 32)):
        with pytest.raises((RefusalError, ValueError)):
            one.accept(made)
    assert (counting.calls, str(rng.bit_generator.state)) == (0, before)


def test_a_silo_without_masks_has_nothing_to_exchange() -> None:
    one = silo(OpenSums())
    for _ in range(2):
        with pytest.raises(RefusalError, match="masks nothing"):
            one.exchange("advertise", b"")
        one.accept(plan_of())


def test_an_owner_of_sums_answers_other_plans_as_before() -> None:
    one = silo(OpenSums(colluding=2, most_alone=1e-3))
    made = world.plan_of(world.mean_of(world.GRID))
    assert one.accept(made).event == made.event([5], TrustModel.LOCAL)
    one.answer(ask_at(0))
