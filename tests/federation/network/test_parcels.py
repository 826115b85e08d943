"""A batch that was sealed, mixed blindly and opened is what the shuffler in this process would release."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation import Batched, Fixed, Shuffler
from tacit.federation.answers import encode_answer
from tacit.federation.network import parcels as module
from tacit.federation.network.keys import OpeningKey
from tacit.federation.network.parcels import (
    ParcelForm,
    SealedBatch,
    form_of,
    make_parcel,
    open_batch,
    parcel_form,
)
from tacit.federation.network.sealing import SEALED_OVERHEAD, open_sealed, seal_padded
from tacit.means import ESTIMATORS as ALL
from tacit.means import BinomialMean, Message, Round, SampledBinaryMean
from tacit.privacy import PrivacyBudget, TrustModel
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.network.shuffled import MEAN, RUN, SIZES, World, plan_of, query, world
from tests.federation.world import DIM
from tests.statistics import FALSE_ALARM

CASES = {str(case): case for case in ESTIMATORS if case.make(3, 1).trust is TrustModel.SHUFFLE}


def estimator(name: str) -> Any:
    """One that may stand in a plan of shuffle trust."""
    mean = CASES[name].make(DIM, 1)
    changes = {
        field: value for field, value in (("n_min", None), ("honest_fraction", 1.0)) if hasattr(mean, field)
    }
    return msgspec.structs.replace(mean, **changes)


def both(made: World) -> tuple[Batched, Batched]:
    """One round by the shuffler of this process and by the other, of the same answers."""
    signed = made.open()
    circle = signed.descriptor.circle
    answers = {party: made.answer(party, signed) for party in circle.parties}
    shuffler = Shuffler(made.plan, run=RUN, rng=np.random.default_rng(1))
    expected = shuffler.release(query(0, made.plan), circle, answers)
    for party in circle.parties:
        made.send(party, signed)
    return expected, open_batch(made.batch(signed), form=made.form(0), info=signed.info, key=made.who.opening)


def content(messages: list[Message]) -> list[Any]:
    """All that a batch says, but for the order of what was permuted."""
    return sorted(
        (
            m.label,
            m.payload.dtype.str,
            m.width,
            m.symbols,
            m.sender is None,
            np.sort(m.payload).tolist() if m.width else m.payload.tolist(),
        )
        for m in messages
    )


def test_every_estimator_that_knows_shuffling_is_tried() -> None:
    may = {
        tag
        for tag, kind in ALL.items()
        if any(
            case.make(3, 1).trust is TrustModel.SHUFFLE
            for case in ESTIMATORS
            if type(case.make(3, 1)) is kind
        )
    }
    assert {type(estimator(name)) for name in CASES} == {ALL[tag] for tag in may}
    assert len(may) == 12


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_that_of_the_shuffler_in_process(name: str, tmp_path: Path) -> None:
    mean = estimator(name)
    expected, found = both(world(plan_of(mean), tmp_path / "s"))
    assert (found.rows, found.parties) == (expected.rows, expected.parties) == (sum(SIZES), len(SIZES))
    assert [content(group) for group in found.messages] == [content(group) for group in expected.messages]
    here = Round(n=found.rows, radius=1.0, parties=found.parties)
    (mine,), (theirs,) = found.messages, expected.messages
    decoded = mean.decode(mine, here), mean.decode(theirs, here)
    if mean.exact:  # whole numbers are added up: no order can be seen in the sum
        np.testing.assert_array_equal(*decoded)
    else:
        np.testing.assert_allclose(*decoded, rtol=1e-12, atol=1e-12)


def test_statistics_of_one_step_share_lanes_and_one_length(tmp_path: Path) -> None:
    means = [estimator(name) for name in ("shuffled gaussian", "sampled binary, shuffled")]
    made = world(plan_of(MEAN, *means, batch=Fixed(size=4)), tmp_path / "s")
    forms = [made.form(party) for party in range(3)]
    assert {form.blob_bytes for form in forms} == {2 + 32 + SEALED_OVERHEAD}  # seeds are the longest
    expected, found = both(made)
    assert found.rows == expected.rows == 12
    assert [content(group) for group in found.messages] == [content(group) for group in expected.messages]


def test_sizes_follow_from_plan_and_size_alone(tmp_path: Path) -> None:
    mean = estimator("sampled binary, shuffled")
    made = world(plan_of(mean), tmp_path / "s")
    signed = made.open()
    for party, n in enumerate(SIZES):
        form = made.form(party)
        assert len(made.parcel(party, signed)) == form.size == n * mean.samples * form.blob_bytes
        assert made.parcel(party, signed) != made.parcel(party, signed)
    assert signed.descriptor.blob_bytes == made.form(0).blob_bytes == 2 + 1 + SEALED_OVERHEAD


def test_symbols_of_any_width_survive() -> None:
    """Also at both ends of their range."""
    key, info = OpeningKey.make(), b"i"
    for width in (1, 2, 7, 8, 9, 16, 31, 33, 63, 64):
        ends = np.array([-(2 ** (width - 1)), 2 ** (width - 1) - 1, 0 if width > 1 else -1])
        message = Message(payload=ends.astype(np.int64), width=width, label=3)
        batch, form = _sealed([[message]], key, info)
        (found,) = open_batch(batch, form=form, info=info, key=key).messages[0]
        assert (found.width, found.label, found.payload.tolist()) == (width, 3, ends.tolist())


def test_labels_are_told_apart_as_the_shuffler_tells_them() -> None:
    key, info = OpeningKey.make(), b"i"
    messages = [
        Message(payload=np.array([5, 6]), label=2, symbols=9),
        Message(payload=np.array([1.5, 2.5], dtype=np.float32), label=0),
        Message(payload=np.array([3.5, 4.5], dtype=np.float32), label=0),
        Message(payload=np.array([1, -2, 3]), label=1, width=3),
    ]
    batch, form = _sealed([messages, messages[:1]], key, info)
    one, other = open_batch(batch, form=form, info=info, key=key).messages
    assert [m.label for m in one] == [0, 0, 1, 2]
    assert content(one) == content(messages)
    assert content(other) == content(messages[:1])


def _sealed(groups: list[list[Message]], key: OpeningKey, info: bytes) -> tuple[SealedBatch, ParcelForm]:
    """One party's messages as a batch of their own."""
    form = form_of(tuple(groups))
    answer = encode_answer(tuple(tuple(m.to_bytes() for m in group) for group in groups), b"b" * 16)
    parcel = make_parcel(answer, form=form, party=0, bound=b"b" * 16, info=info, key=key.public)
    return SealedBatch(rows=1, parties=1, came=1, sealed=form.sealed, symbols=form.symbols, body=parcel), form


