"""Noisy sums: what the contract suite does not see, above all what a hostile input could do."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Estimator,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    Message,
    NoNoise,
    Round,
    SumEncoder,
)
from tacit.numerics import Array, clip_rows
from tacit.privacy import Gaussian, Neighbours, NonPrivate, Relation, TrustModel
from tests.statistics import z_bound

CENTRAL, LOCAL = TrustModel.CENTRAL, TrustModel.LOCAL
ADD_REMOVE = Neighbours(Relation.ADD_REMOVE)
NOISES: list[AnyNoise] = [
    GaussianNoise(0.7),
    LaplaceNoise(0.7),
    DiscreteGaussianNoise(0.7, steps=8),
    DiscreteLaplaceNoise(0.7, steps=8),
]
ROUND = Round(n=10, radius=1.0)


def name(noise: AnyNoise) -> str:
    return type(noise).__name__


def rows(k: int, dim: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(k, dim))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# What a constructor refuses


@pytest.mark.parametrize("trust", ["local", "central", "shuffle", TrustModel.SHUFFLE, None])
def test_a_string_is_no_trust_model(trust: Any) -> None:
    # "central" == TrustModel.CENTRAL, yet `is` fails: nobody would add the noise.
    with pytest.raises(ParameterError, match=r"trust must be TrustModel\.LOCAL or TrustModel\.CENTRAL"):
        AdditiveMean(dim=1, noise=GaussianNoise(1.0), trust=trust)


def test_a_string_is_no_relation() -> None:
    plain: Any = "replace-one"
    with pytest.raises(ParameterError, match="neighbours must be a Neighbours"):
        AdditiveMean(dim=1, noise=GaussianNoise(1.0), neighbours=plain)


@pytest.mark.parametrize(("field", "value"), [("dim", 0), ("dim", 2.0), ("noise", 1.0), ("noise", None)])
def test_other_fields_are_checked(field: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=field):
        AdditiveMean(**({"dim": 1} | {field: value}))


def test_misspelt_fields_are_refused() -> None:
    text = b'{"estimator":"additive","dim":2,"trsut":"central"}'
    with pytest.raises(msgspec.ValidationError, match="trsut"):
        msgspec.json.decode(text, type=Estimator)
    text = b'{"estimator":"additive","dim":2,"noise":{"noise":"gaussian","noise_multiplier":1,"step":4}}'
    with pytest.raises(msgspec.ValidationError, match="step"):
        msgspec.json.decode(text, type=Estimator)


# What encode refuses and hides


@pytest.mark.parametrize("noise", [NoNoise(), *NOISES], ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (4,), (3, 1)])
def test_sums_of_another_shape_are_refused(
    noise: AnyNoise, trust: TrustModel, shape: tuple[int, ...]
) -> None:
    mean = AdditiveMean(dim=3, noise=noise, trust=trust)
    with pytest.raises(ParameterError, match=r"clipped_sum must have shape \(3,\)"):
        mean.encode_sum(np.zeros(shape), rows=1, round=ROUND, party=0, rng=rng())


def test_refusals_draw_nothing() -> None:
    source = rng()
    before = source.bit_generator.state
    mean = AdditiveMean(dim=3, noise=GaussianNoise(1.0))
    for bad in (np.zeros((2, 4)), np.zeros(3), np.zeros((2, 3), dtype=complex)):
        with pytest.raises(ParameterError):
            mean.encode(bad, ROUND, party=0, rng=source)
        with pytest.raises(ParameterError):
            mean.estimate(bad, ROUND, rng=source)
    assert source.bit_generator.state == before


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.ZERO_OUT])
def test_the_length_of_a_message_hides_the_size_of_a_batch(noise: AnyNoise, relation: Relation) -> None:
    mean = AdditiveMean(dim=5, noise=noise, neighbours=Neighbours(relation))
    lengths = {
        len(mean.encode(rows(k, 5), ROUND, party=0, rng=rng())[0].to_bytes()) for k in (0, 1, 9, 10, 11, 500)
    }
    assert lengths == {mean.bits_per_party(ROUND.n) // 8}


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_an_empty_batch_is_a_sum_of_zero(noise: AnyNoise, trust: TrustModel) -> None:
    mean = AdditiveMean(dim=3, noise=noise, trust=trust, neighbours=ADD_REMOVE)
    empty, zeros = (mean.encode(np.zeros((k, 3)), ROUND, party=0, rng=rng())[0].payload for k in (0, 4))
    assert np.array_equal(empty, zeros)
    assert np.array_equal(
        mean.estimate(np.zeros((0, 3)), ROUND, rng=rng()), mean.estimate(np.zeros((4, 3)), ROUND, rng=rng())
    )


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("radius", [0.0, 5e-324, 1e-320, 1e-300, 1e-31, 1e-30, 1e-8, 1e8, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_radius_brings_out_more_than_the_ball(
    noise: AnyNoise, trust: TrustModel, radius: float, dtype: Any
) -> None:
    # With the noise subtracted (same generator, no rows), what is left of a sum lies in the ball.
    mean = AdditiveMean(dim=2, noise=noise, trust=trust)
    this_round = Round(n=1, radius=radius)
    row = np.array([[3e38, -1e30]], dtype=dtype)
    with_row, without = (mean.estimate(x, this_round, rng=rng(3)) for x in (row, np.zeros((1, 2))))
    spread = float(np.abs(without).max())
    assert np.all(np.isfinite(with_row))
    slack = 1e-6 * (radius + spread) + noise.unit(radius) * noise.on_grid
    assert np.linalg.norm(with_row - without) <= radius + slack
    if radius < 1e-31:
        assert np.array_equal(with_row, without)


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf, 1e31])
def test_other_radii_are_refused(radius: float) -> None:
    with pytest.raises(ParameterError, match="radius must be from 0 to"):
        Round(n=1, radius=radius)


@pytest.mark.parametrize("noise", [NoNoise(), *NOISES], ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_fused_path_sends_what_encode_sends(noise: AnyNoise, trust: TrustModel, dtype: Any) -> None:
    mean = AdditiveMean(dim=4, noise=noise, trust=trust, on_violation="clip")
    assert isinstance(mean, SumEncoder)
    data = rows(6, 4).astype(dtype)
    summed = clip_rows(data, 1.0, norm=noise.norm).sum(axis=0, dtype=np.float64)
    (plain,) = mean.encode(data, ROUND, party=2, rng=rng())
    (fused,) = mean.encode_sum(summed, rows=6, round=ROUND, party=2, rng=rng())
    assert plain.to_bytes() == fused.to_bytes()
    assert plain.sender == fused.sender == 2


# What decode refuses


@pytest.mark.parametrize("noise", NOISES[2:], ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_float_among_integers_is_refused(noise: AnyNoise, trust: TrustModel) -> None:
    # 1e22 would round the other parties' sum to multiples of 2**21 before the noise is added.
    mean = AdditiveMean(dim=1, noise=noise, trust=trust)
    honest = mean.encode(rows(3, 1), ROUND, party=0, rng=rng())
    for dtype in (np.float32, np.float64):
        hostile = Message(payload=np.array([1e22], dtype=dtype), sender=1)
        with pytest.raises(ParameterError, match="of type int64"):
            mean.decode([*honest, hostile], ROUND, rng=rng())


@pytest.mark.parametrize("noise", NOISES[2:], ids=name)
def test_hostile_integers_only_shift_what_others_sent(noise: AnyNoise) -> None:
    mean = AdditiveMean(dim=1, noise=noise, trust=CENTRAL)
    unit = noise.unit(1.0)
    for value in (2**63 - 1, -(2**63), 2**53 + 1):
        hostile = Message(payload=np.array([value]), width=64, sender=1)
        outputs = []
        for sent in (0, 1):
            honest = Message(payload=np.array([sent]), width=64, sender=0)
            outputs.append(mean.decode([honest, hostile], Round(n=1, radius=1.0), rng=rng(4))[0] / unit)
        # Modulo 2**64, and rounded only after the noise: two to the 10th is one unit of float64 there.
        assert (outputs[1] - outputs[0]) % 2.0**64 <= 2.0**11


@pytest.mark.parametrize("noise", [NoNoise(), *NOISES], ids=name)
def test_a_sum_cannot_be_counted_twice(noise: AnyNoise) -> None:
    mean = AdditiveMean(dim=2, noise=noise, trust=CENTRAL)
    sent = mean.encode(rows(3, 2), ROUND, party=0, rng=rng())
    with pytest.raises(ParameterError, match="at most one message of each sender"):
        mean.decode(sent * 2, ROUND, rng=rng())
    anonymous = [Message(payload=m.payload, width=m.width) for m in sent]
    assert mean.decode(anonymous * 2, ROUND, rng=rng()).shape == (2,)


@pytest.mark.parametrize("noise", NOISES, ids=name)
def test_a_trusted_server_needs_randomness(noise: AnyNoise) -> None:
    mean = AdditiveMean(dim=2, noise=noise, trust=CENTRAL)
    sent = mean.encode(rows(3, 2), ROUND, party=0, rng=rng())
    with pytest.raises(ParameterError, match="needs rng under central trust"):
        mean.decode(sent, ROUND)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_messages_of_another_form_are_refused(trust: TrustModel) -> None:
    mean = AdditiveMean(dim=2, noise=GaussianNoise(1.0), trust=trust)
    with pytest.raises(ParameterError, match="at least one message"):
        mean.decode([], ROUND, rng=rng())
    with pytest.raises(ParameterError, match="2 numbers of type"):
        mean.decode([Message(payload=np.zeros(3, np.float32))], ROUND, rng=rng())
    with pytest.raises(ParameterError, match=r"got shape \(2,\), dtype int64"):
        mean.decode([Message(payload=np.zeros(2, np.int64))], ROUND, rng=rng())


# What leaves


@pytest.mark.parametrize("noise", NOISES[:2], ids=name)
def test_a_trusted_server_publishes_no_low_bits(noise: AnyNoise) -> None:
    # Float32 noise is a multiple of a power of two: below it, a float64 sum would stand in the open.
    mean = AdditiveMean(dim=50, noise=noise, trust=CENTRAL)
    sent = mean.encode(rows(1, 50) / 7, ROUND, party=0, rng=rng())
    published = mean.decode(sent, Round(n=1, radius=1.0), rng=rng())
    assert np.array_equal(published, published.astype(np.float32))


@pytest.mark.parametrize("noise", NOISES[2:], ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_what_leaves_a_grid_is_a_whole_number_of_steps(noise: AnyNoise, trust: TrustModel) -> None:
    mean = AdditiveMean(dim=50, noise=noise, trust=trust)
    sent = mean.encode(rows(9, 50), ROUND, party=0, rng=rng())
    assert sent[0].payload.dtype == np.int64
    steps = mean.decode(sent, Round(n=1, radius=1.0), rng=rng()) * 8
    assert np.array_equal(steps, np.rint(steps))


def test_under_central_trust_the_sum_travels_in_full() -> None:
    data = rows(3, 2) / 10
    for noise in (NoNoise(), GaussianNoise(1.0)):
        (sent,) = AdditiveMean(dim=2, noise=noise, trust=CENTRAL).encode(data, ROUND, party=0, rng=rng())
        assert np.array_equal(Message.from_bytes(sent.to_bytes()).payload, data.sum(axis=0))
    grid = AdditiveMean(dim=2, noise=DiscreteGaussianNoise(1.0, steps=100), trust=CENTRAL)
    (sent,) = grid.encode(data, ROUND, party=0, rng=rng())
    assert np.array_equal(Message.from_bytes(sent.to_bytes()).payload, np.rint(100 * data.sum(axis=0)))


# Estimates and errors


@given(n=st.integers(0, 30), parties=st.integers(1, 12), seed=st.integers(0, 1000))
def test_estimate_deals_rows_as_parties_hold_them(n: int, parties: int, seed: int) -> None:
    data = rows(n, 3, seed)
    this_round = Round(n=max(n, 1), radius=1.0, parties=parties)
    # At 2**-19 steps the noise is zero for all purposes: what is left is each party's rounding.
    mean = AdditiveMean(dim=3, noise=DiscreteGaussianNoise(2.0**-22, steps=4))
    sent = [
        message
        for party, part in enumerate(np.array_split(data, parties))
        for message in mean.encode(part, this_round, party=party, rng=rng())
    ]
    assert np.array_equal(mean.estimate(data, this_round, rng=rng()), mean.decode(sent, this_round))


def test_without_noise_the_mean_is_exact() -> None:
    data = rows(10, 4)
    for trust in (LOCAL, CENTRAL):
        mean = AdditiveMean(dim=4, trust=trust, on_violation="clip")
        sent = mean.encode(data, ROUND, party=0, rng=rng())
        expected = clip_rows(data, 1.0).sum(axis=0) / 10
        assert np.allclose(mean.decode(sent, ROUND), expected, rtol=1e-15)
        assert np.allclose(mean.estimate(data, ROUND, rng=rng()), expected, rtol=1e-15)
        assert isinstance(mean.event(10, CENTRAL), NonPrivate)
        assert mean.error(10).mse == 0


@pytest.mark.parametrize("noise", NOISES, ids=name)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_the_stated_variance_is_exact(noise: AnyNoise, trust: TrustModel) -> None:
    dim, parties = 20_000, 3
    mean = AdditiveMean(dim=dim, noise=noise, trust=trust)
    this_round = Round(n=5, radius=2.0, parties=parties)
    drawn = mean.estimate(np.zeros((5, dim)), this_round, rng=rng(9))
    stated = mean.error(5, Facts(parties=parties, radius=2.0)).variance
    tolerance = z_bound(1) * math.sqrt(5 / dim)  # excess kurtosis at most 3
    assert tolerance < 0.1
    assert np.square(drawn).sum() == pytest.approx(stated, rel=tolerance)


def test_an_error_knows_whether_it_is_exact() -> None:
    # A grid step of size 1 is still a grid.
    grid = AdditiveMean(dim=4, noise=DiscreteGaussianNoise(1.0, steps=4)).error(
        10, Facts(radius=4.0, parties=3)
    )
    assert (grid.exact, grid.bias) == (False, 3 * 2 * 1 / 20)
    mean = AdditiveMean(dim=4, noise=GaussianNoise(1.0))
    plain, worst = mean.error(10, Facts(parties=1)), mean.error(10)
    assert (plain.exact, plain.bias) == (True, 0.0)
    assert plain.variance == pytest.approx(4 * 2**2 / 10**2)
    assert plain.mse == plain.variance
    assert (worst.exact, worst.bias) == (False, 0.0)  # where nothing is known, every row is a party's
    assert worst.variance == pytest.approx(10 * plain.variance)


@pytest.mark.parametrize(("field", "value"), [("parties", 0), ("radius", -1.0), ("radius", math.nan)])
def test_facts_are_checked(field: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=field):
        Facts(**{field: value})


def test_noise_of_the_parties_counts_for_every_observer() -> None:
    mean = AdditiveMean(dim=4, noise=GaussianNoise(1.0), neighbours=ADD_REMOVE)
    assert {mean.event(7, trust) for trust in TrustModel} == {Gaussian(1.0, ADD_REMOVE)}


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_only_whole_numbers_of_rows_are_priced(n: Any) -> None:
    mean = AdditiveMean(dim=4, noise=GaussianNoise(1.0))
    with pytest.raises(ParameterError, match="n must be a whole number"):
        mean.event(n, LOCAL)
    with pytest.raises(ParameterError, match="n must be a whole number"):
        mean.error(n)


def test_bits_of_a_message() -> None:
    assert AdditiveMean(dim=3, noise=GaussianNoise(1.0)).bits_per_party() == 88 + 96
    assert AdditiveMean(dim=3, noise=GaussianNoise(1.0), trust=CENTRAL).bits_per_party() == 88 + 192
    # 1 * 8 + 16 * 16 = 264 steps: 9 bits, one for the sign, one to spare; 33 bits are 5 bytes.
    grid = AdditiveMean(dim=3, noise=DiscreteGaussianNoise(1.0, steps=8))
    assert grid.bits_per_party() == 88 + 40
    with pytest.raises(ParameterError, match="rows must be"):
        grid.bits_per_party(-1)
