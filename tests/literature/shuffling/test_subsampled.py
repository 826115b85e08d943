"""Bounds on shuffled samples and the accountants of whole runs, against independent tables."""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.literature.shuffling.baselines import clones_epsilon, fmt22_epsilon
from tacit.literature.shuffling.lower import shuffle_renyi_lower
from tacit.literature.shuffling.rounds import (
    WHOLE_ORDERS,
    cldp_epsilon_composition,
    cldp_renyi,
    cldp_round,
    dss_renyi,
    dss_round,
)
from tacit.literature.shuffling.subsampled import subsampled_renyi
from tacit.literature.shuffling.upper import shuffle_renyi
from tacit.privacy.curve_sampling import amplified
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.renyi import renyi_to_epsilon


class Clients(TypedDict):
    clients: int
    sampled_clients: int


class Sizes(Clients):
    records: int
    sampled_records: int


class Run(Clients):
    rounds: int


ALL: Clients = {"clients": 1000, "sampled_clients": 1000}
ORDERS = np.array([2.0, 4, 8, 16, 32, 64])
DIGITS = 6e-8  # eight digits are printed


PRINTED = """
0.5 6e4 1e4 9.3508714e-06 1.9016394e-05 3.9301652e-05 8.3758454e-05 0.0001887266 0.0004658656
0.5 1e6 1e3 3.3696624e-09 6.7414768e-09 1.3491563e-08 2.7017573e-08 5.4173024e-08 1.0889826e-07
1 6e4 1e4 6.5587298e-05 0.00013882361 0.00030897482 0.00074854947 0.0020459415 0.0060613484
1 1e7 1e4 2.3612201e-09 4.7240898e-09 9.4547787e-09 1.8935962e-08 3.7977606e-08 7.6378465e-08
1.5 6e4 1e4 0.00026926076 0.00063523362 0.0016781831 0.0050951531 0.016182017 0.035005721
2 6e4 1e4 0.0009062676 0.0028319137 0.010109846 0.035840233 0.077579257 0.1018617
2 1e6 1e3 3.2496655e-07 6.5676025e-07 1.3409031e-06 2.7919284e-06 6.0290841e-06 1.3876878e-05
"""


@pytest.mark.parametrize("row", PRINTED.strip().splitlines())
def test_printed_bound(row: str) -> None:
    e, n, k, *wanted = (float(cell) for cell in row.split())
    found = subsampled_renyi(e, int(k), k / n, ORDERS, variant="printed")
    assert found == pytest.approx(wanted, rel=DIGITS)


def test_tight_bound() -> None:
    wanted = [4.4571658e-05, 9.212685e-05, 1.9637956e-04, 4.4265825e-04, 1.0928608e-03, 2.9973788e-03]
    assert subsampled_renyi(1.0, 10_000, 1 / 6, ORDERS, variant="tight") == pytest.approx(wanted, rel=DIGITS)
    wanted = [3.2496601e-07, 6.5459676e-07, 1.3278959e-06, 2.7309491e-06, 5.7653011e-06, 1.2766246e-05]
    assert subsampled_renyi(2.0, 1000, 1e-3, ORDERS, variant="tight") == pytest.approx(wanted, rel=DIGITS)


@settings(max_examples=12)
@given(e=st.floats(1e-4, 15.0), k=st.integers(1, 10**8), rate=st.floats(1e-6, 1.0))
def test_variants_are_ordered_and_above_the_lower_bound(e: float, k: int, rate: float) -> None:
    orders = np.array([1.2, 2.0, 5.5, 64.0, 1e3])
    printed, tight, best = (
        subsampled_renyi(e, k, rate, orders, variant=v) for v in ("printed", "tight", "best")
    )
    assert np.all(np.isfinite(printed))
    assert np.all(tight <= printed * (1 + 1e-9))
    assert np.all((best > 0) & (best <= tight) & (best <= shuffle_renyi(e, k, orders) * (1 + 1e-9)))
    assert np.all(best <= pure_dp_renyi(amplified(e, rate), orders) * (1 + 1e-9))
    if k <= 10**6:
        assert np.all(best >= shuffle_renyi_lower(e, k, orders, rate=rate) * (1 - 1e-9))
    assert np.all(tight <= subsampled_renyi(e, k, min(1.3 * rate, 1.0), orders, variant="tight") * (1 + 1e-9))


