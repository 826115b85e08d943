"""The pan-private stream: its loop, its memory, its law, and attacks with an intrusion at every moment."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError, RefusalError
from tacit.learning import PanPrivateStream
from tacit.learning.algorithms.lan import lan_ac_sa
from tacit.literature import paper_stream_noise_std
from tacit.numerics import Array, L2Ball
from tacit.privacy import Gaussian, PrivacyBudget, calibrate, epsilon_of, verify
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 1e-5)


def toward(w: Array, x: Any) -> Array:
    return np.asarray(w - x)


def stream(gradient: Any = toward, *, seed: int = 0, dim: int = 3, **changes: Any) -> PanPrivateStream:
    generators = iter(np.random.default_rng([seed, k]) for k in range(10**6))
    facts: dict[str, Any] = {
        "budget": BUDGET,
        "length": 23,
        "batch": 5,
        "radius": 1.0,
        "smoothness": 1.0,
        "diameter": 2.0,
        "prox": L2Ball(1.0),
        "draw": lambda: next(generators),
        **changes,
    }
    return PanPrivateStream(gradient, np.zeros(dim), **facts)


DATA = np.random.default_rng(1).standard_normal((23, 3)) / 8


def test_without_noise_it_is_the_loop_of_one_pass() -> None:
    found = stream()
    found._noise = lambda: np.zeros(3, dtype=np.int64)  # type: ignore[method-assign]
    found._gbar = found._noise()
    for x in DATA:
        found.update(x)
    batches = iter(DATA[:20].reshape(4, 5, 3))
    noise_std = math.sqrt(1 / 5 + 6 * found.zeta**2)
    w = lan_ac_sa(
        lambda _r, at, _radius: (at["w"] - next(batches).mean(axis=0),),
        np.zeros(3),
        rounds=4,
        smoothness=1.0,
        noise_std=noise_std,
        diameter=2.0,
        radius=1.0,
        prox=L2Ball(1.0),
        follow=lambda _r, _w: None,
    )
    np.testing.assert_allclose(found.finalize(), w, atol=1e-4)  # of the grid


def test_the_noise_is_that_of_the_theorem_and_costs_what_was_asked() -> None:
    made = stream(radius=1.0, batch=100, length=1000)
    assert made.zeta == pytest.approx(0.074613, rel=2e-4)  # rounding to the grid adds a little
    assert made.zeta == pytest.approx(2 / 100 * calibrate(Gaussian, BUDGET), rel=2e-4)
    assert epsilon_of(made.event, BUDGET.delta) <= 1.0
    verify(made.guarantee)
    assert "once" in made.guarantee.observer
    assert made.guarantee_against(1) == made.guarantee
    assert paper_stream_noise_std(100, BUDGET) == pytest.approx(0.098817, abs=5e-7)
    with pytest.raises(ParameterError, match="epsilon must be at most 1"):
        paper_stream_noise_std(100, PrivacyBudget(1.1, 1e-5))


def test_memory_holds_four_arrays_and_public_numbers() -> None:
    made = stream()
    made.update(DATA[0])
    assert set(made.state()) == {"theta", "ag", "md", "gbar"}
    held = {name: value for name, value in vars(made).items() if isinstance(value, np.ndarray)}
    assert set(held) == {"_theta", "_ag", "_md", "_gbar"}
    assert not any(isinstance(value, np.random.Generator | list) for value in vars(made).values())


@pytest.mark.parametrize("at", [0, 7, 14, 19, 22])
def test_runs_that_differ_in_one_record_agree_up_to_it(at: int) -> None:
    other = DATA.copy()
    other[at] = [0.5, -0.5, 0.5]
    one, two = stream(), stream()
    for i, (x, y) in enumerate(zip(DATA, other, strict=True)):
        same = all(np.array_equal(one.state()[k], two.state()[k]) for k in one.state())
        assert same == (i <= at or at >= 20)
        one.update(x)
        two.update(y)


def law(std: float, size: int) -> Array:
    z = np.arange(-size, size + 1)
    weights = np.exp(-(z**2) / (2 * std**2))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("steps", [1, 2])
def test_the_joint_law_of_an_intrusion_and_the_sum_is_within_the_price(steps: int) -> None:
    """Exact: one batch of two records, intrusion between them, the worse of both records; half is caught."""
    made = stream(dim=1, length=2, batch=2, steps=steps, budget=PrivacyBudget(1.0, 1e-3))
    std, size = 2 * made._multiplier * steps, int(60 * made._multiplier * steps)
    for factor in (1.0, 0.5):
        noise = law(std * factor, size)
        joint = np.outer(noise, noise)  # of (gbar - x_1, final sum - gbar - x_2)
        worst = 0.0
        for axis in (0, 1):  # record 1 moves the first noise alone, record 2 the second alone
            moved = np.roll(joint, 2 * steps, axis=axis)
            worst = max(worst, float(np.maximum(moved - math.e * joint, 0).sum()))
        assert (worst <= 1e-3) == (factor == 1.0)


def calibrated_once(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> Callable[[int], PanPrivateStream]:
    """Streams of one number that differ in their seed, and are all made with the noise of the first."""
    first = stream(lambda _w, x: np.array([x]), dim=1, **facts)
    monkeypatch.setattr("tacit.learning.stream.calibrate", lambda *_: first._multiplier)
    return lambda seed: stream(lambda _w, x: np.array([x]), dim=1, seed=seed, **facts)


def test_its_noise_has_that_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square of gbar after one record, 4,000 streams."""
    budget = PrivacyBudget(2.0, 0.05)
    made = calibrated_once(monkeypatch, length=2, batch=2, steps=1, budget=budget)
    seen = []
    for seed in range(4000):
        one = made(seed)
        one.update(1.0)
        seen.append(int(one.state()["gbar"][0]) - 1)
    p = law(2 * made(0)._multiplier, 200)
    edges = np.arange(-4, 6)
    expected = [p[200 + z] for z in edges]
    counts = [seen.count(int(z)) for z in edges]
    rest = 1 - sum(expected)
    found = stats.chisquare([*counts, 4000 - sum(counts)], 4000 * np.array([*expected, rest]))
    assert found.pvalue > FALSE_ALARM


