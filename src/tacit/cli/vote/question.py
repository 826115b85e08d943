"""What `tacit vote design` and `tacit vote plan` ask: teachers, what may be spent, and what is believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.names import TIES
from tacit.errors import ParameterError, check_choice, check_count

if TYPE_CHECKING:
    from tacit.voting import DesignObjective, Prior, Setting

__all__ = ["DRAWS", "Question"]

DRAWS: Final = 10_000
_PRIORS: Final = {
    "consensus": "all lean to one side",
    "uniform": "anything from 0 to 1",
    "polarised": "near 0 or 1",
}
_CONSENSUS: Final = 0.75


@dataclass(frozen=True, kw_only=True)
class Question:
    """The teachers, what one vote and one published bit may cost, and what is believed of the votes."""

    teachers: Annotated[int, typer.Option(help="Number of teachers, each with one private bit per query.")]
    epsilon: Annotated[float, typer.Option(help="Epsilon of one vote of one teacher.")]
    delta_teacher: Annotated[
        float, typer.Option(help="Delta of one vote of one teacher; 0 is pure privacy.")
    ] = 0.0
    target_delta: Annotated[
        float | None,
        typer.Option(help="Delta of the published bit.", show_default="1 - (1 - delta)^m"),
    ] = None
    ties: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(TIES),
            help="What an even number of teachers publishes at a tie: {names}.",
            show_default="needed for an even number",
        ),
    ] = None
    affected: Annotated[
        int | None,
        typer.Option(
            help="Most teachers that one record may reach, chosen without looking at it.", show_default="all"
        ),
    ] = None
    prior: Annotated[
        str,
        typer.Option(
            click_type=OneOf(_PRIORS, told=_PRIORS),
            help="What is believed of each teacher's chance of a vote for 1: {names}. Privacy never rests "
            "on it.",
        ),
    ] = "consensus"
    mean: Annotated[
        float, typer.Option(help="Chance that a teacher votes with its side, in (1/2, 1], for consensus.")
    ] = _CONSENSUS

    def setting(self, m: float) -> Setting:
        """Return the question, after checks that name the options; a bit may cost as much as m votes."""
        from tacit.voting import Ties, allowance

        ties = None if self.ties is None else Ties(check_choice("ties", self.ties, Ties))
        check_count("teachers", self.teachers)
        if self.teachers % 2 == 0 and ties is None:
            raise ParameterError(
                f"teachers must be odd, got {self.teachers}: an even number can be tied. Add a teacher, or "
                "give --ties coin to publish a fair coin then."
            )
        return allowance(
            self.teachers,
            self.epsilon,
            m,
            delta=self.delta_teacher,
            target_delta=self.target_delta,
            ties=ties,
            affected=self.affected,
        )

    def belief(self) -> tuple[Prior, DesignObjective]:
        """Return the prior, and the objective that is right for it."""
        from tacit.randomness import simulated
        from tacit.voting import expected_error, one_sided, polarised_prior, uniform_prior

        name = check_choice("prior", self.prior, _PRIORS)
        if name != "consensus" and self.mean != _CONSENSUS:
            raise ParameterError(f"mean is of the prior 'consensus', got it with {name!r}.")
        if name == "consensus":
            # Spread as far as chances up to 1 allow.
            return uniform_prior(2 * self.mean - 1.0, 1.0), one_sided(self.teachers, self.mean)
        prior = uniform_prior() if name == "uniform" else polarised_prior()
        rng = simulated(0, "vote-objective")
        return prior, expected_error(self.teachers, prior, draws=DRAWS, rng=rng)
