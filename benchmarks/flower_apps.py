"""What Flower starts for the benchmark of deployed rounds: our server's job, and a stock NumPy app."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

import tacit.federation.flower  # noqa: F401 - it switches reports off before Flower is imported
from tacit.federation import Measure, Plan, Step
from tacit.federation.flower.channel import FlowerChannel
from tacit.federation.flower.messages import QUERY, bytes_of, content_of
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster
from tacit.means import AdditiveMean, DiscreteGaussianNoise
from tacit.numerics import Array, IntArray

SILOS, ROWS, RADIUS = 4, 10, 1.0
DIM = 25_000  # float32: 100 kB
"""Coordinates of the model: 100 kB each way."""


@dataclass(frozen=True)
class Rows:
    """Units that are rows."""

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: IntArray) -> Self:
        return type(self)(self.values[index])


def difference(units: Rows, at: Mapping[str, Array]) -> Array:
    """The gradient of |w - x|^2 / 2."""
    return at["w"] - units.values


def plan(rounds: int) -> Plan:
    """Means of a 100 kB gradient under local trust."""
    mean = AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(3.0))
    step = Step(measures=(Measure(statistic="difference", estimator=mean, max_radius=RADIUS),))
    return Plan(steps=((step, rounds),), parties=SILOS, delta=1e-5)


def ours(channel: FlowerChannel, config: Path) -> None:
    """Run rounds through plan, wire, relay and silo services; write the seconds of each."""
    from tacit.federation.network.remote import RemoteFederation

    facts = json.loads(config.read_text(encoding="utf-8"))
    folder, w = Path(facts["folder"]), np.zeros(DIM, dtype=np.float32)
    roster, key = Roster.load(folder / "roster.toml"), SigningKey.load(folder / "server.key")
    opening = OpeningKey.load(folder / "opening.key")
    with_all(channel)
    ask = RemoteFederation(roster, key, channel, opening=opening).open(plan(facts["rounds"]))
    seconds = []
    for r in range(facts["rounds"]):
        start = time.monotonic()
        w = (w - 0.1 * ask(r, {"w": w}, (RADIUS,))[0]).astype(np.float32)
        seconds.append(time.monotonic() - start)
    Path(facts["out"]).write_text(json.dumps(seconds), encoding="utf-8")


def with_all(channel: FlowerChannel) -> None:
    """Wait for all nodes."""
    while len(channel.present()) < SILOS:
        time.sleep(0.1)


stock_client = ClientApp()


@stock_client.train()
def train(message: Message, context: Context) -> Message:
    """A step of NumPy gradient descent on a record that is made up."""
    (w,) = message.content.array_records["arrays"].to_numpy_ndarrays()
    rows = np.random.default_rng(context.node_id % 2**32).normal(size=(ROWS, DIM)).astype(np.float32)
    w = w - np.float32(0.1) * (w - rows).mean(axis=0)
    content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": ROWS})})
    return Message(content, reply_to=message)


@stock_client.query(QUERY)
def answer(message: Message, context: Context) -> Message:
    """The same step for a server with a loop of its own."""
    w = np.frombuffer(bytes_of(message.content) or b"", dtype=np.float32)
    rows = np.random.default_rng(context.node_id % 2**32).normal(size=(ROWS, DIM)).astype(np.float32)
    return Message(content_of((w - np.float32(0.1) * (w - rows).mean(axis=0)).tobytes()), reply_to=message)


stock_server = ServerApp()


@stock_server.main()
def main(grid: Grid, context: Context) -> None:
    """Rounds of Flower's own strategy, and of a bare loop."""
    facts = json.loads(Path(str(context.run_config["config"])).read_text(encoding="utf-8"))
    channel, rounds = FlowerChannel(grid), facts["rounds"]
    with_all(channel)
    (bare_loop if facts["bare"] else strategy)(grid, channel, rounds, Path(facts["out"]))


def strategy(grid: Grid, channel: FlowerChannel, rounds: int, out: Path) -> None:  # noqa: ARG001
    """Write the seconds of rounds of Flower's FedAvg."""
    times: list[float] = []

    def note(_round: int, _arrays: ArrayRecord) -> None:
        times.append(time.monotonic())

    chosen = FedAvg(fraction_evaluate=0.0, min_train_nodes=SILOS, min_available_nodes=SILOS)
    arrays = ArrayRecord([np.zeros(DIM, dtype=np.float32)])
    chosen.start(grid, arrays, num_rounds=rounds, evaluate_fn=note)
    out.write_text(json.dumps(np.diff(times).tolist()), encoding="utf-8")


def bare_loop(grid: Grid, channel: FlowerChannel, rounds: int, out: Path) -> None:  # noqa: ARG001
    """Write the seconds of rounds whose replies are fetched as soon as they are there."""
    w, seconds = np.zeros(DIM, dtype=np.float32), []
    for _ in range(rounds):
        start = time.monotonic()
        requests = dict.fromkeys(channel.present(), w.tobytes())
        replies = [np.frombuffer(one, np.float32) for _, one in channel.exchange(requests, deadline=120.0)]
        w = np.mean(replies, axis=0, dtype=np.float32)
        seconds.append(time.monotonic() - start)
    out.write_text(json.dumps(seconds), encoding="utf-8")
