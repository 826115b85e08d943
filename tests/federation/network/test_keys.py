"""Keys: signatures hold for one key, one purpose and one text, and files are their owner's alone."""

from __future__ import annotations

import base64
import pickle
import stat
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network import keys
from tacit.federation.network.keys import (
    OpeningKey,
    Purpose,
    SealingKey,
    SigningKey,
    VerifyKey,
    read_private,
)
from tacit.federation.public_texts import save_new
from tests.federation.network.parties import signing_key

KEY, OTHER = signing_key("one"), signing_key("other")
PURPOSES = get_args(Purpose)


@given(st.binary(max_size=40), st.sampled_from(PURPOSES))
def test_a_signature_holds_for_its_key_purpose_and_text_only(data: bytes, purpose: Any) -> None:
    signature = KEY.sign(purpose, data)
    assert len(signature) == 64
    KEY.public.verify(purpose, data, signature)
    for other in PURPOSES:
        if other != purpose:
            with pytest.raises(AuthenticationError, match=f"the signature of the {other} is not by the key"):
                KEY.public.verify(other, data, signature)
    for public, text, signed in (
        (OTHER.public, data, signature),
        (KEY.public, data + b"\0", signature),
        (KEY.public, data, signature[:-1]),
        (KEY.public, data, b""),
        (KEY.public, data, signature + b"\0"),
        (KEY.public, data, bytes([signature[0] ^ 1]) + signature[1:]),
    ):
        with pytest.raises(AuthenticationError, match="is not by the key"):
            public.verify(purpose, text, signed)


def test_what_is_signed_is_written_down() -> None:
    """The form is part of the protocol: other software must be able to check it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Ed25519PublicKey.from_public_bytes(KEY.public.raw).verify(
        KEY.sign("guarantee", b"text"), b"tacit 1 guarantee\0text"
    )


def test_no_purpose_begins_like_another_one() -> None:
    said = [f"{purpose}\0" for purpose in PURPOSES]
    assert not any(a != b and b.startswith(a) for a in said for b in said)
    with pytest.raises(ParameterError, match=r"purpose must be one of request, reply, .*, got 'letter'"):
        KEY.sign("letter", b"")  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "public"), [(SigningKey, VerifyKey), (OpeningKey, SealingKey)])
def test_public_keys_come_back_from_their_text(kind: Any, public: Any) -> None:
    key = kind.make().public
    text = key.to_text()
    assert len(text) == 44
    assert public.from_text(text) == key
    assert hash(public.from_text(text)) == hash(key)
    assert key != kind.make().public
    assert repr(key) == text
    for bad in (
        "",
        text[:-1],
        text + "=",
        text + "\n",
        text[:-2] + "==",
        "é" * 44,
        text.replace("=", "!"),
        3,
    ):
        with pytest.raises(
            ParameterError, match=r"^a key that (verifies|seals) must be the base64 of 32 bytes"
        ):
            public.from_text(bad)
    with pytest.raises(ParameterError, match="must be 32 bytes"):
        public(bytes(31))
    # The last of 43 characters has two bits that say nothing: only one way to write them is read.
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(text[42])
    other = text[:42] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[last ^ 1] + "="
    assert base64.b64decode(other) == key.raw
    with pytest.raises(ParameterError, match="must be the base64"):
        public.from_text(other)


P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def decompressed(raw: bytes) -> tuple[int, int] | None:
    """Return the point of an encoding on the twisted Edwards curve (RFC 8032, section 5.1.3)."""
    sign, y = raw[31] >> 7, int.from_bytes(raw, "little") % 2**255 % P
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - xx) % P:
        return None
    return (P - x if x % 2 != sign else x) % P, y


def added(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2
    return (
        (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P,
    )


def test_keys_under_which_anybody_could_sign_are_refused() -> None:
    """All points of order 1, 2, 4 and 8, and no other: their eightfold is the neutral point."""
    points = set()
    for raw in keys._SMALL_ORDER:
        for high in (0, 0x80):
            encoded = raw[:31] + bytes([raw[31] | high])
            point = decompressed(encoded)
            assert point is not None
            points.add(point)
            for _ in range(3):
                point = added(point, point)
            assert point == (0, 1)
            with pytest.raises(ParameterError, match="must not be of small order"):
                VerifyKey(encoded)
    assert len(points) == 8  # the whole subgroup: none is forgotten
    ordinary = decompressed(KEY.public.raw)
    assert ordinary is not None
    for _ in range(3):
        ordinary = added(ordinary, ordinary)
    assert ordinary != (0, 1)


def test_keys_that_everybody_could_open_are_refused() -> None:
    for number in (0, 1, P - 1, P, P + 1):
        with pytest.raises(ParameterError, match="must not be of small order"):
            SealingKey(number.to_bytes(32, "little"))


@pytest.mark.parametrize("kind", [SigningKey, OpeningKey])
def test_private_keys_come_back_from_files_of_their_owner(kind: Any, tmp_path: Path) -> None:
    key = kind.make()
    path = tmp_path / "keys" / "deep" / "one.pem"
    key.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert kind.load(path).public == key.public
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=r"one.pem is there already, and is never overwritten"):
        kind.make().save(path)
    assert path.read_bytes() == before
    for mode in (0o640, 0o604, 0o660, 0o602, 0o610):
        path.chmod(mode)
        with pytest.raises(AuthenticationError, match=rf"\(mode {mode:03o}\): `chmod 600 .*one.pem`"):
            kind.load(path)
    path.chmod(0o400)
    assert kind.load(path).public == key.public


def test_what_is_signed_is_the_same_after_loading(tmp_path: Path) -> None:
    KEY.save(tmp_path / "a.pem")
    assert SigningKey.load(tmp_path / "a.pem").sign("log", b"x") == KEY.sign("log", b"x")


def test_files_that_hold_no_such_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"the private key .*none.pem cannot be read: No such file"):
        SigningKey.load(tmp_path / "none.pem")
    with pytest.raises(ParameterError, match="cannot be read: Is a directory"):
        SigningKey.load(tmp_path)
    locked = X25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    for name, data in (("text", b"hello"), ("empty", b""), ("locked", locked)):
        save_new(data, tmp_path / name, private=True)
        with pytest.raises(
            ParameterError, match=rf"{name} must hold a private key as PEM \(PKCS8\), without a"
        ):
            OpeningKey.load(tmp_path / name)
    OpeningKey.make().save(tmp_path / "seal")
    with pytest.raises(ParameterError, match="seal must hold a key of Ed25519, got one of X25519"):
        SigningKey.load(tmp_path / "seal")
    KEY.save(tmp_path / "sign")
    with pytest.raises(ParameterError, match="sign must hold a key of X25519, got one of Ed25519"):
        OpeningKey.load(tmp_path / "sign")
    save_new(bytes(2**16 + 1), tmp_path / "long", private=True)
    with pytest.raises(ParameterError, match="long must have at most 65,536 bytes"):
        read_private(tmp_path / "long")
    with pytest.raises(ParameterError, match="cannot be written: Not a directory"):
        save_new(b"", tmp_path / "long" / "x", private=True)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="link is there already"):
        save_new(b"", tmp_path / "link", private=True)


@pytest.mark.parametrize("kind", [SigningKey, OpeningKey])
def test_private_keys_are_not_printed_or_pickled(kind: Any) -> None:
    key = kind.make()
    assert key.public.to_text() in repr(key)
    assert len(repr(key)) < 70
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(key)
