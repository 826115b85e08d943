"""However often a run is killed, it ends with the model that it would have had, and pays once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.federation import Disjoint
from tests.federation.kills import CASES, Case, kill_at_every_write


@pytest.mark.parametrize("committed", [True, False], ids=["after", "within"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_run_that_is_killed_at_every_write_ends_as_it_would_have(case: Case, committed: bool) -> None:
    writes = len(case.payers)  # reservations, and at least an answer of every round
    assert kill_at_every_write(case, committed=committed, repeatable=True) >= writes + 2


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case.batch, Disjoint)], ids=str)
def test_a_secret_order_outlives_whoever_drew_it(case: Case) -> None:
    assert kill_at_every_write(case, committed=True, repeatable=False) > 0


def test_processes_that_are_killed_at_random_moments_end_as_they_would_have() -> None:
    """`python -m tests.federation.kills --count 1000` is the long one."""
    command = [sys.executable, "-m", "tests.federation.kills", "--count", "20", "--times", "2"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    assert re.search(r"^20 kills of \d+ runs .* central, local, shuffle trust", done.stdout, re.MULTILINE)
