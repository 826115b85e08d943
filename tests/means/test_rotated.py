from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.audits import audit_mean
from tacit.errors import ParameterError
from tacit.means import BitplaneMean, HadamardMean, RotatedMean, Round, lp_mean, plane_levels
from tacit.numerics import Array
from tacit.privacy import Gaussian, PrivacyBudget, PureDP, TrustModel, epsilon_of
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, SHUFFLE = TrustModel.LOCAL, TrustModel.SHUFFLE


def sphere(n: int, dim: int, seed: int = 0) -> Array:
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_the_variance_of_coefficients_and_what_dropping_the_padding_keeps() -> None:
    # d = 20, D = 32, m = 2, s = 16, v = 20, r_inf = 0.7: 97.55 and 60.97 for some unit vector.
    levels = plane_levels(20.0, planes=2, samples=16, allocation="rdp", rule="v")
    mean = RotatedMean(
        dim=20, samples=16, local_epsilons=levels, kappa=0.7 * math.sqrt(32), decoder="horvitz"
    )
    assert mean.box(1) == pytest.approx(0.7)
    x, rng, trials = sphere(1, 20), np.random.default_rng(1), 4000
    full = mean.coded_variance_on(x, Round(n=1, radius=1.0))
    assert full == pytest.approx(97.55, rel=0.02)  # hardly depends on the vector
    errors = np.empty(trials)
    for k in range(trials):
        this_round = Round(n=1, radius=1.0, number=k % 50)
        errors[k] = ((mean.estimate(x, this_round, rng=rng) - x[0]) ** 2).sum()
    tolerance = z_bound(1) * errors.std() / math.sqrt(trials)
    assert abs(errors.mean() - full * 20 / 32) <= tolerance + 0.01 * full
    assert tolerance < 0.1 * full
    assert mean.error(1).variance >= errors.mean() - tolerance


@pytest.mark.parametrize("encoder", ["hadamard", "orthogonal", "cosine", "kashin"])
def test_fine_planes_without_flips_give_the_row_back(encoder: str) -> None:
    x = sphere(3, 20)
    mean = RotatedMean(dim=20, samples=1, local_epsilons=(1.0,), encoder=encoder)  # type: ignore[arg-type]
    D = mean.coded_dim
    assert {"hadamard": 32, "kashin": 64}.get(encoder, 20) == D
    fine = RotatedMean(dim=20, samples=D, local_epsilons=(30.0,) * 24, encoder=encoder)  # type: ignore[arg-type]
    found = fine.estimate(x, Round(n=3, radius=2.0, number=7), rng=np.random.default_rng(2))
    assert np.allclose(found, x.mean(axis=0), atol=1e-5)


def test_the_rotation_is_public_common_and_new_every_round() -> None:
    mean = RotatedMean(dim=6, samples=2, local_epsilons=(1.0,))
    one, same, next_round, other = (
        mean.rotation(Round(n=5, radius=1.0, number=number, seed=seed)).fingerprint
        for number, seed in ((1, 3), (1, 3), (2, 3), (1, 4))
    )
    assert one == same
    assert len({one, next_round, other}) == 3


def test_a_certified_box_clips_no_row_and_kappa_makes_the_stated_bias() -> None:
    x, facts = sphere(500, 64), Round(n=500, radius=1.0)
    certified = RotatedMean(dim=64, samples=1, local_epsilons=(1.0,))
    coded = certified.rotation(facts).forward(x, r2=1.0)
    assert np.abs(coded).max() <= certified.box(500) < 1
    clipped = RotatedMean(dim=64, samples=64, local_epsilons=(30.0,) * 20, kappa=1.0)
    spike = np.eye(1, 64)
    turned = clipped.rotation(facts).inverse(np.eye(1, 64))  # its only coefficient is 1
    found = clipped.estimate(np.repeat(turned, 500, axis=0), facts, rng=np.random.default_rng(0))
    lost = np.linalg.norm(found - turned[0])
    assert lost == pytest.approx(1 - clipped.box(500), abs=1e-4)
    assert lost <= clipped.error(500).bias + 1e-4
    assert np.allclose(
        clipped.estimate(spike, Round(n=1, radius=1.0), rng=np.random.default_rng(0)), spike, atol=1e-4
    )


@pytest.mark.parametrize(("dim", "beta"), [(64, 1e-6), (256, 1e-6), (256, 0.01), (1024, 1e-4)])
def test_what_a_certified_box_clips_on_average_over_rotations_is_bounded(dim: int, beta: float) -> None:
    mean = RotatedMean(dim=dim, samples=1, local_epsilons=(1.0,), beta=beta)
    ones = np.arange(dim + 1)
    # A coefficient of the row with equal entries is a mean of fair signs.
    lost = np.maximum(np.abs(2 * ones - dim) / dim - mean.box(1), 0.0)
    square = dim * float(stats.binom.pmf(ones, dim, 0.5) @ lost**2)
    assert square <= mean.error(1).bias ** 2 <= 1000 * square


