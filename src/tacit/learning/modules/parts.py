"""What records add to the gradient of one parameter, as factors that are multiplied out only where it pays.

A row of a parameter is the part of a record's gradient that belongs to it. `exact` sums follow
docs/theory/sums.md: a row is an outer product of two vectors, or is formed in memory before it is measured
and added up, so that no sum within a row cancels what a norm has not seen. Others may use ghost norms, and
add up all positions of all records in one product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch.nn import functional

__all__ = [
    "Dense",
    "Outer",
    "ParameterRows",
    "Product",
    "Scattered",
    "Segment",
    "squares",
    "times",
    "weighted",
    "without_bad",
]

Segment = tuple[int, slice]
"""A silo, and where its records are in a chunk."""


class ParameterRows(Protocol):
    """The rows of one parameter for n records."""

    def squared(self, *, exact: bool) -> Any:
        """Return the squared norm of each row, shape (n,), float64; never less than it is."""
        ...

    def summed(self, factors: Any, segments: Sequence[Segment], *, exact: bool) -> Iterator[Any]:
        """Yield the sum of rows times factors for each segment, shape (size,).

        Args:
            factors: Shape (n,), float64; where one is 0, its row may hold what is not finite.
            segments: Of which records.
            exact: In float64, as the module says; else in the dtype of the rows.
        """
        ...

    def rows(self, part: slice) -> Any:
        """Return the rows themselves, shape (n, size)."""
        ...

    def scaled(self, factors: Any) -> ParameterRows:
        """Return the same of rows times factors, shape (n,); a factor of 0 makes a row 0."""
        ...


def times(values: Any, factors: Any) -> Any:
    """Return values times their record's factor; 0 where that is 0, and below the normal numbers."""
    shaped = factors.to(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
    scaled = values * shaped
    return scaled.masked_fill_(
        (shaped == 0) | (scaled.abs() < torch.finfo(scaled.dtype).tiny), 0
    )  # an infinity times zero is none, and small numbers are rounded coarsely


def squares(values: Any) -> Any:
    """Return the squared norm of each record's numbers, shape (n,), float64."""
    return torch.linalg.vector_norm(values.flatten(1), dim=1, dtype=torch.float64) ** 2


@dataclass
class Dense:
    """Rows that are small, as of a bias or of a normalisation.

    Attributes:
        values: Shape (n, size).
    """

    values: Any

    def squared(self, *, exact: bool) -> Any:  # noqa: ARG002
        """Return the squared norm of each row."""
        return squares(self.values)

    def summed(self, factors: Any, segments: Sequence[Segment], *, exact: bool) -> Iterator[Any]:
        """Yield the sum of rows times factors for each segment."""
        dtype = torch.float64 if exact else self.values.dtype
        yield from weighted(self.values.to(dtype), factors.to(dtype), segments)

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        return self.values[part]

    def scaled(self, factors: Any) -> Dense:
        """Return the rows times factors."""
        return Dense(times(self.values, factors))


@dataclass
class Product:
    """Rows that are one outer product, for each group of channels: norms are products of norms.

    Attributes:
        left: Derivatives in what the layer says, shape (n, groups, p).
        right: What it is told, shape (n, groups, d).
    """

    left: Any
    right: Any

    def squared(self, *, exact: bool) -> Any:  # noqa: ARG002
        """Return the squared norm of each row."""
        sizes = [
            torch.linalg.vector_norm(each, dim=2, dtype=torch.float64) for each in (self.left, self.right)
        ]
        return ((sizes[0] * sizes[1]) ** 2).sum(1)

    def summed(self, factors: Any, segments: Sequence[Segment], *, exact: bool) -> Iterator[Any]:
        """Yield the sum of rows times factors for each segment."""
        left, right = self.left, self.right
        if exact:
            left, right = left.double(), right.double()
        left, right = times(left, factors), without_bad(right, factors)
        for _, part in segments:
            if left.shape[1] == 1:  # a plain matrix product is the fastest
                yield (left[part, 0].T @ right[part, 0]).flatten()
            else:
                yield torch.einsum("ngp,ngd->gpd", left[part], right[part]).flatten()

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        return (self.left[part, :, :, None] * self.right[part, :, None, :]).flatten(1)

    def scaled(self, factors: Any) -> Product:
        """Return the rows times factors."""
        return Product(times(self.left, factors), without_bad(self.right, factors))

    @property
    def slopes(self) -> Any:
        """The derivatives."""
        return self.left

    @property
    def groups(self) -> int:
        """Of channels that do not meet."""
        return int(self.left.shape[1])

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a group's matrix."""
        return int(self.left.shape[2]), int(self.right.shape[2])

    @property
    def positions(self) -> int:
        """One."""
        return 1

    def factors(self, part: slice) -> tuple[Any, Any]:
        """Return both factors, of shape (n, groups, 1, p or d)."""
        return self.left[part, :, None], self.right[part, :, None]

    def added(self, rows: Any, part: slice) -> Any:
        """Return rows, shape (n, groups, p, d), plus these; None is zero."""
        found = self.left[part, :, :, None] * self.right[part, :, None, :]
        return found if rows is None else rows + found


@dataclass
class Outer:
    """A sum of outer products over positions: what one call of a layer adds to the rows of its weight.

    Attributes:
        layer: A linear layer or a convolution.
        inputs: Shape (n, ...).
        slopes: Derivatives in what it says, shape (n, ...).
    """

    layer: Any
    inputs: Any
    slopes: Any

    @property
    def groups(self) -> int:
        """Of channels that do not meet."""
        return int(getattr(self.layer, "groups", 1))

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a group's matrix."""
        weight = self.layer.weight
        return weight.shape[0] // self.groups, weight[0].numel()

    @property
    def positions(self) -> int:
        """At how many places the layer is applied to a record."""
        return int(self.slopes[:1].numel()) // int(self.layer.weight.shape[0])

    def factors(self, part: slice) -> tuple[Any, Any]:
        """Return both factors, of shape (n, groups, positions, p or d)."""
        inputs, slopes, (p, d), groups = self.inputs[part], self.slopes[part], self.sides, self.groups
        n, layer = len(slopes), self.layer
        if isinstance(layer, torch.nn.Linear):
            return slopes.reshape(n, 1, -1, p), inputs.reshape(n, 1, -1, d)
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        padded = functional.pad(inputs, layer._reversed_padding_repeated_twice, mode=mode)
        kernel, dilation, stride = layer.kernel_size, layer.dilation, layer.stride
        if padded.ndim == 3:
            padded = padded[:, :, None]
            kernel, dilation, stride = ((1, *one) for one in (kernel, dilation, stride))
        patches = functional.unfold(padded, kernel, dilation=dilation, stride=stride)
        return (
            slopes.reshape(n, groups, p, -1).transpose(2, 3),
            patches.reshape(n, groups, d, -1).transpose(2, 3),
        )

    def added(self, rows: Any, part: slice) -> Any:
        """Return rows, shape (n, groups, p, d), plus those of this call; None is zero."""
        left, right = self.factors(part)
        found = left.transpose(2, 3) @ right
        return found if rows is None else rows + found

    def scaled(self, factors: Any) -> Outer:
        """Return the same times factors."""
        return Outer(self.layer, without_bad(self.inputs, factors), times(self.slopes, factors))


@dataclass
class Scattered:
    """Rows of an embedding: a derivative for each number that a record holds.

    Attributes:
        ids: Whole numbers, shape (n, positions).
        slopes: Shape (n, positions, d).
        size: Number of vectors.
    """

    ids: Any
    slopes: Any
    size: int

    @cached_property
    def _each(self) -> Any:
        """Derivatives of the different numbers of a record: at the first place of each, 0 at others."""
        same = self.ids[:, :, None] == self.ids[:, None, :]
        first = same.to(torch.int8).argmax(dim=2) == torch.arange(self.ids.shape[1], device=self.ids.device)
        return torch.where(first[:, :, None], same.to(self.slopes.dtype) @ self.slopes, 0)

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.size, int(self.slopes.shape[2])

    @property
    def groups(self) -> int:
        """One."""
        return 1

    @property
    def positions(self) -> int:
        """Numbers of a record."""
        return int(self.ids.shape[1])

    def squared(self, *, exact: bool) -> Any:  # noqa: ARG002
        """Return the squared norm of each row."""
        return squares(self._each)

    def summed(self, factors: Any, segments: Sequence[Segment], *, exact: bool) -> Iterator[Any]:
        """Yield the sum of rows times factors for each segment."""
        slopes = times(self._each.double() if exact else self._each, factors)
        for _, part in segments:
            total = torch.zeros(self.sides, dtype=slopes.dtype, device=slopes.device)
            yield total.index_add_(0, self.ids[part].flatten(), slopes[part].flatten(0, 1)).flatten()

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        return self.added(None, part).flatten(1)

    def added(self, rows: Any, part: slice) -> Any:
        """Return rows, shape (n, 1, size, d), plus those of this call; None is zero."""
        slopes, ids = self._each[part], self.ids[part]
        if rows is None:
            rows = torch.zeros(len(ids), 1, *self.sides, dtype=slopes.dtype, device=slopes.device)
        rows[:, 0].scatter_add_(1, ids[:, :, None].expand_as(slopes), slopes)
        return rows

    def scaled(self, factors: Any) -> Scattered:
        """Return the rows times factors."""
        return Scattered(self.ids, times(self.slopes, factors), self.size)


def without_bad(values: Any, factors: Any) -> Any:
    """Return values with zeros where a record's factor is 0: they may be infinite."""
    bad = factors == 0
    return values.masked_fill(bad.reshape(-1, *[1] * (values.ndim - 1)), 0) if bool(bad.any()) else values


def weighted(rows: Any, factors: Any, segments: Sequence[Segment]) -> Iterator[Any]:
    """Yield the sum of rows times factors for each segment, in the dtype of the factors."""
    rows = without_bad(rows, factors).to(factors.dtype)
    for _, part in segments:
        yield factors[part] @ rows[part]
