"""What a federation in one process spends, and what a restart of it can repeat."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError
from tacit.federation import (
    Disjoint,
    Everybody,
    Fixed,
    Full,
    InProcess,
    Participation,
    RandomSubset,
    Scheduled,
    Server,
    Silo,
)
from tacit.ledger import Ledger
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import (
    AT,
    DELTA,
    DIM,
    GAUSSIAN,
    GRID,
    ledger_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
    silos_of,
)

CENTRAL = TrustModel.CENTRAL
DATA = [rows(k, n) for k, n in enumerate((8, 20, 5, 11, 16))]
N = len(DATA)


def with_ledgers(folder: Path, opened: ExitStack) -> list[Silo]:
    """Silos that keep accounts."""
    ledgers = [opened.enter_context(ledger_at(folder / str(k))) for k in range(N)]
    return [silo_of(data, seed=None, ledger=one)[0] for data, one in zip(DATA, ledgers, strict=True)]


def test_ledgers_of_a_round_wait_for_the_disk_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, a round would wait for the disk as often as it has silos."""
    everybody, store = Barrier(N), Ledger.store_answer

    def waits(self: Ledger, *args: Any, **kwargs: Any) -> bytes:
        everybody.wait(timeout=60)  # raises where one of them has to wait for another
        return store(self, *args, **kwargs)

    with ExitStack() as opened:
        ask = InProcess(with_ledgers(tmp_path, opened)).open(plan_of(mean_of(GRID), parties=N, rounds=2))
        monkeypatch.setattr(Ledger, "store_answer", waits)
        assert [ask(step, AT, (1.0,))[0].shape for step in range(2)] == [(DIM,)] * 2


def test_nothing_of_a_round_leaves_before_all_of_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, left = Ledger.store_answer, []

    def fails(self: Ledger, *args: Any, **kwargs: Any) -> bytes:
        if self.path.name == "3":
            raise LedgerError("the disk is full")
        return store(self, *args, **kwargs)

    monkeypatch.setattr(Server, "means", lambda *args, **kwargs: left.append(args))
    with ExitStack() as opened:
        ask = InProcess(with_ledgers(tmp_path, opened)).open(plan_of(mean_of(GRID), parties=N))
        monkeypatch.setattr(Ledger, "store_answer", fails)
        with pytest.raises(LedgerError, match="the disk is full"):
            ask(0, AT, (1.0,))
    assert left == []
    assert ask.traffic.answered.tolist() == [0] * N


def server_rng() -> np.random.Generator:
    return np.random.default_rng(77)


def test_rule_1_if_one_silo_refuses_none_has_spent_anything(tmp_path: Path) -> None:
    with (
        ledger_at(tmp_path / "a") as first,
        ledger_at(tmp_path / "b") as second,
        ledger_at(tmp_path / "c", epsilon=0.01) as poor,
    ):
        silos = [silo_of(DATA[0], ledger=first)[0], silo_of(DATA[1], ledger=second)[0]]
        plan = plan_of(mean_of(GAUSSIAN), parties=2)
        with pytest.raises(BudgetError, match="nothing was spent"):
            InProcess([silos[0], silo_of(DATA[1], ledger=poor)[0]], rng=server_rng()).open(plan)
        with pytest.raises(ParameterError, match="the plan is for 3 silos, got 2"):
            InProcess(silos, rng=server_rng()).open(plan_of(mean_of(GAUSSIAN), parties=3))
        with pytest.raises(ParameterError, match="weights must be 2 finite numbers"):
            InProcess(silos, rng=server_rng()).open(plan, weights=(1.0,))
        assert first.entries() == second.entries() == poor.entries() == []
        InProcess(silos, rng=server_rng()).open(plan)
        assert len(first.entries()) == len(second.entries()) == 1


@pytest.mark.parametrize("participation", [Everybody(), RandomSubset(2), Scheduled([[0], [1, 3]])])
def test_rule_5_silos_that_the_server_picks_earn_no_amplification(participation: Participation) -> None:
    plan = plan_of(mean_of(GAUSSIAN), parties=N, batch=Fixed(rate=0.2))
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(plan, participation=participation)
    for silo, price in zip(silos_of(DATA), ask.guarantees, strict=True):
        assert price == silo.accept(plan)


