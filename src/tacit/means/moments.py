"""What is stated of heavy tails: a moment of rows whose norm nobody can bound."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tacit.errors import ParameterError, check_finite, check_positive
from tacit.numerics import settle

__all__ = ["MomentBound", "MomentKind"]


class MomentKind(StrEnum):
    """Where the supremum over points stands, and of what the moment is."""

    SUP_INSIDE = "sup-inside"
    """(E sup_w |g(w, x)|^k)^(1/k), the largest of the three for the same law (Lowy 2023, Assumption 5)."""
    SUP_OUTSIDE = "sup-outside"
    """sup_w (E |g(w, x)|^k)^(1/k) (Assumption 9)."""
    COORDINATE = "coordinate"
    """sup_w max_j E |g_j(w, x) - E g_j(w, x)|^k, to the power 1/k (Assumption 10)."""


class MomentBound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bound on the k-th moment of a row, known beforehand or from public records: never from private ones.

    It sets how rows are clipped. No guarantee depends on whether it is true: only the error does.

    Attributes:
        order: k >= 2, a real number.
        value: The k-th root of the moment, > 0, in the units of a row.
        kind: Of what the moment is.

    Raises:
        ParameterError: A number that is not finite, an order below 2, or a value that is not > 0.

    Example:
        >>> MomentBound.parse("4:10")
        MomentBound(order=4.0, value=10.0, kind=<MomentKind.SUP_OUTSIDE: 'sup-outside'>)
    """

    order: float
    value: float
    kind: MomentKind = MomentKind.SUP_OUTSIDE

    def __post_init__(self) -> None:
        settle(self)
        check_finite("order", self.order)
        if not self.order >= 2:
            raise ParameterError(f"the order of a moment must be at least 2, got {self.order!r}.")
        check_positive("value", self.value)
        if not isinstance(self.kind, MomentKind):
            raise ParameterError(f"kind must be a MomentKind, got {self.kind!r}.")

    @classmethod
    def parse(cls, text: str) -> MomentBound:
        """Return what people write as ORDER:VALUE.

        Raises:
            ParameterError: It is written otherwise, or out of range.
        """
        try:
            order, value = (float(part) for part in text.split(":"))
        except ValueError as error:
            raise ParameterError(
                f"moment must look like ORDER:VALUE, such as 4:10, got {text!r:.80}."
            ) from error
        return cls(order, value)
