"""Rooms import a name when it is used: a relay needs none of theirs, and a silo few."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

ROOMS = ("tacit.federation", "tacit.jobs", "tacit.learning")


def test_importing_rooms_imports_nothing_heavy() -> None:
    command = [sys.executable, "-c", f"import sys, {', '.join(ROOMS)}; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - this Python
    assert not {"numpy", "scipy", "msgspec"} & set(done.stdout.split())


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_there(room: str) -> None:
    found = importlib.import_module(room)
    assert dir(found) == sorted(found.__all__)
    assert all(getattr(found, name) is not None for name in found.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Sillo'"):
        _ = found.Sillo
