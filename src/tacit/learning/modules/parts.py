"""What records add to the gradient of one parameter, as factors that are multiplied out only where it pays.

A row of a parameter is the part of a record's gradient that belongs to it. `exact` sums follow
docs/theory/sums.md: a row is an outer product of two vectors, or is formed in memory before it is measured
and added up, so that no sum within a row cancels what a norm has not seen. Others may use ghost norms, and
add up all positions of some records in one product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch.nn import functional

__all__ = [
    "SINGLE_SLACK",
    "UNSEEN",
    "Dense",
    "Outer",
    "ParameterRows",
    "Product",
    "Scattered",
    "Segment",
    "exact_squares",
    "rounds_to_single",
    "squares",
    "times",
    "weighted",
    "without_bad",
]

_BLOCK = 16
_FEWEST = 512

UNSEEN = 2.0**-1022
"""What a square in float64 may miss: another factor of a row may be as large as this one is small."""

SINGLE_SLACK = 5e-7
"""Relative error of a norm by `squares`, in single precision."""

Segment = tuple[int, slice]
"""A silo, and where its records are in a chunk."""


class ParameterRows(Protocol):
    """The rows of one parameter for n records."""

    def squared(self, *, exact: bool) -> Any:
        """Return the squared norm of each row, shape (n,), float64; never less than it is."""
        ...

    def add(self, totals: Any, factors: Any, segments: Sequence[Segment]) -> None:
        """Add rows times factors, segment by segment, to totals of silos.

        Args:
            totals: Shape (silos, size). In float64, rows are added up as the module says; else as they are.
            factors: Shape (n,), float64; where one is 0, its row may hold what is not finite.
            segments: Which records are whose.
        """
        ...

    def rows(self, part: slice) -> Any:
        """Return the rows themselves, shape (n, size)."""
        ...

    def scaled(self, factors: Any) -> ParameterRows:
        """Return the same of rows times factors, shape (n,); a factor of 0 makes a row 0."""
        ...


def times(values: Any, factors: Any) -> Any:
    """Return values times their record's factor, and 0 for bad records.

    What is below the normal numbers is 0, too: it is rounded coarsely.
    """
    factors = factors.to(values.dtype)
    scaled = without_bad(values, factors) * factors.reshape(-1, *[1] * (values.ndim - 1))
    return functional.hardshrink(scaled, torch.finfo(scaled.dtype).tiny)


def squares(values: Any) -> Any:
    """Return the squared norm of each record's numbers, shape (n,), float64.

    In single precision that is of products in blocks of 16, to 16 roundings (`SINGLE_SLACK`), and products
    that underflow count as the smallest normal number.
    """
    flat = values.flatten(1)
    n, size = flat.shape
    if size < _FEWEST:  # a copy of so few takes less than what goes from one dtype to the other
        return exact_squares(flat)
    if flat.dtype != torch.float32 or size % _BLOCK:
        return torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64) ** 2 + size * UNSEEN
    found = (flat * flat).view(n, _BLOCK, -1).sum(1).sum(1, dtype=torch.float64)
    found += size * 2.0**-126
    odd = ~(found < torch.inf)
    if bool(odd.any()):
        found[odd] = torch.linalg.vector_norm(flat[odd].double(), dim=1) ** 2
    return found


def exact_squares(values: Any) -> Any:
    """Return the squared norms of vectors, which are the last dimension, in float64."""
    values = values.double()
    return torch.linalg.vecdot(values, values) + values.shape[-1] * UNSEEN


def rounds_to_single() -> bool:
    """Whether PyTorch multiplies matrices of single precision in it; a caller may ask for less."""
    try:
        return bool(torch.get_float32_matmul_precision() == "highest")
    except RuntimeError:  # it is set for one kind of machine by itself
        return False


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

    def add(self, totals: Any, factors: Any, segments: Sequence[Segment]) -> None:
        """Add rows times factors to totals of silos."""
        weighted(totals, self.values, factors, segments)

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
        biased: Whether the derivatives themselves, which are the rows of a bias, come after.
        lengths: Norms of `right`, float64, shape (n,), of one group; None where they are not known.
    """

    left: Any
    right: Any
    biased: bool = False
    lengths: Any = None

    def squared(self, *, exact: bool) -> Any:  # noqa: ARG002
        """Return the squared norm of each row."""
        left = exact_squares(self.left)
        if self.groups > 1:
            right = exact_squares(self.right)
            return (torch.addcmul(left, left, right) if self.biased else left * right).sum(1)
        # Only one of both is measured in single precision.
        right = squares(self.right) if self.lengths is None else self.lengths.square() + UNSEEN
        left = left[:, 0]
        return torch.addcmul(left, left, right) if self.biased else left * right

    def add(self, totals: Any, factors: Any, segments: Sequence[Segment]) -> None:
        """Add rows times factors to totals of silos."""
        left = times(self.left.to(totals.dtype), factors)
        right = without_bad(self.right.to(totals.dtype), factors)
        groups, p = left.shape[1:]
        size = groups * p * right.shape[2]
        for silo, part in segments:
            own = totals[silo, :size].view(groups, p, -1)
            if groups == 1:  # a plain matrix product is the fastest
                own[0].addmm_(left[part, 0].T, right[part, 0])
            else:
                own += torch.einsum("ngp,ngd->gpd", left[part], right[part])
            if self.biased:
                totals[silo, size:] += left[part].flatten(1).sum(0)

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        rows = (self.left[part, :, :, None] * self.right[part, :, None, :]).flatten(1)
        return torch.cat([rows, self.left[part].flatten(1)], 1) if self.biased else rows

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

    def plain(self, rows: Any) -> Any:
        """Return rows as they are."""
        return rows

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

    @cached_property
    def groups(self) -> int:
        """Of channels that do not meet."""
        return int(getattr(self.layer, "groups", 1))

    @cached_property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a group's matrix."""
        shape = self.layer.weight.shape
        return shape[0] // self.groups, math.prod(shape[1:])

    @cached_property
    def positions(self) -> int:
        """At how many places the layer is applied to a record."""
        return int(math.prod(self.slopes.shape[1:])) // int(self.layer.weight.shape[0])

    def factors(self, part: slice) -> tuple[Any, Any]:
        """Return both factors, of shape (n, groups, positions, p or d); see `plain` for their order."""
        slopes, patches = (one[part] for one in self._laid)
        # Patches overlap: they are copied into the order of a matrix product.
        return slopes, patches.reshape(len(slopes), self.groups, -1, self.sides[1])

    @cached_property
    def _laid(self) -> tuple[Any, Any]:
        """Derivatives, shape (n, groups, positions, p), and a view of all patches, channels last."""
        inputs, slopes, (p, d), groups = self.inputs, self.slopes, self.sides, self.groups
        n, layer = len(slopes), self.layer
        if isinstance(layer, torch.nn.Linear):
            return slopes.reshape(n, 1, -1, p), inputs.reshape(n, 1, -1, d)
        if any(layer._reversed_padding_repeated_twice):
            mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
            inputs = functional.pad(inputs, layer._reversed_padding_repeated_twice, mode=mode)
        kernel, dilation, stride = layer.kernel_size, layer.dilation, layer.stride
        if inputs.ndim == 3:
            inputs, slopes = inputs[:, :, None], slopes[:, :, None]
            kernel, dilation, stride = ((1, *one) for one in (kernel, dilation, stride))
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        wide, (high, across) = inputs.shape[3] // groups, slopes.shape[2:]
        of_n, of_row, of_column, _ = inputs.stride()
        patches = inputs.as_strided(
            (n, groups, high, across, *kernel, wide),
            (
                of_n,
                wide,
                of_row * stride[0],
                of_column * stride[1],
                of_row * dilation[0],
                of_column * dilation[1],
                1,
            ),
        )
        return slopes.permute(0, 2, 3, 1).reshape(n, -1, groups, p).transpose(1, 2), patches

    def plain(self, rows: Any) -> Any:
        """Return rows of what `factors` gives, shape (..., groups * p * d), in the order of the weight.

        Patches have their channels last, and weights in the middle.
        """
        if isinstance(self.layer, torch.nn.Linear):
            return rows
        kernel = self.layer.kernel_size
        wide = rows.reshape(*rows.shape[:-1], -1, *kernel, self.layer.in_channels // self.groups)
        return wide.movedim(-1, -1 - len(kernel)).reshape(rows.shape)

    def added(self, rows: Any, part: slice) -> Any:
        """Return rows, shape (n, groups, p, d), plus those of this call; None is zero."""
        left, right = (one.flatten(0, 1) for one in self.factors(part))
        found = torch.bmm(left.transpose(1, 2), right).view(-1, self.groups, *self.sides)
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

    def add(self, totals: Any, factors: Any, segments: Sequence[Segment]) -> None:
        """Add rows times factors to totals of silos."""
        slopes = times(self._each.to(totals.dtype), factors)
        for silo, part in segments:
            own = totals[silo].view(self.sides)
            own.index_add_(0, self.ids[part].flatten(), slopes[part].flatten(0, 1))

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        return self.added(None, part).flatten(1)

    def plain(self, rows: Any) -> Any:
        """Return rows as they are."""
        return rows

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
    if (factors.numpy() if factors.device.type == "cpu" else factors).all():  # many times as fast for few
        return values
    return values.masked_fill((factors == 0).reshape(-1, *[1] * (values.ndim - 1)), 0)


def weighted(totals: Any, rows: Any, factors: Any, segments: Sequence[Segment]) -> None:
    """Add rows times factors to totals of silos, in their dtype."""
    rows, factors = without_bad(rows, factors).to(totals.dtype), factors.to(totals.dtype)
    for silo, part in segments:
        totals[silo] += factors[part] @ rows[part]
