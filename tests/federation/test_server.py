from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError, UnknownNameError
from tacit.federation import Disjoint, Fixed, Full, Plan, Poisson, Query, Server, Weights
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, Message, SignVoteMean
from tacit.numerics import Array
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, TrustModel, Unit
from tests.federation.world import DIM, GAUSSIAN, GRID, RADIUS, ask_at, ledger_at, mean_of, plan_of, rows

CENTRAL = TrustModel.CENTRAL


def server_of(
    plan: Plan, sizes: Sequence[int], *, weights: Weights = "records", uniform: bool = True
) -> Server:
    return Server(plan, sizes, weights=weights, uniform=uniform, rng=np.random.default_rng(0))


def accept(server: Server, *, ledger: Ledger | None = None, budget: PrivacyBudget | None = None) -> Guarantee:
    return server.accept(run="run", budget=budget, ledger=ledger, simulated=False)


def answer_of(*payloads: Array, width: int = 0) -> bytes:
    """An answer with one message per statistic."""
    messages = [[Message(payload=p, width=width).to_bytes()] for p in payloads]
    return msgspec.msgpack.encode({"messages": messages})


def mean(server: Server, sums: dict[int, Array], *, asked: Sequence[int] | None = None) -> Array:
    """The mean of one statistic from the sums that silos sent."""
    answers = {party: answer_of(total) for party, total in sums.items()}
    return server.means(ask_at(0), answers, asked=list(sums) if asked is None else asked)[0]


SIZES = [10, 30, 60]
SUMS = {k: np.full(DIM, float(n * (k + 1))) for k, n in enumerate(SIZES)}  # the means are 1, 2 and 3


def test_records_count_the_same() -> None:
    server = server_of(plan_of(parties=3), SIZES)
    np.testing.assert_allclose(mean(server, SUMS), (10 * 1 + 30 * 2 + 60 * 3) / 100, rtol=1e-14)


def test_records_count_the_same_where_silos_use_batches_of_one_size() -> None:
    server = server_of(plan_of(parties=3, batch=Fixed(size=5)), SIZES)
    sums = {k: np.full(DIM, 5.0 * (k + 1)) for k in range(3)}
    np.testing.assert_allclose(mean(server, sums), (10 * 1 + 30 * 2 + 60 * 3) / 100, rtol=1e-14)


def test_silos_count_the_same() -> None:
    server = server_of(plan_of(parties=3), SIZES, weights="silos")
    np.testing.assert_allclose(mean(server, SUMS), 2.0, rtol=1e-14)


@pytest.mark.parametrize("weights", [(0.5, 0.25, 0.25), [2, 1, 1], np.array([0.5, 0.25, 0.25])])
def test_given_weights_count_relative_to_their_sum(weights: Any) -> None:
    server = server_of(plan_of(parties=3), SIZES, weights=weights)
    np.testing.assert_allclose(mean(server, SUMS), 0.5 * 1 + 0.25 * 2 + 0.25 * 3, rtol=1e-14)


@pytest.mark.parametrize("weights", ["records", "silos", (0.7, 0.2, 0.1)])
def test_the_mean_over_a_random_set_is_unbiased_for_the_mean_of_all(weights: Weights) -> None:
    server = server_of(plan_of(parties=3), SIZES, weights=weights)
    everybody = mean(server, SUMS)
    for size in (1, 2, 3):
        sets = list(combinations(range(3), size))
        over = np.mean([mean(server, {k: SUMS[k] for k in chosen}) for chosen in sets], axis=0)
        np.testing.assert_allclose(over, everybody, rtol=1e-13)


def test_over_a_random_set_silos_enter_with_n_over_m_times_their_weight() -> None:
    server = server_of(plan_of(parties=3), SIZES, weights=(0.7, 0.2, 0.1))
    found = mean(server, {k: SUMS[k] for k in (0, 2)})
    np.testing.assert_allclose(found, 3 / 2 * (0.7 * 1 + 0.1 * 3), rtol=1e-14)


