"""What a silo was asked and what it answered, as a log that it can show an auditor; never any data.

Lines are only added. Each holds the hash of the line before it and a signature of its own hash, so that no
line can be changed, removed, moved or put in without the key; the head, a small file beside the log, says in
the same way how many lines there are, so that a tail that was cut off is missed. Whoever keeps a copy of an
older head can check that the log goes on from there (Haber and Stornetta 1991, section 5).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Final

import msgspec

from tacit.errors import AuthenticationError, ParameterError, VerificationError
from tacit.federation.network.keys import SigningKey, VerifyKey
from tacit.ledger.private_files import replace_private

__all__ = [
    "HANDED_OVER",
    "AuditLog",
    "LogHead",
    "LogLine",
    "head_path",
    "read_log",
    "read_log_head",
    "verify_log",
]

_VERSION: Final = 1
HANDED_OVER: Final = "handed over"
"""Kind of a line after which another key signs; its facts are the keys "old" and "new", and "taken", the
signature of the new one."""

_FIRST: Final = "0" * 64
_LONGEST_LINE: Final = 2**18
_LONGEST_FACT: Final = 10_000
_MODE: Final = 0o600

Fact = str | int | float | bool | None


class _Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the hash of a line is of, without the hash of the line before."""

    number: int
    time: str
    kind: str
    facts: dict[str, Fact]


