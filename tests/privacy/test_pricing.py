"""Prices against independently computed values and against enumeration."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant, pld_pmf
from scipy import optimize

from tacit.errors import ParameterError
from tacit.privacy import (
    AnyOf,
    ApproximateDP,
    Binomial,
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Gdp,
    Laplace,
    Neighbours,
    NonPrivate,
    Parallel,
    PrivacyBudget,
    PureDP,
    Repeat,
    Sample,
    Sampled,
    Zcdp,
    calibrate,
    curve_of,
    delta_of,
    epsilon_of,
    pure_epsilon_of,
    renyi_of,
    rho_of,
)
from tacit.privacy.events import Leaf
from tacit.privacy.pricing import method_of
from tests.privacy.event_examples import ADD_REMOVE
from tests.privacy.reference import Array, gaussian_delta, hockey_stick

N, ROUNDS = 1238, 35  # the silos of Lowy (2023), Appendix B.1.10.1
DELTA = 1 / N**2


def _gaussian_noise(epsilon: float, delta: float) -> float:
    """Return the noise multiplier of one Gaussian release, by quadrature and root search."""
    return float(
        optimize.brentq(
            lambda z: math.log(gaussian_delta(1 / z, epsilon) / delta),
            0.3,
            3 / math.sqrt(epsilon) + 2,
            xtol=1e-12,
        )
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"),
    [(1.0, 1e-5, 3.730632), (1.0, 1e-6, 4.224679), (2.0, 1e-5, 1.993812), (8.0, 1e-5, 0.600229)],
)
def test_the_least_noise_of_one_gaussian(epsilon: float, delta: float, noise: float) -> None:
    assert _gaussian_noise(epsilon, delta) == pytest.approx(noise, abs=5e-7)
    assert epsilon_of(Gaussian(noise), delta) == pytest.approx(epsilon, rel=1e-6)
    assert delta_of(Gaussian(noise), epsilon) == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("count", [2, 7, 1000])
def test_equal_gaussians_need_root_count_times_the_noise(count: int) -> None:
    noise = math.sqrt(count) * _gaussian_noise(1.0, 1e-5)
    assert epsilon_of(Repeat(Gaussian(noise), count), 1e-5) == pytest.approx(1.0, rel=1e-8)


def test_gaussian_like_releases_merge_exactly() -> None:
    mixed = Compose(
        (Gaussian(2.0), Gdp(0.5), Repeat(Gaussian(4.0), 3), Gdp(0.0), Sampled(Gaussian(1.0), 1.0))
    )
    mu = math.sqrt(0.25 + 0.25 + 3 / 16 + 1.0)
    assert delta_of(mixed, 1.3) == pytest.approx(gaussian_delta(mu, 1.3), rel=1e-9)
    assert method_of(mixed, 1e-6) == "analytic Gaussian"


TABLE = [  # epsilon, K, sigma Thm 104, sigma experiments, sigma wor, sigma full, certified epsilon
    (0.75, 91, 1.70439, 0.06801, 0.06430, 0.05388, 0.70),
    (1.5, 128, 0.85220, 0.03401, 0.03557, 0.02830, 1.60),
    (3.0, 181, 0.42610, 0.01700, 0.01989, 0.01501, 3.81),
    (6.0, 256, 0.21305, 0.00850, 0.01119, 0.00811, 9.35),
    (12.0, 362, 0.10652, 0.00425, 0.00629, 0.00450, 23.2),
    (18.0, 444, 0.07102, 0.00283, 0.00448, 0.00325, 39.1),
]


def _printed(value: float, digits: float) -> object:
    """Within 0.5 %, or half a unit of the last printed digit where that is more."""
    return pytest.approx(value, rel=0.005, abs=digits / 2)


def _experimental_sigma(epsilon: float) -> float:
    return math.sqrt(8 * ROUNDS * math.log(1 / DELTA)) / (N * epsilon)


@pytest.mark.parametrize(("epsilon", "batch", "theorem", "experiment", "wor", "full", "certified"), TABLE)
def test_noise_of_rounds_printed_and_calibrated(
    epsilon: float, batch: int, theorem: float, experiment: float, wor: float, full: float, certified: float
) -> None:
    assert round(N * math.sqrt(epsilon) / (2 * math.sqrt(ROUNDS))) == batch
    seed = 256 * ROUNDS * math.log(2.5 * ROUNDS / DELTA) * math.log(2 / DELTA) / (N * epsilon) ** 2
    assert math.sqrt(seed) == _printed(theorem, 1e-5)
    assert _experimental_sigma(epsilon) == _printed(experiment, 1e-5)

    budget, rate = PrivacyBudget(epsilon, DELTA), batch / N
    noise = calibrate(lambda z: Repeat(Sampled(Gaussian(z), rate), ROUNDS), budget)
    assert noise * 2 / batch == _printed(wor, 1e-5)
    noise = calibrate(lambda z: Repeat(Gaussian(z), ROUNDS), budget)
    assert noise * 2 / N == _printed(full, 1e-5)
    spent = epsilon_of(Repeat(Sampled(Gaussian(experiment * batch / 2), rate), ROUNDS), DELTA)
    assert spent == pytest.approx(certified, rel=0.01)  # the printed sigma has 3 digits
    spent = epsilon_of(
        Repeat(Sampled(Gaussian(_experimental_sigma(epsilon) * batch / 2), rate), ROUNDS), DELTA
    )
    assert spent == _printed(certified, 0.01 if certified < 10 else 0.1)


@pytest.mark.parametrize(
    ("epsilon", "certified", "half"),
    [
        (0.75, 0.60, 0.28),
        (1.5, 1.29, 0.60),
        (3.0, 2.88, 1.29),
        (6.0, 6.98, 2.88),
        (12.0, 19.7, 6.98),
        (18.0, 39.2, 12.5),
    ],
)
def test_the_price_of_the_experimental_noise(epsilon: float, certified: float, half: float) -> None:
    # K = 443; with a true Lipschitz constant of L / 2 the same sigma is twice the noise multiplier.
    noise = _experimental_sigma(epsilon) * 443 / 2
    for scale, expected in ((1, certified), (2, half)):
        event = Repeat(Sampled(Gaussian(scale * noise), 443 / N), ROUNDS)
        assert epsilon_of(event, DELTA) == _printed(expected, 0.01 if expected < 10 else 0.1)


def _local_sgd(noise: float) -> Event:
    return Repeat(Sampled(Gaussian(noise), 1 / N), ROUNDS * 443)


@pytest.mark.parametrize(("noise", "epsilon"), [(1.0, 0.72683), (0.9836, 0.75), (0.6191, 3.0)])
def test_the_price_of_local_steps(noise: float, epsilon: float) -> None:
    assert epsilon_of(_local_sgd(noise), DELTA) == pytest.approx(epsilon, rel=1e-3)


def test_the_least_noise_of_local_steps_at_epsilon_18() -> None:
    # A coarser computation gave z = .3963 for epsilon = 18. It costs 17.592; 18 is met from .3941 on.
    # Shown by another implementation of connect-the-dots and composition, at two grids that agree.
    curve = curve_of(Sampled(Gaussian(0.3963), 1 / N), accuracy=1e-12)
    theirs = []
    for step in (4e-4, 2e-4):
        most = round(20.0 / step)
        grid = np.arange(-most, most + 1, dtype=np.float64)
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            step, -most, most, curve.forward(grid * step)
        )
        theirs.append(pmf.self_compose(ROUNDS * 443).get_epsilon_for_delta(DELTA))
    ours = epsilon_of(_local_sgd(0.3963), DELTA)
    assert theirs == pytest.approx([17.592, 17.592], abs=5e-4)
    assert ours == pytest.approx(17.592, abs=5e-4)
    assert calibrate(_local_sgd, PrivacyBudget(18.0, DELTA)) == pytest.approx(0.39409, abs=2e-5)


def test_pure_releases_cost_what_the_optimal_theorem_says() -> None:
    event = Repeat(PureDP(0.1), 100)
    assert epsilon_of(event, 1e-5) == pytest.approx(4.306791, abs=2e-6)
    assert delta_of(event, 4.0) == pytest.approx(3.422312e-05, rel=1e-6)
    assert delta_of(event, 3.0) == pytest.approx(1.361399e-03, rel=1e-6)
    assert pure_epsilon_of(event) == pytest.approx(10.0, rel=1e-15)
    # The lemma's own forms are looser: 5.850235 and, with (e^eps - 1) / (e^eps + 1), 5.298110.
    root = math.sqrt(2 * 100 * math.log(1e5)) * 0.1
    assert root + 10 * math.expm1(0.1) == pytest.approx(5.850235, abs=1e-6)
    assert root + 10 * math.tanh(0.05) == pytest.approx(5.298110, abs=1e-6)


def test_approximate_releases_compose_with_their_atoms() -> None:
    # KOV 2015: total delta = 1 - (1 - d)^T (1 - delta0).
    count, hidden = 20, 1e-6
    for epsilon in (0.5, 1.0, 2.5):
        pure = delta_of(Repeat(PureDP(0.2), count), epsilon)
        exact = -math.expm1(count * math.log1p(-hidden) + math.log1p(-pure))
        assert delta_of(Repeat(ApproximateDP(0.2, hidden), count), epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "delta", "epsilon"),
    [(0.5, 1e-5, 4.728387), (0.1, 1e-6, 2.141939), (0.005, 1e-5, 0.375261), (2.0, 1e-5, 10.724824)],
)
def test_concentrated_releases_have_the_tabled_prices(rho: float, delta: float, epsilon: float) -> None:
    assert epsilon_of(Zcdp(rho), delta) == pytest.approx(epsilon, abs=1e-6)
    assert epsilon_of(Repeat(Zcdp(rho / 4), 4), delta) == pytest.approx(epsilon, abs=1e-6)


def test_amplification_by_a_sample_of_fixed_size() -> None:
    event = Sampled(ApproximateDP(1.0, 1e-4), 0.01)
    assert epsilon_of(event, 1e-6) == pytest.approx(0.017036863236, abs=1e-12)
    assert delta_of(event, 0.017036863236) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize(("rate", "noise", "count"), [(0.01, 1.0, 1000), (0.2, 3.0, 50)])
def test_poisson_sampling_agrees_with_dp_accounting(rate: float, noise: float, count: int) -> None:
    ours = epsilon_of(Repeat(Sampled(Gaussian(noise, ADD_REMOVE), rate, Sample.POISSON), count), 1e-6)
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def _lattice(std: float, reach: int, shift: tuple[int, ...]) -> tuple[Array, Array]:
    """Return discrete Gaussian noise around 0 and around `shift`, on a box of the lattice."""
    axis = np.arange(-reach, reach + 1, dtype=np.float64)
    norm = float(np.exp(-(axis**2) / (2 * std**2)).sum())
    laws = [
        (np.exp(-(axis**2) / (2 * std**2)) / norm, np.exp(-((axis - s) ** 2) / (2 * std**2)) / norm)
        for s in shift
    ]
    p, q = np.ones(1), np.ones(1)
    for a, b in laws:
        p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
    return p, q


@pytest.mark.parametrize("std", [0.5, 1.0, 3.0, 9.0, 12.0, 30.0])
@pytest.mark.parametrize("shift", [(1,), (4,), (1, 1), (3, 4)])
def test_discrete_gaussian_covers_its_own_law(std: float, shift: tuple[int, ...]) -> None:
    reach = max(12, int(9 * std)) + 5
    p, q = _lattice(std, reach, shift)
    length = math.hypot(*shift)
    event = DiscreteGaussian(std, length)
    mu = length / std
    for epsilon in (0.0, mu * mu / 2, mu * (mu / 2 + 1), mu * (mu / 2 + 3)):
        exact = hockey_stick(p, q, epsilon)
        priced = delta_of(event, epsilon)
        assert priced >= exact - 1e-14
        assert priced <= 12 * exact + 0.5  # concentrated DP alone says little at small epsilon


def test_fine_discrete_gaussian_costs_little_more_than_its_law() -> None:
    p, q = _lattice(30.0, 300, (10,))
    for epsilon in (0.1, 0.5, 1.0):
        assert delta_of(DiscreteGaussian(30.0, 10.0), epsilon) <= hockey_stick(p, q, epsilon) * 1.08


def test_discrete_laplace_composes_by_its_exact_curve() -> None:
    y = np.arange(-80, 81)
    p, q = (np.exp(-np.abs(y - s) / 3.0) / np.exp(-np.abs(y) / 3.0).sum() for s in (0, 2))
    pairs = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    for epsilon in (0.1, 0.5, 1.0, 1.3):
        exact = hockey_stick(*pairs, epsilon)
        assert exact <= delta_of(Repeat(DiscreteLaplace(3.0, 2), 2), epsilon) + 1e-11 <= exact * 1.01 + 1e-10


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0])
def test_pure_releases_have_a_concentrated_level(epsilon: float) -> None:
    # Randomised response is the worst pure release; its divergences are enumerated.
    p = 1 / (1 + math.exp(-epsilon))
    alpha = 1 + np.geomspace(1e-2, 50.0, 2000)
    renyi = np.log(p * np.exp((alpha - 1) * epsilon) + (1 - p) * np.exp(-(alpha - 1) * epsilon)) / (alpha - 1)
    level = rho_of(PureDP(epsilon))
    assert np.all(renyi <= alpha * level * (1 + 1e-9))
    assert np.max(renyi / alpha) >= level * 0.98
    assert level <= epsilon**2 / 2 * (1 + 1e-9)


def test_concentrated_levels_add_up() -> None:
    event = Compose((Gaussian(2.0), Gdp(0.5), Repeat(Zcdp(0.1), 3), DiscreteGaussian(4.0, 2.0)))
    assert rho_of(event) == pytest.approx(1 / 8 + 1 / 8 + 0.3 + 1 / 8, rel=1e-11)
    assert rho_of(Parallel((Zcdp(0.1), Gaussian(1.0)))) == pytest.approx(0.5, rel=1e-11)
    assert rho_of(AnyOf((Zcdp(0.1), Gaussian(1.0)))) == pytest.approx(0.1, rel=1e-11)
    assert math.isinf(rho_of(Sampled(Gaussian(1.0), 0.5)))
    assert math.isinf(rho_of(Compose((Gaussian(1.0), NonPrivate()))))


def test_pure_levels_follow_the_tree() -> None:
    tree = Compose((Repeat(PureDP(0.1), 3), Sampled(Laplace(0.5), 0.2), Parallel((PureDP(0.3), PureDP(0.4)))))
    level = 0.3 + math.log1p(0.2 * math.expm1(2.0)) + 0.4
    assert pure_epsilon_of(tree) == pytest.approx(level, rel=1e-14)
    assert epsilon_of(tree, 0.0) == pure_epsilon_of(tree)
    assert pure_epsilon_of(AnyOf((Gaussian(1.0), PureDP(0.7)))) == 0.7
    assert math.isinf(pure_epsilon_of(Compose((tree, Gaussian(1.0)))))


@pytest.mark.parametrize("count", [1, 3, 11])
def test_stated_levels_are_not_rounded_up(count: int) -> None:
    vote = ApproximateDP(0.1, 1e-4)
    events = (Repeat(vote, count), Compose((vote,) * count), Parallel((Repeat(vote, count), vote)))
    for event in (*events, AnyOf((Gaussian(0.01), events[0]))):
        assert epsilon_of(event, count * 1e-4) <= count * 0.1 * (1 + 1e-15)
        assert epsilon_of(event, count * 0.99e-4) > count * 0.1 or count > 1


def test_delta_never_takes_a_price_above_the_pure_level() -> None:
    for event in (PureDP(0.2), Laplace(3.0), Repeat(DiscreteLaplace(3.0, 1), 4), Sampled(PureDP(2.0), 0.1)):
        for delta in (1e-300, 1e-12, 1e-3):
            assert epsilon_of(event, delta) <= epsilon_of(event, 0.0)


def test_parts_without_a_claim_spoil_the_whole() -> None:
    for event in (
        NonPrivate(),
        Compose((Gaussian(1.0), NonPrivate())),
        Compose((Laplace(1.0), NonPrivate())),
        Parallel((Gaussian(1.0), NonPrivate())),
        Repeat(Sampled(NonPrivate(), 0.5), 3),
    ):
        assert math.isinf(epsilon_of(event, 1e-6))
        assert math.isinf(epsilon_of(event, 0.0))
    assert delta_of(Compose((Gaussian(1.0), NonPrivate())), 50.0) == 1.0
    assert epsilon_of(AnyOf((NonPrivate(), PureDP(0.5))), 1e-300) == 0.5
    # A uniform sample, published, is (0, rate)-DP and nothing else.
    assert epsilon_of(Sampled(NonPrivate(), 1e-7), 1e-6) == 0.0
    assert math.isinf(epsilon_of(Sampled(NonPrivate(), 2e-6), 1e-6))


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9, 1e-12])
def test_epsilon_and_delta_are_inverse(delta: float) -> None:
    for event in (Gaussian(1.3), Zcdp(0.2), Repeat(Sampled(Gaussian(1.0), 0.05), 40), Laplace(1.0)):
        epsilon = epsilon_of(event, delta)
        # The grid of a composition follows the accuracy asked for, so the two differ a little.
        assert delta_of(event, epsilon) == pytest.approx(delta, rel=0.02)


@pytest.mark.parametrize("noise", [1e-320, 1e-200, 1e-5, 0.05, 1.0, 1e6, 1e160, 1e300])
def test_extreme_noise_has_a_price_without_warnings(noise: float) -> None:
    for event in (Gaussian(noise), Compose((Gaussian(noise), Laplace(2.0))), Sampled(Gaussian(noise), 1e-6)):
        assert epsilon_of(event, 1e-5) >= 0
        assert 0 <= delta_of(event, 1000.0) <= 1
        assert rho_of(event) >= 0
    if noise <= 1e-5:
        assert math.isinf(epsilon_of(Gaussian(noise), 1e-5))


@pytest.mark.parametrize(
    ("noise", "rate", "count", "delta"),
    [(0.05, 1e-3, 10, 1e-12), (1e6, 1e-6, 10**6, 1e-12), (1.0, 1e-6, 10**6, 1e-5), (1.0, 0.5, 10**6, 1e-12)],
)
def test_extreme_samples_have_a_price_without_warnings(
    noise: float, rate: float, count: int, delta: float
) -> None:
    for part in (Sampled(Gaussian(noise), rate), Sampled(Gaussian(noise, ADD_REMOVE), rate, Sample.POISSON)):
        once, often = epsilon_of(part, delta), epsilon_of(Repeat(part, count), delta)
        assert once <= often < math.inf


def test_huge_counts_and_deep_trees_end() -> None:
    assert math.isinf(epsilon_of(Repeat(Repeat(Sampled(Gaussian(1.0), 0.1), 10**15), 10**15), 1e-5))
    assert epsilon_of(Repeat(Gaussian(1e6), 10**12), 1e-5) == pytest.approx(4.377178, abs=1e-6)
    deep: Event = Gaussian(40.0)
    for _ in range(50):
        deep = Sampled(Repeat(deep, 1), 0.999)
    assert epsilon_of(deep, 1e-5) <= epsilon_of(Gaussian(40.0), 1e-5)


def test_numpy_numbers_are_priced_in_full() -> None:
    # Kept as they come, 32-bit floats would round prices down, and counts would wrap around to few or none.
    count: Any = np.int64(2**40)
    assert epsilon_of(Repeat(Repeat(Laplace(1.0), count), count), 1e-6) == 2.0**80
    assert pure_epsilon_of(Repeat(Repeat(PureDP(1.0), count), count)) == 2.0**80
    small: Any = np.int8(100)
    assert pure_epsilon_of(Repeat(Repeat(PureDP(1.0), small), small)) == 10_000
    for make in (Gaussian, Laplace, PureDP, Zcdp, Gdp):
        number: Any = np.float32(0.7)
        plain = make(float(number))
        assert epsilon_of(make(number), 1e-6) == epsilon_of(plain, 1e-6)
        assert epsilon_of(Repeat(Sampled(make(number), 0.1), 3), 1e-6) == epsilon_of(
            Repeat(Sampled(plain, 0.1), 3), 1e-6
        )
        assert rho_of(make(number)) == rho_of(plain)
    rate: Any = np.float32(0.1)
    assert epsilon_of(Sampled(Gaussian(1.0), rate), 1e-6) == epsilon_of(
        Sampled(Gaussian(1.0), float(rate)), 1e-6
    )


def test_order_and_grouping_do_not_matter() -> None:
    parts = (Laplace(3.0), Sampled(Gaussian(1.0), 0.1), PureDP(0.2), Gaussian(5.0))
    prices = {epsilon_of(Compose(order), 1e-6) for order in itertools.permutations(parts)}
    prices.add(epsilon_of(Compose((Compose(parts[:2]), Repeat(Compose(parts[2:]), 1))), 1e-6))
    assert len(prices) == 1


@pytest.mark.parametrize("value", [math.nan, -1e-9, 1.0, 2.0])
def test_delta_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        epsilon_of(Gaussian(1.0), value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1])
def test_epsilon_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a finite number >= 0"):
        delta_of(Gaussian(1.0), value)


@pytest.mark.parametrize("value", [math.nan, 0.0, 1.0])
def test_accuracy_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match=r"accuracy must be in \(0, 1\)"):
        curve_of(Gaussian(1.0), accuracy=value)


def test_events_without_a_price_are_refused() -> None:
    class Forgotten(Leaf, frozen=True, tag=True):
        """A leaf whose author wrote no curve."""

        neighbours: Neighbours = Neighbours()

    try:
        with pytest.raises(ParameterError, match="Forgotten has no privacy curve"):
            epsilon_of(Forgotten(), 1e-5)
    finally:
        del Event.registry["Forgotten"]


@pytest.mark.parametrize(
    ("event", "method"),
    [
        (Repeat(Gaussian(3.0), 9), "analytic Gaussian"),
        (Zcdp(0.1), "concentrated differential privacy"),
        (PureDP(0.1), "pure differential privacy"),
        (Laplace(1.0), "exact privacy curve"),
        (Sampled(Laplace(1.0), 0.1), "sampled privacy curve"),
        (AnyOf((Laplace(1.0), PureDP(0.1))), "pure differential privacy, best of 2 proofs"),
        (Repeat(Laplace(1.0), 2), "privacy loss distribution, connect-the-dots"),
        (
            DiscreteGaussian(20.0, 2.0),
            "analytic Gaussian, discrete noise as rounded Gaussian or concentrated",
        ),
        (DiscreteGaussian(20.0, 1.0, dim=1), "exact privacy curve"),
        (DiscreteGaussian(20.0, 1.4, dim=50), "exact privacy curve"),
        (Repeat(DiscreteGaussian(20.0, 1.0, dim=1), 3), "privacy loss distribution, connect-the-dots"),
        (Compose((NonPrivate(), Gaussian(1.0))), "nothing is claimed"),
    ],
)
def test_methods_are_named(event: Event, method: str) -> None:
    assert method_of(event, 1e-6) == method


def test_counts_beyond_all_floats_are_refused_and_large_ones_cost_everything() -> None:
    once = (Gaussian(1.0), PureDP(1.0), Laplace(1.0), ApproximateDP(0.1, 1e-9), Zcdp(1.0))
    for part in (*once, Sampled(Gaussian(1.0), 0.5), AnyOf((Gaussian(1.0), PureDP(1.0)))):
        deep = Repeat(part, 10**200)
        assert math.isinf(epsilon_of(deep, 1e-6)) or epsilon_of(deep, 1e-6) > 1e190
        assert epsilon_of(Repeat(part, 10**200), 1e-300) > 1e190
        for price in (lambda e: epsilon_of(e, 1e-6), rho_of, lambda e: renyi_of(e, [2.0])):
            with pytest.raises(ParameterError, match="count must not repeat a release more than 1e300"):
                price(Repeat(deep, 10**200))
        with pytest.raises(ParameterError, match="count must be a whole number"):
            Repeat(part, 10**400)
    with pytest.raises(ParameterError, match="sensitivity must be a whole number"):
        DiscreteLaplace(1.0, 10**400)
    with pytest.raises(ParameterError, match="dim must be a whole number"):
        Binomial(100, 2, 10**400)


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 2.3e-308])
def test_deltas_below_the_normal_floats_have_a_price(delta: float) -> None:
    """A quotient by such a delta overflows."""
    for event in (Laplace(2.0), Repeat(Laplace(20.0), 3), PureDP(0.3)):
        pure = pure_epsilon_of(event)
        assert pure * (1 - 1e-9) <= epsilon_of(event, delta) <= pure
