"""Parties drawn in secret between machines: by words that the shuffler alone reads, and nobody on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation import Batch, DrawnStep, Fixed, Full, Measure, Plan, Poisson, Shuffler, with_honest
from tacit.federation.answers import open_answer
from tacit.federation.drawn import drawn_by_words, read_word
from tacit.federation.network.descriptor import SignedDescriptor, check_descriptor
from tacit.federation.network.draws import SEALED_DRAW_BYTES, draw_key, open_draw, seal_draw
from tacit.federation.network.faults import Fault
from tacit.federation.network.journal import RunJournal
from tacit.federation.network.keys import OpeningKey
from tacit.federation.network.parcels import SealedBatch, open_batch
from tacit.federation.shuffler import Batched
from tacit.means import BinomialMean, HadamardMean, PrivUnitMean, Round
from tacit.privacy import TrustModel
from tests.federation.network.deployed_world import World as Deployed
from tests.federation.network.shuffled import RUN, World, query, refused, world
from tests.federation.world import AT, DIM

SIZES = (5, 9, 7, 6, 8)
REPORT = HadamardMean(dim=DIM, local_epsilon=1.0, trust=TrustModel.SHUFFLE, on_violation="clip")
VECTORS = PrivUnitMean(dim=DIM, local_epsilon=2.0, trust=TrustModel.SHUFFLE, on_violation="clip")
BITS = BinomialMean(dim=DIM, noise_bits=60, resolution=8)
ONE, TWO = Fixed(size=1), Fixed(size=2)


def plan_of(
    parties: Fixed | Poisson,
    *,
    mean: Any = REPORT,
    batch: Batch = ONE,
    sizes: tuple[int, ...] = SIZES,
    n_min: int = 3,
    rounds: int = 4,
) -> Plan:
    step = DrawnStep(
        measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),), batch=batch, parties=parties
    )
    kinds = with_honest(((step, rounds),), sizes, n_min=n_min, colluding=0)
    return Plan(steps=kinds, parties=len(sizes), trust=TrustModel.SHUFFLE, delta=1e-6, n_min=n_min)


def made_of(plan: Plan, folder: Path) -> World:
    return world(plan, folder / "shuffler", SIZES)


def step_of(plan: Plan) -> DrawnStep:
    step = plan.kinds[0][0]
    assert isinstance(step, DrawnStep)
    return step


def words_of(made: World, signed: SignedDescriptor) -> dict[int, int]:
    """The words of all parties, which nobody has in one place but the shuffler."""
    parties = range(len(made.silos))
    return {k: read_word(open_answer(made.answer(k, signed), party=k)[-1], party=k) for k in parties}


def seen(batch: Batched) -> list[Any]:
    """What the server has of a batch, but for the order of messages, which is the shuffler's."""
    found = []
    for messages in batch.messages:
        symbols = sorted(x for m in messages if m.payload.dtype == np.int64 for x in m.payload.tolist())
        vectors = sorted(m.payload.tolist() for m in messages if m.payload.dtype != np.int64)
        found.append((symbols, vectors, sum(m.symbols for m in messages)))
    return [batch.rows, batch.parties, found]


def read(made: World, signed: SignedDescriptor) -> Batched:
    return open_batch(made.batch(signed), form=made.form(0), info=signed.info, key=made.who.opening)


@pytest.mark.parametrize(
    ("parties", "mean", "batch"),
    [
        (Fixed(size=2), REPORT, ONE),
        (Fixed(size=2), VECTORS, TWO),
        (Fixed(size=3), BITS, Full()),
        (Poisson(rate=0.5), REPORT, Full()),
        (Poisson(rate=0.5), VECTORS, ONE),
        (Poisson(rate=0.5), BITS, TWO),
    ],
)
def test_the_server_sees_what_the_shuffler_of_one_process_shows_and_not_a_word_more(
    parties: Fixed | Poisson, mean: Any, batch: Batch, tmp_path: Path
) -> None:
    plan = plan_of(parties, mean=mean, batch=batch)
    made = made_of(plan, tmp_path)
    for step in range(2):
        signed = made.open(step)
        circle = signed.descriptor.circle
        answers = {k: made.answer(k, signed) for k in range(5)}
        for k in range(5):
            made.send(k, signed)
        sealed = made.batch(signed)
        assert SealedBatch.from_bytes(sealed.to_bytes()) == sealed
        expected = Shuffler(plan, run=RUN, rng=np.random.default_rng(0)).release(query(step), circle, answers)
        drawn = drawn_by_words(step_of(plan), words_of(made, signed))
        assert (sealed.came, sealed.parties) == (5, len(drawn))
        found = read(made, signed)
        assert (found.rows, found.parties) == (expected.rows, expected.parties)
        if drawn:
            this_round = Round(n=found.rows, radius=1.0, number=step, parties=found.parties)
            here, there = (mean.decode(one.messages[0], this_round) for one in (found, expected))
            np.testing.assert_allclose(here, there, atol=1e-12)  # floats are added up in another order
        if mean is not BITS:  # of which mixing leaves the sum only
            assert seen(found) == seen(expected)
        form = made.form(0)
        assert len(sealed.body) == sum(sealed.sealed) * form.blob_bytes + 8 * form.words


