"""Lower bounds by attack: they hold as often as they say, and come close to the truth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tacit.audits import (
    Guesses,
    Run,
    audit,
    claimed_power,
    clopper_pearson,
    epsilon_from_guesses,
    epsilon_lower_bound,
    power,
)
from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import Gaussian, Laplace, NonPrivate, PureDP, guarantee
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

SURE = 1 - FALSE_ALARM
Z = 3.730632  # Gaussian noise for epsilon 1 at delta 1e-5


def gaussian(std: float) -> Run:
    return lambda present, size, rng: rng.normal(float(present), std, size)


def flipped(epsilon: float) -> Run:
    truth = 1 / (1 + math.exp(-epsilon))
    return lambda present, size, rng: np.where((rng.random(size) < truth) == present, 1.0, -1.0)


def laplace(scale: float) -> Run:
    return lambda present, size, rng: np.clip(rng.laplace(float(present), scale, size), 0.0, 1.0)


# Shares


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-7])
def test_shares_agree_with_scipy(confidence: float) -> None:
    for trials in (1, 2, 17, 1000):
        for hits in {0, 1, trials // 3, trials - 1, trials}:
            low, high = clopper_pearson(hits, trials, confidence=confidence)
            wanted = stats.binomtest(hits, trials).proportion_ci(confidence, method="exact")
            assert (float(low), float(high)) == pytest.approx((wanted.low, wanted.high), rel=1e-7)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_each_side_of_a_share_covers_by_enumeration(confidence: float) -> None:
    trials = 23
    hits = np.arange(trials + 1)
    low, high = clopper_pearson(hits, trials, confidence=confidence)
    miss = (1 - confidence) / 2
    misses_low, misses_high = [], []
    for p in np.linspace(0.001, 0.999, 999):
        law = stats.binom.pmf(hits, trials, p)
        misses_low.append(law[low > p].sum())
        misses_high.append(law[high < p].sum())
    assert max(*misses_low, *misses_high) <= miss + 1e-12
    assert min(max(misses_low), max(misses_high)) > 0.9 * miss  # and no wider than it must be


# Guesses


def failures(epsilon: float, delta: float, *, runs: int, confidence: float, sides: int) -> float:
    """Probability, enumerated, that the bound exceeds the true epsilon of the worst (epsilon, delta) pair."""
    # The hits of S have mass e^epsilon q + delta on one data set and q on the other: coins make them
    # multinomial. With two sides, the mirrored event is guessed as well.
    q = (0.9 - sides * delta) / (sides * (math.exp(epsilon) + 1))
    right, wrong = sides * (math.exp(epsilon) * q + delta) / 2, sides * q / 2
    k, m = np.mgrid[0 : runs + 1, 0 : runs + 1]
    rest = runs - k - m
    law = stats.multinomial.pmf(
        np.stack([k, m, np.maximum(rest, 0)], axis=-1), runs, [right, wrong, 1 - right - wrong]
    )
    bounds = epsilon_from_guesses(k, m, runs=runs, delta=delta, confidence=confidence, sides=sides)
    return float(law[(rest >= 0) & (bounds > epsilon)].sum())


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_bounds_from_guesses_fail_no_more_often_than_they_say(
    epsilon: float, delta: float, sides: int
) -> None:
    for confidence in (0.6, 0.9):
        failed = failures(epsilon, delta, runs=60, confidence=confidence, sides=sides)
        assert failed <= 1 - confidence + 1e-12
        if delta == 0:
            assert failed > 0.3 * (1 - confidence)


def test_a_forgotten_delta_would_show() -> None:
    k, m = np.arange(61), np.arange(61)[:, None]
    assert np.all(
        epsilon_from_guesses(k, m, runs=60, delta=0.2, confidence=0.9)
        <= epsilon_from_guesses(k, m, runs=60, delta=0.0, confidence=0.9)
    )
    # All 60 guesses right, which a delta of 1 - 1e-9 can do alone, say nothing of epsilon.
    assert epsilon_from_guesses(60, 0, runs=60, delta=1 - 1e-9, confidence=0.9) == -math.inf
    assert epsilon_from_guesses(60, 0, runs=60, delta=0.0, confidence=0.9) > 3


def test_few_guesses_that_are_all_right_prove_what_the_closed_form_says() -> None:
    # All of k right: the bound solves x^k = 1 - confidence for the share x.
    share = 0.05 ** (1 / 20)
    found = float(epsilon_from_guesses(20, 0, runs=20, delta=0.0, confidence=0.95))
    assert found == pytest.approx(math.log(share / (1 - share)), rel=1e-12)


@pytest.mark.parametrize("sides", [1, 2])
def test_delta_takes_its_share_of_the_error(sides: int) -> None:
    # Of 40 guesses, all right, as many as may be bad are taken off; the rest have a closed form.
    law = stats.binom(50, sides * 0.04 / 2)
    bad = next(b for b in range(50) if law.sf(b) <= 0.1 * 0.05)
    share = (0.9 * 0.05) ** (1 / (40 - bad))
    found = epsilon_from_guesses(40, 0, runs=50, delta=0.04, confidence=0.95, sides=sides)
    assert float(found) == pytest.approx(math.log(share / (1 - share)), rel=1e-12)


# Bounds by attack


def leaky(present: bool, size: int, rng: np.random.Generator) -> Array:
    """Randomized response at level 1 that tells the truth for sure in a fifth of the runs: delta is 0.2."""
    score = flipped(1.0)(present, size, rng)
    return np.where(rng.random(size) < 0.2, 1.0 if present else -1.0, score)


def blind(present: bool, size: int, rng: np.random.Generator) -> Array:
    """Scores that do not depend on the data: epsilon is 0."""
    del present
    return rng.standard_normal(size)


COVERED: dict[str, tuple[Run, float, float]] = {
    "2rr": (flipped(1.0), 1.0, 0.0),
    "laplace": (laplace(1.0), 1.0, 0.0),
    "leaky": (leaky, 1.0, 0.2),
    "blind": (blind, 0.0, 0.0),
}


@pytest.mark.parametrize("bound", ["audit", "two bounds"])
@pytest.mark.parametrize("name", COVERED)
def test_lower_bounds_hold_as_often_as_they_say(name: str, bound: str) -> None:
    trials, confidence = 300, 0.8
    run, epsilon, delta = COVERED[name]
    above = 0
    for seed in range(trials):
        rng = simulated(seed, "coverage")
        if bound == "audit":
            found = audit(run, (PureDP(2.0), delta), runs=1000, confidence=confidence, rng=rng)
            above += found.empirical_epsilon_lower > epsilon
        else:
            scores = run(True, 1000, rng), run(False, 1000, rng)
            above += epsilon_lower_bound(*scores, delta=delta, confidence=confidence) > epsilon
    # How many wrong bounds the binomial law allows at the stated rate.
    assert above <= stats.binom.isf(FALSE_ALARM, trials, 1 - confidence)


CASES: list[tuple[str, Callable[[float], Run], Gaussian | Laplace | PureDP, float, float]] = [
    ("gaussian", lambda f: gaussian(Z * f), Gaussian(Z), 1e-5, 0.7),
    ("laplace", laplace, Laplace(1.0), 0.0, 0.98),
    ("2rr", lambda f: flipped(1 / f), PureDP(1.0), 0.0, 0.98),
]


@pytest.mark.parametrize(
    ("make", "event", "delta", "close"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_million_runs_come_close_and_catch_half_the_noise(
    make: Callable[[float], Run], event: Gaussian | Laplace | PureDP, delta: float, close: float
) -> None:
    right = audit(make(1.0), (event, delta), runs=10**6, rng=simulated(1, "audit"))
    assert close < right.empirical_epsilon_lower <= 1.0
    assert right.claimed_epsilon == pytest.approx(1.0, abs=1e-6)
    sure = audit(make(1.0), (event, delta), runs=10**6, confidence=SURE, rng=simulated(2, "audit"))
    assert not sure.refuted
    broken = audit(make(0.5), (event, delta), runs=10**6, confidence=SURE, rng=simulated(3, "audit"))
    assert broken.refuted


def test_randomized_response_is_found_to_the_hundredth() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        found = audit(flipped(epsilon), (PureDP(epsilon), 0.0), runs=10**6, rng=simulated(4, "audit"))
        assert epsilon - 0.02 < found.empirical_epsilon_lower <= epsilon


def test_two_arrays_are_bounded_too() -> None:
    rng = simulated(5, "audit")
    for factor, low, high in ((1.0, 0.3, 1.0), (0.5, 1.0, 2.5)):
        run = gaussian(Z * factor)
        scores = run(True, 500_000, rng), run(False, 500_000, rng)
        assert low < epsilon_lower_bound(*scores, delta=1e-5, confidence=SURE) < high


def test_what_chose_the_event_is_not_counted() -> None:
    shown, hidden = np.ones(500), np.zeros(500)
    late = epsilon_lower_bound(np.append(shown, hidden), np.zeros(1000), delta=0.0, confidence=0.9)
    always = epsilon_lower_bound(np.append(shown, shown), np.zeros(1000), delta=0.0, confidence=0.9)
    assert late == 0.0
    assert always > 4


def test_the_direction_is_what_shows_more() -> None:
    # Only the data set with the unit can score 1: seeing a 0 says little, seeing a 1 says all.
    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        return (rng.random(size) < (0.1 if present else 1e-3)).astype(float)

    found = audit(run, (NonPrivate(), 0.0), runs=20_000, rng=simulated(6, "audit"))
    assert found.direction is Guesses.PRESENT
    assert 3.5 < found.empirical_epsilon_lower <= math.log(100)
    mirrored = audit(lambda w, k, rng: -run(not w, k, rng), (NonPrivate(), 0.0), runs=20_000, rng=rng_of(6))
    assert mirrored.direction is Guesses.ABSENT


def rng_of(seed: int) -> np.random.Generator:
    return simulated(seed, "audit")


def test_scores_that_say_nothing_prove_nothing() -> None:
    runs: list[Run] = [
        lambda _w, size, _rng: np.zeros(size),
        lambda _w, size, _rng: np.full(size, -math.inf),
        lambda _w, size, rng: rng.standard_cauchy(size),
    ]
    for run in runs:
        found = audit(run, (PureDP(0.1), 0.0), runs=1000, confidence=SURE, rng=rng_of(7))
        assert found.empirical_epsilon_lower == 0.0
        assert not found.refuted


def test_infinite_scores_are_scores() -> None:
    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(size) < 0.5, math.inf if present else -math.inf, 0.0)

    found = audit(run, (PureDP(1.0), 0.0), runs=1000, confidence=SURE, rng=rng_of(8))
    assert found.refuted
    assert found.wrong == 0


# What is said


def test_an_audit_says_what_was_found() -> None:
    found = audit(flipped(2.0), (PureDP(1.0), 0.0), runs=10_000, rng=rng_of(9), attack="the flipped bit")
    assert found.refuted
    assert str(found).startswith("With confidence 0.95, epsilon is at least 1.")
    assert "(the flipped bit, 10000 runs, " in str(found)
    assert str(found).endswith("where 1 is claimed: the claim is refuted.")
    data = json.loads(json.dumps(found.to_builtins()))
    assert (data["refuted"], data["claimed_epsilon"], data["runs"]) == (True, 1.0, 10_000)
    assert data["event"]["event"] == "PureDP"
    nothing = audit(flipped(2.0), (NonPrivate(), 0.0), runs=10_000, rng=rng_of(9))
    assert nothing.to_builtins()["claimed_epsilon"] is None
    assert not nothing.refuted


def test_a_guarantee_is_a_claim() -> None:
    claim = guarantee(PureDP(1.0), 0.0, observer="the server")
    by_claim = audit(flipped(1.0), claim, runs=1000, rng=rng_of(10))
    assert by_claim == audit(flipped(1.0), (PureDP(1.0), 0.0), runs=1000, rng=rng_of(10))


def test_the_power_of_the_best_attack_is_what_the_claim_allows() -> None:
    rates = np.array([0.001, 0.01, 0.1, 0.5])
    most = claimed_power(Gaussian(1.0), rates)
    assert most == pytest.approx(stats.norm.sf(stats.norm.isf(rates) - 1), abs=2e-4)
    assert np.all(most >= stats.norm.sf(stats.norm.isf(rates) - 1) - 1e-12)
    found, errors = power(gaussian(1.0), rates, runs=200_000, rng=rng_of(11))
    assert np.all(np.abs(found - most) < 6 * errors + 2e-3)
    broken, _ = power(gaussian(0.5), rates, runs=200_000, rng=rng_of(11))
    assert np.all(broken > most + 6 * errors)


# Bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 99}, "runs must be a whole number >= 100, got 99"),
        ({"runs": 1e6}, "runs must be a whole number"),
        ({"confidence": 0.0}, r"confidence must be in \(0, 1\), got 0.0"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
        ({"confidence": math.nan}, "confidence must be in"),
        ({"claim": (PureDP(1.0), 1.0)}, r"delta must be in \[0, 1\), got 1.0"),
        ({"claim": (PureDP(1.0), -1e-9)}, r"delta must be in \[0, 1\)"),
        ({"run": lambda _w, size, _rng: np.full(size, math.nan)}, "must be numbers, got a NaN"),
        ({"run": lambda _w, size, _rng: np.zeros(size + 1)}, r"must have shape \(\d+,\), got \(\d+,\)"),
    ],
)
def test_bad_input_is_refused(options: dict[str, object], said: str) -> None:
    given: dict[str, object] = {"run": flipped(1.0), "claim": (PureDP(1.0), 0.0), "runs": 1000, **options}
    with pytest.raises(ParameterError, match=said):
        audit(given.pop("run"), given.pop("claim"), rng=rng_of(0), **given)  # type: ignore[arg-type]


def test_bad_counts_are_refused() -> None:
    with pytest.raises(ParameterError, match="hits must be from 0 to trials"):
        clopper_pearson(3, 2, confidence=0.9)
    with pytest.raises(ParameterError, match=r"confidence must be in \(0, 1\)"):
        clopper_pearson(1, 2, confidence=1.0)
    with pytest.raises(ParameterError, match="number of scores_without must be a whole number >= 100"):
        epsilon_lower_bound(np.zeros(100), np.zeros(99), delta=0.0, confidence=0.9)
    with pytest.raises(ParameterError, match=r"scores_with must have shape \(n,\)"):
        epsilon_lower_bound(np.zeros((100, 1)), np.zeros(100), delta=0.0, confidence=0.9)
    with pytest.raises(ParameterError, match="sides must be a whole number from 1 to 2"):
        epsilon_from_guesses(1, 1, runs=2, delta=0.0, confidence=0.9, sides=3)
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        epsilon_from_guesses(1, 1, runs=2, delta=1.0, confidence=0.9)
