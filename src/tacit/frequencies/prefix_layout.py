"""How the bits of a large domain are asked for: in how many levels, of how many prefixes, by whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from tacit.frequencies.kary import KaryResponse
from tacit.frequencies.oracle import least_private
from tacit.mechanisms import HIGHEST_LEVEL
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["SET_DRAWS", "Layout", "best_layout"]

_MOST_CANDIDATES: Final = 2**20
"""The most candidates of one level, which the server keeps in memory."""
SET_DRAWS: Final = 2**24
"""The most answers that clients draw together in one level, where they answer for every candidate."""
_MOST_KEPT: Final = 2**14
_MOST_LEVELS: Final = 32


class Layout(NamedTuple):
    """Levels of a prefix tree.

    Attributes:
        prefixes: Length in bits of the prefixes of each level, growing up to the domain's bits.
        kept: How many prefixes of a level are followed.
        dealt: Whether every client answers in one level only, dealt at random, with the whole budget; else
            every client answers in all levels, with a part of it each.
    """

    prefixes: tuple[int, ...]
    kept: int
    dealt: bool

    @property
    def candidates(self) -> tuple[int, ...]:
        """Number of candidates of each level; any other prefix is "other"."""
        steps = np.diff((0, *self.prefixes)).tolist()
        return tuple(2**step * (self.kept if level else 1) for level, step in enumerate(steps))

    def rows(self, n: int) -> tuple[int, ...]:
        """Return how many of n clients answer in each level."""
        count = len(self.prefixes)
        return tuple(n // count + (k < n % count) if self.dealt else n for k in range(count))


def best_layout(
    bits: int,
    n: int,
    budget: PrivacyBudget,
    trust: TrustModel,
    neighbours: Neighbours,
    *,
    threshold: float,
    false_alarm: float,
    miss: float,
    mechanism: str | None = None,
) -> Layout:
    """Return the layout whose least frequency that is found is about the smallest, by normal tails.

    Args:
        bits: Of the domain.
        n: Number of clients.
        budget: Of all levels together.
        trust: `local`, `shuffle` or `central`.
        neighbours: Of the price.
        threshold: See `PrefixTree`.
        false_alarm: See `PrefixTree`.
        miss: See `PrefixTree`.
        mechanism: What clients send; None for the best.
    """
    rare: dict[tuple[int, bool], Callable[[int], float]] = {}
    best, least = None, math.inf
    for layout in _layouts(bits, n, trust):
        levels = len(layout.prefixes)
        key = (levels, layout.dealt)
        if key not in rare:
            part = 1 if layout.dealt else levels
            share = PrivacyBudget(budget.epsilon / part, budget.delta / part)
            rare[key] = _rare_variance(share, min(layout.rows(n)), trust, neighbours, mechanism)
        found = threshold
        for _ in range(3):
            found = max(
                _needed(layout, n, level, found, rare[key], (threshold, false_alarm, miss))
                for level in range(levels)
            )
        if found < least * (1 - 1e-9):
            best, least = layout, found
    return best or Layout((bits,), 1, dealt=False)


def _layouts(bits: int, n: int, trust: TrustModel) -> Iterator[Layout]:
    """Yield layouts that fit into memory, with levels of about equal size, the fewest levels first."""
    kept = [2**j for j in range(_MOST_KEPT.bit_length())]
    most = min(bits, _MOST_LEVELS if trust is TrustModel.LOCAL else 6, max(n // 2, 1))
    for levels in range(1, most + 1):
        for keep in kept:
            width = keep.bit_length() - 1
            step = max(-(-(bits - width) // levels), 1)
            first = bits - (levels - 1) * step
            if first < max(width, 1) or 2 ** max(first, width + step if levels > 1 else 0) > _MOST_CANDIDATES:
                continue
            prefixes = tuple(first + level * step for level in range(levels))
            for dealt in (False, True):
                # A trusted server's noise does not grow with the rows: all of them are asked at all levels.
                # Behind a shuffler, where levels compose as their roots, several messages a client win
                # nothing, and would say more of it alone.
                if dealt and (levels == 1 or trust is TrustModel.CENTRAL):
                    continue
                if not dealt and levels > 1 and trust is TrustModel.SHUFFLE:
                    continue
                yield Layout(prefixes, keep, dealt)


def _needed(
    layout: Layout,
    n: int,
    level: int,
    found: float,
    rare: Callable[[int], float],
    asked: tuple[float, float, float],
) -> float:
    """Return about how frequent a prefix must be to get through one level."""
    threshold, false_alarm, miss = asked
    last = level == len(layout.prefixes) - 1
    candidates, rows = layout.candidates[level], layout.rows(n)[level]
    others = false_alarm if last else miss / 4
    reach = -float(special.ndtri(others / candidates)) - float(special.ndtri(miss / len(layout.prefixes)))
    spread = rare(candidates) + (found * (1 - min(found, 1.0)) if layout.dealt else 0.0)
    return (threshold if last else 1 / layout.kept) + reach * math.sqrt(spread / rows)


def _rare_variance(
    budget: PrivacyBudget, rows: int, trust: TrustModel, neighbours: Neighbours, mechanism: str | None
) -> Callable[[int], float]:
    """Return n times the variance of the frequency of a rare value, as a function of the number of values."""
    if trust is TrustModel.CENTRAL:
        return lambda _: 2 * (2 / budget.epsilon) ** 2 / rows
    level = min(budget.epsilon, HIGHEST_LEVEL)
    if trust is TrustModel.SHUFFLE:
        # The level that a batch allows for hardly depends on the number of values, nor on the mechanism.
        level = least_private(
            lambda x: KaryResponse(k=4096, epsilon=x), budget, n=rows, trust=trust, neighbours=neighbours
        ).epsilon
    odds, gain = math.exp(level), math.expm1(level)

    def variance(k: int) -> float:
        sets = 4 * odds / gain**2
        found = {"bh": ((odds + 1) / gain) ** 2, "krr": (odds + k - 2) / gain**2}
        if mechanism is not None:
            return found.get(mechanism, sets)
        if trust is TrustModel.LOCAL and rows * k <= SET_DRAWS:
            found["sets"] = sets
        return min(found.values())

    return variance
