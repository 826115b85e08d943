"""Binomial noise is as private as Gaussian noise, up to a small probability.

Let h = Phi^-1 o F with F the distribution function of Bin(N, p). Where h rises by at most m1 a step, a shift
by k is no easier to see than a shift of a standard normal by m1 |k|; tails beyond that range are charged as
a probability of seeing everything (docs/theory/noise.md, section 6). Unlike exact curves, Gaussian ones
compose over coordinates and rounds by adding squares, whatever the direction of the shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from tacit.errors import check_count, check_probability
from tacit.privacy.curves import Array

__all__ = ["MOST_TABULATED", "binomial_gdp_step", "tail_slack"]

_LARGEST_TAIL = 0.25  # below it, the range of steps always contains the mode
_USUAL_TAIL = 1e-40  # tables reach that far at once, so that one table serves many tails
MOST_TABULATED = 1 << 34  # a table then has 2 million entries; more noise bits are priced as that many
_CUT = 23.0  # a table leaves out at most e^-23 of any tail that is read from it


def binomial_gdp_step(trials: int, probability: float, tail: float, shift: int) -> float:
    """Return the Gaussian-DP level m1 of one step of shift under Bin(trials, probability) noise.

    m1 = max of h(t) - h(t - 1) over a0 - shift < t <= c0 + shift, where a0 is the last t with F(t) <= tail
    and c0 the first with 1 - F(t) <= tail. For every integer k of size at most `shift`, the pair
    (eta + k, eta) is dominated in both orders by N(m1 |k|, 1) against N(0, 1), except with probability
    `tail_slack(m1, tail, shift)`.

    Args:
        trials: Number of noise bits N, >= 1. Above 2**34 no further bits are credited.
        probability: That a noise bit is one, in (0, 1).
        tail: Probability t0 of either tail that is given up, in (0, 1/4].
        shift: Largest size of the shift, in steps, >= 0.

    Returns:
        m1, rounded up by a relative 1e-9 or more; infinity where the tails leave no room for the shift.

    Raises:
        ParameterError: A value out of its range.

    Cost:
        O(std + shift) time and memory for the first call with these trials; later ones look up a table.

    Example:
        >>> round(binomial_gdp_step(10_000, 0.5, 1e-12, 32), 10)
        0.0200294282

    Reference:
        Derived in docs/theory/noise.md, section 6 (claim and proof).
    """
    check_count("trials", trials)
    check_probability("probability", probability, low_open=True, high_open=True)
    check_count("shift", shift, low=0)
    check_probability("tail", tail, low_open=True)
    tail, g = min(float(tail), _LARGEST_TAIL), int(shift)  # a smaller tail is a smaller slack
    n, p = min(int(trials), MOST_TABULATED), float(probability)
    if 2 * g > n:
        return math.inf
    std = math.sqrt(n * p * (1 - p))
    room = -float(special.ndtri(min(tail, _USUAL_TAIL))) + 3
    reach = math.ceil(room * std) + (1 << max(g, 63).bit_length()) + 20
    while True:
        table = _steps(n, p, reach)
        found = table.largest_step(math.log(tail), g)
        if found is not None:
            return found * (1 + 1e-9 + 2.0**-46 * std)
        reach *= 2  # the tails of a skewed law reach further than a Gaussian's


def tail_slack(step: float, tail: float, shift: int) -> float:
    """Return q = tail / (1 - TV): how likely one coordinate shows everything.

    TV is the total variation distance of N(step * shift, 1) from N(0, 1).
    """
    hidden = 2 * float(special.ndtr(-step * shift / 2))
    return min(tail * (1 + 1e-9) / hidden, 1.0) if hidden > 0 else 1.0


@dataclass(frozen=True)
class _Steps:
    """The distribution function on a window, in logs, and the largest steps of h from the mode outwards.

    Attributes:
        first: The integer that index 0 stands for.
        last: The largest integer with positive probability, as an index; the window may end before.
        size: Number of integers in the window.
        log_below: log F(t) from index 0 to a little above the mode: all of the lower tail.
        above: The index at which `minus_log_above` begins, a little below the mode.
        minus_log_above: -log (1 - F(t)) from there to the end of the window.
        to_mode: Largest h(t) - h(t - 1) from index i to the mode, shape (mode + 1,).
        from_mode: The same from the mode to index mode + i.
        log_cut: Bounds on the logarithm of the mass beyond the left and the right end.
        mode: Index of the mode.
    """

    first: int
    last: int
    size: int
    log_below: Array
    above: int
    minus_log_above: Array
    to_mode: Array
    from_mode: Array
    log_cut: tuple[float, float]
    mode: int

    def largest_step(self, log_tail: float, g: int) -> float | None:
        """Return m1; infinity where it is infeasible; None where the window is too small to say."""
        low = int(np.searchsorted(self.log_below, log_tail, side="right")) - 1 - g  # a0 - g
        high = self.above + int(np.searchsorted(self.minus_log_above, -log_tail, side="left")) + g  # c0 + g
        if self.first + low < 0 or high >= self.last:
            return math.inf
        if low < 0 or high >= self.size:
            return None
        below, above = self.log_below[low], -self.minus_log_above[high - self.above]
        if below < self.log_cut[0] + _CUT or above < self.log_cut[1] + _CUT:
            return None
        left, right = min(low + 1, self.mode), max(high - self.mode, 0)
        return float(max(self.to_mode[left], self.from_mode[right]))


@lru_cache(maxsize=6)  # up to 40 MB each
def _steps(n: int, p: float, reach: int) -> _Steps:
    """Tabulate Bin(n, p) within `reach` of its mode."""
    mode = min(math.floor((n + 1) * p), n)
    first, end = max(mode - reach, 0), min(mode + reach, n)
    k: Array = np.arange(first, end, dtype=np.float64)
    # pmf(k + 1) / pmf(k) - 1, small around the mode, where its digits matter.
    log_ratio = np.log1p((n * p - k - (1 - p)) / ((k + 1) * (1 - p)))
    at = mode - first
    log_pmf = np.concatenate([-np.cumsum(log_ratio[:at][::-1])[::-1], np.zeros(1), np.cumsum(log_ratio[at:])])
    log_pmf -= math.log(float(np.exp(log_pmf).sum()))
    # The median is within one of the mode: each tail is added up from its end to a little beyond that.
    above = max(at - 2, 0)
    log_below = np.logaddexp.accumulate(log_pmf[: at + 3])
    log_above = np.append(np.logaddexp.accumulate(log_pmf[:above:-1])[::-1], -np.inf)
    both = log_below.size - above
    median = above + int(np.count_nonzero(log_below[above:] < log_above[:both]))
    h = np.concatenate(
        [special.ndtri_exp(log_below[:median]), -special.ndtri_exp(log_above[median - above :])]
    )
    step = np.diff(h, prepend=-np.inf)
    return _Steps(
        first=first,
        last=n - first,
        size=step.size,
        log_below=log_below,
        above=above,
        minus_log_above=-log_above,
        to_mode=np.maximum.accumulate(step[at::-1])[::-1],
        from_mode=np.maximum.accumulate(step[at:]),
        log_cut=(
            _log_geometric(log_pmf[0], -log_ratio[0]) if first > 0 else -math.inf,
            _log_geometric(log_pmf[-1], log_ratio[-1]) if end < n else -math.inf,
        ),
        mode=at,
    )


def _log_geometric(log_mass: float, log_ratio: float) -> float:
    """Bound the mass beyond an end: a log-concave law falls at least as fast there as at the end."""
    if log_ratio >= 0:
        return math.inf
    return float(log_mass + log_ratio - math.log(-math.expm1(log_ratio)))
