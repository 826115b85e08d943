"""One line of a plan: a mechanism with its predicted error, bits, cost and guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tacit.means import MeanEstimator
from tacit.means.proposals import ComputeCost
from tacit.means.public import SemiPrivateMean
from tacit.privacy import Guarantee

__all__ = ["Candidate", "Kind"]

Kind = Literal["exact", "bound", "estimate"]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism for a mean, ready to use, with what a plan knows of it.

    Attributes:
        name: Family and parameters, in words.
        family: Candidates of one family differ in their parameters only.
        estimator: Calibrated to the budget; None where that was not possible.
        radius: Radius for the `Round`: that of the ball, in the estimator's norm, that holds all rows; or the
            clip that goes with a moment.
        mse: Predicted mean squared L2 error; infinite where there is no estimator.
        kind: `exact`, or `bound`: an upper bound over all rows of the ball, or `estimate`: either of them
            simulated, with tails too heavy for the standard error to come down to one per cent.
        bits_per_party: On the wire, headers included, with one row a party.
        guarantee: What the observer learns; None without privacy.
        alone: What one party's message alone shows, with its sender: behind a sum, where all others collude.
            None where nothing hides the messages, or the one price is all there is.
        encode: Cost of one party.
        decode: Cost of the server, all parties together.
        joined: The estimator with the public rows beside it, where there are any.
        note: What the error assumes, and what else to know.
        reason: Why the candidate cannot be used; empty if it can.
    """

    name: str
    family: str
    estimator: MeanEstimator | None
    radius: float
    mse: float
    kind: Kind
    bits_per_party: float
    guarantee: Guarantee | None
    encode: ComputeCost
    decode: ComputeCost
    alone: Guarantee | None = None
    joined: SemiPrivateMean | None = None
    note: str = ""
    reason: str = ""

    @property
    def rmse(self) -> float:
        """Square root of the predicted error."""
        return math.sqrt(self.mse)

    @property
    def feasible(self) -> bool:
        """Whether the candidate meets the budget in the bits that a party may send."""
        return not self.reason
