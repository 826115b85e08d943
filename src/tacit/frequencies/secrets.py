"""Keys of one use: kept apart from messages, of one length for everybody, never shown."""

from __future__ import annotations

from typing import NoReturn, Self

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.mechanisms import whole_values
from tacit.numerics import IntArray
from tacit.randomness import SecretStateError

__all__ = ["OneTimeKeys"]


class OneTimeKeys:
    """Secret keys of n clients, one each: each hides one message, and whoever holds it undoes that.

    They are shown by no `repr`, refuse to be copied or pickled, and can be wiped. In bytes every key has the
    same number of bits: the length of a shorter code would tell whether a key is a likely one. Send them over
    a private channel, and keep them apart from the messages.

    Args:
        symbols: Shape (n,), whole numbers from 0 to `size` - 1; copied.
        size: Number of keys that are possible, >= 2.
        fresh: Whether they may still hide a message. Those of a holder may not.

    Raises:
        ParameterError: A key is out of range.

    Example:
        >>> keys = OneTimeKeys(np.array([3, 0]), 5)
        >>> keys, len(keys.to_bytes())
        (OneTimeKeys(2 secret keys), 1)
        >>> keys.wipe()
    """

    __slots__ = ("_fresh", "_symbols", "size")

    def __init__(self, symbols: npt.ArrayLike, size: int, *, fresh: bool = True) -> None:
        self.size = check_count("size", size, low=2)
        held = whole_values("symbols", symbols, self.size)
        if held.ndim != 1:
            raise ParameterError(f"symbols must have shape (n,), got {held.shape}.")
        self._symbols: IntArray | None = held.copy()
        self._fresh = fresh

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
        """
        symbols = self.read(n)
        if not self._fresh:
            raise ParameterError(
                "keys must be fresh: these have hidden messages before, or are a holder's. Two messages "
                "under one key show how their values differ."
            )
        self._fresh = False
        return symbols

    def read(self, n: int | None = None) -> IntArray:
        """Return the keys to undo n messages with: a view, of which no copy should outlive its use.

        Raises:
            ParameterError: They are not n, or were wiped.
        """
        if self._symbols is None:
            raise ParameterError("keys must not have been wiped.")
        if n is not None and self._symbols.size != n:
            raise ParameterError(f"keys must be one for each of {n} messages, got {self._symbols.size}.")
        return self._symbols

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
        """Write the keys, each with `key_bits` bits, whatever it is; zeros fill up the last byte."""
        shifts = np.arange(self.key_bits)[::-1]
        return np.packbits((self.read()[:, None] >> shifts & 1).astype(np.uint8)).tobytes()

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
        width = (check_count("size", size, low=2) - 1).bit_length()
        used = check_count("n", n, low=0) * width
        if len(data) != -(-used // 8):
            raise ParameterError(
                f"data must have {-(-used // 8)} bytes, {n} keys of {width} bits, got {len(data)}."
            )
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
        if bits[used:].any():
            raise ParameterError("data must be filled up with zeros.")
        return cls(bits[:used].reshape(n, width) @ (1 << np.arange(width)[::-1]), size, fresh=False)