def test_a_round_of_nobody_is_an_empty_batch(tmp_path: Path) -> None:
    made = made_of(plan_of(Poisson(rate=0.01)), tmp_path)
    signed = made.open()
    for k in range(5):
        made.send(k, signed)
    batch = made.batch(signed)
    assert (batch.rows, batch.parties, batch.came, batch.body) == (0, 0, 5, b"")
    assert read(made, signed) == Batched(messages=([],), rows=0, parties=0)
    full = made.form(0)
    for changes in ({"rows": 1}, {"sealed": (1,)}, {"parties": 1}):
        with pytest.raises(ParameterError):
            open_batch(
                msgspec.structs.replace(batch, **changes), form=full, info=signed.info, key=made.who.opening
            )
    mixed = replace(full, draws=False)  # where all are mixed, there is somebody
    with pytest.raises(ParameterError, match="whole numbers"):
        open_batch(batch, form=mixed, info=signed.info, key=made.who.opening)


def test_parcels_have_one_length_and_the_server_cannot_read_who_is_drawn(tmp_path: Path) -> None:
    made = made_of(plan_of(Fixed(size=2)), tmp_path)
    signed = made.open()
    parcels = [made.parcel(k, signed) for k in range(5)]
    assert {len(parcel) for parcel in parcels} == {made.form(0).size}
    assert made.form(0).size == made.form(0).sums_end + SEALED_DRAW_BYTES
    key = draw_key(made.who.shuffler, made.shuffling.session)
    for k, word in words_of(made, signed).items():
        tail = parcels[k][-SEALED_DRAW_BYTES:]
        assert word.to_bytes(8) not in parcels[k]
        assert open_draw(tail, party=k, info=signed.info, key=key) == word
        for other in (made.who.opening, draw_key(made.who.shuffler, bytes(16)), OpeningKey.make()):
            with pytest.raises(AuthenticationError):
                open_draw(tail, party=k, info=signed.info, key=other)


def test_nothing_on_the_disk_of_the_shuffler_tells_who_was_drawn(tmp_path: Path) -> None:
    made = made_of(plan_of(Fixed(size=2)), tmp_path)
    signed = made.open()
    words = words_of(made, signed)
    for k in range(4):
        made.send(k, signed)
    (held,) = made.shuffling._open.values()
    assert held.words == {k: words[k] for k in range(4)}
    made.send(4, signed)
    made.shuffling.settle()
    assert not held.words
    assert not held.parcels
    on_disk = (tmp_path / "shuffler").read_bytes()
    for k, word in words.items():
        assert word.to_bytes(8) not in on_disk
        assert word.to_bytes(8, "little") not in on_disk
        blobs = made.parcel(k, signed)
        assert blobs[-SEALED_DRAW_BYTES:] not in on_disk


def test_a_shuffler_that_died_draws_the_same_again(tmp_path: Path) -> None:
    made = made_of(plan_of(Fixed(size=2), batch=TWO), tmp_path)
    signed = made.open()
    for k in range(4):
        made.send(k, signed)
    made.shuffling.close()
    again = made_of(made.plan, tmp_path)
    again.silos = made.silos
    assert again.shuffling.session == made.shuffling.session
    assert again.open() == signed
    for k in range(5):
        again.send(k, signed)  # sealed anew, of the answers that are stored
    expected = Shuffler(made.plan, run=RUN, rng=np.random.default_rng(0)).release(
        query(), signed.descriptor.circle, {k: made.answer(k, signed) for k in range(5)}
    )
    assert seen(read(again, signed)) == seen(expected)