@pytest.mark.parametrize("weights", ["records", "silos", (0.7, 0.2, 0.1)])
@pytest.mark.parametrize("answered", [(0,), (1, 2), (0, 2)])
def test_the_mean_is_that_of_those_who_answered(weights: Weights, answered: tuple[int, ...]) -> None:
    p = {"records": np.array([0.1, 0.3, 0.6]), "silos": np.ones(3) / 3}.get(
        str(weights), np.array([0.7, 0.2, 0.1])
    )
    expected = sum(p[k] * (k + 1) for k in answered) / sum(p[k] for k in answered)
    sums = {k: SUMS[k] for k in answered}
    drawn = server_of(plan_of(parties=3), SIZES, weights=weights)
    np.testing.assert_allclose(mean(drawn, sums, asked=range(3)), expected, rtol=1e-14)
    listed = server_of(plan_of(parties=3), SIZES, weights=weights, uniform=False)
    np.testing.assert_allclose(mean(listed, sums, asked=range(3)), expected, rtol=1e-14)
    np.testing.assert_allclose(mean(listed, sums), expected, rtol=1e-14)  # a list is no random set


def test_the_divisor_of_a_poisson_sample_is_the_expected_number() -> None:
    zero_out = mean_of(relation=Relation.ZERO_OUT)
    server = server_of(plan_of(zero_out, parties=2, batch=Poisson(0.05)), [30, 70])
    np.testing.assert_allclose(mean(server, {0: np.ones(DIM), 1: np.ones(DIM)}), 2 / 5.0, rtol=1e-14)
    by_silo = server_of(plan_of(zero_out, parties=2, batch=Poisson(0.05)), [30, 70], weights="silos")
    np.testing.assert_allclose(
        mean(by_silo, {0: np.ones(DIM), 1: np.ones(DIM)}), (1 / 1.5 + 1 / 3.5) / 2, rtol=1e-14
    )


def signs_of(server: Server, sent: dict[int, list[int]]) -> Array:
    """The decoded votes in lengths of one coordinate; 0 is a positive sign on the wire, -1 a negative one."""
    answers = {party: answer_of(np.array(bits, dtype=np.int64), width=1) for party, bits in sent.items()}
    found = server.means(ask_at(0), answers, asked=list(sent))[0]
    return np.asarray(found / (RADIUS / math.sqrt(DIM)))


BALLOTS = {0: [0, 0, -1], 1: [0, -1, -1], 2: [-1, -1, 0]}
# Silo 2 holds more records than the others together; coordinate by coordinate the signs are ++-, +--, --+.


def test_votes_of_silos_that_count_the_same_are_counted_together() -> None:
    server = server_of(plan_of(SignVoteMean(dim=DIM), parties=3), SIZES, weights="silos")
    np.testing.assert_allclose(signs_of(server, BALLOTS), [1, -1, -1])
    np.testing.assert_allclose(signs_of(server, {k: BALLOTS[k] for k in (0, 1)}), [1, 0, -1])  # a tie is 0


def test_votes_of_unequal_silos_give_a_weighted_mean_of_signs_and_its_sign_the_weighted_majority() -> None:
    server = server_of(plan_of(SignVoteMean(dim=DIM), parties=3), SIZES)
    np.testing.assert_allclose(
        signs_of(server, BALLOTS), [0.1 + 0.3 - 0.6, 0.1 - 0.3 - 0.6, -0.1 - 0.3 + 0.6]
    )
    given = server_of(plan_of(SignVoteMean(dim=DIM), parties=3), SIZES, weights=(3, 1, 1))
    np.testing.assert_allclose(signs_of(given, BALLOTS), [0.6, 0.2, -0.6])


def test_a_majority_of_some_silos_is_no_share_of_all() -> None:
    """Means of a random subset are scaled to be unbiased; a majority stands for itself."""
    for trust in (TrustModel.LOCAL, CENTRAL):
        server = server_of(plan_of(SignVoteMean(dim=DIM, trust=trust), parties=3), SIZES)
        if trust is CENTRAL:
            accept(server)
        np.testing.assert_allclose(signs_of(server, {2: BALLOTS[2]}), [-1, -1, 1])


