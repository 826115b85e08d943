"""Rounds of aggregate trust in one process: no message is seen, whoever stays away or asks again."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError
from tacit.federation import (
    Circle,
    Crowd,
    Disjoint,
    Fixed,
    Full,
    InProcess,
    OpenSums,
    Plan,
    Poisson,
    Query,
    RandomSubset,
    Server,
    Silo,
    SiloDownError,
    open_answer,
)
from tacit.federation.answers import answer_bytes, open_sum
from tacit.federation.summed import added
from tacit.means import Message, Round
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.privacy.run_clauses import IN_ONE_PLACE
from tacit.randomness import simulated
from tests.federation.aggregates import DATA, RADII, SIZES, federation, mean_of, plan_of, silos, step_of
from tests.federation.world import AT, DIM, STATISTICS, Rows, ask_at, ledger_at
from tests.statistics import z_bound

CIRCLE = Circle(tuple(range(4)), SIZES, (None,) * 4, b"session")
TINY: dict[str, Any] = {"z": 0.002, "steps": 2**14}  # hardly any noise
TRUE = np.vstack(DATA).mean(axis=0)


def answers(plan: Plan, query: Query = ask_at(0), *, seed: int = 1) -> dict[int, bytes]:  # noqa: B008
    """What all silos send."""
    found = {}
    for k, silo in enumerate(silos(seed=seed)):
        silo.accept(plan, party=k)
        found[k] = silo.answer(query, CIRCLE)
    return found


# --- what comes out


def test_the_mean_is_that_of_all_rows_and_the_noise() -> None:
    """Bit for bit: the messages of the silos, added and decoded by hand."""
    made = plan_of()
    step = made.kinds[0][0]
    sent = answers(made)
    total = added([open_sum(step, data, party=k) for k, data in sent.items()])
    mean = step.summed[0]
    by_hand = mean.decode([Message(payload=total, width=mean.width)], Round(n=sum(SIZES), radius=1.0))
    one_by_one = mean.decode(
        [open_answer(data, party=k)[0][0] for k, data in sent.items()], Round(n=sum(SIZES), radius=1.0)
    )
    found = federation().open(made)(0, AT, RADII)[0]
    np.testing.assert_array_equal(found, by_hand)
    np.testing.assert_array_equal(found, one_by_one)


def test_the_mean_is_unbiased_with_the_error_of_all_shares() -> None:
    """m shares are priced, all n are in the sum: E|error|^2 = d (n s^2 + rounding) / (steps N)^2."""
    draws = 500
    made = plan_of(step_of(mean_of(3, z=1.0)), rounds=draws, colluding=1)
    ask, mean = federation().open(made), made.kinds[0][0].summed[0]
    errors = np.array([ask(r, AT, RADII)[0] for r in range(draws)]) - TRUE
    scale = mean.noise.steps * sum(SIZES)
    variance = len(SIZES) * mean.std**2 / scale**2
    rounding = len(SIZES) / 2 / scale
    z = z_bound(2 * DIM)
    assert np.all(np.abs(errors.mean(axis=0)) <= rounding + z * math.sqrt(variance / draws))
    # Squares of Gaussians: sd of their mean is sqrt(2 / (draws dim)) of it; rounding is a bias within a step.
    assert (errors**2).mean() == pytest.approx(
        variance, rel=z * math.sqrt(2 / (draws * DIM)) + rounding**2 / variance
    )


def test_two_means_of_a_step_are_one_message() -> None:
    made = plan_of(step_of(mean_of(**TINY), mean_of(**TINY)))
    sent = answers(made, ask_at(0, radius=(1.0, 0.5)))
    assert all([len(group) for group in open_answer(data, party=k)] == [1] for k, data in sent.items())
    one, half = federation().open(made)(0, AT, (1.0, 0.5))
    np.testing.assert_allclose(one, TRUE, atol=0.02)
    assert np.linalg.norm(half) <= 0.52


@pytest.mark.parametrize(
    "batch", [Fixed(size=3), Poisson(rate=0.5), Disjoint(size=1)], ids=["fixed", "poisson", "disjoint"]
)
def test_samples_of_silos_are_added_up_too(batch: Any) -> None:
    """The mean over rounds is that of all rows, weighted by batches."""
    draws = 4 if isinstance(batch, Disjoint) else 300
    made = plan_of(step_of(mean_of(**TINY), batch=batch), rounds=draws)
    ask = federation(trusts_server=True).open(made)  # noise that small has no price
    found = np.array([ask(r, AT, RADII)[0] for r in range(draws)])
    weights = np.array([batch.expected(n) for n in SIZES])
    expected = weights / weights.sum() @ np.array([rows.mean(axis=0) for rows in DATA])
    spread = 3 * z_bound(DIM) / math.sqrt(draws)  # rows are within the unit ball
    assert np.all(np.abs(found.mean(axis=0) - expected) < spread)
    assert found.std(axis=0).min() > 0


def test_an_empty_sample_sends_noise() -> None:
    made = plan_of(step_of(mean_of(), batch=Poisson(rate=1e-9)), rounds=3)
    for data in answers(made).values():
        assert np.abs(open_sum(made.kinds[0][0], data, party=0)).max() > 3


def test_lengths_depend_on_the_plan_alone() -> None:
    """Whatever the records, the size of the silo, or that of a sample."""
    for batch in (Full(), Poisson(rate=0.5)):
        made = plan_of(step_of(mean_of(), batch=batch))
        step = made.kinds[0][0]
        lengths = {len(data) for query in range(3) for data in answers(made, ask_at(query)).values()}
        bad = Silo(Rows(np.full((5, DIM), np.nan)), STATISTICS, sums=OpenSums(), rng=simulated(0, "bad"))
        bad.accept(made)
        lengths.add(len(bad.answer(ask_at(0), CIRCLE)))
        assert lengths == {answer_bytes(step, 1)} == {answer_bytes(step, 10**6)}


def test_a_radius_of_nothing_sends_noise_too() -> None:
    made = plan_of(rounds=2)
    for data in answers(made, ask_at(0, radius=(0.0,))).values():
        assert np.abs(open_sum(made.kinds[0][0], data, party=0)).max() > 3


# --- who arrives


def test_without_recovery_a_round_needs_everybody() -> None:
    ask = federation(lambda step, party: (step, party) == (1, 2)).open(plan_of())
    ask(0, AT, RADII)
    before = ask.traffic.bits_up.copy()
    assert ask(1, AT, RADII)[0].tolist() == [0.0] * DIM
    assert ask.traffic.skipped == 1
    assert (ask.traffic.bits_up == before).all()  # nothing has left
    assert ask(2, AT, RADII)[0].any()


def test_with_recovery_the_mean_is_that_of_the_rows_that_arrived() -> None:
    made = plan_of(step_of(mean_of(3, **TINY)), n_min=3, recover=True)
    ask = federation(lambda step, party: party == 1 or (step, party) == (1, 3)).open(made)
    np.testing.assert_allclose(
        ask(0, AT, RADII)[0], np.vstack([DATA[k] for k in (0, 2, 3)]).mean(axis=0), atol=0.02
    )
    assert not ask(1, AT, RADII)[0].any()
    assert (ask.traffic.skipped, ask.traffic.answered.tolist()) == (1, [1, 0, 1, 1])


def test_a_silo_that_dies_as_it_answers_is_left_out_or_ends_the_round() -> None:
    class Dying(Silo):
        def prepare(self, query: Query, circle: Circle | None = None) -> Any:
            if query.step == 0:
                raise SiloDownError
            return super().prepare(query, circle)

    def start(made: Plan) -> Any:
        parties: list[Any] = silos()
        parties[2] = Dying(Rows(DATA[2]), STATISTICS, sums=OpenSums(), rng=simulated(3, "d"), name="s2")
        return InProcess(parties).open(made)

    ask = start(plan_of())
    assert not ask(0, AT, RADII)[0].any()
    assert ask.traffic.answered.tolist() == [0] * 4
    assert ask(1, AT, RADII)[0].any()
    ask = start(plan_of(n_min=3, recover=True))
    assert ask(0, AT, RADII)[0].any()
    assert ask.traffic.answered.tolist() == [1, 1, 0, 1]


def test_a_step_that_was_given_up_is_not_tried_again() -> None:
    """With other noise it would be a second release, with the same a second sum."""
    away = {1}
    ask = federation(lambda _, party: party in away).open(plan_of())
    assert not ask(0, AT, RADII)[0].any()
    away.clear()
    assert not ask(0, AT, RADII)[0].any()
    with pytest.raises(RefusalError, match="asked at another point"):
        ask(0, {"w": np.ones(DIM)}, RADII)
    assert ask(1, AT, RADII)[0].any()


def test_the_same_query_gets_the_same_sum_and_another_point_is_refused() -> None:
    away: set[int] = set()
    ask = federation(lambda _, party: party in away).open(plan_of(n_min=3, recover=True))
    first = ask(0, AT, RADII)[0]
    away.add(2)
    np.testing.assert_array_equal(ask(0, AT, RADII)[0], first)  # not the sum of others
    with pytest.raises(RefusalError, match="asked at another point"):
        ask(0, {"w": np.ones(DIM)}, RADII)


def test_two_sums_of_a_step_over_other_parties_are_never_had_from_a_silo(tmp_path: Path) -> None:
    """Their difference would be what one silo sent."""
    made = plan_of(n_min=3, recover=True)
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=100.0)) for k in range(4)]

        def start(away: int | None) -> Any:
            return InProcess(silos(ledgers=ledgers, seed=None), is_down=lambda _, k: k == away).open(made)

        first = start(3)(0, AT, RADII)[0]
        with pytest.raises(RefusalError, match="another point or for another party"):
            start(None)(0, AT, RADII)  # silo 3 is back
        with pytest.raises(RefusalError, match="another point or for another party"):
            start(0)(0, AT, RADII)
        np.testing.assert_array_equal(start(3)(0, AT, RADII)[0], first)
        assert all(len(ledger.entries()) == 1 for ledger in ledgers)  # charged once, at acceptance


def test_either_all_silos_remember_what_they_sent_or_none(tmp_path: Path) -> None:
    """Averaged over restarts, the noise of silos that forget would vanish from beside that of one."""
    with ledger_at(tmp_path / "l", epsilon=100.0) as ledger:
        mixed = silos(ledgers=[None, ledger, None, None])
        with pytest.raises(LedgerError, match="must keep a ledger where others do: under aggregate trust"):
            InProcess(mixed).open(plan_of())
        assert not ledger.entries()
        mixed[1].accept(plan_of(), party=1)
        with pytest.raises(RefusalError, match="all whom it is mixed with must keep one"):
            mixed[1].answer(ask_at(0), CIRCLE)


# --- who takes part, and how they count


def test_participation_is_everybodys() -> None:
    with pytest.raises(ParameterError, match="participation must be left out under aggregate trust"):
        federation().open(plan_of(), participation=RandomSubset(3))
    with pytest.raises(ParameterError, match="participation must be left out"):
        crowd().open(plan_of(sizes=(1,) * 27), participation=RandomSubset(3))


@pytest.mark.parametrize("weights", ["silos", (1.0, 2.0, 3.0, 4.0)])
def test_rows_count_alike(weights: Any) -> None:
    with pytest.raises(ParameterError, match="weights must be 'records' under aggregate trust"):
        federation().open(plan_of(), weights=weights)


def test_a_server_sees_sums_only() -> None:
    made = plan_of()
    server = Server(made, SIZES, rng=np.random.default_rng(0))
    with pytest.raises(RefusalError, match="aggregate trust"):
        server.means(ask_at(0), answers(made), asked=range(4))
    with pytest.raises(ParameterError, match="shape \\(3,\\)"):
        server.means_of_sum(ask_at(0), np.zeros(4, dtype=np.int64), range(4))


# --- what silos send that is no message


def spoilt(**fields: Any) -> Callable[[Message], Message]:
    def change(message: Message) -> Message:
        given = {name: getattr(message, name) for name in ("payload", "width", "label", "sender", "symbols")}
        return Message(**{**given, **fields})

    return change


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        (spoilt(payload=np.zeros(DIM + 1, dtype=np.int64)), 1),
        (spoilt(payload=np.zeros(DIM - 1, dtype=np.int64)), 1),
        (spoilt(payload=np.zeros(DIM, dtype=np.int64), width=60), 1),
        (spoilt(payload=np.zeros(DIM, dtype=np.float32), width=0), 1),
        (spoilt(label=1), 1),
        (lambda message: message, 2),
        (lambda message: message, 0),
    ],
    ids=["longer", "shorter", "wider", "floats", "labelled", "twice", "nothing"],
)
def test_messages_of_another_form_are_refused(change: Any, groups: int) -> None:
    made = plan_of()
    data = answers(made)[0]
    message = change(open_answer(data, party=0)[0][0])
    answer = msgspec.msgpack.encode({"messages": [[message.to_bytes()]] * groups})
    with pytest.raises(ParameterError, match="party 0 must send one message of 3 numbers"):
        open_sum(made.kinds[0][0], answer, party=0)
    open_sum(made.kinds[0][0], data, party=0)


def test_an_entry_beyond_the_width_is_no_message() -> None:
    """It could not be written, and what is read has no room for it."""
    width = plan_of().kinds[0][0].summed[0].width
    beyond = Message(payload=np.array([2 ** (width - 1)] * DIM), width=width)
    with pytest.raises(ParameterError, match=f"does not fit into {width} bits"):
        beyond.to_bytes()


# --- what it costs


def test_a_run_has_two_guarantees_for_every_silo() -> None:
    made = plan_of(colluding=1)
    ask = federation().open(made)
    assert [g.event for g in ask.guarantees] == [made.event([n], TrustModel.AGGREGATE) for n in SIZES]
    assert [g.event for g in ask.guarantees_alone] == [made.event([n], TrustModel.LOCAL) for n in SIZES]
    for k, (alone, price) in enumerate(zip(ask.guarantees_alone, ask.guarantees, strict=True)):
        assert price.observer == (
            f"everybody outside silo 's{k}', the server and up to 1 other party together,"
        )
        assert alone.observer == (
            f"the server and all other parties together, who see the message of silo 's{k}' alone,"
        )
        assert alone.epsilon > price.epsilon
        assert price.simulated
        assert any("at least 3 honest parties" in clause for clause in price.assumptions)
        assert IN_ONE_PLACE in price.assumptions
        assert IN_ONE_PLACE not in alone.assumptions


def test_the_data_set_is_charged_what_its_dearest_silo_is(tmp_path: Path) -> None:
    made = plan_of()
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=100.0)) for k in range(4)]
        whole = stack.enter_context(ledger_at(tmp_path / "all", epsilon=100.0))
        parties = silos(ledgers=ledgers, seed=None)
        parties[1] = Silo(Rows(DATA[1]), STATISTICS, name="s1", ledger=ledgers[1], sums=OpenSums(colluding=2))
        prices = InProcess(parties, data_ledger=whole).open(made).guarantees
        assert whole.spent().epsilon == prices[1].epsilon > prices[0].epsilon


def test_a_budget_that_is_too_small_spends_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=100.0)) for k in range(4)]
        parties, made = silos(ledgers=ledgers, seed=None), plan_of()
        price = parties[0].consider(made)
        with pytest.raises(BudgetError):
            InProcess(parties).open(made, budget=PrivacyBudget(price.epsilon * 0.99, made.delta))
        assert not any(ledger.entries() for ledger in ledgers)
        InProcess(parties).open(made, budget=PrivacyBudget(price.epsilon, made.delta))
        assert [ledger.spent().epsilon for ledger in ledgers] == [price.epsilon] * 4


def test_bits_are_those_on_the_wire() -> None:
    made = plan_of()
    ask = federation().open(made)
    ask(0, AT, RADII)
    assert ask.traffic.bits_up.tolist() == [8 * len(data) for data in answers(made).values()]


# --- crowds


def crowd(**fields: Any) -> Crowd:
    given: dict[str, Any] = {"clients": 27, "sums": OpenSums(), "rng": np.random.default_rng(3), **fields}
    return Crowd(Rows(np.vstack(DATA)), STATISTICS, **given)


def test_a_crowd_has_the_law_of_silos() -> None:
    """Means and variances of both, clients of one row each, with hardly more noise than rounding."""
    draws, sizes = 150, (1,) * 27
    made = plan_of(step_of(mean_of(25, z=0.8)), rounds=draws, sizes=sizes, colluding=2)
    many = crowd().open(made)
    few = InProcess(silos(data=list(np.vstack(DATA)[:, None, :]))).open(made)
    z = z_bound(4 * DIM)
    found = np.array([[ask(r, AT, RADII)[0] for r in range(draws)] for ask in (many, few)])
    std = math.sqrt(27) * made.kinds[0][0].summed[0].std / (64 * 27)
    assert np.abs(found[0].mean(axis=0) - found[1].mean(axis=0)).max() <= z * std * math.sqrt(2 / draws)
    for one in found:
        assert one.std(axis=0) == pytest.approx(std, rel=z / math.sqrt(2 * draws))
    assert many.guarantees[0].event == few.guarantees[0].event
    assert many.guarantees_alone[0].event == few.guarantees_alone[0].event
    assert many.guarantees[0].assumptions == few.guarantees[0].assumptions
    assert many.guarantees_alone[0].assumptions == few.guarantees_alone[0].assumptions
    assert many.guarantees[0].simulated
    np.testing.assert_array_equal(many.traffic.bits_up, few.traffic.bits_up)


def test_a_crowd_without_one_of_its_clients_is_skipped_or_recovers() -> None:
    def down(number: int) -> Any:
        return np.arange(27) < number

    made = plan_of(step_of(mean_of(25)), sizes=(1,) * 27, colluding=2)
    ask = crowd(is_down=down).open(made)
    assert ask(0, AT, RADII)[0].any()
    assert not ask(1, AT, RADII)[0].any()
    made = plan_of(step_of(mean_of(23)), sizes=(1,) * 27, n_min=25, colluding=2, recover=True)
    ask = crowd(is_down=down).open(made)
    assert [ask(r, AT, RADII)[0].any() for r in range(4)] == [True, True, True, False]


def test_clients_that_know_nobody_price_their_message_alone() -> None:
    made = plan_of(step_of(mean_of(27)), sizes=(1,) * 27)
    alone = crowd(sums=None).open(made)
    assert alone.guarantees == alone.guarantees_alone
    assert alone.guarantees[0].event == made.event([1], TrustModel.LOCAL)
    with pytest.raises(RefusalError, match="of a message alone, and the plan takes"):
        crowd(sums=OpenSums(most_alone=0.1)).open(made)
    wary = crowd(sums=OpenSums(colluding=20)).open(made)
    assert wary.guarantees[0].event == made.with_colluding(20).event([1], TrustModel.AGGREGATE)
    assert "up to 20 other clients" in wary.guarantees[0].observer
