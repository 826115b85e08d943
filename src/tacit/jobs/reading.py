"""Structs as a person writes them, in TOML or as flags, and what is wrong in the words of their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tacit.errors import ParameterError, check_choice, shown

__all__ = ["choices_of", "read_struct"]

Read = TypeVar("Read", bound=msgspec.Struct)

_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "array": "a list",
    "bool": "true or false",
}


def read_struct(values: Mapping[str, Any], kind: type[Read]) -> Read:
    """Build a struct from parsed TOML or flags.

    Args:
        values: Its settings by name.
        kind: The struct.

    Raises:
        UnknownNameError: An unknown name; the nearest one is suggested.
        ParameterError: A value of the wrong type or out of range.
    """
    for name in values:
        check_choice("setting", name, kind.__struct_fields__)
    _check_words(values, kind)
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ParameterError):  # of __post_init__, and clear by itself
            raise error.__cause__ from None
        raise _of_another_type(values, str(error)) from error


def choices_of(kind: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """Return the words of each setting that takes nothing else but words, or may be left out."""
    return {name: words for name, (words, others) in _words_of(kind).items() if words and not others}


@lru_cache(maxsize=256)
def _words_of(kind: type[msgspec.Struct]) -> dict[str, tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Return the words of each setting, and what else it takes but None."""
    return {name: _parts(hint) for name, hint in get_type_hints(kind).items()}


def _check_words(values: Mapping[str, Any], kind: type[msgspec.Struct]) -> None:
    """Refuse a word that a setting does not have; the parser would not say which ones it has."""
    for name, (words, others) in _words_of(kind).items():
        if not words or str in others or not isinstance(given := values.get(name), str):
            continue
        if not others:
            check_choice(name, given, words)
        elif given not in words:
            raise ParameterError(f"{name} must be a number or {words[0]!r}, got {shown(given)}.")


def _parts(hint: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the words of an annotation, and what else it takes but None."""
    parts = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
    words = tuple(word for one in parts if get_origin(one) is Literal for word in get_args(one))
    return words, tuple(one for one in parts if get_origin(one) is not Literal and one is not type(None))


def _of_another_type(values: Mapping[str, Any], message: str) -> ParameterError:
    """Return the error for a value of another type, with the name of the setting and what it may be."""
    found = re.search(r"Expected `([^`]*)`, .* at `\$\.(\w+)`", message)
    if found is None or found[2] not in values:
        return ParameterError(f"the job cannot be read: {message}.")
    kinds = [_KINDS.get(kind, kind) for kind in found[1].split(" | ") if kind != "null"]
    return ParameterError(f"{found[2]} must be {' or '.join(kinds)}, got {shown(values[found[2]])}.")
