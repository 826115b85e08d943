"""Sums of one-hot rows: counts that no grid rounds, priced by the two of them that a record moves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Measure
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Facts,
    GaussianNoise,
    LaplaceNoise,
    ModularSumMean,
    NoNoise,
    Round,
)
from tacit.numerics import Array
from tacit.privacy import Compose, Neighbours, Relation, TrustModel, delta_of
from tests.statistics import FALSE_ALARM

LOCAL, CENTRAL, AGGREGATE = TrustModel.LOCAL, TrustModel.CENTRAL, TrustModel.AGGREGATE
EPSILON = 1.0


def additive(noise: AnyNoise, *, dim: int = 3, relation: Relation = Relation.REPLACE_ONE) -> AdditiveMean:
    return AdditiveMean(dim=dim, noise=noise, neighbours=Neighbours(relation), one_hot=True)


def modular(z: float, *, dim: int = 3, steps: int = 4, shares: int = 3, width: int = 9) -> ModularSumMean:
    noise = DiscreteGaussianNoise(z, steps=steps)
    return ModularSumMean(dim=dim, noise=noise, shares=shares, width=width, one_hot=True)


def law(mean: AdditiveMean | ModularSumMean) -> Array:
    """The probabilities of the noise on one count, by their definition; shares are added up, and wrap."""
    gaussian = isinstance(mean.noise, DiscreteGaussianNoise)
    scale = mean.noise.noise_multiplier * mean.moved * mean.noise.steps  # type: ignore[union-attr]
    reach = math.ceil(scale * (9 if gaussian else 36))
    y = np.abs(np.arange(-reach, reach + 1)) / scale
    one = np.exp(-(y**2) / 2 if gaussian else -y)
    one /= one.sum()
    if isinstance(mean, AdditiveMean):
        return np.asarray(one)
    whole = one
    for _ in range(mean.shares - 1):
        whole = np.convolve(whole, one)
    size, wrapped = 2**mean.width, np.zeros(2**mean.width)
    np.add.at(wrapped, np.arange(len(whole)) % size, whole)
    return wrapped


def exact_delta(mean: AdditiveMean | ModularSumMean, epsilon: float) -> float:
    """The largest delta of any two neighbouring tables of two rows of three items, or of none.

    Counts have independent noise, so that only those that differ matter: their laws, shifted and multiplied.
    """
    noise, steps = law(mean), mean.noise.steps  # type: ignore[union-attr]
    pad = 0 if isinstance(mean, ModularSumMean) else steps
    noise = np.pad(noise, pad)
    rows = [*np.eye(3, dtype=int), np.zeros(3, dtype=int)]
    worst = 0.0
    for one, other in itertools.permutations(rows, 2):
        shifts = [int(shift) for shift in other - one if shift]
        P = Q = np.ones(1)
        for shift in shifts:
            P = np.multiply.outer(P, noise)
            Q = np.multiply.outer(Q, np.roll(noise, shift * steps))
        worst = max(worst, float(np.maximum(P - math.exp(epsilon) * Q, 0).sum()))
    return worst


CASES: dict[str, Callable[[float], AdditiveMean | ModularSumMean]] = {
    "gaussian": lambda share: additive(DiscreteGaussianNoise(1.5 * share, steps=1)),
    "gaussian on a grid": lambda share: additive(DiscreteGaussianNoise(1.5 * share, steps=3)),
    "laplace": lambda share: additive(DiscreteLaplaceNoise(0.8 * share, steps=1)),
    "shares": lambda share: modular(1.6 * share),
    "shares that wrap": lambda share: modular(1.6 * share, width=6),
}


@pytest.mark.parametrize("name", CASES)
def test_the_price_is_the_exact_one_of_any_two_tables_and_half_the_noise_costs_more(name: str) -> None:
    mean = CASES[name](1.0)
    view = AGGREGATE if isinstance(mean, ModularSumMean) else LOCAL
    claimed, found = delta_of(mean.event(2, view), EPSILON), exact_delta(mean, EPSILON)
    assert found <= claimed * (1 + 1e-9)
    # Sums of shares are priced as rounded Gaussian noise; where they wrap around, they hide more.
    if name != "shares that wrap":
        assert found >= claimed * (0.8 if name == "shares" else 1 - 1e-6)
    halved = CASES[name](0.5)
    assert exact_delta(halved, EPSILON) > 2 * claimed
    # By the root of two and steps of a grid as for other acute rows it would be dearer.
    rounded = msgspec.structs.replace(mean, one_hot=False)
    more = mean.noise.noise_multiplier * mean.moved / rounded.moved  # type: ignore[union-attr]
    same = msgspec.structs.replace(
        rounded,
        noise=msgspec.structs.replace(mean.noise, noise_multiplier=more),
    )
    assert delta_of(same.event(2, view), EPSILON) > 1.2 * claimed


@pytest.mark.parametrize("noise", [DiscreteGaussianNoise(1.5, steps=1), DiscreteLaplaceNoise(1.5, steps=2)])
def test_a_row_against_nothing_moves_one_count(noise: DiscreteGaussianNoise | DiscreteLaplaceNoise) -> None:
    mean = additive(noise, relation=Relation.ZERO_OUT)
    moved = 2 if noise.norm == "l1" else math.sqrt(2)
    less = msgspec.structs.replace(noise, noise_multiplier=noise.noise_multiplier / moved)
    replaced = additive(less)
    assert mean.moved == 1
    one = mean.event(5, LOCAL)
    two = replaced.event(5, LOCAL)
    assert delta_of(two, 1.0) > delta_of(one, 1.0)
    both = Compose((one, one))
    assert delta_of(both, 1.0) == pytest.approx(delta_of(two, 1.0), rel=1e-6)
    assert delta_of(replaced.against_nothing().event(5, LOCAL), 1.0) == pytest.approx(delta_of(one, 1.0))


@pytest.mark.parametrize("radius", [1.0, 0.3, 2.0**-20])
@pytest.mark.parametrize("steps", [1, 3, 2**20])
def test_sums_are_counts_whatever_the_radius(radius: float, steps: int) -> None:
    bare = DiscreteGaussianNoise(2.0**-20 / steps, steps=steps)
    facts, rng = Round(n=10**6, radius=radius), np.random.default_rng(0)
    counts = np.array([999_983.0, 17.0, 0.0])
    for mean in (additive(bare), msgspec.structs.replace(additive(bare), trust=CENTRAL)):
        sent = mean.encode_sum(counts * radius, rows=10**6, round=facts, party=0, rng=rng)
        assert sent[0].payload.tolist() == (counts * steps).tolist()
        assert mean.decode(sent, facts, rng=rng) == pytest.approx(radius * counts / 10**6, rel=1e-12)


def test_rows_that_are_not_one_hot_count_as_zero() -> None:
    rows = np.array(
        [[1, 0, 0], [0.5, 0.5, 0], [0, 0.9, 0], [0, -1, 0], [np.nan, 0, 0], [0, 0, np.inf], [0, 7, 0]]
    )
    facts, rng = Round(n=8, radius=1.0, parties=2), np.random.default_rng(0)
    for mean in (additive(DiscreteGaussianNoise(2.0**-20, steps=1)), modular(2.0**-18 / 4)):
        (sent,) = mean.encode(rows, facts, party=0, rng=rng)
        assert (sent.payload / mean.noise.steps).tolist() == [1.0, 1.0, 0.0]  # type: ignore[union-attr]
        assert (8 * mean.estimate(rows, facts, rng=rng)).tolist() == pytest.approx([1.0, 1.0, 0.0])


def test_errors_are_exact_and_estimates_have_them() -> None:
    k, facts = 20_000, Round(n=50, radius=1.0, parties=5)
    rows = np.zeros((50, k))
    rows[np.arange(50), np.arange(50)] = 1
    for mean in (additive(DiscreteLaplaceNoise(0.8, steps=1), dim=k), modular(1.6, dim=k)):
        off = mean.estimate(rows, facts, rng=np.random.default_rng(1)) - rows.mean(axis=0)
        variance = np.square(off).sum()
        error = mean.error(50, Facts(parties=5))
        assert error.exact
        assert error.bias == 0
        # The sum of 20,000 squares: six deviations, kurtosis at most 6.
        assert variance == pytest.approx(error.variance, rel=6 * math.sqrt(5 / k))


@pytest.mark.parametrize("name", ["gaussian", "laplace", "shares"])
def test_an_attack_stays_below_the_claim_and_breaks_half_the_noise(name: str) -> None:
    """A record at one item or at the next: the best threshold on the difference of the two counts."""
    pairs, epsilon = 20_000, 0.5
    facts = Round(n=pairs, radius=1.0, parties=3 if name == "shares" else 1)
    view = AGGREGATE if name == "shares" else LOCAL
    claimed = delta_of(CASES[name](1.0).event(1, view), epsilon)
    off = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * pairs)) * (1 + math.exp(epsilon))
    found = {}
    for share in (1.0, 0.5):
        mean = msgspec.structs.replace(CASES[name](share), dim=2 * pairs)
        n = pairs
        gaps = []
        for side in (0, 1):  # every pair of counts is the experiment once
            total = np.zeros(2 * pairs)
            total[side::2] = 1
            sent = [
                message
                for party in range(facts.parties)
                for message in mean.encode_sum(
                    total if party == 0 else 0 * total,
                    rows=1,
                    round=facts,
                    party=party,
                    rng=np.random.default_rng([side, party, int(2 * share)]),
                )
            ]
            counts = n * mean.decode(sent, facts)
            gaps.append(counts[::2] - counts[1::2])
        found[share] = max(
            float((gaps[0] > t).mean() - math.exp(epsilon) * (gaps[1] > t).mean())
            for t in (-0.5, 0.5, 1.5, 2.5)
        )
    assert found[1.0] - off <= claimed
    assert found[0.5] - off > claimed


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ParameterError, match="acute must be left out where rows are one_hot"):
        AdditiveMean(dim=2, acute=True, one_hot=True)
    with pytest.raises(ParameterError, match="acute must be left out"):
        msgspec.structs.replace(modular(1.0), acute=True)
    with pytest.raises(ParameterError, match="max_radius must be at most 1 for one-hot rows"):
        Measure(statistic="items", estimator=modular(1.0), max_radius=2.0)
    with pytest.raises(ParameterError, match="must be float64"):
        additive(DiscreteGaussianNoise(1.0)).encode_sum(
            np.zeros(3, dtype=np.float32),
            rows=1,
            round=Round(n=1, radius=1.0),
            party=0,
            rng=np.random.default_rng(0),
        )


def test_simulated_noise_and_none_take_counts_too() -> None:
    facts = Round(n=2, radius=1.0)
    for noise in (NoNoise(), GaussianNoise(1e-9), LaplaceNoise(1e-9)):
        mean = additive(noise, dim=2)
        found = mean.estimate(np.eye(2), facts, rng=np.random.default_rng(0))
        assert found == pytest.approx([0.5, 0.5], abs=1e-6)
    assert additive(GaussianNoise(1.0)).moved == math.sqrt(2)
    assert additive(LaplaceNoise(1.0)).moved == 2
