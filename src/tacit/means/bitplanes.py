"""The mean of vectors in a box, bit plane by bit plane."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tacit.errors import check_count
from tacit.means.base import Error
from tacit.means.calibrated import calibrated_mean, usual_v
from tacit.means.message import Round
from tacit.means.planes import (
    Allocation,
    BlockKind,
    Decoder,
    Planes,
    Rule,
    largest_scale,
    plane_levels,
    planes_of,
)
from tacit.means.randomized import RECORDS, Ball, Channels, SymbolMean, check_levels, clipped_to_unit
from tacit.numerics import Array, IntArray
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel

__all__ = ["BitplaneMean"]


class BitplaneMean(
    SymbolMean,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="bitplane",
):
    """Rows with entries in [-radius, radius] are rounded to m bits; of every plane, s bits are sent.

    Attributes:
        dim: Number of coordinates, >= 1.
        samples: Number s of blocks; of each block and plane one coordinate is drawn. 1 to dim.
        local_epsilons: Level of one message of each of the m planes, first (heaviest) bit first; 1 to 30
            levels in [2**-30, 30]. See `plane_levels`.
        blocks: See `SampledBinaryMean`.
        decoder: See `SampledBinaryMean`.
        trust: `local` or `shuffle`; under shuffling every plane and block has a shuffler of its own.
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
        >>> mean = BitplaneMean.calibrated(dim=1, planes=2, samples=1, budget=PrivacyBudget(4.0), n=1000)
        >>> mean.local_epsilons, mean.bits_per_party()
        ((2.0, 2.0), 96)
        >>> X = np.full((10_000, 1), 0.25)
        >>> found = mean.estimate(X, Round(n=10_000, radius=1.0), rng=np.random.default_rng(0))
        >>> bool(abs(found[0] - 0.25) < 0.05)
        True

    Reference:
        Girgis (2023), Algorithms 3.5.1 and 3.5.2, Theorem 3.5.1; misprints in docs/errata.md.
    """

    samples: int
    local_epsilons: tuple[float, ...]
    blocks: BlockKind = "balanced"
    decoder: Decoder = "centered"

    ball: ClassVar[Ball] = "linf"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_levels("local_epsilons", self.local_epsilons)
        self._planes()

    @classmethod
    def calibrated(
        cls,
        *,
        dim: int,
        planes: int,
        samples: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        allocation: Allocation | None = None,
        blocks: BlockKind = "balanced",
        decoder: Decoder = "centered",
        neighbours: Neighbours = RECORDS,
    ) -> BitplaneMean:
        """Build the most accurate such estimator that meets a budget.

        Args:
            dim: Number of coordinates.
            planes: Number m of bits that an entry is rounded to, 1 to 30.
            samples: Number s of messages of a plane.
            budget: For the observer of the trust model.
            n: Planned number of rows.
            trust: `local` (levels add up) or `shuffle` (numerical accounting).
            honest_fraction: Behind a shuffler: fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Behind a shuffler: rows below which it gives a round up, 1 to n; None: all n.
            allocation: How planes share the budget, see `plane_shares`; None: "ldp" for local trust, "rdp"
                for shuffling.
            blocks: See the class.
            decoder: See the class.
            neighbours: A replace-one relation.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.
        """
        check_count("samples", samples, high=dim)
        local = trust is TrustModel.LOCAL
        shares: Allocation = ("ldp" if local else "rdp") if allocation is None else allocation
        rule: Rule = "level" if local and shares != "rdp" else "v"

        def make(scale: float) -> BitplaneMean:
            return cls(
                dim=dim,
                samples=samples,
                local_epsilons=plane_levels(
                    scale, planes=planes, samples=samples, allocation=shares, rule=rule
                ),
                blocks=blocks,
                decoder=decoder,
                trust=trust,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            )

        high = largest_scale(planes, samples, shares, rule)
        guess = budget.epsilon if local else usual_v(budget, n, samples)
        return calibrated_mean(make, budget, n=n, trust=trust, high=high, guess=guess)

    def channels(self) -> Channels:
        """Return one channel for each plane and block: the coordinate within the block, and its bit."""
        return self._planes().channels

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim); for tests and studies."""
        z = (clipped_to_unit(rows, round, self.dim, self.ball) + 1) / 2
        return float(self._planes().variances(z).sum()) * (2 * round.radius / round.n) ** 2

    def _planes(self) -> Planes:
        return planes_of(self.dim, self.samples, self.local_epsilons, self.blocks, self.decoder)

    def _symbols(self, rows: Array, round: Round, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        return self._planes().symbols((rows + 1) / 2, rng)

    def _total(self, counts: IntArray, reports: int, round: Round) -> Array:  # noqa: ARG002
        return 2 * self._planes().total(counts, reports) - reports

    def _row_error(self, n: int) -> Error:  # noqa: ARG002
        return Error(variance=4 * float(self._planes().worst_variances().sum()), exact=False)
