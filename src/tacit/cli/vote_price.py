"""What published majorities cost together: the guarantee of `tacit vote release`, the totals of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import ParameterError, check_choice

if TYPE_CHECKING:
    from tacit.privacy import Guarantee, Neighbours
    from tacit.voting import MajorityReport, NoiseFunction, Shards, VotedBy

__all__ = ["price_of", "totals"]


def price_of(
    noise: NoiseFunction,
    *,
    queries: int,
    delta: float | None,
    teachers_are: str | None,
    shards: str,
    neighbours: Neighbours,
    simulated: bool,
) -> tuple[Guarantee, tuple[str, ...]]:
    """Price a release.

    Args:
        noise: The certified design.
        queries: How many bits are published.
        delta: Of all of them; None takes the sum of the deltas of the parts.
        teachers_are: "fresh", "fixed", or None where nobody said.
        shards: "shared" or "disjoint".
        neighbours: The relation under which the teachers are private.
        simulated: Whether a seed was given.

    Returns:
        The guarantee, and what to note.

    Raises:
        ParameterError: An unknown name, a delta out of range or out of reach.
    """
    from tacit.privacy import Compose, guarantee
    from tacit.voting import Shards, VotedBy

    kinds = [kind.value for kind in VotedBy]
    if teachers_are is not None:
        check_choice("teachers-are", teachers_are, kinds)
    check_choice("shards", shards, [kind.value for kind in Shards])
    split = Shards(shards)
    if teachers_are is not None or queries == 1:
        # One answer of fixed models is one answer of fresh ones: the certificate holds for both.
        voted_by = VotedBy(teachers_are or VotedBy.FIXED)
        cases = [(voted_by, _delta(noise, queries, voted_by, split) if delta is None else delta)]
        notes: tuple[str, ...] = ()
    else:
        cases = [(v, _delta(noise, queries, v, split) if delta is None else delta) for v in VotedBy]
        notes = (
            "nobody said whether the teachers are fresh or fixed: the price is that of both together, so it "
            "holds for either. --teachers-are lowers it.",
        )
    reports = [_report(noise, queries, d, voted_by, split, neighbours) for voted_by, d in cases]
    # A pair of releases reveals no less than either of them, at every delta.
    event = reports[0].event if len(reports) == 1 else Compose(tuple(r.event for r in reports))
    whole = delta if delta is not None else _in_range(sum(d for _, d in cases))
    shared = [clause for clause in reports[0].assumptions if all(clause in r.assumptions for r in reports)]
    s = noise.setting
    vote = f"epsilon {s.epsilon!r}" + (f" and delta {s.delta!r}" if s.delta else "")
    one = "every teacher" if teachers_are == "fixed" else "every vote"
    if len(reports) > 1:
        one = "every vote, or every teacher where one answers several queries,"
    found = guarantee(
        event,
        whole,
        observer="an observer of the published bit" if queries == 1 else f"an observer of all {queries} bits",
        assumptions=(f"{one} is private by itself with {vote}", *shared),
        simulated=simulated,
    )
    advice = dict.fromkeys(note for r in reports for note in r.advice)
    again = "publishing again draws new noise, and its price adds to this one."
    return found, (*notes, *advice, again)


def totals(noise: NoiseFunction, queries: int, delta: float | None) -> dict[str, Any]:
    """Return the total price of many bits for every kind of teachers at one delta, with the best proof."""
    from tacit.voting import Shards, VotedBy

    cases = [(voted_by, shards) for voted_by in VotedBy for shards in Shards]
    # One delta for all of them, or their epsilons could not be compared.
    whole = max(_delta(noise, queries, *case) for case in cases) if delta is None else delta
    found = []
    for voted_by, shards in cases:
        report = _report(noise, queries, whole, voted_by, shards, None)
        found.append(
            {
                "teachers_are": voted_by.value,
                "shards": shards.value,
                "epsilon": report.best.epsilon,
                "proof": report.best.name,
                "advice": report.advice,
            }
        )
    return {"delta": whole, "by_teachers": found}


def _report(
    noise: NoiseFunction,
    queries: int,
    delta: float,
    voted_by: VotedBy,
    shards: Shards,
    neighbours: Neighbours | None,
) -> MajorityReport:
    """Return all that is proven."""
    from tacit.voting import majority_privacy_report

    return majority_privacy_report(
        noise, queries=queries, delta=delta, voted_by=voted_by, shards=shards, neighbours=neighbours
    )


def _delta(noise: NoiseFunction, queries: int, voted_by: VotedBy, shards: Shards) -> float:
    """Return the sum of the deltas of the parts: at it, the epsilons add at worst."""
    from tacit.voting import Shards, VotedBy

    s = noise.setting
    if voted_by is VotedBy.FIXED:
        return _in_range(s.delta * (1 if shards is Shards.DISJOINT else s.teachers))
    return _in_range(queries * (s.delta if shards is Shards.DISJOINT else s.target_delta))


def _in_range(delta: float) -> float:
    """Refuse a default that says nothing."""
    if delta >= 1:
        raise ParameterError(
            f"delta must be given: the deltas of all parts add up to {delta:.3g}, which is no longer below 1."
        )
    return delta
