"""The commands of a federation as people type them, with every role a process; nothing is left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.cli import main
from tacit.cli.forms import OUTPUTS
from tacit.jobs.deployed.demo import PARENT, free_ports

pytestmark = pytest.mark.deployed

SILOS = 3
LIMIT = 150.0
"""Seconds after which a process is stuck, on a machine that does other work too."""
TACIT = (sys.executable, "-m", "tacit")


@contextmanager
def started(*words: str, folder: Path, **given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside the test, which goes on to its end; it is killed with the block."""
    with (folder / f"{time.monotonic_ns()}.log").open("wb") as log:
        one = subprocess.Popen(  # noqa: S603
            [*TACIT, *words], cwd=folder, stderr=log, stdin=subprocess.DEVNULL, **given
        )
    try:
        yield one
    finally:
        if one.poll() is None:
            one.kill()
        one.wait()


def children_of(pid: int) -> list[int]:
    """Processes that a demo has started and that still run, by the mark that it leaves in them."""
    mark, found = f"{PARENT}={pid}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def wait_for(what: Any, *, seconds: float = LIMIT) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("not in time")


def ended(pid: int) -> bool:
    return not children_of(pid)


def test_the_demo_prints_what_training_prints_and_leaves_no_process(tmp_path: Path) -> None:
    words = ("federation", "demo", "--silos", str(SILOS), "--rounds", "3", "--json")
    with started(*words, folder=tmp_path, stdout=subprocess.PIPE) as demo:
        printed, _ = demo.communicate(timeout=LIMIT)
        assert demo.returncode == 0
        assert children_of(demo.pid) == []
    assert [log.read_text() for log in tmp_path.glob("*.log")] == [""]
    said = json.loads(printed)
    msgspec.convert(said, OUTPUTS["federation demo"])
    assert {"run", "data", "loss", "results", "notes"} < set(said)
    assert said["rounds"] == 3
    assert said["bytes_up"] > 0 < said["bytes_down"]
    assert said["data"]["silos"] == SILOS
    (one,) = said["results"]
    assert (one["trust"], one["rounds"]) == ("local", 3)
    assert one["accuracy"] > 0.7
    assert 1.5 < one["epsilon"] <= 2.0
    check(tmp_path / said["run"], tmp_path / said["run"] / "roster.toml")


def test_a_demo_of_sums_signs_both_prices(tmp_path: Path) -> None:
    words = ["--silos", "4", "--recover", "--n-min", "3", "--trust", "aggregate", "--colluding", "1"]
    words += ["--rounds", "3", "--json"]
    with started("federation", "demo", *words, folder=tmp_path, stdout=subprocess.PIPE) as demo:
        printed, _ = demo.communicate(timeout=LIMIT)
        assert demo.returncode == 0
    said = json.loads(printed)
    msgspec.convert(said, OUTPUTS["federation demo"])
    (one,) = said["results"]
    assert (one["trust"], one["rounds"]) == ("aggregate", 3)
    assert one["accuracy"] > 0.7
    assert 1.5 < one["epsilon"] <= 2.0 < one["epsilon_alone"]
    assert "up to 1 other party together" in one["guarantee"]
    check(tmp_path / said["run"], tmp_path / said["run"] / "roster.toml")


def check(run: Path, roster: Path) -> None:
    """A statement is signed; no guarantee of it can be edited."""
    words = ["account", "verify", "--keys", str(roster)]
    assert main([*words, str(run / "statement.json")]) == 0
    said = json.loads((run / "statement.json").read_text())
    said["guarantees"][0]["observer"] = "nobody at all"
    (run / "edited.json").write_text(json.dumps(said))
    assert main([*words, str(run / "edited.json")]) == 1
    (run / "edited.json").unlink()


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL", "a silo is killed"])
def test_a_demo_that_ends_early_leaves_no_process(how: str, tmp_path: Path) -> None:
    words = ("federation", "demo", "--silos", "2", "--rounds", "4000", "--logs")
    with started(*words, folder=tmp_path, stdout=subprocess.DEVNULL) as demo:
        pids = wait_for(lambda: len(found := children_of(demo.pid)) == 3 and found)
        if how == "a silo is killed":
            os.kill(max(pids), signal.SIGKILL)
            assert demo.wait(LIMIT) == 1
        else:
            wait_for(lambda: list(tmp_path.glob("runs/*/unfinished.txt")))
            demo.send_signal(getattr(signal, how))
            code = demo.wait(LIMIT)
            assert code == (-signal.SIGKILL if how == "SIGKILL" else 130)
        wait_for(lambda: ended(demo.pid), seconds=30.0)
    assert "resume" not in "".join(log.read_text() for log in tmp_path.glob("*.log"))


def test_every_role_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found, agree, start everybody, look, verify: one after another, as the README of the folder says."""
    fed, ports = tmp_path / "fed", free_ports(2)
    words = ["federation", "init", "--silos", str(SILOS), "--out", str(fed), "--trust", "shuffle"]
    words += ["--server", f"https://127.0.0.1:{ports[0]}", "--shuffler", f"https://127.0.0.1:{ports[1]}"]
    assert main([*words, "--name", "ward"]) == 0
    names = [f"silo-{k}" for k in range(1, SILOS + 1)]
    server = str(fed / "server.toml")
    capsys.readouterr()
    assert main(["federation", "status", "--config", server]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    for name in names:
        assert main(["silo", "check", "--config", str(fed / f"{name}.toml"), "--accept"]) == 0
    capsys.readouterr()
    with started("server", "--config", server, "--json", folder=tmp_path, stdout=subprocess.PIPE) as run:

        def seen() -> Any:
            code = main(["federation", "status", "--config", server, "--json"])
            text = capsys.readouterr().out
            return json.loads(text) if code == 0 else {}

        status = wait_for(seen)
        msgspec.convert(status, OUTPUTS["federation status"])
        assert (status["state"], status["done"]) == ("waiting", 0)
        assert [one["present"] for one in status["silos"]] == [False] * SILOS
        others = [started("shuffler", "--config", str(fed / "shuffler.toml"), folder=tmp_path)]
        others += [started("silo", "--config", str(fed / f"{name}.toml"), folder=tmp_path) for name in names]
        with ExitStack() as stack:
            roles = [stack.enter_context(one) for one in others]
            printed, _ = run.communicate(timeout=LIMIT)
            assert run.returncode == 0
            assert [one.poll() for one in roles] == [None] * len(roles)
            for one in roles:
                one.send_signal(signal.SIGTERM)
            assert [one.wait(30) for one in roles] == [0] * len(roles)
    said = json.loads(printed)
    assert said["results"][0]["accuracy"] > 0.7
    check(fed / "runs" / "ward", fed / "roster.toml")
    assert main(["federation", "status", "--config", server]) == 1
    assert main(["server", "--config", server]) == 2
    assert "holds this run, finished" in capsys.readouterr().err
    for name in names:
        assert main(["silo", "log", "--config", str(fed / f"{name}.toml"), "--verify"]) == 0
