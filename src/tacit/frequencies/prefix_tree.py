"""Heavy hitters of a domain too large to count: prefixes are followed down a tree, level by level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import (
    BudgetError,
    ParameterError,
    check_choice,
    check_count,
    check_finite,
    check_probability,
)
from tacit.frequencies.bands import Band
from tacit.frequencies.central import NoisyHistogram
from tacit.frequencies.heavy import HeavyHitters
from tacit.frequencies.prefix_layout import Layout, best_layout
from tacit.frequencies.query import check_asked, observer_of_frequencies
from tacit.frequencies.tree_levels import TREE_MECHANISMS, TreeLevel, event_of_levels, levels_of
from tacit.numerics import Array, IntArray
from tacit.privacy import (
    Guarantee,
    Neighbours,
    PrivacyBudget,
    TrustModel,
    guarantee,
)
from tacit.privacy.run_clauses import clauses_of_ids
from tacit.randomness import is_secure

__all__ = ["Found", "PrefixTree", "find_heavy_hitters"]

_RECORDS = Neighbours()
_COVERS = "the frequencies of all rows"


@dataclass(frozen=True, kw_only=True)
class PrefixTree:
    """A search for the frequent values of a domain of up to 2^64, calibrated to a budget; all is public.

    The clients of a level say which candidate is a prefix of their value. The `kept` most frequent prefixes
    are followed: all their continuations are the candidates of the next level, whose clients are told them.
    In the last level candidates are values, and those whose interval lies above the threshold are found.

    Where clients are dealt to levels (`layout.dealt`), each answers once, with the whole budget; else each
    answers in all levels, with parts of it. The one that finds the less frequent values is taken.

    Attributes:
        bits: The domain is 0 to 2**bits - 1.
        n: Number of records, or of persons where they are the unit, which counts as public.
        trust: `local`, `shuffle` or `central`.
        layout: Levels, how many prefixes are followed, and who answers.
        levels: The levels, each with its mechanism.
        threshold: Frequency that found values are above.
        false_alarm: Probability that any value at or below the threshold is found, at most.
        miss: Probability that a value as frequent as `detectable` is not found, at most.
        price: What the answer costs; not yet marked as simulated.
        price_alone: Under shuffle trust, what one client's messages show before they are shuffled; else None.

    Guarantee:
        That of its event: `Parallel` over levels where clients are dealt to them, else `Compose`. Candidates
        depend on answers of earlier levels, which both allow for.

    Example:
        >>> tree = PrefixTree.calibrated(bits=32, n=1_000_000, budget=PrivacyBudget(1.0))
        >>> tree.layout.dealt, len(tree.levels), round(tree.detectable, 3)
        (True, 2, 0.027)

    Reference:
        Bassily, Nissim, Stemmer and Thakurta (2017), NeurIPS (TreeHist); Wang, Li and Jha (2021), IEEE TDSC
        (PEM), for prefixes with clients dealt to levels. The bounds are derived in
        docs/theory/frequencies.md.
    """

    bits: int
    n: int
    trust: TrustModel
    layout: Layout
    levels: tuple[TreeLevel, ...]
    threshold: float
    false_alarm: float
    miss: float
    price: Guarantee
    price_alone: Guarantee | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        bits: int,
        n: int,
        budget: PrivacyBudget,
        trust: TrustModel = TrustModel.LOCAL,
        neighbours: Neighbours = _RECORDS,
        threshold: float = 0.0,
        false_alarm: float = 0.025,
        miss: float = 0.05,
        mechanism: str | None = None,
        layout: Layout | None = None,
    ) -> PrefixTree:
        """Find the tree that finds the least frequent values for a budget.

        Args:
            bits: The domain is 0 to 2**bits - 1; from 1 to 64.
            n: Number of records, or of persons where `neighbours` names them as the unit.
            budget: What the answer may cost.
            trust: As in `FrequenciesQuery.calibrated`.
            neighbours: A replace-one relation.
            threshold: Frequency in [0, 1) that found values are above; by default, held at all.
            false_alarm: Probability that any value at or below the threshold is found, in (0, 1/2).
            miss: Probability that a value as frequent as `detectable` is not found, in (0, 1).
            mechanism: One of `TREE_MECHANISMS`; None: the best of each level. Not under central trust.
            layout: Levels; None: the best.

        Raises:
            ParameterError: A value is out of range, another relation or trust model, or a delta of 0 behind a
                shuffler.
            BudgetError: The budget cannot be met.
        """
        bits, n = check_count("bits", bits, high=64), check_count("n", n, low=2)
        threshold = check_probability("threshold", check_finite("threshold", threshold), high_open=True)
        false_alarm = check_probability("false_alarm", false_alarm, low_open=True, high_open=True)
        check_probability("2 false_alarm", 2 * false_alarm, high_open=True)
        miss = check_probability("miss", miss, low_open=True, high_open=True)
        check_asked(budget, trust, neighbours)
        if mechanism is not None:
            check_choice("mechanism", mechanism, TREE_MECHANISMS)
            if trust is TrustModel.CENTRAL:
                raise ParameterError("mechanism is for clients who randomise; under central trust none does.")
        if layout is None:
            layout = best_layout(
                bits,
                n,
                budget,
                trust,
                neighbours,
                threshold=threshold,
                false_alarm=false_alarm,
                miss=miss,
                mechanism=mechanism,
            )
        levels = levels_of(bits, n, budget, trust, neighbours, mechanism, layout)

        def priced(view: TrustModel, delta: float) -> Guarantee:
            return guarantee(
                event_of_levels(levels, view, neighbours, dealt=layout.dealt),
                delta,
                observer=observer_of_frequencies(trust, neighbours.unit, alone=view is not trust),
                assumptions=clauses_of_ids(neighbours),
            )

        shuffled = trust is TrustModel.SHUFFLE
        price = priced(trust, budget.delta)
        if not budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"the budget epsilon = {budget.epsilon!r} cannot be met by {len(levels)} levels."
            )
        return cls(
            bits=bits,
            n=n,
            trust=trust,
            layout=layout,
            levels=levels,
            threshold=threshold,
            false_alarm=false_alarm,
            miss=miss,
            price=price,
            price_alone=priced(TrustModel.LOCAL, 0.0) if shuffled else None,
        )

    @property
    def message_bits(self) -> int:
        """Bits that a client sends at most: one message where clients are dealt to levels, else all."""
        own = [
            self.bits if isinstance(level.oracle, NoisyHistogram) else level.oracle.message_bits
            for level in self.levels
        ]
        return sum(own) if self.trust is TrustModel.LOCAL and not self.layout.dealt else max(own)

    @property
    def random_bits(self) -> float:
        """Fair bits that a client needs on average for its messages, at least."""
        own = [
            0.0 if isinstance(level.oracle, NoisyHistogram) else level.oracle.entropy_bits
            for level in self.levels
        ]
        return max(own) if self.layout.dealt else math.fsum(own)

    @cached_property
    def detectable(self) -> float:
        """Frequency at and above which a value is found with probability 1 - `miss` at least; maybe infinite.

        A bound for all data, with exact binomial tails: fewer than `kept` other prefixes are more frequent
        than 1 / `kept`, so a value is lost only where its own prefix does badly or a rarer one does well.
        """
        inner, last = self.levels[:-1], self.levels[-1]
        lucky = self.miss / 4
        seen = [self._least_safe(level, lucky / len(inner)) for level in inner]
        least = _first(lambda score: self._lower(last, score) > self.threshold, self._low(last), last.n)

        def missed(frequency: float) -> float:
            own = [level.below(score - 1, frequency) for level, score in zip(inner, seen, strict=True)]
            return (lucky if inner else 0.0) + math.fsum(own) + last.below(least - 1, frequency)

        if least > last.n or missed(1.0) > self.miss:
            return math.inf
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if missed(middle) <= self.miss else (middle, high)
        return high

    def _least_safe(self, level: TreeLevel, share: float) -> int:
        """Return the least score that, but for a probability `share`, no prefix of 1 / kept or less has."""
        # Which rows answer, and so which prefixes are candidates, is drawn: all prefixes of rows may be.
        others = level.oracle.k + (min(self.n, 2**level.prefix) if self.layout.dealt else 0)
        rare = 1 / self.layout.kept
        return _first(lambda score: others * level.above(score, rare) <= share, self._low(level), level.n + 1)

    @staticmethod
    def _low(level: TreeLevel) -> int:
        """Return a score that is below all that matter."""
        return -level.n if isinstance(level.oracle, NoisyHistogram) else 0

    def _lower(self, level: TreeLevel, score: int) -> float:
        return float(self.band(level, np.array([score])).lower[0])

    def band(self, level: TreeLevel, scores: IntArray) -> Band:
        """Return intervals of the frequencies of all rows, of values of the last level with these scores."""
        confidence = 1 - 2 * self.false_alarm
        if not self.layout.dealt:
            return level.band(scores, confidence)
        half = 1 - self.false_alarm
        # At most n values have rows.
        return level.band(scores, half).of_all(level.n, self.n, half)

    def answer(
        self, items: npt.ArrayLike, *, outside: npt.ArrayLike | None = None, rng: np.random.Generator
    ) -> HeavyHitters:
        """Answer once; every call is a release at the full price.

        Args:
            items: Shape (n,), whole numbers from 0 to 2**bits - 1.
            outside: Shape (n,), booleans: rows that hold none of the values. None: no row.
            rng: Source of all noise, and of who answers in which level.

        Returns:
            The values that are found, uint64, the most frequent first.

        Raises:
            ParameterError: An argument is out of range.
        """
        held = _items(items, self.bits)
        if held.shape != (self.n,):
            raise ParameterError(f"items must have shape ({self.n},), got {held.shape}.")
        away = np.zeros(self.n, dtype=bool) if outside is None else np.asarray(outside)
        if away.shape != (self.n,) or away.dtype != np.bool_:
            raise ParameterError(
                f"outside must be booleans of shape ({self.n},), got {away.dtype} of shape {away.shape}."
            )
        order = rng.permutation(self.n) if self.layout.dealt else np.arange(self.n)
        ends = np.cumsum(self.layout.rows(self.n)) if self.layout.dealt else [self.n] * len(self.levels)
        starts = [0, *ends[:-1]] if self.layout.dealt else [0] * len(self.levels)
        prefixes = np.zeros(1, dtype=np.uint64)
        for level, start, end in zip(self.levels, starts, ends, strict=True):
            rows = order[start:end]
            places = _places(held[rows] >> np.uint64(self.bits - level.prefix), prefixes, level.step)
            places[away[rows]] = prefixes.size << level.step
            scores, estimates = (found[:-1] for found in level.estimate(places, rng))  # "other" is the last
            if level.prefix == self.bits:
                return self._found(prefixes, scores, estimates)
            kept = np.sort(np.argpartition(-scores, self.layout.kept - 1)[: self.layout.kept])
            prefixes = _continued(prefixes, kept, level.step)
        raise AssertionError  # the last level has all bits

    def _found(self, prefixes: npt.NDArray[np.uint64], scores: IntArray, estimates: Array) -> HeavyHitters:
        """Return the continuations of the last prefixes that are above the threshold."""
        band = self.band(self.levels[-1], scores)
        heavy = np.flatnonzero(band.lower > self.threshold)
        heavy = heavy[np.argsort(-estimates[heavy], kind="stable")]
        return HeavyHitters(
            values=_continued(prefixes, heavy, self.levels[-1].step),
            estimates=estimates[heavy],
            lower=band.lower[heavy],
            upper=band.upper[heavy],
            threshold=self.threshold,
            false_alarm=self.false_alarm,
            covers=_COVERS,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Frequent values of a large domain, privately found.

    Attributes:
        heavy: The values, with intervals of their frequencies among all rows.
        tree: What was asked.
        guarantee: What the answer reveals at most.
        guarantee_alone: Under shuffle trust, what one client's messages do before they are shuffled.
    """

    heavy: HeavyHitters
    tree: PrefixTree
    guarantee: Guarantee
    guarantee_alone: Guarantee | None = None