WRONG: dict[str, Callable[[World, SignedDescriptor, SignedDescriptor], bytes]] = {
    "no word": lambda made, signed, _: made.parcel(0, signed)[:-SEALED_DRAW_BYTES] + bytes(SEALED_DRAW_BYTES),
    "of another party": lambda made, signed, _: (
        made.parcel(0, signed)[:-SEALED_DRAW_BYTES] + made.parcel(1, signed)[-SEALED_DRAW_BYTES:]
    ),
    "of another round": lambda made, signed, other: (
        made.parcel(0, signed)[:-SEALED_DRAW_BYTES] + made.parcel(0, other)[-SEALED_DRAW_BYTES:]
    ),
    "for the server": lambda made, signed, _: (
        made.parcel(0, signed)[:-SEALED_DRAW_BYTES]
        + seal_draw(0, party=0, info=signed.info, key=made.who.opening.public)
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_word_counts_as_that_of_its_party_in_its_round_only(wrong: str, tmp_path: Path) -> None:
    made = made_of(plan_of(Fixed(size=2)), tmp_path)
    signed, other = made.open(0), made.open(1)
    good = made.parcel(0, signed)
    parcel = WRONG[wrong](made, signed, other)
    said = refused(Fault.FORM, lambda: made.send(0, signed, parcel))
    assert str(said) == "the parcel has no word of its silo for this round."
    refused(Fault.LENGTH, lambda: made.send(0, signed, parcel[:-1]))
    assert made.shuffling.tally.parcels == 0
    assert made.send(0, signed, good)
    assert made.send(0, signed, good)  # again: it counts once
    assert not made.send(0, signed, bytes(len(good)))  # another one: the first stays
    assert made.shuffling.tally.parcels == 1


def test_too_few_parties_show_nothing(tmp_path: Path) -> None:
    made = made_of(plan_of(Fixed(size=2), n_min=4), tmp_path)
    signed = made.open()
    for k in range(3):
        made.send(k, signed)
    made.shuffling._clock = lambda: 1e9
    refused(Fault.GIVEN_UP, lambda: made.batch(signed))


@pytest.mark.parametrize("drawn", [True, False])
def test_a_silo_seals_words_only_to_a_shuffler_that_draws_as_its_plan_says(
    drawn: bool, tmp_path: Path
) -> None:
    from tests.federation.network.shuffled import plan_of as mixed

    plan = plan_of(Fixed(size=2)) if drawn else mixed(sizes=SIZES)
    made = made_of(plan, tmp_path)
    about = made.open().descriptor
    assert bool(about.draw) == drawn

    def check(draw: bytes) -> None:
        signed = SignedDescriptor.of(msgspec.structs.replace(about, draw=draw), made.who.shuffler)
        check_descriptor(
            signed.to_bytes(), roster=made.who.roster, plan=plan, run=RUN, query=query(), name="silo-1"
        )

    check(about.draw)
    with pytest.raises(RefusalError, match="must have a key for words where parties are drawn"):
        check(b"" if drawn else OpeningKey.make().public.raw)
    if drawn:
        with pytest.raises(ParameterError, match="small order"):  # everybody could open
            check(bytes(32))


# --- whole runs


def rounds_of(plan: Plan, folder: Path, *, kills: bool = False) -> tuple[list[Any], Any]:
    """The means of a run, all of whose parties die in the middle if it is to be."""
    made = Deployed(plan, folder, sizes=SIZES)
    found = []
    try:
        ask = made.begin()
        for step in range(plan.rounds):
            if kills and step == 2:
                made.kill_shuffler()
                for name in made.names:
                    made.kill(name)
                ask = made.begin()
            found.append(ask(step, AT, (1.0,))[0].tolist())
        return found, (ask.traffic, ask.done)
    finally:
        made.close()


@pytest.mark.parametrize("parties", [Fixed(size=2), Poisson(rate=0.3)], ids=["few", "self"])
def test_a_run_whose_parties_all_die_goes_on_as_if_they_had_not(
    parties: Fixed | Poisson, tmp_path: Path
) -> None:
    plan = plan_of(parties, rounds=6)
    means, (traffic, done) = rounds_of(plan, tmp_path / "whole")
    again, (after, _) = rounds_of(plan, tmp_path / "killed", kills=True)
    assert again == means
    nobody = sum(one.skipped for one in done)
    assert (nobody > 0) == isinstance(parties, Poisson)  # 0.7^5 of six rounds
    assert traffic.skipped == after.skipped == nobody
    assert {one.why for one in done if one.skipped} <= {"nobody was drawn"}
    # All have sent in every round: who answers tells nobody who was drawn.
    assert traffic.answered.tolist() == after.answered.tolist() == [6] * 5
    assert len(set(traffic.bits_up.tolist())) == 1


def test_a_server_that_dies_before_it_fetches_a_batch_knows_that_all_have_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Deployed(plan_of(Fixed(size=2)), tmp_path, sizes=SIZES)
    try:
        ask = made.begin()
        with monkeypatch.context() as patch:
            patch.setattr(RunJournal, "keep", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                ask(0, AT, (1.0,))
        again = made.begin()
        again(0, AT, (1.0,))
        (facts,) = again.done
        assert facts.answered == (0, 1, 2, 3, 4)
        assert facts.bytes_up == (0,) * 5  # no silo was asked again
    finally:
        made.close()


def test_a_batch_without_a_mean_is_given_up_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a drawn party sends a symbol that is none of the alphabet: nobody can say who."""
    plan = plan_of(Fixed(size=2), rounds=2)

    def broken(*_: Any, **__: Any) -> Any:
        raise ParameterError("a message must hold symbols of the alphabet.")

    with monkeypatch.context() as patched:
        patched.setattr("tacit.federation.server.Server.means_of_batch", broken)
        means, (traffic, done) = rounds_of(plan, tmp_path / "run")
    assert not np.any(means)
    assert traffic.skipped == 2
    assert [one.why for one in done] == ["a message must hold symbols of the alphabet."] * 2
