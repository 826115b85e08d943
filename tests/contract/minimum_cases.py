"""Minima of noisy losses, for the contract of mean estimators: a line each in `ESTIMATORS`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tacit.means import (
    DiscreteGaussianNoise,
    Estimator,
    GammaNoise,
    GaussianNoise,
    NoisyMinimum,
    NoNoise,
    PerturbedMinimum,
)
from tacit.privacy import Neighbours, Relation, TrustModel
from tests.contract.cases import Case

Noise = NoNoise | GammaNoise | GaussianNoise | DiscreteGaussianNoise

STRENGTH = {TrustModel.LOCAL: 12.0, TrustModel.CENTRAL: 2.0}
"""Solutions for a party's few rows are then short, and those for the rows of all about as long as means."""


def noisy_minimum(
    noise: Callable[[float], Noise], dim: int, share: float, *, trust: TrustModel, relation: Relation
) -> Estimator:
    """A NoisyMinimum with a share of the noise."""
    made = noise(share)
    assert not isinstance(made, GammaNoise)
    return NoisyMinimum(
        dim=dim,
        strength=STRENGTH[trust],
        tolerance=1e-8,
        noise=made,
        trust=trust,
        neighbours=Neighbours(relation),
    )


def perturbed_minimum(
    noise: Callable[[float], Noise], dim: int, share: float, *, trust: TrustModel, relation: Relation
) -> Estimator:
    """A PerturbedMinimum with a share of the noise."""
    made = noise(share)
    assert not isinstance(made, DiscreteGaussianNoise)
    return PerturbedMinimum(
        dim=dim,
        strength=STRENGTH[trust],
        tolerance=1e-8,
        output=50 * share or 1e-30,
        noise=made,
        trust=trust,
        neighbours=Neighbours(relation),
    )


def gaussian(share: float) -> Noise:
    return GaussianNoise(0.15 * share or 1e-30)


def gamma(share: float) -> Noise:
    return GammaNoise(0.05 * share or 1e-30)


def discrete(share: float) -> Noise:
    # With 2**-20 steps of noise, anything but zero has a probability below exp(-2**19).
    return DiscreteGaussianNoise(0.15 * share or 2.0**-36, steps=2**16)


LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
REPLACE, ADD, ZERO = Relation.REPLACE_ONE, Relation.ADD_REMOVE, Relation.ZERO_OUT


def _case(
    name: str,
    noise: Callable[[float], Noise],
    trust: TrustModel,
    relation: Relation,
    *,
    private: bool = True,
    make: Callable[..., Estimator] = noisy_minimum,
) -> Case:
    return Case(
        name=name,
        make=partial(make, noise, trust=trust, relation=relation),
        exact=False,
        private=private,
        divides=False,
        # On a grid, half a step of rounding is in the bound on the variance.
        close_integers=2.0,
        reached=0.5,
        trials=600,
    )


_perturbed = partial(_case, make=perturbed_minimum)

ESTIMATORS = [
    _case("noisy minimum, none", lambda _: NoNoise(), LOCAL, REPLACE, private=False),
    _case("noisy minimum, gaussian, local", gaussian, LOCAL, REPLACE),
    _case("noisy minimum, gaussian, central, add-remove", gaussian, CENTRAL, ADD),
    _case("noisy minimum, discrete, local, zero-out", discrete, LOCAL, ZERO),
    _case("noisy minimum, discrete, central", discrete, CENTRAL, REPLACE),
    _perturbed("perturbed minimum, none", lambda _: NoNoise(), LOCAL, REPLACE, private=False),
    _perturbed("perturbed minimum, local", gaussian, LOCAL, ADD),
    _perturbed("perturbed minimum, central", gaussian, CENTRAL, REPLACE),
    _perturbed("perturbed minimum, gamma, local", gamma, LOCAL, ZERO),
]
