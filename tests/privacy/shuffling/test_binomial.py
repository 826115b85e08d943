"""Binomial laws against 40 digits, and groups that cover all of their mass."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

import numpy as np
import pytest

from tacit.privacy.shuffling.binomial import (
    binomial_log_pmf,
    counts_in_groups,
    half_binomial,
    half_binomial_bounds,
)

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def exact_half(n: int, k: int) -> tuple[Decimal, Decimal]:
    """Pr[Bin(n, 1/2) = k] and Pr[< k]: Stirling's series, and the ratios of neighbours from there."""
    with decimal.localcontext(prec=60):

        def log_factorial(count: int) -> Decimal:
            c = Decimal(count)
            if count < 1000:
                return Decimal(math.factorial(count)).ln()
            series = 1 / (12 * c) - 1 / (360 * c**3) + 1 / (1260 * c**5) - 1 / (1680 * c**7)
            return (
                c * c.ln() - c + (2 * PI * c).ln() / 2 + series + 1 / (1188 * c**9) - 691 / (360360 * c**11)
            )

        log_here = log_factorial(n) - log_factorial(k) - log_factorial(n - k) - n * Decimal(2).ln()
        here, total = log_here.exp(), 0
        term = scale = 10**50
        for i in range(k, 0, -1):
            term = term * i // (n - i + 1)
            total += term
            if not term:
                break
        return here, here * total / scale


@pytest.mark.parametrize("n", [10, 900, 1023, 1024, 3000, 4096, 30_000, 10**6, 10**8])
def test_half_binomials_are_within_a_quarter_of_their_allowance(n: int) -> None:
    # Up to where the series ends, at x^4 = 16 n, and beyond; from x = 36 on digits underflow.
    ends = 2 * n**0.25 * np.array([0.3, 0.5, 0.8, 0.99, 1.01])
    scaled = np.append([0.0, 1e-3, 0.3, 1, 2, 3, 4.5, 6, 12, 24, 36], ends)
    counts = np.unique(np.round((n + 1 - scaled[scaled <= 36] * math.sqrt(n + 1)) / 2))
    counts = counts[(counts > 0) & (counts < n)]
    here, below, off = half_binomial(np.full(counts.shape, float(n)), counts)
    most, least = half_binomial_bounds(np.full(counts.shape, float(n)), counts[None])
    assert off.max() <= 6e-12 + 4e-15 * math.sqrt(n)
    for i, k in enumerate(counts.tolist()):
        exact_here, exact_below = exact_half(n, int(k))
        allowed = Decimal(off[i]) / 4
        assert abs(Decimal(here[i]) - exact_here) <= allowed * exact_here
        assert abs(Decimal(below[i]) - exact_below) <= allowed * exact_below
        assert exact_here <= Decimal(most[0, i]) <= exact_here * (1 + 2 * Decimal(off[i]))
        assert exact_below >= Decimal(least[0, i]) >= exact_below * (1 - 2 * Decimal(off[i]))


def test_below_the_least_count_is_nothing() -> None:
    here, below, _ = half_binomial(np.array([10.0, 1e6, 0.0]), np.array([-1.0, -1.0, 0.0]))
    assert np.all(below == 0)
    assert here[2] == 1
    most, least = half_binomial_bounds(np.array([0.0, 10.0, 1e6]), np.array([[-1.0] * 3, [0.0] * 3]))
    assert np.all(most[0] == 0)
    assert np.all(least == 0)
    assert 1 <= most[1, 0] < 1 + 1e-12
    assert 2.0**-10 <= most[1, 1] < 2.0**-10 * (1 + 1e-12)


def test_binomial_laws_are_precise_and_groups_cover_all() -> None:
    for n, k in ((10, 3), (1000, 430), (10**6, 498_000)):
        exact = math.comb(n, k) if n <= 1000 else None
        found = float(binomial_log_pmf(np.array([float(k)]), float(n), 0.5)[0])
        if exact is not None:
            assert found == pytest.approx(math.log(exact) - n * math.log(2), abs=1e-12)
        here, below, off = half_binomial(np.array([float(n)]), np.array([float(k)]))
        assert here[0] == pytest.approx(math.exp(found), rel=1e-12)
        # Ratios of neighbours, summed: the tail from its largest term.
        steps = np.arange(k, 0, -1, dtype=np.float64)
        tail = here[0] * np.cumprod(steps / (n - steps + 1)).sum()
        assert abs(below[0] / tail - 1) < 10 * off[0]
    for n, p in ((50, 0.3), (10**5, 0.01), (10**8, 0.4)):
        first, last, mass = counts_in_groups(n, p, width=1e-3)
        assert first[0] == 0
        assert last[-1] == n
        assert np.all(first[1:] == last[:-1] + 1)
        assert 1 <= mass.sum() < 1 + 1e-9
        if n <= 10**5:  # no group, the far ones included, has less than its own mass
            all_masses = binomial_log_pmf(np.arange(n + 1.0), n, p)
            own = np.logaddexp.reduceat(all_masses, first.astype(int))
            assert np.all(mass >= np.exp(own) * (1 - 1e-9))
