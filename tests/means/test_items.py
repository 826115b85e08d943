"""Answers of rows that name items: exact laws, prices behind a shuffler, and errors."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.frequencies import make_oracle
from tacit.means import HadamardMean, ItemMean, Message, Round
from tacit.mechanisms import HadamardRandomizer, KaryRandomizedResponse
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, delta_of
from tests.statistics import FALSE_ALARM

LOCAL, SHUFFLE = TrustModel.LOCAL, TrustModel.SHUFFLE


def channel(response: str, level: float, values: int) -> Array:
    """The law of the symbol of every value, by the mechanism's own probabilities."""
    kind: Any = KaryRandomizedResponse if response == "krr" else HadamardRandomizer
    answers = kind(level, values)
    many = answers.symbols if response == "hr" else values
    return np.array([[math.exp(answers.log_pmf(y, x)) for y in range(many)] for x in range(values)])


@pytest.mark.parametrize("response", ["krr", "hr"])
def test_a_message_names_an_item_with_its_share_and_the_level_is_attained(response: str) -> None:
    mean = ItemMean(dim=3, local_epsilon=1.0, response=response)  # type: ignore[arg-type]
    Q = channel(response, 1.0, 4)
    assert Q.sum(axis=1) == pytest.approx([1] * 4)
    assert np.log(Q.max(axis=0) / Q.min(axis=0)).max() == pytest.approx(1.0, rel=1e-9)
    assert mean.pure_epsilon == 1.0
    row, n = np.array([0.5, 0.2, -0.1]), 40_000
    (sent,) = mean.encode(np.tile(row, (n, 1)), Round(n=n, radius=1.0), party=0, rng=np.random.default_rng(0))
    symbols = np.bincount(sent.payload + 2 ** (sent.width - 1), minlength=Q.shape[1]) / n
    law = np.array([0.5, 0.2, 0.0, 0.3]) @ Q
    assert np.abs(symbols - law).max() < math.sqrt(math.log(2 * len(law) / FALSE_ALARM) / (2 * n))


@pytest.mark.parametrize("response", ["krr", "hr"])
def test_estimates_are_unbiased_and_the_variance_is_bounded(response: str) -> None:
    """By the law itself: the mean of what a symbol decodes to, and its largest squared error."""
    d, facts = 5, Round(n=1, radius=1.0)
    mean = ItemMean(dim=d, local_epsilon=2.0, response=response)  # type: ignore[arg-type]
    Q = channel(response, 2.0, d + 1)
    width = mean.randomizer.width
    decoded = np.array(
        [
            mean.decode([Message(payload=np.array([y]) - 2 ** (width - 1), width=width, sender=0)], facts)
            for y in range(Q.shape[1])
        ]
    )
    assert Q @ decoded == pytest.approx(np.vstack([np.eye(d), np.zeros(d)]), abs=1e-9)
    rows = [*np.eye(d), np.zeros(d), np.full(d, 1 / d)]
    laws = [*Q, Q[:d].mean(axis=0)]
    variances = [
        float(law @ np.square(decoded - row).sum(axis=1)) for law, row in zip(laws, rows, strict=True)
    ]
    bound = mean.error(1).variance
    assert max(variances) <= bound * (1 + 1e-9)
    assert max(variances) > (0.999 if response == "krr" else 0.8) * bound


@pytest.mark.parametrize("response", ["krr", "hr"])
def test_shuffled_answers_are_within_their_price_and_half_the_noise_is_not(response: str) -> None:
    """Three rows of three kinds, written out, whatever the others hold; rows that name none are one."""
    epsilon, level, values = 0.3, 1.0, 3

    def worst(level: float) -> float:
        Q, found = channel(response, level, values), 0.0
        for others in itertools.combinations_with_replacement(range(values), 2):
            laws = []
            for mine in range(values):
                law: Counter[tuple[int, ...]] = Counter()
                for sent in itertools.product(range(Q.shape[1]), repeat=3):
                    p = Q[mine, sent[0]] * Q[others[0], sent[1]] * Q[others[1], sent[2]]
                    law[tuple(sorted(sent))] += p
                laws.append(law)
            for P, R in itertools.permutations(laws, 2):
                found = max(found, sum(max(P[m] - math.exp(epsilon) * R[m], 0.0) for m in P))
        return found

    mean = ItemMean(dim=values - 1, local_epsilon=level, response=response, trust=SHUFFLE)  # type: ignore[arg-type]
    claimed = delta_of(mean.event(3, SHUFFLE), epsilon)
    assert 0.3 * claimed < worst(level) <= claimed * (1 + 1e-9)
    assert worst(2 * level) > claimed


def test_an_attack_on_one_message_stands_and_breaks_twice_the_level() -> None:
    """ItemMean behind a shuffler, too: whoever sees a message before learns its level and no more."""
    n, facts = 40_000, Round(n=40_000, radius=1.0)
    off = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))
    for response in ("krr", "hr"):
        for level, caught in ((1.0, False), (2.0, True)):
            mean = ItemMean(dim=4, local_epsilon=level, response=response)
            seen: list[Array] = []
            for row in (np.eye(4)[0], -np.eye(4)[0]):  # what is below zero names nothing
                (sent,) = mean.encode(
                    np.tile(row, (n, 1)), facts, party=0, rng=np.random.default_rng(len(seen))
                )
                seen.append(np.bincount(sent.payload + 2 ** (sent.width - 1), minlength=16) / n)
            likely = seen[0] > 1.5 * seen[1]
            one, other = float(seen[0][likely].sum()), float(seen[1][likely].sum())
            found = math.log(max(one - off, 1e-12) / (other + off))
            assert (found > 1.0) is caught


def test_it_is_the_oracle_of_one_value_more_and_far_better_than_one_bit_behind_a_shuffler() -> None:
    n, k = 100_000, 50
    budget = PrivacyBudget(1.0, 1e-6)
    mean = ItemMean.calibrated(dim=k, budget=budget, n=n, trust=SHUFFLE)
    bit = HadamardMean.calibrated(dim=k, budget=budget, n=n, trust=SHUFFLE)
    assert mean.error(n).variance < 0.3 * bit.error(n).variance
    oracle = make_oracle("krr", k + 1, mean.local_epsilon)
    assert oracle.name == mean.randomizer.law
    # But for the value more, whose estimate is not one of the k.
    last = float(oracle.variances(n, np.r_[np.full(k, 1 / k), 0])[-1])
    exact = oracle.frequency_mse(n, np.r_[np.full(k, 1 / k), 0]) - last
    assert mean.item_variance(n) == pytest.approx(exact, rel=1e-6)
    assert mean.item_variance(n) < 0.03 * bit.variance_on(np.eye(k)[np.arange(n) % k], Round(n=n, radius=1.0))


def test_fields_out_of_range_are_refused() -> None:
    for fields, said in (
        ({"response": "oue"}, "response must be one of krr, hr"),
        ({"local_epsilon": 0.0}, "local_epsilon"),
        ({"dim": 0}, "dim must be"),
        ({"trust": TrustModel.CENTRAL}, "trust must be"),
    ):
        usual: dict[str, Any] = {"dim": 3, "local_epsilon": 1.0}
        with pytest.raises(ParameterError, match=said):
            ItemMean(**(usual | fields))
