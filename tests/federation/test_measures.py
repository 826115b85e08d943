"""Several means of one batch, each with a dimension, a radius and an estimator of its own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import (
    Batch,
    Disjoint,
    Fixed,
    Full,
    InProcess,
    Measure,
    Plan,
    Poisson,
    Silo,
    Statistic,
    Step,
    Walk,
    open_answer,
)
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    BinomialMean,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    HadamardMean,
    NoNoise,
    SignVoteMean,
)
from tacit.numerics import Array, clip_rows
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Gaussian,
    Neighbours,
    NonPrivate,
    Parallel,
    PrivacyBudget,
    Relation,
    Repeat,
    Sample,
    Sampled,
    TrustModel,
    Unit,
    epsilon_of,
)
from tests.federation.world import (
    AT,
    DELTA,
    GAUSSIAN,
    GRID,
    Rows,
    ask_at,
    ledger_at,
    mean_of,
    rows,
)
from tests.statistics import FALSE_ALARM

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
WIDE, NARROW = 5, 2
LARGE, SMALL = 4.0, 0.25


def wide(units: Rows, at: Mapping[str, Array]) -> Array:
    """Rows of norm up to LARGE."""
    return np.asarray(LARGE * units.values[:, :WIDE])


def narrow(units: Rows, at: Mapping[str, Array]) -> Array:
    """Rows of norm up to SMALL."""
    return np.asarray(SMALL * units.values[:, -NARROW:])


KNOWN: dict[str, Statistic] = {"wide": wide, "narrow": narrow}
DATA = [rows(k, n, dim=WIDE + NARROW) for k, n in enumerate((12, 20, 8))]
RADII = (LARGE, SMALL)


def measure(name: str, noise: AnyNoise | None = None, **about: Any) -> Measure:
    """A measure of its own dimension and radius."""
    dim, most = {"wide": (WIDE, LARGE), "narrow": (NARROW, SMALL)}[name]
    return Measure(statistic=name, estimator=mean_of(noise, dim=dim, **about), max_radius=most)


def pair(first: AnyNoise | None = None, second: AnyNoise | None = None, **about: Any) -> Plan:
    """A plan of two means of one batch."""
    rounds, batch = about.pop("rounds", 4), about.pop("batch", Full())
    measures = measure("wide", first, **about), measure("narrow", second, **about)
    return plan_with(measures, batch=batch, rounds=rounds)


def plan_with(measures: tuple[Measure, ...], *, rounds: int = 4, batch: Batch | None = None) -> Plan:
    private = all(m.estimator.private for m in measures)
    return Plan(
        steps=((Step(measures=measures, batch=Full() if batch is None else batch), rounds),),
        parties=len(DATA),
        trust=measures[0].trust,
        delta=DELTA if private else 0.0,
    )


def silos(data: list[Array] | None = None, *, trusts_server: bool = True) -> list[Silo]:
    return [
        Silo(Rows(values), KNOWN, trusts_server=trusts_server, rng=np.random.default_rng(k))
        for k, values in enumerate(DATA if data is None else data)
    ]


# --- the price is that of one joint release

FIRST, SECOND = Gaussian(5.0), Gaussian(2.0)


@pytest.mark.parametrize("radius", [LARGE, 1e-3])
def test_a_batch_is_sampled_once_for_both_means(radius: float) -> None:
    plan = pair(GaussianNoise(5.0), GaussianNoise(2.0), batch=Fixed(size=5), rounds=7)
    joint = Sampled(Compose((FIRST, SECOND)), 0.25, Sample.FIXED)
    assert plan.event([50, 20, 100], LOCAL) == Repeat(joint, 7)
    # Samples of their own would cost less, by what one batch tells about who is in it.
    apart = Compose((Sampled(FIRST, 0.25, Sample.FIXED), Sampled(SECOND, 0.25, Sample.FIXED)))
    assert epsilon_of(joint, DELTA) > 1.05 * epsilon_of(apart, DELTA)
    # Noise is in radii, so that the price is not about them.
    (step, count) = plan.kinds[0]
    shrunk = tuple(msgspec.structs.replace(m, max_radius=radius) for m in step.measures)
    other = msgspec.structs.replace(plan, steps=((msgspec.structs.replace(step, measures=shrunk), count),))
    assert other.event([50, 20], LOCAL) == plan.event([50, 20], LOCAL)
    assert (other.digest() == plan.digest()) == (shrunk == step.measures)


def test_a_poisson_batch_is_sampled_once_for_both_means() -> None:
    plan = pair(
        GaussianNoise(5.0), GaussianNoise(2.0), relation=Relation.ZERO_OUT, batch=Poisson(0.1), rounds=1
    )
    zero_out = Neighbours(Relation.ZERO_OUT)
    joint = Compose((Gaussian(5.0, zero_out), Gaussian(2.0, zero_out)))
    assert plan.event([50], LOCAL) == Sampled(joint, 0.1, Sample.POISSON)


def test_full_and_disjoint_batches_compose_both_means() -> None:
    joint = Compose((FIRST, SECOND))
    noises = GaussianNoise(5.0), GaussianNoise(2.0)
    assert pair(*noises, rounds=3).event([50], LOCAL) == Repeat(joint, 3)
    assert pair(*noises, batch=Disjoint(size=5)).event([50], LOCAL) == Parallel((joint,))


def test_under_central_trust_the_joint_release_is_that_of_the_server() -> None:
    plan = pair(GaussianNoise(5.0), GaussianNoise(2.0), trust=CENTRAL, batch=Fixed(size=5), rounds=1)
    assert plan.event([50, 20], CENTRAL) == Sampled(Compose((FIRST, SECOND)), 0.25, Sample.FIXED)
    assert plan.event([50], LOCAL) == NonPrivate()


def test_each_mean_is_priced_with_its_own_dimension() -> None:
    """The rounding of a sum to a grid moves it by more in more dimensions."""
    grid = DiscreteGaussianNoise(5.0, steps=8)
    event = pair(grid, grid, rounds=1).event([50], LOCAL)
    assert isinstance(event, Compose)
    moved = []
    for part, dim in zip(event.parts, (WIDE, NARROW), strict=True):
        assert isinstance(part, DiscreteGaussian)
        assert part == AdditiveMean(dim=dim, noise=grid).event(50, LOCAL)
        moved.append(part.sensitivity)
    assert moved[0] > moved[1]


@pytest.mark.parametrize("batch", [Full(), Fixed(size=2), Disjoint(size=2), Poisson(0.5)])
@pytest.mark.parametrize("noises", [(None, GRID), (GRID, None)])
def test_one_mean_without_noise_takes_every_claim_from_the_batch(batch: Batch, noises: Any) -> None:
    relation = Relation.ZERO_OUT if isinstance(batch, Poisson) else Relation.REPLACE_ONE
    plan = pair(*noises, batch=batch, rounds=1, relation=relation)
    assert epsilon_of(plan.event([50], LOCAL), 0.5) == np.inf
    silo = Silo(Rows(DATA[1]), KNOWN)
    with pytest.raises(RefusalError, match="adds no noise to what silo 'silo' sends"):
        silo.accept(plan)
    with pytest.raises(BudgetError, match="above the agreed"):
        silos()[1].accept(plan, budget=PrivacyBudget(1e300, 0.5))


def test_a_ledger_pays_the_joint_price_and_refuses_if_one_mean_is_not_exact(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        silo = Silo(Rows(DATA[0]), KNOWN, ledger=ledger)
        for noises in ((GRID, GAUSSIAN), (GAUSSIAN, GRID)):
            assert not pair(*noises).exact
            with pytest.raises(RefusalError, match="refuses continuous noise"):
                silo.accept(pair(*noises))
        assert ledger.entries() == []
        plan = pair(GRID, GRID)
        assert plan.exact
        price = silo.accept(plan)
        assert price.event == plan.event([12], LOCAL)
        assert ledger.spent().epsilon == price.epsilon
        one = epsilon_of(plan_with((measure("wide", GRID),)).event([12], LOCAL), DELTA)
        assert price.epsilon > one


# --- each radius has a largest of its own


@pytest.mark.parametrize(
    ("radius", "refused"),
    [
        ((LARGE, SMALL), None),
        ((0.0, 0.0), None),
        ((LARGE / 2, SMALL), None),
        ((SMALL, LARGE), rf"radius must be a number in \[0, {SMALL}\], got {LARGE}"),
        ((LARGE, float(np.nextafter(SMALL, 1))), rf"number in \[0, {SMALL}\]"),
        ((float(np.nextafter(LARGE, 9)), SMALL), rf"number in \[0, {LARGE}\]"),
        ((LARGE, -1e-300), rf"number in \[0, {SMALL}\]"),
        ((float("nan"), SMALL), rf"number in \[0, {LARGE}\]"),
        ((LARGE,), r"one number per statistic \(2\)"),
        ((LARGE, SMALL, SMALL), r"one number per statistic \(2\)"),
    ],
)
def test_each_radius_is_checked_against_its_own_largest(
    radius: tuple[float, ...], refused: str | None
) -> None:
    silo = silos()[0]
    silo.accept(pair(GRID, GRID))
    if refused is None:
        assert len(open_answer(silo.answer(ask_at(0, radius=radius)), party=0)) == 2
        return
    with pytest.raises(RefusalError, match=refused):
        silo.answer(ask_at(0, radius=radius))
    silo.answer(ask_at(0, radius=RADII))  # nothing was answered


def test_rows_are_clipped_to_the_radius_of_their_own_mean() -> None:
    ask = InProcess(silos()).open(pair())
    radius = 0.5, 0.01
    found = ask(0, AT, radius)
    everything = Rows(np.concatenate(DATA))
    for mean, statistic, bound in zip(found, (wide, narrow), radius, strict=True):
        whole = statistic(everything, AT)
        assert (np.linalg.norm(whole, axis=1) > bound).any()
        np.testing.assert_allclose(mean, clip_rows(whole, bound).mean(axis=0), atol=1e-12)


# --- both means come out right


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_without_noise_both_means_are_the_plain_ones(trust: TrustModel, order: tuple[int, int]) -> None:
    measures = tuple((measure("wide", trust=trust), measure("narrow", trust=trust))[k] for k in order)
    ask = InProcess(silos()).open(plan_with(measures))
    found = ask(0, AT, tuple(RADII[k] for k in order))
    everything = Rows(np.concatenate(DATA))
    expected = wide(everything, AT).mean(axis=0), narrow(everything, AT).mean(axis=0)
    for mean, k in zip(found, order, strict=True):
        np.testing.assert_allclose(mean, expected[k], atol=1e-13)


def test_both_means_are_of_one_batch() -> None:
    """Here the one tells which units the other is about."""
    units = np.eye(WIDE + NARROW)[[0, 1, 2, 3, 4, 0, 1, 2]]
    units[:, -NARROW:] = units[:, :NARROW]
    ask = InProcess(silos([units] * 3)).open(pair(batch=Fixed(size=3), rounds=50))
    counts = []
    for step in range(50):
        first, second = ask(step, AT, (LARGE, SMALL))
        np.testing.assert_allclose(second / SMALL, first[:NARROW] / LARGE, atol=1e-13)
        counts.append(tuple(np.rint(first / LARGE * 9)))
    assert len(set(counts)) > 10  # power: batches differ


@pytest.mark.parametrize("kind", [GaussianNoise, DiscreteGaussianNoise])
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_each_mean_has_the_noise_of_its_own_radius_and_multiplier(kind: Any, trust: TrustModel) -> None:
    rounds, sizes = 400, [4, 10, 6]
    blank = [np.zeros((n, WIDE + NARROW)) for n in sizes]
    ask = InProcess(silos(blank), rng=np.random.default_rng(3)).open(
        pair(kind(5.0), kind(2.0), trust=trust, rounds=rounds)
    )
    radii = LARGE / 2, SMALL
    found = [ask(step, AT, radii) for step in range(rounds)]
    noises = 5.0, 2.0
    draws = []
    for k, (multiplier, radius) in enumerate(zip(noises, radii, strict=True)):
        each = np.stack([means[k] for means in found])
        draws.append(each)
        std = multiplier * 2 * radius * np.sqrt(3 if trust is LOCAL else 1) / sum(sizes)
        ends = FALSE_ALARM / 2, 1 - FALSE_ALARM / 2
        low, high = (float(stats.chi2.ppf(end, each.size)) / each.size for end in ends)
        assert 0.7 < low < high < 1.35  # power: the other's radius or multiplier is far outside
        assert low <= np.mean((each / std) ** 2) <= high
    # The two noises are independent. With 400 pairs, power: one noise twice would be at 1.
    correlations = np.corrcoef(np.hstack(draws).T)[:WIDE, WIDE:]
    assert np.abs(correlations).max() < stats.norm.isf(FALSE_ALARM / 20) / np.sqrt(rounds)


def test_answers_hold_one_group_of_messages_per_mean_in_order() -> None:
    silo = silos()[0]
    silo.accept(pair(GRID, GRID))
    groups = open_answer(silo.answer(ask_at(0, radius=RADII)), party=0)
    assert [message.payload.shape for group in groups for message in group] == [(WIDE,), (NARROW,)]


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_mean_and_a_vote_of_one_batch_are_each_counted_their_own_way(trust: TrustModel) -> None:
    """Under unequal sizes the mean pools rows and is scaled for a random set; the vote is a majority."""
    vote = SignVoteMean(dim=NARROW, noise=NoNoise(), trust=trust, on_violation="clip")
    voting = Measure(statistic="narrow", estimator=vote, max_radius=SMALL)
    plan = plan_with((measure("wide", trust=trust), voting), rounds=3)
    ballots = [np.full(NARROW, 0.1), np.full(NARROW, -0.1), np.full(NARROW, 0.1)]
    data = [np.hstack([d[:, :WIDE], np.tile(b, (len(d), 1))]) for d, b in zip(DATA, ballots, strict=True)]
    pairs = list(combinations(range(3), 2))
    ask = InProcess(silos(data), is_down=lambda r, k: k not in pairs[r]).open(plan)
    one = SMALL / np.sqrt(NARROW)
    for step, up in enumerate(pairs):
        mean, signs = ask(step, AT, RADII)
        pooled = np.concatenate([data[k] for k in up])
        np.testing.assert_allclose(mean, LARGE * pooled[:, :WIDE].mean(axis=0), atol=1e-13)
        # One silo one vote under central trust; by records where each silo speaks for its own.
        votes = np.array([np.sign(ballots[k][0]) for k in up])
        weights = np.array([len(data[k]) for k in up]) if trust is LOCAL else np.ones(2)
        expected = float(votes @ weights / weights.sum())
        np.testing.assert_allclose(signs, one * (np.sign(expected) if trust is CENTRAL else expected))


# --- what fits together


def test_means_of_one_step_share_trust_and_neighbours() -> None:
    others: list[Estimator] = [
        mean_of(GRID, trust=CENTRAL),
        mean_of(GRID, relation=Relation.ZERO_OUT),
        AdditiveMean(dim=2, noise=GRID, neighbours=Neighbours(unit=Unit.PERSON)),
    ]
    for estimator in others:
        other = Measure(statistic="narrow", estimator=estimator, max_radius=1.0)
        for measures in ((measure("wide", GRID), other), (other, measure("wide", GRID))):
            with pytest.raises(ParameterError, match="must have the same trust and the same neighbours"):
                Step(measures=measures)


def test_estimators_of_different_kinds_go_together() -> None:
    randomized = HadamardMean(dim=NARROW, local_epsilon=1.0)
    plan = plan_with(
        (
            measure("wide", GRID),
            Measure(statistic="narrow", estimator=randomized, max_radius=SMALL),
        ),
        rounds=2,
    )
    assert Plan.from_toml(plan.to_toml()) == plan
    assert plan.exact
    joint = Compose((measure("wide", GRID).estimator.event(12, LOCAL), randomized.event(12, LOCAL)))
    assert plan.event([12], LOCAL) == Repeat(joint, 2)
    ask = InProcess(silos(trusts_server=False)).open(plan)
    assert [mean.shape for mean in ask(0, AT, RADII)] == [(WIDE,), (NARROW,)]


def test_what_a_shuffler_must_hide_is_in_no_walk() -> None:
    shuffled = BinomialMean(dim=2, noise_bits=3, resolution=4)
    one = Measure(statistic="wide", estimator=shuffled, max_radius=1.0)
    with pytest.raises(ParameterError, match="a walk needs local trust"):
        Walk(measures=(one,), steps=2)


def test_rows_of_another_length_than_their_measure_are_refused() -> None:
    swapped = tuple(
        msgspec.structs.replace(one, statistic=name)
        for one, name in zip((measure("wide"), measure("narrow")), ("narrow", "wide"), strict=True)
    )
    silo = silos()[0]
    silo.accept(plan_with(swapped))
    with pytest.raises(RefusalError, match=r"'narrow' gives no units the shape \(0, 2\), .* \(0, 5\)"):
        silo.answer(ask_at(0, radius=RADII))
