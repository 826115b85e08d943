"""The ways from a server to its silos."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Final

from tacit.federation import Plan
from tacit.federation.answers import answer_bytes
from tacit.federation.network.bodies import LONGEST_REST
from tacit.federation.network.certificates import check_certificate
from tacit.federation.network.channel import Channel
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.status_page import status_routes
from tacit.jobs.deployed.server_role import ServerRole
from tacit.privacy import TrustModel

__all__ = ["hub_of", "longest_reply"]

_AROUND: Final = 2**16
"""Bytes around an answer, names and signature among them."""


@contextlib.contextmanager
def hub_of(role: ServerRole) -> Iterator[Channel]:
    """Serve the hub that silos poll, while the block runs.

    Raises:
        AuthenticationError: The certificate has expired.
        TacitError: It cannot be read, or nobody can listen at the address.
    """
    config = role.config
    check_certificate(config.certificate, now=dt.datetime.now(dt.UTC))
    longest = longest_reply(role.plan, role.roster.sizes)
    hub = Hub(role.roster, longest=longest, routes=status_routes(role.progress))
    role.channel = hub
    with serving(
        hub,
        host=config.host,
        port=config.port,
        certificate=config.certificate,
        key=config.certificate_key,
    ):
        yield hub


def longest_reply(plan: Plan, sizes: tuple[int, ...]) -> int:
    """Return how many bytes a reply to a server's requests about one plan may have.

    What may be sent at all is half a gigabyte: a few silos that send as much would fill the server's memory.

    Args:
        plan: All that is asked.
        sizes: Public number of units of each silo.
    """
    answers = [0]
    if plan.trust is not TrustModel.SHUFFLE:  # there answers go elsewhere
        for step, _ in plan.kinds:
            point = 8 * step.measures[0].estimator.dim  # where a walk ended, or a mean with correlated noise
            answers.append(point + answer_bytes(step, max(sizes)))
    return max(LONGEST_REST, *answers) + _AROUND
