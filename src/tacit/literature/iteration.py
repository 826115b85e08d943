"""Rényi accountants, for comparison only: that of Jiang (2025), and its bound on reshuffling made exact.

Both are sound and loose: `tacit.privacy.calibrate` on `Iteration` needs less noise
(docs/theory/iteration.md, section 5).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from tacit.errors import check_count, check_positive, check_probability
from tacit.privacy.iteration.energies import epoch_law

__all__ = ["paper_epsilon", "paper_noise", "renyi_epsilon"]

_ROUND_UP = 1 + 1e-9
_ORDERS = (1e-4, 1e6)  # between which alpha - 1 is searched; every order is a proof


def paper_epsilon(
    noise_multiplier: float, delta: float, *, n: int, epochs: int, private: int | None = None
) -> float:
    """Return the epsilon of Jiang (2025), `method="paper"`: sound, but loose in energy and conversion.

    Args:
        noise_multiplier: Noise std / sensitivity of one gradient.
        delta: In (0, 1).
        n: Steps per epoch.
        epochs: Number of epochs K.
        private: Private steps of each epoch, 1..n; None for all. All private: holds for any loss, step size
            and release. Fewer: needs the conditions of `check_contraction` and hidden steps in an epoch.

    Returns:
        A + 2 sqrt(A log(1 / delta)) with A = E / (2 noise_multiplier^2), the least over orders of alpha A +
        log(1 / delta) / (alpha - 1), where E = K / (n + 1 - private): Jiang (2025), Lemmas 4.5.2 and
        4.6.2.
    """
    check_positive("noise_multiplier", noise_multiplier)
    spent = _paper_energy(n, epochs, private) / (2 * noise_multiplier**2)
    return (spent + 2 * math.sqrt(spent * _log_inverse(delta))) * _ROUND_UP


def paper_noise(epsilon: float, delta: float, *, n: int, epochs: int, private: int | None = None) -> float:
    """Return the noise multiplier that Jiang (2025) prescribes for (epsilon, delta); see `paper_epsilon`.

    Example:
        >>> round(2 * paper_noise(5.0, 1e-6, n=1000, epochs=50), 5)  # sigma / G when one is replaced
        16.10921
    """
    check_positive("epsilon", epsilon)
    log = _log_inverse(delta)
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))  # sqrt(A), without cancellation
    return math.sqrt(_paper_energy(n, epochs, private) / 2) / root * _ROUND_UP


def renyi_epsilon(
    noise_multiplier: float, delta: float, *, n: int, epochs: int, private: int | None = None
) -> float:
    """Return the epsilon of random reshuffling with epoch ends released, by Rényi divergences alone.

    The inequality of Jiang (2025), Appendix C.2.1, with a term for epochs that skip the record, evaluated
    instead of bounded, with the classical conversion; arguments as `paper_epsilon`, under
    `check_contraction`.
    """
    check_positive("noise_multiplier", noise_multiplier)
    steps = _private(n, epochs, private)
    log, law = _log_inverse(delta), epoch_law(int(n), steps)

    def price(log_order: float) -> float:
        above = math.exp(log_order)
        rate = np.array([(1 + above) * above / (2 * noise_multiplier**2)])
        return (epochs * float(law.log_moment(rate)[0]) + log) / above

    grid = np.linspace(math.log(_ORDERS[0]), math.log(_ORDERS[1]), 93)
    prices = [price(x) for x in grid]
    best = int(np.argmin(prices))
    around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = optimize.minimize_scalar(price, bounds=around, method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), prices[best]) * _ROUND_UP


def _private(n: int, epochs: int, private: int | None) -> int:
    """Return the number of private steps after checking all three."""
    check_count("n", n)
    check_count("epochs", epochs)
    if private is None:
        return int(n)
    check_count("private", private, high=n)
    return int(private)


def _paper_energy(n: int, epochs: int, private: int | None) -> float:
    return int(epochs) / (int(n) + 1 - _private(n, epochs, private))


def _log_inverse(delta: float) -> float:
    check_probability("delta", delta, low_open=True, high_open=True)
    return -math.log(delta)
