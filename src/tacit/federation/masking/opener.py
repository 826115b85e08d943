"""Which protocol opens the sums of a plan, at the server."""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.federation.masking.complete import CompleteSums
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.plan import Plan
from tacit.federation.summed import SumOpener

__all__ = ["opener_of"]


def opener_of(plan: Plan, roster: MaskingRoster) -> SumOpener:
    """Return the server's half of the masks of a plan of aggregate trust.

    Args:
        plan: What will be asked; it names the roster.
        roster: Whose masks the silos have.

    Raises:
        ParameterError: The plan names another roster, or another number of parties than it has.
    """
    if plan.roster != roster.digest or plan.parties != len(roster):
        raise ParameterError(
            f"the plan must name the roster {roster.digest[:16]} and its {len(roster)} parties, got "
            f"{plan.roster[:16] or 'none'} and {plan.parties}."
        )
    return CompleteSums(plan.parties)
