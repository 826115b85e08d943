"""`make` on a machine whose Python is too old, missing, or without venv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
OLD = """#!/bin/sh
exec {python} -c 'import sys, runpy
sys.version_info = (3, 9, 2, "final", 0)
runpy.run_path(sys.argv[1], run_name="__main__")' "$@"
"""
LAME = """#!/bin/sh
[ "$1" = -m ] && mkdir -p "$3/bin" && touch "$3/bin/python" && exit 1
exec {python} "$@"
"""


def make(venv: Path, python: str) -> tuple[int, list[str]]:
    """Make an environment with a Python of that name; return the exit code and the lines of errors."""
    command = ["make", "--no-print-directory", f"VENV={venv}", f"PYTHON={python}", f"{venv}/bin/python"]
    # Tests may run under `make`, which tells the inner one of itself: its errors would read otherwise.
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (OLD, "tacit needs Python 3.11 or newer, and {python} is 3.9.2. Name another one, such as: "),
        (None, "There is no {name}. Name another one, such as: make PYTHON=python3.12"),
        (LAME, None),
    ],
    ids=["too old", "missing", "without venv"],
)
def test_a_wrong_python_is_named_and_leaves_nothing_behind(
    script: str | None, said: str | None, tmp_path: Path
) -> None:
    name = tmp_path / "python-here"
    if script is not None:
        name.write_text(script.format(python=sys.executable))
        name.chmod(0o755)
    code, lines = make(tmp_path / "venv", str(name))
    assert code != 0
    assert not (tmp_path / "venv").exists()
    if said is not None:
        (line,) = lines
        assert line.startswith(said.format(python=sys.executable, name=name))


def test_the_pages_name_the_python_that_the_project_needs() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    for page in ("README.md", "CONTRIBUTING.md"):
        assert f"Python {needed.removeprefix('>=')} or newer" in (ROOT / page).read_text(), page


@pytest.mark.parametrize(
    ("name", "last_that_fails", "first_that_works", "first_that_fails"),
    [("typer", "0.15.0", "0.20.0", "0.26.0"), ("click", "8.3.3", "8.4.0", "8.5.0")],
)
def test_what_pip_installs_without_our_lock_can_run(
    name: str, last_that_fails: str, first_that_works: str, first_that_fails: str
) -> None:
    # Outside of those, `tacit` ended in a traceback before it could say a word: tried one by one.
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (allowed,) = (Requirement(line).specifier for line in asked if Requirement(line).name == name)
    assert list(allowed.filter([last_that_fails, first_that_works, first_that_fails])) == [first_that_works]
    pin = (ROOT / "constraints.txt").read_text().split(f"\n{name}==")[1].split()[0]
    assert pin in allowed
