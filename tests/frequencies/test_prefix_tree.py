"""Heavy hitters of domains too large to count: bounds, prices, and what is found."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BudgetError, ParameterError
from tacit.frequencies import (
    KaryResponse,
    Layout,
    NoisyHistogram,
    PrefixTree,
    find_heavy_hitters,
    hashed_items,
)
from tacit.frequencies.prefix_tree import _continued, _places
from tacit.privacy import Compose, Neighbours, Parallel, PrivacyBudget, PureDP, Relation, Shuffled, TrustModel
from tacit.randomness import secure, simulated
from tests.statistics import FALSE_ALARM

LOCAL, SHUFFLE, CENTRAL = TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL


def tree_of(
    trust: TrustModel = LOCAL, *, n: int = 6000, epsilon: float = 3.0, bits: int = 16, **fields: Any
) -> PrefixTree:
    delta = 1e-6 if trust is SHUFFLE else 0.0
    fields.setdefault("layout", Layout((8, 12, bits), 16, dealt=trust is not CENTRAL))
    return PrefixTree.calibrated(bits=bits, n=n, budget=PrivacyBudget(epsilon, delta), trust=trust, **fields)


def test_a_transcript_is_private_by_enumeration() -> None:
    # Two bits, a level for each; the candidates of the second depend on the message of the first.
    tree = tree_of(n=2, bits=2, epsilon=1.0, mechanism="krr", layout=Layout((1, 2), 1, dealt=True))
    first, second = (np.asarray(level.oracle.channel_matrix()) for level in tree.levels)  # type: ignore[union-attr]

    def law(rows: tuple[int, int], answering: list[tuple[int, ...]]) -> dict[tuple[int, int], float]:
        """Return the law of both messages, rows `answering[level]` answering in each level."""
        items, found = np.array(rows, dtype=np.uint64), {}
        above = _places(items >> np.uint64(1), np.zeros(1, dtype=np.uint64), 1)
        for m1 in range(3):
            # "other" is not followed: then the candidates are those of prefix 0.
            prefixes = _continued(np.zeros(1, dtype=np.uint64), np.array([m1 % 2]), 1)
            below = _places(items, prefixes, 1)
            for m2 in range(3):
                one = math.prod(first[above[row], m1] for row in answering[0])
                two = math.prod(second[below[row], m2] for row in answering[1])
                found[m1, m2] = one * two
        return found

    def worst(answering: list[tuple[int, ...]]) -> float:
        losses = [0.0]
        for x, y, other in itertools.product(range(4), repeat=3):
            for place in (0, 1):
                rows = [other, other]
                rows[place] = x
                near = list(rows)
                near[place] = y
                p, q = law(tuple(rows), answering), law(tuple(near), answering)  # type: ignore[arg-type]
                losses += [abs(math.log(p[key] / q[key])) for key in p]
        return max(losses)

    assert tree.price.epsilon == pytest.approx(worst([(0,), (1,)]), rel=1e-12)
    # Negative control: a client who answers in both levels, at the price of one.
    assert worst([(0,), (0,)]) > 1.9


def test_prices_are_those_of_what_is_sent() -> None:
    local = tree_of()
    assert isinstance(local.price.event, Parallel)
    assert {type(part) for part in local.price.event.parts} == {PureDP}
    assert local.price.epsilon == pytest.approx(3.0)
    assert local.price_alone is None
    assert tree_of(epsilon=1 / 3).price.epsilon == 0.333334  # as it is stated: rounded up
    mixed = tree_of(SHUFFLE, epsilon=1.0)
    assert isinstance(mixed.price.event, Parallel)
    assert all(
        isinstance(part, Shuffled) and part.parties == level.n == 2000
        for part, level in zip(mixed.price.event.parts, mixed.levels, strict=True)
    )
    assert mixed.price.epsilon <= 1 < mixed.price_alone.epsilon  # type: ignore[union-attr]
    split = tree_of(layout=Layout((8, 12, 16), 16, dealt=False))
    assert isinstance(split.price.event, Compose)
    assert split.price.epsilon == pytest.approx(3.0)
    assert [level.n for level in split.levels] == [6000] * 3
    assert "dealt to disjoint parts" in str(local.price)
    trusted = tree_of(CENTRAL, epsilon=1.0)
    assert isinstance(trusted.price.event, Compose)
    assert 0.999 < trusted.price.epsilon <= 1
    assert all(isinstance(level.oracle, NoisyHistogram) for level in trusted.levels)


def test_dealing_clients_to_levels_is_chosen_where_it_finds_more() -> None:
    def least(dealt: bool, epsilon: float) -> float:
        layout = Layout((10, 16), 64, dealt=dealt)
        return tree_of(n=200_000, epsilon=epsilon, layout=layout, mechanism="krr").detectable

    # At low levels variance falls with the square of the level; at high ones, all rows are worth more.
    assert least(True, 3.0) < 0.5 * least(False, 3.0)
    assert least(False, 16.0) < least(True, 16.0)
    for epsilon in (1.0, 20.0):
        chosen = tree_of(n=200_000, epsilon=epsilon, layout=None)
        for other in (Layout((10, 16), 64, dealt=True), Layout((12, 16), 64, dealt=False)):
            assert chosen.detectable <= 1.1 * tree_of(n=200_000, epsilon=epsilon, layout=other).detectable
    assert tree_of(n=200_000, bits=32, epsilon=1.0, layout=None).layout.dealt


def hard_rows(tree: PrefixTree, frequency: float, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return rows of one value of a frequency, beside as many rivals as prefixes are followed."""
    n, own = tree.n, math.ceil(frequency * tree.n)
    rivals = np.arange(1, tree.layout.kept + 1, dtype=np.uint64) * np.uint64(251) % np.uint64(256)
    others = (rivals << np.uint64(tree.bits - 8)) | rng.integers(1, 200, tree.layout.kept).astype(np.uint64)
    return np.concatenate([np.full(own, 5), others[np.arange(n - own) % others.size]]).astype(np.uint64)


