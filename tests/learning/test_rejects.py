"""What shuffled and silo-private optimisation must reject: the call of every line, and its message."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import Disjoint, Fixed
from tacit.learning import Absolute, Algorithm, LinearObjective, Logistic, NoisyMinibatchSGD, Settings
from tacit.learning.algorithms import (
    AcceleratedNoisyMinibatchSGD,
    LanAcceleratedSGD,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyFedSpider,
    NoisyLocalSGD,
    NoisyProximalPLSVRG,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisySpider,
    PhasedAcceleratedSGD,
)
from tacit.learning.preparation import prepare
from tacit.literature import (
    minibatch_noise_std,
    one_pass_noise_std,
    paper_scalar_parameters,
    paper_vector_parameters,
    user_level_budget,
)
from tacit.literature.shuffling.baselines import efm19_epsilon, fmt22_silo_epsilon
from tacit.means import BinomialMean, Round
from tacit.privacy import PrivacyBudget, TrustModel
from tests.loops import each

SIZES = (40, 60, 50)
SMOOTH = LinearObjective(loss=Logistic(), features=3, feature_norm=1.0)
KINKED = LinearObjective(loss=Absolute(smoothing=math.inf), features=3, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
ONE = Round(n=1, radius=1.0)
TENTH = Disjoint(rate=0.1)


def ask(algorithm: Callable[[], Algorithm], *, objective: Any = SMOOTH, **fields: Any) -> Callable[[], Any]:
    """Prepare a run of three silos."""

    def prepared() -> Any:
        chosen = {"trust": TrustModel.LOCAL, "budget": BUDGET, **fields}
        return prepare(Settings(objective=objective, algorithm=algorithm(), **chosen), SIZES)

    return prepared


def sums(**fields: Any) -> BinomialMean:
    return BinomialMean(**{"dim": 3, "noise_bits": 3, "resolution": 2, **fields})


def sent(rows: Any) -> Any:
    return sums(on_violation="error").encode(np.array(rows), ONE, party=0, rng=np.random.default_rng(0))


REJECTED: dict[str, tuple[Callable[[], Any], str]] = {
    # Sums of bits
    "norm above the radius": (lambda: sent([[3.0, 0, 0]]), "l2 norm at most"),
    "NaN": (lambda: sent([[np.nan, 0, 0]]), "rows must be finite"),
    "an infinity": (lambda: sent([[np.inf, 0, 0]]), "rows must be finite"),
    "g < 1": (lambda: sums(resolution=0), "resolution must be"),
    "b < 1": (lambda: sums(noise_bits=0), "noise_bits must be"),
    "n < 2": (lambda: BinomialMean.calibrated(BUDGET, 1, 3), "n must be a whole number >= 2"),
    "epsilon 0": (lambda: BinomialMean.calibrated(PrivacyBudget(0.0, 1e-6), 100, 3), "epsilon must be"),
    "epsilon below 0": (lambda: PrivacyBudget(-1.0, 1e-6), "epsilon must be"),
    "delta 0": (lambda: BinomialMean.calibrated(PrivacyBudget(1.0), 100, 3), "delta must be in"),
    "delta 1": (lambda: PrivacyBudget(1.0, 1.0), "delta must be in"),
    "infeasible, which b would work": (
        lambda: BinomialMean.calibrated(PrivacyBudget(1.0, 1e-6), 10_000, 1000, noise_bits=1),
        "noise_bits >= 2 w",
    ),
    "no honest party": (lambda: sums(honest_fraction=0.0), "honest_fraction must be"),
    "more honest parties than there are": (lambda: sums(honest_fraction=1.5), "honest_fraction must be"),
    "another n than calibrated": (
        lambda: sums().decode(
            sums().encode(np.zeros((1, 3)), ONE, party=0, rng=np.random.default_rng(0)),
            Round(n=2, radius=1.0),
        ),
        "carry less noise than is priced",
    ),
    "n_min is no more than colluders": (
        lambda: sums(honest_fraction=0.5, n_min=50).event(100, TrustModel.SHUFFLE),
        "n_min must be above the number of parties that are not honest",
    ),
    "g below what the printed proof needs": (
        lambda: paper_scalar_parameters(15.0, 1e-6, 4, resolution=1),
        "resolution must be a whole number >= 6",
    ),
    "printed constants above epsilon 15": (
        lambda: paper_vector_parameters(16.0, 1e-6, 1000, 3),
        "epsilon must be",
    ),
    "printed constants at delta 1/2": (
        lambda: paper_vector_parameters(1.0, 0.5, 1000, 3),
        "delta below 1/2",
    ),
    # Batches and rounds
    "K > n": (ask(lambda: NoisyMinibatchSGD(rounds=3, batch=Fixed(size=41))), "size must be at most the 40"),
    "R < 1": (ask(lambda: NoisyMinibatchSGD(rounds=0)), "rounds must be a whole number >= 1"),
    "RK > n in one pass": (
        ask(lambda: NoisyMinibatchSGD(rounds=30, batch=TENTH)),
        "rounds x batch must be at most",
    ),
    "RK > n of proximal steps": (
        ask(lambda: NoisyProximalSGD(rounds=30, batch=TENTH, mu=0.1)),
        "rounds x batch must be at most",
    ),
    "no party in a round": (ask(lambda: NoisyMinibatchSGD(rounds=3), n_min=0), "n_min must be"),
    "fewer silos than n_min": (
        ask(lambda: NoisyMinibatchSGD(rounds=3), trust=TrustModel.SHUFFLE, n_min=4),
        "n_min must be from 2 to the 3 silos",
    ),
    # Steps and curvature
    "mu > beta, multi-stage": (
        ask(lambda: MultiStageAcceleratedNoisyMinibatchSGD(mu=10.0)),
        "mu must be at most the smoothness",
    ),
    "Delta <= 0, multi-stage": (
        ask(lambda: MultiStageAcceleratedNoisyMinibatchSGD(mu=0.1, gap=0.0)),
        "gap must be",
    ),
    "mu > beta, accelerated": (
        ask(lambda: AcceleratedNoisyMinibatchSGD(rounds=3, mu=10.0)),
        "mu must be at most the smoothness",
    ),
    "mu > beta, phases": (
        ask(lambda: PhasedAcceleratedSGD(mu=10.0, batch=TENTH)),
        "mu must be at most the smoothness",
    ),
    "mu > beta, proximal": (
        ask(lambda: NoisyProximalSGD(rounds=3, mu=10.0, batch=TENTH)),
        "mu must be at most the smoothness",
    ),
    "no smoothness, Lan": (ask(lambda: LanAcceleratedSGD(batch=TENTH), objective=KINKED), "smooth"),
    "no smoothness, SVRG": (ask(lambda: NoisyProximalSVRG(rounds=6), objective=KINKED), "smooth"),
    "no smoothness, SPIDER": (ask(lambda: NoisySpider(rounds=6), objective=KINKED), "smooth"),
    "eta > 1 / (5 beta), SVRG": (
        ask(lambda: NoisyProximalSVRG(rounds=6, step_size=1.0)),
        "step_size must be",
    ),
    "Q < 1, SVRG": (ask(lambda: NoisyProximalSVRG(rounds=6, period=0)), "period must be"),
    "K > n, SVRG": (ask(lambda: NoisyProximalSVRG(rounds=6, batch=Fixed(size=41))), "size must be at most"),
    "S < 1, PL-SVRG": (ask(lambda: NoisyProximalPLSVRG(rounds=6, restarts=0)), "restarts must be"),
    "q < 1, SPIDER": (ask(lambda: NoisySpider(rounds=6, period=0)), "period must be"),
    "E < 2, Fed-SPIDER": (ask(lambda: NoisyFedSpider(rounds=1)), "rounds must be"),
    "eta <= 0, local": (ask(lambda: NoisyLocalSGD(rounds=2, step_size=0.0)), "step_size must be"),
    "K < 1, local": (ask(lambda: NoisyLocalSGD(rounds=2, local_steps=0)), "local_steps must be"),
    "shares that leave nothing": (ask(lambda: NoisySpider(rounds=6, split=1.0)), "split must be"),
    "shares below nothing": (ask(lambda: NoisyProximalSVRG(rounds=6, split=-0.1)), "split must be"),
    # As printed
    "epsilon above the theorem's, rounds": (
        lambda: minibatch_noise_std(100, PrivacyBudget(100.0, 1e-5), rounds=3),
        "epsilon must be at most",
    ),
    "epsilon above 8 ln(1 / delta), one pass": (
        lambda: one_pass_noise_std(10, PrivacyBudget(100.0, 1e-5)),
        "epsilon must be at most",
    ),
    "epsilon above 1, whole silos": (lambda: user_level_budget(PrivacyBudget(2.0, 1e-6), 10), "epsilon must"),
    "a validity condition, shuffling": (lambda: efm19_epsilon(10.0, 20, 1e-6), "is proven for"),
    "a total delta of 1, silos": (
        lambda: fmt22_silo_epsilon(0.1, 10**6, 10, 1e-6, local_delta=0.5),
        "local_delta must leave a total delta below 1",
    ),
}


@each("line", REJECTED)
def test_every_rejected_line_is_refused_in_one_line(line: str) -> None:
    call, message = REJECTED[line]
    with pytest.raises((ParameterError, BudgetError, RefusalError), match=message) as error:
        call()
    assert str(error.value).isprintable()
