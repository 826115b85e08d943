"""What a silo checks of the descriptor that a shuffled query comes with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.answers import digest_of_run
from tacit.federation.network.descriptor import SignedDescriptor, check_descriptor
from tacit.federation.network.keys import OpeningKey
from tacit.federation.query import Query
from tests.federation.network.parties import NOW
from tests.federation.network.shuffled import RUN, World, plan_of, query, world
from tests.federation.world import AT


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(plan_of(), tmp_path / "s", now=lambda: NOW)


def described(made: World, **changes: Any) -> bytes:
    """A descriptor, changed and signed anew by the shuffler."""
    about = msgspec.structs.replace(made.open().descriptor, **changes)
    return SignedDescriptor.of(about, made.who.shuffler).to_bytes()


def checked(made: World, data: bytes, **changes: Any) -> SignedDescriptor:
    fields = {"roster": made.who.roster, "plan": made.plan, "run": RUN, "query": query(), "name": "silo-1"}
    return check_descriptor(data, **{**fields, **changes})


def test_a_silo_answers_beside_a_descriptor_of_its_own_query(made: World) -> None:
    signed = made.open()
    found = checked(made, signed.to_bytes())
    assert found == signed
    assert found.descriptor.circle.parties == (0, 1, 2)
    assert found.descriptor.session == made.shuffling.session


@pytest.mark.parametrize(
    "changes",
    [
        {"federation": "other"},
        {"run": bytes(32)},
        {"step": 1},
        {"query": bytes(16)},
        {"n_min": 1},
        {"sizes": (5, 9, 8)},
        {"parties": (1, 2), "sizes": (9, 7), "accounts": (None, None)},
        {"parties": (0, 1, 3)},
        {"parties": (), "sizes": (), "accounts": ()},
    ],
)
def test_a_descriptor_of_something_else_is_refused(made: World, changes: Any) -> None:
    with pytest.raises(RefusalError, match="descriptor"):
        checked(made, described(made, **changes))


def test_a_descriptor_binds_the_model_and_the_key_that_all_silos_see(made: World) -> None:
    """A server that sends one silo another model, or another key, would know its answer by that."""
    data = made.open().to_bytes()
    with pytest.raises(RefusalError, match="another query"):
        checked(made, data, query=Query(0, {"w": AT["w"] + 1e-9}, (1.0,)))
    with pytest.raises(AuthenticationError, match="another key of the server"):
        checked(made, described(made, seal=OpeningKey.make().public.raw))
    with pytest.raises(AuthenticationError, match="another key of the server"):
        checked(made, described(made, seal=b""))
    with pytest.raises(RefusalError, match="another run"):
        checked(made, data, run="other")


def test_a_descriptor_of_another_shuffler_or_of_nobody_is_refused(made: World) -> None:
    signed = made.open()
    forged = SignedDescriptor.of(signed.descriptor, made.who.server).to_bytes()
    with pytest.raises(AuthenticationError):
        checked(made, forged)
    with pytest.raises(AuthenticationError):
        checked(made, signed.to_bytes()[:-1] + b"\0")
    for data in (b"", bytes(64), bytes(2**21)):
        with pytest.raises(ParameterError, match="bytes"):
            checked(made, data)
    garbage = SignedDescriptor(b"\xc1", made.who.shuffler.sign("descriptor", b"\xc1")).to_bytes()
    with pytest.raises(ParameterError, match="cannot be read"):
        checked(made, garbage)
    with pytest.raises(ParameterError, match="version 3"):
        checked(made, described(made, version=3))


def test_the_digest_of_a_run_tells_plans_and_names_apart(made: World) -> None:
    assert made.run == digest_of_run(made.plan, RUN) != digest_of_run(plan_of(n_min=3), RUN)
