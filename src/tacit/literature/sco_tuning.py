"""How Cheu, Joseph, Mao and Peng (2022) tune their shuffled methods, as printed; for comparison only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import check_count, check_positive, check_probability

__all__ = ["PaperTuning", "paper_tuning"]


@dataclass(frozen=True, kw_only=True)
class PaperTuning:
    """Printed parameters; batches are not rounded.

    Attributes:
        plain_batch: Of P_SGD, Theorem 4.1.
        accelerated_batch: Of P_AGD for smooth losses, Theorem 4.3.
        smoothness: Of the Moreau envelope of a loss with a kink, Theorem 4.7.
        descent_rounds: Of P_GD, Theorem 4.9, with the cube of the logarithm that its rate needs in place of
            the printed square.
        stream_batch: Of pan-private AC-SA for smooth losses, Theorem C.3; for its noise see
            `paper_stream_noise_std`.
    """

    plain_batch: float
    accelerated_batch: float
    smoothness: float
    descent_rounds: int
    stream_batch: float


def paper_tuning(
    *,
    n: int,
    dim: int,
    epsilon: float,
    delta: float,
    lipschitz: float = 1.0,
    diameter: float = 1.0,
    smoothness: float = 1.0,
) -> PaperTuning:
    """Return what is printed.

    Args:
        n: Records, one a party.
        dim: d.
        epsilon: Of the whole run.
        delta: The same, in (0, 1).
        lipschitz: L.
        diameter: D.
        smoothness: beta, where it is given.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> printed = paper_tuning(n=10_000, dim=10, epsilon=1.0, delta=1e-5, diameter=2.0)
        >>> round(printed.plain_batch, 2), round(printed.accelerated_batch, 2)
        (43.69, 862.45)

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Theorems 4.1, 4.3, 4.7, 4.9 and C.3.
    """
    check_count("n", n)
    check_count("dim", dim)
    check_probability("delta", delta, low_open=True, high_open=True)
    for name, value in (
        ("epsilon", epsilon),
        ("lipschitz", lipschitz),
        ("diameter", diameter),
        ("smoothness", smoothness),
    ):
        check_positive(name, value)
    log, short = math.log(dim / delta), math.log(1 / delta)
    common = n**0.6 * dim**0.2 * lipschitz**0.4 / (epsilon * smoothness * diameter) ** 0.4
    rounds = (epsilon * n) ** 2 / (dim * math.log(n * dim / delta) ** 3)
    return PaperTuning(
        plain_batch=math.sqrt(dim) * log / epsilon,
        accelerated_batch=common * log**0.4,
        smoothness=(epsilon * n / log) ** (2 / 3) * lipschitz / (dim ** (1 / 3) * diameter),
        descent_rounds=max(1, min(n, math.ceil(rounds))),
        stream_batch=common * short**0.2,
    )
