from __future__ import annotations

import gc
import math
import tracemalloc
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.federation import (
    Batch,
    Disjoint,
    Fixed,
    Full,
    InProcess,
    Plan,
    Poisson,
    RandomSubset,
    Scheduled,
    Silo,
    SiloDownError,
    Weights,
)
from tacit.federation.protocols import Unsent
from tacit.means import AnyNoise, GaussianNoise
from tacit.numerics import Array, IntArray
from tacit.privacy import Relation, TrustModel
from tacit.randomness import PublicStream
from tests.federation.world import (
    AT,
    DIM,
    GAUSSIAN,
    GRID,
    RADIUS,
    STATISTICS,
    Rows,
    ask_at,
    mean_of,
    plan_of,
    rows,
    silo_of,
    silos_of,
)
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
DATA = [rows(k, n) for k, n in enumerate((8, 20, 5, 11, 16))]
N = len(DATA)
MEANS = np.stack([values.mean(axis=0) for values in DATA])


def server_rng() -> np.random.Generator:
    return np.random.default_rng(77)


@dataclass(frozen=True)
class Enumerated:
    """Every subset of a size in turn: what `RandomSubset` draws from."""

    size: int
    uniform: ClassVar[bool] = True

    def fewest(self, parties: int) -> int:
        return self.size

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        return np.array(list(combinations(range(parties), self.size))[round])


def chi2_interval(freedom: int) -> tuple[float, float]:
    """Where a chi-square variable lies, but for FALSE_ALARM."""
    ends = FALSE_ALARM / 2, 1 - FALSE_ALARM / 2
    return float(stats.chi2.ppf(ends[0], freedom)), float(stats.chi2.ppf(ends[1], freedom))


# --- without noise


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("statistic", ["row", "fused"])
def test_without_noise_the_federation_is_the_plain_mean(trust: TrustModel, statistic: str) -> None:
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(
        plan_of(mean_of(trust=trust), parties=N, statistics=(statistic,))
    )
    np.testing.assert_allclose(ask(0, AT, (1.0,))[0], np.concatenate(DATA).mean(axis=0), atol=1e-14)


