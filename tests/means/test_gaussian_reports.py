"""Messages with Gaussian noise of their own behind a shuffler: law, error, bits, price, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.means import BinomialMean, Facts, Message, Round, ShuffledGaussianMean, shuffle
from tacit.numerics import Array, clip_rows
from tacit.privacy import (
    DiscreteGaussian,
    PrivacyBudget,
    ShuffledGaussian,
    TrustModel,
    clones_level,
)
from tacit.privacy.pricing import delta_of, epsilon_of
from tests.statistics import FALSE_ALARM, z_bound

SHUFFLE, LOCAL = TrustModel.SHUFFLE, TrustModel.LOCAL
D, N = 4, 12
ROWS = clip_rows(np.random.default_rng(0).standard_normal((N, D)), 2.0)
ROUND = Round(n=N, radius=2.0, parties=3)


def mean(**changes: Any) -> ShuffledGaussianMean:
    return ShuffledGaussianMean(**{"dim": D, "noise_multiplier": 0.5, **changes})


def answers(one: ShuffledGaussianMean, seed: int) -> list[Message]:
    rng = np.random.default_rng(seed)
    return [
        message
        for party in range(3)
        for message in one.encode(ROWS[4 * party : 4 * party + 4], ROUND, party=party, rng=rng)
    ]


def test_every_row_is_one_message_of_whole_numbers() -> None:
    sent = answers(mean(), 1)
    assert len(sent) == N
    for message in sent:
        assert message.payload.dtype == np.float32
        assert message.payload.shape == (D,)
        assert (message.payload == np.rint(message.payload)).all()
        assert len(message.to_bytes()) * 8 == mean().bits_per_party()
    assert mean().bits_per_party(4) == 4 * mean().bits_per_party()
    # More noise than single precision has whole numbers for.
    wide = answers(mean(noise_multiplier=1e4), 1)
    assert wide[0].payload.dtype == np.float64
    assert mean(noise_multiplier=1e4).bits_per_party() == 8 * (11 + 8 * D)
    assert mean().exact


def test_a_message_has_the_law_that_is_priced() -> None:
    """Rows on the grid: discrete Gaussian noise of the parameter that the event names, by chi-square."""
    coarse = ShuffledGaussianMean(dim=1, noise_multiplier=0.75, steps=4)
    at = Round(n=1, radius=1.0)
    draws, rng = 20_000, np.random.default_rng(5)
    rows = np.full((draws, 1), 0.5)
    found = np.array([m.payload[0] for m in coarse.encode(rows, at, party=0, rng=rng)])
    values = np.arange(-30, 35)
    weights = np.exp(-((values - 2.0) ** 2) / (2 * coarse.alone.std**2))
    expected = draws * weights / weights.sum()
    counts = np.array([(found == v).sum() for v in values])
    kept = expected > 10
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > FALSE_ALARM
    assert coarse.alone.std == 2 * 4 * 0.75


def test_rounding_is_unbiased_and_moves_no_pair_further_than_is_priced() -> None:
    fine = ShuffledGaussianMean(dim=D, noise_multiplier=1e-4, steps=2)  # hardly any noise: whole steps
    rng, at = np.random.default_rng(2), Round(n=1, radius=1.0)
    x = clip_rows(rng.standard_normal((1, D)), 1.0)
    sent = fine.encode(np.repeat(x, 4000, axis=0), at, party=0, rng=rng)
    rounded = np.array([message.payload for message in sent]) / 2
    error = rounded.std(axis=0, ddof=1) / math.sqrt(4000) + 1e-12
    assert (np.abs(rounded.mean(axis=0) - x[0]) < z_bound(D) * error).all()
    for _ in range(2000):
        pair = clip_rows(rng.standard_normal((2, D)) * 3, 1.0)
        seed = int(rng.integers(2**31))
        one, other = (
            fine.encode(row[None], at, party=0, rng=np.random.default_rng(seed))[0].payload for row in pair
        )
        assert np.linalg.norm(one - other) <= fine.alone.sensitivity


def test_batches_are_unbiased_with_the_error_that_is_stated() -> None:
    one, draws = mean(), 1500
    rng = np.random.default_rng(3)
    found = np.array([one.decode(shuffle(answers(one, k), rng=rng), ROUND) for k in range(draws // 3)])
    simulated = np.array([one.estimate(ROWS, ROUND, rng=rng) for _ in range(draws)])
    truth = ROWS.mean(axis=0)
    for sample in (found, simulated):
        error = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
        assert (np.abs(sample.mean(axis=0) - truth) < z_bound(2 * D) * error).all()
        stated = one.error(N, Facts(radius=2.0)).variance
        squared = ((sample - truth) ** 2).sum(axis=1)
        spread = squared.std(ddof=1) / math.sqrt(len(sample))
        assert abs(squared.mean() - stated) < z_bound(2) * spread
    pvalues = [stats.ks_2samp(found[:, j], simulated[:, j]).pvalue for j in range(D)]
    assert min(pvalues) > FALSE_ALARM / D


def test_the_price_is_that_of_the_batch_and_of_one_message_before() -> None:
    one = mean(noise_multiplier=3.0, slack=1e-8)
    alone = DiscreteGaussian(2 * 1024 * 3.0, one.alone.sensitivity, dim=D)
    assert 2048 + math.sqrt(D) <= alone.sensitivity < 2048 + math.sqrt(D) + 1e-6
    assert one.event(1000, LOCAL) == alone
    level = clones_level(alone, 1000, 1e-8)
    assert one.event(1000, SHUFFLE) == ShuffledGaussian(alone.std, alone.sensitivity, D, 1000, level)
    fewer = mean(noise_multiplier=3.0, slack=1e-8, honest_fraction=0.8, n_min=900)
    event = fewer.event(1000, SHUFFLE)
    assert isinstance(event, ShuffledGaussian)
    assert event.parties == 700  # of those that arrive, less all who collude
    assert epsilon_of(event, 1e-6) > epsilon_of(one.event(1000, SHUFFLE), 1e-6)


def test_half_the_noise_costs_what_it_should() -> None:
    """What one message shows is exact, so that a claim for twice the noise is refuted by its own law."""
    one, half = (ShuffledGaussianMean(dim=1, noise_multiplier=z, steps=8) for z in (1.0, 0.5))
    law = {m: _hockey_stick(m.alone, 0.5) for m in (one, half)}
    assert law[one] <= delta_of(one.event(1, LOCAL), 0.5) * (1 + 1e-9)
    assert law[half] > 1.5 * delta_of(one.event(1, LOCAL), 0.5)
    assert law[half] > 1.5 * delta_of(one.event(50, SHUFFLE), 0.5)


def _hockey_stick(alone: DiscreteGaussian, epsilon: float) -> float:
    """Of two rows at the ends of the ball: 16 steps of noise apart."""
    values = np.arange(-400, 401)
    p, q = (np.exp(-((values - c) ** 2) / (2 * alone.std**2)) for c in (-8, 8))
    return float(np.maximum(p / p.sum() - math.exp(epsilon) * q / q.sum(), 0.0).sum())


def test_calibrated_meets_its_budget_and_no_more_than_that() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    found = ShuffledGaussianMean.calibrated(dim=10, budget=budget, n=2000)
    assert 0.999 < epsilon_of(found.event(2000, SHUFFLE), 1e-6) <= 1.0
    assert found.slack == pytest.approx(0.05e-6)
    # Sums of bits are far more accurate; a message of theirs alone hides nothing.
    sums = BinomialMean.calibrated(budget, 2000, 10)
    assert found.error(2000).variance > 50 * sums.error(2000).variance
    assert epsilon_of(found.event(1, LOCAL), 1e-6) < 5
    assert epsilon_of(sums.event(1, LOCAL), 1e-6) == math.inf
    with pytest.raises(BudgetError):
        ShuffledGaussianMean.calibrated(dim=10, budget=PrivacyBudget(1.0, 0.0), n=2000)


def test_too_few_rows_are_not_decoded() -> None:
    sent = answers(mean(), 1)
    with pytest.raises(RefusalError, match="hide each other less than is priced"):
        mean().decode(sent[:-1], ROUND)
    mean(n_min=11).decode(sent[:-1], ROUND)
    bad: Array = np.full(D, np.nan, dtype=np.float32)
    with pytest.raises(ParameterError, match="finite numbers"):
        mean(n_min=1).decode([Message(payload=bad)], ROUND)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": math.inf}, "noise_multiplier"),
        ({"noise_multiplier": 1e12}, "must leave room for 40 deviations"),
        ({"slack": 0.0}, "slack"),
        ({"slack": 1.0}, "slack"),
        ({"steps": 0}, "steps"),
        ({"steps": 2**21}, "steps"),
        ({"trust": LOCAL}, "trust must be shuffle"),
        ({"dim": 0}, "dim"),
        ({"n_min": 0}, "n_min"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mean(**changes)