# --- the sum lane


def test_masked_counts_are_uniform_and_say_nothing_without_their_seeds(tmp_path: Path) -> None:
    """Bytes of what the shuffler adds up, over one coordinate: a chi-square test at a chance of 1e-7."""
    mean = BinomialMean(dim=4000, noise_bits=1, resolution=1)
    made = world(plan_of(mean, sizes=(2, 2)), tmp_path / "s", (2, 2), data=[np.zeros((2, 4000))] * 2)
    signed = made.open()
    form = made.form(0)
    masked = np.frombuffer(made.parcel(0, signed), dtype=np.uint8, offset=form.blobs * form.blob_bytes)
    assert masked.size == 8 * 4000
    assert stats.chisquare(np.bincount(masked, minlength=256)).pvalue > FALSE_ALARM
    # The same counts twice: the difference of two masks, as uniform.
    again = np.frombuffer(made.parcel(0, signed), dtype=np.uint8, offset=form.blobs * form.blob_bytes)
    difference = (masked.view("<u8") - again.view("<u8")).view(np.uint8)
    assert stats.chisquare(np.bincount(difference, minlength=256)).pvalue > FALSE_ALARM


def test_sums_wrap_modulo_a_word(tmp_path: Path) -> None:
    """With masks, nearly every word of a sum of three overflows."""
    expected, found = both(world(plan_of(MEAN), tmp_path / "s"))
    (mine,), (theirs,) = found.messages[0], expected.messages[0]
    assert mine.payload.dtype == np.int64
    np.testing.assert_array_equal(mine.payload, theirs.payload)
    assert mine.symbols == theirs.symbols == sum(SIZES) * MEAN.bits_per_coordinate


