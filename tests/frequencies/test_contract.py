"""What is true of every mechanism of frequencies, by enumeration where the law allows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.frequencies import (
    BinaryHadamard,
    Counts,
    CyclicResponse,
    FrequencyOracle,
    HadamardResponse,
    KaryResponse,
    RecoverableHadamard,
    SubsetSelection,
    UnaryEncoding,
)
from tacit.frequencies.symbols import SymbolOracle
from tacit.privacy import PrivacyBudget, PureDP, Shuffled, TrustModel, epsilon_of, pure_epsilon_of
from tests.frequencies.cases import BY_PLACE, ORACLES, label, messages_of, weights_of
from tests.privacy.shuffling.histograms import EPSILONS, worst_deltas
from tests.statistics import FALSE_ALARM, z_bound

each = pytest.mark.parametrize("oracle", ORACLES, ids=label)


@each
def test_the_channel_is_a_law_of_the_level(oracle: FrequencyOracle) -> None:
    Q = oracle.channel_matrix()
    assert Q.shape[0] == oracle.k
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, rtol=1e-13)
    seen = Q[:, Q.max(axis=0) > 0]
    loss = float(np.log(seen.max(axis=0) / seen.min(axis=0)).max())
    assert loss <= oracle.epsilon * (1 + 1e-12)
    assert loss >= oracle.epsilon * (1 - 1e-9)
    assert loss == pytest.approx(oracle.level, rel=1e-12)
    assert oracle.level <= oracle.epsilon


@each
def test_the_estimate_is_unbiased_and_its_errors_are_exact(oracle: FrequencyOracle) -> None:
    Q, Z = oracle.channel_matrix(), weights_of(oracle)
    k = oracle.k
    np.testing.assert_allclose(Q @ Z.T, np.eye(k), atol=1e-12)
    squares = Q @ (Z**2).T  # of value x, in the estimate of z
    np.testing.assert_allclose(squares.sum(axis=1) - 1, oracle.noise(), rtol=1e-9)
    p = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    fixed = (p @ (squares - np.eye(k))) / 7
    np.testing.assert_allclose(oracle.variances(7, p), fixed, rtol=1e-9)
    assert oracle.frequency_mse(7, p) == pytest.approx(fixed.sum(), rel=1e-9)
    # Independent values of p: sum over x of (E Z_x^2 - p_x^2) / n.
    drawn = ((p @ Q) @ (Z**2).T - p**2).sum() / 7
    assert oracle.mse(7, p) == pytest.approx(drawn, rel=1e-9)
    assert oracle.mse(7) == pytest.approx(oracle.mse(7, np.full(k, 1 / k)), rel=1e-12)


@each
def test_the_randomness_is_the_entropy_of_a_message(oracle: FrequencyOracle) -> None:
    Q = oracle.channel_matrix()
    with np.errstate(divide="ignore", invalid="ignore"):
        entropies = -np.where(Q > 0, Q * np.log2(Q), 0.0).sum(axis=1)
    free = math.log2(oracle.groups) if hasattr(oracle, "groups") else 0.0  # the column is public
    if label(oracle).startswith("general"):  # of the bits that hold and do not, the dearer one
        assert oracle.entropy_bits >= entropies.max() - free - 1e-12
    else:
        assert oracle.entropy_bits == pytest.approx(entropies.max() - free, rel=1e-9)


@each
def test_messages_follow_the_channel(oracle: FrequencyOracle) -> None:
    Q, n = oracle.channel_matrix(), 20_000
    rows = [str(one) for one in messages_of(oracle)]
    for x in (0, oracle.k - 1):
        found = oracle.encode(np.full(n, x), np.random.default_rng(100 + x))
        kinds, counts = np.unique(found, axis=0, return_counts=True)
        seen = dict(zip(map(str, kinds), counts.tolist(), strict=True))
        observed = np.array([seen.get(row, 0) for row in rows])
        assert observed.sum() == n
        possible = Q[x] > 0
        assert observed[~possible].sum() == 0
        assert stats.chisquare(observed[possible], n * Q[x][possible]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("oracle", [*ORACLES, BY_PLACE], ids=label)
def test_counts_merge_and_simulations_have_the_stated_mean_and_variance(oracle: FrequencyOracle) -> None:
    rng, n, runs = np.random.default_rng(12), 400, 250
    k = oracle.k
    p = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    values = rng.choice(k, n, p=p)
    whole = oracle.collect(values[:150], rng) + oracle.collect(values[150:], rng, first=150)
    assert whole.n == n
    assert whole.values.shape == (oracle.outcomes,)
    found = np.array([oracle.estimate(oracle.simulate(p, n, rng)) for _ in range(runs)])
    spread = oracle.mse(n, p)
    errors = ((found - p) ** 2).sum(axis=1)
    # The squared errors have fourth moments of about their mean; 4 % of it is one standard error.
    assert abs(errors.mean() / spread - 1) < z_bound(1) * errors.std(ddof=1) / spread / math.sqrt(runs)
    bias = (found - p).mean(axis=0) / (found.std(axis=0, ddof=1) / math.sqrt(runs))
    assert np.abs(bias).max() < z_bound(2 * k)


@each
def test_collecting_has_the_law_of_encoding(oracle: FrequencyOracle) -> None:
    rng, n = np.random.default_rng(13), 30_000
    values = rng.integers(0, oracle.k, n)
    held = np.bincount(values, minlength=oracle.k) / n
    expected = held @ oracle.channel_matrix()
    if not isinstance(oracle, SymbolOracle):
        expected = expected @ messages_of(oracle)
    seen = oracle.collect(values, rng).values / n
    assert np.all(np.abs(seen - expected) <= z_bound(oracle.outcomes) * 0.5 / math.sqrt(n))
    error = oracle.estimate(oracle.collect(values, rng)) - held
    assert np.all(np.abs(error) <= z_bound(oracle.k) * np.sqrt(oracle.variances(n, held)))


@pytest.mark.parametrize("oracle", [*ORACLES, BY_PLACE], ids=label)
def test_messages_travel_in_packed_bytes_of_one_length(oracle: FrequencyOracle) -> None:
    rng = np.random.default_rng(1)
    messages = oracle.encode(rng.integers(0, oracle.k, 50), rng, first=3)
    data = oracle.to_bytes(messages)
    assert len(data) == 50 * oracle.message_bytes
    assert oracle.message_bytes == 3 + math.ceil(oracle.message_bits / 8)
    np.testing.assert_array_equal(oracle.from_bytes(data, first=3), messages)
    one = bytearray(data[: oracle.message_bytes])
    with pytest.raises(ParameterError, match="multiple of"):
        oracle.from_bytes(data[:-1])
    for version in (0x10 | oracle.code, 0x30 | oracle.code, 0x20 | 15):
        with pytest.raises(ParameterError, match="another version, or is of another mechanism"):
            oracle.from_bytes(bytes([version]) + bytes(one[1:]))
    # No two byte strings give the same messages: what is read is written back, or refused.
    for place in range(1, len(one)):
        for byte in range(256):
            one[place], kept = byte, one[place]
            try:
                read = oracle.from_bytes(bytes(one), first=3)
            except ParameterError:
                pass
            else:
                assert oracle.to_bytes(read) == bytes(one)
            one[place] = kept


@each
def test_local_prices_are_those_of_the_sampled_law(oracle: FrequencyOracle) -> None:
    event = oracle.event(100)
    assert isinstance(event, PureDP)
    assert pure_epsilon_of(event) == oracle.level <= oracle.epsilon


@pytest.mark.parametrize("oracle", [one for one in ORACLES if one.k <= 4], ids=label)
def test_no_shuffled_data_set_shows_more_than_is_priced(oracle: FrequencyOracle) -> None:
    # Complete: all data of two parties, every symbol with all that is in it.
    for parties in (1, 2):
        event = oracle.event(parties, TrustModel.SHUFFLE)
        assert isinstance(event, Shuffled)
        exact = worst_deltas(oracle.channel_matrix(), parties)
        assert np.all(exact <= event.dominating.delta(EPSILONS) + 1e-14)


def test_half_the_noise_is_seen_in_a_shuffled_batch() -> None:
    # The negative control of the test above, for the least private of them.
    for made, weak in (
        (KaryResponse(k=3, epsilon=1.0), KaryResponse(k=3, epsilon=2.0)),
        (UnaryEncoding(k=3, epsilon=1.0), UnaryEncoding(k=3, epsilon=2.0)),
        (SubsetSelection(k=4, epsilon=1.0), SubsetSelection(k=4, epsilon=2.0)),
        (CyclicResponse(k=3, epsilon=1.0), CyclicResponse(k=3, epsilon=2.0)),
        (RecoverableHadamard(k=3, epsilon=1.0), RecoverableHadamard(k=3, epsilon=2.0)),
    ):
        event = made.event(2, TrustModel.SHUFFLE)
        assert isinstance(event, Shuffled)
        assert np.any(worst_deltas(weak.channel_matrix(), 2) > event.dominating.delta(EPSILONS))


@pytest.mark.parametrize("kind", [KaryResponse, UnaryEncoding])
def test_calibrated_mechanisms_use_their_budget(kind: type[FrequencyOracle]) -> None:
    assert kind.calibrated(k=10, budget=PrivacyBudget(1.5), n=100).epsilon == 1.5
    assert kind.calibrated(k=10, budget=PrivacyBudget(50.0), n=100).epsilon == 30.0
    budget = PrivacyBudget(0.5, 1e-6)
    made = kind.calibrated(k=10, budget=budget, n=10_000, trust=TrustModel.SHUFFLE)
    spent = epsilon_of(made.event(10_000, TrustModel.SHUFFLE), 1e-6)
    assert 0.4999 < spent <= 0.5
    assert made.epsilon > 2


@each
def test_bad_input_is_refused(oracle: FrequencyOracle) -> None:
    rng = np.random.default_rng(0)
    kind = type(oracle)
    for k in (1, 2**24):
        with pytest.raises(ParameterError, match="k must be a whole number from 2"):
            kind(k=k, epsilon=1.0)
    for epsilon in (0.0, -1.0, math.nan, 31.0):
        with pytest.raises(ParameterError, match="epsilon"):
            kind(k=4, epsilon=epsilon)
    with pytest.raises(ParameterError, match=rf"values must be from 0 to {oracle.k - 1}; at least one"):
        oracle.encode([oracle.k], rng)
    with pytest.raises(ParameterError, match="values must be whole numbers"):
        oracle.collect([0.5], rng)
    with pytest.raises(ParameterError, match=r"values must have shape \(n,\)"):
        oracle.encode([[0]], rng)
    with pytest.raises(ParameterError, match="at least one message"):
        oracle.estimate(Counts(0, np.zeros(oracle.outcomes, dtype=int)))
    with pytest.raises(ParameterError, match="made by another mechanism"):
        oracle.estimate(Counts(0, np.zeros(oracle.outcomes + 1, dtype=int)))
    with pytest.raises(ParameterError, match="p must have shape"):
        oracle.mse(1, np.ones(oracle.k + 1))
    with pytest.raises(ParameterError, match="add up to 1"):
        oracle.simulate(np.ones(oracle.k), 10, rng)
    with pytest.raises(ParameterError, match="n must be a whole number"):
        oracle.frequency_mse(0)
    with pytest.raises(ParameterError, match="confidence"):
        oracle.band(oracle.collect([0], rng), 1.0)
    with pytest.raises(ParameterError, match="trust must be local or shuffle"):
        oracle.event(1, TrustModel.CENTRAL)
    large = kind(k=10_000, epsilon=1.0)
    with pytest.raises(ParameterError, match="at most 10000000 entries"):
        large.channel_matrix()
    if not isinstance(oracle, SymbolOracle):
        with pytest.raises(ParameterError, match="`collect` counts them in blocks"):
            large.encode(np.zeros(30_000, dtype=int), rng)
        with pytest.raises(ParameterError, match="booleans of shape"):
            oracle.aggregate(np.zeros((2, oracle.k), dtype=int))


def test_counts_refuse_what_no_messages_have() -> None:
    with pytest.raises(ParameterError, match="values must be from 0 to n = 3"):
        Counts(3, np.array([4]))
    with pytest.raises(ParameterError, match="values must be whole numbers"):
        Counts(3, np.array([0.5]))
    with pytest.raises(ParameterError, match="counts must be of one mechanism"):
        Counts(1, np.array([1])) + Counts(1, np.array([1, 0]))


def test_counts_of_another_mechanism_or_level_are_neither_merged_nor_read() -> None:
    rng = np.random.default_rng(0)
    oracles = [
        KaryResponse(k=8, epsilon=1.0),
        KaryResponse(k=8, epsilon=2.0),
        UnaryEncoding(k=8, epsilon=1.0),
        UnaryEncoding(k=8, epsilon=1.0, symmetric=True),
        HadamardResponse(k=8, epsilon=0.5),
        BinaryHadamard(k=8, epsilon=1.0),
        BinaryHadamard(k=8, epsilon=1.0, skip_constant=False),
        BinaryHadamard(k=8, epsilon=1.0, assignment="blocks"),
    ]
    for one, other in itertools.permutations(oracles, 2):
        own, theirs = (oracle.collect(np.arange(8), rng) for oracle in (one, other))
        with pytest.raises(ParameterError, match="made by another mechanism"):
            one.estimate(theirs)
        with pytest.raises(ParameterError, match="made by another mechanism"):
            one.band(theirs)
        with pytest.raises(ParameterError, match="counts must be of one mechanism"):
            own + theirs
    again = KaryResponse(k=8, epsilon=1.0)
    merged = oracles[0].collect(np.arange(8), rng) + again.simulate(np.full(8, 1 / 8), 8, rng)
    assert again.estimate(merged).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("made", "other"),
    [
        (BinaryHadamard(k=100, epsilon=1.0), BinaryHadamard(k=100, epsilon=2.0)),
        (BinaryHadamard(k=100, epsilon=1.0), BinaryHadamard(k=101, epsilon=1.0)),
        (BinaryHadamard(k=100, epsilon=1.0), BinaryHadamard(k=100, epsilon=1.0, skip_constant=False)),
        (BinaryHadamard(k=100, epsilon=1.0), BinaryHadamard(k=100, epsilon=1.0, random_bits=0.5)),
        (SubsetSelection(k=50, epsilon=1.0), SubsetSelection(k=50, epsilon=1.01)),
        (RecoverableHadamard(k=10, epsilon=1.0), RecoverableHadamard(k=10, epsilon=1.1)),
    ],
)
def test_bytes_of_another_level_or_variant_are_refused(made: FrequencyOracle, other: FrequencyOracle) -> None:
    """They would be counted with the wrong bias."""
    data = made.to_bytes(made.encode(np.arange(8), np.random.default_rng(0)))
    assert made.message_bytes == other.message_bytes
    with pytest.raises(ParameterError, match="of another mechanism or level"):
        other.from_bytes(data)
    with pytest.raises(ParameterError, match="data must be bytes"):
        made.from_bytes("x" * made.message_bytes)  # type: ignore[arg-type]


def test_bytes_of_the_other_unary_encoding_are_refused() -> None:
    optimised, symmetric = (UnaryEncoding(k=8, epsilon=1.0, symmetric=one) for one in (False, True))
    for one, other in ((optimised, symmetric), (symmetric, optimised)):
        data = one.to_bytes(one.encode(np.arange(8), np.random.default_rng(0)))
        assert one.from_bytes(data).shape == (8, 8)
        with pytest.raises(ParameterError, match="is of another mechanism"):
            other.from_bytes(data)


def test_too_few_random_bits_to_say_anything_are_refused() -> None:
    with pytest.raises(ParameterError, match="random_bits must be larger at epsilon"):
        BinaryHadamard(k=8, epsilon=2.0**-29, random_bits=1e-9)
    assert BinaryHadamard(k=8, epsilon=2.0**-29, random_bits=1e-6).mse(1) > 0


@each
def test_forged_counts_are_refused(oracle: FrequencyOracle) -> None:
    counts = oracle.collect([0] * 20, np.random.default_rng(3))
    if not isinstance(oracle, UnaryEncoding):
        with pytest.raises(ParameterError, match="counts must add up to"):
            oracle.estimate(Counts(21, counts.values))
        with pytest.raises(ParameterError, match="counts must add up to"):
            oracle.band(Counts(21, counts.values))
    if getattr(oracle, "skip_constant", False):
        with pytest.raises(ParameterError, match="about column 0"):
            oracle.aggregate([0])


def test_sets_of_another_size_are_refused() -> None:
    oracle = SubsetSelection(k=5, epsilon=0.4)
    with pytest.raises(ParameterError, match="a set of 3 values"):
        oracle.aggregate(np.ones((1, 5), dtype=bool))


@pytest.mark.parametrize("symmetric", [False, True])
def test_counts_of_unary_answers_that_are_drawn_at_once_have_their_law(symmetric: bool) -> None:
    oracle, rng, draws = UnaryEncoding(k=2, epsilon=1.0, symmetric=symmetric), np.random.default_rng(12), 600
    values = np.repeat([0, 1], [200, 100])
    assert oracle.collect(values, rng).n == 300
    found = np.array([oracle.collect(values, rng).values for _ in range(draws)])
    held, other = oracle.support.held, oracle.support.other
    for column, own in zip(found.T, (200, 100), strict=True):
        of_own = stats.binom.pmf(np.arange(own + 1), own, held)
        mass = np.convolve(of_own, stats.binom.pmf(np.arange(301 - own), 300 - own, other))
        seen, often = np.bincount(column, minlength=301), draws * mass > 5
        observed = [*seen[often], seen[~often].sum()]
        assert (
            stats.chisquare(observed, draws * np.array([*mass[often], mass[~often].sum()])).pvalue
            > FALSE_ALARM
        )
    assert abs(stats.pearsonr(*found.T).statistic) < z_bound(1) / math.sqrt(draws)