def find_heavy_hitters(
    items: npt.ArrayLike,
    tree: PrefixTree,
    *,
    outside: npt.ArrayLike | None = None,
    rng: np.random.Generator,
) -> Found:
    """Find the values of a large domain that are held more often than a threshold.

    Args:
        items: Shape (n,), whole numbers from 0 to 2**bits - 1; of texts, `hashed_items`.
        tree: The calibrated search.
        outside: Shape (n,), booleans: rows that hold none of the values. None: no row.
        rng: Source of the noise; a seeded one marks the guarantee as simulated.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> from tacit.randomness import simulated
        >>> tree = PrefixTree.calibrated(bits=32, n=100_000, budget=PrivacyBudget(2.0))
        >>> items = np.where(np.arange(100_000) % 4 == 0, 123_456_789, np.arange(100_000))
        >>> find_heavy_hitters(items, tree, rng=simulated(1, "example")).heavy.values.tolist()
        [123456789]
    """
    heavy = tree.answer(items, outside=outside, rng=rng)
    simulated, alone = not is_secure(rng), tree.price_alone
    return Found(
        heavy=heavy,
        tree=tree,
        guarantee=msgspec.structs.replace(tree.price, simulated=simulated),
        guarantee_alone=alone and msgspec.structs.replace(alone, simulated=simulated),
    )


