"""`import tacit`: a dozen names, imported when they are used."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tacit
from tacit.cli import main
from tacit.errors import VerificationError

HEAVY = ("numpy", "scipy", "pandas", "sklearn", "matplotlib", "typer", "msgspec")


def python(*arguments: str) -> str:
    """What another interpreter prints."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - this Python
    return done.stdout


def test_importing_it_imports_nothing_heavy() -> None:
    loaded = python("-c", "import sys, tacit; print(*sys.modules)").split()
    assert not [name for name in HEAVY if name in loaded]
    assert not [name for name in loaded if name.startswith("tacit.")]


def test_every_name_is_there_and_listed() -> None:
    assert tacit.__all__ == sorted(tacit.__all__, key=lambda name: (name[0].islower(), name))
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
        assert name in dir(tacit)
    assert tacit.__version__ == version("tacit")
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = tacit.trian


def test_it_is_the_command_line_too() -> None:
    assert python("-m", "tacit", "--version").strip() == f"tacit {tacit.__version__}"


def test_statements_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        main(["train", "--data", "digits-odd-even", "--rounds", "2", "--delta", "1e-5", "--name", "a"]) == 0
    )
    path = tmp_path / "runs" / "a" / "statement.json"
    statement = tacit.verify(path)
    assert isinstance(statement.guarantees[0], tacit.Guarantee)
    path.write_text(
        path.read_text(encoding="utf-8").replace('"epsilon": 2', '"epsilon": 1', 1), encoding="utf-8"
    )
    with pytest.raises(VerificationError, match=r"statement\.json is refused"):
        tacit.verify(str(path))
