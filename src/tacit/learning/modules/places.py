"""Whether a record's gradient is the same to the last bit wherever in a chunk it stands: it is tried.

The proof of exact sums rests on it (docs/theory/sums.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tacit.learning.modules.checks import probe_records
from tacit.learning.modules.flat import FlatModule
from tacit.numerics import Array

__all__ = ["alike"]

_PROBES = 8
"""Records by which places and sizes of chunks are compared: more for small chunks, fewer for large records.

Other code for single numbers has another last bit for few of them only, such as one in forty.
"""

Back = Callable[[Array, Array], dict[str, Any]]
"""Returns what a full chunk of records and their labels adds to each parameter."""


def alike(
    flat: FlatModule,
    back: Back,
    chunks: Sequence[int],
    *,
    start: Array,
    label: float,
    tokens: int | None,
    room: int,
) -> bool:
    """Return whether equal records have equal gradients to the last bit, wherever in which chunk they stand.

    Args:
        flat: Another point is loaded into it.
        back: Of this module.
        chunks: Sizes of chunks.
        start: Parameters that the module came with, shape (size,).
        label: A public one.
        tokens: As in `torch_objective`.
        room: Records that layers may keep numbers of, about, all that are tried together.
    """
    # Three threads or more part what they compute anywhere, two at a multiple of every register.
    parted = 16 if flat.rounding()[0] > 2 else 1
    turns = _PROBES * max(parted, 16 // max(chunks))
    turns = min(turns, max(_PROBES, room // max(chunks)))
    records = probe_records(flat, tokens=tokens, n=turns).flatten(1).cpu().numpy()
    # Where a module starts, a layer may be zero, and hide all that goes back through it.
    flat.load(start + 0.1 * np.sin(np.arange(len(start), dtype=np.float64) ** 2))
    return all(_repeats(back, record, chunks, label) for record in records)


def _repeats(back: Back, record: Array, chunks: Sequence[int], label: float) -> bool:
    """Return whether all copies of a record in full chunks have the same numbers, to the last bit."""
    first: dict[tuple[str, int], Any] = {}
    for chunk in chunks:
        X, y = np.repeat(record[None], chunk, axis=0), np.full(chunk, label)
        for name, part in back(X, y).items():
            numbers = [one for one in vars(part).values() if isinstance(one, torch.Tensor)]
            numbers += [part.squared(exact=exact) for exact in (True, False)]
            for k, one in enumerate(numbers):
                if not bool((one == first.setdefault((name, k), one[:1].clone())).all()):
                    return False
    return True
