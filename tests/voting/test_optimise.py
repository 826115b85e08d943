"""Optimal noise functions: an independent table, certified, and never worse than what they contain."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy.certified import Teachers, number_of_types
from tacit.randomness import simulated
from tacit.voting import (
    DESIGNS,
    DesignObjective,
    NoiseFunction,
    Setting,
    Ties,
    allowance,
    design,
    expected_error,
    expected_majority_error,
    gamma_double_subsampling,
    one_sided,
    optimise_gamma,
    uniform_prior,
)

LOG_2 = math.log(2)
VALUES = [  # K, epsilon, delta, m, target_delta (None: 1 - (1 - delta)^m), monotone, exact
    (3, LOG_2, 0.0, 1, None, 0.25, 0.25),
    (3, LOG_2, 0.0, 1.5, None, 0.304917479, 0.304917479),
    (5, 0.5, 0.0, 2, None, 0.357047259, 0.357603479),
    (5, 0.5, 0.01, 2, 0.0199, 0.358519232, 0.358989375),
    (7, 1.0, 0.0, 2, None, 0.377328701, 0.377475424),
    (11, 0.1, 0.0, 1, None, 0.25, 0.25),
    (11, 0.1, 0.0, 3, None, 0.42421644, 0.42436647),
    (11, 0.1, 0.0, 5, None, 0.46285959, 0.46315682),
    (11, 0.1, 0.0, 7, None, 0.46567249, 0.46567249),
    (11, 0.1, 1e-5, 1, None, 0.25, 0.25),
    (11, 0.1, 1e-5, 3, None, 0.42424223, 0.42440301),
    (11, 0.1, 1e-5, 5, None, 0.46291901, 0.46320750),
    (11, 0.1, 1e-5, 9, None, 0.46567249, 0.46567249),
    (15, 0.1, 1e-5, 3, None, 0.42869144, 0.42882961),
    (21, 0.1, 1e-5, 4, None, math.nan, 0.46263100),
    (21, 1.0, 0.01, 3, None, 0.45333466, 0.45378486),
    (35, 0.1, 1e-5, 5, None, 0.48148618, 0.48173631),
    (35, 0.1, 1e-5, 7, None, math.nan, 0.49411948),
    (35, 0.1, 1e-5, 10, None, 0.49836582, 0.49841786),
    (41, 0.1, 1e-5, 8, None, math.nan, 0.49689118),
    (101, 0.1, 0.0, 10, None, 0.4993775551, 0.4993939520),
    (101, 0.1, 0.0, 20, None, 0.4999974679, 0.4999975777),
    (101, 0.1, 0.0, 30, None, 0.4999999207, math.nan),
    (101, 0.1, 0.0, 40, None, 0.4999999672, math.nan),
    (101, 0.1, 0.0, 60, None, 0.4999999674, 0.4999999674),
]


def asked(row: tuple[float, ...]) -> Setting:
    k, epsilon, delta, m, target, *_ = row
    return allowance(int(k), epsilon, m, delta=delta, target_delta=target)


@pytest.mark.parametrize(
    "row", VALUES, ids=lambda row: f"K={row[0]}, epsilon={row[1]:.2g}, delta={row[2]}, m={row[3]}"
)
def test_the_optimum_has_the_tabled_value(row: tuple[float, ...]) -> None:
    for method, value in zip(("monotone", "exact"), row[5:], strict=True):
        if math.isnan(value):
            continue
        noise = optimise_gamma(asked(row), method=method)
        digits = 1e-9 if noise.setting.teachers == 101 else 1.1e-8  # flat there
        assert one_sided(noise.setting.teachers).value(noise.gamma) == pytest.approx(value, abs=digits)
        assert noise.certificate.slack >= 0
        assert noise.certificate.exact == (noise.setting.teachers <= 21)
        assert noise.monotone or method == "exact"


ELEVEN = (11, 0.1, 0.0)
APPROXIMATE = (11, 0.1, 1e-5)
MNIST = (11, 0.0892, 1e-4)
FASHION = (11, 0.0852, 1e-4)
GAMMAS = [  # K, epsilon, delta; m, target_delta; mean; monotone, exact (None: same)
    ((3, LOG_2, 0.0), 1, None, 0.75, [1 / 3, 1], None),
    ((3, LOG_2, 0.0), 1.5, None, 0.75, [0.723858, 1], None),
    ((5, 0.5, 0.0), 2, None, 0.75, [0.900533] * 3, [1, 0.809224, 0.978408]),
    ((5, 0.5, 0.01), 2, 0.0199, 0.75, [0.896251, 0.896251, 0.923076], [0.987761, 0.812726, 0.993595]),
    ((7, 1.0, 0.0), 2, None, 0.75, [0.878646] * 4, [1, 1, 0.664918, 1]),
    (ELEVEN, 1, None, 0.75, [1 / 11, 3 / 11, 5 / 11, 7 / 11, 9 / 11, 1], None),
    (
        ELEVEN,
        3,
        None,
        0.75,
        [0.7078150, 0.7078150, 0.9266392, 1, 1, 1],
        [0.9397026, 0.5420901, 1, 1, 0.9773318, 1],
    ),
    (ELEVEN, 5, None, 0.75, [*[0.9936725] * 5, 1], [1, 1, 0.9844428, 0.9959978, 1, 1]),
    (ELEVEN, 7, None, 0.75, [1] * 6, None),
    (
        APPROXIMATE,
        3,
        None,
        0.75,
        [0.7076683, 0.7076683, 0.9269650, 1, 1, 1],
        [0.9392406, 0.5423404, 1, 1, 0.9776956, 1],
    ),
    (APPROXIMATE, 5, None, 0.75, [*[0.9938062] * 5, 1], [0.9999692, 1, 0.9844914, 0.9963487, 1, 1]),
    (APPROXIMATE, 7, None, 0.75, [1] * 6, None),
    (MNIST, 3, 3e-4, 0.75, [0.705949, 0.705949, 0.930471, 1, 1, 1], [0.933515, 0.545189, 1, 1, 0.981447, 1]),
    (MNIST, 5, 5e-4, 0.75, [*[0.994671] * 4, 0.997670, 1], []),
    (MNIST, 7, 7e-4, 0.75, [1] * 6, None),
    (
        FASHION,
        3,
        3e-4,
        0.75,
        [0.705794, 0.705794, 0.930713, 1, 1, 1],
        [0.932911, 0.545433, 1, 1, 0.981661, 1],
    ),
    (FASHION, 7, 7e-4, 0.75, [1] * 6, None),
    (ELEVEN, 3, None, 0.85, [0.4303377, 0.7429853, 0.9357463, 1, 1, 1], None),
    (ELEVEN, 5, None, 0.85, [0.9616492, 0.9616492, 1, 1, 1, 1], [1, 0.9557033, 1, 1, 1, 1]),
]


@pytest.mark.parametrize(
    ("voters", "m", "target", "mean", "monotone", "exact"),
    GAMMAS,
    ids=[f"{voters}, m={m}, mean={mean}" for voters, m, _, mean, *_ in GAMMAS],
)
def test_the_optimum_is_the_tabled_one(
    voters: tuple[int, float, float],
    m: float,
    target: float | None,
    mean: float,
    monotone: list[float],
    exact: list[float] | None,
) -> None:
    k, epsilon, delta = voters
    question = allowance(k, epsilon, m, delta=delta, target_delta=target)
    for method, tabled in (("monotone", monotone), ("exact", monotone if exact is None else exact)):
        if tabled:  # the exact one is not printed for every row
            noise = optimise_gamma(question, one_sided(k, mean), method=method)
            assert noise.gamma == pytest.approx(tabled, abs=1e-6)


def test_from_seven_votes_on_the_plain_majority_leaves_the_tabled_slack() -> None:
    # Given in f, where it is twice that in delta; six votes need 1 - (1 - delta)^6.
    for m, slack in {7: 2.0e-5, 9: 6.0e-5, 11: 1.0e-4}.items():
        for method in ("monotone", "exact"):
            found = 2 * optimise_gamma(allowance(11, 0.1, m, delta=1e-5), method=method).certificate.slack
            assert found == pytest.approx(slack, rel=5e-3)
            assert found == pytest.approx(2 * ((1 - 1e-5) ** 6 - (1 - 1e-5) ** m), abs=1e-11)


ROWS = [  # K, rows of the program: monotone, pure, approximate
    (3, 10, 20, 120),
    (5, 21, 56, 792),
    (7, 36, 120, 3_432),
    (11, 78, 364, 31_824),
    (15, 136, 816, 170_544),
    (21, 253, 2_024, 1_184_040),
    (35, 666, 8_436, 26_978_328),
    (41, 903, 13_244, 73_629_072),
    (51, 1_378, 24_804, 300_674_088),
    (101, 5_253, 182_104, 27_883_218_168),
]


@pytest.mark.parametrize(("count", "monotone", "pure", "approximate"), ROWS)
def test_the_program_has_the_tabled_rows(count: int, monotone: int, pure: int, approximate: int) -> None:
    for delta, everything in ((0.0, pure), (1e-5, approximate)):
        voters = Teachers(count=count, epsilon=0.1, delta=delta)
        assert number_of_types(voters, monotone=True) == monotone
        assert number_of_types(voters, monotone=False) == everything


@pytest.mark.parametrize("m", [6, 6.5, 8, 11])
def test_from_six_votes_on_the_plain_majority_is_optimal(m: float) -> None:
    noise = optimise_gamma(allowance(11, 0.1, m, delta=1e-5))
    assert noise.gamma == pytest.approx([1] * 6, abs=1e-10)


def test_the_teachers_of_the_experiment() -> None:
    rows = [  # epsilon, m, value monotone, value exact
        (0.0892, 3, 0.424504, 0.424776),
        (0.0892, 5, 0.463536, 0.463737),
        (0.0852, 3, 0.424518, 0.424797),
        (0.0852, 5, 0.463573, 0.463765),
    ]
    for epsilon, m, monotone, exact in rows:
        question = allowance(11, epsilon, m, delta=1e-4, target_delta=m * 1e-4)
        for method, value in (("monotone", monotone), ("exact", exact)):
            found = one_sided(11).value(optimise_gamma(question, method=method).gamma)
            assert found == pytest.approx(value, abs=6e-7)


def test_the_prior_of_a_strong_consensus() -> None:
    objective = one_sided(11, 0.85)
    rows = {3: (0.48252068, 0.48252068), 5: (0.49611287, 0.49616347)}
    for m, values in rows.items():
        for method, value in zip(("monotone", "exact"), values, strict=True):
            noise = optimise_gamma(allowance(11, 0.1, m), objective, method=method)
            assert objective.value(noise.gamma) == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize(
    ("teachers", "epsilon", "delta", "m"),
    [
        (5, 0.5, 0.01, 2),
        (7, 1.0, 0.0, 2),
        (9, 0.2, 1e-3, 2.5),
        (11, 0.1, 0.0, 3),
        (21, 0.3, 0.0, 4),
        (6, 0.5, 0.01, 2),
    ],
)
def test_cutting_planes_find_what_all_rows_give(
    teachers: int, epsilon: float, delta: float, m: float
) -> None:
    question = allowance(teachers, epsilon, m, delta=delta, ties=Ties.COIN)
    objective = one_sided(teachers)
    exact, whole = (
        objective.value(optimise_gamma(question, method=how).gamma) for how in ("exact", "enumerate")
    )
    assert exact == pytest.approx(whole, abs=1e-8)


@pytest.mark.parametrize("mean", [0.55, 0.75, 0.95])
@pytest.mark.parametrize(
    ("teachers", "epsilon", "delta"), [(5, 0.5, 0.0), (11, 0.1, 1e-5), (9, 1.5, 0.02), (8, 0.3, 1e-4)]
)
def test_the_optimum_is_never_worse_than_what_it_contains(
    teachers: int, epsilon: float, delta: float, mean: float
) -> None:
    objective = one_sided(teachers, mean)
    for m in (1, 2, 2.7, 4):
        question = allowance(teachers, epsilon, m, delta=delta, ties=Ties.COIN)
        value = {name: objective.value(design(question, name, objective).gamma) for name in DESIGNS}
        slack = 1e-9
        assert value["optimal"] >= value["optimal-monotone"] - slack
        others = ("constant", "constant-composed", "subsampling", "double-subsampling")
        assert value["optimal-monotone"] >= max(value[name] for name in others) - slack
        assert value["double-subsampling"] >= value["subsampling"] - slack


SHAPES = list(
    itertools.product((1e-3, 0.1, 1.0, 4.0), (0.0, 1e-6, 0.05), (1, 1.5, None), (None, 0.1), (0.55, 0.85))
)


@pytest.mark.parametrize(("teachers", "step"), [(1, 1), (2, 1), (3, 1), (7, 5), (12, 7), (21, 7)])
def test_no_design_is_better_than_the_optimum_nor_without_an_exact_certificate(
    teachers: int, step: int
) -> None:
    # Every fifth or seventh shape: all pairs of values are among them.
    for epsilon, delta, m, target, mean in SHAPES[::step]:
        if m == 1.5 and teachers == 1:
            continue
        question = allowance(
            teachers, epsilon, m or teachers, delta=delta, target_delta=target, ties=Ties.COIN
        )
        objective = one_sided(teachers, mean)
        designs = {name: design(question, name, objective) for name in DESIGNS}
        value = {name: objective.value(noise.gamma) for name, noise in designs.items()}
        assert value["optimal"] >= max(value.values()) - 1e-9, (question, mean)
        for noise in designs.values():
            assert noise.certificate.exact
            assert noise.certificate.slack >= 0


def test_for_one_vote_subsampling_is_optimal_only_where_epsilon_is_small() -> None:
    # Jiang (2025), Section 3.4.2 says so after Lemma 3.4.2.
    for epsilon in (0.01, 0.1, 0.5):
        for teachers, delta in ((5, 0.0), (11, 1e-4), (15, 0.0)):
            noise = optimise_gamma(allowance(teachers, epsilon, 1, delta=delta))
            assert noise.gamma == pytest.approx(gamma_double_subsampling(teachers, 1).tolist(), abs=1e-5)
    better = {
        (7, 1.0): 0.250130,
        (11, 1.0): 0.250822,
        (35, 0.5): 0.250091,
        (3, 2.0): 0.284094,
        (11, 2.0): 0.355204,
    }
    for (teachers, epsilon), value in better.items():
        found = one_sided(teachers).value(optimise_gamma(allowance(teachers, epsilon, 1)).gamma)
        assert found == pytest.approx(value, abs=1e-6)
    exact = {(11, 1.0): 0.251462, (3, 2.0): 0.296093, (11, 2.0): 0.361357}
    for (teachers, epsilon), value in exact.items():
        found = one_sided(teachers).value(
            optimise_gamma(allowance(teachers, epsilon, 1), method="exact").gamma
        )
        assert found == pytest.approx(value, abs=1e-6)


def test_a_floor_is_kept() -> None:
    question = allowance(11, 0.1, 3)
    below = gamma_double_subsampling(11, 3)
    free = optimise_gamma(question, method="exact")
    kept = optimise_gamma(question, method="exact", floor="dsub")
    assert np.any(np.array(free.gamma) < below - 1e-3)
    assert np.all(np.array(kept.gamma) >= below - 1e-7)
    assert one_sided(11).value(kept.gamma) <= one_sided(11).value(free.gamma)
    with pytest.raises(ParameterError, match="target_delta must be at least 1 - "):
        optimise_gamma(allowance(11, 0.1, 3, delta=1e-5, target_delta=1e-5), floor="dsub")


def test_the_expected_error_has_its_own_optimum() -> None:
    # The exact optimum falls with consensus, another is flat.
    prior = uniform_prior()
    objective = expected_error(11, prior, draws=200_000, rng=simulated(1, "prior"))
    question = allowance(11, 0.1, 3)
    exact = optimise_gamma(question, objective, method="exact")
    assert exact.gamma == pytest.approx((1, 1, 1, 0.5122767, 0.2272584, 0.2766570), abs=1e-4)
    monotone = optimise_gamma(question, objective)
    assert monotone.gamma == pytest.approx([0.8719862] * 6, abs=1e-6)
    for noise, error in ((exact, 0.01552), (monotone, 0.02578)):
        found, std = expected_majority_error(noise.gamma, 11, prior, draws=100_000, rng=simulated(2, "error"))
        assert found == pytest.approx(error, abs=6 * std + 2e-5)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_fewer_teachers_a_record_reaches_the_less_noise_is_needed(delta: float) -> None:
    values = []
    for affected in (2, 3, 4, None):
        question = allowance(7, 0.3, 1.5, delta=delta, affected=affected)
        exact = optimise_gamma(question, method="exact")
        listed = optimise_gamma(question, method="enumerate")
        value = one_sided(7).value(exact.gamma)
        assert value == pytest.approx(one_sided(7).value(listed.gamma), abs=1e-7)
        assert exact.certificate.holds
        assert exact.certificate.exact
        assert one_sided(7).value(optimise_gamma(question).gamma) <= value + 1e-9
        values.append(value)
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.01
    # All votes that one record reaches cost no more than the target: the plain majority is free.
    assert min(optimise_gamma(allowance(7, 0.3, 2, delta=delta, affected=2)).gamma) > 1 - 1e-10


def test_designs_are_deterministic() -> None:
    question = allowance(11, 0.1, 3, delta=1e-5)
    first: NoiseFunction = optimise_gamma(question, method="exact")
    assert optimise_gamma(question, method="exact") == first


def test_tiny_levels_are_designed_too() -> None:
    noise = optimise_gamma(allowance(5, 1e-7, 2), method="exact")
    assert noise.certificate.holds
    assert one_sided(5).value(noise.gamma) > 0.3


def test_bad_questions_are_refused() -> None:
    question = allowance(11, 0.1, 3)
    with pytest.raises(ParameterError, match="method must be one of"):
        optimise_gamma(question, method="best")
    with pytest.raises(ParameterError, match="floor must be one of"):
        optimise_gamma(question, floor="sub")
    with pytest.raises(ParameterError, match="objective must have 6 coefficients"):
        optimise_gamma(question, one_sided(13))
    for bad in ((0.0,) * 6, (math.nan,) * 6, ()):
        with pytest.raises(ParameterError, match="coefficients"):
            DesignObjective(bad, "bad")
    large = Teachers(count=35, epsilon=0.1, delta=1e-5)
    with pytest.raises(ParameterError, match=f"would need {number_of_types(large, monotone=False)} rows"):
        optimise_gamma(allowance(35, 0.1, 5, delta=1e-5), method="enumerate")
    with pytest.raises(ParameterError, match="up to 61 teachers"):
        optimise_gamma(allowance(101, 0.1, 5, delta=1e-5), method="exact")
