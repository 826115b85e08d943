from __future__ import annotations

import math
from itertools import product

import msgspec
import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError
from tacit.means import BitplaneMean, Message, Round, plane_levels, plane_shares
from tacit.means.planes import Allocation, quantize
from tacit.privacy import Compose, PrivacyBudget, PureDP, Repeat, Shuffled, TrustModel, epsilon_of, meets
from tests.contract.randomized_cases import planes_of, symbol_laws
from tests.statistics import z_bound

LOCAL, SHUFFLE = TrustModel.LOCAL, TrustModel.SHUFFLE
ONE = Round(n=1, radius=1.0)
X = np.array([[0.9, -0.3, 1.0, -1.0, 0.123]])


def thesis(planes: int, samples: int, v: float, dim: int = 5) -> BitplaneMean:
    levels = plane_levels(v, planes=planes, samples=samples, allocation="ldp", rule="v")
    return BitplaneMean(dim=dim, samples=samples, local_epsilons=levels, blocks="padded", decoder="horvitz")


@pytest.mark.parametrize(
    ("planes", "ldp", "printed"),
    [
        (2, [0.5, 0.5], [0.715896, 0.284104]),
        (3, [0.442493, 0.278753, 0.278753], [0.531926, 0.335092, 0.132982]),
        (4, [0.412599, 0.259921, 0.163740, 0.163740], [0.457812, 0.288404, 0.181683, 0.072101]),
    ],
)
def test_shares_of_the_planes(planes: int, ldp: list[float], printed: list[float]) -> None:
    assert plane_shares(planes, "ldp") == pytest.approx(ldp, abs=1e-6)
    # The printed exponent of the last plane (Girgis 2023, Algorithm 3.5.1) belongs to no optimum.
    assert plane_shares(planes, "thesis") == pytest.approx(printed, abs=1e-6)


@pytest.mark.parametrize(
    ("planes", "ldp", "printed"),
    [
        (1, 1.0, None),
        (2, 2.0, 3.585),
        (3, 2.885492, 4.974),
        (4, 3.559227, 5.423),
        (6, 4.352512, None),
        (10, 4.839151, None),
    ],
)
def test_what_shares_cost(planes: int, ldp: float, printed: float | None) -> None:
    W = 4.0 ** -np.append(np.arange(1, planes), planes - 1)
    assert (W / plane_shares(planes, "ldp") ** 2).sum() == pytest.approx(ldp, abs=1e-6)
    if printed is not None:
        assert (W / plane_shares(planes, "thesis") ** 2).sum() == pytest.approx(printed, abs=1e-3)
    root = plane_shares(planes, "rdp")
    assert ((root**2).sum(), (W / root**2).sum()) == pytest.approx((1, 1), rel=1e-12)
    # No other split does better: the ldp shares are the optimum of their kind.
    for other in np.random.default_rng(0).dirichlet(np.ones(planes), 50):
        assert (W / other**2).sum() >= ldp - 1e-9


@pytest.mark.parametrize("planes", [1, 2, 3, 8, 30])
def test_numbers_are_taken_apart_exactly(planes: int) -> None:
    z = np.concatenate([[0.0, 1.0, 0.5, 0.25, 1 - 2.0**-53], np.random.default_rng(0).random(50)])
    whole, q = quantize(z, planes)
    assert np.array_equal((whole + q) / 2 ** (planes - 1), z)
    assert np.all((q >= 0) & (q <= 1) & (whole >= 0) & (whole < 2 ** (planes - 1)))
    if planes <= 8:
        for number, t, last in zip(z, whole, q, strict=True):
            digits = [(int(t) >> k) & 1 for k in range(planes - 2, -1, -1)]
            assert [*digits, last] == pytest.approx(planes_of(float(number), planes), abs=1e-12)


@pytest.mark.parametrize(
    ("planes", "samples", "variance"), [(1, 5, 33.334871), (3, 2, 52.151745), (4, 5, 111.266458)]
)
def test_variances_with_the_thesis_rule(planes: int, samples: int, variance: float) -> None:
    mean = thesis(planes, samples, 4.0)
    assert mean.variance_on(X, ONE) == pytest.approx(variance, abs=5e-7)
    rng, trials = np.random.default_rng(1), 1500
    squares = np.array([((mean.estimate(X, ONE, rng=rng) - X[0]) ** 2).sum() for _ in range(trials)])
    tolerance = z_bound(1) * squares.std() / math.sqrt(trials)
    assert abs(squares.mean() - variance) <= tolerance < 0.2 * variance


