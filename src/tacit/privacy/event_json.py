"""Events as JSON: what plans, ledgers and statements store, read back with every field checked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.privacy.events import Event
from tacit.privacy.strict_json import read_json

__all__ = ["event_from_builtins", "event_from_json", "event_to_json", "plain"]

_MOST_EVENTS = 10_000
"""Kinds of rounds are few, and equal ones are repeated: more would be made to stall who prices them."""


def event_to_json(event: Event) -> bytes:
    """Write an event as JSON; `event_from_json` reads it back equal."""
    return msgspec.json.encode(event, enc_hook=plain)


def event_from_json(data: bytes | str) -> Event:
    """Read an event that `event_to_json` wrote.

    Raises:
        ParameterError: Not JSON, an unknown event, a missing or unknown field, a value out of range.
    """
    try:
        parsed = read_json(data)
    except ParameterError as error:
        raise ParameterError(f"an event must be JSON as written by tacit: {error}.") from error
    return event_from_builtins(parsed)


def event_from_builtins(data: object) -> Event:
    """Build an event from what a JSON or TOML parser returns; errors as `event_from_json`."""
    try:
        return _event(data, count(1))
    except RecursionError as error:
        raise ParameterError("an event must not be nested that deep.") from error


def _event(data: object, seen: Iterator[int]) -> Event:
    """Build an event and all that it contains; `seen` counts them."""
    if next(seen) > _MOST_EVENTS:
        raise ParameterError(f"an event must not hold more than {_MOST_EVENTS:,} others.")
    name = data.get("event") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(name, str) or name not in Event.registry:
        given = type(data).__name__ if name is None else repr(name)
        raise ParameterError(f"event must be one of {', '.join(sorted(Event.registry))}, got {given}.")
    kind = Event.registry[name]
    fields = {name: value for name, value in data.items() if name != "event"}
    known = kind.__struct_fields__
    if extra := sorted(set(fields) - set(known)):
        raise ParameterError(f"{kind.__name__} has no field {extra[0]!r}; it has {', '.join(known)}.")
    hints = msgspec.structs.fields(kind)
    values = {f.name: _field(fields[f.name], f.type, seen) for f in hints if f.name in fields}
    if missing := [f.name for f in hints if f.required and f.name not in values]:
        raise ParameterError(f"{kind.__name__} needs the field {missing[0]!r}.")
    return kind(**values)


def _field(value: object, kind: Any, seen: Iterator[int]) -> object:
    """Convert one field, recursing into events."""
    if isinstance(kind, type) and issubclass(kind, Event):
        return _event(value, seen)
    if kind == tuple[Event, ...]:
        if not isinstance(value, list):
            raise ParameterError(f"the parts of an event must be a list, got {type(value).__name__}.")
        return tuple(_event(part, seen) for part in value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ParameterError(f"a field of an event has the wrong type: {error}.") from error


def plain(value: object) -> object:
    """Return a NumPy number as a Python number: the `enc_hook` of whatever holds events."""
    if isinstance(value, np.generic):
        return value.item()
    raise ParameterError(f"an event cannot hold a {type(value).__name__}.")
