"""GNMax: a table of its noise, exact noise, and bounds that are held against exact divergences."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tacit.audits import audit
from tacit.errors import ParameterError
from tacit.mechanisms.bernoulli import exp_bounds
from tacit.privacy import Repeat, epsilon_of
from tacit.privacy.certified import GRID
from tacit.randomness import simulated
from tacit.voting import (
    GNMax,
    gamma_staircase,
    gnmax_data_dependent_rdp,
    gnmax_sigma_analytic,
    gnmax_sigma_rdp,
)
from tests.statistics import FALSE_ALARM, z_bound

TABLE = [  # epsilon, delta, order, sigma by RDP, (A), (B) for K = 11, accuracies if unanimous
    (0.0892, 1e-4, 208.009, 68.2104, 38.3067, 17.0567, 0.5454, 0.5805, 0.6758),
    (0.0852, 1e-4, 217.704, 71.4051, 39.8739, 17.6819, 0.5434, 0.5773, 0.6700),
    (0.2676, 3e-4, 62.122, 21.4605, 12.9039, 7.6834, 0.6415, 0.7267, 0.8443),
    (0.2556, 3e-4, 64.968, 22.4599, 13.4267, 7.9227, 0.6354, 0.7188, 0.8369),
    (0.4460, 5e-4, 35.578, 12.5419, 7.8219, 5.5165, 0.7324, 0.8400, 0.9207),
    (0.4260, 5e-4, 37.178, 13.1224, 8.1360, 5.6770, 0.7233, 0.8305, 0.9147),
    (0.6244, 7e-4, 24.758, 8.8148, 5.6431, 4.4790, 0.8112, 0.9160, 0.9588),
    (0.5964, 7e-4, 25.851, 9.2203, 5.8676, 4.6048, 0.8006, 0.9075, 0.9544),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_calibrations_have_the_tabled_values(row: tuple[float, ...]) -> None:
    epsilon, delta, order, rdp, analytic, _, *accuracies = row
    sigma, best = gnmax_sigma_rdp(epsilon, delta)
    assert best == pytest.approx(order, abs=6e-4)
    sigmas = (sigma, gnmax_sigma_analytic(epsilon, delta))
    assert sigmas == pytest.approx((rdp, analytic), abs=6e-5)
    for found, accuracy in zip(sigmas, accuracies, strict=False):
        assert float(GNMax(sigma=found).correct_probability(11)) == pytest.approx(accuracy, abs=6e-5)


def test_the_closed_form_is_the_least_over_all_orders() -> None:
    epsilon, delta = 0.2676, 3e-4
    least = math.log(1 / delta) / epsilon + 1
    orders = np.linspace(least + 0.01, 5 * least, 20_001)
    on_grid = np.sqrt(orders / (epsilon - math.log(1 / delta) / (orders - 1))).min()
    assert gnmax_sigma_rdp(epsilon, delta)[0] == pytest.approx(on_grid, rel=1e-6)
    # Table B.2 prints order 34.31, the start of its grid: that would need far more noise.
    assert math.sqrt(34.31 / (epsilon - math.log(1 / delta) / 33.31)) == pytest.approx(37.7, abs=0.05)


def test_the_event_costs_what_the_noise_was_calibrated_for() -> None:
    epsilon, delta = 0.2676, 3e-4
    analytic = GNMax(sigma=gnmax_sigma_analytic(epsilon, delta), classes=5)
    assert epsilon_of(analytic.event(), delta) == pytest.approx(epsilon, rel=1e-6)
    assert epsilon_of(GNMax(sigma=gnmax_sigma_rdp(epsilon, delta)[0]).event(), delta) < 0.7 * epsilon


def test_winners_follow_the_exact_law() -> None:
    rng, mechanism = simulated(1, "gnmax"), GNMax(sigma=7.6834)
    for margin, ones in ((11, 11), (3, 7), (-1, 5)):
        bits = mechanism.release(np.tile([1] * ones + [0] * (11 - ones), (100_000, 1)), rng)
        chance = special.ndtr(margin / (math.sqrt(2) * 7.6834))
        assert stats.binomtest(int(bits.sum()), bits.size, chance).pvalue > FALSE_ALARM
        assert stats.binomtest(int(bits.sum()), bits.size, chance - 0.02).pvalue < FALSE_ALARM
    three = GNMax(sigma=4.0, classes=3).release_counts(np.tile([5, 2, 1], (100_000, 1)), rng)
    noise = simulated(2, "oracle").normal([5, 2, 1], 4.0, (400_000, 3))
    wanted = np.bincount(noise.argmax(axis=1), minlength=3) / 400_000
    found = np.bincount(three, minlength=3) / 100_000
    assert np.all(np.abs(found - wanted) <= z_bound(3) * np.sqrt(0.25 / 100_000 + 0.25 / 400_000))


@pytest.mark.parametrize(("with_it", "without"), [((6, 5), (5, 6)), ((4, 4, 3), (3, 5, 3))])
def test_an_attack_on_the_winner_stays_below_the_claim_and_catches_less_noise(
    with_it: tuple[int, ...], without: tuple[int, ...]
) -> None:
    """The winner of one vote more or less, ten queries about the same votes."""
    queries, delta = 10, 1e-5

    def attack(sigma: float) -> Any:
        mechanism = GNMax(sigma=sigma, classes=len(with_it))

        def run(present: bool, size: int, rng: np.random.Generator) -> Any:
            counts = np.tile(with_it if present else without, (size * queries, 1))
            won = mechanism.release_counts(counts, rng).reshape(size, queries)
            # Of all winners the number of those whose chance grew tells the two apart.
            return (won == int(np.argmax(np.subtract(with_it, without)))).sum(axis=1).astype(np.float64)

        return run

    claim = Repeat(GNMax(sigma=4.0, classes=len(with_it)).event(), queries)
    facts: dict[str, Any] = {"runs": 20_000, "confidence": 1 - FALSE_ALARM}
    honest = audit(attack(4.0), (claim, delta), rng=simulated(3, "audit"), **facts)
    assert not honest.refuted
    assert honest.empirical_epsilon_lower > 0.05
    broken = audit(attack(0.4), (claim, delta), rng=simulated(4, "audit"), **facts)
    assert broken.refuted


def test_the_staircase_has_the_tabled_values() -> None:
    full = [0.133267, 0.337223, 0.493293, 0.612720, 0.704107, 0.774038]
    assert gamma_staircase(11, 0.2676, 3e-4).tolist() == pytest.approx(full, abs=6e-7)
    for epsilon, delta, last in (
        (0.0892, 1e-4, 0.389182),
        (0.4460, 5e-4, 0.917691),
        (0.6244, 7e-4, 0.970824),
    ):
        assert gamma_staircase(11, epsilon, delta)[-1] == pytest.approx(last, abs=6e-7)


@pytest.mark.parametrize("teachers", [1, 2, 10, 11, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (0.5, 1e-3), (2.0, 0.1)])
def test_the_staircase_is_private_in_whole_numbers_and_none_is_higher(
    teachers: int, epsilon: float, delta: float
) -> None:
    gamma = gamma_staircase(teachers, epsilon, delta)
    assert np.all(gamma * GRID % 1 == 0)
    half = [Fraction(value) for value in gamma.tolist()]
    ones = (
        [(1 - g) / 2 for g in half[::-1]]
        + [Fraction(1, 2)] * (teachers % 2 == 0)
        + [(1 + g) / 2 for g in half]
    )
    grow = Fraction(1 << 200, exp_bounds(Fraction(epsilon), 200)[1])  # below e^epsilon
    tightest = Fraction(1)
    for a, b in itertools.pairwise(ones):
        for here, there in ((a, b), (b, a), (1 - a, 1 - b), (1 - b, 1 - a)):
            spare = grow * there + Fraction(delta) - here
            assert spare >= 0
            tightest = min(tightest, spare)
    assert tightest <= Fraction(1e-14)


DATA_DEPENDENT = [  # votes, bound at order 20 and sigma 40
    ((245, 5), 1.600985e-5),
    ((250, 0), 7.973392e-6),
    ((240, 4, 3, 2, 1), 6.270023e-5),
    ((180, 70), 8.960728e-3),
]


@pytest.mark.parametrize(("votes", "value"), DATA_DEPENDENT)
def test_the_data_dependent_bound_has_the_tabled_values(votes: tuple[int, ...], value: float) -> None:
    found = gnmax_data_dependent_rdp(votes, 40.0, 20.0, both=False)
    assert found.value == pytest.approx(value, rel=2e-6)
    assert found.data_dependent
    assert found.value < gnmax_data_dependent_rdp(votes, 40.0, 20.0).value <= 20 / 40**2


def two_class_divergences(margin: int, sigma: float, order: float) -> tuple[float, float]:
    """The Rényi divergences of two classes' winner from, and to, that with one vote moved."""

    def law(d: int) -> tuple[float, float]:
        return float(stats.norm.logcdf(d / (math.sqrt(2) * sigma))), float(
            stats.norm.logsf(d / (math.sqrt(2) * sigma))
        )

    def divergence(p: tuple[float, float], q: tuple[float, float]) -> float:
        moments = [order * a - (order - 1) * b for a, b in zip(p, q, strict=True)]
        return float(special.logsumexp(moments)) / (order - 1)

    moved = [law(margin + move) for move in (-2, 2)]
    here = law(margin)
    return max(divergence(here, one) for one in moved), max(divergence(one, here) for one in moved)


