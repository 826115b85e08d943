"""Calibrated shuffled sums: independently computed values, printed parameters, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from tacit.errors import BudgetError, ParameterError
from tacit.literature import paper_scalar_parameters, paper_vector_parameters
from tacit.privacy import (
    Gaussian,
    PrivacyBudget,
    calibrate,
    delta_of,
    epsilon_of,
    meets,
)
from tacit.privacy.binomial import (
    Binomial,
    binomial_delta,
    binomial_gdp_step,
    calibrate_binomial_sum,
)
from tests.privacy.binomial_reference import vector_delta

BUDGET = PrivacyBudget(1.0, 1e-6)

TABLE = [
    # epsilon, delta, n, d, T, b, g, bits, noise, rounding, ratio
    (1.0, 1e-6, 1000, 1, 1, 5, 8, 13, 78.125, 15.625, 1.31318),
    (1.0, 1e-6, 1000, 1, 1, 20, 16, 36, 78.125, 3.90625, 1.14903),
    (1.0, 1e-6, 1000, 1, 1, 100, 37, 137, 73.046, 0.730460, 1.03340),
    (1.0, 1e-6, 10000, 100, 1, 1, 10, 11, 100.0, 100.0, 2.80145),
    (1.0, 1e-6, 10000, 100, 1, 5, 25, 30, 80.0, 16.0, 1.34470),
    (1.0, 1e-6, 10000, 100, 1, 20, 52, 72, 73.9645, 3.69822, 1.08784),
    (1.0, 1e-6, 10000, 100, 1, 100, 118, 218, 71.8184, 0.718184, 1.01604),
    (1.0, 1e-6, 10000, 1000, 1, 10, 33, 43, 91.8274, 9.18274, 1.41487),
    (1.0, 1e-6, 10000, 1000, 1, 50, 82, 132, 74.3605, 1.48721, 1.06242),
    (0.5, 1e-5, 1000, 20, 1, 100, 22, 122, 206.612, 2.06612, 1.05507),
    (4.0, 1e-6, 10000, 100, 1, 10, 132, 142, 5.73921, 0.573921, 1.10797),
    (1.0, 1e-6, 100000, 101, 1, 10, 118, 128, 71.8184, 7.18184, 1.10658),
    (1.0, 1e-6, 10000, 100, 100, 100, 10, 110, 10000.0, 100.0, 1.41473),
    (1.0, 1e-6, 10000, 100, 100, 400, 22, 422, 8264.46, 20.6612, 1.16052),
    (1.0, 1e-6, 2000, 10, 50, 500, 16, 516, 3906.25, 7.8125, 1.09650),
    (1.0, 1e-5, 10000, 10, 20, 50, 20, 70, 1250.0, 25.0, 1.14513),
]


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_grids_and_errors_of_the_reference_table(row: tuple[Any, ...]) -> None:
    epsilon, delta, n, d, rounds, b, g, bits, noise, rounding, ratio = row
    budget = PrivacyBudget(epsilon, delta)
    found = calibrate_binomial_sum(budget, n, d, rounds=rounds, noise_bits=b)
    assert (found.noise_bits, found.resolution, found.bits_per_coordinate) == (b, g, bits)
    assert found.trials == b * n
    assert found.noise_mse == pytest.approx(noise, rel=6e-6)
    assert found.rounding_mse == pytest.approx(rounding, rel=6e-6)
    assert found.ratio == pytest.approx(ratio, abs=6e-6)
    assert found.event == Binomial(b * n, g, d, rounds)
    assert meets(found.event, budget)
    assert delta_of(found.event, epsilon) <= delta
    assert not meets(Binomial(b * n, g + 1, d, rounds), budget)


MU = {
    (1.0, 1e-5): 0.2680511232,
    (1.0, 1e-6): 0.2367043807,
    (0.5, 1e-5): 0.1422105587,
    (2.0, 1e-6): 0.4483347404,
    (4.0, 1e-6): 0.8378587571,
    (8.0, 1e-6): 1.5315451176,
    (15.0, 1e-6): 2.5762095639,
    (0.1, 1e-5): 0.0325207841,
}


def _mu(epsilon: float, delta: float) -> float:
    return 1 / calibrate(Gaussian, PrivacyBudget(epsilon, delta))


def _tail(epsilon: float, delta: float, dim: int, rounds: int = 1) -> float:
    """Return a tail level that spends a hundredth of delta."""
    return 0.01 * delta * 2 * float(special.ndtr(-_mu(epsilon, delta) / 2)) / (dim * rounds)


@pytest.mark.parametrize(("epsilon", "delta"), MU)
def test_gaussian_levels_of_the_reference_table(epsilon: float, delta: float) -> None:
    assert _mu(epsilon, delta) == pytest.approx(MU[epsilon, delta], rel=2e-9)


@pytest.mark.parametrize(
    ("epsilon", "d", "rounds", "b", "g", "tail", "step", "delta"),
    [
        (1.0, 100, 1, 20, 52, 9.057886e-11, 0.0044723784, 7.907386e-07),
        (1.0, 100, 1, 20, 53, 9.057886e-11, None, 1.1616e-06),
        (1.0, 1000, 1, 50, 82, 9.057886e-12, 0.0028284950, 9.777943e-07),
        (1.0, 100, 100, 400, 22, 9.057886e-13, 0.0010000031, 5.252268e-07),
        (4.0, 100, 1, 10, 132, None, 0.0063253824, 9.467318e-07),
    ],
)
def test_deltas_of_the_grids_of_the_reference_table(
    epsilon: float,
    d: int,
    rounds: int,
    b: int,
    g: int,
    tail: float | None,
    step: float | None,
    delta: float,
) -> None:
    at = _tail(epsilon, 1e-6, d, rounds)
    if tail is not None:
        assert at == pytest.approx(tail, rel=6e-7)
    if step is not None:
        assert binomial_gdp_step(b * 10_000, 0.5, at, g) == pytest.approx(step, abs=6e-11)
    sizes = {"trials": b * 10_000, "resolution": g, "dim": d, "rounds": rounds}
    proof = float(vector_delta(epsilon, tail=at, excess=1e-8, **sizes))
    assert proof == pytest.approx(delta, rel=2e-5 if g == 53 else 2e-7)


@pytest.mark.parametrize(
    ("fraction", "epsilon"), [(1.0, 0.987754), (0.75, 1.153632), (0.5, 1.436875), (1 / 3, 1.791734)]
)
def test_one_tail_level_costs_a_little_more(fraction: float, epsilon: float) -> None:
    trials = 20 * math.floor(fraction * 10_000)

    def gap(eps: float) -> float:
        proof = vector_delta(eps, trials=trials, resolution=52, dim=100, tail=_tail(eps, 1e-6, 100))
        return math.log(float(proof) / 1e-6)

    assert optimize.brentq(gap, 0.5, 3.0, xtol=1e-12) == pytest.approx(epsilon, abs=6e-7)
    # The event may use better tails, and the level falls like 1 / sqrt(fraction), not like 1 / fraction.
    price = epsilon_of(Binomial(trials, 52, 100), 1e-6)
    assert epsilon * 0.998 < price < epsilon
    assert price < 1.06 * 0.987754 / math.sqrt(fraction)


def test_only_honest_noise_is_counted() -> None:
    found = calibrate_binomial_sum(BUDGET, 10_001, 100, honest_fraction=0.5, noise_bits=20)
    assert found.honest_parties == 5000
    assert found.event == Binomial(100_000, found.resolution, 100)
    assert found.resolution == calibrate_binomial_sum(BUDGET, 5000, 100, noise_bits=20).resolution
    # All noise is in the error, whoever it is from.
    assert found.noise_mse == pytest.approx(20 * 10_001 / found.resolution**2)
    assert found.rounding_mse == pytest.approx(10_001 / found.resolution**2)
    auto = calibrate_binomial_sum(BUDGET, 10_001, 100, honest_fraction=0.5)
    assert 2.0 < auto.ratio <= 1.1 * 10_001 / 5000


@pytest.mark.parametrize(
    ("n", "d", "rounds", "overhead"), [(1000, 1, 1, 0.1), (10_000, 100, 1, 0.02), (2000, 10, 50, 0.2)]
)
def test_fewest_bits_within_the_overhead_are_chosen(n: int, d: int, rounds: int, overhead: float) -> None:
    found = calibrate_binomial_sum(BUDGET, n, d, rounds=rounds, mse_overhead=overhead)
    assert found.ratio <= 1 + overhead
    before = [m * 10**k for k in range(6) for m in (1, 2, 5) if m * 10**k < found.noise_bits]
    for bits in before:
        try:
            fewer = calibrate_binomial_sum(BUDGET, n, d, rounds=rounds, noise_bits=bits)
        except BudgetError:
            continue
        assert fewer.ratio > 1 + overhead


@settings(max_examples=8, deadline=None)
@given(
    log_epsilon=st.floats(-3, 1.3),
    log_delta=st.floats(-15, -2),
    n=st.integers(2, 100_000),
    d=st.sampled_from([1, 3, 200]),
    rounds=st.sampled_from([1, 7]),
    bits=st.integers(1, 5000),
)
def test_whatever_is_calibrated_meets_its_budget(
    log_epsilon: float, log_delta: float, n: int, d: int, rounds: int, bits: int
) -> None:
    budget = PrivacyBudget(10**log_epsilon, 10**log_delta)
    try:
        found = calibrate_binomial_sum(budget, n, d, rounds=rounds, noise_bits=bits)
    except BudgetError as error:
        if "would do" in str(error):
            enough = int(str(error).split("noise_bits >= ")[1].split()[0])
            assert enough > bits
            assert meets(Binomial(enough * n, 1, d, rounds), budget)
            assert not meets(Binomial((enough - 1) * n, 1, d, rounds), budget)
        return
    assert meets(found.event, budget)
    assert not meets(Binomial(bits * n, found.resolution + 1, d, rounds), budget)
    assert found.ratio >= 1


def test_too_few_bits_say_how_many_would_do() -> None:
    with pytest.raises(
        BudgetError, match=r"noise_bits = 1 of 10000 honest .* 1000 dimensions .*: noise_bits >= 2"
    ):
        calibrate_binomial_sum(BUDGET, 10_000, 1000, noise_bits=1)
    assert calibrate_binomial_sum(BUDGET, 10_000, 1000, noise_bits=2).resolution >= 1
    with pytest.raises(BudgetError, match="so are all that are credited"):
        calibrate_binomial_sum(PrivacyBudget(1e-6, 1e-15), 2, 1000, rounds=1000, noise_bits=1)


def test_an_error_that_noise_bits_never_have_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"= 0.0 cannot be met by 10000 honest parties .* the closest is"):
        calibrate_binomial_sum(BUDGET, 10_000, 20, mse_overhead=0.0)
    # With many parties at most 100 bits each are tried.
    with pytest.raises(BudgetError, match=r"up to 100 noise bits each.* the closest is"):
        calibrate_binomial_sum(BUDGET, 20_000_000, 10, mse_overhead=0.01)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budget": PrivacyBudget(1.0)}, "delta must be in"),
        ({"budget": PrivacyBudget.zcdp(0.1)}, "budget must be a PrivacyBudget"),
        ({"parties": 1}, "parties must be a whole number >= 2"),
        ({"dim": 0}, "dim must be a whole number"),
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"honest_fraction": 0.0}, "honest_fraction must be in"),
        ({"honest_fraction": math.nan}, "honest_fraction must be in"),
        ({"honest_fraction": 1e-5}, "n_min must be above .* honest_fraction = 1e-05"),
        ({"mse_overhead": -0.1}, "mse_overhead must be"),
        ({"noise_bits": 0}, "noise_bits must be a whole number"),
        ({"noise_bits": 2.5}, "noise_bits must be a whole number"),
    ],
)
def test_values_out_of_range_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        calibrate_binomial_sum(**{"budget": BUDGET, "parties": 1000, "dim": 10, **changed})


def test_scalar_parameters_of_the_paper() -> None:
    paper = paper_scalar_parameters(1.0, 1e-6, 1000)
    assert (paper.resolution, paper.noise_bits) == (32, 2675)
    assert paper.probability == pytest.approx(0.499857157825, abs=6e-13)
    assert math.sqrt(paper.noise_variance) / 32 == pytest.approx(25.5554, abs=6e-5)
    assert paper.claimed_epsilon(1.0) == 1.0625

    def gap(eps: float) -> float:
        return math.log(float(binomial_delta(2_675_000, paper.probability, 32, eps)) / 1e-6)

    assert optimize.brentq(gap, 0.01, 1.0) == pytest.approx(0.145599, abs=6e-7)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "d", "g", "level", "bits", "error", "ratio"),
    [
        (1.0, 1e-6, 1000, 1, 64, 0.014585, 52686562, 1.28629e7, 1.802e5),
        (1.0, 1e-6, 10000, 100, 200, 0.012941, 82222640, 2.05557e7, 2.879e5),
        (0.5, 1e-5, 1000, 20, 64, 0.007280, 212133614, 5.17904e7, 2.619e5),
    ],
)
def test_vector_parameters_of_the_paper(
    epsilon: float,
    delta: float,
    n: int,
    d: int,
    g: int,
    level: float,
    bits: int,
    error: float,
    ratio: float,
) -> None:
    paper = paper_vector_parameters(epsilon, delta, n, d)
    assert (paper.resolution, paper.noise_bits) == (g, bits)
    assert paper.epsilon == pytest.approx(level, abs=6e-7)
    found = 4 * paper.noise_variance / g**2
    central = 4 / _mu(epsilon, delta) ** 2
    assert found == pytest.approx(error, rel=5e-6)
    assert found / central == pytest.approx(ratio, rel=3e-4)
    assert (
        400 < math.sqrt(found / calibrate_binomial_sum(PrivacyBudget(epsilon, delta), n, d).noise_mse) < 560
    )


def test_bits_of_a_coordinate_grow_with_the_number_of_coordinates() -> None:
    """By the printed order, d (sqrt(n) + ln(1/delta) / eps^2) bits in all, they would be the same."""
    bits = [paper_vector_parameters(1.0, 1e-6, 10_000, d).noise_bits for d in (1, 100, 10**6)]
    assert bits == [51_451_720, 82_222_640, 4_564_273_364]


def test_paper_parameters_for_fifty_coordinates() -> None:
    paper = paper_vector_parameters(1.0, 1e-6, 10_000, 50)
    assert (paper.resolution, paper.noise_bits) == (200, 76345420)
    assert 50 * 4 * paper.noise_variance / 200**2 == pytest.approx(9.54e8, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paper_scalar_parameters(15.5, 1e-6, 1000), "epsilon must be at most 15"),
        (lambda: paper_scalar_parameters(1.0, 0.5, 1000), "delta must be below 1/2"),
        (
            lambda: paper_scalar_parameters(1.0, 1e-6, 1000, resolution=31),
            "resolution must be a whole number >= 32",
        ),
        # Lemma 3.1: g = 2 >= sqrt(n) for n = 2, but the proof needs g >= 0.389 epsilon.
        (
            lambda: paper_scalar_parameters(15.0, 1e-6, 2, resolution=2),
            "resolution must be a whole number >= 6",
        ),
        (lambda: paper_scalar_parameters(1.0, 1e-6, 1), "parties must be a whole number >= 2"),
        (lambda: paper_vector_parameters(16.0, 1e-6, 100, 3), "epsilon must be at most 15"),
        (lambda: paper_vector_parameters(1.0, 1e-6, 100, 0), "dim must be a whole number"),
        (lambda: paper_scalar_parameters(1.0, 1e-6, 1000).claimed_epsilon(1.5), "distance must be in"),
    ],
)
def test_what_the_paper_does_not_prove_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_the_condition_that_the_proof_of_lemma_3_1_needs() -> None:
    # ln((1 + a) / (1 - a)) <= 3 a holds up to a = epsilon / (3 g) = 0.8586 only.
    def excess(a: float) -> float:
        return math.log((1 + a) / (1 - a)) - 3 * a

    assert optimize.brentq(excess, 0.5, 0.99) == pytest.approx(0.8586, abs=6e-5)
    assert optimize.brentq(excess, 0.5, 0.99) >= 1 / (3 * 0.389)


@pytest.mark.parametrize("parties", [-1, 1, 2.5, None])
def test_vector_parameters_of_the_paper_refuse_impossible_parties(parties: Any) -> None:
    with pytest.raises(ParameterError, match="parties must be"):
        paper_vector_parameters(1.0, 1e-6, parties, 10)
