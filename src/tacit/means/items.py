"""Means of rows that are shares of items: every row names one item, and sends it or another one."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from tacit.errors import check_choice, check_count
from tacit.means.base import Error
from tacit.means.message import Round
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.symbols import Channels, Symbols, symbols
from tacit.mechanisms import HadamardRandomizer, KaryRandomizedResponse, check_level
from tacit.numerics import Array, IntArray, fwht

__all__ = ["ItemMean"]

Response = Literal["krr", "hr"]
_RESPONSES = ("krr", "hr")


class ItemMean(RandomizedMean, frozen=True, kw_only=True, tag="items", dict=True):
    """A row of the simplex names item i with probability row[i] / radius, or none, and answers for it.

    So one-hot rows name what they hold. Negative entries count as zero. Naming is without bias, and the
    answer is that of a frequency oracle on dim + 1 values, the last of which is none.

    Attributes:
        dim: Number d of items, >= 1.
        local_epsilon: Pure level of the one message, in [2**-30, 30].
        response: "krr" sends the value or any other, the best where e^level is well above d; "hr" a symbol of
            which half of a block stands for the value.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up. The price counts n_min rows less those
            of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the L1 ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> mean = ItemMean(dim=4, local_epsilon=3.0)
        >>> rows = np.eye(4)[np.arange(40_000) % 2]
        >>> found = mean.estimate(rows, Round(n=40_000, radius=1.0), rng=np.random.default_rng(0))
        >>> np.abs(found.round(1)).tolist(), mean.bits_per_party(100)
        ([0.5, 0.5, 0.0, 0.0], 392)

    Reference:
        Kairouz, Bonawitz and Ramage (2016), ICML; Acharya, Sun and Zhang (2019), AISTATS. Prices behind a
        shuffler are those of the answer's own law: rounding a row at random mixes laws, which no divergence
        grows by.
    """

    local_epsilon: float
    response: Response = "krr"

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer one item of every row, for audits: rows of a ball have entries below 0."""
        return cls._one_message(problem, ranked=False)

    @cached_property
    def _answers(self) -> KaryRandomizedResponse | HadamardRandomizer:
        check_choice("response", self.response, _RESPONSES)
        level = check_level("local_epsilon", self.local_epsilon)
        made = KaryRandomizedResponse if self.response == "krr" else HadamardRandomizer
        return made(level, self.dim + 1)

    @property
    def randomizer(self) -> Symbols:
        """How a row becomes one symbol."""
        answers = self._answers
        many = answers.symbols if isinstance(answers, HadamardRandomizer) else answers.values
        return symbols(
            self,
            "l1",
            Channels(np.array([many]), np.array([answers.epsilon])),
            self._drawn,
            self._counted,
            lambda _: Error(variance=self._largest, exact=False),
            law=f"{self.response}:{self.dim + 1}",
        )

    def item_variance(self, n: int) -> float:
        """Return the variance of the estimate on n one-hot rows: exact for "krr", else of the fullest block.

        Rows in between add what naming one of several items does.
        """
        least = 1 / self.dim if self.response == "krr" else 0.0
        return (self._largest + least - 1) / check_count("n", n)

    @property
    def _largest(self) -> float:
        """Largest mean squared norm of the decoded report of a row, less what it must be at least."""
        answers, d = self._answers, self.dim
        if isinstance(answers, KaryRandomizedResponse):
            other = answers.lie_prob / d
            held, gap = 1 - answers.lie_prob, 1 - answers.lie_prob - other
            own = held * (1 - other) ** 2 + (1 - held) * other**2
            # Of a row that names all items equally often: less than any row that names none sometimes.
            return (own + (d - 1) * other * (1 - other)) / gap**2 - 1 / d
        blocks, _ = answers.place(np.arange(d + 1))
        held_by = np.bincount(blocks[:d], minlength=answers.shape[0])
        gap = self._gap(answers)
        return float((d * answers.shape[1] * answers.other_prob + gap * held_by[blocks].max()) / gap**2)

    def _drawn(self, rows: Array, _: Round, rng: np.random.Generator) -> IntArray:
        ends = np.cumsum(np.maximum(rows, 0.0), axis=1)
        # Below the first end that a uniform number is below; above all of them, none.
        named = (rng.random(len(rows))[:, None] >= ends).sum(axis=1)
        return self._answers.draw(named, rng)[:, None]

    def _counted(self, counts: IntArray, _reports: int, _round: Round) -> Array:
        answers = self._answers
        if isinstance(answers, KaryRandomizedResponse):
            return answers.decode(counts)[: self.dim]
        block, row = answers.place(np.arange(self.dim))
        return np.asarray(fwht(counts.reshape(answers.shape))[block, row] / self._gap(answers))

    @staticmethod
    def _gap(answers: HadamardRandomizer) -> float:
        """Mean of the entry at a value's row and its symbol."""
        return (answers.likely_prob - answers.other_prob) * (answers.shape[1] // 2)
