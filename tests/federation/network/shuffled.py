"""Shuffled rounds between machines, all of whose parties are in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.federation import Batch, Circle, Full, Measure, Plan, Query, Silo, Step, with_honest
from tacit.federation.answers import binding, digest_of_run
from tacit.federation.network.descriptor import RoundOrder, RunOrder, SignedDescriptor
from tacit.federation.network.faults import Fault, RoundError
from tacit.federation.network.keys import SealingKey
from tacit.federation.network.parcels import ParcelForm, SealedBatch, make_parcel, parcel_form
from tacit.federation.network.shuffler_client import LocalShuffler
from tacit.federation.network.shuffling import Shuffling
from tacit.means import BinomialMean
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tests.federation.network.parties import Parties, parties
from tests.federation.world import AT, DIM, Rows, rows

SIZES = (5, 9, 7)
RUN = "run"
EVERYBODY = Full()
MEAN = BinomialMean(dim=DIM, noise_bits=60, resolution=8)


def plan_of(
    *means: Any,
    n_min: int = 2,
    colluding: int = 0,
    rounds: int = 4,
    sizes: Sequence[int] = SIZES,
    batch: Batch = EVERYBODY,
) -> Plan:
    """A plan of shuffle trust, each of whose rounds asks for a mean by every one of these estimators."""
    measures = tuple(Measure(statistic="row", estimator=mean, max_radius=1.0) for mean in means or (MEAN,))
    kinds = with_honest(
        ((Step(measures=measures, batch=batch), rounds),), sizes, n_min=n_min, colluding=colluding
    )
    return Plan(
        steps=kinds,
        parties=len(sizes),
        trust=TrustModel.SHUFFLE,
        delta=1e-6,
        n_min=n_min,
        colluding=colluding,
    )


def refused(fault: Fault, work: Callable[[], object]) -> RoundError:
    """Assert that the shuffler refuses, for this reason; return what it says."""
    with pytest.raises(RoundError) as caught:
        work()
    assert caught.value.fault is fault, caught.value
    return caught.value


class Clock:
    """Seconds that tests count."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def parties_of(sizes: Sequence[int] = SIZES) -> Parties:
    """Silos "silo-1", ... of these sizes."""
    made = parties(len(sizes))
    for k, size in enumerate(sizes):
        made = made.with_silo(f"silo-{k + 1}", size=size)
    return made


def row(units: Rows, at: Any) -> Array:
    return units.values


def silos_of(plan: Plan, sizes: Sequence[int] = SIZES, *, data: Sequence[Array] | None = None) -> list[Silo]:
    """Silos that have accepted the plan, with seeded randomness."""
    made = []
    for k, n in enumerate(sizes):
        values = rows(k, n) if data is None else data[k]
        rng = np.random.default_rng(100 + k)
        silo = Silo(
            Rows(values),
            {"row": row},
            name=f"silo-{k + 1}",
            trusts_shuffler=True,
            trusts_server=True,
            rng=rng,
        )
        silo.accept(plan, party=k, run=RUN)
        made.append(silo)
    return made


def query(step: int = 0, plan: Plan | None = None) -> Query:
    """What is asked in a step."""
    many = 1 if plan is None else len(plan.kinds[0][0].measures)
    return Query(step, AT, (1.0,) * many)


@dataclass
class World:
    """A plan, its silos, and a shuffler with all keys.

    Attributes:
        shuffling: The shuffler.
        at: Its memory.
    """

    plan: Plan
    who: Parties
    silos: list[Silo]
    shuffling: Shuffling

    @property
    def door(self) -> LocalShuffler:
        return LocalShuffler(self.shuffling)

    @property
    def run(self) -> bytes:
        return digest_of_run(self.plan, RUN)

    def order(self, step: int = 0, among: Sequence[int] | None = None, **changes: Any) -> RoundOrder:
        """What the server orders of a round."""
        circle = tuple(range(len(self.silos))) if among is None else tuple(among)
        made = RoundOrder(
            run=self.run,
            step=step,
            query=query(step, self.plan).digest(),
            parties=circle,
            accounts=(None,) * len(circle),
            seconds=60.0,
        )
        return msgspec.structs.replace(made, **changes)

    def open(self, step: int = 0, among: Sequence[int] | None = None, **changes: Any) -> SignedDescriptor:
        """Open the run, and a round of it."""
        self.door.open_run(RunOrder(plan=self.plan.to_toml(), run=RUN), key=self.who.server)
        return self.door.open_round(self.order(step, among, **changes), key=self.who.server)

    def form(self, party: int) -> ParcelForm:
        """The form of a parcel."""
        return parcel_form(self.plan.kinds[0][0], self.silos[party].size)

    def answer(self, party: int, signed: SignedDescriptor) -> bytes:
        """What a silo answers."""
        about = signed.descriptor
        return self.silos[party].answer(query(about.step, self.plan), about.circle)

    def parcel(self, party: int, signed: SignedDescriptor) -> bytes:
        """What a silo sends."""
        about = signed.descriptor
        return make_parcel(
            self.answer(party, signed),
            form=self.form(party),
            party=party,
            bound=self.bound(about.circle, about.step),
            info=signed.info,
            key=self.who.opening.public,
            draw=SealingKey(about.draw) if about.draw else None,
        )

    def bound(self, circle: Circle, step: int = 0) -> bytes:
        """What answers are bound to."""
        return binding(query(step, self.plan), circle, self.run)

    def send(self, party: int, signed: SignedDescriptor, parcel: bytes | None = None, **changes: Any) -> bool:
        """Bring a parcel."""
        name = f"silo-{party + 1}"
        return self.door.upload(
            signed.round_id,
            self.parcel(party, signed) if parcel is None else parcel,
            **{"silo": name, "key": self.who.silos[name], **changes},
        )

    def batch(self, signed: SignedDescriptor) -> SealedBatch:
        """Fetch the batch."""
        return self.door.batch(signed.round_id, key=self.who.server, deadline=0.0)


def world(plan: Plan, path: Any, sizes: Sequence[int] = SIZES, *, data: Any = None, **fields: Any) -> World:
    """Make one; `fields` go to the shuffler."""
    who = fields.pop("who", None) or parties_of(sizes)
    shuffling = Shuffling(path, roster=who.roster, key=who.shuffler, **fields)
    return World(plan, who, silos_of(plan, sizes, data=data), shuffling)
