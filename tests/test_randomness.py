"""The three kinds of randomness keep their promises."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError, TacitError
from tacit.randomness import PublicStream, SecretStateError, SecureGenerator, is_secure, secure, simulated
from tests.statistics import FALSE_ALARM

MASK64 = 2**64 - 1
GOLDEN_WORDS = ["0x7ecf423a5422f946", "0xe262c095fd43152d", "0xbe2a7bfb91421904"]
GOLDEN_SIGNS = [-1, -1, -1, -1, 1, 1, 1, -1, -1, -1, -1, 1]
GOLDEN_INTEGERS = [531, 965, 140, 57, 905, 11]
GOLDEN_PERMUTATION = [2, 6, 0, 7, 1, 5, 3, 4]
GOLDEN_UNIFORM = [0.25490380219412545, 0.60486365675463]


def philox_words(key: int, counter: int, blocks: int) -> list[int]:
    """Philox4x64-10 in plain integers, after Salmon et al. (2011), from the block `counter` on."""
    words = []
    for c in range(counter, counter + blocks):
        x = [(c >> 64 * i) & MASK64 for i in range(4)]
        k0, k1 = key & MASK64, key >> 64
        for _ in range(10):
            p0, p1 = 0xD2E7470EE14C6C93 * x[0], 0xCA5A826395121157 * x[2]
            x = [(p1 >> 64) ^ x[1] ^ k0, p1 & MASK64, (p0 >> 64) ^ x[3] ^ k1, p0 & MASK64]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK64, (k1 + 0xBB67AE8584CAA73B) & MASK64
        words += x
    return words


# --- secure
# ---------------------------------------------------------------------------------------------------


def test_secure_generators_share_nothing() -> None:
    draws = [secure().bit_generator.random_raw(4).tolist() for _ in range(3)]
    assert len({tuple(draw) for draw in draws}) == 3


def test_secure_bits_are_chacha20() -> None:
    class_of_bits: Any = type(secure().bit_generator).__mro__[2]
    # Key 0, counter 0: the first block of ChaCha20 (draft-agl-tls-chacha20poly1305-04, section 7, first
    # vector).
    known = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    assert class_of_bits(key=0, counter=0, rounds=20).random_raw(4).astype("<u8").tobytes() == known
    assert class_of_bits(key=0, counter=0, rounds=8).random_raw(4).astype("<u8").tobytes() != known


def test_the_whole_key_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def fake(size: int) -> bytes:
        asked.append(size)
        return b"\0" * size

    monkeypatch.setattr(os, "urandom", fake)
    rng = secure()
    assert asked == [32]
    known = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28")
    assert rng.bit_generator.random_raw(2).astype("<u8").tobytes() == known


@pytest.mark.parametrize("store", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__)
def test_secure_state_cannot_be_stored(store: Callable[[Any], Any]) -> None:
    rng = secure()
    for thing in (rng, rng.bit_generator):
        with pytest.raises(SecretStateError, match="cannot be pickled, copied or checkpointed"):
            store(thing)


@pytest.mark.parametrize("store", [pickle.dumps, copy.deepcopy], ids=lambda f: f.__name__)
def test_secure_state_cannot_be_stored_through_a_plain_generator(store: Callable[[Any], Any]) -> None:
    with pytest.raises(SecretStateError, match="cannot be pickled, copied or checkpointed"):
        store(np.random.Generator(secure().bit_generator))


def test_secure_state_cannot_be_read_or_set() -> None:
    rng = secure()
    bits: Any = rng.bit_generator
    with pytest.raises(SecretStateError, match="nor its state read"):
        _ = bits.state
    with pytest.raises(SecretStateError, match="nor its state read"):
        bits.state = np.random.PCG64(1).state
    with pytest.raises(SecretStateError, match="nor its state read"):
        bits.seed(1)
    with pytest.raises(SecretStateError, match="nor its state read"):
        bits.__setstate__({})
    with pytest.raises(SecretStateError, match="nor its state read"):
        rng.__getstate__()
    assert issubclass(SecretStateError, TacitError)
    assert issubclass(SecretStateError, TypeError)


def test_secure_shows_no_state() -> None:
    assert repr(secure()) == str(secure()) == f"{secure()}" == "SecureGenerator(ChaCha20)"


def test_spawned_generators_are_secure_and_independent() -> None:
    rng = secure()
    children = rng.spawn(3)
    assert all(isinstance(child, SecureGenerator) and is_secure(child) for child in children)
    draws = [g.bit_generator.random_raw(4).tolist() for g in (rng, *children)]
    assert len({tuple(draw) for draw in draws}) == 4
    bits = rng.bit_generator.spawn(2)
    assert all(is_secure(np.random.Generator(b)) for b in bits)
    with pytest.raises(ParameterError, match="n_children must be a whole number >= 0"):
        rng.spawn(-1)


def after_fork(draw: Callable[[], bytes]) -> bytes:
    """What a forked child draws."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, draw())
        finally:
            os._exit(0)
    os.close(write)
    answer = os.read(read, 64)
    os.close(read)
    os.waitpid(pid, 0)
    return answer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_draws_other_numbers() -> None:
    rng, control = secure(), np.random.Generator(np.random.PCG64(3))
    rng.random(5)
    children = [after_fork(lambda: rng.bytes(32)) for _ in range(2)]
    assert len({*children, rng.bytes(32)}) == 3
    assert all(len(child) == 32 for child in children)
    assert after_fork(lambda: control.bytes(32)) == control.bytes(32)  # this test can see a shared stream


