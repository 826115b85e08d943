"""A silo whose run was closed answers nothing, forgets what it held, and goes on if it is asked to."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Disjoint, InProcess
from tests.federation.world import AT, GRID, ask_at, ledger_at, mean_of, plan_of, rows, silo_of


def test_a_closed_silo_answers_nothing() -> None:
    silo, _ = silo_of(rows(1, 20))
    silo.close()  # nothing was open
    silo.accept(plan_of(mean_of(GRID)))
    silo.answer(ask_at(0))
    silo.close()
    silo.close()
    assert silo.accepted is None
    for step in (0, 1):
        with pytest.raises(RefusalError, match="no plan was accepted"):
            silo.answer(ask_at(step))


def test_what_a_run_held_in_memory_is_freed() -> None:
    silo, _ = silo_of(rows(1, 20))
    silo.accept(plan_of(mean_of(GRID), batch=Disjoint(size=2)))
    silo.answer(ask_at(0))
    held: Any = silo.accepted
    order = weakref.ref(held.order)
    assert order() is not None
    del held
    silo.close()
    gc.collect()
    assert order() is None


def test_a_run_goes_on_after_it_was_closed_and_is_paid_once(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GRID), batch=Disjoint(size=4))
    with ledger_at(tmp_path / "l") as ledger:
        silo, units = silo_of(rows(1, 20), seed=None, ledger=ledger)
        price = silo.accept(plan)
        sent = silo.answer(ask_at(0))
        silo.close()
        assert ledger.spent().epsilon == price.epsilon  # what was answered stays answered
        silo.accept(plan)
        assert len(ledger.entries()) == 1
        assert silo.answer(ask_at(0)) == sent
        with pytest.raises(RefusalError, match="answered at another point"):
            silo.answer(ask_at(0, np.ones(3)))
        for step in (1, 2, 3):
            silo.answer(ask_at(step))
    used = [index for taken in units.taken for index in taken]
    assert len(used) == len(set(used)) == 16


def test_a_federation_does_not_go_on_with_a_silo_that_was_closed() -> None:
    made = [silo_of(rows(k, 20), name=f"silo {k}")[0] for k in range(2)]
    ask = InProcess(made).open(plan_of(mean_of(GRID), parties=2))
    ask(0, AT, (1.0,))
    made[1].close()
    with pytest.raises(RefusalError, match="silo 'silo 1' has closed this run"):
        ask(1, AT, (1.0,))
    made[1].accept(plan_of(mean_of(GRID), parties=2), party=1)
    with pytest.raises(RefusalError, match="silo 'silo 1' has closed this run"):
        ask(1, AT, (1.0,))