def test_rows_are_clipped_in_the_silo() -> None:
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(plan_of(parties=N))
    everything = np.concatenate(DATA)
    norms = np.linalg.norm(everything, axis=1)
    assert (norms > 0.3).any()
    clipped = everything * np.minimum(1, 0.3 / norms)[:, None]
    np.testing.assert_allclose(ask(0, AT, (0.3,))[0], clipped.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("statistic", ["row", "fused"])
def test_rows_above_the_radius_are_refused_where_nothing_is_private(statistic: str) -> None:
    refusing = msgspec.structs.replace(mean_of(), on_violation=None)
    plan = plan_of(refusing, parties=N, statistics=(statistic,))
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(Plan.from_toml(plan.to_toml()))
    with pytest.raises(ParameterError, match=r"l2 norm at most 0\.3"):
        ask(0, AT, (0.3,))
    np.testing.assert_allclose(ask(0, AT, (RADIUS,))[0], np.concatenate(DATA).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("batch", [Full(), Fixed(rate=0.5), Disjoint(size=2)])
@pytest.mark.parametrize("statistics", [("row",), ("row", "shifted")])
def test_local_and_central_agree_without_noise(batch: Batch, statistics: tuple[str, ...]) -> None:
    found = []
    equal = [rows(k, 12) for k in range(3)]
    for trust in (LOCAL, CENTRAL):
        plan = plan_of(mean_of(trust=trust), parties=3, rounds=3, batch=batch, statistics=statistics)
        ask = InProcess(silos_of(equal), rng=server_rng()).open(plan)
        at = {"w": np.full(DIM, 0.1)}
        found.append([ask(step, at, (1.0,) * len(statistics)) for step in range(3)])
    np.testing.assert_allclose(found[0], found[1], atol=1e-14)


def test_two_statistics_are_computed_on_one_batch() -> None:
    plan = plan_of(parties=2, batch=Fixed(size=3), statistics=("row", "shifted"))
    ask = InProcess(silos_of([rows(k, 12) for k in range(2)]), rng=server_rng()).open(plan)
    row, shifted = ask(0, AT, (1.0, 1.0))
    np.testing.assert_allclose(row, -shifted, atol=1e-15)


def test_the_variance_of_sampling_silos_is_exactly_that_of_lemma_128() -> None:
    for size in range(1, N + 1):
        subsets = math.comb(N, size)
        for participation in (Enumerated(size), Scheduled(list(combinations(range(N), size)))):
            ask = InProcess(silos_of(DATA), rng=server_rng()).open(
                plan_of(parties=N, rounds=subsets), participation=participation, weights="silos"
            )
            found = np.stack([ask(step, AT, (1.0,))[0] for step in range(subsets)])
            spread = ((MEANS - MEANS.mean(axis=0)) ** 2).sum(axis=1).mean()
            exact = (N - size) / ((N - 1) * size) * spread
            np.testing.assert_allclose(found.mean(axis=0), MEANS.mean(axis=0), atol=1e-14)
            variance = ((found - MEANS.mean(axis=0)) ** 2).sum(axis=1).mean()
            assert variance == pytest.approx(exact, abs=1e-15)


@pytest.mark.parametrize("weights", ["records", "silos", (0.4, 0.1, 0.2, 0.2, 0.1)])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_over_all_subsets_the_mean_is_unbiased_for_any_weights(weights: Weights, size: int) -> None:
    subsets = math.comb(N, size)
    plan = plan_of(parties=N, rounds=subsets)
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(
        plan, participation=Enumerated(size), weights=weights
    )
    sizes = np.array([len(values) for values in DATA])
    p = {"records": sizes / sizes.sum(), "silos": np.ones(N) / N}.get(
        str(weights), np.array([0.4, 0.1, 0.2, 0.2, 0.1])
    )
    found = np.mean([ask(step, AT, (1.0,))[0] for step in range(subsets)], axis=0)
    np.testing.assert_allclose(found, p @ MEANS, atol=1e-14)


def test_over_a_given_list_the_mean_is_that_of_the_silos_on_it() -> None:
    plan = plan_of(parties=N)
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(plan, participation=Scheduled([[0, 1]]))
    np.testing.assert_allclose(ask(0, AT, (1.0,))[0], np.concatenate(DATA[:2]).mean(axis=0), atol=1e-14)


def test_random_participation_asks_the_number_of_silos_it_says() -> None:
    plan = plan_of(parties=N, rounds=60)
    ask = InProcess(silos_of(DATA), rng=server_rng()).open(plan, participation=RandomSubset((0, 2, 3)))
    asked = []
    for step in range(60):
        before = ask.traffic.answered.copy()
        ask(step, AT, (1.0,))
        asked.append(int((ask.traffic.answered - before).sum()))
    assert set(asked) == {0, 2, 3}
    assert ask.traffic.skipped == asked.count(0)
    assert ask.traffic.answered.min() > 0


# --- silos that are down


def test_a_round_goes_on_with_those_who_answer() -> None:
    down = {(0, 1), (1, 0), (1, 2), (1, 3)}
    plan = plan_of(mean_of(GAUSSIAN), parties=N)
    whole = InProcess(silos_of(DATA), rng=server_rng()).open(plan)
    ask = InProcess(silos_of(DATA), rng=server_rng(), is_down=lambda r, k: (r, k) in down).open(plan)
    assert ask.guarantees == whole.guarantees  # dropping out amplifies nothing and costs nothing
    noise_free = InProcess(silos_of(DATA), is_down=lambda r, k: (r, k) in down).open(plan_of(parties=N))
    for step, up in enumerate(([0, 2, 3, 4], [1, 4], [0, 1, 2, 3, 4])):
        found = noise_free(step, AT, (1.0,))[0]
        np.testing.assert_allclose(found, np.concatenate([DATA[k] for k in up]).mean(axis=0), atol=1e-14)
    assert noise_free.traffic.answered.tolist() == [2, 2, 2, 2, 3]


def test_with_drop_outs_the_noisy_mean_is_unbiased_for_those_who_answered() -> None:
    trials, noise = 400, GaussianNoise(0.2)
    plan = plan_of(mean_of(noise), parties=N, rounds=trials)
    ask = InProcess(silos_of(DATA), rng=server_rng(), is_down=lambda _, k: k in (1, 3)).open(plan)
    found = np.stack([ask(step, AT, (1.0,))[0] for step in range(trials)])
    up = np.concatenate([DATA[k] for k in (0, 2, 4)])
    std = 0.2 * 2 * math.sqrt(3) / len(up)  # three silos add noise of std z * 2r to their sums
    tolerance = z_bound(DIM) * std / math.sqrt(trials)
    everybody = np.concatenate(DATA)
    wrong = everybody.mean(axis=0), up.sum(axis=0) / len(everybody)
    for estimate in wrong:  # power
        assert np.abs(estimate - up.mean(axis=0)).max() > 2 * tolerance
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - up.mean(axis=0)), tolerance)


