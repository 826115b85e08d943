"""Silos of tests, whose files are let go of at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
def lab(labs: Labs) -> Lab:
    return labs()
