"""Flower's SuperLink and SuperNodes on this machine, for demonstrations and tests; nothing outlives it.

TLS and the authentication of nodes are on, as between machines. What belongs to several machines and several
users there - a relay that can read neither key nor data - is one user's here.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.request import urlopen

import tomli_w
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tacit.errors import ParameterError, TacitError, check_name, shown
from tacit.federation.flower.bundle import write_bundle
from tacit.federation.flower.environment import QUIET
from tacit.federation.flower.processes import Process, descendants, end_processes

__all__ = ["LoopbackFlower", "ServerTls"]

_HOST: Final = "127.0.0.1"
_CONNECTION: Final = "loopback"
_START: Final = 60.0
"""Seconds that a process has to come up."""
_POLL: Final = 1.0
"""Seconds between two looks at a run; each of them starts Flower's command line."""
_LOGGED: Final = 2000
"""Characters of a log that an error quotes."""


_WITH_PARENT: Final = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Becomes a program that is asked to end when who started it is killed: PR_SET_PDEATHSIG of prctl(2)."""


@dataclass(frozen=True)
class ServerTls:
    """Files of a TLS server that is reached as 127.0.0.1.

    Attributes:
        authority: Certificate of the authority that clients trust.
        certificate: Of the server, with that address.
        key: Of the certificate.
    """

    authority: Path
    certificate: Path
    key: Path


class LoopbackFlower:
    """A SuperLink with one SuperNode per silo, from `with` to its end.

    Args:
        folder: New or empty, for keys, databases and logs.
        tls: Of the SuperLink.
        sockets: By name of the silo, the Unix socket of its service.
        environment: Of the processes, besides that of this one.
    """

    def __init__(
        self,
        folder: Path,
        tls: ServerTls,
        sockets: Mapping[str, Path],
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self._tls = Path(folder).absolute(), tls
        self._sockets = {check_name("silo", name): Path(path).absolute() for name, path in sockets.items()}
        bin_folder = str(Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            **(environment or {}),
            **QUIET,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_HOME": str(self.folder / "flwr"),
        }
        self._port = _free_port()
        self._link: subprocess.Popen[bytes] | None = None
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        self._runs: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_node(self, silo: str) -> None:
        """Start the SuperNode of a silo, or start it again."""
        if silo not in self._sockets:
            raise ParameterError(f"silo must be one of {', '.join(self._sockets)}, got {shown(silo)}.")
        self._nodes[silo] = self._popen(
            f"node-{silo}",
            "flower-supernode",
            *("--superlink", f"{_HOST}:{self._port}", "--root-certificates", str(self._tls.authority)),
            *("--auth-supernode-private-key", str(self._key(silo))),
            *("--host", _HOST, "--port", str(_free_port())),
            *("--node-config", f"socket={json.dumps(str(self._sockets[silo]))}"),
        )

    def stop_node(self, silo: str) -> None:
        """End the SuperNode of a silo as an operator does; it can be started again at once."""
        _end([self._nodes.pop(silo)])

    def run(self, job: str, config: Path, *, deadline: float, bundle: Path | None = None) -> None:
        """Run a server's job on the SuperLink, and wait for its end.

        Args:
            job: `module:function`, as `tacit.federation.flower.apps.Job`.
            config: What the job gets.
            deadline: Seconds.
            bundle: Another one than tacit's.

        Raises:
            TacitError: The job failed, or has not ended by then; its log is in the message.
        """
        self.wait(self.start(job, config, bundle=bundle), deadline=deadline)

    def start(self, job: str, config: Path, *, bundle: Path | None = None) -> str:
        """Start a server's job; return the run's number."""
        chosen = f"job={json.dumps(job)} config={json.dumps(str(Path(config).absolute()))}"
        said = self._flwr("run", str(bundle or self.folder / "bundle"), _CONNECTION, "--run-config", chosen)
        run = str(said["run-id"])
        self._runs.add(run)
        return run

    def wait(self, run: str, *, deadline: float) -> None:
        """Wait for the end of a job; errors as `run`."""
        end = time.monotonic() + deadline
        while not (status := self._status(run)).startswith("finished"):
            if time.monotonic() > end:
                raise TacitError(f"the run on Flower has not ended after {deadline:g} s: {self.log(run)}")
            time.sleep(_POLL)
        self._runs.discard(run)
        if not status.endswith("completed"):
            raise TacitError(f"the run on Flower ended as {shown(status)}: {self.log(run)}")

    def log(self, run: str) -> str:
        """Return the end of what a server's job has written."""
        return self._command("log", run, _CONNECTION, "--show").stdout[-_LOGGED:]

    def close(self) -> None:
        """Stop runs and end every process that was started, with all that these have started."""
        for run in list(self._runs):  # a SuperLink that ends in the middle of a run leaves it alive
            try:
                self._flwr("stop", run, _CONNECTION)
            except (TacitError, subprocess.TimeoutExpired):
                continue
        self._runs.clear()
        _end(self._nodes.values())
        self._nodes.clear()
        if self._link is not None:
            _end([self._link])
            self._link = None

    def _start(self) -> None:
        """Start the SuperLink, register the nodes' keys, start the nodes."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.folder / "flwr").mkdir(mode=0o700)
        address = {"address": f"{_HOST}:{self._port}", "root-certificates": str(self._tls.authority)}
        (self.folder / "flwr" / "config.toml").write_text(
            tomli_w.dumps({"superlink": {_CONNECTION: address}}), encoding="utf-8"
        )
        write_bundle(self.folder / "bundle")
        self._link = self._popen(
            "link",
            "flower-superlink",
            *("--host", _HOST, "--port", str(self._port), "--database", str(self.folder / "link.db")),
            *("--ssl-ca-certfile", str(self._tls.authority), "--ssl-certfile", str(self._tls.certificate)),
            *("--ssl-keyfile", str(self._tls.key), "--enable-supernode-auth"),
            "--disable-runtime-dependency-installation",
        )
        self._wait_for_link()
        for silo in self._sockets:
            public = self._make_key(silo)
            self._flwr("supernode", "register", str(public), _CONNECTION, "--name", silo)
            self.start_node(silo)

    def _wait_for_link(self) -> None:
        """Return when the SuperLink answers."""
        context = ssl.create_default_context(cafile=str(self._tls.authority))
        end = time.monotonic() + _START
        while True:
            try:
                with urlopen(f"https://{_HOST}:{self._port}/health", context=context, timeout=5):
                    return
            except (URLError, OSError):
                if time.monotonic() > end or self._link is None or self._link.poll() is not None:
                    link = (self.folder / "link.out").read_text(encoding="utf-8")
                    raise TacitError(f"Flower's SuperLink does not start: {link[-_LOGGED:]}") from None
                time.sleep(0.1)

    def _make_key(self, silo: str) -> Path:
        """Write the key of a SuperNode, in the form that Flower reads; return the path of its public half."""
        key, path = ec.generate_private_key(ec.SECP384R1()), self._key(silo)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        public = path.with_suffix(".pub")
        public.write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
        return public

    def _key(self, silo: str) -> Path:
        """Return where the key of a silo's node is."""
        return self.folder / f"node-{list(self._sockets).index(silo)}.key"

    def _status(self, run: str) -> str:
        """Return what the SuperLink says of a run."""
        for one in self._flwr("list", _CONNECTION).get("runs", []):
            if str(one.get("run-id")) == run:
                return str(one.get("status"))
        return "unknown"

    def _flwr(self, *arguments: str) -> dict[str, Any]:
        """Return what Flower's command line answers, as JSON."""
        done = self._command(*arguments, "--format", "json")
        try:
            said = json.loads(done.stdout)
        except ValueError:
            said = {}
        if done.returncode != 0 or said.get("success") is False:
            raise TacitError(f"flwr {arguments[0]} failed: {done.stdout[-_LOGGED:]} {done.stderr[-_LOGGED:]}")
        return dict(said)

    def _command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Flower's command line."""
        return subprocess.run(  # noqa: S603 - our own arguments
            [_program("flwr"), *arguments],
            env=self._environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_START,
            check=False,
        )

    def _popen(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program in the folder; what it writes goes to a file."""
        with (self.folder / f"{name}.out").open("ab") as out:
            return subprocess.Popen(  # noqa: S603 - our own arguments
                [sys.executable, "-c", _WITH_PARENT, str(os.getpid()), _program(program), *arguments],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for who started us; we end them in order
            )


def _end(started: Any) -> None:
    """End processes and all that they have started."""
    started = list(started)
    family: set[Process] = set()
    for one in started:
        family |= descendants(one.pid)
        if one.poll() is None:
            one.send_signal(signal.SIGTERM)
    for one in started:
        try:
            one.wait(timeout=15)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()
    end_processes(family)


def _program(name: str) -> str:
    """Return the path of a program of this environment."""
    return str(Path(sys.executable).parent / name)


def _free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as one:
        one.bind((_HOST, 0))
        return int(one.getsockname()[1])
