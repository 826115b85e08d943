"""The rules of whoever adds the noise, against curious, wrong and restarted servers: what can be spent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, RefusalError
from tacit.federation import Batch, Disjoint, Fixed, Full, InProcess, Query, Silo, open_answer
from tacit.ledger import Ledger
from tacit.means import AnyNoise, GaussianNoise, LaplaceNoise
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import (
    DELTA,
    DIM,
    GAUSSIAN,
    GRID,
    Counting,
    Rows,
    ask_at,
    ledger_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
)

GOOD = rows(1, 40)
PRIVATE = plan_of(mean_of(GRID))


# --- rule 1: price the whole plan and reserve it before the first answer


def test_rule_1_the_price_of_the_whole_plan_is_reserved_before_the_first_answer(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        with pytest.raises(RefusalError, match="no plan was accepted"):
            silo.answer(ask_at(0))
        price = silo.accept(PRIVATE)
        assert (ledger.spent().epsilon, ledger.spent().delta) == (price.epsilon, price.delta)
        assert price.event == PRIVATE.event([40], TrustModel.LOCAL)
        assert [entry.plan_digest for entry in ledger.entries()] == [PRIVATE.digest().hex()]
        silo.answer(ask_at(0))
        assert ledger.spent().epsilon == price.epsilon


def test_rule_1_a_restarted_run_is_charged_once_and_another_plan_under_its_name_is_refused(
    tmp_path: Path,
) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        price = silo.accept(PRIVATE, run="a")
        silo.accept(PRIVATE, run="a")
        silo_of(GOOD, ledger=ledger)[0].accept(PRIVATE, run="a")
        assert ledger.spent().epsilon == price.epsilon
        longer = plan_of(mean_of(GRID), rounds=5)
        with pytest.raises(LedgerError, match="run 'a' is reserved already, with another plan or price"):
            silo.accept(longer, run="a")
        silo.answer(ask_at(3))  # the accepted plan stands
        with pytest.raises(RefusalError, match="outside the accepted plan"):
            silo.answer(ask_at(4))
        silo.accept(longer, run="b")
        assert len(ledger.entries()) == 2  # between plans, costs add


def test_rule_1_nothing_is_computed_or_drawn_for_an_overdraft(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l", epsilon=0.01) as ledger:
        counting = Counting()
        rng = np.random.default_rng(5)
        silo = Silo(Rows(GOOD), {"row": counting}, ledger=ledger, rng=rng)
        before = str(rng.bit_generator.state)
        with pytest.raises(BudgetError, match="above what its ledger has left"):
            silo.accept(PRIVATE)
        with pytest.raises(RefusalError, match="no plan was accepted"):
            silo.answer(ask_at(0))
        assert counting.calls == 0
        assert str(rng.bit_generator.state) == before
        assert ledger.entries() == []


def test_rule_1_a_refused_plan_leaves_the_accepted_one_in_force(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l", epsilon=3.0) as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        silo.accept(PRIVATE, run="a")
        first = silo.answer(ask_at(0))
        with pytest.raises(BudgetError, match="nothing was spent"):
            silo.accept(plan_of(mean_of(GaussianNoise(0.5))), run="b")
        with pytest.raises(BudgetError, match="above the agreed"):
            silo.accept(plan_of(mean_of(GaussianNoise(6.0))), run="c", budget=PrivacyBudget(0.1, DELTA))
        assert silo.answer(ask_at(0)) == first
        assert len(ledger.entries()) == 1


def test_rule_1_considering_a_plan_reserves_nothing(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        price = silo.consider(PRIVATE)
        assert ledger.entries() == []
        assert silo.accepted is None
        assert silo.accept(PRIVATE) == price


def test_rule_1_a_silo_with_a_ledger_sends_nothing_without_noise_of_its_own(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l", epsilon=1e9) as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        with pytest.raises(
            RefusalError, match="keeps a ledger, so it sends nothing without noise of its own"
        ):
            silo.accept(plan_of(mean_of(GRID, trust=TrustModel.CENTRAL)))
        with pytest.raises(BudgetError, match="the plan claims no privacy"):
            silo.accept(plan_of())


# --- rule 2: only planned steps, at a price that does not depend on the point

BAD_QUERIES: dict[str, Callable[[], Query]] = {
    "negative step": lambda: ask_at(-1),
    "step beyond the plan": lambda: ask_at(4),
    "huge step": lambda: ask_at(2**63 - 1),
    "beyond int64": lambda: ask_at(10**40),
    "bool step": lambda: ask_at(True),
    "float step": lambda: ask_at(1.0),  # type: ignore[arg-type]
    "NaN step": lambda: ask_at(float("nan")),  # type: ignore[arg-type]
    "text step": lambda: ask_at("0"),  # type: ignore[arg-type]
    "no radius": lambda: ask_at(0, radius=()),
    "two radii": lambda: ask_at(0, radius=(1.0, 1.0)),
    "large radius": lambda: ask_at(0, radius=(1.0000001,)),
    "infinite radius": lambda: ask_at(0, radius=(np.inf,)),
    "NaN radius": lambda: ask_at(0, radius=(np.nan,)),
    "negative radius": lambda: ask_at(0, radius=(-1.0,)),
    "NaN point": lambda: ask_at(0, np.array([0, np.nan, 0])),
    "infinite point": lambda: ask_at(0, np.array([0, np.inf, 0])),
    "integer point": lambda: ask_at(0, np.zeros(DIM, dtype=np.int64)),
    "wrong shape": lambda: ask_at(0, np.zeros(DIM + 1)),
    "missing point": lambda: Query(0, {}, (1.0,)),
    "other name": lambda: Query(0, {"v": np.zeros(DIM)}, (1.0,)),
}


@pytest.mark.parametrize("query", BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_rule_2_only_planned_steps_are_answered(query: Callable[[], Query]) -> None:
    counting = Counting()

    def shifted(units: Rows, at: Mapping[str, Array]) -> Array:
        return counting(units, at) - at["w"]

    rng = np.random.default_rng(5)
    silo = Silo(Rows(GOOD), {"shifted": shifted}, rng=rng)
    silo.accept(plan_of(mean_of(GRID), statistics=("shifted",)))
    before = str(rng.bit_generator.state)
    with pytest.raises(RefusalError):
        silo.answer(query())
    assert counting.calls == 0
    assert str(rng.bit_generator.state) == before  # nothing random has happened
    silo.answer(ask_at(0))  # a refused query uses nothing up


def test_rule_2_steps_may_be_numpy_numbers_and_points_single_precision() -> None:
    silo, _ = silo_of(GOOD)
    silo.accept(PRIVATE)
    first = silo.answer(ask_at(np.int64(0)))  # type: ignore[arg-type]
    assert silo.answer(ask_at(0)) == first
    silo.answer(ask_at(1, np.zeros(DIM, dtype=np.float32)))


@pytest.mark.parametrize("noise", [GAUSSIAN, GRID], ids=["continuous", "grid"])
def test_rule_2_the_noise_follows_the_radius_so_that_no_radius_costs_more(noise: AnyNoise) -> None:
    for radius in (0.0, 1e-40, 1e-3, 1.0):
        silo, _ = silo_of(GOOD, seed=3)
        silo.accept(plan_of(mean_of(noise)))
        ((message,),) = open_answer(silo.answer(ask_at(0, radius=(radius,))), party=0)
        other, _ = silo_of(-GOOD, seed=3)
        other.accept(plan_of(mean_of(noise)))
        ((moved,),) = open_answer(other.answer(ask_at(0, radius=(radius,))), party=0)
        scale = radius / GRID.steps if noise is GRID else 1.0
        # All 40 rows changed under equal noise: what is left is the data, within 80 radii.
        assert np.linalg.norm((message.payload - moved.payload) * scale) <= 80 * radius * (1 + 1e-5) + 1e-4


def test_rule_2_a_hostile_point_reveals_no_more_than_a_clipped_row() -> None:
    hostile = np.full(DIM, -1.7e308)
    wild = GOOD.copy()
    wild[7] = 1.7e308  # w - x overflows for this record only
    payloads = []
    for values in (GOOD, wild):
        silo, _ = silo_of(values, seed=3)
        silo.accept(plan_of(mean_of(GAUSSIAN), statistics=("shifted",)))
        ((message,),) = open_answer(silo.answer(ask_at(0, hostile)), party=0)
        payloads.append(message.payload)
    assert np.isfinite(payloads).all()
    assert np.linalg.norm(payloads[0] - payloads[1]) <= 2.001


# --- rule 3: stored before it is sent; the same query gets the same bytes


@pytest.mark.parametrize("ledger", [False, True], ids=["memory", "ledger"])
@pytest.mark.parametrize("batch", [Full(), Fixed(size=4), Disjoint(size=4)])
def test_rule_3_the_same_query_gets_the_same_bytes_and_another_point_is_refused(
    tmp_path: Path, batch: Batch, *, ledger: bool
) -> None:
    silo, _ = silo_of(GOOD, seed=None, ledger=ledger_at(tmp_path / "l") if ledger else None)
    silo.accept(plan_of(mean_of(GRID), batch=batch))
    first = silo.answer(ask_at(0))
    assert silo.answer(ask_at(0)) == first
    for other in (ask_at(0, np.ones(DIM)), ask_at(0, radius=(0.5,)), Query(0, {}, (1.0,))):
        with pytest.raises(RefusalError, match="step 0 has been answered at another point"):
            silo.answer(other)
    assert silo.answer(ask_at(1)) != first
    if ledger:
        assert silo.answer(ask_at(0)) == first
    else:
        with pytest.raises(RefusalError, match="step 0 has been answered"):
            silo.answer(ask_at(0))


def test_rule_3_answers_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with ledger_at(path) as ledger:
        silo, _ = silo_of(GOOD, seed=None, ledger=ledger)
        silo.accept(PRIVATE)
        sent = [silo.answer(ask_at(step)) for step in range(3)]
    with Ledger.open(path) as ledger:
        again, _ = silo_of(GOOD, seed=None, ledger=ledger)
        again.accept(PRIVATE)
        assert [again.answer(ask_at(step)) for step in range(3)] == sent
        for step in range(3):
            with pytest.raises(RefusalError, match="answered at another point"):
                again.answer(ask_at(step, np.ones(DIM)))
        again.answer(ask_at(3, np.ones(DIM)))
        assert len(ledger.entries()) == 1


def test_rule_3_the_answer_of_one_party_is_not_given_for_another(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l") as shared:  # by mistake: a ledger belongs to one data set
        one, two = silo_of(GOOD, ledger=shared)[0], silo_of(-GOOD, ledger=shared)[0]
        one.accept(PRIVATE, party=0)
        two.accept(PRIVATE, party=1)
        one.answer(ask_at(0))
        with pytest.raises(RefusalError, match="or for another party"):
            two.answer(ask_at(0))


KILLED = """
import os, sys
from tacit.ledger import Ledger
from tests.federation.world import ask_at, mean_of, plan_of, rows, silo_of, GRID
from tacit.federation import Disjoint

