"""What a silo remembers of the plan it accepted, and what it holds queries against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tacit.errors import ParameterError, RefusalError
from tacit.federation.asked import AskedKind
from tacit.federation.circle import Circle, CircleError, check_circle
from tacit.federation.contribution import Contributions
from tacit.federation.kept import Keeper
from tacit.federation.measures import Measure
from tacit.federation.plan import Plan
from tacit.federation.protocols import Unsent
from tacit.federation.query import JoinedStatistic, Query
from tacit.federation.schedule import Schedule
from tacit.federation.store import AnswerStore
from tacit.federation.sums import SiloMasks
from tacit.numerics import Array, IntArray

__all__ = ["AcceptedRun", "Begun", "CheckedQuery", "DrawnBatch"]

_FORMS = 64  # a server that keeps inventing forms must not fill the memory


@dataclass(slots=True)
class CheckedQuery:
    """A query that was checked, with what is needed to answer it."""

    query: Query
    kind: int
    earlier: int
    asked: AskedKind
    at: Mapping[str, Array]
    fused: list[bool]


@dataclass(slots=True)
class DrawnBatch:
    """The batch of a round, drawn before the round is answered, and what was added up of it since.

    Attributes:
        index: Which units are in it; None for all.
        take: Returns these units.
        rows: Public number of them.
        measures: What is sent about them.
        joined: What adds up rows of a measure together with those of other silos; None where nothing does.
        sums: Of the clipped rows of a measure, shape (dim,), where that was done, and they are finite.
    """

    index: IntArray | None
    take: Callable[[], Any]
    rows: int
    measures: tuple[Measure, ...]
    joined: list[JoinedStatistic | None]
    sums: list[Array | None]


@dataclass(slots=True)
class Begun:
    """A query that is to be answered: nothing is stored yet of what it asks for.

    Attributes:
        run: Which it belongs to.
        task: What it asks for.
        circle: With whom its answer is mixed.
        digest: Of both.
        drawn: Its batch, where that is drawn already.
    """

    run: AcceptedRun
    task: CheckedQuery
    circle: Circle | None
    digest: bytes
    drawn: DrawnBatch | None = None


@dataclass
class AcceptedRun:
    """The run that a silo answers.

    Attributes:
        tried: Kinds of rounds with forms of points that were tried on no units, and what came of it.
        masks: What hides messages until they are added up; None where nothing does.
        unsent: The last answer that was masked, stored or not, with its step and what it answers.
        begun: The query whose batch was drawn, until it is prepared.
    """

    plan: Plan
    digest: bytes
    schedule: Schedule
    asked: list[AskedKind]
    blocks: list[int]
    party: int
    store: AnswerStore
    keeper: Keeper
    tried: dict[tuple[Any, ...], list[bool]]
    masks: SiloMasks | None = None
    unsent: tuple[int, bytes, Unsent] | None = None
    order: IntArray | None = None
    circle: Circle | None = None
    begun: Begun | None = None

    def task(self, query: Query, contributions: Contributions) -> CheckedQuery:
        """Return what the query asks for; refuse anything the plan does not foresee."""
        try:
            kind, earlier = self.schedule.place(query.step)
        except ParameterError as error:
            raise RefusalError(f"the query is outside the accepted plan: {error}") from error
        asked = self.asked[kind]
        at = asked.points(query)
        form = (kind, query.form)
        fused = self.tried.get(form)
        if fused is None:
            fused = contributions.check(asked.step, at)
            if len(self.tried) >= _FORMS:
                self.tried.clear()
            self.tried[form] = fused
        return CheckedQuery(query, kind, earlier, asked, at, fused)

    def mixed_with(
        self, circle: Circle | None, *, alone: bool, size: int, account: bytes | None, who: str
    ) -> bytes:
        """Return the digest of the parties that messages are mixed with; refuse those that hide nobody."""
        if (circle is None) == (self.plan.has_circles and not alone):
            raise CircleError(
                "a circle says who is mixed with a silo, or added to it without masks, under shuffle and "
                "aggregate trust and only there."
            )
        if circle is None:
            return b""
        if circle is not self.circle:  # most often every round has the same one
            check_circle(circle, self.plan, party=self.party, size=size, account=account, who=who)
            self.circle = circle
        return circle.digest
