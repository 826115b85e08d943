"""The least noisy estimator of a family of randomised rows that meets a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from tacit.means.randomized import RandomizedMean
from tacit.mechanisms import level_from_v
from tacit.privacy import Event, PrivacyBudget, TrustModel, calibrate, meets

__all__ = ["calibrated_mean", "usual_v"]

Mean = TypeVar("Mean", bound=RandomizedMean)


def calibrated_mean(
    make: Callable[[float], Mean],
    budget: PrivacyBudget,
    *,
    n: int,
    trust: TrustModel,
    high: float = 30.0,
    guess: float | None = None,
) -> Mean:
    """Build the least noisy estimator that meets a budget.

    Args:
        make: Builds the estimator for a scale; a larger scale is less private.
        budget: For the observer of the trust model.
        n: Number of rows.
        trust: Whose view is calibrated.
        high: Largest scale to try, > 0.
        guess: About where the answer is; None: for a scale that is the level of one message.

    Returns:
        The estimator at the largest scale that meets the budget, up to 1e-9 of it.

    Raises:
        BudgetError: The budget cannot be met.
        ParameterError: A value is out of range.
    """
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