@pytest.mark.parametrize("decoder", ["horvitz", "centered"])
@pytest.mark.parametrize(("dim", "samples", "planes"), [(1, 1, 1), (1, 1, 3), (2, 1, 2), (3, 2, 1)])
def test_unbiased_with_the_stated_variance_by_enumeration(
    dim: int, samples: int, planes: int, decoder: str
) -> None:
    mean = BitplaneMean(
        dim=dim,
        samples=samples,
        local_epsilons=(0.9,) * planes,
        decoder=decoder,  # type: ignore[arg-type]
    )
    width = mean.encode(np.zeros((1, dim)), ONE, party=0, rng=np.random.default_rng(0))[0].width
    for row in product((-1.0, 0.3, 1.0), repeat=dim):
        laws, moment, square = symbol_laws(mean, np.array(row)), np.zeros(dim), 0.0
        for symbols in product(*(range(len(law)) for law in laws)):
            prob = math.prod(law[s] for law, s in zip(laws, symbols, strict=True))
            message = Message(payload=np.array(symbols) - 2 ** (width - 1), width=width)
            found = mean.decode([message], ONE)
            moment += prob * found
            square += prob * float(((found - row) ** 2).sum())
        assert moment == pytest.approx(row, abs=1e-11)
        assert square == pytest.approx(mean.variance_on(np.array([row]), ONE), rel=1e-9)
        assert square <= mean.error(1).variance * (1 + 1e-12)


def test_the_worst_case_is_attained() -> None:
    mean, grid = thesis(3, 2, 4.0), np.linspace(-1, 1, 4001)
    worst = max(mean.variance_on(np.full((1, 5), x), ONE) for x in grid)
    assert mean.error(1).variance == pytest.approx(worst, rel=1e-3)
    assert mean.error(1).variance >= worst


FIG_A = {
    0.5: [4.25, 4.16770, 8.0625, 8.02096, 11.55759, 11.52640, 14.24081, 14.21222],
    1.0: [1.25, 1.17067, 2.0625, 2.02135, 2.90112, 2.87011, 3.56313, 3.53468],
    2.0: [0.5, 0.43102, 0.5625, 0.52284, 0.73700, 0.70670, 0.89371, 0.86584],
    3.0: [0.36111, 0.30514, 0.28472, 0.24736, 0.33624, 0.30705, 0.39938, 0.37242],
    4.0: [0.3125, 0.26901, 0.1875, 0.15301, 0.19597, 0.16823, 0.22636, 0.20059],
    5.0: [0.29, 0.25683, 0.1425, 0.11121, 0.13104, 0.10499, 0.14628, 0.12191],
}


@pytest.mark.parametrize("epsilon", FIG_A)
def test_worst_errors_of_a_number_under_local_trust(epsilon: float) -> None:
    # Figure 3.2a: r = 0.5; with the thesis' p and with the exact one.
    half = Round(n=1, radius=0.5)
    for planes in range(1, 5):
        for column, rule in enumerate(("v", "level")):
            levels = plane_levels(epsilon, planes=planes, samples=1, allocation="ldp", rule=rule)  # type: ignore[arg-type]
            mean = BitplaneMean(dim=1, samples=1, local_epsilons=levels)
            worst = mean.error(1).variance * half.radius**2
            assert worst == pytest.approx(FIG_A[epsilon][2 * planes - 2 + column], abs=6e-6)
        budget = PrivacyBudget(epsilon)
        made = BitplaneMean.calibrated(dim=1, planes=planes, samples=1, budget=budget, n=1)
        assert made.error(1).variance / 4 == pytest.approx(FIG_A[epsilon][2 * planes - 1], abs=6e-6)
    if epsilon == 1.0:
        for planes, worst in ((2, 3.64762), (3, 4.99005), (4, 5.42712)):
            levels = plane_levels(epsilon, planes=planes, samples=1, allocation="thesis", rule="v")
            mean = BitplaneMean(dim=1, samples=1, local_epsilons=levels)
            assert mean.error(1).variance / 4 == pytest.approx(worst, abs=6e-6)


# Figure 3.2b: n = 1000, delta = 1e-5, r = 0.5.
FIG_B = [
    (0.5, 4, "rdp", 8.79e-5), (1.0, 4, "ldp", 3.21e-5), (1.0, 6, "rdp", 2.66e-5), (3.0, 4, "rdp", 9.89e-6)
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "planes", "allocation", "error"), FIG_B)
def test_worst_errors_of_a_number_under_shuffling(
    epsilon: float, planes: int, allocation: Allocation, error: float
) -> None:
    def at(log_scale: float) -> BitplaneMean:
        scale = math.exp(log_scale)
        levels = plane_levels(scale, planes=planes, samples=1, allocation=allocation, rule="v")
        return BitplaneMean(dim=1, samples=1, local_epsilons=levels, trust=SHUFFLE)

    # What is calibrated errs by the printed value, within 1 %: noise for that much more is within the
    # budget, and for that much less is not.
    for share, within in ((1.01, True), (0.99, False)):
        root = optimize.brentq(
            lambda log_scale, most=share * error: math.log(at(log_scale).error(1000).variance / 4 / most),
            -4.0,
            4.0,
        )
        assert meets(at(root).event(1000, SHUFFLE), PrivacyBudget(epsilon, 1e-5)) == within


