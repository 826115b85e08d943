"""The one loop over epochs of shuffled gradient descent, against its pseudo-code, values and laws."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.federation import Epoch, run_epochs
from tacit.federation import epochs as room
from tacit.numerics import L1, Array, IntArray, Regularizer, SquaredL2, Zero
from tacit.privacy import Order, Placement
from tests.statistics import FALSE_ALARM

END = Placement.EPOCH_END


@dataclass
class Pulls:
    """Mean estimation: the gradient of |w - x|^2 / 2; all indices are written down."""

    private: Array
    public: Array = field(default_factory=lambda: np.zeros((8, 1)))
    seen: list[tuple[bool, list[list[int]]]] = field(default_factory=list)

    def __call__(
        self,
        index: IntArray,
        w: Array,
        *,
        public: bool,
        step_size: Any,
        noise: Array | None,
        noise_std: Any,
    ) -> Array:
        self.seen.append((public, index.tolist()))
        rows = self.public if public else self.private
        eta, std = (np.asarray(value)[..., None] for value in (step_size, noise_std))
        many = w.ndim == 3
        for t in range(index.shape[-2]):
            pulled = rows[index[..., t, :]].mean(axis=-2)
            gradient = w - (pulled[:, None] if many else pulled)
            if noise is not None:
                gradient = gradient + std * (noise[:, t][:, None] if many else noise[t])
            w = w - eta * gradient
        return w


def streams(seeds: int) -> list[np.random.Generator]:
    return [np.random.default_rng(seed) for seed in range(seeds)]


def run(descend: Any, epochs: list[Epoch], **changes: Any) -> Array:
    facts: dict[str, Any] = {
        "w": np.zeros(1),
        "n": 3,
        "order": Order.IG,
        "step_size": 0.1,
        "noise_std": 0.0,
        "prox": Zero(),
        "rng": np.random.default_rng(1),
    }
    return run_epochs(descend, epochs=epochs, **{**facts, **changes})


def column(*values: float) -> Array:
    return np.array(values)[:, None]


def test_passes_by_hand() -> None:
    assert run(Pulls(column(1, 2, 6)), [Epoch(private=3)])[0] == pytest.approx(0.861)
    mixed = run(Pulls(column(1, 0, 0), column(4, 5)), [Epoch(private=1, public=2)])
    assert mixed[0] == pytest.approx(0.941)


@pytest.mark.parametrize(
    ("outcomes", "eta", "prox", "ends"),
    [
        ((1, -1, 2), 0.05, SquaredL2(0.1), [(0.2935960591, -0.1162561576), (0.5371195613, -0.1904574243)]),
        ((1, 0, 1), 0.5, L1(0.1), [(0.3423486821, 0.0), (0.5963272869, 0.0)]),
    ],
    ids=["ridge", "lasso-logistic"],
)
def test_the_prox_comes_once_an_epoch_with_the_step_of_all_its_steps(
    outcomes: tuple[float, ...], eta: float, prox: Regularizer, ends: list[tuple[float, float]]
) -> None:
    A, y = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, -1.0]]), np.array(outcomes)

    def slope(z: float, t: float) -> float:
        return 2 * (z - t) if isinstance(prox, SquaredL2) else 1 / (1 + math.exp(-z)) - t

    def descend(index: IntArray, w: Array, **_: Any) -> Array:
        for (i,) in index:
            w = w - eta * slope(float(w @ A[i]), y[i]) * A[i]
        return w

    for epochs, end in enumerate(ends, start=1):
        found = run(descend, [Epoch(private=3)] * epochs, w=np.zeros(2), step_size=eta, prox=prox)
        np.testing.assert_allclose(found, end, atol=1e-9)


def test_orders() -> None:
    """IG as they are; SO one order for all epochs; RR new ones, the first as of SO.."""
    orders = {}
    for order in Order:
        descend = Pulls(np.zeros((7, 1)))
        run(descend, [Epoch(private=2, public=1)] * 3, n=7, batch=3, order=order)
        assert [index for public, index in descend.seen if public] == [[[0, 1, 2]]] * 3
        orders[order] = [index for public, index in descend.seen if not public]
        assert all(np.unique(index).size == 6 for index in orders[order])
    assert orders[Order.IG] == [[[0, 1, 2], [3, 4, 5]]] * 3
    assert orders[Order.SO] == [orders[Order.SO][0]] * 3
    assert orders[Order.RR][0] == orders[Order.SO][0]
    assert orders[Order.RR][0] != orders[Order.RR][1] != orders[Order.RR][2]


def test_a_record_is_anywhere_in_an_order_and_replicas_have_their_own() -> None:
    descend = Pulls(np.zeros((5, 1)))
    run(descend, [Epoch(private=5)] * 4, n=5, order=Order.RR, w=np.zeros((600, 1, 1)), rng=streams(600))
    places = np.concatenate([np.argmax(np.array(index)[..., 0] == 0, axis=1) for _, index in descend.seen])
    assert stats.chisquare(np.bincount(places, minlength=5)).pvalue > FALSE_ALARM
    (_, first), *_ = descend.seen
    assert len(np.unique(first, axis=0)) > 100
    again = Pulls(np.zeros((5, 1)))
    run(again, [Epoch(private=5)] * 2, n=5, order=Order.SO, w=np.zeros((4, 1, 1)), rng=streams(4))
    assert again.seen[0] == again.seen[1]


def test_order_and_noise_are_the_same_for_other_records() -> None:
    """What is drawn depends on no value: two runs differ by what the records differ by, and no more."""
    ends = [
        run(Pulls(values), [Epoch(private=6)] * 2, n=6, order=Order.RR, noise_std=1.0)
        for values in (np.zeros((6, 1)), np.ones((6, 1)))
    ]
    assert (ends[1] - ends[0])[0] == pytest.approx(1 - 0.9**12)


def test_unused_records_sit_out_and_a_public_epoch_draws_no_order() -> None:
    descend, rng = Pulls(np.zeros((4, 1))), np.random.default_rng(3)
    run(descend, [Epoch(private=0, public=2)] * 2, n=4, order=Order.RR, rng=rng)
    assert [public for public, _ in descend.seen] == [True, True]
    assert rng.bit_generator.state == np.random.default_rng(3).bit_generator.state


KINDS = {
    "private steps": (Epoch(private=3, public=2), 3),
    "all steps": (Epoch(private=3, public=2, public_noise=True), 5),
    "public steps": (Epoch(private=0, public=5, public_noise=True), 5),
    "no step": (Epoch(private=0, public=5), 0),
    "without noise": (Epoch(private=5, noise=False), 0),
    "the end": (Epoch(private=3, public=2, placement=END), 1),
    "the end of a public epoch": (Epoch(private=0, public=5, placement=END), 0),
}


@pytest.mark.parametrize(("epoch", "draws"), KINDS.values(), ids=KINDS)
def test_noise_alone_has_the_variance_of_its_draws(epoch: Epoch, draws: int) -> None:
    def still(index: IntArray, w: Array, *, step_size: Any, noise: Any, noise_std: Any, **_: Any) -> Array:
        return w if noise is None else w - step_size * noise_std * noise.sum(axis=-2)

    ends = run(still, [epoch] * 2, n=5, w=np.zeros(8000), noise_std=3.0)
    if draws == 0:
        assert not ends.any()
        return
    total = float(np.sum(ends**2)) / (2 * draws * 0.1**2 * 9)
    low, high = stats.chi2(8000).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < total < high


def test_noise_is_independent_from_step_to_step_and_from_replica_to_replica() -> None:
    drawn = []

    def keep(index: IntArray, w: Array, *, noise: Array, **_: Any) -> Array:
        drawn.append(noise)
        return w

    run(keep, [Epoch(private=5)] * 40, n=5, w=np.zeros((3, 2, 20)), noise_std=1.0, rng=streams(3))
    values = np.concatenate(drawn, axis=1).reshape(3, -1)
    assert len(np.unique(values)) == values.size
    assert np.abs(np.corrcoef(values) - np.eye(3)).max() < 5.5 / math.sqrt(values.shape[1])


@pytest.mark.parametrize("placement", Placement)
def test_replicas_are_what_they_are_alone(placement: Placement) -> None:
    etas, stds, values = np.array([0.1, 0.2, 0.3]), np.array([0.0, 2.0, 1.0]), column(1, 2, 6)
    epochs = [Epoch(private=2, public=1, public_noise=True, placement=placement)] * 2
    facts: dict[str, Any] = {"prox": SquaredL2(0.5), "order": Order.RR}
    seen: list[Array] = []
    found = run(
        Pulls(values),
        epochs,
        w=np.zeros((2, 3, 1)),
        step_size=etas,
        noise_std=stds,
        rng=streams(2),
        order_rng=[np.random.default_rng(7), np.random.default_rng(8)],
        follow=seen.append,
        **facts,
    )
    assert len(seen) == 2
    assert np.array_equal(seen[-1], found)
    for seed, rng in enumerate(streams(2)):
        state = rng.bit_generator.state
        for setting in range(3):
            rng.bit_generator.state = state
            alone = run(
                Pulls(values),
                epochs,
                step_size=etas[setting],
                noise_std=stds[setting],
                rng=rng,
                order_rng=np.random.default_rng(7 + seed),
                **facts,
            )
            assert found[seed, setting] == pytest.approx(alone, abs=1e-14)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = [Epoch(private=5, public=2, public_noise=True)] * 2
    values = column(1, 2, 6, 3, 5)
    whole = run(Pulls(values), epochs, n=5, order=Order.RR, noise_std=1.0)
    monkeypatch.setattr(room, "_DRAWN", 2)
    descend = Pulls(values)
    assert run(descend, epochs, n=5, order=Order.RR, noise_std=1.0) == pytest.approx(whole)
    assert max(len(index) for _, index in descend.seen) == 2


def test_schedules_that_are_one_another() -> None:
    values = column(3, 1, 4, 1)
    same = np.array(run(Pulls(values), [Epoch(private=4)] * 2, n=4))
    public = run(Pulls(np.zeros((4, 1)), values), [Epoch(private=0, public=4)] * 2, n=4)
    assert public == same  # the same records, public, in their order


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Epoch(private=0), "steps of an epoch"),
        (lambda: Epoch(private=-1, public=3), "private must be"),
        (lambda: Epoch(private=1, public=-1), "public must be"),
        (lambda: Epoch(private=1, placement=cast(Any, "epoch-end")), "placement must be a Placement"),
        (lambda: run(Pulls(column(1)), [Epoch(private=2)], n=1), "private steps of an epoch must be at most"),
        (lambda: run(Pulls(column(1)), [Epoch(private=1)], n=1, batch=2), "batch must be"),
        (lambda: run(Pulls(column(1)), [Epoch(private=1)], n=1, w=np.zeros((2, 1))), "w must have shape"),
        (lambda: run(Pulls(column(1)), [Epoch(private=1)], n=1, rng=streams(2)), "2 streams"),
    ],
)  # fmt: skip
def test_bad_schedules(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()
