"""Processes of the tests of this room, none of which is left when a test ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.federation.deployed.world import Federated, Nursery, founded


@pytest.fixture(scope="session")
def started() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def nursery(started: Nursery) -> Iterator[Nursery]:
    """What starts processes; a test that leaves one of them fails."""
    yield started
    left = [pid for pid in started.alive if Path(f"/proc/{pid}").exists()]
    assert not left, f"{os.getpid()} has left {left}"


@pytest.fixture
def found(nursery: Nursery, tmp_path: Path) -> Iterator[Callable[..., Federated]]:
    """Makes federations, whose processes end with the test."""
    made: list[Federated] = []

    def make(*more: str, **fields: object) -> Federated:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(founded(folder, nursery, *more, **fields))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()
