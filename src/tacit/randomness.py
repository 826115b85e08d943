"""The three kinds of randomness: secure, simulated and public.

* `secure()` makes what privacy rests on: noise and sampling in deployed roles. Nobody can predict, copy or
replay it. * `simulated(seed, ...)` makes repeatable experiments. What it touched is a simulation and is
marked so. * `PublicStream` is known to everybody, the same on all machines, and never a source of noise.

This file, the command line and the experiments are the only places that make generators; all else takes
`rng`.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from randomgen import ChaCha

from tacit.errors import ParameterError, TacitError, check_count

__all__ = ["PublicStream", "SecretStateError", "SecureGenerator", "is_secure", "secure", "simulated"]


class SecretStateError(TacitError, TypeError):
    """An attempt to copy, store or set the state of secure randomness."""


class _Sealed:
    """Refuses every way by which Python copies or stores an object."""

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        # Two answers with the same noise differ by the data alone.
        raise SecretStateError(
            "secure randomness cannot be pickled, copied or checkpointed, nor its state read or set; "
            "make a fresh generator with tacit.randomness.secure(), or a seeded one with simulated(seed) to "
            "repeat an experiment."
        )

    def __reduce__(self) -> NoReturn:
        self._refuse()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse(protocol)

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse(memo)

    def __getstate__(self) -> NoReturn:
        self._refuse()

    def __setstate__(self, state: object) -> NoReturn:
        self._refuse(state)


class _SecretChaCha(_Sealed, ChaCha):  # type: ignore[misc]  # randomgen has no types
    """ChaCha with 20 rounds under a key of 256 bits from the operating system, which is not handed out."""

    _keyed = False

    def __init__(self) -> None:
        super().__init__(key=_os_key(), counter=0, rounds=20)
        self._keyed = True
        _alive.add(self)

    @property
    def state(self) -> NoReturn:
        """Refused."""
        self._refuse()

    @state.setter
    def state(self, value: object) -> NoReturn:
        self._refuse(value)

    def seed(self, *args: object, **kwargs: object) -> None:
        """Refused, except to the constructor of the base class."""
        if self._keyed:
            self._refuse()
        super().seed(*args, **kwargs)

    def spawn(self, n_children: int) -> list[_SecretChaCha]:
        """Make `n_children` bit generators with keys of their own from the operating system."""
        check_count("n_children", n_children, low=0)
        return [_SecretChaCha() for _ in range(n_children)]

    def rekey(self) -> None:
        """Start afresh under a new key, in place: generators that share this object go on with it."""
        super().seed(key=_os_key(), counter=0)


class SecureGenerator(_Sealed, np.random.Generator):
    """A `numpy.random.Generator` over ChaCha20, keyed by the operating system; make it with `secure()`.

    It cannot be pickled, copied or checkpointed, its state cannot be read, and a child made by `os.fork`
    draws other numbers than its parent. (A fork by C code that bypasses Python, and a snapshot of a virtual
    machine, cannot be seen from here.)

    Raises:
        SecretStateError: on any attempt to pickle or copy it, or to read or set its state.
    """

    def __init__(self) -> None:
        super().__init__(_SecretChaCha())

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Make independent secure generators, say one per party.

        Args:
            n_children: How many, >= 0.

        Returns:
            Fresh secure generators: their keys come from the operating system, not from this generator.

        Raises:
            ParameterError: `n_children` is negative or not a whole number.
        """
        check_count("n_children", n_children, low=0)
        return [SecureGenerator() for _ in range(n_children)]

    def __repr__(self) -> str:
        return "SecureGenerator(ChaCha20)"

    __str__ = __repr__


def secure() -> SecureGenerator:
    """Make a generator for noise and sampling in deployed roles.

    Returns:
        A generator that nobody can predict, copy or replay; it takes no seed.

    Example:
        >>> secure()
        SecureGenerator(ChaCha20)
    """
    return SecureGenerator()


def is_secure(rng: np.random.Generator) -> bool:
    """Whether a generator draws from secure randomness; anything else makes a result `simulated`.

    Args:
        rng: Any generator.

    Example:
        >>> is_secure(secure()), is_secure(simulated(0))
        (True, False)
    """
    return type(rng) in (SecureGenerator, np.random.Generator) and type(rng.bit_generator) is _SecretChaCha


def simulated(seed: int, *purpose: str | int) -> np.random.Generator:
    """Make the repeatable stream of one purpose, for experiments and tests only.

    Every purpose has a stream of its own, so a consumer that draws more numbers, or a new one, moves no
    other.

    Args:
        seed: Of the whole experiment, >= 0.
        purpose: Names and numbers that tell this stream from all others, such as `"noise", party`.

    Returns:
        A PCG64 generator; the same arguments give the same stream under one version of NumPy.

    Raises:
        ParameterError: `seed` is negative, or a part of `purpose` is neither a name nor a whole number.

    Example:
        >>> a, b = simulated(7, "noise", 0), simulated(7, "noise", 0)
        >>> bool(a.random() == b.random())
        True
    """
    check_count("seed", seed, low=0)
    digest = _digest("simulated", seed, *purpose, size=32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "little"))))