# --- what a server does not take


def opened(made: World, change: Any = None, **fields: Any) -> Batched:
    """A round, of which a batch was changed before the server opens it."""
    signed = made.open()
    if made.shuffling.waiting:
        for party in range(3):
            made.send(party, signed)
    batch = made.batch(signed)
    changed = batch if change is None else change(batch, signed)
    return open_batch(
        changed, **{"form": made.form(0), "info": signed.info, "key": made.who.opening, **fields}
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b, _: msgspec.structs.replace(b, body=b.body[:-1]), "must have .* bytes"),
        (lambda b, _: msgspec.structs.replace(b, body=b.body + b"\0"), "must have .* bytes"),
        (lambda b, _: msgspec.structs.replace(b, sealed=(2,)), "must have a seed of each of its 3 parties"),
        (lambda b, _: msgspec.structs.replace(b, sealed=(-3,)), "whole numbers"),
        (lambda b, _: msgspec.structs.replace(b, sealed=()), "statistics and labels"),
        (lambda b, _: msgspec.structs.replace(b, parties=2), "must have a seed of each of its 2 parties"),
        (lambda b, _: msgspec.structs.replace(b, parties=0), "whole numbers"),
        (lambda b, _: msgspec.structs.replace(b, body=b.body[:-8] + bytes(8)), "do not belong together"),
    ],
)
def test_a_batch_of_another_form_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        opened(world(plan_of(), tmp_path / "s"), change)


def test_a_message_that_is_none_spoils_a_batch_and_names_nobody(tmp_path: Path) -> None:
    made = world(plan_of(estimator("sampled binary, shuffled")), tmp_path / "s")
    length = made.form(0).blob_bytes - SEALED_OVERHEAD

    def with_first(plain: bytes) -> Any:
        def change(batch: SealedBatch, signed: Any) -> SealedBatch:
            blob = seal_padded(plain, length=length, key=made.who.opening.public, info=signed.info)
            return msgspec.structs.replace(batch, body=blob + batch.body[len(blob) :])

        return change

    width = estimator("sampled binary, shuffled").randomizer.width
    for plain, why in ((b"\0\1\0", "was not asked for"), (b"\0\0\x7f", f"does not fit into {width} bits")):
        with pytest.raises(ParameterError, match=f"{why}.*Nobody can say who"):
            opened(made, with_first(plain))
    with pytest.raises(AuthenticationError, match="cannot be opened"):
        opened(made, lambda b, _: msgspec.structs.replace(b, body=bytes(60) + b.body[60:]))
    with pytest.raises(AuthenticationError, match="cannot be opened"):
        opened(made, info=b"another round")
    with pytest.raises(AuthenticationError, match="cannot be opened"):
        opened(made, key=OpeningKey.make())


def test_padding_and_numbers_of_messages_are_held_against_the_plan(tmp_path: Path) -> None:
    binary = estimator("sampled binary, shuffled")
    made = world(plan_of(binary, MEAN), tmp_path / "s")
    length = made.form(0).blob_bytes - SEALED_OVERHEAD

    def all_one(plain: bytes) -> Any:
        def change(batch: SealedBatch, signed: Any) -> SealedBatch:
            blobs = [
                seal_padded(plain, length=length, key=made.who.opening.public, info=signed.info)
                for _ in range(sum(batch.sealed))
            ]
            return msgspec.structs.replace(batch, body=b"".join(blobs) + batch.body[sum(map(len, blobs)) :])

        return change

    with pytest.raises(ParameterError, match="padding is not zero"):
        opened(made, all_one(b"\0\0\0\1"))
    with pytest.raises(ParameterError, match="not as many as its parties"):
        opened(made, all_one(b"\0\0\0"))