def test_calibration_under_shuffling_meets_its_budget() -> None:
    epsilon, planes, allocation, error = FIG_B[-1]
    mean = BitplaneMean.calibrated(
        dim=1,
        planes=planes,
        samples=1,
        budget=PrivacyBudget(epsilon, 1e-5),
        n=1000,
        trust=SHUFFLE,
        allocation=allocation,
    )
    assert mean.error(1000).variance / 4 == pytest.approx(error, rel=1e-2)
    assert epsilon_of(mean.event(1000, SHUFFLE), 1e-5) <= epsilon * (1 + 1e-12)


def test_local_level_by_enumeration() -> None:
    # d = 1, m = 2, v = 1: 4 asinh(1/4) = 0.989866.
    mean = thesis(2, 1, 1.0, dim=1)
    laws = [symbol_laws(mean, np.array([x])) for x in np.linspace(-1, 1, 9)]
    worst = sum(max(math.log(a[k][s] / b[k][s]) for a in laws for b in laws for s in (0, 1)) for k in (0, 1))
    assert worst == pytest.approx(0.989866, abs=5e-7)
    event = mean.event(1, LOCAL)
    assert isinstance(event, PureDP)
    assert event.epsilon == pytest.approx(worst, rel=1e-9)


def test_events_of_planes() -> None:
    mean = BitplaneMean(dim=4, samples=3, local_epsilons=(2.0, 1.0, 1.0), trust=SHUFFLE)
    assert mean.event(50, SHUFFLE) == Compose(
        (Repeat(Shuffled(1.0, 50, "2rr"), 6), Repeat(Shuffled(2.0, 50, "2rr"), 3))
    )
    assert mean.event(50, LOCAL) == PureDP(12.0)
    assert msgspec.structs.replace(mean, trust=LOCAL).event(50, SHUFFLE) == PureDP(12.0)


def test_fine_planes_without_flips_give_the_row_back() -> None:
    mean = BitplaneMean(dim=5, samples=5, local_epsilons=(30.0,) * 25)
    found = mean.estimate(X, ONE, rng=np.random.default_rng(2))
    assert np.allclose(found, X[0], atol=1e-6)


def test_bits_on_the_wire() -> None:
    mean = BitplaneMean(dim=1, samples=1, local_epsilons=(1.0,) * 4)
    assert mean.bits_per_party(1000) == 8 * 11 + 4000  # m bits of a number
    many = BitplaneMean(dim=100, samples=10, local_epsilons=(1.0, 1.0), trust=SHUFFLE)
    assert many.bits_per_party() == 8 * (11 + math.ceil(20 * 9 / 8))  # 2 planes x 100 coordinates x 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"local_epsilons": ()}, "local_epsilons must be a tuple of at least one level"),
        ({"local_epsilons": (1.0, math.nan)}, "local_epsilons must be in"),
        ({"local_epsilons": (1.0,) * 31}, "the number of planes must be a whole number from 1 to 30, got 31"),
        ({"samples": 4}, "samples must be a whole number from 1 to 3, got 4"),
    ],
)
def test_bad_parameters_are_refused(changed: dict[str, object], message: str) -> None:
    good = {"dim": 3, "samples": 2, "local_epsilons": (1.0,)}
    with pytest.raises(ParameterError, match=message):
        BitplaneMean(**{**good, **changed})  # type: ignore[arg-type]


def test_bad_calls_are_refused() -> None:
    with pytest.raises(ParameterError, match="planes must be a whole number from 1 to 30, got 0"):
        plane_shares(0, "ldp")
    with pytest.raises(ParameterError, match="allocation must be one of"):
        plane_shares(2, "equal")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="scale must be a finite number > 0"):
        plane_levels(math.nan, planes=1, samples=1, allocation="ldp", rule="v")
    budget = PrivacyBudget(1.0)
    with pytest.raises(ParameterError, match="samples must be a whole number from 1 to 3, got 9"):
        BitplaneMean.calibrated(dim=3, planes=1, samples=9, budget=budget, n=1)
