"""How many silos a round asks, how many must arrive before it is opened, and how many of those are honest."""

from __future__ import annotations

from tacit.errors import ParameterError
from tacit.federation import Everybody
from tacit.federation.participation import fewest_asked
from tacit.federation.shares import MOST_RECOVERED
from tacit.learning.settings import Settings
from tacit.privacy import TrustModel

__all__ = ["asked_silos", "honest_silos", "least_arrivals"]

_FEWEST_HONEST = 2
"""Honest silos of a sum: of one alone, the sum less what colluders sent is its message."""


def asked_silos(settings: Settings, parties: int) -> int:
    """Return the fewest silos that a round asks, or 1 where a round may ask nobody."""
    participation = Everybody() if settings.participation is None else settings.participation
    return max(fewest_asked(participation, parties), 1)


def honest_silos(settings: Settings, parties: int) -> int:
    """Return how many honest silos a price may count on; 0 where each is priced by itself.

    Raises:
        ParameterError: As in `least_arrivals`.
    """
    return max(least_arrivals(settings, parties) - settings.colluding, 0)


def least_arrivals(settings: Settings, parties: int) -> int:
    """Return how many silos a round is opened of at least; 0 where every message is seen by itself.

    Raises:
        ParameterError: That many cannot arrive, or too few of them need be honest.
    """
    if settings.trust is TrustModel.AGGREGATE:
        return _fewest_added(settings, parties)
    if settings.trust is not TrustModel.SHUFFLE:
        return 0
    asked = asked_silos(settings, parties)
    if asked < 2:
        raise ParameterError(
            f"trust must not be shuffle with {asked} silo a round: a shuffle of one message hides nothing."
        )
    n_min = asked if settings.n_min is None else settings.n_min
    if not 2 <= n_min <= asked:
        raise ParameterError(
            f"n_min must be from 2 to the {asked} silos that a round asks at least, got {n_min}."
        )
    if settings.colluding >= n_min:
        raise ParameterError(f"colluding must be below n_min ({n_min}), got {settings.colluding}.")
    return n_min


def _fewest_added(settings: Settings, parties: int) -> int:
    """Return the fewest silos of a sum that is opened: all of them, unless keys of others are recovered."""
    n_min, colluding = parties if settings.n_min is None else settings.n_min, settings.colluding
    if parties < _FEWEST_HONEST:
        raise ParameterError(
            f"trust must not be aggregate with {parties} silo: the sum of one message is that message."
        )
    if settings.recover and settings.n_min is None:
        raise ParameterError(
            f"n_min must be given with recover, got None: else no sum is opened without all {parties} silos, "
            "and nobody may drop out."
        )
    if not settings.recover and n_min != parties:
        raise ParameterError(
            f"n_min must be the number of silos ({parties}) under aggregate trust without recover, where no "
            f"sum opens without all of them; got {n_min}."
        )
    if n_min > parties:
        raise ParameterError(f"n_min must be at most the number of silos ({parties}), got {n_min}.")
    if settings.recover and parties > MOST_RECOVERED:
        raise ParameterError(
            f"recover needs at most {MOST_RECOVERED} silos, which all deal shares of keys to all others; "
            f"got {parties}."
        )
    if n_min - colluding < _FEWEST_HONEST:
        raise ParameterError(
            f"colluding must be at most n_min - {_FEWEST_HONEST} ({n_min - _FEWEST_HONEST}) under aggregate "
            f"trust: two silos or more must hide each other; got {colluding}."
        )
    if settings.recover and 2 * n_min <= parties + colluding:
        raise ParameterError(
            f"n_min must be above half of silos and colluders together ({parties} + {colluding}) where keys "
            f"are recovered, else two sums of one round could be opened; got {n_min}."
        )
    return n_min
