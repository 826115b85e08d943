"""What an estimator says about itself, and what federations rest on, held against what it does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import (
    AdditiveMean,
    DiscreteGaussianNoise,
    Estimator,
    GammaNoise,
    GaussianNoise,
    LaplaceNoise,
    LocalLaplaceMean,
    Message,
    ModularSumMean,
    PrivUnitGMean,
    PrivUnitMean,
    Round,
    SignVoteMean,
    SumEncoder,
)
from tacit.numerics import Array
from tacit.privacy import NonPrivate, TrustModel
from tests.contract.cases import L2, Case
from tests.contract.mean_cases import ESTIMATORS
from tests.statistics import z_bound

DIM, N = 5, 12
TRIALS, FEW, CLEAR = 160, 20, 0.01
ROUND = Round(n=N, radius=1.0, number=4, parties=2, seed=11)

every = pytest.mark.parametrize("case", ESTIMATORS, ids=str)


def inside(case: Case, n: int = N, seed: int = 0) -> Array:
    """Rows that count as they are, half of them of the largest norm."""
    rows = np.random.default_rng(seed).normal(loc=0.3, size=(n, DIM))
    return np.array([case.clip(row * 10.0 ** (k % 2 * 3 - 1), 1.0) for k, row in enumerate(rows)])


def ways_to_treat(estimator: Estimator) -> list[Estimator]:
    """The estimator with rows outside of the ball clipped, refused, and treated as it does by itself."""
    return [msgspec.structs.replace(estimator, on_violation=way) for way in ("clip", "error", None)]


Draw = Callable[[Round, np.random.Generator], Array]


def difference_over_rounds(one: Draw, other: Draw) -> tuple[Array, Array]:
    """Mean and standard error of a difference over rounds, every one of its own number: public maps differ.

    Both are drawn from the same maps and the same randomness, so that much of it cancels. Where nearly all of
    it does, a few rounds tell as much as many.
    """
    found: list[Array] = []
    for t in range(TRIALS):
        facts, seed = replace(ROUND, number=t), [30, t]
        found.append(one(facts, np.random.default_rng(seed)) - other(facts, np.random.default_rng(seed)))
        if len(found) == FEW and np.std(found, axis=0).max() < CLEAR:
            break
    return np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))


def test_every_estimator_that_a_plan_may_name_is_in_the_contract() -> None:
    assert {type(case.make(DIM, 1)) for case in ESTIMATORS} == set(get_args(Estimator))


@every
def test_a_claim_is_made_by_those_that_say_so(case: Case) -> None:
    for estimator in ways_to_treat(case.make(DIM, 1)):
        assert estimator.private == case.private
        assert estimator.private != isinstance(estimator.event(N, estimator.trust), NonPrivate)


def has_float_noise(estimator: Any) -> bool:
    """Whether floats stand in for the real numbers that a price is about, by its definition."""
    if isinstance(estimator, LocalLaplaceMean):
        return estimator.steps == 0
    noise = getattr(estimator, "noise", None)
    return isinstance(estimator, PrivUnitMean | PrivUnitGMean) or isinstance(
        noise, GammaNoise | GaussianNoise | LaplaceNoise
    )


@every
def test_inexact_are_exactly_those_with_float_noise(case: Case) -> None:
    for estimator in ways_to_treat(case.make(DIM, 1)):
        assert estimator.exact == (not has_float_noise(estimator))
        if estimator.private and estimator.trust is not TrustModel.CENTRAL and estimator.exact:
            # What was drawn exactly is whole numbers; a float would have been computed.
            rows = inside(case)
            messages = estimator.encode(rows, ROUND, party=0, rng=np.random.default_rng(1))
            assert all((message.payload == np.rint(message.payload)).all() for message in messages)


@every
def test_rows_are_refused_by_those_that_say_so(case: Case) -> None:
    rows = inside(case)
    rows[7] *= 1e3
    for estimator in ways_to_treat(case.make(DIM, 1)):
        said = pytest.raises(ParameterError, match="on_violation") if estimator.refuses else nullcontext()
        with said:
            estimator.encode(rows, ROUND, party=0, rng=np.random.default_rng(2))


@every
def test_linear_are_those_whose_estimates_scale_with_their_rows(case: Case) -> None:
    # Under much noise a vote is nearly linear in the mean; without it, the length of a row changes no sign.
    estimator, rows = case.make(DIM, 1 if case.divides else 0), inside(case)
    assert estimator.linear == case.divides  # by the planned number: see test_the_divisor_is_the_planned_...
    apart, error = difference_over_rounds(
        lambda facts, rng: estimator.estimate(rows, facts, rng=rng),
        lambda facts, rng: 4 * estimator.estimate(rows / 4, facts, rng=rng),
    )
    tolerance = z_bound(DIM) * error + 1e-6
    if estimator.linear:
        assert np.all(np.abs(apart) <= tolerance + 5 * estimator.error(N).bias)
    else:  # power: the trials tell
        assert np.any(np.abs(apart) > tolerance)


@every
def test_linear_estimates_of_parties_may_be_weighted_and_added_up(case: Case) -> None:
    """Divided by n_i each and weighted by n_i / n, they have the mean of what all rows give at once."""
    estimator, rows, cut = case.make(DIM, 1), inside(case), N // 4
    if not estimator.linear:
        pytest.skip("is counted after every round")

    def apart(round: Round, rng: np.random.Generator) -> Array:
        halves = [rows[:cut], rows[cut:]]
        found = [
            estimator.estimate(part, replace(round, n=len(part), parties=1), rng=rng) * len(part) / N
            for part in halves
        ]
        return np.asarray(sum(found))

    found, error = difference_over_rounds(lambda facts, rng: estimator.estimate(rows, facts, rng=rng), apart)
    bias = estimator.error(N).bias + sum(estimator.error(k).bias * k / N for k in (cut, N - cut))
    assert np.all(np.abs(found) <= z_bound(DIM) * error + bias + 1e-6)


@every
def test_what_counts_is_rows_or_parties(case: Case) -> None:
    """Of two parties that disagree, the one with more rows moves a mean its way; a vote is a vote."""
    estimator, many = case.make(DIM, 0), 5
    up = np.zeros((1, DIM))
    up[0, 0] = 1.0
    down = case.clip(-up[0], 1.0)[None]

    def decoded(ups: int, downs: int) -> Draw:
        def one(this_round: Round, rng: np.random.Generator) -> Array:
            this_round = replace(this_round, n=ups + downs, parties=2)
            messages = []
            for party, rows in enumerate((np.repeat(up, ups, axis=0), np.repeat(down, downs, axis=0))):
                for message in estimator.encode(rows, this_round, party=party, rng=rng):
                    messages.append(Message.from_bytes(message.to_bytes(), sender=party))
            return estimator.decode(messages, this_round, rng=rng)

        return one

    found, error = difference_over_rounds(decoded(many, 1), decoded(1, many))
    moved, tolerance = found[0], z_bound(1) * error[0] + 1e-3
    by_rows = float((up - down)[0, 0]) * (many - 1) / (many + 1)
    assert tolerance < by_rows / 2  # power: neither can pass for the other
    bias = 2 * min(estimator.error(many + 1).bias, by_rows / 6)
    assert abs(moved - (by_rows if estimator.weighs == "rows" else 0.0)) <= tolerance + bias


@every
@pytest.mark.parametrize("seed", range(5))
def test_a_sum_that_is_taken_has_the_law_of_its_rows(case: Case, seed: int) -> None:
    """With one source of randomness the laws are coupled, so that the draws agree too."""
    estimator, part = msgspec.structs.replace(case.make(DIM, 1), on_violation="clip"), inside(case, seed=seed)
    this_round = replace(ROUND, n=len(part), number=seed)
    expected = estimator.encode(part, this_round, party=1, rng=np.random.default_rng(seed))
    for dtype in estimator.sums:
        assert isinstance(estimator, SumEncoder)
        for order in (np.arange(N), np.arange(N)[::-1], np.random.default_rng(seed).permutation(N)):
            total = part.astype(dtype)[order].sum(axis=0, dtype=dtype)
            rng = np.random.default_rng(seed)
            found = estimator.encode_sum(total, rows=len(part), round=this_round, party=1, rng=rng)
            assert [form(message) for message in found] == [form(message) for message in expected]
            for one, other in zip(found, expected, strict=True):
                apart = np.abs(one.payload.astype(np.float64) - other.payload).max()
                # No sum of this data is so near to the middle of two steps, or to a change of sign.
                assert apart <= (N**2 * np.finfo(dtype).eps if other.payload.dtype.kind == "f" else 0)


def form(message: Message) -> tuple[Any, ...]:
    return message.label, message.width, message.sender, message.payload.dtype, message.payload.shape


@every
def test_sums_are_taken_where_their_rows_would_be_clipped_to_an_l2_ball(case: Case) -> None:
    probe = np.arange(1.0, DIM + 1)
    takes = case.make(DIM, 1)
    if isinstance(takes, AdditiveMean | ModularSumMean | SignVoteMean) and np.allclose(
        case.clip(probe, 1), L2(probe, 1)
    ):
        # In single precision, more would be lost than the price of noise on a grid covers.
        whole = isinstance(takes.noise, DiscreteGaussianNoise)
        assert takes.sums == ((np.float64,) if whole else (np.float64, np.float32))
    else:
        assert takes.sums == ()
    for estimator in ways_to_treat(takes):
        assert estimator.sums == (() if estimator.refuses else takes.sums)
