"""Which mechanism: all of them at equal privacy, by their exact errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import numpy.typing as npt

from tacit.errors import BudgetError, check_choice, check_count, check_positive
from tacit.frequencies.binary_hadamard import BinaryHadamard
from tacit.frequencies.hadamard import HadamardResponse
from tacit.frequencies.kary import KaryResponse
from tacit.frequencies.oracle import MOST_VALUES, FrequencyOracle, least_private
from tacit.frequencies.recoverable import RecoverableHadamard
from tacit.frequencies.sets import SetOracle, SubsetSelection, UnaryEncoding
from tacit.mechanisms import HIGHEST_LEVEL
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["MECHANISMS", "MechanismChoice", "choose_mechanism", "make_oracle"]

MECHANISMS: Final = {
    "bh": "binary Hadamard response: one bit about one column",
    "hr": "Hadamard response: one symbol",
    "krr": "k-ary randomized response: the value or another",
    "oue": "optimised unary encoding: one bit a value",
    "rappor": "symmetric unary encoding: one bit a value",
    "rhr": "recoverable Hadamard response: one symbol, which its key undoes",
    "ss": "subset selection: a set of values",
}
"""Names of mechanisms, each with what a message is."""

_RECORDS = Neighbours()


@dataclass(frozen=True, kw_only=True)
class MechanismChoice:
    """One mechanism at one budget.

    Attributes:
        name: One of `MECHANISMS`.
        oracle: The mechanism.
        mse: Exact mean squared l2 error, before any projection.
    """

    name: str
    oracle: FrequencyOracle
    mse: float

    @property
    def random_bits(self) -> float:
        """Fair bits that a client needs on average, at least."""
        return self.oracle.entropy_bits

    @property
    def message_bits(self) -> int:
        """Bits of a message."""
        return self.oracle.message_bits

    @property
    def rmse(self) -> float:
        """Root of the mean squared error of one frequency."""
        return math.sqrt(self.mse / self.oracle.k)


def make_oracle(
    name: str,
    k: int,
    epsilon: float,
    *,
    random_bits: float | None = None,
    independent: bool = False,
) -> FrequencyOracle:
    """Build a mechanism by its name.

    Args:
        name: One of `MECHANISMS`.
        k: Number of values.
        epsilon: Pure level of a message.
        random_bits: Bound on the randomness of binary Hadamard response, in (0, 1]; None: as many bits as
            help.
        independent: Whether rows are independent draws from one distribution. Then binary Hadamard response
            assigns columns by place, and a message is one bit.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> make_oracle("oue", 10, 1.0)
        UnaryEncoding(k=10, epsilon=1.0, symmetric=False)
    """
    check_choice("mechanism", name, MECHANISMS)
    if name == "bh":
        bits = 1.0 if random_bits is None else min(random_bits, 1.0)
        return BinaryHadamard(
            k=k, epsilon=epsilon, random_bits=bits, assignment="blocks" if independent else "random"
        )
    made: dict[str, Callable[[], FrequencyOracle]] = {
        "hr": lambda: HadamardResponse(k=k, epsilon=epsilon),
        "krr": lambda: KaryResponse(k=k, epsilon=epsilon),
        "oue": lambda: UnaryEncoding(k=k, epsilon=epsilon),
        "rappor": lambda: UnaryEncoding(k=k, epsilon=epsilon, symmetric=True),
        "rhr": lambda: RecoverableHadamard(k=k, epsilon=epsilon),
        "ss": lambda: SubsetSelection(k=k, epsilon=epsilon),
    }
    return made[name]()


def choose_mechanism(
    k: int,
    epsilon: float,
    n: int,
    *,
    delta: float = 0.0,
    trust: TrustModel = TrustModel.LOCAL,
    neighbours: Neighbours = _RECORDS,
    max_random_bits: float | None = None,
    max_message_bits: int | None = None,
    max_draws: float | None = None,
    independent: bool = False,
    p: npt.ArrayLike | None = None,
    mechanisms: Collection[str] | None = None,
) -> tuple[MechanismChoice, ...]:
    """Rank mechanisms at equal privacy by their exact errors, the best first.

    Args:
        k: Number of values, from 2 to 2**24 - 1.
        epsilon: What may be spent, against the observer of the trust model.
        n: Number of clients.
        delta: Probability that the bound may fail; > 0 behind a shuffler.
        trust: `local`, or `shuffle`: then a message may have a higher level, which is searched.
        neighbours: A replace-one relation.
        max_random_bits: Bound on the fair bits that a client needs; below one bit only binary Hadamard
            response is left, with a larger error.
        max_message_bits: Bound on the bits of a message.
        max_draws: Bound on the n k answers that all clients draw together, for mechanisms that answer for
            every value.
        independent: Whether rows are independent draws from one distribution; see `make_oracle`. Errors are
            then against that distribution.
        p: Shape (k,): frequencies at which errors are taken. None: all equal; errors depend on them little.
        mechanisms: Names of `MECHANISMS` to choose from. None: all of them.

    Returns:
        All that keep to the bounds.

    Raises:
        ParameterError: An argument is out of range.
        BudgetError: No mechanism is left.

    Example:
        >>> [one.name for one in choose_mechanism(1000, 1.0, 100_000)][:3]
        ['ss', 'oue', 'rappor']
        >>> [one.name for one in choose_mechanism(1000, 1.0, 100_000, max_message_bits=16)]
        ['bh', 'rhr', 'hr', 'krr']
        >>> choose_mechanism(4, 3.0, 100_000)[0].name
        'krr'
    """
    k, n = check_count("k", k, low=2, high=MOST_VALUES), check_count("n", n)
    budget = PrivacyBudget(epsilon, delta)
    if max_random_bits is not None:
        check_positive("max_random_bits", max_random_bits)
    if max_message_bits is not None:
        check_count("max_message_bits", max_message_bits)
    most_bits, most_random = max_message_bits or math.inf, max_random_bits or math.inf
    too_many = max_draws is not None and n * k > max_draws
    by_place = independent and trust == TrustModel.LOCAL
    found = []
    for name in MECHANISMS if mechanisms is None else mechanisms:

        def at(level: float, name: str = name) -> FrequencyOracle:
            return make_oracle(name, k, level, random_bits=max_random_bits, independent=by_place)

        oracle = at(min(budget.epsilon, HIGHEST_LEVEL))
        oracle.event(n, trust, neighbours)  # refuses trust models in which no client randomises
        # A higher level makes no message shorter, and it is not searched for in vain.
        if oracle.message_bits > most_bits or (too_many and isinstance(oracle, SetOracle)):
            continue
        if trust == TrustModel.SHUFFLE:
            oracle = least_private(at, budget, n=n, trust=trust, neighbours=neighbours)
        if oracle.message_bits <= most_bits and oracle.entropy_bits <= most_random:
            mse = oracle.mse(n, p) if independent else oracle.frequency_mse(n, p)
            found.append(MechanismChoice(name=name, oracle=oracle, mse=mse))
    if not found:
        raise BudgetError(
            f"no mechanism keeps to max_random_bits={max_random_bits}, max_message_bits={max_message_bits} "
            f"and max_draws={max_draws} at k={k}, epsilon={budget.epsilon!r}."
        )
    # Mechanisms may be the same law, written differently: then the shorter message comes first.
    return tuple(sorted(found, key=lambda one: (float(f"{one.mse:.9e}"), one.message_bits)))
