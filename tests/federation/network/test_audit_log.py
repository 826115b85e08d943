from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tacit.errors import ParameterError, VerificationError
from tacit.federation.network.audit_log import HANDED_OVER, AuditLog, LogHead, head_path, read_log, verify_log
from tacit.federation.network.keys import SigningKey

KEY = SigningKey.make()


def written(path: Path, lines: int = 5) -> LogHead:
    with AuditLog(path, KEY) as log:
        for k in range(lines):
            log.write("answered", run="trial", step=k, epsilon=0.25, again=False)
        return log.head


def test_a_log_says_what_was_written_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    head = written(path)
    assert verify_log(path, KEY.public) == head
    assert head.number == 5
    lines = list(read_log(path))
    assert [(one.number, one.kind, one.facts["step"]) for one in lines] == [
        (k + 1, "answered", k) for k in range(5)
    ]
    assert lines[2].previous == lines[1].hash
    for file in (path, head_path(path)):
        assert file.stat().st_mode & 0o777 == 0o600


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = written(path, 2)
    written(path, 3)
    assert verify_log(path, KEY.public, since=first).number == 5


def test_one_process_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path, KEY) as log:
        with pytest.raises(ParameterError, match="another process writes the log"):
            AuditLog(path, KEY)
        log.write("started")
    assert verify_log(path, KEY.public).number == 1


def changed(lines: list[bytes]) -> list[bytes]:
    return [*lines[:2], lines[2].replace(b"0.25", b"0.05"), *lines[3:]]


def forged(lines: list[bytes]) -> list[bytes]:
    """A line of another key, with hashes that fit."""
    other = json.loads(lines[-1])
    return [*lines[:-1], json.dumps(other | {"signature": "00" * 64}, separators=(",", ":")).encode()]


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "changed": changed,
    "removed": lambda lines: [*lines[:2], *lines[3:]],
    "swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "doubled": lambda lines: [*lines, lines[-1]],
    "put in": lambda lines: [*lines[:1], lines[0], *lines[1:]],
    "first": lambda lines: lines[1:],
    "cut": lambda lines: lines[:-1],
    "cut more": lambda lines: lines[:1],
    "emptied": lambda lines: [],
    "spaced": lambda lines: [lines[0].replace(b'":', b'": ', 1), *lines[1:]],
    "field": lambda lines: [lines[0].replace(b'{"number"', b'{"more":1,"number"'), *lines[1:]],
    "no line": lambda lines: [*lines[:-1], b"{}"],
    "forged": forged,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_log_that_was_edited_fails_and_is_not_written_on(
    tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]]
) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    before = path.read_bytes()
    path.write_bytes(b"".join(line + b"\n" for line in edit(before.splitlines())))
    assert path.read_bytes() != before
    with pytest.raises(VerificationError):
        verify_log(path, KEY.public)
    with pytest.raises(VerificationError):
        AuditLog(path, KEY)


def test_every_bit_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path, 2)
    before = path.read_bytes()
    for place in range(0, len(before), 11):
        path.write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
        with pytest.raises(VerificationError):
            verify_log(path, KEY.public)
    head = head_path(path).read_bytes()
    path.write_bytes(before)
    for place in range(0, len(head) - 1, 3):
        head_path(path).write_bytes(head[:place] + bytes([head[place] ^ 1]) + head[place + 1 :])
        with pytest.raises(VerificationError):
            verify_log(path, KEY.public)


def test_another_key_or_no_head_fails(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    with pytest.raises(VerificationError, match="not signed by the silo's key"):
        verify_log(path, SigningKey.make().public)
    head_path(path).unlink()
    with pytest.raises(VerificationError, match="is gone"):
        verify_log(path, KEY.public)


def test_a_log_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path)
    path.unlink()
    with pytest.raises(VerificationError, match="is gone, and its head is there"):
        AuditLog(path, KEY)
    with pytest.raises(ParameterError, match="cannot be read"):
        verify_log(path, KEY.public)


def test_an_older_state_of_both_files_shows_against_a_kept_head(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path, 2)
    older = path.read_bytes(), head_path(path).read_bytes()
    kept = written(path, 2)
    path.write_bytes(older[0])
    head_path(path).write_bytes(older[1])
    verify_log(path, KEY.public)
    with pytest.raises(VerificationError, match="cut off"):
        verify_log(path, KEY.public, since=kept)
    written(path, 2)
    with pytest.raises(VerificationError, match="has another line 4"):
        verify_log(path, KEY.public, since=kept)


def test_a_kill_between_any_two_writes_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    written(path, 2)
    lines, head = path.read_bytes(), head_path(path).read_bytes()
    written(path, 1)
    after = path.read_bytes()
    for end in (
        *range(len(lines), len(after), 29),
        len(after) - 1,
        len(after),
    ):  # in the middle of the line, or before its head
        path.write_bytes(after[:end])
        head_path(path).write_bytes(head)
        written(path, 1)
        assert verify_log(path, KEY.public).number == (4 if end == len(after) else 3)


