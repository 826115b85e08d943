"""Games on a sum of shares of noise: what the server and c parties see, and what one message alone shows."""

from __future__ import annotations

import msgspec
import numpy as np

from tacit.audits.attack import Target
from tacit.errors import ParameterError, check_count
from tacit.means.message import Message, Round, total
from tacit.means.modular import ModularSumMean
from tacit.numerics import Array
from tacit.privacy import Relation, TrustModel

__all__ = ["sum_target"]


def sum_target(
    mean: ModularSumMean, *, parties: int = 3, colluding: int = 1, claim: ModularSumMean | None = None
) -> Target:
    """Return one sum of messages as something to attack, by the server and colluding parties.

    Every party holds one row. The server has the sum modulo 2^b and nothing else; the colluders, who know
    what they have sent, take it off. What is left scores: the likelihood ratio grows with it, unless it wraps
    around. `Target.alone` is the same game for whoever sees the message of the party alone.

    Args:
        mean: With the noise that parties really add.
        parties: Number n of parties, of which the first may hold either of two rows.
        colluding: Number c of those that play with the server, the last ones; n - c >= 2.
        claim: The estimator whose price is claimed; None is `mean`.

    Raises:
        ParameterError: A value is out of its range, or the price counts on more shares than are honest.

    Example:
        >>> from tacit.audits import audit
        >>> from tacit.means import DiscreteGaussianNoise
        >>> mean = ModularSumMean(dim=1, noise=DiscreteGaussianNoise(3.0, steps=512), shares=2, width=20)
        >>> target = sum_target(mean)
        >>> rng = np.random.default_rng(0)
        >>> found = audit(target.run, (target.event, 1e-3), runs=10_000, rng=rng)
        >>> found.refuted, round(found.claimed_epsilon, 3)
        (False, 0.553)
    """
    check_count("parties", parties, low=2)
    check_count("colluding", colluding, low=0, high=parties - 2)
    claimed = mean if claim is None else claim
    if claimed.shares > parties - colluding:
        raise ParameterError(
            f"colluding must leave the {claimed.shares} honest parties that the price counts on, got "
            f"{colluding} of {parties}."
        )
    this_round = Round(n=parties, radius=1.0, parties=parties)
    other = -1.0 if mean.neighbours.relation is Relation.REPLACE_ONE else 0.0

    def sent(party: int, present: bool, size: int, rng: np.random.Generator) -> list[Message]:  # noqa: FBT001
        """Return the messages of a party in many rounds, as the coordinates of a wide one."""
        wide = msgspec.structs.replace(mean, dim=size)
        value = (1.0 if present else other) if party == 0 else -1.0
        return wide.encode_sum(np.full(size, value), rows=1, round=this_round, party=party, rng=rng)

    def decoded(summed: Array) -> Array:
        """Return what whoever has such a sum makes of it."""
        wide = msgspec.structs.replace(mean, dim=summed.size)
        return wide.decode([Message(payload=summed, width=mean.width, sender=None)], this_round)

    def honest(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        if size == 0:
            return np.zeros(0)
        messages = [message for party in range(parties) for message in sent(party, present, size, rng)]
        seen, known = total(messages, size, np.int64), messages[parties - colluding :]
        return decoded(seen - total(known, size, np.int64) if known else seen)

    def alone(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001
        if size == 0:
            return np.zeros(0)
        (message,) = sent(0, present, size, rng)
        return decoded(message.payload)

    return Target(
        run=honest,
        event=claimed.event(1, TrustModel.AGGREGATE),
        attack=f"sum of {parties} messages less those of colluding parties ({colluding})",
        alone=Target(run=alone, event=claimed.event(1, TrustModel.LOCAL), attack="one message alone"),
    )
