"""Doors of the voting room against values of other types and sizes: the library's errors, and quickly."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.voting import (
    GNMax,
    NoiseFunction,
    PrivateVotingClassifier,
    Setting,
    Shards,
    Staircase,
    VotedBy,
    allowance,
    certify,
    design,
    gamma_constant,
    gamma_double_subsampling,
    gamma_subsampling,
    gnmax_sigma_analytic,
    gnmax_sigma_rdp,
    index_shards,
    majority_guarantee,
    one_sided,
    plan_designs,
)
from tests.voting.test_classifier import constant

SETTING = allowance(5, 0.3, 2)
NOISE = design(SETTING, "constant")
VALUES = [
    -1, 0, 2**63, 10**400, 10**5000, 2**70, 10**9, math.nan, math.inf, -math.inf, 1e308, 5e-324, True,
    np.True_, "1", "\ud800", b"x", None, 1j, [1], np.array([1.0]), np.float16(0.3), np.float32(0.5),
    np.int8(3), object(),
]  # fmt: skip
TEACHERS = [constant("ill")] * 5

DOORS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "allowance": (
        allowance,
        {
            "teachers": 5, "epsilon": 0.3, "m": 2, "delta": 1e-6, "target_delta": 2e-6, "ties": None,
            "affected": 3,
        },
    ),
    "setting": (
        Setting,
        {
            "teachers": 5, "epsilon": 0.3, "target_epsilon": 0.6, "delta": 0.0, "target_delta": 0.0,
            "ties": None, "affected": None,
        },
    ),
    "design": (lambda **more: design(SETTING, **more), {"name": "optimal", "objective": None}),
    "plan": (lambda **more: plan_designs(SETTING, **more), {"objective": None, "draws": 10}),
    "certify": (lambda gamma: certify(gamma, SETTING), {"gamma": [0.0, 0.0, 0.0]}),
    "guarantee": (
        lambda **more: majority_guarantee(NOISE, **more),
        {"queries": 3, "shards": Shards.SHARED, "voted_by": VotedBy.FIXED, "delta": 0.0},
    ),
    "gnmax": (GNMax, {"sigma": 3.0, "classes": 2}),
    "staircase": (Staircase, {"teachers": 5, "epsilon": 0.3, "delta": 0.0}),
    "sigma": (gnmax_sigma_analytic, {"epsilon": 0.3, "delta": 1e-5}),
    "sigma by rdp": (gnmax_sigma_rdp, {"epsilon": 0.3, "delta": 1e-5}),
    "consensus": (one_sided, {"teachers": 5, "mean": 0.75}),
    "constant": (gamma_constant, {"teachers": 5, "probability": 0.3}),
    "subsampling": (gamma_subsampling, {"teachers": 5, "size": 3}),
    "double": (gamma_double_subsampling, {"teachers": 5, "allowance": 2}),
    "shards": (index_shards, {"records": 10, "shards": 2, "seed": 0}),
    "classifier": (
        lambda **more: PrivateVotingClassifier(**more).fit(),
        {
            "estimators": TEACHERS, "epsilon": 0.3, "delta": 0.0, "m": 2, "design": "constant", "ties": None,
            "voted_by": "fixed", "shards": "shared", "max_queries": 10, "budget": None, "neighbours": None,
            "random_state": None,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_every_door_answers_or_refuses_in_the_librarys_words(door: str) -> None:
    call, right = DOORS[door]
    call(**right)
    refused = 0
    for name in right:
        for value in VALUES:
            if (door, name) == ("classifier", "estimators"):
                continue  # scikit-learn's NotFittedError
            try:
                call(**{**right, name: value})
            except TacitError as error:
                refused += bool(str(error).encode())
    assert refused >= len(right)


def test_a_setting_holds_pythons_numbers_whatever_made_it() -> None:
    foreign: dict[str, Any] = {
        "teachers": np.int16(5), "epsilon": np.float32(0.5), "target_epsilon": np.float64(1.0),
        "delta": np.float16(0), "target_delta": 0, "affected": np.int8(4),
    }  # fmt: skip
    made = Setting(**foreign)
    assert made == allowance(5, 0.5, 2, affected=4)
    kinds = {type(getattr(made, name)) for name in ("epsilon", "target_epsilon", "delta", "target_delta")}
    assert (kinds, type(made.teachers), type(made.affected)) == ({float}, int, int)
    sigma: Any = np.float16(3)
    assert type(GNMax(sigma=sigma).sigma) is float


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in an artefact."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in items for found in places(inner, (*path, key)))]


def test_no_artefact_crashes_its_reader() -> None:
    whole = json.loads(NOISE.to_json())
    texts = [
        "1" + "0" * 400, "1e400", "-1", "0", "true", "null", "9223372036854775808", "1000000000", "5e-324",
        '"x"', "[]", "{}", "[[[]]]", "-0.0",
    ]  # fmt: skip
    read = 0
    del whole["version"]
    for path in places(whole)[1:]:
        for text in texts:
            forged = deepcopy(whole)
            inner = forged
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = "@"
            try:
                made = NoiseFunction.from_json(json.dumps({"version": 1, **forged}).replace('"@"', text))
            except TacitError:
                continue
            read += 1
            assert certify(made.gamma, made.setting).holds  # whatever the text says of itself
    assert read > 0
    many = {
        "version": 1,
        **whole,
        "gamma": [0.0] * 200_000,
        "setting": {**whole["setting"], "teachers": 399_999},
    }
    for data in (b"\xff", b"{" * 100_000, b"", b"[]", b"null", json.dumps(many)):
        with pytest.raises(TacitError):
            NoiseFunction.from_json(data)
