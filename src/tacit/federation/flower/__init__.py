"""Silos behind Flower: a relay and a server job for its deployment, virtual silos for its simulation.

Needs the extra `tacit[flower]`. Flower finds the two apps here by reading this file, so that they are plain
assignments.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit.federation.flower.environment import prepare_for_flower

prepare_for_flower()

from flwr.clientapp import ClientApp  # noqa: E402 - Flower reads the environment when it is imported
from flwr.serverapp import ServerApp  # noqa: E402

from tacit.federation.flower.apps import relay, serve  # noqa: E402
from tacit.federation.flower.messages import QUERY  # noqa: E402

if TYPE_CHECKING:
    from tacit.federation.flower.bundle import write_bundle
    from tacit.federation.flower.channel import FlowerChannel, by_key, by_name
    from tacit.federation.flower.simulation import FlowerFederation

_HOMES = {
    "FlowerChannel": "channel",
    "FlowerFederation": "simulation",
    "by_key": "channel",
    "by_name": "channel",
    "write_bundle": "bundle",
}

__all__ = [
    "FlowerChannel",
    "FlowerFederation",
    "by_key",
    "by_name",
    "client_app",
    "server_app",
    "write_bundle",
]

client_app = ClientApp()
client_app.query(QUERY)(relay)

server_app = ServerApp()
server_app.main()(serve)


if not TYPE_CHECKING:  # the relay is a process of its own for every message, and needs none of these

    def __getattr__(name: str) -> Any:
        """Import a name when it is first used."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        return globals()[name]
