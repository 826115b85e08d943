"""Responses that who holds the key undoes, and everybody else takes for private ones."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.frequencies.bands import Band, bernstein_radius, binomial_limits, log_inverse
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.keys import KeyLaw, flat_heavy_set, minimum_entropy_key
from tacit.frequencies.oracle import check_replaced
from tacit.frequencies.secrets import OneTimeKeys, check_keys
from tacit.frequencies.symbols import SymbolOracle
from tacit.mechanisms import whole_values
from tacit.numerics import Array, IntArray, hadamard_blocks, m_sequence_support
from tacit.privacy import Guarantee, Neighbours, NonPrivate, PureDP, guarantee

__all__ = ["CyclicResponse", "RecoverableHadamard", "RecoverableOracle"]

_RECORDS = Neighbours()


class RecoverableOracle(SymbolOracle, frozen=True, kw_only=True, dict=True):
    """Add a secret key to a value: block and place, each modulo its number.

    `draw_keys`, `hide` values with them, send the messages to the public and the keys to whoever may know the
    values, who `recover`s them. `encode` hides with keys that nobody keeps.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number B of blocks and v of places in each."""

    @property
    @abstractmethod
    def heavy(self) -> IntArray:
        """Places that are likely shifts, within the block."""

    @cached_property
    def key_law(self) -> KeyLaw:
        """How keys are drawn."""
        return KeyLaw(self.outcomes, self.heavy, self.epsilon)

    @property
    @abstractmethod
    def name(self) -> str:
        """How the law of a message is known to who has no key."""

    @property
    def level(self) -> float:
        """Pure level of a message to who has no key."""
        return self.key_law.level

    @property
    def outcomes(self) -> int:
        """Number B v of symbols, and of keys."""
        blocks, places = self.shape
        return blocks * places

    @property
    def entropy_bits(self) -> float:
        """Entropy of a key, which is that of a message given the value."""
        return self.key_law.entropy_bits

    def draw_keys(self, n: int, rng: np.random.Generator) -> OneTimeKeys:
        """Draw one key a client.

        Args:
            n: Number of clients.
            rng: Private randomness; a deployment passes `randomness.secure()`.
        """
        return self.key_law.draw(n, rng)

    def hide(self, values: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Hide values, each with its key.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1.
            keys: Fresh keys of this mechanism, n of them; they are spent.

        Returns:
            Shape (n,), symbols for everybody.

        Raises:
            ParameterError: A value is out of range, or the keys are others, too many or few, or spent.
        """
        held = self._values(values)
        self._check_keys(keys)
        return self._shifted(held, keys.spend(held.size), 1)

    def recover(self, messages: npt.ArrayLike, keys: OneTimeKeys) -> IntArray:
        """Return the values of messages, exactly.

        Args:
            messages: Shape (n,), as `hide` returned them.
            keys: Their keys; they are kept.

        Raises:
            ParameterError: A message or the keys cannot be of this mechanism, or some are not of each other.
        """
        symbols = whole_values("messages", messages, self.outcomes)
        if symbols.ndim != 1:
            raise ParameterError(f"messages must have shape (n,), got {symbols.shape}.")
        self._check_keys(keys)
        values = self._shifted(symbols, keys.read(symbols.size), -1)
        if values.size and values.max() >= self.k:
            raise ParameterError("keys must be those of the messages: some message has no value so.")
        return values

    def price(
        self, *, with_keys: bool = False, neighbours: Neighbours = _RECORDS, simulated: bool = False
    ) -> Guarantee:
        """Return what an observer learns about a client: all with the key, a pure level without.

        Args:
            with_keys: Whether the observer holds the client's key.
            neighbours: A replace-one relation.
            simulated: Whether the keys came from a seeded stream.

        Raises:
            ParameterError: Another relation: how many messages there are is public.
        """
        check_replaced(neighbours)
        if with_keys:
            event: NonPrivate | PureDP = NonPrivate(neighbours)
            observer = "who holds the keys beside the messages"
        else:
            event = PureDP(self.level, neighbours)
            observer = "an observer of every message and of no key"
        clauses = () if with_keys else ("every key hides one message and stays secret",)
        return guarantee(event, 0.0, observer=observer, assumptions=clauses, simulated=simulated)

    def message_law(self, p: npt.ArrayLike) -> Array:
        """Return the law of a symbol."""
        p = np.asarray(p, dtype=np.float64)
        blocks, places = self.shape
        rows = np.zeros((*p.shape[:-1], self.outcomes))
        rows[..., : self.k] = p
        table = rows.reshape(*p.shape[:-1], blocks, places)
        likely = np.fft.irfft(np.fft.rfft(table) * self._spectrum, n=places)
        law = self.key_law.low * p.sum(axis=-1)[..., None, None] + self.key_law.gap * likely
        return np.asarray(np.maximum(law, 0.0).reshape(*p.shape[:-1], -1))

    @cached_property
    def _spectrum(self) -> Array:
        """Transform of the indicator of heavy places."""
        inside = np.zeros(self.shape[1])
        inside[self.heavy] = 1.0
        return np.asarray(np.fft.rfft(inside))

    @property
    def _block(self) -> IntArray:
        return np.arange(self.k) // self.shape[1]

    def _check_keys(self, keys: OneTimeKeys) -> None:
        check_keys(keys, self.outcomes, self.key_law.digest)

    def _shifted(self, symbols: IntArray, keys: IntArray, sign: int) -> IntArray:
        """Add or take off keys, block by block number and place by place."""
        blocks, places = self.shape
        block = (symbols // places + sign * (keys // places)) % blocks
        return np.asarray(block * places + (symbols % places + sign * (keys % places)) % places)

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:  # noqa: ARG002
        with self.draw_keys(values.size, rng) as keys:
            return self._shifted(values, keys.spend(values.size), 1)


class CyclicResponse(RecoverableOracle, frozen=True, kw_only=True, tag="cyclic", dict=True):
    """Add a key of the least entropy there is, modulo k.

    Who has no key estimates frequencies by a deconvolution, whose error depends on which keys are likely
    (`flat_heavy_set`); for some k and epsilon there is none (`spectral_gap` is 0). `RecoverableHadamard`
    always has one, of good order.

    Guarantee:
        Pure epsilon-DP, exact, to who has no key; who has it recovers every value. See `KeyLaw`.

    Example:
        >>> oracle = CyclicResponse(k=10, epsilon=1.0)
        >>> round(oracle.entropy_bits, 6), oracle.spectral_gap > 0.3
        (3.145391, True)
        >>> keys = oracle.draw_keys(2, np.random.default_rng(0))
        >>> oracle.recover(oracle.hide([3, 7], keys), keys).tolist()
        [3, 7]

    Reference:
        Girgis (2023), Theorem 7.5.1 and Lemma 7.5.1.
    """

    code: ClassVar[int] = 6

    @property
    def shape(self) -> tuple[int, int]:
        """One block of k places."""
        return 1, self.k

    def _check(self) -> None:
        check_count("k", self.k, low=2, high=2**20)

    @cached_property
    def heavy(self) -> IntArray:
        """Likely keys."""
        return np.array(flat_heavy_set(self.k, minimum_entropy_key(self.k, self.epsilon)))

    @property
    def name(self) -> str:
        """Two levels: as many messages are likely for a value as keys are."""
        return f"two-level:{minimum_entropy_key(self.k, self.epsilon) / self.k!r}"

    @property
    def spectral_gap(self) -> float:
        """Least magnitude of the Fourier transform of the likely keys, but for its first entry."""
        gap = float(np.abs(self._spectrum[1:]).min())
        return gap if gap > 1e-9 else 0.0

    @cached_property
    def _inverse(self) -> Array:
        """Number that a message adds to the estimate of a value, by how far it is shifted; shape (k,)."""
        if self.spectral_gap == 0:
            raise ParameterError(
                f"k = {self.k} and epsilon = {self.epsilon!r} have a key under which frequencies cannot be "
                "estimated from messages alone; use RecoverableHadamard."
            )
        spectrum = self.key_law.gap * self._spectrum.conj()
        spectrum[0] = 1.0
        return np.asarray(np.fft.irfft(1 / spectrum, n=self.k))

    def _correlate(self, counts: Array, weights: Array) -> Array:
        """Return the sum over y of counts[y] weights[y - x], for every x."""
        return np.asarray(np.fft.irfft(np.fft.rfft(counts) * np.fft.rfft(weights).conj(), n=self.k))

    def estimate(self, counts: Counts) -> Array:
        """Divide transforms; see `FrequencyOracle.estimate`."""
        return self._correlate(self._counts(counts) / counts.n, self._inverse)

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; see `FrequencyOracle.variances`."""
        f = as_shares("frequencies", frequencies, self.k)
        squares = self._correlate(self.message_law(f), self._inverse**2)
        return (squares - f) / check_count("n", n)

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return Bernstein's intervals for all values at once; see `FrequencyOracle.band`."""
        estimate, weights = self.estimate(counts), self._inverse
        moments = float(self._correlate(self.key_law.pmf(), weights**2).max())
        largest = float(np.abs(weights).max())
        radius = bernstein_radius(counts.n * moments, largest, log_inverse(confidence, self.k)) / counts.n
        return Band.inside(estimate - radius, estimate + radius, confidence)


class RecoverableHadamard(RecoverableOracle, frozen=True, kw_only=True, tag="rhr", dict=True):
    """Hadamard response without its constant column, in cyclic form: private, recoverable, and of good order.

    B blocks of v = b - 1 places; the b / 2 likely shifts within a block are an m-sequence. Hadamard response
    itself is not recoverable: in its constant column messages are likely under every value of a block.

    Guarantee:
        Pure epsilon-DP, exact, to who has no key; who has it recovers every value. See `KeyLaw`.

    Example:
        >>> oracle = RecoverableHadamard(k=10, epsilon=1.0)
        >>> oracle.shape, round(oracle.entropy_bits, 6), round(oracle.mse(1), 6)
        ((2, 7), 3.632053, 47.94123)

    Reference:
        Girgis (2023), Theorem 7.5.2, as corrected in docs/theory/frequencies.md.
    """

    code: ClassVar[int] = 7

    @property
    def name(self) -> str:
        """The law of a message."""
        return f"rhr:{self.k}"

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number B of blocks and v = b - 1 of places."""
        blocks, dim = hadamard_blocks(self.k, self.epsilon)
        return blocks, dim - 1

    @cached_property
    def heavy(self) -> IntArray:
        """Likely shifts."""
        return m_sequence_support((self.shape[1] + 1).bit_length() - 1)

    @property
    def _gain(self) -> float:
        return self.heavy.size * self.key_law.gap

    def estimate(self, counts: Counts) -> Array:
        """Correlate each block; see `FrequencyOracle.estimate`."""
        table = self._counts(counts).reshape(self.shape)
        spectrum = np.fft.rfft(table) * self._spectrum.conj()
        inside = np.rint(np.fft.irfft(spectrum, n=self.shape[1])).ravel()[: self.k]
        chi = 2 * inside - table.sum(axis=1)[self._block]
        return np.asarray((chi / counts.n - self.key_law.low) / self._gain)

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; see `FrequencyOracle.variances`."""
        f = as_shares("frequencies", frequencies, self.k)
        low, gain = self.key_law.low, self._gain
        seen = self.shape[1] * low + gain * np.bincount(self._block, f, minlength=self.shape[0])
        return np.asarray(
            (seen[self._block] - low**2 - f * gain * (2 * low + gain)) / gain**2 / check_count("n", n)
        )

    def noise(self) -> Array:
        """Return the variance that one client adds; see `FrequencyOracle.noise`."""
        low, gain = self.key_law.low, self._gain
        own = np.bincount(self._block, minlength=self.shape[0])[self._block]
        seen = self.k * self.shape[1] * low + own * gain
        return np.asarray((seen - self.k * low**2 - gain * (2 * low + gain)) / gain**2)

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return intervals for all values at once: Bernstein's, by how often each block was answered."""
        estimate, n = self.estimate(counts), counts.n
        blocks, sure = self._counts(counts).reshape(self.shape).sum(axis=1), (1 + confidence) / 2
        share = np.ones(1)
        if len(blocks) > 1:
            _, share = binomial_limits(blocks, n, sure, intervals=len(blocks))
        radius = bernstein_radius(n * share, 1.0, log_inverse(sure, self.k)) / (n * self._gain)
        radius = radius[self._block]
        return Band.inside(estimate - radius, estimate + radius, confidence)
