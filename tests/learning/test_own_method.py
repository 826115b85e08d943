"""A method of the user's own: it asks two statistics of its own in one step, and pays as for one mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError, RefusalError, UnknownNameError
from tacit.federation import AnyStatistic, Ask, Batch, Disjoint, Fixed, Full, Statistic, Step
from tacit.learning import (
    Algorithm,
    FederatedLogisticRegression,
    Grouped,
    LinearObjective,
    Logistic,
    Method,
    NoisyMinibatchSGD,
    Objective,
    PerPerson,
    Problem,
    RecordGradient,
    Records,
    Settings,
    Trained,
    algorithm_name,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms import Follow, Kinds
from tacit.learning.algorithms.base import MakeStatistic
from tacit.learning.preparation import prepare
from tacit.ledger import Ledger
from tacit.numerics import Array, Regularizer, Zero, clip_rows
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    TrustModel,
    Unit,
    epsilon_of,
    verify,
)
from tests.statistics import FALSE_ALARM

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
D = 4
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = (30, 50, 20)
CEILING = 2.0
"""Losses above it are clipped."""


@dataclass(frozen=True)
class RecordLoss:
    """The loss of each record at "w", as a row of one number."""

    objective: Objective

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        return self.objective.value(at["w"], units)[:, None]


class Careful(Method, frozen=True, kw_only=True, tag="careful"):
    """Gradient descent that returns the point whose loss looked least.

    Attributes:
        batch: Units per round.
        step_size: Length of a step over that of the gradient.
        share: What the gradient may spend of the budget; the rest is the loss's.
        seen: What it was told, for the tests.
    """

    batch: Batch = Full()
    step_size: float = 1.5
    share: float = 0.5

    paper: ClassVar[str] = "None: the tests' own"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = {"slope": RecordGradient, "loss": RecordLoss}

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        slope = problem.measure("slope", share=self.share)
        loss = problem.measure("loss", dim=1, max_radius=CEILING, share=1 - self.share)
        return ((Step(measures=(slope, loss), batch=self.batch), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        return problem.diameter**2 / (self.step_size * rounds) + self.step_size * problem.variance

    def check(self, problem: Problem, rounds: int) -> None:
        if rounds < 2:
            raise ParameterError(f"rounds must be at least 2, got {rounds}.")

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        least, best = math.inf, w
        for r in range(rounds):
            slope, loss = ask(r, {"w": w}, (problem.radius, CEILING))
            assert (slope.shape, loss.shape) == ((problem.dim,), (1,))
            if loss[0] < least:
                least, best = float(loss[0]), w
            w = prox(self.step_size, w - self.step_size * slope)
            follow(r, w)
        return best


def statistics_of(method: Method) -> dict[str, AnyStatistic]:
    return {name: make(OBJECTIVE) for name, make in method.statistics.items()}


def data_of(sizes: Sequence[int]) -> list[Records]:
    rng = np.random.default_rng(1)
    silos = []
    for n in sizes:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        silos.append(Records.of(X, (X @ [3.0, -2.0, 1.0, 0.0] > 0).astype(np.float64)))
    return silos


def settings_with(algorithm: Algorithm, trust: TrustModel | None = LOCAL, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "clip": 0.5, **changes}
    return Settings(objective=OBJECTIVE, algorithm=algorithm, trust=trust, **facts)


def run(silos: Sequence[Records | Grouped], settings: Settings, **made: Any) -> Trained:
    known = statistics_of(Careful())
    parties = make_silos(
        silos, OBJECTIVE, statistics=known, trusts_server=settings.trusts_server, seed=3, **made
    )
    return train(in_process(parties, seed=3), settings)


# What it computes


def by_hand(slopes: Any, losses: Any, *, rounds: int) -> Array:
    """The loop on plain functions of a point, which return one row per unit."""
    w = np.zeros(D)
    found: list[tuple[float, Array]] = []
    for _ in range(rounds):
        found.append((float(np.clip(losses(w), -CEILING, CEILING).mean()), w))
        w = w - 1.5 * clip_rows(slopes(w), 0.5).mean(axis=0)
    return min(found, key=lambda one: one[0])[1]


def test_without_noise_it_is_the_loop_written_by_hand() -> None:
    silos = data_of(SIZES)
    records = Records.of(np.vstack([s.X for s in silos]), np.concatenate([s.y for s in silos]))
    expected = by_hand(
        lambda w: OBJECTIVE.gradients(w, records), lambda w: OBJECTIVE.value(w, records), rounds=9
    )
    found = run(silos, settings_with(Careful(rounds=9), None))
    np.testing.assert_allclose(found.w, expected, atol=1e-12)
    assert np.linalg.norm(found.w) > 1  # it walked
    assert found.algorithm == algorithm_name(Careful()) == "Careful"
    assert all(np.isinf(g.epsilon) for g in found.guarantees)


def test_a_person_has_one_row_of_each_statistic() -> None:
    (records,) = data_of([60])
    persons = np.arange(60) % 13
    each = [persons == k for k in range(13)]
    expected = by_hand(
        lambda w: np.stack([OBJECTIVE.gradients(w, records)[one].mean(axis=0) for one in each]),
        lambda w: np.stack([OBJECTIVE.value(w, records)[one].mean() for one in each]),
        rounds=9,
    )
    settings = settings_with(Careful(rounds=9), None, unit=Unit.PERSON)
    found = run([Grouped.of(records, persons)], settings)
    np.testing.assert_allclose(found.w, expected, atol=1e-12)


def test_a_person_pays_once_for_both_statistics() -> None:
    grouped = [Grouped.of(records, np.arange(len(records)) // 3) for records in data_of(SIZES)]
    found = run(grouped, settings_with(Careful(rounds=4), unit=Unit.PERSON))
    assert found.guarantee.neighbours.unit is Unit.PERSON
    assert found.guarantee.epsilon == pytest.approx(2.0, abs=2e-6)
    verify(found.guarantee)


def test_it_chooses_its_rounds_by_its_own_bound() -> None:
    found = run(data_of([300, 300]), settings_with(Careful()))
    assert found.rounds == prepare(settings_with(Careful()), [300, 300]).rounds
    assert found.rounds in (10, 20, 40, 80, 160, 320)


# What it costs


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT])
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_shares_of_a_budget_cost_what_one_mean_costs(
    trust: TrustModel, relation: Relation, noise: str, share: float
) -> None:
    changes: dict[str, Any] = {"relation": relation, "noise": noise}
    both = prepare(settings_with(Careful(rounds=6, share=share), trust, **changes), SIZES)
    single = prepare(settings_with(NoisyMinibatchSGD(rounds=6), trust, **changes), SIZES)
    # Whole numbers pay for rounding too, of which one loss has less than a gradient.
    near = 1e-6 if noise == "gaussian" else 1e-4
    assert both.noise_multiplier == pytest.approx(single.noise_multiplier, rel=near)
    ((step, _),) = both.plan.kinds
    noises: list[Any] = [measure.estimator.noise for measure in step.measures]  # type: ignore[union-attr]
    multipliers = [noise.noise_multiplier for noise in noises]
    expected = [both.noise_multiplier / math.sqrt(part) for part in (share, 1 - share)]
    assert multipliers == pytest.approx(expected, rel=1e-12)
    sizes = list(SIZES) if trust is CENTRAL else [min(SIZES)]
    price = epsilon_of(both.plan.event(sizes, trust), BUDGET.delta)
    assert BUDGET.epsilon * (1 - 1e-6) <= price <= BUDGET.epsilon
    if noise == "gaussian":  # exactly: a release of both is one Gaussian release of the run's multiplier
        neighbours = Neighbours(relation)
        whole = Repeat(Gaussian(both.noise_multiplier, neighbours), 6)
        assert price == pytest.approx(epsilon_of(whole, BUDGET.delta), rel=1e-12)


@pytest.mark.parametrize("batch", [Fixed(rate=0.2), Disjoint(size=3)], ids=repr)
def test_batches_are_priced_once_for_both(batch: Batch) -> None:
    """They are drawn together: two samples of their own would cost more than one of both."""
    both, single = (
        prepare(settings_with(algorithm), SIZES)
        for algorithm in (Careful(rounds=6, batch=batch), NoisyMinibatchSGD(rounds=6, batch=batch))
    )
    assert both.noise_multiplier == pytest.approx(single.noise_multiplier, rel=1e-6)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
def test_its_guarantees_meet_the_budget_and_can_be_priced_again(noise: str, trust: TrustModel) -> None:
    found = run(data_of(SIZES), settings_with(Careful(rounds=6), trust, noise=noise))
    assert len(found.guarantees) == (1 if trust is CENTRAL else 3)
    for guarantee in found.guarantees:
        verify(guarantee)
        assert guarantee.epsilon <= BUDGET.epsilon
        assert guarantee.delta == BUDGET.delta
    assert found.guarantee.epsilon == pytest.approx(2.0, abs=2e-6)
    assert np.isfinite(found.w).all()


def test_means_that_all_take_everything_get_the_noise_of_two() -> None:
    """Shares are a promise about sizes, not about the price: whatever they add up to, the budget holds."""

    class Greedy(Careful, frozen=True, kw_only=True, tag="greedy"):
        def steps(self, problem: Problem, rounds: int) -> Kinds:
            slope, loss = problem.measure("slope"), problem.measure("loss", dim=1, max_radius=CEILING)
            return ((Step(measures=(slope, loss)), rounds),)

    found = run(data_of(SIZES), settings_with(Greedy(rounds=6)))
    single = prepare(settings_with(NoisyMinibatchSGD(rounds=6)), SIZES)
    assert found.noise_multiplier == pytest.approx(math.sqrt(2) * single.noise_multiplier, rel=1e-6)
    assert found.guarantee.epsilon == pytest.approx(2.0, abs=2e-6)


def test_the_noise_of_each_mean_is_what_its_share_says() -> None:
    """Units without gradient and loss: all that leaves is noise."""
    wide = LinearObjective(loss=Logistic(), features=200, feature_norm=1.0)
    silent = [Records.of(np.zeros((n, 200)), np.zeros(n)) for n in SIZES]
    settings = Settings(
        objective=wide, algorithm=Careful(rounds=200, share=0.8), trust=LOCAL, budget=BUDGET, clip=0.5
    )
    nothing: dict[str, Statistic] = {
        "slope": RecordGradient(wide),
        "loss": lambda units, at: np.zeros((len(units), 1)),
    }
    prepared = prepare(settings, SIZES)
    ask = in_process(make_silos(silent, wide, statistics=nothing, seed=4), seed=4).open(prepared.plan)
    answers = [ask(r, {"w": np.zeros(200)}, (0.5, CEILING)) for r in range(200)]
    for k, (share, radius) in enumerate(((0.8, 0.5), (0.2, CEILING))):
        found = np.concatenate([answer[k] for answer in answers])
        variance = 3 * (prepared.noise_multiplier / math.sqrt(share) * 2 * radius / 100) ** 2
        low, high = stats.chi2.interval(1 - FALSE_ALARM, found.size)
        assert low <= np.square(found).sum() / variance <= high
        assert high / low < 4  # power: the noise of the other share, or of the whole, is told from it
        assert stats.kstest(found / math.sqrt(variance), "norm").pvalue > FALSE_ALARM


# What is refused


def test_silos_that_do_not_know_the_statistics_refuse_and_spend_nothing(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "silo.ledger", limit=BUDGET, neighbours=Neighbours())
    settings = settings_with(Careful(rounds=3), noise="discrete-gaussian")
    silos = make_silos(data_of([30]), OBJECTIVE, ledgers=[ledger])
    with pytest.raises(UnknownNameError, match=r"statistic must be one of gradient.* got 'slope'"):
        train(in_process(silos), settings)
    assert ledger.spent().epsilon == 0.0
    knowing = make_silos(data_of([30]), OBJECTIVE, ledgers=[ledger], statistics=statistics_of(Careful()))
    train(in_process(knowing), settings)
    assert ledger.spent().epsilon == pytest.approx(2.0, abs=2e-6)


def test_its_own_check_comes_before_anything_is_spent() -> None:
    with pytest.raises(ParameterError, match="rounds must be at least 2, got 1"):
        run(data_of(SIZES), settings_with(Careful(rounds=1)))
    with pytest.raises(ParameterError, match="rounds must be a whole number >= 1, got 0"):
        Careful(rounds=0)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    problem = prepare(settings_with(NoisyMinibatchSGD(rounds=3)), SIZES).problem
    with pytest.raises(ParameterError, match=r"share must be in \(0, 1\]"):
        problem.measure("slope", share=share)


def test_a_longer_loss_than_the_plan_allows_is_refused() -> None:
    prepared = prepare(settings_with(Careful(rounds=3)), SIZES)
    parties = make_silos(data_of(SIZES), OBJECTIVE, statistics=statistics_of(Careful()), seed=1)
    ask = in_process(parties, seed=1).open(prepared.plan)
    with pytest.raises(RefusalError, match=r"radius must be a number in \[0, 2.0\], got 2.5"):
        ask(0, {"w": np.zeros(D)}, (0.5, 2.5))


# As text, and per person


def test_it_is_text_like_the_library_s_own() -> None:
    method = Careful(rounds=4, batch=Fixed(size=3), share=0.75)
    assert isinstance(method, Algorithm)
    for form in (msgspec.json, msgspec.toml):
        assert form.decode(form.encode(method), type=Careful) == method
    assert msgspec.json.decode(msgspec.json.encode(method))["algorithm"] == "careful"


def test_any_statistic_of_records_has_a_mean_per_person() -> None:
    def counts(units: Records, at: Mapping[str, Array]) -> Array:
        """Two numbers per record, from a point of another name."""
        return np.column_stack([units.y, units.X[:, 0] + at["shift"][0]])

    X, y = np.arange(12.0).reshape(6, 2), np.array([1.0, 0, 1, 1, 0, 1])
    grouped = Grouped.of(Records.of(X, y), np.array(["b", "a", "b", "a", "b", "c"]))
    rows = PerPerson(counts)(grouped, {"shift": np.array([100.0])})
    np.testing.assert_allclose(rows, [[2 / 3, 104.0], [0.5, 104.0], [1.0, 110.0]], rtol=1e-15)
    nobody = grouped.take(np.zeros(0, dtype=np.int64))
    assert PerPerson(counts)(nobody, {"shift": np.array([100.0])}).shape == (0, 2)
    w = np.array([0.5, -0.25])
    small = LinearObjective(loss=Logistic(), features=2)
    losses = PerPerson(RecordLoss(small))(grouped, {"w": w})
    each = small.value(w, Records.of(X, y))
    np.testing.assert_allclose(
        losses[:, 0], [each[[0, 2, 4]].mean(), each[[1, 3]].mean(), each[5]], rtol=1e-14
    )


def test_the_loop_needs_no_federation() -> None:
    """An `ask` is all that an algorithm sees of the world."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (10.0, CEILING)
        return at["w"], np.array([float(at["w"] @ at["w"]) / 2])

    problem = Problem(smoothness=1.0, radius=10.0, diameter=2.0, dim=2, variance=0.0)
    w = Careful(step_size=0.5).run(
        ask, np.ones(2), problem=problem, rounds=5, prox=Zero(), follow=lambda _r, _w: None
    )
    np.testing.assert_allclose(w, np.full(2, 0.5**4))


class Elsewhere(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="elsewhere"):
    """Minibatch SGD along a gradient of its own: nothing moves it."""

    statistics: ClassVar[Mapping[str, MakeStatistic]] = {
        "gradient": lambda objective: lambda units, at: np.zeros((len(units), objective.size))
    }


def test_an_estimator_trains_on_the_statistics_of_the_method() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = FederatedLogisticRegression(algorithm=Elsewhere(rounds=3, step_size=0.5), random_state=0).fit(
        X, y
    )
    assert not model.trained_.w.any()
    known = FederatedLogisticRegression(algorithm=NoisyMinibatchSGD(rounds=3, step_size=0.5), random_state=0)
    assert known.fit(X, y).trained_.w.any()
