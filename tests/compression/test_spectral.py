"""Scale and error of the decoders: enumerated, closed, simulated and in the limit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.compression import (
    Linear,
    SpectralMoments,
    beta_bar,
    spectral_moments,
    transform,
)
from tacit.compression.maps import MapKind
from tacit.compression.spectral import _free
from tacit.errors import ParameterError
from tests.compression.enumeration import discounted, spectra, srht_maps, worlds
from tests.statistics import z_bound


def crossing(first: SpectralMoments, second: SpectralMoments) -> float:
    """Return the correlation at which two decoders err alike; both errors are linear in it."""
    at_zero, at_one = (first.normalized_mse(R) - second.normalized_mse(R) for R in (0.0, 1.0))
    return at_zero / (at_zero - at_one)


# Computed independently: n, k, d, T, beta, A1, A2 of Rand-k-Spatial
COUNTED = [
    (2, 1, 4, "max", 4.57142857, 4.24489796, 0.32653061),
    (2, 1, 4, "avg", 4.57142857, 4.24489796, 0.32653061),
    (2, 1, 4, 0.5, 4.36363636, 4.09917355, 0.52892562),
    (8, 4, 64, "avg", 18.69561197, 16.83540731, 0.46505117),
    (8, 4, 64, "max", 19.83730798, 17.65400518, 0.31190040),
    (8, 4, 64, 0.5, 18.45404226, 16.69711899, 0.50197808),
    (21, 12, 1024, "avg", 92.37978266, 87.58549752, 0.45659859),
    (10, 102, 1024, "avg", 13.60050230, 10.95208783, 0.52968289),
    (10, 102, 1024, "max", 15.38922648, 11.98084648, 0.37870889),
    (50, 20, 1024, "avg", 69.10060726, 55.66992548, 0.53722727),
    (50, 20, 1024, "max", 79.74252024, 61.72663765, 0.36767107),
]


def named(T: Any, n: int) -> Linear:
    return Linear(T) if isinstance(T, float) else transform(T, n)


@pytest.mark.parametrize(("n", "k", "d", "T", "beta", "A1", "A2"), COUNTED)
def test_rand_k_spatial_is_that_of_the_table(
    n: int, k: int, d: int, T: Any, beta: float, A1: float, A2: float
) -> None:
    found = spectral_moments(n, k, d, named(T, n), projection="subsample")
    assert (found.beta, found.A1, found.A2) == pytest.approx((beta, A1, A2), abs=6e-9)
    assert found.method == "closed"


# n, k, d, rho, beta, A1, A2 by enumeration of all maps
ENUMERATED = [
    (2, 1, 2, 0.5, 2.4, 2.08, 0.64),
    (2, 1, 2, 1.0, 2.6666666667, 2.2222222222, 0.4444444444),
    (2, 1, 2, -0.5, 1.3333333333, 2.2222222222, 1.7777777778),
    (2, 1, 4, 0.5, 4.3243243243, 4.1736872007, 0.3012742472),
    (2, 1, 4, 1.0, 4.2666666667, 4.8829629630, -0.6162962963),
    (2, 2, 4, 0.5, 126 / 53, 2.1295834817, 0.4955500178),
    (2, 2, 4, 1.0, 2.4, 3.12, -0.72),
    (3, 1, 4, 0.75, 4.7523267892, 4.8457150725, -0.0622588555),
    (3, 1, 4, 1.0, 4.5443786982, 6.3415146528, -0.8985679773),
]


@pytest.mark.parametrize(("n", "k", "d", "rho", "beta", "A1", "A2"), ENUMERATED)
def test_rand_proj_spatial_is_that_of_the_enumeration(
    n: int, k: int, d: int, rho: float, beta: float, A1: float, A2: float
) -> None:
    sums, count = np.zeros(3), 0
    for batch in worlds(srht_maps(d, k), n):
        values, _ = spectra(batch)
        f = discounted(values, rho)
        sums += [(values * f).sum(), (values * f**2).sum(), (values**2 * f**2).sum()]
        count += len(batch)
    m, a1, a2 = (sums / (count * d)).tolist()
    exact = SpectralMoments(n=n, k=k, dim=d, padded_dim=d, m=m, a1=a1, a2=a2, noise=a1)
    assert (exact.beta, exact.A1, exact.A2) == pytest.approx((beta, A1, A2), abs=6e-11 * 100)
    found = spectral_moments(n, k, d, Linear(rho), rel_tol=3e-3)
    if found.method == "closed":
        assert (found.beta, found.A1, found.A2) == pytest.approx((beta, A1, A2), abs=6e-11 * 100)
    else:
        assert abs(found.m - m) <= z_bound(27) * found.m_stderr
        assert abs(found.a1 - a1) <= z_bound(27) * found.a1_stderr
        assert abs(found.a2 - a2) <= z_bound(27) * found.a2_stderr
        assert found.m_stderr < 4e-3 * m


@pytest.mark.parametrize(
    ("d", "values"),
    [
        (2, (2.22222222222, 2.4, 2.54545454545, 2.66666666667)),
        (4, (4.20525657071, 4.32432432432, 4.35181914518, 4.26666666667)),
        (8, (8.19637035647, 8.28465423402, 8.24943532825, 8.03137254902)),
        (16, (16.1919191495, 16.2664889933, 16.2132322314, 16.0002441444)),
        (64, (64.1886003605, 64.2539598989, 64.1931979289, 64.0)),
        (1024, (1024.18756867, 1024.25024435, 1024.18784409, 1024.0)),
    ],
)
def test_two_parties_with_one_number_each(d: int, values: tuple[float, ...]) -> None:
    found = [beta_bar(2, 1, d, Linear(rho)) for rho in (0.25, 0.5, 0.75, 1.0)]
    assert found == pytest.approx(list(values), rel=2e-12 * 3)


# Computed independently: n, k, d, T, beta in the limit, A1, A2
LIMIT = [
    (4, 4, 64, "avg", 16.75702, 17.340, -0.2912),
    (8, 4, 64, "avg", 18.03695, 18.026, 0.0027),
    (8, 4, 64, 0.5, 18.00000, 17.500, 0.1429),
    (8, 8, 64, "avg", 10.36653, 9.601, 0.1914),
    (5, 10, 256, "avg", 26.62143, 27.144, -0.2090),
    (10, 5, 1024, "avg", 207.05858, 207.555, -0.0994),
    (10, 25, 1024, "avg", 43.36725, 43.601, -0.0467),
    (10, 51, 1024, "avg", 22.68346, 22.515, 0.0336),
    (10, 102, 1024, "avg", 13.02569, 11.972, 0.2107),
    (10, 102, 1024, 0.5, 12.89889, None, None),
    (50, 5, 1024, "avg", 217.83890, 216.73, 0.0444),
    (50, 10, 1024, "avg", 116.22257, 113.35, 0.1149),
    (50, 20, 1024, "avg", 66.49636, 60.027, 0.2588),
    (50, 20, 1024, 0.5, 66.36323, None, None),
    (10, 5, 512, "avg", 104.69530, 105.13, -0.0870),
    (10, 25, 512, "avg", 23.07739, 22.926, 0.0303),
    (10, 50, 512, "avg", 13.21206, 12.194, 0.2037),
    (50, 1, 512, "avg", 524.56258, 524.45, 0.0046),
    (4, 4, 64, "max", 16.0, 20.0, -1.3333),
    (8, 4, 64, "max", 16.0, 30.0, -2.0),
    (10, 5, 1024, "max", 204.8, 214.2620, -1.0513),
    (10, 25, 1024, "max", 40.96, 52.867, -1.3230),
]


@pytest.mark.parametrize(("n", "k", "d", "T", "beta", "A1", "A2"), LIMIT)
def test_the_limit_is_that_of_the_table(
    n: int, k: int, d: int, T: Any, beta: float, A1: float | None, A2: float | None
) -> None:
    found = spectral_moments(n, k, d, named(T, n), method="free")
    assert found.beta == pytest.approx(beta, abs=6e-6)
    if A1 is not None:
        assert pytest.approx(A1, rel=5e-5) == found.A1
        assert pytest.approx(A2, abs=6e-5) == found.A2


@given(n=st.integers(2, 60), p=st.floats(1e-3, 1), rho=st.floats(0.01, 0.99))
def test_the_limit_solves_the_equations_of_free_convolution(n: int, p: float, rho: float) -> None:
    # In another form than the code's: v is the root of a quadratic, the moments follow from v and v'.
    a = (1 - rho) / rho
    B = n * n * p + (n - 2) * a - n
    v = (-B + math.sqrt(B * B + 4 * a * (a + n) * (n - 1))) / (2 * a * (a + n))
    slope = -((2 * a + n) * v * v + (n - 2) * v) / (2 * a * (a + n) * v + B)
    printed = (
        (1 - a * v) / rho,
        (v + a * slope) / rho**2,
        (1 - 2 * a * v - a * a * slope) / rho**2,
    )
    assert _free(n, p, rho)[:3] == pytest.approx(printed, rel=1e-6, abs=1e-7)


@given(n=st.integers(2, 60), p=st.floats(1e-4, 0.9))
def test_the_limit_at_its_ends(n: int, p: float) -> None:
    c = n * p
    assert _free(n, p, 0.0)[:3] == pytest.approx((c, c, c * (1 - p) + c * c))
    if c < 0.99:
        assert _free(n, p, 1.0)[:3] == pytest.approx((c, c * (1 - p) / (1 - c), c))
    elif c > 1.01:
        assert _free(n, p, 1.0)[:3] == pytest.approx((1, (n - 1) / (n * (c - 1)), 1))


# An independent simulation: beta with its standard error, A1, A2
SIMULATED = [
    (4, 4, 64, "avg", 16.7606, 0.0025, 17.333, -0.2862),
    (8, 4, 64, "avg", 18.0475, 0.0029, 18.016, 0.0080),
    (8, 4, 64, 0.5, 18.0081, 0.0028, 17.492, 0.1476),
    (8, 8, 64, "avg", 10.3737, 0.0014, 9.594, 0.1951),
    (5, 10, 256, "avg", 26.6230, 0.0015, 27.143, -0.2079),
]


@pytest.mark.parametrize(("n", "k", "d", "T", "beta", "stderr", "A1", "A2"), SIMULATED)
def test_simulation_agrees_with_the_table(
    n: int, k: int, d: int, T: Any, beta: float, stderr: float, A1: float, A2: float
) -> None:
    found = spectral_moments(n, k, d, named(T, n), rel_tol=4e-4)
    assert found.method == "mc"
    assert found.m_stderr <= 4e-4 * found.m
    assert abs(found.beta - beta) <= z_bound(5) * math.hypot(found.beta_stderr, stderr)
    assert pytest.approx(A1, rel=6e-3) == found.A1
    assert pytest.approx(A2, abs=2e-2) == found.A2
    limit = spectral_moments(n, k, d, named(T, n), method="free")
    assert limit.beta == pytest.approx(found.beta, rel=7e-4 + 6 * 4e-4)


@pytest.mark.parametrize("kind", ["srht", "haar", "gaussian", "row_normalized_gaussian", "count_sketch"])
def test_simulation_at_slope_zero_is_the_closed_form(kind: MapKind) -> None:
    # For maps without orthonormal rows too: their a1 is not a function of the spectrum.
    n, k, d = 3, 2, 16
    closed = spectral_moments(n, k, d, Linear(0.0), projection=kind)
    found = spectral_moments(n, k, d, Linear(0.0), projection=kind, method="mc", rel_tol=4e-3)
    bound = z_bound(20)
    assert abs(found.m - closed.m) <= bound * found.m_stderr + 1e-12
    assert abs(found.a1 - closed.a1) <= bound * found.a1_stderr + 1e-12
    assert abs(found.a2 - closed.a2) <= bound * found.a2_stderr + 1e-12
    assert found.noise == pytest.approx(closed.noise, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "mse"),
    [
        ("srht", 1.875),
        ("haar", 1.875),
        ("subsample", 1.875),
        ("gaussian", 2.03125),
        ("row_normalized_gaussian", 1.96875),
        ("count_sketch", 1.96875),
    ],
)
def test_error_of_every_kind_without_discount(kind: MapKind, mse: float) -> None:
    # d = 64, n = 8, k = 4, orthogonal unit vectors
    found = spectral_moments(8, 4, 64, Linear(0.0), projection=kind)
    assert found.mse(8.0, 0.0) == pytest.approx(mse)
    assert found.beta == pytest.approx(16)


@pytest.mark.parametrize(
    ("kind", "mse"),
    [
        ("srht", 1.314),
        ("haar", 1.313),
        ("row_normalized_gaussian", 1.343),
        ("count_sketch", 1.342),
        ("gaussian", 1.359),
        ("subsample", 1.531),
    ],
)
def test_error_of_every_kind_for_identical_vectors(kind: MapKind, mse: float) -> None:
    # Simulated independently in 600 draws of an error whose spread is about a tenth of it
    found = spectral_moments(8, 4, 64, Linear(0.5), projection=kind, rel_tol=4e-3)
    assert found.mse(8.0, 56.0) == pytest.approx(mse, rel=0.02)


@pytest.mark.parametrize("n", [1, 3])
def test_one_party_or_all_coordinates_need_no_discount(n: int) -> None:
    for T in (Linear(0.4), Linear(1.0), np.sqrt):
        whole = spectral_moments(n, 8, 8, T)
        assert whole.normalized_mse(0.0) == pytest.approx(0, abs=1e-12)
        assert whole.beta == pytest.approx(float(T(float(n))))
        assert spectral_moments(1, 3, 8, T).normalized_mse(0.0) == pytest.approx(8 / 3 - 1)


def test_rand_k_errors() -> None:
    for (n, k, d), mse in {(8, 4, 64): 1.875, (10, 5, 1024): 20.38, (10, 102, 1024): 0.9039216}.items():
        found = spectral_moments(n, k, d, Linear(0.0), projection="subsample")
        assert pytest.approx((d / k, 1.0)) == (found.A1, found.A2)
        assert found.mse(n, 0.0) == pytest.approx(mse, rel=1e-7)
    assert spectral_moments(1, 1, 4, Linear(0.0), projection="subsample").mse(1.0, 0.0) == 3.0
    assert spectral_moments(2, 4, 4, Linear(0.0), projection="subsample").mse(2.0, 1.0) == 0.0
    assert spectral_moments(2, 1, 4, Linear(0.0)).mse(0.0, 0.0) == 0.0


# n, k, d; R* of RPS(avg) and RkS(avg) against Rand-k, of RPS against RkS; ratios at R = n - 1
PLANNER = [
    (10, 5, 1024, 2.506, 1.957, 3.122, 0.9650, 0.9799),
    (10, 25, 1024, 2.523, 1.958, 3.169, 0.8303, 0.9016),
    (10, 51, 1024, 2.522, 1.956, 3.205, 0.6719, 0.8048),
    (10, 102, 1024, 2.449, 1.941, 3.198, 0.4280, 0.6327),
    (50, 5, 1024, 12.48, 9.906, 15.78, 0.8288, 0.8972),
    (50, 10, 1024, 12.37, 9.838, 15.83, 0.6803, 0.8026),
    (50, 20, 1024, 11.91, 9.659, 15.65, 0.4523, 0.6373),
    (10, 50, 512, 2.454, 1.942, 3.200, 0.4358, 0.6390),
    (50, 10, 512, 11.91, 9.659, 15.65, 0.4523, 0.6373),
]


@pytest.mark.parametrize(("n", "k", "d", "rps", "rks", "between", "ratio_rps", "ratio_rks"), PLANNER)
def test_where_one_decoder_beats_another(
    n: int, k: int, d: int, rps: float, rks: float, between: float, ratio_rps: float, ratio_rks: float
) -> None:
    avg = transform("avg", n)
    projected = spectral_moments(n, k, d, avg)
    counted = spectral_moments(n, k, d, avg, projection="subsample")
    plain = spectral_moments(n, k, d, Linear(0.0), projection="subsample")
    assert crossing(projected, plain) == pytest.approx(rps, rel=3e-4)
    assert crossing(counted, plain) == pytest.approx(rks, rel=3e-4)
    assert crossing(projected, counted) == pytest.approx(between, rel=4e-4)
    alike = float(n - 1)
    base = plain.normalized_mse(alike)
    assert projected.normalized_mse(alike) / base == pytest.approx(ratio_rps, abs=6e-5)
    assert counted.normalized_mse(alike) / base == pytest.approx(ratio_rks, abs=6e-5)


@pytest.mark.parametrize(
    ("n", "k", "R", "counted", "projected"),
    [
        (21, 4, (4, 8, 12, 16), (12.111493, 12.035592, 11.931797, 11.809262),
         (12.1054, 11.9937, 11.8070, 11.5418)),
        (51, 20, (10, 20, 30, 40), (0.955576, 0.889527, 0.800367, 0.694723),
         (0.9511, 0.8624, 0.7204, 0.5078)),
        (5, 200, (1, 2, 3), (0.793226, 0.721551, 0.624353), (0.7878, 0.6849, 0.5022)),
    ],
)  # fmt: skip
def test_best_errors_for_a_known_correlation(
    n: int, k: int, R: tuple[float, ...], counted: tuple[float, ...], projected: tuple[float, ...]
) -> None:
    # Jiang (2025), Figures 2.3 and A.1, computed independently; and MSE_opt = (S1 / n^2) (beta - 1 - R)
    for correlation, want_counted, want_projected in zip(R, counted, projected, strict=True):
        T = transform("opt", n, correlation=correlation)
        spatial = spectral_moments(n, k, 1024, T, projection="subsample")
        assert spatial.mse(n, n * correlation) == pytest.approx(want_counted, abs=6e-7)
        found = spectral_moments(n, k, 1024, T)
        assert found.mse(n, n * correlation) == pytest.approx(want_projected, abs=6e-5)
        for moments in (spatial, found):
            assert moments.normalized_mse(correlation) == pytest.approx(moments.beta - 1 - correlation)


def test_negative_correlation_favours_counting() -> None:
    T = transform("opt", 2, correlation=-0.9)
    assert spectral_moments(2, 100, 1024, T, projection="subsample").normalized_mse(-0.9) == pytest.approx(
        5.35, abs=5e-3
    )
    assert spectral_moments(2, 100, 1024, T).normalized_mse(-0.9) == pytest.approx(8.45, abs=5e-3)


def test_more_numbers_than_coordinates() -> None:
    # Jiang (2025), Appendix A.1.2: the error is not Rand-k's
    T = transform("opt", 50, correlation=24.5)
    assert spectral_moments(50, 8, 64, T, rel_tol=1e-3).normalized_mse(24.5) == pytest.approx(4.047, rel=0.02)
    counted = spectral_moments(50, 8, 64, T, projection="subsample")
    assert counted.normalized_mse(24.5) == pytest.approx(4.145, abs=6e-4)


def test_padding() -> None:
    # Simulated independently; for six parties `avg` is rho = 3/5
    found = spectral_moments(6, 5, 48, Linear(5 / 9), rel_tol=1e-3)
    assert found.padded_dim == 64
    assert found.normalized_mse(0.0) == pytest.approx(9.8316, rel=2e-3)
    assert found.normalized_mse(1.0) - found.normalized_mse(0.0) == pytest.approx(-0.7236, abs=6e-3)
    plain = spectral_moments(6, 5, 48, Linear(0.0))
    assert plain.normalized_mse(2.0) == pytest.approx(47 / 63 * (64 / 5 - 1))


def test_noise_on_the_messages() -> None:
    # At T = 1, variance * d'^2 / (n k), and d / d' of it after padding is cut off
    assert spectral_moments(4, 3, 16, Linear(0.0)).noise_mse(2.0) == pytest.approx(2 * 16**2 / 12)
    assert spectral_moments(4, 3, 12, Linear(0.0)).noise_mse(2.0) == pytest.approx(2 * 16 * 12 / 12)


def test_methods() -> None:
    avg = transform("avg", 10)
    assert spectral_moments(10, 5, 64, avg, rel_tol=1e-2).method == "mc"
    assert spectral_moments(10, 5, 512, avg).method == "free"
    assert spectral_moments(20, 1000, 2**20, Linear(1.0)).method == "free"
    assert spectral_moments(4, 5, 512, np.sqrt, rel_tol=1e-2).method == "mc"
    again = spectral_moments(4, 5, 512, np.sqrt, rel_tol=1e-2)
    assert again is spectral_moments(4, 5, 512, np.sqrt, rel_tol=1e-2)  # kept
    scaled = spectral_moments(2, 5, 512, lambda values: 3 * (1 + 0.5 * (values - 1)), rel_tol=1e-2)
    assert pytest.approx(spectral_moments(2, 5, 512, Linear(0.5)).A1, rel=1e-3) == scaled.A1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n": 0}, "n must be"),
        ({"k": 17}, "k must be a whole number from 1 to 16"),
        ({"dim": 0}, "dim must be"),
        ({"transform": Linear(-1.0)}, "rho must be > "),
        ({"transform": lambda values: 1.5 - values}, "finite and > 0 on the spectrum"),
        ({"transform": Linear(1.5)}, "is not at 0.31"),
        ({"projection": "ldpc"}, "projection must be one of"),
        ({"method": "exact"}, "method must be one of"),
        ({"method": "closed"}, "method closed has no form"),
        ({"method": "free", "projection": "gaussian"}, "method free needs"),
        ({"method": "free", "transform": np.sqrt}, "method free needs"),
        ({"method": "free", "transform": Linear(1.0), "n": 2, "k": 8}, "diverges"),
        ({"method": "mc", "projection": "gaussian", "n": 1000, "k": 10}, "min"),
        ({"rel_tol": 0.0}, "rel_tol must be"),
        ({"max_draws": 1}, "max_draws must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], match: str) -> None:
    arguments: dict[str, Any] = {
        "n": 2,
        "k": 3,
        "dim": 16,
        "transform": Linear(0.5),
        "rel_tol": 0.1,
        **change,
    }
    with pytest.raises(ParameterError, match=match):
        spectral_moments(**arguments)


def test_bad_sums_and_correlations_are_refused() -> None:
    found = spectral_moments(3, 2, 8, Linear(0.0))
    for correlation in (2.1, -1.1, math.nan):
        with pytest.raises(ParameterError, match="correlation must be in"):
            found.normalized_mse(correlation)
    with pytest.raises(ParameterError, match="S1 must be"):
        found.mse(-1.0, 0.0)
    with pytest.raises(ParameterError, match="variance must be"):
        found.noise_mse(math.nan)


@pytest.mark.parametrize(("n", "k", "dim"), [(64, 2, 8), (32, 8, 16), (40, 32, 64)])
@pytest.mark.parametrize("rho", [0.1, 0.99])
def test_many_parties_are_at_the_limit_even_in_few_dimensions(n: int, k: int, dim: int, rho: float) -> None:
    limit = spectral_moments(n, k, dim, Linear(rho))
    assert limit.method == "free"
    drawn = spectral_moments(n, k, dim, Linear(rho), method="mc", max_draws=256)
    assert abs(limit.beta / drawn.beta - 1) <= 1e-4 + 6 * drawn.beta_stderr / drawn.beta
    assert limit.normalized_mse(0.0) == pytest.approx(drawn.normalized_mse(0.0), rel=3e-3)
