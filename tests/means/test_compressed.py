"""Means from linear maps: known numbers through the estimators, on the wire and in simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.compression import (
    Linear,
    TransformName,
    correlation_ratio,
    decode_mean,
    draw_maps,
    spectral_moments,
    transform,
)
from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Estimator,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    MeanMapPinv,
    Message,
    PerPartyPinv,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Round,
    shuffle,
)
from tacit.numerics import Array
from tacit.privacy import NonPrivate, TrustModel
from tacit.randomness import simulated
from tests.statistics import z_bound

RNG = simulated(0, "unused")
RADIUS = 10.0


def groups(sizes: list[int], dim: int) -> Array:
    """Party vectors: unit vectors, equal within a group and orthogonal between groups."""
    return np.repeat(np.eye(dim)[: len(sizes)], sizes, axis=0)


def facts_of(vectors: Array) -> Facts:
    """What the error of a compressed mean depends on."""
    return Facts(
        parties=len(vectors),
        radius=RADIUS,
        squared_norms=float(np.sum(vectors**2)),
        correlation=correlation_ratio(vectors),
    )


def round_of(vectors: Array, number: int = 0) -> Round:
    return Round(n=len(vectors), parties=len(vectors), radius=RADIUS, number=number, seed=5)


def wire(mean: Estimator, vectors: Array, round: Round, rng: np.random.Generator = RNG) -> list[Message]:
    """The messages of parties with one row each, as the server reads them."""
    return [
        Message.from_bytes(message.to_bytes(), sender=party)
        for party, row in enumerate(vectors)
        for message in mean.encode(row[None], round, party=party, rng=rng)
    ]


def estimates(mean: Estimator, vectors: Array, trials: int, rng: np.random.Generator = RNG) -> Array:
    """Estimates of as many rounds, each with maps of its own; shape (trials, d)."""
    return np.stack([mean.estimate(vectors, round_of(vectors, t), rng=rng) for t in range(trials)])


def check_law(mean: Estimator, vectors: Array, trials: int, rng: np.random.Generator = RNG) -> None:
    """The estimate is unbiased, and its squared error is what `error` says."""
    found = estimates(mean, vectors, trials, rng) - vectors.mean(axis=0)
    stated = mean.error(len(vectors), facts_of(vectors))
    bound = z_bound(vectors.shape[1] + 1)
    assert stated.exact
    assert stated.bias == 0
    assert np.all(np.abs(found.mean(axis=0)) <= bound * found.std(axis=0) / np.sqrt(trials) + 1e-7)
    squares = np.sum(found**2, axis=1)
    slack = bound * squares.std() / np.sqrt(trials) + 2e-3 * stated.variance
    assert slack < 0.2 * stated.variance
    assert abs(squares.mean() - stated.variance) <= slack


LINEAR: list[Estimator] = [
    RandK(dim=24, k=5),
    RandK(dim=24, k=5, rotate=True),
    RandKSpatial(dim=24, k=5),
    RandKSpatial(dim=24, k=5, transform="opt", correlation=4.5, rotate=True),
    RandProjSpatial(dim=24, k=5),
    RandProjSpatial(dim=24, k=5, transform="one"),
    RandProjSpatial(dim=24, k=5, transform="opt", correlation=-0.3),
    RandProjSpatial(dim=16, k=2, projection="haar", transform="one"),
    RandProjSpatial(dim=16, k=2, projection="count_sketch", transform="opt", correlation=1.0),
    PerPartyPinv(dim=24, k=5),
    PerPartyPinv(dim=24, k=5, projection="gaussian"),
    MeanMapPinv(dim=24, k=5),
]


def name(mean: Any) -> str:
    return str(mean).replace("trust=<TrustModel.LOCAL: 'local'>, ", "").split(", noise")[0]


@pytest.mark.parametrize("mean", LINEAR, ids=name)
def test_the_error_is_what_is_stated(mean: Estimator) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(6, mean.dim)) + 0.5
    # The squares of the pseudo-inverse have a heavy tail; those of the others take half of the trials.
    trials = 500 if isinstance(mean, MeanMapPinv) else 250
    rows = vectors / np.linalg.norm(vectors, axis=1)[:, None] * rng.uniform(0.2, 2, (6, 1))
    check_law(mean, rows, trials)


@pytest.mark.parametrize(
    ("mean", "noise_share"),
    [
        (RandK(dim=16, k=4, noise=GaussianNoise(0.05)), 0.3),
        (RandKSpatial(dim=16, k=4, noise=DiscreteLaplaceNoise(0.02)), 0.3),
        (RandProjSpatial(dim=16, k=4, noise=GaussianNoise(0.05)), 0.3),
        (RandProjSpatial(dim=16, k=4, noise=DiscreteGaussianNoise(0.01, steps=30)), 0.01),
        # Hardly any noise, on a grid as coarse as the vectors: dithered rounding is the noise.
        (RandProjSpatial(dim=16, k=4, noise=DiscreteGaussianNoise(2.0**-20 / 5, steps=5)), 0.5),
        (RandK(dim=16, k=4, noise=DiscreteGaussianNoise(2.0**-20 / 5, steps=5)), 0.3),
        (RandProjSpatial(dim=12, k=4, transform="one", noise=GaussianNoise(0.05)), 0.3),
        (RandK(dim=12, k=4, rotate=True, noise=GaussianNoise(0.05)), 0.3),
        (PerPartyPinv(dim=16, k=4, noise=GaussianNoise(0.05)), 0.3),
        (MeanMapPinv(dim=32, k=2, noise=GaussianNoise(0.1)), 0.1),
    ],
    ids=lambda value: f"{type(value).__name__} {value.noise}" if hasattr(value, "noise") else "",
)
def test_noise_adds_exactly_what_is_stated(mean: Any, noise_share: float) -> None:
    vectors = groups([4, 2], mean.dim) * 1.3
    bare = msgspec.structs.replace(mean, noise=RandK(dim=1, k=1).noise)
    with_noise, without = (m.error(6, facts_of(vectors)).variance for m in (mean, bare))
    assert with_noise - without > noise_share * with_noise  # else the next line says nothing about noise
    trials = 1500 if isinstance(mean, MeanMapPinv) else 350  # its squares have a heavy tail
    check_law(mean, vectors, trials, np.random.default_rng(2))


def test_the_extra_error_of_noise_is_that_of_the_formula() -> None:
    # T = 1: sigma^2 d'^2 / (n k) for one row a party; sigma = z * 2 radii.
    for mean in (
        RandK(dim=64, k=4, noise=GaussianNoise(0.5)),
        RandProjSpatial(dim=64, k=4, transform="one", noise=GaussianNoise(0.5)),
    ):
        extra = mean.error(8, Facts(parties=8, radius=3.0, squared_norms=0.0, correlation=0.0)).variance
        assert extra == pytest.approx(9.0 * 64**2 / (8 * 4))


# Errors of Jiang (2025), Figures 2.2, 2.3 and A.1, computed independently


@pytest.mark.parametrize(
    ("n", "k", "rand_k", "spatial", "projected"),
    [
        (10, 10, 10.140000, 9.698095, 9.240000),
        (10, 50, 1.948000, 1.539127, 1.048000),
        (100, 5, 2.038000, 1.583624, 1.048000),
    ],
)
def test_identical_vectors(n: int, k: int, rand_k: float, spatial: float, projected: float) -> None:
    facts = Facts(parties=n, squared_norms=n, correlation=n - 1)
    found = [
        mean.error(n, facts).variance
        for mean in (
            RandK(dim=1024, k=k),
            RandKSpatial(dim=1024, k=k, transform="max"),
            RandProjSpatial(dim=1024, k=k, transform="max"),
        )
    ]
    assert found == pytest.approx([rand_k, spatial, projected], abs=2e-6)


@pytest.mark.parametrize(
    ("n", "k", "ratios", "counted", "projected"),
    [
        (21, 12, (4, 8, 12, 16), (3.985259, 3.911719, 3.811210, 3.692319), (3.9795, 3.8730, 3.6946, 3.4338)),
        (51, 20, (10, 20, 40), (0.955576, 0.889527, 0.694723), (0.9511, 0.8624, 0.5078)),
        (5, 200, (1, 2, 3), (0.793226, 0.721551, 0.624353), (0.7878, 0.6849, 0.5022)),
    ],
)  # fmt: skip
def test_known_correlation(
    n: int, k: int, ratios: tuple[int, ...], counted: tuple[float, ...], projected: tuple[float, ...]
) -> None:
    for R, one, other in zip(ratios, counted, projected, strict=True):
        facts = Facts(parties=n, squared_norms=n, correlation=R)
        kinds = (RandKSpatial, RandProjSpatial)
        first, second = (
            kind(dim=1024, k=k, transform="opt", correlation=R).error(n, facts).variance for kind in kinds
        )
        assert first == pytest.approx(one, abs=1e-6)
        assert second == pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize(
    ("sizes", "transform", "R", "formula"),
    [
        ([8], "avg", None, 1.2579),
        ([6, 2], "avg", None, 1.6308),
        ([4, 4], "opt", 3.0, 1.7372),
        ([1] * 8, "avg", None, 2.1268),
    ],
)
def test_vectors_in_groups(
    sizes: list[int], transform: TransformName, R: float | None, formula: float
) -> None:
    vectors = groups(sizes, 64)
    mean = RandProjSpatial(dim=64, k=4, transform=transform, correlation=R)
    assert mean.error(8, facts_of(vectors)).variance == pytest.approx(formula, abs=0.003)
    check_law(mean, vectors, 120)


def test_average_beats_rand_k_only_above_the_break_even_correlation() -> None:
    for R, better in ((2.3, False), (2.6, True)):  # R* = 2.449
        facts = Facts(parties=10, squared_norms=10.0, correlation=R)
        first = RandProjSpatial(dim=1024, k=102).error(10, facts).variance
        assert (first < RandK(dim=1024, k=102).error(10, facts).variance) == better


# Special cases


def test_special_cases_agree_bit_for_bit() -> None:
    vectors = np.random.default_rng(3).normal(size=(5, 20))
    this_round = round_of(vectors)
    rand_k = RandK(dim=20, k=4).estimate(vectors, this_round, rng=RNG)
    for same in (
        RandKSpatial(dim=20, k=4, transform="one"),
        RandProjSpatial(dim=20, k=4, transform="one", projection="subsample"),
        PerPartyPinv(dim=20, k=4, projection="subsample"),
    ):
        assert np.allclose(same.estimate(vectors, this_round, rng=RNG), rand_k, rtol=1e-12, atol=1e-15)
    counted = RandKSpatial(dim=20, k=4).estimate(vectors, this_round, rng=RNG)
    projected = RandProjSpatial(dim=20, k=4, projection="subsample").estimate(vectors, this_round, rng=RNG)
    assert np.array_equal(counted, projected)
    assert not np.allclose(counted, rand_k)


@pytest.mark.parametrize("value_bits", [32, 64])
@pytest.mark.parametrize("transform", ["one", "avg", "max"])
def test_all_that_is_sent_gives_the_exact_mean(transform: TransformName, value_bits: Any) -> None:
    vectors = np.random.default_rng(4).normal(size=(5, 16))
    means: list[Estimator] = [
        RandK(dim=16, k=16, value_bits=value_bits),
        RandK(dim=16, k=16, value_bits=value_bits, rotate=True),
        RandKSpatial(dim=16, k=16, transform=transform, value_bits=value_bits),
        RandProjSpatial(dim=16, k=16, transform=transform, value_bits=value_bits),
        RandProjSpatial(dim=16, k=16, transform=transform, projection="haar", value_bits=value_bits),
        PerPartyPinv(dim=16, k=16, projection="gaussian", value_bits=64),
    ]
    for mean in means:
        found = mean.estimate(vectors, round_of(vectors), rng=RNG)
        # Maps of square Gaussian matrices may be badly conditioned; float32 is sent by the others only.
        assert np.allclose(found, vectors.mean(axis=0), atol=1e-6 if value_bits == 32 else 1e-9)


def test_one_party_is_decoded_alike_by_all_transforms() -> None:
    x = np.random.default_rng(5).normal(size=(1, 16))
    choices: list[tuple[TransformName, float | None]] = [
        ("one", None), ("avg", None), ("max", None), ("opt", 0.5)
    ]  # fmt: skip
    for kind in (RandKSpatial, RandProjSpatial):
        found = [
            kind(dim=16, k=4, transform=t, correlation=R).estimate(x, round_of(x), rng=RNG)
            for t, R in choices
        ]
        assert np.allclose(found[0], found[1:], atol=1e-12)


@pytest.mark.parametrize("mean", LINEAR, ids=name)
def test_the_simulation_is_what_goes_over_the_wire(mean: Estimator) -> None:
    vectors = np.random.default_rng(6).normal(size=(6, mean.dim))
    this_round = round_of(vectors)
    messages = wire(mean, vectors, this_round)
    assert sum(8 * len(m.to_bytes()) for m in messages) == 6 * mean.bits_per_party()
    decoded = mean.decode(messages[::-1], this_round)
    assert np.array_equal(decoded, mean.decode(messages, this_round))
    # Products with all maps at once may round otherwise than with one.
    assert np.allclose(decoded, mean.estimate(vectors, this_round, rng=RNG), rtol=1e-5, atol=1e-6)


def test_a_server_that_iterates_stops_at_the_same_bits_on_both_paths() -> None:
    mean = RandProjSpatial(dim=500, k=50)  # 12 parties send 600 numbers: too many to factorise
    vectors = np.random.default_rng(6).normal(size=(12, 500)) / 30
    this_round = round_of(vectors)
    messages = wire(mean, vectors, this_round)
    decoded = mean.decode(messages, this_round)
    assert np.array_equal(decoded, mean.decode(messages[::-1], this_round))
    assert np.array_equal(decoded, mean.estimate(vectors, this_round, rng=RNG))
    exact = msgspec.structs.replace(mean, backend="cg").decode(messages, this_round)
    left, off = np.sum((decoded - exact) ** 2), np.sum((exact - vectors.mean(axis=0)) ** 2)
    assert 0 < left <= (5e-4) ** 2 * off


def test_parties_with_many_rows_send_their_sum() -> None:
    rows = np.random.default_rng(7).normal(size=(11, 16)) / 4
    this_round = Round(n=11, parties=3, radius=1.0, seed=1)
    mean = RandProjSpatial(dim=16, k=16, on_violation="clip")
    clipped = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    assert np.allclose(mean.estimate(rows, this_round, rng=RNG), clipped.mean(axis=0), atol=1e-6)
    small = RandProjSpatial(dim=16, k=4, on_violation="clip")
    sums = np.stack([part.sum(axis=0) for part in np.array_split(clipped, 3)])
    known = Facts(parties=3, squared_norms=float(np.sum(sums**2)), correlation=correlation_ratio(sums))
    found = np.stack([small.estimate(rows, replace(this_round, number=t), rng=RNG) for t in range(400)])
    squares = np.sum((found - clipped.mean(axis=0)) ** 2, axis=1)
    exact, bound = small.error(11, known), small.error(11, Facts(parties=3))
    assert abs(squares.mean() - exact.variance) <= z_bound(1) * squares.std() / np.sqrt(400)
    assert exact.exact
    assert not bound.exact
    assert exact.variance < bound.variance


def test_without_facts_the_error_is_a_bound() -> None:
    for mean in (RandKSpatial(dim=32, k=4), RandProjSpatial(dim=32, k=4, transform="max")):
        worst = mean.error(6, Facts(parties=6)).variance
        reached = [
            mean.error(6, Facts(parties=6, squared_norms=6.0, correlation=R)).variance for R in (-1, 0, 5)
        ]
        assert max(reached) == pytest.approx(worst)
    # Rand-k does not depend on the correlation, which need not be known.
    assert RandK(dim=32, k=4).error(6, Facts(parties=6, squared_norms=1.0)).exact


def test_a_plain_call_takes_three_lines() -> None:
    X = np.random.default_rng(8).normal(size=(10, 1000))
    for mean in (RandK(dim=1000, k=50), RandKSpatial(dim=1000, k=50), RandProjSpatial(dim=1000, k=50)):
        this_round = Round(n=10, parties=10, radius=100.0)
        assert mean.estimate(X, this_round, rng=RNG).shape == (1000,)


# Who answered


def test_the_factor_is_that_of_the_parties_that_answered() -> None:
    vectors = np.random.default_rng(9).normal(size=(8, 16))
    facts, mean = round_of(vectors), RandProjSpatial(dim=16, k=4, value_bits=64)
    answered = [1, 4, 6]
    messages = [m for m in wire(mean, vectors, facts) if m.sender in answered]
    maps = draw_maps("srht", 16, 4, answered, seed=5, round=0)
    wanted = decode_mean(maps, maps.encode(vectors[answered]), Linear(0.75)) * 3 / 8
    assert np.allclose(mean.decode(messages, facts), wanted, atol=1e-12)


def test_drop_outs_leave_the_estimate_unbiased() -> None:
    # Three parties of a linear transform with rho = 3 / 4: the spectra that the tests above have simulated.
    vectors = groups([5, 3], 16)
    for mean in (
        RandKSpatial(dim=16, k=4, transform="max"),
        RandProjSpatial(dim=16, k=4, transform="opt", correlation=5.25),
    ):
        found = []
        for t in range(250):
            this_round = round_of(vectors, t)
            messages = [
                message
                for party in (0, 2, 7)
                for message in mean.encode(vectors[[party]], this_round, party=party, rng=RNG)
            ]
            found.append(mean.decode(messages, this_round))
        away = np.mean(found, axis=0) - vectors[[0, 2, 7]].sum(axis=0) / 8
        assert np.all(np.abs(away) <= z_bound(32) * np.std(found, axis=0) / np.sqrt(250) + 1e-7)


def test_a_shuffled_batch_is_refused() -> None:
    vectors = groups([3], 8)
    for mean in (RandK(dim=8, k=2), RandK(dim=8, k=2, noise=DiscreteGaussianNoise(1.0))):
        batch = shuffle(
            wire(mean, vectors, round_of(vectors), simulated(1, "noise")), rng=simulated(0, "mix")
        )
        with pytest.raises(ParameterError, match="needs the sender of every message"):
            mean.decode(batch, round_of(vectors))


@pytest.mark.parametrize("kind", [RandK, RandKSpatial, RandProjSpatial, PerPartyPinv, MeanMapPinv])
def test_only_local_trust_is_taken(kind: Any) -> None:
    for trust in (TrustModel.SHUFFLE, TrustModel.CENTRAL, "local"):
        with pytest.raises(ParameterError, match=r"trust must be TrustModel.LOCAL"):
            kind(dim=8, k=2, trust=trust)


def test_two_messages_of_one_sender_are_refused() -> None:
    vectors = groups([3], 8)
    messages = wire(RandK(dim=8, k=2), vectors, round_of(vectors))
    with pytest.raises(ParameterError, match="two of sender 1"):
        RandK(dim=8, k=2).decode([*messages, messages[1]], round_of(vectors))


@pytest.mark.parametrize("sender", [-1, 2**63, 1.5, True])
def test_a_sender_is_an_index(sender: Any) -> None:
    message = Message(payload=np.zeros(2, np.float32), sender=sender)
    with pytest.raises(ParameterError, match="sender must be a whole number"):
        RandK(dim=8, k=2).decode([message], Round(n=1, radius=1.0))


# Bits


@pytest.mark.parametrize("value_bits", [32, 64])
@pytest.mark.parametrize("k", [1, 5, 102, 1000])
def test_a_message_is_its_numbers_and_a_short_header(k: int, value_bits: Any) -> None:
    least = k * value_bits + 64  # 64 for the seed, which here is in the round: the header takes its place
    for kind in (RandK, RandKSpatial, RandProjSpatial):
        bits = kind(dim=1024, k=k, value_bits=value_bits).bits_per_party()
        assert least <= bits <= 1.05 * least + 8 * 16


def test_noise_decides_the_bits_of_a_number() -> None:
    noise = DiscreteGaussianNoise(0.5, steps=2**10)
    mean, whole = RandK(dim=64, k=8, noise=noise), AdditiveMean(dim=8, noise=noise)
    assert mean.bits_per_party(3) == whole.bits_per_party(3) < RandK(dim=64, k=8).bits_per_party()


# What is refused


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: RandK(dim=0, k=1), "dim"),
        (lambda: RandK(dim=8, k=0), "k must be"),
        (lambda: RandK(dim=8, k=9), "k must be a whole number from 1 to 8"),
        (lambda: RandK(dim=6, k=7), "from 1 to 6"),
        (lambda: RandK(dim=6, k=9, rotate=True), "from 1 to 8"),
        (lambda: RandProjSpatial(dim=6, k=9), "from 1 to 8"),
        (lambda: RandKSpatial(dim=8, k=2, transform="best"), "transform"),  # type: ignore[arg-type]
        (lambda: RandKSpatial(dim=8, k=2, transform="opt"), "correlation must be given"),
        (lambda: RandKSpatial(dim=8, k=2, correlation=1.0), "correlation must be given"),
        (lambda: RandKSpatial(dim=8, k=2, transform="opt", correlation=-1.0), "> -1"),
        (lambda: RandKSpatial(dim=8, k=2, transform="opt", correlation=np.nan), "> -1"),
        (lambda: RandProjSpatial(dim=8, k=2, transform="opt", correlation=np.inf), "> -1"),
        (lambda: RandProjSpatial(dim=8, k=2, projection="ldpc"), "projection"),  # type: ignore[arg-type]
        (lambda: RandProjSpatial(dim=8, k=2, backend="fast"), "backend"),  # type: ignore[arg-type]
        (lambda: PerPartyPinv(dim=8, k=2, projection="count_sketch"), "projection"),
        (lambda: MeanMapPinv(dim=8, k=2, projection="subsample"), "projection"),
        (lambda: RandK(dim=8, k=2, value_bits=16), "value_bits must be 32 or 64"),  # type: ignore[arg-type]
        (lambda: RandK(dim=8, k=2, value_bits=64, noise=GaussianNoise(1.0)), "value_bits must be 32 with"),
        (lambda: RandK(dim=8, k=2, noise=1.0), "noise must be a kind"),  # type: ignore[arg-type]
        (lambda: RandK(dim=8, k=2, neighbours="record"), "neighbours"),  # type: ignore[arg-type]
        (lambda: RandProjSpatial(dim=8, k=2, noise=LaplaceNoise(1.0)), "plain coordinates"),
        (lambda: RandK(dim=8, k=2, rotate=True, noise=LaplaceNoise(1.0)), "plain coordinates"),
        *(
            (
                lambda kind=kind: RandProjSpatial(dim=8, k=2, projection=kind, noise=GaussianNoise(1.0)),
                "orthonormal rows",
            )
            for kind in ("gaussian", "row_normalized_gaussian", "count_sketch")
        ),
    ],
)
def test_bad_options_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()


def test_bad_arguments_are_refused() -> None:
    mean, facts = (
        RandKSpatial(dim=8, k=2, transform="opt", correlation=4.0),
        Round(n=3, parties=3, radius=1.0),
    )
    with pytest.raises(ParameterError, match=r"correlation must be in \(-1, n - 1\]"):
        mean.estimate(np.full((3, 8), 0.1), facts, rng=RNG)
    with pytest.raises(ParameterError, match="rows must have shape"):
        mean.encode(np.zeros((1, 7)), facts, party=0, rng=RNG)
    with pytest.raises(ParameterError, match=r"clipped_sum must have shape \(8,\)"):
        mean.encode_sum(np.zeros((1, 8)), rows=1, round=facts, party=0, rng=RNG)
    with pytest.raises(ParameterError, match="a party must be"):
        mean.encode(np.zeros((1, 8)), facts, party=-1, rng=RNG)
    with pytest.raises(ParameterError, match="at least one message"):
        mean.decode([], facts)
    with pytest.raises(ParameterError, match=r"correlation must be in \[-1, parties - 1\]"):
        Facts(parties=3, correlation=2.1)
    with pytest.raises(ParameterError, match="squared_norms"):
        Facts(squared_norms=-1.0)
    with pytest.raises(ParameterError, match="parties must be given with a correlation"):
        Facts(correlation=0.0)


@pytest.mark.parametrize(
    ("n", "k", "dim", "projection", "settles"),
    [
        (8, 4, 64, "srht", True),  # n k = 32 is far from 64
        (10, 6, 64, "srht", False),  # 60 of 64: inverse eigenvalues without a fourth moment
        (4, 4, 16, "haar", False),  # 16 of 16: without a mean
    ],
)
def test_errors_of_the_transform_max_settle_or_say_that_they_do_not(
    n: int, k: int, dim: int, projection: Any, settles: bool
) -> None:
    mean = RandProjSpatial(dim=dim, k=k, transform="max", projection=projection)
    alike = mean.error(n, Facts(parties=n, squared_norms=n, correlation=n - 1))
    assert alike.kind == "exact"  # no inverse eigenvalue counts for identical vectors
    assert alike.variance == pytest.approx(max(dim / (n * k) - 1, 0), abs=1e-6)
    apart = mean.error(n, Facts(parties=n, squared_norms=n, correlation=0.0))
    assert apart.exact == settles
    assert apart.kind == ("exact" if settles else "estimate")
    assert (apart.stderr < 0.01 * apart.variance) == settles
    T = transform("max", n)
    others = [
        spectral_moments(n, k, dim, T, projection=projection, max_draws=256, seed=seed) for seed in (1, 2)
    ]
    found = [moments.mse(n, 0.0) for moments in others]
    if settles:
        spread = [moments.normalized_mse_stderr(0.0) / n for moments in others]
        assert all(
            abs(x - apart.variance) < z_bound(2) * (s + apart.stderr)
            for x, s in zip(found, spread, strict=True)
        )
    elif projection == "haar":
        # What was called exact: the answers of two seeds, of an error that is infinite.
        assert max(*found, apart.variance) > 2 * min(*found, apart.variance)


@pytest.mark.parametrize("mean", LINEAR, ids=name)
def test_estimators_survive_json_and_claim_nothing_without_noise(mean: Estimator) -> None:
    assert msgspec.json.decode(msgspec.json.encode(mean), type=Estimator) == mean
    assert all(isinstance(mean.event(3, trust), NonPrivate) for trust in TrustModel)
