"""Sealed texts open for one key and one round only, and a mask is a keystream that others compute alike."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.keys import OpeningKey
from tacit.federation.network.sealing import MASK_SEED_BYTES, SEALED_OVERHEAD, mask, open_sealed, seal_padded

KEY = OpeningKey.make()
INFO = b"round"


def test_what_is_sealed_opens_padded_to_its_length() -> None:
    for plain in (b"", b"a", b"0" * 40):
        sealed = seal_padded(plain, length=40, key=KEY.public, info=INFO)
        assert len(sealed) == 40 + SEALED_OVERHEAD
        assert open_sealed(sealed, key=KEY, info=INFO) == plain.ljust(40, b"\0")


def test_the_same_text_is_sealed_differently_every_time() -> None:
    sealed = {seal_padded(b"yes", length=8, key=KEY.public, info=INFO) for _ in range(20)}
    assert len(sealed) == 20
    # Neither the key of the message nor its ciphertext repeats.
    assert len({one[:32] for one in sealed}) == len({one[32:] for one in sealed}) == 20


def test_a_longer_text_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 3 bytes, got 4"):
        seal_padded(b"four", length=3, key=KEY.public, info=INFO)


def test_another_key_round_or_byte_does_not_open() -> None:
    sealed = seal_padded(b"yes", length=8, key=KEY.public, info=INFO)
    others = [
        (sealed, OpeningKey.make(), INFO),
        (sealed, KEY, b"other"),
        (sealed[:-1], KEY, INFO),
        (b"", KEY, INFO),
    ]
    others += [(sealed[:k] + bytes([sealed[k] ^ 1]) + sealed[k + 1 :], KEY, INFO) for k in range(len(sealed))]
    others.append((bytes(len(sealed)), KEY, INFO))  # a key of small order
    for changed, key, info in others:
        with pytest.raises(AuthenticationError, match="cannot be opened"):
            open_sealed(changed, key=key, info=info)


def test_a_sealed_text_is_that_of_rfc_9180() -> None:
    """Appendix A.1.1: base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, without its own aad.

    The library is checked against the RFC by its authors; what is checked here is that this suite is in use:
    the sealed text is a key of 32 bytes, as long a text, and a tag of 16.
    """
    sealed = seal_padded(b"", length=0, key=KEY.public, info=INFO)
    assert len(sealed) == SEALED_OVERHEAD == 32 + 16


def test_masks_are_the_keystream_of_chacha20() -> None:
    """RFC 8439, Appendix A.1, test vector 1: key, nonce and counter zero."""
    stream = bytes.fromhex(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert mask(bytes(MASK_SEED_BYTES), 8).astype("<u8").tobytes() == stream


def test_a_mask_depends_on_its_seed_and_begins_alike_at_every_length() -> None:
    seed = bytes(range(32))
    np.testing.assert_array_equal(mask(seed, 5), mask(seed, 9)[:5])
    assert not np.intersect1d(mask(seed, 50), mask(seed[::-1], 50)).size
    assert mask(seed, 0).size == 0
    for wrong in (b"", bytes(31)):
        with pytest.raises(ParameterError, match="32 bytes"):
            mask(wrong, 1)
