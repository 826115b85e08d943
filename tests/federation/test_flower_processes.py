"""What was started here is ended, with all that it has started, and nothing else."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from tacit.federation.flower.processes import Process, descendants, end_processes

STUBBORN = "trap '' TERM; sleep 60 & echo up; while true; do wait; done"
OBEDIENT = "sleep 60 & echo up; wait"


@pytest.fixture(params=[OBEDIENT, STUBBORN])
def shell(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that has started a process of its own."""
    with subprocess.Popen(["/bin/sh", "-c", request.param], stdout=subprocess.PIPE) as found:  # noqa: S603
        assert found.stdout is not None
        assert found.stdout.readline() == b"up\n"
        yield found
        if found.poll() is None:
            found.kill()


def test_a_family_is_found_and_ended(shell: subprocess.Popen[bytes]) -> None:
    family = descendants(shell.pid)
    assert len(family) >= 1
    (itself,) = (one for one in descendants(_me()) if one.pid == shell.pid)
    start = time.monotonic()
    end_processes({itself, *family}, patience=0.5)
    shell.wait(5)
    assert not [one for one in family if one.alive]
    assert not itself.alive
    assert time.monotonic() - start < 10


def test_a_number_that_was_given_again_is_another_process(shell: subprocess.Popen[bytes]) -> None:
    (itself,) = (one for one in descendants(_me()) if one.pid == shell.pid)
    another = Process(itself.pid, itself.started + 1)
    assert not another.alive
    end_processes([another], patience=0.1)
    assert itself.alive
    assert shell.poll() is None


def _me() -> int:
    import os

    return os.getpid()
