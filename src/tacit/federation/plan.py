"""Plans: everything a run will ask, declared and priced before it starts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import msgspec

from tacit.errors import (
    LARGEST_COUNT,
    ParameterError,
    check_choice,
    check_count,
    check_probability,
    shown,
)
from tacit.federation.batches import Disjoint, Full
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.limits import LONGEST_PLAN, MOST_DOTS, MOST_KINDS, MOST_ROUNDS, MOST_STATE
from tacit.federation.public_texts import check_known_version, read_versioned
from tacit.federation.schedule import Schedule
from tacit.federation.shares import check_honest_shares
from tacit.federation.steps import AnyStep, Group, Kinds, TurnWalk, changed, composed, of_means, repeated
from tacit.numerics import IntArray, settle
from tacit.privacy import Event, Neighbours, NonPrivate, Parallel, TrustModel

__all__ = ["Plan"]

_PLAN_VERSION = 4

_LONGEST_ENCODING = 64
_MOST_EVENTS = 64  # a federation of many sizes must not fill the memory


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All rounds of a run, in order. Public, versioned, and the only thing a silo agrees to.

    Attributes:
        steps: Kinds of rounds, and groups of them, with how often each is asked, in order; rounds are
            numbered from 0.
        parties: Number of silos that may take part.
        trust: Who is trusted; the estimators add their noise accordingly.
        n_min: Under shuffle and aggregate trust, the least number of distinct parties whose messages are
            mixed or added up, 2 to `parties`; a round of fewer shows nothing. Else 0.
        colluding: Under shuffle and aggregate trust, how many parties may add no noise and tell the server
            what they sent; they always arrive. Below `n_min`. Else 0.
        roster: Under aggregate trust, the digest of the keys of the parties, by which they hide their
            messages in a sum; empty where one process adds them up. Else empty.
        recover: Under aggregate trust, whether a sum is opened without parties that drop out of its round.
        delta: The delta at which silos price the plan.
        encoding: Fingerprint of the public map from records to units, at most 64 characters: no run goes on
            under another one. Empty where nobody says it.
        version: Of the format.
    """

    steps: Kinds
    parties: int
    trust: TrustModel = TrustModel.LOCAL
    delta: float = 0.0
    encoding: str = ""
    n_min: int = 0
    colluding: int = 0
    roster: str = ""
    recover: bool = False
    version: int = _PLAN_VERSION

    def __post_init__(self) -> None:
        settle(self)
        check_known_version(self.version, known=_PLAN_VERSION, what="plan")
        # First, because groups could make a short plan a long list.
        many = sum(len(steps) for steps, _ in self._groups)
        check_count("the number of steps of a plan", many, high=MOST_KINDS)
        check_count("parties", self.parties, high=LARGEST_COUNT)
        check_probability("delta", self.delta, high_open=True)
        if len(self.encoding) > _LONGEST_ENCODING:
            raise ParameterError(f"encoding must have at most {_LONGEST_ENCODING} characters.")
        if not isinstance(self.trust, TrustModel):
            raise ParameterError(f"trust must be a TrustModel, got {shown(self.trust)}.")
        kinds, neighbours = self.kinds, self.neighbours
        for step, count in kinds:
            check_count("the count of a step", count)
            if self.trust is TrustModel.AGGREGATE and not all(m.estimator.private for m in step.measures):
                raise ParameterError(
                    "every mean of aggregate trust needs noise: a sum alone protects nobody."
                )
            if step.trust is not self.trust and not step.alone:
                raise ParameterError(f"a step has {step.trust.value} trust, the plan {self.trust.value}.")
            step.check_rounds(count)
            if step.neighbours != neighbours:
                raise ParameterError("all steps of a plan must have the same neighbours.")
        self._check_arrivals()
        # Blocks of correlated rounds start over, so no other blocks can be kept apart from them.
        disjoint = [step for step, _ in kinds if isinstance(step.batch, Disjoint)]
        again = [step for step in disjoint if isinstance(step, CorrelatedStep)]
        if again and len(again) < len(disjoint):
            raise ParameterError("disjoint batches of correlated rounds go with no other disjoint batches.")
        kept = sum(step.keeps for step, _ in kinds)
        check_count("2 (bands - 1) dim of correlated rounds", kept, low=0, high=MOST_STATE)
        most = sum(step.batches * count for step, count in kinds)
        check_count("the number of rounds, steps of walks included,", most, high=MOST_ROUNDS)

    def _check_arrivals(self) -> None:
        """Refuse numbers of parties that arrive and collude, by which nothing is mixed, or too little."""
        if self.trust is not TrustModel.AGGREGATE and (self.roster, self.recover) != ("", False):
            raise ParameterError(
                "roster and recover must be left out in a plan that trusts in no sum, got "
                f"{shown((self.roster, self.recover))}."
            )
        if self.trust is TrustModel.SHUFFLE:
            if self.parties < 2:
                raise ParameterError("parties must be at least 2 under shuffle trust, got 1.")
            check_count("n_min", self.n_min, low=2, high=self.parties)
            check_count("colluding", self.colluding, low=0, high=self.n_min - 1)
            for step in self._mixed:
                check_count("honest", step.honest, high=LARGEST_COUNT)
                step.check_arrivals(self.n_min, self.colluding)
        elif self.trust is TrustModel.AGGREGATE:
            check_honest_shares(
                self._mixed,
                parties=self.parties,
                n_min=self.n_min,
                colluding=self.colluding,
                recover=self.recover,
                roster=self.roster,
            )
        elif (self.n_min, self.colluding) != (0, 0):
            raise ParameterError(
                "n_min and colluding must be 0 in a plan that trusts no shuffler, got "
                f"{shown((self.n_min, self.colluding))}."
            )

    # Every silo of a process asks for what follows, several times a run: it is worked out once for a plan.

    @cached_property
    def _groups(self) -> list[tuple[tuple[tuple[AnyStep, int], ...], int]]:
        """What is asked in turn, and how often; a kind in no group is asked in one turn."""
        return [(one.steps, n) if isinstance(one, Group) else (((one, n),), 1) for one, n in self.steps]

    @cached_property
    def kinds(self) -> tuple[tuple[AnyStep, int], ...]:
        """All kinds of rounds with how often each is asked in the whole run, the first asked first."""
        return tuple((step, count * turns) for steps, turns in self._groups for step, count in steps)

    @property
    def _mixed(self) -> list[AnyStep]:
        """The kinds of rounds of all silos; in the others one of them answers by itself."""
        return [step for step, _ in self.kinds if not step.alone]

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return sum(count for _, count in self.kinds)

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation that all steps share."""
        return self.kinds[0][0].neighbours

    @property
    def samples(self) -> bool:
        """Whether a step uses a part of the units, which the silo draws."""
        return any(not isinstance(step.batch, Full) for step, _ in self.kinds)

    @cached_property
    def exact(self) -> bool:
        """Whether all noise is sampled exactly: prices take floats for real numbers."""
        return all(measure.estimator.exact for step, _ in self.kinds for measure in step.measures)

    @property
    def hides_among_others(self) -> bool:
        """Whether silos count on the noise of others, so that a message alone shows more than promised."""
        return self.trust in (TrustModel.SHUFFLE, TrustModel.AGGREGATE)

    @property
    def has_circles(self) -> bool:
        """Whether answers are bound to the parties that they are mixed with; masks do that by themselves."""
        return self.hides_among_others and not self.roster

    def schedule(self) -> Schedule:
        """Return the kinds of rounds by number."""
        groups, first, rounds = [], 0, 0
        for steps, turns in self._groups:
            turn = tuple(accumulate((count for _, count in steps), initial=0))
            groups.append((rounds, first, turn))
            first, rounds = first + len(steps), rounds + turns * turn[-1]
        return Schedule(tuple(step for step, _ in self.kinds), tuple(groups), rounds)

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what the whole plan costs a unit of silos with these numbers of units.

        Args:
            sizes: Units of the silos that the price is for: one silo for what that silo reveals, all silos
                for what a trusted server publishes.
            trust: Whose view is priced.

        Raises:
            ParameterError: A batch exceeds a silo, a walk takes too long, disjoint batches use more units
                than there are, or a kind of batch has no price under these neighbours.
        """
        asked = (tuple(sizes), trust)
        if asked not in self._events:
            found = self._event(sizes, trust)
            if len(self._events) >= _MOST_EVENTS:
                self._events.clear()
            self._events[asked] = found
        return self._events[asked]

    @cached_property
    def _events(self) -> dict[tuple[tuple[int, ...], TrustModel], Event]:
        """What the plan costs, where somebody has asked."""
        return {}

    def _event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what the whole plan costs, as `event` says."""
        self.check_sizes(sizes)
        again, once = self._turns(sizes, trust), []
        for (one, _), (steps, turns) in zip(self.steps, self._groups, strict=True):
            if isinstance(one, Group) and one.aligned:
                again.append(repeated(one.aligned_event(sizes, trust), turns))
                continue
            turn = []
            for step, count in steps:
                if step.alone:
                    continue
                if isinstance(step, CorrelatedStep):
                    again.append(step.run_event(sizes, trust, count * turns))
                    continue
                event = step.event(sizes, trust)
                if isinstance(step.batch, Disjoint):
                    # All rounds of one block are about the same units.
                    often = min(step.batch.repeats, count * turns)
                    once.append(event if isinstance(event, NonPrivate) else repeated(event, often))
                else:
                    turn.append(repeated(event, count))
            if turn:
                again.append(repeated(composed(turn), turns))
        if once:  # one order for the whole run: a unit is in at most one block of any disjoint step
            again.append(Parallel(tuple(dict.fromkeys(once))))
        return composed(again)

    def _turns(self, sizes: Sequence[int], trust: TrustModel) -> list[Event]:
        """Return what the rounds of single silos cost the one that has most of them."""
        often: dict[TurnWalk, IntArray] = {}
        for step, count in self.kinds:
            if isinstance(step, TurnWalk):
                kind = msgspec.structs.replace(step, offset=0, stride=1)
                often[kind] = often.get(kind, 0) + step.turns(count, self.parties)
        found = [(step.event(sizes, trust), int(turns.max()), step) for step, turns in often.items()]
        return [
            event if isinstance(event, NonPrivate) or isinstance(step.batch, Disjoint) else repeated(event, n)
            for event, n, step in found
        ]

    def blocks(self, n: int) -> list[int]:
        """Return where in a silo's secret order the disjoint blocks of each kind of round start, and the end.

        The places are fixed by the plan, so that no interruption can make two rounds share a unit.
        """
        used = (
            step.start(step.batch.blocks_of(step.batches * count), n)
            if isinstance(step.batch, Disjoint) and not isinstance(step, CorrelatedStep)
            else 0
            for step, count in self.kinds
        )
        return list(accumulate(used, initial=0))

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Refuse silos that are too small for the batches, or busy for too long with one answer."""
        for n in dict.fromkeys(sizes):
            check_count("the number of units of a silo", n)
            for step, _ in self.kinds:
                step.check_size(n)
            if (used := self.blocks(n)[-1]) > n:
                raise ParameterError(
                    f"rounds x batch must be at most the {n} units of a silo if disjoint, got {used}."
                )
            for step, count in self.kinds:
                if count > (most := step.most_rounds(n)):
                    raise ParameterError(
                        f"correlated rounds must be at most passes x batches ({most}) in a silo of {n} "
                        f"units, got {count}."
                    )

    def check_answers(self, sizes: Sequence[int]) -> None:
        """Refuse a plan whose answers silos of these sizes could not hold, store or send.

        Not a matter of prices, whose search tries any noise.
        """
        for step, _ in self.kinds:
            step.check_answer(max(sizes))

    def check_honest(self, sizes: Sequence[int]) -> None:
        """Refuse a plan that counts on more honest rows than silos of these sizes are sure to send.

        Args:
            sizes: Public number of units of every party that there is, or that is mixed in a round.

        Raises:
            ParameterError: Too few rows in some round: its price would be too low.
        """
        if self.trust is not TrustModel.SHUFFLE:
            return
        for step, _ in self.kinds:
            if step.honest > (most := step.honest_rows(sizes, self.n_min - self.colluding)):
                raise ParameterError(
                    f"honest must be at most the {most} units that the smallest n_min - colluding "
                    f"({self.n_min - self.colluding}) batches hold, got {step.honest}."
                )

    def check_widths(self, sizes: Sequence[int]) -> None:
        """Refuse a plan of aggregate trust whose sums would wrap around, and mean nothing.

        Args:
            sizes: Public number of units of every party that is known.

        Raises:
            ParameterError: Fewer bits a number than one run in 2**40 needs (`with_widths`). No price depends
                on it.
        """
        if self.trust is not TrustModel.AGGREGATE:
            return
        rounds = self.rounds
        for step in self._mixed:
            needed = step.needed_width(sizes, parties=self.parties, rounds=rounds)
            if (width := step.summed[0].width) < needed:
                raise ParameterError(
                    f"width must be at least {needed} bits for the sums of this plan not to wrap around, got "
                    f"{width}."
                )

    def with_colluding(self, colluding: int) -> Plan:
        """Return the plan as it is priced by whoever thinks that so many parties collude, if these are more.

        Parties send the same messages: only what the price counts on is less.

        Raises:
            ParameterError: Then it has no price (`check_honest_shares`).
        """
        if self.trust is not TrustModel.AGGREGATE or colluding <= self.colluding:
            return self
        shares = self.n_min - colluding
        if shares < 2:  # what an estimator would say instead is about shares
            raise ParameterError(
                f"n_min - colluding must be at least 2 under aggregate trust, got {self.n_min} - {colluding}."
            )
        steps = changed(self.steps, lambda step: step if step.alone else of_means(step, shares=shares))
        return msgspec.structs.replace(self, steps=steps, colluding=colluding)

    def fits(self, n: int) -> bool:
        """Whether a silo of public size n has units for all disjoint batches."""
        return self.blocks(n)[-1] <= n and all(count <= step.most_rounds(n) for step, count in self.kinds)

    def check_statistics(self, known: Sequence[str]) -> None:
        """Refuse a plan that asks for statistics a silo does not have."""
        for step, _ in self.kinds:
            for measure in step.measures:
                check_choice("statistic", measure.statistic, known)

    def digest(self) -> bytes:
        """Return 32 bytes that identify the plan."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=32).digest()

    def to_toml(self) -> str:
        """Write the plan as TOML; `from_toml` reads it back equal."""
        return msgspec.toml.encode(_without_none(msgspec.to_builtins(self))).decode()

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """Read a plan.

        Raises:
            ParameterError: Not TOML, an unknown version, or a value that is not allowed.
        """
        _check_text(text)
        return read_versioned(text, cls, known=_PLAN_VERSION, what="plan")


def _check_text(text: Any) -> None:
    """Refuse what would keep the parser busy."""
    if not isinstance(text, str) or len(text) > LONGEST_PLAN:
        what = f"{len(text)}" if isinstance(text, str) else type(text).__name__
        raise ParameterError(f"a plan must be a text of at most {LONGEST_PLAN} characters, got {what}.")
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise ParameterError(f"a plan must have at most {MOST_DOTS} dots in a line.")


def _without_none(value: Any) -> Any:
    """Return what TOML can hold: it has no word for a field that is left out."""
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_without_none(part) for part in value]
    return value


# msgspec reads what a struct holds when it decodes the first one, and threads that do so at once crash. So it
# is done here, before there can be any.
_ = msgspec.json.Decoder(Plan)
