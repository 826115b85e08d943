"""Every known bound on one event, side by side: proofs, lower bounds, and what was printed without proof."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_probability
from tacit.literature.composition import kov_composition, optimal_composition, strong_composition
from tacit.literature.iteration import paper_epsilon
from tacit.literature.shuffling.bounds import BOUNDS
from tacit.privacy import events
from tacit.privacy.composition import MOST_RELEASES, basic_composition
from tacit.privacy.events import Event
from tacit.privacy.iteration import Iteration, Placement, Release
from tacit.privacy.pricing import epsilon_of, method_of, renyi_of, rho_of
from tacit.privacy.renyi import ORDERS, renyi_to_epsilon
from tacit.privacy.shuffling import Shuffled

__all__ = ["Bound", "Status", "compare"]


class Status(StrEnum):
    """What a number may be used for."""

    PROOF = "proof"
    LOWER_BOUND = "lower bound"
    PAPER_ONLY = "paper only"


class Bound(msgspec.Struct, frozen=True):
    """What one method says about an event.

    Attributes:
        method: Its name.
        epsilon: Its epsilon at the delta that was asked for.
        status: A proof is a guarantee; the others are not.
        note: What to know about it.
    """

    method: str
    epsilon: float
    status: Status = Status.PROOF
    note: str = ""


def compare(event: Event, delta: float) -> tuple[Bound, ...]:
    """Return all bounds that apply to an event: lower bounds, then proofs, then the rest, tightest first.

    Args:
        event: Any event tree.
        delta: In (0, 1).

    Returns:
        At least what guarantees use, which is a proof and says so in its note. A guarantee is priced by one
        method, so another proof may be smaller: of few shuffled messages, a Rényi bound sometimes is.

    Raises:
        ParameterError: `delta` outside (0, 1), or the event cannot be priced.
    """
    check_probability("delta", delta, low_open=True, high_open=True)
    found = [Bound(method_of(event, delta), epsilon_of(event, delta), note="what guarantees use")]
    for method in _METHODS:
        found.extend(method(event, delta))
    order = (Status.LOWER_BOUND, Status.PROOF, Status.PAPER_ONLY)
    return tuple(sorted(found, key=lambda b: (order.index(b.status), b.epsilon)))


def _concentrated(event: Event, delta: float) -> Iterator[Bound]:
    """Rényi and concentrated levels, where all parts have them."""
    divergences = renyi_of(event, ORDERS)
    known = np.isfinite(divergences)
    if known.any():
        epsilon, order = renyi_to_epsilon(ORDERS[known], divergences[known], delta)
        yield Bound("Rényi differential privacy", epsilon, note=f"order {order:g}")
    rho = rho_of(event)
    if math.isfinite(rho):
        closed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        yield Bound("concentrated privacy, closed form", closed, note=f"rho {rho:.4g}")


def _composition(event: Event, delta: float) -> Iterator[Bound]:
    """Composition theorems on the (epsilon, delta) of one release, the best of some splits of delta."""
    if not isinstance(event, events.Repeat) or int(event.count) == 1 or _shuffle_of(event) is not None:
        return  # bounds on shuffles have their own
    count = int(event.count)
    if count > MOST_RELEASES:
        return
    best: dict[str, float] = {}
    for share in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0):
        each, slack = share * delta / count, (1 - share) * delta
        epsilon = epsilon_of(event.part, each)
        if not 0 < epsilon < math.inf:
            continue
        if slack == 0:
            totals = {"basic composition": basic_composition(epsilon, each, count)}
        else:
            totals = {
                "strong composition": strong_composition(epsilon, each, count, slack),
                "strong composition, tightened": kov_composition(epsilon, each, count, slack),
                "optimal composition": optimal_composition(epsilon, each, count, delta),
            }
        for name, total in totals.items():
            best[name] = min(best.get(name, math.inf), total.epsilon)
    for name, epsilon in best.items():
        yield Bound(name, epsilon, note="of the (epsilon, delta) of one release")


def _shuffle_of(event: Event) -> tuple[Shuffled, int, float] | None:
    """Return the batch, the rounds and the sample rate where an event is repeated shuffling; else None."""
    part: Event = event
    rounds, rate = 1, 1.0
    if isinstance(part, events.Repeat):
        rounds, part = part.count, part.part
    if isinstance(part, events.Sampled):
        rate, part = part.rate, part.part
    return (part, rounds, rate) if isinstance(part, Shuffled) else None


def _shuffles(event: Event, delta: float) -> Iterator[Bound]:
    """Bounds on shuffled messages of any randomizer of that local level."""
    found = _shuffle_of(event)
    if found is None:
        return
    batch, rounds, rate = found
    message: Event = events.PureDP(batch.local_epsilon, batch.neighbours)
    message = message if rate == 1 else events.Sampled(message, rate)
    seen = epsilon_of(events.Repeat(message, rounds), delta)
    yield Bound("no shuffler", seen, note="what the local level alone proves, on the same samples")
    for bound in BOUNDS:
        if bound.status == Status.LOWER_BOUND and batch.randomizer not in ("general", "2rr"):
            continue  # it is about randomized response; others may hide more
        try:
            epsilon = bound.epsilon(batch.local_epsilon, batch.parties, delta, rounds, rate)
        except ParameterError:
            continue  # outside of the range in which this bound holds
        if math.isfinite(epsilon):
            yield Bound(bound.name, epsilon, Status(bound.status), bound.note)


def _iterations(event: Event, delta: float) -> Iterator[Bound]:
    """The papers' accountant of hidden iterates."""
    if not isinstance(event, Iteration) or event.private == 0:
        return
    if event.placement is not Placement.EVERY_STEP:  # it is about noise on every step
        return
    private = event.n if event.private is None else event.private
    # Its gain from public steps needs them hidden. Where every iterate leaves, the private steps are all.
    steps = private if event.release is Release.ALL else event.n
    epsilon = paper_epsilon(event.noise_multiplier, delta, n=steps, epochs=event.epochs, private=private)
    yield Bound("paper's Rényi accountant", epsilon, note="sound, loose")


def _alternatives(event: Event, delta: float) -> Iterator[Bound]:
    """Each of several whole proofs, throughout all rounds."""
    part, rounds = (event.part, int(event.count)) if isinstance(event, events.Repeat) else (event, 1)
    if isinstance(part, events.AnyOf):
        for number, proof in enumerate(part.proofs, start=1):
            whole = events.Repeat(proof, rounds)
            yield Bound(f"proof {number}: {method_of(whole, delta)}", epsilon_of(whole, delta))


_METHODS = (_concentrated, _composition, _shuffles, _iterations, _alternatives)
