"""Messages and counts in files: what clients send, counted as a stream, merged, and counted once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import DataError, ParameterError, check_count, shown
from tacit.frequencies.binary_hadamard import BinaryHadamard
from tacit.frequencies.counts import Counts
from tacit.frequencies.hadamard import HadamardResponse
from tacit.frequencies.kary import KaryResponse
from tacit.frequencies.oracle import FrequencyOracle
from tacit.frequencies.recoverable import RecoverableHadamard
from tacit.frequencies.sets import SubsetSelection, UnaryEncoding

__all__ = ["MOST_BATCHES", "CountsFile", "MessagesHead", "count_files", "read_counts", "write_messages"]

MOST_BATCHES: Final = 100_000
"""The most files of messages that are counted together."""
_LONGEST_HEAD: Final = 4096
_LONGEST_COUNTS: Final = 2**28  # bytes of a file of counts of the largest domain
_AT_ONCE: Final = 2**21  # bytes of messages at once
_Oracle = (
    BinaryHadamard | HadamardResponse | KaryResponse | RecoverableHadamard | UnaryEncoding | SubsetSelection
)
_NAME: Final = re.compile("[A-Za-z0-9._-]{1,64}")
_Batch = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class MessagesHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="messages"):
    """The first line of a file of messages; all of it is public.

    Attributes:
        mechanism: What made the messages, by its fields.
        collection: What they are collected for, up to 64 letters, digits, dots, dashes and underscores;
            messages of two collections are never counted together.
        batch: 32 hexadecimal digits drawn for this file, by which it is counted once.
        n: Number of messages.
        domain: SHA-256 of the names of the values, in hexadecimal.
        simulated: Whether a known seed made them.
        version: Of the format.

    Raises:
        ParameterError: No messages, a name of another kind, or a mechanism that needs the places of clients.
    """

    mechanism: _Oracle
    collection: str
    batch: _Batch
    n: int
    domain: _Digest
    simulated: bool
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        check_count("n", self.n)
        _check_collection(self.collection)
        _check_by_choice(self.mechanism)


class CountsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="counts"):
    """Partial counts of one collection, which merge with others of it.

    Attributes:
        mechanism: What made the messages, by its fields.
        collection: What they were collected for.
        batches: Files that are counted in it, each once, in order.
        n: Number of messages.
        values: What a server keeps: see `Counts.values`.
        domain: SHA-256 of the names of the values, in hexadecimal.
        simulated: Whether a known seed made any of them.
        closed: Whether the collection is over: what comes later is refused.
        version: Of the format.

    Raises:
        ParameterError: Counts that no messages of the mechanism have.
    """

    mechanism: _Oracle
    collection: str
    batches: tuple[_Batch, ...]
    n: int
    values: list[int]
    domain: _Digest
    simulated: bool
    closed: bool = False
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        _check_collection(self.collection)
        _check_by_choice(self.mechanism)
        if not 1 <= len(self.batches) <= MOST_BATCHES or list(self.batches) != sorted(set(self.batches)):
            raise ParameterError(f"batches must be from 1 to {MOST_BATCHES} different ones, in order.")
        if self.n < len(self.batches):
            raise ParameterError("n must be at least the number of batches, one message each.")
        self.mechanism.check_counts(self.counts)

    @property
    def counts(self) -> Counts:
        """The counts, for `FrequencyOracle.estimate`."""
        return Counts(self.n, np.array(self.values, dtype=np.int64), repr(self.mechanism))

    def to_bytes(self) -> bytes:
        """Write it as JSON; the same counts give the same bytes."""
        return msgspec.json.encode(self, order="deterministic") + b"\n"


def write_messages(
    file: BinaryIO,
    values: npt.ArrayLike,
    head: MessagesHead,
    rng: np.random.Generator,
) -> None:
    """Write a file of messages: randomise values and write them in blocks, in memory that does not grow.

    Args:
        file: Open for writing, in binary.
        values: Shape (n,), whole numbers from 0 to k - 1.
        head: Its first line; `n` is that of the values.
        rng: Private randomness; a deployment passes `randomness.secure()`.

    Raises:
        ParameterError: A value is out of range, or there are not `head.n` of them.
    """
    held = np.asarray(values)
    if held.shape != (head.n,):
        raise ParameterError(f"values must have shape ({head.n},), got {held.shape}.")
    oracle = head.mechanism
    if held.dtype.kind not in "iu" or not 0 <= int(held.min()) <= int(held.max()) < oracle.k:
        raise ParameterError(f"values must be whole numbers from 0 to {oracle.k - 1}.")
    file.write(msgspec.json.encode(head, order="deterministic") + b"\n")
    step = _step(oracle)
    for start in range(0, head.n, step):
        file.write(oracle.to_bytes(oracle.encode(held[start : start + step], rng)))


def read_counts(path: Path) -> CountsFile:
    """Read one file of messages, as a stream, or of counts.

    Args:
        path: From anybody.

    Raises:
        DataError: It is neither, or malformed, cut or longer than it says. No error quotes what it holds.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_COUNTS)
            found = _head(line)
            if isinstance(found, CountsFile):
                if file.read(1):
                    raise ParameterError("something follows its counts.")
                return found
            return _counted(found, _blocks(file, found))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.MsgspecError, ParameterError, OverflowError, RecursionError, UnicodeDecodeError) as error:
        said = str(error) if isinstance(error, ParameterError) else "its first line is none of such a file."
        raise DataError(f"{path} holds no messages or counts of frequencies: {said}") from None