def test_a_silo_that_breaks_down_while_it_answers_is_left_out() -> None:
    class Down(Silo):
        def prepare(self, query: object, circle: object = None) -> Unsent:
            raise SiloDownError

    class Gone(Silo):
        def prepare(self, query: object, circle: object = None) -> Unsent:
            def store() -> bytes:
                raise SiloDownError

            return Unsent(store)

    silos = silos_of(DATA[:2])
    units = silo_of(DATA[2])[1]
    silos += [
        kind(units, {"row": lambda u, _: u.values}, trusts_server=True, rng=np.random.default_rng(0))
        for kind in (Down, Gone)
    ]
    ask = InProcess(silos, rng=server_rng()).open(plan_of(parties=4))
    np.testing.assert_allclose(ask(0, AT, (1.0,))[0], np.concatenate(DATA[:2]).mean(axis=0), atol=1e-14)
    assert ask.traffic.answered.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_round_that_nobody_answers_is_skipped_and_may_be_asked_again(trust: TrustModel) -> None:
    up = False
    plan = plan_of(mean_of(trust=trust), parties=N)
    ask = InProcess(silos_of(DATA), rng=server_rng(), is_down=lambda *_: not up).open(plan)
    np.testing.assert_array_equal(ask(0, AT, (1.0,))[0], np.zeros(DIM))
    assert ask.traffic.skipped == 1
    up = True
    np.testing.assert_allclose(ask(0, AT, (1.0,))[0], np.concatenate(DATA).mean(axis=0), atol=1e-14)


# --- noise


@pytest.mark.parametrize(
    ("noise", "weights", "trust"),
    [
        (GAUSSIAN, "silos", LOCAL),
        (GRID, "silos", LOCAL),
        (GAUSSIAN, (0.5, 0.3, 0.2), LOCAL),
        (GAUSSIAN, "records", LOCAL),
        (GAUSSIAN, "records", CENTRAL),
    ],
)
def test_averaged_noise_has_exactly_the_variance_of_the_theory(
    noise: AnyNoise, weights: Weights, trust: TrustModel
) -> None:
    rounds, dim, sizes, radius = 60, 50, np.array([4, 10, 25]), 0.7
    silos = silos_of([np.zeros((n, dim)) for n in sizes])
    plan = plan_of(mean_of(noise, trust=trust, dim=dim), parties=3, rounds=rounds)
    ask = InProcess(silos, rng=server_rng()).open(plan, weights=weights)
    found = np.stack([ask(step, {"w": np.zeros(dim)}, (radius,))[0] for step in range(rounds)])
    std = 5.0 * 2 * radius / sizes  # of a silo's own mean: sigma_i
    p = {"silos": np.ones(3) / 3, "records": sizes / sizes.sum()}.get(str(weights), np.array([0.5, 0.3, 0.2]))
    # sum p_i^2 sigma_i^2, which is sigma^2 / M for equal silos; one noise if central.
    per_silo, pooled = float(np.sum((p * std) ** 2)), (5.0 * 2 * radius / sizes.sum()) ** 2
    variance = per_silo if trust is LOCAL else pooled
    total, freedom = (found**2).sum() / variance, rounds * dim
    low, high = chi2_interval(freedom)
    assert 0.85 < low / freedom < high / freedom < 1.16  # power: half, double or a lost weight is far outside
    assert low <= total <= high


