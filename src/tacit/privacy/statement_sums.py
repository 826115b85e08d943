"""What arithmetic can tell of guarantees under trust in a sum, where every silo has two observers.

One event holds both together: the sum of a step is priced with all shares of noise that are counted on, one
message alone with one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tacit.errors import VerificationError
from tacit.privacy.event_json import event_from_builtins
from tacit.privacy.events import DiscreteGaussian, DiscreteGaussianSum, Event, parts_of
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.run_clauses import clauses_of_sums

__all__ = [
    "check_sums",
    "colluding_of",
    "leaves_of",
    "of_one_share",
    "shares_of",
]

_COLLUDING: Final = re.compile(r"the server and up to (\d{1,9}) other part(?:y|ies) together,$")
_WAYS: Final = tuple(
    clauses_of_sums(roster=roster, recover=recover)
    for roster, recover in (("", False), ("keys", False), ("keys", True))
)
"""How nothing but a sum is seen: one of these belongs to every guarantee about it."""
_ALL_OF_THEM, _SIGNED = _WAYS[1], _WAYS[2]


def colluding_of(observer: str) -> int:
    """Return how many parties an observer of sums may have.

    Raises:
        VerificationError: It is no such observer.
    """
    found = _COLLUDING.search(observer)
    if found is None:
        raise VerificationError(
            f"its observer does not say how many parties may collude under trust in a sum: {observer!r:.200}."
        )
    return int(found[1])


def shares_of(event: Event) -> set[int]:
    """Return the numbers of shares of noise that the sums of an event are counted with."""
    return {leaf.shares for leaf in leaves_of(event) if isinstance(leaf, DiscreteGaussianSum)}


def of_one_share(event: Event) -> Event:
    """Return what one message of the same rounds is, by itself."""
    return event_from_builtins(_alone(msgspec.to_builtins(event)))


def check_sums(claims: Mapping[str, Guarantee], alone: Mapping[str, Guarantee], parties: int) -> None:
    """Refuse guarantees of silos that contradict each other on the sums that all of them are in.

    Args:
        claims: About sums, by the name of the silo.
        alone: About one message by itself, by the name of the silo.
        parties: How many silos there are.

    Raises:
        VerificationError: They count on shares of noise that nobody has, on different sums, or leave out how
            messages are hidden; or one message is of other rounds than the sums.
    """
    ways, quorums = set(), set()
    for name, claim in claims.items():
        where = f"the guarantee of silo {name!r:.80} about sums "
        way = [one for one in _WAYS if set(one) <= set(claim.assumptions)]
        if len(way) != 1:
            raise VerificationError(f"{where}leaves out what its price rests on: {_WAYS[0][0]}, or masks.")
        shares, colluding = shares_of(claim.event), colluding_of(claim.observer)
        if len(shares) != 1:
            raise VerificationError(f"{where}counts on {sorted(shares)} shares of noise in different rounds.")
        (counted,) = shares
        ways.add(way[0])
        quorums.add(counted + colluding)
        if counted < 2 or counted + colluding > parties:
            raise VerificationError(
                f"{where}counts on {counted} shares of noise beside {colluding} colluding parties, of "
                f"{parties}."
            )
        if way[0] == _SIGNED and 2 * (counted + colluding) <= parties + colluding:
            raise VerificationError(
                f"{where}is about sums of {counted + colluding} of {parties} parties, of which two could be "
                f"signed where {colluding} collude."
            )
        if of_one_share(claim.event) != alone[name].event:
            raise VerificationError(
                f"{where}and that about one message of it alone are of different rounds: one was changed."
            )
    if len(ways) != 1 or len(quorums) != 1:
        raise VerificationError("guarantees of silos are about sums of different parties: one was changed.")
    if ways == {_ALL_OF_THEM} and quorums != {parties}:
        raise VerificationError(
            f"sums of {quorums.pop()} parties are stated, though masks come off in that of all {parties}."
        )


def leaves_of(event: Event) -> Iterator[Event]:
    """Yield the releases that an event is made of."""
    parts = parts_of(event)
    if not parts:
        yield event
    for part in parts:
        yield from leaves_of(part)


def _alone(data: Any) -> Any:
    """Return builtins of an event in which every sum is one message of it."""
    if isinstance(data, list | tuple):
        return [_alone(part) for part in data]
    if not isinstance(data, dict):
        return data
    if data.get("event") != DiscreteGaussianSum.__name__:
        return {name: _alone(value) for name, value in data.items()}
    rest = {name: value for name, value in data.items() if name != "shares"}
    return {**rest, "event": DiscreteGaussian.__name__}
