"""Hundreds or thousands of virtual silos on Flower's simulation runtime, as a federation like any other."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
from ray import cloudpickle

from tacit.errors import ParameterError, RefusalError, TacitError, check_count, check_positive
from tacit.federation.circle import Circle
from tacit.federation.flower.channel import FlowerChannel
from tacit.federation.flower.runtime import SimulationRuntime
from tacit.federation.flower.virtual import (
    Answering,
    Considering,
    Greeting,
    Introduction,
    MakeSilo,
    Refusing,
    VirtualAnswer,
    VirtualPrice,
    VirtualReply,
    VirtualRequest,
    VirtualSilos,
)
from tacit.federation.inprocess import InProcess, SiloDownError
from tacit.federation.network.queries import encode_query
from tacit.federation.plan import Plan
from tacit.federation.protocols import Memory, Terms, Unsent
from tacit.federation.query import Query
from tacit.ledger import Ledger
from tacit.privacy import Guarantee, PrivacyBudget
from tacit.randomness import simulated

__all__ = ["FlowerFederation", "Progress"]

Progress = Callable[[int, int], None]
"""Called as replies come in: how many are there, of how many."""

_MOST_PICKLED: Final = 2**20
"""Bytes of what makes silos: it travels with every message."""
_ATTEMPTS: Final = 3
"""How often a virtual silo is asked whose worker dies."""
_REPLIES = msgspec.msgpack.Decoder(VirtualReply)


class FlowerFederation(InProcess):
    """Virtual silos in Flower's workers; the server's part is that of `InProcess`, and so is every result.

    `FlowerFederation.simulate` makes it.
    """

    def __init__(self, parties: Sequence[VirtualParty], post: _Post, **server: Any) -> None:
        super().__init__(parties, **server)
        self._virtual, self._post = list(parties), post

    @classmethod
    @contextmanager
    def simulate(
        cls,
        make_silo: MakeSilo,
        parties: int,
        *,
        seed: int | None = None,
        ledger: Ledger | None = None,
        data_ledger: Ledger | None = None,
        workers: int | None = None,
        patience: float = 600.0,
        address: str = "local",
        progress: Progress | None = None,
    ) -> Iterator[FlowerFederation]:
        """Start virtual silos, hand the federation over, and end every process again.

        Args:
            make_silo: Called with the number of a partition and its generator, in any worker, most often
                more than once: it loads what the silo holds. A function of a module that workers can import,
                or `functools.partial` of one; it is sent with every message, so it must hold no data itself.
            parties: How many.
            seed: Of all randomness, as for `tacit.learning.in_process`; None takes secret randomness.
            ledger: The trusted server's account, under central trust.
            data_ledger: The account of all records together.
            workers: Processes that answer at the same time; None is one per processor.
            patience: Seconds that all silos have for one round.
            address: Of a Ray cluster whose machines share the work, with the same files; "local" starts one.
            progress: Called as replies come in.

        Raises:
            ParameterError: `make_silo` is too large to be sent, or Ray is in use in this process.
            TacitError: A silo cannot be made.
        """
        parties = check_count("parties", parties)
        workers = check_count("workers", os.cpu_count() or 1 if workers is None else workers)
        virtual = VirtualSilos(_pickled(make_silo), seed, secrets.token_bytes(16))
        with SimulationRuntime(virtual, parties, workers=workers, address=address) as runtime:
            nodes = {str(node): node for node in runtime.node_ids()}
            channel = partial(
                FlowerChannel,
                runtime.grid,
                patience=patience,
                attempts=_ATTEMPTS,
                pause=0.05,
                sleep=runtime.sleep,
            )
            post = _Post(channel(lambda _: nodes), patience, progress)
            by_partition = {}
            for node, said in post.exchange(dict.fromkeys(nodes, Greeting())).items():
                if not isinstance(said, Introduction):
                    raise TacitError("a virtual silo did not say who it is.")
                by_partition[said.partition] = (nodes[node], said)
            of_silos = {str(k): node for k, (node, _) in by_partition.items()}
            post.channel = channel(lambda _: of_silos)
            yield cls(
                [VirtualParty(by_partition[k][1], post) for k in range(parties)],
                post,
                ledger=ledger,
                data_ledger=data_ledger,
                rng=None if seed is None else simulated(seed, "server"),
                public_seed=seed,
                shuffler_rng=None if seed is None else simulated(seed, "shuffler"),
            )

    def _considered(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Terms]:
        """Have all silos price a plan at once."""
        said = self._proposed(plan, run, budget, reserve=False)
        for party, one in zip(self._virtual, said, strict=True):
            party.price = Guarantee.from_json(one.price)
        return [
            Terms(
                name=party.name,
                size=party.size,
                account=party.account,
                simulated=party.simulated,
                guarantee=party.price,
                alone=Guarantee.from_json(one.alone) if one.alone else None,
            )
            for party, one in zip(self._virtual, said, strict=True)
            if party.price is not None
        ]

    def _accepted(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Guarantee]:
        """Have every silo accept a plan; it is reserved where silos keep ledgers."""
        if any(party.account is not None for party in self._virtual):
            self._proposed(plan, run, budget, reserve=True)
        return super()._accepted(plan, run=run, budget=budget)

    def _proposed(
        self, plan: Plan, run: str, budget: PrivacyBudget | None, *, reserve: bool
    ) -> list[VirtualPrice]:
        """Return what all silos say to a plan."""
        text = plan.to_toml()
        replies = self._post.exchange(
            {party.key: Considering(text, run, k, budget, reserve) for k, party in enumerate(self._virtual)}
        )
        said = [replies[party.key] for party in self._virtual]
        return [one for one in said if isinstance(one, VirtualPrice)]


class VirtualParty:
    """One virtual silo, as a server sees it: everything it does is a message."""

    def __init__(self, said: Introduction, post: _Post) -> None:
        self.name, self.size, self.account = said.name, said.size, said.account
        self.simulated, self.key = said.simulated, str(said.partition)
        self.price: Guarantee | None = None
        self._post = post
        self._opened: _Opened | None = None

    @property
    def accepted(self) -> object:
        """What stands for the accepted plan and its run."""
        return self._opened

    def consider(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> Guarantee:  # noqa: ARG002
        """Return the price that the silo has said to its federation, which asks all silos at once."""
        if self.price is None:
            raise ParameterError("the federation of a virtual silo has not proposed a plan.")
        return self.price

    def accept(
        self, plan: Plan, *, party: int, run: str, budget: PrivacyBudget | None, memory: Memory | None
    ) -> Guarantee:
        """Be ready to ask; the silo itself accepts with every query, wherever it is then."""
        self._opened = _Opened(plan.to_toml(), run, party, budget, secrets.token_bytes(16), memory)
        return self.consider(plan, run=run, budget=budget)

    def alone(self, plan: Plan) -> Guarantee:
        """Return what is learnt by who sees the silo's messages alone, with their sender."""
        text = plan.to_toml()
        said = self._post.exchange({self.key: Considering(text, "run", 0, None, reserve=False)})[self.key]
        if not isinstance(said, VirtualPrice) or not said.alone:
            raise ParameterError("under shuffle and aggregate trust only, messages hide among others.")
        return Guarantee.from_json(said.alone)

    def answer(self, query: Query, circle: Circle | None = None) -> bytes:
        """Answer one query of the accepted plan."""
        return self.prepare(query, circle).store()

    def prepare(self, query: Query, circle: Circle | None = None) -> Unsent:
        """Put a query with those that go out together, when the first answer is waited for."""
        if self._opened is None:
            raise ParameterError("no plan was accepted.")
        opened = self._opened
        self._post.put(self.key, opened.asks(query, circle))
        return Unsent(lambda: self._answered(opened))

    def exchange(self, stage: str, data: bytes) -> bytes:  # noqa: ARG002
        """Refuse: a silo of a simulation has no masks."""
        raise RefusalError("silos of a simulation mask nothing.")

    def close(self) -> None:
        """End the accepted run."""
        self._opened = None

    def _answered(self, opened: _Opened) -> bytes:
        """Return the answer to what was put in the post."""
        said = self._post.collect(self.key)
        if said is None:
            raise SiloDownError(f"virtual silo {self.name!r} does not answer.")
        if not isinstance(said, VirtualAnswer):
            raise TacitError(f"virtual silo {self.name!r} did not answer the query.")
        opened.remember(said.secret)
        return said.answer


