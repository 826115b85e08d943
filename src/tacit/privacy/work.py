"""How much work a price takes, from public facts alone, before any of it is done.

A statement comes from elsewhere. It may hold a hundred thousand different releases, proofs of proofs, or a
run of 2^52 steps, and whoever prices it must not be stalled. The count here follows what pricing does: tables
and sums of each release, a grid for each that is convolved, every proof beside the rest. It is a count of
numbers computed, of about 10 ns each, and rough; what it must do is tell seconds from hours, on every machine
alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tacit.errors import ParameterError, check_positive
from tacit.privacy import events
from tacit.privacy.events import Event, Leaf

__all__ = ["MOST_WORK", "VERIFY_WORK", "allowed_work", "check_work", "work_limit", "work_of"]

MOST_WORK = 4e9
"""Numbers that a price may take to compute unless more is allowed: half a minute."""

VERIFY_WORK = 4e8
"""The same where a statement is verified, which somebody else wrote: some seconds."""

_MOST_RELEASES = 10**12
"""Of more of them nothing is claimed, and nothing computed."""

DEEPEST = 100
"""Levels that an event may be nested."""

_NODE = 500.0  # to look at, hash and sort one release
_COMPOSED = 3e5  # to put one release on a grid and transform it
_REPLACED = 3e4  # a curve of one formula
_STEEP, _STEEP_LEVEL = 6e7, 12.0  # losses far above their deviation: grids get as long as allowed
_PER_POINT, _PER_ROOT, _MOST_POINTS = 30.0, 600.0, 2.0**22  # of a spectrum, of length 600 sqrt(releases)
_CONCENTRATED = 3e6  # the best order for every point of a grid
_RENYI_SUMS = 1e8  # the sums of a sampled Rényi bound, one of up to 2^17 terms for each of 512 orders
_ORDERS = 600  # at which Rényi bounds are added up, besides those that a release states

_limit: ContextVar[float] = ContextVar("most_work")


@contextmanager
def work_limit(most: float) -> Iterator[None]:
    """Allow prices that take up to `most` numbers to compute, within a `with` block.

    Raises:
        ParameterError: `most` is not a finite number > 0.

    Example:
        >>> from tacit.privacy import Laplace, Repeat, epsilon_of
        >>> with work_limit(1e12):
        ...     round(epsilon_of(Repeat(Laplace(10.0), 5), 0.0), 6)
        0.5
    """
    check_positive("most", most)
    token = _limit.set(float(most))
    try:
        yield
    finally:
        _limit.reset(token)


def allowed_work(usual: float = MOST_WORK) -> float:
    """Return how many numbers a price may take: what the enclosing `work_limit` says, else what is usual."""
    return _limit.get(usual)


def check_work(event: Event) -> None:
    """Refuse an event whose price would take more work than is allowed.

    Raises:
        ParameterError: Too much work, or nested too deep.
    """
    work_of(event, most=allowed_work())


def work_of(event: Event, *, most: float = 1e15) -> float:
    """Return about how many numbers are computed to price an event.

    Args:
        event: Any event tree.
        most: Where to stop counting, finite and > 0.

    Raises:
        ParameterError: More than `most`, or nested too deep.
    """
    count = _Count(check_positive("most", most))
    count.look(event)
    count.walk(event)
    count.name(event)
    return count.total


def _level(part: Leaf) -> float:
    """Return the pure level that a release states, or that its noise gives; 0 where it has none."""
    match part:
        case events.PureDP(epsilon=level) | events.ApproximateDP(epsilon=level):
            return level
        case events.Laplace(noise_multiplier=z):
            return 1 / max(z, 1e-300)
        case events.DiscreteLaplace(scale=scale, sensitivity=moved):
            return float(moved) / max(scale, 1e-280)
        case _:
            return float(getattr(part, "local_epsilon", getattr(part, "target_epsilon", 0.0)))


class _Count:
    """A sum that may not exceed a limit; it stops there, so that counting is bounded as well."""

    def __init__(self, most: float) -> None:
        self.most, self.total, self.steep = most, 0.0, False

    def add(self, work: float) -> None:
        self.total += work
        if not self.total <= self.most:
            raise ParameterError(
                f"this event takes too much work to price: more than the {self.most:.3g} numbers that are "
                "allowed; `tacit.privacy.work_limit` allows more."
            )

    def look(self, event: Event) -> None:
        """Add what it takes to see every part once; a part that is used twice is seen twice."""
        ahead = [(event, 0)]
        while ahead:
            part, depth = ahead.pop()
            self.add(_NODE)
            if depth > DEEPEST:
                raise ParameterError(
                    f"an event must not be nested deeper than {DEEPEST} levels to be priced."
                )
            ahead += [(inner, depth + 1) for inner in events.parts_of(part)]

    def walk(self, event: Event, *, many: bool = False, rest: float = 0.0) -> int:
        """Add the work of one event; return how many Rényi orders its releases state.

        Args:
            event: Any event.
            many: Whether its curve is asked for on a grid, and not at a few epsilons only.
            rest: Work of the releases that every proof of it is composed with.
        """
        before, found = self.total, self._releases(event)
        alone = sum(found.values()) == 1
        many = many or not alone
        proofs = [part for part in found if isinstance(part, events.AnyOf)]
        orders, leaves = 0, 0.0
        for part in found:
            match part:
                case events.Sampled(part=inner):
                    below = self.walk(inner, many=many)
                    self.add(_RENYI_SUMS if below else 0.0)
                    orders += below
                case events.Replaced():
                    self.add(_REPLACED * (1 + 20 * many))
                case events.Parallel(parts=parts) | events.ByChance(parts=parts):
                    orders += sum(self.walk(p, many=many) for p in dict.fromkeys(parts))
                case Leaf():
                    self.add(part.work(many=many))
                    self.steep = self.steep or _level(part) > _STEEP_LEVEL
                    stated = len(getattr(part, "orders", ()))
                    orders, leaves = orders + stated, leaves + (0.0 if stated else part.work(many=False))
                case _:
                    pass
            merges = isinstance(part, events.Gaussian | events.Gdp | events.GaussianOnGrid | events.Aligned)
            self.add(_COMPOSED if many and not merges else 0.0)
        if many and any(isinstance(part, events.Zcdp | events.AnyOf) for part in found):
            self.add(_CONCENTRATED)
        if not alone:
            length = min(_PER_ROOT * math.sqrt(sum(found.values())), _MOST_POINTS)
            self.add(_PER_POINT * length + _STEEP * self.steep)
        # One release with several proofs is composed with the rest by each of them.
        beside = rest + self.total - before
        for each in proofs:
            for proof in dict.fromkeys(each.proofs):
                orders += self.walk(proof, many=many)
                if many and len(proofs) == 1:
                    self.add(beside)
                    self.walk(proof, many=many, rest=beside)
        if orders and many:
            self.add((_ORDERS + orders) * leaves / 500)
        return orders

    def name(self, event: Event) -> None:
        """Add the work of saying which proof of one release wins: each is priced again."""
        found = self._releases(event)
        if sum(found.values()) > 1:
            return
        for part in found:
            if isinstance(part, events.AnyOf):
                proofs = list(dict.fromkeys(part.proofs))
                for proof in proofs:
                    self.walk(proof)
                for proof in proofs:  # of the winner its own proofs, whichever it is
                    self.name(proof)

    def _releases(self, event: Event, times: int = 1) -> dict[Event, int]:
        """Return the releases that an event composes, and how often, at least."""
        self.add(_NODE)
        match event:
            case events.Compose(parts=parts):
                found: dict[Event, int] = {}
                for part in parts:
                    for release, count in self._releases(part, times).items():
                        found[release] = found.get(release, 0) + count
                return found
            case events.Repeat(part=part, count=count):
                return self._releases(part, min(times * count, _MOST_RELEASES))
            case _:
                return {event: times}