def test_equal_silos_divide_the_variance_by_their_number() -> None:
    rounds, dim, n, parties = 40, 60, 10, 8
    silos = silos_of([np.zeros((n, dim))] * parties)
    ask = InProcess(silos, rng=server_rng()).open(
        plan_of(mean_of(GAUSSIAN, dim=dim), parties=parties, rounds=rounds)
    )
    found = np.stack([ask(step, {"w": np.zeros(dim)}, (1.0,))[0] for step in range(rounds)])
    sigma = 5.0 * 2 / n
    low, high = chi2_interval(rounds * dim)
    assert low <= (found**2).sum() / (sigma**2 / parties) <= high


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT])
def test_a_poisson_sample_is_divided_by_its_expected_size(relation: Relation) -> None:
    values = rows(9, 30)
    silo, units = silo_of(values)
    plan = plan_of(mean_of(relation=relation), rounds=20, batch=Poisson(0.15))
    ask = InProcess([silo], rng=server_rng()).open(plan)
    for step in range(20):
        before = len(units.taken)
        found = ask(step, AT, (1.0,))[0]
        index = units.taken[-1] if len(units.taken) > before else []
        np.testing.assert_allclose(found * 4.5, values[index].sum(axis=0), atol=1e-14)


# --- what a run leaves


def test_bits_are_those_that_silos_sent() -> None:
    plan = plan_of(mean_of(GRID), parties=2, rounds=3)
    silos = silos_of(DATA[:2])
    ask = InProcess(silos, rng=server_rng(), is_down=lambda r, k: (r, k) == (1, 0)).open(plan)
    for step in range(3):
        ask(step, AT, (1.0,))
    length = len(silos[1].answer(ask_at(2)))
    assert ask.traffic.bits_up.tolist() == [2 * 8 * length, 3 * 8 * length]
    inside = plan.kinds[0][0].measures[0].estimator.bits_per_party(20)
    assert inside <= 8 * length <= inside + 8 * 16  # the envelope


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_memory_does_not_grow_with_the_number_of_rounds(trust: TrustModel) -> None:
    plan = plan_of(mean_of(GAUSSIAN, trust=trust), parties=2, rounds=350, batch=Fixed(size=2))
    units = [Rows(values, taken=_Nothing()) for values in DATA[:2]]
    silos = [Silo(one, STATISTICS, trusts_server=True, rng=np.random.default_rng(3)) for one in units]
    ask = InProcess(silos, rng=server_rng()).open(plan)
    for step in range(100):
        ask(step, AT, (1.0,))
    tracemalloc.start()
    ask(100, AT, (1.0,))
    gc.collect()  # CPython calls the freed tuples that it keeps for later used, 2,000 of each length
    before = tracemalloc.get_traced_memory()[0]
    for step in range(101, 350):
        ask(step, {"w": np.full(DIM, step / 7)}, (1.0,))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2_500  # ten bytes a round; one kept answer a round would be 100 times as much


class _Nothing(list[list[int]]):
    """A list that forgets."""

    def append(self, _: list[int]) -> None:
        return


def test_arrays_that_come_back_are_the_callers_own() -> None:
    plan = plan_of(mean_of(trust=CENTRAL), parties=2)
    ask = InProcess(silos_of(DATA[:2]), rng=server_rng()).open(plan)
    first: Array = ask(0, AT, (1.0,))[0]
    kept = first.copy()
    first += 1.0
    np.testing.assert_array_equal(ask(0, AT, (1.0,))[0], kept)
