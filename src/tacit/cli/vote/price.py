"""What published majorities cost together: the guarantee of `tacit vote release`, the totals of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.errors import check_choice

if TYPE_CHECKING:
    from tacit.privacy import Guarantee, Neighbours
    from tacit.voting import NoiseFunction

__all__ = ["price_of", "totals"]


def price_of(
    noise: NoiseFunction,
    *,
    queries: int,
    delta: float | None,
    teachers_are: str | None,
    shards: str,
    alone: bool,
    neighbours: Neighbours,
    simulated: bool,
    counted: bool,
) -> tuple[Guarantee, tuple[str, ...]]:
    """Return the guarantee of a release and what to note; names that nothing has are refused."""
    from tacit.voting import Shards, VotedBy, majority_guarantee

    if teachers_are is not None:
        check_choice("teachers-are", teachers_are, [kind.value for kind in VotedBy])
    check_choice("shards", shards, [kind.value for kind in Shards])
    price, notes = majority_guarantee(
        noise,
        queries=queries,
        shards=Shards(shards),
        voted_by=None if teachers_are is None else VotedBy(teachers_are),
        delta=delta,
        neighbours=neighbours,
        simulated=simulated,
        alone=alone,
    )
    again = "publishing again draws new noise, and its price adds to this one"
    if alone:
        again = "publishing again breaks this guarantee: the teachers were to answer nothing else"
    elif not counted and not simulated:
        again += ": no --ledger counts it"
    return price, (*notes, f"{again}.")


def totals(noise: NoiseFunction, queries: int, delta: float | None) -> dict[str, Any]:
    """Return the total price of many bits for every kind of teachers at one delta, with the best proof."""
    from tacit.voting import Shards, VotedBy, majority_privacy_report, sum_of_deltas

    cases = [(voted_by, shards) for voted_by in VotedBy for shards in Shards]
    # One delta for all of them, or their epsilons could not be compared.
    whole = delta
    if whole is None:
        whole = max(sum_of_deltas(noise, queries=queries, voted_by=v, shards=s) for v, s in cases)
    found = []
    for voted_by, shards in cases:
        report = majority_privacy_report(
            noise, queries=queries, delta=whole, voted_by=voted_by, shards=shards
        )
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
