"""Stops a command after some answer of a run was stored."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tacit.federation.store import LedgerStore


def stop_at(monkeypatch: pytest.MonkeyPatch, number: int, stop: Callable[[], None]) -> None:
    """Call `stop` once, after the answer of that number was stored."""
    numbers = itertools.count(1)  # ledgers of one round are written at once: each answer has its own number
    keep = LedgerStore.keep

    def keeps(
        self: LedgerStore, step: int, digest: bytes, answer: bytes, state: bytes | None = None
    ) -> bytes:
        mine = next(numbers)
        stored = keep(self, step, digest, answer, state)
        if mine == number:
            stop()
        return stored

    monkeypatch.setattr(LedgerStore, "keep", keeps)