class PublicStream:
    """Randomness that everybody shares: signs of a sketch, sampled coordinates, rotations. Never for noise.

    Anybody who knows the arguments knows every number: a privacy guarantee must not rest on it. The numbers
    come from raw words of the counter-based Philox4x64-10 (Salmon et al., 2011, SC '11), keyed by a hash of
    the arguments, and from integer arithmetic on them, so that they are equal on all machines and under all
    versions of NumPy.

    Args:
        seed: Of the run, >= 0. Public.
        round: Number of the round, >= 0.
        party: Whose map; a shared map keeps the default. Must be ignored where the sender is hidden.
        purpose: Tells apart the streams of one round.

    Raises:
        ParameterError: a number is negative or not whole, or `purpose` is not a name.

    Example:
        >>> PublicStream(1, 0).permutation(5).tolist() == PublicStream(1, 0).permutation(5).tolist()
        True
    """

    __slots__ = ("_philox",)

    def __init__(self, seed: int, round: int, *, party: int = 0, purpose: str = "") -> None:
        for name, value in (("seed", seed), ("round", round), ("party", party)):
            check_count(name, value, low=0)
        digest = _digest("public", seed, round, party, purpose, size=16)
        self._philox = np.random.Philox(key=int.from_bytes(digest, "little"), counter=0)

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Take the next raw words.

        Args:
            n: How many, >= 0. Taking them in parts or at once makes no difference.

        Returns:
            Shape (n,), uniform 64-bit words.
        """
        check_count("n", n, low=0)
        return np.asarray(self._philox.random_raw(n), dtype=np.uint64)

    def signs(self, n: int) -> npt.NDArray[np.int8]:
        """Take independent fair signs.

        Args:
            n: How many, >= 0. Each call starts at a new word.

        Returns:
            Shape (n,), entries +1 and -1.
        """
        check_count("n", n, low=0)
        # Little-endian bytes on every machine, or big-endian ones would see other signs.
        raw = self.words(-(-n // 64)).astype("<u8").view(np.uint8)
        bits = np.unpackbits(raw, count=n, bitorder="little").astype(np.int8)
        return 2 * bits - 1

    def integers(self, high: int, n: int) -> npt.NDArray[np.int64]:
        """Take independent integers, exactly uniform on 0, ..., high - 1.

        Args:
            high: From 1 to 2**63.
            n: How many, >= 0. Taking them in parts or at once makes no difference.

        Returns:
            Shape (n,).
        """
        check_count("high", high, high=2**63)
        check_count("n", n, low=0)
        mask = np.uint64((1 << (int(high) - 1).bit_length()) - 1)
        parts = [np.empty(0, dtype=np.uint64)]
        missing = n
        # Rejection: a remainder would favour small numbers. No word beyond the last accepted one is used up,
        # so that parts and the whole agree here too.
        while missing:
            masked = self.words(missing) & mask
            parts.append(masked[masked <= np.uint64(high - 1)])
            missing -= parts[-1].size
        return np.concatenate(parts).astype(np.int64)

    def permutation(self, n: int) -> npt.NDArray[np.int64]:
        """Draw an exactly uniform permutation of 0, ..., n - 1.

        Args:
            n: How many, >= 0.

        Returns:
            Shape (n,).
        """
        check_count("n", n, low=0)
        while True:
            keys = self.words(n)
            order = np.argsort(keys, kind="stable")
            ranked = keys[order]
            # Equal keys would favour one order; drawn again, they leave the law uniform.
            if not np.any(ranked[1:] == ranked[:-1]):
                return order.astype(np.int64, copy=False)

    def uniform(self, n: int) -> npt.NDArray[np.float64]:
        """Take independent multiples of 2**-53, uniform on [0, 1).

        Args:
            n: How many, >= 0. Taking them in parts or at once makes no difference.

        Returns:
            Shape (n,).
        """
        return (self.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53


_alive: weakref.WeakSet[_SecretChaCha] = weakref.WeakSet()


def _os_key() -> int:
    """256 bits from the operating system."""
    return int.from_bytes(os.urandom(32), "little")


def _rekey_all() -> None:
    """Give every secure generator of a forked child a key of its own."""
    for bits in list(_alive):
        bits.rekey()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_all)


def _digest(*parts: Any, size: int) -> bytes:
    """A hash of names and whole numbers; kind and length go before each, so none runs into the next."""
    hasher = hashlib.blake2b(digest_size=size, person=b"tacit.random")
    for part in parts:
        if isinstance(part, str):
            kind, data = b"s", part.encode()
        elif not isinstance(part, bool) and hasattr(part, "__index__"):
            number = int(part)
            kind, data = b"i", number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
        else:
            raise ParameterError(
                f"purpose must consist of names and whole numbers, got {type(part).__name__}."
            )
        hasher.update(kind + len(data).to_bytes(8, "little") + data)
    return hasher.digest()
