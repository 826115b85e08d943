"""What a statistic keeps of its units: stored with the answer, never seen, spoiled by no bad record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import LedgerError, ParameterError, RefusalError
from tacit.federation import Batch, Crowd, Disjoint, Fixed, InProcess, Measure, Plan, Poisson, Silo, Step
from tacit.means import AdditiveMean, DiscreteGaussianNoise
from tacit.numerics import Array
from tacit.privacy import Neighbours, Relation, TrustModel
from tests.federation.world import DIM, RADIUS, Rows, ask_at, ledger_at, mean_of, plan_of, rows, step_of

X = rows(0, 5)


@dataclass
class Personal:
    """Every unit keeps the mean of the points it was shown; its row is that mean."""

    state_size: int = DIM + 1
    state_version: int = 1

    def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        if (units.values > 5).any():
            raise ValueError(f"quotes a record: {units.values.max()}")
        count = state[:, :1] + 1
        mean = state[:, 1:] + (at["w"] * units.values - state[:, 1:]) / count
        return mean, np.concatenate([count, mean], axis=1)


class Fusing(Personal):
    """It could also add up rows unseen, which would leave the state as it was."""

    def __call__(self, units: Rows, at: Mapping[str, Array]) -> Array:
        return units.values

    def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
        return np.asarray(units.values.sum(axis=0))


POINTS = [np.full(DIM, v) for v in (1.0, 0.5, -0.4, 0.2)]


def silo(values: Array = X, *, statistic: Any = None, **options: Any) -> Silo:
    """A silo with the statistic."""
    known = {
        "personal": Personal() if statistic is None else statistic,
        "row": lambda units, at: units.values,
    }
    options = {"trusts_server": True, "rng": np.random.default_rng(0), **options}
    return Silo(Rows(values), known, **options)


def plan(**changes: Any) -> Plan:
    return plan_of(statistics=("personal",), **changes)


def means(one: Silo, asked: Plan, *, points: list[Array] = POINTS) -> list[Array]:
    """The estimates of all rounds."""
    ask = InProcess([one], rng=np.random.default_rng(1)).open(asked)
    return [ask(r, {"w": w}, (RADIUS,))[0] for r, w in enumerate(points)]


@pytest.mark.parametrize("statistic", [Personal(), Fusing()], ids=["plain", "fused"])
def test_units_go_on_from_what_they_kept(statistic: Personal) -> None:
    for r, found in enumerate(means(silo(statistic=statistic), plan())):
        np.testing.assert_allclose(found, np.mean(POINTS[: r + 1], axis=0) * X.mean(axis=0), atol=1e-15)


def test_a_repeated_query_changes_nothing() -> None:
    one = silo()
    one.accept(plan())
    first = one.answer(ask_at(0, POINTS[0]))
    assert one.answer(ask_at(0, POINTS[0])) == first
    again = silo()
    again.accept(plan())
    again.answer(ask_at(0, POINTS[0]))
    assert one.answer(ask_at(1, POINTS[1])) == again.answer(ask_at(1, POINTS[1]))


def test_another_process_goes_on_where_the_first_one_stopped(tmp_path: Path) -> None:
    asked = plan(estimator=mean_of(DiscreteGaussianNoise(5.0)))
    seen: list[Array] = []

    class Telling(Personal):
        def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            if len(units):
                seen.append(state.copy())
            return super().update(units, at, state)

    with ledger_at(tmp_path / "a.ledger") as ledger:
        for r, w in enumerate(POINTS):
            one = silo(statistic=Telling(), ledger=ledger, rng=None, trusts_server=False)
            one.accept(asked)
            one.answer(ask_at(r, w))
        counts = [state[0, 0] for state in seen]
        other = silo(statistic=Personal(state_version=2), ledger=ledger, rng=None, trusts_server=False)
        other.accept(asked)
        assert other.answer(ask_at(3, POINTS[3]))  # stored: nothing is computed
    assert counts == [0, 1, 2, 3]


@pytest.mark.parametrize("changed", [{"state_version": 2}, {"state_size": DIM}])
def test_a_run_goes_on_with_the_same_meaning_only(tmp_path: Path, changed: dict[str, int]) -> None:
    asked = plan(estimator=mean_of(DiscreteGaussianNoise(5.0)))
    with ledger_at(tmp_path / "a.ledger") as ledger:
        one = silo(ledger=ledger, rng=None, trusts_server=False)
        one.accept(asked)
        one.answer(ask_at(0, POINTS[0]))
        other = silo(statistic=Personal(**changed), ledger=ledger, rng=None, trusts_server=False)
        other.accept(asked)
        with pytest.raises(
            (LedgerError, RefusalError), match=r"what silo 'silo' has kept|cannot be evaluated"
        ):
            other.answer(ask_at(1, POINTS[1]))


def test_a_unit_that_fails_keeps_what_it_had_and_says_nothing() -> None:
    bad = X.copy()
    bad[2] = 9.0
    good = X.copy()
    good[2] = 0.0
    for found, known in zip(means(silo(bad), plan()), means(silo(good), plan()), strict=True):
        np.testing.assert_allclose(found, known, atol=1e-15)


def test_numbers_that_are_not_finite_are_not_kept() -> None:
    class Spoiling(Personal):
        def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            row, kept = super().update(units, at, state)
            if at["w"][0] == 0.5:
                kept[1] = np.nan
            return row, kept

    found = means(silo(statistic=Spoiling()), plan())
    # Unit 1 forgets the second point: it averages over the others.
    mine = np.mean([POINTS[0], POINTS[2]], axis=0) * X[1]
    others = np.mean(POINTS[:3], axis=0) * X[[0, 2, 3, 4]]
    np.testing.assert_allclose(found[2], (mine + others.sum(axis=0)) / 5, atol=1e-15)


@pytest.mark.parametrize("batch", [Fixed(size=2), Disjoint(size=1)], ids=["fixed", "disjoint"])
def test_a_state_never_remembers_a_sample_of_fixed_size(batch: Batch) -> None:
    estimator = AdditiveMean(dim=DIM, neighbours=Neighbours(Relation.ZERO_OUT), on_violation="clip")
    with pytest.raises(ParameterError, match="needs full or Poisson batches"):
        silo().accept(plan(estimator=estimator, batch=batch))
    with pytest.raises(ParameterError, match="needs full or Poisson batches"):
        Crowd(Rows(X), {"personal": Personal()}, trusts_server=True).open(
            plan(estimator=estimator, batch=batch, parties=5)
        )


def test_only_units_of_a_poisson_sample_go_on() -> None:
    estimator = AdditiveMean(dim=DIM, neighbours=Neighbours(Relation.ZERO_OUT), on_violation="clip")
    units = Rows(X)
    one = Silo(units, {"personal": Personal()}, trusts_server=True, rng=np.random.default_rng(0))
    found = means(one, plan(estimator=estimator, batch=Poisson(rate=0.7)))
    assert len(units.taken) == len(POINTS)  # no sample was empty
    seen: list[list[Array]] = [[] for _ in X]
    for w, index, mean in zip(POINTS, units.taken, found, strict=True):
        for unit in index:
            seen[unit].append(w * X[unit])
        np.testing.assert_allclose(mean, sum(np.mean(seen[unit], axis=0) for unit in index) / 3.5)
    kept = one.kept("personal")
    assert kept[:, 0].tolist() == [len(some) for some in seen]
    np.testing.assert_allclose(kept[:, 1:], [np.mean(some, axis=0) if some else 0 * X[0] for some in seen])
    for other, name in ((one, "row"), (silo(), "personal")):
        with pytest.raises(ParameterError, match="must keep a state"):
            other.kept(name)


def test_a_crowd_keeps_what_poisson_samples_have_seen() -> None:
    class Counting(Personal):
        def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            return state[:, :1] * at["w"], state + 1

    estimator = AdditiveMean(dim=DIM, neighbours=Neighbours(Relation.ZERO_OUT), on_violation="clip")
    many = Rows(np.zeros((400, DIM)))
    made = Crowd(many, {"personal": Counting()}, trusts_server=True, rng=np.random.default_rng(0))
    ask = made.open(plan(estimator=estimator, batch=Poisson(rate=0.5), parties=400))
    found = [ask(r, {"w": np.full(DIM, 0.1)}, (RADIUS,))[0][0] for r in range(4)]
    # Units of round r were in half of the r rounds before; six standard errors.
    np.testing.assert_allclose(found, [0.0, 0.05, 0.1, 0.15], atol=0.03)


def test_no_walk_and_no_second_mention() -> None:
    with pytest.raises(ParameterError, match="no walk"):
        silo().accept(plan(walks=2))
    measure = Measure(statistic="personal", estimator=mean_of(), max_radius=RADIUS)
    twice = Plan(steps=((Step(measures=(measure, measure)), 2),), parties=1)
    with pytest.raises(ParameterError, match="may name it once"):
        silo().accept(twice)


def test_a_step_may_ask_for_it_beside_other_means() -> None:
    both = Plan(steps=((step_of(statistics=("personal", "row")), 2),), parties=1)
    ask = InProcess([silo()]).open(both)
    for r in range(2):
        mine, row = ask(r, {"w": POINTS[r]}, (RADIUS, RADIUS))
        np.testing.assert_allclose(row, X.mean(axis=0))
        np.testing.assert_allclose(mine, np.mean(POINTS[: r + 1], axis=0) * X.mean(axis=0))


def test_a_crowd_keeps_the_same() -> None:
    made = Crowd(Rows(X), {"personal": Personal()}, trusts_server=True, rng=np.random.default_rng(0))
    ask = made.open(plan(parties=5))
    for r, w in enumerate(POINTS):
        (found,) = ask(r, {"w": w}, (RADIUS,))
        np.testing.assert_allclose(found, np.mean(POINTS[: r + 1], axis=0) * X.mean(axis=0), atol=1e-15)


def test_an_update_in_place_that_fails_changes_nothing_of_others() -> None:
    """Counted before the failure, and again in every half: one record would have moved all others."""

    class Hasty(Personal):
        def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            state += 1
            if (units.values > 5).any():
                raise ValueError
            return state[:, 1:] / 100, state

    bad = X.copy()
    bad[2] = 9.0
    found = means(silo(bad, statistic=Hasty()), plan())
    for r, mean in enumerate(found):
        np.testing.assert_allclose(mean, (r + 1) / 100 * 4 / 5)


def test_a_unit_that_fails_later_goes_on_from_what_it_had() -> None:
    class Moody(Personal):
        def update(self, units: Rows, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
            if at["w"][0] == 0.5 and (units.values == X[2]).all(axis=1).any():
                raise ValueError
            return super().update(units, at, state)

    found = means(silo(statistic=Moody()), plan())
    mine = np.mean([POINTS[0], POINTS[2]], axis=0) * X[2]
    others = np.mean(POINTS[:3], axis=0) * X[[0, 1, 3, 4]]
    np.testing.assert_allclose(found[2], (mine + others.sum(axis=0)) / 5, atol=1e-15)


def test_what_would_be_lost_or_is_too_much_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    central = mean_of(DiscreteGaussianNoise(5.0), trust=TrustModel.CENTRAL)
    with pytest.raises(ParameterError, match="needs local trust"):
        silo().accept(plan(estimator=central))
    with ledger_at(tmp_path / "a.ledger") as ledger:
        asked = plan(estimator=mean_of(DiscreteGaussianNoise(5.0)))
        huge = silo(statistic=Personal(state_size=2**23), ledger=ledger, rng=None, trusts_server=False)
        with pytest.raises(ParameterError, match="must be at most 33554432 numbers"):
            huge.accept(asked)
        assert not ledger.entries()
