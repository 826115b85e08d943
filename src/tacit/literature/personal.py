"""The printed guarantee of DP-AdaPeD, for comparison only: it is unsound."""

from __future__ import annotations

import math
import warnings

from tacit.errors import ParameterError, PrivacyWarning, check_count, check_positive

__all__ = ["adaped_rdp_printed"]


def adaped_rdp_printed(
    alpha: float,
    *,
    steps: int,
    local_steps: int,
    clip: float,
    std: float,
    psi_clip: float,
    psi_std: float,
    parties: int,
    of: int,
) -> float:
    """Return 6 (K/n)^2 (T/tau) alpha (C1^2 / (K sigma1^2) + C2^2 / (K sigma2^2)), and warn of it.

    It bounds nothing: one party of one, with C1 = sigma1 = 1 and constant clipped gradients of either sign,
    has the divergence 2 tau alpha in a round, and this says 6 alpha. `tacit.learning.adaped_event` has what
    is proven.

    Args:
        alpha: Order, > 1.
        steps: T.
        local_steps: tau.
        clip: C1.
        std: sigma1.
        psi_clip: C2.
        psi_std: sigma2.
        parties: K, that take part in a round.
        of: n, from which they are drawn.

    Raises:
        ParameterError: Something out of range, or K > n.

    Reference:
        Girgis (2023), Theorem 4.5.1; Ozkara, Girgis, Data and Diggavi (2023), Theorem 3.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     adaped_rdp_printed(2.0, steps=10, local_steps=10, clip=1.0, std=1.0, psi_clip=1e-9,
        ...                        psi_std=1.0, parties=1, of=1)
        12.0
    """
    for name, count in (("steps", steps), ("local_steps", local_steps), ("parties", parties), ("of", of)):
        check_count(name, count)
    for name, size in (("clip", clip), ("std", std), ("psi_clip", psi_clip), ("psi_std", psi_std)):
        check_positive(name, size)
    if parties > of:
        raise ParameterError(f"parties must be at most the {of} that they are drawn from, got {parties}.")
    if not (math.isfinite(alpha) and alpha > 1):
        raise ParameterError(f"alpha must be a finite number > 1, got {alpha!r}.")
    warnings.warn(
        "the printed guarantee of DP-AdaPeD is unsound: compare it with tacit.learning.adaped_event.",
        PrivacyWarning,
        stacklevel=2,
    )
    noise = (clip / std) ** 2 + (psi_clip / psi_std) ** 2
    return 6 * (parties / of) ** 2 * steps / local_steps * alpha * noise / parties
