"""The server and its colluders against a silo: what they can tell from a sum, and from its message alone."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from tacit.federation import Circle, OpenSums, Plan, Silo
from tacit.federation.answers import open_sum
from tacit.federation.summed import added
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, TrustModel, epsilon_of
from tests.federation.aggregates import mean_of, plan_of, step_of
from tests.federation.world import STATISTICS, Rows, ask_at
from tests.statistics import FALSE_ALARM

TRIALS, DELTA, SIZES = 2500, 0.05, (1, 2, 3)
CIRCLE = Circle((0, 1, 2), SIZES, (None,) * 3, b"session")
NEIGHBOURS = Neighbours(Relation.REPLACE_ONE)


def plan_with(z: float) -> Plan:
    """Three parties of which one colludes: two honest shares."""
    mean = mean_of(2, z=z, dim=1, neighbours=NEIGHBOURS)
    return plan_of(step_of(mean), rounds=TRIALS, sizes=SIZES, colluding=1, delta=DELTA)


def claims(made: Plan) -> tuple[float, float]:
    """Epsilon of one sum and of one message alone, at DELTA."""
    step = made.kinds[0][0]
    return tuple(
        epsilon_of(step.event([1], trust), DELTA) for trust in (TrustModel.AGGREGATE, TrustModel.LOCAL)
    )  # type: ignore[return-value]


@cache
def seen(z: float, row: float, *, seed: int) -> tuple[Array, Array]:
    """What the server and silo 2 are left with in every step, if silo 0 holds this row: the sum without what
    silo 2 sent itself, and the message of silo 0 if silo 1 tells too."""
    made = plan_with(z)
    step, sent = made.kinds[0][0], []
    for k, values in enumerate(([[row]], [[0.5], [-0.5]])):
        one = Silo(Rows(np.array(values)), STATISTICS, sums=OpenSums(), rng=np.random.default_rng(seed + k))
        one.accept(made, party=k)
        sent.append([open_sum(step, one.answer(ask_at(r), CIRCLE), party=k)[0] for r in range(TRIALS)])
    return added([np.array(one) for one in sent]), np.array(sent[0])


def lower_bound(high: Array, low: Array) -> float:
    """Of epsilon at DELTA, by the best of a few thresholds: wrong with probability FALSE_ALARM."""
    cuts, best = np.quantile(np.concatenate([high, low]), np.linspace(0.05, 0.95, 19)), 0.0
    level = FALSE_ALARM / (2 * 2 * len(cuts))
    for cut in cuts:
        for hits, misses in (
            ((high > cut).sum(), (low > cut).sum()),
            ((low < cut).sum(), (high < cut).sum()),
        ):
            p = stats.beta.ppf(level, hits, TRIALS - hits + 1) if hits else 0.0
            q = stats.beta.isf(level, misses + 1, TRIALS - misses) if misses < TRIALS else 1.0
            if p > DELTA:
                best = max(best, math.log((p - DELTA) / q))
    return best


@pytest.mark.parametrize("view", [0, 1], ids=["sum", "alone"])
def test_an_attack_stands_and_half_the_noise_is_caught(view: int) -> None:
    claim = claims(plan_with(1.2))[view]
    found = [lower_bound(seen(z, 1.0, seed=10)[view], seen(z, -1.0, seed=20)[view]) for z in (1.2, 0.6)]
    assert found[0] <= claim < found[1]
    assert found[0] > claim / 4  # and the attack is no straw man


def test_the_sum_tells_less_than_a_message_alone() -> None:
    summed, alone = claims(plan_with(1.2))
    assert summed < alone
    high, low = seen(1.2, 1.0, seed=10), seen(1.2, -1.0, seed=20)
    assert lower_bound(high[0], low[0]) < lower_bound(high[1], low[1])
