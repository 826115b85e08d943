"""Settings refuse what does not go together."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.learning import LinearObjective, Logistic, Settings, Squared
from tacit.privacy import PrivacyBudget, Relation, TrustModel

BOUNDED = LinearObjective(loss=Logistic(), features=3, feature_norm=2.0)
BUDGET = PrivacyBudget(1.0, 1e-6)


def test_the_radius_is_the_lipschitz_constant_unless_given() -> None:
    assert Settings(objective=BOUNDED).radius == 2.0
    assert Settings(objective=BOUNDED, clip=0.5).radius == 0.5


def test_no_noise_is_made_for_gradients_that_are_longer_than_any() -> None:
    noisy = Settings(objective=BOUNDED, clip=50.0, trust=TrustModel.LOCAL, budget=BUDGET)
    assert noisy.radius == 2.0
    assert Settings(objective=BOUNDED, clip=50.0).radius == 50.0
    unbounded = LinearObjective(loss=Squared(), features=3, feature_norm=2.0)
    assert Settings(objective=unbounded, clip=50.0, trust=TrustModel.LOCAL, budget=BUDGET).radius == 50.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip": 0.0}, "clip must be a finite number > 0"),
        ({"clip": math.nan}, "clip must be a finite number > 0"),
        ({"clip": math.inf}, "clip must be a finite number > 0"),
        ({"objective": LinearObjective(loss=Squared(), features=3)}, "clip must be a finite number > 0"),
        ({"diameter": -1.0}, "diameter must be a finite number > 0"),
        ({"trust": TrustModel.LOCAL}, "trust and budget go together"),
        ({"budget": BUDGET}, "trust and budget go together"),
        (
            {"trust": "local", "budget": BUDGET},
            "trust must be TrustModel.LOCAL, AGGREGATE, SHUFFLE or CENTRAL, got 'local'",
        ),
        ({"n_min": 2}, "n_min and colluding are for shuffle and aggregate trust"),
        (
            {"trust": TrustModel.LOCAL, "budget": BUDGET, "colluding": 1},
            "are for shuffle and aggregate trust",
        ),
        ({"trust": TrustModel.SHUFFLE, "budget": BUDGET, "n_min": 1}, "n_min"),
        (
            {"trust": TrustModel.SHUFFLE, "budget": BUDGET, "n_min": 2, "colluding": 2},
            "colluding must be below",
        ),
        ({"trust": TrustModel.SHUFFLE, "budget": BUDGET, "sampling": "poisson"}, "must not be poisson"),
        (
            {"trust": TrustModel.SHUFFLE, "budget": BUDGET, "relation": Relation.ZERO_OUT},
            "relation must be replace-one",
        ),
        (
            {"trust": TrustModel.LOCAL, "budget": PrivacyBudget.zcdp(1.0)},
            "budget must be a PrivacyBudget, got ZcdpBudget",
        ),
        (
            {"trust": TrustModel.LOCAL, "budget": PrivacyBudget(1.0)},
            "delta must be > 0 with Gaussian noise, got 0.0",
        ),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Settings(**{"objective": BOUNDED, **changes})


def test_an_unknown_noise_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gaussian'"):
        Settings(objective=BOUNDED, noise="gausian")
