"""Many rounds in which all die again and again: the same model, and each ledger charged once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from tacit.federation import Measure, Plan, Step, with_honest
from tacit.federation.network.channel import LocalChannel
from tacit.means import BinomialMean
from tacit.privacy import TrustModel
from tests.federation.network.deployed_world import SteadySilo, World, whole_run
from tests.federation.world import DELTA, DIM, GRID, RADIUS, STATISTICS, Rows, mean_of, plan_of, rows

SIZES = (8, 20, 13)


class DeadError(BaseException):
    """The server's process ends: nothing catches it."""


class Grim:
    """A channel of silos that die before or after they answer; now and then the server itself dies."""

    def __init__(self, world: World, life: int) -> None:
        self._world, self._life, self._rng = world, life, np.random.default_rng([11, life])
        self._inner = LocalChannel({name: self._mortal(name) for name in world.names})
        self.deaths = dict.fromkeys((*world.names, "server", "shuffler"), 0)

    def close(self) -> None:
        self._inner.close()

    def present(self) -> set[str]:
        return self._inner.present()

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        self._server_dies()
        try:
            for one in self._inner.exchange(requests, deadline=deadline):
                yield one
                self._server_dies()
        finally:  # silos have sent, and what they have sent is gone
            if self._world.shuffling is not None and self._rng.random() < 1 / 10:
                self.deaths["shuffler"] += 1
                self._world.kill_shuffler()

    def _server_dies(self) -> None:
        if self._rng.random() < 1 / 40:
            self.deaths["server"] += 1
            raise DeadError

    def _mortal(self, name: str) -> Callable[[bytes], bytes]:
        rng = np.random.default_rng([self._world.names.index(name), self._life])

        def handle(request: bytes) -> bytes:
            before, after = rng.random(2) < 1 / 25
            if before:
                self.deaths[name] += 1
                self._world.kill(name)
                raise ConnectionError
            reply = self._world.service(name).handle(request)
            if after:
                self.deaths[name] += 1
                self._world.kill(name)
                raise ConnectionError
            return reply

        return handle


def plan_under(trust: str, rounds: int) -> Plan:
    if trust == "local":
        return plan_of(mean_of(GRID), parties=3, rounds=rounds)
    mean = BinomialMean(dim=DIM, noise_bits=90, resolution=4)
    kind = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=RADIUS),))
    steps = with_honest(((kind, rounds),), SIZES, n_min=3, colluding=0)
    return Plan(steps=steps, parties=3, trust=TrustModel.SHUFFLE, delta=DELTA, n_min=3)


@pytest.mark.parametrize(("trust", "rounds"), [("local", 40), ("shuffle", 25)])
def test_whoever_dies_the_model_and_the_price_are_those_of_a_quiet_run(
    trust: str, rounds: int, tmp_path: Path
) -> None:
    plan = plan_under(trust, rounds)
    quiet, stormy = World(plan, tmp_path / "quiet", keeps=False), World(plan, tmp_path / "stormy")
    expected = whole_run(quiet.begin(), rounds)
    quiet.close()
    lives, w = 0, None
    deaths: dict[str, int] = {}
    while w is None:
        lives += 1
        grim = Grim(stormy, lives)
        grim.deaths |= deaths
        try:
            w = whole_run(stormy.begin(grim, deadline=20.0), rounds)
        except DeadError:
            pass
        finally:
            grim.close()
            deaths = grim.deaths
    np.testing.assert_array_equal(w, expected)
    stormy.close()
    assert lives >= 1
    assert min(many for who, many in deaths.items() if trust == "shuffle" or who != "shuffler") >= 1
    silos = [
        SteadySilo(Rows(rows(k, n)), STATISTICS, trusts_shuffler=True, rng=np.random.default_rng(0))
        for k, n in enumerate(SIZES)
    ]
    assert stormy.spent() == [silo.consider(plan).epsilon for silo in silos]