class _Opened:
    """A run that a virtual silo has accepted."""

    def __init__(
        self,
        plan: str,
        run: str,
        party: int,
        budget: PrivacyBudget | None,
        opening: bytes,
        memory: Memory | None,
    ) -> None:
        self._fields = (plan, run, party, budget, opening)
        self._memory, self._secret = memory, None if memory is None else _known(memory)
        self._query: tuple[Query, bytes] | None = None

    def asks(self, query: Query, circle: Circle | None) -> Answering:
        """Return the message for a query."""
        mixed = None if circle is None else (circle.parties, circle.sizes, circle.accounts, circle.session)
        return Answering(*self._fields, encode_query(query), mixed, self._secret)

    def remember(self, secret: bytes | None) -> None:
        """Have the server's ledger keep what the silo has drawn, before its answer is used."""
        if self._memory is None or not secret or self._secret == secret:
            return
        self._secret = self._memory(lambda: secret)
        if self._secret != secret:
            raise TacitError("another process goes on with this run, with another order of batches.")


class _NothingKeptError(Exception):
    """A memory holds nothing yet."""


def _known(memory: Memory) -> bytes:
    """Return the secret that a memory holds, empty if there is none; nothing is drawn."""

    def refuse() -> bytes:
        raise _NothingKeptError

    try:
        return memory(refuse)
    except _NothingKeptError:
        return b""