def test_an_attack_with_an_intrusion_stays_below_the_price_and_catches_half_the_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Record 2 of 3 is 1 or -1, all else is 0; the attacker takes the noisy number that only it moves.

    700 runs each; Clopper-Pearson on either side at FALSE_ALARM/2.
    """
    budget, runs = PrivacyBudget(0.1, 0.3), 700
    made = calibrated_once(monkeypatch, length=3, batch=3, steps=64, budget=budget, prox=None)

    def statistics(x: float, seed: int, factor: float) -> tuple[float, ...]:
        """Of an intrusion after record 1, 2, and 3."""
        one = made(seed)
        one._multiplier *= factor
        one._gbar = one._noise()
        gbar = []
        for record in (0.0, x, 0.0):
            one.update(record)
            gbar.append(float(one.state()["gbar"][0]))
        after = one._theta[0]
        total = -after * one._scale / 2 / (1.0 / 64 / 3)
        # The record and Z_b; Z_a and the record; both noises.
        return total - gbar[0], gbar[1], -after

    def lower(factor: float) -> Array:
        ones = np.array([statistics(1.0, s, factor) for s in range(runs)])
        others = np.array([statistics(-1.0, s + runs, factor) for s in range(runs)])
        cut = np.median(np.concatenate([ones, others]), axis=0)
        hit, false = (ones > cut).sum(axis=0), (others > cut).sum(axis=0)
        tail = FALSE_ALARM / 2
        true_low = stats.beta.ppf(tail, hit, runs - hit + 1)
        false_high = stats.beta.ppf(1 - tail, false + 1, runs - false)
        return np.asarray(true_low - math.exp(budget.epsilon) * false_high)

    assert (lower(1.0) <= budget.delta).all()
    # The result alone has twice the variance, and no half to spare.
    assert (lower(0.5)[:2] > budget.delta).all()


def test_two_intrusions_around_a_record_show_it_without_noise_and_are_refused() -> None:
    """So there is no price of two, whatever the noise, and one is refused before anything is taken for it."""
    made = stream()
    for at, x in enumerate(DATA[:5]):
        before = made.state()
        made.update(x)
        after = made.state()
        if at < 4:  # the last record of a batch is followed by fresh noise
            shown = (after["gbar"] - before["gbar"]) / 2**16
            np.testing.assert_allclose(shown, before["md"] - x, atol=2**-16)
    for many in (2, 7):
        with pytest.raises(ParameterError, match=f"intrusions must be 1, got {many}: two around one record"):
            made.guarantee_against(many)
    with pytest.raises(ParameterError, match="intrusions must be a whole number >= 1"):
        made.guarantee_against(0)
    assert "there is at most one intrusion" in made.guarantee.assumptions


def test_what_it_refuses() -> None:
    made = stream(length=5)
    with pytest.raises(RefusalError, match="5 more records"):
        made.finalize()
    for x in DATA[:5]:
        made.update(x)
    made.finalize()
    with pytest.raises(RefusalError, match="planned for 5 records"):
        made.update(DATA[5])
    with pytest.raises(ParameterError, match="batch must be a whole number"):
        stream(batch=24)
    with pytest.raises(ParameterError, match="radius must be a finite number > 0"):
        stream(radius=0.0)
    with pytest.raises(ParameterError, match="start must be a finite vector"):
        PanPrivateStream(
            toward,
            np.array([np.nan]),
            budget=BUDGET,
            length=5,
            batch=5,
            radius=1.0,
            smoothness=1.0,
            diameter=1.0,
        )
    for radius in (1e-300, 1e300):
        with pytest.raises(ParameterError, match="radius must be from"):
            stream(radius=radius)


def fails(_w: Array, _x: object) -> Array:
    raise ValueError("about the record")


@pytest.mark.parametrize(
    "gradient",
    [
        fails,
        lambda _w, _x: np.full(3, np.nan),
        lambda _w, _x: np.zeros(2),
        lambda _w, _x: np.ones(3, dtype=complex),
        lambda _w, _x: np.array(["1", "2", "3"]),
        lambda _w, _x: np.float64(1e308) * np.ones(3) * 10,
    ],
)
def test_a_record_without_a_gradient_counts_as_zero_and_says_nothing(
    gradient: Callable[[Array, object], Array],
) -> None:
    """An error would tell of the record, and at the end of a batch leave out the second noise."""
    made = stream(lambda w, x: gradient(w, x) if x is None else np.zeros(3), length=5, batch=5)
    for _ in range(4):
        made.update(DATA[0])
    before = made.state()["gbar"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.update(None)
    np.testing.assert_array_equal(made.state()["gbar"], 0)
    assert before.any()
    assert made.finalize().any()  # noise of both kinds is in it
