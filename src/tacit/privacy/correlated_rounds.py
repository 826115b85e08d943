"""What a run with correlated noise costs: one Gaussian release, as far as the whole run moves one unit."""

from __future__ import annotations

import math

from tacit.errors import ParameterError
from tacit.numerics import Array, participation_norm
from tacit.privacy.events import DiscreteGaussian, Event, Gaussian, NonPrivate

__all__ = ["correlated"]


def correlated(once: Event, column: Array, *, separation: int, rounds: int, n: int) -> Event:
    """Return what all rounds of a run cost together; docs/theory/correlated-noise.md proves it.

    Args:
        once: What one of the sums would cost with the noise of one round: Gaussian, of real or whole numbers.
        column: First column of the matrix that mixes the sums of rounds before noise goes on them.
        separation: Rounds between two that one unit takes part in, at least.
        rounds: Number of rounds.
        n: The most rows of a sum; it bounds rounding.

    Returns:
        An event of the same kind; `NonPrivate` as it is.

    Raises:
        ParameterError: Another kind of noise, or what `participation_norm` refuses.
    """
    norm = participation_norm(column, separation=separation, rounds=rounds)
    match once:
        case Gaussian(noise_multiplier=noise_multiplier):
            return Gaussian(noise_multiplier / norm, once.neighbours)
        case DiscreteGaussian(std=std, sensitivity=sensitivity, dim=dim):
            moved = min(rounds, -(-rounds // separation) * len(column))
            coordinates = DiscreteGaussian.MOST_COORDINATES if dim is None else dim
            # Mixing takes at most `bands` products and sums and four roundings more (Higham 2002, §3.1), in
            # either data set; the mixture is rounded to the grid once a round that can differ at all.
            slack = 2 * n * sensitivity * len(column) * (len(column) + 5) * 2.0**-53
            length = norm * sensitivity + math.sqrt(moved) * (math.sqrt(coordinates) + slack)
            length *= 1 + 2.0**-40  # for the rounding of this function
            every = coordinates * rounds
            known = None if every > DiscreteGaussian.MOST_COORDINATES else every
            return DiscreteGaussian(std, length, once.neighbours, known)
        case NonPrivate():
            return once
    raise ParameterError(f"correlated noise must be Gaussian, got {type(once).__name__}.")
