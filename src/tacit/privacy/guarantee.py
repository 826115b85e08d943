"""Guarantees: a price together with everything that is needed to check it again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

import msgspec

from tacit.errors import ParameterError, VerificationError, check_probability, check_text
from tacit.privacy.budget import DIGITS, stated_epsilon
from tacit.privacy.event_json import struct_from_builtins, to_plain
from tacit.privacy.events import Event, assumptions_of, chances_of, neighbours_of
from tacit.privacy.neighbours import Neighbours
from tacit.privacy.pricing import epsilon_of, method_of
from tacit.privacy.strict_json import is_version, read_json
from tacit.privacy.weak import MOST_EPSILON
from tacit.privacy.work import VERIFY_WORK, work_limit

__all__ = [
    "CONTINUOUS",
    "FORMAT_VERSION",
    "Guarantee",
    "check_version",
    "factor_of",
    "guarantee",
    "provided",
    "verify",
]

FORMAT_VERSION = 5
_OLDER = (
    "an older tacit wrote it, in other words or without conditions that count; ask its author for a new one"
)
"""Why older versions are not read: what one claims cannot be told from what was cut out of it or reworded."""
CONTINUOUS = "it does not matter that continuous noise leaks through floating point"
"""The condition of noise that is drawn in floating point: events are laws of real numbers."""
_MOST_CLAUSES = 1000


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """What one observer can learn about one unit, at most; `str()` is a sentence.

    Attributes:
        epsilon: Privacy loss bound, rounded up to 6 decimals; infinity where nothing is claimed.
        delta: Probability bound that goes with it.
        neighbours: The data sets that cannot be told apart.
        observer: Who looks.
        event: What was released; the price can be computed again from it alone.
        method: How epsilon was computed.
        assumptions: What must hold besides, one clause each.
        simulated: Whether the noise came from a seeded stream, which anybody can repeat.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    observer: str
    event: Event
    method: str
    assumptions: tuple[str, ...] = ()
    simulated: bool = False

    def __post_init__(self) -> None:
        # Texts end up on terminals and in signatures: a line break could print a verdict of its own.
        check_text("observer", self.observer)
        check_text("method", self.method)
        if len(self.assumptions) > _MOST_CLAUSES:
            raise ParameterError(f"assumptions must be at most {_MOST_CLAUSES:,} clauses.")
        for clause in self.assumptions:
            check_text("assumptions", clause)

    def __str__(self) -> str:
        """Say the guarantee as one plain sentence."""
        return self.in_words()

    def in_words(self, *, chances: bool = True) -> str:
        """Return the guarantee as one plain sentence.

        Args:
            chances: Whether it says with which probabilities units are sampled.
        """
        if math.isinf(self.epsilon):
            return f"No privacy is claimed: {self.observer} may learn anything about the data."
        pure = self.delta == 0
        delta = _up(self.delta)
        level = f"epsilon = {_decimals(self.epsilon)}" + ("" if pure else f", delta = {delta}")
        means = (
            f"whatever {self.observer} sees, {self.neighbours} changes the probability of any conclusion "
            f"by at most a factor of {factor_of(self.epsilon)}"
            + ("" if pure else f", up to a probability of {delta}")
        )
        how = "; ".join((self.method, *(chances_of(self.event) if chances else ())))
        given = f", {provided(self.assumptions)}" if self.assumptions else ""
        seeded = " Simulated: the noise came from a known seed, so this run itself protects nobody."
        return f"({level}) {means} ({how}){given}.{seeded if self.simulated else ''}"

    def to_json(self) -> bytes:
        """Write the guarantee, its event included, as JSON; an infinite epsilon is null."""
        return msgspec.json.encode(self.to_builtins())

    def to_builtins(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        data: dict[str, Any] = {"version": FORMAT_VERSION, **msgspec.to_builtins(self, enc_hook=to_plain)}
        data["epsilon"] = self.epsilon if math.isfinite(self.epsilon) else None
        data["sentence"] = str(self)
        return data

    @classmethod
    def from_builtins(cls, data: object) -> Guarantee:
        """Build a guarantee from parsed JSON.

        Raises:
            VerificationError: A field is missing or wrong, or the version is unknown.
        """
        if not isinstance(data, dict):
            raise VerificationError(f"a guarantee must be a JSON object, got {type(data).__name__}.")
        check_version("the guarantee", data.get("version"))
        try:
            fields = {name: value for name, value in data.items() if name not in ("version", "sentence")}
            if fields.get("epsilon", 0.0) is None:  # JSON has no infinity
                fields["epsilon"] = math.inf
            claim = struct_from_builtins(cls, fields)
        except ParameterError as error:
            raise VerificationError(f"the guarantee cannot be read: {error}") from error
        # Older sentences do not say with which probabilities units are sampled.
        if data.get("sentence", str(claim)) not in (str(claim), claim.in_words(chances=False)):
            raise VerificationError(
                "the sentence of the guarantee does not say what its fields say "
                f"(epsilon {claim.epsilon!r}, delta {claim.delta!r}): one of them was changed."
            )
        return claim

    @classmethod
    def from_json(cls, data: bytes | str) -> Guarantee:
        """Read what `to_json` wrote; errors as `from_builtins`."""
        try:
            read = read_json(data)
        except ParameterError as error:
            raise VerificationError(f"the guarantee is not JSON: {error}.") from error
        return cls.from_builtins(read)


def provided(clauses: Sequence[str]) -> str:
    """Return what must hold besides as the end of a sentence: several clauses are numbered."""
    if len(clauses) == 1:
        return f"provided that {clauses[0]}"
    return f"provided that {'; '.join(f'({k}) {clause}' for k, clause in enumerate(clauses, start=1))}"


def check_version(what: str, found: object) -> None:
    """Refuse a statement or guarantee of another version, with a word on what to do about an older one."""
    if not is_version(found, FORMAT_VERSION):
        why = f": {_OLDER}" if type(found) is int and 0 < found < FORMAT_VERSION else ""
        raise VerificationError(f"{what} has version {found!r}; this tacit reads {FORMAT_VERSION}{why}.")


def guarantee(
    event: Event,
    delta: float,
    *,
    observer: str,
    assumptions: tuple[str, ...] = (),
    simulated: bool = False,
) -> Guarantee:
    """Price an event and say the price.

    Args:
        event: What the observer learns; it carries the neighbours.
        delta: In [0, 1). At 0 the event must have a pure level.
        observer: Who looks, as it reads in "whatever ... sees".
        assumptions: Clauses that must hold besides; those that the event itself states are added.
        simulated: Whether seeded noise was used.

    Returns:
        The guarantee with the least proven epsilon, rounded up.

    Raises:
        ParameterError: `delta` outside [0, 1); delta = 0 for a release that has only approximate DP.

    Example:
        >>> from tacit.privacy import Gaussian
        >>> guarantee(Gaussian(3.730632), 1e-5, observer="the server").epsilon
        1.0
    """
    delta = check_probability("delta", delta, high_open=True)
    epsilon = epsilon_of(event, delta)
    method = method_of(event, delta)
    if math.isinf(epsilon) and delta == 0 and method != "nothing is claimed":
        raise ParameterError(
            "delta must be > 0 for this release, got 0.0: Gaussian-like noise gives no pure privacy."
        )
    return Guarantee(
        epsilon=stated_epsilon(epsilon),
        delta=delta,
        neighbours=neighbours_of(event),
        observer=observer,
        event=event,
        method=method,
        assumptions=tuple(dict.fromkeys((*assumptions, *assumptions_of(event)))),
        simulated=simulated,
    )


def verify(claim: Guarantee, *, most_work: float = VERIFY_WORK) -> None:
    """Compute the price of a claim again, from its event alone.

    Args:
        claim: What is claimed, by whomever.
        most_work: How many numbers its price may take to compute; a claim must not stall who reads it.

    Raises:
        VerificationError: Epsilon or the method differs, the neighbours are not the event's, or the event
            cannot be priced.
    """
    if claim.neighbours != neighbours_of(claim.event):
        raise VerificationError(
            f"the statement is about {claim.neighbours}, its event about {neighbours_of(claim.event)}."
        )
    if len(set(claim.assumptions)) < len(claim.assumptions):
        raise VerificationError("the statement names a condition twice.")
    unsaid = [clause for clause in assumptions_of(claim.event) if clause not in claim.assumptions]
    if unsaid:
        raise VerificationError(f"the statement leaves out what its price rests on: {unsaid[0]}.")
    try:
        with work_limit(most_work):
            exact = epsilon_of(claim.event, claim.delta)
            method = method_of(claim.event, claim.delta)
    except ParameterError as error:
        raise VerificationError(f"the statement cannot be priced: {error}") from error
    # Another machine may differ in the last bits of a convolution; a lowered digit differs by far more.
    low, high = (stated_epsilon(exact * factor) for factor in (1 - 1e-9, 1 + 1e-9))
    if not low <= claim.epsilon <= high:
        raise VerificationError(
            f"the statement claims epsilon {_decimals(claim.epsilon)} at delta {claim.delta!r}, "
            f"but its event costs {_decimals(stated_epsilon(exact))}."
        )
    if claim.method != method:
        raise VerificationError(
            f"the statement names the method {claim.method!r}, its price is by {method!r}."
        )


def _decimals(epsilon: float) -> str:
    """Return an epsilon with all the decimals it was rounded up to."""
    digits = f"{epsilon:.{DIGITS}f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _up(value: float) -> str:
    """Return a number with three digits, rounded up: a sentence must not claim more than its numbers."""
    context = Context(prec=3, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(value)))):.3g}"


def factor_of(epsilon: float) -> str:
    """Return e^epsilon as people read it: three digits, rounded up; as a power where it is huge."""
    return f"{float(_up(math.exp(epsilon))):,.10g}" if epsilon <= MOST_EPSILON else f"e^{_decimals(epsilon)}"
