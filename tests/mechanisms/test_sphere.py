from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from tacit.errors import ParameterError
from tacit.mechanisms import PrivUnit, PrivUnitG, ball_to_sphere, draw_directions, hemisphere_scale
from tests.statistics import FALSE_ALARM, z_bound


@pytest.mark.parametrize(
    ("dim", "epsilon", "prob", "scale", "mse"),
    [
        (3, 1, 0.622459, 0.24491866, 15.670792),
        (3, 4, 0.880797, 0.76159416, 0.724062),
        (10, 1, 0.597757, 0.12831840, 59.732635),
        (10, 2, 0.686344, 0.25080001, 14.898089),
        (10, 8, 0.935522, 0.73684239, 0.841835),
        (100, 1, 0.590115, 0.03982994, 629.348480),
        (100, 2, 0.671837, 0.078722, 160.363571),
        (100, 8, 0.904739, 0.26985155, 12.732518),
        (300, 1, 0.589588, 0.022964, 1895.350565),
        (300, 3, 0.738591, 0.066981, 221.894534),
        (1000, 1, 0.589404, 0.01257153, 6326.377517),
        (1000, 4, 0.791207, 0.04791312, 434.603316),
        (1000, 5, 0.831487, 0.058487, 291.335080),
        (2000, 16, 0.957820, 0.101742, 95.604413),
        (2000, 32, 0.981435, 0.157609, 39.256490),
        (2000, 64, 0.991539, 0.233352, 17.364455),
        (2000, 128, 0.996088, 0.334806, 7.920985),
    ],
)
def test_optimal_parameters_of_privunit(
    dim: int, epsilon: float, prob: float, scale: float, mse: float
) -> None:
    unit = PrivUnit(dim, float(epsilon))
    assert unit.cap.prob == pytest.approx(prob, abs=2e-6)
    assert unit.cap.scale == pytest.approx(scale, rel=1e-5, abs=6e-7)
    assert unit.mse == pytest.approx(mse, rel=1e-7, abs=6e-7)
    assert unit.cap.edge == pytest.approx(unit.cap.scale, rel=1e-5)  # at the optimum


@pytest.mark.parametrize(
    ("dim", "epsilon", "prob", "zeta", "scale", "mse"),
    [
        (10, 2, 0.684916, 0.747723, 0.24852205, 16.142296),
        (100, 1, 0.590109, 0.395476, 0.03974622, 633.001662),
        (2000, 16, 0.957819, 4.560189, 0.101994, 96.127387),
        (2000, 128, 0.996079, 15.414554, 0.344761, 8.413000),
    ],
)
def test_optimal_parameters_of_the_surrogate(
    dim: int, epsilon: float, prob: float, zeta: float, scale: float, mse: float
) -> None:
    unit = PrivUnitG(dim, float(epsilon))
    assert unit.cap.prob == pytest.approx(prob, abs=2e-6)
    assert unit.cap.edge == pytest.approx(zeta, abs=2e-5)
    assert unit.cap.scale == pytest.approx(scale, rel=1e-5, abs=6e-7)
    assert unit.mse == pytest.approx(mse, rel=1e-6, abs=6e-7)
    assert unit.mse > PrivUnit(dim, float(epsilon)).mse


def test_three_dimensions_have_a_closed_form() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        unit = PrivUnit(3, epsilon)
        assert unit.cap.scale == pytest.approx(math.tanh(epsilon / 4), rel=1e-8)
        assert unit.mse == pytest.approx(1 / math.sinh(epsilon / 4) ** 2, rel=1e-10)


@pytest.mark.parametrize("dim", [2, 3, 10, 50])
@pytest.mark.parametrize("kind", [PrivUnit, PrivUnitG])
def test_the_law_integrates_to_one_has_two_levels_and_the_stated_moments(
    dim: int, kind: type[PrivUnit] | type[PrivUnitG]
) -> None:
    unit = kind(dim, 1.5)
    cap = unit.cap
    levels = unit.log_density([-0.9, 0.99 if kind is PrivUnit else 9.0])
    assert levels[1] - levels[0] == pytest.approx(1.5, abs=1e-12)

    def base(c: float) -> float:
        if kind is PrivUnitG:
            return float(stats.norm.pdf(c))
        return float((1 - c * c) ** ((dim - 3) / 2) / special.beta(0.5, (dim - 1) / 2))

    ends = (-1.0, 1.0) if kind is PrivUnit else (-12.0, 12.0)
    moments = [
        sum(
            integrate.quad(
                lambda c, k=k: base(c) * math.exp(float(unit.log_density(c))) * c**k, a, b, limit=200
            )[0]
            for a, b in ((ends[0], cap.edge), (cap.edge, ends[1]))
        )
        for k in range(3)
    ]
    unit_size = 1.0 if kind is PrivUnit else math.sqrt(dim)
    assert moments[0] == pytest.approx(1, abs=1e-6)
    assert moments[1] / unit_size == pytest.approx(cap.scale, rel=1e-5)
    assert moments[2] / unit_size**2 == pytest.approx(cap.second_moment, rel=1e-5)


