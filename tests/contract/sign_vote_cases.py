"""Votes on signs for the contract; published vote totals are enumerated in tests/means/test_sign_vote.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from tacit.means import DiscreteGaussianNoise, Estimator, GaussianNoise, NoNoise, SignVoteMean
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, TrustModel
from tests.contract.cases import Attack, Case, LawCase, grid_points

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
REPLACE, ADD, ZERO = Relation.REPLACE_ONE, Relation.ADD_REMOVE, Relation.ZERO_OUT

Noisy = Callable[[float], NoNoise | GaussianNoise | DiscreteGaussianNoise]


def vote(noise: Noisy, dim: int, share: float, *, trust: TrustModel, relation: Relation) -> Estimator:
    """A vote with a share of the noise."""
    return SignVoteMean(dim=dim, noise=noise(share), trust=trust, neighbours=Neighbours(relation))


def gaussian(z: float) -> Noisy:
    return lambda share: GaussianNoise(z * share or 1e-30)


def discrete(z: float, steps: int) -> Noisy:
    return lambda share: DiscreteGaussianNoise(z * share or 2.0**-20 / steps, steps=steps)


FULL, EMPTY = np.array([[1e6, 0.0]]), np.zeros((1, 2))
# Two sums as far apart as one record can bring them, with zero in the middle.
NEIGHBOURS = {
    REPLACE: (np.vstack([EMPTY, FULL]), np.vstack([EMPTY, -FULL])),
    ADD: (np.vstack([FULL, -FULL / 2e6]), -FULL / 2e6),
    ZERO: (np.vstack([FULL, -FULL / 2e6]), np.vstack([EMPTY, -FULL / 2e6])),
}


def _case(name: str, noise: Noisy, trust: TrustModel, relation: Relation) -> Case:
    rows, others = NEIGHBOURS[relation]
    private = not isinstance(noise(1.0), NoNoise)
    return Case(
        name=f"sign vote, {name}",
        make=partial(vote, noise, trust=trust, relation=relation),
        exact=False,
        symbols=True,
        divides=False,
        private=private,
        reached=0.5 if private else 0.0,
        trials=3000,
        attack=Attack(rows=rows, others=others, middle=0.0, gap=0.1) if private else None,
    )


ESTIMATORS = [
    _case("no noise, local", lambda _: NoNoise(), LOCAL, REPLACE),
    _case("no noise, central", lambda _: NoNoise(), CENTRAL, REPLACE),
    _case("gaussian, local", gaussian(0.5), LOCAL, REPLACE),
    _case("gaussian, central, zero-out", gaussian(0.5), CENTRAL, ZERO),
    _case("discrete gaussian, coarse, local, add-remove", discrete(0.5, 100), LOCAL, ADD),
    _case("discrete gaussian, central", discrete(0.5, 2**16), CENTRAL, REPLACE),
]


def log_law(estimator: Estimator, rows: Array, outcomes: Array) -> Array:
    """Logarithm of the law of the signs of discrete Gaussian sums, with a coin for each zero."""
    assert isinstance(estimator, SignVoteMean)
    noise = estimator.noise
    assert isinstance(noise, DiscreteGaussianNoise)
    sensitivity = 2 if estimator.neighbours.relation is REPLACE else 1
    sigma = noise.noise_multiplier * sensitivity * noise.steps
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    centres = np.rint((rows / norms).sum(axis=0) * noise.steps)
    reach = int(np.ceil(40 * sigma)) + 4 * noise.steps
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-(k**2) / (2 * sigma**2))
    mass /= mass.sum()
    up = np.array([mass[k + c > 0].sum() + mass[k + c == 0].sum() / 2 for c in centres])
    down = np.array([mass[k + c < 0].sum() + mass[k + c == 0].sum() / 2 for c in centres])
    with np.errstate(divide="ignore"):  # an outcome without mass
        return np.asarray(np.log(np.where(outcomes < 0, down, up)).sum(axis=1))


def bits(dim: int) -> Array:
    """All messages: the negative sign of every coordinate is -1, the positive one 0."""
    return np.array(list(product([-1, 0], repeat=dim)))


def _law(z: float, steps: int, relation: Relation, *, dims: tuple[int, ...] = (1,)) -> LawCase:
    return LawCase(
        name=f"sign vote, z = {z}, {steps} steps, {relation.value}",
        make=partial(vote, discrete(z, steps), trust=LOCAL, relation=relation),
        dims=dims,
        outcomes=bits,
        log_law=log_law,
        points=partial(grid_points, steps),
    )


LAWS = [
    *(
        _law(2.5, steps, relation, dims=(1, 2) if steps == 1 else (1,))
        for steps in (1, 3)
        for relation in (REPLACE, ADD, ZERO)
    ),
    _law(2.5, 2, ZERO, dims=(2,)),
    _law(2.5, 8, REPLACE),
]
