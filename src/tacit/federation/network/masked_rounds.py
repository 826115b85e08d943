"""A round of aggregate trust as the server sees it: silos agree on masks, answer, and their sum is opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.answers import open_sum
from tacit.federation.masking.opener import opener_of
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.network.asking import Replies
from tacit.federation.network.bodies import MaskReply, MaskRequest
from tacit.federation.network.journal import RunJournal
from tacit.federation.network.keys import OpeningKey
from tacit.federation.network.proposing import RunAsker
from tacit.federation.network.roster import Roster
from tacit.federation.network.sealing import open_sealed, said_at
from tacit.federation.plan import Plan
from tacit.federation.protocols import Exchange
from tacit.federation.query import Query
from tacit.federation.summed import Summed, SummedRounds

__all__ = ["MaskedRounds", "masking_roster_of"]


def masking_roster_of(roster: Roster) -> MaskingRoster:
    """Return whose masks count: the silos of a roster, by their keys for signatures, in their order."""
    names = tuple(one.name for one in roster.silos)
    return MaskingRoster(names, tuple(roster.verify_key(name).raw for name in names))


class MaskedRounds:
    """The server's half of all rounds of one run; it holds nothing secret but its key for what is sealed.

    Args:
        plan: What is asked.
        run: Name of the run.
        roster: Of the federation.
        opening: The server's key for what silos have sealed to it.
        journal: Of the run: a server that is started again goes on with the sets that silos have signed.

    Raises:
        ParameterError: The plan names other silos.
    """

    def __init__(
        self, plan: Plan, run: str, *, roster: Roster, opening: OpeningKey, journal: RunJournal
    ) -> None:
        self._roster, self._run, self._opening = roster, run, opening
        self._opener = opener_of(plan, run, masking_roster_of(roster), kept=journal.told)
        self._sums, self._schedule = SummedRounds(plan, self._opener), plan.schedule()

    def prepare(self, step: int, exchange: Exchange) -> bool:
        """Have silos agree on masks, where they have not; return whether enough of them have."""
        return self._opener.prepare(step, exchange)

    def ready(self, step: int) -> Collection[int]:
        """Return the silos whose messages of a step can be in its sum."""
        return self._opener.ready(step)

    def reads(self, query: Query, party: int, answer: bytes) -> bool:
        """Return whether an answer has the form of the plan."""
        try:
            open_sum(self._schedule.step(query.step), answer, party=party)
        except (ParameterError, ValueError, OverflowError):
            return False
        return True

    def open(self, query: Query, answers: Mapping[int, bytes], exchange: Exchange) -> Summed | None:
        """Return the sum of answers; None where it cannot be opened. Errors as `SumOpener.open`."""
        return self._sums.open(query, answers, exchange)

    def ask(
        self, stage: str, data: Mapping[int, bytes], asking: RunAsker, *, deadline: float, all_needed: bool
    ) -> tuple[dict[int, bytes], Replies]:
        """Reach silos for a stage of the protocol; return what they say, and what was sent."""
        bodies = {k: MaskRequest(stage, sent) for k, sent in data.items()}
        said = asking.ask("mask", bodies, deadline=deadline, enough=len(bodies) if all_needed else 0)
        found = {}
        for k, body in said.bodies.items():
            about = said_at(
                stage,
                data[k],
                federation=self._roster.federation,
                run=self._run,
                silo=self._roster.silos[k].name,
            )
            try:
                if isinstance(body, MaskReply):
                    found[k] = open_sealed(body.sealed, key=self._opening, info=about)
                    continue
            except AuthenticationError:
                pass
            said.dropped[k] += 1
        return found, said
