"""Disjoint batches end to end: no record is used twice, whoever dies, and each is paid for once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.federation import Disjoint, Fixed, InProcess, Plan
from tacit.learning import Algorithm, LinearObjective, Logistic, NoisyMinibatchSGD, Records, Settings
from tacit.learning.algorithms import LanAcceleratedSGD, LipschitzSGD, PhasedAcceleratedSGD
from tacit.learning.preparation import prepare
from tacit.learning.training import make_silos
from tacit.ledger import Ledger
from tacit.means import BinomialMean
from tacit.numerics import Array, clip_rows
from tacit.privacy import Binomial, Gaussian, Neighbours, PrivacyBudget, TrustModel, epsilon_of

D, SIZES = 3, (40, 60, 50)
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
LOCAL, SHUFFLE, CENTRAL = TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL
TRUSTS = (LOCAL, SHUFFLE, CENTRAL)

ALGORITHMS: dict[str, Algorithm] = {
    "p-sgd": LipschitzSGD(batch=Disjoint(rate=0.1)),
    "lan": LanAcceleratedSGD(batch=Disjoint(rate=0.1)),
    "phases": PhasedAcceleratedSGD(mu=0.1, batch=Disjoint(rate=0.1)),
}


def records(k: int, *, changed: bool = False) -> Records:
    rng = np.random.default_rng(k)
    X = clip_rows(rng.standard_normal((SIZES[k], D)), 1.0)
    if changed:
        X[17] = -X[17]
    return Records.of(X, (X[:, 0] > 0).astype(np.float64))


def planned(algorithm: Algorithm, trust: TrustModel) -> Plan:
    chosen = Settings(
        objective=OBJECTIVE, algorithm=algorithm, trust=trust, budget=BUDGET, noise="discrete-gaussian"
    )
    return prepare(chosen, SIZES).plan


class Watched:
    """Units that write down which of them are taken."""

    def __init__(self, units: Records, taken: list[int]) -> None:
        self.units, self.taken = units, taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self.units, name)

    def __len__(self) -> int:
        return len(self.units)

    def take(self, index: Array) -> Records:
        self.taken.extend(index.tolist())
        return self.units.take(index)


class World:
    """The silos and ledgers of a run; every process starts with new objects, and remembers by its ledgers."""

    def __init__(self, folder: Path, trust: TrustModel, stack: ExitStack, *, changed: bool = False) -> None:
        self.trust, self.changed = trust, changed
        self.taken: list[list[int]] = [[] for _ in SIZES]
        names = ["server"] if trust is CENTRAL else [f"s{k}" for k in range(3)]
        self.ledgers = [
            stack.enter_context(
                Ledger.create(folder / name, limit=PrivacyBudget(2.5, 1e-4), neighbours=Neighbours())
            )
            for name in names
        ]

    def process(self, made: Plan, *, seed: int | None = None) -> Any:
        """Open the run in a new process."""
        central = self.trust is CENTRAL
        silos = make_silos(
            [Watched(records(k, changed=self.changed and k == 0), self.taken[k]) for k in range(3)],  # type: ignore[misc]
            OBJECTIVE,
            ledgers=None if central else self.ledgers,
            trusts_server=central,
            trusts_shuffler=True,
            seed=seed,
        )
        return InProcess(silos, ledger=self.ledgers[0] if central else None).open(made)


def point(step: int) -> dict[str, Array]:
    return {"w": np.full(D, step / 100)}


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_record_is_used_in_two_rounds_whoever_dies(name: str, trust: TrustModel, tmp_path: Path) -> None:
    """Processes that die every three rounds: all that is asked anew comes out of ledgers, or is new."""
    made = planned(ALGORITHMS[name], trust)
    radius = tuple(measure.max_radius for measure in made.kinds[0][0].measures)
    answers: dict[int, Any] = {}
    with ExitStack() as stack:
        world = World(tmp_path, trust, stack)
        for start in range(0, made.rounds, 3):
            ask = world.process(made)
            for step in range(max(start - 1, 0), min(start + 3, made.rounds)):
                found = ask(step, point(step), radius)[0]
                if step in answers:
                    np.testing.assert_array_equal(found, answers[step])
                answers[step] = found
        assert made.rounds > 5
        for taken, size in zip(world.taken, SIZES, strict=True):
            assert len(taken) == len(set(taken))
            assert size - size // 10 < len(taken) <= size or made.rounds < 10
        assert all(len(ledger.entries()) == 1 for ledger in world.ledgers)
        assert all(ledger.spent().epsilon <= 2.0 for ledger in world.ledgers)


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_record_is_paid_for_once(name: str, trust: TrustModel) -> None:
    """The dearest round alone, from its own parameters, is the price of the whole plan."""
    made = planned(ALGORITHMS[name], trust)
    prices = []
    for step, _ in made.kinds:
        assert isinstance(step.batch, Disjoint)
        (measure,) = step.measures
        mean = measure.estimator
        if isinstance(mean, BinomialMean):
            assert step.honest == sum(n // 10 for n in SIZES)
            prices.append(
                epsilon_of(Binomial(step.honest * mean.noise_bits, mean.resolution, mean.dim), 1e-5)
            )
        else:  # an exact grid costs a little more than the real number
            prices.append(epsilon_of(Gaussian(mean.noise.noise_multiplier), 1e-5))  # type: ignore[union-attr]
    price = epsilon_of(made.event(SIZES if trust is CENTRAL else SIZES[:1], trust), 1e-5)
    assert price == pytest.approx(max(prices), rel=0 if trust is SHUFFLE else 1e-3)
    assert 1.9 < price <= 2.0


@pytest.mark.parametrize("trust", TRUSTS)
def test_a_record_that_is_another_moves_no_other_record_to_another_batch(
    trust: TrustModel, tmp_path: Path
) -> None:
    made, orders = planned(ALGORITHMS["lan"], trust), []
    radius = tuple(measure.max_radius for measure in made.kinds[0][0].measures)
    for changed in (False, True):
        folder = tmp_path / str(changed)
        folder.mkdir()
        with ExitStack() as stack:
            world = World(folder, trust, stack, changed=changed)
            ask = world.process(made, seed=7)
            for step in range(made.rounds):
                ask(step, point(step), radius)
            orders.append(world.taken)
    assert orders[0] == orders[1]
    assert 17 in orders[0][0]
    assert sum(map(len, orders[0])) > 0.8 * sum(SIZES)


def test_the_control_full_batches_use_a_record_in_every_round(tmp_path: Path) -> None:
    """What is counted above is counted: of samples that are drawn anew, some records come twice."""
    made = planned(NoisyMinibatchSGD(rounds=10, batch=Fixed(rate=0.2)), LOCAL)
    with ExitStack() as stack:
        world = World(tmp_path, LOCAL, stack)
        ask = world.process(made)
        for step in range(10):
            ask(step, point(step), (made.kinds[0][0].measures[0].max_radius,))
        assert all(len(set(taken)) < len(taken) for taken in world.taken)
