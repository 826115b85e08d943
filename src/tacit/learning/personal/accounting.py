"""What DP-AdaPeD costs a whole party, by who looks, in the numbers of the paper.

tau clipped steps move the sum of a party's round by tau C where the party is left out, and by 2 tau C where
it is replaced; noise of variance tau sigma^2 hides it. Theorem 4.5.1 of Girgis (2023) says
6 (K/n)^2 (T/tau) alpha (C1^2 / (K sigma1^2) + C2^2 / (K sigma2^2)), which is unsound: the squared sensitivity
lacks a factor tau, (K/n)^2 is counted on where nobody draws in secret, and K where everybody sees a message
(docs/theory/personal-models.md).
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, get_args

from tacit.errors import (
    ParameterError,
    PlanWarning,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from tacit.privacy import Event, Gaussian, Neighbours, Relation, Repeat, Replaced, Sample, Sampled, Unit

__all__ = ["View", "adaped_event"]

View = Literal["server", "aggregate", "outsiders"]
"""Who looks: the server at each message, who sees sums only, or who does not know either who took part."""


def adaped_event(
    *,
    view: View,
    steps: int,
    local_steps: int,
    clip: float,
    std: float,
    psi_clip: float,
    psi_std: float,
    parties: int = 1,
    colluding: int = 0,
    rate: float | None = None,
    relation: Relation = Relation.REPLACE_ONE,
) -> Event:
    """Return what a run of DP-AdaPeD with the noise of the paper costs a whole party.

    "server": noise in every step, or tau times its variance at the end of a round, in every message: always
    sound. "aggregate": that noise at the end of a round, and sums of `parties` messages alone are seen.
    "outsiders": besides, every party takes part by a secret coin, and the noise of a sum stays the same. In a
    round that a party is in, the Renyi divergence of order alpha is alpha S^2 tau (C1^2 / sigma1^2 + C2^2 /
    sigma2^2) / (2 m), with S = 2 for a replaced party, 1 for one left out, and m shares of noise.

    Args:
        view: Who looks.
        steps: T, of all rounds.
        local_steps: tau; where it does not divide T, what follows the last round never leaves a party.
        clip: C1, of a step's gradient in the common model.
        std: sigma1, of the noise on it.
        psi_clip: C2, of a step's slope in psi.
        psi_std: sigma2, of the noise on it.
        parties: K, whose messages are in a sum; counted for all views but "server".
        colluding: How many of them may tell what they sent, or send nothing.
        rate: q: with which probability a party takes part; for "outsiders" and only there.
        relation: What happens to a party: "replace-one" or "zero-out".

    Raises:
        ParameterError: Something out of range, no noise, or neighbours that are added.

    Reference:
        Ozkara, Girgis, Data and Diggavi (2023), ICLR, Algorithm 3; Girgis (2023), Theorem 4.5.1, corrected.

    Example:
        >>> from tacit.privacy import epsilon_of
        >>> noise = dict(clip=1.0, std=5.0, psi_clip=1.0, psi_std=5.0, steps=100)
        >>> round(epsilon_of(adaped_event(view="server", local_steps=10, **noise), 1e-5), 3)
        39.383
    """
    check_choice("view", view, get_args(View))
    for name, value in (("steps", steps), ("local_steps", local_steps), ("parties", parties)):
        check_count(name, value)
    check_count("colluding", colluding, low=0)
    for name, size in (("clip", clip), ("std", std), ("psi_clip", psi_clip), ("psi_std", psi_std)):
        check_positive(name, size)
    if relation is Relation.ADD_REMOVE:
        raise ParameterError("relation must be replace-one or zero-out: everybody sees who is a party.")
    rounds = steps // local_steps
    if rounds * local_steps < steps:
        warnings.warn(
            f"local_steps ({local_steps}) does not divide steps ({steps}): the last round never ends.",
            PlanWarning,
            stacklevel=2,
        )
    check_count("steps // local_steps", rounds)
    shares = 1 if view == "server" else parties - colluding
    if shares < 1:
        raise ParameterError(f"colluding must be below parties ({parties}), got {colluding}.")
    moved = 2.0 if relation is Relation.REPLACE_ONE else 1.0
    if (rate is None) != (view != "outsiders"):
        raise ParameterError(f"rate is for view='outsiders', got {rate!r} with view={view!r}.")
    length = math.sqrt(local_steps) * math.hypot(clip / std, psi_clip / psi_std)
    if rate is None:
        once = Gaussian(math.sqrt(shares) / (moved * length), Neighbours(relation, Unit.PARTY))
        return Repeat(once, rounds)
    rate = check_probability("rate", rate, low_open=True)
    left_out = Gaussian(math.sqrt(shares) / length, Neighbours(Relation.ZERO_OUT, Unit.PARTY))
    if relation is Relation.ZERO_OUT:
        return Repeat(Sampled(left_out, rate, Sample.POISSON), rounds)
    return Repeat(Replaced(left_out, rate), rounds)
