"""Distributed tasks: exact runs are centralised runs, and measured errors are the predicted ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tacit.data import split_iid, split_noniid_shards
from tacit.errors import ParameterError
from tacit.learning.tasks import TaskRun, kmeans, linear_regression, power_iteration, top_eigenvector
from tacit.learning.tasks.rounds import normals
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    Facts,
    GaussianNoise,
    Induced,
    MeanEstimator,
    NoNoise,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Wangni,
)
from tacit.randomness import PublicStream, simulated
from tests.statistics import FALSE_ALARM, z_bound

DIM, PARTIES = 16, 5


def exact(dim: int = DIM) -> AdditiveMean:
    return AdditiveMean(dim=dim, noise=NoNoise())


def points(n: int = 200, dim: int = DIM) -> np.ndarray:
    rng = simulated(1, "task points")
    centres = rng.normal(size=(4, dim))
    return np.asarray(centres[np.arange(n) % 4] + 0.3 * rng.normal(size=(n, dim)))


def shards(n: int = 200, dim: int = DIM, parties: int = PARTIES) -> list[np.ndarray]:
    X = points(n, dim)
    return [X[index] for index in split_iid(n, parties, simulated(2, "task split"))]


def rng(*purpose: str | int) -> np.random.Generator:
    return simulated(3, "tasks", *purpose)


def test_power_iteration_of_one_party_is_numpys() -> None:
    (X,) = shards(parties=1)
    X = X - X.mean(axis=0)
    A = X.T @ X / len(X)
    run = power_iteration([X], RandK(dim=DIM, k=DIM, value_bits=64), rounds=12, rng=rng(0))
    again = power_iteration([X], exact(), rounds=12, rng=rng(1))
    first = power_iteration([X], exact(), rounds=1, rng=rng(1)).result
    v = first
    for _ in range(11):
        v = A @ v / np.linalg.norm(A @ v)
    assert run.result == pytest.approx(v, abs=1e-10)
    assert again.result == pytest.approx(v, abs=1e-10)
    top = np.linalg.eigh(A)[1][:, -1]
    assert run.losses[-1] == pytest.approx(min(np.linalg.norm(v - top), np.linalg.norm(v + top)), abs=1e-9)


def test_exact_power_iteration_finds_the_top_eigenvector() -> None:
    X = np.concatenate(shards())
    # One strong direction: the iteration has converged after 60 rounds.
    spread = X + 5 * np.outer(simulated(4).normal(size=len(X)), np.eye(DIM)[3])
    parts = np.array_split(spread, PARTIES)
    run = power_iteration(parts, exact(), rounds=60, rng=rng(0))
    assert run.losses[-1] < 0.05
    assert np.linalg.norm(run.result) == pytest.approx(1)
    assert all(one.squared_error < 1e-28 for one in run.rounds)
    # Far from the origin, what is not centred would find the way there.
    moved = [part + 20 * np.eye(DIM)[5] for part in parts]
    assert abs(top_eigenvector(moved)[3]) > 0.9
    assert power_iteration(moved, exact(), rounds=60, rng=rng(0)).losses[-1] < 0.05


def test_exact_regression_is_centralised_gradient_descent() -> None:
    parts = shards()
    truth = simulated(5).normal(size=DIM)
    y = [X @ truth + 0.1 for X in parts]
    row_norm = max(float(np.linalg.norm(X, axis=1).max()) for X in parts)
    bound = max(float(np.abs(values).max()) for values in y)
    run = linear_regression(
        parts, y, exact(), rounds=40, learning_rate=0.05, row_norm=row_norm, target_bound=bound, rng=rng(0)
    )
    X, wanted = np.concatenate(parts), np.concatenate(y)  # equal shards: the mean of means is the mean
    theta, losses = np.zeros(DIM), []
    for _ in range(40):
        theta = theta - 0.05 * 2 / len(X) * X.T @ (X @ theta - wanted)
        losses.append(np.mean((X @ theta - wanted) ** 2))
    assert run.result == pytest.approx(theta, abs=1e-10)
    assert run.losses == pytest.approx(np.array(losses), abs=1e-10)
    assert run.losses[-1] < run.losses[0] / 4


def test_exact_kmeans_of_one_party_is_centralised_lloyd() -> None:
    parts = shards(parties=1)
    X = np.concatenate(parts)
    radius = float(np.linalg.norm(X, axis=1).max())
    start = _start(7, len(X), 4)
    centroids = X[start].copy()
    losses = []
    for _ in range(6):
        nearest = np.argmin(((X[:, None] - centroids) ** 2).sum(axis=2), axis=1)
        for c in range(4):
            if np.any(nearest == c):
                centroids[c] = X[nearest == c].mean(axis=0)
        losses.append(((X[:, None] - centroids) ** 2).sum(axis=2).min(axis=1).sum())
    for delta in (False, True):
        run = kmeans(
            parts,
            exact(),
            clusters=4,
            rounds=6,
            radius=radius,
            delta=delta,
            seed=7,
            rng=rng(0),
        )
        assert run.result == pytest.approx(centroids, abs=1e-10)
        assert run.losses == pytest.approx(np.array(losses), rel=1e-10)


@pytest.mark.parametrize("delta", [False, True])
def test_what_parties_do_for_a_cluster_without_points(delta: bool) -> None:
    # One party holds the points 0 and 6, the other 0 alone: the far centroid starts at 6 and stays there.
    # Then the first party's far points move to 4 and 6, mean 5.
    parts = [np.array([[0.0], [4.0], [6.0]]), np.array([[0.0], [0.0]])]
    everything = np.concatenate(parts)
    seed = next(s for s in range(999) if set(everything[_start(s, 5, 2)].ravel()) == {0.0, 6.0})

    found = kmeans(
        parts, exact(1), clusters=2, rounds=1, radius=6.0, delta=delta, seed=seed, rng=rng(0)
    ).result
    assert sorted(found.ravel().tolist()) == pytest.approx([0.0, 5.0])  # the other party stays away


def test_a_cluster_without_any_points_keeps_its_centroid() -> None:
    parts = [np.zeros((3, 1)), np.array([[0.0], [9.0]])]
    seed = next(s for s in range(99) if not np.concatenate(parts)[_start(s, 5, 2)].any())
    found = kmeans(parts, exact(1), clusters=2, rounds=1, radius=9.0, seed=seed, rng=rng(0)).result
    assert found[1, 0] == 0.0  # both started at 0, and all points went to the first


def _start(seed: int, n: int, clusters: int) -> np.ndarray:
    return PublicStream(seed, 0, purpose="tasks/k-means").permutation(n)[:clusters]


ESTIMATORS: dict[str, Callable[[], MeanEstimator]] = {
    "rand-k": lambda: RandK(dim=DIM, k=3),
    "rand-k-spatial": lambda: RandKSpatial(dim=DIM, k=3),
    "rand-proj-spatial": lambda: RandProjSpatial(dim=DIM, k=3),
    "gaussian": lambda: AdditiveMean(dim=DIM, noise=GaussianNoise(2.0)),
    "discrete": lambda: AdditiveMean(dim=DIM, noise=DiscreteGaussianNoise(2.0)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_measured_errors_are_the_predicted_ones(name: str) -> None:
    # Round by round, given the vectors of that round, the squared error has the predicted expectation: the
    # differences are martingale increments, whose sum has about the variance of the sum of their squares.
    estimator = ESTIMATORS[name]()
    differences = []
    for seed in range(40):
        run = power_iteration(shards(), estimator, rounds=20, seed=seed, rng=rng(name, seed))
        for one in run.rounds:
            facts = Facts(parties=PARTIES, squared_norms=one.squared_norms, correlation=one.correlation)
            differences.append(one.squared_error / estimator.error(PARTIES, facts).mse - 1)
    off = np.array(differences)
    bound = z_bound(len(ESTIMATORS)) * off.std() / np.sqrt(off.size)
    # Moments that are simulated or a limit are right to some thousandths only.
    assert abs(off.mean()) < bound + 2e-3
    assert bound < 0.35


@pytest.mark.parametrize("name", ["rand-k", "rand-proj-spatial"])
def test_measured_errors_of_kmeans_are_the_predicted_ones(name: str) -> None:
    estimator = ESTIMATORS[name]()
    radius = float(np.linalg.norm(points(), axis=1).max())
    differences = []
    for seed in range(40):
        run = kmeans(
            shards(), estimator, clusters=1, rounds=4, radius=radius, delta=False, seed=seed, rng=rng(seed)
        )
        for one in run.rounds:
            facts = Facts(parties=PARTIES, squared_norms=one.squared_norms, correlation=one.correlation)
            differences.append(one.squared_error / estimator.error(PARTIES, facts).mse - 1)
    off = np.array(differences)
    assert abs(off.mean()) < z_bound(2) * off.std() / np.sqrt(off.size) + 2e-3


@pytest.mark.parametrize(
    "estimator",
    [RandK(dim=DIM, k=3), Wangni(dim=DIM, k=3), Induced(dim=DIM, k=3), AdditiveMean(dim=DIM)],
    ids=lambda e: type(e).__name__,
)
def test_bits_and_rounds_are_counted(estimator: MeanEstimator) -> None:
    run = power_iteration(shards(), estimator, rounds=3, rng=rng(0))
    assert [one.number for one in run.rounds] == [0, 1, 2]
    assert {one.bits for one in run.rounds} == {PARTIES * estimator.bits_per_party(1)}
    assert all(one.seconds >= 0 for one in run.rounds)


def test_one_seed_is_one_run_and_the_start_is_common() -> None:
    parts, estimator = shards(), RandK(dim=DIM, k=4)
    first = power_iteration(parts, estimator, rounds=4, seed=1, rng=rng(0))
    again = power_iteration(
        parts, estimator, rounds=4, seed=1, rng=rng(99)
    )  # Rand-k draws from the public seed
    other = power_iteration(parts, estimator, rounds=4, seed=2, rng=rng(0))
    assert np.array_equal(first.result, again.result)
    assert not np.array_equal(first.result, other.result)
    # The vectors of the first round, which the start decides, are those of any other estimator.
    plain = power_iteration(parts, exact(), rounds=1, seed=1, rng=rng(0))
    assert plain.rounds[0].correlation == first.rounds[0].correlation


def test_correlation_is_that_of_the_vectors() -> None:
    same = [points(40)] * 4
    run = power_iteration(same, exact(), rounds=1, rng=rng(0))
    assert run.rounds[0].correlation == pytest.approx(3.0)
    assert run.rounds[0].squared_norms == pytest.approx(4.0)


def test_shards_by_label_are_less_alike() -> None:
    X, labels = points(400), np.arange(400) % 4
    alike = [X[i] for i in split_iid(400, 4, simulated(6))]
    apart = [X[i] for i in split_noniid_shards(labels, 4, simulated(6))]

    def correlation(parts: list[np.ndarray]) -> float:
        run = kmeans(parts, exact(), clusters=1, rounds=1, radius=99.0, rng=rng(0))
        assert run.rounds[0].correlation is not None
        return run.rounds[0].correlation

    assert correlation(apart) < correlation(alike)


def test_zero_vectors_are_sent_as_zero() -> None:
    X = np.round(8 * points(20))
    parts = [np.concatenate([X, -X]), np.zeros((10, DIM))]  # of mean zero together, to the last bit
    run = power_iteration(parts, exact(), rounds=2, rng=rng(0))
    assert run.rounds[0].squared_norms == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda: power_iteration([], exact(), rng=rng(0)), "at least one party"),
        (lambda: power_iteration([np.zeros((0, DIM))], exact(), rng=rng(0)), "empty shard"),
        (lambda: power_iteration([np.zeros((3, DIM))], exact(), rng=rng(0)), "all zero"),
        (
            lambda: power_iteration([np.ones((3, DIM - 1))], exact(), rng=rng(0)),
            "coordinates of the estimator",
        ),
        (lambda: power_iteration([np.full((3, DIM), np.nan)], exact(), rng=rng(0)), "finite"),
        (lambda: power_iteration(shards(), exact(), rounds=0, rng=rng(0)), "rounds must be"),
        (lambda: power_iteration(shards(), exact(), target=[1.0], rng=rng(0)), "target must have shape"),
        (lambda: kmeans(shards(), exact(), clusters=201, radius=1.0, rng=rng(0)), "clusters must be"),
        (lambda: kmeans(shards(), exact(), radius=-1.0, rng=rng(0)), "radius must be"),
        (lambda: regression(learning_rate=0.0), "learning_rate must be"),
        (lambda: regression(row_norm=float("inf")), "row_norm must be"),
        (lambda: regression(targets=[np.zeros(3)] * PARTIES), "one number for each row"),
        (lambda: regression(targets=[np.full(40, np.inf)] * PARTIES), "targets must be finite"),
    ],
)
def test_bad_input(broken: Callable[[], TaskRun], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        broken()


def regression(**change: object) -> TaskRun:
    targets = change.pop("targets", [X[:, 0] for X in shards()])
    more: dict[str, object] = {"row_norm": 9.0, "target_bound": 9.0, **change}
    return linear_regression(shards(), targets, exact(), rng=rng(0), **more)  # type: ignore[arg-type]


def test_public_starts_are_normal() -> None:
    numbers = normals(3, 20_000, "start")
    assert stats.kstest(numbers, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(1.2 * numbers, "norm").pvalue < FALSE_ALARM  # enough numbers to see a fifth more
    assert np.array_equal(numbers, normals(3, 20_000, "start"))