@pytest.mark.parametrize(
    ("samples", "planes", "kappa", "printed"),
    [(200, 1, 2.0, 0.107), (250, 1, 3.0, 0.235), (300, 2, 2.0, 0.0933)],
)
def test_errors_of_the_figure_under_shuffling(
    samples: int, planes: int, kappa: float, printed: float
) -> None:
    # Figure 3.2c at eps = 1 with n = 1000, d = 300, delta = 1e-5, an orthogonal encoder, no bias of clipping.
    # The printed errors come from an accountant that rounds every loss of hundreds of messages up to a grid;
    # they are 5% to 20% above ours, and ours are above what normal approximation, its limit, would give.
    budget = PrivacyBudget(1.0, 1e-5)
    mean = RotatedMean.calibrated(
        dim=300,
        planes=planes,
        samples=samples,
        budget=budget,
        n=1000,
        trust=SHUFFLE,
        encoder="orthogonal",
        kappa=kappa,
        decoder="horvitz",
    )
    error = mean.coded_variance_on(sphere(1000, 300), Round(n=1000, radius=1.0))
    assert 0.8 * printed <= error <= printed
    level = mean.local_epsilons[0]
    flip, messages = 1 / (1 + math.exp(level)), samples * planes
    rho = messages * (1 - 2 * flip) ** 2 / (1000 * 2 * flip)
    assert epsilon_of(mean.event(1000, SHUFFLE), 1e-5) <= 1.0 + 1e-12
    assert epsilon_of(Gaussian(1 / math.sqrt(2 * rho)), 1e-5) <= 1.0


@pytest.mark.parametrize("broken", [False, True])
def test_the_audit_stays_below_the_claim_and_catches_half_the_noise(broken: bool) -> None:
    # In one dimension the rotated row is plus or minus the box.
    mean = RotatedMean(dim=1, samples=1, local_epsilons=(3.0 if broken else 1.5,))
    found = audit_mean(
        mean,
        0.0,
        n=2,
        # Whether the first row's bit agrees with the sign of the rotation, which is public.
        score=lambda messages: float(
            (messages[0].payload[0] + 1) * mean.rotation(Round(n=2, radius=1.0)).inverse(np.ones(1))[0]
        ),
        runs=8000,
        confidence=1 - FALSE_ALARM,
        rng=np.random.default_rng(3),
    )
    assert (found.empirical_epsilon_lower > 1.5) == broken
    assert found.empirical_epsilon_lower > 1.0
    assert not found.refuted


def test_local_calibration_uses_the_whole_level() -> None:
    budget = PrivacyBudget(3.0)
    mean = RotatedMean.calibrated(dim=100, planes=2, samples=3, budget=budget, n=10)
    assert mean.event(10, LOCAL) == PureDP(mean.pure_epsilon)
    assert mean.pure_epsilon == pytest.approx(3.0, rel=1e-12)
    assert mean.pure_epsilon <= 3.0 * (1 + 1e-14)


def test_the_error_under_local_trust_is_of_the_order_of_the_lower_bound() -> None:
    for dim in (16, 64, 256):
        for epsilon in (0.5, 1.0, 4.0):
            mean = RotatedMean.calibrated(
                dim=dim,
                planes=1,
                samples=max(1, round(epsilon)),
                budget=PrivacyBudget(epsilon),
                n=10_000,
                kappa=3.0,
            )
            ratio = mean.error(10_000).variance / (dim / (10_000 * min(epsilon, epsilon**2)))
            assert 1 < ratio < 60


def test_lp_picks_the_least_predicted_error() -> None:
    budget = PrivacyBudget(1.0)
    one, factor = lp_mean(1.0, dim=64, budget=budget, n=1000)
    assert (type(one), factor) == (HadamardMean, 1.0)
    two, factor = lp_mean(2.0, dim=64, budget=budget, n=1000)
    assert factor == 1.0
    assert isinstance(two, RotatedMean | BitplaneMean)
    box, factor = lp_mean(math.inf, dim=64, budget=budget, n=1000)
    assert (type(box), factor) == (BitplaneMean, 1.0)
    rotated, factor = lp_mean(3.0, dim=4096, budget=budget, n=1000)
    assert isinstance(rotated, RotatedMean)
    assert factor == pytest.approx(4096 ** (1 / 6))
    with pytest.raises(ParameterError, match=r"p must be >= 1, got 0\.5"):
        lp_mean(0.5, dim=4, budget=budget, n=10)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"encoder": "dct"}, "encoder must be one of hadamard, orthogonal, cosine, kashin"),
        ({"kappa": 0.0}, "kappa must be a finite number > 0"),
        ({"kappa": 2.0, "encoder": "kashin"}, "kappa must be None with the kashin encoder"),
        ({"beta": 0.0}, "beta must be in"),
        ({"beta": 1.0}, "beta must be in"),
        ({"samples": 9}, "samples must be a whole number from 1 to 8, got 9"),
        ({"local_epsilons": ()}, "local_epsilons must be a tuple of at least one level"),
    ],
)
def test_bad_parameters_are_refused(changed: dict[str, object], message: str) -> None:
    good = {"dim": 5, "samples": 2, "local_epsilons": (1.0,)}
    with pytest.raises(ParameterError, match=message):
        RotatedMean(**{**good, **changed})  # type: ignore[arg-type]