class LogLine(_Said, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line.

    Attributes:
        number: From 1.
        time: When, UTC, ISO 8601, by the silo's clock.
        kind: What happened: "started", "considered", "accepted", "answered", "uploaded", "refused", "closed",
            or `HANDED_OVER` to another key of the silo.
        facts: About it, by name.
        previous: Hash of the line before, hexadecimal; zeros for the first.
        hash: Of this line and of all before it.
        signature: Of the hash, by the silo.
    """

    previous: str
    hash: str
    signature: str


class LogHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a log has come.

    Attributes:
        number: Of the last line; 0 for a log without one.
        hash: Of that line.
        signature: Of both, by the silo.
        version: Of the form of log and head.
    """

    number: int
    hash: str
    signature: str
    version: int = _VERSION


class AuditLog:
    """The log of one silo, open to be written by one process.

    What a process that was killed has written of its last line is taken away: nothing has left for it.

    Args:
        path: The file; made where there is neither log nor head. The head is `head_path` of it.
        key: The silo's.

    Raises:
        VerificationError: The log was changed or cut off: it is not written on.
        ParameterError: The files cannot be read or written, or another process writes the log.
    """

    def __init__(self, path: Path | str, key: SigningKey) -> None:
        self.path, self._key, self._lock = Path(path), key, Lock()
        try:
            self._file = self._opened()
        except OSError as error:
            raise ParameterError(f"the log {self.path} cannot be used: {error.strerror}.") from error
        try:
            self._number, self._hash = self._go_on()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> AuditLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; may be called again."""
        with self._lock:
            self._file.close()

    def write(self, kind: str, /, **facts: Fact) -> LogLine:
        """Add a line, on disk before this returns.

        Args:
            kind: What happened.
            facts: About it; nothing that comes from data. Long texts are cut.

        Raises:
            OSError: The disk is full or gone; the line is not there.
        """
        with self._lock:
            line = self._write_line(kind, facts)
            self._write_head()
        return line

    def hand_over(self, key: SigningKey) -> LogLine:
        """Have another key of the silo sign from the next line on; the line that says so is signed by both.

        The old key lets nobody else take the log over, and the new one stands behind all lines so far:
        without its word, anybody could write a log by a key of its own and hand it over to the silo's.

        Args:
            key: The new one, by which the log is opened from now on.

        Raises:
            ParameterError: It is the old one.
            OSError: The disk is full or gone.
        """
        with self._lock:
            if key.public == self._key.public:
                raise ParameterError(f"the log {self.path} is signed by this key already.")
            old, new = self._key.public.to_text(), key.public.to_text()
            taken = key.sign("log", _of_taking_over(old, self._hash)).hex()
            line = self._write_line(HANDED_OVER, {"old": old, "new": new, "taken": taken})
            self._key = key
            self._write_head()
        return line

    def _write_line(self, kind: str, facts: Mapping[str, Fact]) -> LogLine:
        """Add a line, on disk before this returns; the head is behind."""
        said = _Said(
            number=self._number + 1,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            kind=kind,
            facts={name: _short(value) for name, value in facts.items()},
        )
        digest = _hash(said, self._hash)
        signature = self._key.sign("log", bytes.fromhex(digest)).hex()
        line = LogLine(**msgspec.structs.asdict(said), previous=self._hash, hash=digest, signature=signature)
        self._append(msgspec.json.encode(line) + b"\n")
        self._number, self._hash = line.number, digest
        return line

    @property
    def head(self) -> LogHead:
        """How far the log has come, signed: what an auditor may keep."""
        signature = self._key.sign("log", _of_head(self._number, self._hash)).hex()
        return LogHead(number=self._number, hash=self._hash, signature=signature)

    def _append(self, data: bytes) -> None:
        """Write a whole line or, where the disk is full, none of it."""
        end = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), end)
            error.filename = str(self.path)
            raise

    def _write_head(self) -> None:
        """Put the head in the place of the last one. It never runs ahead of the lines."""
        replace_private(head_path(self.path), msgspec.json.encode(self.head) + b"\n")

    def _opened(self) -> BinaryIO:
        """Open the file for this process alone; make it where there is nothing."""
        if not self.path.exists() and head_path(self.path).exists():
            raise VerificationError(f"the log {self.path} is gone, and its head is there.")
        file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _MODE), "ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise ParameterError(
                f"another process writes the log {self.path}; one silo runs once."
            ) from error
        return file

    def _go_on(self) -> tuple[int, str]:
        """Return number and hash of the last line, after what a killed process left is mended."""
        whole, rest = _lines_of(_content(self.path))
        os.ftruncate(self._file.fileno(), os.fstat(self._file.fileno()).st_size - len(rest))
        if not whole and not head_path(self.path).exists():
            self._number, self._hash = 0, _FIRST
            self._write_head()
        found = verify_log(self.path, self._key.public)
        self._number, self._hash = found.number, found.hash
        if not found.signature:  # killed between a line and its head
            self._write_head()
        return found.number, found.hash


def head_path(log: Path) -> Path:
    """Return where the head of a log lies."""
    return log.with_name(f"{log.name}.head")


def read_log(path: Path | str) -> Iterator[LogLine]:
    """Yield the lines of a log as they stand; nothing is verified.

    Raises:
        VerificationError: A line is no line of a log.
        ParameterError: The file cannot be read.
    """
    path = Path(path)
    whole, rest = _lines_of(_content(path))
    if rest:
        raise VerificationError(f"line {len(whole) + 1} of {path} is not whole.")
    for number, line in enumerate(whole, start=1):
        yield _parsed(path, number, line)


def read_log_head(path: Path | str) -> LogHead:
    """Return a head as it stands; nothing is verified.

    Raises:
        VerificationError: The file is no head of a log, or of another version.
        ParameterError: The file cannot be read.
    """
    try:
        head = msgspec.json.decode(_content(Path(path)), type=LogHead)
    except msgspec.MsgspecError as error:
        raise VerificationError(f"{path} is not the head of a log.") from error
    if head.version != _VERSION:
        raise VerificationError(f"{path} has version {head.version}; this tacit reads {_VERSION}.")
    return head


def verify_log(path: Path | str, key: VerifyKey, *, since: LogHead | None = None) -> LogHead:
    """Check that a log is whole: every line, their order, and that none is missing at the end.

    Args:
        path: The log; its head lies beside it.
        key: Of the silo, from a roster: the last one, where keys were replaced. A line that hands the log
            over to the next key is signed by both.
        since: A head that was kept elsewhere; the log must go on from it. Without one, log and head together
            can still be put back to an older state.

    Returns:
        The last line's place. Lines that have no head yet, as a process was killed, are signed, and count;
        the signature is then empty.

    Raises:
        VerificationError: The log was changed or cut off, or is not by this key.
        ParameterError: A file cannot be read.
    """
    path = Path(path)
    if path.exists() and not head_path(path).exists():
        raise VerificationError(f"{head_path(path)} is gone: nobody can say how many lines {path} had.")
    head = read_log_head(head_path(path))
    lines = list(read_log(path))
    keys = _signers(path, lines, key)
    _check_head(f"the head of {path}", _signer(keys, head.number + 1), head)
    if since is not None:
        _check_head("the head that was kept", _signer(keys, since.number + 1), since)
    places, last, number = {0: _FIRST}, _FIRST, 0
    wanted = {head.number, 0 if since is None else since.number}
    for number, line in enumerate(lines, start=1):
        said = _Said(number=line.number, time=line.time, kind=line.kind, facts=line.facts)
        if line.number != number or line.previous != last or line.hash != _hash(said, last):
            raise VerificationError(f"line {number} of {path} does not fit the lines before it.")
        try:
            _signer(keys, number).verify("log", bytes.fromhex(line.hash), bytes.fromhex(line.signature))
        except (ValueError, AuthenticationError) as error:
            raise VerificationError(f"line {number} of {path} is not signed by the silo's key.") from error
        last = line.hash
        if number in wanted:
            places[number] = last
    for what, one in (("its head says", head), ("the head that was kept says", since)):
        if one is not None and places.get(one.number) != one.hash:
            missing = one.number > number
            why = f"has {number} lines" if missing else f"has another line {one.number}"
            raise VerificationError(f"{path} {why}, and {what} {one.number} of them are its own: cut off?")
    return head if head.number == number else LogHead(number=number, hash=last, signature="")


def _signers(path: Path, lines: Sequence[LogLine], key: VerifyKey) -> list[tuple[int, VerifyKey]]:
    """Return the keys of a log, each with the number of the first line that it signs."""
    found: list[tuple[int, VerifyKey]] = []
    for number, line in enumerate(lines, start=1):
        if line.kind != HANDED_OVER:
            continue
        try:
            old, new = (VerifyKey.from_text(str(line.facts[name])) for name in ("old", "new"))
            taken = bytes.fromhex(str(line.facts["taken"]))
            new.verify("log", _of_taking_over(old.to_text(), line.previous), taken)
        except (KeyError, ValueError) as error:
            raise VerificationError(f"line {number} of {path} names no keys.") from error
        except AuthenticationError as error:
            raise VerificationError(
                f"line {number} of {path} hands the log over to a key that has not taken it over."
            ) from error
        if found and found[-1][1] != old:
            raise VerificationError(f"line {number} of {path} is of another key than the lines before it.")
        found += [(number + 1, new)] if found else [(1, old), (number + 1, new)]
    if found and found[-1][1] != key:
        raise VerificationError(f"{path} is not signed by the silo's key, but handed over to another one.")
    return found or [(1, key)]


def _signer(keys: Sequence[tuple[int, VerifyKey]], number: int) -> VerifyKey:
    """Return the key that signs a line, and the head before it."""
    return next(key for first, key in reversed(keys) if first <= number)


def _check_head(what: str, key: VerifyKey, head: LogHead) -> None:
    """Refuse a head that the silo has not signed."""
    try:
        key.verify("log", _of_head(head.number, head.hash), bytes.fromhex(head.signature))
    except (ValueError, AuthenticationError) as error:
        raise VerificationError(f"{what} is not signed by the silo's key.") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error.strerror}.") from error


def _lines_of(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the lines that were finished, and what follows them."""
    *whole, rest = data.split(b"\n")
    return whole, rest


def _parsed(path: Path, number: int, line: bytes) -> LogLine:
    """Return a line that is written in the one way to write it."""
    try:
        found = msgspec.json.decode(line[:_LONGEST_LINE], type=LogLine)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise VerificationError(f"line {number} of {path} is no line of a log.") from error
    if msgspec.json.encode(found) != line:
        raise VerificationError(f"line {number} of {path} is written in another way than its hash says.")
    return found


def _hash(said: _Said, previous: str) -> str:
    """Return the hash of a line, hexadecimal."""
    return hashlib.sha256(b"tacit log line\0" + previous.encode() + msgspec.json.encode(said)).hexdigest()


def _of_head(number: int, digest: str) -> bytes:
    """Return what the signature of a head is of; a line's is of 32 bytes."""
    return f"head {number} {digest}".encode()


def _of_taking_over(old: str, previous: str) -> bytes:
    """Return what the new key of a log signs: whose it was, and the hash of all lines so far."""
    return f"takes over {previous} from {old}".encode()


def _short(value: Any) -> Fact:
    """Return a fact as a line holds it."""
    return value[:_LONGEST_FACT] if isinstance(value, str) else value
