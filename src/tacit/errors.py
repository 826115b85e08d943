"""Every error that tacit raises, and the checks of arguments that raise them.

An error names the argument, the value received and what is allowed. It is raised before anything random
happens and before anything is spent, and it never quotes private data: shapes, dtypes and public parameters.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

__all__ = [
    "LARGEST_COUNT",
    "LONGEST_NAME",
    "AuthenticationError",
    "BudgetError",
    "DataError",
    "LedgerError",
    "ParameterError",
    "PlanWarning",
    "PrivacyWarning",
    "RefusalError",
    "TacitError",
    "UnknownNameError",
    "VerificationError",
    "check_choice",
    "check_count",
    "check_finite",
    "check_name",
    "check_non_negative",
    "check_positive",
    "check_probability",
    "check_text",
    "install_extra",
    "one_line",
    "printable",
    "prints",
    "real",
    "shown",
    "whole",
]


class TacitError(Exception):
    """Anything that tacit refuses to do; the command line prints it as one line.

    Control characters of what a message quotes are escaped: a name must not write lines of its own.
    """

    exit_code = 1

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(arg) if isinstance(arg, str) else arg for arg in args))


class ParameterError(TacitError, ValueError):
    """An argument has a value that is not allowed."""

    exit_code = 2


class UnknownNameError(ParameterError, KeyError):
    """A name (of an algorithm, a data set, a column) that nothing here has."""

    __str__ = Exception.__str__  # KeyError would print the quoted repr


class DataError(TacitError, ValueError):
    """A table or an array cannot be used: missing columns, non-numeric values, too few records."""

    exit_code = 3


class BudgetError(TacitError, RuntimeError):
    """A price exceeds what is allowed or left; nothing was spent."""

    exit_code = 4


class LedgerError(TacitError, RuntimeError):
    """A ledger file is missing, corrupt, of another version or of other neighbours."""

    exit_code = 5


class RefusalError(TacitError, RuntimeError):
    """A silo refuses a query or a plan, for a reason that depends on public facts only."""

    exit_code = 6


class AuthenticationError(TacitError, RuntimeError):
    """A key, a signature or a certificate does not show that somebody is who they say they are."""

    exit_code = 7


class VerificationError(TacitError, ValueError):
    """A statement does not agree with what its own event costs."""

    exit_code = 1


class PlanWarning(UserWarning):
    """What is planned is not quite what was asked for: a mechanism is left out, or a rule is cut off."""


class PrivacyWarning(UserWarning):
    """Something was done that weakens a privacy statement, or lies outside it."""


LARGEST_COUNT = 2**63 - 1
"""The largest number that a digest, a ledger or a message holds."""
LONGEST_NAME = 200
"""The longest name of a run, a silo, a statistic or a data set."""

_LONGEST_TEXT = 10_000
_LONGEST_INTEGER = 1023  # bits; floats go no further
_QUOTED_INTEGER = 128
_QUOTED = 100


_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What counts as printing and shows nothing: default-ignorable characters (Unicode 15, DerivedCoreProperties)
that are marks or letters, and the empty Braille pattern. Two texts that look alike would differ by them."""


def prints(text: str) -> bool:
    """Return whether every character of a text shows, and none leans on what is printed before the text."""
    leans = unicodedata.category(text[0]).startswith("M") if text else False
    return text.isprintable() and not leans and _UNSEEN.search(text) is None


def printable(text: str) -> str:
    """Return a text, such as the name of a column, with what does not print written as an escape."""
    if prints(text):
        return text
    return "".join(c if prints(c if k == 0 else f"x{c}") else ascii(c)[1:-1] for k, c in enumerate(text))


def one_line(text: str) -> str:
    """Return a text with its lines joined by blanks, and with what does not print written as an escape."""
    return printable(" ".join(text.splitlines()))


def shown(value: object) -> str:
    """Return a value as a message quotes it: on one line, short, and whatever the value is."""
    if isinstance(value, int) and value.bit_length() > _QUOTED_INTEGER:
        return f"an integer of {value.bit_length()} bits"  # Python refuses to write very long ones
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # such an integer inside, or very many levels
        return f"a {type(value).__name__}"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}... ({len(text)} characters)"


