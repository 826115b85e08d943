"""The rule for what nobody names: it goes by public facts, and both front ends go by it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.data import load
from tacit.federation import Fixed
from tacit.jobs import Job, JobConfig
from tacit.learning import (
    Absolute,
    AcceleratedNoisyMinibatchSGD,
    FederatedLogisticRegression,
    Hinge,
    Huber,
    LinearObjective,
    LipschitzSGD,
    Logistic,
    Loss,
    Multinomial,
    NetworkObjective,
    NoisyMinibatchSGD,
    NoisySufficientStatistics,
    PoissonLoss,
    PreconditionedNoisyGD,
    Quantile,
    SemiPrivateSGD,
    Squared,
    WhitenedNoisyGD,
)
from tacit.learning.defaults import Choice, choose, choose_for_network, clip_share, signal
from tacit.privacy import Gaussian, PrivacyBudget, Relation, TrustModel, calibrate

BUDGET = PrivacyBudget(1.0, 1e-5)
ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
CENTRAL, LOCAL = TrustModel.CENTRAL, TrustModel.LOCAL


def model(loss: Loss, d: int, outputs: int = 1) -> LinearObjective:
    return LinearObjective(loss=loss, features=d, outputs=outputs, feature_norm=1.0)


def chosen(
    objective: LinearObjective,
    n: int,
    *,
    silos: int = 1,
    trust: TrustModel = CENTRAL,
    budget: PrivacyBudget = BUDGET,
    relation: Relation = REPLACE,
    rounds: int | None = None,
) -> Choice:
    sizes = [n // silos] * silos
    return choose(objective, trust=trust, budget=budget, relation=relation, sizes=sizes, rounds=rounds)


def test_a_signal_is_that_of_gradients_that_agree_over_the_noise_of_one_release() -> None:
    z = calibrate(Gaussian, BUDGET)
    goal = model(Logistic(), 100)
    for relation, trust, sizes, expected in (
        (ADD, CENTRAL, [6000, 2000], 8000 / (z * 10)),
        (REPLACE, CENTRAL, [6000, 2000], 8000 / (2 * z * 10)),
        (Relation.ZERO_OUT, LOCAL, [2000] * 4, 8000 / (z * 20)),
    ):
        found = signal(goal, trust=trust, budget=BUDGET, relation=relation, sizes=sizes)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("loss", "outputs"), [(Logistic(), 1), (Hinge(), 1), (Multinomial(), 7)])
def test_classes_of_few_features_are_whitened(loss: Loss, outputs: int) -> None:
    white = Choice(algorithm=WhitenedNoisyGD(), share=0.2)
    for n, silos, trust in ((32_561, 1, CENTRAL), (50, 1, CENTRAL), (32_561, 25, LOCAL)):
        for d in (1, 60, 200):
            assert chosen(model(loss, d, outputs), n, silos=silos, trust=trust) == white
    assert not isinstance(chosen(model(loss, 201, outputs), 50).algorithm, WhitenedNoisyGD)
    assert chosen(model(loss, 60, outputs), 1000, rounds=20).algorithm == WhitenedNoisyGD(rounds=20)
    # One round has no time for the matrix.
    one = chosen(model(loss, 60, outputs), 1000, rounds=1)
    assert one == Choice(algorithm=AcceleratedNoisyMinibatchSGD(rounds=1), share=0.3)


def test_two_classes_of_many_features_pay_for_a_metric_where_their_signal_is_clear() -> None:
    accelerated = Choice(algorithm=AcceleratedNoisyMinibatchSGD(), share=0.3)
    metric = Choice(algorithm=PreconditionedNoisyGD(), share=0.6)
    assert chosen(model(Logistic(), 785), 8000) == accelerated
    assert chosen(model(Logistic(), 785), 10**6) == metric
    assert chosen(model(Logistic(), 785), 10**6, silos=2500, trust=LOCAL) == accelerated
    assert chosen(model(Logistic(), 1001), 10**7) == accelerated
    assert chosen(model(Logistic(), 785), 10**6, rounds=20).algorithm == PreconditionedNoisyGD(rounds=20)
    assert chosen(model(Logistic(), 785), 10**6, rounds=1).algorithm == AcceleratedNoisyMinibatchSGD(rounds=1)


def test_several_classes_with_many_parameters_take_steps_of_a_length_made_for_them() -> None:
    many = chosen(model(Multinomial(), 785, 10), 8000)
    total = 2.2 * 8000 / (2 * calibrate(Gaussian, BUDGET)) / (0.1 * math.sqrt(2))
    assert isinstance(many.algorithm, NoisyMinibatchSGD)
    assert (many.algorithm.rounds, many.share) == (math.ceil(total / 400), 0.1)
    assert many.algorithm.step_size == pytest.approx(total / math.ceil(total / 400))
    for n, rounds, step in ((80_000, 160, 400.0), (2000, 40, total / 4 / 40)):
        other = chosen(model(Multinomial(), 785, 10), n).algorithm
        assert isinstance(other, NoisyMinibatchSGD)
        assert other.rounds == rounds
        assert other.step_size == pytest.approx(step)
    fewer = chosen(model(Multinomial(), 785, 10), 8000, rounds=20).algorithm
    assert fewer == NoisyMinibatchSGD(rounds=20, step_size=400.0)


def test_networks_that_are_nearly_linear_go_as_far_as_linear_models() -> None:
    facts: dict[str, Any] = {"trust": CENTRAL, "budget": BUDGET, "relation": REPLACE}
    network = NetworkObjective(loss=Multinomial(), features=785, hidden=16, outputs=10)
    object.__setattr__(network, "straight_norm", 20.0)
    for n, rounds in ((2000, 40), (12_000, 45), (60_000, 120)):
        total = 2.2 * n / (2 * calibrate(Gaussian, BUDGET)) / 20
        found = choose_for_network(network, sizes=[n], **facts)
        assert isinstance(found.algorithm, NoisyMinibatchSGD)
        assert found.algorithm.rounds == rounds
        assert found.algorithm.step_size == pytest.approx(total / rounds / found.share)


def test_networks_of_numbers_take_more_and_shorter_steps() -> None:
    network = NetworkObjective(loss=Squared(), features=9, hidden=16)
    z = calibrate(Gaussian, BUDGET)
    for n in (100, 1000, 10_000):
        found = choose_for_network(network, trust=CENTRAL, budget=BUDGET, relation=REPLACE, sizes=[n])
        total = 5 * n / (2 * z * math.sqrt(network.size))
        assert isinstance(found.algorithm, NoisyMinibatchSGD)
        assert found.algorithm.rounds == min(max(math.ceil(total / 0.5), 40), 300)
        assert found.algorithm.step_size == pytest.approx(min(total / found.algorithm.rounds / 0.5, 1.0))


def test_numbers_say_that_public_labels_are_trained_on_by_name() -> None:
    facts: dict[str, Any] = {"trust": CENTRAL, "budget": BUDGET, "relation": REPLACE, "sizes": [500]}
    found = [choose(model(Squared(), 5), gram=np.eye(5), labelled=one, **facts) for one in (False, True)]
    assert found[0] == found[1]
    assert ["public labels are trained on by name" in one.reason for one in found] == [False, True]


def test_a_public_matrix_is_used_wherever_its_dozen_steps_are_enough() -> None:
    def with_gram(objective: LinearObjective, n: int, trust: TrustModel | None = CENTRAL) -> Choice:
        budget = None if trust is None else BUDGET
        facts: dict[str, Any] = {"trust": trust, "budget": budget, "relation": REPLACE, "sizes": [n]}
        found = choose(objective, gram=np.eye(objective.features), **facts)
        # With labels of the public records, those of classes are trained on there.
        labelled = choose(objective, gram=np.eye(objective.features), labelled=True, **facts)
        trains = isinstance(found.algorithm, PreconditionedNoisyGD) and objective.loss.classifies
        assert labelled == (Choice(algorithm=SemiPrivateSGD(), share=0.6) if trains else found)
        return found

    for goal, n in ((model(Logistic(), 20), 500), (model(Logistic(), 20), 10**6), (model(Huber(), 20), 500)):
        found = with_gram(goal, n)
        assert isinstance(found.algorithm, PreconditionedNoisyGD)
        assert found.algorithm.preconditioner is not None
        assert found.share == 0.6
    assert isinstance(with_gram(model(Multinomial(), 17, 7), 2000).algorithm, PreconditionedNoisyGD)
    assert with_gram(model(Multinomial(), 17, 7), 10**5).algorithm == WhitenedNoisyGD()
    assert with_gram(model(Logistic(), 101), 500).algorithm == WhitenedNoisyGD()
    for goal, n in (
        (model(Logistic(), 201), 500),
        (model(Squared(), 5), 500),
        (model(Quantile(), 20), 500),
    ):
        assert isinstance(with_gram(goal, n).algorithm, AcceleratedNoisyMinibatchSGD)
    assert isinstance(
        with_gram(model(Logistic(), 20), 500, trust=None).algorithm, AcceleratedNoisyMinibatchSGD
    )


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Multinomial()])
def test_without_privacy_and_for_regressions_nothing_has_changed(loss: Loss) -> None:
    many = 3 if isinstance(loss, Multinomial) else 1
    free = choose(model(loss, 300, many), trust=None, budget=None, relation=REPLACE, sizes=[10**6])
    assert free.algorithm == AcceleratedNoisyMinibatchSGD()
    assert isinstance(chosen(model(Huber(), 5), 10**6).algorithm, PreconditionedNoisyGD)
    for number in (Squared(), Absolute(), Quantile(), PoissonLoss(most=7.0)):
        for trust in TrustModel.CENTRAL, TrustModel.LOCAL, TrustModel.SHUFFLE:
            found = chosen(model(number, 5), 10**6, trust=trust).algorithm
            assert found == AcceleratedNoisyMinibatchSGD()


def test_a_loss_with_a_kink_gets_steps_that_need_no_smoothness() -> None:
    for loss in (Hinge(smoothing=math.inf), Quantile(smoothing=math.inf), Absolute(smoothing=math.inf)):
        assert chosen(model(loss, 5), 1000).algorithm == LipschitzSGD()
        free = choose(model(loss, 5), trust=None, budget=None, relation=REPLACE, sizes=[9], rounds=7)
        assert free.algorithm == LipschitzSGD(rounds=7)


def test_each_algorithm_has_a_clip_of_its_own() -> None:
    shares = [
        clip_share(one) for one in (NoisyMinibatchSGD(), PreconditionedNoisyGD(), NoisySufficientStatistics())
    ]
    assert shares == [0.3, 0.6, 0.7]


# Both front ends


def test_a_job_and_an_estimator_make_the_same_of_the_same_records() -> None:
    for name, epsilon in (("digits-odd-even", 3.0), ("digits", 3.0)):
        job = Job(JobConfig(data=name, silos="iid:1", trust="central", epsilon=epsilon, delta=1e-5, seed=0))
        (planned,) = job.preview()
        X, y, train = job.data.X, job.data.y, job.data.train[0]
        digits = load(name)
        assert np.array_equal(digits.X, X)
        fitted = FederatedLogisticRegression(
            trust="central",
            budget=PrivacyBudget(epsilon, 1e-5),
            bounds=(0, 1),
            classes=range(len(digits.classes)),
            random_state=0,
        ).fit(X[train], y[train].astype(int))
        assert fitted.trained_.algorithm == planned.algorithm
        # Only jobs go on with a run, and then look whether the map is the same.
        assert fitted.trained_.plan == msgspec.structs.replace(planned.plan, encoding="")
        features = fitted.model_.features
        assert np.array_equal(features(X[:5]).astype(np.float32), job._rows[:5])


def test_a_job_with_settings_of_its_own_is_accelerated() -> None:
    for settings in ({"batch": 20}, {"mu": 0.1}, {"participants": 2}, {"options": {"nu": 3.0}}):
        job = JobConfig.of({"data": "digits", **settings})
        assert not job.automatic
        assert isinstance(job.chosen, AcceleratedNoisyMinibatchSGD)
    assert JobConfig(batch=20).chosen == AcceleratedNoisyMinibatchSGD(batch=Fixed(size=20))
    assert JobConfig(rounds=20).automatic
