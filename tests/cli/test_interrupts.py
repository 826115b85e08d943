"""Ctrl-C and SIGTERM: what was paid for comes out, and what did not come out was not paid for."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tacit.means
from tacit.cli import main
from tacit.cli.interrupts import Stopped, say_when_stopped, uninterrupted
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget
from tacit.voting import NoiseFunction

STOPS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_waits_until_what_was_paid_for_is_out(number: signal.Signals) -> None:
    done, before = [], signal.getsignal(number)

    def pay() -> None:
        with uninterrupted():
            signal.raise_signal(number)
            done.append("out")

    with pytest.raises(KeyboardInterrupt):
        pay()
    assert done == ["out"]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", STOPS)
def test_a_stopped_command_says_its_lines(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    def explain() -> dict[str, str]:
        signal.raise_signal(signal.SIGINT)  # once more, by who is in a hurry
        return {"tacit": "interrupted.", "spent": "epsilon 1\nof x"}

    before = signal.getsignal(number)
    with pytest.raises(Stopped), say_when_stopped(explain):
        signal.raise_signal(number)
    assert capsys.readouterr().err == "tacit: interrupted.\nspent: epsilon 1 of x\n"
    assert signal.getsignal(number) is before


def test_threads_other_than_the_main_one_are_left_alone() -> None:
    def work() -> None:
        with say_when_stopped(dict), uninterrupted():
            done.append(True)

    done: list[bool] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "t.ledger"
    Ledger.create(path, limit=PrivacyBudget(5.0, 1e-2), neighbours=Neighbours()).close()
    return path


def runs(path: Path) -> int:
    with Ledger.open(path) as ledger:
        return len(ledger.entries())


def stop_when(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    """Press Ctrl-C whenever a function is called."""
    real: Callable[..., object] = getattr(owner, name)

    def stopped(*arguments: object, **keywords: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **keywords)

    monkeypatch.setattr(owner, name, stopped)


def test_a_mean_is_paid_for_when_it_leaves_and_leaves_when_it_is_paid_for(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ledger.with_name("t.csv")
    table.write_text("age\n" + "\n".join(str(20 + k) for k in range(30)) + "\n")
    bounds = ["--columns", "age", "--lower", "0", "--upper", "100", "--epsilon", "1"]
    arguments = ["mean", str(table), *bounds, "--json"]
    with monkeypatch.context() as early:
        stop_when(early, tacit.means, "column_means")
        assert main(arguments) == 130
    assert runs(ledger) == 0
    assert capsys.readouterr().out == ""
    stop_when(monkeypatch, Ledger, "reserving")
    assert main(arguments) == 130
    assert runs(ledger) == 1
    assert json.loads(capsys.readouterr().out)["epsilon"] == pytest.approx(1.0)


def test_published_votes_are_paid_for_when_they_leave_and_leave_when_they_are_paid_for(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noise, votes, out = (ledger.with_name(name) for name in ("noise.json", "votes.npy", "bits.npy"))
    design = ["vote", "design", "--teachers", "5", "--epsilon", "0.1", "--m", "3", "--out", str(noise)]
    assert main(design) == 0
    np.save(votes, np.ones((4, 5), dtype=np.uint8))
    arguments = ["vote", "release", str(noise), "--votes", str(votes), "--out", str(out)]
    arguments += ["--ledger", str(ledger)]
    with monkeypatch.context() as early:
        stop_when(early, NoiseFunction, "release_counts")
        assert main(arguments) == 130
    assert (runs(ledger), out.exists()) == (0, False)
    stop_when(monkeypatch, Ledger, "reserving")
    assert main(arguments) == 130
    assert runs(ledger) == 1
    assert np.load(out).shape == (4,)


class Full(io.StringIO):
    """An output that takes nothing, as a full disk does."""

    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_cannot_be_written_is_not_paid_for_or_is_said_to_stay_spent(
    ledger: Path, form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, votes, noise, out = (ledger.with_name(name) for name in ("t.csv", "v.npy", "g.json", "bits.npy"))
    table.write_text("age\n" + "\n".join(str(20 + k) for k in range(30)) + "\n")
    np.save(votes, np.ones((1, 3), dtype=np.uint8))
    design = ["vote", "design", "--teachers", "3", "--epsilon", "0.25", "--m", "1", "--out", str(noise)]
    assert main(design) == 0
    files = ["--votes", str(votes), "--out", str(out)]
    commands = [
        ["mean", str(table), "--columns", "age", "--lower", "0", "--upper", "100", "--epsilon", "1", *form],
        ["vote", "release", str(noise), *files, "--teachers-are", "fresh", "--ledger", str(ledger), *form],
    ]
    with Path("/dev/full").open("w") as full, monkeypatch.context() as patched:
        for output in (None, full):
            patched.setattr(sys, "stdout", output)
            for command in commands:
                assert main(command) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert all("standard output: cannot be written" in line and "nothing was spent" in line for line in said)
    assert (runs(ledger), out.exists()) == (0, False)
    monkeypatch.setattr(sys, "stdout", Full())
    for number, command in enumerate(commands, start=1):
        assert main(command) == 1
        spent, error = capsys.readouterr().err.splitlines()
        assert spent.startswith("spent: epsilon ")
        assert str(ledger) in spent
        assert "It stays spent" in spent
        assert "No space left on device" in error
        assert runs(ledger) == number
