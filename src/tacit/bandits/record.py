"""The file of a live bandit: its plan, what is out, and what was answered; strict JSON with a version."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tacit.bandits.elimination import Batch, Decision, Elimination
from tacit.bandits.plan import BanditPlan, Tail
from tacit.bandits.radius import RadiusMode
from tacit.bandits.reward_privacy import Amplification, Anonymity, RewardNoise, RewardPrivacy
from tacit.errors import ParameterError, check_name
from tacit.ledger import new_run
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tacit.privacy.strict_json import is_version, read_json, read_start

__all__ = ["AnsweredBatch", "IssuedBatch", "RunRecord", "read_record"]

_VERSION = 2


class _Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch as a file holds it; no level is no noise."""

    number: int
    actions: tuple[int, ...]
    counts: tuple[int, ...]
    level: float | None
    length: float
    spread: float

    @property
    def _batch(self) -> Batch:
        """The batch, as one that is answered."""
        return Batch(
            number=self.number,
            actions=np.array(self.actions, dtype=np.int64),
            counts=np.array(self.counts, dtype=np.int64),
            level=math.inf if self.level is None else self.level,
            length=self.length,
            spread=self.spread,
        )


def _kept(batch: Batch) -> dict[str, Any]:
    """Return the fields of a batch."""
    return {
        "number": batch.number,
        "actions": tuple(map(int, batch.actions)),
        "counts": tuple(map(int, batch.counts)),
        "level": batch.level if math.isfinite(batch.level) else None,
        "length": batch.length,
        "spread": batch.spread,
    }


class IssuedBatch(_Kept, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch that is out.

    Attributes:
        final: Whether it is the last one, which is not answered.
    """

    final: bool

    @property
    def batch(self) -> Batch:
        """The batch."""
        return replace(self._batch, final=self.final)


class AnsweredBatch(_Kept, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch that was answered.

    Attributes:
        sums: Noisy sums of the rewards of each action.
        radius: gamma, as it was decided.
    """

    sums: tuple[float, ...]
    radius: float

    @property
    def batch(self) -> Batch:
        """The batch."""
        return self._batch


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a run needs to go on.

    Attributes:
        version: Of the format.
        run: Name that no other run has, by which ledgers know it.
        plan: As `BanditPlan.facts` gives it.
        rows: Of the actions.
        seed: Of a simulation; None for secret randomness.
        alive: Rows that are left.
        played: Rounds of answered batches.
        best: Row of the best estimate.
        answered: In order.
        issued: What is out.
    """

    version: int
    run: str
    plan: dict[str, Any]
    rows: tuple[tuple[float, ...], ...]
    seed: int | None
    alive: tuple[int, ...]
    played: int
    best: int
    answered: tuple[AnsweredBatch, ...] = ()
    issued: IssuedBatch | None = None

    @classmethod
    def of(cls, plan: BanditPlan, state: Elimination, *, seed: int | None) -> RunRecord:
        """Return the record of a run that starts."""
        return cls(
            version=_VERSION,
            run=new_run("bandit") if seed is None else f"bandit-simulated-{seed}",
            plan=plan.facts(),
            rows=tuple(tuple(row) for row in plan.actions.tolist()),
            seed=seed,
            alive=tuple(map(int, state.alive)),
            played=state.played,
            best=state.best,
        )

    def with_issued(self, batch: Batch) -> RunRecord:
        """Return the record with a batch that is out."""
        issued = IssuedBatch(**_kept(batch), final=batch.final)
        return msgspec.structs.replace(self, issued=issued)

    def with_answer(self, batch: Batch, sums: Array, decision: Decision) -> RunRecord:
        """Return the record with the batch answered."""
        found = AnsweredBatch(**_kept(batch), sums=tuple(map(float, sums)), radius=decision.radius)
        after = decision.state
        return msgspec.structs.replace(
            self,
            alive=tuple(map(int, after.alive)),
            played=after.played,
            best=after.best,
            answered=(*self.answered, found),
            issued=None,
        )

    def to_json(self) -> bytes:
        """Return what the file holds."""
        return msgspec.json.encode(self) + b"\n"

    def to_plan(self) -> BanditPlan:
        """Return the plan; its facts are checked against what it says.

        Raises:
            ParameterError: The facts are not those of a plan with these actions.
        """
        facts = self.plan
        try:
            plan = BanditPlan(
                actions=np.array(self.rows, dtype=np.float64),
                horizon=facts["horizon"],
                privacy=RewardPrivacy(
                    trust=None if facts["trust"] is None else TrustModel(facts["trust"]),
                    epsilon=math.inf if facts["epsilon"] is None else facts["epsilon"],
                    delta=facts["delta"],
                    noise=RewardNoise(facts["noise"]),
                    anonymity=Anonymity(facts["anonymity"]),
                    method=Amplification(facts["method"]),
                ),
                radius=RadiusMode(facts["radius"]),
                core=facts["core"],
                tol=facts["tol"],
                tail=Tail(facts["tail"]),
                reward_range=tuple(facts["reward_range"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"the record of the bandit has no plan that can be read: {error}") from error
        if plan.facts() != facts:
            raise ParameterError("the record of the bandit has a plan that does not fit its actions.")
        return plan


def read_record(path: Path) -> RunRecord:
    """Read the file of a live bandit.

    Raises:
        ParameterError: It is missing, no strict JSON, of another version, or contradicts itself.
    """
    if not path.is_file():
        raise ParameterError(f"path must be a file of a bandit that was started, got {str(path)!r}.")
    try:
        found = read_json(read_start(path))
        if not isinstance(found, dict) or not is_version(found.get("version"), _VERSION):
            raise ParameterError(f"it has another version than {_VERSION}")
        record = msgspec.convert(found, RunRecord)
        check_name("run", record.run)
    except (ParameterError, msgspec.ValidationError) as error:
        raise ParameterError(f"{str(path)!r} is no record of a bandit: {str(error).rstrip('.')}.") from error
    _check(record, path)
    return record


def _check(record: RunRecord, path: Path) -> None:
    """Refuse a record that contradicts itself."""
    n = len(record.rows)
    batches: list[_Kept] = [*record.answered, *([record.issued] if record.issued is not None else [])]
    right = (
        bool(record.alive)
        and all(0 <= a < b for a, b in zip(record.alive, (*record.alive[1:], n), strict=True))
        and 0 <= record.best < n
        and record.played == sum(sum(b.counts) for b in record.answered)
        and all(len(b.sums) == len(b.actions) for b in record.answered)
        and (record.issued is None or set(record.issued.actions) <= set(record.alive))
        and [b.number for b in batches] == list(range(1, len(batches) + 1))
        and all(
            len(b.actions) == len(b.counts)
            and len(b.actions) > 0
            and all(0 <= a < c for a, c in zip(b.actions, (*b.actions[1:], n), strict=True))
            and min(b.counts) >= 1
            for b in batches
        )
    )
    if not right:
        raise ParameterError(f"{str(path)!r} is no record of a bandit: its batches contradict each other.")
