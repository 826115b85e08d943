"""How far a run is, for whoever looks: who is here, what was sent, what it costs; nothing of any data."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final, Literal

import msgspec

from tacit.errors import TacitError
from tacit.federation.account import price_of
from tacit.federation.network.journal import RoundFacts
from tacit.federation.network.roster import Roster
from tacit.federation.network.rounds import RemoteRounds
from tacit.federation.plan import Plan
from tacit.federation.steps import AnyStep, Group
from tacit.privacy import Guarantee, TrustModel

__all__ = ["Progress", "RunState", "first_rounds"]

RunState = Literal["waiting", "running", "done", "failed"]

_SHOWN: Final = 200
"""Rounds of the table, the last ones."""

_SHARE: Final = 0.05
"""Of the time of a run that may go into prices of its beginning."""


@dataclass(frozen=True)
class _Row:
    """A round, and what all rounds up to it cost; None where nobody has worked that out."""

    facts: RoundFacts
    epsilon: float | None


class Progress:
    """What a server knows of its run, all of it public; threads may share it.

    Args:
        roster: Of the federation.
        plan: What is asked.
        run: Name of the run.
        present: Returns the names of the silos that can be reached now.
    """

    def __init__(
        self, roster: Roster, plan: Plan, run: str, *, present: Callable[[], set[str]] = set[str]
    ) -> None:
        self._roster, self._plan, self._run, self._present = roster, plan, run, present
        self._lock = RLock()
        self._state: RunState = "waiting"
        self._rows: deque[_Row] = deque(maxlen=_SHOWN)
        self._guarantees: list[Guarantee] = []
        self._answered = dict.fromkeys((one.name for one in roster.silos), 0)
        self._dropped, self._refused = dict(self._answered), dict(self._answered)
        self._done = self._skipped = self._up = self._down = 0
        self._seconds = self._pricing = 0.0
        self._began = time.monotonic()
        self._epsilon: float | None = 0.0

    def begin(self, rounds: RemoteRounds) -> None:
        """Show what was agreed on, and the rounds that are over."""
        with self._lock:
            self._state, self._guarantees = "running", list(rounds.guarantees)
            self._began = time.monotonic()
            for facts in rounds.done:
                if facts.step >= self._done:
                    self._count(facts, self._price(facts.step + 1))

    def follow(self, facts: RoundFacts) -> None:
        """Show one more round."""
        with self._lock:
            self._count(facts, self._price(facts.step + 1))

    def end(self, state: RunState) -> None:
        """Show that the run is over, or waits."""
        with self._lock:
            self._state = state

    @property
    def epsilon(self) -> float | None:
        """What the rounds so far cost at most anybody; None where nobody has worked that out."""
        with self._lock:
            return self._epsilon

    def facts(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        here = self._present()
        with self._lock:
            central = self._plan.trust is TrustModel.CENTRAL
            agreed = self._guarantees
            return {
                "federation": self._roster.federation,
                "run": self._run,
                "plan": self._plan.digest().hex(),
                "trust": self._plan.trust.value,
                "state": self._state,
                "rounds": self._plan.rounds,
                "done": self._done,
                "skipped": self._skipped,
                "epsilon_so_far": self._epsilon,
                "bytes_up": self._up,
                "bytes_down": self._down,
                "seconds": self._seconds,
                "guarantees": [_agreed(one) for one in agreed] if central else [],
                "silos": [
                    {
                        "name": silo.name,
                        "size": silo.size,
                        "present": silo.name in here,
                        "answered": self._answered[silo.name],
                        "dropped": self._dropped[silo.name],
                        "refused": self._refused[silo.name],
                        **(_agreed(agreed[k]) if agreed and not central else {}),
                    }
                    for k, silo in enumerate(self._roster.silos)
                ],
                "table": [
                    {
                        **msgspec.to_builtins(row.facts),
                        "bytes_up": sum(row.facts.bytes_up),
                        "bytes_down": sum(row.facts.bytes_down),
                        "bits_up": sum(row.facts.bits_up),
                        "asked": len(row.facts.asked),
                        "answered": [self._roster.silos[k].name for k in row.facts.answered],
                        "epsilon": row.epsilon,
                    }
                    for row in self._rows
                ],
            }

    def _count(self, facts: RoundFacts, epsilon: float | None) -> None:
        """Enter a round."""
        self._rows.append(_Row(facts, epsilon))
        self._done, self._epsilon = facts.step + 1, epsilon
        self._skipped += facts.skipped
        self._up, self._down = self._up + sum(facts.bytes_up), self._down + sum(facts.bytes_down)
        self._seconds += facts.seconds
        for k in facts.answered:
            self._answered[self._roster.silos[k].name] += 1
        for name, many in facts.dropped.items():
            self._dropped[name] += many
        for name in facts.refused:
            self._refused[name] += 1

    def _price(self, rounds: int) -> float | None:
        """Return what the first rounds cost at most anybody; None where to find out would take too long."""
        now = time.monotonic()
        whole = rounds == self._plan.rounds
        if whole and self._guarantees:
            return _finite(max(one.epsilon for one in self._guarantees))
        if self._pricing > _SHARE * (now - self._began) + 0.05:
            return None
        try:
            return self._priced(rounds)
        except TacitError:
            return None
        finally:
            self._pricing += time.monotonic() - now

    def _priced(self, rounds: int) -> float | None:
        """Return what the first rounds cost."""
        plan, sizes = first_rounds(self._plan, rounds), self._roster.sizes
        central = plan.trust is TrustModel.CENTRAL
        cuts = [list(sizes)] if central else [[n] for n in sorted(set(sizes))]
        prices = [
            price_of(
                plan.event(cut, plan.trust), plan.delta, observer="anybody", assumptions=(), simulated=False
            )
            for cut in cuts
        ]
        return _finite(max(one.epsilon for one in prices))


def first_rounds(plan: Plan, rounds: int) -> Plan:
    """Return the plan of the first rounds of a plan: what was asked if a run ends early.

    Args:
        plan: The whole one.
        rounds: How many, 1 to all.
    """
    left, steps = rounds, list[tuple[AnyStep | Group, int]]()
    for one, count in plan.steps:
        turn = one.steps if isinstance(one, Group) else ((one, 1),)
        length = sum(times for _, times in turn)
        turns = min(count, left // length)
        if turns:
            steps.append((one, turns))
            left -= turns * length
        if turns < count:
            for step, times in turn:
                if left:
                    steps.append((step, min(times, left)))
                    left -= min(times, left)
            break
    return msgspec.structs.replace(plan, steps=tuple(steps))


def _agreed(one: Guarantee) -> dict[str, Any]:
    """Return what was agreed with a party."""
    return {"epsilon": _finite(one.epsilon), "delta": one.delta, "simulated": one.simulated}


def _finite(epsilon: float) -> float | None:
    """Return what JSON can hold."""
    return epsilon if math.isfinite(epsilon) else None
