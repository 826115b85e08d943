"""What arithmetic can tell of answers of several tables that add shares of noise to a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tacit.errors import ParameterError, VerificationError, check_count

if TYPE_CHECKING:
    from tacit.frequencies import SummedHistogram
    from tacit.privacy.statement import Statement

__all__ = ["check_tables", "histogram_of"]

_SUMMED_HISTOGRAM: Final = "summed-histogram"
"""What the mechanism of frequencies is called under aggregate trust."""


def check_tables(found: Statement) -> None:
    """Refuse an answer of tables whose sum has other shares of noise, or other messages, than stated."""
    from tacit.privacy.statement_sums import of_one_share, shares_of

    answer, (whole, alone) = found.answer, found.guarantees
    tables = check_count("tables at the top", answer["tables"], low=2)
    colluding = check_count("colluding at the top", answer["colluding"], low=0, high=tables - 2)
    if shares_of(whole.event) != {tables - colluding}:
        raise VerificationError(
            f"it says {tables} tables at the top, {colluding} of which may collude, and its event counts on "
            f"{sorted(shares_of(whole.event))} shares of noise."
        )
    same = of_one_share(whole.event) == alone.event
    if not same or (whole.delta, whole.simulated) != (alone.delta, alone.simulated):
        raise VerificationError(
            "the guarantee about the sum and that about one message alone are of different answers."
        )
    if (answer["epsilon_alone"], answer["guarantee_alone"]) != (alone.epsilon, str(alone)):
        raise VerificationError(
            "what it says of one message alone at the top is not what its guarantee says: one was changed."
        )


def histogram_of(found: Statement, n: int, k: int) -> SummedHistogram:
    """Return the histogram of tables that the event of a statement of frequencies is of.

    Args:
        found: Under aggregate trust, with tables that `check_tables` has accepted.
        n: Rows of all tables; how many each has is not stated, and no fact at the top depends on it.
        k: Number of values.

    Raises:
        ParameterError: The event is not that of counts of which a record moves two.
    """
    import math

    import msgspec

    from tacit.frequencies import SummedHistogram
    from tacit.means import DiscreteGaussianNoise, ModularSumMean, modular_width
    from tacit.privacy import DiscreteGaussianSum, Repeat

    answer, event = found.answer, found.guarantees[0].event
    if (answer["mechanism"], answer["local_epsilon"]) != (_SUMMED_HISTOGRAM, None):
        raise ParameterError(f"tables that trust in a sum release a {_SUMMED_HISTOGRAM}.")
    one = event.part if isinstance(event, Repeat) and event.count == 2 else None
    if not isinstance(one, DiscreteGaussianSum) or one.dim != 1 or one.sensitivity != int(one.sensitivity):
        raise ParameterError("its event must be two counts with shares of Gaussian noise.")
    tables, steps = answer["tables"], int(one.sensitivity)
    noise = DiscreteGaussianNoise(one.std / (math.sqrt(2) * steps), steps=steps)
    mean = ModularSumMean(dim=k, noise=noise, shares=one.shares, neighbours=one.neighbours, one_hot=True)
    width = modular_width(rows=n, parties=tables, steps=steps, std=mean.std, dim=k, rounds=1)
    sizes = (*(1,) * (tables - 1), check_count("n - tables + 1", n - tables + 1))
    return SummedHistogram(
        mean=msgspec.structs.replace(mean, width=width), sizes=sizes, colluding=answer["colluding"]
    )
