"""Penalties and domains of linear models as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import ParameterError, check_non_negative, check_positive, shown
from tacit.numerics import Box, Composite, Domain, ElasticNet, L2Ball, Regularizer, Simplex, Zero

__all__ = ["DOMAINS", "Regularization", "read_domain"]

DOMAINS = ("ball:RADIUS", "box:LOW:HIGH", "simplex", "simplex:TOTAL")
"""How domains are written."""

_NUMBERS = {"ball": (1,), "box": (2,), "simplex": (0, 1)}


@dataclass(frozen=True, kw_only=True)
class Regularization:
    """What is added to the mean loss of a linear model, and where its parameters stay; all of it is public.

    Penalties are on all parameters, the constant's too, as without it a squared norm would not make the
    objective strongly convex. So is a ball, which bounds how far a solution can be. A box and a simplex are
    about the weights of features alone, those of each class by themselves, and leave the constant free.

    Attributes:
        l1: Strength of an L1 penalty, finite, >= 0.
        l2: Strength of a squared L2 penalty, finite, >= 0.
        group_lasso: Strength of the penalty on the length of each group, finite, >= 0.
        groups: Of the d features, by any labels, from public knowledge. A group holds the weights of its
            features for all classes, so that it is in the model or out of it; the constant is one by itself.
            Only needed with `group_lasso`.
        domain: A set that `read_domain` knows; None is everything.
    """

    l1: float = 0.0
    l2: float = 0.0
    group_lasso: float = 0.0
    groups: Sequence[object] | None = None
    domain: str | Domain | None = None

    def __post_init__(self) -> None:
        check_non_negative("l1", self.l1)
        check_non_negative("l2", self.l2)
        check_non_negative("group_lasso", self.group_lasso)
        if self.group_lasso > 0 or self.domain is not None:
            groups = np.zeros(1, dtype=np.int64)
            Composite(l1=self.l1, l2=self.l2, group_lasso=self.group_lasso, groups=groups, domain=self._set)

    def of_linear(self, *, features: int, outputs: int) -> Regularizer:
        """Return the regulariser of the parameters of a linear model.

        Args:
            features: Length of a mapped row, its constant included, which comes last.
            outputs: Predictions per record.

        Raises:
            ParameterError: `groups` are not as many as features.
        """
        if self.group_lasso == 0 and self.domain is None:
            plain = ElasticNet(l1=self.l1, l2=self.l2)
            return Zero() if plain == ElasticNet() else plain
        place = np.arange(features * outputs).reshape(features, outputs)
        whole = isinstance(self._set, L2Ball) or self._set is None
        return Composite(
            l1=self.l1,
            l2=self.l2,
            group_lasso=self.group_lasso,
            groups=None if self.group_lasso == 0 else np.repeat(self._codes(features - 1), outputs),
            domain=self._set,
            coordinates=None if whole else place[:-1].T,
        )

    @property
    def diameter(self) -> float | None:
        """The largest distance of two points of the domain; None where it has no bound."""
        return 2 * self._set.radius if isinstance(self._set, L2Ball) else None

    @property
    def facts(self) -> tuple[tuple[str, object], ...]:
        """What is set, by name, as a run that goes on must have it."""
        given = {name: getattr(self, name) for name in ("l1", "l2", "group_lasso")}
        said: dict[str, object] = {name: value for name, value in given.items() if value > 0}
        if self.group_lasso > 0 and self.groups is not None:
            said["groups"] = [str(label) for label in self.groups]
        if self._set is not None:
            said["domain"] = repr(self._set)
        return tuple(said.items())

    @property
    def _set(self) -> Domain | None:
        """The domain."""
        return read_domain(self.domain)

    def _codes(self, features: int) -> Any:
        """Return a number for the group of each feature, and one more for the constant."""
        if self.groups is None:
            raise ParameterError(
                "groups must say which group each feature is in where group_lasso > 0, got None; such as the "
                "column that it was made from."
            )
        labels = [str(label) for label in self.groups]
        if len(labels) != features:
            raise ParameterError(f"groups must be {features} labels, one per feature, got {len(labels)}.")
        _, codes = np.unique(np.array(labels, dtype=object), return_inverse=True)
        return np.append(codes, features).astype(np.int64)


def read_domain(domain: object) -> Domain | None:
    """Return a set of parameters as a person writes it.

    Args:
        domain: "ball:RADIUS", "box:LOW:HIGH" (-inf and inf leave a side open), "simplex" or "simplex:TOTAL";
            an `L2Ball` around the origin, a `Box` or a `Simplex`; or None.

    Raises:
        ParameterError: Anything else, an empty set, or one of a single point.

    Example:
        >>> read_domain("box:0:inf")
        Box(lower=0.0, upper=inf)
    """
    if domain is None or isinstance(domain, L2Ball | Box | Simplex):
        return domain
    words = domain.split(":") if isinstance(domain, str) else [""]
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        numbers = []
        words = [""]
    if len(numbers) not in _NUMBERS.get(words[0], ()):
        raise ParameterError(f"domain must be one of {', '.join(DOMAINS)}, got {shown(domain)}.")
    match words[0]:
        case "ball":
            return L2Ball(check_positive("radius of the domain", numbers[0]))
        case "box":
            return Box(numbers[0], numbers[1])
        case _:
            return Simplex(check_positive("total of the domain", numbers[0]) if numbers else 1.0)
