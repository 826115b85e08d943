from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import HadamardMean, Message, Round
from tacit.numerics import Array, hadamard_matrix
from tacit.privacy import PrivacyBudget, PureDP, Shuffled, TrustModel, epsilon_of, hockey_stick
from tests.contract.randomized_cases import symbol_laws
from tests.statistics import z_bound

ONE = Round(n=1, radius=1.0)


def test_the_variance_of_one_vector() -> None:
    mean, facts = HadamardMean(dim=8, local_epsilon=1.0), Round(n=1, radius=2.0)
    x = np.array([[0.5, -0.7, 0, 0.3, 0, 0, 0.2, -0.1]])
    assert mean.variance_on(x, facts) == pytest.approx(148.966220, abs=5e-7)
    rng, trials = np.random.default_rng(1), 4000
    squares = np.array([((mean.estimate(x, facts, rng=rng) - x[0]) ** 2).sum() for _ in range(trials)])
    tolerance = z_bound(1) * squares.std() / math.sqrt(trials)
    assert abs(squares.mean() - 148.966220) <= tolerance < 3


@pytest.mark.parametrize(("epsilon", "square"), [(0.5, 16.670792), (1.0, 4.682694), (2.0, 1.724062)])
def test_the_largest_error(epsilon: float, square: float) -> None:
    assert HadamardMean(dim=8, local_epsilon=epsilon).error(4).variance == pytest.approx(2 * square, abs=4e-6)


@pytest.mark.parametrize("dim", [1, 3, 4])
def test_unbiased_with_the_stated_variance_by_enumeration(dim: int) -> None:
    mean = HadamardMean(dim=dim, local_epsilon=1.0)
    half = mean.coded_dim
    vectors = set()
    for row in product((-1.0, 0.0, 0.2), repeat=dim):
        x = np.array(row) / max(1.0, np.abs(row).sum())
        (law,), moment, square = symbol_laws(mean, x), np.zeros(dim), 0.0
        assert sum(law) == pytest.approx(1, rel=1e-14)
        for symbol, prob in enumerate(law):
            width = (len(law) - 1).bit_length()
            found = mean.decode([Message(payload=np.array([symbol - half]), width=width)], ONE)
            moment += prob * found
            square += prob * float(((found - x) ** 2).sum())
            vectors.add(tuple(found.round(9).tolist()))
        assert moment == pytest.approx(x, abs=1e-12)
        assert square == pytest.approx(mean.variance_on(x[None], ONE), rel=1e-10)
    if dim == mean.coded_dim:  # the first entries of +-H[:, j] are all different
        assert len(vectors) == 2 * dim


@pytest.mark.parametrize(("epsilon", "level"), [(0.1, 0.843966), (0.5, 2.514170), (1.0, 3.495508)])
def test_shuffled_calibration(epsilon: float, level: float) -> None:
    budget, trust = PrivacyBudget(epsilon, 1e-5), TrustModel.SHUFFLE
    mean = HadamardMean.calibrated(dim=5, budget=budget, n=1000, trust=trust)
    assert mean.local_epsilon == pytest.approx(level, abs=2e-6)
    assert mean.event(1000, trust) == Shuffled(mean.local_epsilon, 1000, "2rr")
    assert mean.event(1000, TrustModel.LOCAL) == PureDP(mean.local_epsilon)


def test_the_constant_of_theorem_3_4_2_is_not_sound() -> None:
    # d = 1, n = 10^4, level 1, delta = 1e-10: it claims 0.047985, but where all others hold -1, the number of
    # positive signs tells more (Girgis 2023, Theorem 3.4.2).
    n, delta = 10_000, 1e-10
    claimed = math.sqrt(math.log(1 / delta) / n)
    assert claimed == pytest.approx(0.047985, abs=1e-6)
    p = 1 / (1 + math.e)
    others = stats.binom.logpmf(np.arange(n), n - 1, p)

    def law(one: float) -> Array:
        without, with_it = np.append(others, -np.inf), np.append(-np.inf, others)
        return np.asarray(np.logaddexp(without + math.log1p(-one), with_it + math.log(one)))

    pair = law(p), law(1 - p)
    assert hockey_stick(*pair, claimed) > delta
    assert hockey_stick(*pair, 0.056484 * (1 - 1e-4)) > delta > hockey_stick(*pair, 0.056484 * (1 + 1e-4))
    assert epsilon_of(Shuffled(1.0, n, "2rr"), delta) >= 0.056483


def test_each_symbol_means_its_column() -> None:
    mean, gap = HadamardMean(dim=4, local_epsilon=1.0), math.tanh(0.5)
    for j, bit in product(range(4), (0, 1)):
        message = Message(payload=np.array([2 * j + bit - 4]), width=3)
        wanted = (2 * bit - 1) * hadamard_matrix(4)[j] / gap
        assert mean.decode([message], ONE) == pytest.approx(wanted, rel=1e-12)


def test_bits_and_bad_parameters() -> None:
    assert HadamardMean(dim=1000, local_epsilon=1.0).bits_per_party(8) == 8 * 11 + 8 * 11
    for level in (0.0, -1.0, math.nan, 31.0):
        with pytest.raises(ParameterError, match="local_epsilon must be in"):
            HadamardMean(dim=2, local_epsilon=level)
    with pytest.raises(ParameterError, match="dim must be a whole number from 1"):
        HadamardMean(dim=0, local_epsilon=1.0)


def test_a_ball_of_another_norm_is_not_inside_of_the_l1_ball() -> None:
    # Girgis (2023), Remark 3.4.1: (1, 1) / sqrt(2) has L2 norm 1 and L1 norm sqrt(2). As printed, the odds of
    # one of its signs cost 1.563 at level 1. Rows are clipped to the L1 ball, which keeps the level.
    mean, gap, row = HadamardMean(dim=2, local_epsilon=1.0), math.tanh(0.5), np.full(2, 0.5**0.5)
    high, low = (0.5 + side * math.sqrt(2) * gap / 2 for side in (1, -1))
    assert math.log(high / low) == pytest.approx(1.562880, abs=1e-6)
    here, there = (np.array(symbol_laws(mean, side * row)) for side in (1, -1))
    assert np.abs(np.log(here / there)).max() == pytest.approx(1.0, rel=1e-12)
    assert mean.variance_on(row[None], ONE) == pytest.approx(
        2 / gap**2 - 0.5, rel=1e-12
    )  # that of (1, 1) / 2
