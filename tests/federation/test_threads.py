"""Many threads ask at once: every step is answered at one point, and the same bytes leave for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Disjoint, Full, InProcess, Server, open_answer
from tacit.federation.store import LastAnswer, LedgerStore
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import DIM, GRID, ask_at, ledger_at, mean_of, plan_of, rows, silo_of

GOOD = rows(1, 40)
THREADS = 8
STEPS = 5  # 40 queries
POINTS = (np.zeros(DIM), np.full(DIM, 0.1))


@pytest.fixture(autouse=True)
def _eager_threads() -> Iterator[None]:
    """Threads take turns so often that a check and what follows it are torn apart unless they are guarded."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int, int], Any], step: int = 0) -> list[Any]:
    """What every thread got for a step, all of them started together; refusals among it."""
    start = Barrier(THREADS)

    def run(thread: int) -> Any:
        start.wait()
        try:
            return work(thread, step)
        except RefusalError as refusal:
            return refusal

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def check_one_point(found: list[Any]) -> None:
    """All who asked at one of the two points got one answer, all others a refusal."""
    by_point = [found[0::2], found[1::2]]
    refused = [all(isinstance(one, RefusalError) for one in answers) for answers in by_point]
    assert sorted(refused) == [False, True], found
    answers = {one if isinstance(one, bytes) else str(one) for one in by_point[refused.index(False)]}
    assert len(answers) == 1


@pytest.mark.parametrize("batch", [Full(), Disjoint(size=8)], ids=["all units", "a secret order"])
@pytest.mark.parametrize("kept", [False, True], ids=["no ledger", "a ledger"])
def test_a_silo_answers_a_step_at_one_point(tmp_path: Path, batch: Any, kept: bool) -> None:
    ledger = ledger_at(tmp_path / "l", epsilon=100.0) if kept else None
    silo, units = silo_of(GOOD, seed=None, ledger=ledger)
    silo.accept(plan_of(mean_of(GRID), rounds=STEPS, statistics=("shifted",), batch=batch))
    for step in range(STEPS):
        check_one_point(at_once(lambda k, r: silo.answer(ask_at(r, POINTS[k % 2])), step))
    if isinstance(batch, Disjoint):
        assert sorted(unit for taken in units.taken for unit in taken) == list(range(40))
    if ledger is not None:
        ledger.close()


def test_a_trusted_server_publishes_a_step_at_one_point() -> None:
    plan = plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), rounds=STEPS)
    silo, _ = silo_of(GOOD)
    silo.accept(plan)
    answers = [{0: silo.answer(ask_at(step))} for step in range(STEPS)]
    server = Server(plan, [40], rng=np.random.default_rng(0))
    server.accept(run="run", budget=None, ledger=None, simulated=True)

    def publish(thread: int, step: int) -> bytes:
        query = ask_at(step, POINTS[thread % 2])
        known = server.released(query)
        means = server.means(query, answers[step], asked=[0]) if known is None else known
        return means[0].tobytes()

    for step in range(STEPS):
        check_one_point(at_once(publish, step))


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_a_federation_goes_through_a_step_at_one_point(trust: TrustModel) -> None:
    silo, _ = silo_of(GOOD)
    ask = InProcess([silo], rng=np.random.default_rng(0)).open(
        plan_of(mean_of(GRID, trust=trust), rounds=STEPS)
    )
    for step in range(STEPS):
        check_one_point(at_once(lambda k, r: ask(r, {"w": POINTS[k % 2]}, (1.0,))[0].tobytes(), step))


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "ledger"])
def test_a_store_keeps_the_first_answer_and_the_first_secret(tmp_path: Path, kept: bool) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        ledger.reserve("run", price=PrivacyBudget(1.0), plan_digest=b"p", event=b"")
        store = LedgerStore(ledger, "run") if kept else LastAnswer()
        for step in range(STEPS):
            found = at_once(lambda k, r: store.keep(r, b"q%d" % (k % 2), b"answer %d" % k), step)
            check_one_point(found)
        assert len({store.secret(lambda: b"one") for _ in range(2)}) == 1
        secrets = at_once(lambda k, _: store.secret(lambda: b"secret %d" % k))
        assert set(secrets) == {b"one"}


def test_a_plan_that_is_accepted_while_others_ask_is_answered_from_its_first_step() -> None:
    """An answer belongs to the run that was accepted when it was asked for, whole."""
    silo, _ = silo_of(GOOD, seed=None)
    plan = plan_of(mean_of(GRID), rounds=STEPS)
    silo.accept(plan)

    def work(thread: int, _: int) -> Any:
        if thread % 2:
            return silo.accept(plan).epsilon
        return [len(open_answer(silo.answer(ask_at(0)), party=0)) for _ in range(3)]

    found = at_once(work)
    assert {str(one) for one in found[0::2]} == {"[1, 1, 1]"}
    assert len({float(one) for one in found[1::2]}) == 1


FIRST_PLANS = """
import sys
from threading import Barrier, Thread
from tacit.federation.plan import Plan
text = sys.stdin.read()
sys.setswitchinterval(1e-6)
start, read = Barrier(8), []
def work():
    start.wait()
    read.append(Plan.from_toml(text).digest())
threads = [Thread(target=work) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
print(len(read), len(set(read)))
"""


def test_the_first_plans_of_a_process_may_be_read_by_many_threads() -> None:
    """Silos of one process are proposed the same plan at once, before anybody has read one."""
    text = plan_of(parties=3).to_toml()
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FIRST_PLANS],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "8 1"), ran.stderr
