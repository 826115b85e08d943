"""Events as JSON: what plans, ledgers and statements store, read back with every field checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from typing import Any, TypeVar

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.privacy.events import Event
from tacit.privacy.strict_json import read_json

__all__ = ["event_from_builtins", "event_from_json", "event_to_json", "struct_from_builtins", "to_plain"]

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_MOST_EVENTS = 10_000
"""Kinds of rounds are few, and equal ones are repeated: more would be made to stall who prices them."""


def event_to_json(event: Event) -> bytes:
    """Write an event as JSON; `event_from_json` reads it back equal."""
    return msgspec.json.encode(event, enc_hook=to_plain)


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
    return _read(_event, data)


def struct_from_builtins(kind: type[_Struct], fields: dict[str, Any]) -> _Struct:
    """Build a struct that may hold events from its fields as a parser returns them.

    Raises:
        ParameterError: A missing or unknown field, or a value of the wrong type or out of range.
    """
    return _read(partial(_struct, kind), fields)


def _read(build: Callable[[Any, Iterator[int]], _Struct], data: object) -> _Struct:
    """Build what is nested, but not too deep."""
    try:
        return build(data, count(1))
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
    fields = {name: value for name, value in data.items() if name != "event"}
    return _struct(Event.registry[name], fields, seen)


def _struct(kind: type[_Struct], fields: dict[str, Any], seen: Iterator[int]) -> _Struct:
    """Build a struct and all events that it contains."""
    known = kind.__struct_fields__
    if extra := sorted(set(fields) - set(known)):
        raise ParameterError(f"{kind.__name__} has no field {extra[0]!r}; it has {', '.join(known)}.")
    values = {}
    for field in _fields(kind):
        if field.name in fields:
            where = f"{kind.__name__}.{field.name}"
            values[field.name] = _field(where, fields[field.name], field.type, seen)
        elif field.required:
            raise ParameterError(f"{kind.__name__} needs the field {field.name!r}.")
    return kind(**values)


_fields = cache(msgspec.structs.fields)  # it reads the types anew each time, and a statement holds thousands


def _field(name: str, value: object, kind: Any, seen: Iterator[int]) -> object:
    """Convert one field, recursing into events."""
    if isinstance(kind, type) and issubclass(kind, Event):
        return _event(value, seen)
    if kind == tuple[Event, ...]:
        if not isinstance(value, list):
            raise ParameterError(f"{name} must be a list of events, got {type(value).__name__}.")
        return tuple(_event(part, seen) for part in value)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ParameterError(f"{name}: {error}.") from error


def to_plain(value: object) -> object:
    """Return a NumPy number as a Python number: the `enc_hook` of whatever holds events."""
    if isinstance(value, np.generic):
        return value.item()
    raise ParameterError(f"an event cannot hold a {type(value).__name__}.")
