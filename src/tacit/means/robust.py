"""Two more means of heavy-tailed rows: a smooth influence function, and a median of means of groups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import msgspec
import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.means.additive import AdditiveMean
from tacit.means.base import WORST_CASE, Error, Facts, worst_error
from tacit.means.coordinate_clipped import widened
from tacit.means.message import SMALLEST_RADIUS, Message, Round
from tacit.means.moments import MomentBound, MomentKind
from tacit.means.noise import DiscreteGaussianNoise, GaussianNoise, NoNoise
from tacit.means.violations import clipped_rows, inside_rows
from tacit.numerics import Array, clip_rows, settle
from tacit.privacy import Event, Neighbours, Relation, TrustModel

__all__ = ["MOST_INFLUENCE", "CatoniSmoothedMean", "MedianOfMeans", "smoothed_influence"]

MOST_INFLUENCE = 2 * math.sqrt(2) / 3
"""The largest value of y - y^3/6, at the root of 2."""

_FAR = 1000.0
"""From here on an entry counts as that far: the influence has all but settled, and cubes keep digits."""

_SHARP = 1e-8
"""A spread of the smoothing below which there is none."""


def smoothed_influence(entries: Array, smoothing: float) -> Array:
    """Return E psi(a (1 + b u)) over normal u, where psi(y) = y - y^3/6 up to the root of 2 and is then flat.

    Args:
        entries: a, any shape.
        smoothing: b >= 0.

    Returns:
        The same shape, at most `MOST_INFLUENCE` in size, odd in a.

    Raises:
        ParameterError: `smoothing` is negative or not finite.

    Example:
        >>> smoothed_influence(np.array([0.3, 3.0]), 0.0).round(6).tolist()
        [0.2955, 0.942809]

    Reference:
        Catoni and Giulini (2017), Holland (2019): the estimator behind Wang, Xiao, Devadas and Xu (2020).
    """
    check_non_negative("smoothing", smoothing)
    a = np.clip(np.asarray(entries, dtype=np.float64), -_FAR, _FAR)
    spread = np.abs(a) * min(smoothing, _FAR)
    root, cube = math.sqrt(2), a**3 / 6
    inner = np.clip(a, -root, root)
    plain = inner - inner**3 / 6
    s = np.where(spread < _SHARP, 1.0, spread)
    below, above = (root - a) / s, (root + a) / s
    low, high = special.ndtr(-below), special.ndtr(-above)
    left, right = np.exp(-(below**2) / 2), np.exp(-(above**2) / 2)
    normal = math.sqrt(2 * math.pi)
    # The polynomial on the whole line, less its part outside, plus the flat parts.
    found = a * (1 - s**2 / 2) - cube + MOST_INFLUENCE * (low - high) - (a - cube) * (low + high)
    found += s / normal * (1 - a**2 / 2) * (right - left)
    found += a * s**2 / 2 * (high + low + (above * right + below * left) / normal)
    found += s**3 / (6 * normal) * ((2 + below**2) * left - (2 + above**2) * right)
    return np.clip(np.where(spread < _SHARP, plain, found), -MOST_INFLUENCE, MOST_INFLUENCE)


class _Coordinates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of means that treat coordinates apart; they are for one release, and no plan names them."""

    dim: int
    noise: NoNoise | GaussianNoise | DiscreteGaussianNoise = NoNoise()
    trust: TrustModel = TrustModel.CENTRAL
    neighbours: Neighbours = Neighbours()

    weighs: ClassVar[str] = "rows"

    @property
    def private(self) -> bool:
        """Whether a claim is made."""
        return not isinstance(self.noise, NoNoise)

    @property
    def exact(self) -> bool:
        """Whether the noise is sampled exactly, or there is none."""
        return self.noise.exact

    @property
    def _in_ball(self) -> AdditiveMean:
        """The mean of rows of the ball around the cube."""
        return AdditiveMean(
            dim=self.dim,
            noise=self.noise,
            trust=self.trust,
            neighbours=self.neighbours,
            on_violation="clip",
        )

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round, as `AdditiveMean.event`."""
        return self._in_ball.event(n, trust)


class CatoniSmoothedMean(_Coordinates, frozen=True, kw_only=True):
    """The mean of tau `smoothed_influence`(x_ij / tau), plus Gaussian noise; tau is the radius of the round.

    An entry moves no sum by more than `MOST_INFLUENCE` tau, however large it is, and nothing is clipped: the
    influence bends early and smoothly. By its bound it is no better than clipping at that length; it is
    here because analyses of private regression rest on it.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        smoothing: b >= 0, the relative spread of the noise that the influence is averaged over.
        noise: What is added; Gaussian, of real or whole numbers.
        trust: `central` (the server adds noise) or `local` (every party does).
        neighbours: Relation for the sensitivity of the sum; see `AdditiveMean`.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> mean = CatoniSmoothedMean(dim=1, smoothing=0.5)
        >>> rows = np.array([[0.1], [0.1], [1e200]])
        >>> mean.estimate(rows, Round(n=3, radius=1.0), rng=np.random.default_rng(0)).round(4).tolist()
        [0.3664]

    Reference:
        See `smoothed_influence`; Lowy (2023), Appendix C.3.
    """

    smoothing: float = 0.0

    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_non_negative("smoothing", self.smoothing)
        self._in_ball  # noqa: B018 - which checks the other fields

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Sum what the rows of one party, shape (k, dim), count as, and write one message.

        A row with a NaN or an infinity counts as zero.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        return self._in_ball.encode(self._counted(rows, round), self._reach(round), party=party, rng=rng)

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Add the messages, and the noise under central trust, and divide by the planned n; shape (dim,)."""
        return self._in_ball.decode(messages, self._reach(round), rng=rng)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once on all rows, shape (n, dim); returns shape (dim,)."""
        return self._in_ball.estimate(self._counted(X, round), self._reach(round), rng=rng)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length in bits, header included, of a message made for that many rows."""
        return self._in_ball.bits_per_party(rows)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of what the rows count as; `facts.radius` is tau."""
        reach = facts.radius * MOST_INFLUENCE * math.sqrt(self.dim)
        return self._in_ball.error(n, replace(facts, radius=reach))

    def counted_moment(self, moment: MomentBound) -> MomentBound:
        """Return the moment for which a clip of entries at `MOST_INFLUENCE` tau has these bounds.

        |psi(y)| <= min(|y|, A) and |psi(y) - y| <= c_k |y|^k / A^(k - 1) for 1 < k <= 3, with A =
        `MOST_INFLUENCE` and the constant of `clip_bias`; the smoothing multiplies the k-th root of the moment
        by at most (1 + 6 b^2 + 3 b^4)^(1/4). Of a higher moment, the third is used.

        Args:
            moment: Of any kind; that of entries is used.
        """
        entry = moment.for_ball("linf", dim=self.dim)
        spread = (1 + 6 * self.smoothing**2 + 3 * self.smoothing**4) ** 0.25
        return MomentBound(min(entry.order, 3.0), entry.value * spread, MomentKind.ENTRY)

    def _reach(self, round: Round) -> Round:
        return widened(round, self.dim, MOST_INFLUENCE)

    def _counted(self, rows: Array, round: Round) -> Array:
        """Return what the rows count as, shape (k, dim), float64."""
        read = inside_rows(rows, round.radius, ball="l2", dim=self.dim, refuse=False).astype(np.float64)
        if round.radius < SMALLEST_RADIUS:
            return np.zeros_like(read)
        finite = np.where(np.isfinite(read).all(axis=1, keepdims=True), read, 0.0)
        with np.errstate(over="ignore"):
            entries = finite / round.radius
        return round.radius * smoothed_influence(entries, self.smoothing)


class MedianOfMeans(_Coordinates, frozen=True, kw_only=True):
    """The coordinate-wise median of private means of groups, whose rows are clipped to the cube of the round.

    Rows are dealt to groups at random, by the party that holds them. Every group has the whole budget, since
    a row is in one of them; its noise is as many times larger as there are groups, and the median makes about
    the root of that good. It is for bounds that fail with a small probability zeta only: then
    `groups_for(zeta)` groups; else one group, which is a `CoordinateClippedMean`, errs less.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        groups: Number m of groups, >= 1, at most the rows of a round.
        noise: What is added to the sum of a group; Gaussian, of real or whole numbers.
        trust: `central` (the server adds noise) or `local` (every party does).
        neighbours: Replace-one: a row that is missing would move others to other groups.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> MedianOfMeans(dim=5, groups=1).groups_for(0.01)
        56

    Reference:
        Lowy (2023), Appendix C.3; medians of means: Nemirovsky and Yudin (1983).
    """

    groups: int = 1

    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_count("groups", self.groups)
        if type(self.neighbours) is not Neighbours or self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "neighbours must be replace-one: rows are dealt to groups, and one that is missing would "
                f"move others, got {self.neighbours!r}."
            )
        self._in_ball  # noqa: B018 - which checks the other fields

    def groups_for(self, failure: float) -> int:
        """Return how many groups a bound needs that fails with that probability: ceil(8 ln(2 d / zeta)).

        Raises:
            ParameterError: `failure` is not in (0, 1).
        """
        check_probability("failure", failure, low_open=True, high_open=True)
        return math.ceil(8 * math.log(2 * self.dim / failure))

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Deal the rows of one party, shape (k, dim), to groups, and write a message for each group.

        A row with a NaN or an infinity counts as zero. Groups differ by one row at most, and which have one
        more is drawn too.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real; or more groups than planned
                rows.
        """
        self._check_groups(round.n)
        clipped = clipped_rows(rows, round.radius, ball="cube", dim=self.dim, refuse=False).astype(np.float64)
        wide = widened(round, self.dim)
        # The ball that is priced holds the cube, except at radii near the largest one.
        clipped = clip_rows(clipped, wide.radius)
        m, k = self.groups, len(clipped)
        dealt = (rng.permutation(k) + rng.integers(m)) % m
        messages: list[Message] = []
        for label in range(m):
            summed = clipped[dealt == label].sum(axis=0, dtype=np.float64)
            (message,) = self._in_ball.encode_sum(summed, rows=-(-k // m), round=wide, party=party, rng=rng)
            messages.append(replace(message, label=label))
        return messages

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Estimate the mean of every group, each of n / m planned rows, and take medians; shape (dim,).

        Raises:
            ParameterError: A message of another form, a group without messages, or with other numbers of them
                than the others; under central trust no `rng`.
        """
        self._check_groups(round.n)
        by_group: list[list[Message]] = [[] for _ in range(self.groups)]
        for message in messages:
            if not 0 <= message.label < self.groups:
                raise ParameterError(f"labels must be from 0 to {self.groups - 1}, got {message.label!r}.")
            by_group[message.label].append(replace(message, label=0))
        if len({len(group) for group in by_group}) != 1:
            raise ParameterError("every party must send one message for every group.")
        wide = widened(round, self.dim)
        means = [self._in_ball.decode(group, wide, rng=rng) for group in by_group]
        return np.asarray(np.median(means, axis=0) * self.groups)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round, all rows of shape (n, dim) dealt evenly to the parties; returns (dim,)."""
        messages = [
            message
            for party, part in enumerate(np.array_split(X, round.parties))
            for message in self.encode(part, round, party=party, rng=rng)
        ]
        return self.decode(messages, round, rng=rng)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, headers included."""
        check_count("rows", rows, low=0)
        return self.groups * self._in_ball.bits_per_party(-(-rows // self.groups))

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Bound the error against the mean of the clipped rows; `facts.radius` is half the side of the cube.

        At least half of the groups are as far from the mean as the median is, on its side: its squared
        distance is at most about twice the mean of theirs, of noise and of dealing. The bound is on the sum
        of the variance and the squared bias, and stands for both.
        """
        self._check_groups(n)
        return worst_error(lambda known: self._error(n, known), n, facts)

    def _error(self, n: int, facts: Facts) -> Error:
        m, parties = self.groups, facts.parties or 1
        ball = self._in_ball.error(n, replace(facts, radius=facts.radius * math.sqrt(self.dim)))
        # A party's share of a group has a variance of at most its rows and a quarter for their number.
        dealt = 0.0 if m == 1 else self.dim * (facts.radius * m / n) ** 2 * (n / m + 1.25 * parties)
        bound = m / math.ceil(m / 2) * (m * m * (ball.variance + ball.bias**2) + dealt)
        if m == 1:
            return ball
        return Error(variance=bound, bias=math.sqrt(bound), exact=False)

    def _check_groups(self, n: int) -> None:
        if self.groups > n:
            raise ParameterError(f"groups must be at most the {n} rows of the round, got {self.groups}.")