@pytest.mark.parametrize(
    ("trust", "dealt"), [(LOCAL, True), (LOCAL, False), (SHUFFLE, True), (CENTRAL, False)]
)
def test_frequent_values_are_found_and_rare_ones_are_not(trust: TrustModel, dealt: bool) -> None:
    """Runs of the stated rates: each test of a rate raises a false alarm below 1e-6."""
    rng, runs = np.random.default_rng(5), 80
    layout = Layout((8, 12, 16), 16, dealt=dealt)
    tree = tree_of(
        trust,
        n=20_000,
        miss=0.2,
        false_alarm=0.1,
        threshold=0.02,
        mechanism="bh" if trust is LOCAL else None,
        layout=layout,
    )
    assert 0.02 < tree.detectable < 0.5
    rows = hard_rows(tree, tree.detectable, rng)
    counts = dict(zip(*np.unique(rows, return_counts=True), strict=True))
    missed = wrong = uncovered = 0
    for _ in range(runs):
        heavy = tree.answer(rows, rng=rng)
        truth = np.array([counts.get(value, 0) / tree.n for value in heavy.values])
        missed += 5 not in heavy.values
        wrong += bool(np.any(truth <= 0.02))
        uncovered += bool(np.any((truth < heavy.lower) | (truth > heavy.upper)))
        assert np.all(heavy.lower > 0.02)
        assert np.all(np.diff(heavy.estimates) <= 0)
    assert stats.binomtest(missed, runs, 0.2, alternative="greater").pvalue > FALSE_ALARM
    assert stats.binomtest(wrong, runs, 0.1, alternative="greater").pvalue > FALSE_ALARM
    assert stats.binomtest(uncovered, runs, 0.2, alternative="greater").pvalue > FALSE_ALARM
    # Negative control: the bound says something; far below it the value is mostly missed.
    rare = hard_rows(tree, 0.02 + (tree.detectable - 0.02) / 5, rng)
    found = sum(5 in tree.answer(rare, rng=rng).values for _ in range(20))
    assert found < 15


def test_bounds_of_tails_hold_for_dealt_rows() -> None:
    # A score is a hypergeometric number of holders, randomised: its exact law is below both bounds.
    level = tree_of(n=300, bits=8, mechanism="krr", layout=Layout((4, 8), 4, dealt=True)).levels[0]
    support = level.oracle.support  # type: ignore[union-attr]
    assert support is not None
    for held in (0, 3, 30, 120):
        holders = np.arange(held + 1)
        chance = stats.hypergeom(300, held, level.n).pmf(holders)
        law = np.zeros(level.n + 1)
        for h, p in zip(holders, chance, strict=True):
            if p > 0:
                own = stats.binom(h, support.held).pmf(np.arange(h + 1))
                rest = stats.binom(level.n - h, support.other).pmf(np.arange(level.n - h + 1))
                law += p * np.convolve(own, rest)
        for score in range(0, level.n + 1, 7):
            assert law[score:].sum() <= level.above(score, held / 300) + 1e-12
            assert law[: score + 1].sum() <= level.below(score, held / 300) + 1e-12


def test_all_bits_of_64_count() -> None:
    layout = Layout((16, 28, 40, 52, 64), 16, dealt=True)
    tree = PrefixTree.calibrated(bits=64, n=2000, budget=PrivacyBudget(20.0), mechanism="krr", layout=layout)
    items = np.arange(2000, dtype=np.uint64)
    items[:1200] = np.uint64(2**64 - 3)
    items[1200:1900] = np.uint64(2**63)
    found = find_heavy_hitters(items, tree, rng=simulated(1, "test"))
    assert found.heavy.values.tolist() == [2**64 - 3, 2**63]
    assert found.guarantee.simulated
    assert not find_heavy_hitters(items, tree, rng=secure()).guarantee.simulated
    # Rows outside of the domain are nobody's.
    away = tree.answer(items, outside=items == np.uint64(2**63), rng=simulated(2, "test"))
    assert away.values.tolist() == [2**64 - 3]


