"""Runs with hidden iterates: reference tables, enumerated orders, and what is refused."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.literature import paper_epsilon, paper_noise, renyi_epsilon
from tacit.privacy import (
    Compose,
    Gaussian,
    Gdp,
    PrivacyBudget,
    Repeat,
    calibrate,
    delta_of,
    epsilon_of,
    event_from_json,
    event_to_json,
    guarantee,
    meets,
    verify,
)
from tacit.privacy.curves import gaussian_curve
from tacit.privacy.iteration import Iteration, Order, Release, energy_law
from tests.privacy.iteration_reference import least_energy, run
from tests.privacy.reference import gaussian_delta

DELTA = 1e-6
ALL, EPOCHS, LAST = Release.ALL, Release.EPOCHS, Release.LAST
IG, SO, RR = Order.IG, Order.SO, Order.RR
COLUMNS = ((IG, EPOCHS), (SO, EPOCHS), (RR, EPOCHS), (IG, LAST), (SO, LAST), (RR, LAST))


# n, K, n_d, epsilon, then sigma / G: the printed accountant (Jiang 2025) and `COLUMNS`.
TABLE = """
1000 50 1000 1 75.66014 59.74598 36.47057 8.78824 8.65389 5.28641 5.28641
1000 50 1000 5 16.10921 13.85999 9.75662 2.21662 2.00755 1.41329 1.41329
1000 50 1000 10 8.59704 7.65212 5.74259 1.29071 1.10837 0.83179 0.83179
1000 25 1000 1 53.49980 42.24679 25.78859 7.64615 8.55015 5.22100 5.22100
1000 25 1000 5 11.39093 9.80049 6.89897 1.94212 1.98348 1.39629 1.39629
1000 25 1000 10 6.07902 5.41087 4.06063 1.13847 1.09508 0.82182 0.82182
1000 50 500 1 3.38025 2.66925 2.29466 1.63487 1.90806 1.83202 1.39104
1000 50 500 5 0.71971 0.61922 0.54501 0.38347 0.44264 0.42841 0.32617
1000 50 500 10 0.38409 0.34187 0.30504 0.21342 0.24438 0.23751 0.18148
1000 50 250 5 0.58783 0.50576 0.45234 0.26364 0.43974 0.41554 0.24373
1000 50 750 5 1.01680 0.87483 0.74683 0.53073 0.45118 0.43747 0.39172
159 50 159 1 75.66014 59.74598 43.40862 13.92867 9.66400 7.03769 7.03770
159 50 159 5 16.10921 13.85999 10.96723 3.39474 2.24187 1.77449 1.77449
159 25 159 5 11.39093 9.80049 7.75500 2.76457 2.10283 1.66407 1.66407
159 50 80 1 8.45906 6.67980 5.75709 4.10911 4.78473 4.59587 3.49798
159 50 80 5 1.80106 1.54959 1.36738 0.96374 1.10997 1.07465 0.82012
200 50 200 5 16.10921 13.85999 10.82195 3.19283 2.18707 1.70805 1.70805
200 50 200 10 8.59704 7.65212 6.23677 1.82667 1.20748 0.98419 0.98419
200 25 200 5 11.39093 9.80049 7.65228 2.62717 2.07437 1.61978 1.61978
200 50 100 5 1.60293 1.37912 1.21644 0.85621 0.98961 0.95792 0.72927
200 50 100 10 0.85544 0.76141 0.68082 0.47652 0.54636 0.53106 0.40576
200 50 50 5 1.31095 1.12791 1.01021 0.58883 0.98322 0.92916 0.54492
200 50 150 5 2.25574 1.94079 1.66383 1.18404 1.00828 0.97811 0.87579
2103 50 2103 5 16.10921 13.85999 9.23366 1.94368 1.98280 1.32103 1.32103
2103 50 2103 10 8.59704 7.65212 5.49979 1.13896 1.09471 0.78680 0.78680
2103 50 1052 5 0.49667 0.42732 0.37600 0.26457 0.30524 0.29543 0.22497
2103 50 1052 10 0.26506 0.23593 0.21045 0.14724 0.16852 0.16378 0.12517
"""
ROWS = [tuple(float(x) for x in line.split()) for line in TABLE.split("\n") if line]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(f"{x:g}" for x in row[:4]))
def test_noise_of_the_reference_table(row: tuple[float, ...]) -> None:
    n, epochs, private = (int(x) for x in row[:3])
    epsilon, paper, *noises = row[3:]
    found = 2 * paper_noise(epsilon, DELTA, n=n, epochs=epochs, private=private)
    assert found == pytest.approx(paper, rel=3e-5)
    assert paper_epsilon(found / 2, DELTA, n=n, epochs=epochs, private=private) == pytest.approx(epsilon)
    for (order, release), sigma in zip(COLUMNS, noises, strict=True):
        # The table is printed to nearest: the root lies within 5e-5 of it, half a unit of the last digit.
        low, high = (
            delta_of(run(sigma / 2 * factor, n, epochs, private, order, release), epsilon)
            for factor in (1 - 5e-5, 1 + 5e-5)
        )
        assert high <= DELTA <= low, (order, release)
    ends, lasts = noises[:3], noises[3:]
    assert ends[2] <= ends[1] <= ends[0] <= paper
    assert lasts[2] <= lasts[1] * 1.00001 <= lasts[0] * 1.00001 <= ends[0]


@pytest.mark.parametrize(("order", "release"), COLUMNS)
def test_calibration_meets_the_budget_and_hardly_less(order: Order, release: Release) -> None:
    budget, column = PrivacyBudget(5.0, DELTA), COLUMNS.index((order, release))
    z = calibrate(lambda z: run(z, 200, 50, 150, order, release), budget)
    row = next(row for row in ROWS if row[:4] == (200, 50, 150, 5))
    assert 2 * z == pytest.approx(row[5 + column], rel=3e-5)
    assert meets(run(z, 200, 50, 150, order, release), budget)
    assert not meets(run(z * 0.9999, 200, 50, 150, order, release), budget)


@pytest.mark.parametrize(
    ("private", "noises"),
    [
        (50, (43.7972, 10.2648, 5.7095)),
        (25, (32.7405, 7.7665, 4.3550)),
        (75, (52.4137, 12.2076, 6.7599)),
    ],
)
def test_all_iterates_of_reshuffled_epochs(private: int, noises: tuple[float, ...]) -> None:
    for epsilon, sigma in zip((1.0, 5.0, 10.0), noises, strict=True):
        z = calibrate(lambda z: Iteration(z, 100, 50, private, order=RR), PrivacyBudget(epsilon, DELTA))
        assert 2 * z == pytest.approx(sigma, abs=6e-5)


def test_all_iterates_of_one_order_are_a_composition() -> None:
    whole = epsilon_of(Iteration(3.0, 10, 20, order=RR), DELTA)
    assert whole == pytest.approx(epsilon_of(Repeat(Gaussian(3.0), 20), DELTA), rel=1e-9)
    shuffled = delta_of(Iteration(3.0, 10, 20, 4, order=SO), 1.0)
    assert shuffled == pytest.approx(0.4 * delta_of(Gdp(math.sqrt(20) / 3), 1.0), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "private", "noises"),
    [
        (1000, 1000, (13.0241, 2.8758, 1.5891)),
        (1000, 500, (2.1129, 0.4525, 0.2430)),
        (200, 200, (18.2713, 3.9900, 2.1832)),
    ],
)
def test_renyi_accounting_of_reshuffled_epochs(n: int, private: int, noises: tuple[float, ...]) -> None:
    # The reference took the best of a grid of orders; all real orders are searched here, so less is needed.
    for epsilon, sigma in zip((1.0, 5.0, 10.0), noises, strict=True):
        # The noise that meets epsilon lies between these two.
        low, z = sigma / 2 * (1 - 4e-4), sigma / 2 * (1 + 3e-5 + 1e-4)
        under, over = (renyi_epsilon(at, DELTA, n=n, epochs=50, private=private) for at in (z, low))
        assert under <= epsilon < over
        assert delta_of(run(z, n, 50, private, RR, EPOCHS), epsilon) < DELTA


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu_paper", "mu"),
    [
        (0.5, 1e-5, 0.103091, 0.142211),
        (0.5, 1e-6, 0.094275, 0.124106),
        (1, 1e-5, 0.204059, 0.268051),
        (1, 1e-6, 0.186917, 0.236704),
        (2, 1e-6, 0.367624, 0.448335),
        (5, 1e-5, 0.948286, 1.121242),
        (5, 1e-6, 0.877891, 1.020357),
        (10, 1e-6, 1.645001, 1.848132),
    ],
)
def test_gaussian_levels_of_budgets(epsilon: float, delta: float, mu_paper: float, mu: float) -> None:
    budget = PrivacyBudget(epsilon, delta)
    assert 1 / calibrate(lambda z: Iteration(z, 1, 1), budget) == pytest.approx(mu, abs=6e-7)
    assert 1 / paper_noise(epsilon, delta, n=1, epochs=1) == pytest.approx(mu_paper, abs=6e-7)


@pytest.mark.parametrize(
    ("epsilon", "mu", "delta"),
    [
        (1, 1, 0.1269367375),
        (0.5, 0.3, 0.007573480585),
        (5, 1, 5.793721692e-07),
        (0, 2, 0.6826894921),
    ],
)
def test_gaussian_deltas_have_the_tabled_values(epsilon: float, mu: float, delta: float) -> None:
    assert delta_of(Iteration(1 / mu, 1, 1), epsilon) == pytest.approx(delta, rel=1e-9)


@functools.cache
def _energy(touches: tuple[int, ...], n: int) -> float:
    shifts = np.zeros(n * len(touches))
    for epoch, position in enumerate(touches):
        if position:
            shifts[epoch * n + position - 1] = 1.0
    return least_energy(shifts, np.ones_like(shifts), np.ones_like(shifts), 0.0)


def _average(orders: list[tuple[int, ...]], n: int, z: float, epsilon: float, *, hidden: bool) -> float:
    """Average the deltas over equally likely touches, each energy by its own quadratic programme."""
    deltas = []
    for touches in orders:
        energies = [_energy(touches, n)] if hidden else [_energy((j,), n) for j in touches]
        mu = math.sqrt(sum(energies)) / z
        deltas.append(gaussian_delta(mu, epsilon) if mu > 0 else 0.0)
    return float(np.mean(deltas))


@pytest.mark.parametrize(
    ("private", "z", "epsilon", "exact", "bounds"),
    [
        (4, 1.0, 1.0, 0.13689167, (0.41118898, 0.20794764, 0.21647844, 0.21112276, 0.12949353, 0.15601584)),
        (2, 0.5, 2.0, 0.068876073, (0.33189800, 0.13957746, 0.10462619, 0.26275422, 0.12229152, 0.081863709)),
    ],
)
def test_enumerated_orders_stay_below_the_bound(
    private: int, z: float, epsilon: float, exact: float, bounds: tuple[float, ...]
) -> None:
    n, epochs = 4, 3
    positions = [j if j <= private else 0 for j in range(1, n + 1)]
    once = [(j,) * epochs for j in positions]
    fresh = list(itertools.product(positions, repeat=epochs))
    for (order, release), expected in zip(COLUMNS, bounds, strict=True):
        bound = delta_of(run(z, n, epochs, private, order, release), epsilon)
        assert bound == pytest.approx(expected, rel=2e-4)
        orders = {IG: [(private,) * epochs], SO: once, RR: fresh}[order]
        truth = _average(orders, n, z, epsilon, hidden=release is LAST)
        assert truth <= bound * (1 + 1e-9)
        if (order, release) == (RR, LAST):
            assert truth == pytest.approx(exact, rel=1e-6)
            assert bound > truth * 1.01
        else:
            assert bound == pytest.approx(truth, rel=2e-4)
    grid = delta_of(run(1.0, 4, 3, 4, RR, EPOCHS), 1.0)
    assert grid == pytest.approx(0.21649882, abs=2e-8)


def test_every_order_costs_at_most_the_worst_one() -> None:
    for order, release in COLUMNS:
        worst = run(1.0, 20, 5, 12, order, release, worst_case_order=True)
        fixed = run(1.0, 20, 5, 12, IG, release)
        assert epsilon_of(worst, DELTA) == epsilon_of(fixed, DELTA)
        assert epsilon_of(run(1.0, 20, 5, 12, order, release), DELTA) <= epsilon_of(fixed, DELTA)
    prices = [epsilon_of(run(1.0, 20, 5, 12, IG, release), DELTA) for release in (LAST, EPOCHS, ALL)]
    assert prices == sorted(prices)


def test_the_unused_cost_nothing() -> None:
    for order, release in itertools.product(Order, Release):
        event = run(0.1, 20, 5, 0, order, release)
        assert epsilon_of(event, 0.0) == 0.0
        assert np.all(event.renyi(np.array([2.0, 30.0])) == 0.0)
    # One record in a million steps may still be used.
    assert delta_of(run(0.1, 10**6, 1, 1, RR, ALL), 1.0) == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize(("n", "private"), [(10**6, 10), (10**4, 9000)])
def test_many_epochs_are_merged_without_losing_much(n: int, private: int) -> None:
    epochs, z = 10**5, 0.5 if private == 10 else 20.0
    last, ends = (epsilon_of(run(z, n, epochs, private, RR, r), DELTA) for r in (LAST, EPOCHS))
    everything = epsilon_of(run(z, n, epochs, private, RR, ALL), DELTA)
    assert last <= ends * 1.05
    assert last < everything
    # With M of the epochs, all at one average position, the run cannot cost less than their mean does.
    used = (epochs - 1) * private / n
    assert last >= epsilon_of(Gdp(math.sqrt(used / n) / z), DELTA) * 0.99 if used > 100 else last >= 0


@pytest.mark.parametrize(
    ("n", "epochs", "private"), [(300_000, 3, 300_000), (10**9, 100, 10**8), (5000, 3000, 2500)]
)
def test_merged_energies_only_round_up(n: int, epochs: int, private: int) -> None:
    first = n - private + 1
    for order, release in COLUMNS:
        law = energy_law(n, epochs, private, order, release)
        assert law.energies.size <= 100_000
        assert float(law.weights.sum()) <= 1 + 1e-9
        fixed = energy_law(n, epochs, private, IG, release)
        assert law.largest <= fixed.largest * (1 + 1e-9)
        if order is SO:
            # Mean of 1 / r over the private positions, by harmonic numbers.
            mean = (math.log(n + 0.5) - math.log(first - 0.5)) / n if first > 1 else 0.0
            scale, shift = (epochs, 0.0) if release is EPOCHS else (1, (epochs - 1) / n * private / n)
            exact = scale * mean + shift
            if first > 1:
                found = float(law.weights @ law.energies)
                assert exact * (1 - 1e-6) <= found <= exact * (1 + 1e-3)


def test_round_off_of_the_convolution_is_charged() -> None:
    for epochs in (2, 50, 10**4):
        law = energy_law(100, epochs, 100, RR, EPOCHS)
        assert law.allowance >= 1e-12
        assert float(law.weights.sum()) == pytest.approx(1.0, abs=law.allowance)
    # Far out in the tail the proof for the worst order takes over: nothing is allowed for there.
    event = run(0.7, 3000, 20, 2000, RR, EPOCHS)
    assert 1e-12 <= delta_of(event, 1.1) <= 1.01e-12  # the masses alone say 1e-16
    assert 0 < delta_of(event, 2.0) < 1e-20


def test_a_long_table_of_the_curve_is_nowhere_below_the_curve() -> None:
    for order, release in ((RR, EPOCHS), (SO, EPOCHS), (RR, LAST)):
        curve = run(0.7, 3000, 20, 2000, order, release).curve()
        epsilon = np.linspace(0.0, 2.0, 5001)
        table = curve.delta(epsilon)
        assert np.all(np.diff(table) <= 0)
        for i in range(0, epsilon.size, 391):
            exact = float(curve.delta(epsilon[i]))
            assert exact * (1 - 1e-9) <= table[i]
            if exact > 1e-12:
                assert table[i] <= exact * 1.04  # 0.2 % of noise


def test_composition_with_a_gaussian_is_exact_for_a_fixed_order() -> None:
    event = run(2.0, 50, 10, None, IG, LAST)
    energy = 9 / 50 + 1
    exact = epsilon_of(Gdp(math.sqrt(energy / 4 + 1 / 9)), DELTA)
    both = epsilon_of(Compose((event, Gaussian(3.0))), DELTA)
    assert exact * (1 - 1e-9) <= both <= exact * 1.002
    assert epsilon_of(Repeat(event, 7), DELTA) == pytest.approx(
        epsilon_of(Gdp(math.sqrt(7 * energy / 4)), DELTA), rel=1e-9
    )
    assert run(2.0, 50, 10, None, RR, LAST).repeated(7) is None


def test_composition_of_shuffled_runs_is_the_average_over_both_orders() -> None:
    event = run(1.0, 4, 2, None, SO, EPOCHS)
    levels = [2 / r for r in (1, 2, 3, 4)]
    for epsilon in (0.5, 2.0, 5.0):
        exact = np.mean([gaussian_delta(math.sqrt(a + b), epsilon) for a in levels for b in levels])
        bound = delta_of(Repeat(event, 2), epsilon)
        assert exact * (1 - 1e-9) <= bound <= exact * 1.01


def test_renyi_divergences_are_those_of_the_average() -> None:
    orders = np.array([1.5, 2.0, 8.0, 40.0])
    for order, release in COLUMNS:
        event = run(1.5, 6, 3, 4, order, release)
        bound = event.renyi(orders)
        worst = orders * event.concentrated.rho
        assert np.all(bound <= worst * (1 + 1e-9))
        if order is IG:
            assert bound == pytest.approx(worst)
        epsilon = np.array([0.2, 1.0, 3.0])
        for alpha, divergence in zip(orders, bound, strict=True):
            log_delta = (
                (alpha - 1) * (divergence - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)
            )
            assert np.all(event.curve().delta(epsilon) <= np.minimum(np.exp(log_delta), 1.0) + 1e-11)
    law = [(1 / r, 1 / 6) for r in (3, 4, 5, 6)] + [(0.0, 2 / 6)]
    moment = sum(p * math.exp(8 * 7 * e / (2 * 1.5**2)) for e, p in law)
    assert float(run(1.5, 6, 3, 4, RR, EPOCHS).renyi(np.array([8.0]))[0]) == pytest.approx(
        3 * math.log(moment) / 7
    )


def test_refinements_need_less_noise() -> None:
    for order in Order:
        plain = epsilon_of(run(1.0, 20, 30, 15, order, LAST), DELTA)
        shrunk = epsilon_of(run(1.0, 20, 30, 15, order, LAST, epoch_contraction=0.8), DELTA)
        bounded = epsilon_of(run(1.0, 20, 30, 15, order, LAST, diameter=1.0), DELTA)
        hardly = epsilon_of(run(1.0, 20, 30, 15, order, LAST, epoch_contraction=1 - 1e-12), DELTA)
        assert shrunk < plain
        assert bounded < plain
        assert hardly == pytest.approx(plain, rel=1e-6)
    forever = [epsilon_of(run(1.0, 20, k, None, IG, LAST, diameter=1.0), DELTA) for k in (100, 10**4)]
    assert forever[0] == pytest.approx(forever[1], rel=1e-9)


def test_a_refined_hull_holds_for_enumerated_orders() -> None:
    n, epochs, private, factor, z = 4, 3, 3, 0.7, 0.8
    c = np.ones(n * epochs)
    c[n::n] = factor
    deltas = []
    for touches in itertools.product([1, 2, 3, 0], repeat=epochs):
        shifts = np.zeros(n * epochs)
        for epoch, position in enumerate(touches):
            if position:
                shifts[epoch * n + position - 1] = 1.0
        mu = math.sqrt(least_energy(shifts, np.ones_like(shifts), c, 0.0)) / z
        deltas.append(gaussian_delta(mu, 1.0) if mu > 0 else 0.0)
    bound = delta_of(run(z, n, epochs, private, RR, LAST, epoch_contraction=factor), 1.0)
    assert float(np.mean(deltas)) <= bound <= 1.3 * float(np.mean(deltas))


def test_statements_are_checked_again_from_the_event_alone() -> None:
    event = run(1.0, 100, 10, 60, RR, LAST, epoch_contraction=0.9, diameter=40.0)
    assert event_from_json(event_to_json(event)) == event
    claim = guarantee(event, DELTA, observer="the analyst", assumptions=event.assumptions)
    verify(claim)
    said = str(claim)
    assert "only the last iterate leaves" in said
    assert "is convex with a smoothness of at most 1 / step size" in said
    assert "privacy amplification by iteration" in said
    assert len(Iteration(1.0, 5, 5).assumptions) == 1
    ends = run(1.0, 5, 5, None, RR, EPOCHS).assumptions
    assert any("ends of epochs leave" in clause for clause in ends)
    assert not any("regulariser" in clause for clause in ends)


def test_one_energy_is_one_gaussian_curve() -> None:
    epsilon = np.linspace(-5.0, 5.0, 101)
    ours, known = Iteration(0.8, 7, 3).curve(), gaussian_curve(math.sqrt(3) / 0.8)
    assert ours.delta(epsilon) == pytest.approx(known.delta(epsilon), rel=1e-9)
    assert math.isinf(ours.max_loss)
    assert ours.is_symmetric


def test_small_divergences_keep_their_digits() -> None:
    # With so much noise a divergence is alpha E(energy) / (2 z^2), far below the spacing of numbers near 1.
    law = energy_law(1000, 1, 1000, RR, EPOCHS)
    orders = np.array([1.01, 2.0, 8.0, 1e3])
    for noise in (1e6, 1e9):
        run = Iteration(
            noise, 1000, 1, order=RR, release=EPOCHS, step_times_smoothness=1.0, convex=True, clip_safe=True
        )
        exact = orders * float(law.weights @ law.energies) / (2 * noise * noise)
        assert run.renyi(orders) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("n", "private", "epochs"), [(10**6, 10**6, 7), (10**6, 1, 7), (10**4, 500, 9)])
def test_round_off_does_not_forget_the_worst_order(n: int, private: int, epochs: int) -> None:
    # It has a chance of n^-epochs, and proves what is left of deltas below the round-off.
    largest = energy_law(n, epochs, private, RR, EPOCHS).largest
    assert largest >= epochs / (n - private + 1)
    assert largest == pytest.approx(epochs / (n - private + 1), rel=1e-9)


def test_positions_that_no_float_can_tell_apart_are_refused() -> None:
    law = energy_law(2**52, 5, 3, SO, EPOCHS)
    assert float(law.weights.sum()) == pytest.approx(3 / 2**52, rel=1e-12)
    for n, epochs in ((2**52 + 1, 5), (100, 10**400)):
        with pytest.raises(ParameterError, match="must be a whole number"):
            Iteration(1.0, n, epochs)


def test_the_printed_order_lacks_a_one() -> None:
    # Jiang (2025), Table 4.3: alpha = sqrt(log(1 / delta) / A), for the least over alpha of
    # alpha A + log(1 / delta) / (alpha - 1).
    log, z = math.log(1 / DELTA), paper_noise(5.0, DELTA, n=1000, epochs=50)
    spent = 50 / (2 * z * z)
    best = 1 + math.sqrt(log / spent)
    assert best == pytest.approx(6.98767, abs=1e-5)

    def price(order: float) -> float:
        return order * spent + log / (order - 1)

    assert price(best) == pytest.approx(paper_epsilon(z, DELTA, n=1000, epochs=50), rel=1e-8)
    assert price(best) == pytest.approx(5.0, rel=1e-8)
    assert price(best - 1) == pytest.approx(5.07726, abs=1e-5)