def test_votes_are_divided_by_no_number_of_units() -> None:
    mean = SignVoteMean(dim=DIM, neighbours=Neighbours(Relation.ZERO_OUT))
    whole, sampled = (
        signs_of(server_of(plan_of(mean, parties=3, batch=batch), [1, 30, 60]), BALLOTS)
        for batch in (Full(), Poisson(0.03))
    )
    np.testing.assert_array_equal(whole, sampled)  # for sums, the silo of one unit would count 33 times


def test_a_trusted_server_gives_every_silo_one_vote() -> None:
    server = server_of(plan_of(SignVoteMean(dim=DIM, trust=CENTRAL), parties=3), SIZES)
    accept(server)
    np.testing.assert_allclose(signs_of(server, BALLOTS), [1, -1, -1])


def test_points_of_walks_are_averaged_by_weight() -> None:
    plan = plan_of(parties=3, walks=2)
    query = Query(0, {"w": np.full(DIM, 9.0), "step_size": np.array(0.1)}, (1.0,))
    points = {k: answer_of(np.full(DIM, k + 1.0, dtype=np.float32)) for k in (0, 2)}
    server = server_of(plan, SIZES, weights=(0.6, 0.2, 0.2))
    # Points are no gradients: their weights add up to 1 in any case.
    np.testing.assert_allclose(server.means(query, points, asked=[0, 2])[0], 0.75 * 1 + 0.25 * 3, rtol=1e-7)
    np.testing.assert_array_equal(server.skip(query)[0], np.full(DIM, 9.0))


def test_a_round_without_answers_is_zero() -> None:
    server = server_of(plan_of(statistics=("row", "shifted")), [9])
    assert [m.tolist() for m in server.skip(ask_at(0))] == [[0.0] * DIM, [0.0] * DIM]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((0.5, 0.5), "weights must be 3 finite numbers > 0"),
        ((0.5, 0.5, 0.0), "weights must be 3 finite numbers > 0"),
        ((0.5, 0.5, -1.0), "weights must be 3 finite numbers > 0"),
        ((0.5, 0.5, math.inf), "weights must be 3 finite numbers > 0"),
        ((0.5, 0.5, math.nan), "weights must be 3 finite numbers > 0"),
    ],
)
def test_bad_weights_are_refused(weights: Weights, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        server_of(plan_of(parties=3), SIZES, weights=weights)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'silos'"):
        server_of(plan_of(parties=3), SIZES, weights="silo")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the plan is for 3 silos, got 2"):
        server_of(plan_of(parties=3), SIZES[:2])
    with pytest.raises(ParameterError, match="at most the 10 units of the silo, got 11"):
        server_of(plan_of(parties=3, batch=Fixed(size=11)), SIZES)
    others: tuple[Weights, ...] = ("silos", (1.0, 1.0, 1.0))
    for weights in others:
        with pytest.raises(ParameterError, match="weights must be 'records' under central trust"):
            server_of(plan_of(mean_of(GAUSSIAN, trust=CENTRAL), parties=3), SIZES, weights=weights)
    parties = AdditiveMean(dim=DIM, neighbours=Neighbours(Relation.ADD_REMOVE, Unit.PARTY))
    with pytest.raises(ParameterError, match="everybody sees who takes part"):
        server_of(plan_of(parties), [1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "party 0 sent something that is not an answer"),
        (answer_of(), "party 0 sent answers to other statistics"),
        (answer_of(np.zeros(DIM), np.zeros(DIM)), "party 0 sent answers to other statistics"),
        (msgspec.msgpack.encode({"messages": [[]]}), "party 0 sent answers to other statistics"),
        (answer_of(np.zeros(DIM + 1)), "a message must hold 3 numbers"),
        (answer_of(np.zeros(DIM, dtype=np.float32)), "a message must hold 3 numbers of type float64"),
    ],
)
def test_answers_of_another_form_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        server_of(plan_of(), [9]).means(ask_at(0), {0: data}, asked=[0])


def test_points_of_another_form_are_refused() -> None:
    server = server_of(plan_of(walks=2), [9])
    query = Query(0, {"w": np.zeros(DIM), "step_size": np.array(0.1)}, (1.0,))
    with pytest.raises(ParameterError, match="a point of another shape"):
        server.means(query, {0: answer_of(np.zeros(DIM + 1))}, asked=[0])


