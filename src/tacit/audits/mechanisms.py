"""Attacks on mechanisms by their names, calibrated for a budget, with all of their noise or a part of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import numpy as np

from tacit.audits.attack import Target
from tacit.audits.bandits import reward_target
from tacit.audits.frequencies import coalition_target, oracle_target
from tacit.audits.means import mean_target
from tacit.audits.randomizers import randomizer_target
from tacit.audits.sums import sum_target
from tacit.bandits import RewardPrivacy
from tacit.errors import ParameterError, TacitError, check_choice, check_count, check_positive
from tacit.frequencies import LevelledHadamard, make_oracle
from tacit.means import ESTIMATORS
from tacit.means.additive import AdditiveMean
from tacit.means.modular import ModularSumMean
from tacit.means.noise import DiscreteGaussianNoise
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.mechanisms import (
    HIGHEST_LEVEL,
    sample_discrete_gaussian,
    sample_discrete_laplace,
    sample_gaussian,
    sample_laplace,
)
from tacit.numerics import Array
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PrivacyBudget,
    PureDP,
    TrustModel,
    calibrate,
)

__all__ = ["MECHANISMS", "mechanism_target"]

_CLIENTS: Final = 500
"""Clients for each of the two actions of a batch of a bandit."""

_STEPS: Final = 2**10
"""Distance of the two inputs of the discrete mechanisms, in grid steps."""

_OBSERVERS: Final = (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL)
"""In whose place an attack is tried, one after the other."""


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What a named mechanism is to be built for."""

    budget: PrivacyBudget
    noise_factor: float
    dim: int
    trust: TrustModel | None
    arms: int
    colluding: int


def _gaussian(wanted: _Wanted) -> Target:
    """Attack N(x, z^2) for x = 1 and x = 0; the likelihood ratio increases with the report."""
    z = calibrate(Gaussian, wanted.budget)
    return randomizer_target(
        lambda x, size, rng: x + sample_gaussian(z * wanted.noise_factor, size, rng),
        lambda reports: reports,
        Gaussian(z),
        inputs=(1.0, 0.0),
    )


def _laplace(wanted: _Wanted) -> Target:
    """Attack Laplace noise: the ratio increases between the two inputs and is constant outside."""
    b = calibrate(Laplace, wanted.budget)
    return randomizer_target(
        lambda x, size, rng: x + sample_laplace(b * wanted.noise_factor, size, rng),
        lambda reports: np.clip(reports, 0.0, 1.0),
        Laplace(b),
        inputs=(1.0, 0.0),
    )


def _discrete_gaussian(wanted: _Wanted) -> Target:
    """Attack discrete Gaussian noise on two integers."""
    sigma = calibrate(lambda s: DiscreteGaussian(s, _STEPS, dim=1), wanted.budget, low=1.0)
    return randomizer_target(
        lambda x, size, rng: x + sample_discrete_gaussian(sigma * wanted.noise_factor, size, rng),
        lambda reports: reports,
        DiscreteGaussian(sigma, _STEPS, dim=1),
        inputs=(_STEPS, 0),
    )


def _discrete_laplace(wanted: _Wanted) -> Target:
    """Attack discrete Laplace noise on two integers."""
    b = calibrate(lambda s: DiscreteLaplace(s, _STEPS), wanted.budget, low=1.0)
    return randomizer_target(
        lambda x, size, rng: x + sample_discrete_laplace(b * wanted.noise_factor, size, rng),
        lambda reports: np.clip(reports, 0, _STEPS),
        DiscreteLaplace(b, _STEPS),
        inputs=(_STEPS, 0),
    )


def _k_ary(wanted: _Wanted) -> Target:
    """Attack randomized response on `arms` values; all reports but the two inputs say nothing."""
    inverse = calibrate(lambda x: PureDP(1 / x), wanted.budget)
    arms, level = wanted.arms, 1 / (inverse * wanted.noise_factor)
    # exp(-level) as factor: exp(level) would overflow.
    lie = (arms - 1) * math.exp(-level) / (1 + (arms - 1) * math.exp(-level))

    def sample(x: int, size: int, rng: np.random.Generator) -> Array:
        lies = rng.random(size) < lie
        return (x + np.where(lies, rng.integers(1, arms, size), 0)) % arms

    return randomizer_target(
        sample,
        lambda reports: (reports == 1).astype(np.float64) - (reports == 0),
        PureDP(1 / inverse),
        inputs=(1, 0),
    )


def _oracle(name: str, wanted: _Wanted) -> Target:
    """Attack one message of a mechanism of frequencies on `arms` values."""
    claimed = make_oracle(name, wanted.arms, min(wanted.budget.epsilon, HIGHEST_LEVEL))
    weak = make_oracle(name, wanted.arms, claimed.epsilon / wanted.noise_factor)
    return oracle_target(weak, claim=claimed)


def _levels(wanted: _Wanted) -> Target:
    """Attack two analysts together, one at the budget and one at half of it, on `arms` values."""
    level = min(wanted.budget.epsilon, HIGHEST_LEVEL)
    claimed = LevelledHadamard(wanted.arms, (level, level / 2))
    weak = level / wanted.noise_factor
    return coalition_target(LevelledHadamard(wanted.arms, (weak, weak / 2)), (0, 1), claim=claimed)


def _bandit(wanted: _Wanted) -> Target:
    """Attack the rewards of a batch of a bandit with two actions."""
    trust = wanted.trust or TrustModel.CENTRAL
    delta = wanted.budget.delta if trust is TrustModel.SHUFFLE else 0.0
    privacy = RewardPrivacy(trust=trust, epsilon=wanted.budget.epsilon, delta=delta)
    return reward_target(privacy, np.array([_CLIENTS, _CLIENTS]), noise_factor=wanted.noise_factor)


