"""A symmetric privacy curve on few losses: read between them, and turned into Rényi divergences.

A pair whose losses are symmetric is a law of X = tanh(loss / 2) under (P + Q) / 2: P and Q have the
densities 1 + X and 1 - X, so that delta(epsilon) = (1 + a) E(X - tanh(epsilon / 2))_+. Every f-divergence
is the mean of a convex function of X. The law on finitely many points whose E(X - t)_+ has the same values
there is a mean-preserving spread of X: larger in every divergence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.privacy.curves import Array

__all__ = ["LossTable", "renyi_of_law"]

_CORE, _PER_STD = 8.0, 40  # standard deviations of the loss, points per standard deviation
_GROWTH = 0.03  # of the losses beyond
_LEAST = 1e-300


@dataclass(frozen=True)
class LossTable:
    """A bound on a symmetric curve at losses 0 = l_0 < ... < l_J, where it ends.

    Attributes:
        loss: The losses, shape (J + 1,).
        value: delta at each, shape (J + 1,), not rising; the last is 0.
    """

    loss: Array
    value: Array

    @classmethod
    def of(
        cls,
        delta: Callable[[Array], Array],
        max_loss: float,
        *,
        per_std: int = _PER_STD,
        growth: float = _GROWTH,
    ) -> LossTable:
        """Tabulate `delta`, which maps epsilon >= 0 to an upper bound, and is 0 from `max_loss` on.

        The chords add about 1 / (6 per_std^2) to the variance of the loss.
        """
        # E|X| is delta(0); the loss is about 2 X, and a Gaussian one deviates by 1.25 times its mean size.
        std = min(2.5 * float(delta(np.zeros(1))[0]), max_loss) or max_loss
        core_end = min(_CORE * std, max_loss)
        core = np.linspace(0, core_end, max(math.ceil(core_end / std * per_std), 2) + 1)
        steps = max(math.ceil(math.log(max_loss / core_end) / growth), 0)
        tail = np.geomspace(core_end, max_loss, steps + 1)[1:] if steps else np.zeros(0)
        loss = np.append(core, tail)
        loss[-1] = max_loss
        # A delta may underflow where a Rényi divergence weighs it by more than the largest float.
        value = np.maximum(np.minimum.accumulate(delta(loss)), _LEAST)
        value[-1] = 0.0
        return cls(loss, value)

    def delta(self, epsilon: Array) -> Array:
        """Return the chord of the table at each epsilon >= 0: linear in a = e^epsilon."""
        eps = np.asarray(epsilon, dtype=np.float64)
        j = np.clip(np.searchsorted(self.loss, eps, side="right") - 1, 0, self.loss.size - 2)
        left, right = self.loss[j], self.loss[j + 1]
        part = np.expm1(np.clip(eps - left, 0.0, right - left)) / np.expm1(right - left)
        read: Array = self.value[j] * (1 - part) + self.value[j + 1] * part
        return np.where(eps >= self.loss[-1], 0.0, read)

    def law(self) -> tuple[Array, Array]:
        """Return the losses and the log-masses, both signs of a loss together, under (P + Q) / 2."""
        excess = self.value / (1 + np.exp(self.loss))  # E(X - t)_+
        half = self.loss / 2
        width = np.sinh(np.diff(half)) / (np.cosh(half[1:]) * np.cosh(half[:-1]))  # of t = tanh(l / 2)
        slope = np.diff(excess) / width
        mass = 2 * np.append(np.diff(slope), -slope[-1])
        # Differences of near-equal slopes: what round-off may have taken is given back.
        mass = np.maximum(mass, 0.0) + 1e-14 * excess[:-1] / width
        with np.errstate(divide="ignore"):
            return self.loss[1:], np.log(mass)


def renyi_of_law(loss: Array, log_mass: Array, orders: Array) -> Array:
    """Return the Rényi divergence at each order > 1 of a symmetric law of losses, rounded up.

    E_Q (P/Q)^alpha - 1 is the mean of 2 sinh(alpha l / 2) sinh((alpha - 1) l / 2) / cosh(l / 2), in which
    nothing cancels: a divergence of 1e-9 keeps its digits. Losses of 0 need not be listed.

    Args:
        loss: Absolute losses, shape (m,).
        log_mass: Log-probabilities of both signs together under (P + Q) / 2, shape (m,).
        orders: Shape (r,).
    """
    keep = (loss > 0) & np.isfinite(log_mass)
    loss, log_mass = loss[keep], log_mass[keep]
    if loss.size == 0:
        return np.zeros(orders.shape)
    log_weight = log_mass - np.log1p(np.exp(-loss))
    found = np.empty(orders.shape)
    last, known = math.nan, loss
    for i, alpha in enumerate(orders.tolist()):
        # log(2 sinh x) = x + log(1 - e^{-2 x}); the exponents add up to (alpha - 1) loss.
        below = known if alpha - 1 == last else _log_1m_exp((alpha - 1) * loss)  # whole orders in a row
        last, known = alpha, _log_1m_exp(alpha * loss)
        log_moment = (alpha - 1) * loss + known + below
        total = log_weight + log_moment
        most = float(total.max())
        log_sum = most + math.log(float(np.exp(total - most).sum()))
        found[i] = float(np.logaddexp(0.0, log_sum)) / (alpha - 1)
    return found * (1 + 1e-11)


def _log_1m_exp(x: Array) -> Array:
    """Return log(1 - e^-x), x > 0."""
    result: Array = np.log(-np.expm1(-x))
    return result