def test_whatever_is_sealed_in_a_batch_is_read_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may seal anything for the server; a million of these were tried once."""
    rng, plains = np.random.default_rng(5), []
    made = world(plan_of(estimator("sampled binary, shuffled"), MEAN), tmp_path / "s")

    def kept(sealed: bytes, **how: Any) -> bytes:
        plains.append(open_sealed(sealed, **how))
        return plains[-1]

    monkeypatch.setattr(module, "open_sealed", kept)
    opened(made)
    (signed, blob), form = (made.open(), made.form(0).blob_bytes), made.form(0)
    batch = made.batch(signed)
    end = len(plains) * blob
    plain = b"".join(one + bytes(SEALED_OVERHEAD) for one in plains) + batch.body[end:]
    monkeypatch.setattr(module, "open_sealed", lambda sealed, **_: sealed[:-SEALED_OVERHEAD])
    whole = msgspec.structs.replace(batch, body=plain)
    assert content(open_batch(whole, form=form, info=b"", key=made.who.opening).messages[1])
    read = 0
    for _ in range(300):
        data = bytearray(whole.to_bytes())
        places = rng.integers(len(data) if rng.random() < 0.8 else 30, size=rng.integers(1, 5))
        for place in places.tolist():
            data[place] = int(rng.integers(256))
        try:
            found = SealedBatch.from_bytes(bytes(data))
            open_batch(found, form=form, info=b"", key=made.who.opening)
            read += 1
        except ParameterError:
            continue
    assert 0 < read < 300


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode([1, 2]), bytes(range(50))])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(ParameterError, match="cannot be read"):
        SealedBatch.from_bytes(data)
    batch = SealedBatch(rows=1, parties=1, came=1, sealed=(1,), symbols=(0,), body=b"", version=3)
    with pytest.raises(ParameterError, match="version 3"):
        SealedBatch.from_bytes(batch.to_bytes())


# --- what a silo does not send


def test_a_silo_sends_only_answers_of_the_form_and_binding_that_were_agreed(tmp_path: Path) -> None:
    made = world(plan_of(), tmp_path / "s")
    signed = made.open()
    fields: dict[str, Any] = {
        "form": made.form(0),
        "party": 0,
        "bound": made.bound(signed.descriptor.circle),
        "info": signed.info,
        "key": made.who.opening.public,
    }
    answer = made.answer(0, signed)
    assert len(make_parcel(answer, **fields)) == made.form(0).size
    with pytest.raises(ParameterError, match="form that plan, step and size"):
        make_parcel(made.answer(1, signed), **fields)
    with pytest.raises(RefusalError, match="another query, circle or run"):
        make_parcel(answer, **{**fields, "bound": bytes(range(16))})
    other = SampledBinaryMean.calibrated(
        dim=DIM, samples=1, budget=PrivacyBudget(4.0, 1e-6), n=5, trust=TrustModel.SHUFFLE
    )
    with pytest.raises(ParameterError, match="form that plan, step and size"):
        make_parcel(answer, **{**fields, "form": parcel_form(plan_of(other).kinds[0][0], 5)})


def test_forms_of_one_step_add_up_and_others_do_not() -> None:
    step = plan_of().kinds[0][0]
    forms = [parcel_form(step, n) for n in SIZES]
    total = ParcelForm.total(forms)
    assert total.symbols == (sum(SIZES) * MEAN.bits_per_coordinate,)
    assert total.sealed == (3,)
    assert [a.slots == b.slots for a, b in pairwise(forms)] == [True] * 2
    other = parcel_form(plan_of(BinomialMean(dim=2, noise_bits=60, resolution=8)).kinds[0][0], 5)
    with pytest.raises(ParameterError, match="belong to one step"):
        total.plus(other)
