"""The artefact: only what is certified can be made, stored or read; what is stored is certified again."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError, VerificationError
from tacit.privacy import Neighbours, Relation, epsilon_of, event_from_json, event_to_json, guarantee, verify
from tacit.privacy.certified import GRID, exact_worst_case
from tacit.randomness import simulated
from tacit.voting import NoiseFunction, Ties, allowance, certified, certify, design
from tests.voting.reference import brute_force


@settings(max_examples=40, deadline=None)
@given(
    teachers=st.integers(1, 13),
    epsilon=st.floats(1e-3, 3.0),
    share=st.floats(0.0, 1.0),
    delta=st.sampled_from([0.0, 1e-8, 1e-3, 0.2]),
    seed=st.integers(0, 10_000),
    rising=st.booleans(),
)
def test_whatever_is_made_meets_its_target_in_whole_numbers(
    teachers: int, epsilon: float, share: float, delta: float, seed: int, *, rising: bool
) -> None:
    gamma = np.minimum(1.5 * simulated(seed, "gamma").random((teachers + 1) // 2), 1.0)
    gamma = np.sort(gamma) if rising else gamma
    asked = allowance(teachers, epsilon, 1 + share * (teachers - 1), delta=delta, ties=Ties.COIN)
    noise = certified(gamma, asked)
    values = np.array(noise.gamma)
    assert np.all(values * GRID % 1 == 0)
    assert np.all(values <= gamma + 1 / GRID)
    needed, _ = exact_worst_case(asked.voters, values, asked.target_epsilon)
    assert needed <= Fraction(asked.target_delta)
    assert noise.certificate.exact
    assert noise.certificate.slack >= 0
    assert noise.event().certified_delta <= asked.target_delta


@pytest.mark.parametrize("m", [1, 2, 3])
def test_repair_scales_to_the_target_and_no_further(m: int) -> None:
    asked = allowance(5, 0.7, m, delta=0.01)
    noise = certified(np.ones(3), asked)
    needed = brute_force(asked, noise.gamma)
    assert needed <= asked.target_delta + 1e-15
    if noise.gamma[0] < 1:
        assert needed == pytest.approx(asked.target_delta, abs=1e-10)
        assert len(set(noise.gamma)) == 1
    assert certified(noise.gamma, asked).gamma == noise.gamma


def test_a_certificate_says_what_is_needed_and_where() -> None:
    asked = allowance(11, 0.1, 1)
    found = certify(np.ones(6), asked)
    assert found.delta_required == pytest.approx(8.917e-2, rel=5e-4)
    assert found.slack == pytest.approx(-found.delta_required)
    assert not found.holds
    assert sum(found.worst) == 11
    exact = certify(np.ones(6), asked, exact=True)
    assert exact.exact
    assert exact.worst == found.worst
    assert exact.delta_required == pytest.approx(found.delta_required, rel=1e-12)
    assert exact.delta_required <= found.delta_required


def test_slack_is_more_delta_or_more_epsilon() -> None:
    gamma = design(allowance(11, 0.1, 3), "optimal-monotone").gamma
    assert certify(gamma, allowance(11, 0.1, 3, target_delta=1e-3)).slack == pytest.approx(1e-3, rel=1e-6)
    assert certify(gamma, allowance(11, 0.1, 4)).holds
    assert not certify(gamma, allowance(11, 0.1, 2.999)).holds
    assert not certify(gamma, allowance(11, 0.1, 3, delta=1e-3, target_delta=1e-3)).holds


@pytest.mark.parametrize(
    ("gamma", "message"),
    [
        ([0.5] * 5, "must have shape"),
        ([0.5] * 5 + [1.01], r"in \[0, 1\]"),
        ([0.5] * 5 + [-0.01], r"in \[0, 1\]"),
        ([0.5] * 5 + [math.nan], r"in \[0, 1\]"),
        (["a"] * 6, "must hold real numbers"),
    ],
)
def test_what_is_no_noise_function_is_refused(gamma: Any, message: str) -> None:
    for make in (certify, certified):
        with pytest.raises(ParameterError, match=message):
            make(gamma, allowance(11, 0.1, 3))


def test_an_uncertified_noise_function_cannot_be_made() -> None:
    noise = design(allowance(11, 0.1, 3), "optimal-monotone")
    with pytest.raises(ParameterError, match="does not meet the target"):
        msgspec.structs.replace(noise, gamma=(1.0,) * 6)
    with pytest.raises(ParameterError, match="does not meet the target"):
        msgspec.structs.replace(noise, setting=allowance(11, 0.1, 2.9))
    with pytest.raises(ParameterError, match="multiples of 2"):
        msgspec.structs.replace(noise, gamma=(1e-17, *noise.gamma[1:]))


@pytest.mark.parametrize("teachers", [10, 11])
def test_json_reads_back_equal(teachers: int) -> None:
    noise = design(allowance(teachers, 0.1, 3, delta=1e-5, ties=Ties.COIN), "optimal")
    assert NoiseFunction.from_json(noise.to_json()) == noise
    assert NoiseFunction.from_json(noise.to_json().decode()) == noise


def _changed(path: str, value: Any) -> bytes:
    data = json.loads(design(allowance(5, 0.3, 2), "optimal").to_json())
    *parents, last = path.split(".")
    inner = data
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "must be JSON"),
        (b"[]", "version None"),
        (_changed("version", 2), "version 2; this tacit reads 1"),
        (_changed("gamma", [1.0, 1.0, 1.0]), "does not meet the target"),
        (_changed("gamma", [0.0, 0.0, 0.0]), "states that it needs"),
        (_changed("gamma", [0.5]), "must have shape"),
        (_changed("setting.target_epsilon", 0.4), "states that it needs|does not meet"),
        (_changed("setting.teachers", 4), "must be odd"),
        (_changed("certificate.slack", 0.5), "states that it needs"),
        (_changed("certificate.delta_required", 0.5), "states that it needs"),
        (_changed("colour", "red"), "unknown field"),
        (_changed("gamma", "all"), "cannot be used"),
    ],
)
def test_a_changed_artefact_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        NoiseFunction.from_json(data)


def test_the_event_carries_the_design_into_a_statement() -> None:
    near = Neighbours(Relation.ADD_REMOVE)
    noise = design(allowance(11, 0.1, 3, delta=1e-5), "optimal-monotone")
    event = noise.event(near)
    assert event.neighbours == near
    assert event_from_json(event_to_json(event)) == event
    assert epsilon_of(event, noise.setting.target_delta) <= noise.setting.target_epsilon * (1 + 1e-9)
    claim = guarantee(event, noise.setting.target_delta, observer="an analyst")
    assert claim.epsilon == 0.3
    assert claim.method == "exact certificate of a noisy majority"
    verify(claim)
    with pytest.raises(VerificationError):
        verify(msgspec.structs.replace(claim, epsilon=0.29))


def test_a_certificate_that_lies_is_refused_or_replaced() -> None:
    noise = design(allowance(5, 0.3, 2), "constant")
    lie = msgspec.structs.replace(noise.certificate, slack=9.0)
    with pytest.raises(ParameterError, match="certificate must be that of gamma"):
        msgspec.structs.replace(noise, certificate=lie)
    fields = json.loads(noise.to_json())
    fields["certificate"]["worst"] = [99, 0, 0, 0, 0, 0, 0, -5]
    assert NoiseFunction.from_json(json.dumps(fields)).certificate.worst == noise.certificate.worst
