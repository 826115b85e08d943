from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError, RefusalError
from tacit.federation import Fixed, Plan, Query, Silo, open_answer
from tacit.numerics import Array
from tacit.privacy import Relation, Unit
from tests.federation.world import (
    DIM,
    GAUSSIAN,
    GRID,
    STATISTICS,
    Rows,
    ask_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
)

GOOD = rows(1, 40)


def test_the_guarantee_reads_as_a_sentence() -> None:
    silo, _ = silo_of(GOOD, seed=None)
    price = silo.accept(plan_of(mean_of(GRID), batch=Fixed(size=4)))
    assert str(price) == (
        f"(epsilon = {price.epsilon:.6g}, delta = 1e-06) whatever everybody outside silo 'silo', the server "
        "included, sees, replacing one record changes the probability of any conclusion by at most a "
        f"factor of {np.exp(price.epsilon):.3g}, up to a probability of 1e-06 ({price.method}; samples of a "
        "share 0.1 of all records), provided "
        "that nobody learns which records are sampled."
    )
    assert str(silo.accept(plan_of())) == (
        "No privacy is claimed: everybody outside silo 'silo', the server included, may learn anything about "
        "the data."
    )


@pytest.mark.parametrize(
    "at",
    [
        {"w": np.zeros(DIM)},
        {"step_size": np.array(0.1)},
        {"w": np.zeros(DIM), "step_size": np.zeros(1)},
        {"w": np.zeros(DIM + 1), "step_size": np.array(0.1)},
        {"w": np.zeros(DIM), "step_size": np.array(0.1), "v": np.zeros(1)},
        {"w": np.zeros(DIM), "step_size": np.array(np.nan)},
    ],
)
def test_a_walk_needs_its_two_points(at: dict[str, Array]) -> None:
    silo, _ = silo_of(GOOD)
    silo.accept(plan_of(mean_of(GAUSSIAN), statistics=("shifted",), walks=2))
    with pytest.raises(RefusalError, match=r"a walk needs the points|must be an array of finite"):
        silo.answer(Query(0, at, (1.0,)))


def test_a_walk_without_noise_is_gradient_descent() -> None:
    silo, _ = silo_of(GOOD)
    silo.accept(plan_of(statistics=("shifted",), walks=5))
    w = np.full(DIM, 0.3)
    data = silo.answer(Query(0, {"w": w, "step_size": np.array(0.25)}, (1.0,)))
    for _ in range(5):
        gradients = w - GOOD
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1))[:, None]
        w = w - 0.25 * gradients.mean(axis=0)
    ((message,),) = open_answer(data, party=0)
    np.testing.assert_allclose(message.payload, w, rtol=1e-6)


# --- what a silo accepts at all


def test_the_number_of_units_is_public_or_planned() -> None:
    silo, _ = silo_of(GOOD)
    with pytest.raises(ParameterError, match="needs `planned`, a public number of units, under add-remove"):
        silo.accept(plan_of(mean_of(GAUSSIAN, relation=Relation.ADD_REMOVE)))
    secret, _ = silo_of(GOOD, planned=50)
    assert secret.size == 50
    # 5 of 50 would be priced, 5 of 40 would be drawn.
    with pytest.raises(ParameterError, match="and only there; the plan has replace-one"):
        secret.accept(plan_of(mean_of(GAUSSIAN), batch=Fixed(size=5)))
    assert silo_of(GOOD[:0], planned=1)[0].size == 1
    with pytest.raises(ParameterError, match="must hold at least one unit"):
        silo_of(GOOD[:0])
    with pytest.raises(ParameterError, match="planned must be at least half the number of units, got 19"):
        silo_of(GOOD, planned=19)
    with pytest.raises(ParameterError, match="planned must be a whole number >= 1"):
        silo_of(GOOD, planned=0)


def test_a_plan_protects_what_the_units_are() -> None:
    def plan(unit: Unit) -> Plan:
        mean = mean_of(GAUSSIAN)
        return plan_of(
            msgspec.structs.replace(mean, neighbours=msgspec.structs.replace(mean.neighbours, unit=unit))
        )

    records = Silo(Rows(GOOD), STATISTICS, unit=Unit.RECORD)
    records.accept(plan(Unit.RECORD))
    with pytest.raises(ParameterError, match="are of kind record, those of the plan of kind person"):
        records.accept(plan(Unit.PERSON))
    anything, _ = silo_of(GOOD)
    anything.accept(plan(Unit.PERSON))
    with pytest.raises(ParameterError, match="plans that protect whole parties need silos of one unit"):
        anything.accept(plan(Unit.PARTY))
    silo_of(GOOD[:1])[0].accept(plan(Unit.PARTY))


def test_a_plan_that_does_not_fit_is_refused() -> None:
    silo, _ = silo_of(GOOD)
    with pytest.raises(ParameterError, match="statistic must be one of"):
        silo.accept(plan_of(statistics=("label",)))
    with pytest.raises(ParameterError, match="at most the 40 units of the silo, got 41"):
        silo.accept(plan_of(batch=Fixed(size=41)))
    with pytest.raises(ParameterError, match="party must be a whole number from 0"):
        silo.accept(plan_of(), party=-1)


# --- answers from anybody


@given(data=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_parameter_error(data: bytes) -> None:
    try:
        answer = open_answer(data, party=3)
    except ParameterError:
        return
    assert all(message.sender == 3 for group in answer for message in group)


@given(
    inner=st.recursive(
        st.none() | st.integers() | st.binary(max_size=30) | st.text(max_size=5) | st.floats(),
        lambda part: st.lists(part, max_size=3),
        max_leaves=6,
    )
)
def test_any_answer_of_any_form_is_read_or_refused(inner: Any) -> None:
    try:
        data = msgspec.msgpack.encode({"messages": inner})
    except OverflowError:
        return  # integers beyond 64 bits have no wire form
    try:
        open_answer(data, party=0)
    except ParameterError:
        return
    assert isinstance(inner, list)


@given(cut=st.integers(0, 60), flip=st.integers(0, 60), bit=st.integers(0, 7))
def test_damaged_answers_are_read_or_refused(cut: int, flip: int, bit: int) -> None:
    silo, _ = silo_of(GOOD)
    silo.accept(plan_of(mean_of(GRID)))
    data = bytearray(silo.answer(ask_at(0)))
    with pytest.raises(ParameterError, match="party 5 sent something that is not an answer"):
        open_answer(bytes(data[: min(cut, len(data) - 1)]), party=5)
    data[flip % len(data)] ^= 1 << bit
    with contextlib.suppress(ParameterError):
        open_answer(bytes(data), party=5)


def test_a_server_that_invents_forms_fills_no_memory_and_each_is_tried_once() -> None:
    tried: list[tuple[str, ...]] = []

    class Row:
        def __call__(self, units: Rows, at: Any) -> Array:
            if not len(units):
                tried.append(tuple(at))
            return units.values

    silo = Silo(Rows(GOOD), {"row": Row()}, trusts_server=True, rng=np.random.default_rng(0))
    silo.accept(plan_of(rounds=600))
    for k in range(600):
        silo.answer(Query(k, {f"w{k // 2}": np.zeros(1)}, (1.0,)))
    assert tried == [(f"w{k}",) for k in range(300)]
    run: Any = silo.accepted
    assert len(run.tried) <= 64
