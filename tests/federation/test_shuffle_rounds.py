"""Shuffled rounds: nobody is seen alone, whoever stays away, comes back, lies, or asks again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError
from tacit.federation import (
    Circle,
    Crowd,
    Full,
    InProcess,
    Measure,
    Plan,
    Query,
    RandomSubset,
    Server,
    Shuffler,
    Silo,
    Step,
    with_honest,
)
from tacit.means import BinomialMean, Round
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.world import AT, DIM, Rows, ask_at, ledger_at, rows
from tests.statistics import FALSE_ALARM

SIZES = (5, 9, 7)
DATA = [rows(k, n) for k, n in enumerate(SIZES)]
MEAN = BinomialMean(dim=DIM, noise_bits=60, resolution=8)
RADII = (1.0,)


def plan_of(
    n_min: int = 3, colluding: int = 0, *, rounds: int = 4, mean: BinomialMean = MEAN, sizes: Any = SIZES
) -> Plan:
    kind = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),), batch=Full())
    kinds = with_honest(((kind, rounds),), sizes, n_min=n_min, colluding=colluding)
    return Plan(
        steps=kinds,
        parties=len(sizes),
        trust=TrustModel.SHUFFLE,
        delta=1e-6,
        n_min=n_min,
        colluding=colluding,
    )


def row(units: Rows, at: Any) -> Array:
    return units.values


def silos(
    *, seed: int | None = 1, ledgers: Any = None, trusts_shuffler: bool = True, trusts_server: bool = False
) -> list[Silo]:
    return [
        Silo(
            Rows(values),
            {"row": row},
            name=f"s{k}",
            ledger=None if ledgers is None else ledgers[k],
            trusts_shuffler=trusts_shuffler,
            trusts_server=trusts_server,
            rng=None if seed is None else np.random.default_rng(seed + k),
        )
        for k, values in enumerate(DATA)
    ]


def federation(down: Callable[[int, int], bool] | None = None, **fields: Any) -> InProcess:
    return InProcess(
        silos(**fields), rng=np.random.default_rng(7), shuffler_rng=np.random.default_rng(8), is_down=down
    )


def circle_of(parties: tuple[int, ...] = (0, 1, 2), sizes: tuple[int, ...] = SIZES) -> Circle:
    return Circle(parties, tuple(sizes[k] for k in parties), (None,) * len(parties))


# --- who must trust whom


def test_no_silo_follows_the_word_of_a_plan_that_there_is_a_shuffler() -> None:
    silo = silos(trusts_shuffler=False)[0]
    with pytest.raises(RefusalError, match="trusts_shuffler=True"):
        silo.accept(plan_of())
    with pytest.raises(RefusalError, match="trusts_shuffler=True"):
        Crowd(Rows(np.vstack(DATA)), {"row": row}, clients=21).open(plan_of(sizes=(1,) * 21))


def test_a_run_has_two_guarantees_for_every_silo() -> None:
    ask = federation().open(plan_of())
    assert [g.event for g in ask.guarantees] == [plan_of().event([9], TrustModel.SHUFFLE)] * 3
    assert all("shuffled batches" in g.observer for g in ask.guarantees)
    assert any("shuffler" in clause for clause in ask.guarantees[0].assumptions)
    alone = [plan_of().event([n], TrustModel.LOCAL) for n in SIZES]
    assert [g.event for g in ask.guarantees_alone] == alone
    for name, before, after in zip(("s0", "s1", "s2"), ask.guarantees_alone, ask.guarantees, strict=True):
        assert f"silo '{name}' before they are shuffled" in before.observer
        assert before.epsilon > after.epsilon


def test_the_shuffled_price_is_what_budget_and_ledger_check(tmp_path: Path) -> None:
    made, (silo, *_) = plan_of(), silos()
    price = silo.consider(made)
    with pytest.raises(BudgetError):
        silo.accept(made, budget=PrivacyBudget(price.epsilon * 0.999, 1e-6))
    with ledger_at(tmp_path / "l", epsilon=1000.0) as ledger:
        one = Silo(Rows(DATA[0]), {"row": row}, ledger=ledger, trusts_shuffler=True)
        one.accept(made)
        assert ledger.spent().epsilon == price.epsilon


def test_weights_other_than_records_are_refused() -> None:
    for weights in ("silos", (1.0, 2.0, 3.0)):
        with pytest.raises(ParameterError, match="weights must be 'records' under shuffle trust"):
            federation().open(plan_of(), weights=weights)


# --- who arrives


def test_a_round_of_fewer_than_n_min_is_given_up_before_anything_leaves_a_silo() -> None:
    ask = federation(lambda step, party: step == 1 and party > 0).open(plan_of(n_min=2))
    first = ask(0, AT, RADII)[0]
    assert ask(1, AT, RADII)[0].tolist() == [0.0] * DIM
    assert (ask.traffic.skipped, ask.traffic.answered.tolist()) == (1, [1, 1, 1])
    assert np.abs(first).max() > 0
    assert ask(2, AT, RADII)[0].tolist() != [0.0] * DIM


def test_the_mean_is_that_of_the_rows_that_arrived() -> None:
    noiseless = BinomialMean(dim=DIM, noise_bits=1, resolution=2**20)
    away = lambda _, party: party == 1  # noqa: E731 - used twice
    with pytest.raises(RefusalError, match="adds no noise"):
        federation(away).open(plan_of(2, mean=noiseless))
    ask = federation(away, trusts_server=True).open(plan_of(2, mean=noiseless))
    np.testing.assert_allclose(ask(0, AT, RADII)[0], np.vstack([DATA[0], DATA[2]]).mean(axis=0), atol=1e-4)


def test_random_subsets_that_are_too_small_are_given_up() -> None:
    ask = federation().open(plan_of(3), participation=RandomSubset(2))
    assert not ask(0, AT, RADII)[0].any()
    assert ask.traffic.skipped == 1


# --- the same again


def test_the_same_query_gets_the_same_batch_and_another_point_is_refused() -> None:
    ask = federation().open(plan_of())
    first = ask(0, AT, RADII)[0]
    np.testing.assert_array_equal(ask(0, AT, RADII)[0], first)
    with pytest.raises(RefusalError, match="answered at another point"):
        ask(0, {"w": np.ones(DIM)}, RADII)


def test_a_run_that_goes_on_mixes_the_same_parties_or_none(tmp_path: Path) -> None:
    """Two batches that differ by a silo would show, by their difference, what it sent."""
    made = plan_of(n_min=2)
    with ExitStack() as stack:
        ledgers = [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=1000.0)) for k in range(3)]

        def start(away: int | None) -> Any:
            return InProcess(silos(ledgers=ledgers, seed=None), is_down=lambda _, k: k == away).open(made)

        first = start(2)(0, AT, RADII)[0]
        with pytest.raises(RefusalError, match="another point or for another party"):
            start(None)(0, AT, RADII)  # silo 2 is back
        with pytest.raises(RefusalError, match="another point or for another party"):
            start(0)(0, AT, RADII)
        np.testing.assert_array_equal(start(2)(0, AT, RADII)[0], first)


def test_either_all_silos_remember_what_they_sent_or_none(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "l", epsilon=1000.0) as ledger:
        mixed = silos()
        mixed[1] = Silo(Rows(DATA[1]), {"row": row}, name="s1", ledger=ledger, trusts_shuffler=True)
        with pytest.raises(LedgerError, match="must keep a ledger where others do"):
            InProcess(mixed).open(plan_of())
        assert not ledger.entries()
        mixed[1].accept(plan_of(), party=1)
        with pytest.raises(RefusalError, match="all whom it is mixed with must keep one"):
            mixed[1].answer(ask_at(0), circle_of())


# --- what a silo itself refuses


@pytest.mark.parametrize(
    ("circle", "message"),
    [
        (lambda: None, "a circle says who is mixed"),
        (lambda: circle_of((0, 1)), "at least n_min"),
        (lambda: circle_of((1, 2)), "at least n_min"),
        (lambda: Circle((0, 1, 3), SIZES, (None,) * 3), "at least n_min"),
        (lambda: Circle((0, 1, 2), (6, 9, 7), (None,) * 3), "at least n_min"),
        (lambda: Circle((0, 1, 2), (5, 1, 1), (None,) * 3), "too few rows"),
        (lambda: Circle((0, 1, 1), SIZES, (None,) * 3), "increasing"),
        (lambda: Circle((0, 1, 2), SIZES, ()), "size for each"),
    ],
)
def test_a_silo_refuses_company_that_does_not_hide_it(circle: Callable[[], Any], message: str) -> None:
    silo = silos()[0]
    silo.accept(plan_of(3))
    with pytest.raises(RefusalError, match=message):
        silo.answer(ask_at(0), circle())
    assert silo.answer(ask_at(0), circle_of())


# --- the shuffler


def answers(query: Query, parties: tuple[int, ...] = (0, 1, 2), n_min: int = 3) -> dict[int, bytes]:
    made, found = plan_of(n_min), {}
    for k, silo in enumerate(silos()):
        if k in parties:
            silo.accept(made, party=k)
            found[k] = silo.answer(query, circle_of(parties))
    return found


def shuffler(n_min: int = 3) -> Shuffler:
    return Shuffler(plan_of(n_min), rng=np.random.default_rng(3))


def test_a_batch_has_no_senders_and_forgets_the_order_in_which_they_came() -> None:
    sent = answers(ask_at(0))
    batch = shuffler().release(ask_at(0), circle_of(), sent)
    assert (batch.rows, batch.parties) == (21, 3)
    assert {m.sender for group in batch.messages for m in group} == {None}
    turned = shuffler().release(ask_at(0), circle_of(), dict(reversed(sent.items())))
    for one, other in zip(batch.messages[0], turned.messages[0], strict=True):
        assert (one.label, one.payload.size, one.payload.sum()) == (
            other.label,
            other.payload.size,
            other.payload.sum(),
        )


def test_a_shuffler_releases_a_round_once() -> None:
    one, sent = shuffler(), answers(ask_at(0))
    batch = one.release(ask_at(0), circle_of(), sent)
    assert one.release(ask_at(0), circle_of(), sent) is batch
    with pytest.raises(RefusalError, match="released at another point, or of other parties"):
        one.release(ask_at(0, np.ones(DIM)), circle_of(), sent)


def test_a_shuffler_holds_back_what_is_not_whole() -> None:
    sent = answers(ask_at(0))
    few = {0: sent[0], 1: sent[1]}
    with pytest.raises(RefusalError, match="a batch of 2 parties is not released"):
        shuffler().release(ask_at(0), circle_of(), few)
    with pytest.raises(RefusalError, match="is not released"):
        shuffler(2).release(ask_at(0), circle_of(), few)
    with pytest.raises(ParameterError, match="another length"):
        shuffler().release(ask_at(0), circle_of(), {**sent, 1: sent[0]})
    with pytest.raises(ParameterError, match="honest must be at most"):
        shuffler().release(ask_at(0), Circle((0, 1, 2), (5, 1, 1), (None,) * 3), sent)


def test_a_server_reads_batches_only() -> None:
    server = Server(plan_of(), SIZES, rng=np.random.default_rng(0))
    with pytest.raises(RefusalError, match="out of a shuffled batch only"):
        server.means(ask_at(0), answers(ask_at(0)), asked=[0, 1, 2])
    batch = shuffler().release(ask_at(0), circle_of(), answers(ask_at(0)))
    (mean,) = server.means_of_batch(ask_at(0), batch, asked=[0, 1, 2])
    everything = list(batch.messages[0])
    np.testing.assert_array_equal(mean, MEAN.decode(everything, Round(n=21, radius=1.0)))


# --- one law


def test_in_process_and_crowd_have_the_law_of_the_estimator() -> None:
    """Three samples of a coordinate are told apart with probability 1e-7, were they of one law."""
    draws, units = 400, np.vstack([value[:5] for value in DATA])
    sizes = (5, 5, 5)
    made = plan_of(rounds=draws, sizes=sizes)
    parties = [
        Silo(Rows(v[:5]), {"row": row}, trusts_shuffler=True, rng=np.random.default_rng(40 + k))
        for k, v in enumerate(DATA)
    ]
    ask = InProcess(parties, rng=np.random.default_rng(0)).open(made)
    crowd = Crowd(
        Rows(units), {"row": row}, clients=3, trusts_shuffler=True, rng=np.random.default_rng(9)
    ).open(made)
    rng = np.random.default_rng(10)
    drawn = [
        [ask(k, AT, RADII)[0][0] for k in range(draws)],
        [crowd(k, AT, RADII)[0][0] for k in range(draws)],
        [MEAN.estimate(units, Round(n=15, radius=1.0), rng=rng)[0] for _ in range(draws)],
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert stats.ks_2samp(drawn[one], drawn[other]).pvalue > FALSE_ALARM
    assert ask.traffic.bits_up.tolist() == crowd.traffic.bits_up.tolist()
    assert len(crowd.guarantees_alone) == 1


def test_a_crowd_gives_up_rounds_of_too_few() -> None:
    crowd = Crowd(
        Rows(np.vstack(DATA)),
        {"row": row},
        trusts_shuffler=True,
        rng=np.random.default_rng(9),
        is_down=lambda _: np.arange(21) >= 4,
    ).open(plan_of(5, sizes=(1,) * 21))
    assert not crowd(0, AT, RADII)[0].any()
    assert crowd.traffic.skipped == 1


def test_the_claim_of_a_plan_is_that_of_its_text() -> None:
    made = plan_of(2, 1)
    assert msgspec.structs.asdict(Plan.from_toml(made.to_toml())) == msgspec.structs.asdict(made)
