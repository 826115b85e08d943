"""Calibrations of bit planes as printed, beside the numerical one of `tacit.means`.

v is the privacy parameter by Girgis (2023) of a report of s messages, each at the level 2 asinh(v / (2 s)).
"""

from __future__ import annotations

import math

from scipy import optimize

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.mechanisms import level_from_v
from tacit.privacy import ORDERS, Neighbours, PrivacyBudget, Repeat, Shuffled, renyi_of, renyi_to_epsilon

__all__ = ["closed_form_v", "renyi_v", "thesis_radius", "thesis_v"]

_LARGEST_LEVEL = 30.0
_EVERY = 8  # of the default orders; in between, little is lost


def thesis_v(budget: PrivacyBudget, *, n: int, samples: int) -> float:
    """Return v = sqrt(s n min(epsilon^2, epsilon) / (144 ln(1 / delta))), as printed: not a proof.

    The constant does not follow from the chain of lemmas there, and the condition on the order of Lemma 3.3.2
    is left out (docs/errata.md). No violation is known: what it gives is some ten times more private than it
    says.

    Args:
        budget: Of the shuffled reports, 0 < delta <= 1 / e, epsilon <= `samples`.
        n: Number of reports.
        samples: Messages s of a report.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Girgis (2023), Theorem 3.3.2.

    Example:
        >>> round(thesis_v(PrivacyBudget(1.0, 1e-5), n=1000, samples=1), 4)
        0.7767
    """
    log = _checked(budget, n, samples)
    if budget.epsilon > samples:
        raise ParameterError(f"epsilon must be at most samples = {samples}, got {budget.epsilon!r}.")
    return math.sqrt(samples * n * min(budget.epsilon**2, budget.epsilon) / (144 * log))


def closed_form_v(budget: PrivacyBudget, *, n: int, samples: int) -> float:
    """Return v = sqrt(s n min(epsilon^2 / 432, epsilon / 144) / ln(1 / delta)): sound for binary messages.

    Arguments as `thesis_v`, without its condition on epsilon.

    Raises:
        ParameterError: A value out of its range, or an order beyond what the lemma covers: 1 + sqrt(L / rho)
            must be at most n / (16 e0 exp(e0)) for messages of level e0.

    Example:
        >>> round(closed_form_v(PrivacyBudget(1.0, 1e-5), n=1000, samples=1), 4)
        0.4484
    """
    log = _checked(budget, n, samples)
    v = math.sqrt(samples * n * min(budget.epsilon**2 / 432, budget.epsilon / 144) / log)
    level = level_from_v(v / samples)
    order = 1 + math.sqrt(log * samples * n / (48 * v * v))
    largest = n / (16 * level) * math.exp(-level)
    if order > largest:
        raise ParameterError(
            f"the closed form needs an order of at most {largest:.4g} for messages of level {level:.4g}, got "
            f"{order:.4g}: take more reports, more samples, or the numerical calibration."
        )
    return v


def renyi_v(budget: PrivacyBudget, *, n: int, samples: int) -> float:
    """Return the largest v that Rényi divergences of the shuffled messages prove: sound, a little loose.

    Arguments as `closed_form_v`.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        docs/theory/shuffling.md, section 4; Girgis (2023), Lemmas 2.1.3 and 2.1.4.
    """
    log = _checked(budget, n, samples)
    orders = ORDERS[::_EVERY]

    def excess(log_v: float) -> float:
        level = level_from_v(math.exp(log_v) / samples)
        event = Repeat(Shuffled(level, n, "2rr", Neighbours()), samples)
        return renyi_to_epsilon(orders, renyi_of(event, orders), budget.delta).epsilon - budget.epsilon

    # The closed form is known to be too careful: the search starts there.
    low = 0.5 * math.log(samples * n * min(budget.epsilon**2 / 432, budget.epsilon / 144) / log)
    end = math.log(2 * samples * math.sinh(_LARGEST_LEVEL / 2)) - 1e-9
    while excess(low) > 0:
        low -= 1.0
    high = low + 1.0
    while high < end and excess(high) <= 0:
        high += 1.0
    if high >= end and excess(end) <= 0:
        return math.exp(end)
    return math.exp(optimize.brentq(excess, low, min(high, end), xtol=1e-5) - 2e-5)


def thesis_radius(r2: float, *, n: int, dim: int, beta: float) -> float:
    """Return the printed radius of a rotated vector: 10 r2 sqrt(ln(d n / beta) / d).

    It often exceeds r2 itself, which bounds every coordinate without any rotation: n = 1000, d = 300 and
    beta = 0.01 give 2.396 r2 (docs/errata.md). The remark after Theorem 3.6.2 there prints log(n d beta) for
    log(n d / beta).

    Args:
        r2: Bound on the norms of the vectors, > 0.
        n: Number of vectors, >= 1.
        dim: Dimension d, not padded.
        beta: Probability, in (0, 1).

    Raises:
        ParameterError: an argument is out of range.

    Example:
        >>> round(thesis_radius(1.0, n=1000, dim=300, beta=0.01), 3)
        2.396

    Reference:
        Girgis (2023), Algorithm 3.6.1.
    """
    check_positive("r2", r2)
    check_count("n", n)
    check_count("dim", dim)
    check_probability("beta", beta, low_open=True, high_open=True)
    return 10 * r2 * math.sqrt((math.log(dim) + math.log(n) - math.log(beta)) / dim)


def _checked(budget: PrivacyBudget, n: int, samples: int) -> float:
    """Return ln(1 / delta) after checking the arguments."""
    check_count("n", n)
    check_count("samples", samples)
    check_positive("epsilon", budget.epsilon)
    if not 0 < budget.delta <= 1 / math.e:
        raise ParameterError(f"delta must be in (0, 1 / e], got {budget.delta!r}.")
    return -math.log(budget.delta)
