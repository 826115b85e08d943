"""Options as people write them: each becomes what its field holds, or is refused by name."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest

from tacit.errors import ParameterError
from tacit.federation import Batch, Disjoint, Fixed, Full, Poisson
from tacit.learning import Method, NoisyMinibatchSGD, make_algorithm
from tacit.learning.algorithms.options import read_option
from tacit.numerics import settle


class Colour(StrEnum):
    RED = "red"


class Constant(msgspec.Struct, frozen=True, tag_field="step", tag="constant"):
    """A step that needs nothing."""


class Decaying(msgspec.Struct, frozen=True, tag_field="step", tag="decaying"):
    """A step with a field."""

    power: float

    def __post_init__(self) -> None:
        settle(self)


class Everything(Method, frozen=True, kw_only=True, tag="everything"):
    """A field of every type."""

    difference_batch: Batch | None = None
    schedule: Constant | Decaying = Constant()
    drawn: Fixed = Fixed(size=1)
    colour: Colour = Colour.RED
    order: Literal["up", "down"] = "up"
    widths: tuple[int, ...] = ()
    warm: bool = False
    step_size: float | None = None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("difference_batch", "full", Full()),
        ("difference_batch", 8, Fixed(size=8)),
        ("difference_batch", 0.25, Fixed(rate=0.25)),
        ("difference_batch", {"batch": "disjoint", "size": 8}, Disjoint(size=8)),
        ("difference_batch", {"batch": "poisson", "rate": 0.5}, Poisson(rate=0.5)),
        ("difference_batch", Disjoint(rate=0.5), Disjoint(rate=0.5)),
        ("difference_batch", None, None),
        ("drawn", 8, Fixed(size=8)),
        ("schedule", "constant", Constant()),
        ("schedule", {"step": "decaying", "power": 0.5}, Decaying(0.5)),
        ("colour", "red", Colour.RED),
        ("order", "down", "down"),
        ("widths", [3, 4], (3, 4)),
        ("warm", True, True),
        ("step_size", 1, 1.0),
        ("rounds", 7, 7),
    ],
)
def test_a_value_becomes_what_its_field_holds(name: str, value: Any, expected: Any) -> None:
    found = read_option(Everything, name, value)
    assert found == expected
    assert type(found) is type(expected)
    given: dict[str, Any] = {name: found}
    made = Everything(**given)
    assert getattr(made, name) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "difference_batch",
            "none",
            "difference_batch must be 'full', a whole number, or a share below 1, or "
            '{batch = "fixed", size, rate}, or {batch = "disjoint", size, rate, repeats, sample}, or '
            "{batch = \"poisson\", rate, size}, got 'none'.",
        ),
        ("difference_batch", 1.0, "difference_batch must be 'full', a whole number, or a share below 1, got"),
        ("difference_batch", -1, "difference_batch must be a finite number > 0, got -1"),
        ("difference_batch", float("nan"), "difference_batch must be a finite number > 0, got nan"),
        ("difference_batch", True, "got True"),
        ("difference_batch", [8], "got [8]"),
        ("difference_batch", {"size": 8}, "got {'size': 8}"),
        ("difference_batch", {"batch": "fixed", "size": 8, "sizes": 9}, "difference_batch must be 'full'"),
        ("difference_batch", {"batch": "fixed", "size": 0}, "size must be a whole number from 1"),
        (
            "schedule",
            "decaying",
            "schedule must be 'constant', or {step = \"decaying\", power}, got 'decaying'",
        ),
        ("schedule", {"step": "decaying", "power": "x"}, "schedule must be 'constant', or"),
        ("schedule", Full(), "schedule must be 'constant'"),
    ],
)
def test_what_stands_for_no_struct_is_refused_with_what_is_allowed(
    name: str, value: Any, message: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        read_option(Everything, name, value)


@pytest.mark.parametrize("value", ["far", [1.0], {}, True, "1"])
def test_other_fields_refuse_for_themselves(value: Any) -> None:
    with pytest.raises(ParameterError, match="step_size must be a number"):
        make_algorithm("minibatch", step_size=value)


def test_algorithms_are_made_of_what_people_write() -> None:
    assert make_algorithm("minibatch", batch=8, step_size=1) == NoisyMinibatchSGD(
        batch=Fixed(size=8), step_size=1.0
    )
