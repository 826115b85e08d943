"""What published majorities cost together, for every kind of teachers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.voting import NoiseFunction

__all__ = ["totals"]


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