real = Ledger.store_answer
def dies(self, run, step, **rest):
    if step == 1 and sys.argv[2] == "before":
        os._exit(9)
    stored = real(self, run, step, **rest)
    if step == 1:
        print(stored.hex(), flush=True)
        os._exit(9)
    return stored
Ledger.store_answer = dies
silo, _ = silo_of(rows(1, 40), seed=None, ledger=Ledger.open(sys.argv[1]))
silo.accept(plan_of(mean_of(GRID), batch=Disjoint(size=4)))
print(silo.answer(ask_at(0)).hex(), flush=True)
silo.answer(ask_at(1))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_rule_3_a_kill_between_computing_and_storing_sends_nothing(tmp_path: Path, when: str) -> None:
    path = tmp_path / "l"
    ledger_at(path).close()
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", KILLED, str(path), when]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.returncode == 9, done.stderr
    sent = [bytes.fromhex(line) for line in done.stdout.split()]
    assert len(sent) == (1 if when == "before" else 2)
    with Ledger.open(path) as ledger:
        silo, _ = silo_of(GOOD, seed=None, ledger=ledger)
        silo.accept(plan_of(mean_of(GRID), batch=Disjoint(size=4)))
        assert silo.answer(ask_at(0)) == sent[0]
        if when == "before":  # it never left, so any point may be asked
            silo.answer(ask_at(1, np.ones(DIM)))
        else:
            assert silo.answer(ask_at(1)) == sent[1]
            with pytest.raises(RefusalError, match="answered at another point"):
                silo.answer(ask_at(1, np.ones(DIM)))
        assert len(ledger.entries()) == 1