class _Post:
    """Requests that go out together, since one by one they would take their turns."""

    def __init__(self, channel: FlowerChannel, patience: float, progress: Progress | None) -> None:
        self.channel = channel
        self._patience, self._progress = check_positive("patience", patience), progress
        self._put: dict[str, VirtualRequest] = {}
        self._came: dict[str, VirtualReply] = {}

    def put(self, silo: str, request: VirtualRequest) -> None:
        """Put a request with the others."""
        self._came.pop(silo, None)
        self._put[silo] = request

    def collect(self, silo: str) -> VirtualReply | None:
        """Return the reply to what was put for a silo, None if there is none in time."""
        if silo in self._put:
            going, self._put = self._put, {}
            self._came = self._replies(going)
        return self._came.pop(silo, None)

    def exchange(self, requests: dict[str, VirtualRequest]) -> dict[str, VirtualReply]:
        """Return the replies of all silos; a silo that says nothing is an error."""
        replies = self._replies(requests)
        missing = sorted(requests.keys() - replies.keys())
        if missing:
            raise TacitError(f"{len(missing)} of {len(requests)} virtual silos do not answer.")
        return replies

    def _replies(self, requests: dict[str, VirtualRequest]) -> dict[str, VirtualReply]:
        """Send requests and return what comes back in time; raise the first refusal."""
        encoded = {silo: msgspec.msgpack.encode(request) for silo, request in requests.items()}
        replies: dict[str, VirtualReply] = {}
        for silo, data in self.channel.exchange(encoded, deadline=self._patience):
            replies[silo] = _REPLIES.decode(data)
            if self._progress is not None:
                self._progress(len(replies), len(requests))
        for silo in requests:  # in order: the same refusal on every run
            said = replies.get(silo)
            if isinstance(said, Refusing):
                raise said.to_error()
        return replies


def _pickled(make_silo: MakeSilo) -> bytes:
    """Return what is sent with every message; refuse what holds data."""
    try:
        found: bytes = cloudpickle.dumps(make_silo)  # type: ignore[no-untyped-call]
    except (TypeError, ValueError, AttributeError) as error:
        raise ParameterError(f"make_silo must be a function that can be pickled: {error}.") from error
    if len(found) > _MOST_PICKLED:
        raise ParameterError(
            f"make_silo must load its data by the number of the partition: pickled it has {len(found):,} "
            f"bytes, and {_MOST_PICKLED:,} are allowed."
        )
    return found
