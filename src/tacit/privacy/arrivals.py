"""How many honest messages a batch holds for sure, where parties may collude or stay away."""

from __future__ import annotations

import math

from tacit.errors import ParameterError, check_count, check_probability

__all__ = ["ARRIVALS", "COUNTS", "least_honest"]

COUNTS = "the shuffler counts distinct authenticated parties and releases no batch of fewer than agreed"
"""What the shuffler must do: whoever reads the batch is the adversary, and would count too late."""

ARRIVALS = "who arrives does not depend on the data or the noise of honest parties"
"""What no count makes up for: who stays away if its bit is 1, or if its noise is not 0, tells that bit."""


def least_honest(n: int, *, honest_fraction: float = 1.0, n_min: int | None = None) -> int:
    """Return how many of the messages of a batch are honest, however few arrive.

    Colluders do not drop out: they are among the fewest that arrive, and only `n_min` minus all of them are
    honest. (A share of the fewest, floor(honest_fraction * n_min), would be too many.) Who arrives may be
    random, or chosen by the colluders from all that they have seen before this batch: given that, it is
    independent of the honest data and noise, so that the price of a mixture is at most that of its worst.

    Args:
        n: Messages that are planned, one for each party, >= 1.
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
    check_count("n", n)
    check_probability("honest_fraction", honest_fraction, low_open=True)
    if n_min is not None:
        check_count("n_min", n_min, high=n)
    fewest, colluders = int(n if n_min is None else n_min), int(n) - math.floor(honest_fraction * n)
    if fewest <= colluders:
        raise ParameterError(
            f"n_min must be above the number of parties that are not honest: of n = {n} with honest_fraction "
            f"= {honest_fraction!r} these are {colluders}, and {fewest} messages could all be theirs."
        )
    return fewest - colluders
