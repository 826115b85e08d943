"""The mean of binary vectors, of which every party sends a few randomised coordinates."""

from __future__ import annotations

from typing import Any, Self

from tacit.errors import check_count
from tacit.means.base import Error
from tacit.means.calibrated import Scale, one_level, usual_v
from tacit.means.message import Round
from tacit.means.planes import BlockKind, Decoder, Planes, planes_of
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.symbols import Symbols, symbols
from tacit.means.violations import clipped_to_unit
from tacit.mechanisms import HIGHEST_LEVEL, check_level, level_from_v
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["SampledBinaryMean"]


class SampledBinaryMean(RandomizedMean, frozen=True, kw_only=True, tag="sampled-binary"):
    """The coordinates form s blocks; of each block, one coordinate is drawn and its bit sent, maybe flipped.

    Rows lie in [0, radius]^dim. Entries other than 0 and the radius are first rounded to them at random,
    without bias, so that nothing visible depends on whether a row was binary.

    Attributes:
        dim: Number of coordinates, >= 1.
        samples: Number s of blocks and of messages of a row, 1 to dim.
        local_epsilon: Pure level of one message, in [2**-30, 30].
        blocks: "balanced" (sizes differ by at most 1), or "padded" to ceil(dim / s), as printed.
        decoder: "centered" counts a coordinate that was not drawn as 1/2, "horvitz" as 0 (as printed). Both
            are unbiased; the variance per row and coordinate is a s2 + (a - 1) / 4 or a s2 + (a - 1) b.
        trust: `local` or `shuffle`; under shuffling every block has a shuffler of its own.
        neighbours: A replace-one relation.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up. The price counts n_min rows less those
            of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> import numpy as np
        >>> from tacit.means import Round
        >>> mean = SampledBinaryMean(dim=4, samples=2, local_epsilon=1.0)
        >>> X = np.tile([1.0, 0.0, 1.0, 1.0], (10_000, 1))
        >>> found = mean.estimate(X, Round(n=10_000, radius=1.0), rng=np.random.default_rng(0))
        >>> bool(np.abs(found - X[0]).max() < 0.1), mean.pure_epsilon, mean.bits_per_party(100)
        (True, 2.0, 488)

    Reference:
        Girgis (2023), Algorithms 3.3.1 and 3.3.2, Theorems 3.3.1 and 3.3.2; misprints in docs/errata.md.
    """

    samples: int
    local_epsilon: float
    blocks: BlockKind = "balanced"
    decoder: Decoder = "centered"

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer one coordinate of every row."""
        return cls._one_message(problem, samples=1)

    @classmethod
    def _scale(cls, budget: PrivacyBudget, n: int, *, samples: int, **fields: Any) -> Scale[Self]:
        check_count("samples", samples, high=fields["dim"])
        shuffled = fields["trust"] is TrustModel.SHUFFLE
        v = usual_v(budget, n, samples) / samples
        return Scale(
            lambda scale: one_level(cls, {"samples": samples, **fields}).make(scale / samples),
            high=HIGHEST_LEVEL * samples,
            guess=samples * level_from_v(v) if shuffled else budget.epsilon,
        )

    @property
    def randomizer(self) -> Symbols:
        """How a row becomes one symbol for each block: the coordinate within it, and its bit."""
        check_level("local_epsilon", self.local_epsilon)
        planes = self._planes()
        return symbols(
            self,
            "box",
            planes.channels,
            lambda rows, _, rng: planes.symbols(rows, rng),
            lambda counts, reports, _: planes.total(counts, reports),
            lambda _: Error(variance=float(planes.worst_variances().sum()), exact=False),
        )

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim); for tests and studies."""
        z = clipped_to_unit(rows, round, self.dim, "box")
        return float(self._planes().variances(z).sum()) * (round.radius / round.n) ** 2

    def _planes(self) -> Planes:
        return planes_of(self.dim, self.samples, (self.local_epsilon,), self.blocks, self.decoder)
