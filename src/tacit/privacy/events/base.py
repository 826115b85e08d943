"""What every event is: data that knows its neighbours, and its price if it is one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.numerics import settle
from tacit.privacy.curves import Array, Curve
from tacit.privacy.neighbours import Neighbours, Part

if TYPE_CHECKING:
    from tacit.privacy.events.leaves import Zcdp

__all__ = ["Event", "Leaf", "check_whole_unit", "neighbours_of"]


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """A release, or releases together. Immutable, comparable, serialisable."""

    registry: ClassVar[dict[str, type[Event]]] = {}
    goes_by_size: ClassVar[frozenset[str]] = frozenset()
    """Which of its numbers follow from how many parties send messages."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        known = Event.registry.get(cls.__name__)
        if known is not None and known.__module__ != cls.__module__:
            raise TypeError(f"there is an event named {cls.__name__} already.")
        if cls.__name__ != "Leaf" and not cls.__name__.startswith("_"):
            Event.registry[cls.__name__] = cls
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = _settled(cls.__post_init__)  # type: ignore[assignment, method-assign]

    def __post_init__(self) -> None:
        settle(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the price rests on besides the noise and the parts, as clauses of a guarantee's sentence."""
        return ()


def _settled(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of an event that sees plain numbers; no kind of event can forget to ask for them."""

    @wraps(check)
    def settled(event: Event) -> None:
        settle(event)
        check(event)

    return settled


class Leaf(Event, frozen=True, tag=True):
    """One release, with the neighbours its sensitivity was taken under."""

    method: ClassVar[str] = "exact privacy curve"
    """How the price of this release alone is computed, in words."""

    continuous: ClassVar[bool]
    """Whether it is one law of real numbers, to which a sampler of floats only comes close."""

    def curve(self) -> Curve:
        """Return the privacy curve of this release."""
        raise ParameterError(f"{type(self).__name__} has no privacy curve of its own.")

    @property
    def concentrated(self) -> Zcdp | None:
        """A concentrated-DP level of this release; None where none is known."""
        return None

    def repeated(self, count: int) -> Leaf | None:  # noqa: ARG002 - what a subclass may use
        """Return `count` such releases as one leaf; None where only a convolution composes them."""
        return None

    def work(self, *, many: bool) -> float:  # noqa: ARG002 - what a subclass may use
        """Return about how many numbers its price takes; `many`: its curve is asked for on a grid."""
        return 1e4

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergence at each order > 1, in both directions; infinite: none."""
        return np.full(orders.shape, math.inf)


def neighbours_of(event: Event) -> Neighbours:
    """Return the neighbouring relation an event is priced under."""
    relation = getattr(event, "neighbours", None)
    if not isinstance(relation, Neighbours):
        raise ParameterError(f"{type(event).__name__} does not say which neighbours it is for.")
    return relation


def check_whole_unit(what: str, neighbours: Neighbours) -> None:
    """Refuse amplification where neighbours differ in a part of a unit only: the rest tells who takes part.

    With the other part unbounded and known, a release on a sample of rate q has exactly q times the delta of
    the release: at q = 0.1 and a noise multiplier of 1, epsilon 3.8044 at delta 1e-5 where the curve of a
    hidden sample claims 1.6845 (docs/theory/accounting.md).

    Args:
        what: What would amplify, for the message.
        neighbours: The relation.

    Raises:
        ParameterError: Only sensitive attributes or a reward differ.
    """
    if neighbours.part in (Part.SENSITIVE, Part.REWARD):
        raise ParameterError(
            f"{what} hides nobody where neighbours differ in the {neighbours.part.value} part only: the rest "
            f"of the {neighbours.unit.value} shows who is in it. Price the release without it, or under "
            "neighbours that differ in the whole unit."
        )
