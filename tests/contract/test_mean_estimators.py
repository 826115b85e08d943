"""What is true of every mean estimator; a new one joins by a line in tests/contract/mean_cases.py.

Statistical tests fail on right code with probability below 1e-6 each, over the choice of the seed.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import Estimator, Facts, Message, Round, shuffle
from tacit.numerics import Array
from tacit.privacy import NonPrivate, TrustModel, neighbours_of
from tests.contract.cases import Case
from tests.contract.mean_cases import ESTIMATORS
from tests.statistics import FALSE_ALARM, z_bound

DIM, PARTIES, N, TRIALS = 5, 3, 12, 1500
ROUND = Round(n=N, radius=1.0, number=4, parties=PARTIES, seed=11)

every = pytest.mark.parametrize("case", ESTIMATORS, ids=str)


def data(n: int = N, dim: int = DIM, seed: int = 0) -> Array:
    """Rows in and outside the unit ball."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(loc=0.3, size=(n, dim))
    return np.asarray(rows * (rng.uniform(0.1, 2, size=n) / np.abs(rows).sum(axis=1))[:, None])


def clipped(rows: Array, case: Case, radius: float = 1.0) -> Array:
    """What rows count as, one row at a time; bad rows count as zero."""
    return np.array(
        [
            case.clip(row, radius) if np.isfinite(row).all() else 0 * np.nan_to_num(row)
            for row in rows.astype(np.float64)
        ]
    )


def clipped_mean(rows: Array, case: Case, radius: float = 1.0) -> Array:
    """The mean of the clipped rows."""
    return np.asarray(clipped(rows, case, radius).mean(axis=0))


def sent(estimator: Estimator, rows: Array, round: Round, rng: np.random.Generator) -> list[Message]:
    """The messages of all parties, as the server reads them off the wire."""
    messages = []
    for party, part in enumerate(np.array_split(rows, round.parties)):
        for message in estimator.encode(part, round, party=party, rng=rng):
            messages.append(Message.from_bytes(message.to_bytes(), sender=party))
    return messages


def over_the_wire(estimator: Estimator, rows: Array, round: Round, rng: np.random.Generator) -> Array:
    return estimator.decode(sent(estimator, rows, round, rng), round, rng=rng)


def same_messages(first: list[Message], second: list[Message]) -> bool:
    return [m.to_bytes() for m in first] == [m.to_bytes() for m in second]


@every
@pytest.mark.parametrize("dim", [1, 5, 8])
def test_with_the_noise_off_the_mean_is_exact(case: Case, dim: int) -> None:
    if not case.exact:
        pytest.skip("compresses even without noise")
    estimator, rows = case.make(dim, 0), data(dim=dim)
    allowed = estimator.error(N, Facts(parties=PARTIES)).bias + 1e-6
    assert allowed < 0.05 or not estimator.error(N).exact
    for way in (over_the_wire, lambda e, *args: e.estimate(args[0], args[1], rng=args[2])):
        got = way(estimator, rows, ROUND, np.random.default_rng(1))
        assert got.dtype == np.float64
        assert got.shape == (dim,)
        assert np.linalg.norm(got - clipped_mean(rows, case)) <= allowed


@every
def test_both_paths_have_the_stated_mean_and_variance(case: Case) -> None:
    estimator, rows = case.make(DIM, 1), data()
    stated = estimator.error(N, Facts(parties=PARTIES))
    rng = np.random.default_rng(2)
    rounds = [replace(ROUND, number=t if case.fresh else ROUND.number) for t in range(case.trials)]
    # Bytes of three parties cost several times what all rows at once do: a third of the trials go over the
    # wire, to be held against the law of the others.
    runs = {
        "wire": np.stack([over_the_wire(estimator, rows, facts, rng) for facts in rounds[::3]]),
        "estimate": np.stack([estimator.estimate(rows, facts, rng=rng) for facts in rounds]),
    }
    bound, target = z_bound(2 * (DIM + 1)), clipped_mean(rows, case)
    for path, got in runs.items():
        # With tails no heavier than Laplace, the skewness of a mean of hundreds of squares costs less than
        # the factor of ten between FALSE_ALARM and the stated rate.
        tolerance = bound * got.std(axis=0) / np.sqrt(len(got))
        # Power: wide enough to hide a real bias means an empty test.
        wide = "too few trials of the case to see a bias: more of them, or a higher level"
        assert tolerance.max() < (0.09 if path == "wire" else 0.05), wide
        assert np.all(np.abs(got.mean(axis=0) - target) <= tolerance + stated.bias + 1e-6)
        squares = np.square(got - got.mean(axis=0)).sum(axis=1)
        slack = bound * squares.std() / np.sqrt(len(got)) + 1e-20
        assert slack <= (0.45 if path == "wire" else 0.25) * stated.variance + 1e-20
        assert squares.mean() <= stated.variance + slack
        # A bound may be loose, but an estimator without variance would have lost its noise.
        assert squares.mean() >= (stated.variance - slack if stated.exact else case.reached * stated.variance)
    for first, second in zip(runs["wire"].T, runs["estimate"].T, strict=True):
        # Few values with many ties defeat the exact law; the asymptotic one errs on the safe side there.
        alike = stats.ks_2samp(first, second, method="asymp").pvalue > FALSE_ALARM / DIM
        assert alike or np.allclose(first, second[::3], rtol=1e-12)