def real(name: str, value: object) -> float:
    """Return a real number as a Python float: the door for numbers from elsewhere.

    Python's and NumPy's numbers pass, of any width; NaN and infinities too, for the caller to judge. Texts,
    arrays (of one entry, too), truth values and complex numbers are not real numbers.

    Raises:
        ParameterError: No number, or an integer beyond all floats.
    """
    number = _as_float(value)
    if number is None:
        raise ParameterError(f"{name} must be a number, at most 1.8e308, got {shown(value)}.")
    return number


def whole(name: str, value: object) -> int:
    """Return a whole number as a Python int: the door for counts from elsewhere.

    Raises:
        ParameterError: No integer of Python or NumPy, a truth value, or an integer beyond all floats.
    """
    number = _as_int(value)
    if number is None or number.bit_length() > _LONGEST_INTEGER:
        raise ParameterError(
            f"{name} must be a whole number of at most {_LONGEST_INTEGER} bits, got {shown(value)}."
        )
    return number


def check_text(name: str, value: object, *, low: int = 0, high: int = _LONGEST_TEXT) -> str:
    """Return a text as a Python str; refuse one whose characters could fake lines of an output."""
    if not isinstance(value, str) or not low <= len(value) <= high or not prints(value):
        raise ParameterError(
            f"{name} must be a printable text of {low} to {high} characters, got {shown(value)}."
        )
    return str(value)


def check_name(name: str, value: object) -> str:
    """Return a name as a Python str; refuse anything but a short text that prints on one line."""
    return check_text(name, value, low=1, high=LONGEST_NAME)


def install_extra(extra: str) -> str:
    """Say how an extra of this package is installed, from an index or in a clone."""
    return f"`pip install 'tacit[{extra}]'`, or in a clone `pip install '.[{extra}]'`"


def _as_int(value: Any) -> int | None:
    """Return a whole number as a Python int; None for anything else."""
    if type(value) is int:  # the abstract class below costs ten times as much, in every round
        return value
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _as_float(value: Any) -> float | None:
    """Return a real number as a Python float; None for anything else."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def check_finite(name: str, value: float) -> float:
    """Return a number as a Python float; refuse NaN and infinities."""
    number = _as_float(value)
    if number is None or not math.isfinite(number):
        raise ParameterError(f"{name} must be a finite number, got {shown(value)}.")
    return number


def check_positive(name: str, value: float) -> float:
    """Return a number as a Python float; refuse anything but a finite one above zero."""
    number = _as_float(value)
    # Stated as what is allowed: NaN fails every comparison, so `if value <= 0` would let it in.
    if number is None or not (math.isfinite(number) and number > 0):
        raise ParameterError(f"{name} must be a finite number > 0, got {shown(value)}.")
    return number


def check_non_negative(name: str, value: float) -> float:
    """Return a number as a Python float; refuse anything but a finite one >= 0."""
    number = _as_float(value)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise ParameterError(f"{name} must be a finite number >= 0, got {shown(value)}.")
    return number


def check_probability(name: str, value: float, *, low_open: bool = False, high_open: bool = False) -> float:
    """Return a number in [0, 1] as a Python float; `low_open` and `high_open` exclude an end."""
    number = _as_float(value)
    if number is None or not (
        (number > 0 if low_open else number >= 0) and (number < 1 if high_open else number <= 1)
    ):
        interval = f"{'(' if low_open else '['}0, 1{')' if high_open else ']'}"
        raise ParameterError(f"{name} must be in {interval}, got {shown(value)}.")
    return number


def check_count(name: str, value: int, *, low: int = 1, high: int | None = None) -> int:
    """Return a whole number in [low, high] as a Python int."""
    number = _as_int(value)
    if number is None or number < low or (high is not None and number > high):
        allowed = f">= {shown(low)}" if high is None else f"from {shown(low)} to {shown(high)}"
        raise ParameterError(f"{name} must be a whole number {allowed}, got {shown(value)}.")
    return number


def check_choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return a name of `allowed`, such as an enum of texts; refuse any other, and suggest the nearest one."""
    names = [str(name) for name in allowed]
    text: Any = value  # from elsewhere: not what the annotation says until it is checked
    if isinstance(text, str) and text in names:
        return str(text)
    short = isinstance(text, str) and len(text) <= LONGEST_NAME
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.0) if short else []
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownNameError(f"{name} must be one of {', '.join(names)}, got {shown(value)}{hint}")
