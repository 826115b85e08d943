"""Who holds what: records to silos, and to training and test halves.

Every split returns a list of sorted int64 index arrays, one per silo. A record is in at most one of them,
because a record that two silos hold is protected per copy only; `split_by_pairs(..., shared=True)` is the
stated exception.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import ParameterError, check_count, check_positive, check_probability

__all__ = [
    "Indices",
    "split_by_column",
    "split_by_label",
    "split_by_pairs",
    "split_dirichlet",
    "split_iid",
    "split_mixture",
    "split_noniid_shards",
    "split_sorted_target",
    "train_test_split_groups",
    "train_test_split_indices",
    "train_test_split_silos",
]

Indices = NDArray[np.int64]

_DIGIT_PAIRS = tuple(itertools.product((0, 2, 4, 6, 8), (1, 3, 5, 7, 9)))
_MAX_DRAWS = 1000


def split_by_column(values: ArrayLike) -> tuple[list[str], list[Indices]]:
    """Give each distinct value its own silo.

    Args:
        values: Shape (n,), one silo identifier per record.

    Returns:
        The silos' names in sorted order, as text, and their records.

    Example:
        >>> names, silos = split_by_column(np.array(["b", "a", "b"]))
        >>> names, [s.tolist() for s in silos]
        (['a', 'b'], [[1], [0, 2]])
    """
    found, members = _members(_vector("values", values))
    return [str(value) for value in found], members


def split_iid(n: int, n_silos: int, rng: np.random.Generator) -> list[Indices]:
    """Deal n records at random to silos whose sizes differ by at most one.

    Args:
        n: Number of records.
        n_silos: Number of silos, 1 <= n_silos <= n.
        rng: Source of the deal.

    Returns:
        The records of each silo.
    """
    check_count("n", n)
    check_count("n_silos", n_silos, high=n)
    return [np.sort(part) for part in np.array_split(rng.permutation(n), n_silos)]


def split_by_pairs(
    groups: ArrayLike, pairs: Sequence[tuple[Any, Any]] | None = None, *, shared: bool = False
) -> list[Indices]:
    """Make one silo per pair of groups, such as all (even, odd) digit pairs.

    Args:
        groups: Shape (n,), the group (digit) of each record. Records of groups in no pair are left out.
        pairs: The two groups of each silo; None for the 25 pairs (even digit, odd digit), even digit first.
        shared: False: a group's records are dealt evenly, in their order, to the silos of that group, each
            record to one silo. True: the form of Lowy (2023), Appendix B.1.10.1, where each of those silos
            holds all records of the group, so that a record protected in one silo is still held by others.

    Returns:
        The records of each silo, in the order of `pairs`.

    Raises:
        ParameterError: A pair repeats a group, or names a group that no record has.
    """
    values = _vector("groups", groups)
    chosen = _DIGIT_PAIRS if pairs is None else tuple(pairs)
    if not chosen:
        raise ParameterError("pairs must name at least one pair, got none.")
    parts: list[list[Indices]] = [[] for _ in chosen]
    for group in dict.fromkeys(itertools.chain.from_iterable(chosen)):
        records = np.flatnonzero(values == group)
        if records.size == 0:
            raise ParameterError(f"pairs names the group {group!r}, which no record has.")
        holders = [silo for silo, pair in enumerate(chosen) if group in pair]
        for j, silo in enumerate(holders):
            parts[silo].append(records if shared else records[j :: len(holders)])
    if any(len(part) != 2 for part in parts):
        raise ParameterError("pairs must each name two different groups.")
    return [np.sort(np.concatenate(part)).astype(np.int64) for part in parts]


def split_by_label(labels: ArrayLike, *, equal_sizes: bool = False) -> list[Indices]:
    """Give each class its own silo, the most heterogeneous split (Lowy 2023, Appendix B.1.10.3).

    Args:
        labels: Shape (n,), the class of each record.
        equal_sizes: Cut every silo to the size of the smallest, keeping the first records.

    Returns:
        The records of each silo, in sorted order of the classes.
    """
    silos = _members(_vector("labels", labels))[1]
    return [silo[: min(map(len, silos))] for silo in silos] if equal_sizes else silos


def split_noniid_shards(
    labels: ArrayLike, n_silos: int, rng: np.random.Generator, *, shards_per_silo: int = 2
) -> list[Indices]:
    """Sort by label, cut into equal shards, and deal each silo some of them at random.

    Args:
        labels: Shape (n,), the class of each record. Records of a class keep their order.
        n_silos: Number of silos, 1 <= n_silos * shards_per_silo <= n.
        rng: Source of the deal; no shard goes to two silos.
        shards_per_silo: Shards of a silo, >= 1. With two, most silos see two classes, and some only one.

    Returns:
        The records of each silo; sizes of shards differ by at most one.

    Raises:
        ParameterError: There are more shards than records, or an argument is out of range.

    Reference:
        McMahan et al. (2017), AISTATS, section 3; Jiang (2025), Appendix A.4.
    """
    values = _vector("labels", labels)
    check_count("n_silos", n_silos)
    check_count("shards_per_silo", shards_per_silo, high=values.size // n_silos)
    order = np.argsort(values, kind="stable").astype(np.int64)
    shards = np.array_split(order, n_silos * shards_per_silo)
    dealt = rng.permutation(len(shards)).reshape(n_silos, shards_per_silo)
    return [np.sort(np.concatenate([shards[k] for k in mine])) for mine in dealt]


def split_sorted_target(y: ArrayLike, n_silos: int) -> list[Indices]:
    """Sort by target and cut into runs of ceil(n / n_silos) records; the last silo holds the rest.

    Args:
        y: Shape (n,), finite targets. Ties keep their order.
        n_silos: Number of silos, 1 <= n_silos <= n.

    Returns:
        The records of each silo, lowest targets first (Lowy 2023, Appendix B.1.10.2).

    Raises:
        ParameterError: The last silo would be empty, or an argument is out of range.
    """
    values = _vector("y", y).astype(np.float64)
    if not np.isfinite(values).all():
        raise ParameterError("y must be finite.")
    check_count("n_silos", n_silos, high=values.size)
    size = -(-values.size // n_silos)
    if size * (n_silos - 1) >= values.size:
        raise ParameterError(
            f"n_silos must leave records for the last silo, got {n_silos} for {values.size} records."
        )
    order = np.argsort(values, kind="stable").astype(np.int64)
    return [np.sort(order[start : start + size]) for start in range(0, values.size, size)]


def split_mixture(silos: Sequence[Indices], p: float, rng: np.random.Generator) -> list[Indices]:
    """Replace a fraction p of each silo by records of the pool of all silos, keeping sizes.

    Args:
        silos: A heterogeneous split, such as one by label.
        p: Fraction of each silo that goes through the pool: 0 keeps `silos`, 1 deals all records at random.
        rng: Source of the choice and of the deal.

    Returns:
        The records of each silo, of the same sizes; a record stays in one silo.

    Raises:
        ParameterError: `p` is outside [0, 1], or `silos` is empty or shares records.
    """
    check_probability("p", p)
    if not silos:
        raise ParameterError("silos must hold at least one silo, got none.")
    everyone = np.concatenate(silos)
    if np.unique(everyone).size < everyone.size:
        raise ParameterError("silos must not share records.")
    shuffled = [rng.permutation(silo) for silo in silos]
    given = [round(p * len(silo)) for silo in silos]
    pool = rng.permutation(
        np.concatenate([silo[:count] for silo, count in zip(shuffled, given, strict=True)])
    )
    back = np.split(pool, np.cumsum(given)[:-1])
    return [
        np.sort(np.concatenate([silo[count:], part])).astype(np.int64)
        for silo, count, part in zip(shuffled, given, back, strict=True)
    ]


def split_dirichlet(
    labels: ArrayLike, n_silos: int, *, alpha: float, rng: np.random.Generator, min_size: int = 1
) -> list[Indices]:
    """Deal each class to the silos in Dirichlet(alpha) proportions, the usual label skew.

    Args:
        labels: Shape (n,), the class of each record.
        n_silos: Number of silos.
        alpha: Concentration, > 0: small is heterogeneous, large nears equal shares.
        rng: Source of the proportions and of the deal.
        min_size: Redraw until every silo has at least this many records.

    Returns:
        The records of each silo; every record is in exactly one.

    Raises:
        ParameterError: An argument is out of range, or 1000 draws did not reach `min_size`.
    """
    values = _vector("labels", labels)
    check_count("n_silos", n_silos, high=values.size)
    check_positive("alpha", alpha)
    check_count("min_size", min_size, low=0, high=values.size // n_silos)
    classes = _members(values)[1]
    for _ in range(_MAX_DRAWS):
        shares = rng.dirichlet(np.full(n_silos, alpha), size=len(classes))
        sizes = np.array([len(members) for members in classes])
        cuts = np.rint(np.cumsum(shares, axis=1)[:, :-1] * sizes[:, None]).astype(np.int64)
        counts = np.diff(cuts, axis=1, prepend=0, append=sizes[:, None]).sum(axis=0)
        if counts.min() >= min_size:
            dealt = [
                np.split(rng.permutation(members), cut) for members, cut in zip(classes, cuts, strict=True)
            ]
            return [np.sort(np.concatenate(parts)) for parts in zip(*dealt, strict=True)]
    raise ParameterError(
        f"min_size {min_size} was not reached in {_MAX_DRAWS} draws with alpha {alpha!r} and {n_silos} "
        "silos; raise alpha or lower min_size."
    )


def train_test_split_indices(
    n: int, test_fraction: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Hold out round(test_fraction * n) of n records at random.

    Args:
        n: Number of records.
        test_fraction: Share of the test half, in (0, 1).
        rng: Source of the choice.

    Returns:
        Training and test records.

    Raises:
        ParameterError: An argument is out of range, or one half would be empty.
    """
    check_count("n", n)
    check_probability("test_fraction", test_fraction, low_open=True, high_open=True)
    n_test = round(test_fraction * n)
    if not 0 < n_test < n:
        raise ParameterError(f"test_fraction {test_fraction!r} leaves an empty half of {n} records.")
    order = rng.permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def train_test_split_groups(
    groups: ArrayLike, test_fraction: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Hold out whole groups, such as persons, so that nobody is in both halves.

    Args:
        groups: Shape (n,), the group of each record.
        test_fraction: Share of the *groups* in the test half, in (0, 1).
        rng: Source of the choice.

    Returns:
        Training and test records.
    """
    found, codes = np.unique(_vector("groups", groups), return_inverse=True)
    test_groups = train_test_split_indices(found.size, test_fraction, rng)[1]
    held_out = np.isin(codes, test_groups)
    return np.flatnonzero(~held_out).astype(np.int64), np.flatnonzero(held_out).astype(np.int64)


def train_test_split_silos(
    silos: Sequence[Indices], test_fraction: float, rng: np.random.Generator
) -> tuple[list[Indices], list[Indices]]:
    """Hold out a share of each silo: Lowy (2023), Appendix B.1.10 holds out 20 %.

    Args:
        silos: Records of each silo, at least two in each.
        test_fraction: Share of the test half, in (0, 1).
        rng: Source of the choices.

    Returns:
        Training records of each silo, test records of each silo.
    """
    halves = [train_test_split_indices(len(silo), test_fraction, rng) for silo in silos]
    train = [np.sort(silo[chosen]) for silo, (chosen, _) in zip(silos, halves, strict=True)]
    test = [np.sort(silo[held_out]) for silo, (_, held_out) in zip(silos, halves, strict=True)]
    return train, test


def _vector(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return a non-empty 1-d array."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(f"{name} must have shape (n,) with n >= 1, got shape {array.shape}.")
    return array


def _members(values: NDArray[Any]) -> tuple[NDArray[Any], list[Indices]]:
    """Return the distinct values in sorted order, and the sorted records of each."""
    found, codes = np.unique(values, return_inverse=True)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    return found, list(np.split(order, np.cumsum(np.bincount(codes))[:-1]))
