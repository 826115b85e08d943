"""Events as JSON: read back equal, or refused."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy import (
    Compose,
    Event,
    Gaussian,
    PureDP,
    Repeat,
    event_from_builtins,
    event_from_json,
    event_to_json,
)
from tacit.privacy.event_json import to_plain
from tests.privacy.event_examples import EVENTS

GAUSSIAN = {"event": "Gaussian", "noise_multiplier": 1.0}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_round_trip(event: Event) -> None:
    written = event_to_json(event)
    assert event_from_json(written) == event
    assert event_from_json(written.decode()) == event
    assert event_from_builtins(json.loads(written)) == event


def test_numpy_numbers_are_written_as_numbers() -> None:
    count: Any = np.int64(3)
    event = Repeat(PureDP(np.float64(0.5)), count)
    assert event_from_json(event_to_json(event)) == Repeat(PureDP(0.5), 3)


def test_what_json_cannot_hold_is_refused() -> None:
    level: Any = _Level(0.5)
    assert event_to_json(Repeat(PureDP(0.5), level)) == event_to_json(Repeat(PureDP(0.5), 1))
    with pytest.raises(ParameterError, match="an event cannot hold a object"):
        to_plain(object())


class _Level(int):
    """A number that msgspec does not know."""

    def __new__(cls, value: float) -> _Level:
        return super().__new__(cls, math.ceil(value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "must be JSON"),
        (b'{"event": "\x91"}', "must be JSON"),
        (b'{"event": "Gaussian", "noise_multiplier": NaN}', "must be JSON"),
        (b"3", "event must be one of .*, got int"),
        (b"[]", "event must be one of .*, got list"),
        (b"{}", "event must be one of"),
        (b'{"event": ["Gaussian"]}', "event must be one of"),
        (b'{"event": "Leaf"}', "event must be one of .*, got 'Leaf'"),
        (b'{"event": "Event"}', "event must be one of .*, got 'Event'"),
        (b'{"event": "Gausian", "noise_multiplier": 1.0}', "got 'Gausian'"),
        (b'{"event": "Gaussian"}', "Gaussian needs the field 'noise_multiplier'"),
        (b'{"event": "Gaussian", "noise_multiplier": "1.0"}', "Gaussian.noise_multiplier: Expected `float`"),
        (b'{"event": "Gaussian", "noise_multiplier": null}', "Gaussian.noise_multiplier: Expected `float`"),
        (b'{"event": "Gaussian", "noise_multiplier": 0.0}', "noise_multiplier must be a finite number > 0"),
        (b'{"event": "Gaussian", "noise_multiplier": 1.0, "noise": 2}', "Gaussian has no field 'noise'"),
        (
            b'{"event": "Gaussian", "noise_multiplier": 1.0, "neighbours": {"relation": "swap"}}',
            "Gaussian.neighbours: Invalid",
        ),
        (b'{"event": "Compose", "parts": {}}', "Compose.parts must be a list of events, got dict"),
        (b'{"event": "Compose", "parts": []}', "at least one part"),
        (b'{"event": "Repeat", "part": 3, "count": 1}', "event must be one of"),
        (b'{"event": "PureDP", "epsilon": 1e400}', "PureDP|must be"),
    ],
)
def test_wrong_json_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        event_from_json(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count must be"),
        ({"count": 2.5}, "Repeat.count: Expected `int`"),
        ({"count": True}, "Repeat.count: Expected `int`"),
        ({"part": {**GAUSSIAN, "noise_multiplier": math.nan}}, "noise_multiplier must be"),
        ({"part": {**GAUSSIAN, "noise_multiplier": math.inf}}, "noise_multiplier must be"),
        ({"event": "Sampled", "rate": 0.1, "how": "poisson"}, "no field 'count'"),
    ],
)
def test_wrong_values_are_refused(change: dict[str, Any], message: str) -> None:
    data = {"event": "Repeat", "part": GAUSSIAN, "count": 2}
    assert event_from_builtins(data) == Repeat(Gaussian(1.0), 2)
    with pytest.raises(ParameterError, match=message):
        event_from_builtins({**data, **change})


def test_sampling_and_neighbours_are_checked_on_reading() -> None:
    other = {**GAUSSIAN, "neighbours": {"relation": "add-remove"}}
    with pytest.raises(ParameterError, match="sample cannot be priced"):
        event_from_builtins({"event": "Sampled", "part": GAUSSIAN, "rate": 0.1, "how": "poisson"})
    with pytest.raises(ParameterError, match="different neighbours"):
        event_from_builtins({"event": "Compose", "parts": [GAUSSIAN, other]})


def test_the_number_of_events_is_limited() -> None:
    several = {"event": "Compose", "parts": [GAUSSIAN] * 99}  # a hundred events
    assert isinstance(event_from_builtins({"event": "Compose", "parts": [several] * 99}), Compose)
    with pytest.raises(ParameterError, match="must not hold more than 10,000 others"):
        event_from_builtins({"event": "Compose", "parts": [several] * 100})


def test_depth_is_limited_by_an_error_not_a_crash() -> None:
    deep: Any = GAUSSIAN
    for _ in range(100_000):
        deep = {"event": "Repeat", "part": deep, "count": 1}
    try:
        with pytest.raises(ParameterError, match="nested that deep"):
            event_from_builtins(deep)
    finally:
        while "part" in deep:  # a chain this long must not be freed by recursion
            deep = deep.pop("part")
    text = '{"event":"Repeat","count":1,"part":' * 100_000
    with pytest.raises(ParameterError, match="must be JSON"):
        event_from_json(text)
