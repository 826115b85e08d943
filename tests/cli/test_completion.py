"""Completion by the tab key: the scripts of the shells, and the words that they ask for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def tacit(*argv: str, **environment: str) -> str:
    """Return what `tacit` prints in a process of its own: completion ends the one that it runs in."""
    whole = {**os.environ, "SHELL": "/bin/bash", "COLUMNS": "100", **environment}
    code = "import sys; from tacit.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *argv]
    done = subprocess.run(command, env=whole, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o default -F _tacit_completion tacit"),
        ("zsh", "compdef _tacit_completion tacit"),
        ("fish", "complete --command tacit"),
    ],
)
def test_the_script_of_a_shell_asks_tacit_for_words(shell: str, line: str) -> None:
    script = tacit(_TACIT_COMPLETE=f"source_{shell}")
    assert any(text.startswith(line) for text in script.splitlines())
    assert f"_TACIT_COMPLETE=complete_{shell}" in script


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("tacit acc", ["account"]),
        ("tacit account shu", ["shuffle"]),
        ("tacit train --eps", ["--epsilon"]),
        ("tacit mean --uppe", ["--upper"]),
    ],
)
def test_commands_and_options_are_completed(typed: str, words: list[str]) -> None:
    place = str(typed.count(" "))
    found = tacit(_TACIT_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=place)
    assert found.split() == words


def test_installing_writes_the_script_into_the_home_folder(tmp_path: Path) -> None:
    said = tacit(
        "--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert "bash completion installed" in said
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "complete -o default -F _tacit_completion tacit" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
