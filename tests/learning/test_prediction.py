"""What algorithms promise beforehand: their own bounds after a real preparation, or a reason."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Disjoint
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    DistanceObjective,
    LinearObjective,
    Logistic,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyFTRL,
    NoisyMinibatchSGD,
    Problem,
    Records,
    Settings,
    make_algorithm,
    predict,
    train,
)
from tacit.learning.algorithms import Bounded, Convexity
from tacit.learning.prediction import planned_bits
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for
from tacit.privacy import PrivacyBudget, TrustModel
from tests.loops import each

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
D, SIZES = 5, (200,) * 8
SETTINGS = Settings(
    objective=LinearObjective(loss=Logistic(), features=D, feature_norm=1.0),
    algorithm=NoisyMinibatchSGD(rounds=20),
    trust=LOCAL,
    budget=PrivacyBudget(2.0, 1e-5),
)
STRONG = replace(SETTINGS, objective=DistanceObjective(size=D, lipschitz=1.0, smoothness=0.25))


def of(algorithm: Algorithm, settings: Settings = SETTINGS, **facts: Any) -> Any:
    return predict(replace(settings, algorithm=algorithm), SIZES, **facts)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("algorithm", [NoisyMinibatchSGD(), AcceleratedNoisyMinibatchSGD(), NoisyFTRL()])
def test_it_is_the_bound_of_the_prepared_run(algorithm: Algorithm, trust: TrustModel) -> None:
    settings = replace(SETTINGS, algorithm=algorithm, trust=trust)
    prepared = prepare(settings, SIZES)
    found = predict(settings, SIZES)
    assert found.valid
    assert found.bound == algorithm.error_bound(prepared.problem, prepared.rounds)
    assert (found.rounds, found.noise_multiplier) == (prepared.rounds, prepared.noise_multiplier)
    assert found.name in ALGORITHMS
    assert not found.population


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("name", ["minibatch", "accelerated", "sign-vote", "whitened", "local"])
def test_bits_are_those_on_the_wire(name: str, trust: TrustModel) -> None:
    algorithm = make_algorithm(name, rounds=3)
    if trust not in algorithm.trusts:
        pytest.skip("another trust model")
    settings = replace(SETTINGS, algorithm=algorithm, trust=trust)
    rng = np.random.default_rng(0)
    silos = [Records.of(rng.normal(size=(n, D)) / 9, np.zeros(n)) for n in SIZES]
    run = train(silos_for(settings, silos, names=[str(k) for k in range(len(silos))], seed=1), settings)
    sent, planned = run.traffic.bits_up.max(), of(algorithm, settings).bits_per_silo
    # A message travels in an envelope of a few bytes.
    assert planned <= sent <= planned + 3 * 8 * 24


def test_strong_convexity_is_counted_on_where_it_helps() -> None:
    plain, counted = NoisyMinibatchSGD(rounds=400), NoisyMinibatchSGD(rounds=400, mu=0.2)
    exact = replace(STRONG, trust=None, budget=None)
    found = of(plain, exact, convexity="strongly-convex", mu=0.2)
    both = [of(one, exact).bound for one in (plain, counted)]
    assert found.bound == min(both)
    assert found.algorithm == (counted if both[1] < both[0] else plain)
    needs = MultiStageAcceleratedNoisyMinibatchSGD()
    assert of(needs, exact).reason == "it needs strong convexity, and none was given."
    assert not of(needs, exact).runs
    staged = of(needs, exact, convexity="strongly-convex", mu=0.2)
    assert staged.valid
    assert staged.algorithm.mu == 0.2


def test_one_pass_is_about_the_population_and_has_the_best_number_of_batches() -> None:
    found = of(AcceleratedNoisyMinibatchSGD(), one_pass=True)
    assert found.valid
    assert found.population
    assert found.algorithm.batch == Disjoint(size=200 // found.rounds)
    for rounds in (1, 5, 60):
        assert found.bound <= of(AcceleratedNoisyMinibatchSGD(rounds=rounds), one_pass=True).bound
    with pytest.raises(ParameterError, match="at most the 200 units of the smallest silo"):
        of(AcceleratedNoisyMinibatchSGD(rounds=201), one_pass=True)


def test_bits_shorten_a_run_or_rule_it_out() -> None:
    whole = of(AcceleratedNoisyMinibatchSGD())
    each = whole.bits_per_silo / whole.rounds
    fewer = of(AcceleratedNoisyMinibatchSGD(), max_bits=5.5 * each)
    assert (fewer.rounds, fewer.bits_per_silo) == (5, 5 * each)
    assert fewer.bound > whole.bound
    asked = of(AcceleratedNoisyMinibatchSGD(rounds=20), max_bits=5.5 * each)
    assert not asked.valid
    assert "more than" in asked.reason
    assert not of(AcceleratedNoisyMinibatchSGD(), max_bits=1.0).valid


class Stationary(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="stationary"):
    """A method of one's own that bounds the squared gradient.

    Attributes:
        rounds: R.
    """

    bounds: ClassVar[Bounded] = "squared gradient"
    needs: ClassVar[Convexity] = "non-convex"
    caveat: ClassVar[str] = "it is made up"

    def error_bound(self, problem: Problem, rounds: int) -> float:
        return 0.5


def test_gradients_are_compared_as_such_or_by_the_inequality_that_bounds_the_excess() -> None:
    algorithm = Stationary(rounds=4)
    found = of(algorithm, convexity="non-convex")
    assert (found.valid, found.bound, found.bounded) == (True, 0.5, "squared gradient")
    assert found.caveat == "it is made up"
    convex = of(algorithm)
    assert convex.runs
    assert "no excess follows" in convex.reason
    for convexity in ("strongly-convex", "prox-pl"):
        strong = of(algorithm, STRONG, convexity=convexity, mu=0.2)
        assert (strong.bound, strong.bounded) == (0.5 / 0.4, "excess")


@each("name", ALGORITHMS)
@each("convexity", ["convex", "non-convex"])
def test_all_say_what_they_promise_or_why_not(name: str, convexity: Convexity) -> None:
    found = of(make_algorithm(name), convexity=convexity)
    assert found.name == name
    assert found.valid == (found.reason == "")
    assert found.valid <= found.runs
    assert math.isfinite(found.bound) == found.valid or found.reason
    assert found.runs == (found.rounds > 0)


@pytest.mark.parametrize(("convexity", "mu"), [("convex", 0.1), ("strongly-convex", 0.0), ("prox-pl", 0.0)])
def test_the_constant_goes_with_the_class(convexity: Convexity, mu: float) -> None:
    with pytest.raises(ParameterError, match="exactly for strongly-convex and prox-pl"):
        of(NoisyMinibatchSGD(rounds=2), STRONG, convexity=convexity, mu=mu)


def test_planned_bits_are_those_of_all_rounds() -> None:
    settings = replace(SETTINGS, algorithm=NoisyMinibatchSGD(rounds=7))
    one, seven = (prepare(replace(settings, algorithm=NoisyMinibatchSGD(rounds=r)), SIZES) for r in (1, 7))
    assert planned_bits(seven.plan, 200) == 7 * planned_bits(one.plan, 200)
