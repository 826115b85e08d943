"""Rand-k, Rand-k-Spatial and Rand-Proj-Spatial means, and two ablations (Jiang 2025, Section 2.4)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, ClassVar, get_args

import numpy as np

from tacit.compression import (
    Backend,
    Linear,
    MapKind,
    Maps,
    SpectralMoments,
    TransformName,
    advised_transform,
    decode_mean,
    decode_mean_map,
    decode_per_party,
    draw_maps,
    padded_dim,
    spectral_moments,
    transform,
)
from tacit.errors import ParameterError, check_choice
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.sketched import Sketch, SketchedMean
from tacit.numerics import Array

__all__ = ["MeanMapPinv", "PerPartyPinv", "RandK", "RandKSpatial", "RandProjSpatial"]

_SPREAD = 2e-3
"""Share of the moments of an error that their standard errors may be, for one per cent of the error."""

_MORE_DRAWS = 1024
"""Most draws for them: some seconds, at the largest spectra that are simulated."""

_DRAWS = 400
"""Most draws that the error of the averaged map is simulated with; half a percent is enough."""


class RandK(SketchedMean, frozen=True, kw_only=True, tag="rand-k"):
    """Every party sends k of its d coordinates, chosen at random; the server scales them by d/k.

    The error is (d/k - 1) S1 / n^2, whatever the correlation.

    Attributes:
        rotate: Whether a rotation that all parties share comes first, as an ablation: it spreads the error of
            one round over all coordinates, and leaves its size. Vectors are padded to a power of two.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import RandK, Round
        >>> X = np.ones((10, 1024)) / 32
        >>> estimate = RandK(dim=1024, k=102).estimate(
        ...     X, Round(n=10, parties=10, radius=1.0), rng=np.random.default_rng(0)
        ... )
        >>> estimate.shape, RandK(dim=1024, k=102).bits_per_party()
        ((1024,), 3352)

    Reference:
        Jiang (2025), Eq 2.1; Appendix A.1.1 for one rotation of all vectors.
    """

    _turned: ClassVar[bool] = False

    rotate: bool = False

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer k coordinates as they are, or with local noise."""
        if problem.trust == "none":
            yield from cls._plain(problem)
        if problem.trust == "local":
            yield from cls._noisy(problem)

    @property
    def code(self) -> Sketch:
        """What parties send of the sums of their rows."""
        plain = Linear(0.0)
        return self._sketch(
            "subsample",
            lambda maps, Y, _: decode_mean(maps, Y, plain),
            lambda parties: _counted_moments(self, parties, plain),
            rotated=self.rotate,
            independent=True,
        )


