"""Published and derived numbers of every mechanism, and what is wrong with printed ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.frequencies import BinaryHadamard, HadamardResponse, KaryResponse, SubsetSelection, UnaryEncoding
from tacit.numerics import binary_entropy
from tacit.privacy import TrustModel
from tests.statistics import z_bound

P = [0.4, 0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    ("epsilon", "random_bits", "scaled"),
    [
        (1.0, 1.0, 17.530777507),
        (1.0, 0.7, 144.561951197),
        (1.0, 0.1, 2471.740189628),
        (0.5, 1.0, 65.483169425),
    ],
)
def test_binary_hadamard_in_blocks(epsilon: float, random_bits: float, scaled: float) -> None:
    oracle = BinaryHadamard(
        k=4, epsilon=epsilon, random_bits=random_bits, assignment="blocks", skip_constant=False
    )
    for n in (4, 400):
        assert n * oracle.mse(n, P) == pytest.approx(scaled, rel=1e-9)


def test_binary_hadamard_without_the_constant_column() -> None:
    oracle = BinaryHadamard(k=4, epsilon=1.0, assignment="blocks")
    assert 300 * oracle.mse(300, P) == pytest.approx(10.386062348, rel=1e-9)
    # Drawn columns: every agreement counts, over independent rows.
    a = 1 / math.tanh(0.5)
    constant = BinaryHadamard(k=4, epsilon=1.0, skip_constant=False)
    assert constant.mse(1, P) == pytest.approx(4 * a**2 - np.dot(P, P), rel=1e-12)
    assert constant.frequency_mse(1, P) == pytest.approx(4 * a**2 - 1, rel=1e-12)
    skipping = BinaryHadamard(k=4, epsilon=1.0)
    expected = 4 * (0.75 * a) ** 2 - 0.75**2 - 3 * 0.25**2
    assert skipping.frequency_mse(1, P) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "scaled"), [(1.0, 4681.6944), (0.5, 16669.7924), (3.0, 1219.5640)])
def test_a_thousand_values_in_blocks(epsilon: float, scaled: float) -> None:
    oracle = BinaryHadamard(k=1000, epsilon=epsilon, assignment="blocks", skip_constant=False)
    assert 2048 * oracle.mse(2048) == pytest.approx(scaled, abs=6e-5)


def test_columns_in_turn() -> None:
    oracle = BinaryHadamard(k=4, epsilon=1.0, assignment="blocks", skip_constant=False)
    # The published sets: column j holds the values x with entry +1.
    rng = np.random.default_rng(3)
    sure = BinaryHadamard(k=4, epsilon=30.0, assignment="blocks", skip_constant=False)
    for column, inside in enumerate([{0, 1, 2, 3}, {0, 2}, {0, 1}, {0, 3}]):
        messages = sure.encode(np.arange(4), rng, first=column)
        columns = (np.arange(4) + column) % 4
        assert (messages >> 1 == columns).all()
        found = {int(x) for x in range(4) if sure.encode([x], rng, first=column)[0] & 1}
        assert found == inside
    # s_j = q e^-epsilon + q (1 - e^-epsilon) p(B^j).
    law = oracle.message_law(np.array(P)).reshape(4, 2)
    assert 4 * law[:, 1] == pytest.approx([0.73105858, 0.54621172, 0.59242343, 0.5], abs=6e-9)
    # Groups differ by one client at most, wherever a stream is cut.
    parts = oracle.collect(np.zeros(6, dtype=int), rng) + oracle.collect(np.zeros(5, dtype=int), rng, first=6)
    assert sorted(parts.values.reshape(4, 2).sum(axis=1).tolist()) == [2, 3, 3, 3]


def test_blocks_need_a_client_a_column_and_independent_rows() -> None:
    oracle = BinaryHadamard(k=1000, epsilon=1.0, assignment="blocks")
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="an answer for each of 1023 columns, got 1000 messages"):
        oracle.estimate(oracle.collect(np.zeros(1000, dtype=int), rng))
    with pytest.raises(ParameterError, match="n must be at least 1023"):
        oracle.mse(1000)
    with pytest.raises(ParameterError, match="'random' for an error against fixed rows"):
        oracle.frequency_mse(2000)
    with pytest.raises(ParameterError, match="'random' under shuffle trust"):
        oracle.event(2000, TrustModel.SHUFFLE)
    with pytest.raises(ParameterError, match="assignment must be one of random, blocks"):
        BinaryHadamard(k=4, epsilon=1.0, assignment="rows")  # type: ignore[arg-type]


def test_few_random_bits_cost_one_over_q_and_not_its_square() -> None:
    # Errata of Theorems 7.3.1 and 7.3.2: the order in the randomness is 1 / p_R.
    errors, heads = [], []
    for bits in (1e-3, 1e-5):
        oracle = BinaryHadamard(
            k=256, epsilon=1.0, random_bits=bits, assignment="blocks", skip_constant=False
        )
        errors.append(256 * oracle.mse(256))
        heads.append(oracle.response.one_prob)
        e = math.e
        assert errors[-1] == pytest.approx(2 * 256 * e * (e + 1) / (heads[-1] * (e - 1) ** 2), rel=0.01)
    assert errors[1] / errors[0] == pytest.approx(heads[0] / heads[1], rel=0.01)
    # The threshold is right: more bits than that of randomized response change nothing.
    full = binary_entropy(1 / (1 + math.e))
    more, enough, fewer = (
        BinaryHadamard(k=16, epsilon=1.0, random_bits=bits).mse(1) / 16 for bits in (1.0, full, full - 1e-6)
    )
    assert more == enough
    assert fewer > 3 * enough


def test_a_printed_lower_bound_is_beaten() -> None:
    # Erratum: at k = 16, epsilon = 1, R = 0.01 the printed lower bound exceeds what its own mechanism has.
    oracle = BinaryHadamard(k=16, epsilon=1.0, random_bits=0.01, assignment="blocks", skip_constant=False)
    assert oracle.mse(10**7) == pytest.approx(1.309466e-2, rel=1e-3)
    assert oracle.mse(10**7) < 1.244226e-1
    rng = np.random.default_rng(8)
    p = np.full(16, 1 / 16)
    found = [((oracle.estimate(oracle.simulate(p, 10**6, rng)) - p) ** 2).sum() for _ in range(200)]
    assert np.mean(found) == pytest.approx(0.134, rel=0.1)


def test_k_ary_and_unary() -> None:
    for epsilon, kary, rappor in (
        (0.5, 38.463412573, 64.367705755),
        (1.0, 8.256222889, 16.370792356),
        (3.0, 1.047317887, 2.178841896),
    ):
        assert KaryResponse(k=4, epsilon=epsilon).mse(1, P) == pytest.approx(kary, rel=1e-9)
        symmetric = UnaryEncoding(k=4, epsilon=epsilon, symmetric=True)
        assert symmetric.mse(1, P) == pytest.approx(rappor, rel=1e-9)
    assert KaryResponse(k=1000, epsilon=1.0).mse(1) == pytest.approx(339521.98, abs=6e-3)
    assert KaryResponse(k=10, epsilon=1.0).entropy_bits == pytest.approx(3.216028, abs=6e-7)
    assert KaryResponse(k=1000, epsilon=1.0).entropy_bits == pytest.approx(9.964346, abs=6e-7)


def test_the_randomness_of_rappor_is_that_of_half_the_level() -> None:
    # Erratum of Table 7.1: the printed formula is the entropy of answers at twice the level.
    for epsilon, bits in ((1.0, 956.286539), (0.5, 988.816393)):
        oracle = UnaryEncoding(k=1000, epsilon=epsilon, symmetric=True)
        assert oracle.entropy_bits == pytest.approx(bits, abs=6e-7)
    printed = 1000 * binary_entropy(1 / (1 + math.e))
    assert printed == pytest.approx(839.941538, abs=6e-7)
    assert printed < UnaryEncoding(k=1000, epsilon=1.0, symmetric=True).entropy_bits


@pytest.mark.parametrize(
    ("k", "epsilon", "shape", "entropy", "scaled"),
    [
        (3, math.log(3), (2, 4), 2.792481, 17.6667),
        (7, 1.0, (2, 8), 3.829772, 50.2672),
        (10, 1.0, (2, 8), 3.829772, 57.9371),
        (10, 3.0, (16, 2), 3.973150, 5.3816),
        (100, 1.0, (2, 64), 6.829772, 564.9865),
        (100, 4.0, (32, 8), 6.198479, 23.3162),
        (1000, 1.0, (2, 512), 9.829772, 5538.2863),
        (1000, 5.0, (128, 16), 9.002322, 78.0399),
    ],
)
def test_hadamard_response(
    k: int, epsilon: float, shape: tuple[int, int], entropy: float, scaled: float
) -> None:
    oracle = HadamardResponse(k=k, epsilon=epsilon)
    assert oracle.randomizer.shape == shape
    assert oracle.entropy_bits == pytest.approx(entropy, abs=6e-7)
    assert oracle.mse(1) == pytest.approx(scaled, abs=6e-5)


def test_hadamard_response_in_one_block() -> None:
    a = 1 / math.tanh(0.3)
    p = np.arange(1, 8) / 28
    assert HadamardResponse(k=7, epsilon=0.6).mse(1, p) == pytest.approx(7 * a**2 - p @ p, rel=1e-12)


def test_the_randomness_of_hadamard_response_is_below_its_bound() -> None:
    # (7.51), with epsilon <= ln(2 k), where the print has log k + 1.
    for k in (2, 3, 10, 99, 399):
        for epsilon in (0.05, 0.7, 2.0, 5.0, 8.0):
            e = math.exp(epsilon)
            if e <= 2 * k:
                bound = math.log(2 * k * (3 * e - 1) / e) - epsilon * e / (3 * e - 1)
            else:
                bound = math.log(e + 4 * k - 1) - epsilon * e / (e + 4 * k - 1)
            found = HadamardResponse(k=k, epsilon=epsilon).entropy_bits * math.log(2)
            assert found <= bound + 1e-12


def test_the_max_error_over_zipf_rows() -> None:
    # k = 100, n = 1e5, epsilon 1: mean largest error 0.018578, below a sqrt(2 ln(2 k) / n) = 0.022276.
    k, n = 100, 100_000
    oracle = BinaryHadamard(k=k, epsilon=1.0, skip_constant=False)
    assert oracle.frequency_mse(n) == pytest.approx(4.672694e-3, rel=1e-6)
    weights = 1 / np.arange(1, k + 1)
    rng = np.random.default_rng(4)
    values = rng.choice(k, n, p=weights / weights.sum())
    held = np.bincount(values, minlength=k) / n
    runs = 20
    errors = np.array([oracle.estimate(oracle.collect(values, rng)) - held for _ in range(runs)])
    assert np.abs(errors).max(axis=1).mean() == pytest.approx(0.018578, rel=0.12)
    assert np.abs(errors).max(axis=1).mean() < math.sqrt(2 * math.log(2 * k) / n) / math.tanh(0.5)
    spread = (errors**2).sum() / runs / oracle.frequency_mse(n)
    assert abs(spread - 1) < z_bound(1) * math.sqrt(2 / (k * runs))


def test_simulated_sets_are_drawn_sets() -> None:
    # Value after value in one case, client after client in the other: means and covariances of the counts.
    oracle, rng, runs = SubsetSelection(k=5, epsilon=0.7), np.random.default_rng(14), 4000
    held = np.array([5, 0, 3, 2, 7])
    values = np.repeat(np.arange(5), held)
    drawn = np.array([oracle.collect(values, rng).values for _ in range(runs)])
    made = np.array([oracle._simulated(held, rng).values for _ in range(runs)])
    assert np.all(made.sum(axis=1) == 17 * oracle.randomizer.size)
    tolerance = z_bound(40) * np.sqrt(2 / runs)
    assert np.abs(made.mean(axis=0) - drawn.mean(axis=0)).max() < 2.1 * tolerance  # deviations are below 2.1
    assert np.abs(np.cov(made.T) - np.cov(drawn.T)).max() < 1.5 * 4.2 * tolerance
    assert np.abs(np.cov(made.T)).max() > 3


def test_two_values_are_warners_response() -> None:
    # All mechanisms of one bit agree on two values, once the constant column is left out.
    binary, kary = BinaryHadamard(k=2, epsilon=1.3), KaryResponse(k=2, epsilon=1.3)
    assert binary.mse(1, [0.3, 0.7]) == pytest.approx(kary.mse(1, [0.3, 0.7]), rel=1e-12)
    chosen = SubsetSelection(k=2, epsilon=1.3)
    assert chosen.mse(1, [0.3, 0.7]) == pytest.approx(kary.mse(1, [0.3, 0.7]), rel=1e-12)
