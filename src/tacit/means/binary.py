"""The mean of binary vectors, of which every party sends a few randomised coordinates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tacit.errors import check_count
from tacit.means.base import Error
from tacit.means.calibrated import calibrated_mean, usual_v
from tacit.means.message import Round
from tacit.means.planes import BlockKind, Decoder, Planes, planes_of
from tacit.means.randomized import RECORDS, Ball, Channels, SymbolMean, check_level, clipped_to_unit
from tacit.mechanisms import level_from_v
from tacit.numerics import Array, IntArray
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["SampledBinaryMean"]


class SampledBinaryMean(
    SymbolMean,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="sampled-binary",
):
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

    ball: ClassVar[Ball] = "box"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level("local_epsilon", self.local_epsilon)
        self._planes()

    @classmethod
    def calibrated(
        cls,
        *,
        dim: int,
        samples: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        blocks: BlockKind = "balanced",
        decoder: Decoder = "centered",
        neighbours: Neighbours = RECORDS,
    ) -> SampledBinaryMean:
        """Build the most accurate such estimator that meets a budget.

        Args:
            dim: Number of coordinates.
            samples: Number of messages of a row. Under local trust the best is near the budget's epsilon.
            budget: For the observer of the trust model.
            n: Planned number of rows.
            trust: `local` (the levels of the messages add up) or `shuffle` (numerical accounting).
            honest_fraction: Behind a shuffler: fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Behind a shuffler: rows below which it gives a round up, 1 to n; None: all n.
            blocks: See the class.
            decoder: See the class.
            neighbours: A replace-one relation.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.

        Example:
            >>> SampledBinaryMean.calibrated(dim=64, samples=4, budget=PrivacyBudget(4.0), n=1).local_epsilon
            1.0
        """
        check_count("samples", samples, high=dim)

        def make(scale: float) -> SampledBinaryMean:
            return cls(
                dim=dim,
                samples=samples,
                local_epsilon=max(min(scale / samples, 30.0), 2.0**-30),
                blocks=blocks,
                decoder=decoder,
                trust=trust,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            )

        v = usual_v(budget, n, samples)
        guess = samples * level_from_v(v / samples) if trust is TrustModel.SHUFFLE else budget.epsilon
        return calibrated_mean(make, budget, n=n, trust=trust, high=30.0 * samples, guess=guess)

    def channels(self) -> Channels:
        """Return one channel for each block: the coordinate within it, and its bit."""
        return self._planes().channels

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim); for tests and studies."""
        z = clipped_to_unit(rows, round, self.dim, self.ball)
        return float(self._planes().variances(z).sum()) * (round.radius / round.n) ** 2

    def _planes(self) -> Planes:
        return planes_of(self.dim, self.samples, (self.local_epsilon,), self.blocks, self.decoder)

    def _symbols(self, rows: Array, round: Round, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        return self._planes().symbols(rows, rng)

    def _total(self, counts: IntArray, reports: int, round: Round) -> Array:  # noqa: ARG002
        return self._planes().total(counts, reports)

    def _row_error(self, n: int) -> Error:  # noqa: ARG002
        return Error(variance=float(self._planes().worst_variances().sum()), exact=False)
