"""The door of every record that is made of numbers from elsewhere: they become Python's, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, real, shown, whole

__all__ = ["settle"]

_MOST_ENTRIES = 2**18  # of a tuple: whoever names millions of parameters keeps us busy

_NAMED = 3  # kinds that an error lists

_Convert = Callable[[str, Any], Any]


def settle(record: Any) -> None:
    """Give every field of a frozen record the plain type that it declares; the first line of `__post_init__`.

    Numbers become Python floats and ints and texts Python strings, inside tuples too: NumPy's would compute
    in 16 or 32 bits, overflow in silence, and have other digests and no wire form. Whatever else stands where
    a number, a truth value, a text, a tuple or another record is declared is refused. Ranges, and which
    members of an enumeration are allowed, are for the caller to check.

    Args:
        record: A frozen dataclass or msgspec struct, whose annotations can be resolved.

    Raises:
        ParameterError: A field has another type.

    Example:
        >>> import numpy as np
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Scale:
        ...     std: float
        ...     def __post_init__(self) -> None:
        ...         settle(self)
        >>> Scale(np.float16(0.5))
        Scale(std=0.5)
        >>> Scale("0.5")
        Traceback (most recent call last):
            ...
        tacit.errors.ParameterError: std must be a number, at most 1.8e308, got '0.5'.
    """
    is_struct = isinstance(record, msgspec.Struct)
    kind: Any = type(record)
    for name, convert in _converters(kind):
        value = getattr(record, name)
        plain = convert(name, value)
        if plain is value:
            continue
        if is_struct:
            msgspec.structs.force_setattr(record, name, plain)
        else:
            object.__setattr__(record, name, plain)


@cache
def _converters(kind: Any) -> tuple[tuple[str, _Convert], ...]:
    """Return how to convert each field of a kind of record; fields that may hold anything are left out."""
    hints = get_type_hints(kind)
    is_struct = issubclass(kind, msgspec.Struct)
    names = kind.__struct_fields__ if is_struct else [field.name for field in fields(kind)]
    found = ((name, _converter(hints[name])) for name in names)
    return tuple((name, convert) for name, convert in found if convert is not None)


def _converter(hint: Any) -> _Convert | None:
    """Return how to convert a value to what an annotation says; None where it says too little."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is Literal:
        return _literal(args)
    if origin is tuple:
        return _tuple(args)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _member((hint,))
    return None


def _union(kinds: tuple[Any, ...]) -> _Convert | None:
    """Return how to convert what may be one of several kinds: the first that fits."""
    optional = NoneType in kinds
    rest = tuple(kind for kind in kinds if kind is not NoneType)
    if len(rest) > 1 and all(isinstance(kind, type) and issubclass(kind, msgspec.Struct) for kind in rest):
        found: list[_Convert | None] = [_member(rest)]
    else:
        # A whole number that may be either stays whole.
        found = [_converter(kind) for kind in sorted(rest, key=lambda kind: kind is float)]
    converts = [convert for convert in found if convert is not None]
    if len(converts) < len(found):
        return None

    def convert(name: str, value: Any) -> Any:
        if value is None and optional:
            return None
        for attempt in converts[:-1]:
            try:
                return attempt(name, value)
            except ParameterError:
                continue
        return converts[-1](name, value)

    return convert


def _tuple(kinds: tuple[Any, ...]) -> _Convert:
    """Return how to convert a tuple, entry by entry."""
    endless = len(kinds) == 2 and kinds[1] is Ellipsis
    entries = [_converter(kind) for kind in kinds if kind is not Ellipsis]

    def convert(name: str, value: Any) -> Any:
        if not isinstance(value, tuple) or not (endless or len(value) == len(entries)):
            length = "" if endless else f" of {len(entries)}"
            raise ParameterError(f"{name} must be a tuple{length}, got {shown(value)}.")
        check_count(f"the number of entries of {name}", len(value), low=0, high=_MOST_ENTRIES)
        each = entries * len(value) if endless else entries
        what = f"an entry of {name}"
        plain = tuple(v if e is None else e(what, v) for e, v in zip(each, value, strict=True))
        same = type(value) is tuple and all(p is v for p, v in zip(plain, value, strict=True))
        return value if same else plain

    return convert


def _literal(allowed: tuple[Any, ...]) -> _Convert:
    """Return how to convert one of several words or whole numbers; which of them is for `check_choice`."""
    return _text if all(isinstance(word, str) for word in allowed) else whole


def _member(kinds: tuple[type[Any], ...]) -> _Convert:
    """Return a check of kinds of records."""

    def convert(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            allowed = names if len(kinds) <= _NAMED else f"kind of {name}"
            article = "an" if allowed[0] in "AEIOU" else "a"
            raise ParameterError(f"{name} must be {article} {allowed}, got {shown(value)}.")
        return value

    return convert


def _text(name: str, value: Any) -> str:
    """Return a text as a Python string."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be a text, got {shown(value)}.")
    return str(value)


def _truth(name: str, value: Any) -> bool:
    """Return a truth value as a Python bool."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


_SCALARS: dict[Any, _Convert] = {float: real, int: whole, bool: _truth, str: _text}
