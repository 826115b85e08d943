"""Every method is the one of its paper: step by step, without noise on true gradients, and on noisy answers.

The methods stand here once more, as the papers have them (with the corrections of docs/errata.md), and ask an
oracle. Without privacy it computes clipped mean gradients itself. Under every trust model it gives what the
run was answered, and checks that the run asked at the same point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.federation import Disjoint, Fixed, Full
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    ClippedACSA,
    ClippedProximalSGD,
    ClippedSGD,
    ClippedSubgradient,
    LanAcceleratedSGD,
    LinearObjective,
    LipschitzSGD,
    Logistic,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyDiff2,
    NoisyFedSpider,
    NoisyFTRL,
    NoisyMinibatchSGD,
    NoisyProximalPLSVRG,
    NoisyProximalSGD,
    NoisyProximalSVRG,
    NoisySpider,
    NoisyStorm,
    PhasedAcceleratedSGD,
    Problem,
    Records,
    Settings,
    in_process,
    make_silos,
)
from tacit.learning.algorithms import ALGORITHMS
from tacit.learning.preparation import prepare
from tacit.learning.training import sums_of
from tacit.numerics import L1, Array, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel
from tests.learning.attacks import Overheard, Seen

SIZES = (60, 50, 70)
OBJECTIVE = LinearObjective(loss=Logistic(), features=4, feature_norm=1.0)
CLIP, PROX = 0.3, L1(strength=2e-3)
Oracle = Callable[..., Array]
"""`oracle(w)` is the mean gradient, `oracle(w, previous)` how it changed; `again` asks for the second mean of
a sample."""
Loop = Callable[[Oracle, Array, Problem, int], Array]


def prox(eta: float, w: Array) -> Array:
    return np.sign(w) * np.maximum(np.abs(w) - eta * PROX.strength, 0)


def gradient_descent(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Lowy (2023), Algorithm 14: eta = min(1/beta, D / (V sqrt(R))), the later half of w_0..w_(R-1)."""
    V = math.sqrt(facts.variance)
    eta = min(1 / facts.smoothness, facts.diameter / (V * math.sqrt(rounds)) if V else math.inf)
    points = [w]
    while len(points) <= rounds:
        points.append(prox(eta, points[-1] - eta * oracle(points[-1])))
    return np.asarray(np.mean(points[rounds // 2 : rounds], axis=0))


def subgradient_descent(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Cheu et al. (2022), Algorithms 3 and 5: eta = D / sqrt((L^2 + V^2) T), the mean of all but w_T."""
    eta = facts.diameter / math.sqrt((facts.radius**2 + facts.variance) * rounds)
    total = np.zeros_like(w)
    for _ in range(rounds):
        total += w / rounds
        w = prox(eta, w - eta * oracle(w))
    return total


def ac_sa(oracle: Oracle, w: Array, rounds: int, nu: float, mu: float = 0.0) -> Array:
    """Ghadimi and Lan (2012), Algorithm 1, with alpha = 2/(t+1) and gamma = 4 nu / (t (t+1)).

    The step minimises alpha (<g, x> + f1(x) + mu/2 |md - x|^2) + ((1-alpha) mu + gamma)/2 |x - previous|^2.
    """
    ag = w
    for t in range(1, rounds + 1):
        alpha, gamma = 2 / (t + 1), 4 * nu / (t * (t + 1))
        pull = (1 - alpha) * mu + gamma
        md = ((1 - alpha) * (mu + gamma) * ag + alpha * pull * w) / (gamma + (1 - alpha**2) * mu)
        g = oracle(md)
        # Completing the square: weights alpha mu and `pull` on md and the point before.
        whole = alpha * mu + pull
        w = prox(alpha / whole, (alpha * mu * md + pull * w - alpha * g) / whole)
        ag = alpha * w + (1 - alpha) * ag
    return ag


def accelerated(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    V, R, D = math.sqrt(facts.variance), rounds, facts.diameter
    return ac_sa(oracle, w, R, max(2 * facts.smoothness, V * math.sqrt(2 * R * (R + 1) * (R + 2) / 3) / D))


def stages(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, mu: float = 0.125) -> Array:
    """Ghadimi and Lan (2013): stage k has R_k rounds of AC-SA with nu_k."""
    beta, variance, k, left = facts.smoothness, facts.variance, 0, rounds
    gap = beta * facts.diameter**2 / 2
    while True:
        k += 1
        R = math.ceil(max(4 * math.sqrt(2 * beta / mu), 128 * variance / (3 * mu * gap * 2.0 ** -(k + 1))))
        if left < R:
            return w
        cubed = R * (R + 1) * (R + 2)
        nu = max(2 * beta, math.sqrt(mu * variance / (3 * gap * 2.0 ** (1 - k)) * cubed))
        w, left = ac_sa(oracle, w, R, nu, mu), left - R


def lan(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Cheu et al. (2022), Algorithm 4, with Lan's L_t = (4 beta + (T+2)^(3/2) V/D) / (t+1)."""
    V, theta, ag = math.sqrt(facts.variance), w, w
    for t in range(1, rounds + 1):
        alpha = 2 / (t + 1)
        L = (4 * facts.smoothness + (rounds + 2) ** 1.5 * V / facts.diameter) / (t + 1)
        md = alpha * theta + (1 - alpha) * ag
        theta = prox(1 / L, theta - oracle(md) / L)
        ag = alpha * theta + (1 - alpha) * ag
    return ag


def phases(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, mu: float = 0.2) -> Array:
    """Cheu et al. (2022), Theorem 4.8: D_1 = min(D, 2 L/mu), D_(j+1) = min(D_j, sqrt(2 Delta_(j+1) / mu))."""
    count = max(1, math.ceil(math.log2(math.log2(sum(SIZES)))))
    V, beta = math.sqrt(facts.variance), facts.smoothness
    D, gap = min(facts.diameter, 2 * facts.radius / mu), 2 * facts.radius**2 / mu
    for j in range(count):
        R = rounds * (j + 1) // count - rounds * j // count
        nu = max(2 * beta, V * math.sqrt(2 * R * (R + 1) * (R + 2) / 3) / D)
        w = ac_sa(oracle, w, R, nu)
        gap = min(gap, 2 * nu * D**2 / (R * (R + 1)) + V**2 * (2 * R + 1) / (6 * nu))
        D = min(D, math.sqrt(2 * gap / mu))
    return w


def spider(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, period: int = 3) -> Array:
    """Lowy (2023), Algorithm 4: h_r = h_(r-1) + difference, with steps 1 / (2 beta)."""
    eta, points, h = 1 / (2 * facts.smoothness), [w], w
    for r in range(rounds):
        h = oracle(points[r]) if r % period == 0 else h + oracle(points[r], points[r - 1])
        points.append(prox(eta, points[r] - eta * h))
    return points[-1]


def fed_spider(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Lowy (2023), Algorithm 25, points w^1 and w^2 of each turn, and a step along the last gradient."""
    eta = 1 / (2 * facts.smoothness)
    w2, v2 = w, oracle(w)
    for _ in range((rounds - 1) // 2):
        w1 = prox(eta, w2 - eta * v2)
        v1 = oracle(w1, w2) + v2
        w2 = prox(eta, w1 - eta * v1)
        v2 = oracle(w2)
    return prox(eta, w2 - eta * v2)


def storm(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, beta: float = 0.4) -> Array:
    """PSGM (2024), Algorithm 1 with H = 1, and the gradient at the point of its own round."""
    eta = 1 / (2 * facts.smoothness)
    changes = facts.errors["difference"] * (facts.smoothness / (2 * CLIP)) ** 2
    if changes:
        eta = min(eta, math.sqrt(beta * (2 - beta) / (2 * (1 - beta) ** 2 * changes)))
    before, v = w, oracle(w)
    w = prox(eta, w - eta * v)
    for _ in range(1, rounds):
        change, gradient = oracle(w, before), oracle(w, again=True)
        v = (1 - beta) * v + (1 - beta) * change + beta * gradient
        before, w = w, prox(eta, w - eta * v)
    return w


def proximal_sgd(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Lowy (2023), Algorithm 20."""
    for _ in range(rounds):
        w = prox(1 / (2 * facts.smoothness), w - oracle(w) / (2 * facts.smoothness))
    return w


def svrg(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, batch: int, period: int) -> Array:
    """Lowy (2023), Algorithm 2: v = gradient at the start of the epoch + difference from it."""
    share = min(1.0, batch**1.5 * math.sqrt(facts.asked) / min(SIZES))
    eta, steps = share / (8 * facts.smoothness), 0
    while steps < rounds:
        start, full = w, oracle(w)
        for t in range(min(period, rounds - steps)):
            v = full if t == 0 else oracle(w, start) + full
            w = prox(eta, w - eta * v)
        steps += period
    return w


def pl_svrg(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Lowy (2023), Algorithm 3: again from where the run before ended."""
    for length in ((rounds + 1) // 2, rounds // 2):
        w = svrg(oracle, w, facts, length, batch=min(SIZES), period=3)
    return w


def clipped_ac_sa(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Lowy (2023), Algorithm 8, with the nu >= 2 beta of the least bound."""
    V, R = math.sqrt(facts.variance), rounds
    cubed = R * (R + 1) * (2 * R + 1) / 12
    return ac_sa(oracle, w, R, max(2 * facts.smoothness, V * math.sqrt(cubed) / facts.diameter))


def clipped_sgd(oracle: Oracle, w: Array, facts: Problem, rounds: int, *, mu: float = 0.25) -> Array:
    """Lowy (2023), Algorithm 27, with Stich's steps for a = mu / 2, and all of w_1..w_(T+1) weighted."""
    a, g, T, total, weight = mu / 2, facts.smoothness, rounds - 1, np.zeros_like(w), 0.0
    for t in range(rounds):
        late = t - math.ceil(T / 2)
        if g / a >= T:
            eta, zeta = 1 / g, (1 - a / g) ** -(t + 1)
        else:
            eta, zeta = (1 / g, 0.0) if late < 0 else (2 / (2 * g + a * late), 2 * g / a + late)
        w = prox(eta, w - eta * oracle(w))
        total, weight = total + zeta * w, weight + zeta
    return total / weight


def leader(oracle: Oracle, w: Array, facts: Problem, rounds: int) -> Array:
    """Kairouz et al. (2021), Algorithm 1: all gradients so far, from the start."""
    eta, points, total = 0.5, [w], np.zeros_like(w)
    for r in range(rounds):
        total = total + oracle(points[-1])
        points.append(prox((r + 1) * eta, w - eta * total))
    return np.asarray(np.mean(points[rounds // 2 : rounds], axis=0))


HALVES = Disjoint(rate=0.125)
METHODS: dict[str, tuple[Any, Loop]] = {
    "minibatch": (NoisyMinibatchSGD(rounds=8), gradient_descent),
    "accelerated": (AcceleratedNoisyMinibatchSGD(rounds=8), accelerated),
    "multistage": (MultiStageAcceleratedNoisyMinibatchSGD(rounds=24, mu=0.125), stages),
    "ftrl": (NoisyFTRL(rounds=8, step_size=0.5), leader),
    "p-gd": (LipschitzSGD(rounds=8), subgradient_descent),
    "p-sgd": (LipschitzSGD(rounds=8, batch=HALVES), subgradient_descent),
    "lan": (LanAcceleratedSGD(rounds=8), lan),
    "lan, one pass": (LanAcceleratedSGD(rounds=8, batch=HALVES), lan),
    "phases": (PhasedAcceleratedSGD(rounds=8, mu=0.2), phases),
    "spider": (NoisySpider(rounds=8, period=3), spider),
    "fed-spider": (NoisyFedSpider(rounds=9), fed_spider),
    "diff2": (NoisyDiff2(rounds=8, period=3), spider),
    "mb-psgm": (NoisyStorm(rounds=8, beta=0.4), storm),
    "prox-sgd": (NoisyProximalSGD(rounds=8, batch=Full()), proximal_sgd),
    "prox-sgd, one pass": (NoisyProximalSGD(rounds=8), proximal_sgd),
    "prox-svrg": (
        NoisyProximalSVRG(rounds=8, period=3),
        lambda *given: svrg(*given, batch=min(SIZES), period=3),
    ),
    "prox-svrg, samples": (
        NoisyProximalSVRG(rounds=8, batch=Fixed(size=10)),
        lambda *given: svrg(*given, batch=10, period=5),
    ),
    "clipped-ac-sa": (ClippedACSA(rounds=8), clipped_ac_sa),
    "clipped-sgd": (ClippedSGD(rounds=8, mu=0.25, batch=Full()), clipped_sgd),
    "clipped-prox-sgd": (ClippedProximalSGD(rounds=8), proximal_sgd),
    "clipped-subgradient": (ClippedSubgradient(rounds=8), subgradient_descent),
    "prox-pl-svrg": (NoisyProximalPLSVRG(rounds=7, period=3, output="last"), pl_svrg),
}
OTHERS = {
    *("cldp-sgd", "dss-sgd"),  # test_shuffled_reports.py
    *("local", "sign-vote", "whitened", "preconditioned", "sufficient-statistics"),
    *("localized", "localized-phases", "ce-psgm"),
    *("semi-dp", "pda", "semi-ldp"),
    *("fed-avg", "adaped"),
    *(f"{what}-perturbation" for what in ("output", "objective")),
}
OTHERS |= {name for name, kind in ALGORITHMS.items() if kind.hidden}
"""What asks for no mean gradients, or takes public ones too: its textbook stands in its own file."""


def silos() -> list[Records]:
    rng = np.random.default_rng(1)
    made = []
    for n in SIZES:
        X = clip_rows(rng.standard_normal((n, 4)), 1.0)
        made.append(Records.of(X, (X @ [3.0, -2.0, 1.0, 0.0] > 0).astype(float)))
    return made


def finished(method: Any, trust: TrustModel | None) -> tuple[Array, Problem, Overheard]:
    """Where a run ends, what its steps were made from, and what it was answered."""
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=method,
        trust=trust,
        budget=None if trust is None else PrivacyBudget(4.0, 1e-5),
        clip=CLIP,
    )
    made = make_silos(
        silos(),
        OBJECTIVE,
        trusts_server=settings.trusts_server,
        trusts_shuffler=settings.trusts_shuffler,
        sums=sums_of(settings),
        seed=3,
    )
    prepared = prepare(settings, SIZES)
    overheard = Overheard(in_process(made, seed=3).open(prepared.plan))
    w = method.run(
        overheard,
        np.zeros(4),
        problem=prepared.problem,
        rounds=prepared.rounds,
        prox=PROX,
        follow=lambda _r, _w: None,
    )
    return w, prepared.problem, overheard


FULL = [name for name, (method, _) in METHODS.items() if method.batch == Full()]


@pytest.mark.parametrize("name", FULL)
def test_without_noise_it_is_the_textbook_on_true_gradients(name: str) -> None:
    method, loop = METHODS[name]
    w, facts, _ = finished(method, None)
    rows = silos()
    units = Records.of(np.vstack([one.X for one in rows]), np.concatenate([one.y for one in rows]))

    def slope(at: Array) -> Array:
        """The mean of (p - y) x, each at most as long as the clip."""
        each = (1 / (1 + np.exp(-units.X @ at)) - units.y)[:, None] * units.X
        return np.asarray(
            (each / np.maximum(1, np.linalg.norm(each, axis=1, keepdims=True) / CLIP)).mean(axis=0)
        )

    def oracle(at: Array, previous: Array | None = None, *, again: bool = False) -> Array:
        return slope(at) - (0 if previous is None else slope(previous))

    np.testing.assert_allclose(w, loop(oracle, np.zeros(4), facts, method.rounds), rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(w) > 0.1


CASES = [
    (name, trust) for name, (method, _) in METHODS.items() for trust in TrustModel if trust in method.trusts
]


@pytest.mark.parametrize(("name", "trust"), CASES, ids=lambda one: getattr(one, "value", one))
def test_on_the_same_noisy_answers_it_is_the_textbook(name: str, trust: TrustModel) -> None:
    method, loop = METHODS[name]
    w, facts, overheard = finished(method, trust)
    assert facts.variance > 0
    answers = iter(overheard.seen)

    asked: list[Seen] = []

    def oracle(at: Array, previous: Array | None = None, *, again: bool = False) -> Array:
        if again:
            assert (np.allclose(asked[-1].at["w"], at), asked[-1].radius[1]) == (True, CLIP)
            return asked[-1].means[1]
        one = next(answers)
        asked.append(one)
        np.testing.assert_allclose(one.at["w"], at, rtol=1e-9, atol=1e-12)
        assert ("previous" in one.at) == (previous is not None)
        if previous is not None:
            np.testing.assert_allclose(one.at["previous"], previous, rtol=1e-9, atol=1e-12)
            assert one.radius[0] <= 2 * CLIP
        else:
            assert one.radius == (CLIP,)
        return one.means[0]

    np.testing.assert_allclose(w, loop(oracle, np.zeros(4), facts, method.rounds), rtol=1e-9, atol=1e-12)
    assert next(answers, None) is None  # nothing was asked beyond


def test_every_algorithm_has_its_textbook() -> None:
    here = {str(type(method).__struct_config__.tag) for method, _ in METHODS.values()}
    assert here | OTHERS == set(ALGORITHMS)
