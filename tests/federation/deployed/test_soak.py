"""Hundreds of rounds in which silos, server and shuffler are killed at random moments, and started again."""

from __future__ import annotations

import json
import os
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.federation.deployed.runs import Found, ends_well, running, words
from tests.federation.deployed.world import Federated, until

pytestmark = pytest.mark.deployed

ROUNDS = int(os.environ.get("TACIT_SOAK_ROUNDS", "120"))
_ROUND = 0.05
"""Seconds, about as long as a round: who dies so long after one has begun may be doing anything."""


def killed_at_random(fed: Federated, roles: tuple[str, ...], *, kills: int, seed: int) -> None:
    """Kill and start parties again while the run goes on, at random moments of random rounds."""
    rng = np.random.default_rng(seed)
    rounds = fed.plan.rounds
    last = fed.silos[-1]
    for step in np.sort(rng.choice(rounds - 1, size=kills, replace=False)).tolist():
        until(partial(reached, fed, last, step), f"round {step}: {fed.log('server')[-2000:]}")
        time.sleep(rng.uniform(0, _ROUND))
        chosen = rng.choice(roles, size=rng.integers(1, 3), replace=False).tolist()
        fed.kill(*chosen)
        fed.start(*chosen)


def reached(fed: Federated, name: str, step: int) -> bool:
    return fed.progress(name) >= step


def model_of(fed: Federated, out: str) -> Any:
    """The parameters that a run ended with."""
    return json.loads((fed.folder / out / "lab" / "model.json").read_text())["weights"]


def test_a_shuffled_run_survives_that_anybody_is_killed(found: Found) -> None:
    fed = running(found, *words("shuffle", rounds=ROUNDS))
    killed_at_random(fed, ("server", "shuffler", *fed.silos), kills=ROUNDS // 10, seed=1)
    ends_well(fed)


def test_a_run_that_was_killed_ends_with_the_model_of_one_that_was_not(found: Found) -> None:
    """A second server, which knows nothing, asks the silos anew: they give what they have stored."""
    fed = running(found, *words("local", rounds=ROUNDS // 4))
    killed_at_random(fed, ("server", *fed.silos), kills=ROUNDS // 40, seed=2)
    ends_well(fed)
    answers = [fed.answers(name) for name in fed.silos]
    fed.change("server", state="server/again", out="again")
    fed.start("server", *fed.silos)
    ends_well(fed)
    assert model_of(fed, "again") == model_of(fed, "runs")
    assert [fed.answers(name) for name in fed.silos] == answers
