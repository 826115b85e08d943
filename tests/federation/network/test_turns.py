"""Rounds of one silo beside mixed ones: answered to the server alone, with all noise, in public turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.federation import Full, Group, Measure, Plan, Query, Step, TurnWalk, with_honest
from tacit.federation.network.faults import Fault
from tacit.means import AdditiveMean, BinomialMean, DiscreteGaussianNoise
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.network.shuffled import SIZES, refused, world
from tests.federation.network.silo_world import SIZE, Lab, Labs, code
from tests.federation.network.test_silo_uploads import Door, signed
from tests.federation.world import DIM, RADIUS, ask_at

OWN = AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(5.0), trust=TrustModel.LOCAL, on_violation="clip")
WALK = TurnWalk(
    measures=(Measure(statistic="row", estimator=OWN, max_radius=2 * RADIUS),),
    batch=Full(),
    steps=3,
    offset=1,
)
BITS = BinomialMean(dim=DIM, noise_bits=60, resolution=8)


def plan_for(sizes: tuple[int, ...]) -> Plan:
    """Mixed rounds 0 and 2; silos 1 and 2 walk in rounds 1 and 3."""
    mixed = Step(measures=(Measure(statistic="row", estimator=BITS, max_radius=1.0),), batch=Full())
    kinds = with_honest(((Group(steps=((mixed, 1), (WALK, 1))), 2),), sizes, n_min=2, colluding=0)
    return Plan(steps=kinds, parties=3, trust=TrustModel.SHUFFLE, delta=1e-6, n_min=2)


PLAN = plan_for((SIZE,) * 3)


def turn(step: int, *, v: float = 1.0, **numbers: float) -> Query:
    """A walk."""
    facts = {"step_size": 0.1, "smoothness": 1.0, "clip": 1.0, "taken": 3.0, **numbers}
    at = {"w": np.zeros(DIM), "v": np.full(DIM, v), **{k: np.asarray(x) for k, x in facts.items()}}
    return Query(step, at, (2 * RADIUS,))


@pytest.fixture
def lab(labs: Labs) -> Lab:
    made = labs(door=Door())
    made.agree(PLAN, limit=PrivacyBudget(1000.0, 1e-4))
    return made


def test_a_turn_is_answered_to_the_server_and_to_nobody_else(lab: Lab) -> None:
    service = lab.service()
    lab.accept(service, PLAN)
    first = lab.answer(service, turn(1))
    assert not lab.door.brought
    service.close()
    again = lab.service()  # in another process, from the ledger
    assert lab.answer(again, turn(1)) == first
    assert len(lab.lines("answered")) == 2
    assert not lab.lines("uploaded")


@pytest.mark.parametrize(
    ("query", "beside", "why"),
    [
        (turn(1, v=2.0), False, "answered"),  # at another point
        (turn(3), False, "query"),  # another silo's turn
        (turn(1), True, "circle"),  # of no circle
        (ask_at(2), False, "circle"),  # a mixed round, to be answered in the open
        (turn(1, taken=4.0), False, "query"),
        (Query(1, turn(1).at, (2.1 * RADIUS,)), False, "query"),
        (turn(4), False, "query"),
    ],
)
def test_whatever_is_no_turn_of_the_silo_is_refused_by_one_word(
    query: Query, beside: bool, why: str, lab: Lab
) -> None:
    service = lab.service()
    lab.accept(service, PLAN)
    first = lab.answer(service, turn(1))
    descriptor = signed(lab, ask_at(0)).to_bytes() if beside else b""
    assert code(lab.ask(service, query, descriptor=descriptor)) == why
    assert not lab.door.brought
    assert lab.answer(service, turn(1)) == first
    assert lab.spent()[1] == 1


def test_a_shuffler_opens_no_round_of_one_silo(tmp_path: Path) -> None:
    made: Any = world(plan_for(SIZES), tmp_path / "shuffler")
    refused(Fault.FORM, lambda: made.open(1))
    assert made.open(0)
