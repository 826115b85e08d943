"""Silos of one process whose sums are taken in one call answer as each would by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation import Batch, Circle, Disjoint, Fixed, Full, InProcess, JoinedStatistic, Poisson, Silo
from tacit.federation.joined import join_sums
from tacit.numerics import Array
from tacit.privacy import Relation, TrustModel
from tests.federation.world import (
    AT,
    DIM,
    GRID,
    Fused,
    Rows,
    ask_at,
    ledger_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
)

SIZES = (7, 4, 9, 3)
DATA = [rows(k, n) for k, n in enumerate(SIZES)]


@dataclass
class Together(Fused):
    """`fused`, of all silos at once; it counts the calls, and the silos of the last one."""

    joins: bool = True
    calls: int = 0
    alone: int = 0
    silos: int = 0
    fails: bool = False

    def clipped_sum(self, units: Rows, at: Mapping[str, Array], radius: float, dtype: Any) -> Array:
        self.alone += len(units) > 0
        return super().clipped_sum(units, at, radius, dtype)

    def clipped_sums(
        self, silos: Sequence[Rows], at: Mapping[str, Array], radius: float, dtype: Any
    ) -> Array:
        self.calls, self.silos = self.calls + 1, len(silos)
        if self.fails:
            raise KeyError
        return np.stack([super(Together, self).clipped_sum(one, at, radius, dtype) for one in silos])


def silos_of(statistic: Any, data: Sequence[Array] = DATA, folder: Path | None = None) -> list[Silo]:
    def ledger(k: int) -> Any:
        return None if folder is None else ledger_at(folder / str(k))

    known = {"fused": statistic}
    return [silo_of(x, seed=k, statistics=known, ledger=ledger(k))[0] for k, x in enumerate(data)]


def answers(silos: list[Silo], plan: Any, *, joined: bool, rounds: int = 3) -> list[list[bytes]]:
    """What silos answer, round by round."""
    for k, one in enumerate(silos):
        one.accept(plan, party=k)
    found = []
    for step in range(rounds):
        query = ask_at(step)
        if joined:
            join_sums(query, silos)
        found.append([one.prepare(query).store() for one in silos])
    return found


@pytest.mark.parametrize("batch", [Full(), Fixed(size=2), Poisson(rate=0.5), Disjoint(size=1)])
@pytest.mark.parametrize("noise", [GRID, None])
def test_answers_are_those_of_each_silo_by_itself(batch: Batch, noise: Any) -> None:
    relation = Relation.ADD_REMOVE if isinstance(batch, Poisson) else Relation.REPLACE_ONE
    plan = plan_of(mean_of(noise, relation=relation), parties=4, batch=batch, statistics=("fused",), rounds=3)
    apart, together = Together(joins=False), Together()
    assert isinstance(together, JoinedStatistic)

    def made(statistic: Together) -> list[Silo]:
        planned = [len(x) if relation is Relation.ADD_REMOVE else None for x in DATA]
        known = {"fused": statistic}
        return [
            silo_of(x, seed=k, statistics=known, planned=n)[0]
            for k, (x, n) in enumerate(zip(DATA, planned, strict=True))
        ]

    assert answers(made(together), plan, joined=True) == answers(made(apart), plan, joined=True)
    assert (together.calls, together.silos, together.alone) == (3, 4, 0)
    assert (apart.calls, apart.alone > 0) == (0, True)


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_a_round_in_one_process_takes_one_call(trust: TrustModel) -> None:
    plan = plan_of(mean_of(trust=trust), parties=4, statistics=("fused",))
    statistic = Together()
    ask = InProcess(silos_of(statistic), rng=np.random.default_rng(0)).open(plan)
    np.testing.assert_allclose(ask(0, AT, (1.0,))[0], np.concatenate(DATA).mean(axis=0), atol=1e-14)
    assert (statistic.calls, statistic.silos, statistic.alone) == (1, 4, 0)


def test_one_silo_that_spoils_its_sum_or_the_call_changes_no_other() -> None:
    bad = [x.copy() for x in DATA]
    bad[1][0] = np.nan
    plan = plan_of(parties=4, statistics=("fused",))
    alone = answers(silos_of(Together(), bad), plan, joined=False)
    assert answers(silos_of(Together(), bad), plan, joined=True) == alone
    assert answers(silos_of(Together(fails=True), bad), plan, joined=True) == alone
    good = answers(silos_of(Together()), plan, joined=True)
    assert [a == b for a, b in zip(good[0], alone[0], strict=True)] == [True, False, True, True]


@pytest.mark.parametrize(
    ("limit", "least", "calls", "silos"), [("_NUMBERS", 4 * DIM, 3, 4), ("_UNITS", 2 * max(SIZES), 6, 2)]
)
def test_what_takes_too_much_memory_is_taken_silo_by_silo(
    limit: str, least: int, calls: int, silos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, statistic = plan_of(parties=4, statistics=("fused",)), Together()
    expected = answers(silos_of(Together()), plan, joined=True)
    monkeypatch.setattr(f"tacit.federation.joined.{limit}", least - 1)
    assert answers(silos_of(statistic), plan, joined=True) == expected
    assert statistic.calls == 0
    monkeypatch.setattr(f"tacit.federation.joined.{limit}", least)
    assert answers(silos_of(statistic), plan, joined=True) == expected
    assert (statistic.calls, statistic.silos) == (calls, silos)


def test_an_answer_that_is_stored_is_not_computed_again(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GRID), parties=4, batch=Fixed(size=2), statistics=("fused",), rounds=3)
    statistic = Together()
    silos = silos_of(statistic, folder=tmp_path)
    first = answers(silos, plan, joined=True)
    assert answers(silos, plan, joined=True) == first
    assert (statistic.calls, statistic.alone) == (3, 0)


def test_what_was_drawn_is_for_the_next_answer_only() -> None:
    """Else a batch could be used after another answer for its step has left."""
    plan = plan_of(mean_of(GRID), batch=Fixed(size=2), statistics=("fused",))
    (silo,) = silos_of(Together(), DATA[:1])
    silo.accept(plan)
    query, other = ask_at(0), ask_at(1)
    drawn = silo.draw(query)
    assert drawn is not None
    drawn.sums[0] = np.full(DIM, 0.5)
    silo.prepare(other)
    kept = silo.answer(query)
    again = silos_of(Together(), DATA[:1])[0]
    again.accept(plan)
    again.draw(query)
    again.prepare(other)
    assert again.answer(query) == kept
    assert silo.draw(query) is None  # it is there


def test_what_may_not_be_asked_draws_nothing() -> None:
    (silo,) = silos_of(Together(), DATA[:1])
    with pytest.raises(RefusalError, match="no plan"):
        silo.draw(ask_at(0))
    silo.accept(plan_of(statistics=("fused",)))
    with pytest.raises(RefusalError, match="outside"):
        silo.draw(ask_at(99))
    with pytest.raises(RefusalError, match="circle"):
        silo.draw(ask_at(0), Circle((0,), (7,), (None,), b"x" * 16))
