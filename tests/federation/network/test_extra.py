"""Without the extra, everything else works, and what needs it says so in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXTRA = ("cryptography", "starlette", "uvicorn", "httpx", "prometheus_client", "flwr", "ray")
WITHOUT = f"""
import sys

from importlib.machinery import PathFinder

class Poor(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {EXTRA!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Poor
for name in list(sys.modules):
    assert name.partition(".")[0] not in {EXTRA!r}, name
"""


def without_extra(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_rest_of_the_house_needs_none_of_it() -> None:
    found = without_extra(
        "import tacit.cli, tacit.federation, tacit.jobs, tacit.reports\nprint(tacit.federation.Plan)"
    )
    assert found.returncode == 0, found.stderr
    assert "Plan" in found.stdout


@pytest.mark.parametrize("module", ["keys", "roster", "wire", "signatures"])
def test_a_module_that_needs_it_says_how_to_install_it(module: str) -> None:
    found = without_extra(f"import tacit.federation.network.{module}")
    assert found.returncode == 1
    said = found.stderr.strip().splitlines()[-1]
    assert said.startswith("tacit.errors.TacitError: a federation over a network needs the extra: `pip")
    assert "cryptography is not there" in said


def test_a_command_that_needs_it_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "roster.toml").write_text("")
    code = f"""
import os
os.chdir({str(tmp_path)!r})
from tacit.cli import main
sys.exit(main("account verify --keys roster.toml statement.json".split()))
"""
    found = without_extra(code)
    assert found.returncode == 1
    assert found.stdout == ""
    assert len(found.stderr.splitlines()) == 1
    assert found.stderr.startswith("tacit: a federation over a network needs the extra: `pip install")