def test_a_message_about_many_values_is_no_less_private_than_stated() -> None:
    """An attack on one client's message at 2^16 candidates; false alarm and control below 1e-6."""
    runs, rng = 20_000, np.random.default_rng(7)
    tree = tree_of(bits=32, n=100, epsilon=1.0, mechanism="krr", layout=Layout((16, 32), 1, dealt=True))
    k = tree.levels[0].oracle.k

    def bound(epsilon: float) -> float:
        """Return the least level that a thousand messages of two values are compatible with."""
        oracle = KaryResponse(k=k, epsilon=epsilon)
        own = int(np.sum(oracle.encode(np.full(runs, 7), rng) == 7))
        other = int(np.sum(oracle.encode(np.full(runs, 8), rng) == 7))
        low = stats.beta.ppf(FALSE_ALARM, max(own, 1), runs - own + 1) if own else 0.0
        return math.log(max(low, 1e-12) / stats.beta.ppf(1 - FALSE_ALARM, other + 1, runs - other))

    assert bound(1.0) <= tree.price.epsilon
    # Negative control: half the noise, that is twice the level, where an attack can see it.
    assert bound(12.0) > 2 * tree.price.epsilon


def test_texts_become_numbers_that_all_machines_share() -> None:
    found = hashed_items(["a.example", "b.example", "a.example", ""], 32)
    assert found.tolist() == [2591919208, 1975773619, 2591919208, found[3]]
    whole = hashed_items(["a.example"], 64)
    assert int(whole[0]) >> 32 == found[0]
    assert hashed_items(["a.example"], 32, seed=1)[0] != found[0]
    many = hashed_items(map(str, range(20_000)), 8)
    assert stats.chisquare(np.bincount(many.astype(np.int64), minlength=256)).pvalue > FALSE_ALARM
    with pytest.raises(ParameterError, match="bits must be a whole number from 1 to 64"):
        hashed_items(["a"], 65)
    with pytest.raises(ParameterError, match="seed must be"):
        hashed_items(["a"], 8, seed=-1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"bits": 65}, "bits must be a whole number from 1 to 64"),
        ({"bits": 0}, "bits must be a whole number from 1 to 64"),
        ({"threshold": 1.0}, "threshold must be in"),
        ({"threshold": math.nan}, "threshold must be a finite number"),
        ({"false_alarm": 0.5}, "2 false_alarm must be in"),
        ({"miss": 0.0}, "miss must be in"),
        ({"mechanism": "hr"}, "mechanism must be one of bh, krr"),
        ({"trust": TrustModel.AGGREGATE}, "trust must be local, shuffle or central"),
        ({"neighbours": Neighbours(Relation.ADD_REMOVE)}, "neighbours must be replace-one"),
        ({"trust": CENTRAL, "mechanism": "krr"}, "under central trust none does"),
        ({"trust": CENTRAL, "layout": Layout((8, 16), 4, dealt=True)}, "dealt must be False"),
        ({"layout": Layout((8, 12), 4, dealt=True)}, "prefixes must grow up to 16 bits"),
        ({"layout": Layout((1, 16), 4, dealt=True)}, "kept must be a whole number from 1 to 2"),
        ({"n": 1}, "n must be a whole number >= 2"),
        ({"n": 2, "layout": Layout((8, 12, 16), 4, dealt=True)}, "one client a level"),
    ],
)
def test_bad_questions_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        tree_of(**fields)


def test_bad_rows_are_refused_before_anything_is_drawn() -> None:
    tree, rng = tree_of(n=10, layout=Layout((8, 16), 4, dealt=True)), simulated(1, "test")
    before = rng.bit_generator.state
    good = np.zeros(10, dtype=np.int64)
    for items, said in (
        (good[1:], r"items must have shape \(10,\)"),
        (good - 1, "items must be from 0 to 2"),
        (good + 2**16, "at least one lies outside"),
        (good + 0.5, "items must be whole numbers"),
    ):
        with pytest.raises(ParameterError, match=said):
            tree.answer(items, rng=rng)
    with pytest.raises(ParameterError, match="outside must be booleans"):
        tree.answer(good, outside=good, rng=rng)
    assert rng.bit_generator.state == before
    assert PrefixTree.calibrated(bits=32, n=50, budget=PrivacyBudget(0.1)).detectable == math.inf
    with pytest.raises(BudgetError):
        PrefixTree.calibrated(bits=8, n=50, budget=PrivacyBudget(1e-12), trust=CENTRAL)
