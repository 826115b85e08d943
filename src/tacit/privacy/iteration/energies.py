"""The energies of shuffled gradient descent: which orders and releases hide how much.

Derived in docs/theory/iteration.md, section 2.

One epoch is n noisy steps, of which the first `private` use a record each; a record touched at step j is
hidden by the r = n - j + 1 draws of noise from then to the end of the epoch, and by later epochs where their
iterates are hidden as well. Energies are in units of (sensitivity / noise std)^2 of one step.
"""

from __future__ import annotations

import math
from enum import StrEnum
from functools import lru_cache

import numpy as np
from scipy import fft, special

from tacit.privacy.curves import Array
from tacit.privacy.iteration.hull import touch_energy
from tacit.privacy.iteration.law import EnergyLaw, merged_up

__all__ = ["Order", "Placement", "Release", "energy_law", "epoch_law"]

_FINE = 100_000  # energies of a law, and positions up to which none are merged
_GRID = 4000  # points up to the largest energy of one epoch, at least, while the convolution fits:
_LONGEST = 1 << 21  # points of a convolution over all epochs
_ROUND_OFF = 1e-12  # of that convolution, on delta
_RARE = 1e-18  # numbers of earlier epochs less likely than that are counted as more epochs
_REFINED = (32, 64)  # numbers of epochs, and positions, for which a refined hull is computed


class Order(StrEnum):
    """In which order records are used (Jiang 2025, Section 4.3.3); never chosen by looking at their values.

    `IG`, incremental gradient: one fixed order. `SO`, shuffle once: one uniform order for all
    epochs. `RR`, random reshuffling: a fresh uniform order in every epoch.
    """

    IG = "ig"
    SO = "so"
    RR = "rr"


class Placement(StrEnum):
    """Where the noise of an epoch goes: a draw on every step, or one draw after the last step."""

    EVERY_STEP = "every-step"
    EPOCH_END = "epoch-end"


class Release(StrEnum):
    """Which iterates leave: all of them, those at the ends of epochs, or only the last one."""

    ALL = "all"
    EPOCHS = "epochs"
    LAST = "last"


@lru_cache(maxsize=64)  # a law may hold 2 MB
def energy_law(
    n: int,
    epochs: int,
    private: int,
    order: Order,
    release: Release,
    epoch_contraction: float = 1.0,
    diameter: float | None = None,
    placement: Placement = Placement.EVERY_STEP,
) -> EnergyLaw:
    """Return the law of the energy of a whole run, over the random order, for the worst record.

    Args:
        n: Steps per epoch.
        epochs: Number of epochs K.
        private: Number of private steps n_d of each epoch, 0..n.
        order: How the records are ordered.
        release: What leaves.
        epoch_contraction: As in `touch_energy`; only where the last iterate alone leaves.
        diameter: As in `touch_energy`; only where the last iterate alone leaves.
        placement: Where the noise of an epoch goes; one draw at its end is not for the release of all.

    Returns:
        The law; where it is a bound, no smaller than the true one in the sense of every delta.
    """
    if private == 0:
        return EnergyLaw(np.empty(0), np.empty(0))
    share = private / n
    refined = epoch_contraction < 1 or diameter is not None
    if placement is Placement.EPOCH_END:
        # One epoch is one noisy step, wherever it uses the record; see docs/theory/iteration.md, section 2.
        if refined:
            return _refined(1, epochs, 1, order, epoch_contraction, diameter, share=share)
        return _all_released(epochs, share, order)
    if release is Release.ALL:
        return _all_released(epochs, share, order)
    if release is Release.EPOCHS:
        return _ends_released(n, epochs, private, order)
    if refined:
        return _refined(n, epochs, private, order, epoch_contraction, diameter, share=share)
    first = n - private + 1
    if order is Order.IG:
        return _certain((epochs - 1) / n + 1 / first)
    if order is Order.SO:
        counts, r = _touches(n, private, _FINE)
        return merged_up(counts / n, (epochs - 1) / n + 1 / r, _FINE)
    return _last_of_reshuffled(n, epochs, private)


def epoch_law(n: int, private: int) -> EnergyLaw:
    """Return the law of the energy 1 / r of one reshuffled epoch whose end leaves."""
    if private == 0:
        return EnergyLaw(np.empty(0), np.empty(0))
    counts, r = _touches(n, private, _FINE)
    return merged_up(counts / n, 1 / r, _FINE)


def _certain(energy: float) -> EnergyLaw:
    return EnergyLaw(np.ones(1), np.array([energy]))


def _all_released(epochs: int, share: float, order: Order) -> EnergyLaw:
    """Return the law where nothing is hidden: the number of epochs that use the record."""
    if order is Order.IG or share == 1:
        return _certain(float(epochs))
    if order is Order.SO:
        return EnergyLaw(np.array([share]), np.array([float(epochs)]))
    used, weights = _uses(epochs, share, _FINE)
    return merged_up(weights, used.astype(np.float64), _FINE)


def _ends_released(n: int, epochs: int, private: int, order: Order) -> EnergyLaw:
    """Return the law where the end of every epoch leaves: energies of epochs add up."""
    first = n - private + 1
    if order is Order.IG:
        return _certain(epochs / first)
    if order is Order.SO:
        counts, r = _touches(n, private, _FINE)
        return merged_up(counts / n, epochs / r, _FINE)
    return _sum_of_epochs(n, epochs, private)