def test_the_check_of_two_paths_sees_half_the_noise() -> None:
    case, rows, rng = next(c for c in ESTIMATORS if c.private), data(), np.random.default_rng(3)
    whole, half = (
        [case.make(DIM, share).estimate(rows, ROUND, rng=rng)[0] for _ in range(trials)]
        for share, trials in ((1.0, TRIALS), (0.5, TRIALS // 3))
    )
    assert stats.ks_2samp(whole, half).pvalue < FALSE_ALARM


@every
def test_the_order_of_messages_is_irrelevant(case: Case) -> None:
    estimator = case.make(DIM, 1)
    messages = sent(estimator, data(), ROUND, np.random.default_rng(4))
    results = [
        estimator.decode(order, ROUND, rng=np.random.default_rng(5))
        for order in (messages, messages[::-1], messages[1:] + messages[:1])
    ]
    assert np.allclose(results[0], results[1:], rtol=1e-12, atol=1e-12)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_row_counts_as_clipped(case: Case, dtype: type) -> None:
    estimator, outside = case.make(DIM, 1), data()[:4]
    outside[0] *= 1e6
    inside = clipped(outside, case)
    first, second = (
        estimator.encode(rows.astype(dtype), ROUND, party=0, rng=np.random.default_rng(6))
        for rows in (inside, outside)
    )
    if case.symbols:
        assert same_messages(first, second)
    for one, other in zip(first, second, strict=True):
        gap = np.abs(one.payload.astype(np.float64) - other.payload).max()
        # Scaling rounds in the last digits; on a grid, that may tip a sum over to the next step.
        assert gap <= (case.close if one.payload.dtype.kind == "f" else case.close_integers)


@every
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bad_row_counts_as_zero(case: Case, bad: float, dtype: type) -> None:
    estimator = case.make(DIM, 1)
    rows: Array = data().astype(dtype)
    zeroed = rows.copy()
    zeroed[3] = 0
    rows[3, 2] = bad
    first, second = (sent(estimator, x, ROUND, np.random.default_rng(7)) for x in (rows, zeroed))
    assert same_messages(first, second)
    first_estimate, second_estimate = (
        estimator.estimate(x, ROUND, rng=np.random.default_rng(7)) for x in (rows, zeroed)
    )
    assert np.array_equal(first_estimate, second_estimate)


@every
def test_rows_outside_of_the_ball_are_clipped_or_refused_as_configured(case: Case) -> None:
    clip = case.make(DIM, 1)
    default, refusing = (msgspec.structs.replace(clip, on_violation=way) for way in (None, "error"))
    inside = clipped(data(), case)

    def ways(estimator: Estimator, rows: Array) -> list[bytes]:
        """What parties send about the rows; rows are refused both ways, before anything random is drawn."""
        messages: list[Message] = []
        wire, at_once = np.random.default_rng(20), np.random.default_rng(20)
        before = wire.bit_generator.state
        try:
            messages = sent(estimator, rows, ROUND, wire)
        except ParameterError:
            assert wire.bit_generator.state == before
        try:
            estimator.estimate(rows, ROUND, rng=at_once)
        except ParameterError:
            assert at_once.bit_generator.state == before
            assert not messages
            raise
        assert messages
        return [m.to_bytes() for m in messages]

    assert ways(refusing, inside) == ways(clip, inside) == ways(default, inside)
    # A row that was scaled to the radius in single precision is not an outlier.
    ways(refusing, clipped(1e9 * np.abs(inside), case).astype(np.float32))
    for bad in (-1.001e3, np.nan, np.inf):
        rows = inside.copy()
        rows[0, 2] = bad  # the first party has drawn nothing before
        as_clipped = ways(clip, rows)
        for estimator in (refusing, default):
            if estimator is default and case.private:
                assert ways(default, rows) == as_clipped
                continue
            for part in (rows, rows.astype(np.float32)):
                with pytest.raises(ParameterError, match="on_violation") as error:
                    ways(estimator, part)
                assert "1001" not in str(error.value)  # says nothing of the row


@every
@pytest.mark.parametrize("dim", [1, 5, 64])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_bits_are_counted_on_the_wire(case: Case, dim: int, n: int) -> None:
    estimator = case.make(dim, 1)
    one = Round(n=n, radius=1.0)
    for scale in (0, 1, 1e9):  # the length is a public fact: it does not depend on the rows
        messages = estimator.encode(scale * data(n, dim), one, party=0, rng=np.random.default_rng(8))
        assert sum(8 * len(m.to_bytes()) for m in messages) == estimator.bits_per_party(n)


@every
@pytest.mark.parametrize(("rows", "dim"), [(300, 200), (3, 2_000)])
def test_a_party_holds_no_more_numbers_than_it_says(case: Case, rows: int, dim: int) -> None:
    """Sixteen copies of its rows, four of what it sends, a tenth of a megabyte, and the numbers it states.

    With as many symbols a row, or numbers a party, as there may be.
    """
    made = case.make(min(dim, 200) if "orthogonal" in case.name else dim, 1)
    most = {"samples": made.dim, "k": min(dim, 200)}
    fields = {f.name for f in msgspec.structs.fields(type(made))}
    try:
        estimator = msgspec.structs.replace(made, **{name: most[name] for name in most if name in fields})
    except ParameterError:  # as many as that, it does not send
        estimator = made
    X, this_round = data(rows, made.dim), Round(n=rows, radius=1.0)
    tracemalloc.start()
    try:
        sent = [m.to_bytes() for m in estimator.encode(X, this_round, party=0, rng=np.random.default_rng(2))]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * estimator.numbers_per_party(rows) + 16 * X.nbytes + 4 * sum(map(len, sent)) + 10**5


@every
def test_events_carry_the_neighbours_of_the_estimator(case: Case) -> None:
    estimator = case.make(DIM, 1)
    for trust in TrustModel:
        assert neighbours_of(estimator.event(N, trust)) == estimator.neighbours


@every
def test_noise_of_the_server_protects_from_no_other_observer(case: Case) -> None:
    estimator = case.make(DIM, 1)
    if estimator.trust is TrustModel.CENTRAL:
        assert isinstance(estimator.event(N, TrustModel.LOCAL), NonPrivate)
        assert isinstance(estimator.event(N, TrustModel.SHUFFLE), NonPrivate)
    assert isinstance(estimator.event(N, estimator.trust), NonPrivate) != case.private


@every
def test_a_shuffler_takes_away_nothing_that_decoding_needs(case: Case) -> None:
    estimator = case.make(DIM, 1)
    if estimator.trust is not TrustModel.SHUFFLE:
        pytest.skip("is not for shuffled messages")
    messages = sent(estimator, data(), ROUND, np.random.default_rng(16))
    plain, shuffled = (
        estimator.decode(batch, ROUND)
        for batch in (messages, shuffle(messages, rng=np.random.default_rng(17)))
    )
    assert np.allclose(plain, shuffled, rtol=1e-12, atol=1e-12)
    # Who sends must change nothing, or the message would tell.
    first, second = (
        estimator.encode(data(), ROUND, party=party, rng=np.random.default_rng(18)) for party in (0, 2)
    )
    assert same_messages(first, second)


@every
@pytest.mark.parametrize("factor", [2.0, 2.0**-20])
def test_radius_and_data_scale_together(case: Case, factor: float) -> None:
    estimator, scaled = case.make(DIM, 1), replace(ROUND, radius=factor)
    for way in (over_the_wire, lambda e, *args: e.estimate(args[0], args[1], rng=args[2])):
        plain = way(estimator, data(), ROUND, np.random.default_rng(9))
        again = way(estimator, factor * data(), scaled, np.random.default_rng(9))
        assert np.allclose(again, factor * plain, rtol=1e-6, atol=factor * 1e-9)


@every
def test_the_divisor_is_the_planned_number(case: Case) -> None:
    estimator, wide = case.make(DIM, 1), replace(ROUND, n=4 * N)
    factor = 4 if case.divides else 1
    messages = sent(estimator, data(), ROUND, np.random.default_rng(10))
    first, second = (estimator.decode(messages, r, rng=np.random.default_rng(11)) for r in (ROUND, wide))
    assert np.allclose(first, factor * second, rtol=1e-12)
    first, second = (estimator.estimate(data(), r, rng=np.random.default_rng(11)) for r in (ROUND, wide))
    assert np.allclose(first, factor * second, rtol=1e-12)


@every
def test_an_estimator_survives_json(case: Case) -> None:
    estimator = case.make(DIM, 1)
    assert msgspec.json.decode(msgspec.json.encode(estimator), type=Estimator) == estimator


@every
def test_arguments_are_left_alone(case: Case) -> None:
    estimator, rows = case.make(DIM, 1), data()
    messages = sent(estimator, rows, ROUND, np.random.default_rng(12))
    before = [m.to_bytes() for m in messages]
    estimator.decode(messages, ROUND, rng=np.random.default_rng(13))
    estimator.estimate(rows, ROUND, rng=np.random.default_rng(13))
    assert np.array_equal(rows, data())
    assert [m.to_bytes() for m in messages] == before


@every
def test_the_same_generator_gives_the_same_messages(case: Case) -> None:
    estimator = case.make(DIM, 1)
    first, again, other = (sent(estimator, data(), ROUND, np.random.default_rng(s)) for s in (14, 14, 15))
    assert same_messages(first, again)
    if not isinstance(estimator.event(N, TrustModel.LOCAL), NonPrivate):
        assert not same_messages(first, other)
