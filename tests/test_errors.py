"""Errors are one tree, and checks name the argument, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit import errors
from tacit.errors import ParameterError, TacitError, UnknownNameError

CLASSES = {
    "ParameterError": (ValueError, 2),
    "UnknownNameError": (KeyError, 2),
    "DataError": (ValueError, 3),
    "BudgetError": (RuntimeError, 4),
    "LedgerError": (RuntimeError, 5),
    "RefusalError": (RuntimeError, 6),
    "AuthenticationError": (RuntimeError, 7),
    "VerificationError": (ValueError, 1),
}
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(("name", "builtin", "code"), [(k, *v) for k, v in CLASSES.items()])
def test_every_error_is_a_tacit_error_and_the_expected_builtin(name: str, builtin: type, code: int) -> None:
    error = getattr(errors, name)
    assert issubclass(error, TacitError)
    assert issubclass(error, builtin)
    assert error.exit_code == code
    assert str(error("epsilon must be > 0.")) == "epsilon must be > 0."


def test_no_error_class_is_missing_here() -> None:
    things = {name: getattr(errors, name) for name in errors.__all__}
    found = {name for name, t in things.items() if isinstance(t, type) and issubclass(t, TacitError)}
    assert found == {*CLASSES, "TacitError"}
    assert TacitError.exit_code == 1


def test_the_warning_is_a_user_warning() -> None:
    assert issubclass(errors.PrivacyWarning, UserWarning)


Check = Callable[[str, float], None]


@pytest.mark.parametrize("check", [errors.check_finite, errors.check_positive, errors.check_non_negative])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_number_checks_refuse_what_is_not_finite(check: Check, value: float) -> None:
    with pytest.raises(ParameterError, match=rf"^sigma must be a finite number.*got {value!r}\.$"):
        check("sigma", value)


@pytest.mark.parametrize("value", [0.0, -0.0, -1e-300, -3])
def test_check_positive_refuses_zero_and_below(value: float) -> None:
    with pytest.raises(ParameterError, match=rf"^epsilon must be a finite number > 0, got {value!r}\.$"):
        errors.check_positive("epsilon", value)


def test_check_non_negative_refuses_below_zero() -> None:
    with pytest.raises(ParameterError, match=r"^radius must be a finite number >= 0, got -1e-300\.$"):
        errors.check_non_negative("radius", -1e-300)


def test_number_checks_accept_what_is_allowed() -> None:
    values: list[Any] = [5e-324, 1, 1e308, np.float32(0.5)]
    for value in values:
        errors.check_positive("x", value)
        errors.check_non_negative("x", value)
        errors.check_finite("x", -value)
    errors.check_non_negative("x", 0)
    errors.check_finite("x", 0)


@pytest.mark.parametrize(
    ("low_open", "high_open", "interval"),
    [
        (False, False, r"\[0, 1\]"),
        (True, False, r"\(0, 1\]"),
        (False, True, r"\[0, 1\)"),
        (True, True, r"\(0, 1\)"),
    ],
)
def test_check_probability_knows_its_ends(low_open: bool, high_open: bool, interval: str) -> None:
    def check(value: float) -> None:
        errors.check_probability("delta", value, low_open=low_open, high_open=high_open)

    refused = [-1e-300, 1 + 1e-15, NAN, INF, -INF] + [0.0] * low_open + [1.0] * high_open
    for value in refused:
        with pytest.raises(ParameterError, match=rf"^delta must be in {interval}, got {value!r}\.$"):
            check(value)
    for value in [5e-324, 0.5, math.nextafter(1, 0)] + [0.0] * (not low_open) + [1.0] * (not high_open):
        check(value)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, NAN, "3", None, True, np.float64(2), np.bool_(True)])
def test_check_count_refuses_what_is_no_count(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"^rounds must be a whole number >= 1, got "):
        errors.check_count("rounds", value)


def test_check_count_knows_its_range() -> None:
    for value in (2, 5, np.int32(3), np.uint64(4)):
        errors.check_count("k", int(value), low=2, high=5)
        errors.check_count("k", value, low=2, high=5)  # type: ignore[arg-type]  # NumPy integers are allowed
    for value in (1, 6):
        with pytest.raises(ParameterError, match=rf"^k must be a whole number from 2 to 5, got {value}\.$"):
            errors.check_count("k", value, low=2, high=5)


def test_check_choice_suggests_the_nearest_name() -> None:
    errors.check_choice("norm", "l2", ("l1", "l2"))
    with pytest.raises(
        UnknownNameError, match=r"norm must be one of l1, linf, got 'lnf'; did you mean 'linf'\?"
    ):
        errors.check_choice("norm", "lnf", iter(["l1", "linf"]))


def test_check_choice_without_any_name() -> None:
    with pytest.raises(UnknownNameError, match=r"got 'a'$"):
        errors.check_choice("norm", "a", ())


@pytest.mark.parametrize("value", ["1", None, [1.0], np.ones(2), 1j])
def test_what_is_no_number_is_refused_by_name(value: Any) -> None:
    for check in (
        errors.check_finite,
        errors.check_positive,
        errors.check_non_negative,
        errors.check_probability,
    ):
        with pytest.raises(errors.ParameterError, match="share must be"):
            check("share", value)


def test_names_are_written_so_that_they_can_be_read() -> None:
    assert errors.printable("Bergen, 東") == "Bergen, 東"
    assert errors.printable("a\nb\x1b\u202e\ud800") == r"a\nb\x1b\u202e\ud800"
    errors.check_text("name", errors.printable("a\n\u2028"))
    assert errors.printable("\u0301a\u3164e\u0301\ufe0f") == "\\u0301a\\u3164e\u0301\\ufe0f"
    for name in ("Besançon", "e\u0301", "Hà Nội", "हिन्दी", "Łódź", "東京", "العربية", "\U0001f600"):
        assert errors.printable(name) == name
        errors.check_text("name", name)
    with pytest.raises(ParameterError, match="name must be a printable text of 0 to 10000 characters, got 3"):
        errors.check_text("name", 3)
    for name in ("", "x" * 201, "a\ufe0f"):
        with pytest.raises(ParameterError, match="run must be a printable text of 1 to 200 characters, got"):
            errors.check_name("run", name)


def test_one_line_joins_lines_and_escapes_the_rest() -> None:
    assert errors.one_line("two  words") == "two  words"
    assert errors.one_line("a\nb\r\n\tc\x1b[2J") == r"a b \tc\x1b[2J"
    assert str(TacitError("first\nverified: all is well")) == "first verified: all is well"
