"""Records of silos side by side: what they are cut into is what each would be cut into alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.learning import LinearObjective, Logistic, Records
from tacit.learning.difference import RecordDifference
from tacit.learning.joined import packs
from tacit.learning.networks import NetworkObjective
from tacit.learning.objective import RecordGradient
from tacit.numerics import Array


def records(n: int, seed: int = 0, *, dtype: type = np.float64) -> Records:
    rng = np.random.default_rng((seed, n))
    X: Array = rng.standard_normal((n, 3)).astype(dtype)
    return Records.of(X, rng.integers(2, size=n).astype(dtype))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=12), label=st.sampled_from([None, 1.0]))
def test_silos_come_in_order_and_are_cut_as_they_would_be_alone(
    sizes: list[int], label: float | None
) -> None:
    silos, found, most = [records(n, k) for k, n in enumerate(sizes)], [], 16
    for pack in packs(silos, most, label=label):
        assert len(pack.places) == 1 or len(pack.records) <= most
        for place in pack.places:
            n = place.stop - place.start
            found.append(Records(pack.records.X[place], pack.records.y[place], pack.records.norms[place]))
            for part in (2**k for k in range(5 if label is not None else 0)):
                inside = place.start // part == (place.stop - 1) // part
                assert n == 0 or place.start % part == 0 or inside
        rest = np.ones(len(pack.records), dtype=bool)
        for place in pack.places:
            rest[place] = False
        assert not pack.records.X[rest].any()
        assert (pack.records.y[rest] == label).all()
        if label is None:
            assert not rest.any()
    assert len(found) == len(silos)
    for one, silo in zip(found, silos, strict=True):
        for name in ("X", "y", "norms"):
            np.testing.assert_array_equal(getattr(one, name), getattr(silo, name))


def test_a_part_of_a_pack_says_whose_records_are_in_it() -> None:
    (pack,) = packs([records(n) for n in (3, 0, 2)], 16, label=0.0)
    assert [place.start for place in pack.places] == [0, 3, 4]
    assert pack.within(slice(2, 6)) == [(0, slice(0, 1)), (2, slice(2, 4))]


def test_records_of_other_dtypes_are_not_joined() -> None:
    silos = [records(2), records(2, dtype=np.float32)]
    assert [pack.records.X.dtype for pack in packs(silos, 16)] == [np.float64, np.float32]


def test_a_network_adds_up_silos_to_the_last_bit() -> None:
    objective = NetworkObjective(loss=Logistic(), features=3, hidden=5)
    silos = [records(n, n) for n in (5, 0, 70, 64, 1, 9)]
    w = np.random.default_rng(0).standard_normal(objective.size)
    statistic = RecordGradient(objective)
    assert statistic.joins
    for dtype in (np.float64, np.float32):
        alone = [statistic.clipped_sum(one, {"w": w}, 0.4, dtype) for one in silos]
        np.testing.assert_array_equal(statistic.clipped_sums(silos, {"w": w}, 0.4, dtype), alone)


def test_only_objectives_that_can_are_asked_for_silos_together() -> None:
    assert not RecordGradient(LinearObjective(loss=Logistic(), features=3)).joins
    assert not RecordDifference(NetworkObjective(loss=Logistic(), features=3, hidden=2)).joins