def test_under_central_trust_the_server_pays_and_silos_do_not(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=N)
    with ledger_at(tmp_path / "l") as ledger:
        ask = InProcess(silos_of(DATA), ledger=ledger, rng=server_rng()).open(plan)
        (price,) = ask.guarantees
        assert price.event == plan.event([len(v) for v in DATA], CENTRAL)
        assert ledger.spent().epsilon == price.epsilon
        assert price.simulated


def test_under_central_trust_the_budget_is_the_servers() -> None:
    plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=N)
    (price,) = InProcess(silos_of(DATA)).open(plan, budget=PrivacyBudget(10.0, DELTA)).guarantees
    assert price.epsilon < 10
    with pytest.raises(BudgetError, match=r"the plan costs the trusted server epsilon .* above the agreed"):
        InProcess(silos_of(DATA)).open(plan, budget=PrivacyBudget(0.01, DELTA))


def test_a_central_guarantee_is_simulated_if_secret_batches_are() -> None:
    secret = [silo_of(values, seed=None)[0] for values in DATA]
    for silos, batch, simulated in (
        (silos_of(DATA), Fixed(size=2), True),
        (silos_of(DATA), Full(), False),
        (secret, Fixed(size=2), False),
    ):
        plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=N, batch=batch)
        assert InProcess(silos).open(plan).guarantees[0].simulated is simulated


def test_rule_3_asking_a_trusted_server_again_averages_no_noise_away() -> None:
    plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=N)
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(plan)
    first = ask(0, AT, (1.0,))[0]
    assert {ask(0, AT, (1.0,))[0].tobytes() for _ in range(5)} == {first.tobytes()}
    assert ask.traffic.answered.tolist() == [1] * N
    with pytest.raises(RefusalError, match="answered at another point"):
        ask(0, {"w": np.ones(DIM)}, (1.0,))
    with pytest.raises(RefusalError, match="answered at another point"):
        ask(0, AT, (0.5,))


def test_rule_3_a_restarted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GRID, trust=CENTRAL), parties=2, rounds=3)
    with ledger_at(tmp_path / "l") as ledger:
        ask = InProcess(silos_of(DATA[:2]), ledger=ledger).open(plan)
        sent = [ask(step, AT, (1.0,))[0] for step in range(2)]
    with Ledger.open(tmp_path / "l") as ledger:
        again = InProcess(silos_of(DATA[:2], seed=50), ledger=ledger).open(plan)
        np.testing.assert_array_equal([again(step, AT, (1.0,))[0] for step in range(2)], sent)
        assert again.traffic.answered.tolist() == [0, 0]
        again(2, AT, (1.0,))
        with pytest.raises(RefusalError, match="answered at another point"):
            again(1, {"w": np.ones(DIM)}, (1.0,))
        assert len(ledger.entries()) == 1


def test_rule_3_a_restarted_federation_of_silos_with_ledgers_repeats_and_goes_on(tmp_path: Path) -> None:
    plan = plan_of(mean_of(GRID), parties=2, rounds=3)
    for k in range(2):
        ledger_at(tmp_path / str(k)).close()
    sent = []
    for rounds in (2, 3):
        ledgers = [Ledger.open(tmp_path / str(k)) for k in range(2)]
        silos = [silo_of(v, seed=None, ledger=one)[0] for v, one in zip(DATA[:2], ledgers, strict=True)]
        ask = InProcess(silos).open(plan)
        sent.append([ask(step, AT, (1.0,))[0].tolist() for step in range(rounds)])
        for one in ledgers:
            assert len(one.entries()) == 1
            one.close()
    assert sent[1][:2] == sent[0]
    assert sent[1][2] not in sent[0]