class RandKSpatial(SketchedMean, frozen=True, kw_only=True, tag="rand-k-spatial"):
    """Rand-k messages; the server discounts a coordinate by how many parties sent it.

    Better than Rand-k for correlated vectors, and the right choice for negative correlation; `avg` is worse
    than Rand-k where the correlation is below about a quarter of the number of parties.

    Attributes:
        transform: `avg` for unknown correlation, `opt` for a given one, `max` for (nearly) identical vectors,
            `one` for Rand-k.
        correlation: R among the planned parties, > -1, for `opt` and only there: a public guess, such as an
            estimate from earlier rounds. Where parties drop out, their mean correlation is taken to stay.
        rotate: Whether a shared rotation comes first; see RandK.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import RandKSpatial, Facts
        >>> mean = RandKSpatial(dim=1024, k=102, transform="opt", correlation=9.0)
        >>> facts = Facts(parties=10, correlation=9.0, squared_norms=10.0)
        >>> round(mean.error(10, facts).variance, 4)
        0.5389

    Reference:
        Jiang (2025), Eq 2.2, 2.11.
    """

    _turned: ClassVar[bool] = False

    transform: TransformName = "avg"
    correlation: float | None = None
    rotate: bool = False

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer, without privacy, the transform for the correlation that is known."""
        if problem.trust == "none" and problem.n > 1:
            yield from cls._plain(problem, **_advised(problem))
        yield from super().proposals(problem)

    @property
    def code(self) -> Sketch:
        """What parties send of the sums of their rows."""
        _check_transform(self.transform, self.correlation)

        def matched(parties: int, planned: int) -> Linear:
            return _matched(self.transform, self.correlation, parties, planned)

        return self._sketch(
            "subsample",
            lambda maps, Y, planned: decode_mean(maps, Y, matched(maps.n, planned)),
            lambda parties: _counted_moments(self, parties, matched(parties, parties)),
            rotated=self.rotate,
        )


class RandProjSpatial(SketchedMean, frozen=True, kw_only=True, tag="rand-proj-spatial"):
    """Every party sends k numbers of a random projection; the server solves for the mean jointly.

    The best of the three for positively correlated vectors. `avg` is worse than Rand-k where the correlation
    is below about a quarter of the number of parties, and `max` is for (nearly) identical vectors only.

    Attributes:
        transform: As for RandKSpatial.
        correlation: As for RandKSpatial.
        projection: Kind of maps. Noise needs orthonormal rows: `srht`, `haar` or `subsample`.
        backend: How the server solves; see `tacit.compression.decode_mean`. Of many numbers `auto` solves to
            0.05 per cent of the error's root, in a quarter of the time that `cg` takes.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import RandProjSpatial, Round
        >>> mean, X = RandProjSpatial(dim=1024, k=102), np.ones((10, 1024)) / 32
        >>> estimate = mean.estimate(X, Round(n=10, parties=10, radius=1.0), rng=np.random.default_rng(0))
        >>> bool(np.sum((estimate - X[0]) ** 2) < 0.5)
        True

    Reference:
        Jiang (2025), Eq 2.5, 2.11.
    """

    transform: TransformName = "avg"
    correlation: float | None = None
    projection: MapKind = "srht"
    backend: Backend = "auto"

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer the transform for the correlation that is known; with noise, where rows agree."""
        R = problem.total_correlation
        if problem.trust == "none" and problem.n > 1:
            yield from cls._plain(problem, **_advised(problem))
        elif problem.trust == "local" and R is not None and R > 0:
            note = "matched to the correlation that was given"
            yield from cls._noisy(problem, note=note, transform="opt", correlation=R)
        else:
            yield from super().proposals(problem)

    @property
    def code(self) -> Sketch:
        """What parties send of the sums of their rows."""
        _check_transform(self.transform, self.correlation)
        check_choice("projection", self.projection, get_args(MapKind))
        check_choice("backend", self.backend, get_args(Backend))
        return self._sketch(self.projection, self._mean, self._moments)

    def _mean(self, maps: Maps, Y: Array, planned: int) -> Array:
        T = _matched(self.transform, self.correlation, maps.n, planned)
        return decode_mean(maps, Y, T, backend=self.backend)

    def _moments(self, parties: int) -> SpectralMoments:
        T = _matched(self.transform, self.correlation, parties, parties)
        # The moments that decoders use as well, and more draws only where the error is not settled by them.
        found = spectral_moments(parties, self.k, self.dim, T, projection=self.projection)
        spread = max(found.a1_stderr / found.a1, found.a2_stderr / found.a2)
        if spread <= _SPREAD or found.heavy or found.draws >= _MORE_DRAWS:
            return found
        return spectral_moments(
            parties, self.k, self.dim, T, projection=self.projection, mse_tol=_SPREAD, max_draws=_MORE_DRAWS
        )


class PerPartyPinv(SketchedMean, frozen=True, kw_only=True, tag="per-party-pinv"):
    """Ablation: the server solves for every party alone, (1/n) sum_i (d/k) G_i^+ y_i.

    The error is that of Rand-k (on padded coordinates, for `srht`), for all maps of full rank whose row space
    has the same law in every direction; a count sketch has empty buckets and is refused.

    Attributes:
        projection: Kind of maps.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Jiang (2025), Eq A.4.
    """

    projection: MapKind = "srht"

    @property
    def code(self) -> Sketch:
        """What parties send of the sums of their rows."""
        allowed = [kind for kind in get_args(MapKind) if kind != "count_sketch"]
        check_choice("projection", self.projection, allowed)
        alike: MapKind = "srht" if self.projection == "srht" else "haar"
        return self._sketch(
            self.projection,
            lambda maps, Y, _: decode_per_party(maps, Y),
            lambda parties: spectral_moments(parties, self.k, self.dim, Linear(0.0), projection=alike),
            independent=True,
        )


