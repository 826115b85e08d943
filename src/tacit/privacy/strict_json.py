"""Reading JSON that somebody else may have written: every file has one meaning, or is refused.

A JSON parser keeps the last of two equal keys, reads NaN, and puts no bound on depth or on digits; a text may
hold a line break that prints a second verdict. What is read here has none of that. Fields are for the reader
of the object to check, each by its own list.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from tacit.errors import ParameterError, prints

__all__ = ["MOST_BYTES", "is_version", "read_json", "read_start"]

MOST_BYTES = 16 * 2**20
"""The longest file that is read: some 10,000 silos with an event of their own each."""
_MOST_DEPTH, _MOST_DIGITS = 100, 400
_LARGEST_WHOLE = 2**62
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)  # whole strings, and what opens and closes


def read_json(data: bytes | str) -> Any:
    """Return what strict JSON holds.

    Args:
        data: UTF-8 without a byte order mark, or text.

    Returns:
        Builtins: objects have no key twice, numbers are finite, texts hold printing characters only.

    Raises:
        ParameterError: Anything else, or too long, too deep, or a number of too many digits. The message goes
            on after "this file is not JSON:".
    """
    if len(data) > MOST_BYTES:
        raise ParameterError(f"it must be at most {MOST_BYTES:,} bytes long")
    try:
        text = data if isinstance(data, str) else data.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        raise ParameterError(f"it is not UTF-8 text ({error.reason})") from error
    _check_depth(text)
    try:
        found = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        raise ParameterError(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    _check_texts(found)
    return found


def read_start(path: Path) -> bytes:
    """Return a file, or of one that is too long for `read_json` as much as shows that.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def is_version(found: object, wanted: int) -> bool:
    """Return whether a version is the wanted number; `true` is not 1."""
    return type(found) is int and found == wanted


def _check_depth(text: str) -> None:
    """Refuse deep nesting before a parser recurses into it."""
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > _MOST_DEPTH:
                raise ParameterError(f"it must not be nested deeper than {_MOST_DEPTH} levels")
        elif token[0] in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different, and whose texts all print."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        _check_string(key)
        if key in found:
            raise ParameterError(f"the field {key!r:.80} is in one object twice")
        _check_texts(value)
        found[key] = value
    return found


def _check_texts(value: object) -> None:
    """Refuse texts that do not print, alone or in lists; objects were checked when they were made."""
    if isinstance(value, str):
        _check_string(value)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)


def _check_string(text: str) -> None:
    """Refuse a text with characters that do not print; half a surrogate pair is one of them."""
    if not prints(text):
        raise ParameterError(f"a text in it has characters that do not print: {text[:80]!a}")


def _constant(word: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ParameterError(f"{word} is not a number of JSON")


def _number(digits: str) -> float:
    """Return a number that a float can hold."""
    value = float(digits)
    if len(digits) > _MOST_DIGITS or not math.isfinite(value):
        raise ParameterError(f"the number {digits[:20]}... is too large or too long")
    return value


def _whole(digits: str) -> int:
    """Return a whole number that counts something: products with floats are numbers as well."""
    if len(digits) > _MOST_DIGITS or abs(value := int(digits)) > _LARGEST_WHOLE:
        raise ParameterError(f"the number {digits[:20]}... is too large or too long")
    return value
