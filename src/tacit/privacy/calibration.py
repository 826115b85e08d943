"""The least noise that meets a budget."""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy
from scipy import special

from tacit.errors import BudgetError, ParameterError, check_positive
from tacit.privacy.budget import DECIMAL, Budget, ZcdpBudget
from tacit.privacy.events import Event
from tacit.privacy.pricing import delta_at, epsilon_of, pure_epsilon_of, rho_of
from tacit.privacy.work import check_work

__all__ = ["calibrate", "meets"]

_TOLERANCE = 1e-9  # relative, on the calibrated parameter
_HALF, _FURTHEST = math.log(2), math.log(100)  # steps of the search, down and up
_MOST_SECANTS, _LEAST_SLOPE = 8, 0.1
_LEVELS = (math.log(1e-12), math.log(100))
_LARGEST_DELTA = 1 - 1e-15

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
    least, most = math.log(low), math.log(high)

    def at(log_x: float) -> float:
        # The ends themselves, without a round trip through their logarithms.
        return overspent(low if log_x == least else high if log_x == most else math.exp(log_x))

    log_x = _root(at, least, most)
    if log_x == least and meets(event_at(low), budget):
        return low
    x, margin = min(math.exp(log_x), high), _TOLERANCE / 8
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
        # A delta needs no inner search, and the Gaussian level that has it is close to a power of x.
        delta = delta_at(event, budget.epsilon, accuracy=budget.delta)
        return _log_gaussian_level(budget.epsilon, delta) - _log_gaussian_level(budget.epsilon, budget.delta)

    return over


def _log_gaussian_level(epsilon: float, delta: float) -> float:
    """Return about log mu of the Gaussian release that has this delta at this epsilon."""
    target = math.log(min(max(delta, 1e-300), _LARGEST_DELTA))

    def gap(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first = special.log_ndtr(mu / 2 - epsilon / mu)
        second = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
        return float(first + math.log(max(-math.expm1(min(second - first, 0.0)), 1e-300)) - target)

    low, high = _LEVELS
    return low if gap(low) >= 0 else float(scipy.optimize.brentq(gap, low, high, xtol=1e-13, rtol=1e-13))


def _root(at: Callable[[float], float], least: float, most: float) -> float:
    """Return where a falling function is just about 0 and not above; `least` if it is nowhere above.

    Steps along the slope from 0, which is x = 1, until the function changes its sign, then secants, aimed a
    little beyond. It is known to be at most 0 at `most`.
    """
    here, slope = min(max(0.0, least), most), -1.0  # a level is about one over the noise, or falls faster
    value, left, right, tries = at(here), least, most, 0
    is_between = False
    while True:
        if value <= 0:
            right = here
            if right == least or -value <= -slope * _TOLERANCE:
                return right
        else:
            left, is_between = here, True
        if right - left <= _TOLERANCE:
            return right
        step = -value / slope + _TOLERANCE / 2
        if not is_between:  # next to no noise takes the widest grids: the way down is by halves at most
            there = max(here + max(1.1 * step, -_HALF), least)
        elif here + step <= left or here + step >= right or tries >= _MOST_SECANTS:
            there, tries = min((left + right) / 2, left + _FURTHEST), 0
        else:
            there, tries = here + step, tries + 1
        before, value = value, at(there)
        here, slope = there, min((value - before) / (there - here), -_LEAST_SLOPE)


def _cannot_be_met(event: Event, budget: Budget, high: float) -> BudgetError:
    """Return the error that says why even `event`, at the end of the search, costs too much."""
    if isinstance(budget, ZcdpBudget):
        said = f"rho = {budget.rho:.6g}"
    else:
        said = f"epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.3g}"
        if budget.delta == 0 and math.isinf(pure_epsilon_of(event)):
            said += " (pure privacy, which this kind of noise never gives: choose delta > 0)"
    return BudgetError(f"the budget {said} cannot be met, even at {high:.6g}.")
