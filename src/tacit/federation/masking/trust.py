"""The word of a silo's owner: whose masks hide its messages, and how many of them it does not trust."""

from __future__ import annotations

from tacit.errors import RefusalError, check_count, check_positive
from tacit.federation.masking.complete import CompleteMasks
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.recoverable import RecoverableMasks
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.network.keys import SigningKey
from tacit.federation.plan import Plan
from tacit.federation.protocols import Secrets
from tacit.federation.sums import SiloMasks

__all__ = ["MaskedSums"]


class MaskedSums:
    """Sums that only the parties of a roster can hide in, as a silo's owner configures it.

    Attributes:
        roster: Digest of the roster, which a plan must name.
        colluding: Most parties that the owner expects to collude with the server; None counts on nobody, and
            pays for what a message alone shows.
        most_alone: The largest epsilon that the silo's messages may show to who sees them alone; None allows
            any.

    Args:
        roster: As the operators agreed on it, without the server.
        key: The silo's own, for signatures.
        colluding: 0 to parties - 2: a sum of one honest party hides nothing; or None.
        most_alone: > 0, or None.

    Raises:
        RefusalError: The key is not in the roster.
        ParameterError: A number that is not allowed.
    """

    def __init__(
        self,
        roster: MaskingRoster,
        key: SigningKey,
        *,
        colluding: int | None = 0,
        most_alone: float | None = None,
    ) -> None:
        self._roster, self._key = roster, key
        self._position = roster.position(key.public)
        self.roster = roster.digest
        if colluding is not None:
            check_count("colluding", colluding, low=0, high=len(roster) - 2)
        self.colluding = colluding
        self.most_alone = None if most_alone is None else check_positive("most_alone", most_alone)

    def check(self, plan: Plan, index: int) -> None:
        """Refuse another roster, or another place in it than the key's; nothing is spent yet.

        Args:
            plan: That the silo is asked to accept.
            index: How the server counts the silo. Its masks are those of its place in the roster: another
                number is refused only because the sum would never come out.

        Raises:
            RefusalError: The plan names another roster, or has another number of parties than it; the
                server counts parties in another order; or, with as many colluders as the owner expects, two
                sums of one step could be opened.
        """
        if plan.roster != self.roster:
            raise RefusalError(
                f"the plan is about the roster {plan.roster[:12] or 'of nobody'}, the owner of this silo has "
                f"agreed to {self.roster[:12]}."
            )
        if plan.parties != len(self._roster):
            raise RefusalError(
                f"the plan must have the {len(self._roster)} parties of the roster, got {plan.parties}."
            )
        if index != self._position:
            raise RefusalError(
                f"the server counts this silo as party {index}, the roster as party {self._position}: both "
                "must be in one order."
            )
        if plan.recover:
            self._quorum(plan)

    def masks(self, plan: Plan, run: str, index: int, secrets: Secrets) -> SiloMasks:
        """Return the silo's masks in a run of a plan; their key is made here, or found among the secrets.

        Raises:
            RefusalError: As `check`.
        """
        self.check(plan, index)
        context = MaskContext(self._roster, plan.digest(), run)
        if not plan.recover:
            return CompleteMasks(context, self._key, secrets)
        rounds = plan.schedule().rounds
        return RecoverableMasks(context, self._key, secrets, quorum=self._quorum(plan), rounds=rounds)

    def _quorum(self, plan: Plan) -> Quorum:
        """Return how many must agree, whatever the plan and the owner expect; refuse too few."""
        return Quorum(plan.parties, plan.n_min, max(plan.colluding, self.colluding or 0))
