"""Forks roles of a federation: each is a process of its own, and starts without importing anything again.

    python -m tests.federation.deployed.nursery

reads one line of JSON at a time: `{"start": ["silo", "--config", ...], "log": file}` answers the pid of a
`tacit silo --config ...`, `{"reap": pid, "seconds": s}` its exit code when it has ended, or null. What is
left when nobody is there to read it any more is killed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import time

from tacit import cli
from tacit.cli import app

LOADED = (
    *("tacit.federation.network.remote", "tacit.federation.network.rounds", "tacit.reports"),
    *("tacit.jobs.deployed.server_role", "tacit.jobs.deployed.shuffler_role"),
    *("tacit.jobs.deployed.silo_job", "tacit.jobs.deployed.own_model"),
    *("httpcore", "httptools", "uvloop", "anyio.streams", "stringprep", "pyarrow.pandas_compat"),
)
"""What roles import besides, in most of their time: it is there before the first fork."""
_LOOK = 0.005


def start(words: list[str], log: str) -> int:
    """Fork a command, whose words go to a file; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, out)):
            os.dup2(source, number)
        code = cli.main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def reap(pid: int, seconds: float) -> int | None:
    """Return the exit code of a child, negative for a signal; None if it runs on."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(_LOOK)


def main() -> None:
    """Do what is asked until the end of the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end this process
    for name in LOADED:
        importlib.import_module(name)
    app.command()
    gc.freeze()  # or every fork would copy what its collector looks at
    alive: set[int] = set()
    try:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for line in sys.stdin:
            asked = json.loads(line)
            if "start" in asked:
                pid = start(asked["start"], asked["log"])
                alive.add(pid)
                answer: int | None = pid
            else:
                answer = reap(asked["reap"], asked["seconds"])
                if answer is not None:
                    alive.discard(asked["reap"])
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