# --- the trusted server is who adds the noise, so it is who enforces


def trusted(*, batch: Full | Fixed | Disjoint | None = None) -> Plan:
    return plan_of(mean_of(GRID, trust=CENTRAL), parties=2, batch=batch)


def grid_sums(seed: int) -> dict[int, bytes]:
    sums = [np.rint(rows(seed + k, 9).sum(axis=0) * GRID.steps / RADIUS).astype(np.int64) for k in range(2)]
    return {k: answer_of(total, width=64) for k, total in enumerate(sums)}


def test_rule_1_a_trusted_server_reserves_the_price_of_the_pooled_data(tmp_path: Path) -> None:
    plan = trusted(batch=Fixed(size=3))
    with ledger_at(tmp_path / "l") as ledger:
        price = accept(server_of(plan, [9, 30]), ledger=ledger)
        assert price.event == plan.event([9, 30], CENTRAL)
        assert ledger.spent().epsilon == price.epsilon
        accept(server_of(plan, [9, 30]), ledger=ledger)
        assert ledger.spent().epsilon == price.epsilon
        assert price.simulated
        assert "whatever everybody but the trusted server sees, replacing one record changes" in str(price)
        assert "), provided that nobody learns which records are sampled." in str(price)
        with pytest.raises(BudgetError, match="the plan costs the trusted server epsilon"):
            accept(server_of(plan, [9, 30]), budget=PrivacyBudget(0.01, 1e-5))


def test_rule_1_a_trusted_server_checks_its_ledger(tmp_path: Path) -> None:
    with (
        ledger_at(tmp_path / "a", epsilon=0.01) as small,
        pytest.raises(BudgetError, match="nothing was spent"),
    ):
        accept(server_of(trusted(), [9, 9]), ledger=small)
    with (
        ledger_at(tmp_path / "b", relation=Relation.ADD_REMOVE) as other,
        pytest.raises(LedgerError, match="the ledger of the trusted server is about adding or removing"),
    ):
        accept(server_of(trusted(), [9, 9]), ledger=other)
    with (
        ledger_at(tmp_path / "c") as ledger,
        pytest.raises(
            BudgetError, match="the plan claims no privacy; the ledger of the trusted server refuses"
        ),
    ):
        accept(server_of(plan_of(mean_of(trust=CENTRAL), parties=2), [9, 9]), ledger=ledger)


def test_rule_3_a_trusted_server_releases_one_mean_per_step() -> None:
    server = server_of(trusted(), [9, 9])
    accept(server)
    assert server.released(ask_at(0)) is None
    (first,) = server.means(ask_at(0), grid_sums(1), asked=[0, 1])
    known = server.released(ask_at(0))
    assert known is not None
    assert known[0].tobytes() == first.tobytes()
    with pytest.raises(RefusalError, match="step 0 has been answered at another point"):
        server.released(ask_at(0, np.ones(DIM)))


def test_rule_3_a_restarted_trusted_server_adds_no_second_noise(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l") as ledger:
        server = server_of(trusted(), [9, 9])
        accept(server, ledger=ledger)
        (first,) = server.means(ask_at(0), grid_sums(1), asked=[0, 1])
    with Ledger.open(tmp_path / "l") as ledger:
        again, rival = server_of(trusted(), [9, 9]), server_of(trusted(), [9, 9])
        accept(again, ledger=ledger)
        accept(rival, ledger=ledger)
        known = again.released(ask_at(0))
        assert known is not None
        assert known[0].tobytes() == first.tobytes()
        with pytest.raises(RefusalError, match="step 0 has been answered at another point"):
            again.released(ask_at(0, np.ones(DIM)))
        one = again.means(ask_at(1), grid_sums(2), asked=[0, 1])[0]
        two = rival.means(ask_at(1), grid_sums(3), asked=[0, 1])[0]  # both asked before either had stored
        assert one.tobytes() == two.tobytes()


def test_under_local_trust_the_server_keeps_nothing() -> None:
    server = server_of(plan_of(mean_of(GAUSSIAN)), [9])
    server.means(ask_at(0), {0: answer_of(np.zeros(DIM, dtype=np.float32))}, asked=[0])
    assert server.released(ask_at(0)) is None
