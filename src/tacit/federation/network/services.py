"""Services that listen: an app behind the TLS of the federation's own authority, in this process."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from tacit.errors import TacitError
from tacit.federation.network.certificates import server_context

__all__ = ["QuietServer", "app_running", "listening", "tls_of"]

_STARTS = 30.0
_ENDS = 15.0
_IDLE = 60.0  # seconds, and at most twice as many, for which a connection may be there without a request


class QuietServer(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


def tls_of(config: uvicorn.Config, certificate: Path | str, key: Path | str) -> uvicorn.Config:
    """Give a service the certificate of its role, and TLS 1.3 only.

    Raises:
        ParameterError: A file cannot be read.
        AuthenticationError: The key is another one's or readable by others.
    """
    context = server_context(certificate, key)
    config.load()
    config.ssl = context
    return config


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on an address before anything else is done.

    Raises:
        TacitError: The address is taken, or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.create_server((host, port), family=family)
    except OSError as error:
        raise TacitError(f"nothing can listen on {host}:{port}: {error.strerror or error}.") from error
    with found:
        yield found


@contextlib.contextmanager
def app_running(config: uvicorn.Config, place: socket.socket) -> Iterator[None]:
    """Serve an app in a thread of its own while the block runs.

    Args:
        config: How, with its TLS.
        place: Where.

    Raises:
        TacitError: It does not start.
    """
    if not config.loaded:
        config.load()
    config.http_protocol_class = _impatient(config.http_protocol_class)
    server = QuietServer(config)
    thread = Thread(target=server.run, kwargs={"sockets": [place]}, name="service", daemon=True)
    thread.start()
    waited = 0.0
    while thread.is_alive() and not server.started and waited < _STARTS:
        thread.join(0.01)
        waited += 0.01
    try:
        if not server.started:
            raise TacitError("the service did not start.")
        yield
    finally:
        server.should_exit = True
        thread.join(_ENDS)


def _impatient(protocol: Any) -> Any:
    """Return a protocol of uvicorn that ends connections without a request.

    Uvicorn waits for the first one, and for the end of a head, for ever: whoever opens connections and says
    nothing, or one letter, would leave none for the parties.
    """

    class Impatient(protocol):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.before: Any = None
            self.loop.call_later(_IDLE, self.look)

        def look(self) -> None:
            """Close the connection if there was no request since the last look, and none is answered."""
            if self.transport.is_closing():
                return
            if self.cycle is self.before and (self.cycle is None or self.cycle.response_complete):
                self.transport.close()
                return
            self.before = self.cycle
            self.loop.call_later(_IDLE, self.look)

    return Impatient
