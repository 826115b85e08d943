"""Every data set of a few parties, enumerated: no upper bound is below a true divergence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.literature.shuffling.closed_forms import chernoff_renyi, subgaussian_renyi
from tacit.literature.shuffling.lower import shuffle_renyi_lower
from tacit.literature.shuffling.subsampled import (
    subsampled_renyi,
)
from tacit.literature.shuffling.upper import reduction_renyi, shuffle_renyi
from tacit.privacy.curves import Array
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.shuffling.renyi import clones_renyi
from tacit.randomness import simulated

ORDERS = np.array([1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0])
WHOLE = ORDERS[1:]


def response(e: float) -> Array:
    high = 1 / (1 + math.exp(-e))
    return np.array([[high, 1 - high], [1 - high, high]])


def channel(rng: np.random.Generator, e: float, inputs: int, outputs: int) -> Array:
    """A random channel with all ratios within e^e, of few levels."""
    rows = np.where(rng.random((inputs, outputs)) < 0.5, 1.0, math.exp(e)) * np.exp(
        rng.uniform(0, 0.2, outputs)
    )
    law = rows / rows.sum(axis=1, keepdims=True)
    worst = float(np.log(law[:, None] / law[None]).max())
    return np.asarray(law if worst <= e else (1 - e / worst) * law.mean(axis=0) + e / worst * law)


def level(law: Array) -> float:
    return float(np.log(law[:, None] / law[None]).max())


def shuffled(rows: list[Array]) -> Array:
    """The law of the histogram of independent messages: a tensor of counts of all symbols but the last."""
    symbols = rows[0].size
    found = np.zeros((len(rows) + 1,) * (symbols - 1))
    found[(0,) * (symbols - 1)] = 1.0
    for row in rows:
        step = row[-1] * found
        for axis in range(symbols - 1):
            moved = np.roll(found, 1, axis=axis)
            moved[(slice(None),) * axis + (0,)] = 0.0
            step = step + row[axis] * moved
        found = step
    return found.ravel()


def divergences(p: Array, q: Array, orders: Array) -> Array:
    kept = (p > 0) & (q > 0)
    p, q = p[kept], q[kept]
    both = [
        np.log((q * (p / q) ** orders[:, None]).sum(axis=1)),
        np.log((p * (q / p) ** orders[:, None]).sum(axis=1)),
    ]
    return np.asarray(np.maximum(*both) / (orders - 1))


def worst_of(law: Array, n: int, orders: Array) -> Array:
    """The largest divergence over all data of the others and all pairs of inputs."""
    worst = np.zeros(orders.shape)
    for others in itertools.combinations_with_replacement(range(len(law)), n - 1):
        laws = [shuffled([law[x] for x in (*others, mine)]) for mine in range(len(law))]
        for p, q in itertools.combinations(laws, 2):
            worst = np.maximum(worst, divergences(p, q, orders))
    return worst


def violated(bound: Array, truth: Array) -> bool:
    return bool(np.any(bound < truth * (1 - 1e-9) - 1e-13))


@pytest.mark.parametrize("e", [0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0])
def test_randomized_response_on_every_data_set(e: float) -> None:
    for n in range(1, 9):
        worst = worst_of(response(e), n, ORDERS)
        bounds = {
            "chernoff": chernoff_renyi(e, n, ORDERS),
            "sharp": chernoff_renyi(e, n, ORDERS, variant="sharp", chernoff="opt"),
            "subgaussian": subgaussian_renyi(e, n, ORDERS),
            "tight": subgaussian_renyi(e, n, ORDERS, variant="tight"),
            "reduction": reduction_renyi(e, n, ORDERS),
            "clones": clones_renyi(e, n, ORDERS),
            "clones of responses": clones_renyi(e, n, ORDERS, blanket=2 / (math.exp(e) + 1)),
            "pure": pure_dp_renyi(e, ORDERS) * (1 + 1e-12),
            "best": shuffle_renyi(e, n, ORDERS),
        }
        for name, bound in bounds.items():
            assert not violated(bound, worst), (name, n)
        # The worst data are all equal, and the reverse direction is the larger one, not (5.9).
        assert shuffle_renyi_lower(e, n, ORDERS, direction="reverse") == pytest.approx(worst, rel=1e-7)


@pytest.mark.parametrize(
    ("e", "n", "order", "worst", "forward", "reduction", "clones", "response_clones"),
    [
        (0.5, 3, 2, 0.0906121622, 0.0816573820, 0.12375137, 0.12338016, 0.10469818),
        (0.5, 10, 8, 0.1132363697, 0.0913094397, 0.14286641, 0.15511064, 0.12537536),
        (1, 2, 2, 0.5505551747, 0.4337808305, 0.63465597, 0.63465597, 0.58447425),
        (1, 5, 4, 0.5360424250, 0.3217060389, 0.61889987, 0.66478521, 0.56211738),
        (1, 10, 2, 0.1274334977, 0.1031125050, 0.25637859, 0.24106158, 0.16547666),
        (1, 10, 8, 0.5710662447, 0.3042191709, 0.61349773, 0.70313139, 0.58336368),
        (2, 10, 4, 1.5788475173, 0.6269215740, 1.64748887, 1.74966098, 1.58432716),
        (3, 10, 8, 2.9305894978, 1.5203991222, 2.93117147, 2.96064787, 2.93058950),
    ],
)
def test_values_of_the_spec(
    e: float,
    n: int,
    order: float,
    worst: float,
    forward: float,
    reduction: float,
    clones: float,
    response_clones: float,
) -> None:
    at = np.array([order])
    assert worst_of(response(e), n, at).item() == pytest.approx(worst, abs=6e-11)
    assert shuffle_renyi_lower(e, n, at, direction="forward").item() == pytest.approx(forward, abs=6e-11)
    assert reduction_renyi(e, n, at, accuracy=1e-9).item() == pytest.approx(reduction, abs=1.1e-8)
    assert clones_renyi(e, n, at, accuracy=1e-9).item() == pytest.approx(clones, abs=1.1e-8)
    own = clones_renyi(e, n, at, blanket=2 / (math.exp(e) + 1), accuracy=1e-9).item()
    assert own == pytest.approx(response_clones, abs=1.1e-8)


def test_random_channels() -> None:
    rng = simulated(5, "channels")
    tight = 0.0
    for _ in range(60):
        e, n = float(rng.choice([0.1, 0.7, 1.5, 3.0])), int(rng.integers(1, 6))
        law = channel(rng, e, 3, int(rng.integers(2, 5)))
        own = level(law)
        if own < 1e-6:
            continue
        worst = worst_of(law, n, ORDERS)
        for bound in (chernoff_renyi, subgaussian_renyi, reduction_renyi, clones_renyi, shuffle_renyi):
            assert not violated(bound(own, n, ORDERS), worst), (bound.__name__, law, n)
        tight = max(tight, float((worst / shuffle_renyi(own, n, ORDERS)).max()))
    assert tight > 0.9  # the comparison has power


def _sampled(law: Array, data: tuple[int, ...], size: int) -> Array:
    """The law of the histogram of a uniform sample of `size` messages."""
    subsets = list(itertools.combinations(data, size))
    return np.asarray(sum(shuffled([law[x] for x in chosen]) for chosen in subsets) / len(subsets))


def test_sampled_parties() -> None:
    rng = simulated(6, "sampled channels")
    for trial in range(40):
        e, n = float(rng.choice([0.2, 1.0, 2.5])), int(rng.integers(2, 6))
        k = int(rng.integers(1, n + 1))
        law = response(e) if trial % 2 else channel(rng, e, 3, 3)
        own = level(law)
        if own < 1e-6:
            continue
        others = tuple(rng.integers(0, len(law), n - 1).tolist()) if trial % 4 else (0,) * (n - 1)
        laws = [_sampled(law, (*others, mine), k) for mine in range(len(law))]
        worst = np.maximum.reduce([divergences(p, q, ORDERS) for p, q in itertools.combinations(laws, 2)])
        for variant in ("printed", "tight", "best"):
            assert not violated(subsampled_renyi(own, k, k / n, ORDERS, variant=variant), worst), (
                variant,
                n,
                k,
            )
        if trial % 2 and not any(others):
            lower = shuffle_renyi_lower(own, k, ORDERS, rate=k / n)
            assert lower == pytest.approx(worst, rel=1e-7)
