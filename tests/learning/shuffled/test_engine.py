"""Algorithm 3 of Jiang (2025) and its named runs: passes by hand, identities, moments over orders."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.federation import Epoch, EpochKind
from tacit.learning import DistanceObjective, LinearObjective, Logistic, Records, Squared
from tacit.learning.shuffled import (
    ShuffledGradient,
    ShuffledMethod,
    ShuffledRun,
    noisy_gradient_descent,
    noisy_sampled_descent,
)
from tacit.numerics import L1, Array, L2Ball, SquaredL2, clip_rows
from tacit.privacy import Gaussian, Order, Placement, PrivacyBudget, Repeat, Sampled, calibrate, epsilon_of
from tests.statistics import FALSE_ALARM

A = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, -1.0]])


def of(rows: Any, y: Any = None) -> Records:
    X = np.asarray(rows, dtype=np.float64)
    return Records.of(X, np.zeros(len(X)) if y is None else np.asarray(y, dtype=np.float64))


def means(rows: Any, public: Any = None, **facts: Any) -> ShuffledGradient:
    """Mean estimation: |w - x|^2 / 2."""
    held = of(rows)
    objective = DistanceObjective(size=held.X.shape[1], lipschitz=math.inf, smoothness=1.0)
    return ShuffledGradient(
        objective=objective, private=held, public=None if public is None else of(public), **facts
    )


def lasso(X: Any, y: Any, public: Any = None) -> ShuffledGradient:
    """Logistic loss of records that are no longer than 3."""
    return ShuffledGradient(
        objective=LinearObjective(loss=Logistic(), features=2, feature_norm=3.0),
        private=of(X, y),
        public=None if public is None else of(X, public),
    )


def descended(descend: Any = noisy_gradient_descent, **facts: Any) -> Array:
    given = {"steps": 1, "step_size": 0.1, "noise_std": 0.0, "rng": np.random.default_rng(0), **facts}
    found: Array = descend(means([[1.0]]), **given)
    return found


def ended(problem: ShuffledGradient, epochs: Any, **facts: Any) -> Array:
    return problem.run(epochs, rng=np.random.default_rng(0), **{"step_size": 0.1, **facts})


def test_passes_of_means_by_hand() -> None:
    data = [[1.0], [2.0], [6.0]]
    assert ended(means(data, order=Order.IG), [Epoch(private=3)])[0] == pytest.approx(0.861)
    mixed = means(data, [[4.0], [5.0]], order=Order.IG)
    assert ended(mixed, [Epoch(private=1, public=2)])[0] == pytest.approx(0.941)


@pytest.mark.parametrize(
    ("loss", "y", "eta", "prox", "clip", "ends"),
    [
        ("ridge", (1, -1, 2), 0.05, SquaredL2(0.1), math.inf,
         [(0.2935960591, -0.1162561576), (0.5371195613, -0.1904574243)]),
        ("ridge", (1, -1, 2), 0.05, SquaredL2(0.1), 0.5,
         [(0.0284315364, -0.0200167387), (0.0564429023, -0.0397376635)]),
        ("lasso", (1, 0, 1), 0.5, L1(0.1), math.inf, [(0.3423486821, 0.0), (0.5963272869, 0.0)]),
        ("lasso", (1, 0, 1), 0.5, L1(0.1), 0.5,
         [(0.1385800942, -0.0531698975), (0.2771601883, -0.1063397951)]),
    ],
)  # fmt: skip
def test_passes_of_linear_losses_by_hand(
    loss: str, y: Any, eta: float, prox: Any, clip: float, ends: list[tuple[float, float]]
) -> None:
    # (p - y)^2 is the squared loss of records that are sqrt(2) times as long, labels too.
    scale = math.sqrt(2) if loss == "ridge" else 1.0
    problem = ShuffledGradient(
        objective=LinearObjective(loss=Squared() if loss == "ridge" else Logistic(), features=2),
        private=of(scale * A, scale * np.array(y)),
        regularizer=prox,
        clip=clip,
        order=Order.IG,
    )
    for epochs, end in enumerate(ends, start=1):
        found = ended(problem, [Epoch(private=3)] * epochs, step_size=eta)
        np.testing.assert_allclose(found, end, atol=1e-9)


def test_an_epoch_over_all_orders_has_the_moments_of_sampling_without_replacement() -> None:
    Q, eta, n = np.array([[1.0, 0], [0, 1], [2, 2], [-1, 3]]), 0.1, 4
    np.testing.assert_allclose(
        ended(means(Q, order=Order.IG), [Epoch(private=4)]), (0.1529, 0.561), atol=1e-12
    )
    ends = np.array(
        [
            ended(means(Q[list(p)], order=Order.IG), [Epoch(private=4)])
            for p in itertools.permutations(range(4))
        ]
    )
    np.testing.assert_allclose(ends.mean(axis=0), (0.17195, 0.51585), atol=1e-12)
    np.testing.assert_allclose(ends.mean(axis=0), (1 - 0.9**4) * Q.mean(axis=0), atol=1e-12)
    w = eta * 0.9 ** np.arange(n - 1, -1, -1)
    spread = np.mean(np.sum((Q - Q.mean(axis=0)) ** 2, axis=1))
    trace = float(ends.var(axis=0).sum())
    assert trace == pytest.approx(0.001362025, abs=1e-9)
    assert trace == pytest.approx(spread * (n * np.sum(w**2) - np.sum(w) ** 2) / (n - 1))


def named(method: ShuffledMethod, n: int = 6, K: int = 4, **facts: Any) -> tuple[Epoch, ...]:
    return ShuffledRun(method=method, steps=n, epochs=K, **facts).schedule


@pytest.mark.parametrize("order", Order)
def test_without_noise_and_public_records_it_is_the_plain_method_bit_for_bit(order: Order) -> None:
    data = np.random.default_rng(4).normal(size=(6, 3))
    problem = means(data, order=order)
    found = problem.run(
        named(ShuffledMethod.PRIVATE),
        step_size=0.1,
        rng=np.random.default_rng(0),
        order_rng=np.random.default_rng(5),
    )
    w, rng = np.zeros(3), np.random.default_rng(5)
    index = np.arange(6)
    for epoch in range(4):
        if order is Order.RR or (order is Order.SO and epoch == 0):
            index = rng.permutation(6)
        for i in index:
            w = (1 - 0.1) * w + 0.1 * data[i]
    np.testing.assert_array_equal(found, w)


def test_runs_that_are_one_another() -> None:
    rng = np.random.default_rng(6)
    data, theirs = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    problem = means(data, theirs, order=Order.RR)

    def end(epochs: Any, problem: ShuffledGradient = problem, std: float = 2.0) -> list[float]:
        return [float(x) for x in ended(problem, epochs, noise_std=std)]

    private = end(named(ShuffledMethod.PRIVATE))
    assert end([Epoch(private=6)] * 4 + [Epoch(private=0, public=6)] * 0) == private
    assert end([Epoch(private=6, public=0, public_noise=True)] * 4) == private
    public = end(named(ShuffledMethod.PUBLIC))
    assert end([Epoch(private=0, public=6)] * 4, std=0.0) == public
    same = means(data, data, order=Order.IG)
    assert end(named(ShuffledMethod.PUBLIC), same) == end(named(ShuffledMethod.PRIVATE), same, 0.0)


def test_noise_alone_is_a_normal_of_all_its_draws() -> None:
    # A clip of 1e-9 leaves nothing of the gradients.
    problem = means(np.zeros((5, 400)), clip=1e-9, order=Order.IG)
    rngs = [np.random.default_rng(seed) for seed in range(10)]
    ends = problem.run([Epoch(private=5)] * 3, step_size=0.1, noise_std=np.array([3.0, 1.0]), rng=rngs)
    total = float(np.sum(ends[:, 0] ** 2)) / (15 * 0.1**2 * 9)
    low, high = stats.chi2(4000).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < total < high
    np.testing.assert_allclose(ends[:, 1], ends[:, 0] / 3, atol=1e-7)


def test_named_runs_are_the_schedules_of_the_paper() -> None:
    ours, theirs = Epoch(private=6), Epoch(private=0, public=6)
    assert named(ShuffledMethod.PRIVATE_PUBLIC, share=0.25) == (ours, theirs, theirs, theirs)
    assert named(ShuffledMethod.PUBLIC_PRIVATE, share=0.25) == (theirs, theirs, theirs, ours)
    mixed = Epoch(private=2, public=4, public_noise=True)
    assert named(ShuffledMethod.INTERLEAVED, share=1 / 3) == (mixed,) * 4
    end = named(ShuffledMethod.INTERLEAVED, placement=Placement.EPOCH_END)
    assert all(epoch.at_end for epoch in end)
    assert not any(epoch.at_end for epoch in named(ShuffledMethod.PUBLIC, placement=Placement.EPOCH_END))
    halves = ShuffledRun(method=ShuffledMethod.INTERLEAVED, steps=161, epochs=5)
    assert halves.private_steps == EpochKind(private=0.5).of(161).private == 81  # halves as in plans
    for share in (0.001, 0.999):  # at least one of each
        run = ShuffledRun(method=ShuffledMethod.INTERLEAVED, steps=6, epochs=4, share=share)
        assert (run.private_steps, run.public_steps) == ((1, 5) if share < 0.5 else (5, 1))
        run = ShuffledRun(method=ShuffledMethod.PUBLIC_PRIVATE, steps=6, epochs=4, share=share)
        assert run.private_epochs == (1 if share < 0.5 else 3)


def test_replicas_are_runs_of_their_own() -> None:
    rng = np.random.default_rng(7)
    problem = ShuffledGradient(
        objective=LinearObjective(loss=Logistic(), features=3),
        private=of(rng.normal(size=(8, 3)), rng.integers(0, 2, size=8)),
        public=of(rng.normal(size=(8, 3)), rng.integers(0, 2, size=8)),
        regularizer=L2Ball(0.7),
        clip=0.5,
        batch=2,
    )
    epochs = named(ShuffledMethod.INTERLEAVED, n=4)
    sizes, seen = np.array([0.5, 0.05]), []
    both = problem.run(
        epochs,
        step_size=sizes,
        noise_std=0.3,
        rng=[np.random.default_rng(s) for s in (1, 2)],
        follow=lambda w: seen.append(problem.value(w)),
    )
    assert both.shape == (2, 2, 3)
    assert [one.shape for one in seen] == [(2, 2)] * 4
    for s, k in itertools.product(range(2), range(2)):
        alone = problem.run(epochs, step_size=sizes[k], noise_std=0.3, rng=np.random.default_rng(s + 1))
        np.testing.assert_allclose(both[s, k], alone, atol=1e-13)
        assert seen[-1][s, k] == pytest.approx(
            np.mean(problem.objective.value(alone, problem.private)) + problem.regularizer.value(alone)
        )


def test_clipping_of_public_gradients_is_a_choice() -> None:
    problem = means([[0.0]], [[100.0]], clip=1.0, order=Order.IG)
    epoch = [Epoch(private=0, public=1)]
    assert ended(problem, epoch)[0] == pytest.approx(10)
    clipped = means([[0.0]], [[100.0]], clip=1.0, clip_public=True, order=Order.IG)
    assert ended(clipped, epoch)[0] == pytest.approx(0.1)


def test_baselines_take_full_steps_and_steps_on_samples() -> None:
    rng = np.random.default_rng(8)
    data = 3 * rng.normal(size=(5, 2))
    problem = means(data, clip=1.0, regularizer=L2Ball(0.5))
    found = noisy_gradient_descent(
        problem, steps=2, step_size=0.2, noise_std=0.1, rng=np.random.default_rng(1)
    )
    x, noise = np.zeros(2), np.random.default_rng(1)
    for _ in range(2):
        x = x - 0.2 * (clip_rows(x - data, 1.0).mean(axis=0) + 0.1 * noise.standard_normal(2))
        x = x * min(1, 0.5 / float(np.linalg.norm(x)))
    np.testing.assert_allclose(found, x, atol=1e-12)
    found = noisy_sampled_descent(
        problem, steps=4, step_size=0.2, noise_std=0.1, rng=np.random.default_rng(2)
    )
    x, noise = np.zeros(2), np.random.default_rng(2)
    for i in noise.integers(0, 5, size=4):
        x = x - 0.2 * (clip_rows((x - data[i])[None], 1.0)[0] + 0.1 * noise.standard_normal(2))
        x = x * min(1, 0.5 / float(np.linalg.norm(x)))
    np.testing.assert_allclose(found, x, atol=1e-12)


@pytest.mark.parametrize(("epsilon", "std"), [(1, 0.59745982), (5, 0.13859986), (10, 0.07652123)])
def test_full_steps_need_the_noise_of_so_many_gaussian_releases(epsilon: float, std: float) -> None:
    # A record moves the mean of 1000 gradients of length 10 by 2 x 10 / 1000, 50 times.
    found = calibrate(lambda z: Repeat(Gaussian(z), 50), PrivacyBudget(epsilon, 1e-6)) * 20 / 1000
    assert found == pytest.approx(std, rel=2e-6)


@pytest.mark.parametrize(("epsilon", "printed"), [(5, 1.4492), (10, 1.1708)])
def test_steps_on_samples_need_no_more_noise_than_by_divergences(epsilon: float, printed: float) -> None:
    # 50 passes of 1000 steps on one record of 1000 each, in units of the clip.
    event = Repeat(Sampled(Gaussian(printed / 2), 1e-3), 50_000)
    assert epsilon_of(event, 1e-6) < epsilon


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: means([[1.0]], [[1.0, 2.0]]), "public must have 1 features"),
        (lambda: means([[1.0]], clip=0.0), "clip"),
        (lambda: means([[1.0]], batch=2), "batch"),
        (lambda: means([[1.0]], order="ig"), "order must be an Order"),
        (lambda: lasso(A, (1, 0, -1)), "y must be 0 or 1"),
        (lambda: lasso(A, (1, 0, 1), (1, 0, 2)), "y must be 0 or 1"),
        (lambda: lasso(np.ones((3, 3)), (1, 0, 1)), "private must have 2 features"),
        (lambda: lasso(3 * A, (1, 0, 1)), "private must hold records no longer than feature_norm"),
        (lambda: ended(means([[1.0]]), []), "epochs must hold"),
        (lambda: ended(means([[1.0]]), [Epoch(private=1)], start=np.array([np.nan])), "start must be finite"),
        (lambda: descended(noise_std=-1.0), "noise_std"),
        (lambda: descended(start=np.zeros(2)), "start must have shape"),
        (lambda: descended(noisy_sampled_descent, noise_std=math.nan), "noise_std"),
        (lambda: descended(noisy_sampled_descent, start=np.zeros(2)), "start must have shape"),
        (lambda: ended(means([[1.0]]), [Epoch(private=0, public=2)]), "public must hold 2 records"),
        (lambda: ended(means([[1.0]]), [Epoch(private=1)], step_size=0.0), "step_size must be"),
        (lambda: ended(means([[1.0]]), [Epoch(private=1)], noise_std=-1.0), "noise_std must be"),
        (lambda: ended(means([[1.0]]), [Epoch(private=1)], start=np.zeros(2)), "start must have shape"),
        (lambda: named(ShuffledMethod.INTERLEAVED, share=0.0), "share"),
        (lambda: named(ShuffledMethod.INTERLEAVED, share=1.0), "share"),
        (lambda: named(ShuffledMethod.PRIVATE_PUBLIC, K=1), "epochs"),
        (lambda: named("dp-shuffle"), "method must be a ShuffledMethod"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
