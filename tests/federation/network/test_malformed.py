"""Malformed and mutated messages are refused by one error; `benchmarks/messages.py` sends a million."""

from __future__ import annotations

import random

from benchmarks.messages import NOW, SILO, attack, mutated, victims

from tacit.federation.network.wire import open_request


def test_no_mutated_message_does_anything_but_fail() -> None:
    found = attack(4_000, victims(), random.Random(0))  # noqa: S311
    assert sum(found.values()) == 4_000
    # The attack reaches what it should: bodies under a valid signature, and queries of other bits.
    assert found["refused"] > 3_000
    assert found["read"] > 50


def test_mutations_change_messages() -> None:
    """Else the test above would say nothing."""
    who, rng = victims(), random.Random(1)  # noqa: S311
    true = {*who.messages, *who.queries}
    assert sum(mutated(rng, who.messages) in true for _ in range(500)) < 100
    assert open_request(who.messages[0], roster=who.roster, silo=SILO, now=NOW).body.run == "run"
