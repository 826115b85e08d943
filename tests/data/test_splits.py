"""Splits: every record at most once, sizes as promised, and the shapes of Lowy (2023), Appendix B.1.10."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import (
    Indices,
    split_by_column,
    split_by_label,
    split_by_pairs,
    split_dirichlet,
    split_iid,
    split_mixture,
    split_noniid_shards,
    split_sorted_target,
    train_test_split_groups,
    train_test_split_indices,
    train_test_split_silos,
)
from tacit.errors import ParameterError

LABELS = st.lists(st.integers(0, 4), min_size=12, max_size=80).map(np.array)
SEEDS = st.integers(0, 2**32 - 1)


def check_partition(silos: list[Indices], n: int) -> None:
    """Every record in exactly one silo, each silo sorted and int64."""
    assert sorted(np.concatenate(silos).tolist()) == list(range(n))
    assert all(silo.dtype == np.int64 and np.all(np.diff(silo) > 0) for silo in silos)


@given(labels=LABELS, seed=SEEDS, n_silos=st.integers(1, 4), alpha=st.floats(0.05, 50), p=st.floats(0, 1))
def test_every_record_is_in_exactly_one_silo(
    labels: np.ndarray, seed: int, n_silos: int, alpha: float, p: float
) -> None:
    rng, n = np.random.default_rng(seed), labels.size
    check_partition(split_by_column(labels)[1], n)
    check_partition(split_by_label(labels), n)
    check_partition(split_iid(n, n_silos, rng), n)
    check_partition(split_sorted_target(labels, n_silos), n)
    check_partition(split_dirichlet(labels, n_silos, alpha=alpha, rng=rng, min_size=0), n)
    mixed = split_mixture(split_by_label(labels), p, rng)
    check_partition(mixed, n)
    assert list(map(len, mixed)) == list(map(len, split_by_label(labels)))
    check_partition(list(train_test_split_indices(n, 0.3, rng)), n)
    train, test = train_test_split_silos(split_iid(n, n_silos, rng), 0.4, rng)
    check_partition(train + test, n)


def test_columns_become_named_silos() -> None:
    names, silos = split_by_column(["b", "a", "b", "c"])
    assert names == ["a", "b", "c"]
    assert [silo.tolist() for silo in silos] == [[1], [0, 2], [3]]


def test_iid_sizes_differ_by_one_and_the_deal_depends_on_the_stream() -> None:
    silos = split_iid(10, 3, np.random.default_rng(1))
    assert sorted(map(len, silos)) == [3, 3, 4]
    again, other = (split_iid(10, 3, np.random.default_rng(seed)) for seed in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(silos, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(silos, other, strict=True))


def test_digit_pairs_make_25_silos_of_two_digits_each() -> None:
    digits = np.random.default_rng(3).permutation(np.repeat(np.arange(10), 20))
    silos = split_by_pairs(digits)
    check_partition(silos, 200)
    pairs = [(min(e, o), max(e, o)) for e in range(0, 10, 2) for o in range(1, 10, 2)]
    assert [tuple(np.unique(digits[silo]).tolist()) for silo in silos] == pairs
    assert all(np.bincount(digits[silo], minlength=10).max() == 4 for silo in silos)


def test_shared_pairs_hold_all_images_of_their_digits() -> None:
    digits = np.tile(np.arange(10), 7)
    shared = split_by_pairs(digits, shared=True)
    assert all(
        silo.tolist() == np.flatnonzero(np.isin(digits, np.unique(digits[silo]))).tolist() for silo in shared
    )
    assert np.bincount(np.concatenate(shared)).tolist() == [5] * 70


def test_pairs_of_names_leave_other_groups_out() -> None:
    groups = np.array(["a", "b", "c", "d", "a"])
    assert [silo.tolist() for silo in split_by_pairs(groups, [("a", "b"), ("a", "c")])] == [[0, 1], [2, 4]]


def test_equal_sizes_cut_to_the_smallest_class() -> None:
    assert [len(silo) for silo in split_by_label([0, 1, 1, 1, 2, 2, 0], equal_sizes=True)] == [2, 2, 2]


def test_sorted_targets_do_not_overlap() -> None:
    y = np.random.default_rng(4).normal(size=1338)
    silos = split_sorted_target(y, 3)
    assert [len(silo) for silo in silos] == [446, 446, 446]
    assert all(y[low].max() < y[high].min() for low, high in pairwise(silos))
    assert [len(silo) for silo in split_sorted_target(y[:10], 4)] == [3, 3, 3, 1]


def test_mixture_ends_are_the_split_itself_and_the_pool() -> None:
    labels = np.repeat([0, 1], 500)
    silos = split_by_label(labels)
    rng = np.random.default_rng(5)
    assert all(np.array_equal(a, b) for a, b in zip(silos, split_mixture(silos, 0.0, rng), strict=True))
    share = labels[split_mixture(silos, 1.0, rng)[0]].mean()
    # Hypergeometric with standard deviation 0.0158: 0.4 is 6 of them off, a chance below 1e-8.
    assert abs(share - 0.5) < 0.1


def test_small_alpha_is_more_skewed_than_large() -> None:
    labels, rng = np.repeat([0, 1, 2, 3], 250), np.random.default_rng(6)

    def skew(alpha: float) -> float:
        silos = split_dirichlet(labels, 4, alpha=alpha, rng=rng, min_size=5)
        assert min(map(len, silos)) >= 5
        return float(np.mean([np.bincount(labels[silo]).max() / len(silo) for silo in silos]))

    assert skew(0.1) > 0.5 > 0.35 > skew(1000.0)


def test_halves_have_the_stated_sizes() -> None:
    train, test = train_test_split_indices(10_841, 0.2, np.random.default_rng(0))
    assert (len(train), len(test)) == (8673, 2168)  # Lowy (2023), Appendix B.1.10.1


def test_groups_are_never_torn() -> None:
    groups = np.random.default_rng(8).integers(0, 20, size=200)
    train, test = train_test_split_groups(groups, 0.25, np.random.default_rng(9))
    assert not set(groups[train]) & set(groups[test])
    assert len(set(groups[test])) == 5
    check_partition([train, test], 200)


def test_bad_arguments_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="n_silos must be a whole number from 1 to 3"):
        split_iid(3, 4, rng)
    with pytest.raises(ParameterError, match="leave records for the last silo"):
        split_sorted_target(np.arange(10.0), 6)
    with pytest.raises(ParameterError, match="y must be finite"):
        split_sorted_target([0.0, np.nan], 1)
    with pytest.raises(ParameterError, match="group 7, which no record has"):
        split_by_pairs([0, 1], [(0, 7)])
    with pytest.raises(ParameterError, match="two different groups"):
        split_by_pairs([0, 1], [(0, 0)])
    with pytest.raises(ParameterError, match="at least one pair"):
        split_by_pairs([0, 1], [])
    with pytest.raises(ParameterError, match="p must be in"):
        split_mixture([np.arange(3)], 1.5, rng)
    with pytest.raises(ParameterError, match="must not share records"):
        split_mixture([np.arange(3), np.arange(2)], 0.5, rng)
    with pytest.raises(ParameterError, match="alpha must be a finite number > 0"):
        split_dirichlet([0, 1], 2, alpha=0.0, rng=rng)
    with pytest.raises(ParameterError, match="min_size 2 was not reached"):
        split_dirichlet([0] * 4, 2, alpha=1e-6, rng=rng, min_size=2)
    with pytest.raises(ParameterError, match="empty half of 2 records"):
        train_test_split_indices(2, 0.1, rng)
    with pytest.raises(ParameterError, match=r"labels must have shape \(n,\)"):
        split_by_label(np.zeros((2, 2)))


@given(labels=LABELS, seed=SEEDS, n_silos=st.integers(1, 4), shards=st.integers(1, 3))
def test_shards_are_dealt_whole_and_once(labels: np.ndarray, seed: int, n_silos: int, shards: int) -> None:
    silos = split_noniid_shards(labels, n_silos, np.random.default_rng(seed), shards_per_silo=shards)
    check_partition(silos, labels.size)
    # A shard of sorted labels is contiguous in that order: a silo is made of few runs of it.
    rank = np.argsort(np.argsort(labels, kind="stable"))
    for silo in silos:
        assert np.count_nonzero(np.diff(np.sort(rank[silo])) > 1) < shards
    assert max(map(len, silos)) - min(map(len, silos)) <= shards


def test_shards_are_pure_where_classes_fill_them() -> None:
    labels = np.repeat(np.arange(10), 1000)
    for n_silos in (10, 50):
        silos = split_noniid_shards(labels, n_silos, np.random.default_rng(3))
        assert all(len(silo) == 10_000 // n_silos for silo in silos)
        assert all(np.unique(labels[silo]).size <= 2 for silo in silos)


def test_more_shards_than_records_are_refused() -> None:
    with pytest.raises(ParameterError, match="shards_per_silo"):
        split_noniid_shards(np.zeros(5), 3, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="n_silos"):
        split_noniid_shards(np.zeros(5), 0, np.random.default_rng(0))


@pytest.mark.parametrize("n_silos", [0, 6, True])
def test_sorted_targets_fill_at_least_one_silo_and_at_most_one_a_record(n_silos: int) -> None:
    with pytest.raises(ParameterError, match="n_silos must be a whole number from 1 to 5"):
        split_sorted_target(np.arange(5.0), n_silos)