class MeanMapPinv(SketchedMean, frozen=True, kw_only=True, tag="mean-map-pinv"):
    """Ablation: the server uses only the sum of the messages and the mean of the maps.

    For identical vectors the error is (d/k - 1) ||x||^2, n times that of Rand-k.

    Attributes:
        projection: `srht` or `haar`; means of plain coordinates lose rank.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Jiang (2025), Eq A.7.
    """

    projection: MapKind = "srht"

    @property
    def code(self) -> Sketch:
        """What parties send of the sums of their rows."""
        check_choice("projection", self.projection, ("srht", "haar"))
        return self._sketch(
            self.projection,
            lambda maps, Y, _: decode_mean_map(maps, Y.mean(axis=0)),
            lambda parties: _mean_map_moments(parties, self.k, self.dim, self.projection),
        )


def _advised(problem: MeanProblem) -> dict[str, Any]:
    """Return the transform for what is known of the correlation."""
    R = problem.total_correlation
    advised = advised_transform(R, problem.n)
    return {"of": f" ({advised})", "transform": advised, "correlation": R if advised == "opt" else None}


def _check_transform(name: TransformName, correlation: float | None) -> None:
    """Refuse an unknown name, and a correlation that is missing, superfluous or no correlation."""
    check_choice("transform", name, get_args(TransformName))
    if (correlation is None) == (name == "opt"):
        raise ParameterError("correlation must be given for the transform opt and for no other.")
    if correlation is not None and not -1 < correlation < np.inf:
        raise ParameterError(f"correlation must be a finite number > -1, got {correlation!r}.")


def _matched(name: TransformName, correlation: float | None, n: int, planned: int) -> Linear:
    """Return the transform for n of `planned` parties: the correlation is that among the planned ones.

    The slope R / (planned - 1) is the mean correlation of two parties, which does not change when some drop
    out; so a transform that is positive for all of them is so for fewer.
    """
    if n == 1 or planned == 1:
        return Linear(0.0)
    return transform(name, planned if name == "opt" else n, correlation=correlation)


def _counted_moments(mean: RandK | RandKSpatial, parties: int, T: Linear) -> SpectralMoments:
    """Return the moments of sampled coordinates, rotated or not."""
    size = padded_dim("srht", mean.dim) if mean.rotate else mean.dim
    moments = spectral_moments(parties, mean.k, size, T, projection="subsample")
    # Of the rotated coordinates that were padded, `dim` are kept.
    return dataclasses.replace(moments, dim=mean.dim)


@functools.lru_cache(maxsize=256)
def _mean_map_moments(n: int, k: int, dim: int, kind: MapKind) -> SpectralMoments:
    """Return, in the form of the spectral decoders, the moments of the averaged map.

    With A the mean of the maps and alpha = E tr((A A^T)^+) / d', signs and shifts that all parties share make
    E[G_i^T (A A^T)^+ G_i] = alpha I, and the same for i != l with gamma, where n alpha + n (n - 1) gamma =
    n^2 k / d' because A^+ A projects on k dimensions. So A1 = (d'/k)^2 alpha and A2 = (d'/k)^2 gamma.
    """
    size = padded_dim(kind, dim)
    found: list[float] = []
    alpha, error = k / size, 0.0  # of one party, for whom A A^T is the identity
    while n > 1 and len(found) < _DRAWS and (len(found) < 16 or error > 0.005 * alpha):
        maps = draw_maps(kind, dim, k, n, seed=0, round=len(found), purpose="moments")
        A = maps.matrices().mean(axis=0)
        found.append(float(np.trace(np.linalg.pinv(A @ A.T, hermitian=True))) / size)
        if len(found) > 1:
            alpha, error = float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))
    return SpectralMoments(
        n=n,
        k=k,
        dim=dim,
        padded_dim=size,
        m=n * k / size,
        a1=n * alpha,
        a2=n**2 * k / size,
        noise=n * alpha,
        a1_stderr=n * error,
        noise_stderr=n * error,
        draws=len(found),
        method="mc" if n > 1 else "closed",
    )
