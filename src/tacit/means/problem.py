"""The question that a plan of a mean answers: who holds what, who is trusted, what may be spent and sent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from tacit.means.base import Facts
from tacit.means.moments import MomentBound
from tacit.means.public import PRIVATE_RECORD
from tacit.numerics import Norm
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel

__all__ = ["MeanProblem", "Trust"]

Trust = Literal["none", "central", "aggregate", "shuffle", "local"]
"""Who is trusted; `none`: without privacy."""


_MOST_RECOVERED = 200
"""Every two parties share keys, and a server opens sums with shares of all of them."""


@dataclass(frozen=True, kw_only=True)
class MeanProblem:
    """One mean of n rows, one row a party; all of it public.

    Attributes:
        n: Number of parties and of private rows, >= 1.
        dim: Coordinates d of a row, >= 1.
        norm: Norm of the ball that rows lie in: `l1`, `l2` or `linf`.
        radius: Radius of that ball, > 0.
        trust: `none`: compress only. `central`: the server adds the noise. `aggregate`: nobody sees more than
            the sum of the messages. `shuffle`: a shuffler mixes the messages. `local`: nobody is trusted.
        budget: What the observer of that trust model may learn; None exactly for `none`.
        bits: Most bits a party may send, headers included; None for no limit.
        correlation: Mean correlation R / (n - 1) of two parties' rows, from -1 / (n - 1) to 1, where it is
            known publicly; rows are then taken to have norm `radius`. None: the worst case.
        public: Number of public rows of the same law, >= 0. With some, errors are those against the mean of
            that law, which all rows share; else against the mean of the n rows.
        variance: Total variance V^2 of a row, at most the square of its largest L2 norm; used with public
            rows only. None: that square.
        neighbours: "replace-one"; or "add-remove" or "zero-out" where the server adds the noise and no rows
            are public: a message that is missing can be counted.
        colluding: Most parties c that share what they know with the server; for `aggregate` only.
        n_min: Fewest parties t in a sum, at most n; None for all. For `aggregate` only; below n, sums recover
            from parties that drop out.
        moment: What is known of independent rows that no ball holds, instead of one. Each mechanism then has
            the clip that balances its noise with the bias, and errors are those against the mean of the law.

    Raises:
        ParameterError: A value is out of its range, or two of them do not go together.
    """

    n: int
    dim: int
    norm: Norm = "l2"
    radius: float = 1.0
    trust: Trust = "local"
    budget: PrivacyBudget | None = None
    bits: int | None = None
    correlation: float | None = None
    public: int = 0
    variance: float | None = None
    neighbours: str = "replace-one"
    colluding: int = 0
    n_min: int | None = None
    moment: MomentBound | None = None

    def __post_init__(self) -> None:
        check_count("n", self.n, high=2**31)
        check_count("dim", self.dim, high=2**24)
        check_choice("norm", self.norm, get_args(Norm))
        check_positive("radius", self.radius)
        check_choice("trust", self.trust, get_args(Trust))
        if (self.budget is None) != (self.trust == "none"):
            raise ParameterError(
                "budget must be given unless trust is 'none', which protects nothing, "
                f"got trust {self.trust!r} and budget {self.budget!r}."
            )
        if self.budget is not None and not isinstance(self.budget, PrivacyBudget):
            raise ParameterError(f"budget must be a PrivacyBudget, got {self.budget!r}.")
        if self.bits is not None:
            check_count("bits", self.bits)
        check_count("public", self.public, low=0)
        check_choice("neighbours", self.neighbours, Relation)
        if self.neighbours != Relation.REPLACE_ONE and (self.trust != "central" or self.public):
            raise ParameterError(
                "neighbours must be 'replace-one' but for trust 'central' without public rows, got "
                f"{self.neighbours!r}: a message that is missing can be counted."
            )
        self._check_correlation()
        self._check_variance()
        self._check_shares()
        self._check_moment()

    def _check_correlation(self) -> None:
        least = -1 / (self.n - 1) if self.n > 1 else 0.0
        if self.correlation is None:
            return
        if self.norm != "l2":
            raise ParameterError(f"correlation is that of rows in an l2 ball, got norm {self.norm!r}.")
        if self.public:
            raise ParameterError(
                "correlation and public rows do not go together: independent rows have none."
            )
        if not least * (1 + 1e-9) <= self.correlation <= 1:
            raise ParameterError(
                f"correlation must be in [-1 / (n - 1), 1] = [{least:g}, 1], got {self.correlation!r}."
            )

    def _check_variance(self) -> None:
        if self.public and self.trust == "none":
            raise ParameterError("public rows help private means; with trust 'none' all rows may be read.")
        if self.variance is None:
            return
        if not self.public:
            raise ParameterError("variance is used with public rows only.")
        check_probability("variance / the largest squared norm", self.variance / self.radius_in("l2") ** 2)

    def _check_moment(self) -> None:
        if self.moment is None:
            return
        if (self.norm, self.radius) != ("l2", 1.0):
            raise ParameterError("norm and radius must not be given with a moment: no ball holds the rows.")
        if self.trust == "none" or self.public or self.correlation is not None:
            raise ParameterError("a moment goes with a budget, and without public rows and correlation.")

    def _check_shares(self) -> None:
        check_count("colluding", self.colluding, low=0)
        if self.trust != "aggregate":
            if self.colluding or self.n_min is not None:
                raise ParameterError(
                    "colluding and n_min are numbers of parties in a sum, for trust 'aggregate' only, got "
                    f"trust {self.trust!r}."
                )
            return
        if self.n_min is not None:
            check_count("n_min", self.n_min, low=2, high=self.n)
        least = self.n if self.n_min is None else self.n_min
        if least - self.colluding < 2:
            raise ParameterError(
                "colluding must leave 2 honest parties in every sum, got "
                f"{self.colluding} of at least {least} parties."
            )
        if least < self.n and 2 * least <= self.n + self.colluding:
            raise ParameterError(
                f"n_min must be above (n + colluding) / 2 = {(self.n + self.colluding) / 2:g}, got {least}: "
                "else a server could open two sums of one round."
            )
        if least < self.n > _MOST_RECOVERED:
            raise ParameterError(
                f"n must be at most {_MOST_RECOVERED} where parties may drop out of a sum, got {self.n}; "
                "with n_min = n there is no such limit."
            )

    @property
    def shares(self) -> int:
        """Honest parties m that a sum holds at least: t - c; 1 where nobody adds messages up in secret."""
        if self.trust != "aggregate":
            return 1
        return (self.n if self.n_min is None else self.n_min) - self.colluding

    def radius_in(self, norm: Norm) -> float:
        """Return the least radius of a ball of another norm that holds all rows.

        With p and q the two norms, max ||x||_q / ||x||_p = d^max(0, 1/q - 1/p).
        """
        exponents = {"l1": 1.0, "l2": 0.5, "linf": 0.0}
        return self.radius * math.pow(self.dim, max(0.0, exponents[norm] - exponents[self.norm]))

    def facts(self, norm: Norm) -> Facts:
        """Return what errors depend on, for an estimator that clips in that norm."""
        radius, R = self.radius_in(norm), self.total_correlation
        squares = None if R is None else self.n * self.radius**2
        return Facts(parties=self.n, radius=radius, squared_norms=squares, correlation=R)

    @property
    def total_correlation(self) -> float | None:
        """R = sum_{i != l} <x_i, x_l> / S1."""
        return None if self.correlation is None else max(self.correlation * (self.n - 1), -1.0)

    @property
    def near(self) -> Neighbours:
        """What happens to one record; of private and public ones, to a private one."""
        return PRIVATE_RECORD if self.public else Neighbours(Relation(self.neighbours))

    @property
    def observer(self) -> TrustModel:
        """Whose view is priced; that of nobody where nobody is kept out."""
        return TrustModel.LOCAL if self.trust == "none" else TrustModel(self.trust)

    @property
    def population_variance(self) -> float:
        """V^2 of a row: what is given, or the most that the ball allows."""
        return self.radius_in("l2") ** 2 if self.variance is None else self.variance

    @property
    def known_budget(self) -> PrivacyBudget:
        """The budget, of a private problem."""
        if self.budget is None:
            raise ParameterError("a problem without privacy has no budget.")
        return self.budget

    @property
    def log_dim(self) -> float:
        """log2 of the dimension, at least 1: stages of a fast transform."""
        return max(1.0, math.log2(self.dim))
