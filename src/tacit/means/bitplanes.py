"""The mean of vectors in a box, bit plane by bit plane."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Self

from tacit.means.base import Error
from tacit.means.calibrated import Scale
from tacit.means.message import Round
from tacit.means.planes import BlockKind, Decoder, Planes, plane_scale, planes_of
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.shuffled_planes import plane_proposals
from tacit.means.symbols import Symbols, check_levels, symbols
from tacit.means.violations import clipped_to_unit
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget

__all__ = ["BitplaneMean"]

_FEW = 16


class BitplaneMean(RandomizedMean, frozen=True, kw_only=True, tag="bitplane"):
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

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterable[Proposal]:
        """Offer all planes m and numbers s, for rows in a box.

        In a box around an l1 or l2 ball the noise is that of d coordinates as large as the whole row: in more
        than a few dimensions rotations are far better.
        """
        d = problem.dim
        if problem.norm != "linf" and d > _FEW:
            return ()
        build = partial(cls, dim=d, trust=problem.observer, neighbours=problem.near)
        return plane_proposals(problem, build, "bit planes, ", d, family="bit planes", norm="linf")

    @classmethod
    def _scale(cls, budget: PrivacyBudget, n: int, **fields: Any) -> Scale[Self]:
        return plane_scale(cls, budget, n, **fields)

    @property
    def randomizer(self) -> Symbols:
        """How a row becomes one symbol for each plane and block: the coordinate within it, and its bit."""
        check_levels("local_epsilons", self.local_epsilons)
        planes = self._planes()
        return symbols(
            self,
            "linf",
            planes.channels,
            lambda rows, _, rng: planes.symbols((rows + 1) / 2, rng),
            lambda counts, reports, _: 2 * planes.total(counts, reports) - reports,
            lambda _: Error(variance=4 * float(planes.worst_variances().sum()), exact=False),
        )

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim); for tests and studies."""
        z = (clipped_to_unit(rows, round, self.dim, "linf") + 1) / 2
        return float(self._planes().variances(z).sum()) * (2 * round.radius / round.n) ** 2

    def _planes(self) -> Planes:
        return planes_of(self.dim, self.samples, self.local_epsilons, self.blocks, self.decoder)
