"""A virtual silo of a simulation: made anew for every message, wherever a worker is free.

What a silo remembers between messages - the state of its seeded generator, its newest answer, the secret of
its run, the state of its statistics - travels with Flower's context of the node. So it does not matter which
worker computes an answer, nor whether one dies: what was not returned is computed again, with the same noise.
All of it belongs to one person's experiment: a virtual silo protects nobody from who runs it.
"""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
from flwr.app import ConfigRecord, Context, Message

from tacit import errors
from tacit.errors import ParameterError, TacitError
from tacit.federation.circle import Circle
from tacit.federation.flower.messages import bytes_of, content_of
from tacit.federation.network.queries import decode_query
from tacit.federation.plan import Plan
from tacit.federation.silo import Silo
from tacit.federation.store import LastAnswer
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = [
    "Answering",
    "Considering",
    "Greeting",
    "Introduction",
    "MakeSilo",
    "Refusing",
    "VirtualAnswer",
    "VirtualPrice",
    "VirtualReply",
    "VirtualRequest",
    "VirtualSilos",
]

MakeSilo = Callable[[int, np.random.Generator | None], Silo]
"""Makes the silo of a partition, with the generator that it draws from; None is secret randomness."""

_RECORD: Final = "tacit"
_MOST_SILOS: Final = 256
"""Silos that a worker keeps, so as not to load their data for every message."""
_READY: OrderedDict[tuple[bytes, int], tuple[Silo, np.random.Generator | None]] = OrderedDict()
"""The silos that this worker has loaded; what they remember is in the context of their nodes alone."""


