"""A server that shows one silo another plan: what tells silos apart is in their masks, so nothing opens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import AuthenticationError
from tacit.federation import Plan
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.store import MemorySecrets
from tests.federation.aggregates import mean_of, plan_of, step_of
from tests.federation.masking.recovery_world import context_of, signing_keys

ROSTER = context_of(4).roster


def plan(**fields: Any) -> Plan:
    z, rounds = fields.get("z", 3.0), fields.get("rounds", 4)
    mean = mean_of(4 - fields.get("colluding", 0), z=z)
    changed = {name: value for name, value in fields.items() if name not in ("z", "rounds")}
    return plan_of(step_of(mean), rounds=rounds, sizes=(20,) * 4, roster=ROSTER.digest, **changed)


@pytest.mark.parametrize("other", [{"z": 6.0}, {"rounds": 5}, {"colluding": 1}, {"delta": 1e-5}, None])
def test_a_silo_with_another_share_plan_or_run_is_in_no_sum(other: dict[str, Any] | None) -> None:
    shown, run = plan(**(other or {})), "run" if other else "an older run"
    masks: list[Any] = []
    for k in range(4):
        mine, name = (shown, run) if k == 3 else (plan(), "run")
        masks.append(MaskedSums(ROSTER, signing_keys(4)[k]).masks(mine, name, k, MemorySecrets()))
    cards = [one.respond("advertise", b"") for one in masks]
    for one in masks:
        with pytest.raises(AuthenticationError, match="not signed"):
            one.respond("agree", b"".join(cards))
    same = [*masks[:3], MaskedSums(ROSTER, signing_keys(4)[3]).masks(plan(), "run", 3, MemorySecrets())]
    cards = [one.respond("advertise", b"") for one in same]
    for one in same:
        one.respond("agree", b"".join(cards))
    zeros = np.zeros(3, dtype=np.int64)
    total = sum(one.mask(0, bytes(32), zeros, 64).view(np.uint64) for one in same)
    np.testing.assert_array_equal(total, zeros.view(np.uint64))
