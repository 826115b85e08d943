"""Files that a command will write are tried before it computes or spends, and stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.cli.files import check_file, make_folder
from tacit.errors import ParameterError


def test_a_file_that_can_be_written_stays_as_it_is(tmp_path: Path) -> None:
    check_file("out", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").write_text("kept")
    check_file("out", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "kept"


def test_a_pipe_is_not_opened_before_its_time(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_file("out", tmp_path / "pipe")


@pytest.mark.parametrize("bad", [".", "no/file", "n" * 300, "/proc/file", "file/below", "nul\0"])
def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match=r"^out must be "):
        check_file("out", tmp_path / bad)


@pytest.mark.parametrize("bad", ["n" * 300, "/proc/folder", "file", "file/below", "nul\0"])
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="out must be something that can be written, got "):
        make_folder("out", tmp_path / bad)
    make_folder("out", tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


LONG = ["--plot", "/proc/x.png"]
COMMANDS = {
    "audit": ["audit", *LONG],
    "audit few runs": ["audit", "--plot", "x.png", "--runs", "99"],
    "plan": ["plan", "mean", "--n", "100", "--dim", "4", "--epsilon", "1", *LONG],
    "vote plot": ["vote", "plot", "missing.json", "--out", "/proc/x.png"],
    "vote design": ["vote", "design", "--teachers", "5", "--epsilon", "1", "--m", "2", "--out", "/proc/x"],
    "reproduce": ["reproduce", "vote-simulation", "--quick", "--out", "/proc/x"],
}


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
def test_commands_that_compute_long_look_at_their_files_first(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    said = "runs must be a whole number >= 100" if "99" in argv else "must be something that can be written"
    assert said in captured.err
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_could_not_be_written_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "votes.npy", np.ones((4, 5), dtype=np.uint8))
    noise, ledger = tmp_path / "noise.json", tmp_path / "l.ledger"
    design = ["vote", "design", "--teachers", "5", "--epsilon", "0.1", "--m", "3", "--out", str(noise)]
    assert main(design) == 0
    assert main(["ledger", "create", str(ledger), "--epsilon", "5", "--delta", "0.01"]) == 0
    release = ["vote", "release", str(noise), "--votes", str(tmp_path / "votes.npy"), "--ledger", str(ledger)]
    assert main([*release, "--out", "/proc/bits.npy"]) == 2
    capsys.readouterr()
    assert main(["ledger", "show", str(ledger), "--json"]) == 0
    assert '"entries": []' in capsys.readouterr().out
