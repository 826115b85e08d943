"""Shuffled binomial sums: exact laws and prices by enumeration, reference values, drop-outs, bad input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import optimize, stats

from tacit.audits import audit_randomizer
from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import Measure, Step
from tacit.means import Facts, Message, Round, shuffle
from tacit.means.binomial import BinomialMean
from tacit.numerics import Array
from tacit.privacy import (
    Binomial,
    BinomialAlone,
    Gaussian,
    Leaf,
    Neighbours,
    Part,
    PrivacyBudget,
    Relation,
    Repeat,
    TrustModel,
    calibrate,
    delta_of,
    epsilon_of,
    guarantee,
    meets,
    neighbours_of,
)
from tacit.randomness import secure, simulated
from tests.statistics import FALSE_ALARM, z_bound

SHUFFLE, LOCAL, CENTRAL = TrustModel.SHUFFLE, TrustModel.LOCAL, TrustModel.CENTRAL
EPSILONS = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 4.0])


def shuffled(mean: BinomialMean, rows: Array, round: Round, rng: np.random.Generator) -> list[Message]:
    """What leaves the shuffler when every party holds one row and all goes over the wire."""
    sent = [
        Message.from_bytes(message.to_bytes(), sender=party)
        for party, row in enumerate(rows)
        for message in mean.encode(row[None], round, party=party, rng=rng)
    ]
    return shuffle(sent, rng=rng)


def ones_law(mean: BinomialMean, values: Array) -> Array:
    """Law of the number of ones of one coordinate, from the definition of P_1D (radius 1, rows inside)."""
    law = np.array([1.0])
    for value in values:
        place = (value + 1) * mean.resolution / 2
        low = int(np.floor(place))
        rounding = np.zeros(mean.resolution + 1)
        rounding[low] = 1 - (place - low)
        if place > low:
            rounding[low + 1] = place - low
        law = np.convolve(law, rounding)
        for _ in range(mean.noise_bits):
            law = np.convolve(law, [0.5, 0.5])
    return law


def view_law(mean: BinomialMean, rows: Array) -> Array:
    """Law of all counts together: coordinates are rounded and hidden independently."""
    law = np.array([1.0])
    for values in rows.T:
        law = np.multiply.outer(law, ones_law(mean, values)).reshape(-1)
    return law


def hockey_stick(p: Array, q: Array) -> Array:
    return np.array([np.maximum(p - np.exp(e) * q, 0).sum() for e in EPSILONS])


def claimed(mean: BinomialMean, n: int) -> Array:
    event = mean.event(n, SHUFFLE)
    assert isinstance(event, Leaf)
    return np.asarray(event.curve().delta(EPSILONS))


def worst(mean: BinomialMean, points: Sequence[tuple[float, ...]]) -> Array:
    """Largest divergence over all data sets of two of the points and all neighbours."""
    found = np.zeros(EPSILONS.size)
    laws = {(a, b): view_law(mean, np.array([a, b])) for a, b in product(points, repeat=2)}
    for a, c, other in product(points, repeat=3):
        found = np.maximum(found, hockey_stick(laws[a, other], laws[c, other]))
    return found


# Privacy


@pytest.mark.parametrize(("g", "b"), [(1, 2), (2, 2), (3, 4), (2, 9), (5, 20)])
def test_no_scalar_neighbours_are_easier_to_tell_apart_than_claimed(g: int, b: int) -> None:
    mean = BinomialMean(dim=1, noise_bits=b, resolution=g)
    points = [(x,) for x in np.linspace(-1, 1, 4 * g + 1)]
    found = worst(mean, points)
    assert np.all(found <= claimed(mean, 2) + 1e-12)
    assert np.allclose(found, claimed(mean, 2), atol=1e-9)  # the ends of the range are worst, and exact


@pytest.mark.parametrize(("g", "b"), [(1, 100), (2, 100)])
def test_no_vector_neighbours_are_easier_to_tell_apart_than_claimed(g: int, b: int) -> None:
    mean = BinomialMean(dim=2, noise_bits=b, resolution=g)
    r = np.sqrt(0.5)
    points = [(1.0, 0.0), (-1.0, 0.0), (r, r), (-r, -r), (0.0, 0.4), (0.0, -1.0)]
    assert np.all(worst(mean, points) <= claimed(mean, 2) + 1e-12)
    assert claimed(mean, 2)[-1] < 0.01  # a claim of 1 would prove nothing


def test_the_enumeration_sees_half_the_noise_bits() -> None:
    for dim, g, b in ((1, 1, 2), (1, 3, 4), (2, 2, 200)):
        whole, half = (BinomialMean(dim=dim, noise_bits=k, resolution=g) for k in (b, b // 2))
        ends = [(1.0,) + (0.0,) * (dim - 1), (-1.0,) + (0.0,) * (dim - 1)]
        assert np.any(worst(half, ends) > claimed(whole, 2) + 0.01)


def test_two_users_with_two_noise_bits_by_enumeration() -> None:
    # Two users, two noise bits each, one step: rounded rows (1, 0) against (0, 0).
    mean = BinomialMean(dim=1, noise_bits=2, resolution=1)
    law = ones_law(mean, np.array([1.0, -1.0]))
    assert np.allclose(law * 16, [0, 1, 4, 6, 4, 1, 0])
    other = ones_law(mean, np.array([-1.0, -1.0]))
    found = dict(zip(EPSILONS, hockey_stick(law, other), strict=True))
    stated = {0.5: 0.209454920581, 1.0: 0.142607385721, 2.0: 0.0625}
    assert all(abs(found[e] - d) < 1e-12 for e, d in stated.items())
    delta = dict(zip(EPSILONS, claimed(mean, 2), strict=True))
    assert all(d <= delta[e] <= d + 1e-11 for e, d in stated.items())


def test_an_attack_stays_below_the_claim_and_breaks_half_the_noise_bits() -> None:
    whole, half = (BinomialMean(dim=1, noise_bits=b, resolution=2) for b in (16, 8))
    event, facts = whole.event(2, SHUFFLE), Round(n=2, radius=1.0)
    for mean, refuted in ((whole, False), (half, True)):

        def ones(value: float, size: int, rng: np.random.Generator, mean: BinomialMean = mean) -> Array:
            rows = np.tile([[value], [-1e6]], (size, 1))
            return np.asarray(mean.counts(rows, facts, rng=rng).reshape(size, 2).sum(axis=1))

        found = audit_randomizer(
            ones,
            lambda counted: counted.astype(np.float64),
            (event, 1e-3),
            inputs=(1e6, -1e6),
            runs=200_000,
            confidence=1 - FALSE_ALARM,
            rng=simulated(1, "attack"),
        )
        assert found.refuted == refuted


@pytest.mark.parametrize(
    ("fraction", "epsilon"), [(1.0, 0.987754), (0.75, 1.153632), (0.5, 1.436875), (1 / 3, 1.791734)]
)
def test_privacy_degrades_like_the_root_of_the_honest_fraction(fraction: float, epsilon: float) -> None:
    mean = BinomialMean(dim=100, noise_bits=20, resolution=52, honest_fraction=fraction)
    # These are bounds of one choice of tails; the event takes the best of several.
    assert 0.999 * epsilon <= epsilon_of(mean.event(10_000, SHUFFLE), 1e-6) <= epsilon + 1e-6


# Colluders do not drop out: b = 20, g = 52, n = 10,000, d = 100, delta = 1e-6. What floor(gamma n_min) noise
# shares would claim, and the bound with n_min minus all colluders (docs/theory/noise.md).
DROP_OUTS = [
    (0.5, 9000, 1.520780, 1.621405),
    (0.5, 8000, 1.621405, 1.896936),
    (0.5, 7000, 1.743784, 2.369612),
    (0.75, 8000, 1.301007, 1.363822),
    (0.75, 7000, 1.398668, 1.520780),
    (0.9, 8000, 1.178783, 1.196875),
]


@pytest.mark.parametrize(("gamma", "n_min", "claimed", "right"), DROP_OUTS)
def test_colluders_are_among_the_fewest_that_arrive(
    gamma: float, n_min: int, claimed: float, right: float
) -> None:
    mean = BinomialMean(dim=100, noise_bits=20, resolution=52, honest_fraction=gamma, n_min=n_min)
    event = mean.event(10_000, SHUFFLE)
    assert event == Binomial(20 * (n_min - 10_000 + int(gamma * 10_000)), 52, 100)
    assert epsilon_of(event, 1e-6) == pytest.approx(right, abs=2e-6)
    assert epsilon_of(Binomial(20 * int(gamma * n_min), 52, 100), 1e-6) == pytest.approx(claimed, abs=2e-6)


def exact_epsilon(bits: int, delta: float) -> float:
    """The least epsilon of one step under that many fair bits, from the two laws themselves."""
    k = np.arange(bits + 2)
    q, p = stats.binom.pmf(k, bits, 0.5), stats.binom.pmf(k - 1, bits, 0.5)
    return float(optimize.brentq(lambda e: np.maximum(p - np.exp(e) * q, 0).sum() - delta, 0, 20, xtol=1e-12))


@pytest.mark.parametrize(
    ("n", "colluders", "n_min", "b", "claimed", "right", "delta"),
    [(100, 50, 60, 4, 0.783807, 1.571774, 1.258e-3), (1000, 300, 700, 1, 0.359457, 0.400723, 5.34e-6)],
)
def test_the_exact_price_of_colluders_who_stay(
    n: int, colluders: int, n_min: int, b: int, claimed: float, right: float, delta: float
) -> None:
    gamma = (n - colluders) / n
    mean = BinomialMean(dim=1, noise_bits=b, resolution=1, honest_fraction=gamma, n_min=n_min)
    event, shares = mean.event(n, SHUFFLE), int(gamma * n_min)
    assert exact_epsilon(b * shares, 1e-6) == pytest.approx(claimed, abs=1e-6)
    assert exact_epsilon(b * (n_min - colluders), 1e-6) == pytest.approx(right, abs=1e-6)
    assert epsilon_of(event, 1e-6) == pytest.approx(right, abs=2e-6)
    assert delta_of(event, claimed) == pytest.approx(delta, rel=1e-3)


def test_no_choice_of_who_arrives_beats_the_price() -> None:
    # Eight parties, four of them colluders who know their own noise and keep any honest ones but the victim
    # away, down to the six that the shuffler asks for: two honest noises are left, not floor(6 / 2) = 3.
    mean = BinomialMean(dim=1, noise_bits=3, resolution=2, honest_fraction=0.5, n_min=6)
    ends = ones_law(mean, np.array([1.0])), ones_law(mean, np.array([-1.0]))
    other = ones_law(mean, np.array([0.3]))
    found = []
    for honest in (2, 3, 4):
        p, q = ends
        for _ in range(honest - 1):
            p, q = np.convolve(p, other), np.convolve(q, other)
        found.append(np.maximum(hockey_stick(p, q), hockey_stick(q, p)))
    price = claimed(mean, 8)
    assert all(np.all(worst <= price + 1e-12) for worst in found)
    mixed = np.max(found, axis=0)  # and so does every mixture of them
    event = Binomial(3 * 3, 2)
    assert np.any(mixed > event.curve().delta(EPSILONS) + 1e-3)


def test_events_say_what_drop_outs_must_not_do() -> None:
    mean = BinomialMean(dim=1, noise_bits=4, resolution=1, honest_fraction=0.5, n_min=60)
    said = guarantee(mean.event(100, SHUFFLE), 1e-6, observer="the analyst").assumptions
    assert said == (
        "the shuffler is honest",
        "the shuffler counts distinct authenticated parties and releases no batch of fewer than agreed",
        "honest parties add 40 noise bits to every coordinate",
        "who arrives does not depend on the data or the noise of honest parties",
    )
    # Who breaks the last one tells all: a party that stays away iff it holds a one is seen to be missing.


def test_events_price_what_is_relied_upon() -> None:
    mean = BinomialMean(dim=3, noise_bits=7, resolution=4, honest_fraction=0.5, n_min=11)
    assert mean.event(20, SHUFFLE) == Binomial(7 * 1, 4, 3)
    assert mean.event(11, SHUFFLE) == Binomial(7 * 5, 4, 3)
    assert mean.event(20, CENTRAL) == mean.event(20, SHUFFLE)
    # Eleven rows of a hundred may all be colluders', and more rows than are planned never arrive.
    for n in (6, 22, 100):
        with pytest.raises(ParameterError, match="n_min must be"):
            mean.event(n, SHUFFLE)
    # One party that holds k rows has its own noise bits alone, whoever else is honest or arrives.
    for rows in (1, 6, 100):
        assert mean.event(rows, LOCAL) == BinomialAlone(7 * rows, 4, 3)
    everybody = msgspec.structs.replace(mean, n_min=None)
    assert everybody.event(100, SHUFFLE) == Binomial(7 * 50, 4, 3)
    private = Neighbours(part=Part.PRIVATE)
    for trust in TrustModel:
        assert neighbours_of(msgspec.structs.replace(mean, neighbours=private).event(12, trust)) == private
    with pytest.raises(ParameterError, match="honest"):
        msgspec.structs.replace(everybody, honest_fraction=0.1).event(5, SHUFFLE)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "dim", "rounds", "bits", "g"),
    [
        (1, 1e-6, 1000, 1, 1, 5, 8),
        (1, 1e-6, 1000, 1, 1, 100, 37),
        (1, 1e-6, 10_000, 100, 1, 20, 52),
        (0.5, 1e-5, 1000, 20, 1, 100, 22),
        (4, 1e-6, 10_000, 100, 1, 10, 132),
        (1, 1e-6, 2000, 10, 50, 500, 16),
        (1, 1e-5, 10_000, 10, 20, 50, 20),
    ],
)
def test_calibration_gives_the_stated_grid(
    epsilon: float, delta: float, n: int, dim: int, rounds: int, bits: int, g: int
) -> None:
    budget = PrivacyBudget(epsilon, delta)
    mean = BinomialMean.calibrated(budget, n, dim, rounds=rounds, noise_bits=bits)
    assert (mean.noise_bits, mean.resolution) == (bits, g)
    assert meets(Repeat(mean.event(n, SHUFFLE), rounds), budget)
    finer = msgspec.structs.replace(mean, resolution=g + 1)
    assert not meets(Repeat(finer.event(n, SHUFFLE), rounds), budget)


def test_calibration_counts_drop_outs_and_dishonest_parties() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    mean = BinomialMean.calibrated(budget, 1000, 5, honest_fraction=0.8, n_min=900)
    assert meets(mean.event(1000, SHUFFLE), budget)
    event = mean.event(1000, SHUFFLE)
    assert event == Binomial(mean.noise_bits * 700, mean.resolution, 5)  # 900 arrive, 200 of them collude
    finer = msgspec.structs.replace(mean, resolution=mean.resolution + 1)
    assert not meets(finer.event(1000, SHUFFLE), budget)
    assert mean.bits_per_coordinate == mean.noise_bits + mean.resolution
    with pytest.raises(ParameterError, match="n_min"):
        BinomialMean.calibrated(budget, 1000, 5, n_min=1001)
    with pytest.raises(ParameterError, match="n_min must be above"):
        BinomialMean.calibrated(budget, 1000, 5, honest_fraction=0.4, n_min=600)
    with pytest.raises(BudgetError, match=r"noise_bits >= \d+ would do"):
        BinomialMean.calibrated(budget, 20, 5, noise_bits=1)
    with pytest.raises(ParameterError, match="delta"):
        BinomialMean.calibrated(PrivacyBudget(1.0), 1000, 5)


# The law


def test_three_ways_have_the_exact_law() -> None:
    mean, facts = BinomialMean(dim=1, noise_bits=4, resolution=3), Round(n=3, radius=2.0)
    rows, rng, trials = np.array([[0.5], [-1.1], [9.0]]), simulated(2, "law"), 1000
    law = ones_law(mean, np.array([0.25, -0.55, 1.0]))
    secret = secure()

    def ones(estimate: Array) -> int:
        return round(float(estimate[0]) * 3 * 3 / 2 / 2 + (3 * 3 + 3 * 4) / 2)

    ways: dict[str, Any] = {
        "shuffled messages": lambda: ones(mean.decode(shuffled(mean, rows, facts, rng), facts)),
        "pooled messages": lambda: ones(
            mean.decode(mean.encode(rows, facts, party=0, rng=secret), facts, rng=rng)
        ),
        "counts": lambda: int(mean.counts(rows, facts, rng=rng).sum()),
        "estimate": lambda: ones(mean.estimate(rows, facts, rng=rng)),
        "estimate, float32": lambda: ones(mean.estimate(rows.astype(np.float32), facts, rng=rng)),
    }
    for name, way in ways.items():
        seen = np.bincount([way() for _ in range(trials)], minlength=law.size)
        kept = law * trials > 5
        rest = law[~kept].sum() * trials
        observed = np.append(seen[kept], seen[~kept].sum())
        expected = np.append(law[kept] * trials, rest)
        assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM, name


def test_the_messages_of_a_whole_federation() -> None:
    n, dim = 1000, 25
    mean = BinomialMean.calibrated(PrivacyBudget(1.0, 1e-6), n, dim, noise_bits=20)
    rows = simulated(3, "rows").standard_normal((n, dim)) * 0.12
    facts, rng = Round(n=n, radius=1.0, parties=n), simulated(3, "noise")
    sent = [m for k, row in enumerate(rows) for m in mean.encode(row[None], facts, party=k, rng=rng)]
    plain = mean.decode(sent, facts)
    batch = shuffle(sent, rng=rng)
    (mixed,) = batch
    assert (mixed.sender, mixed.payload.size, mixed.symbols) == (None, dim, n * mean.bits_per_coordinate)
    assert np.array_equal(mean.decode(batch, facts), plain)
    norms = np.linalg.norm(rows, axis=1)
    target = (rows / np.maximum(norms, 1)[:, None]).mean(axis=0)
    variance = mean.variance(rows, facts)
    for got in (plain, mean.estimate(rows, facts, rng=rng)):
        z = (got - target) / np.sqrt(variance / dim)
        assert np.abs(z).max() < z_bound(2 * dim)
        # Sums of squares of so many normal numbers.
        assert FALSE_ALARM < stats.chi2.cdf((z**2).sum(), dim) < 1 - FALSE_ALARM


def test_mean_and_variance_are_exact() -> None:
    mean, facts = BinomialMean(dim=3, noise_bits=8, resolution=6), Round(n=40, radius=1.0)
    rows, rng, trials = simulated(4, "rows").uniform(-0.5, 0.5, (40, 3)), simulated(4, "noise"), 3000
    draws = np.stack([mean.estimate(rows, facts, rng=rng) for _ in range(trials)])
    squares = np.square(draws - rows.mean(axis=0)).sum(axis=1)
    exact = mean.variance(rows, facts)
    assert abs(squares.mean() - exact) < z_bound(1) * squares.std() / trials**0.5
    assert squares.std() / trials**0.5 < 0.02 * exact
    error = mean.error(40)
    assert exact <= error.variance <= 1.2 * exact
    assert (error.bias, error.exact) == (0.0, False)


def test_the_variance_of_a_sum_of_two_numbers() -> None:
    # Lowy (2023), Algorithm 17, has variance .38125 at p = .25; at p = 1/2 noise is b m / 4 in squared steps.
    mean, facts = BinomialMean(dim=1, noise_bits=3, resolution=2), Round(n=2, radius=0.5)
    rows = np.array([[0.3], [0.9]]) - 0.5
    assert 4 * mean.variance(rows, facts) == pytest.approx(0.25 * (3 * 2 * 0.25 + 0.6 * 0.4 + 0.8 * 0.2))
    with_quarter = 0.25 * (3 * 2 * 0.25 * 0.75 + 0.6 * 0.4 + 0.8 * 0.2)
    assert with_quarter == pytest.approx(0.38125)


def test_errors_scale_as_the_formula() -> None:
    mean = BinomialMean(dim=100, noise_bits=20, resolution=52)
    # Noise and worst rounding per coordinate of the sum at n = 10,000.
    assert mean.error(10_000).variance * 10_000**2 / 100 == pytest.approx(73.9645 + 3.69822, rel=1e-5)
    assert mean.error(7, Facts(radius=3.0)).variance == pytest.approx(9 * mean.error(7).variance)


def test_blocks_of_rows_are_as_good_as_all_rows() -> None:
    mean, facts = BinomialMean(dim=4, noise_bits=2, resolution=3, n_min=2), Round(n=50, radius=1.0)
    rows = simulated(5, "rows").uniform(-0.5, 0.5, (50, 4))
    for dtype in (np.float32, np.float64):
        typed: Array = rows.astype(dtype)
        blocks = (typed[k : k + 7] for k in range(0, 50, 7))
        draws = np.stack([mean.estimate(typed, facts, rng=simulated(5, k)) for k in range(800)])
        again = np.stack(
            [mean.estimate([typed[:13], typed[13:]], facts, rng=simulated(6, k)) for k in range(800)]
        )
        assert stats.ks_2samp(draws[:, 0], again[:, 0]).pvalue > FALSE_ALARM
        assert mean.estimate(blocks, facts, rng=simulated(7, "noise")).shape == (4,)


def test_a_radius_of_nothing_gives_nothing() -> None:
    mean, facts = BinomialMean(dim=2, noise_bits=1, resolution=3), Round(n=4, radius=0.0)
    rows = np.ones((4, 2))
    for rng in (simulated(8, "noise"), secure()):
        assert mean.estimate(rows, facts, rng=rng).tolist() == [0.0, 0.0]
        assert mean.decode(mean.encode(rows, facts, party=0, rng=rng), facts).tolist() == [0.0, 0.0]
    assert mean.variance(rows, facts) == 0


# Drop-outs


def test_drop_outs_take_their_noise_along() -> None:
    mean, facts = BinomialMean(dim=2, noise_bits=30, resolution=4, n_min=4), Round(n=8, radius=1.0)
    rows, rng, trials = np.full((8, 2), 0.5), simulated(9, "noise"), 500
    kept = [0, 2, 3, 6, 7]
    draws = np.stack([mean.decode(shuffled(mean, rows[kept], facts, rng), facts) for _ in range(trials)])
    # Divided by the planned number; the expected noise of five rows, not of eight, is taken off.
    std = np.sqrt(mean.variance(rows[kept], facts) / 2)
    assert np.all(np.abs(draws.mean(axis=0) - 0.5 * 5 / 8) < z_bound(2) * std / trials**0.5)
    assert 8 * z_bound(2) * std / trials**0.5 < 3 * 30 / 2 / 4  # wide of three rows' noise


def test_fewer_rows_than_are_priced_are_refused() -> None:
    rows, rng = np.zeros((5, 2)), simulated(10, "noise")
    for n_min, n in ((None, 5), (5, 9)):
        mean = BinomialMean(dim=2, noise_bits=3, resolution=4, n_min=n_min)
        this_round = Round(n=n, radius=1.0)
        assert mean.decode(mean.encode(rows, this_round, party=0, rng=rng), this_round).shape == (2,)
        with pytest.raises(RefusalError, match="at least 5"):
            mean.decode(mean.encode(rows[:4], this_round, party=0, rng=rng), this_round)
        with pytest.raises(RefusalError, match="at least 5"):
            mean.estimate(rows[:4], this_round, rng=rng)
        with pytest.raises(RefusalError, match="at least 5"):
            mean.decode([], this_round)


# On the wire


@pytest.mark.parametrize("rows", [0, 1, 3, 8])
def test_bits_are_counted_on_the_wire(rows: int) -> None:
    mean, facts = BinomialMean(dim=5, noise_bits=6, resolution=5), Round(n=8, radius=1.0)
    sent = mean.encode(np.ones((rows, 5)), facts, party=3, rng=simulated(11, "noise"))
    assert sum(8 * len(m.to_bytes()) for m in sent) == mean.bits_per_party(rows)
    assert len(sent) == (rows > 0)
    for message in sent:
        assert (message.payload.shape, message.symbols, message.sender) == ((5,), rows * 11, 3)
        # Every one-bit symbol is on the wire, and nothing but the header and less than a byte a coordinate.
        assert 5 * rows * 11 <= 8 * (len(message.to_bytes()) - 15) < 5 * (rows * 11 + 8)


def test_senders_and_order_are_ignored() -> None:
    mean, facts = BinomialMean(dim=3, noise_bits=6, resolution=5), Round(n=2, radius=1.0)
    rng = simulated(12, "noise")
    sent = [m for k in range(2) for m in mean.encode(np.ones((1, 3)), facts, party=k, rng=rng)]
    unsigned = [Message(payload=m.payload, symbols=m.symbols) for m in sent[::-1]]
    assert np.array_equal(mean.decode(sent, facts), mean.decode(unsigned, facts))


# Bad input


@pytest.mark.parametrize(
    "wrong",
    [
        {"dim": 0},
        {"noise_bits": 0},
        {"noise_bits": 2.5},
        {"resolution": 0},
        {"resolution": 2**31},
        {"honest_fraction": 0.0},
        {"honest_fraction": 1.5},
        {"honest_fraction": float("nan")},
        {"n_min": 1},
        {"n_min": 2.5},
        {"neighbours": Neighbours(Relation.ADD_REMOVE)},
        {"neighbours": "replace-one"},
    ],
)
def test_bad_parameters_are_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"dim": 2, "noise_bits": 3, "resolution": 4}
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        BinomialMean(**good | wrong)


def test_bad_rows_are_refused_before_randomness_is_drawn() -> None:
    mean, facts = BinomialMean(dim=2, noise_bits=3, resolution=4), Round(n=2, radius=1.0)
    rng = simulated(13, "noise")
    before = rng.bit_generator.state
    for bad in (np.zeros(2), np.zeros((2, 3)), np.zeros((2, 2), dtype=complex)):
        with pytest.raises(ParameterError):
            mean.encode(bad, facts, party=0, rng=rng)
        with pytest.raises(ParameterError):
            mean.estimate(bad, facts, rng=rng)
        with pytest.raises(ParameterError):
            mean.variance(bad, facts)
    assert rng.bit_generator.state == before
    bad_sizes: list[Any] = [0, 2.5, True]
    for n in bad_sizes:
        with pytest.raises(ParameterError, match="n must"):
            mean.event(n, SHUFFLE)
        with pytest.raises(ParameterError, match="n must"):
            mean.error(n)


def test_messages_that_encode_cannot_have_written_are_refused() -> None:
    mean, facts = BinomialMean(dim=2, noise_bits=3, resolution=4), Round(n=2, radius=1.0)
    (good,) = mean.encode(np.zeros((2, 2)), facts, party=0, rng=simulated(14, "noise"))
    bad = {
        "dtype float64": Message(payload=good.payload.astype(float), symbols=14),
        "label 2": Message(payload=good.payload, symbols=14, label=2),
        "7 bits of each row": Message(payload=good.payload, symbols=13),
        " 0 bits": Message(payload=good.payload, width=8),
        "-7 bits": Message(payload=good.payload, symbols=-7),
        "2 coordinates": Message(payload=np.zeros(3, dtype=np.int64), symbols=14),
        "from 0 to its 14": Message(payload=np.array([15, 0]), symbols=14),
        "from 0 to": Message(payload=np.array([0, -1]), symbols=14),
    }
    for said, message in bad.items():
        with pytest.raises(ParameterError, match=said):
            mean.decode([good, message], facts)


def test_an_estimator_survives_json() -> None:
    mean = BinomialMean(dim=2, noise_bits=3, resolution=4, honest_fraction=0.9, n_min=7)
    assert msgspec.json.decode(msgspec.json.encode(mean), type=BinomialMean) == mean


def test_plans_price_the_rows_that_are_sure_and_not_those_that_may_come() -> None:
    mixed = BinomialMean(dim=2, noise_bits=3, resolution=4)
    step = Step(measures=(Measure(statistic="mean", estimator=mixed, max_radius=1.0),), honest=11)
    assert step.event([40, 60], SHUFFLE) == Binomial(3 * 11, 4, 2)
    assert step.event([40], LOCAL) == BinomialAlone(3 * 40, 4, 2)


@pytest.mark.parametrize(("dim", "fineness"), [(1, 1.0), (50, 0.5), (785, 1.0), (785, 2.0)])
@pytest.mark.parametrize(("multiplier", "honest"), [(0.01, 1), (3.0, 100), (40.0, 8675)])
def test_noise_bits_follow_a_multiplier(dim: int, fineness: float, multiplier: float, honest: int) -> None:
    mean = BinomialMean.for_multiplier(dim=dim, multiplier=multiplier, honest=honest, fineness=fineness)
    g, b = mean.resolution, mean.noise_bits
    assert g == math.ceil(fineness * math.sqrt(dim))
    assert math.sqrt(honest * b) / (2 * g) >= multiplier * (1 - 1e-9)  # of the sum's noise, over 2 radius
    assert b == 1 or math.sqrt(honest * (b - 1)) / (2 * g) < multiplier
    assert mean.event(honest, SHUFFLE) == Binomial(b * honest, g, dim)
    if honest > 1:
        with pytest.raises(ParameterError, match="n_min"):
            mean.event(honest - 1, SHUFFLE)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"multiplier": 0.0}, "multiplier"),
        ({"multiplier": math.nan}, "multiplier"),
        ({"multiplier": 1e9}, "2\\*\\*31"),
        ({"honest": 0}, "honest"),
        ({"fineness": -1.0}, "fineness"),
        ({"dim": 0}, "dim"),
    ],
)
def test_a_multiplier_that_no_bits_give_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        BinomialMean.for_multiplier(**({"dim": 10, "multiplier": 2.0, "honest": 100} | wrong))


def test_the_default_grid_costs_a_third_more_than_a_trusted_server() -> None:
    # 8,000 rows of 785 coordinates, 20 rounds, epsilon 1: variance over the central Gaussian's, as tabled.
    budget, rounds = PrivacyBudget(1.0, 1e-6), 20
    central = calibrate(lambda z: Gaussian(z / math.sqrt(rounds)), budget, low=1.0, high=1e4)

    def total(multiplier: float) -> Repeat:
        mean = BinomialMean.for_multiplier(dim=785, multiplier=multiplier, honest=8000)
        return Repeat(mean.event(8000, SHUFFLE), rounds)

    least = calibrate(total, budget, low=central / 2, high=4 * central)
    mean = BinomialMean.for_multiplier(dim=785, multiplier=least, honest=8000)
    g, b = mean.resolution, mean.noise_bits
    assert (g, b) == (29, 196)
    assert (b + 1) * 8000 / g**2 / (4 * central**2) == pytest.approx(1.312, abs=2e-3)
