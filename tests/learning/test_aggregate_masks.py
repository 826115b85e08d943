"""Training whose silos hide their messages: the same model as without masks, and nothing else is opened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import InProcess, OpenSums
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.keys import SigningKey
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    NoisySpider,
    Records,
    Settings,
    Trained,
    WhitenedNoisyGD,
    in_process,
    make_silos,
    train,
)
from tacit.numerics import clip_rows
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

SIZES = (30, 50, 20)
OBJECTIVE = LinearObjective(loss=Logistic(), features=4, feature_norm=1.0)
KEYS = [SigningKey.make() for _ in SIZES]
ROSTER = MaskingRoster(("a", "b", "c"), tuple(key.public.raw for key in KEYS))


def data() -> list[Records]:
    rng = np.random.default_rng(1)
    rows = [clip_rows(rng.standard_normal((n, 4)), 1.0) for n in SIZES]
    return [Records.of(X, (X[:, 0] > 0).astype(np.float64)) for X in rows]


def trained(algorithm: Any, *, masked: bool, keys: Any = KEYS, **fields: Any) -> Trained:
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=algorithm,
        trust=TrustModel.AGGREGATE,
        budget=PrivacyBudget(2.0, 1e-5),
        roster=ROSTER.digest if masked else "",
        **fields,
    )
    sums: Any = [MaskedSums(ROSTER, key) for key in keys] if masked else OpenSums()
    silos = make_silos(data(), OBJECTIVE, names=["a", "b", "c"], sums=sums, seed=3)
    if not masked:
        return train(in_process(silos, seed=3), settings)
    return train(InProcess(silos, masks=ROSTER, rng=simulated(3, "server"), public_seed=3), settings)


@pytest.mark.parametrize(
    "algorithm",
    [NoisyMinibatchSGD(rounds=3), WhitenedNoisyGD(rounds=4), NoisySpider(rounds=4, period=2)],
    ids=lambda one: type(one).__name__,
)
def test_masks_change_no_bit_of_a_model_and_no_price(algorithm: Any) -> None:
    bare, hidden = (trained(algorithm, masked=masked, colluding=1) for masked in (False, True))
    assert hidden.w.tolist() == bare.w.tolist()
    assert [g.epsilon for g in hidden.guarantees] == [g.epsilon for g in bare.guarantees]
    assert [g.epsilon for g in hidden.guarantees_alone] == [g.epsilon for g in bare.guarantees_alone]
    assert hidden.plan.roster == ROSTER.digest


def test_a_silo_in_the_place_of_another_refuses_before_anything_is_asked() -> None:
    with pytest.raises(RefusalError, match="the server counts this silo as party 0, the roster as party 1"):
        trained(NoisyMinibatchSGD(rounds=2), masked=True, keys=[KEYS[1], KEYS[0], KEYS[2]])
