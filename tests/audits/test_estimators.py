"""Every estimator that claims privacy is attacked by its tag: right ones stand, little noise is caught."""

from __future__ import annotations

import pytest

from tacit.audits import audit, mechanism_target
from tacit.errors import ParameterError
from tacit.means import ESTIMATORS
from tacit.planning import MeanProblem
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

LOCAL, SHUFFLE, CENTRAL = TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL
BUDGET = PrivacyBudget(1.0, 1e-3)

ATTACKED = {
    "additive": (LOCAL, CENTRAL),
    "binomial": (SHUFFLE,),
    "coordinate-clipped": (LOCAL, CENTRAL),
    "shuffled-coordinate": (SHUFFLE,),
    "rand-k": (LOCAL,),
    "rand-k-spatial": (LOCAL,),
    "rand-proj-spatial": (LOCAL,),
    "per-party-pinv": (LOCAL,),
    "mean-map-pinv": (LOCAL,),
    "sampled-binary": (LOCAL, SHUFFLE),
    "bitplane": (LOCAL, SHUFFLE),
    "rotated": (LOCAL, SHUFFLE),
    "hadamard": (LOCAL, SHUFFLE),
    "hemisphere": (LOCAL, SHUFFLE),
    "privunit": (LOCAL, SHUFFLE),
    "privunit-g": (LOCAL, SHUFFLE),
    "local-laplace": (LOCAL, SHUFFLE),
    "sign-vote": (LOCAL, CENTRAL),
    "noisy-minimum": (LOCAL, CENTRAL),
    "perturbed-minimum": (LOCAL, CENTRAL),
}
"""What is offered at least; an estimator that is not among them is attacked as well."""

RUNS = {
    "sign-vote": 2000,
    "noisy-minimum": 2000,
    "perturbed-minimum": 2000,
    "shuffled-gaussian": 500,
    "per-party-pinv": 500,
}
"""A vote shows a sign only, a row that moves a minimum moves it against the slope that it has there, of many
noises one is small now and then, and the norm of a row is not all in what is sampled of it."""

OFFERED = [
    (tag, trust)
    for tag, kind in ESTIMATORS.items()
    for trust in TrustModel
    if list(kind.proposals(MeanProblem(n=2, dim=1, trust=trust.value, budget=BUDGET)))
]


@pytest.mark.parametrize(("tag", "trust"), OFFERED)
def test_what_is_right_stands_and_too_little_noise_is_caught(tag: str, trust: TrustModel) -> None:
    for factor in (1.0, 0.1):
        target = mechanism_target(tag, BUDGET, noise_factor=factor, trust=trust)
        found = audit(
            target.run,
            (target.event, BUDGET.delta),
            runs=RUNS.get(tag, 250),
            confidence=1 - FALSE_ALARM,
            rng=simulated(1, "audit", tag),
        )
        assert 0.85 <= found.claimed_epsilon <= 1.0
        assert found.refuted == (factor < 1)


def test_no_estimator_escapes_by_offering_less() -> None:
    assert {(tag, trust) for tag, trusts in ATTACKED.items() for trust in trusts} <= set(OFFERED)


def test_where_nothing_is_offered_nothing_is_attacked() -> None:
    with pytest.raises(ParameterError, match="'top-k' offers nothing under any trust model at dim = 1"):
        mechanism_target("top-k", BUDGET)
    with pytest.raises(ParameterError, match="'binomial' offers nothing under local trust"):
        mechanism_target("binomial", BUDGET, trust=LOCAL)
    # What is offered, but cannot be built, says why.
    with pytest.raises(ParameterError, match=r"'sign-vote' offers nothing .* choose delta > 0"):
        mechanism_target("sign-vote", PrivacyBudget(1.0))
