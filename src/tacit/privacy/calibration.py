"""The least noise that meets a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import scipy

from tacit.errors import BudgetError, ParameterError, check_positive
from tacit.privacy.budget import DECIMAL, Budget, ZcdpBudget
from tacit.privacy.events import Event
from tacit.privacy.pricing import delta_at, epsilon_of, pure_epsilon_of, rho_of
from tacit.privacy.work import check_work

__all__ = ["calibrate", "meets"]

_TOLERANCE = 1e-9  # relative, on the calibrated parameter

_MOST_ANSWERS = 512
_answers: dict[tuple[Event, Budget, float, float], float] = {}
"""What was found, by the release at the upper end; looked at before it is answered again."""


def meets(event: Event, budget: Budget) -> bool:
    """Whether the event's price is within the budget."""
    check_work(event)
    if isinstance(budget, ZcdpBudget):
        return rho_of(event) <= float(budget.rho) * DECIMAL
    return epsilon_of(event, budget.delta) <= float(budget.epsilon) * DECIMAL


def calibrate(
    event_at: Callable[[float], Event], budget: Budget, *, low: float = 1e-3, high: float = 1e7
) -> float:
    """Find the least `x` in [low, high] for which `event_at(x)` meets the budget.

    More of `x` must never cost more (a noise multiplier, a grid size). The answer is on the safe side and is
    priced again before it is returned.

    Args:
        event_at: The release as a function of the free parameter.
        budget: What may be spent.
        low: Lower end of the search, > 0.
        high: Upper end of the search.

    Returns:
        `x` within a relative 1e-9 above the least value that meets the budget.

    Raises:
        ParameterError: `low` or `high` not finite and positive, or low > high.
        BudgetError: Even `high` does not meet the budget.

    Example:
        >>> from tacit.privacy import Gaussian, PrivacyBudget
        >>> round(calibrate(Gaussian, PrivacyBudget(1.0, 1e-5)), 6)
        3.730632
    """
    low, high = check_positive("low", low), check_positive("high", high)
    if low > high:
        raise ParameterError(f"low must be <= high, got low={low!r}, high={high!r}.")
    # Methods, clips and folds that are compared ask for the same rounds: those equal at one end mostly are.
    asked = (event_at(high), budget, low, high)
    known = _answers.get(asked)
    if known is not None and _is_least(known, event_at, budget, low):
        return known
    if len(_answers) >= _MOST_ANSWERS:
        _answers.clear()
    _answers[asked] = found = _searched(event_at, budget, low, high)
    return found


def _is_least(x: float, event_at: Callable[[float], Event], budget: Budget, low: float) -> bool:
    """Whether `x` meets the budget, and nothing that is smaller by more than the tolerance does."""
    below = x * (1 - _TOLERANCE)
    return meets(event_at(x), budget) and (below < low or not meets(event_at(below), budget))


def _searched(event_at: Callable[[float], Event], budget: Budget, low: float, high: float) -> float:
    """Return what `calibrate` does."""
    overspent = _overspending(event_at, budget)
    if overspent(high) > 0:
        raise _cannot_be_met(event_at(high), budget, high)
    least = low
    low, high = _bracket(overspent, low, high)
    # Next to no noise takes the widest grids: it is looked at where all that is above meets the budget.
    if high == least and meets(event_at(least), budget):
        return least
    left, right = math.log(low), math.log(high)

    @cache  # the solver asks for both ends again
    def at(log_x: float) -> float:
        return overspent(math.exp(log_x))

    # An end that meets the budget exactly may miss it after the round trip through its logarithm.
    root = (
        right
        if at(right) >= 0
        else left
        if at(left) <= 0
        else scipy.optimize.brentq(at, left, right, xtol=1e-10, rtol=1e-10)
    )
    x, margin = min(math.exp(root), high), _TOLERANCE / 8
    while not meets(event_at(x), budget):
        if x >= high:
            raise _cannot_be_met(event_at(high), budget, high)
        x, margin = min(x * (1 + margin), high), margin * 4
    return x


def _overspending(event_at: Callable[[float], Event], budget: Budget) -> Callable[[float], float]:
    """Return a smooth function of x that is positive where the budget is exceeded."""
    if isinstance(budget, ZcdpBudget):

        def over_rho(x: float) -> float:
            event = event_at(x)
            check_work(event)
            return math.log(max(rho_of(event), 1e-300) / budget.rho)

        return over_rho

    def over(x: float) -> float:
        event = event_at(x)
        check_work(event)
        pure = pure_epsilon_of(event)
        if budget.delta == 0:
            return math.log(max(pure, 1e-300) / budget.epsilon) if math.isfinite(pure) else 700.0
        if pure <= budget.epsilon:
            # Well below 0: where the pure level alone just fits, delta leaves room for more.
            return math.log(max(pure, 1e-300) / budget.epsilon) - 1.0
        # log delta is smoother in x than epsilon is, and needs no inner search.
        delta = delta_at(event, budget.epsilon, accuracy=budget.delta)
        return math.log(max(delta, 1e-300) / budget.delta)

    return over


def _bracket(overspent: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Shrink [low, high] by doubling steps around 1, where most answers are; to `low` alone if it will do."""
    guess = min(max(1.0, low), high)
    if overspent(guess) > 0:
        while guess < high and overspent(min(2 * guess, high)) > 0:
            guess *= 2
        return guess, min(2 * guess, high)
    while guess > low and overspent(max(guess / 2, low)) <= 0:
        guess /= 2
    return max(guess / 2, low), max(guess, low)


def _cannot_be_met(event: Event, budget: Budget, high: float) -> BudgetError:
    """Return the error that says why even `event`, at the end of the search, costs too much."""
    if isinstance(budget, ZcdpBudget):
        said = f"rho = {budget.rho:.6g}"
    else:
        said = f"epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.3g}"
        if budget.delta == 0 and math.isinf(pure_epsilon_of(event)):
            said += " (pure privacy, which this kind of noise never gives: choose delta > 0)"
    return BudgetError(f"the budget {said} cannot be met, even at {high:.6g}.")