def _sum_of_epochs(n: int, epochs: int, private: int) -> EnergyLaw:
    """Return the law of the sum over reshuffled epochs, on a grid with every energy rounded up."""
    if epochs == 1:
        return epoch_law(n, private)
    first = n - private + 1
    points = min(max(_GRID, n), _LONGEST // epochs)
    if points < 1:
        return _certain(epochs / first)
    counts, r = _touches(n, private, _FINE)
    index = np.ceil(points * first / r).astype(np.int64)
    mass = np.bincount(index, weights=counts / n, minlength=points + 1)
    mass[0] += 1 - private / n
    length = points * epochs + 1
    size = fft.next_fast_len(length, real=True)
    total = np.maximum(fft.irfft(fft.rfft(mass, size) ** epochs, size)[:length], 0.0)
    # The worst order is the proof of a minute delta: round-off must not make it impossible.
    total[-1] = max(float(total[-1]), 1e-300)
    # Round-off: relative in the norm of the spectrum, so at most this in the sum of all masses.
    worst = 2.0**-53 * (np.log2(size) + epochs) * np.sqrt(length) * float(np.linalg.norm(total))
    energies = np.arange(length) / (points * float(first))
    return merged_up(total, energies * (1 + 1e-15), _FINE, allowance=max(_ROUND_OFF, worst))


def _last_of_reshuffled(n: int, epochs: int, private: int) -> EnergyLaw:
    """Return a bound of the law of the last iterate's energy under random reshuffling.

    Later touches cost more, so the epochs that use the record are taken as the latest ones, each with its
    last private step; only the number of such epochs and the position in the last epoch are averaged over.
    """
    used, weights = _uses(epochs - 1, private / n, 256)
    counts, r = _touches(n, private, max(_FINE * 16 // used.size, 1024))
    m = used[:, None].astype(np.float64)
    # g noisy steps between the last two touches, r from then to the end: the hull bends up only for g > r.
    g = (2 * n - private + 1) - r
    tail = np.where(g >= r, 1 / np.maximum(g, 1) + 1 / r, 4 / (g + r))
    touched = np.where(m == 0, 1 / r, (m - 1) / n + tail)
    parts = [(weights[:, None] * (counts / n), touched)]
    if private < n:
        missed = used.astype(np.float64) ** 2 / ((used + 1.0) * n - private + 1)
        parts.append((weights * (1 - private / n), missed))
    return merged_up(
        np.concatenate([np.ravel(w) for w, _ in parts]),
        np.concatenate([np.ravel(e) for _, e in parts]) * (1 + 1e-15),
        _FINE,
    )


def _refined(
    n: int,
    epochs: int,
    private: int,
    order: Order,
    contraction: float,
    diameter: float | None,
    *,
    share: float,
) -> EnergyLaw:
    """Return the law of the last iterate with epochs that contract, or start in a bounded set.

    The hulls of the other functions, computed instead of written down: touches are placed as there. An epoch
    uses the record with the probability `share`, at any of its first `private` steps alike.
    """

    def energy(earlier: int, used: int, final: int) -> float:
        at = [0] * (epochs - 1 - used) + [earlier] * used + [final]
        return touch_energy(at, n, epoch_contraction=contraction, diameter=diameter)

    if order is Order.IG:
        return _certain(energy(private, epochs - 1, private))
    most_used, most_positions = _REFINED
    counts, r = _touches(n, private, most_positions)
    positions = (n + 1 - r).astype(np.int64).tolist()
    if order is Order.SO:
        found = np.array([energy(j, epochs - 1, j) for j in positions])
        return merged_up(counts * (share / private), found, _FINE)
    used, weights = _uses(epochs - 1, share, most_used)
    finals, chances = ([*positions, 0], np.append(counts * (share / private), 1 - share))
    table = np.array([[energy(private, int(m), j) for j in finals] for m in used])
    return merged_up(np.ravel(weights[:, None] * chances), np.ravel(table), _FINE)


def _touches(n: int, private: int, limit: int) -> tuple[Array, Array]:
    """Return how many private positions have how many noisy steps r from there to the end of the epoch.

    Above `limit` positions neighbours are merged geometrically, with the fewest steps of the group.
    """
    first = n - private + 1
    if private <= limit:
        edges = np.arange(first, n + 2, dtype=np.float64)
    else:
        edges = np.unique(np.floor(np.geomspace(first, n + 1, limit + 1)))
        edges[0], edges[-1] = first, n + 1
    return np.diff(edges), edges[:-1]


def _uses(epochs: int, share: float, limit: int) -> tuple[Array, Array]:
    """Return numbers of epochs that use a record and their binomial weights, merged up to at most `limit`."""
    if epochs == 0 or share == 1:
        return np.array([float(epochs)]), np.ones(1)
    # Bernstein's inequality; the binomial quantiles of SciPy stop at about 1e-16.
    unlikely = -math.log(_RARE) / 3
    away = unlikely + math.sqrt(unlikely**2 + 6 * unlikely * epochs * share * (1 - share))
    low, high = max(int(epochs * share - away), 0), min(math.ceil(epochs * share + away), epochs)
    tops = np.unique(np.linspace(low, high, min(limit - 1, high - low + 1)).astype(np.int64))
    tops = np.union1d(tops, [epochs])
    # P(uses <= top) and P(uses > top); the last top is all epochs.
    below = np.concatenate([[0.0], special.betaincc(tops[:-1] + 1, epochs - tops[:-1], share), [1.0]])
    above = np.concatenate([[1.0], special.betainc(tops[:-1] + 1, epochs - tops[:-1], share), [0.0]])
    # From the nearer tail, so that small weights keep their digits; a rounded-up sum is safe.
    weights = np.where(tops > epochs * share, -np.diff(above), np.diff(below))
    return tops.astype(np.float64), np.maximum(weights, 0.0) * (1 + 1e-12)
