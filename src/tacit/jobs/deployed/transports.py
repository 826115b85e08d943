"""The ways from a server to its silos."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator

from tacit.federation.network.certificates import check_certificate
from tacit.federation.network.channel import Channel
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.status_page import status_routes
from tacit.jobs.deployed.server_role import ServerRole

__all__ = ["hub_of"]


@contextlib.contextmanager
def hub_of(role: ServerRole) -> Iterator[Channel]:
    """Serve the hub that silos poll, while the block runs.

    Raises:
        AuthenticationError: The certificate has expired.
        TacitError: It cannot be read, or nobody can listen at the address.
    """
    config = role.config
    check_certificate(config.certificate, now=dt.datetime.now(dt.UTC))
    hub = Hub(role.roster, routes=status_routes(role.progress))
    role.channel = hub
    with serving(
        hub,
        host=config.host,
        port=config.port,
        certificate=config.certificate,
        key=config.certificate_key,
    ):
        yield hub
