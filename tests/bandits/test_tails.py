"""Tails of Laplace sums: exact tails of the reference, and why the printed bound is false."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from tacit.bandits import laplace_sum_radius
from tacit.bandits.tails import chernoff_radii, largest_radius
from tacit.errors import ParameterError

TABLE = [
    # n, t, exact tail, printed bound, corrected closed form, Chernoff
    (4, 4.0, 0.0740257, 0.13534, 0.60653, 0.40497),
    (10, 10.0, 0.0143208, 0.0067379, 0.28650, 0.10436),
    (100, 60.0, 1.52273e-5, 1.5230e-8, 1.1109e-2, 1.7746e-4),
    (100, 70.7, 5.35628e-7, 1.3993e-11, 1.9341e-3, 7.3443e-6),
    (100, 100.0, 7.79835e-12, 1.9287e-22, 3.7267e-6, 1.5329e-10),
]


def _exact_tail(n: int, t: float) -> float:
    """Return Pr[sum of n Laplace variables >= t], the difference of two Gamma laws of shape n."""

    def density(x: float) -> float:
        log_bessel = math.log(special.kve(n - 0.5, x)) - x
        return math.exp(
            (n - 0.5) * math.log(x / 2) + log_bessel - 0.5 * math.log(math.pi) - special.gammaln(n)
        )

    top = t + 40 * math.sqrt(2 * n)
    return float(integrate.quad(density, t, top, epsabs=0, epsrel=1e-9, limit=200)[0])


def _printed_bound(n: int, t: float) -> float:
    """Return the bound of Lemma E.1.2 for n unit weights and scale 1."""
    return math.exp(-(t**2) / (2 * n)) if t <= n else math.exp(n / 2 - t)


@pytest.mark.parametrize(("n", "t", "exact", "printed", "closed", "chernoff"), TABLE)
def test_radii_invert_bounds_that_are_above_the_exact_tail(
    n: int, t: float, exact: float, printed: float, closed: float, chernoff: float
) -> None:
    assert _exact_tail(n, t) == pytest.approx(exact, rel=2e-5)
    assert _printed_bound(n, t) == pytest.approx(printed, rel=1e-4)
    assert laplace_sum_radius([1.0], n, 1.0, closed, method="closed") == pytest.approx(t, rel=1e-4)
    assert laplace_sum_radius([1.0], n, 1.0, chernoff) == pytest.approx(t, rel=1e-4)
    assert exact < chernoff < closed


def test_the_printed_bound_is_below_the_exact_tail() -> None:
    assert all(_printed_bound(n, t) < _exact_tail(n, t) for n, t, *_ in TABLE[1:])


def test_radii_shrink_with_beta_and_scale_with_the_noise() -> None:
    coef, mult = np.array([0.3, -0.1, 0.0]), np.array([5, 2, 7])
    betas = np.geomspace(1e-12, 0.5, 20)
    for method in ("chernoff", "closed"):
        radii = [laplace_sum_radius(coef, mult, 2.0, b, method=method) for b in betas]
        assert np.all(np.diff(radii) < 0)
        doubled = laplace_sum_radius(2 * coef, mult, 2.0, 1e-3, method=method)
        assert doubled == pytest.approx(laplace_sum_radius(coef, mult, 4.0, 1e-3, method=method))
        assert laplace_sum_radius([0.0], 3, 1.0, 0.1, method=method) == 0
        assert laplace_sum_radius(coef, mult, 0.0, 0.1, method=method) == 0
        assert laplace_sum_radius(coef, 0, 1.0, 0.1, method=method) == 0


def test_chernoff_is_never_above_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        coef, mult = rng.normal(size=4), rng.integers(1, 50, 4)
        beta = 10.0 ** -rng.uniform(0.1, 30)
        tight, loose = (laplace_sum_radius(coef, mult, 1.3, beta, method=m) for m in ("chernoff", "closed"))
        assert tight <= loose * (1 + 1e-9)


def test_the_largest_radius_is_the_largest_of_all() -> None:
    rng = np.random.default_rng(2)
    for k, c in ((1, 1), (50, 3), (40, 40)):
        coef, mult, base = np.abs(rng.normal(size=(k, c))), rng.integers(0, 9, c).astype(float), rng.random(k)
        mult[0] = 1.0
        coef[0] = 0.0
        every = base + chernoff_radii(coef, mult, 0.7, 12.0)
        assert largest_radius(base, coef, mult, 0.7, 12.0) == pytest.approx(every.max(), rel=1e-9)


def test_moments_of_discrete_noise_are_below_those_of_laplace_noise() -> None:
    """(cosh u - 1) / (cosh u - cosh t) <= u^2 / (u^2 - t^2), so that radii hold for exact noise too."""
    for u in (0.01, 0.5, 1.0, 3.0, 10.0):
        t = u * np.linspace(0.01, 0.99, 50)
        discrete = (math.cosh(u) - 1) / (math.cosh(u) - np.cosh(t))
        assert np.all(discrete <= u**2 / (u**2 - t**2) * (1 + 1e-12))


def test_sums_stay_within_their_radius() -> None:
    """Of 20,000 sums at beta = 0.01, no more than the binomial quantile at a false alarm of 1e-6."""
    most = stats.binom.isf(1e-6, 20_000, 0.01)
    rng = np.random.default_rng(3)
    coef, mult = np.array([1.0, 0.4]), np.array([3, 10])
    radius = laplace_sum_radius(coef, mult, 2.0, 0.01)
    gamma = rng.standard_gamma(mult, (20_000, 2)) - rng.standard_gamma(mult, (20_000, 2))
    sums = 2.0 * gamma @ coef
    assert (sums >= radius).sum() <= most
    assert (sums >= radius / 2).sum() > most  # half of it is not enough


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta": 0.0},
        {"beta": 1.0},
        {"beta": math.nan},
        {"scale": -1.0},
        {"scale": math.inf},
        {"mult": -1},
        {"coef": [math.nan]},
        {"coef": [[1.0]]},
        {"method": "seed"},
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    given: dict[str, object] = {"coef": [1.0], "mult": 1, "scale": 1.0, "beta": 0.1, **wrong}
    with pytest.raises(ParameterError):
        laplace_sum_radius(**given)  # type: ignore[arg-type]