@pytest.mark.parametrize("start", [0, 1, 15, 16, 17])
def test_a_new_key_leaves_nothing_of_the_old_block(monkeypatch: pytest.MonkeyPatch, start: int) -> None:
    rng = secure()
    rng.bytes(4 * start)
    monkeypatch.setattr(os, "urandom", lambda size: b"\0" * size)
    bits: Any = rng.bit_generator
    bits.rekey()
    known = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28")
    assert bits.random_raw(2).astype("<u8").tobytes() == known


def test_secure_normals_follow_their_law() -> None:
    # The seed cannot be fixed, so the bound alone keeps false alarms below FALSE_ALARM.
    assert stats.kstest(secure().standard_normal(20_000), "norm").pvalue > FALSE_ALARM


def test_only_secure_randomness_is_secure() -> None:
    class Tampered(SecureGenerator):
        def random(self, *args: Any, **kwargs: Any) -> Any:
            return 0.5

    assert is_secure(secure())
    assert is_secure(np.random.Generator(secure().bit_generator))
    assert not is_secure(simulated(0))
    assert not is_secure(Tampered())
    assert not is_secure(np.random.Generator(type(secure().bit_generator).__mro__[2](key=1)))


# --- simulated
# ------------------------------------------------------------------------------------------------


def test_simulated_streams_repeat() -> None:
    assert simulated(5, "noise", 3).random(4).tolist() == simulated(5, "noise", 3).random(4).tolist()


def test_every_purpose_has_a_stream_of_its_own() -> None:
    purposes: list[tuple[str | int, ...]] = [
        (), ("",), ("a",), ("b",), ("ab",), ("a", "b"), ("b", "a"), (0,), (1,), (-1,), ("0",), (0, 0),
        ("a", 0), (255,), (256,), (2**64,), (-(2**64),),
    ]  # fmt: skip
    first = {simulated(seed, *purpose).integers(2**63) for seed, purpose in product((0, 1), purposes)}
    assert len(first) == 2 * len(purposes)


def test_numpy_integers_name_the_same_stream() -> None:
    number: Any = np.int64(3)
    assert simulated(5, number).random() == simulated(5, 3).random()


@pytest.mark.parametrize("part", [1.0, None, True, b"a"])
def test_simulated_refuses_other_purposes(part: Any) -> None:
    with pytest.raises(ParameterError, match="purpose must consist of names and whole numbers"):
        simulated(0, part)


def test_simulated_refuses_a_negative_seed() -> None:
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0, got -1"):
        simulated(-1)


# --- public
# ---------------------------------------------------------------------------------------------------


def test_the_reference_is_philox() -> None:
    # Known answer of Random123 1.14 for philox4x64-10, counter 0 and key 0.
    known = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox_words(0, 0, 1) == known


def test_public_words_are_philox_under_the_hashed_key() -> None:
    # Every part: its kind, its length in eight bytes, its bytes (numbers little-endian and signed).
    parts = (b"s", b"public"), (b"i", b"\x07"), (b"i", b"\x2c\x01"), (b"i", b"\x80\x00"), (b"s", b"signs")
    text = b"".join(kind + len(data).to_bytes(8, "little") + data for kind, data in parts)
    key = int.from_bytes(hashlib.blake2b(text, digest_size=16, person=b"tacit.random").digest(), "little")
    stream = PublicStream(7, 300, party=128, purpose="signs")
    assert stream.words(12).tolist() == philox_words(key, 1, 3)  # NumPy counts up before the first block


