"""Keys of one use: kept apart from messages, of one length for everybody, never shown."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import NoReturn, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.mechanisms import whole_values
from tacit.numerics import IntArray
from tacit.randomness import SecretStateError

__all__ = ["OneTimeKeys", "check_keys", "law_digest"]

_DIGEST = 8


def law_digest(*facts: str | bytes) -> bytes:
    """Return 8 bytes that name the law of keys by its public facts."""
    parts = [fact.encode() if isinstance(fact, str) else fact for fact in facts]
    return hashlib.blake2b(b"tacit keys 1\0" + b"\0".join(parts), digest_size=_DIGEST).digest()


def check_keys(keys: object, size: int, law: bytes) -> OneTimeKeys:
    """Return the keys of a law; refuse others, also those of another level.

    Args:
        keys: From anybody.
        size: Number of keys that are possible.
        law: Its `law_digest`.

    Raises:
        ParameterError: They are other ones.
    """
    if not isinstance(keys, OneTimeKeys):
        raise ParameterError(f"keys must be OneTimeKeys, got {type(keys).__name__}.")
    if keys.size != size:
        raise ParameterError(f"keys must be of {size} kinds, got {keys.size}.")
    if keys.law != law:
        raise ParameterError(
            "keys must be drawn for this mechanism at its level, or for this analyst; these are of another "
            "law, and would hide less than is stated."
        )
    return keys


class OneTimeKeys:
    """Secret keys of n clients, one each: each hides one message, and whoever holds it undoes that.

    They are shown by no `repr`, refuse to be copied or pickled, and can be wiped. In bytes every key has the
    same number of bits: the length of a shorter code would tell whether a key is a likely one. Send them over
    a private channel, and keep them apart from the messages.

    Args:
        symbols: Shape (n,), whole numbers from 0 to `size` - 1; copied.
        size: Number of keys that are possible, from 2 to 2**63 - 1.
        law: What they were drawn by, as its digest: a mechanism refuses keys of any other law.
        fresh: Whether they may still hide a message: only those may that `draw_keys` has just drawn.

    Raises:
        ParameterError: A key is out of range.

    Example:
        >>> from tacit.frequencies import CyclicResponse
        >>> keys = CyclicResponse(k=5, epsilon=1.0).draw_keys(2, np.random.default_rng(0))
        >>> keys, len(keys.to_bytes())
        (OneTimeKeys(2 secret keys), 9)
        >>> keys.wipe()
    """

    __slots__ = ("_fresh", "_lock", "_process", "_symbols", "law", "size")

    def __init__(
        self, symbols: npt.ArrayLike, size: int, *, law: bytes = bytes(_DIGEST), fresh: bool = False
    ) -> None:
        self.size = check_count("size", size, low=2, high=2**63 - 1)
        self.law = law
        held = whole_values("symbols", symbols, self.size)
        if held.ndim != 1:
            raise ParameterError(f"symbols must have shape (n,), got {held.shape}.")
        self._symbols: IntArray | None = held.copy()
        self._fresh = fresh
        self._lock, self._process = threading.Lock(), os.getpid()

    def __len__(self) -> int:
        return self.read().size

    def __repr__(self) -> str:
        if self._symbols is None:
            return "OneTimeKeys(wiped)"
        return f"OneTimeKeys({self._symbols.size} secret keys)"

    __str__ = __repr__

    def _refuse(self, *_: object) -> NoReturn:
        raise SecretStateError("secret keys cannot be pickled or copied: a copy could hide a second message.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse(protocol)

    def __getstate__(self) -> NoReturn:
        self._refuse()

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse(memo)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()

    def spend(self, n: int) -> IntArray:
        """Return the keys to hide n messages with; once.

        Raises:
            ParameterError: They have hidden messages before, came from elsewhere, or are not n.
            SecretStateError: Another process drew them: a fork has copied them.
        """
        symbols = self.read(n)
        if self._process != os.getpid():
            self._refuse()
        with self._lock:
            fresh, self._fresh = self._fresh, False
        if not fresh:
            raise ParameterError(
                "keys must be fresh: these have hidden messages before, or are a holder's. Two messages "
                "under one key show how their values differ."
            )
        return symbols

    def read(self, n: int | None = None) -> IntArray:
        """Return the keys to undo n messages with: a read-only view; no copy should outlive its use.

        Raises:
            ParameterError: They are not n, or were wiped.
        """
        if self._symbols is None:
            raise ParameterError("keys must not have been wiped.")
        if n is not None and self._symbols.size != n:
            raise ParameterError(f"keys must be one for each of {n} messages, got {self._symbols.size}.")
        seen = self._symbols.view()
        seen.flags.writeable = False
        return seen

    def wipe(self) -> None:
        """Overwrite the keys with zeros and forget them.

        Numbers that Python or NumPy have copied on the way, and pages that were swapped out, are not reached.
        """
        if self._symbols is not None:
            self._symbols[:] = 0
        self._symbols, self._fresh = None, False

    @property
    def key_bits(self) -> int:
        """Bits of each key in bytes."""
        return (self.size - 1).bit_length()

    def to_bytes(self) -> bytes:
        """Write the digest of the law, then keys of `key_bits` bits each; zeros fill up the last byte."""
        shifts = np.arange(self.key_bits)[::-1]
        return self.law + np.packbits((self.read()[:, None] >> shifts & 1).astype(np.uint8)).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, size: int, n: int) -> Self:
        """Read keys for their holder: they undo messages, and hide none.

        Args:
            data: What `to_bytes` wrote.
            size: Number of keys that are possible.
            n: Number of clients.

        Raises:
            ParameterError: Another length, filling that is not zero, or no such key.
        """
        width = (check_count("size", size, low=2, high=2**63 - 1) - 1).bit_length()
        used = check_count("n", n, low=0) * width
        length = _DIGEST + -(-used // 8)
        if type(data) is not bytes:
            raise ParameterError(f"data must be bytes, got {type(data).__name__}.")
        if len(data) != length:
            raise ParameterError(f"data must have {length} bytes, {n} keys of {width} bits, got {len(data)}.")
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8, offset=_DIGEST))
        if bits[used:].any():
            raise ParameterError("data must be filled up with zeros.")
        symbols = bits[:used].reshape(n, width) @ (1 << np.arange(width)[::-1])
        return cls(symbols, size, law=data[:_DIGEST])
