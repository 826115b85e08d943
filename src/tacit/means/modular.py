"""Means from sums modulo a power of two: every party adds a share of exact noise, and only the sum is seen.

The noise of all parties together is Gaussian to within 1e-38 (docs/theory/noise.md, section 7). A party
writes residues of whole numbers, which masks of the same form can hide; no key is known here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_positive
from tacit.means.message import HEADER_BYTES, MOST_COORDINATES, Message, Round, check_senders, total
from tacit.means.noise import DiscreteGaussianNoise
from tacit.means.noisy_sums import NoisySum, check_shape
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.violations import OnViolation, check_on_violation
from tacit.mechanisms import sample_discrete_gaussian, shares_slack
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    Event,
    Neighbours,
    PrivacyBudget,
    TrustModel,
    calibrate,
)

__all__ = ["ModularSumMean", "modular_width"]

_LOG_FAILURE = -40 * math.log(2)
"""Logarithm of the most likely that any coordinate of a whole run wraps around."""
_ONE_DRAW = 2.0**-50
"""How far the noise of all parties may be from one draw, for simulations to take that."""
_LEAST_STD, _LARGEST_STD = 2.0, 2.0**55
_MOST = 1e7
_RECORDS = Neighbours()
_LEAST_PRICED = 3.0, 9.0
"""Parameters of one share and of their sum, in grid steps, from which on several have a price."""
_FINE, _COARSER = 50.0, (1, 4, 16)
"""What is proposed: grid steps of a radius over the root of dim, with rounding below two % of a radius;
and grids of so many times fewer steps, for fewer bits."""


class ModularSumMean(
    NoisySum,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="modular-sum",
):
    """The sum of clipped rows modulo 2**width, with a share of the noise of every party, divided by n.

    Whoever sees the sum only sees the noise of all parties; the price counts `shares` of them. What one
    message alone shows is hidden by its one share (`event` under local trust). The messages are not masked
    here. A sum that wraps around costs accuracy and never privacy, since it is a function of the sum.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise: One party's share, the same for all parties: its parameter is s = noise.noise_multiplier *
            `moved` * noise.steps grid steps. The slack of one silo's sensitivity is in its price only.
        shares: Honest shares that the price counts on, >= 1.
        width: Bits of a coordinate on the wire, 1 to 64; `modular_width` finds it.
        neighbours: Relation for the sensitivity of the sum: 2 radii under replace-one, else 1.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`.
        acute: No two rows that there could be are at more than a right angle; see `AdditiveMean`.
        one_hot: Rows are a radius in one coordinate, or zero, and sums are counts; see `AdditiveMean`.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.privacy import guarantee
        >>> share = DiscreteGaussianNoise(3.76001 / math.sqrt(8), steps=512)
        >>> mean = ModularSumMean(dim=65, noise=share, shares=8, width=17)
        >>> views = [mean.event(1, trust) for trust in (TrustModel.AGGREGATE, TrustModel.LOCAL)]
        >>> [round(guarantee(view, 1e-5, observer="the server").epsilon, 3) for view in views]
        [1.0, 3.186]

    Reference:
        Kairouz, Liu and Steinke (2021), arXiv:2102.06387, Algorithms 1 and 2, without their rotation and
        their conditional rounding; priced as in docs/theory/noise.md, section 7.
    """

    dim: int
    noise: DiscreteGaussianNoise
    shares: int = 1
    width: int = 64
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None
    acute: bool = False
    one_hot: bool = False
    trust: ClassVar[TrustModel] = TrustModel.AGGREGATE  # type: ignore[misc]  # a field of other estimators

    def __post_init__(self) -> None:
        settle(self)
        check_count("dim", self.dim, high=MOST_COORDINATES)
        if not isinstance(self.noise, DiscreteGaussianNoise):
            raise ParameterError(f"noise must be a DiscreteGaussianNoise, got {self.noise!r}.")
        check_count("shares", self.shares)
        check_count("width", self.width, high=64)
        check_on_violation(self.on_violation)
        check_shape(acute=self.acute, one_hot=self.one_hot)

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer shares of exact noise on fine and coarse grids, each with the width of one round.

        Errors are those of a sum that nobody is missing from. Gaussian noise needs delta > 0.
        """
        if problem.trust != "aggregate":
            return
        d, n, m = problem.dim, problem.n, problem.shares
        finest = 2 ** math.ceil(math.log2(max(_FINE * math.sqrt(d), 16 * math.sqrt(m))))
        recovers = problem.n_min is not None and problem.n_min < n
        for coarser in _COARSER:
            steps = max(1, finest // coarser)

            def make(steps: int = steps) -> ModularSumMean:
                found = cls.calibrated(
                    dim=d, budget=problem.known_budget, shares=m, steps=steps, n=n, neighbours=problem.near
                )
                width = modular_width(rows=n, parties=n, steps=steps, std=found.std, dim=d, rounds=1)
                return msgspec.structs.replace(found, width=width)

            yield Proposal(
                name=f"shares of Gaussian noise, {steps} steps",
                family="sum of shares",
                make=make,
                norm="l2",
                encode=ComputeCost("n d", float(n) * d),
                decode=ComputeCost("n d", float(n) * d),
                note=f"the price counts {m} shares of {n}; keys for masks "
                + (
                    "and shares of them are exchanged, and sums signed, besides"
                    if recovers
                    else "are exchanged once a run besides"
                ),
            )

    @classmethod
    def calibrated(
        cls,
        *,
        dim: int,
        budget: PrivacyBudget,
        shares: int,
        steps: int,
        n: int = 1,
        neighbours: Neighbours = _RECORDS,
        one_hot: bool = False,
    ) -> ModularSumMean:
        """Return shares of the least noise that meet a budget on a grid, 64 bits wide; see `modular_width`.

        Args:
            dim: Number of coordinates of a row.
            budget: For whoever sees the sum, with delta > 0: noise is Gaussian.
            shares: Honest shares that the price counts on.
            steps: Grid steps of a radius.
            n: The most rows of a party's sum.
            neighbours: Relation for the sensitivity.
            one_hot: As the field.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: No noise meets the budget.
        """

        def build(z: float) -> ModularSumMean:
            share = DiscreteGaussianNoise(z / math.sqrt(shares), steps=steps)
            return cls(dim=dim, noise=share, shares=shares, neighbours=neighbours, one_hot=one_hot)

        check_count("shares", shares)
        one, whole = _LEAST_PRICED
        least = max(one * math.sqrt(shares), whole) / (build(1.0).moved * steps) * (1 + 1e-12)
        return build(
            calibrate(
                lambda z: build(z).event(n, TrustModel.AGGREGATE),
                budget,
                low=least,
                high=max(_MOST, 2 * least),
            )
        )

    @property
    def noise_multiplier(self) -> float:
        """Parameter of the noise of the honest sum / sensitivity, its rounding left out."""
        return self.noise.noise_multiplier * math.sqrt(self.shares)

    @property
    def std(self) -> float:
        """The parameter s of one share, in grid steps."""
        return self.noise.noise_multiplier * self.moved * self.noise.steps

    def encode_sum(
        self,
        clipped_sum: Array,
        *,
        rows: int,  # noqa: ARG002 - all messages of a plan are of one length
        round: Round,
        party: int,
        rng: np.random.Generator,
    ) -> list[Message]:
        """Write the sum of a party's clipped rows, with its share of the noise, as residues.

        Args:
            clipped_sum: Shape (dim,), float64; see `AdditiveMean.encode_sum`.
            rows: Not used.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the party's share of the noise.

        Returns:
            One message of `bits_per_party()` bits: residues in [-2**(width - 1), 2**(width - 1)), not masked.

        Raises:
            ParameterError: `clipped_sum` has another shape or dtype.
        """
        summed = self._units(clipped_sum, round.radius)
        noise = self.noise.sample(self.dim, sensitivity=self.moved, radius=round.radius, rng=rng)
        # Never saturated: that would be no function of the sum, and nothing would be proven.
        return [Message(payload=_centred(summed + noise, self.width), width=self.width, sender=party)]

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the noise is in the messages
    ) -> Array:
        """Add the messages modulo 2**width, and divide by the planned n.

        Args:
            messages: One of each party, in any order; or one that is their sum.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, two of one sender, or one of another form.
        """
        check_senders(messages)
        if any(message.width != self.width for message in messages):
            raise ParameterError(f"a message must have {self.width} bits an entry.")
        return self._mean(total(messages, self.dim, np.int64), round)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows, dealt to the parties in order and as evenly as possible, as
                `np.array_split` does.
            round: Public facts of the round; every party adds a share.
            rng: Source of all noise.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties. Where every probability
            of a coordinate of the summed noise is within a factor exp(+-2**-50) of one discrete Gaussian
            (shares of two steps or more), that is drawn once; else every share is drawn.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        return self._mean(self._summed(X, round) + self.drawn_shares(round, rng), round)

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Args:
            n: The most rows that a party's sum may hold; it bounds the rounding of the sum.
            trust: Whose view is priced. Aggregate and central: of the sum. Local and shuffle: of the
                messages, each of which its own share hides.

        Raises:
            ParameterError: `n` is not a whole number from 1 to 2**40, or for the sum of several shares s < 3,
                shares * s**2 < 81: more grid steps are needed.
        """
        check_count("n", n)
        one = self._noise_event(n)
        assert isinstance(one, DiscreteGaussian)  # noqa: S101 - all noise that this mean takes; narrows the type
        if trust in (TrustModel.LOCAL, TrustModel.SHUFFLE):
            return self._of_unit(one)
        return self._of_unit(
            DiscreteGaussianSum(one.std, self.shares, one.sensitivity, self.neighbours, one.dim)
        )

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits, header included, of a message, whatever it is about."""
        check_count("rows", rows, low=0)
        return 8 * (HEADER_BYTES + (self.dim * self.width + 7) // 8)

    def drawn_shares(self, round: Round, rng: np.random.Generator) -> IntArray:
        """Draw the noise of all `round.parties` together, shape (dim,), in grid steps; see `estimate`."""
        std = self.std * math.sqrt(round.parties)
        near = self.std >= _LEAST_STD and shares_slack(self.std, round.parties) <= _ONE_DRAW
        if near and std <= _LARGEST_STD:
            return sample_discrete_gaussian(std, self.dim, rng)
        moved, radius = self.moved, round.radius
        drawn = self.noise.sample(self.dim, sensitivity=moved, radius=radius, rng=rng, parties=round.parties)
        return np.asarray(drawn, dtype=np.int64)

    def _mean(self, summed: Array, round: Round) -> Array:
        """Return the mean from a sum of residues."""
        return _centred(summed, self.width) * (self.noise.unit(round.radius) / round.n)


def modular_width(*, rows: int, parties: int, steps: int, std: float, dim: int, rounds: int) -> int:
    """Return the bits of a coordinate at which no sum of a run wraps around, but with probability 2**-40.

    The noise is sub-Gaussian with proxy variance parties * std^2. A failure costs accuracy, never privacy.

    Args:
        rows: Rows in a sum, of norm at most `steps` each; under add-remove the planned number. >= 1.
        parties: How many add noise, >= 1.
        steps: Grid steps of a radius, >= 1.
        std: Parameter of one share of the noise in grid steps, finite and > 0.
        dim: Coordinates of a sum, >= 1.
        rounds: Sums of the run, >= 1.

    Returns:
        b with 2**b >= 2 (A + t) + 2, where A = rows * steps + parties / 2 bounds the rounded sums and t the
        noise, sqrt(2 parties ln(4 dim rounds 2**40)) std.

    Raises:
        ParameterError: A value is out of its range, or more than 64 bits are needed.

    Example:
        >>> modular_width(rows=10, parties=10, steps=512, std=1361.3, dim=65, rounds=1)
        17

    Reference:
        Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Corollary 17, for the tails of the noise;
        docs/theory/noise.md, section 7.
    """
    for name, count in (("rows", rows), ("parties", parties), ("steps", steps), ("dim", dim)):
        check_count(name, count, high=LARGEST_COUNT)
    check_count("rounds", rounds)
    check_positive("std", std)
    sums = rows * steps + parties / 2
    log_tail = math.log(4) + math.log(dim) + math.log(rounds) - _LOG_FAILURE
    noise = min(std, 1e200) * math.sqrt(parties) * math.sqrt(2 * log_tail)
    bits = math.ceil(math.log2(2 * (sums + noise) + 2))
    if bits > 64:
        raise ParameterError(
            f"a sum must fit into 64 bits a coordinate, and {rows} rows of {steps} steps with noise of "
            f"{std!r} steps of each of {parties} parties take {bits}: take fewer steps."
        )
    return bits


def _centred(values: Array, width: int) -> IntArray:
    """Return the residues of int64 numbers modulo 2**width that are in [-2**(width - 1), 2**(width - 1))."""
    spare = 64 - width
    return (values.view(np.uint64) << np.uint64(spare)).view(np.int64) >> np.int64(spare)