@pytest.mark.parametrize("kind", [PrivUnit, PrivUnitG])
@pytest.mark.parametrize(("dim", "epsilon"), [(2, 1.0), (10, 2.0), (40, 8.0)])
def test_samples_follow_the_law(kind: type[PrivUnit] | type[PrivUnitG], dim: int, epsilon: float) -> None:
    unit, rng, n = kind(dim, epsilon), np.random.default_rng(1), 40_000
    v = draw_directions(1, dim, rng)
    reports = unit.sample(np.repeat(v, n, axis=0), rng)
    if kind is PrivUnit:
        assert np.allclose((reports**2).sum(axis=1), unit.squared_norm, rtol=1e-12)
    bound = z_bound(4)
    along = reports @ v[0]
    for got, wanted in (
        (along, 1.0),
        (along**2, unit.cap.second_moment / unit.cap.scale**2),
        (((reports - v) ** 2).sum(axis=1), unit.mse),
    ):
        tolerance = bound * got.std() / math.sqrt(n) + 1e-9
        assert abs(got.mean() - wanted) <= tolerance < 0.2 * wanted
    # How many lie in the cap; a level 10% higher shows.
    edge = unit.cap.edge / unit.cap.scale / (1.0 if kind is PrivUnit else math.sqrt(dim))
    inside = int((along >= edge).sum())
    assert stats.binomtest(inside, n, unit.cap.prob).pvalue > FALSE_ALARM
    # Across, directions are uniform: no component has a mean.
    across = reports - along[:, None] * v
    assert np.all(np.abs(across.mean(axis=0)) <= z_bound(dim) * across.std(axis=0) / math.sqrt(n) + 1e-12)


@pytest.mark.parametrize(
    ("dim", "scales"),
    [
        (1, [20.0166638896, 4.0829881651, 2.1639534137, 1.3130352855]),
        (2, [31.4421021124, 6.4135428120, 3.3991300737, 2.0625110034]),
        (3, [40.0333277791, 8.1659763301, 4.3279068275, 2.6260705710]),
        (10, [77.3770481672, 15.7833280140, 8.3650466656, 5.0757106725]),
        (101, [251.4996316923, 51.3007574782, 27.1890205859, 16.4976487852]),
        (1000, [793.1275973507, 161.7817340215, 85.7431178986, 52.0268775542]),
    ],
)
def test_hemisphere_scales(dim: int, scales: list[float]) -> None:
    for epsilon, scale in zip((0.1, 0.5, 1.0, 2.0), scales, strict=True):
        found = hemisphere_scale(dim, epsilon)
        assert found == pytest.approx(scale, rel=1e-10)
        assert found <= 0.75 * math.sqrt(math.pi * dim) / math.tanh(epsilon / 2)  # Lemma A.10
        paper = math.sqrt(math.pi) / 2 * dim / math.tanh(epsilon / 2)
        paper *= math.exp(special.gammaln((dim - 1) / 2 + 1) - special.gammaln(dim / 2 + 1))
        assert found == pytest.approx(paper, rel=1e-10)


def test_lifted_vectors_are_unit_vectors_with_the_vector_inside() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, -0.4], [1.0 + 1e-12, 0.0]])
    lifted = ball_to_sphere(rows)
    assert np.allclose((lifted**2).sum(axis=1), 1, rtol=1e-15)
    assert np.allclose(lifted[:, :2], rows, atol=1e-11)
    assert lifted[0].tolist() == [0.0, 0.0, 1.0]


def test_the_printed_sign_of_m_is_wrong() -> None:
    # Lowy (2023), Algorithm 12, prints a plus: the two terms of m have a minus between them.
    d, gamma, p = 5, 0.3, 0.8
    a = (d - 1) / 2
    q = float(special.betainc(a, a, (1 - gamma) / 2))
    c = (1 - gamma**2) ** a / (2 ** (d - 2) * (d - 1) * special.beta(a, a))
    minus, plus = (c * (p / q + s * (1 - p) / (1 - q)) for s in (-1, 1))
    assert (minus, plus) == pytest.approx((0.3976342711, 0.4841048593), abs=1e-9)
    epsilon = math.log(p / (1 - p)) + math.log((1 - q) / q)
    assert PrivUnit(d, epsilon, p).cap.scale == pytest.approx(minus, rel=1e-9)


@pytest.mark.parametrize("kind", [PrivUnit, PrivUnitG])
def test_bad_input_is_refused(kind: type[PrivUnit] | type[PrivUnitG]) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="dim must be a whole number >= 2, got 1"):
        kind(1, 1.0)
    for epsilon in (0.0, -1.0, math.nan, 501.0):
        with pytest.raises(ParameterError, match="epsilon must be in"):
            kind(3, epsilon)
    for prob in (0.4, 0.99, math.nan):
        with pytest.raises(ParameterError, match="cap_prob must be from 1/2"):
            kind(3, 1.0, prob)
    for rows in (np.eye(3) * 1.1, np.eye(2), np.full((1, 3), np.nan)):
        with pytest.raises(ParameterError, match="rows must be unit vectors"):
            kind(3, 1.0).sample(rows, rng)
    with pytest.raises(ParameterError, match="epsilon must be in"):
        hemisphere_scale(3, 31.0)
