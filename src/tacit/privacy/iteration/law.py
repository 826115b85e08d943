"""The law of a random energy, and the curve of a Gaussian release whose level it draws.

A shuffled order is drawn without looking at the data, so it may be published: delta is then the average over
orders of the deltas of Gaussian releases (docs/theory/iteration.md, section 2), and so is the moment of the
privacy loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy.curves import Array, Curve, gaussian_deltas, minimum, symmetric
from tacit.privacy.divergences import log_add

__all__ = ["EnergyLaw", "merged_up"]

_ROUND_UP = 1 + 1e-12
"""Past what a sum of weights and deltas loses; the energies are rounded up where they are made."""

_FEW = 4  # epsilons at which the whole law is used; a calibration or a search asks one at a time
_COARSE = 1024  # energies, and epsilons between which the curve is interpolated, for long tables
_BLOCK = 1 << 20  # Gaussian deltas computed at once


@dataclass(frozen=True, eq=False)
class EnergyLaw:
    """A law of the energy E of one release: mu = sqrt(E) / noise multiplier.

    Attributes:
        weights: Probability of each energy, shape (m,); what is missing to 1 has energy 0.
        energies: Distinct, rising, > 0; shape (m,).
        allowance: Added to every delta, for the round-off of a convolution.
    """

    weights: Array
    energies: Array
    allowance: float = 0.0

    @property
    def largest(self) -> float:
        """The energy of the worst order; 0 where the data is not used."""
        return float(self.energies[-1]) if self.energies.size else 0.0

    @property
    def is_fixed(self) -> bool:
        """Whether there is only one energy, so that the release is a Gaussian one."""
        return self.energies.size == 0 or (self.energies.size == 1 and float(self.weights[0]) >= 1)

    def curve(self, noise_multiplier: float) -> Curve:
        """Return the curve of a release with this law."""
        if self.energies.size == 0:
            return symmetric(np.zeros_like, max_loss=0.0)
        whole = self._scaled(noise_multiplier)
        coarse = merged_up(self.weights, self.energies, _COARSE, self.allowance)._scaled(noise_multiplier)

        def profile(epsilon: Array) -> Array:
            flat = np.ravel(epsilon)
            found = whole(flat) if flat.size <= _FEW else _interpolated(coarse, flat)
            return found.reshape(np.shape(epsilon))

        averaged = symmetric(profile)
        if self.allowance == 0:
            return averaged
        # The worst order has no round-off to allow for, so it is the better proof of a minute delta.
        fixed = EnergyLaw(np.ones(1), self.energies[-1:])
        return minimum([averaged, fixed.curve(noise_multiplier)])

    def _scaled(self, noise_multiplier: float) -> _Mixture:
        with np.errstate(over="ignore"):
            return _Mixture(self.weights, np.sqrt(self.energies) / noise_multiplier, self.allowance)

    def log_moment(self, rates: Array) -> Array:
        """Return log E exp(rate E) for rates >= 0 of any shape, without the allowance."""
        if self.energies.size == 0:
            return np.zeros(rates.shape)
        # What exceeds 1 is a mean of e^u - 1 > 0: a moment close to 1 keeps its digits.
        flat = [self._log_excess(float(rate)) for rate in np.ravel(rates)]
        return np.logaddexp(0.0, np.reshape(np.asarray(flat, dtype=np.float64), rates.shape))

    def _log_excess(self, rate: float) -> float:
        """Return log(E exp(rate E) - 1)."""
        u = rate * self.energies
        with np.errstate(divide="ignore"):
            return log_add(u + np.log(-np.expm1(-u)) + np.log(self.weights))


@dataclass(frozen=True, eq=False)
class _Mixture:
    """An average of Gaussian curves; called with epsilons >= 0 of shape (k,)."""

    weights: Array
    mu: Array
    allowance: float

    def __call__(self, epsilon: Array) -> Array:
        rows = max(_BLOCK // self.mu.size, 1)
        found = [
            gaussian_deltas(epsilon[i : i + rows, None], self.mu[None, :]) @ self.weights
            for i in range(0, epsilon.size, rows)
        ]
        return np.concatenate(found) * _ROUND_UP + self.allowance if found else np.empty(0)


def _interpolated(profile: _Mixture, epsilon: Array) -> Array:
    """Return a profile at many epsilons, from chords in a = e^epsilon: it is convex, so they lie above."""
    ordered = np.unique(epsilon)
    if ordered.size <= _COARSE:
        return profile(ordered)[np.searchsorted(ordered, epsilon)]
    chosen = np.unique(np.linspace(0, ordered.size - 1, _COARSE).astype(np.int64))
    nodes = ordered[chosen]
    deltas = profile(nodes)
    left = np.clip(np.searchsorted(nodes, epsilon, side="right") - 1, 0, nodes.size - 2)
    low, high = nodes[left], nodes[left + 1]
    # (a - a_low) / (a_high - a_low), without overflow.
    share = np.exp(epsilon - high) * np.expm1(low - epsilon) / np.expm1(low - high)
    return np.asarray(deltas[left] + np.clip(share, 0.0, 1.0) * (deltas[left + 1] - deltas[left]))


def merged_up(weights: Array, energies: Array, limit: int, allowance: float = 0.0) -> EnergyLaw:
    """Return a law with at most `limit` energies: neighbours on a logarithmic scale take the larger's value.

    Larger energies cost more at every epsilon, so moving weight up is sound.
    """
    order = np.argsort(energies, kind="stable")
    w, e = weights[order], energies[order]
    present = (w > 0) & (e > 0)
    w, e = w[present], e[present]
    if e.size == 0:
        return EnergyLaw(np.empty(0), np.empty(0), 0.0)
    last = np.append(np.flatnonzero(np.diff(e) > 0), e.size - 1)
    if last.size > limit:
        width = math.log(float(e[-1]) / float(e[0])) / (limit - 1)
        place = np.floor(np.log(e / float(e[-1])) / width)
        last = np.append(np.flatnonzero(np.diff(place) > 0), e.size - 1)
    return EnergyLaw(np.add.reduceat(w, np.append(0, last[:-1] + 1)), e[last], allowance)
