"""Rounds, noise and errors from public facts: monotone, exact where they can be, cheap where searched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError
from tacit.federation import (
    Batch,
    Disjoint,
    Fixed,
    Full,
    Group,
    Poisson,
    RandomSubset,
    Scheduled,
    Step,
    least_noise,
)
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    LinearObjective,
    Logistic,
    Loss,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    PreconditionedNoisyGD,
    Settings,
    Squared,
    WhitenedNoisyGD,
    preparation,
    rough_noise,
)
from tacit.learning.algorithms import Kinds, Problem
from tacit.learning.preparation import choose_rounds, prepare
from tacit.means import AdditiveMean, NoNoise
from tacit.numerics import IntArray
from tacit.privacy import (
    Event,
    Gaussian,
    PrivacyBudget,
    Relation,
    Repeat,
    Sampled,
    TrustModel,
    calibrate,
    epsilon_of,
    guarantee,
)
from tacit.randomness import PublicStream

OBJECTIVE = LinearObjective(loss=Logistic(), features=10, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = [100, 140, 333]


def settings_with(
    algorithm: Algorithm | None = None, trust: TrustModel | None = TrustModel.LOCAL, **changes: Any
) -> Settings:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "diameter": 20.0, **changes}
    chosen = AcceleratedNoisyMinibatchSGD() if algorithm is None else algorithm
    return Settings(objective=OBJECTIVE, algorithm=chosen, trust=trust, **facts)


# Noise


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyMinibatchSGD(rounds=12),
        NoisyMinibatchSGD(rounds=12, batch=Fixed(rate=0.1)),
        NoisyMinibatchSGD(rounds=12, batch=Fixed(size=7)),
        NoisyMinibatchSGD(rounds=12, batch=Disjoint(size=8)),
    ],
    ids=str,
)
def test_the_least_noise_that_every_silo_can_afford(
    algorithm: NoisyMinibatchSGD, noise: str, trust: TrustModel
) -> None:
    prepared = prepare(settings_with(algorithm, trust, noise=noise), SIZES)
    views = [SIZES] if trust is TrustModel.CENTRAL else [[n] for n in SIZES]
    costs = [epsilon_of(prepared.plan.event(view, trust), BUDGET.delta) for view in views]
    assert max(costs) <= BUDGET.epsilon
    assert max(costs) >= BUDGET.epsilon * (1 - 1e-6)


@pytest.mark.parametrize(
    ("sizes", "rate", "epsilon", "rounds"),
    [
        ([1183, 868, 1993, 477], 0.09986268014482727, 2.0, 118),
        ([1866, 219, 1447, 1479], 0.09723574034834837, 0.5, 82),
    ],
)
def test_silos_at_nearly_the_same_rate_can_all_afford_it(
    sizes: list[int], rate: float, epsilon: float, rounds: int
) -> None:
    """Here the price of the largest rate is met, and the computed price of another silo is higher by 1e-9."""
    settings = Settings(
        objective=LinearObjective(loss=Logistic(), features=65, feature_norm=1.0),
        algorithm=NoisyMinibatchSGD(rounds=rounds, batch=Fixed(rate=rate)),
        trust=TrustModel.LOCAL,
        budget=PrivacyBudget(epsilon, 1e-6),
        noise="discrete-gaussian",
    )
    plan = prepare(settings, sizes).plan
    for n in sizes:
        price = guarantee(plan.event([n], TrustModel.LOCAL), 1e-6, observer="the server")
        assert price.epsilon <= epsilon


def test_noise_has_the_closed_forms() -> None:
    one = calibrate(Gaussian, BUDGET)
    full = prepare(settings_with(NoisyMinibatchSGD(rounds=25)), SIZES)
    assert full.noise_multiplier == pytest.approx(5 * one, rel=1e-8)
    once = prepare(settings_with(NoisyMinibatchSGD(rounds=25, batch=Disjoint(size=4))), SIZES)
    assert once.noise_multiplier == pytest.approx(one, rel=1e-8)
    local = prepare(settings_with(NoisyLocalSGD(rounds=5, local_steps=4)), SIZES)
    steps = calibrate(lambda z: Repeat(Sampled(Gaussian(z), 1 / 100), 20), BUDGET)
    assert local.noise_multiplier == pytest.approx(steps, rel=1e-8)


def test_without_privacy_there_is_no_noise() -> None:
    prepared = prepare(settings_with(trust=None), SIZES)
    assert prepared.noise_multiplier == 0
    assert prepared.problem.variance == 0
    assert math.isinf(epsilon_of(prepared.plan.event([100], TrustModel.LOCAL), 1e-5))


# Rounds


def test_the_fewest_rounds_within_five_percent() -> None:
    assert choose_rounds({10: 3.0, 20: 1.04, 40: 1.0, 80: 2.0}) == 20
    assert choose_rounds({10: math.inf, 20: 1.0}) == 20
    for none in ({}, {10: math.inf}):
        with pytest.raises(ParameterError, match="rounds could not be chosen: no error bound is finite"):
            choose_rounds(none)


@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyMinibatchSGD(),
        AcceleratedNoisyMinibatchSGD(),
        NoisyMinibatchSGD(batch=Fixed(rate=0.2)),
        AcceleratedNoisyMinibatchSGD(batch=Fixed(rate=0.2)),
        NoisyLocalSGD(batch=Fixed(rate=0.2)),
    ],
    ids=str,
)
def test_more_budget_or_more_records_never_mean_fewer_rounds_or_more_error(algorithm: Algorithm) -> None:
    rounds, errors = [], []
    for epsilon, scale in [(0.05, 1), (0.5, 1), (0.5, 8), (8.0, 8), (8.0, 100)]:
        settings = settings_with(algorithm, budget=PrivacyBudget(epsilon, 1e-6))
        prepared = prepare(settings, [scale * n for n in SIZES])
        rounds.append(prepared.rounds)
        errors.append(algorithm.error_bound(prepared.problem, prepared.rounds))
    assert rounds == sorted(rounds)
    assert errors == sorted(errors, reverse=True)
    assert rounds[0] < rounds[-1] or isinstance(algorithm, NoisyLocalSGD)


def test_without_noise_more_rounds_are_better() -> None:
    assert prepare(settings_with(trust=None), SIZES).rounds == 320


def test_the_stages_choose_enough_rounds_for_a_stage() -> None:
    algorithm = MultiStageAcceleratedNoisyMinibatchSGD(mu=0.01)
    prepared = prepare(settings_with(algorithm, budget=PrivacyBudget(50.0, 1e-5)), SIZES)
    assert math.isfinite(algorithm.error_bound(prepared.problem, prepared.rounds))
    with pytest.raises(ParameterError, match="no error bound is finite; give a number of rounds"):
        prepare(settings_with(MultiStageAcceleratedNoisyMinibatchSGD(mu=1e-9)), SIZES)


def test_one_pass_uses_every_record_of_the_smallest_silo() -> None:
    assert prepare(settings_with(NoisyMinibatchSGD(batch=Disjoint(size=9))), SIZES).rounds == 11
    local = NoisyLocalSGD(batch=Disjoint(size=3), local_steps=5)
    assert prepare(settings_with(local), SIZES).rounds == 6
    with pytest.raises(ParameterError, match="too small for even one round of disjoint batches"):
        prepare(settings_with(NoisyLocalSGD(batch=Disjoint(size=60), local_steps=2)), SIZES)


def test_given_rounds_are_kept() -> None:
    assert prepare(settings_with(AcceleratedNoisyMinibatchSGD(rounds=33)), SIZES).rounds == 33


@pytest.mark.parametrize("batch", [Fixed(rate=0.1), Fixed(size=1)], ids=str)
def test_choosing_rounds_prices_sampled_batches_once(batch: Fixed, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counting(event_at: Any, budget: PrivacyBudget) -> float:
        counts.append(isinstance(event_at(1.0), Repeat))
        return calibrate(event_at, budget)

    for module in (rough_noise, least_noise):  # rough noise, and that of the plan
        monkeypatch.setattr(module, "calibrate", counting)
    prepare(settings_with(NoisyMinibatchSGD(batch=batch)), SIZES)
    assert sum(counts) == 1  # all others are single Gaussian releases


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("rounds", "tolerance"), [(10, 0.4), (320, 0.07)])
def test_the_guess_that_rounds_are_chosen_by_is_near(
    rounds: int, tolerance: float, rate: float, epsilon: float
) -> None:
    settings = settings_with(NoisyMinibatchSGD(batch=Fixed(rate=rate)), budget=PrivacyBudget(epsilon, 1e-6))
    guess = preparation._rough_multiplier(settings, [1000], rounds)

    def event(z: float) -> Event:
        return Repeat(Sampled(Gaussian(z), rate), rounds)

    assert guess == pytest.approx(calibrate(event, settings.budget or BUDGET), rel=tolerance)


class TwoKinds(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="two-kinds"):
    """Two kinds of rounds that may spend unequal shares, in turn; the statistic of the second may differ."""

    shares: tuple[float, float] = (0.9, 0.1)
    other: Batch = Full()
    second: str = "gradient"

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        first = Step(measures=(problem.measure("gradient", share=self.shares[0]),), batch=self.batch)
        second = Step(measures=(problem.measure(self.second, share=self.shares[1]),), batch=self.other)
        return ((Group(steps=((first, 1), (second, 3))), rounds),)


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.05, 0.95), (1.0, 1.0)], ids=str)
@pytest.mark.parametrize(
    ("batch", "other"),
    [
        (Fixed(rate=0.5), Fixed(rate=0.05)),
        (Poisson(rate=0.02), Fixed(rate=0.05)),
        (Fixed(rate=0.1), Full()),
        (Full(), Fixed(rate=0.1)),
        (Fixed(rate=0.2), Disjoint(size=1)),
    ],
    ids=str,
)
def test_the_guess_is_near_for_kinds_of_rounds_with_unequal_shares(
    batch: Batch, other: Batch, shares: tuple[float, float]
) -> None:
    algorithm = TwoKinds(batch=batch, other=other, shares=shares)
    settings = settings_with(algorithm)
    guess = preparation._rough_multiplier(settings, [1000], 80)
    exact = prepare(settings_with(TwoKinds(rounds=80, batch=batch, other=other, shares=shares)), [1000])
    assert guess == pytest.approx(exact.noise_multiplier, rel=0.06)
    assert prepare(settings, [1000]).rounds in (10, 20, 40, 80, 160, 320)


@pytest.mark.parametrize("epsilon", [0.01, 300.0, 3000.0])
def test_extreme_budgets_have_a_guess(epsilon: float) -> None:
    settings = settings_with(TwoKinds(batch=Fixed(rate=0.1)), budget=PrivacyBudget(epsilon, 1e-6))
    assert preparation._rough_multiplier(settings, [1000], 10) > 0


def test_a_kind_of_round_without_noise_is_refused_before_rounds_are_chosen() -> None:
    class Bare(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="bare"):
        def steps(self, problem: Problem, rounds: int) -> Kinds:
            bare = problem.measure("gradient", lambda **facts: AdditiveMean(**{**facts, "noise": NoNoise()}))
            return ((Step(measures=(bare,), batch=Fixed(rate=0.1)), rounds),)

    with pytest.raises(BudgetError):
        prepare(settings_with(Bare()), [1000])


# The size of the error


def variance_of(settings: Settings, sizes: Sequence[int]) -> float:
    return prepare(settings, sizes).problem.variance


def test_noise_of_records_that_count_the_same() -> None:
    prepared = prepare(settings_with(NoisyMinibatchSGD(rounds=4), clip=0.5), SIZES)
    noise = 10 * (prepared.noise_multiplier * 2 * 0.5) ** 2  # on one sum
    assert prepared.problem.variance == pytest.approx(3 * noise / 573**2)
    central = prepare(settings_with(NoisyMinibatchSGD(rounds=4), TrustModel.CENTRAL, clip=0.5), SIZES)
    assert central.problem.variance == pytest.approx(prepared.problem.variance / 3)


@pytest.mark.parametrize("weights", ["silos", [0.5, 0.3, 0.2], [5.0, 3.0, 2.0]], ids=str)
def test_noise_of_weighted_silos(weights: Any) -> None:
    prepared = prepare(settings_with(NoisyMinibatchSGD(rounds=4), weights=weights), SIZES)
    noise = 10 * (prepared.noise_multiplier * 2) ** 2
    p = np.full(3, 1 / 3) if weights == "silos" else np.array([0.5, 0.3, 0.2])
    assert prepared.problem.variance == pytest.approx(noise * np.sum(p**2 / np.array(SIZES) ** 2))


def test_under_zero_out_a_record_moves_a_sum_half_as_far() -> None:
    replace = prepare(settings_with(NoisyMinibatchSGD(rounds=4)), SIZES)
    zero = prepare(settings_with(NoisyMinibatchSGD(rounds=4), relation=Relation.ZERO_OUT), SIZES)
    assert zero.noise_multiplier == pytest.approx(replace.noise_multiplier)
    assert zero.problem.variance == pytest.approx(replace.problem.variance / 4)


def test_sampled_batches_without_noise_are_bounded_by_enumeration() -> None:
    """Gradients +-1 in one dimension have the largest variance, 1 = radius^2."""
    values = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    means = [np.mean(values[list(index)]) for index in combinations(range(6), 2)]
    settings = settings_with(NoisyMinibatchSGD(rounds=1, batch=Fixed(size=2)), None)
    assert variance_of(settings, [6]) == pytest.approx(float(np.mean(np.square(means))))
    assert variance_of(settings, [6, 6]) == pytest.approx(float(np.mean(np.square(means))) / 2)
    whole = settings_with(NoisyMinibatchSGD(rounds=1, batch=Fixed(size=6)), None)
    assert variance_of(whole, [6]) == 0


def test_other_batches_without_noise() -> None:
    disjoint = settings_with(NoisyMinibatchSGD(rounds=1, batch=Disjoint(size=5)), None)
    assert variance_of(disjoint, [10, 10]) == pytest.approx(1 / 10)
    poisson = settings_with(
        NoisyMinibatchSGD(rounds=1, batch=Poisson(rate=0.25)), None, relation=Relation.ZERO_OUT
    )
    assert variance_of(poisson, [40]) == pytest.approx(0.75 / 10)
    local = settings_with(NoisyLocalSGD(rounds=1, batch=Fixed(size=2)), None)
    assert variance_of(local, [6, 11]) == pytest.approx(max(4 / 5, 9 / 10) / 2)  # one step in one silo


@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyMinibatchSGD(rounds=40, batch=Fixed(size=4)),
        NoisyMinibatchSGD(batch=Fixed(rate=0.1)),
        NoisyLocalSGD(rounds=20),
        AcceleratedNoisyMinibatchSGD(rounds=40, batch=Fixed(rate=0.5)),
    ],
    ids=str,
)
def test_the_cheapest_sample_is_the_one_with_the_smaller_bound(algorithm: Algorithm) -> None:
    found = {
        how: prepare(settings_with(algorithm, sampling=how), [40, 80])
        for how in ("given", "poisson", "cheapest")
    }

    def bound(how: str) -> float:
        return algorithm.error_bound(found[how].problem, found[how].rounds)

    assert bound("cheapest") == min(bound("given"), bound("poisson"))
    assert bound("poisson") < bound("given")
    batch = found["cheapest"].plan.kinds[0][0].batch
    assert isinstance(batch, Poisson)
    for n in (40, 80):
        assert batch.expected(n) == found["given"].plan.kinds[0][0].batch.expected(n)
    assert found["cheapest"].noise_multiplier < found["given"].noise_multiplier


def test_what_is_cheapest_is_a_fixed_size_without_noise_and_never_under_zero_out() -> None:
    algorithm = NoisyMinibatchSGD(rounds=10, batch=Fixed(size=4))
    open_run = prepare(settings_with(algorithm, None, sampling="cheapest"), [40])
    assert open_run.plan.kinds[0][0].batch == Fixed(size=4)
    for relation in (Relation.ZERO_OUT, Relation.ADD_REMOVE):
        found = prepare(settings_with(algorithm, sampling="cheapest", relation=relation), [40])
        assert found.plan.kinds[0][0].batch == Poisson(size=4)
    whole = prepare(settings_with(NoisyMinibatchSGD(rounds=10), sampling="cheapest"), [40])
    assert whole.plan.kinds[0][0].batch == Full()
    with pytest.raises(ParameterError, match="sampling must be one of"):
        settings_with(algorithm, sampling="best")


def test_noise_of_one_step_of_a_walk_is_on_the_mean_of_its_own_batch() -> None:
    algorithm = NoisyLocalSGD(rounds=4, batch=Fixed(size=5))
    prepared = prepare(settings_with(algorithm, clip=0.5), [100, 100])
    noise = 10 * (prepared.noise_multiplier * 2 * 0.5) ** 2
    sampled = variance_of(settings_with(algorithm, None, clip=0.5), [100, 100])
    assert prepared.problem.variance == pytest.approx(noise / 5**2 + sampled)


@pytest.mark.parametrize(("loss", "spread"), [(Logistic(), 1.0), (Squared(), 20.0)])
def test_a_radius_that_clips_nothing_does_not_count_as_variance(loss: Loss, spread: float) -> None:
    """Lipschitz constant 1, or smoothness 1 times diameter 20."""
    objective = LinearObjective(loss=loss, features=10, feature_norm=1.0)
    algorithm = NoisyMinibatchSGD(rounds=4, batch=Fixed(size=2))
    settings = Settings(objective=objective, algorithm=algorithm, diameter=20.0, clip=1e6)
    assert variance_of(settings, [5]) == pytest.approx(spread**2 * 3 / 4 / 2)
    clipped = Settings(objective=objective, algorithm=algorithm, diameter=20.0, clip=0.5)
    assert variance_of(clipped, [5]) == pytest.approx(0.5**2 * 3 / 4 / 2)


def test_silos_that_stay_away_add_noise_and_their_own_difference() -> None:
    everybody = variance_of(settings_with(NoisyMinibatchSGD(rounds=4)), [100] * 4)
    for participation in (RandomSubset(2), Scheduled([[0, 1], [1, 2, 3]]), Own()):
        some = settings_with(NoisyMinibatchSGD(rounds=4), participation=participation)
        # (N - M) / ((N - 1) M) = 1/3 of radius^2, and twice the noise.
        assert variance_of(some, [100] * 4) == pytest.approx(2 * everybody + 1 / 3)
    central = settings_with(NoisyMinibatchSGD(rounds=4), TrustModel.CENTRAL, participation=RandomSubset(2))
    assert variance_of(central, [100] * 4) == pytest.approx(everybody + 1 / 3)  # one noise, half the rows


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.1, 0.9), (0.5, 0.5)], ids=str)
def test_several_kinds_of_rounds_err_by_the_largest_error_of_a_gradient(shares: tuple[float, float]) -> None:
    def variance(**changes: Any) -> float:
        return variance_of(settings_with(TwoKinds(rounds=7, **changes)), [100])

    exact = prepare(settings_with(TwoKinds(rounds=7, shares=shares)), [100]).noise_multiplier
    one = calibrate(Gaussian, BUDGET)
    assert exact == pytest.approx(one * math.sqrt(7 * (shares[0] + 3 * shares[1])), rel=1e-8)
    noise = 10 * (2 * exact) ** 2 / 100**2  # at the share 1
    assert variance(shares=shares) == pytest.approx(noise / min(shares))
    # What another statistic errs by says nothing of gradients.
    assert variance(shares=shares, second="difference") == pytest.approx(noise / shares[0])


def test_the_batch_of_every_kind_of_round_counts() -> None:
    small = settings_with(TwoKinds(rounds=3, other=Fixed(size=2)), None)
    assert variance_of(small, [6]) == variance_of(
        settings_with(NoisyMinibatchSGD(rounds=3, batch=Fixed(size=2)), None), [6]
    )


class Own:
    """A participation of the user's own, which asks two silos."""

    uniform: ClassVar[bool] = True

    def fewest(self, parties: int) -> int:
        return 2

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        return np.arange(2)


