"""The parameters of Lowy (2023), for comparison only: noise in closed form.

A run never uses them: its noise comes from `privacy.calibrate`. The noise formulas here are
sound where their range is checked, but 2 to 27 times too large; those of the experiments are not sound for
every budget (docs/errata.md). `noise_std` is always sigma, per coordinate, of one silo's mean
gradient over K records; replacing one moves that mean by at most 2 L / K.
"""

from __future__ import annotations

import math

from tacit.errors import ParameterError, check_count
from tacit.privacy import PrivacyBudget

__all__ = [
    "experiment_noise_std",
    "least_batch",
    "local_noise_std",
    "minibatch_noise_std",
    "one_pass_noise_std",
]


def minibatch_noise_std(n: int, budget: PrivacyBudget, *, rounds: int, lipschitz: float = 1.0) -> float:
    """Return sigma of Lowy (2023), Theorem 104.

    sigma^2 = 256 L^2 R ln(2.5 R/delta) ln(2/delta) / (n^2 eps^2). Sound for batches of at least
    `least_batch`, drawn without replacement.

    Raises:
        ParameterError: delta = 0, or eps > 2 ln(2/delta), outside the theorem.
    """
    eps, delta = _check_delta(budget)
    _check_range(eps, 2 * math.log(2 / delta))
    check_count("rounds", rounds)
    return (
        16 * lipschitz * math.sqrt(rounds * math.log(2.5 * rounds / delta) * math.log(2 / delta)) / (n * eps)
    )


def least_batch(n: int, budget: PrivacyBudget, *, rounds: int) -> int:
    """Return the least K of Lowy (2023), Theorem 104: eps n / (4 sqrt(2 R ln(2/delta))), from 1 to n."""
    eps, delta = _check_delta(budget)
    return min(max(math.ceil(eps * n / (4 * math.sqrt(2 * rounds * math.log(2 / delta)))), 1), n)


def one_pass_noise_std(batch: int, budget: PrivacyBudget, *, lipschitz: float = 1.0) -> float:
    """Return sigma of disjoint batches: sigma^2 = 32 L^2 ln(1.25/delta) / (eps^2 K^2) (Theorem 36).

    Raises:
        ParameterError: delta = 0, or eps > 8 ln(1/delta), outside the theorem.

    Example:
        >>> round(one_pass_noise_std(100, PrivacyBudget(1.0, 1e-6)), 6)
        0.211952
    """
    eps, delta = _check_delta(budget)
    _check_range(eps, 8 * math.log(1 / delta))
    return lipschitz * math.sqrt(32 * math.log(1.25 / delta)) / (eps * batch)


def experiment_noise_std(n: int, budget: PrivacyBudget, *, rounds: int, lipschitz: float = 1.0) -> float:
    """Return sigma of the experiments: sigma^2 = 8 L^2 R ln(1/delta) / (eps^2 n^2) (B.1.10.1).

    Not sound for every budget: at n = 1238, R = 35, delta = 1/n^2 it costs 1.60 for eps = 1.5 and 9.35 for 6.
    """
    eps, delta = _check_delta(budget)
    return lipschitz * math.sqrt(8 * rounds * -math.log(delta)) / (n * eps)


def local_noise_std(
    n: int, budget: PrivacyBudget, *, rounds: int, local_steps: int, lipschitz: float = 1.0
) -> float:
    """Return sigma of a local step: sigma^2 = 8 L^2 R K ln(1/delta) / (eps^2 n^2) (B.1.10).

    Not sound: its proof is outside the range of the moments accountant.
    """
    return experiment_noise_std(n, budget, rounds=rounds * local_steps, lipschitz=lipschitz)


def _check_delta(budget: PrivacyBudget) -> tuple[float, float]:
    """Return (eps, delta), or refuse delta = 0."""
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
    return budget.epsilon, budget.delta


def _check_range(epsilon: float, largest: float) -> None:
    """Refuse an epsilon that the theorem does not cover."""
    if epsilon > largest:
        raise ParameterError(f"epsilon must be at most {largest:.6g} in this theorem, got {epsilon!r}.")