def _additive(wanted: _Wanted) -> Target:
    """Attack the estimator that sums clipped rows and adds discrete Gaussian noise."""
    trust = wanted.trust or TrustModel.LOCAL

    def mean(z: float) -> AdditiveMean:
        return AdditiveMean(dim=wanted.dim, noise=DiscreteGaussianNoise(z), trust=trust)

    z = calibrate(lambda z: mean(z).event(2, trust), wanted.budget)
    broken = mean_target(mean(z * wanted.noise_factor), trust=trust)
    return Target(run=broken.run, event=mean(z).event(2, trust), attack=broken.attack)


def _summed(wanted: _Wanted) -> Target:
    """Attack a sum that holds two honest shares, and those of the colluders besides."""
    parties = 2 + wanted.colluding
    asked = MeanProblem(n=parties, dim=1, trust="aggregate", budget=wanted.budget, colluding=wanted.colluding)
    claimed = next(iter(ModularSumMean.proposals(asked))).make()
    if not isinstance(claimed, ModularSumMean):
        raise ParameterError(f"a sum must be offered, got {type(claimed).__name__}.")
    noise = DiscreteGaussianNoise(
        claimed.noise.noise_multiplier * wanted.noise_factor, steps=claimed.noise.steps
    )
    sent = msgspec.structs.replace(claimed, noise=noise)
    return sum_target(sent, parties=parties, colluding=wanted.colluding, claim=claimed)


def _estimator(tag: str, wanted: _Wanted) -> Target:
    """Attack an estimator as it offers itself for a budget; it really adds the noise of a larger one."""
    budget, reason = wanted.budget, ""
    larger = PrivacyBudget(budget.epsilon / wanted.noise_factor, budget.delta)
    for trust in _OBSERVERS if wanted.trust is None else (wanted.trust,):

        def offered(spent: PrivacyBudget, trust: TrustModel = trust) -> Iterator[Proposal]:
            asked = MeanProblem(n=2, dim=wanted.dim, trust=trust.value, budget=spent)
            return iter(ESTIMATORS[tag].proposals(asked))

        for claimed, sent in zip(offered(budget), offered(larger), strict=True):
            try:
                event, target = claimed.make().event(2, trust), mean_target(sent.make(), trust=trust)
            except TacitError as error:
                reason = f": {error}"
            else:
                return Target(run=target.run, event=event, attack=target.attack)
    where = f"{wanted.trust.value} trust" if wanted.trust else "any trust model"
    raise ParameterError(
        f"mechanism {tag!r} offers nothing under {where} at dim = {wanted.dim}{reason or '.'}"
    )


MECHANISMS: Final[dict[str, Callable[[_Wanted], Target]]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "discrete-gaussian": _discrete_gaussian,
    "discrete-laplace": _discrete_laplace,
    "2rr": _k_ary,
    "krr": _k_ary,
    "additive": _additive,
    "aggregate": _summed,
    "modular-sum": _summed,
    "bandit": _bandit,
    "levels": _levels,
    **{name: partial(_oracle, name) for name in ("bh", "hr", "oue", "rappor", "rhr", "ss")},
}
"""Mechanisms with an attack of their own; `krr:B` is randomized response on B values, and `bh:k`, `hr:k`,
`oue:k`, `rappor:k`, `rhr:k` and `ss:k` are messages about k values; `levels:k` is what two analysts see
together."""
_OF_VALUES: Final = ("krr", "levels", "bh", "hr", "oue", "rappor", "rhr", "ss")


def mechanism_target(
    name: str,
    budget: PrivacyBudget,
    *,
    noise_factor: float = 1.0,
    dim: int = 1,
    trust: TrustModel | None = None,
    colluding: int = 1,
) -> Target:
    """Return a named mechanism, calibrated for a budget, as something to attack.

    Args:
        name: A key of `MECHANISMS` (`krr:B` for randomized response on B >= 2 values, and so are those of
            frequencies), or the tag of any mean estimator, a key of `tacit.means.ESTIMATORS`.
        budget: What the mechanism claims to meet.
        noise_factor: Noise that it really adds, over what the budget needs; below 1 the claim is false. For
            randomized response and bandits, the level is divided by it; for estimators other than `additive`,
            the epsilon of the budget.
        dim: Coordinates of a row of an estimator.
        trust: Under which an estimator or a bandit is attacked; None: the first one that it is for, and
            central trust for a bandit.
        colluding: Of a sum of the messages of `colluding` + 2 parties: how many play with the server.

    Raises:
        ParameterError: An unknown name, or a value out of its range.
        BudgetError: The mechanism cannot meet the budget.
    """
    check_positive("noise_factor", noise_factor)
    check_count("dim", dim)
    check_count("colluding", colluding, low=0)
    base, _, arms = name.partition(":")
    check_choice("mechanism", base, {**MECHANISMS, **ESTIMATORS})
    if bool(arms) != (base in _OF_VALUES) or (arms and not (arms.isdecimal() and 2 <= int(arms) <= 2**31)):
        numbered = base if base in _OF_VALUES else "krr"
        raise ParameterError(
            f"mechanism must be {numbered}:B with B from 2 to 2**31, or a plain name, got {name!r}."
        )
    wanted = _Wanted(
        budget=budget,
        noise_factor=noise_factor,
        dim=dim,
        trust=trust,
        arms=int(arms) if arms else 2,
        colluding=colluding,
    )
    return MECHANISMS[base](wanted) if base in MECHANISMS else _estimator(base, wanted)
