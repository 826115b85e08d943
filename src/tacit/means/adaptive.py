"""Means from coordinates that depend on the vector: importance sampling, Top-k, and Induced.

The index of a value travels with it: one integer holds the 32 bits of a float and ceil(log2 d) of an index.
A message always has k of them, with distinct indices in increasing order, so that its length is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np

from tacit.compression import Maps, WangniSparsifier, draw_maps
from tacit.errors import ParameterError, check_count, check_probability
from tacit.means.coded import CodedMean, VectorCode
from tacit.means.message import Round
from tacit.means.party_sums import Form, float_values
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, counts_that_fit
from tacit.numerics import Array, IntArray

__all__ = ["Induced", "TopKMean", "Wangni"]


class _Kept(CodedMean, frozen=True, kw_only=True):
    """A mean from k numbers of every vector."""

    k: int

    @classmethod
    def proposals(cls, problem: MeanProblem) -> Iterator[Proposal]:
        """Offer, without privacy, several numbers k."""
        if problem.trust != "none":
            return
        family = str(cls.__struct_config__.tag)
        for k in counts_that_fit(cls._of(problem.dim), problem):
            found = cls._of(problem.dim)(k)
            yield Proposal(
                name=f"{family}, k={k}",
                family=family,
                guess=found,
                make=lambda found=found: found,  # type: ignore[misc]
                norm="l2",
                encode=ComputeCost("d log d", problem.dim * problem.log_dim),
                decode=ComputeCost("n k + d", float(problem.n * k + problem.dim)),
                note="much better for rows with few large coordinates",
            )

    @classmethod
    def _of(cls, dim: int) -> Callable[[int], Self]:
        """Return what builds the best such estimator for a number k."""
        return lambda k: cls(dim=dim, k=k)


class Wangni(_Kept, frozen=True, kw_only=True, tag="wangni"):
    """Importance sampling: a coordinate is kept with a probability that grows with its size; unbiased.

    Sampling is systematic: k coordinates or fewer, filled up with zeros. With Wangni's independent
    draws, whose error is the same, the length of a message would tell about the vector.

    Attributes:
        k: Coordinates that a party sends, from 1 to `dim`.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import Round, Wangni
        >>> x = np.zeros((1, 64))
        >>> x[0, 5] = 1.0
        >>> round_ = Round(n=1, radius=1.0)
        >>> estimate = Wangni(dim=64, k=4).estimate(x, round_, rng=np.random.default_rng(0))
        >>> bool(np.all(estimate == x[0]))
        True

    Reference:
        Wangni et al. (2018), NeurIPS. Error: at most (d/k - 1) S1 / n^2, that of Rand-k.
    """

    @property
    def code(self) -> VectorCode[None]:
        """What parties send of the sums of their rows."""
        check_count("k", self.k, high=self.dim)
        sparsifier = WangniSparsifier(k=self.k, sampling="systematic")
        # Equal probabilities k/d are among those that the sampling is optimal over.
        return _largest(
            self, lambda vectors, rng: sparsifier.compress(vectors, rng=rng), variance=self.dim / self.k - 1
        )


class TopKMean(_Kept, frozen=True, kw_only=True, tag="top-k"):
    """Every party sends its k largest coordinates: biased.

    Attributes:
        k: Coordinates that a party sends, from 1 to `dim`.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import Round, TopKMean
        >>> x = np.array([[1.0, -3.0, 2.0, -2.0]])
        >>> TopKMean(dim=4, k=2).estimate(x, Round(n=1, radius=9.0), rng=np.random.default_rng(0)).tolist()
        [0.0, -3.0, 2.0, 0.0]

    Reference:
        Stich, Cordonnier and Jaggi (2018), NeurIPS; at most (1 - k/d) of the squared norm is lost.
    """

    @property
    def code(self) -> VectorCode[None]:
        """What parties send of the sums of their rows."""
        check_count("k", self.k, high=self.dim)
        return _largest(self, lambda vectors, _: vectors, squared_bias=1 - self.k / self.dim)


class Induced(_Kept, frozen=True, kw_only=True, tag="induced"):
    """Top-k1 plus Rand-k2 of what it leaves over, k1 + k2 = k: unbiased.

    Attributes:
        k: Numbers that a party sends, from 1 to `dim`.
        top_fraction: k1 = floor(top_fraction * k), in [0, 1), with at least one number left for Rand-k.
        restrict: Whether Rand-k draws among the d - k1 coordinates that are left; never worse.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Horváth and Richtárik (2021), ICLR.
    """

    top_fraction: float = 0.5
    restrict: bool = False

    @classmethod
    def _of(cls, dim: int) -> Callable[[int], Self]:
        return lambda k: cls(dim=dim, k=k, restrict=True)

    @property
    def code(self) -> VectorCode[Maps]:
        """What parties send of the sums of their rows."""
        check_count("k", self.k, high=self.dim)
        check_probability("top_fraction", self.top_fraction, high_open=True)
        drawn = Form(self.k - self._top, np.float32)
        return VectorCode(
            forms=(drawn, _indexed_form(self._top, self.dim)) if self._top else (drawn,),
            drawn=self._maps,
            written=self._written,
            summed=self._summed,
            variance=(self._among / (self.k - self._top) - 1) * (1 - self._top / self.dim),
        )

    @property
    def _top(self) -> int:
        """Number k1 of largest coordinates."""
        return min(int(self.top_fraction * self.k), self.k - 1)

    @property
    def _among(self) -> int:
        """Coordinates that Rand-k draws from."""
        return self.dim - self._top if self.restrict else self.dim

    def _maps(self, senders: Sequence[int], round: Round) -> Maps:
        """Return the coordinates that Rand-k draws, which do not depend on the vectors."""
        k = self.k - self._top
        return draw_maps(
            "subsample", self._among, k, senders, seed=round.seed, round=round.number, purpose="induced"
        )

    def _written(self, vectors: Array, maps: Maps, rng: np.random.Generator) -> list[Array]:
        if not self._top:
            return [float_values(maps.encode(vectors), 32)]
        sent = _indexed(vectors, self._top)
        indices, _ = _read_indexed(sent, self.dim)
        rest = vectors.copy()
        np.put_along_axis(rest, indices, 0.0, axis=1)
        if self.restrict:
            rest = np.take_along_axis(rest, _others(indices, self.dim), axis=1)
        return [float_values(maps.encode(rest), 32), sent]

    def _summed(self, payloads: list[Array], maps: Maps) -> Array:
        drawn = payloads[0].astype(np.float64) * (self._among / (self.k - self._top))
        if not self._top:
            return maps.adjoint_sum(drawn)
        indices, values = _read_indexed(payloads[1], self.dim)
        large = _scattered(indices, values, self.dim)
        if not self.restrict:
            return large + maps.adjoint_sum(drawn)
        return large + _scattered(_others(indices, self.dim), maps.adjoint(drawn), self.dim)


def _largest(
    mean: Wangni | TopKMean,
    sparse: Callable[[Array, np.random.Generator], Array],
    *,
    variance: float = 0.0,
    squared_bias: float = 0.0,
) -> VectorCode[None]:
    """Return the code of the k largest entries of what is made of a vector, with their indices."""
    k, dim = mean.k, mean.dim
    return VectorCode(
        forms=(_indexed_form(k, dim),),
        drawn=lambda _senders, _round: None,
        written=lambda vectors, _, rng: [_indexed(sparse(vectors, rng), k)],
        summed=lambda payloads, _: _scattered(*_read_indexed(payloads[0], dim), dim),
        variance=variance,
        squared_bias=squared_bias,
    )


def _index_bits(dim: int) -> int:
    """Return ceil(log2(dim))."""
    return (dim - 1).bit_length()


def _indexed_form(k: int, dim: int) -> Form:
    """Return the form of k floats with their indices."""
    return Form(k, np.int64, 32 + _index_bits(dim))


def _indexed(vectors: Array, k: int) -> IntArray:
    """Return the k largest entries of every row with their indices, shape (n, k); ties go to low indices.

    Of rows with fewer than k entries, these are all, and zeros.
    """
    indices = np.sort(np.argsort(-np.abs(vectors), axis=1, kind="stable")[:, :k], axis=1)
    values = float_values(np.take_along_axis(vectors, indices, axis=1), 32)
    return (values.view(np.int32).astype(np.int64) << _index_bits(vectors.shape[1])) | indices


def _read_indexed(payload: IntArray, dim: int) -> tuple[IntArray, Array]:
    """Return indices and values, both of shape (n, k), from what `_indexed` wrote.

    Raises:
        ParameterError: An index beyond `dim`, indices that do not increase, a NaN or an infinity.
    """
    bits = _index_bits(dim)
    indices = payload & ((1 << bits) - 1)
    values = (payload >> bits).astype(np.int32).view(np.float32)
    if np.any(indices >= dim) or np.any(np.diff(indices, axis=1) <= 0):
        raise ParameterError(f"a message must hold increasing indices below {dim}, and does not.")
    if not np.all(np.isfinite(values)):
        raise ParameterError("a message must hold finite numbers, got a NaN or an infinity.")
    return indices, values.astype(np.float64)


def _scattered(indices: IntArray, values: Array, dim: int) -> Array:
    """Return the sum of sparse rows, shape (dim,)."""
    return np.bincount(indices.ravel(), weights=values.ravel(), minlength=dim)


def _others(indices: IntArray, dim: int) -> IntArray:
    """Return the indices that rows do not name, increasing, shape (n, dim - k)."""
    free = np.ones((len(indices), dim), dtype=np.bool_)
    np.put_along_axis(free, indices, values=False, axis=1)
    return np.nonzero(free)[1].reshape(len(indices), dim - indices.shape[1])
