"""Answers about one column, and histograms of a trusted server."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import FrequenciesQuery, NoisyHistogram, estimate_frequencies
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Neighbours,
    PrivacyBudget,
    PureDP,
    Relation,
    Shuffled,
    TrustModel,
    delta_of,
    epsilon_of,
)
from tacit.randomness import secure, simulated
from tests.statistics import FALSE_ALARM, z_bound

VALUES = np.repeat([0, 1, 2], [500, 300, 200])


def test_a_histogram_has_the_noise_that_its_price_needs() -> None:
    pure = NoisyHistogram.calibrated(k=10, budget=PrivacyBudget(0.5))
    assert pure.scale == pytest.approx(4.0)
    assert not pure.gaussian
    assert isinstance(pure.event(), DiscreteLaplace)
    some = NoisyHistogram.calibrated(k=10, budget=PrivacyBudget(0.5, 1e-2))
    assert some.gaussian
    assert isinstance(some.event(), DiscreteGaussian)
    assert some.std < pure.std
    few = NoisyHistogram.calibrated(k=10, budget=PrivacyBudget(0.5, 1e-12))
    assert not few.gaussian  # one row moves two counts only
    for one, delta in ((pure, 0.0), (some, 1e-2), (few, 1e-12)):
        assert 0.4999 < epsilon_of(one.event(), delta) <= 0.5


def test_the_histogram_of_two_values_is_private_by_enumeration() -> None:
    # Two counts, each with discrete Laplace noise; a row moves from one to the other.
    histogram = NoisyHistogram(k=2, scale=2.0)
    x = np.arange(-60, 61)
    law = stats.dlaplace.pmf(x, 1 / histogram.scale)
    joint = np.outer(law, law)
    moved = np.roll(np.roll(joint, 1, axis=0), -1, axis=1)
    loss = np.log(joint[2:-2, 2:-2] / moved[2:-2, 2:-2])
    assert np.abs(loss).max() == pytest.approx(epsilon_of(histogram.event(), 0.0), rel=1e-9)
    # Negative control: half of the noise.
    law = stats.dlaplace.pmf(x, 2 / histogram.scale)
    joint = np.outer(law, law)
    moved = np.roll(np.roll(joint, 1, axis=0), -1, axis=1)
    assert np.abs(np.log(joint[2:-2, 2:-2] / moved[2:-2, 2:-2])).max() > 1.9


def test_gaussian_histograms_of_two_values_are_priced_above_their_law() -> None:
    histogram = NoisyHistogram(k=2, scale=2.0, gaussian=True)
    x = np.arange(-40, 41)
    law = np.exp(-(x**2) / 8)
    joint = np.outer(law, law) / law.sum() ** 2
    moved = np.roll(np.roll(joint, 1, axis=0), -1, axis=1)
    for epsilon in (0.2, 0.7, 1.5):
        exact = float(np.maximum(joint - math.exp(epsilon) * moved, 0.0)[1:-1, 1:-1].sum())
        assert exact <= delta_of(histogram.event(), epsilon) <= 10 * exact
        # Negative control: a row that is counted as if it moved one count only.
        assert exact > delta_of(DiscreteGaussian(2.0, 1.0, Neighbours(), 2), epsilon)


@pytest.mark.parametrize("gaussian", [False, True])
def test_histograms_err_as_stated_and_their_intervals_hold(gaussian: bool) -> None:
    histogram = NoisyHistogram(k=40, scale=3.0, gaussian=gaussian)
    rng, runs = np.random.default_rng(3), 200
    held = np.bincount(VALUES, minlength=40)
    counts = np.array([histogram.counts(VALUES, rng) for _ in range(runs)])
    errors = (counts - held) / 1000
    spread = (errors**2).sum(axis=1).mean() / histogram.mse(1000)
    assert abs(spread - 1) < z_bound(1) * math.sqrt(5 / (40 * runs))
    missed = 0
    for one in counts:
        band = histogram.band(one, 1000, 0.9)
        missed += bool(np.any((held / 1000 < band.lower) | (held / 1000 > band.upper)))
    assert stats.binomtest(missed, runs, 0.1, alternative="greater").pvalue > FALSE_ALARM


def test_prices_are_those_of_what_is_seen() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    local = FrequenciesQuery.calibrated(k=5, n=1000, budget=PrivacyBudget(1.0))
    assert local.price.event == PureDP(1.0)
    assert local.price_alone is None
    assert local.price.observer == "an observer of every record's own message"
    mixed = FrequenciesQuery.calibrated(k=5, n=1000, budget=budget, trust=TrustModel.SHUFFLE)
    assert isinstance(mixed.price.event, Shuffled)
    assert mixed.price.epsilon <= 1
    assert mixed.price_alone is not None
    assert mixed.price_alone.epsilon > 2
    assert mixed.mse < local.mse / 4
    central = FrequenciesQuery.calibrated(k=5, n=1000, budget=budget, trust=TrustModel.CENTRAL)
    assert (central.mechanism, central.message_bits, central.random_bits) == ("histogram", 3, 0)
    assert central.mse < mixed.mse < local.mse


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL])
def test_answers_hold_the_frequencies(trust: TrustModel) -> None:
    budget = PrivacyBudget(2.0, 1e-6 if trust is TrustModel.SHUFFLE else 0.0)
    query = FrequenciesQuery.calibrated(k=4, n=1000, budget=budget, trust=trust)
    found = estimate_frequencies(VALUES, query, confidence=1 - 1e-7, rng=simulated(1, "test"))
    truth = np.bincount(VALUES, minlength=4) / 1000
    assert np.all((found.band.lower <= truth) & (truth <= found.band.upper))
    assert found.guarantee.simulated
    assert not estimate_frequencies(VALUES, query, rng=secure()).guarantee.simulated
    with pytest.raises(ParameterError, match=r"values must have shape \(1000,\)"):
        estimate_frequencies(VALUES[:-1], query, rng=secure())
    with pytest.raises(ParameterError, match="confidence must be in"):
        estimate_frequencies(VALUES, query, confidence=1.0, rng=secure())


def test_behind_a_shuffler_the_error_falls_by_the_predicted_factor() -> None:
    k, n = 8, 20_000
    local = FrequenciesQuery.calibrated(k=k, n=n, budget=PrivacyBudget(0.5), mechanism="bh")
    mixed = FrequenciesQuery.calibrated(
        k=k, n=n, budget=PrivacyBudget(0.5, 1e-6), trust=TrustModel.SHUFFLE, mechanism="bh"
    )
    values, rng, runs = np.arange(n) % k, np.random.default_rng(2), 60
    measured = [
        np.mean([((query.answer(values, rng=rng)[0] - 1 / k) ** 2).sum() for _ in range(runs)])
        for query in (local, mixed)
    ]
    predicted = local.mse / mixed.mse
    assert predicted > 10
    assert measured[0] / measured[1] == pytest.approx(
        predicted, rel=z_bound(2) * 2 * math.sqrt(2 / (runs * k))
    )


def test_bad_questions_are_refused() -> None:
    budget = PrivacyBudget(1.0)
    with pytest.raises(ParameterError, match="replace-one for frequencies"):
        FrequenciesQuery.calibrated(k=4, n=10, budget=budget, neighbours=Neighbours(Relation.ADD_REMOVE))
    with pytest.raises(ParameterError, match="parties must have 10 units together, got 0"):
        FrequenciesQuery.calibrated(k=4, n=10, budget=budget, trust=TrustModel.AGGREGATE)
    with pytest.raises(ParameterError, match="delta must be > 0 under shuffle trust"):
        FrequenciesQuery.calibrated(k=4, n=10, budget=budget, trust=TrustModel.SHUFFLE)
    with pytest.raises(ParameterError, match="for clients who randomise"):
        FrequenciesQuery.calibrated(k=4, n=10, budget=budget, trust=TrustModel.CENTRAL, max_message_bits=3)
    with pytest.raises(ParameterError, match="confidence must leave 1e-9"):
        NoisyHistogram(k=100, scale=1.0).band(np.zeros(100, dtype=int), 10, 1 - 1e-8)
    with pytest.raises(ParameterError, match="scale must be"):
        NoisyHistogram(k=4, scale=0.0)