RUNS = [
    # local epsilon, n, m, k, s, rounds, delta; shuffle, round, strong, optimal
    (2.0, 60000, 1, 10000, 1, 480, 1e-5, 0.181026, 0.0325392, 4.038917, 3.074603),
    (1.0, 10000, 10, 1000, 1, 500, 1e-6, 0.207636, 0.00230499, 0.280300, 0.203153),
    (1.0, 10000, 10, 1000, 5, 500, 1e-6, 0.0959764, 0.0491392, 7.156392, 5.573231),
    (0.5, 1000, 100, 1000, 10, 1000, 1e-6, 0.0281458, 0.00285049, 0.493703, 0.368879),
]


@pytest.mark.parametrize(
    ("e", "n", "m", "k", "s", "rounds", "delta", "shuffle", "one", "strong", "optimal"), RUNS
)
def test_composed_rounds(
    e: float, n: int, m: int, k: int, s: int, rounds: int, delta: float,
    shuffle: float, one: float, strong: float, optimal: float,
) -> None:  # fmt: skip
    sizes: Sizes = {"clients": n, "sampled_clients": k, "records": m, "sampled_records": s}
    each = delta / 2 / rounds / (k * s / (n * m))
    assert clones_epsilon(e, k * s, each) == pytest.approx(shuffle, rel=5e-6)
    price = cldp_round(e, each, **sizes)
    assert price.epsilon == pytest.approx(one, rel=5e-6)
    assert price.delta == pytest.approx(delta / 2 / rounds)
    found = cldp_epsilon_composition(e, delta, rounds=rounds, method="strong", **sizes)
    assert found == pytest.approx(strong, rel=5e-6)
    found = cldp_epsilon_composition(e, delta, rounds=rounds, **sizes)
    assert found == pytest.approx(optimal, rel=5e-6)
    less = cldp_epsilon_composition(e, delta, rounds=rounds // 2, **sizes)
    assert less < found
    assert cldp_epsilon_composition(1.2 * e, delta, rounds=rounds, **sizes) > found


def test_without_sampling_a_round_is_a_shuffle() -> None:
    price = cldp_round(1.0, 1e-8, clients=1000, sampled_clients=1000)
    assert price.epsilon == pytest.approx(clones_epsilon(1.0, 1000, 1e-8), rel=1e-9)
    assert price.delta == 1e-8


def test_the_run_of_girgis_2023_figure_4_2() -> None:
    sizes: Run = {"rounds": 480, "clients": 60_000, "sampled_clients": 10_000}
    closed = cldp_epsilon_composition(2.0, 1e-5, method="strong", amplification=fmt22_epsilon, **sizes)
    assert closed == pytest.approx(18.347, rel=1e-3)
    at_orders = subsampled_renyi(2.0, 10_000, 1 / 6, WHOLE_ORDERS, variant="printed")
    assert renyi_to_epsilon(WHOLE_ORDERS, 480 * at_orders, 1e-5).epsilon == pytest.approx(4.2745, rel=1e-4)


@pytest.mark.parametrize(
    ("epochs", "printed", "order", "tight", "optimal", "strong"),
    [
        (10, 0.8207, 17, 0.7100, 0.4945, 0.6984),
        (40, 1.4758, 11, 1.3196, 1.1719, 1.5681),
        (70, 1.8896, 9, 1.7124, 1.6519, 2.1842),
        (100, 2.2210, 8, 2.0299, 2.0560, 2.7049),
        (200, 3.0859, 6, 2.8527, 3.1528, 4.1310),
    ],
)
def test_mnist_accounting(
    epochs: int, printed: float, order: float, tight: float, optimal: float, strong: float
) -> None:
    sizes: Run = {"rounds": 6 * epochs, "clients": 60_000, "sampled_clients": 10_000}
    one = {v: subsampled_renyi(1.5, 10_000, 1 / 6, WHOLE_ORDERS, variant=v) for v in ("printed", "tight")}
    by_orders = {v: renyi_to_epsilon(WHOLE_ORDERS, 6 * epochs * d, 1e-5) for v, d in one.items()}
    assert by_orders["printed"].epsilon == pytest.approx(printed, abs=6e-5)
    assert by_orders["printed"].order == order
    assert by_orders["tight"].epsilon == pytest.approx(tight, abs=6e-5)
    for method, wanted in (("optimal", optimal), ("strong", strong)):
        best = min(
            cldp_epsilon_composition(1.5, 1e-5, method=method, share=share, **sizes)
            for share in (0.1, 0.3, 0.5, 0.7, 0.9)
        )
        assert best == pytest.approx(wanted, rel=0.01)


def test_self_drawn_clients_lemma() -> None:
    thesis = dss_round(1.0, 1e-6, clients=1000, rate=0.1, tails="thesis")
    exact = dss_round(1.0, 1e-6, clients=1000, rate=0.1)
    assert thesis.epsilon == pytest.approx(0.219889, abs=6e-7)
    assert thesis.delta - 1e-7 == pytest.approx(1.3068e-3, rel=1e-4)
    assert exact.delta - 1e-7 == pytest.approx(3.5318e-07, rel=1e-4)
    fixed = cldp_round(1.0, 1e-6, clients=1000, sampled_clients=100)
    assert fixed.epsilon == pytest.approx(0.0864978, abs=6e-8)
    assert fixed.epsilon < exact.epsilon < thesis.epsilon
    thesis = dss_round(1.0, 1e-6, clients=10_000, rate=0.1, tails="thesis")
    exact = dss_round(1.0, 1e-6, clients=10_000, rate=0.1)
    assert thesis.epsilon == pytest.approx(0.0445098, abs=6e-8)
    assert exact.delta - 1e-7 == pytest.approx(0.0, abs=1e-15)
    fixed = cldp_round(1.0, 1e-6, clients=10_000, sampled_clients=1000)
    assert fixed.epsilon == pytest.approx(0.0198133, abs=6e-8)
    assert dss_round(1.0, 1e-6, clients=1000, rate=1.0).epsilon >= clones_epsilon(1.0, 1000, 1e-6)
    with pytest.raises(ParameterError, match="spread"):
        dss_round(1.0, 1e-6, clients=1000, rate=0.1, tails="thesis", spread=0.4)


def test_one_of_many_records_of_a_self_drawn_client() -> None:
    """Of m records each is reported on m times as seldom: in delta, and in every divergence."""
    found = dss_round(1.0, 1e-6, clients=40, rate=0.3, records=5, spread=0.4)
    size = np.arange(1, 41)
    weight = stats.binom.pmf(size, 40, 0.3)
    outside = weight @ np.where((size < 8) | (size > 16), 1 + size / 200 * math.expm1(1.0), 0)
    assert found.delta == pytest.approx(1e-6 * 0.3 / 5 + outside)
    everybody = dss_renyi(1.0, ORDERS, clients=1000, rate=1.0, records=5)
    assert everybody == pytest.approx(cldp_renyi(1.0, ORDERS, variant="printed", records=5, **ALL))


def _uneven(local: float, messages: int, delta: float) -> float:
    return min(local, 1 / messages)


def test_another_amplification_can_be_given() -> None:
    price = cldp_round(1.0, 1e-6, clients=10, sampled_clients=5, amplification=_uneven)
    assert price.epsilon == pytest.approx(math.log1p(0.5 * math.expm1(0.2)))


def test_bad_rates_are_refused() -> None:
    with pytest.raises(ParameterError, match="rate"):
        subsampled_renyi(1.0, 10, 1.5, ORDERS)
    with pytest.raises(ParameterError, match="rate"):
        dss_round(1.0, 1e-6, clients=10, rate=0.0)
    with pytest.raises(ParameterError, match="sampled_clients"):
        cldp_round(1.0, 1e-6, clients=10, sampled_clients=11)
    with pytest.raises(ParameterError, match="sampled_records"):
        cldp_round(1.0, 1e-6, clients=10, sampled_clients=5, records=2, sampled_records=3)
    with pytest.raises(ParameterError, match="rounds"):
        cldp_epsilon_composition(1.0, 1e-5, rounds=0, clients=10, sampled_clients=5)
    with pytest.raises(ParameterError, match="delta"):
        cldp_epsilon_composition(1.0, 1.0, rounds=1, clients=10, sampled_clients=5)
    assert subsampled_renyi(1.0, 10, 0.0, ORDERS).tolist() == [0.0] * 6


def test_a_round_that_one_client_may_shuffle_alone_costs_what_one_message_costs() -> None:
    # (1 - 1/2) q n = 1: the fewest messages that the lemma counts are one, which nothing hides.
    found = dss_round(1.0, 1e-6, clients=4, rate=0.5)
    assert found.epsilon >= amplified(clones_epsilon(1.0, 1, 1e-6), 1 / 4)
