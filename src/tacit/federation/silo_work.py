"""What a silo computes of its units for one answer: means of a batch, and walks that it takes by itself.

What may be asked, and how often, is decided before (`Silo`); here is what the price of a plan is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tacit.errors import LedgerError, RefusalError
from tacit.federation.accepted import AcceptedRun, Begun, CheckedQuery, DrawnBatch
from tacit.federation.batches import Disjoint, Fixed, Poisson
from tacit.federation.contribution import Contributions
from tacit.federation.correlated import CorrelatedStep, release
from tacit.federation.drawn import DrawnStep, new_word
from tacit.federation.epochs import run_epochs
from tacit.federation.kept import Kept
from tacit.federation.query import Units
from tacit.federation.steps import HiddenRun, HiddenWalk, TurnWalk, Walk
from tacit.means import SMALLEST_RADIUS, Message, Round
from tacit.numerics import (
    IntArray,
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)
from tacit.privacy import Order

__all__ = ["SiloWork"]


@dataclass(frozen=True, slots=True)
class SiloWork:
    """Computes answers of one accepted run; it stores none of them.

    Attributes:
        units: The silo's.
        contributions: What they contribute to means.
        size: Public number of units.
        who: Whose they are, for messages.
        run: The accepted run.
        rng: The silo's own randomness.
    """

    units: Units
    contributions: Contributions
    size: int
    who: str
    run: AcceptedRun
    rng: np.random.Generator

    def draw(self, task: CheckedQuery) -> DrawnBatch | None:
        """Draw the batch of a round whose sums can be taken with those of other silos; None for others."""
        asked = task.asked
        if isinstance(asked.step, Walk | HiddenRun) or asked.mixes:
            return None
        joined = [
            self.contributions.joined(measure) if fused else None
            for measure, fused in zip(asked.sent, task.fused, strict=True)
        ]
        if not any(joined):
            return None
        index = self._index(task)
        take = partial(self._taken, index)
        return DrawnBatch(index, take, asked.rows, asked.sent, joined, [None] * len(joined))

    def compute(self, begun: Begun, kept: Kept) -> tuple[tuple[bytes, ...], ...]:
        """Return the messages of one round, statistic by statistic."""
        task, asked = begun.task, begun.task.asked
        if isinstance(asked.step, HiddenRun):
            return (self._hidden_run(task, asked.step),)
        if isinstance(asked.step, TurnWalk):
            return (self._turn_walk(task, asked.step),)
        if isinstance(asked.step, Walk):
            return (self._walk(task, asked.step),)
        if isinstance(asked.step, CorrelatedStep) and asked.mixes:
            return (self._correlated(task, asked.step, kept),)
        sent = self.means(begun, kept)
        if isinstance(asked.step, DrawnStep):
            sent.append([new_word(self.rng)])
        return tuple(tuple(message.to_bytes() for message in messages) for messages in sent)

    def means(self, begun: Begun, kept: Kept) -> list[list[Message]]:
        """Return the messages about the means of one batch."""
        task, asked, drawn = begun.task, begun.task.asked, begun.drawn
        index = self._index(task) if drawn is None else drawn.index
        totals = [None] * len(asked.sent) if drawn is None else drawn.sums
        units = self._taken(index) if any(total is None for total in totals) else None
        states = kept.states if index is None else {name: all_[index] for name, all_ in kept.states.items()}
        messages = [
            self._messages(
                measure,
                units,
                at=task.at,
                round=_round(asked.rows, radius, task.query.step),
                fused=fused,
                states=states,
                total=total,
            )
            for measure, radius, fused, total in zip(
                asked.sent, task.query.radius, task.fused, totals, strict=True
            )
        ]
        if index is not None:
            for name, state in states.items():
                kept.states[name][index] = state
        return messages

    @property
    def _messages(self) -> partial[list[Message]]:
        """What returns the messages about one mean of a batch."""
        return partial(self.contributions.messages, party=self.run.party, rng=self.rng)

    def _batch(self, task: CheckedQuery, *, local: int = 0) -> Any:
        """Return the units of a round."""
        return self._taken(self._index(task, local=local))

    def _taken(self, index: IntArray | None) -> Any:
        """Return some of the units; all for None."""
        return self.units if index is None else self.units.take(index)

    def _index(self, task: CheckedQuery, *, local: int = 0) -> IntArray | None:
        """Return which units are in a round, None for all; a silo draws them in secret and tells nobody."""
        step, size = task.asked.step, task.asked.rows
        match step.batch:
            case Fixed():
                return sample_fixed(len(self.units), size, self.rng)
            case Poisson():
                return sample_poisson(len(self.units), step.batch.rate_for(self.size), self.rng)
            case Disjoint():
                block = (task.earlier * step.batches + local) // step.batch.repeats
                start = self.run.blocks[task.kind] + step.start(block, self.size)
                held = step.batch.block_for(self.size)
                index = take_disjoint_batch(self._order(), start, held)
                if step.batch.sample is not None:
                    index = index[sample_fixed(held, size, self.rng)]
                return index
            case _:
                return None

    def _order(self) -> IntArray:
        """Return the secret order of the run, stored before anything is computed with it."""
        if self.run.order is None:
            n = len(self.units)
            stored = self.run.store.secret(lambda: draw_disjoint_order(n, self.rng).astype("<i8").tobytes())
            self.run.order = np.frombuffer(stored, dtype="<i8").astype(np.int64)
            if len(self.run.order) != n:
                raise LedgerError(f"the data of {self.who} have changed since the run began.")
        return self.run.order

    def _correlated(self, task: CheckedQuery, step: CorrelatedStep, kept: Kept) -> tuple[bytes, ...]:
        """Return the mean of a batch, with noise that goes on from that of the rounds before."""
        n, radius, units = task.asked.rows, task.query.radius[0], self._batch(task)
        this_round = _round(n, radius, task.query.step)
        (exact,) = self._messages(step.exact, units, at=task.at, round=this_round, fused=task.fused[0])
        released, kept.pasts[task.kind] = release(
            step, exact.payload, task.earlier, kept.pasts[task.kind], radius=radius, rows=n, rng=self.rng
        )
        return (Message(payload=(released / n).astype(np.float32)).to_bytes(),)

    def _hidden_run(self, task: CheckedQuery, step: HiddenRun) -> tuple[bytes, ...]:
        """Take all steps of a hidden run, and return its last iterate."""
        (measure,), n, size = task.asked.sent, self.size, task.asked.rows
        radius, epochs = task.query.radius[0], step.epochs_of(n)
        std = step.noise_std(radius, size)
        if std == 0:
            epochs = [replace(epoch, noise=False, public_noise=False) for epoch in epochs]
        public = self.contributions.public_units(measure, task.at) if step.uses_public else None
        w = run_epochs(
            self.contributions.descend(measure, public, radius=radius),
            w=step.first_point(task.at["w"], n),
            n=n,
            epochs=epochs,
            order=step.order,
            step_size=step.step_size,
            noise_std=std,
            prox=step.prox,
            rng=self.rng,
            batch=size,
        )
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _walk(self, task: CheckedQuery, step: Walk) -> tuple[bytes, ...]:
        """Take all steps of a walk, every mean as private as a message, and return the last point."""
        (measure,), (fused,), w = task.asked.sent, task.fused, task.at["w"]
        n, radius = task.asked.rows, task.query.radius[0]
        this_round = _round(n, radius, task.query.step)
        if isinstance(step, HiddenWalk):
            step_size, batches = step.step_size, self._blocks(step)
        else:
            # Messages are about whole rows, a Poisson sample expects a fraction of one.
            step_size = float(task.query.at["step_size"]) * n / step.batch.expected(self.size)
            batches = (self._batch(task, local=local) for local in range(step.steps))
        w = step.project(w)
        for units in batches:
            sent = self._messages(measure, units, at={"w": w}, round=this_round, fused=fused)
            w = step.project(w - step_size * measure.estimator.decode(sent, this_round))
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _turn_walk(self, task: CheckedQuery, step: TurnWalk) -> tuple[bytes, ...]:
        """Walk along an estimate that the silo's own noisy differences carry on; return where it is."""
        if step.turn(task.earlier, self.run.plan.parties) != self.run.party:
            raise RefusalError(f"{self.who} walks in its own turns only, which it pays for.")
        # Under another number it would have other turns as well.
        number = str(self.run.party).encode()
        if self.run.store.secrets.keep("turn", lambda: number) != number:
            raise RefusalError(f"{self.who} has walked in this run as another party.")
        (measure,), (fused,), at = task.asked.sent, task.fused, task.query.at
        n, (longest,), clip = task.asked.rows, task.query.radius, task.at["clip"]
        eta, smoothness = float(at["step_size"]), float(at["smoothness"])
        w, previous, v = task.at["w"], task.at["w"], at["v"].astype(np.float64)
        for local in range(step.check_taken(at["taken"])):
            radius = min(longest, smoothness * float(np.linalg.norm(w - previous)))
            if radius >= SMALLEST_RADIUS:
                here = _round(n, radius, task.query.step)
                points = {"w": w, "previous": previous, "clip": clip}
                units = self._batch(task, local=local - 1)
                sent = self._messages(measure, units, at=points, round=here, fused=fused)
                v = v + measure.estimator.decode(sent, here) * (n / step.batch.expected(self.size))
            previous, w = w, w - eta * v
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _blocks(self, step: HiddenWalk) -> Iterator[Any]:
        """Yield the units of every step of a hidden walk: the blocks of an order, epoch after epoch."""
        n, size = self.size, step.batch.size_for(self.size)
        order: IntArray = np.arange(n)
        for local in range(step.steps):
            start = local % step.epoch(n) * size
            if start == 0 and (step.order is Order.RR or (step.order is Order.SO and local == 0)):
                order = draw_disjoint_order(n, self.rng)
            yield self.units.take(take_disjoint_batch(order, start, size))


@lru_cache(maxsize=8)
def _round(n: int, radius: float, number: int) -> Round:
    """Return the facts of a round, one object for all silos of a size: to check them takes longer."""
    return Round(n=n, radius=radius, number=number)
