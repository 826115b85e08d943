"""`tacit plan`: which mechanism? Predicted error, bits and cost of every candidate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.flags import takes
from tacit.cli.neighbours import RelationOption
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.errors import ParameterError, check_count

if TYPE_CHECKING:
    from tacit.planning import Candidate, MeanProblem, Measured
    from tacit.privacy import Guarantee

__all__ = ["app"]

_VERSION: Final = 1
_TRUSTS: Final = ("none", "central", "aggregate", "shuffle", "local")
_NORMS: Final = ("l1", "l2", "linf")
_ASKED: Final = (
    "n",
    "dim",
    "trust",
    "norm",
    "radius",
    "bits",
    "correlation",
    "public",
    "variance",
    "neighbours",
    "colluding",
    "n_min",
)
_SPAN: Final = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

app = typer.Typer(
    help="Choose a mechanism or an algorithm by its predicted error, bits and cost.", no_args_is_help=True
)

Measurements = dict[str, "Measured"]


@app.callback()
def _group() -> None:
    """Choose a mechanism or an algorithm by its predicted error, bits and cost."""


@dataclass(frozen=True, kw_only=True)
class MeanFlags:
    """A mean, and what is wanted to know of its mechanisms."""

    n: Annotated[int, typer.Option(help="Number of parties, with one row each.")]
    dim: Annotated[int, typer.Option(help="Number of coordinates of a row.")]
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                _TRUSTS,
                told={
                    "none": "compress only",
                    "aggregate": "only sums are seen",
                    "local": "nobody is trusted",
                },
            ),
            help="Who is trusted: {names}.",
        ),
    ] = "local"
    colluding: Annotated[
        int, typer.Option(help="Most parties that collude with the server, with --trust aggregate.")
    ] = 0
    n_min: Annotated[
        int | None,
        typer.Option(
            help="Fewest parties in a sum, with --trust aggregate; the others may drop out.",
            show_default="all of them",
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget of the mean.", show_default="needed, but with --trust none"),
    ] = None
    delta: Annotated[float, typer.Option(help="Probability that the bound may fail; 0 is pure privacy.")] = (
        0.0
    )
    neighbours: RelationOption = "replace-one"
    norm: Annotated[
        str, typer.Option(click_type=OneOf(_NORMS), help="Norm of the ball that rows lie in: {names}.")
    ] = "l2"
    radius: Annotated[float, typer.Option(help="Radius of that ball.")] = 1.0
    moment: Annotated[
        str | None,
        typer.Option(
            help="What is known of rows that no ball holds: K:R, for (E |x|^K)^(1/K) <= R.",
            show_default="rows lie in the ball",
        ),
    ] = None
    bits: Annotated[
        int | None,
        typer.Option(
            help="Largest number of bits that a party may send, headers included.", show_default="no limit"
        ),
    ] = None
    correlation: Annotated[
        float | None,
        typer.Option(
            help="Mean correlation R / (n - 1) of two rows; 0: unrelated, 1: identical.",
            show_default="unknown",
        ),
    ] = None
    public: Annotated[int, typer.Option(help="Number of public rows from the same distribution.")] = 0
    variance: Annotated[
        float | None,
        typer.Option(help="Total variance of a row, with --public.", show_default="the largest possible"),
    ] = None
    points: Annotated[
        int, typer.Option(help="Largest number of candidates of a family, each with another number of bits.")
    ] = 4
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Also list the candidates that cannot be used, with the reason.")
    ] = False
    simulate: Annotated[int, typer.Option(help="Number of rounds to simulate for each candidate.")] = 0
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw error against bits and against epsilon into this file.", show_default="no picture"
        ),
    ] = None
    json: JsonFlag = False

    def problem(self) -> MeanProblem:
        """Return the question, after checks that name the options."""
        from tacit.means import MomentBound
        from tacit.planning import MeanProblem
        from tacit.privacy import PrivacyBudget

        private = self.trust != "none"
        if private and self.epsilon is None:
            raise ParameterError(f"epsilon must be given with trust {self.trust!r}.")
        if not private and (self.epsilon is not None or self.delta != 0):
            raise ParameterError(
                "epsilon and delta must not be given with trust 'none', which protects nothing."
            )
        asked = {name: vars(self)[name] for name in _ASKED}
        budget = None if self.epsilon is None else PrivacyBudget(self.epsilon, self.delta)
        moment = None if self.moment is None else MomentBound.parse(self.moment)
        return MeanProblem(budget=budget, moment=moment, **asked)


@app.command()
@takes(MeanFlags)
def mean(flags: MeanFlags) -> None:
    """Rank mechanisms for a mean by their predicted squared error."""
    from tacit.planning import measure, plan_mean

    check_count("simulate", flags.simulate, low=0)
    if flags.plot is not None:
        check_picture(flags.plot)
    problem = flags.problem()
    if flags.simulate and problem.moment is not None:
        raise ParameterError("simulate needs rows of a ball: a moment is no law to draw from.")
    with progress("calibrating") as show:
        found = plan_mean(problem, points=flags.points, infeasible=flags.all_of_them, progress=show)
    measured: Measurements = {}
    usable = [one for one in found if one.feasible]
    if trials := flags.simulate:
        with progress("simulating", total=len(usable) * trials) as show:
            for done, one in enumerate(usable):

                def further(
                    rounds: float, _: float | None = None, /, *, note: str = "", base: int = done
                ) -> None:
                    show(base * trials + rounds, note=note)

                measured[one.name] = measure(one, problem, trials=trials, seed=flags.seed, progress=further)
    if flags.plot is not None:
        _draw(problem, usable, flags.plot)
    if flags.json:
        print_json(_facts(problem, found, measured))
    else:
        _show(problem, found, measured)


def _facts(problem: MeanProblem, found: tuple[Candidate, ...], measured: Measurements) -> dict[str, Any]:
    """Return the plan for programs."""
    from tacit.planning import lower_bounds, references

    budget = problem.budget
    return {
        "version": _VERSION,
        "problem": {
            "n": problem.n,
            "dim": problem.dim,
            "norm": problem.norm,
            "radius": problem.radius,
            "trust": problem.trust,
            "neighbours": problem.neighbours,
            "epsilon": None if budget is None else budget.epsilon,
            "delta": None if budget is None else budget.delta,
            "bits": problem.bits,
            "correlation": problem.correlation,
            "public": problem.public,
            "variance": problem.population_variance if problem.public else None,
            "colluding": problem.colluding,
            "n_min": problem.n_min,
            "moment": None
            if problem.moment is None
            else {"order": problem.moment.order, "value": problem.moment.value},
        },
        "target": _target(problem),
        "candidates": [_line(one, measured.get(one.name)) for one in found],
        "references": references(problem),
        "lower_bounds": lower_bounds(problem),
    }


def _line(one: Candidate, measured: Measured | None) -> dict[str, Any]:
    """Return one candidate for programs."""
    line: dict[str, Any] = {
        "name": one.name,
        "family": one.family,
        "mse": one.mse,
        "rmse": one.rmse,
        "kind": one.kind,
        "bits_per_party": one.bits_per_party,
        "guarantee": None if one.guarantee is None else str(one.guarantee),
        "epsilon": None if one.guarantee is None else one.guarantee.epsilon,
        "delta": None if one.guarantee is None else one.guarantee.delta,
        "event": None if one.guarantee is None else one.guarantee.event,
        "radius": one.radius,
        "encode": one.encode._asdict(),
        "decode": one.decode._asdict(),
        "note": one.note,
        "feasible": one.feasible,
        "reason": one.reason,
    }
    if one.alone is not None:
        line["guarantee_alone"], line["epsilon_alone"] = str(one.alone), one.alone.epsilon
    if measured is not None:
        line["measured_mse"] = measured.mse
        line["measured_standard_error"] = measured.standard_error
        line["trials"] = measured.trials
    return line


def _target(problem: MeanProblem) -> str:
    """Say what errors are measured against."""
    if problem.moment is not None:
        return f"the mean of the law of {problem.n} independent rows"
    if problem.public:
        return f"the mean of the law of {problem.n} private and {problem.public} public rows"
    return f"the mean of the {problem.n} rows"


def _show(problem: MeanProblem, found: tuple[Candidate, ...], measured: Measurements) -> None:
    """Print the plan for people."""
    from tacit.planning import lower_bounds, references

    known = f"radius {problem.radius:g}"
    if problem.moment is not None:
        known = f"moment of order {problem.moment.order:g} at most {problem.moment.value:g}"
    print_text(f"squared L2 error against {_target(problem)}, dimension {problem.dim}, {known}")
    columns = ["mechanism", "mse", "rmse", "kind", "bits", "guarantee", "party", "server"]
    if measured:
        columns[3:3] = ["measured", "± s.e."]
    summed = problem.trust == "aggregate"
    if summed:
        columns[-2:-2] = ["alone"]
    if problem.moment is not None:
        columns[1:1] = ["clip"]
    rows = []
    for one in (one for one in found if one.feasible):
        line = [one.name, f"{one.mse:.3g}", f"{one.rmse:.3g}", one.kind, f"{one.bits_per_party:,.0f}"]
        line += [_promise(one.guarantee)]
        line += [_promise(one.alone)] if summed else []
        line += [one.encode.order, one.decode.order]
        if measured:
            seen = measured[one.name]
            line[3:3] = [f"{seen.mse:.3g}", f"{seen.standard_error:.1g}"]
        if problem.moment is not None:
            line[1:1] = [f"{one.radius:.3g}"]
        rows.append(line)
    print_table(columns, rows, right=("clip", "mse", "rmse", "measured", "± s.e.", "bits"))
    print_text("")
    for other in references(problem):
        print_text(f"- to compare with: {other.name}, mse {other.mse:.3g} ({other.note}).")
    for order in lower_bounds(problem):
        print_text(
            f"- nothing beats {order.statement} = {order.value:.3g} times an unknown constant "
            f"({order.source})."
        )
    if problem.correlation is not None:
        print_text("- rows are taken to have norm radius and the correlation that was given.")
    for note in dict.fromkeys(one.note for one in found[:1] if one.note):
        print_text(f"- {found[0].name}: {note}.")
    for condition in _conditions(found):
        print_text(f"- {condition}.")
    for one in (one for one in found if not one.feasible):
        print_text(f"- not usable: {one.name}: {one.reason}")


def _conditions(found: tuple[Candidate, ...]) -> list[str]:
    """Say what the guarantees rest on, once for all mechanisms that rest on the same."""
    from tacit.privacy.guarantee import provided

    usable = [one for one in found if one.feasible and one.guarantee is not None]
    resting: dict[tuple[str, ...], list[str]] = {}
    for one in usable:
        if one.guarantee is not None and one.guarantee.assumptions:
            resting.setdefault(one.guarantee.assumptions, []).append(one.name)
    return [
        f"{'all guarantees' if len(names) == len(usable) > 1 else '; '.join(names)}: {provided(clauses)}"
        for clauses, names in resting.items()
    ]


def _promise(guarantee: Guarantee | None) -> str:
    """Say a guarantee in a few characters."""
    return "none" if guarantee is None else f"({guarantee.epsilon:.4g}, {guarantee.delta:.3g})"


def _draw(problem: MeanProblem, found: list[Candidate], path: Path) -> None:
    """Draw error against bits, and for private problems against epsilon."""
    from dataclasses import replace

    from tacit.cli.plan.plot import draw_plan
    from tacit.errors import BudgetError
    from tacit.planning import plan_mean
    from tacit.privacy import PrivacyBudget

    curves: dict[str, list[tuple[float, float]]] = {}
    if problem.budget is not None:
        at = [problem.budget.epsilon * factor for factor in _SPAN]
        with progress("budgets", total=len(at)) as show:
            for done, epsilon in enumerate(at):
                show(done, note=f"epsilon = {epsilon:g}")
                budget = PrivacyBudget(epsilon, problem.budget.delta)
                try:
                    best = plan_mean(replace(problem, budget=budget), points=1)
                except (BudgetError, ParameterError):
                    continue
                for one in best:
                    curves.setdefault(one.family, []).append((epsilon, one.mse))
    draw_plan(path, found, curves, here=None if problem.budget is None else problem.budget.epsilon)
