"""The ways from a server to its silos: how much may come in by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tacit.federation.network.bodies import LONGEST_REST
from tacit.federation.network.channel import Channel
from tacit.jobs.deployed import transports
from tacit.jobs.deployed.server_role import ServerRole
from tacit.jobs.deployed.transports import longest_reply
from tests.jobs.deployed.world import NAMES, consent, founded, server_config, silos_of


class Weighing:
    """A channel that remembers the longest reply."""

    def __init__(self, inner: Channel) -> None:
        self._inner, self.longest = inner, 0

    def present(self) -> set[str]:
        return self._inner.present()

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        for name, data in self._inner.exchange(requests, deadline=deadline):
            self.longest = max(self.longest, len(data))
            yield name, data


@pytest.mark.parametrize(
    ("trust", "algorithm"),
    [
        ("local", "minibatch"),
        ("local", "local"),
        ("local", "sign-vote"),
        ("local", "ftrl"),
        ("central", "ftrl"),
    ],
)
def test_a_hub_takes_no_more_than_the_plan_can_need(
    trust: str, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = founded(tmp_path, trust=trust, algorithm=algorithm)
    for name in NAMES:
        consent(fed, name)
    role = ServerRole(server_config(fed))
    most = longest_reply(role.plan, role.roster.sizes)
    assert LONGEST_REST < most < 2 * LONGEST_REST
    monkeypatch.setattr(transports, "LONGEST_REST", 2**13)  # so that answers decide
    with silos_of(fed) as channel:
        weighing = Weighing(channel)
        role.run(weighing)
    assert 0 < weighing.longest <= longest_reply(role.plan, role.roster.sizes)
