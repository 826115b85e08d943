"""A whole federation on this machine: every role a process of its own, on loopback, and none left behind."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tacit.errors import TacitError, one_line
from tacit.federation.network.consent import Consents
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.network.silo_service import CONSENT_FILE
from tacit.jobs.config import JobConfig
from tacit.jobs.deployed.founding import Founded, Founding, found

__all__ = ["PARENT", "DemoFederation", "Shows", "change_config", "demo_federation", "free_ports"]

PARENT: Final = "TACIT_PARENT"
"""Environment variable with the id of a process without which a role ends."""

Shows = Literal["logs", "progress", "nothing"]

_LOOK: Final = 0.05
_ENDS: Final = 15.0
_PATIENCE: Final = 300.0


@dataclass
class DemoFederation:
    """Processes of one federation.

    Attributes:
        founded: What they run.
        shows: What is seen while they run: what all of them say, how far the server is, or nothing.
    """

    founded: Founded
    shows: Shows = "progress"
    _said: dict[str, Path] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def pids(self) -> dict[str, int]:
        """Ids of the processes that run, by role."""
        return {name: one.pid for name, one in self._processes.items() if one.poll() is None}

    def start(self, name: str, *words: str, output: int | Any = subprocess.DEVNULL) -> None:
        """Start a role.

        Args:
            name: Of the role, and of its configuration.
            words: What it is called with besides.
            output: Where what it prints goes.
        """
        role = name if name in ("server", "shuffler") else "silo"
        command = [sys.executable, "-m", "tacit", role, "--config", f"{self.founded.folder / name}.toml"]
        self._said[name] = self.founded.folder.parent / f"{name}.log"
        seen = self.shows == "logs" or (self.shows == "progress" and name == "server")
        with self._said[name].open("wb") as said:
            self._processes[name] = subprocess.Popen(  # noqa: S603
                [*command, *words, *([] if self.shows == "logs" else ["--quiet"])],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if seen else said,
                env={**os.environ, PARENT: str(os.getpid())},
                start_new_session=True,  # Ctrl-C is for whoever started all of them
            )

    def run(self, *words: str) -> str:
        """Start everybody, wait for the server, and return what it prints.

        Args:
            words: What the server is called with besides.

        Raises:
            TacitError: The server failed, or another role ended before it.
        """
        if self.founded.job.trust == "shuffle":
            self.start("shuffler")
        with tempfile.TemporaryFile() as output:
            self.start("server", *words, output=output)
            for one in self.founded.roster.silos:
                self.start(one.name)
            self.wait()
            output.seek(0)
            return output.read().decode()

    def wait(self) -> None:
        """Wait for the server; errors as `run`."""
        while True:
            for name, one in self._processes.items():
                code = one.poll()
                if code is None or (name == "server" and code == 0):
                    continue
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                last = self._said[name].read_text(encoding="utf-8", errors="replace").strip()
                why = f": {one_line(last.splitlines()[-1])}" if last else "."
                raise TacitError(f"the demo is over: the {_called(name)} ended {how}{why}")
            if self._processes["server"].poll() == 0:
                return
            time.sleep(_LOOK)

    def end(self) -> None:
        """End every process that was started, by its id."""
        for one in self._processes.values():
            if one.poll() is None:
                one.terminate()
        until = time.monotonic() + _ENDS
        for one in self._processes.values():
            try:
                one.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


@contextlib.contextmanager
def demo_federation(
    job: JobConfig, silos: int, *, out: Path, shows: Shows = "progress"
) -> Iterator[DemoFederation]:
    """Found a federation on loopback in a folder that goes with the block, and give its silos' consent.

    Args:
        job: Of a public data set.
        silos: Their number.
        out: Folder of run folders; a name that is taken there gets a number.
        shows: As of `DemoFederation`.

    Yields:
        The federation, of which nothing runs yet; whatever was started is ended with the block.
    """
    job = msgspec.structs.replace(job, name=_free_name(out, job.run))
    ports = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="tacit-federation-") as folder:
        founding = Founding(
            name=job.run,
            job=job,
            silos=[(f"silo-{k}", 1) for k in range(1, silos + 1)],
            server=f"https://127.0.0.1:{ports[0]}",
            shuffler=f"https://127.0.0.1:{ports[1]}",
        )
        founded = found(founding, Path(folder) / "fed", now=dt.datetime.now(dt.UTC))
        change_config(founded.folder / "server.toml", {"out": str(out.absolute()), "patience": _PATIENCE})
        _consent(founded)
        federation = DemoFederation(founded, shows)
        try:
            yield federation
        finally:
            federation.end()


def change_config(path: Path, values: Mapping[str, Any]) -> None:
    """Change fields of a configuration."""
    path.write_bytes(msgspec.toml.encode(msgspec.toml.decode(path.read_bytes()) | dict(values)))


def _consent(founded: Founded) -> None:
    """Give the consent of every silo to the one plan: here all of them have one owner."""
    plan, trust = founded.prepared.plan, founded.job.trust
    limit = founded.job.settings.budget if trust not in ("central", "none") else None
    for one in founded.roster.silos:
        state = make_private_folder(founded.folder / one.name / "state")
        Consents(state / CONSENT_FILE).give(
            founded.roster.federation, plan.digest(), founded.job.run, limit=limit
        )


def _free_name(out: Path, name: str) -> str:
    """Return a name of a run that is not there yet."""
    names = itertools.chain([name], (f"{name}-{k}" for k in itertools.count(2)))
    return next(one for one in names if not (out / one).exists())


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in places]


def _called(name: str) -> str:
    """Return how a message calls a role."""
    return name if name in ("server", "shuffler") else f"silo {name!r}"
