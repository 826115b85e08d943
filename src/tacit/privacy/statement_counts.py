"""What arithmetic can tell of the numbers that an event counts on: data that are smaller contradict them.

A price falls with every record that hides another one, and with every party that may be the one who sent. A
statement says beside its events how many of both there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit.errors import VerificationError
from tacit.privacy.events import Drawn, Event, Sample, Sampled, SelfDrawn, parts_of
from tacit.privacy.iteration import Iteration, IterationSchedule
from tacit.privacy.shuffling import Shuffled, ShuffledGaussian

if TYPE_CHECKING:
    from tacit.privacy.statement import About, DataFacts

__all__ = ["check_counts"]

_ROUNDING = 1e-6
"""By which a rate may be below a quotient of whole numbers."""


def check_counts(event: Event, about: About, data: DataFacts) -> None:
    """Refuse an event that counts on more parties, records or messages than the data have.

    Args:
        event: What a guarantee is about.
        about: Whose records those are.
        data: How many silos there are, of how many units, where that is public.

    Raises:
        VerificationError: It counts on more.
    """
    known = [size for size in data.sizes.values() if size is not None]
    smallest, whole = (min(known), sum(known)) if len(known) == len(data.sizes) > 0 else (None, None)
    # What is mixed or added up by one server is about all silos; else about the units of one.
    units = whole if about.silo is None or about.trust == "shuffle" else about.units
    public = data.trained_with.get(about.trust, 0)
    for one in _all_of(event):
        for what, counted, most in _counts(one, data, smallest, units, public):
            if most is not None and counted > most:
                raise VerificationError(f"its event counts on {counted:,.0f} {what}, and there are {most:,}.")


def _counts(
    event: Event, data: DataFacts, smallest: int | None, units: int | None, public: int
) -> Iterator[tuple[str, float, int | None]]:
    """Yield what an event itself counts on, how many of it, and how many there can be."""
    every = data.unit.plural
    if isinstance(event, Drawn | SelfDrawn):
        yield "parties", event.clients, data.silos
    if isinstance(event, Drawn):
        yield f"{every} of each party", event.records, smallest
        for leaf in _all_of(event.part):
            if isinstance(leaf, Shuffled | ShuffledGaussian):
                yield "messages of those that are drawn", leaf.parties, event.drawn
    elif isinstance(event, Sampled) and event.how is Sample.FIXED:
        # At least one unit is in a sample of a fixed size.
        yield f"{every} that one is drawn of", (1 - _ROUNDING) / event.rate, units
    elif isinstance(event, Shuffled | ShuffledGaussian):
        yield "messages in a batch", event.parties, units
    elif isinstance(event, Iteration):
        private = event.n if event.private is None else event.private
        yield f"steps on {every} of their own", private, units
        yield "steps in an epoch", event.n, None if units is None else units + public
    elif isinstance(event, IterationSchedule):
        for steps in event.epochs:
            yield f"steps on {every} of their own", steps.private, units
            yield "steps in an epoch", steps.private + steps.public, None if units is None else units + public


def _all_of(event: Event) -> Iterator[Event]:
    """Yield an event and all that it is made of."""
    yield event
    for part in parts_of(event):
        yield from _all_of(part)
