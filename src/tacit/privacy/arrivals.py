"""How many honest messages a batch holds for sure, where parties may collude or stay away."""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_probability

__all__ = ["ARRIVALS", "COUNTS", "HONEST", "least_honest"]

HONEST = "the shuffler is honest"
"""What every price of a shuffled batch rests on, and no other price."""

COUNTS = "the shuffler counts distinct authenticated parties and releases no batch of fewer than agreed"
"""What the shuffler must do: whoever reads the batch is the adversary, and would count too late."""

ARRIVALS = "who arrives does not depend on the data or the noise of honest parties"
"""What no count makes up for: who stays away if its bit is 1, or if its noise is not 0, tells that bit."""

_DISTINCT = 2**50  # up to here the shares k / n of different k are different floats


def least_honest(n: int, *, honest_fraction: float = 1.0, n_min: int | None = None) -> int:
    """Return how many of the messages of a batch are honest, however few arrive.

    Colluders do not drop out: they are among the fewest that arrive, and only `n_min` minus all of them are
    honest. (A share of the fewest, floor(honest_fraction * n_min), would be too many.) Who arrives may be
    random, or chosen by the colluders from all that they have seen before this batch: given that, it is
    independent of the honest data and noise, so that the price of a mixture is at most that of its worst.

    Args:
        n: Messages that are planned, one for each party, from 1 to 2**63 - 1.
        honest_fraction: Fraction of the n planned, in (0, 1], whose parties are relied upon.
        n_min: Messages below which the shuffler releases nothing, from 1 to n; None: all n.

    Returns:
        n_min - (n - floor(honest_fraction * n)), >= 1.

    Raises:
        ParameterError: A value is out of its range, or the colluders alone could reach `n_min`.

    Example:
        >>> least_honest(10_000, honest_fraction=0.5, n_min=8_000)
        3000
    """
    n = check_count("n", n, high=LARGEST_COUNT)
    share = check_probability("honest_fraction", honest_fraction, low_open=True)
    if n_min is not None:
        n_min = check_count("n_min", n_min, high=n)
    # A product that is rounded up tells a whole number only if that share of n is this float: 0.7 * 10 is 7.
    honest = math.floor(share * n)
    if n > _DISTINCT or honest / n != share:
        honest = math.floor(Fraction(share) * n)
    fewest, colluders = n if n_min is None else n_min, n - honest
    if fewest <= colluders:
        raise ParameterError(
            f"n_min must be above the number of parties that are not honest: of n = {n} with honest_fraction "
            f"= {honest_fraction!r} these are {colluders}, and {fewest} messages could all be theirs."
        )
    return fewest - colluders
