"""The least noisy estimator of a family of randomised rows that meets a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tacit.mechanisms import HIGHEST_LEVEL, LOWEST_LEVEL, level_from_v
from tacit.privacy import Event, PrivacyBudget, TrustModel, calibrate, meets

__all__ = ["Priced", "Scale", "least_noisy", "one_level", "usual_v"]


class Priced(Protocol):
    """What is asked of an estimator."""

    @property
    def pure_epsilon(self) -> float:
        """Level of the whole report on one row."""
        ...

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what an observer learns."""
        ...


Mean = TypeVar("Mean", bound=Priced, covariant=True)
Made = TypeVar("Made", bound=Priced)


@dataclass(frozen=True)
class Scale(Generic[Mean]):
    """How a family of estimators is made less private, by one number.

    Attributes:
        make: Builds the estimator for a scale, > 0; a larger scale is less private.
        high: Largest scale to try, > 0.
        guess: About where the answer is; None: for a scale that is the level of one message.
    """

    make: Callable[[float], Mean]
    high: float = HIGHEST_LEVEL
    guess: float | None = None


def one_level(kind: Callable[..., Made], fields: Mapping[str, Any], *, least: float = 0.0) -> Scale[Made]:
    """Scale estimators by `local_epsilon`, the level of their one message, which is at least `least`."""
    return Scale(
        lambda level: kind(local_epsilon=max(min(level, HIGHEST_LEVEL), LOWEST_LEVEL, least), **fields)
    )


def least_noisy(scale: Scale[Made], budget: PrivacyBudget, *, n: int, trust: TrustModel) -> Made:
    """Build the least noisy estimator that meets a budget.

    Args:
        scale: How estimators are made less private.
        budget: For the observer of the trust model.
        n: Number of rows.
        trust: Whose view is calibrated.

    Returns:
        The estimator at the largest scale that meets the budget, up to 1e-9 of it.

    Raises:
        BudgetError: The budget cannot be met.
        ParameterError: A value is out of range.
    """
    make, high, guess = scale.make, scale.high, scale.guess
    if budget.delta == 0 and budget.epsilon <= high:
        # Where the scale is the pure level itself, as for levels that add up, nothing need be searched.
        found = make(budget.epsilon)
        if meets(found.event(n, trust), budget) and found.pure_epsilon >= budget.epsilon * (1 - 1e-9):
            return found
    if guess is None:
        guess = _usual_level(budget, n) if trust is TrustModel.SHUFFLE else budget.epsilon
    # The search starts at x = 1 and doubles. A budget met exactly at the end of a bracket leaves no change
    # of sign to search for, hence the odd factor.
    unit = 1.0372 / min(high, guess)

    def event_at(x: float) -> Event:
        return make(1 / (x * unit)).event(n, trust)

    # Hardly private events are the slowest to price: a low end within reach first.
    least = 1 / (high * unit)
    x = calibrate(event_at, budget, low=max(least, 0.25), high=2.0**30)
    if x <= 0.25 and least < 0.25:
        x = calibrate(event_at, budget, low=least, high=2.0**30)
    return make(1 / (x * unit))


def usual_v(budget: PrivacyBudget, n: int, samples: int) -> float:
    """Guess the v that s shuffled messages may have, from a normal approximation: only speed rests on it."""
    log = math.log(1 / max(budget.delta, 1e-12))
    return min(budget.epsilon, 3.0) * math.sqrt(samples * n / (2 * log))


def _usual_level(budget: PrivacyBudget, n: int) -> float:
    """Guess the level of a message that is shuffled alone."""
    return level_from_v(usual_v(budget, n, 1))
