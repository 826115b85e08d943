"""Sums modulo a power of two, with a share of the noise of every party.

Statistical tests fail on right code with probability below 1e-6 each.
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.means import (
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    Message,
    ModularSumMean,
    Round,
    modular_width,
)
from tacit.mechanisms import discrete_gaussian_log_pmf
from tacit.numerics import Array, IntArray
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    Neighbours,
    Relation,
    TrustModel,
    Unit,
    delta_of,
    epsilon_of,
)
from tests.privacy.sums_reference import as_floats, sum_law
from tests.statistics import FALSE_ALARM, z_bound

AGGREGATE, LOCAL, CENTRAL = TrustModel.AGGREGATE, TrustModel.LOCAL, TrustModel.CENTRAL
PARTY = Neighbours(unit=Unit.PARTY)
DELTA = 1e-5


def mean(
    share: float = 0.35, *, dim: int = 1, steps: int = 16, shares: int = 4, width: int = 32
) -> ModularSumMean:
    noise = DiscreteGaussianNoise(share, steps=steps)
    return ModularSumMean(dim=dim, noise=noise, shares=shares, width=width)


def of_std(std: float, *, dim: int, shares: int, width: int = 32, steps: int = 1) -> ModularSumMean:
    """The mean whose shares have that parameter, in grid steps."""
    return mean(std / 2 / steps, dim=dim, steps=steps, shares=shares, width=width)


# The law


def summed_noise(made: ModularSumMean, parties: int, seed: int) -> IntArray:
    """Whole numbers decoded from the messages of parties that all hold zero."""
    facts, rng = Round(n=1, radius=1.0, parties=parties), np.random.default_rng(seed)
    nothing = np.zeros((1, made.dim))
    sent = [m for party in range(parties) for m in made.encode(nothing, facts, party=party, rng=rng)]
    return np.asarray(np.rint(made.decode(sent, facts) * made.noise.steps).astype(np.int64))


def chi_square(drawn: IntArray, law: Array) -> float:
    """P-value of draws against a law on -r, ..., r; cells of fewer than 20 expected draws are pooled."""
    middle = len(law) // 2
    counts = np.bincount(np.clip(drawn + middle, 0, len(law) - 1), minlength=len(law))
    expected = law * drawn.size
    enough = expected >= 20
    seen = np.append(counts[enough], counts[~enough].sum())
    hoped = np.append(expected[enough], max(expected[~enough].sum(), 1e-9))
    if hoped[-1] < 20:
        seen, hoped = seen[:-1], hoped[:-1]
    return float(stats.chi2.sf(((seen - hoped) ** 2 / hoped).sum(), len(hoped) - 1))


@pytest.mark.parametrize(("std", "shares"), [(3.0, 10), (1.0, 4), (0.5, 2)])
def test_the_noise_of_messages_together_has_the_law_of_a_convolution(std: float, shares: int) -> None:
    drawn = summed_noise(of_std(std, dim=1_000_000, shares=shares), shares, seed=1)
    law = as_floats(sum_law(std, shares))
    assert chi_square(drawn, law) > FALSE_ALARM
    at_once = of_std(std, dim=1_000_000, shares=shares).estimate(
        np.zeros((1, 1_000_000)), Round(n=1, radius=1.0, parties=shares), rng=np.random.default_rng(2)
    )
    assert chi_square(np.rint(at_once).astype(np.int64), law) > FALSE_ALARM


def test_the_test_of_the_law_tells_the_sum_of_small_shares_from_one_draw() -> None:
    drawn = summed_noise(of_std(0.5, dim=1_000_000, shares=2), 2, seed=3)
    one = np.exp(discrete_gaussian_log_pmf(np.arange(-20, 21), math.sqrt(0.5)))
    assert chi_square(drawn, one) < 1e-300


def test_the_error_is_as_stated() -> None:
    """d (n s^2 + n / 12) / (steps n)^2: shares of noise, and rounding to the grid."""
    made, parties = mean(1.3295, dim=65, steps=512, shares=8, width=17), 10
    facts, rng = Round(n=parties, radius=1.0, parties=parties), np.random.default_rng(4)
    rows = rng.normal(size=(parties, 65))
    rows /= 1.001 * np.linalg.norm(rows, axis=1, keepdims=True)
    off = np.array([made.estimate(rows, facts, rng=rng) - rows.mean(axis=0) for _ in range(400)])
    squares = (off**2).sum(axis=1)
    exact = 65 * (parties * made.std**2 + parties / 12) / (512 * parties) ** 2
    assert abs(squares.mean() - exact) < z_bound(1) * squares.std() / 20
    assert squares.std() / 20 < 0.01 * exact
    stated = made.error(parties, Facts(parties=parties))
    assert stated.variance <= exact <= stated.mse
    assert stated.mse < 1.0001 * exact


# What is never done after the noise


@pytest.mark.parametrize("width", [1, 2, 5, 8, 21, 33, 63, 64])
def test_nothing_saturates_whatever_the_width(width: int) -> None:
    """The residues of the whole numbers of a wide message, with the same randomness."""
    narrow, wide = (of_std(5.0, dim=40, shares=4, width=w) for w in (width, 64))
    facts, cuts = Round(n=100, radius=1.0, parties=4), []
    for rows in (np.zeros((1, 40)), np.full((100, 40), 0.158), np.full((100, 40), -1e9)):
        (cut,), (full,) = (
            one.encode(rows, facts, party=0, rng=np.random.default_rng(5)) for one in (narrow, wide)
        )
        gap = (full.payload.astype(object) - cut.payload.astype(object)) % 2**width
        assert not gap.any()
        assert cut.payload.min() >= -(2 ** (width - 1))
        assert cut.payload.max() < 2 ** (width - 1)
        assert Message.from_bytes(cut.to_bytes()).payload.tolist() == cut.payload.tolist()
        cuts.append(cut.payload)
    if width <= 5:  # large inputs come out all over the range, not at its ends
        at_ends = np.isin(cuts[-1], (-(2 ** (width - 1)), 2 ** (width - 1) - 1)).mean()
        assert at_ends < 0.5 or width <= 2


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 64), st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=6), st.integers(0, 2**31)
)
def test_reducing_before_adding_changes_nothing(width: int, numbers: list[int], seed: int) -> None:
    made = mean(dim=1, width=width)
    facts = Round(n=1, radius=16.0, parties=len(numbers))
    sent = []
    for k, number in enumerate(numbers):
        residue = (number + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)
        sent.append(Message(payload=np.array([residue], dtype=np.int64), width=width, sender=k))
    whole = (sum(numbers) + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)
    order = np.random.default_rng(seed).permutation(len(sent))
    assert made.decode([sent[k] for k in order], facts)[0] == float(whole)


def test_one_message_may_be_the_sum_of_all() -> None:
    made, facts = mean(dim=6, width=20), Round(n=8, radius=2.0, parties=4)
    rows, rng = np.random.default_rng(6).normal(size=(8, 6)), np.random.default_rng(7)
    sent = [
        m
        for k, part in enumerate(np.array_split(rows, 4))
        for m in made.encode(part, facts, party=k, rng=rng)
    ]
    summed = np.array([m.payload for m in sent]).sum(axis=0)
    spare = 64 - 20
    centred = (summed << spare) >> spare
    (alone,) = [Message(payload=centred, width=20)]
    assert np.array_equal(made.decode([alone], facts), made.decode(sent, facts))


def test_messages_of_another_form_are_refused() -> None:
    made, facts = mean(dim=3, width=20), Round(n=1, radius=1.0)
    (sent,) = made.encode(np.zeros((1, 3)), facts, party=0, rng=np.random.default_rng(8))
    for bad in (
        [],
        [sent, sent],
        [replace(sent, width=21)],
        [replace(sent, payload=sent.payload[:2])],
        [replace(sent, payload=sent.payload.astype(np.float64), width=0)],
    ):
        with pytest.raises(ParameterError):
            made.decode(bad, facts)
    with pytest.raises(ParameterError, match="clipped_sum"):
        made.encode_sum(np.zeros(1), rows=1, round=facts, party=0, rng=np.random.default_rng(8))
    with pytest.raises(ParameterError, match="float64"):
        made.encode_sum(np.zeros(3, np.float32), rows=1, round=facts, party=0, rng=np.random.default_rng(8))


# Bits


def test_a_sum_wraps_around_at_the_width_less_four_bits_and_not_at_the_width() -> None:
    """A million coordinates, each a sum; what wraps around is off by whole multiples of 2^b."""
    parties, size, steps, std = 10, 1_000_000, 32, 85.0
    bits = modular_width(rows=parties, parties=parties, steps=steps, std=std, dim=size, rounds=1)
    # One number each: 0.9 of the radius at every party, as large as a sum may be.
    facts, value = Round(n=parties, radius=1.0, parties=parties), np.full(size, 0.9)
    found = {}
    for width in (64, bits, bits - 4):
        made, rng = of_std(std, dim=size, shares=8, width=width, steps=steps), np.random.default_rng(9)
        sent = [
            m
            for party in range(parties)
            for m in made.encode_sum(value, rows=1, round=facts, party=party, rng=rng)
        ]
        found[width] = np.rint(made.decode(sent, facts) * parties * steps).astype(np.int64)
    assert np.array_equal(found[bits], found[64])
    off = found[64] - found[bits - 4]
    assert 0 < np.count_nonzero(off) < size
    assert not (off % 2 ** (bits - 4)).any()


def test_the_width_is_the_least_that_its_bound_allows() -> None:
    for rows, parties, steps, std, dim, rounds in (
        (1, 1, 1, 1.0, 1, 1),
        (1437, 10, 512, 10_544.0, 65, 60),
        (10**6, 1000, 2**16, 1e6, 10**4, 10**3),
    ):
        bits = modular_width(rows=rows, parties=parties, steps=steps, std=std, dim=dim, rounds=rounds)
        t = std * math.sqrt(parties) * math.sqrt(2 * math.log(4 * dim * rounds * 2.0**40))
        needed = 2 * (rows * steps + parties / 2 + t) + 2
        assert 2 ** (bits - 1) < needed <= 2**bits


def test_runs_of_records_take_as_many_bits_as_in_the_table() -> None:
    digits = modular_width(rows=1437, parties=10, steps=512, std=10_544.0, dim=65, rounds=60)
    assert (digits, mean(dim=65, width=digits).bits_per_party() / 8) == (21, 182)
    wide = modular_width(rows=8000, parties=25, steps=2048, std=15_400.0, dim=785, rounds=20)
    assert (wide, mean(dim=785, width=wide).bits_per_party(100) / 8) == (26, 2563)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", 0),
        ("parties", 0),
        ("steps", 0),
        ("dim", 0),
        ("rounds", 0),
        ("std", 0.0),
        ("std", math.inf),
        ("rows", 10**400),
        ("parties", 2**64),
        ("steps", 2**1000),
        ("dim", 10**400),
    ],
)
def test_a_width_of_nothing_is_refused(name: str, value: float) -> None:
    asked = {"rows": 10, "parties": 10, "steps": 512, "std": 100.0, "dim": 65, "rounds": 1}
    with pytest.raises(ParameterError, match=name):
        modular_width(**{**asked, name: value})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="64 bits"):
        modular_width(**{**asked, "rows": 2**40, "steps": 2**30})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="64 bits"):
        modular_width(**{**asked, "std": 1e308})  # type: ignore[arg-type]


# The price


TABLE = [
    # d, steps, n, s and bits at 0.8 n shares, errors at 0.5, 0.8 and all of n, of a trusted server, and local
    (65, 512, 10, 1361.3, 17, (73.5, 45.9, 36.8), 36.2, 362.0),
    (65, 512, 100, 430.5, 18, (0.735, 0.459, 0.368), 0.362, 36.2),
    (65, 512, 1000, 136.1, 21, (7.35e-3, 4.59e-3, 3.68e-3), 3.62e-3, 3.62),
    (785, 2048, 10, 5439.0, 19, (886.0, 554.0, 443.0), 437.0, 4370.0),
    (785, 2048, 100, 1720.0, 20, (8.86, 5.54, 4.43), 4.37, 437.0),
    (785, 2048, 1000, 544.0, 23, (0.0886, 0.0554, 0.0443), 0.0437, 43.7),
    (10**4, 8192, 10, 21742.0, 21, (11270.0, 7044.0, 5635.0), 5567.0, 55670.0),
    (10**4, 8192, 100, 6875.0, 22, (113.0, 70.4, 56.4), 55.7, 5567.0),
    (10**4, 8192, 1000, 2174.0, 25, (1.13, 0.704, 0.564), 0.557, 557.0),
]
Z = {1.0: 3.7306316348, 2.0: 1.9938124456}


def priced_at(epsilon: float, *, dim: int, steps: int, shares: int) -> ModularSumMean:
    """The mean of n party vectors with the least share that costs epsilon, from the definition."""
    distance = 2 * steps * (1 + 2.0**-40) + math.sqrt(dim)
    std = math.sqrt(((Z[epsilon] * distance) ** 2 + 9) / shares)
    noise = DiscreteGaussianNoise(std / (2 * steps), steps=steps)
    return ModularSumMean(dim=dim, noise=noise, shares=shares, neighbours=PARTY)


def near(found: float, printed: float) -> bool:
    """Whether a number rounds to the digits that are printed, one unit of the last of three aside."""
    return abs(found / printed - 1) < 0.006


@pytest.mark.parametrize(("dim", "steps", "n", "std", "bits", "errors", "central", "local"), TABLE)
def test_reference_values(
    dim: int,
    steps: int,
    n: int,
    std: float,
    bits: int,
    errors: tuple[float, ...],
    central: float,
    local: float,
) -> None:
    made = priced_at(1.0, dim=dim, steps=steps, shares=math.ceil(0.8 * n))
    assert abs(made.std - std) < 0.06 if std < 5000 and std % 1 else abs(made.std - std) < 0.6
    width = modular_width(rows=n, parties=n, steps=steps, std=made.std, dim=dim, rounds=1)
    assert width == bits
    assert epsilon_of(made.event(1, AGGREGATE), DELTA) == pytest.approx(1.0, abs=2e-6)
    for share, printed in zip((0.5, 0.8, 1.0), errors, strict=True):
        of = priced_at(1.0, dim=dim, steps=steps, shares=math.ceil(share * n))
        assert near(of.error(n, Facts(parties=n)).variance, printed)
        cheaper = priced_at(2.0, dim=dim, steps=steps, shares=math.ceil(share * n))
        ratio = cheaper.error(n, Facts(parties=n)).variance / of.error(n, Facts(parties=n)).variance
        assert ratio == pytest.approx(0.2856, abs=2e-4)
        to_central = of.error(n, Facts(parties=n)).variance / (dim * (2 * Z[1.0] / n) ** 2)
        low, high = {0.5: (2.02, 2.035), 0.8: (1.264, 1.271), 1.0: (1.0105, 1.0165)}[share]
        assert low < to_central < high
    assert near(dim * (2 * Z[1.0] / n) ** 2, central)
    assert near(dim * n * (2 * Z[1.0] / n) ** 2, local)


ALONE = {
    10: ((2.44, 3.19, 3.62), (5.00, 6.60, 7.54)),
    25: ((4.21, 5.41, 6.17), (8.84, 11.52, 13.26)),
    100: ((9.36, 12.53, 14.43), (20.8, 28.5, 33.2)),
    1000: ((42.8, 60.3, 71.3), (110.0, 160.0, 193.0)),
}


@pytest.mark.parametrize("n", ALONE)
def test_what_one_message_alone_shows(n: int) -> None:
    for epsilon, row in zip((1.0, 2.0), ALONE[n], strict=True):
        for share, printed in zip((0.5, 0.8, 1.0), row, strict=True):
            made = priced_at(epsilon, dim=10**4, steps=8192, shares=math.ceil(share * n))
            alone = made.event(1, LOCAL)
            assert isinstance(alone, DiscreteGaussian)
            assert near(epsilon_of(alone, DELTA), printed)


def test_fewer_shares_than_planned_and_a_shuffler() -> None:
    made = priced_at(1.0, dim=65, steps=512, shares=8)
    for shares, printed in ((5, 1.295), (2, 2.155), (1, 3.186)):
        fewer = msgspec.structs.replace(made, shares=shares)
        assert round(epsilon_of(fewer.event(1, AGGREGATE), DELTA), 3) == printed
    assert made.event(1, CENTRAL) == made.event(1, AGGREGATE)
    assert made.event(1, TrustModel.SHUFFLE) == made.event(1, LOCAL)
    assert made.noise_multiplier == pytest.approx(Z[1.0] * (1 + math.sqrt(65) / 1024), rel=1e-6)


def test_all_silos_draw_one_share_and_each_prices_its_own_slack() -> None:
    made = mean(1.3295, dim=65, steps=512, shares=8)
    few, many = (made.event(rows, AGGREGATE) for rows in (100, 10**7))
    assert isinstance(few, DiscreteGaussianSum)
    assert isinstance(many, DiscreteGaussianSum)
    assert few.std == many.std == made.std
    assert many.sensitivity > 1.01 * few.sensitivity
    assert epsilon_of(many, DELTA) > epsilon_of(few, DELTA)


def test_angles_and_absence_change_the_distance_and_not_the_noise() -> None:
    made = mean(1.3295, dim=65, steps=512, shares=8)
    acute = msgspec.structs.replace(made, acute=True)
    assert made.moved / acute.moved == pytest.approx(math.sqrt(2), rel=1e-9)
    absent = made.against_nothing()
    assert absent.neighbours.relation is Relation.ZERO_OUT
    assert absent.std == pytest.approx(made.std, rel=1e-12)
    assert absent.noise_multiplier == pytest.approx(2 * made.noise_multiplier, rel=1e-12)
    event = made.event(1, AGGREGATE)
    assert isinstance(event, DiscreteGaussianSum)
    lost = 1 - 2 * 512 / event.sensitivity
    level = event.sensitivity / math.sqrt(8 * made.std**2 - 9)
    assert made.rounding(event, 5) == pytest.approx(lost * level, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("dim", 0), ("shares", 0), ("width", 0), ("width", 65), ("noise", GaussianNoise(1.0))),
        ("on_violation", "drop"),
    ],
)
def test_fields_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=name):
        msgspec.structs.replace(mean(), **{name: value})


def test_too_little_noise_has_no_price() -> None:
    with pytest.raises(ParameterError, match="take more steps"):
        of_std(2.9, dim=1, shares=10).event(1, AGGREGATE)
    with pytest.raises(ParameterError, match="take more steps"):
        of_std(5.0, dim=1, shares=3).event(1, AGGREGATE)


def test_an_attack_on_the_honest_sum_stands_and_breaks_half_the_noise() -> None:
    """The best threshold between two sums, one row replaced by its opposite, against the price."""
    rows, others = np.array([[1.0], [0.0], [0.0], [0.0]]), np.array([[-1.0], [0.0], [0.0], [0.0]])
    facts, size, epsilon = Round(n=4, radius=1.0, parties=4), 20_000, 1.0
    claimed = delta_of(mean().event(1, AGGREGATE), epsilon)
    middle = mean().std ** 2 * 4 * epsilon / (2 * 16) / 16 / 4  # where the likelihood ratio is e^epsilon
    off = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size)) * (1 + math.exp(epsilon))
    found = {}
    for share in (0.35, 0.175):
        one, other = (
            mean(share).first_coordinates(x, facts, size=size, rng=np.random.default_rng(k))
            for k, x in enumerate((rows, others))
        )
        found[share] = (one > middle).mean() - math.exp(epsilon) * (other > middle).mean()
    assert 0.8 * claimed < found[0.35] <= claimed + off
    assert found[0.175] > claimed + off
