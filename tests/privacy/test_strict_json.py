"""Strict JSON: one meaning for every file, or a refusal, fast."""

from __future__ import annotations

import json

import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.privacy import Guarantee, PureDP, event_from_json, guarantee
from tacit.privacy.strict_json import MOST_BYTES, read_json
from tacit.voting import NoiseFunction

REFUSED: dict[str, tuple[bytes, str]] = {
    "twice": (b'{"a": 1, "b": 2, "a": 1}', "the field 'a' is in one object twice"),
    "twice, inside": (b'[{"x": {"a": 1, "a": 1}}]', "the field 'a' is in one object twice"),
    "twice, as an escape": (b'{"a": 1, "\\u0061": 2}', "the field 'a' is in one object twice"),
    "NaN": (b"[NaN]", "NaN is not a number"),
    "Infinity": (b'{"a": -Infinity}', "-Infinity is not a number"),
    "too large": (b"[1e400]", "the number 1e400"),
    "too long": (b"[" + b"1" * 401 + b"]", "too large or too long"),
    "too long a float": (b"[0." + b"1" * 401 + b"]", "too large or too long"),
    "deep": (b"[" * 101 + b"]" * 101, "nested deeper than 100"),
    "very deep": (b'{"a":' * 1_000_000, "nested deeper than 100"),
    "line break": (b'{"a": "b\\nc"}', "characters that do not print"),
    "line break in a name": (b'{"a\\nb": 1}', "characters that do not print"),
    "line break in a list": (b'["a\\nb"]', "characters that do not print"),
    "line break alone": (b'"a\\u2028b"', "characters that do not print"),
    "escape": (b'["\\u001b[2J"]', "characters that do not print"),
    "backwards": ('["\u202eabc"]'.encode(), "characters that do not print"),
    **{
        f"unseen {ord(c):x}": (f'["a{c}b"]'.encode(), "characters that do not print")
        for c in (
            "\u034f\u115f\u1160\u17b4\u180b\u180f\u200b\u200d\u2060\u2066\u2800\u3164\ufe00\ufe0f\ufeff"
            "\uffa0\u00ad\U000e0001\U000e0100\U000e01ef"
        )
    },
    "a mark first": ('["\u0301a"]'.encode(), "characters that do not print"),
    "a mark first in a name": ('{"\u0301a": 1}'.encode(), "characters that do not print"),
    "half a pair": (b'["\\ud800"]', "characters that do not print"),
    "not UTF-8": (b'["\xff"]', "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf{}", "BOM"),
    "empty": (b"", "at line 1"),
    "open string": (b'{"a', "at line 1"),
    "rest": (b"{} {}", "Extra data"),
    "long": (b" " * (MOST_BYTES + 1), "must be at most 16,777,216 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_two_meanings_or_none_is_refused(name: str) -> None:
    data, said = REFUSED[name]
    with pytest.raises(ParameterError, match=said.replace("(", r"\(").replace(")", r"\)")):
        read_json(data)


@pytest.mark.parametrize("name", REFUSED)
def test_all_that_reads_files_refuses_it(name: str) -> None:
    data, _ = REFUSED[name]
    with pytest.raises(ParameterError, match="must be JSON"):
        event_from_json(data)
    with pytest.raises(VerificationError, match="is not JSON"):
        Guarantee.from_json(data)
    with pytest.raises(VerificationError, match="must be JSON"):
        NoiseFunction.from_json(data)


def test_what_json_can_hold_is_read_as_a_parser_does() -> None:
    value = {"a": [1, 2.5, -3e-300, True, None, {'é \\ " [{': {}}], "": "日本", "n": 2**62}
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert read_json("[" * 100 + "]" * 100)[0][0] is not None
    assert read_json(b'"[[[[\\"[["') == '[[[["[['
    assert type(read_json("[1]")[0]) is int
    assert type(read_json("[true]")[0]) is bool


def test_duplicates_do_not_hide_behind_a_true_claim() -> None:
    claim = guarantee(PureDP(1.0), 0.0, observer="anybody").to_json().decode()
    forged = claim[:-1] + ',"epsilon":0.5}'
    assert json.loads(forged)["epsilon"] == 0.5
    with pytest.raises(VerificationError, match="the field 'epsilon' is in one object twice"):
        Guarantee.from_json(forged)