def count_files(paths: Iterable[Path]) -> CountsFile:
    """Count files of messages and merge files of counts, one after the other.

    Args:
        paths: In any order; the result does not depend on it.

    Raises:
        DataError: A file is malformed; of another collection, mechanism or domain; a batch is in two of
            them; or it came after the collection was closed.
        ParameterError: No file.
    """
    merged: CountsFile | None = None
    for path in paths:
        one = read_counts(path)
        merged = one if merged is None else _merged(merged, one, path)
    if merged is None:
        raise ParameterError("files must be at least one, got none.")
    return merged


def _merged(whole: CountsFile, one: CountsFile, path: Path) -> CountsFile:
    """Add the counts of a file."""
    for name in ("collection", "mechanism", "domain"):
        if getattr(whole, name) != getattr(one, name):
            raise DataError(f"{path} is of another {name} than the files before it.")
    if twice := set(whole.batches) & set(one.batches):
        raise DataError(f"{path} holds batch {min(twice)}, which is counted already.")
    if whole.closed or one.closed:
        raise DataError(f"{path} is too late, or closed: a closed collection takes no more messages.")
    counts = whole.counts + one.counts
    return msgspec.structs.replace(
        whole,
        batches=tuple(sorted((*whole.batches, *one.batches))),
        n=counts.n,
        values=counts.values.tolist(),
        simulated=whole.simulated or one.simulated,
    )


def _head(line: bytes) -> MessagesHead | CountsFile:
    """Read the first line."""
    if line[:_LONGEST_HEAD].lstrip()[:1] != b"{" or not line.endswith(b"\n"):
        raise ParameterError("its first line is none of such a file.")
    found: MessagesHead | CountsFile = msgspec.json.decode(line, type=MessagesHead | CountsFile)
    if isinstance(found, MessagesHead) and len(line) > _LONGEST_HEAD:
        raise ParameterError("its first line is too long.")
    return found


def _blocks(file: BinaryIO, head: MessagesHead) -> Iterator[bytes]:
    """Yield whole messages, as many at a time as memory is for; refuse a file that is cut or goes on."""
    size, left = head.mechanism.message_bytes, head.n
    while left:
        count = min(left, _step(head.mechanism))
        block = file.read(count * size)
        if len(block) != count * size:
            raise ParameterError(f"it says {head.n} messages and is cut after {head.n - left} or more.")
        yield block
        left -= count
    if file.read(1):
        raise ParameterError(f"it goes on after the {head.n} messages that it says.")


def _counted(head: MessagesHead, blocks: Iterator[bytes]) -> CountsFile:
    """Count messages, block by block."""
    oracle = head.mechanism
    total = Counts(0, np.zeros(oracle.outcomes, dtype=np.int64), repr(oracle))
    for block in blocks:
        total += oracle.aggregate(oracle.from_bytes(block))
    return CountsFile(
        mechanism=oracle,
        collection=head.collection,
        batches=(head.batch,),
        n=total.n,
        values=total.values.tolist(),
        domain=head.domain,
        simulated=head.simulated,
    )


def _step(oracle: FrequencyOracle) -> int:
    """Return how many messages are in memory at once."""
    return max(1, _AT_ONCE // oracle.message_bytes)


def _check_collection(name: str) -> None:
    """Refuse names that no file may have."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            "collection must be a name of up to 64 letters, digits, dots, dashes and underscores, got "
            f"{shown(name)}."
        )


def _check_by_choice(oracle: FrequencyOracle) -> None:
    """Refuse columns by place: files of parts of the clients do not know the places of the others."""
    if isinstance(oracle, BinaryHadamard) and oracle.assignment == "blocks":
        raise ParameterError(f"assignment must be 'random' in files, got {shown(oracle.assignment)}.")