@pytest.mark.parametrize("walks", [None, 2])
def test_rule_3_no_unit_is_used_twice_however_often_a_disjoint_run_restarts(
    tmp_path: Path, walks: int | None
) -> None:
    plan = plan_of(mean_of(GRID), rounds=5, batch=Disjoint(size=4), statistics=("shifted",), walks=walks)
    at = {"w": np.zeros(DIM)} | ({"step_size": np.array(0.1)} if walks else {})
    used: list[int] = []
    with ledger_at(tmp_path / "l") as ledger:
        together = [silo_of(GOOD, seed=None, ledger=ledger) for _ in range(2)]
        for silo, _ in together:
            silo.accept(plan)  # two processes of one run, before either has drawn an order
        for step in (3, 0):
            silo, units = together[step % 2]
            silo.answer(Query(step, at, (1.0,)))
        for step in (1, 4, 2):
            restarted = silo_of(GOOD, seed=None, ledger=ledger)
            restarted[0].accept(plan)
            restarted[0].answer(Query(step, at, (1.0,)))
            together.append(restarted)
    for _, units in together:
        used += [index for taken in units.taken for index in taken]
    assert len(used) == len(set(used)) == 5 * 4 * (walks or 1)


def test_rule_3_a_run_of_disjoint_batches_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GRID), batch=Disjoint(size=4))
    with ledger_at(tmp_path / "l") as ledger:
        silo, _ = silo_of(GOOD, ledger=ledger)
        silo.accept(plan)
        silo.answer(ask_at(0))
        shorter, _ = silo_of(GOOD[:30], ledger=ledger)
        shorter.accept(plan)
        with pytest.raises(LedgerError, match="have changed since the run began"):
            shorter.answer(ask_at(1))