def test_a_run_ends_when_its_silos_accept_another() -> None:
    silos = silos_of(DATA)
    plan = plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=N, batch=Disjoint(size=1))
    first = InProcess(silos, rng=server_rng()).open(plan)
    first(0, AT, (1.0,))
    second = InProcess(silos, rng=server_rng()).open(plan)
    with pytest.raises(RefusalError, match="has closed this run, or has accepted another"):
        first(1, AT, (1.0,))
    second(0, AT, (1.0,))


def test_an_interrupted_central_run_of_disjoint_batches_keeps_its_order(tmp_path: Path) -> None:
    """With a new order, a unit could be in two rounds, and only one of them is paid for."""
    plan = plan_of(mean_of(GRID, trust=CENTRAL), parties=2, rounds=4, batch=Disjoint(size=2))
    used: list[list[int]] = [[], []]
    with ledger_at(tmp_path / "l") as ledger:
        for step in range(4):
            made = [silo_of(values, seed=None) for values in (DATA[0], DATA[4])]
            InProcess([silo for silo, _ in made], ledger=ledger).open(plan)(step, AT, (1.0,))
            for party, (_, units) in enumerate(made):
                used[party] += [index for taken in units.taken for index in taken]
        assert len(ledger.entries()) == 1
    for indices in used:
        assert len(indices) == len(set(indices)) == 4 * 2


def test_rule_1_a_name_that_one_silo_knows_with_another_plan_costs_the_others_nothing(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "a") as first, ledger_at(tmp_path / "b") as second:
        silos = [silo_of(v, ledger=one)[0] for v, one in zip(DATA[:2], (first, second), strict=True)]
        silos[1].accept(plan_of(mean_of(GRID), rounds=9), run="june")
        with pytest.raises(
            LedgerError,
            match=r"run 'june' is reserved already, .* in the ledger of silo 'silo'; nothing was spent",
        ):
            InProcess(silos).open(plan_of(mean_of(GRID), parties=2), run="june")
        assert first.entries() == []


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, CENTRAL])
def test_a_run_that_goes_on_asks_the_same_silos_again(tmp_path: Path, trust: TrustModel) -> None:
    plan = plan_of(mean_of(GRID, trust=trust), parties=N, rounds=8, statistics=("shifted",))
    files = [ledger_at(tmp_path / str(k)) for k in range(N + 1)]
    local = trust is TrustModel.LOCAL
    paths = []
    for _ in range(2):
        silos = [
            silo_of(v, seed=None, ledger=one if local else None)[0]
            for v, one in zip(DATA, files[:N], strict=True)
        ]
        ask = InProcess(silos, ledger=None if local else files[N]).open(plan, participation=RandomSubset(2))
        w, path, rounds = np.zeros(DIM), [], []
        for step in range(8):
            before = ask.traffic.answered.copy()
            w = w - 0.5 * ask(step, {"w": w}, (1.0,))[0]
            path.append(w)
            rounds.append(np.flatnonzero(ask.traffic.answered - before).tolist())
        paths.append(path)
        if local:
            assert len({tuple(chosen) for chosen in rounds}) > 1
            assert all(len(chosen) == 2 for chosen in rounds)
    np.testing.assert_array_equal(paths[0], paths[1])
    for file in files:
        file.close()


def test_random_silos_come_from_public_names_or_from_the_seed_of_a_simulation() -> None:
    def chosen(run: str, rounds: int = 12, seed: int | None = None) -> list[tuple[int, ...]]:
        plan = plan_of(parties=N, rounds=rounds)
        ask = InProcess(silos_of(DATA), public_seed=seed).open(plan, run=run, participation=RandomSubset(2))
        found = []
        for step in range(12):
            before = ask.traffic.answered.copy()
            ask(step, AT, (1.0,))
            found.append(tuple(np.flatnonzero(ask.traffic.answered - before).tolist()))
        return found

    assert chosen("a") == chosen("a")
    assert chosen("a") != chosen("b")
    assert chosen("a") != chosen("a", rounds=13)
    assert chosen("a", seed=1) == chosen("b", seed=1) != chosen("a", seed=2)
