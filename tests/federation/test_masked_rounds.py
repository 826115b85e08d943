"""Masked rounds: silos in one process that hide their messages as they would between machines."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation import InProcess, Plan, Silo
from tacit.federation.answers import open_sum
from tacit.federation.masking.roster import MaskingRoster
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.keys import SigningKey
from tacit.federation.summed import added
from tacit.ledger import Ledger
from tacit.numerics import IntArray
from tests.federation.aggregates import DATA, RADII, SIZES, federation, mean_of, plan_of, step_of
from tests.federation.world import AT, DIM, STATISTICS, Rows, ask_at, ledger_at

KEYS = [SigningKey.make() for _ in SIZES]
ROSTER = MaskingRoster(tuple(f"s{k}" for k in range(4)), tuple(key.public.raw for key in KEYS))
PLAN = plan_of(roster=ROSTER.digest)


def silo_of(
    k: int, *, ledger: Ledger | None = None, seed: int | None = 1, keys: Any = KEYS, **sums: Any
) -> Silo:
    return Silo(
        Rows(DATA[k]),
        STATISTICS,
        name=f"s{k}",
        ledger=ledger,
        sums=MaskedSums(ROSTER, keys[k], **sums),
        rng=None if seed is None else np.random.default_rng(seed + k),
    )


def silos(ledgers: Any = (None,) * 4, **fields: Any) -> list[Silo]:
    return [silo_of(k, ledger=one, **fields) for k, one in enumerate(ledgers)]


def masked(parties: Any = None, **fields: Any) -> InProcess:
    return InProcess(silos() if parties is None else parties, masks=ROSTER, **fields)


def agree(parties: list[Silo], made: Plan = PLAN, *, run: str = "run") -> None:
    """Accept a plan and exchange keys."""
    for k, one in enumerate(parties):
        one.accept(made, party=k, run=run)
    cards = b"".join(one.exchange("advertise", b"") for one in parties)
    for one in parties:
        one.exchange("agree", cards)


def sent(parties: list[Silo], step: int = 0, w: Any = None, made: Plan = PLAN) -> list[IntArray]:
    kind = made.schedule().step(step)
    return [open_sum(kind, one.answer(ask_at(step, w)), party=k) for k, one in enumerate(parties)]


@pytest.fixture
def ledgers(tmp_path: Path) -> Any:
    with ExitStack() as stack:
        yield [stack.enter_context(ledger_at(tmp_path / f"{k}", epsilon=100.0)) for k in range(4)]


# --- what comes out


def test_masks_change_no_bit_of_a_mean() -> None:
    """The same noise, with and without: several means a step, every width."""
    both = step_of(mean_of(), mean_of(z=30.0))
    for made in (PLAN, plan_of(both, roster=ROSTER.digest)):
        hidden = masked().open(made)
        bare = federation().open(msgspec.structs.replace(made, roster=""))
        for step in range(made.rounds):
            radius = RADII * len(made.kinds[0][0].measures)
            for one, other in zip(hidden(step, AT, radius), bare(step, AT, radius), strict=True):
                np.testing.assert_array_equal(one, other)


def test_set_up_counts_on_the_wire() -> None:
    hidden, bare = masked().open(PLAN), federation().open(plan_of())
    for ask in (hidden, bare):
        for step in range(3):
            ask(step, AT, RADII)
    set_up = hidden.traffic.bits_up - bare.traffic.bits_up
    assert set_up.tolist() == [96 * 8] * 4  # a key and its signature, once a run


def test_what_a_silo_sends_is_no_function_of_what_it_says() -> None:
    """Two runs with the same noise and other keys have nothing in common but their sum."""
    first, second = silos(), silos()
    agree(first)
    agree(second)
    one, other = sent(first), sent(second)
    assert all((a != b).any() for a, b in zip(one, other, strict=True))
    width = PLAN.kinds[0][0].summed[0].width
    assert ((added(one) - added(other)) % 2**width == 0).all()


# --- who arrives


def test_a_round_without_somebody_opens_nothing_and_asks_nobody() -> None:
    away = {1}
    ask = masked(is_down=lambda step, party: step == 1 and party in away).open(PLAN)
    ask(0, AT, RADII)
    before = ask.traffic.bits_up.copy()
    assert not ask(1, AT, RADII)[0].any()
    away.clear()
    assert not ask(1, AT, RADII)[0].any()  # not tried again
    assert (ask.traffic.bits_up == before).all()
    assert ask(2, AT, RADII)[0].any()


def test_keys_that_were_not_exchanged_are_later() -> None:
    ask = masked(is_down=lambda step, party: step == 0 and party == 3).open(PLAN)
    assert not ask(0, AT, RADII)[0].any()
    assert ask(1, AT, RADII)[0].any()


def test_a_server_that_asks_others_for_something_else_gets_noise() -> None:
    """Its silos have masks for other steps then, and these do not cancel."""
    parties = silos()
    agree(parties)
    asked = [sent([one], w=w)[0] for one, w in zip(parties, (None, None, None, np.ones(DIM)), strict=True)]
    honest = silos()
    agree(honest)
    width = PLAN.kinds[0][0].summed[0].width
    assert ((added(asked) - added(sent(honest))) % 2**width != 0).any()


# --- what is never sent


def test_a_step_has_one_vector_under_its_masks_stored_or_not() -> None:
    """Two would show the difference of what the silo says."""
    parties = silos()
    agree(parties)
    first, again = parties[0].prepare(ask_at(0)), parties[0].prepare(ask_at(0))
    assert first.store() == again.store() == parties[0].answer(ask_at(0))
    with pytest.raises(RefusalError, match="another point"):
        parties[0].answer(ask_at(0, np.ones(DIM)))
    unsent = parties[0].prepare(ask_at(1))
    with pytest.raises(RefusalError, match="masked with another"):
        parties[0].prepare(ask_at(1, np.ones(DIM)))
    unsent.store()


def test_nothing_is_answered_before_keys_are_exchanged_or_after_they_are_wiped(ledgers: Any) -> None:
    parties = silos(ledgers, seed=None)
    for k, one in enumerate(parties):
        one.accept(PLAN, party=k)
    with pytest.raises(RefusalError, match="have not agreed"):
        parties[0].answer(ask_at(0))
    agree(parties)
    stored = parties[0].answer(ask_at(0))
    parties[0].close()
    with pytest.raises(RefusalError, match="no plan was accepted"):
        parties[0].answer(ask_at(0))
    back = silo_of(0, ledger=ledgers[0], seed=None)
    back.accept(PLAN)
    assert back.answer(ask_at(0)) == stored  # what has left may be sent again
    for stage in ("advertise", "agree"):
        with pytest.raises(RefusalError, match="lost or was wiped"):
            back.exchange(stage, b"" if stage == "advertise" else bytes(4 * 96))
    with pytest.raises(RefusalError, match="lost or was wiped"):
        back.answer(ask_at(1))


def test_a_silo_that_comes_back_goes_on_under_the_same_masks(ledgers: Any) -> None:
    parties = silos(ledgers, seed=None)
    agree(parties)
    cards = [one.exchange("advertise", b"") for one in parties]
    first = [one.answer(ask_at(0)) for one in parties]
    parties[2].rest()
    parties[2] = silo_of(2, ledger=ledgers[2], seed=None)
    price = parties[2].accept(PLAN, party=2)
    assert parties[2].exchange("advertise", b"") == cards[2]
    assert parties[2].answer(ask_at(0)) == first[2]
    parties[2].accept(PLAN, party=2)  # and once more in one process
    found = added(sent(parties, 1))
    mean = PLAN.kinds[0][0].summed[0]
    spare = 64 - mean.width
    centred = (found.view(np.uint64) << np.uint64(spare)).view(np.int64) >> np.int64(spare)
    assert np.abs(centred).max() < 27 * 64 + 20 * 2 * mean.std  # masks of other keys would be all over
    assert [len(ledger.entries()) for ledger in ledgers] == [1] * 4
    assert ledgers[2].spent().epsilon == price.epsilon


def test_a_run_goes_on_in_another_process(ledgers: Any) -> None:
    first = masked(silos(ledgers, seed=None)).open(PLAN)
    means = [first(step, AT, RADII)[0] for step in range(2)]
    again = masked(silos(ledgers, seed=None)).open(PLAN)
    for step, mean in enumerate(means):
        np.testing.assert_array_equal(again(step, AT, RADII)[0], mean)
    assert again(2, AT, RADII)[0].any()
    assert [len(ledger.entries()) for ledger in ledgers] == [1] * 4


def test_several_plans_at_once_have_masks_of_their_own(ledgers: Any) -> None:
    """Two runs on the same ledgers, a step of each in turn; both are charged."""
    longer = plan_of(rounds=5, roster=ROSTER.digest)
    runs = {"a": (PLAN, silos(ledgers, seed=None)), "b": (longer, silos(ledgers, seed=None))}
    asks = {run: masked(parties).open(made, run=run) for run, (made, parties) in runs.items()}
    for step in range(3):
        for ask in asks.values():
            assert np.abs(ask(step, AT, RADII)[0]).max() < 10
    assert [len(ledger.entries()) for ledger in ledgers] == [2] * 4
    cards = {run: parties[0].exchange("advertise", b"") for run, (_, parties) in runs.items()}
    assert cards["a"] != cards["b"]
    runs["a"][1][0].close()
    assert asks["b"](3, AT, RADII)[0].any()  # keys of another run are not wiped


# --- who is refused


def test_a_server_that_counts_silos_in_another_order_is_refused_before_anything_is_spent(
    ledgers: Any,
) -> None:
    one = silo_of(1, ledger=ledgers[1], seed=None)
    with pytest.raises(RefusalError, match="party"):
        one.accept(PLAN, party=2)
    assert not ledgers[1].entries()


def test_who_opens_sums_must_know_the_roster() -> None:
    with pytest.raises(ParameterError, match="needs `masks`"):
        InProcess(silos()).open(PLAN)
    other = MaskingRoster(ROSTER.names[::-1], ROSTER.keys[::-1])
    with pytest.raises(ParameterError, match="must name the roster"):
        InProcess(silos(), masks=other).open(PLAN)


def test_a_silo_of_a_roster_is_in_no_sum_in_the_open() -> None:
    with pytest.raises(RefusalError, match="roster"):
        InProcess(silos()).open(plan_of())


def test_a_party_that_is_not_in_the_roster_ends_the_set_up() -> None:
    """The server has put a key of its own in the place of one."""
    stranger = SigningKey.make()
    impostor = MaskingRoster(ROSTER.names, (*ROSTER.keys[:3], stranger.public.raw))
    parties: list[Any] = silos()
    for k, one in enumerate(parties[:3]):
        one.accept(PLAN, party=k)
    their = Silo(Rows(DATA[3]), STATISTICS, sums=MaskedSums(impostor, stranger), rng=np.random.default_rng(0))
    their.accept(msgspec.structs.replace(PLAN, roster=impostor.digest), party=3)
    cards = b"".join(one.exchange("advertise", b"") for one in (*parties[:3], their))
    for one in parties[:3]:
        with pytest.raises(AuthenticationError, match="not signed"):
            one.exchange("agree", cards)
        with pytest.raises(RefusalError, match="have not agreed"):
            one.answer(ask_at(0))


# --- drop-outs


RECOVERS = plan_of(n_min=3, recover=True, roster=ROSTER.digest)


def test_a_sum_of_those_who_stayed_is_that_without_masks() -> None:
    """Whoever is away after keys were exchanged; too few open nothing, and are not asked again."""
    away = {(1, 1), (2, 0), (2, 1)}

    def down(step: int, party: int) -> bool:
        return (step, party) in away

    hidden = masked(is_down=down).open(RECOVERS)
    bare = federation(down).open(msgspec.structs.replace(RECOVERS, roster=""))
    for step in range(2):
        np.testing.assert_array_equal(hidden(step, AT, RADII)[0], bare(step, AT, RADII)[0])
    assert not hidden(2, AT, RADII)[0].any()
    away.clear()
    assert not hidden(2, AT, RADII)[0].any()
    assert hidden(3, AT, RADII)[0].any()


def test_a_silo_that_missed_the_exchange_of_keys_is_left_out_of_its_block() -> None:
    hidden = masked(is_down=lambda step, party: (step, party) == (0, 3)).open(RECOVERS)
    bare = federation(lambda _, party: party == 3).open(msgspec.structs.replace(RECOVERS, roster=""))
    for step in range(3):
        np.testing.assert_array_equal(hidden(step, AT, RADII)[0], bare(step, AT, RADII)[0])
    assert hidden.traffic.answered.tolist() == [3, 3, 3, 0]


def test_a_run_that_recovers_goes_on_in_another_process(ledgers: Any) -> None:
    first = masked(silos(ledgers, seed=None)).open(RECOVERS)
    mean = first(0, AT, RADII)[0]
    again = masked(silos(ledgers, seed=None)).open(RECOVERS)
    np.testing.assert_array_equal(again(0, AT, RADII)[0], mean)
    assert again(1, AT, RADII)[0].any()
    assert [len(ledger.entries()) for ledger in ledgers] == [1] * 4