@pytest.mark.parametrize(("margin", "exact"), [(240, 1.0871e-5), (250, 5.5997e-6), (110, 3.2417e-3)])
def test_the_divergences_of_the_winner_have_the_tabled_values(margin: int, exact: float) -> None:
    worst = max(two_class_divergences(margin, 40.0, 20.0))
    assert worst == pytest.approx(exact, rel=1e-4)
    votes = ((250 + margin) // 2, (250 - margin) // 2)
    assert gnmax_data_dependent_rdp(votes, 40.0, 20.0, both=False).value >= worst


def test_the_data_dependent_bound_is_above_both_divergences_and_the_printed_one_above_one() -> None:
    """The printed theorem says nothing of the law with a vote moved from the law with these votes."""
    rng, turned = simulated(7, "gnmax"), 0
    for _ in range(400):
        teachers, sigma = int(rng.integers(2, 300)), float(np.exp(rng.uniform(-1.5, 4)))
        ahead = int(rng.integers(0, teachers // 2 + 1))
        votes, order = (teachers - ahead, ahead), float(1 + np.exp(rng.uniform(-1, 4)))
        away, back = two_class_divergences(votes[0] - votes[1], sigma, order)
        slack = 1e-9 + 1e-13 / (order - 1)
        assert gnmax_data_dependent_rdp(votes, sigma, order, both=False).value >= away * (1 - 1e-9) - slack
        assert gnmax_data_dependent_rdp(votes, sigma, order).value >= max(away, back) * (1 - 1e-9) - slack
        turned += gnmax_data_dependent_rdp(votes, sigma, order, both=False).value < back * 0.99 - slack
    assert turned > 5
    assert gnmax_data_dependent_rdp((34, 16), 0.32765, 5.0).value >= 8.32
    assert gnmax_data_dependent_rdp((34, 16), 0.32765, 5.0, both=False).value < 1e-9


def unguarded(margin: float, sigma: float, order: float) -> tuple[float, float, float]:
    """q, mu1 and what Algorithm 11 would give two classes if it did not ask for mu1 >= order."""
    log_q = float(stats.norm.logsf(margin / (math.sqrt(2) * sigma)))
    q, mu2 = math.exp(log_q), sigma * math.sqrt(-log_q)
    a = (1 - q) / (1 - (q * math.exp(mu2 / sigma**2)) ** ((mu2 - 1) / mu2))
    b = math.exp((mu2 + 1) / sigma**2) / q ** (1 / mu2)
    return q, mu2 + 1, math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)


def test_from_the_order_mu1_on_the_bound_is_the_one_of_the_noise() -> None:
    def share(margin: int, sigma: float, order: float) -> float:
        """The bound over that of the noise."""
        found = gnmax_data_dependent_rdp((margin, 0), sigma, order, both=False)
        return found.value / (order / sigma**2)

    # Eleven teachers: at the calibrated order the formula would promise 39 % less than
    # the noise, but mu1 is below that order; at orders that it allows, the formula is above the noise.
    sigma = 21.4605
    q, mu1, promised = unguarded(11, sigma, 62.122)
    assert q == pytest.approx(0.358511, abs=6e-7)
    assert mu1 == pytest.approx(22.7, abs=0.05)
    assert promised < 0.61 * 62.122 / sigma**2
    assert share(11, sigma, 62.122) == 1
    for order in np.linspace(1.01, mu1, 50):
        assert unguarded(11, sigma, order)[2] > 1.5 * order / sigma**2
        assert share(11, sigma, order) == 1
    # Forty agree under less noise: below mu1 the bound is the formula, above it is not.
    mu1 = unguarded(40, 4.0, 20.0)[1]
    assert 20 < mu1 < 25
    assert share(40, 4.0, 20.0) == pytest.approx(unguarded(40, 4.0, 20.0)[2] / (20 / 16), rel=1e-9)
    assert share(40, 4.0, 20.0) < 0.99
    assert unguarded(40, 4.0, 25.0)[2] < 0.99 * 25 / 16
    assert share(40, 4.0, 25.0) == 1


def test_without_agreement_the_bound_is_the_one_of_the_noise() -> None:
    for votes, sigma, order in (((11, 0), 21.4605, 62.122), ((5, 5), 40.0, 20.0), ((4, 4, 3), 1.0, 2.0)):
        found = gnmax_data_dependent_rdp(votes, sigma, order)
        assert found.value == order / sigma**2
        assert found.data_dependent  # that it is the fallback tells about the votes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GNMax(sigma=0.0), "sigma must be in"),
        (lambda: GNMax(sigma=math.nan), "sigma must be in"),
        (lambda: GNMax(sigma=1.0, classes=1), "classes must be a whole number"),
        (lambda: gnmax_sigma_rdp(0.0, 1e-4), "epsilon must be"),
        (lambda: gnmax_sigma_analytic(1.0, 0.0), "delta must be"),
        (lambda: gamma_staircase(11, -1.0), "epsilon must be"),
        (lambda: gnmax_data_dependent_rdp([5, -1], 1.0, 2.0), "counts must be from 0"),
        (lambda: gnmax_data_dependent_rdp([5.5, 1.0], 1.0, 2.0), "counts must be whole numbers"),
        (lambda: gnmax_data_dependent_rdp([5], 1.0, 2.0), "shape"),
        (lambda: gnmax_data_dependent_rdp([5, 1], 1.0, 1.0), "order must be"),
        (lambda: gnmax_data_dependent_rdp([5, 1], 0.0, 2.0), "sigma must be"),
        (lambda: gnmax_data_dependent_rdp([250, 0], 1e-160, 2.0), "sigma must be"),
        (lambda: GNMax(sigma=1.0).release(np.array([[0, 2]]), simulated(1)), "classes from 0 to 1"),
        (lambda: GNMax(sigma=1.0).release(np.array([0, 1]), simulated(1)), "shape"),
        (lambda: GNMax(sigma=1.0, classes=3).correct_probability(1), "for 2 classes"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_without_its_logarithm_algorithm_11_never_helps() -> None:
    # Jiang (2025), Algorithm 11, line 11, at votes (245, 5): S / (order - 1), in place of ln S / (order - 1).
    sigma, order = 40.0, 20.0
    q = float(stats.norm.sf(240 / (math.sqrt(2) * sigma)))
    mu2 = sigma * math.sqrt(-math.log(q))
    a = (1 - q) / (1 - (q * math.exp(mu2 / sigma**2)) ** ((mu2 - 1) / mu2))
    b = math.exp((mu2 + 1) / sigma**2) / q ** (1 / mu2)
    moment = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
    right = gnmax_data_dependent_rdp((245, 5), sigma, order, both=False).value
    assert right == pytest.approx(math.log(moment) / (order - 1), rel=1e-4)
    assert right == pytest.approx(1.600985e-5, rel=2e-6)
    assert moment / (order - 1) == pytest.approx(0.0526476, rel=1e-5)
    assert moment / (order - 1) > order / sigma**2