def test_a_kill_before_the_first_head_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    for left in (b"", b'{"number":1,'):
        path.write_bytes(left)
        head_path(path).unlink(missing_ok=True)
        written(path, 1)
        assert verify_log(path, KEY.public).number == 1


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path, KEY) as log:
        log.write("started")

        def full(number: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                log.write("answered", step=0)
        assert len(list(read_log(path))) == 1
        log.write("answered", step=0)
    assert verify_log(path, KEY.public).number == 2


def test_facts_that_no_json_holds_and_long_ones(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path, KEY) as log:
        log.write("considered", epsilon=float("inf"), reason="é\n" * 10_000, party=None)
    (line,) = read_log(path)
    assert line.facts["epsilon"] is None
    assert len(str(line.facts["reason"])) == 10_000
    assert verify_log(path, KEY.public).number == 1


def test_a_log_goes_on_under_another_key(tmp_path: Path) -> None:
    """The old key hands over, the new one signs from then on, and heads that were kept still count."""
    path, keys = tmp_path / "log.jsonl", [SigningKey.make() for _ in range(3)]
    heads = []
    for k, key in enumerate(keys):
        with AuditLog(path, key) as log:
            log.write("answered", step=k)
            heads.append(log.head)
            if k < 2:
                line = log.hand_over(keys[k + 1])
                assert line.kind == HANDED_OVER
                heads.append(log.head)
                log.write("closed", step=k)
    for head in heads:
        assert verify_log(path, keys[2].public, since=head).number == 7
    for key in keys[:2]:
        with pytest.raises(VerificationError, match="handed over to another one"):
            verify_log(path, key.public)
        with pytest.raises(VerificationError, match="handed over to another one"):
            AuditLog(path, key)
    with AuditLog(path, keys[2]) as log, pytest.raises(ParameterError, match="by this key already"):
        log.hand_over(keys[2])


def test_nobody_takes_a_log_over_without_its_key(tmp_path: Path) -> None:
    """A line that names another key counts only if the key before has signed it."""
    path, key, thief = tmp_path / "log.jsonl", SigningKey.make(), SigningKey.make()
    with AuditLog(path, key) as log:
        log.write("answered", step=0)
        kept = log.head
    stolen = tmp_path / "stolen" / "log.jsonl"
    stolen.parent.mkdir()
    for name in (path.name, head_path(path).name):
        (stolen.parent / name).write_bytes((path.parent / name).read_bytes())
    # The thief's own line, signed by itself, with the old key's name on it.
    with AuditLog(tmp_path / "made.jsonl", thief) as log:
        log.write("answered", step=0)
        made = log.hand_over(SigningKey.make())
    facts = {"old": key.public.to_text(), "new": thief.public.to_text()}
    lines = path.read_bytes() + msgspec.json.encode(msgspec.structs.replace(made, facts=facts)) + b"\n"
    stolen.write_bytes(lines)
    with pytest.raises(VerificationError):
        verify_log(stolen, thief.public)
    # A whole log of its own does not go on from the head that an auditor has kept.
    with AuditLog(tmp_path / "own.jsonl", thief) as log:
        log.write("answered", step=0)
    with pytest.raises(VerificationError):
        verify_log(tmp_path / "own.jsonl", thief.public, since=kept)


def test_nobody_hands_a_log_over_to_a_key_that_does_not_take_it(tmp_path: Path) -> None:
    """Else anybody could write a log, and have it end with the key that an auditor takes from the roster."""
    path, thief, silo = tmp_path / "log.jsonl", SigningKey.make(), SigningKey.make()
    with AuditLog(path, thief) as log:
        log.write("answered", step=0)
        other = log.head.hash
        log.write("answered", step=1)
        head = head_path(path).read_bytes()  # of a process that was killed before the last line had one
        said = f"takes over {other} from {thief.public.to_text()}".encode()
        facts = {"old": thief.public.to_text(), "new": silo.public.to_text()}
        for taken in (None, "", "00" * 64, thief.sign("log", said).hex(), silo.sign("log", said).hex()):
            before = path.read_bytes()
            log.write(HANDED_OVER, **facts, **({} if taken is None else {"taken": taken}))
            head_path(path).write_bytes(head)
            with pytest.raises(VerificationError, match=r"names no keys|that has not taken it over"):
                verify_log(path, silo.public)
            path.write_bytes(before)
            log._number, log._hash = 2, LogHead(**json.loads(head)).hash


def test_a_kill_while_a_log_is_handed_over_is_mended(tmp_path: Path) -> None:
    path, old, new = tmp_path / "log.jsonl", SigningKey.make(), SigningKey.make()
    with AuditLog(path, old) as log:
        log.write("answered", step=0)
        head = head_path(path).read_bytes()
        log.hand_over(new)
    head_path(path).write_bytes(head)  # killed between line and head
    assert verify_log(path, new.public).number == 2
    with AuditLog(path, new) as log:
        log.write("closed")
    assert verify_log(path, new.public).number == 3
