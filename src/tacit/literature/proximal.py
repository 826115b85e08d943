"""The parameters of proximal SGD and SVRG in Lowy (2023), Algorithms 2, 3, 20 and 22, for comparison only.

A run never uses them: its noise comes from `privacy.calibrate`. Printed noise is not sound for every budget;
`mended=True` has the constants that the same proofs give (docs/errata.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import ParameterError, check_count, check_positive
from tacit.literature.silo_learning import check_delta, check_range, whole
from tacit.privacy import PrivacyBudget

__all__ = [
    "SvrgNoise",
    "proximal_noise_std",
    "shuffled_svrg_budgets",
    "svrg_gap_kept",
    "svrg_least_batch",
    "svrg_noise",
    "svrg_restarts",
]


class SvrgNoise(NamedTuple):
    """Standard deviations per coordinate of one silo's mean.

    Attributes:
        gradient: sigma_1, of a mean gradient over all records.
        change: sigma_2, of a mean difference over a batch.
    """

    gradient: float
    change: float


def proximal_noise_std(
    batch: int, budget: PrivacyBudget, *, lipschitz: float = 1.0, mended: bool = False
) -> float:
    """Return sigma of Algorithm 20, one pass: sigma^2 = 8 L^2 ln(1/delta) / (eps K)^2.

    Its own Proposition 8 gives 16 for the sensitivity 2 L / K, which `mended` has.

    Args:
        batch: K, records of a silo per round.
        budget: (eps, delta).
        lipschitz: L.
        mended: Whether to return what is proven.

    Raises:
        ParameterError: delta = 0, or eps > 8 ln(1/delta), outside the theorem.

    Example:
        >>> round(proximal_noise_std(100, PrivacyBudget(1.0, 1e-6)), 6)
        0.10513
    """
    check_count("batch", batch)
    eps, delta = check_delta(budget)
    check_range(eps, -8 * math.log(delta))
    constant = 16 if mended else 8
    return check_positive("lipschitz", lipschitz) * math.sqrt(constant * -math.log(delta)) / (eps * batch)


def svrg_noise(
    n: int,
    budget: PrivacyBudget,
    *,
    epochs: int,
    period: int,
    restarts: int = 1,
    lipschitz: float = 1.0,
    mended: bool = False,
) -> SvrgNoise:
    """Return the noise of Algorithms 2 and 3.

    sigma_1^2 = 256 L^2 S E ln(2/delta) ln(5E/delta) / (eps n)^2 and, with R = E Q,
    sigma_2^2 = 1024 L^2 S R ln(2/delta) ln(2.5R/delta) / (eps n)^2, which is for a sensitivity of 2 L / K. A
    difference moves by 4 L / K: `mended` has 4096 and ln(5R/delta).

    Args:
        n: Records of a silo.
        budget: (eps, delta).
        epochs: E, of one run.
        period: Q, differences of an epoch.
        restarts: S, runs.
        lipschitz: L.
        mended: Whether to return what is proven.

    Raises:
        ParameterError: delta = 0, or eps > 2 ln(2/delta), outside the theorem.

    Example:
        >>> facts = dict(restarts=2, epochs=3, period=4)
        >>> [round(std, 6) for std in svrg_noise(1000, PrivacyBudget(1.0, 1e-6), **facts)]
        [0.606822, 2.477675]
        >>> round(svrg_noise(1000, PrivacyBudget(1.0, 1e-6), **facts, mended=True).change, 6)
        5.054117
    """
    rounds = _check_epochs(n, epochs, period, restarts)
    eps, delta = check_delta(budget)
    check_range(eps, 2 * math.log(2 / delta))
    unit = check_positive("lipschitz", lipschitz) * math.sqrt(restarts * math.log(2 / delta)) / (eps * n)
    constant, inside = (4096, 5.0) if mended else (1024, 2.5)
    return SvrgNoise(
        unit * math.sqrt(256 * epochs * math.log(5 * epochs / delta)),
        unit * math.sqrt(constant * rounds * math.log(inside * rounds / delta)),
    )


def svrg_least_batch(n: int, budget: PrivacyBudget, *, silos: int, rounds: int, restarts: int = 1) -> int:
    """Return the least K, from 1 to n: max{(n^2/M)^(1/3), eps n / (4 sqrt(2 S R ln(2/delta)))}.

    Example:
        >>> svrg_least_batch(1000, PrivacyBudget(1.0, 1e-6), silos=25, rounds=12, restarts=2)
        35
    """
    for name, count in (("n", n), ("silos", silos), ("rounds", rounds), ("restarts", restarts)):
        check_count(name, count)
    eps, delta = check_delta(budget)
    sampled = eps * n / (4 * math.sqrt(2 * restarts * rounds * math.log(2 / delta)))
    return min(whole(max(math.cbrt(n**2 / silos), sampled)), n)


def svrg_gap_kept(rounds: int, kappa: float) -> float:
    """Return 24 kappa / R: what R steps of 1 / (8 beta) leave of the gap at most, without noise, by (B.64).

    The printed R = 12 kappa leaves twice the gap; a half takes 48 kappa.

    Example:
        >>> svrg_gap_kept(120, 10.0), svrg_gap_kept(480, 10.0)
        (2.0, 0.5)
    """
    check_count("rounds", rounds)
    return 24 * check_positive("kappa", kappa) / rounds


def svrg_restarts(
    n: int,
    budget: PrivacyBudget,
    *,
    silos: int,
    dim: int,
    gap: float,
    smoothness: float,
    mu: float,
    lipschitz: float = 1.0,
) -> int:
    """Return the least S >= 1 of Algorithm 3: log2(Delta mu M eps^2 n^2 / (kappa d L^2)), kappa = beta / mu.

    Example:
        >>> svrg_restarts(1000, PrivacyBudget(1.0, 1e-6), silos=25, dim=50, gap=1.0, smoothness=1.0, mu=0.1)
        13
    """
    for name, count in (("n", n), ("silos", silos), ("dim", dim)):
        check_count(name, count)
    for name, value in (("gap", gap), ("smoothness", smoothness), ("mu", mu), ("lipschitz", lipschitz)):
        check_positive(name, value)
    signal = gap * mu**2 * silos * (budget.epsilon * n / lipschitz) ** 2 / (smoothness * dim)
    return max(1, math.ceil(math.log2(signal))) if signal > 1 else 1


def shuffled_svrg_budgets(
    n: int, budget: PrivacyBudget, *, batch: int, epochs: int, period: int, mended: bool = False
) -> tuple[PrivacyBudget, PrivacyBudget]:
    """Return what Algorithm 22 lets one shuffled full gradient spend, and one shuffled mean of differences.

    Printed: eps~ = eps n n / (8 M K sqrt(4 E Q ln(2/delta))) for both, of all M silos with n in place of N; a
    batch of all records is amplified by no sampling, so `mended` has eps / (8 sqrt(2 E ln(2/delta))) for it,
    and eps n / (8 K sqrt(4 E Q ln(2/delta))) for differences. All silos take part: those of an epoch are the
    same, so that their choice amplifies no single round (docs/errata.md). delta / (4 E) and delta / (4 E Q).

    Args:
        n: Records of a silo.
        budget: (eps, delta).
        batch: K, records of a silo per difference.
        epochs: E.
        period: Q.
        mended: Whether to return what is proven; else N in place of the printed n.

    Raises:
        ParameterError: delta = 0, K > n, or a level above 1, outside the theorem.

    Example:
        >>> facts = dict(batch=100, epochs=3, period=10)
        >>> printed = shuffled_svrg_budgets(1000, PrivacyBudget(1.0, 1e-6), **facts)
        >>> right = shuffled_svrg_budgets(1000, PrivacyBudget(1.0, 1e-6), **facts, mended=True)
        >>> round(printed[0].epsilon / right[0].epsilon, 6)  # sqrt(Q / 2)
        2.236068
    """
    rounds = _check_epochs(n, epochs, period, 1)
    check_count("batch", batch, high=n)
    eps, delta = check_delta(budget)
    log = math.log(2 / delta)
    change = eps * n / (8 * batch * math.sqrt(4 * rounds * log))
    full = eps / (8 * math.sqrt(2 * epochs * log)) if mended else change
    if max(full, change) > 1:
        raise ParameterError(f"epsilon must give levels of at most 1 in this theorem, got {eps!r}.")
    return PrivacyBudget(full, delta / (4 * epochs)), PrivacyBudget(change, delta / (4 * rounds))


def _check_epochs(n: int, epochs: int, period: int, restarts: int) -> int:
    """Return R = E Q, the counts checked."""
    for name, count in (("n", n), ("epochs", epochs), ("period", period), ("restarts", restarts)):
        check_count(name, count)
    return epochs * period
