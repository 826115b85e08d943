"""What masks belong to: every key is derived for one roster, plan, run, step, query and form of a vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_name, shown
from tacit.federation.masking.fields import hashed
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.streams import WIDEST

__all__ = ["MaskContext"]

_MASKING: Final = 1
"""Version of the protocols: parties of different ones have no mask in common."""

_LONGEST_DIGEST: Final = 64


@dataclass(frozen=True)
class MaskContext:
    """A run of a plan by the parties of a roster.

    Attributes:
        roster: Who masks, in order.
        plan: Digest of the plan, `Plan.digest()`.
        run: Name of the run.

    Raises:
        ParameterError: The digest is empty or has more than 64 bytes, or the name does not print.
    """

    roster: MaskingRoster
    plan: bytes
    run: str

    def __post_init__(self) -> None:
        _check_digest("plan", self.plan)
        check_name("run", self.run)

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that differ for any other roster, plan or run."""
        return hashed("run of a plan", _MASKING, self.roster.digest, self.plan, self.run)

    def step(self, step: int, query_digest: bytes, width: int, dim: int) -> bytes:
        """Return 32 bytes that differ for any other step, query, width or number of coordinates.

        Parties that were asked different things, whoever did it, so have no mask in common: their masks do
        not cancel, and no sum of theirs can be read (Pasquini, Francati and Ateniese 2022).

        Args:
            step: Number of the round, >= 0.
            query_digest: `Query.digest()`, the same for all parties.
            width: Bits of a coordinate, 1 to 64.
            dim: Coordinates of the one vector of the step, >= 1.

        Raises:
            ParameterError: A value that is not allowed.
        """
        step = check_count("step", step, low=0, high=LARGEST_COUNT)
        _check_digest("query_digest", query_digest)
        width, dim = check_count("width", width, high=WIDEST), check_count("dim", dim, high=LARGEST_COUNT)
        return hashed("step", self.digest, step, query_digest, width, dim)


def _check_digest(name: str, value: object) -> None:
    """Refuse what identifies nothing."""
    if not isinstance(value, bytes) or not 1 <= len(value) <= _LONGEST_DIGEST:
        raise ParameterError(f"{name} must be 1 to {_LONGEST_DIGEST} bytes, got {shown(value)}.")
