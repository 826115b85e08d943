"""Records through a module, chunk by chunk: predictions, and what records add to each parameter at points."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import torch

from tacit.errors import ParameterError
from tacit.learning.modules.chunks import NUMBERS, Sizes, filled, isolated, taken
from tacit.learning.modules.hooked import HookedModule
from tacit.learning.modules.parts import ParameterRows
from tacit.learning.modules.places import alike
from tacit.learning.modules.slopes import LossSlopes
from tacit.learning.objective import Records
from tacit.numerics import Array

__all__ = ["Passes", "floats"]

_ONE_AT_A_TIME = threading.RLock()
"""A module holds one point at a time: who loads one keeps others out until it is done."""

Rows = dict[str, ParameterRows]
"""What the records of a chunk add to each parameter, by its name."""


class Passes:
    """Passes of a module and a loss over records, in chunks that are filled up to public sizes.

    Args:
        network: The module.
        slopes: The loss.
        zero: A prediction of zeros, which stands for a record at which the module raises.
        tokens: As in `torch_objective`.
        chunk: Records of a chunk; None goes by memory.
        numbers: That layers keep of one record, about.

    Attributes:
        sizes: Of chunks.
        start: Parameters that the module came with, shape (size,), float64.
    """

    def __init__(
        self,
        network: HookedModule,
        slopes: LossSlopes,
        zero: Any,
        *,
        tokens: int | None,
        chunk: int | None,
        numbers: int,
    ) -> None:
        self._network, self._flat, self._slopes, self._zero = network, network.flat, slopes, zero
        self._tokens, self._numbers, self.start = tokens, max(numbers, 1), self._flat.flat()
        self.sizes = Sizes.of(
            chunk,
            NUMBERS // self._numbers,
            self._are_alike,
            self._flat.rounding,
            plain=network.sequence is not None,
        )

    def alone(self) -> AbstractContextManager[bool]:
        """Return the lock under which a point is loaded and used."""
        return _ONE_AT_A_TIME

    def point(self, w: Array) -> Array:
        """Return a point, or refuse one of another length than the parameters have together."""
        if np.shape(w) != (self._flat.size,):
            raise ParameterError(f"w must have shape ({self._flat.size},), got {np.shape(w)}.")
        return w

    def predicted(self, w: Array, X: Array) -> Iterator[tuple[slice, Any]]:
        """Yield which records a chunk has, and what the module predicts of them.

        A record at which the module raises has a prediction of zeros. There is a chunk of no records too,
        for its shape.

        Args:
            w: The point, shape (size,).
            X: Shape (n, features).
        """
        with _ONE_AT_A_TIME:
            chunk = self.sizes.usual
            self._flat.load(self.point(w))
            for start in range(0, max(len(X), 1), chunk):
                part = slice(start, min(start + chunk, len(X)))
                full = filled(self.taken(X[part])[0], chunk)
                said, bad = isolated(partial(self._predictions, full), chunk)
                if said is None:
                    said = self._zero.expand(chunk, *self._zero.shape)
                elif bad is not None:
                    said[torch.as_tensor(bad, device=said.device)] = 0
                yield part, said[: part.stop - part.start]

    def through(self, records: Records, points: Sequence[Array]) -> Iterator[tuple[slice, list[Rows]]]:
        """Yield which records a chunk has, and their rows at each of the points.

        A chunk is left out where the module or the loss raises for each of its records: they count as zero.

        Args:
            records: n of them.
            points: One or more, each of shape (size,).
        """
        with _ONE_AT_A_TIME, self._flat.alike():
            # The sizes may be tried out, at another point: before one is loaded.
            cuts, points = [*self.sizes.cut(len(records))], [self.point(w) for w in points]
            if len(points) == 1 and len(records):
                self._flat.load(points[0])
            for part, chunk in cuts:
                X, y = filled(records.X[part], chunk), filled(records.y[part], chunk, self._slopes.label)
                found, bad = isolated(partial(self._pass, X, y, points), chunk)
                if found is None:
                    continue
                if len(points) == 1 and self._tokens is None and X.dtype == floats(self._flat.dtype):
                    places, norms = taken(bad), filled(records.norms[part], chunk)
                    self._network.measured(found[0], X[places], norms[places])
                yield part, found

    def taken(self, X: Array) -> tuple[Array, Array | None]:
        """Return records that the module can take, and which of them are zero instead; None where all can.

        A number that no embedding has a vector for is none that it can take.
        """
        if self._tokens is None:
            return X, None
        bad = ~((X >= 0) & (self._tokens > X) & (np.floor(X) == X)).all(axis=1)
        return np.where(bad[:, None], 0, X), bad

    def _predictions(self, X: Array, places: Any, _bad: Array | None) -> Any:
        """Return what the module predicts of the records at some places."""
        return self._flat.predictions(self._flat.records(X[places]))

    def _pass(
        self, X: Array, y: Array, points: Sequence[Array], places: Any, bad: Array | None
    ) -> list[Rows]:
        """Return the rows of a full chunk of records at each of the points.

        Args:
            X: Shape (chunk, features).
            y: Shape (chunk,).
            points: One, which is loaded, or several.
            places: Of the records that are taken.
            bad: Which of them count as zero, shape (chunk,).
        """
        X, y = X[places], y[places]
        if len(points) == 1:
            return [self._back(X, y, bad, together=True)]
        found = []
        for w in points:
            self._flat.load(w)
            found.append(self._back(X, y, bad))
        return found

    def _back(self, X: Array, y: Array, bad: Array | None = None, *, together: bool = False) -> Rows:
        """Return the rows of a full chunk of records, 0 for the bad ones, at the point that is loaded."""
        X, odd = self.taken(X)
        zero = [one for one in (odd, bad) if one is not None]

        def slopes(predictions: Any) -> Any:
            found = self._slopes(predictions, y)
            for one in zero:
                found[torch.as_tensor(one, device=found.device)] = 0
            return found

        return self._network.back(self._flat.records(X), slopes, together=together)

    def _are_alike(self, *chunks: int) -> bool:
        """Whether equal records have equal gradients to the last bit, wherever in which chunk they stand."""
        with _ONE_AT_A_TIME, self._flat.alike():
            return max(chunks) == 1 or alike(
                self._flat,
                self._back,
                chunks,
                start=self.start,
                label=self._slopes.label,
                tokens=self._tokens,
                room=2 * NUMBERS // self._numbers,
            )


def floats(dtype: Any) -> Any:
    """Return the dtype of NumPy that parameters of a module have."""
    return np.float64 if dtype == torch.float64 else np.float32
