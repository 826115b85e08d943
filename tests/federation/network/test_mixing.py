"""What the shuffler takes from plan and roster: circles and runs that a price does not allow are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.federation.network.descriptor import RunOrder, about_order
from tacit.federation.network.faults import Fault
from tacit.federation.network.shuffling import MOST_ROUND_BYTES
from tacit.means import AdditiveMean
from tests.federation.network.parties import NOW
from tests.federation.network.shuffled import RUN, World, parties_of, plan_of, refused, world
from tests.federation.world import DIM
from tests.federation.world import plan_of as local_plan_of


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(plan_of(), tmp_path / "s", now=lambda: NOW)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parties": (0,), "accounts": (None,)}, "at least 2"),
        ({"parties": (), "accounts": ()}, "at least 2"),
        ({"parties": (0, 1, 1)}, "increasing"),
        ({"parties": (1, 0, 2)}, "increasing"),
        ({"parties": (0, 1, 3)}, "silos of the roster"),
        ({"parties": (0, 1, -1)}, "silos of the roster"),
        ({"accounts": (None, None)}, "size for each"),
        ({"accounts": (None, b"a", None)}, "all parties or of none"),
        ({"step": 4}, "step"),
        ({"query": b""}, "query must have 16 bytes"),
        ({"seconds": 0.0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": float("inf")}, "seconds"),
    ],
)
def test_a_circle_that_the_price_does_not_allow_is_not_described(
    made: World, changes: Any, message: str
) -> None:
    error = refused(Fault.FORM, lambda: made.open(**changes))
    assert message in str(error)
    assert made.shuffling.waiting == 0
    made.open()
    assert made.shuffling.waiting == 1


def test_honest_rows_are_counted_by_the_roster_and_nobody_else(tmp_path: Path) -> None:
    """The plan counts on 5 + 7 rows of honest parties; a roster of smaller ones does not hold them."""
    made = world(plan_of(n_min=2), tmp_path / "s", who=parties_of((5, 9, 6)))
    error = refused(Fault.FORM, made.open)
    assert "honest must be at most the 11 units" in str(error)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: local_plan_of(AdditiveMean(dim=DIM), parties=3).to_toml(), "shuffle trust"),
        (lambda: plan_of(sizes=(5, 9)).to_toml(), "3 silos of the roster"),
        (lambda: "version = 9", "version"),
        (lambda: "nonsense", "cannot be read"),
    ],
)
def test_a_run_that_cannot_be_shuffled_is_refused(made: World, make: Any, message: str) -> None:
    order = RunOrder(plan=make(), run=RUN)
    error = refused(Fault.FORM, lambda: made.door.open_run(order, key=made.who.server))
    assert message in str(error)


def test_orders_that_cannot_be_read_are_refused(made: World) -> None:
    for order in (b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode(["a", "b", "c"])):
        for what, give in (("run", made.shuffling.open_run), ("round", made.shuffling.open_round)):
            signature = made.who.server.sign("order", about_order(what, order))
            refused(Fault.FORM, lambda give=give, order=order, signature=signature: give(order, signature))  # type: ignore[misc]


def test_open_rounds_share_a_bounded_memory(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(made.form(party).size for party in range(3))
    monkeypatch.setattr("tacit.federation.network.shuffling.MOST_ROUND_BYTES", 2 * size)
    made.open(0), made.open(1)
    assert "open rounds must take at most" in str(refused(Fault.FORM, lambda: made.open(2)))
    assert MOST_ROUND_BYTES >= 2**29
