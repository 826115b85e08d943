"""Silos of tests, whose files are let go of at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.federation.network import asking, proposing, rounds, shuffled_rounds, shuffler_client
from tests.federation.network.deployed_world import IdleTime
from tests.federation.network.silo_world import Lab, Labs


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    """Makes silos whose services end with the test."""
    made: list[Lab] = []

    def make(folder: str = "state", **changes: Any) -> Lab:
        made.append(Lab(tmp_path / folder, **changes))
        return made[-1]

    yield make
    for lab in made:
        lab.close()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> IdleTime:
    """The clock of the server, which a busy machine does not move."""
    made = IdleTime()
    for part in (asking, proposing, rounds, shuffled_rounds, shuffler_client):
        monkeypatch.setattr(part, "time", made)
    return made


@pytest.fixture
def lab(labs: Labs) -> Lab:
    return labs()
