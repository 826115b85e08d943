"""The shuffler between machines: it mixes what it cannot read, once for every round, and forgets who sent it.

What a shuffled plan is priced on is enforced here, from the plan and the roster and nobody's word: at least
`n_min` distinct parties that prove who they are, of sizes that hold the honest rows which the plan counts on;
one parcel of each; one batch of a round, ever. A batch is permuted by secret randomness and on disk, together
with the fact that it was released, before a byte of it leaves. So the server may ask again and gets the same
bytes, and no crash can make two batches of one round, whose difference would show a party alone.

A batch of a part of the circle is released where the rest stays away until the deadline: here, unlike in one
process, nobody but this object can put a batch together, and it does so once. Were its memory lost, it would
come back with another identity (`Circle.session`), and silos would refuse the steps they have answered.

Parcels are kept in memory only, and overwritten as soon as the batch is made. After a restart an open round
starts anew: silos send again what they have stored.

It knows no transport: `shuffler_app` puts it on the network.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar

import msgspec
import numpy as np

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.answers import digest_of_run
from tacit.federation.limits import LONGEST_PLAN
from tacit.federation.network.descriptor import (
    Descriptor,
    RoundOrder,
    RunOrder,
    SignedDescriptor,
    about_digest,
    about_order,
    about_upload,
)
from tacit.federation.network.draws import draw_key
from tacit.federation.network.faults import Fault, RoundError, RoundReport
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.mixing import MixedRun, OpenRound
from tacit.federation.network.releases import KeptRound, Releases
from tacit.federation.network.roster import SERVER, SHUFFLER, Roster
from tacit.federation.plan import Plan
from tacit.randomness import secure

__all__ = ["LONGEST_ORDER", "MOST_ROUND_BYTES", "Shuffling"]

MOST_ROUND_BYTES: Final = 2**29
"""Bytes of all parcels of the rounds that are open at one time."""

LONGEST_ORDER: Final = 4 * LONGEST_PLAN + 2**16
"""Bytes of what a server orders."""

_Order = TypeVar("_Order", RunOrder, RoundOrder)


@dataclass
class Tally:
    """Counts since the start, for metrics: none of a single party."""

    runs: int = 0
    opened: int = 0
    released: int = 0
    given_up: int = 0
    parcels: int = 0
    repeated: int = 0
    messages: int = 0
    refused: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))


class Shuffling:
    """A shuffler of one federation; threads may share it, processes may not.

    Args:
        path: File of its memory (`Releases`).
        roster: Who takes part: its own copy, nobody else's.
        key: Its private key for signatures, that of the roster.
        rng: Draws permutations; None is secret randomness, and all but simulations must use that.
        clock: Seconds, of a clock that never goes back.
        now: The time of day, for keys that expire.

    Raises:
        AuthenticationError: The key is not that of the roster, or the roster has no shuffler.
        DataError: The memory cannot be used.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        roster: Roster,
        key: SigningKey,
        rng: np.random.Generator | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        if roster.verify_key(SHUFFLER) != key.public:
            raise AuthenticationError("the shuffler's key is not the one in its roster.")
        self._roster, self._key, self._clock, self._now = roster, key, clock, now
        self._rng = secure() if rng is None else rng
        self._lock = RLock()
        self._memory = Releases(path, federation=roster.federation)
        self._draw = draw_key(key, self._memory.session)
        self._runs: dict[bytes, MixedRun] = {}
        self._open: dict[str, OpenRound] = {}
        self.tally = Tally()
        try:
            for digest, plan in self._memory.runs().items():
                with suppress(ParameterError):  # a plan for another roster than today's is not gone on with
                    self._runs[digest] = MixedRun(Plan.from_toml(plan), roster)
            for round_id in self._memory.open_rounds():
                self._reopen(round_id)
        except BaseException:
            self._memory.close()
            raise

    @property
    def session(self) -> bytes:
        """The identity that it has drawn with its memory."""
        return self._memory.session

    def close(self) -> None:
        """Let go of the memory; open rounds start anew when it is opened again."""
        with self._lock:
            for one in self._open.values():
                one.erase()
            self._open.clear()
            self._memory.close()

    # --- what the server orders

    def open_run(self, order: bytes, signature: bytes) -> bytes:
        """Be ready to mix rounds of a run; the same again changes nothing.

        Args:
            order: A `RunOrder` as bytes.
            signature: By the server, about `about_order("run", order)`.

        Returns:
            `digest_of_run`.

        Raises:
            RoundError: UNKNOWN, not by the server; FORM, a plan that this shuffler cannot mix, or whose price
                counts on more than the silos of the roster.
        """
        self._by_server("run", order, signature)
        about = _read(order, RunOrder)
        try:
            plan = Plan.from_toml(about.plan)
            run = MixedRun(plan, self._roster)
        except ParameterError as error:
            raise self._refused(Fault.FORM, f"the run cannot be shuffled: {error}") from error
        digest = digest_of_run(plan, about.run)
        with self._lock:
            if digest not in self._runs:
                self._memory.add_run(digest, about.plan)
                self._runs[digest] = run
                self.tally.runs += 1
        return digest

    def open_round(self, order: bytes, signature: bytes) -> bytes:
        """Sign the descriptor of a round, and wait for its parcels; the same again returns the same bytes.

        Also of a round that is over: then nothing more is taken.

        Args:
            order: A `RoundOrder` as bytes.
            signature: By the server, about `about_order("round", order)`.

        Returns:
            A `SignedDescriptor` as bytes.

        Raises:
            RoundError: UNKNOWN, not by the server, or a run that was never opened; CONFLICT, the step was
                opened with another query or circle; FORM, a circle that is too small for the plan or not of
                the roster, or more bytes than are held at one time.
        """
        self._by_server("round", order, signature)
        about = _read(order, RoundOrder)
        with self._lock:
            self.settle()
            run = self._runs.get(about.run)
            if run is None:
                raise self._refused(Fault.UNKNOWN, "the run was never opened at this shuffler.")
            known = self._memory.round_of(about.run, about.step)
            if known is not None:
                return self._same(known, about)
            active = {self._roster.index(one.name) for one in self._roster.active(self._now())}
            try:
                descriptor = run.describe(about, active=active, session=self.session, draw=self._draw.public)
            except ParameterError as error:
                raise self._refused(Fault.FORM, f"the round cannot be shuffled: {error}") from error
            signed = SignedDescriptor.of(descriptor, self._key)
            made = OpenRound.of(signed, run, self._clock(), draw=self._draw)
            held = made.size + sum(one.size for one in self._open.values())
            if held > MOST_ROUND_BYTES:
                raise self._refused(
                    Fault.FORM, f"open rounds must take at most {MOST_ROUND_BYTES} bytes, got {held}."
                )
            self._memory.add_round(signed.round_id, about.run, about.step, signed.to_bytes())
            self._open[signed.round_id] = made
            self.tally.opened += 1
            return signed.to_bytes()

    def batch(self, round_id: str, signature: bytes) -> bytes:
        """Return the batch of a round, the same bytes however often.

        Args:
            round_id: `SignedDescriptor.round_id`.
            signature: By the server, about `about_order("batch " + round_id)`.

        Returns:
            A `SealedBatch` as bytes.

        Raises:
            RoundError: UNKNOWN, not by the server; NO_ROUND; WAITING, the round is open; GIVEN_UP; both
                with a report; LATE, it was fetched, a later round was opened, and it is forgotten.
        """
        self._by_server(f"batch {round_id}", b"", signature)
        with self._lock:
            self.settle()
            kept = self._kept(round_id)
            if kept.state == "open":
                one = self._open[round_id]
                report = self._report(one.descriptor, list(one.parcels))
                said = f"{report.came} of {report.circle} parties have sent so far."
                raise RoundError(Fault.WAITING, said, report)
            if kept.state == "given-up":
                report = msgspec.json.decode(kept.result, type=RoundReport)
                said = f"{report.came} of {report.circle} parties came, {report.needed} are needed"
                raise RoundError(Fault.GIVEN_UP, f"the round was given up: {said}.", report)
            if not kept.result:
                raise self._refused(Fault.LATE, "the batch was fetched, and forgotten with a later round.")
            self._memory.mark_fetched(round_id)
            return kept.result

    # --- what silos send

    def parcel_bytes(self, round_id: str, silo: str, digest: bytes, signature: bytes) -> int:
        """Return how long a parcel must be: before any of it is read, and for its silo only.

        Args:
            round_id: `SignedDescriptor.round_id`.
            silo: Name of the silo.
            digest: SHA-256 of the parcel, as the sender says.
            signature: As for `take`.

        Raises:
            RoundError: NO_ROUND; LATE; UNKNOWN, no silo of the circle, one whose key does not count, or a
                signature by another key or for another round.
        """
        with self._lock:
            one, party = self._waiting_for(round_id, silo)
            self._by_silo(silo, about_digest(round_id, digest), signature)
            return one.forms[party].size

    def take(self, round_id: str, silo: str, parcel: bytes | bytearray, signature: bytes) -> bool:
        """Take the parcel of a silo, once.

        Args:
            round_id: `SignedDescriptor.round_id`.
            silo: Name of the silo.
            parcel: What `make_parcel` returned. A bytearray is the shuffler's from now on, to overwrite.
            signature: By the silo, about `about_upload(round_id, parcel)`.

        Returns:
            Whether the round is whole now, so that `settle` will release it.

        Raises:
            RoundError: As `parcel_bytes`; LENGTH; QUOTA, another parcel of the silo is in, and stays.
        """
        with self._lock:
            one, party = self._waiting_for(round_id, silo)
            self._by_silo(silo, about_upload(round_id, parcel), signature)
            if len(parcel) != one.forms[party].size:
                raise self._refused(
                    Fault.LENGTH,
                    f"the parcel must have {one.forms[party].size} bytes, got {len(parcel)}.",
                )
            before = one.parcels.get(party)
            if before is None:
                try:
                    one.take(party, parcel if isinstance(parcel, bytearray) else bytearray(parcel))
                except AuthenticationError as error:
                    raise self._refused(
                        Fault.FORM, "the parcel has no word of its silo for this round."
                    ) from error
                self.tally.parcels += 1
                self.tally.messages += one.forms[party].blobs
            elif before == parcel:
                self.tally.repeated += 1
            else:
                raise self._refused(Fault.QUOTA, "another parcel of the silo is in the round already.")
            return one.whole

    # --- the end of a round

    def settle(self) -> list[str]:
        """Release or give up every round that is whole or over; return which."""
        with self._lock:
            now = self._clock()
            over = [name for name, one in self._open.items() if one.whole or now >= one.until]
            for round_id in over:
                self._end(round_id)
            return over

    def is_over(self, round_id: str) -> bool:
        """Whether a round waits for nobody any more, so that `batch` says what became of it."""
        one = self._open.get(round_id)
        return one is None or one.whole or self._clock() >= one.until

    @property
    def waiting(self) -> int:
        """How many rounds are open."""
        return len(self._open)

    def _end(self, round_id: str) -> None:
        """Make the batch of a round, or give it up; on disk first, then out of memory."""
        one = self._open[round_id]
        batch = one.mixed(self._rng)
        if batch is None:
            self._give_up(round_id, self._report(one.descriptor, list(one.parcels)))
        else:
            self._memory.end(round_id, "released", batch.to_bytes())
            self.tally.released += 1
        one.erase()
        del self._open[round_id]

    def _give_up(self, round_id: str, report: RoundReport) -> None:
        """Note for ever that nothing of a round will be released."""
        self._memory.end(round_id, "given-up", msgspec.json.encode(report))
        self.tally.given_up += 1

    def _report(self, about: Descriptor, came: list[int]) -> RoundReport:
        """Say who has sent."""
        silos = self._roster.silos
        missing = tuple(silos[p].name for p in about.parties if p < len(silos) and p not in came)
        return RoundReport(needed=about.n_min, came=len(came), circle=len(about.parties), missing=missing)

    # --- what is checked

    def _by_server(self, what: str, body: bytes, signature: bytes) -> None:
        """Refuse what the server of the roster has not signed."""
        if len(body) > LONGEST_ORDER:
            raise self._refused(Fault.FORM, f"an order must have at most {LONGEST_ORDER} bytes.")
        try:
            self._roster.verify_key(SERVER).verify("order", about_order(what, body), signature)
        except AuthenticationError as error:
            raise self._refused(Fault.UNKNOWN, str(error)) from error

    def _by_silo(self, silo: str, about: bytes, signature: bytes) -> None:
        """Refuse what a silo has not signed."""
        try:
            self._roster.verify_key(silo).verify("upload", about, signature)
        except AuthenticationError as error:
            raise self._refused(Fault.UNKNOWN, str(error)) from error

    def _waiting_for(self, round_id: str, silo: str) -> tuple[OpenRound, int]:
        """Return a round that is open, and the index of a silo of its circle whose key counts."""
        kept = None if round_id in self._open else self._kept(round_id)
        try:
            self._roster.check_active(silo, self._now())
        except AuthenticationError as error:
            raise self._refused(Fault.UNKNOWN, str(error)) from error
        if kept is not None or self._clock() >= (one := self._open[round_id]).until:
            raise self._refused(Fault.LATE, "the round is over.")
        party = self._roster.index(silo)
        if party not in one.forms:
            raise self._refused(Fault.UNKNOWN, "the silo is not in the circle of the round.")
        return one, party

    def _kept(self, round_id: str) -> KeptRound:
        kept = self._memory.round(round_id)
        if kept is None:
            raise self._refused(Fault.NO_ROUND, "there is no such round.")
        return kept

    def _same(self, known: KeptRound, order: RoundOrder) -> bytes:
        """Return what was signed of a step, if it is asked for again as it was."""
        about = SignedDescriptor.from_bytes(known.descriptor).descriptor
        if (order.query, order.parties, order.accounts) != (about.query, about.parties, about.accounts):
            raise self._refused(Fault.CONFLICT, f"step {order.step} was opened with another query or circle.")
        return known.descriptor

    def _reopen(self, round_id: str) -> None:
        """Wait anew for the parcels of a round that was open."""
        kept = self._kept(round_id)
        signed, run = SignedDescriptor.from_bytes(kept.descriptor), self._runs.get(kept.run)
        if run is None:
            self._give_up(round_id, self._report(signed.descriptor, []))
        else:
            self._open[round_id] = OpenRound.of(signed, run, self._clock(), draw=self._draw)

    def _refused(self, fault: Fault, message: str) -> RoundError:
        """Return an error, which is counted."""
        self.tally.refused[fault] += 1
        return RoundError(fault, message)


def _read(data: bytes, form: type[_Order]) -> _Order:
    try:
        return msgspec.msgpack.decode(data, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RoundError(Fault.FORM, "the order cannot be read.") from error
