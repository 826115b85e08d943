"""Every error that tacit raises, and the checks of arguments that raise them.

An error names the argument, the value received and what is allowed. It is raised before anything random
happens and before anything is spent, and it never quotes private data: shapes, dtypes and public parameters.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

__all__ = [
    "BudgetError",
    "DataError",
    "LedgerError",
    "ParameterError",
    "PrivacyWarning",
    "RefusalError",
    "TacitError",
    "UnknownNameError",
    "VerificationError",
    "check_choice",
    "check_count",
    "check_finite",
    "check_non_negative",
    "check_positive",
    "check_probability",
]


class TacitError(Exception):
    """Anything that tacit refuses to do; the command line prints it as one line."""

    exit_code = 1


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


class VerificationError(TacitError, ValueError):
    """A statement does not agree with what its own event costs."""

    exit_code = 1


class PrivacyWarning(UserWarning):
    """Something was done that weakens a privacy statement, or lies outside it."""


def _is_number(value: object) -> bool:
    """Whether a value is one real number: not a word, nor an array that holds several."""
    return hasattr(value, "__float__") and getattr(value, "shape", ()) == ()


def check_finite(name: str, value: float) -> None:
    """Refuse NaN and infinities."""
    if not (_is_number(value) and math.isfinite(value)):
        raise ParameterError(f"{name} must be a finite number, got {value!r}.")


def check_positive(name: str, value: float) -> None:
    """Refuse anything but a finite number above zero."""
    # Stated as what is allowed: NaN fails every comparison, so `if value <= 0` would let it in.
    if not (_is_number(value) and math.isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a finite number > 0, got {value!r}.")


def check_non_negative(name: str, value: float) -> None:
    """Refuse anything but a finite number >= 0."""
    if not (_is_number(value) and math.isfinite(value) and value >= 0):
        raise ParameterError(f"{name} must be a finite number >= 0, got {value!r}.")


def check_probability(name: str, value: float, *, low_open: bool = False, high_open: bool = False) -> None:
    """Refuse anything but a number in [0, 1]; `low_open` and `high_open` exclude an end."""
    if not (
        _is_number(value)
        and (value > 0 if low_open else value >= 0)
        and (value < 1 if high_open else value <= 1)
    ):
        interval = f"{'(' if low_open else '['}0, 1{')' if high_open else ']'}"
        raise ParameterError(f"{name} must be in {interval}, got {value!r}.")


def check_count(name: str, value: int, *, low: int = 1, high: int | None = None) -> None:
    """Refuse anything but a whole number in [low, high]."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        allowed = f">= {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(f"{name} must be a whole number {allowed}, got {value!r}.")


def check_choice(name: str, value: str, allowed: Iterable[str]) -> None:
    """Refuse a name outside `allowed`; the message suggests the nearest one."""
    names = list(allowed)
    if value in names:
        return
    near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.0)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownNameError(f"{name} must be one of {', '.join(names)}, got {value!r}{hint}")
