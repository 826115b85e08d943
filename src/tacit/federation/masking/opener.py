"""Which protocol opens the sums of a plan, at the server."""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.federation.masking.complete import CompleteSums
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.opening import RecoverableSums
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.plan import Plan
from tacit.federation.protocols import Secrets
from tacit.federation.summed import SumOpener

__all__ = ["opener_of"]


def opener_of(plan: Plan, run: str, roster: MaskingRoster, *, kept: Secrets | None = None) -> SumOpener:
    """Return the server's half of the masks of a plan of aggregate trust.

    Args:
        plan: What will be asked; it names the roster.
        run: Name of the run.
        roster: Whose masks the silos have.
        kept: Where a server that may be started again keeps what it has told the parties (nothing secret);
            None keeps it in this process. Plans that recover from no drop-outs need none.

    Raises:
        ParameterError: The plan names another roster, or another number of parties than it has.
    """
    if plan.roster != roster.digest or plan.parties != len(roster):
        raise ParameterError(
            f"the plan must name the roster {roster.digest[:16]} and its {len(roster)} parties, got "
            f"{plan.roster[:16] or 'none'} and {plan.parties}."
        )
    if not plan.recover:
        return CompleteSums(plan.parties)
    return RecoverableSums.of_plan(plan, MaskContext(roster, plan.digest(), run), kept)