def test_golden_words() -> None:
    # From `philox_words` above. They must never change: stored messages are decoded with them.
    assert [hex(w) for w in PublicStream(0, 0).words(3).tolist()] == GOLDEN_WORDS
    stream = PublicStream(1, 2, party=3, purpose="x")
    assert stream.signs(12).tolist() == GOLDEN_SIGNS
    assert stream.integers(1000, 6).tolist() == GOLDEN_INTEGERS
    assert stream.permutation(8).tolist() == GOLDEN_PERMUTATION
    assert stream.uniform(2).tolist() == GOLDEN_UNIFORM


def test_every_argument_changes_the_words() -> None:
    streams = [
        PublicStream(seed, number, party=party, purpose=purpose)
        for seed, number, party, purpose in product((0, 1, 2**70), (0, 1), (0, 1), ("", "a"))
    ]
    assert len({int(stream.words(1)[0]) for stream in streams}) == len(streams)


@given(sizes=st.lists(st.integers(0, 9), max_size=6))
def test_words_and_integers_do_not_depend_on_chunks(sizes: list[int]) -> None:
    whole, parts = PublicStream(4, 0), PublicStream(4, 0)
    assert whole.words(sum(sizes)).tolist() == [w for size in sizes for w in parts.words(size).tolist()]
    high = 37
    drawn = [k for size in sizes for k in parts.integers(high, size).tolist()]
    assert whole.integers(high, sum(sizes)).tolist() == drawn


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_signs_are_the_bits_of_the_words(n: int) -> None:
    words = PublicStream(9, 1).words(-(-n // 64)).tolist()
    expected = [2 * ((words[i // 64] >> (i % 64)) & 1) - 1 for i in range(n)]
    signs = PublicStream(9, 1).signs(n)
    assert signs.dtype == np.int8
    assert signs.tolist() == expected


@pytest.mark.parametrize("high", [1, 2, 3, 5, 8, 2**40 + 1, 2**63])
def test_integers_are_the_masked_words_below_the_bound(high: int) -> None:
    words = PublicStream(9, 2).words(400).tolist()
    mask = (1 << (high - 1).bit_length()) - 1
    expected = [w & mask for w in words if w & mask < high][:100]
    drawn = PublicStream(9, 2).integers(high, 100)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == expected


def test_permutation_follows_the_uniform_law() -> None:
    stream = PublicStream(11, 0)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(2400):
        order = tuple(stream.permutation(4).tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_permutation_draws_equal_keys_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([np.array([5, 5, 1], dtype=np.uint64), np.array([9, 5, 7], dtype=np.uint64)])
    monkeypatch.setattr(PublicStream, "words", lambda _self, _n: next(answers))
    assert PublicStream(0, 0).permutation(3).tolist() == [1, 2, 0]


def test_uniform_uses_the_high_53_bits() -> None:
    words = PublicStream(9, 3).words(50).tolist()
    assert PublicStream(9, 3).uniform(50).tolist() == [(w >> 11) / 2**53 for w in words]


@pytest.mark.parametrize("arguments", [(-1, 0), (0, -1), (0.5, 0), (True, 0)])
def test_public_stream_refuses_what_is_no_number(arguments: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError, match="must be a whole number >= 0"):
        PublicStream(*arguments)


def test_public_stream_refuses_bad_requests() -> None:
    stream = PublicStream(0, 0)
    with pytest.raises(ParameterError, match="party must be a whole number >= 0, got -2"):
        PublicStream(0, 0, party=-2)
    with pytest.raises(ParameterError, match="purpose must consist of names"):
        PublicStream(0, 0, purpose=1.5)  # type: ignore[arg-type]  # the refusal is what is tested
    with pytest.raises(ParameterError, match="high must be a whole number from 1 to"):
        stream.integers(0, 3)
    with pytest.raises(ParameterError, match="high must be a whole number from 1 to"):
        stream.integers(2**63 + 1, 3)
    for method in (stream.words, stream.signs, stream.permutation, stream.uniform):
        with pytest.raises(ParameterError, match="n must be a whole number >= 0, got -1"):
            method(-1)


def test_public_words_are_not_secure() -> None:
    assert not is_secure(PublicStream(0, 0))  # type: ignore[arg-type]  # the refusal is what is tested
