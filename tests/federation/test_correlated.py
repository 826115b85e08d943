"""Rounds with correlated noise: what they cost, what leaves, what is kept, and what silos refuse."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.audits import audit
from tacit.errors import LedgerError, ParameterError, RefusalError
from tacit.federation import (
    Batch,
    CorrelatedStep,
    Crowd,
    Disjoint,
    Fixed,
    Full,
    Group,
    InProcess,
    Measure,
    Plan,
    Poisson,
    RandomSubset,
    Silo,
    Step,
    open_answer,
)
from tacit.federation.correlated import release
from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    Estimator,
    GaussianNoise,
    LaplaceNoise,
    RandK,
)
from tacit.mechanisms import Past, correlated_noise
from tacit.numerics import Array, participation_norm, square_root_column
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Event,
    Gaussian,
    Neighbours,
    NonPrivate,
    Relation,
    TrustModel,
    epsilon_of,
    verify,
)
from tests.federation.test_state import Personal
from tests.federation.world import (
    DIM,
    RADIUS,
    STATISTICS,
    Counting,
    Fused,
    Rows,
    ask_at,
    ledger_at,
    mean_of,
    rows,
    silo_of,
    silos_of,
)

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
BOTH = [LOCAL, CENTRAL]
NOISES: list[AnyNoise] = [GaussianNoise(2.0), DiscreteGaussianNoise(2.0)]
X = rows(0, 12)
BANDS, PASSES, ROUNDS = 3, 2, 8
BLOCKS = 4


def step_of(
    estimator: Estimator | None = None,
    *,
    batch: Batch | None = None,
    bands: int = BANDS,
    passes: int = PASSES,
    statistic: str = "row",
) -> CorrelatedStep:
    """Blocks of three units, four in a pass."""
    mean = mean_of(GaussianNoise(2.0)) if estimator is None else estimator
    measure = Measure(statistic=statistic, estimator=mean, max_radius=RADIUS)
    chosen = Disjoint(size=3) if batch is None else batch
    return CorrelatedStep(measures=(measure,), batch=chosen, bands=bands, passes=passes)


def plan_of(step: Any = None, *, rounds: int = ROUNDS, parties: int = 1) -> Plan:
    kind = step_of() if step is None else step
    return Plan(steps=((kind, rounds),), parties=parties, trust=kind.trust, delta=1e-6)


def answered(
    plan: Plan, values: Array = X, *, seed: int = 0, asked: Any = None, statistics: Any = None
) -> tuple[Array, Rows]:
    """What a run of one silo gives, round by round, and which units it used."""
    one, units = silo_of(values, seed=seed, statistics=statistics)
    ask = InProcess([one], rng=np.random.default_rng(seed + 1)).open(plan)
    turns = range(plan.rounds) if asked is None else asked
    return np.stack([ask(t, {"w": np.zeros(DIM)}, (RADIUS,))[0] for t in turns]), units


def exact(values: Array, order: list[list[int]]) -> Array:
    """The means of the batches that were used."""
    return np.stack([values[index].mean(axis=0) for index in order])


# --- what leaves


@pytest.mark.parametrize("trust", BOTH)
@pytest.mark.parametrize("noise", [GaussianNoise(1e-9), DiscreteGaussianNoise(1e-9, steps=2**30)])
def test_almost_without_noise_it_is_the_mean_of_every_batch(trust: TrustModel, noise: AnyNoise) -> None:
    means, units = answered(plan_of(step_of(mean_of(noise, trust=trust))))
    # Under central trust the server pools; the silo's units are the same.
    np.testing.assert_allclose(means, exact(X, units.taken), atol=1e-6)


@pytest.mark.parametrize("trust", BOTH)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("bands", [1, 3, 8])
def test_its_noise_has_the_covariance_of_the_inverse(trust: TrustModel, noise: AnyNoise, bands: int) -> None:
    dim, column = 8_000, square_root_column(bands)
    mean = AdditiveMean(dim=dim, noise=noise, trust=trust)
    plan = plan_of(step_of(mean, bands=bands))
    one = Silo(Rows(np.zeros((12, dim))), STATISTICS, trusts_server=True, rng=np.random.default_rng(0))
    ask = InProcess([one], rng=np.random.default_rng(1)).open(plan)
    x = 3 * np.stack([ask(t, {"w": np.zeros(1)}, (RADIUS,))[0] for t in range(ROUNDS)])
    inverse = correlated_noise(column, np.eye(ROUNDS))
    # Two times the noise multiplier, as one unit is replaced by another.
    np.testing.assert_allclose(x @ x.T / dim, 16 * inverse @ inverse.T, atol=1.2)


@pytest.mark.parametrize("noise", NOISES)
def test_what_a_silo_sends_is_the_noise_form_for_the_same_noise(noise: AnyNoise) -> None:
    alone = step_of(mean_of(noise), bands=1)
    fresh, units = answered(plan_of(alone), seed=5)
    z = 3 * (fresh - exact(X, units.taken))
    mixed, again = answered(plan_of(step_of(mean_of(noise))), seed=5)
    assert again.taken == units.taken
    x = 3 * (mixed - exact(X, units.taken))
    # A grid rounds the mixtures, not the sums.
    np.testing.assert_allclose(x, correlated_noise(square_root_column(BANDS), z), atol=2e-4)


def test_mixtures_of_rows_that_agree_fit_into_what_is_sent() -> None:
    kind = step_of(mean_of(DiscreteGaussianNoise(1e-4)), batch=Full(), bands=ROUNDS, passes=ROUNDS)
    values = np.zeros((40, DIM))
    values[:, 0] = RADIUS  # mixed over eight rounds, their sum is three times as long
    means, _ = answered(plan_of(kind), values)
    np.testing.assert_allclose(means, np.tile([RADIUS, 0, 0], (ROUNDS, 1)), atol=1e-3)


def test_single_precision_is_all_that_leaves() -> None:
    one, _ = silo_of(X)
    one.accept(plan_of())
    ((message,),) = open_answer(one.answer(ask_at(0)), party=0)
    assert message.payload.dtype == np.float32


@pytest.mark.parametrize("trust", BOTH)
def test_sums_that_a_statistic_adds_up_itself_are_the_same(trust: TrustModel) -> None:
    kind = step_of(mean_of(DiscreteGaussianNoise(1e-9, steps=2**30), trust=trust), statistic="fused")
    means, units = answered(plan_of(kind), statistics={"fused": Fused()})
    np.testing.assert_allclose(means, exact(X, units.taken), atol=1e-6)


# --- batches


def test_blocks_of_one_order_start_over_when_all_had_their_turn() -> None:
    _, units = answered(plan_of())
    assert sorted(itertools.chain(*units.taken[:BLOCKS])) == list(range(12))
    assert units.taken[BLOCKS:] == units.taken[:BLOCKS]


def test_two_kinds_each_go_through_the_whole_order() -> None:
    plan = Plan(steps=((step_of(), 4), (step_of(), 8)), parties=1, delta=1e-6)
    _, units = answered(plan)
    assert units.taken[:4] == units.taken[4:8] == units.taken[8:]


def test_rounds_of_a_group_are_one_stream() -> None:
    kind = step_of(mean_of(GaussianNoise(1e-9)))
    turns = Group(steps=((kind, 1), (Step(measures=kind.measures), 1)))
    plan = Plan(steps=((turns, ROUNDS),), parties=1, delta=1e-6)
    means, units = answered(plan)
    np.testing.assert_allclose(means[::2], exact(X, units.taken), atol=1e-6)
    ordinary = plan_of(Step(measures=kind.measures)).event([12], LOCAL)
    assert plan.event([12], LOCAL) == Compose((kind.run_event([12], LOCAL, ROUNDS), ordinary))


def test_units_that_fill_no_block_are_left_out() -> None:
    _, units = answered(plan_of(), rows(0, 14))
    assert units.taken[BLOCKS:] == units.taken[:BLOCKS]
    assert len(set(itertools.chain(*units.taken))) == 12


def test_silos_of_different_sizes_start_over_at_their_own_pace() -> None:
    kind = step_of(passes=3)
    silos = [silo_of(rows(k, n), seed=k) for k, n in enumerate((9, 12))]
    ask = InProcess([one for one, _ in silos]).open(plan_of(kind, parties=2))
    for t in range(ROUNDS):
        ask(t, {"w": np.zeros(DIM)}, (RADIUS,))
    for (_, units), blocks in zip(silos, (3, 4), strict=True):
        assert units.taken[blocks:] == units.taken[: ROUNDS - blocks]


# --- rounds that do not take place


def test_a_silo_that_is_not_asked_goes_on_from_what_it_answered() -> None:
    noise = mean_of(GaussianNoise(1e-9))
    means, units = answered(plan_of(step_of(noise)), asked=(0, 1, 4, 6, 7))
    np.testing.assert_allclose(means, exact(X, units.taken), atol=1e-6)


@pytest.mark.parametrize("trust", BOTH)
def test_whoever_answers_means_are_of_them(trust: TrustModel) -> None:
    silos = [silo_of(rows(k, 12), seed=k) for k in range(4)]
    kind = step_of(mean_of(GaussianNoise(1e-9), trust=trust))
    ask = InProcess([one for one, _ in silos], public_seed=3).open(
        plan_of(kind, parties=4), participation=RandomSubset(2)
    )
    for t in range(ROUNDS):
        before = [len(units.taken) for _, units in silos]
        (mean,) = ask(t, {"w": np.zeros(DIM)}, (RADIUS,))
        used = [
            rows(k, 12)[units.taken[-1]] for k, (_, units) in enumerate(silos) if len(units.taken) > before[k]
        ]
        assert len(used) == 2
        np.testing.assert_allclose(mean, np.concatenate(used).mean(axis=0), atol=1e-6)


def test_a_round_that_nobody_answers_is_skipped() -> None:
    silos = silos_of([X])
    kind = step_of(mean_of(GaussianNoise(1e-9)))
    ask = InProcess(silos, is_down=lambda t, _: t == 2).open(plan_of(kind))
    means = [ask(t, {"w": np.zeros(DIM)}, (RADIUS,))[0] for t in range(ROUNDS)]
    np.testing.assert_array_equal(means[2], 0)
    np.testing.assert_allclose(means[7], means[3], atol=1e-6)  # the same batch, a pass later


# --- the price


@pytest.mark.parametrize("trust", BOTH)
def test_a_run_costs_one_gaussian_of_the_banded_sensitivity(trust: TrustModel) -> None:
    plan = plan_of(step_of(mean_of(GaussianNoise(2.0), trust=trust)))
    norm = participation_norm(square_root_column(BANDS), separation=BLOCKS, rounds=ROUNDS)
    assert plan.event([12], trust) == Gaussian(2.0 / norm)


def test_full_batches_come_back_in_every_round() -> None:
    plan = plan_of(step_of(batch=Full(), passes=ROUNDS))
    norm = participation_norm(square_root_column(BANDS), separation=1, rounds=ROUNDS)
    assert plan.event([12], LOCAL) == Gaussian(2.0 / norm)


def test_whole_numbers_are_priced_with_all_rounding() -> None:
    mean = mean_of(DiscreteGaussianNoise(2.0))
    found = plan_of(step_of(mean)).event([12], LOCAL)
    assert isinstance(found, DiscreteGaussian)
    continuous = plan_of(step_of()).event([12], LOCAL)
    assert epsilon_of(continuous, 1e-6) < epsilon_of(found, 1e-6) < 1.001 * epsilon_of(continuous, 1e-6)


def test_a_trusted_server_pays_for_the_silo_whose_units_come_back_soonest() -> None:
    kind = step_of(mean_of(GaussianNoise(2.0), trust=CENTRAL), passes=3)
    assert plan_of(kind, parties=2).event([9, 12], CENTRAL) == plan_of(kind).event([9], CENTRAL)
    assert plan_of(kind, parties=2).event([9, 12], CENTRAL) != plan_of(kind).event([12], CENTRAL)


def test_without_noise_nothing_is_claimed() -> None:
    assert plan_of(step_of(mean_of())).event([12], LOCAL) == NonPrivate()


def test_its_guarantee_can_be_verified() -> None:
    one, _ = silo_of(X)
    price = one.accept(plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0)))))
    verify(price)


def test_two_kinds_are_paid_one_by_one() -> None:
    kind = step_of()
    plan = Plan(steps=((kind, 4), (kind, 8)), parties=1, delta=1e-6)
    assert plan.event([12], LOCAL) == Compose(
        (kind.run_event([12], LOCAL, 4), kind.run_event([12], LOCAL, 8))
    )


def release_score(
    trust: TrustModel, noise: AnyNoise, *, present: bool, size: int, rng: np.random.Generator
) -> Array:
    """The likelihood ratio of whole runs: a unit that pulls one way or the other, in two of four rounds."""
    bands, rounds = 2, 4
    column = square_root_column(bands)
    C = np.stack([np.concatenate([np.zeros(t), column, np.zeros(rounds)])[:rounds] for t in range(rounds)]).T
    kind = CorrelatedStep(
        measures=(
            Measure(
                statistic="row",
                estimator=AdditiveMean(dim=1, noise=noise, trust=trust),
                max_radius=RADIUS,
            ),
        ),
        batch=Disjoint(size=1),
        bands=bands,
        passes=2,
    )
    scores = []
    for seed in rng.integers(2**31, size=size):
        units = Rows(np.array([[1.0 if present else -1.0], [0.0]]))
        one = Silo(units, STATISTICS, trusts_server=True, rng=np.random.default_rng(seed))
        ask = InProcess([one], rng=np.random.default_rng(seed + 1)).open(plan_of(kind, rounds=rounds))
        given = np.array([ask(t, {"w": np.zeros(1)}, (RADIUS,))[0][0] for t in range(rounds)])
        moved = np.array([float(0 in taken) for taken in units.taken])
        scores.append(float((C @ moved) @ (C @ given)))
    return np.array(scores)


@pytest.mark.parametrize(("trust", "noise"), [(LOCAL, DiscreteGaussianNoise), (CENTRAL, GaussianNoise)])
def test_an_attack_on_whole_runs_stays_below_the_claim_and_finds_half_the_noise(
    trust: TrustModel, noise: Any
) -> None:
    claimed = AdditiveMean(dim=1, noise=noise(1.5), trust=trust)
    plan = plan_of(step_of(claimed, batch=Disjoint(size=1), bands=2, passes=2), rounds=4)
    claim: tuple[Event, float] = plan.event([2], trust), 0.1

    def attack(multiplier: float) -> Any:
        def run(present: bool, size: int, rng: np.random.Generator) -> Array:
            return release_score(trust, noise(multiplier), present=present, size=size, rng=rng)

        return audit(run, claim, runs=500, rng=np.random.default_rng(8), confidence=0.99)

    honest = attack(1.5)
    assert not honest.refuted
    assert honest.empirical_epsilon_lower > 0.3
    assert attack(0.75).refuted


# --- silos and their stores


def run_from(one: Silo, plan: Plan, asked: Any) -> list[bytes]:
    one.accept(plan)
    return [one.answer(ask_at(t)) for t in asked]


def test_a_restarted_silo_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    plan = plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0))))
    counting = Counting()

    def silo(ledger: Any, seed: int) -> Silo:
        # Continuous randomness from round to round, as if one process had drawn it.
        rng = np.random.default_rng(seed)
        return Silo(Rows(X), {"row": counting}, ledger=ledger, rng=rng)

    with ledger_at(tmp_path / "a.ledger", epsilon=100.0) as ledger:
        given = []
        for t in range(ROUNDS):
            given += run_from(silo(ledger, 40 + t), plan, [t])
        entries = [(entry.epsilon, entry.delta) for entry in ledger.entries()]
        assert counting.calls == ROUNDS
        assert run_from(silo(ledger, 1), plan, range(ROUNDS)) == given
        assert counting.calls == ROUNDS  # stored: nothing is computed, nothing is drawn
        assert [(entry.epsilon, entry.delta) for entry in ledger.entries()] == entries
        assert len(entries) == 1


def restarted(path: Path, bands: int, *, central: bool) -> tuple[Array, list[list[int]]]:
    """What a run gives whose silo and server are made anew in every round, and which units it used."""
    mean = mean_of(DiscreteGaussianNoise(2.0), trust=CENTRAL if central else LOCAL)
    plan, taken = plan_of(step_of(mean, bands=bands)), []
    means: list[Array] = []
    with ledger_at(path, epsilon=100.0) as ledger:
        for t in range(ROUNDS):
            units, mine = Rows(X), None if central else ledger
            one = Silo(
                units, STATISTICS, ledger=mine, trusts_server=central, rng=np.random.default_rng(2 * t)
            )
            federation = InProcess(
                [one], ledger=ledger if central else None, rng=np.random.default_rng(2 * t + 1)
            )
            ask = federation.open(plan)
            again = [ask(k, {"w": np.zeros(DIM)}, (RADIUS,))[0] for k in range(t + 1)]
            np.testing.assert_array_equal(np.reshape(again[:-1], (t, DIM)), np.reshape(means, (t, DIM)))
            means.append(again[-1])
            taken += units.taken
        assert len(ledger.entries()) == 1
    return np.stack(means), taken


@pytest.mark.parametrize("central", [False, True], ids=["local", "central"])
def test_its_noise_goes_on_from_that_of_earlier_processes(tmp_path: Path, central: bool) -> None:
    fresh, units = restarted(tmp_path / "1.ledger", 1, central=central)
    mixed, again = restarted(tmp_path / "3.ledger", BANDS, central=central)
    assert again == units
    z, x = 3 * (fresh - exact(X, units)), 3 * (mixed - exact(X, units))
    np.testing.assert_allclose(x, correlated_noise(square_root_column(BANDS), z), atol=2e-4)
    assert abs(x - z).max() > 1


def test_an_answer_that_was_never_stored_leaves_nothing_behind(tmp_path: Path) -> None:
    plan = plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0))))
    with ledger_at(tmp_path / "a.ledger", epsilon=100.0) as ledger:
        one = Silo(Rows(X), STATISTICS, ledger=ledger)
        one.accept(plan)
        one.answer(ask_at(0))
        lost = one.prepare(ask_at(1))  # killed here: `store` is never called
        state = ledger.state("run")
        again = Silo(Rows(X), STATISTICS, ledger=ledger)
        again.accept(plan)
        sent = again.answer(ask_at(1))
        assert ledger.state("run") != state
        # Whoever comes too late sends what was stored, and its own noise is dropped.
        assert lost.store() == sent
        assert one.answer(ask_at(1)) == sent


def test_rounds_come_in_order_and_may_be_left_out() -> None:
    one, units = silo_of(X)
    one.accept(plan_of())
    one.answer(ask_at(0))
    one.answer(ask_at(5))
    assert len(units.taken) == 2
    for late in (1, 4):
        with pytest.raises(RefusalError, match=r"answered at another point|answered in order"):
            one.answer(ask_at(late))


def test_a_ledger_too_refuses_a_round_behind_one_that_was_answered(tmp_path: Path) -> None:
    plan = plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0))))
    with ledger_at(tmp_path / "a.ledger", epsilon=100.0) as ledger:
        one = Silo(Rows(X), STATISTICS, ledger=ledger)
        run_from(one, plan, (0, 5))
        with pytest.raises(RefusalError, match="answered in order"):
            one.answer(ask_at(4))
        one.answer(ask_at(5))
        one.answer(ask_at(6))


def test_a_trusted_server_refuses_it_too(tmp_path: Path) -> None:
    plan = plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0), trust=CENTRAL)))
    with ledger_at(tmp_path / "a.ledger", epsilon=100.0) as ledger:
        one, _ = silo_of(X)
        ask = InProcess([one], ledger=ledger).open(plan)
        ask(0, {"w": np.zeros(DIM)}, (RADIUS,))
        ask(5, {"w": np.zeros(DIM)}, (RADIUS,))
        fresh, _ = silo_of(X)
        again = InProcess([fresh], ledger=ledger).open(plan)
        with pytest.raises(RefusalError, match="answered in order"):
            again(3, {"w": np.zeros(DIM)}, (RADIUS,))


def test_nothing_is_mixed_into_a_round_twice() -> None:
    kind, rng = step_of(), np.random.default_rng(0)
    _, past = release(kind, np.ones(DIM), 4, Past.nothing(DIM), radius=RADIUS, rows=3, rng=rng)
    for number in (4, 3):
        with pytest.raises(RefusalError, match="answered in order"):
            release(kind, np.ones(DIM), number, past, radius=RADIUS, rows=3, rng=rng)


def test_only_the_radius_of_the_plan_is_answered() -> None:
    one, _ = silo_of(X)
    one.accept(plan_of())
    with pytest.raises(
        RefusalError, match=r"radius of correlated rounds must be 1\.0, as in its plan, got 0\.5"
    ):
        one.answer(ask_at(0, radius=(0.5,)))


@pytest.mark.parametrize("change", [{"bands": 2}, {"statistic": "shifted"}])
def test_a_run_goes_on_with_its_own_plan_only(tmp_path: Path, change: dict[str, Any]) -> None:
    mean = mean_of(DiscreteGaussianNoise(2.0))
    with ledger_at(tmp_path / "a.ledger", epsilon=100.0) as ledger:
        one = Silo(Rows(X), STATISTICS, ledger=ledger)
        run_from(one, plan_of(step_of(mean)), (0,))
        with pytest.raises(LedgerError, match="another plan"):
            one.accept(plan_of(step_of(mean, **change)))


# --- what is refused


@pytest.mark.parametrize("batch", [Fixed(size=3), Poisson(rate=0.25)])
def test_samples_have_no_price(batch: Batch) -> None:
    relation = Relation.ZERO_OUT
    with pytest.raises(ParameterError, match="must be full or disjoint"):
        step_of(mean_of(GaussianNoise(2.0), relation=relation), batch=batch)


def test_batches_that_would_shift_are_refused() -> None:
    with pytest.raises(ParameterError, match="adding a unit would push another one out"):
        step_of(mean_of(GaussianNoise(2.0), relation=Relation.ADD_REMOVE))
    kind = step_of(mean_of(GaussianNoise(2.0), relation=Relation.ADD_REMOVE), batch=Full(), passes=ROUNDS)
    norm = participation_norm(square_root_column(BANDS), separation=1, rounds=ROUNDS)
    expected = Gaussian(2.0 / norm, Neighbours(Relation.ADD_REMOVE))
    assert plan_of(kind).event([12], LOCAL) == expected


@pytest.mark.parametrize(
    "estimator", [mean_of(LaplaceNoise(2.0)), RandK(dim=DIM, k=2, noise=GaussianNoise(2.0))]
)
def test_only_gaussian_sums_in_full(estimator: Estimator) -> None:
    with pytest.raises(ParameterError, match="sums of rows in full with Gaussian noise"):
        step_of(estimator)


def test_one_statistic_at_a_time() -> None:
    one = step_of()
    with pytest.raises(ParameterError, match="exactly one statistic, got 2"):
        msgspec.structs.replace(one, measures=one.measures * 2)


def test_no_more_bands_than_rounds() -> None:
    with pytest.raises(ParameterError, match="bands must be at most the 2 rounds, got 3"):
        plan_of(rounds=2)


def test_no_more_rounds_than_passes_allow() -> None:
    with pytest.raises(ParameterError, match=r"at most passes x batches \(8\) in a silo of 12 units, got 9"):
        plan_of(rounds=9).event([12], LOCAL)
    one, _ = silo_of(X)
    with pytest.raises(ParameterError, match="passes x batches"):
        one.accept(plan_of(rounds=9))


def test_no_other_blocks_beside_them() -> None:
    other = Step(measures=step_of().measures, batch=Disjoint(size=1))
    with pytest.raises(ParameterError, match="go with no other disjoint batches"):
        Plan(steps=((step_of(), 4), (other, 1)), parties=1, delta=1e-6)
    Plan(steps=((step_of(), 4), (Step(measures=step_of().measures), 1)), parties=1, delta=1e-6)


def test_what_is_kept_has_a_limit() -> None:
    many = mean_of(GaussianNoise(2.0), dim=2**20)
    with pytest.raises(ParameterError, match=r"2 \(bands - 1\) dim of correlated rounds .* 33554432"):
        plan_of(step_of(many, bands=18), rounds=18)


def test_no_state_of_units() -> None:
    one, _ = silo_of(X, statistics={"personal": Personal()})
    with pytest.raises(ParameterError, match="'personal' keeps a state, which needs full or Poisson batches"):
        one.accept(plan_of(step_of(batch=Full(), passes=ROUNDS, statistic="personal")))


def test_no_crowd() -> None:
    with pytest.raises(ParameterError, match="correlated noise needs silos"):
        Crowd(Rows(X), STATISTICS).open(plan_of(parties=12))


def test_a_plan_survives_toml() -> None:
    plan = plan_of()
    assert Plan.from_toml(plan.to_toml()) == plan
    other = plan_of(step_of(bands=2))
    assert plan.digest() != other.digest()


def test_a_state_that_is_not_of_the_run_is_refused(tmp_path: Path) -> None:
    plan = plan_of(step_of(mean_of(DiscreteGaussianNoise(2.0))))
    for stored in ({}, {"\n0": (2, b"")}):
        with ledger_at(tmp_path / f"{len(stored)}.ledger", epsilon=100.0) as ledger:
            one = Silo(Rows(X), STATISTICS, ledger=ledger)
            one.accept(plan)
            ledger.store_answer(
                "run", 0, query_digest=b"x", answer=b"y", state=msgspec.msgpack.encode(stored)
            )
            with pytest.raises(LedgerError, match="other statistics, versions or data"):
                one.answer(ask_at(1))


def test_bands_have_a_limit() -> None:
    with pytest.raises(ParameterError, match=r"bands must be .* 65536"):
        step_of(bands=2**16 + 1)


@pytest.mark.parametrize("name", ["bands", "passes"])
def test_at_least_one_band_and_one_pass(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        step_of(**{name: 0})  # type: ignore[arg-type]
