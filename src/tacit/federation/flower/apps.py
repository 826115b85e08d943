"""What Flower starts: a relay at a silo, and at the server a job that talks through a channel.

The relay sees bytes and a socket, no data and no key: whoever operates Flower's SuperLink can run any code as
the relay's user, so a silo's service belongs to another user. It imports little, as Flower starts a process
for every message.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flwr.app import Context, Message

from tacit.errors import ParameterError
from tacit.federation.flower.messages import NO_SILO, bytes_of, content_of

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from tacit.federation.flower.channel import FlowerChannel

__all__ = ["RELAY_PATH", "Job", "relay", "serve"]

Job = Callable[["FlowerChannel", Path], None]
"""The server's job: it gets the channel and the path of its configuration, and writes its results itself."""

RELAY_PATH: Final = "/v1/request"
"""Where a silo's service takes requests."""
_LONGEST: Final = 2**30
"""Bytes of a reply: more than any that the wire format allows, less than fills a machine."""
_LONGEST_WAIT: Final = 3600.0
"""Seconds that a silo may compute; the server has a deadline of its own."""


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("silo", timeout=_LONGEST_WAIT)
        self._path = path

    def connect(self) -> None:
        """Connect to the silo's service."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def relay(message: Message, context: Context) -> Message:
    """Hand a request to the silo's service and its reply back, unread.

    The node's configuration names the socket: `socket="/run/tacit/silo.sock"`. Whatever goes wrong is told by
    the same few bytes: an exception's text would reach the server.
    """
    request, path = bytes_of(message.content), context.node_config.get("socket")
    reply = None
    if request is not None and isinstance(path, str):
        reply = _posted(path, request)
    return Message(content_of(NO_SILO if reply is None else reply), reply_to=message)


def _posted(path: str, request: bytes) -> bytes | None:
    """Return the service's reply, None where there is none."""
    connection = _UnixConnection(path)
    try:
        connection.request("POST", RELAY_PATH, request, {"Content-Type": "application/octet-stream"})
        response = connection.getresponse()
        reply = response.read(_LONGEST + 1)
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return reply if response.status == 200 and len(reply) <= _LONGEST else None


def serve(grid: Grid, context: Context) -> None:
    """Run the job that the run's configuration names.

    Raises:
        ParameterError: `job` or `config` is missing, or `job` names no function.
    """
    from tacit.federation.flower.channel import FlowerChannel

    job, config = (context.run_config.get(key) for key in ("job", "config"))
    if not isinstance(config, str) or not config:
        raise ParameterError(f"the run config must name the server's file as config, got {config!r}.")
    _named(job)(FlowerChannel(grid), Path(config))


def _named(job: object) -> Any:
    """Return the function `module:name`."""
    module, colon, name = str(job).partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"the run config names the job {job!r}, which cannot be imported.") from error
    if not callable(found):
        raise ParameterError(f"the run config must name a function as job='module:function', got {job!r}.")
    return found
