"""Every mean estimator, registered for the contract: one line each.

`ESTIMATORS` join tests/contract/test_mean_estimators.py, `LAWS` join tests/contract/test_mean_privacy.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import cast

import msgspec
import numpy as np

from tacit.means import (
    AdditiveMean,
    AnyNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Estimator,
    GaussianNoise,
    LaplaceNoise,
    ModularSumMean,
    NoNoise,
    Round,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, TrustModel
from tests.contract import (
    binomial_cases,
    compressed_cases,
    coordinate_cases,
    minimum_cases,
    randomized_cases,
    sign_vote_cases,
)
from tests.contract.cases import Attack, Case, LawCase, Make, clip_to, grid_points


def additive(
    noise: Callable[[float], AnyNoise], dim: int, share: float, *, trust: TrustModel, relation: Relation
) -> Estimator:
    """An AdditiveMean with a share of the noise."""
    return AdditiveMean(dim=dim, noise=noise(share), trust=trust, neighbours=Neighbours(relation))


def gaussian(z: float) -> Callable[[float], AnyNoise]:
    return lambda share: GaussianNoise(z * share or 1e-30)


def laplace(z: float) -> Callable[[float], AnyNoise]:
    return lambda share: LaplaceNoise(z * share or 1e-30)


# With 2**-20 steps of noise, anything but zero has a probability below exp(-2**19).
def discrete_gaussian(z: float, steps: int) -> Callable[[float], AnyNoise]:
    return lambda share: DiscreteGaussianNoise(z * share or 2.0**-20 / steps, steps=steps)


def discrete_laplace(z: float, steps: int) -> Callable[[float], AnyNoise]:
    return lambda share: DiscreteLaplaceNoise(z * share or 2.0**-20 / steps, steps=steps)


LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
REPLACE, ADD, ZERO = Relation.REPLACE_ONE, Relation.ADD_REMOVE, Relation.ZERO_OUT


def _additive_case(
    name: str, noise: Callable[[float], AnyNoise], trust: TrustModel, relation: Relation
) -> Case:
    made = noise(1.0)
    rows = np.array([[0.2, 0.0], [1e6, 0.0]])
    others = {REPLACE: np.array([[0.2, 0.0], [-1e6, 0.0]]), ADD: rows[:1], ZERO: rows * [[1], [0]]}
    # Of means over two rows: 0.6, and that minus the gap.
    gap = 1.0 if relation is REPLACE else 0.5
    private = not isinstance(made, NoNoise)
    trials = 1000 if isinstance(made, GaussianNoise) else 2500  # enough to break half of the noise
    return Case(
        name=name,
        make=partial(additive, noise, trust=trust, relation=relation),
        clip=clip_to(made.norm),
        private=private,
        attack=Attack(rows=rows, others=others[relation], middle=0.6 - gap / 2, gap=gap, trials=trials)
        if private
        else None,
    )


def modular(shares: int, width: int, z: float, steps: int, dim: int, share: float) -> Estimator:
    """A ModularSumMean with a share of the noise."""
    noise = discrete_gaussian(z, steps)(share)
    assert isinstance(noise, DiscreteGaussianNoise)
    return ModularSumMean(dim=dim, noise=noise, shares=shares, width=width)


ESTIMATORS = [
    _additive_case("no noise, local", lambda _: NoNoise(), LOCAL, REPLACE),
    _additive_case("no noise, central", lambda _: NoNoise(), CENTRAL, REPLACE),
    _additive_case("gaussian, local", gaussian(0.5), LOCAL, REPLACE),
    _additive_case("gaussian, local, add-remove", gaussian(0.5), LOCAL, ADD),
    _additive_case("gaussian, central", gaussian(0.5), CENTRAL, REPLACE),
    _additive_case("laplace, local", laplace(0.3), LOCAL, REPLACE),
    _additive_case("laplace, central, zero-out", laplace(0.3), CENTRAL, ZERO),
    _additive_case("discrete gaussian, local", discrete_gaussian(0.5, 2**16), LOCAL, REPLACE),
    _additive_case("discrete gaussian, coarse, local", discrete_gaussian(0.5, 8), LOCAL, ADD),
    _additive_case("discrete gaussian, central", discrete_gaussian(0.5, 100), CENTRAL, REPLACE),
    _additive_case("discrete laplace, local", discrete_laplace(0.3, 2**10), LOCAL, REPLACE),
    _additive_case("discrete laplace, central", discrete_laplace(0.3, 100), CENTRAL, ADD),
    Case(name="modular sum", make=partial(modular, 3, 26, 0.3, 2**16)),
    Case(name="modular sum, coarse, 64 bits", make=partial(modular, 2, 64, 0.5, 8)),
    *randomized_cases.ESTIMATORS,
    *binomial_cases.ESTIMATORS,
    *coordinate_cases.ESTIMATORS,
    *compressed_cases.ESTIMATORS,
    *sign_vote_cases.ESTIMATORS,
    *minimum_cases.ESTIMATORS,
]


def _clipping(make: Make, dim: int, share: float) -> Estimator:
    """The estimator that clips what is outside of the ball, also where nothing is private."""
    return msgspec.structs.replace(make(dim, share), on_violation="clip")


ESTIMATORS = [replace(case, make=partial(_clipping, case.make)) for case in ESTIMATORS]


# Laws of one message with additive noise


def _moved(mean: AdditiveMean) -> int:
    return 2 if mean.neighbours.relation is Relation.REPLACE_ONE else 1


def _centre(mean: AdditiveMean, rows: Array) -> Array:
    """What the noise is added to: the message under central trust."""
    bare = msgspec.structs.replace(mean, trust=CENTRAL)
    unused = np.random.default_rng(0)
    this_round = Round(n=max(len(rows), 1), radius=1.0)
    return bare.encode(rows, this_round, party=0, rng=unused)[0].payload.astype(np.float64)


def _scale(noise: AnyNoise, sensitivity: int) -> float:
    """Scale of the noise in units, by its definition: noise_multiplier times what one unit moves."""
    if isinstance(noise, DiscreteGaussianNoise | DiscreteLaplaceNoise):
        return noise.noise_multiplier * sensitivity * noise.steps
    return cast(GaussianNoise, noise).noise_multiplier * sensitivity


def additive_log_law(cell: float, power: int, estimator: Estimator, rows: Array, outcomes: Array) -> Array:
    """Logarithm of the law proportional to exp(-|y - centre|**power / (power * scale**power))."""
    assert isinstance(estimator, AdditiveMean)
    scale = _scale(estimator.noise, _moved(estimator))

    def log_weight(x: Array) -> Array:
        return np.asarray(-(np.abs(x) ** power) / (power * scale**power))

    # The slow way to normalise: add up. A kink at the centre is centred in a cell or its edge.
    support = np.arange(-np.ceil(50 * scale / cell), np.ceil(50 * scale / cell) + 1) * cell
    log_norm = np.log(np.exp(log_weight(support)).sum())
    return np.asarray((log_weight(outcomes - _centre(estimator, rows)) - log_norm).sum(axis=1))


def _box(reach: float, cell: float, dim: int) -> Array:
    """All points of a grid in [-reach, reach]**dim."""
    axis = np.arange(-np.ceil(reach / cell), np.ceil(reach / cell) + 1) * cell
    return np.array(list(product(axis, repeat=dim))) if dim > 1 else axis[:, None]


def _additive_law(
    noise: Callable[[float], AnyNoise], relation: Relation, *, dims: tuple[int, ...] = (1,)
) -> LawCase:
    made = noise(1.0)
    power = 2 if isinstance(made, GaussianNoise | DiscreteGaussianNoise) else 1
    steps = made.steps if isinstance(made, DiscreteGaussianNoise | DiscreteLaplaceNoise) else None
    cell = 1.0 if steps else 2.0**-8
    scale = _scale(made, 2 if relation is REPLACE else 1)
    # Two rows of norm 1 are added up; 9 standard deviations or 35 scales reach below 1e-15 of the mass.
    reach = 2 * (steps or 1) + (9 if power == 2 else 35) * scale
    return LawCase(
        name=f"{type(made).__name__}, {made}, {relation.value}",
        make=partial(additive, noise, trust=LOCAL, relation=relation),
        dims=dims,
        outcomes=partial(_box, reach, cell),
        log_law=partial(additive_log_law, cell, power),
        points=partial(grid_points, steps or 1),
        accuracy=0.0 if steps else 1e-5,
    )


LAWS = [
    *(
        _additive_law(noise(0.7, steps), relation, dims=(1, 2) if steps == 1 else (1,))
        for noise in (discrete_gaussian, discrete_laplace)
        for steps in (1, 2, 3, 4)
        for relation in (REPLACE, ADD, ZERO)
    ),
    _additive_law(discrete_gaussian(0.5, 2), REPLACE, dims=(2,)),
    _additive_law(discrete_gaussian(3.0, 4), REPLACE),
    _additive_law(discrete_gaussian(3.0, 4), ADD),
    _additive_law(discrete_laplace(2.0, 4), REPLACE),
    _additive_law(gaussian(0.7), REPLACE),
    _additive_law(gaussian(2.0), ADD),
    _additive_law(laplace(0.7), REPLACE),
    _additive_law(laplace(2.0), ADD),
    *randomized_cases.LAWS,
    *sign_vote_cases.LAWS,
]

_BY_TAG = "tests/audits/test_estimators.py::test_what_is_right_stands_and_too_little_noise_is_caught"
_SKETCHES = (
    "tests/means/test_compressed_privacy.py::test_attacks_stay_below_the_claim_and_find_half_the_noise"
)
_ONES = "tests/means/test_binomial.py::test_an_attack_stays_below_the_claim_and_breaks_half_the_noise_bits"

_REPORTS = "tests/means/test_gaussian_reports.py::test_half_the_noise_costs_what_it_should"

_ITEMS = "tests/means/test_items.py::test_an_attack_on_one_message_stands_and_breaks_twice_the_level"

_MODULAR = "tests/means/test_modular.py::test_an_attack_on_the_honest_sum_stands_and_breaks_half_the_noise"

_SOLVED = (
    "tests/learning/algorithms/test_perturbation_attacks.py::"
    "test_a_whole_run_stands_and_half_the_noise_is_caught"
)

ATTACKED_ELSEWHERE = {
    **{case.name: _BY_TAG for case in coordinate_cases.ESTIMATORS},
    **{case.name: _SOLVED for case in minimum_cases.ESTIMATORS if case.private},
    "sampled binary, local": _BY_TAG,
    "sampled binary, shuffled": _BY_TAG,
    "sampled binary, thesis": _BY_TAG,
    "bit planes, local": _BY_TAG,
    "bit planes, shuffled": _BY_TAG,
    "bit planes, thesis": _BY_TAG,
    "rotated, hadamard, local": _BY_TAG,
    "rotated, orthogonal, local": _BY_TAG,
    "rotated, cosine, shuffle": _BY_TAG,
    "rotated, kashin, shuffle": _BY_TAG,
    "hadamard, shuffle": _BY_TAG,
    **{f"items, {response}, {trust}": _ITEMS for response in ("krr", "hr") for trust in ("local", "shuffle")},
    "PrivUnitMean, shuffle": _BY_TAG,
    "PrivUnitGMean, shuffle": _BY_TAG,
    "HemisphereMean, shuffle": _BY_TAG,
    "local laplace, 0 steps, shuffle": _BY_TAG,
    "shuffled gaussian": _REPORTS,
    "binomial sum": _ONES,
    "binomial sum, coarse": _ONES,
    "modular sum": _MODULAR,
    "modular sum, coarse, 64 bits": _MODULAR,
    "rand-k, gaussian": _SKETCHES,
    "rand-k, discrete laplace": _SKETCHES,
    "rand-k-spatial, discrete gaussian": _SKETCHES,
    "rand-proj-spatial, discrete gaussian": _SKETCHES,
}
"""Private cases that have an attack of their own, with the test that makes it and names the estimator."""
