"""Noise bits and grid of a shuffled vector sum that meet a budget with the fewest bits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import BudgetError, check_count, check_non_negative
from tacit.privacy.arrivals import least_honest
from tacit.privacy.binomial.event import Binomial
from tacit.privacy.binomial.tails import MOST_TRIALS, check_budget
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.calibration import calibrate, meets
from tacit.privacy.events import Gaussian

__all__ = ["BinomialSum", "calibrate_binomial_sum"]

_MOST_SEARCHED = 1 << 30
"""Noise bits in all up to which more of them are tried; larger tables take long, and bring nothing."""


@dataclass(frozen=True, kw_only=True)
class BinomialSum:
    """Parameters of a shuffled sum of vectors of norm at most 1 (P_VEC; at dim 1, P_1D on [-1, 1]).

    Attributes:
        parties: Number of parties n whose noise and vectors are summed, if all answer.
        dim: Number of coordinates.
        rounds: Number of sums that the parameters are for.
        honest_parties: How many of those that answer are honest for sure, and add their noise.
        noise_bits: Fair noise bits b of one party and coordinate.
        resolution: Grid steps g of one coordinate's range [-1, 1].
        central_mse: Error per coordinate of the sum under the central Gaussian mechanism, for comparison.
        event: What all rounds together reveal about one party.
    """

    parties: int
    dim: int
    rounds: int
    honest_parties: int
    noise_bits: int
    resolution: int
    central_mse: float
    event: Binomial

    @property
    def trials(self) -> int:
        """Honest noise bits of one coordinate and round."""
        return self.noise_bits * self.honest_parties

    @property
    def bits_per_coordinate(self) -> int:
        """One-bit messages of one party for one coordinate and round."""
        return self.noise_bits + self.resolution

    @property
    def noise_mse(self) -> float:
        """Variance of one coordinate of the sum from all noise bits, exactly, at unit norm."""
        return self.noise_bits * self.parties / self.resolution / self.resolution

    @property
    def rounding_mse(self) -> float:
        """Largest variance of one coordinate of the sum from rounding to the grid, at unit norm."""
        return self.parties / self.resolution / self.resolution

    @property
    def ratio(self) -> float:
        """Largest error over that of the central Gaussian mechanism."""
        return (self.noise_mse + self.rounding_mse) / self.central_mse


def calibrate_binomial_sum(
    budget: PrivacyBudget,
    parties: int,
    dim: int,
    *,
    rounds: int = 1,
    honest_fraction: float = 1.0,
    n_min: int | None = None,
    mse_overhead: float = 0.1,
    noise_bits: int | None = None,
) -> BinomialSum:
    """Choose noise bits and grid of a shuffled sum of vectors.

    For given noise bits the grid is the finest that meets the budget; the noise bits are the fewest of
    1, 2, 5, 10, 20, 50, ... whose error is within `mse_overhead` of the central Gaussian mechanism's.

    Args:
        budget: For all rounds together; its delta must be > 0.
        parties: Number of parties n that are planned, >= 2.
        dim: Number of coordinates, >= 1.
        rounds: Sums of the same parties' vectors, each possibly chosen after seeing the earlier ones.
        honest_fraction: Fraction of the n parties, in (0, 1], that add their noise if they answer; only
            theirs counts. The others answer for sure.
        n_min: Parties below which the shuffler releases nothing, from 2 to n; None: all must answer.
        mse_overhead: Largest relative excess of the error over the central Gaussian mechanism's, >= 0. Where
            fewer are sure to be honest: over that error times n / honest, because all noise is in the sum.
        noise_bits: Noise bits of one party and coordinate, where they are given; `mse_overhead` is then not
            used.

    Returns:
        The parameters, with the event they were checked by.

    Raises:
        ParameterError: A value out of its range.
        BudgetError: No grid meets the budget with these noise bits (the message says how many would do), or
            the error cannot be brought that close to the central one.

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> found = calibrate_binomial_sum(PrivacyBudget(1.0, 1e-6), 10_000, 100)
        >>> found.noise_bits, found.resolution, round(found.ratio, 4)
        (20, 52, 1.0878)

    Reference:
        docs/theory/noise.md, section 6. p = 1/2 takes the fewest bits for a variance, and the noise is
        symmetric.
    """
    check_budget(budget)
    check_count("parties", parties, low=2)
    check_count("dim", dim)
    check_count("rounds", rounds)
    check_non_negative("mse_overhead", mse_overhead)
    n, d, t = int(parties), int(dim), int(rounds)
    if n_min is not None:
        check_count("n_min", n_min, low=2, high=n)
    honest = least_honest(n, honest_fraction=honest_fraction, n_min=n_min)
    multiplier = calibrate(Gaussian, budget, low=1e-6, high=1e9)
    search = _Search(budget=budget, parties=n, honest=honest, dim=d, rounds=t, multiplier=multiplier)
    if noise_bits is not None:
        check_count("noise_bits", noise_bits, high=max(MOST_TRIALS // honest, 1))
        found = search.finest(int(noise_bits))
        if found is None:
            raise BudgetError(search.infeasible(int(noise_bits)))
        return found
    target = (1 + mse_overhead) * n / honest
    closest: BinomialSum | None = None
    for bits in search.ladder():
        found = search.finest(bits) if search.least_ratio(bits) <= target else None
        if found is None:
            continue
        if found.ratio <= target:
            return found
        closest = found if closest is None or found.ratio < closest.ratio else closest
    closest = closest or search.finest(search.ladder()[-1])
    near = (
        ""
        if closest is None
        else (f"; the closest is {closest.ratio * honest / n - 1:.3g}, with {closest.noise_bits} bits")
    )
    raise BudgetError(
        f"mse_overhead = {mse_overhead!r} cannot be met by {honest} honest parties with up to "
        f"{search.ladder()[-1]} noise bits each{near}: allow more, or give noise_bits."
    )


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The search for a grid, for fixed budget and sizes.

    Attributes:
        multiplier: 1 / mu* of the Gaussian mechanism that meets the budget.
    """

    budget: PrivacyBudget
    parties: int
    honest: int
    dim: int
    rounds: int
    multiplier: float

    @property
    def central_mse(self) -> float:
        """Variance of the central Gaussian mechanism for vectors of norm 1: they differ by at most 2."""
        return 4 * self.rounds * self.multiplier * self.multiplier

    def ladder(self) -> list[int]:
        """Return 1, 2, 5, 10, ... up to 100, and beyond as far as is searched."""
        steps = [m * 10**power for power in range(10) for m in (1, 2, 5)]
        return [bits for bits in steps if bits * self.honest <= max(_MOST_SEARCHED, 100 * self.honest)]

    def event(self, bits: int, resolution: int) -> Binomial:
        """Return what all rounds reveal."""
        return Binomial(bits * self.honest, resolution, self.dim, self.rounds)

    def most(self, bits: int) -> int:
        """Return about the resolution at which the noise alone, were it Gaussian, uses up the budget."""
        return math.floor(math.sqrt(bits * self.honest / self.rounds) / (2 * self.multiplier))

    def least_ratio(self, bits: int) -> float:
        """Return about the least error of these bits over the central Gaussian's; it only saves work."""
        return (
            (bits + 1) * self.parties / self.most(bits) ** 2 / self.central_mse
            if self.most(bits)
            else math.inf
        )

    def finest(self, bits: int) -> BinomialSum | None:
        """Return the finest grid that meets the budget; None where not even one step does."""
        low, high = 0, self.most(bits) + 1
        while meets(self.event(bits, high), self.budget):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if meets(self.event(bits, middle), self.budget) else (low, middle)
        if low == 0:
            return None
        return BinomialSum(
            parties=self.parties,
            dim=self.dim,
            rounds=self.rounds,
            honest_parties=self.honest,
            noise_bits=bits,
            resolution=low,
            central_mse=self.central_mse,
            event=self.event(bits, low),
        )

    def infeasible(self, bits: int) -> str:
        """Return why these noise bits are too few, and how many would do."""
        said = (
            f"noise_bits = {bits} of {self.honest} honest parties are too few for epsilon = "
            f"{self.budget.epsilon:.6g}, delta = {self.budget.delta:.3g} in {self.dim} dimensions and "
            f"{self.rounds} rounds, even on a grid of one step"
        )
        most = max(MOST_TRIALS // self.honest, bits)
        if not meets(self.event(most, 1), self.budget):
            return f"{said}; so are all that are credited."
        low, high = bits, min(2 * bits, most)
        while not meets(self.event(high, 1), self.budget):
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(self.event(middle, 1), self.budget) else (middle, high)
        return f"{said}: noise_bits >= {high} would do."
