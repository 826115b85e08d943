"""A shuffled round as the server sees it: ordered, asked, and opened when the shuffler has released it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.answers import digest_of_run
from tacit.federation.network.asking import Replies
from tacit.federation.network.bodies import AskedRound, RefusalCode, Uploaded
from tacit.federation.network.descriptor import RoundOrder, RunOrder, SignedDescriptor, check_descriptor
from tacit.federation.network.faults import Fault, RoundError
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.mixing import MixedRun
from tacit.federation.network.parcels import ParcelForm, SealedBatch, open_batch
from tacit.federation.network.proposing import RunAsker
from tacit.federation.network.queries import encode_query
from tacit.federation.network.roster import Roster
from tacit.federation.network.shuffler_client import ShufflerDoor, ShufflerDownError
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.federation.shuffler import Batched

__all__ = ["Mixed", "ShuffledRounds"]

_PATIENCE: Final = 4.0
"""Deadlines of the shuffler after which the server does not believe any more that it ends the round."""

_PAUSE, _REASK = 0.05, 2.0
"""Seconds after which silos that have sent are asked again, at first and at last: a shuffler that was started
anew has nothing."""


@dataclass(frozen=True)
class Mixed:
    """What came of a shuffled round.

    Attributes:
        batch: What the shuffler released; None where it gave the round up, or nobody can read it.
        replies: What silos said: that they have sent, or why not.
        why: Why there is no batch.
    """

    batch: Batched | None
    replies: Replies
    why: str = ""


class ShuffledRounds:
    """The shuffled rounds of one run.

    Args:
        plan: What is asked.
        run: Name of the run.
        roster: Of the federation.
        door: The way to the shuffler.
        key: The server's, for signatures.
        opening: The server's, for what was sealed.
    """

    def __init__(
        self,
        plan: Plan,
        run: str,
        *,
        roster: Roster,
        door: ShufflerDoor,
        key: SigningKey,
        opening: OpeningKey,
    ) -> None:
        self._plan, self._run, self._roster = plan, run, roster
        self._door, self._key, self._opening = door, key, opening
        self._mixed = MixedRun(plan, roster)

    def begin(self, *, deadline: float) -> None:
        """Make the shuffler ready for the run; it refuses a plan that it could not mix."""
        self._door.open_run(
            RunOrder(plan=self._plan.to_toml(), run=self._run), key=self._key, deadline=deadline
        )

    def enough(self, parties: Iterable[int]) -> bool:
        """Whether parties hide one another as the plan's price says."""
        return self._mixed.enough([self._roster.sizes[k] for k in parties])

    def bits(self, step: int, party: int) -> int:
        """Return the bits that a party sends to the shuffler in a round."""
        return 8 * self._mixed.form(step, self._roster.sizes[party]).size

    def round(
        self,
        query: Query,
        accounts: Mapping[int, bytes | None],
        asker: RunAsker,
        *,
        known: bool,
        deadline: float,
    ) -> Mixed:
        """Run one round.

        Args:
            query: What is asked.
            accounts: Fingerprints of the ledgers of those whose messages are mixed, by their index.
            asker: Asks silos.
            known: Whether the round was begun before a restart: its batch may be there.
            deadline: Seconds that the shuffler waits for them.

        Raises:
            RoundError: The shuffler refuses the round.
            ShufflerDownError: It cannot be reached.
            AuthenticationError: What it signed about the round is not its own.
        """
        if not self.enough(accounts):
            return Mixed(None, Replies(), f"{len(accounts)} silos are too few for the plan's price")
        order = RoundOrder(
            run=digest_of_run(self._plan, self._run),
            step=query.step,
            query=query.digest(),
            parties=tuple(accounts),
            accounts=tuple(accounts.values()),
            seconds=deadline,
        )
        signed = self._door.open_round(order, key=self._key, deadline=deadline)
        first = next(iter(accounts))
        check_descriptor(
            signed.to_bytes(),
            roster=self._roster,
            plan=self._plan,
            run=self._run,
            query=query,
            name=self._roster.silos[first].name,
        )
        asked, replies = AskedRound(encode_query(query), signed.to_bytes()), Replies()
        until = time.monotonic() + _PATIENCE * deadline + _REASK
        # The shuffler ends the round. One that dies meanwhile waits anew, and has nothing of what was sent:
        # silos send it again, as long as the round is open.
        found, wait, pause = self._batch(signed, deadline=0.0) if known else None, deadline, _PAUSE
        while found is None:
            told = [
                k for k in accounts if replies.refused.get(k, RefusalCode.SHUFFLER) is RefusalCode.SHUFFLER
            ]
            if not self.enough(told):
                return Mixed(
                    None, replies, f"{len(accounts) - len(told)} silos refuse, and the others are too few"
                )
            said = asker.ask("ask", dict.fromkeys(told, asked), deadline=wait)
            replies, wait = replies.then(said, wanted=Uploaded), _REASK
            pause = min(2 * pause, _REASK)
            if time.monotonic() > until:
                raise RoundError(Fault.WAITING, f"the shuffler does not end round {query.step}.")
            found = self._batch(signed, deadline=pause)
        if isinstance(found, str):
            return Mixed(None, replies, found)
        if found.came == len(accounts):  # whatever the server heard: it may have been started anew
            replies.bodies = dict.fromkeys(sorted(accounts), Uploaded())
        form = self._mixed.form(query.step, self._roster.sizes[first])
        return self._opened(found, form, signed, replies)

    def _batch(self, signed: SignedDescriptor, *, deadline: float) -> SealedBatch | str | None:
        """Return the batch of a round; why there will be none; or None where there is none yet."""
        try:
            return self._door.batch(signed.round_id, key=self._key, deadline=deadline)
        except ShufflerDownError:
            return None
        except RoundError as error:
            if error.fault is Fault.GIVEN_UP:
                return str(error)
            if error.fault is Fault.WAITING:
                return None
            raise

    def _opened(
        self, batch: SealedBatch, form: ParcelForm, signed: SignedDescriptor, replies: Replies
    ) -> Mixed:
        """Return a batch as the server reads it. One that it cannot is given up: nobody knows whose it is."""
        try:
            self._mixed.check_batch(batch, signed.descriptor)
            return Mixed(open_batch(batch, form=form, info=signed.info, key=self._opening), replies)
        except (ParameterError, AuthenticationError) as error:
            return Mixed(None, replies, str(error))
