"""What a plan says about trust counts for nothing until the owner of the data says so too."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import InProcess, InProcessRounds, Plan, Query, Server, Silo, open_answer
from tacit.means import AnyNoise, DiscreteLaplaceNoise, LaplaceNoise, NoNoise, RandK, SignVoteMean, TopKMean
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import (
    AT,
    DELTA,
    DIM,
    GAUSSIAN,
    GRID,
    STATISTICS,
    Rows,
    ask_at,
    ledger_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
)

CENTRAL = TrustModel.CENTRAL
GOOD = rows(1, 20)
BUDGET = PrivacyBudget(1.0, DELTA)
GENEROUS = PrivacyBudget(1e300, 0.5)

EXACT = {
    "central": plan_of(mean_of(GRID, trust=CENTRAL)),
    "central, nothing added": plan_of(mean_of(trust=CENTRAL)),
    "central votes": plan_of(SignVoteMean(dim=DIM, noise=GRID, trust=CENTRAL)),
    "local, nothing added": plan_of(),
    "local votes, nothing added": plan_of(SignVoteMean(dim=DIM)),
    "local, compressed": plan_of(RandK(dim=DIM, k=2)),
    "a walk, nothing added": plan_of(statistics=("shifted",), walks=2),
}
"""Plans under which a silo sends what no noise of its own protects."""


@pytest.mark.parametrize("plan", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("budget", [None, BUDGET, GENEROUS], ids=["no budget", "a budget", "any budget"])
def test_no_exact_sum_leaves_a_silo_whose_owner_did_not_say_so(
    plan: Plan, budget: PrivacyBudget | None
) -> None:
    silo = Silo(Rows(GOOD), STATISTICS)
    for accept in (silo.consider, silo.accept):
        with pytest.raises((RefusalError, BudgetError)) as error:
            accept(plan, budget=budget)
        assert "trusts_server=True" in str(error.value) or "above the agreed" in str(error.value)
    assert silo.accepted is None
    with pytest.raises(RefusalError, match="no plan was accepted"):
        silo.answer(ask_at(0))


@pytest.mark.parametrize("plan", EXACT.values(), ids=EXACT)
def test_no_word_makes_a_budget_that_a_silo_cannot_keep(plan: Plan) -> None:
    silo = Silo(Rows(GOOD), STATISTICS, trusts_server=True)
    with pytest.raises((RefusalError, BudgetError), match=r"give it to the server|above the agreed"):
        silo.accept(plan, budget=GENEROUS)
    assert silo.accept(plan).epsilon == np.inf


def test_one_step_without_noise_among_many_with_noise_is_enough_to_refuse() -> None:
    bare, noisy = plan_of(), plan_of(mean_of(GRID))
    mixed = msgspec.structs.replace(noisy, steps=(*noisy.steps, *bare.steps))
    with pytest.raises(RefusalError, match="adds no noise to what silo 'silo' sends"):
        Silo(Rows(GOOD), STATISTICS).accept(mixed)
    with pytest.raises(BudgetError, match="above the agreed"):
        Silo(Rows(GOOD), STATISTICS, trusts_server=True).accept(mixed, budget=GENEROUS)


def test_noise_of_its_own_needs_no_word() -> None:
    silo = Silo(Rows(GOOD), STATISTICS)
    assert silo.accept(plan_of(mean_of(GRID)), budget=GENEROUS).epsilon < np.inf


def test_a_federation_gives_the_budget_to_whoever_adds_the_noise() -> None:
    def run(plan: Plan, *, trusts: bool, budget: PrivacyBudget | None) -> InProcessRounds:
        return InProcess([Silo(Rows(GOOD), STATISTICS, trusts_server=trusts)]).open(plan, budget=budget)

    central = plan_of(mean_of(GRID, trust=CENTRAL))
    with pytest.raises(
        RefusalError, match="trusts the server with exact sums, the owner of silo 'silo' does"
    ):
        run(central, trusts=False, budget=None)
    with pytest.raises(BudgetError, match="costs the trusted server epsilon"):
        run(central, trusts=True, budget=PrivacyBudget(1e-3, DELTA))
    with pytest.raises(BudgetError, match="costs the trusted server epsilon inf"):
        run(plan_of(mean_of(trust=CENTRAL)), trusts=True, budget=GENEROUS)
    (price,) = run(central, trusts=True, budget=GENEROUS).guarantees
    assert price.epsilon < np.inf
    with pytest.raises(BudgetError, match="costs silo 'silo' epsilon inf"):
        run(plan_of(), trusts=True, budget=GENEROUS)


def test_an_account_that_nobody_would_charge_is_refused(tmp_path: Any) -> None:
    silo, _ = silo_of(GOOD)
    with ledger_at(tmp_path / "l") as ledger:
        with pytest.raises(ParameterError, match="ledger is the trusted server's, under central trust"):
            InProcess([silo], ledger=ledger).open(plan_of(mean_of(GRID)))
        server = Server(plan_of(mean_of(GRID)), [20], rng=np.random.default_rng(0))
        with pytest.raises(ParameterError, match="a server accepts plans of central trust only"):
            server.accept(run="run", budget=None, ledger=ledger, simulated=True)
        assert ledger.entries() == []


def test_a_trusted_server_publishes_only_what_it_has_priced() -> None:
    plan = plan_of(mean_of(GRID, trust=CENTRAL))
    silo, _ = silo_of(GOOD)
    silo.accept(plan)
    server = Server(plan, [20], rng=np.random.default_rng(0))
    with pytest.raises(RefusalError, match="publishes only what it has priced"):
        server.means(ask_at(0), {0: silo.answer(ask_at(0))}, asked=[0])


# --- the scale of the noise does not depend on the type of the radius

NOISES: list[AnyNoise] = [GAUSSIAN, LaplaceNoise(2.0), GRID, DiscreteLaplaceNoise(2.0)]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("trust", [TrustModel.LOCAL, CENTRAL], ids=str)
def test_answers_are_those_of_the_radius_as_a_python_float(noise: AnyNoise, trust: TrustModel) -> None:
    def answer(radius: Any) -> tuple[bytes, bytes]:
        plan = plan_of(mean_of(noise, trust=trust))
        silo, _ = silo_of(GOOD)
        ask = InProcess([silo], rng=np.random.default_rng(0)).open(plan)
        query = Query(0, AT, (radius,))
        sent = silo.answer(query)
        return sent, ask(0, AT, (radius,))[0].tobytes()

    plain = answer(0.5)
    for kind in (np.float16, np.float32, np.float64, np.longdouble):
        assert answer(kind(0.5)) == plain
        assert answer(kind(0.3)) == answer(float(kind(0.3)))
    assert answer(np.int8(1)) == answer(1) == answer(1.0)


def test_a_narrow_radius_hides_as_much_as_a_wide_one() -> None:
    """The scale of the noise overflowed in 16 bits, and a grid of 2**16 steps kept the signs only."""
    radii: list[Any] = [np.float16(0.5), 0.5]
    payloads = []
    for radius in radii:
        silo, _ = silo_of(GOOD, seed=3)
        silo.accept(plan_of(mean_of(GRID), rounds=200))
        sent = [open_answer(silo.answer(Query(r, AT, (radius,))), party=0)[0][0].payload for r in range(200)]
        payloads.append(np.stack(sent).astype(np.float64))
    # 600 normal deviates of one scale: their spread is within 20 % of it but once in 1e9 runs.
    spread = [payload.std() / (2 * GRID.noise_multiplier * GRID.steps) for payload in payloads]
    np.testing.assert_array_equal(payloads[0], payloads[1])
    assert abs(spread[0] - 1) < 0.2


def test_other_estimators_carry_their_own_trust() -> None:
    plan = plan_of(mean_of(GRID))
    for trust in (CENTRAL, TrustModel.SHUFFLE):
        with pytest.raises(ParameterError, match="a step has local trust, the plan"):
            msgspec.structs.replace(plan, trust=trust)
    assert isinstance(mean_of().noise, NoNoise)
    with pytest.raises(RefusalError, match="adds no noise"):
        Silo(Rows(GOOD), STATISTICS).accept(plan_of(TopKMean(dim=DIM, k=1)))