def test_no_account_pays_for_noise_that_floating_point_shows_through(tmp_path: Path) -> None:
    for trust in (TrustModel.LOCAL, TrustModel.CENTRAL):
        plan = plan_of(mean_of(GAUSSIAN, trust=trust))
        with ledger_at(tmp_path / trust) as ledger:
            local = trust is TrustModel.LOCAL
            silo, _ = silo_of(GOOD, seed=None, ledger=ledger if local else None)
            with pytest.raises(RefusalError, match="refuses continuous noise"):
                InProcess([silo], ledger=None if local else ledger).open(plan)
            assert ledger.entries() == []


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
@pytest.mark.parametrize("noise", [GAUSSIAN, LaplaceNoise(5.0), GRID], ids=["gaussian", "laplace", "grid"])
def test_a_guarantee_says_that_floating_point_shows_through(noise: AnyNoise, trust: TrustModel) -> None:
    plan = plan_of(mean_of(noise, trust=trust))
    (real,) = InProcess([silo_of(GOOD, seed=None)[0]]).open(plan).guarantees
    said = "it does not matter that continuous noise leaks through floating point"
    assert (said in real.assumptions) == (noise is not GRID)
    seeded = InProcess([silo_of(GOOD)[0]], rng=np.random.default_rng(1)).open(plan).guarantees[0]
    assert (seeded.simulated, seeded.assumptions) == (True, ())