class _Tagged(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A message of the simulation."""


class Greeting(_Tagged, frozen=True):
    """Asks a node who it is."""


class Considering(_Tagged, frozen=True):
    """Asks for the price of a plan.

    Attributes:
        reserve: Whether to reserve it in the silo's ledger.
    """

    plan: str
    run: str
    party: int
    budget: PrivacyBudget | None
    reserve: bool


class Answering(_Tagged, frozen=True):
    """Asks a query of an accepted plan.

    Attributes:
        opening: What tells one opening of a run from another.
        secret: Of the silo's run, where the server keeps it: empty until there is one; None lets the node
            keep it.
        circle: Fields of a `Circle`, under shuffle trust.
    """

    plan: str
    run: str
    party: int
    budget: PrivacyBudget | None
    opening: bytes
    query: bytes
    circle: tuple[tuple[int, ...], tuple[int, ...], tuple[bytes | None, ...], bytes] | None
    secret: bytes | None


class Introduction(_Tagged, frozen=True):
    """Who a virtual silo is."""

    partition: int
    name: str
    size: int
    account: bytes | None
    simulated: bool


class VirtualPrice(_Tagged, frozen=True):
    """Guarantees as JSON."""

    price: bytes
    alone: bytes


class VirtualAnswer(_Tagged, frozen=True):
    """An answer, and the secret of the silo's run where there is one."""

    answer: bytes
    secret: bytes | None


class Refusing(_Tagged, frozen=True):
    """Why not: an error of `tacit.errors`, or the name of another one."""

    kind: str
    why: str

    def to_error(self) -> TacitError:
        """Return the error that the silo raised."""
        kind = getattr(errors, self.kind, None)
        if isinstance(kind, type) and issubclass(kind, TacitError):
            return kind(self.why)
        return TacitError(self.why)


VirtualRequest = Greeting | Considering | Answering
VirtualReply = Introduction | VirtualPrice | VirtualAnswer | Refusing

_REQUESTS = msgspec.msgpack.Decoder(VirtualRequest)


@dataclass(frozen=True)
class VirtualSilos:
    """The silos of one simulation, as Flower's workers call them.

    Flower pickles it with every message, so what makes the silos is pickled once, before.

    Attributes:
        maker: A pickled `MakeSilo`.
        seed: Of the silos' generators; None is secret randomness.
        token: What tells one simulation from another.
    """

    maker: bytes
    seed: int | None
    token: bytes

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer one message of the simulation's server."""
        reply: VirtualReply
        try:
            request = _REQUESTS.decode(bytes_of(message.content) or b"")
            reply = self._reply(request, context)
        except TacitError as error:  # its text is public, as everywhere
            known = (kind.__name__ for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind)
            reply = Refusing(next(known), str(error))
        except Exception as error:  # noqa: BLE001 - whatever the maker of silos raises; its text may be a record
            partition = context.node_config.get("partition-id")
            why = (
                f"virtual silo {partition} raised {type(error).__name__}; make and ask it in this process "
                "to see why."
            )
            reply = Refusing("TacitError", why)
        return Message(content_of(msgspec.msgpack.encode(reply)), reply_to=message)

    def _reply(self, request: VirtualRequest, context: Context) -> VirtualReply:
        """Return what the silo of a node says."""
        partition = int(context.node_config["partition-id"])
        silo, rng = self._silo(partition)
        match request:
            case Greeting():
                return Introduction(partition, silo.name, silo.size, silo.account, silo.simulated)
            case Considering():
                return _consider(silo, request)
            case Answering():
                return self._answer(silo, rng, request, context, partition)

    def _silo(self, partition: int) -> tuple[Silo, np.random.Generator | None]:
        """Return the silo of a partition and its generator, most often one that is loaded."""
        found = _READY.get((self.token, partition))
        if found is None:
            rng = None if self.seed is None else simulated(self.seed, "silo", partition)
            found = _maker(self.maker)(partition, rng), rng
            if not isinstance(found[0], Silo):
                raise ParameterError(f"make_silo must return a Silo, got {type(found[0]).__name__}.")
            _READY[self.token, partition] = found
            if len(_READY) > _MOST_SILOS:
                _READY.popitem(last=False)
        _READY.move_to_end((self.token, partition))
        return found

    def _answer(
        self,
        silo: Silo,
        rng: np.random.Generator | None,
        request: Answering,
        context: Context,
        partition: int,
    ) -> VirtualAnswer:
        """Go on where the node's context says that the silo was, and note there where it is now."""
        known = context.state.get(_RECORD)
        noted: dict[str, Any] = dict(known) if isinstance(known, ConfigRecord) else {}
        keeps = request.secret is not None

        def memory(make: Callable[[], bytes]) -> bytes:
            return request.secret or make()

        store = LastAnswer(memory if keeps else None)
        if noted.get("opening") == request.opening:
            store.wake(noted["store"])
        if rng is not None:
            if "rng" in noted:
                rng.bit_generator.state = json.loads(noted["rng"])
            else:  # another worker's silo of this node may have drawn from it, and then have died
                rng.bit_generator.state = simulated(self.seed or 0, "silo", partition).bit_generator.state
        silo.accept(
            _plan(request.plan), party=request.party, run=request.run, budget=request.budget, memory=store
        )
        circle = None if request.circle is None else Circle(*request.circle)
        answer = silo.answer(decode_query(request.query), circle)
        now: dict[str, Any] = {"opening": request.opening, "store": store.park()}
        if rng is not None:
            now["rng"] = json.dumps(rng.bit_generator.state).encode()
        context.state[_RECORD] = ConfigRecord(now)
        return VirtualAnswer(answer, store.drawn if keeps else None)


def _consider(silo: Silo, request: Considering) -> VirtualPrice:
    """Return what a plan would show of a silo; reserve it where that is asked for."""
    plan = _plan(request.plan)
    if request.reserve:
        price = silo.accept(plan, party=request.party, run=request.run, budget=request.budget)
        silo.close()
    else:
        price = silo.consider(plan, run=request.run, budget=request.budget)
    alone = silo.alone(plan).to_json() if plan.hides_among_others else b""
    return VirtualPrice(price.to_json(), alone)


@lru_cache(maxsize=1)
def _maker(pickled: bytes) -> MakeSilo:
    """Return what makes silos."""
    found: MakeSilo = pickle.loads(pickled)  # noqa: S301 - of the process that started this worker
    return found


@lru_cache(maxsize=8)
def _plan(text: str) -> Plan:
    """Read a plan once, and not for every message."""
    return Plan.from_toml(text)
