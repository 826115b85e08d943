"""Means from codes of single vectors: known numbers, lengths that tell nothing, and bounds that hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.compression import (
    QSGD,
    StochasticUniformQuantizer,
    WangniSparsifier,
    draw_maps,
)
from tacit.errors import ParameterError
from tacit.means import (
    Estimator,
    Facts,
    Induced,
    Message,
    QuantizedMean,
    RandK,
    Round,
    TopKMean,
    Wangni,
    shuffle,
)
from tacit.numerics import Array
from tacit.privacy import NonPrivate, TrustModel
from tacit.randomness import simulated
from tests.statistics import z_bound

ALL: list[Any] = [
    Wangni(dim=20, k=4),
    TopKMean(dim=20, k=4),
    Induced(dim=20, k=5),
    Induced(dim=20, k=5, restrict=True),
    Induced(dim=20, k=1),
    QuantizedMean(dim=20, levels=2),
    QuantizedMean(dim=20, levels=5, rotate=True),
    QuantizedMean(dim=20, levels=1, scheme="qsgd"),
    QuantizedMean(dim=20, levels=6, scheme="qsgd", rotate=True),
]


def title(mean: Any) -> str:
    options = [f"{key}={value}" for key, value in msgspec.structs.asdict(mean).items()]
    return f"{type(mean).__name__} " + ", ".join(
        o for o in options if not o.startswith(("noise", "trust", "nei", "on_"))
    )


ALL = [msgspec.structs.replace(mean, on_violation="clip") for mean in ALL]
every = pytest.mark.parametrize("mean", ALL, ids=title)


def one(x: Array, number: int = 0) -> tuple[Array, Round]:
    """A round with one party, which holds x."""
    return x[None], Round(n=1, radius=100.0, number=number, seed=3)


def vectors_of(n: int, dim: int = 20, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(n, dim)) * rng.uniform(0.1, 3, size=(n, dim)))


def wire(mean: Estimator, vectors: Array, round: Round, rng: np.random.Generator) -> list[Message]:
    return [
        Message.from_bytes(message.to_bytes(), sender=party)
        for party, row in enumerate(vectors)
        for message in mean.encode(row[None], round, party=party, rng=rng)
    ]


def errors(mean: Estimator, X: Array, trials: int) -> Array:
    """Estimate minus mean, over the wire every second time; shape (trials, d)."""
    rng, n = simulated(1, "codes"), len(X)
    found = []
    for t in range(trials):
        this_round = Round(n=n, parties=n, radius=100.0, number=t, seed=3)
        if t % 2:
            found.append(mean.estimate(X, this_round, rng=rng))
        else:
            found.append(mean.decode(wire(mean, X, this_round, rng)[::-1], this_round))
    return np.asarray(np.stack(found) - X.mean(axis=0))


def top(X: Array, k: int) -> Array:
    """The k largest entries of every row."""
    return np.where(np.argsort(np.argsort(-np.abs(X), axis=1, kind="stable"), axis=1) < k, X, 0.0)


def induced(mean: Induced, X: Array, round: Round) -> Array:
    """Top-k1 plus Rand-k2 of what it leaves over, k1 = floor(k / 2), row by row."""
    k1 = min(mean.k // 2, mean.k - 1)
    k2, large, rest = mean.k - k1, top(X, k1), X - top(X, k1)
    among = [np.flatnonzero(row == 0) if mean.restrict else np.arange(mean.dim) for row in large]
    maps = draw_maps(
        "subsample", len(among[0]), k2, len(X), seed=round.seed, round=round.number, purpose="induced"
    )
    drawn = maps.adjoint(maps.encode(np.stack([row[at] for row, at in zip(rest, among, strict=True)])))
    for row, at, found in zip(large, among, drawn, strict=True):
        row[at] += found * len(at) / k2
    return large


def exact(mean: Any, X: Array) -> Array:
    """E||Q(x_i) - x_i||^2 of every party."""
    if isinstance(mean, Wangni):
        return WangniSparsifier(k=mean.k).squared_error(X)
    if isinstance(mean, Induced):
        k1 = min(mean.k // 2, mean.k - 1)
        among = mean.dim - k1 if mean.restrict else mean.dim
        return np.asarray((among / (mean.k - k1) - 1) * np.sum((X - top(X, k1)) ** 2, axis=1))
    kind: Any = StochasticUniformQuantizer if mean.scheme == "uniform" else QSGD
    return np.asarray(kind(levels=mean.levels).squared_error(X))


@every
def test_the_law_of_an_estimate(mean: Any) -> None:
    X, trials = vectors_of(4), 400
    found, stated = (
        errors(mean, X, trials),
        mean.error(4, Facts(parties=4, squared_norms=float(np.sum(X**2)))),
    )
    squares = np.sum(found**2, axis=1)
    slack = z_bound(22) * squares.std() / np.sqrt(trials) + 1e-9
    assert squares.mean() <= stated.mse + slack
    assert not stated.exact
    if isinstance(mean, TopKMean):
        assert np.ptp(found, axis=0).max() == 0
        assert np.linalg.norm(found[0]) <= stated.bias
        return
    assert stated.bias == 0
    tolerance = z_bound(22) * found.std(axis=0) / np.sqrt(trials) + 1e-6
    assert np.all(np.abs(found.mean(axis=0)) <= tolerance)
    if not getattr(mean, "rotate", False):
        wanted = float(exact(mean, X).sum()) / 16
        assert slack < 0.35 * wanted
        assert abs(squares.mean() - wanted) <= slack


@pytest.mark.parametrize(
    ("mean", "x", "wanted"),
    [
        (Wangni(dim=64, k=4), 1 / np.arange(1, 65), 3.99669473),
        (Wangni(dim=64, k=16), 1 / np.arange(1, 65), 0.38406116),
        (Wangni(dim=64, k=4), 0.5 ** np.arange(64), 0.04166667),
        (TopKMean(dim=64, k=4), 1 / np.arange(1, 65), 0.20581939),
        (TopKMean(dim=64, k=16), 1 / np.arange(1, 65), 0.04508397),
        (Induced(dim=64, k=4), 1 / np.arange(1, 65), 11.76234554),
        (Induced(dim=64, k=4, restrict=True), 1 / np.arange(1, 65), 11.38291504),
        (Induced(dim=64, k=16), 1 / np.arange(1, 65), 0.71405914),
        (QuantizedMean(dim=3, levels=2), np.array([0.0, 0.25, 1.0]), 0.1875),
        (QuantizedMean(dim=2, levels=1, scheme="qsgd"), np.array([3.0, 4.0]), 10.0),
    ],
    ids=lambda value: title(value) if hasattr(value, "dim") else "",
)
def test_errors_of_known_vectors(mean: Any, x: Array, wanted: float) -> None:
    squares = np.sum(errors(mean, x[None], 600) ** 2, axis=1)
    assert abs(squares.mean() - wanted) <= z_bound(1) * squares.std() / np.sqrt(600) + 1e-7 * wanted + 1e-7
    stated = mean.error(1, Facts(squared_norms=float(np.sum(x**2))))
    assert wanted <= stated.mse * (1 + 1e-9)


def test_bounds_are_reached_by_flat_vectors() -> None:
    flat = Facts(squared_norms=64.0)
    x = np.ones(64)
    assert exact(Wangni(dim=64, k=4), x[None])[0] == pytest.approx(
        Wangni(dim=64, k=4).error(1, flat).variance
    )
    assert exact(Induced(dim=64, k=4), x[None])[0] == pytest.approx(1922)
    assert Induced(dim=64, k=4).error(1, flat).variance == pytest.approx(1922)
    assert Induced(dim=64, k=4, restrict=True).error(1, flat).variance == pytest.approx(1860)
    assert TopKMean(dim=64, k=4).error(1, flat).bias ** 2 == pytest.approx(60)


@every
def test_no_vector_errs_more_than_is_stated(mean: Any) -> None:
    if isinstance(mean, TopKMean):
        pytest.skip("is its own bound")
    rng = np.random.default_rng(2)
    X = np.concatenate([
        vectors_of(200), np.sign(vectors_of(100)), rng.standard_cauchy((100, 20)), np.eye(20)[:3],
        np.where(np.arange(20) % 2, 1.0, -1.0)[None] * rng.integers(1, 9, (100, 1)),
        np.where(np.arange(20) < 2, [[1.0], [-1.0]], 0.5),
    ])  # fmt: skip
    if isinstance(mean, QuantizedMean) and mean.rotate:
        mean = msgspec.structs.replace(
            mean, rotate=False
        )  # the bound does not look at the vector's direction
    allowed = mean.error(1, Facts(squared_norms=1.0)).variance
    assert np.all(exact(mean, X) <= allowed * np.sum(X**2, axis=1) * (1 + 1e-9))


def test_induced_is_top_k_plus_rand_k_of_the_rest() -> None:
    X = vectors_of(5)
    this_round = Round(n=5, parties=5, radius=100.0, number=2, seed=3)
    for restrict in (False, True):
        for k in (1, 2, 5, 20):
            mean = Induced(dim=20, k=k, restrict=restrict)
            found = mean.estimate(X, this_round, rng=simulated(0))
            assert np.allclose(found, induced(mean, X, this_round).mean(axis=0), rtol=1e-5, atol=1e-6)


@every
def test_lengths_tell_nothing(mean: Any) -> None:
    rng = simulated(2, "codes")
    few = np.zeros(20)
    few[7] = 1.0
    for x in (np.zeros(20), few, np.ones(20), 1e300 * np.ones(20), np.full(20, np.nan), vectors_of(1)[0]):
        messages = mean.encode(x[None], Round(n=1, radius=1.0), party=4, rng=rng)
        assert [m.label for m in messages] == list(range(len(messages)))
        assert sum(8 * len(m.to_bytes()) for m in messages) == mean.bits_per_party() == mean.bits_per_party(7)


@every
def test_what_vanishes_stays_zero(mean: Any) -> None:
    for x in (np.zeros(20), np.full(20, np.inf)):
        X, facts = one(x)
        assert np.array_equal(mean.estimate(X, facts, rng=simulated(0)), np.zeros(20))


@every
@pytest.mark.parametrize("radius", [2.0**-100, 2.0**100])
def test_extreme_radii_are_survived(mean: Any, radius: float) -> None:
    this_round = Round(n=3, parties=3, radius=radius)
    found = mean.estimate(radius * vectors_of(3), this_round, rng=simulated(3))
    assert np.all(np.isfinite(found))
    assert np.linalg.norm(found) <= radius * 40


@every
def test_only_local_trust_without_noise_and_with_senders(mean: Any) -> None:
    assert all(isinstance(mean.event(3, trust), NonPrivate) for trust in TrustModel)
    with pytest.raises(ParameterError, match="trust must be"):
        msgspec.structs.replace(mean, trust=TrustModel.SHUFFLE).__post_init__()
    X, facts = one(vectors_of(1)[0])
    batch = shuffle(wire(mean, X, facts, simulated(0)), rng=simulated(0, "mix"))
    with pytest.raises(ParameterError, match="sender"):
        mean.decode(batch, facts)
    assert msgspec.json.decode(msgspec.json.encode(mean), type=Estimator) == mean


def test_drop_outs_count_as_zero() -> None:
    X, rng = vectors_of(6), simulated(4)
    this_round = Round(n=6, parties=6, radius=100.0)
    mean = TopKMean(dim=20, k=20)
    messages = [m for m in wire(mean, X, this_round, rng) if m.sender in (1, 5)]
    assert np.allclose(mean.decode(messages, this_round), X[[1, 5]].sum(axis=0) / 6, atol=1e-6)


@pytest.mark.parametrize("dim", [1000, 1024, 5000])
def test_a_message_is_its_code_and_a_short_header(dim: int) -> None:
    index = int(np.ceil(np.log2(dim)))
    cases: list[tuple[Any, float]] = [
        (Wangni(dim=dim, k=50), 50 * (32 + index)),
        (TopKMean(dim=dim, k=50), 50 * (32 + index)),
        (Induced(dim=dim, k=50), 25 * (32 + index) + 25 * 32 + 64),
        (QuantizedMean(dim=dim, levels=2), dim + 64),
        (QuantizedMean(dim=dim, levels=17), 5 * dim + 64),
        (QuantizedMean(dim=dim, levels=7, scheme="qsgd"), 4 * dim + 32),
    ]
    for mean, least in cases:
        assert least <= mean.bits_per_party() <= 1.05 * least + 8 * 16


def test_k_is_one_induced_is_rand_k() -> None:
    x = 1 / np.arange(1, 65)
    facts = Facts(squared_norms=float(np.sum(x**2)))
    induced, rand_k = Induced(dim=64, k=1), RandK(dim=64, k=1)
    assert induced.error(1, facts).variance == pytest.approx(rand_k.error(1, facts).variance)
    assert induced.bits_per_party() == rand_k.bits_per_party()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Wangni(dim=8, k=9), "k must be a whole number from 1 to 8"),
        (lambda: TopKMean(dim=8, k=0), "k must be"),
        (lambda: Induced(dim=8, k=4, top_fraction=1.0), "top_fraction"),
        (lambda: QuantizedMean(dim=8, levels=1), "levels must be a whole number from 2"),
        (lambda: QuantizedMean(dim=8, levels=0, scheme="qsgd"), "levels must be a whole number from 1"),
        (lambda: QuantizedMean(dim=8, levels=4, scheme="elias"), "scheme"),  # type: ignore[arg-type]
        (lambda: QuantizedMean(dim=0, levels=4), "dim"),
        (lambda: TopKMean(dim=8, k=2, neighbours=None), "neighbours"),  # type: ignore[arg-type]
    ],
)
def test_bad_options_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()


@every
def test_the_seed_of_the_round_moves_public_draws_only(mean: Any) -> None:
    X, facts = vectors_of(3), Round(n=3, parties=3, radius=100.0)
    first, again = (mean.estimate(X, facts, rng=simulated(7)) for _ in range(2))
    assert np.array_equal(first, again)
    other = mean.estimate(X, replace(facts, number=1), rng=simulated(7))
    public = isinstance(mean, Induced) or getattr(mean, "rotate", False)
    assert np.array_equal(first, other) != public
