"""`tacit.federation` imports a name when it is used: a relay that only hands on bytes needs none."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tacit.federation


def test_importing_the_room_imports_nothing_heavy() -> None:
    command = [sys.executable, "-c", "import sys, tacit.federation; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - this Python
    assert not {"numpy", "scipy", "msgspec"} & set(done.stdout.split())


def test_every_name_is_there() -> None:
    assert dir(tacit.federation) == sorted(tacit.federation.__all__)
    assert all(getattr(tacit.federation, name) is not None for name in tacit.federation.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Sillo'"):
        _ = tacit.federation.Sillo  # type: ignore[attr-defined]