def _items(items: npt.ArrayLike, bits: int) -> npt.NDArray[np.uint64]:
    """Read whole numbers of a domain."""
    array = np.asarray(items)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError(f"items must be whole numbers of shape (n,), got {array.dtype}, {array.shape}.")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < 2**bits:
        raise ParameterError(f"items must be from 0 to 2**{bits} - 1; at least one lies outside.")
    return array.astype(np.uint64, copy=False)


def _places(prefixes: npt.NDArray[np.uint64], parents: npt.NDArray[np.uint64], step: int) -> IntArray:
    """Return the place of each prefix among the continuations of sorted parents; the last is "other"."""
    above = prefixes >> np.uint64(step) if step < 64 else np.zeros_like(prefixes)
    parent = np.minimum(np.searchsorted(parents, above), parents.size - 1)
    low = (prefixes & np.uint64(2**step - 1)).astype(np.int64)
    inside = parents[parent] == above
    return np.where(inside, (parent << step) + low, parents.size << step).astype(np.int64)


def _continued(parents: npt.NDArray[np.uint64], places: IntArray, step: int) -> npt.NDArray[np.uint64]:
    """Return the prefixes at places among the continuations of parents."""
    low = (places & (2**step - 1)).astype(np.uint64)
    found: npt.NDArray[np.uint64] = (parents[places >> step] << np.uint64(step)) | low
    return found


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first whole number of low to high of which something holds that stays; else high + 1."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
