"""H(p) and H(p') of all worst cases of a noisy majority, from tables that share the work.

Taking one teacher with probability p into the mean is (T_p v)(k) = (1 - p) v(k) + p v(k + 1). All T_p
commute, so the vectors of all types are filled step by step and shared; T_0, T_1 only pick entries
(docs/theory/voting.md, section 2). With i teachers at (a,b), j at (b,a), n_2 at (1,1), and n_3..n_6 at the
vertices of delta,

    H = P[n4, n5, n2 + n6],  H' = Q[n3, n6, n2 + n5],  P from T_a^i T_b^j phi,  Q from T_a^j T_b^i phi.

For given (i, j, n2, n4, n5, n6) any n3 up to what is left is allowed, so a running minimum of Q over n3 turns
C(K+7, 7) types into C(K+6, 6) differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tacit.privacy.certified.vertices import Counts
from tacit.privacy.curves import Array

__all__ = ["Tables", "Violator", "mixed"]

_TOGETHER = 1 << 15
"""Entries of the tables that are filled together: small ones cost calls, large ones should fit a cache."""


class Violator(NamedTuple):
    """A case and how much it needs."""

    value: Any
    counts: Counts


def mixed(v: Array, p: Any, q: Any) -> Array:
    """Return T_p v along the last axis, with q = 1 - p."""
    return np.asarray(q * v[..., :-1] + p * v[..., 1:])


@dataclass(frozen=True, kw_only=True)
class Tables:
    """H and H' of all cases; numbers are floats, or whole numbers on a fine grid.

    Attributes:
        phi: Shape (K + 1,).
        one: (a, b).
        zero: (b, a).
        tail: (D, 1 - D); None at D = 0.
        above: Rounds H up.
        below: Rounds H', times e^t where that is wanted, down.
        mix_up: T_p, never too small.
        mix_down: T_p, never too large.
        never: Larger than any difference.
    """

    phi: Array
    one: tuple[Any, Any]
    zero: tuple[Any, Any]
    tail: tuple[Any, Any] | None
    above: Callable[[Array], Array]
    below: Callable[[Array], Array]
    mix_up: Callable[[Array, Any, Any], Array] = mixed
    mix_down: Callable[[Array, Any, Any], Array] = mixed
    never: Any = math.inf

    def chain(self) -> tuple[Array, Array, Callable[[int], Counts]]:
        """Return H and H' of the cases that a monotone gamma needs, and what finds the counts of one.

        Teachers are at (D,0), (a,b) and (1,1-D) only, with D = 0 allowed. Both arrays have shape (cases,).
        """
        k = len(self.phi) - 1
        sizes = np.arange(k + 1)
        ones = np.zeros((k + 1, k + 1), dtype=self.phi.dtype)  # row i: i teachers at (a,b)
        zeros = ones.copy()  # what lies past the end of a row is never read
        ones[0] = zeros[0] = self.phi
        for i in range(1, k + 1):
            ones[i, : k + 1 - i] = self.mix_up(ones[i - 1, : k + 2 - i], *self.one)
            zeros[i, : k + 1 - i] = self.mix_down(zeros[i - 1, : k + 2 - i], *self.zero)
        rows, columns = np.nonzero(np.add.outer(sizes, sizes) <= k)
        if self.tail is None:  # teachers that do not move cost nothing, whatever rounding says
            rows, columns = rows[rows > 0], columns[rows > 0]
        rest = k - rows - columns
        if self.tail is None:
            upper, lower = ones[rows, columns], zeros[rows, columns]
        else:
            # n at (D,0) leave the last entry of T_D^n to H, m at (1,1-D) the first of T_{1-D}^m to H'.
            d, not_d = self.tail
            tops, bottoms = np.zeros_like(ones), np.zeros_like(ones)
            for n in range(k + 1):
                tops[:, n] = ones[sizes, np.maximum(k - n - sizes, 0)]
                bottoms[:, n] = zeros[:, 0]
                width = k + 1 - n
                ones[:, : width - 1] = self.mix_up(ones[:, :width], d, not_d)
                zeros[:, : width - 1] = self.mix_down(zeros[:, :width], not_d, d)
                # The entry past the end of each row would decay to numbers that processors are slow at.
                ended = sizes[:width]
                ones[ended, k - n - ended] = zeros[ended, k - n - ended] = 0
            upper, lower = tops[rows, rest], bottoms[rows, columns]

        def counts_of(at: int) -> Counts:
            i, n, m = int(rows[at]), int(rest[at]), int(columns[at])
            return (n, m, 0, 0, 0, 0, i, 0) if self.tail is None else (0, 0, 0, n, 0, m, i, 0)

        return self.above(upper), self.below(lower), counts_of

    def blocks(self, above: Any) -> Iterator[Violator]:
        """Yield the worst case of each block that needs more than `above`."""
        k = len(self.phi) - 1
        if self.tail is None:
            yield from self._pure(above)
            return
        ups, downs = self._base(self.mix_up), self._base(self.mix_down)
        found: list[tuple[tuple[int, int, int], Violator]] = []
        for moving in range(k + 1):
            together = max(_TOGETHER // (k - moving + 1) ** 3, 1)
            for first in range(0, moving + 1, together):
                rows = range(first, min(first + together, moving + 1))
                up = np.stack([ups[i, moving - i] for i in rows])
                down = np.stack([downs[moving - i, i] for i in rows])
                found += self._tails(up, down, rows, moving, above)
        yield from (violator for _, violator in sorted(found, key=itemgetter(0)))

    def _base(self, mix: Callable[[Array, Any, Any], Array]) -> dict[tuple[int, int], Array]:
        """Return T_a^i T_b^j phi by (i, j)."""
        k = len(self.phi) - 1
        found = {(0, 0): self.phi}
        for i in range(k + 1):
            if i:
                found[i, 0] = mix(found[i - 1, 0], *self.one)
            for j in range(1, k + 1 - i):
                found[i, j] = mix(found[i, j - 1], *self.zero)
        return found

    def _pure(self, above: Any) -> Iterator[Violator]:
        """Yield the worst of the cases (n1, n2, 0, 0, 0, 0, i, j) for each (i, j) but (0, 0)."""
        k = len(self.phi) - 1
        # Row j holds i = t - j, for all teachers t that move together.
        up = down = self.phi[None, :]
        for t in range(1, k + 1):
            up = np.concatenate([self.mix_up(up, *self.one), self.mix_up(up[-1:], *self.zero)])
            down = np.concatenate([self.mix_down(down, *self.one), self.mix_down(down[-1:], *self.zero)])
            values = self.above(up) - self.below(down)[::-1]
            at = values.argmax(axis=1)
            largest = values[np.arange(t + 1), at]
            for j in np.flatnonzero(largest > above).tolist():
                n2 = int(at[j])
                yield Violator(largest[j], (k - t - n2, n2, 0, 0, 0, 0, t - j, j))

    def _tails(
        self, up: Array, down: Array, rows: range, moving: int, above: Any
    ) -> Iterator[tuple[tuple[int, int, int], Violator]]:
        """Yield the worst of the cases with n7 = i and n8 = moving - i, for each i of `rows` and n5.

        `up` and `down` have one row for each i; what is yielded is known by (i, n8, n5).
        """
        r = up.shape[-1] - 1
        tops = self._slab(up, self.mix_up)
        tops = np.concatenate([tops, np.zeros((len(rows), r + 1, r + 1, r), dtype=tops.dtype)], axis=3)
        tops = np.ascontiguousarray(self.above(tops))
        lows = np.asarray(np.minimum.accumulate(self.below(self._slab(down, self.mix_down)), axis=1))
        # Row t holds the least of n3 <= t - 2r; rows below 2r stand for "none left".
        none_left = np.full((len(rows), 2 * r, r + 1, r + 1), self.never, dtype=lows.dtype)
        padded = np.ascontiguousarray(np.concatenate([none_left, lows], axis=1))
        t, t0, t1, t2 = tops.strides
        m, m0, m1, m2 = padded.strides
        for n5 in range(r + 1):
            s = r - n5
            shape = (s + 1, s + 1, s + 1)  # n4, n6, n2
            # Views on parts of both, made without `as_strided`, which takes longer than the small ones' sums.
            views = (len(rows), *shape)
            high: Array = np.ndarray(views, tops.dtype, tops, n5 * t1, (t, t0, t2, t2))
            start = (2 * r + s) * m0 + n5 * m2
            low: Array = np.ndarray(views, padded.dtype, padded, start, (m, -m0, m1 - m0, m2 - m0))
            values = (high - low).reshape(len(rows), -1)
            worst = values.argmax(axis=1)
            largest = values[np.arange(len(rows)), worst]
            for at in np.flatnonzero(largest > above).tolist():
                n4, n6, n2 = (int(n) for n in np.unravel_index(worst[at], shape))
                left = s - n2 - n4 - n6
                least = lows[at, : left + 1, n6, n2 + n5]
                n3 = int(np.flatnonzero(least == least[left])[0])
                i, j = rows[at], moving - rows[at]
                yield (i, j, n5), Violator(largest[at], (left - n3, n2, n3, n4, n5, n6, i, j))

    def _slab(self, v: Array, mix: Callable[[Array, Any, Any], Array]) -> Array:
        """Return T_D^x T_{1-D}^y of each row of v as an array [row, x, y, :]; past the end of one is 0."""
        assert self.tail is not None  # noqa: S101 - narrows the type
        d, not_d = self.tail
        r = v.shape[-1] - 1
        out = np.zeros((len(v), r + 1, r + 1, r + 1), dtype=v.dtype)
        out[:, 0, 0] = v
        for x in range(1, r + 1):
            out[:, x, 0, : r + 1 - x] = mix(out[:, x - 1, 0, : r + 2 - x], d, not_d)
        for y in range(1, r + 1):
            out[:, : r + 1 - y, y, : r + 1 - y] = mix(out[:, : r + 1 - y, y - 1, : r + 2 - y], not_d, d)
        return out
