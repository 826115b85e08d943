"""Bytes in Flower's messages, and the little that both ends of a Flower message must agree on."""

from __future__ import annotations

from typing import Final

from flwr.app import ConfigRecord, RecordDict

__all__ = ["NO_SILO", "QUERY", "bytes_of", "content_of"]

QUERY: Final = "tacit"
"""What Flower calls our kind of query."""

NO_SILO: Final = b"tacit: the silo service cannot be reached"
"""What a relay replies when it has nobody to relay to; no wire message begins with these bytes."""

_RECORD: Final = "tacit"
_FIELD: Final = "b"


def content_of(data: bytes) -> RecordDict:
    """Return the content of a Flower message that carries bytes: one record of one field, the leanest."""
    return RecordDict({_RECORD: ConfigRecord({_FIELD: bytes(data)})})


def bytes_of(content: RecordDict) -> bytes | None:
    """Return the bytes of a message; None where it holds anything else."""
    record = content.get(_RECORD)
    data = record.get(_FIELD) if isinstance(record, ConfigRecord) else None
    return data if isinstance(data, bytes) else None
