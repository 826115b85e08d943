"""The frequencies of one column: a mechanism calibrated to a budget, one answer, and what it reveals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_probability
from tacit.frequencies.bands import Band
from tacit.frequencies.central import NoisyHistogram
from tacit.frequencies.choice import choose_mechanism
from tacit.frequencies.oracle import FrequencyOracle, check_replaced
from tacit.frequencies.summed import SummedHistogram
from tacit.means.columns import clauses_of_means, observer_of_means
from tacit.mechanisms import whole_values
from tacit.numerics import Array
from tacit.privacy import Event, Guarantee, Neighbours, PrivacyBudget, TrustModel, Unit, guarantee
from tacit.randomness import is_secure

__all__ = [
    "MOST_DRAWS",
    "Frequencies",
    "FrequenciesQuery",
    "check_asked",
    "estimate_frequencies",
    "observer_of_frequencies",
    "split_budget",
]

MOST_DRAWS = 2.0**28
"""Answers that one process draws, where a mechanism has one for every value."""

_RECORDS = Neighbours()
_Answering = FrequencyOracle | NoisyHistogram | SummedHistogram


def observer_of_frequencies(trust: TrustModel, unit: Unit, *, alone: bool = False, colluding: int = 0) -> str:
    """Return who looks at an answer.

    Args:
        trust: Of the answer.
        unit: Who is protected.
        alone: Whether at one message before it is shuffled, or added to others.
        colluding: Under aggregate trust, how many tables may tell what they added to the sum.
    """
    if trust is TrustModel.AGGREGATE:
        return observer_of_means(trust, unit, colluding=colluding, alone=alone)
    if trust is TrustModel.LOCAL:
        return f"an observer of every {unit.value}'s own message"
    if trust is TrustModel.SHUFFLE:
        return "an observer of one message and its sender" if alone else "an observer of the shuffled batch"
    return "an observer of the released frequencies"


def check_asked(budget: PrivacyBudget, trust: TrustModel, neighbours: Neighbours) -> None:
    """Refuse what frequencies cannot be asked for: other neighbours or trust, or no delta for a shuffler."""
    check_replaced(neighbours)
    if trust not in (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL):
        raise ParameterError(f"trust must be local, shuffle or central, got {trust!s}.")
    if trust is TrustModel.SHUFFLE and budget.delta == 0:
        raise ParameterError("delta must be > 0 under shuffle trust, got 0.0.")


def _check_parties(trust: TrustModel, n: int, parties: Sequence[int], colluding: int) -> None:
    """Refuse tables beside another trust model than aggregate, and tables of other units than n."""
    if trust is not TrustModel.AGGREGATE:
        if parties or colluding:
            raise ParameterError(
                f"parties and colluding are for aggregate trust, got {len(parties)} parties and colluding "
                f"{colluding}."
            )
    elif sum(parties) != n:
        raise ParameterError(f"parties must have {n} units together, got {sum(parties)}.")


def _event_of(oracle: _Answering, n: int, view: TrustModel, neighbours: Neighbours) -> Event:
    """Return what is learned of n units by who sees every message alone, or what trust lets be seen."""
    if isinstance(oracle, NoisyHistogram):
        return oracle.event(neighbours)
    if isinstance(oracle, SummedHistogram):
        return oracle.event(view)
    return oracle.event(n, view, neighbours)


def split_budget(budget: PrivacyBudget, parts: int) -> PrivacyBudget:
    """Return what each of some releases may cost, so that their sum stays below a budget in floats, too."""
    if parts == 1:
        return budget
    less = (1 - 2.0**-48) / parts
    return PrivacyBudget(budget.epsilon * less, budget.delta * less)


@dataclass(frozen=True, kw_only=True)
class FrequenciesQuery:
    """What is asked of a column, calibrated to a budget; everything in it is public.

    Attributes:
        n: Number of records, or of persons where they are the unit, which counts as public.
        mechanism: One of `MECHANISMS`, or "histogram" under central trust.
        oracle: What clients send, or the histogram of a trusted server, or of tables that trust in a sum.
        trust: Who is trusted.
        price: What the answer costs; not yet marked as simulated.
        price_alone: Under shuffle trust, what one message shows before it is shuffled, and under aggregate
            trust what that of one table shows alone; else None.
    """

    n: int
    mechanism: str
    oracle: _Answering
    trust: TrustModel
    price: Guarantee
    price_alone: Guarantee | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        k: int,
        n: int,
        budget: PrivacyBudget,
        trust: TrustModel = TrustModel.LOCAL,
        neighbours: Neighbours = _RECORDS,
        mechanism: str | None = None,
        max_random_bits: float | None = None,
        max_message_bits: int | None = None,
        max_draws: float | None = MOST_DRAWS,
        parties: Sequence[int] = (),
        colluding: int = 0,
    ) -> FrequenciesQuery:
        """Find the mechanism of the least error for a budget.

        Args:
            k: Number of values.
            n: Number of records, or of persons where `neighbours` names them as the unit.
            budget: What the answer may cost.
            trust: `local`: every record is randomised by itself. `shuffle`: so it is, and nobody knows whose
                message is whose. `central`: who holds the column adds noise to its counts. `aggregate`: every
                table adds a share of the noise to its counts, and only the sum of all is seen.
            neighbours: A replace-one relation.
            mechanism: One of `MECHANISMS`; None: the best one. Not under central and aggregate trust.
            max_random_bits: See `choose_mechanism`.
            max_message_bits: See `choose_mechanism`.
            max_draws: See `choose_mechanism`; a mechanism that is named is not bound by it.
            parties: Under aggregate trust and only there: public numbers of units of the tables, 2 or more,
                which add up to n.
            colluding: How many of the tables may add no noise and tell what they added, at most all but 2.

        Raises:
            ParameterError: A value is out of range, another relation, or a delta of 0 under shuffle and
                aggregate trust.
            BudgetError: The budget cannot be met, or no mechanism keeps to the bounds.
        """
        check_count("n", n)
        check_asked(budget, TrustModel.CENTRAL if trust is TrustModel.AGGREGATE else trust, neighbours)
        _check_parties(trust, n, parties, colluding)
        name: str
        oracle: _Answering
        if trust in (TrustModel.LOCAL, TrustModel.SHUFFLE):
            best = choose_mechanism(
                k,
                budget.epsilon,
                n,
                delta=budget.delta,
                trust=trust,
                neighbours=neighbours,
                max_random_bits=max_random_bits,
                max_message_bits=max_message_bits,
                max_draws=max_draws if mechanism is None else None,
                mechanisms=None if mechanism is None else (mechanism,),
            )[0]
            name, oracle = best.name, best.oracle
        elif (mechanism, max_random_bits, max_message_bits) != (None, None, None):
            raise ParameterError(
                "mechanism, max_random_bits and max_message_bits are for clients who randomise; under "
                f"{trust.value} trust none does."
            )
        elif trust is TrustModel.CENTRAL:
            name = "histogram"
            oracle = NoisyHistogram.calibrated(k=k, budget=budget, neighbours=neighbours)
        else:
            name = "summed-histogram"
            oracle = SummedHistogram.calibrated(
                k=k, sizes=parties, budget=budget, colluding=colluding, neighbours=neighbours
            )

        def seen(view: TrustModel, delta: float) -> Guarantee:
            alone = view is not trust
            return guarantee(
                _event_of(oracle, n, view, neighbours),
                delta,
                observer=observer_of_frequencies(trust, neighbours.unit, alone=alone, colluding=colluding),
                assumptions=clauses_of_means(trust, neighbours, alone=alone),
            )

        # A client's own message is pure; that of a table has the noise of a Gaussian share.
        alone = {TrustModel.SHUFFLE: 0.0, TrustModel.AGGREGATE: budget.delta}.get(trust)
        return cls(
            n=n,
            mechanism=name,
            oracle=oracle,
            trust=trust,
            price=seen(trust, budget.delta),
            price_alone=None if alone is None else seen(TrustModel.LOCAL, alone),
        )

    @property
    def k(self) -> int:
        """Number of values."""
        return self.oracle.k

    @property
    def message_bits(self) -> int:
        """Bits of a message, which is that of a table under aggregate trust, or of a value under central."""
        if isinstance(self.oracle, NoisyHistogram):
            return max(1, (self.k - 1).bit_length())
        return self.oracle.message_bits

    @property
    def random_bits(self) -> float:
        """Fair bits that a client needs on average, at least."""
        return self.oracle.entropy_bits if isinstance(self.oracle, FrequencyOracle) else 0.0

    @property
    def tables(self) -> int:
        """Number of tables that hide each other under aggregate trust; else 0."""
        return self.oracle.tables if isinstance(self.oracle, SummedHistogram) else 0

    @property
    def mse(self) -> float:
        """Exact mean squared l2 error against the frequencies of rows that hold all values equally often."""
        if isinstance(self.oracle, FrequencyOracle):
            return self.oracle.frequency_mse(self.n)
        return self.oracle.mse(self.n)

    def answer(
        self, values: npt.ArrayLike, confidence: float = 0.95, *, rng: np.random.Generator
    ) -> tuple[Array, Band]:
        """Answer once; every call is a release at the full price.

        Args:
            values: Shape (n,), whole numbers from 0 to k - 1.
            confidence: That none of the intervals misses.
            rng: Source of all noise.

        Returns:
            Unbiased estimates, shape (k,), and intervals of all frequencies at once.

        Raises:
            ParameterError: An argument is out of range.
        """
        check_probability("confidence", confidence, low_open=True, high_open=True)
        held = whole_values("values", values, self.k)
        if held.shape != (self.n,):
            raise ParameterError(f"values must have shape ({self.n},), got {held.shape}.")
        if not isinstance(self.oracle, FrequencyOracle):
            counts = self.oracle.counts(held, rng)
            return counts / self.n, self.oracle.band(counts, self.n, confidence)
        seen = self.oracle.collect(held, rng)
        return self.oracle.estimate(seen), self.oracle.band(seen, confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Frequencies:
    """Private frequencies of the values of one column.

    Attributes:
        estimates: Shape (k,), unbiased: entries may lie below 0 and do not add up to 1.
        band: Intervals that hold all frequencies at once.
        query: What was asked, with the mechanism.
        guarantee: What the answer reveals at most.
        guarantee_alone: Under shuffle trust, what one message does before it is shuffled, and under aggregate
            trust what that of one table does alone; else None.
    """

    estimates: Array
    band: Band
    query: FrequenciesQuery
    guarantee: Guarantee
    guarantee_alone: Guarantee | None = None


def estimate_frequencies(
    values: npt.ArrayLike,
    query: FrequenciesQuery,
    *,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Frequencies:
    """Estimate how often each value of a column is held.

    Args:
        values: Shape (n,), whole numbers from 0 to k - 1.
        query: The calibrated mechanism.
        confidence: That none of the intervals misses.
        rng: Source of the noise; a seeded one marks the guarantee as simulated.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from tacit.randomness import simulated
        >>> query = FrequenciesQuery.calibrated(k=4, n=100_000, budget=PrivacyBudget(1.0))
        >>> rows = np.repeat([0, 1, 2], [50_000, 30_000, 20_000])
        >>> found = estimate_frequencies(rows, query, rng=simulated(1, "example"))
        >>> query.mechanism, found.estimates.round(1).tolist()
        ('krr', [0.5, 0.3, 0.2, 0.0])
    """
    estimates, band = query.answer(values, confidence, rng=rng)
    simulated, alone = not is_secure(rng), query.price_alone
    return Frequencies(
        estimates=estimates,
        band=band,
        query=query,
        guarantee=msgspec.structs.replace(query.price, simulated=simulated),
        guarantee_alone=alone and msgspec.structs.replace(alone, simulated=simulated),
    )