def test_a_participation_that_does_not_say_how_many_it_asks_is_refused() -> None:
    class Silent:
        uniform = True

        def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
            return np.arange(2)

    with pytest.raises(
        ParameterError, match="participation must be a Participation, got Silent, which lacks"
    ):
        settings_with(participation=Silent())


# Refusals, before anything is asked


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            settings_with(NoisyMinibatchSGD(rounds=5, batch=Fixed(size=101))),
            ParameterError,
            "size must be at most the 100 units of the silo, got 101",
        ),
        (
            settings_with(NoisyMinibatchSGD(rounds=26, batch=Disjoint(size=4)), None),
            ParameterError,
            "rounds x batch must be at most the 100 units of a silo if disjoint, got 104",
        ),
        (
            settings_with(NoisyMinibatchSGD(rounds=26, batch=Disjoint(size=4))),
            ParameterError,
            "rounds x batch must be at most the 100 units of a silo if disjoint, got 104",
        ),
        (
            settings_with(MultiStageAcceleratedNoisyMinibatchSGD(mu=0.01, rounds=5)),
            ParameterError,
            r"rounds must be at least \d+ for the first stage, got 5",
        ),
        (
            settings_with(AcceleratedNoisyMinibatchSGD(rounds=5, mu=0.3)),
            ParameterError,
            "mu must be at most the smoothness 0.25",
        ),
        (
            settings_with(weights=[0.5, 0.5]),
            ParameterError,
            r"weights must be 3 finite numbers > 0, got \[0.5, 0.5\]",
        ),
        (
            settings_with(participation=RandomSubset(4)),
            ParameterError,
            "size must be at most the 3 silos, got 4",
        ),
        (
            settings_with(NoisyMinibatchSGD(rounds=10), budget=PrivacyBudget(1e-12, 1e-300)),
            BudgetError,
            "cannot be met",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_does_not_fit_is_refused(settings: Settings, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        prepare(settings, SIZES)


def test_unknown_smoothness_is_refused_unless_a_step_is_given() -> None:
    unknown = LinearObjective(loss=Squared(), features=3)
    for rounds in (None, 5):
        with pytest.raises(ParameterError, match="the objective's smoothness is unknown"):
            prepare(Settings(objective=unknown, algorithm=NoisyMinibatchSGD(rounds=rounds), clip=1.0), SIZES)
    given = Settings(objective=unknown, algorithm=NoisyMinibatchSGD(rounds=5, step_size=0.1), clip=1.0)
    assert prepare(given, SIZES).rounds == 5


@pytest.mark.parametrize("algorithm", [WhitenedNoisyGD(), PreconditionedNoisyGD()])
def test_the_error_of_gradients_is_not_that_of_the_gram_matrix_before_them(algorithm: Algorithm) -> None:
    settings = Settings(
        objective=OBJECTIVE, algorithm=algorithm, trust=TrustModel.CENTRAL, budget=BUDGET, clip=0.2
    )
    prepared = prepare(settings, [500])
    *_, mean = prepared.means
    assert prepared.problem.variance == prepared.problem.errors[mean.statistic]
    assert len(set(prepared.problem.errors.values())) == 2
