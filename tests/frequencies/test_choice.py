from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError, UnknownNameError
from tacit.frequencies import MECHANISMS, FrequenciesQuery, NoisyHistogram, choose_mechanism, make_oracle
from tacit.privacy import PrivacyBudget, TrustModel, calibrate, epsilon_of

LOCAL, SHUFFLE, CENTRAL = TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL


@pytest.mark.parametrize(
    ("k", "epsilon", "n", "trust"),
    [
        (4, 0.5, 4000, LOCAL),
        (4, 3.0, 4000, LOCAL),
        (50, 1.0, 4000, LOCAL),
        (200, 4.0, 2000, LOCAL),
        (20, 1.0, 4000, SHUFFLE),
        (200, 0.2, 4000, SHUFFLE),
    ],
)
def test_the_pick_has_the_least_measured_error(k: int, epsilon: float, n: int, trust: TrustModel) -> None:
    ranked = choose_mechanism(k, epsilon, n, delta=1e-6 if trust is SHUFFLE else 0.0, trust=trust)
    assert {one.name for one in ranked} == set(MECHANISMS)
    assert all(one.mse <= other.mse * (1 + 1e-8) for one, other in itertools.pairwise(ranked))
    rng = np.random.default_rng(31)
    values = rng.integers(0, k, n)
    held = np.bincount(values, minlength=k) / n
    measured = {}
    for one in ranked:
        runs = 40 if k < 100 else 10
        errors = [one.oracle.estimate(one.oracle.collect(values, rng)) - held for _ in range(runs)]
        measured[one.name] = float(np.mean([(error**2).sum() for error in errors]))
        # A squared error is a sum of about k squares of nearly normal numbers.
        assert measured[one.name] == pytest.approx(one.mse, rel=6 * math.sqrt(2 / (runs * (k - 1))))
    best = min(measured.values())
    assert measured[ranked[0].name] <= best * (1 + 0.05 + 4 * math.sqrt(2 / (40 * (k - 1))))


def test_bounds_on_bits_are_kept() -> None:
    few = choose_mechanism(1000, 1.0, 100_000, max_random_bits=0.5)
    assert [one.name for one in few] == ["bh"]
    assert few[0].random_bits <= 0.5
    short = choose_mechanism(1000, 1.0, 100_000, max_message_bits=10)
    assert {one.name for one in short} == {"hr", "rhr", "krr"}
    one_bit = choose_mechanism(1000, 1.0, 100_000, max_message_bits=1, independent=True)
    assert [(one.name, one.message_bits) for one in one_bit] == [("bh", 1)]
    few_draws = choose_mechanism(1000, 1.0, 100_000, max_draws=1e7)
    assert {one.name for one in few_draws} == {"bh", "hr", "rhr", "krr"}
    with pytest.raises(BudgetError, match="no mechanism keeps to max_random_bits=None, max_message_bits=1"):
        choose_mechanism(1000, 1.0, 100_000, max_message_bits=1)


def test_behind_a_shuffler_messages_say_more_and_cost_no_more() -> None:
    n, delta = 20_000, 1e-6
    ranked = choose_mechanism(50, 0.5, n, delta=delta, trust=SHUFFLE)
    local = {one.name: one.mse for one in choose_mechanism(50, 0.5, n)}
    for one in ranked:
        spent = epsilon_of(one.oracle.event(n, SHUFFLE), delta)
        assert 0.4999 < spent <= 0.5
        assert one.oracle.epsilon > 2.0
        assert one.mse < local[one.name] / 10
    assert ranked[0].mse < min(local.values()) / 1000


def noisy(k: int, budget: PrivacyBudget, *, gaussian: bool) -> NoisyHistogram:
    """Return the histogram of the least noise of one kind."""

    def at(scale: float) -> NoisyHistogram:
        return NoisyHistogram(k=k, scale=scale, gaussian=gaussian)

    return at(calibrate(lambda scale: at(scale).event(), budget))


@pytest.mark.parametrize("budget", [PrivacyBudget(1.0), PrivacyBudget(1.0, 1e-6), PrivacyBudget(0.01, 0.05)])
def test_a_trusted_server_adds_the_noise_of_the_least_measured_error(budget: PrivacyBudget) -> None:
    n, k, rng = 1000, 50_000, np.random.default_rng(5)
    query = FrequenciesQuery.calibrated(k=k, n=n, budget=budget, trust=CENTRAL)
    values = np.arange(n)
    held = np.bincount(values, minlength=k)

    def error(histogram: NoisyHistogram) -> float:
        return float((((histogram.counts(values, rng) - held) / n) ** 2).sum())

    # Fourth moments of Laplace noise are six variances squared: one standard deviation is 1 %.
    assert isinstance(query.oracle, NoisyHistogram)
    measured = error(query.oracle)
    assert measured == pytest.approx(query.mse, rel=0.06)
    for gaussian in {False, budget.delta > 0}:
        assert measured <= error(noisy(k, budget, gaussian=gaussian)) * (1.05 + 0.08)


def test_a_shuffler_lessens_the_error_by_the_factor_that_is_predicted() -> None:
    n, k, rng = 1_000_000, 1000, np.random.default_rng(8)
    values = np.random.default_rng(9).integers(0, k, n)
    held = np.bincount(values, minlength=k) / n
    measured, predicted = [], []
    for trust, budget in ((LOCAL, PrivacyBudget(1.0)), (SHUFFLE, PrivacyBudget(1.0, 1e-6))):
        query = FrequenciesQuery.calibrated(k=k, n=n, budget=budget, trust=trust)
        errors = [query.answer(values, rng=rng)[0] - held for _ in range(4)]
        measured.append(math.sqrt(np.mean([(error**2).sum() for error in errors])))
        predicted.append(math.sqrt(query.mse))
    # 4000 squares on either side: one standard deviation of the ratio is 1.6 %, and 10 % are six of them.
    assert measured[0] / measured[1] == pytest.approx(predicted[0] / predicted[1], rel=0.1)
    assert predicted[0] / predicted[1] > 200


def test_names_and_bad_input() -> None:
    for name in MECHANISMS:
        oracle = make_oracle(name, 5, 1.0)
        assert oracle.k == 5
        assert oracle.name == f"{name}:5"
    with pytest.raises(UnknownNameError, match="mechanism must be one of bh, hr"):
        make_oracle("olh", 5, 1.0)
    with pytest.raises(ParameterError, match="max_random_bits must be a finite number > 0"):
        choose_mechanism(5, 1.0, 10, max_random_bits=0.0)
    with pytest.raises(ParameterError, match="max_message_bits must be a whole number"):
        choose_mechanism(5, 1.0, 10, max_message_bits=0)
    with pytest.raises(ParameterError, match="trust must be local or shuffle"):
        choose_mechanism(5, 1.0, 10, trust=TrustModel.CENTRAL)
