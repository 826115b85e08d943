"""What a plan must say of the parties that share its noise, so that the sum of their messages has a price."""

from __future__ import annotations

from collections.abc import Sequence
from string import hexdigits

from tacit.errors import ParameterError, check_count, shown
from tacit.federation.steps import AnyStep, Step

__all__ = ["MOST_RECOVERED", "check_honest_shares"]

MOST_RECOVERED = 200
"""Parties of a run that goes on without those that drop out: every one exchanges secrets with every other."""

_DIGEST = 64  # hexadecimal digits of SHA-256


def check_honest_shares(
    steps: Sequence[AnyStep], *, parties: int, n_min: int, colluding: int, recover: bool, roster: str
) -> None:
    """Refuse a plan of aggregate trust whose sums hold fewer honest shares of noise than its price counts.

    A sum is opened of at least `n_min` parties, of which `colluding` may know their own noise, so that
    n_min - colluding honest shares are in it. One share is what a message alone has.

    Args:
        steps: All kinds of rounds.
        parties: Who may take part.
        n_min: Parties below which no sum is opened.
        colluding: Parties that may tell the server what they sent.
        recover: Whether a sum may be opened without some of them. Then two sums of one step, whose difference
            would be one message, are impossible only if 2 n_min > parties + colluding: both would need
            n_min - colluding honest signatures, and an honest party signs one.
        roster: Digest of the parties' keys, or nothing.

    Raises:
        ParameterError: A number or an estimator that makes no price.
    """
    check_count("n_min", n_min, low=2, high=parties)
    check_count("colluding", colluding, low=0, high=parties - 1)
    if (shares := n_min - colluding) < 2:
        raise ParameterError(
            f"n_min - colluding must be at least 2 under aggregate trust, got {n_min} - {colluding}: one "
            "share of the noise is what a message alone has."
        )
    if not recover and n_min != parties:
        raise ParameterError(
            f"n_min must be all {parties} parties in a plan that recovers from no drop-outs, got {n_min}."
        )
    if recover:
        check_count("parties of a plan that recovers from drop-outs", parties, high=MOST_RECOVERED)
        if 2 * n_min <= parties + colluding:
            raise ParameterError(
                f"n_min must be above (parties + colluding) / 2 ({(parties + colluding) / 2:g}) in a plan "
                f"that recovers from drop-outs, got {n_min}: two sums of one step could be opened."
            )
    if roster and (len(roster) != _DIGEST or not set(roster) <= set(hexdigits.lower())):
        raise ParameterError(f"roster must be the digest of a roster or empty, got {shown(roster)}.")
    for step in steps:
        if not isinstance(step, Step):
            raise ParameterError(
                "a plan of aggregate trust needs means: what silos find by themselves over several steps is "
                "in no sum."
            )
        for mean in step.summed:
            if mean.shares != shares:
                raise ParameterError(
                    f"shares must be n_min - colluding ({shares}) in every mean of a plan, got {mean.shares}."
                )
