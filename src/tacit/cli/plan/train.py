"""`tacit plan train`: which algorithm? What each of them promises across silos, and why others do not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.flags import as_typed, takes
from tacit.cli.names import JOB
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress, results_alone
from tacit.cli.plan.network import left_out, show_network
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.learning import Prediction
    from tacit.learning.task import Task
    from tacit.planning import ScoMethod, TrainingProblem

__all__ = ["train"]

_VERSION: Final = 1
_TRUSTS: Final = ("none", "central", "aggregate", "shuffle", "local")
_CONVEXITIES: Final = ("convex", "strongly-convex", "prox-pl", "non-convex")


@dataclass(frozen=True, kw_only=True)
class TrainingFlags:
    """A training run known by its public facts."""

    silos: Annotated[int, typer.Option(help="Number of silos.")]
    records: Annotated[int, typer.Option(help="Number of records in each of them.")]
    dim: Annotated[
        int | None,
        typer.Option(help="Number of parameters of the model.", show_default="needed, but with --model"),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Instead of --dim and constants, a model by name: linear, scattering, mlp:64, cnn, or your "
            "own package.module:Class.",
            show_default="known by its constants",
        ),
    ] = None
    features: Annotated[
        int | None,
        typer.Option(
            help="Number of features of a record, with --model.", show_default="needed with --model"
        ),
    ] = None
    classes: Annotated[
        int | None, typer.Option(help="Number of classes, with --model.", show_default="2")
    ] = None
    task: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(JOB["task"]),
            help="What labels are, with --model: {names}.",
            show_default="classification",
        ),
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(JOB["loss"]),
            help="What is minimised, with --model: {names}.",
            show_default="auto: logistic or squared",
        ),
    ] = None
    trust: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                _TRUSTS,
                told={
                    "none": "without privacy",
                    "aggregate": "only the sum of all silos is seen",
                    "local": "nobody is trusted",
                },
            ),
            help="Who is trusted: {names}.",
        ),
    ] = "local"
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget of the run.", show_default="needed, but with --trust none"),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            help="Probability that the bound may fail.", show_default="1 / n^2 for the records of a silo"
        ),
    ] = None
    lipschitz: Annotated[
        float | None,
        typer.Option(help="Bound L on the norm of a record's gradient.", show_default="1"),
    ] = None
    smoothness: Annotated[
        float | None,
        typer.Option(help="Bound beta on how fast it changes.", show_default="L / 4, of logistic loss"),
    ] = None
    moment: Annotated[
        str | None,
        typer.Option(
            help="Instead of L, for heavy tails: ORDER:VALUE of a moment of gradients, such as 4:10.",
            show_default="none",
        ),
    ] = None
    non_smooth: Annotated[
        bool, typer.Option("--non-smooth", help="Whether the loss has kinks: no smoothness at all.")
    ] = False
    diameter: Annotated[
        float | None,
        typer.Option(
            help="About the distance from the start to a solution.",
            show_default="10, or what training takes for the model",
        ),
    ] = None
    convexity: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(_CONVEXITIES),
            help="What is known of the objective: {names}.",
            show_default="convex, strongly-convex with --strong-convexity, non-convex of networks",
        ),
    ] = None
    strong_convexity: Annotated[
        float, typer.Option(help="Its strong convexity, or the constant of its prox-PL inequality.")
    ] = 0.0
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds.", show_default="each algorithm chooses")
    ] = None
    one_pass: Annotated[
        bool,
        typer.Option("--one-pass", help="Use every record once: bounds are then about the population."),
    ] = False
    max_bits: Annotated[
        float | None,
        typer.Option(help="Most bits that a silo may send in the whole run.", show_default="no limit"),
    ] = None
    n_min: Annotated[
        int | None,
        typer.Option(
            help="Silos below which a round is given up, under shuffle trust, or aggregate with --recover.",
            show_default="all of them",
        ),
    ] = None
    colluding: Annotated[
        int, typer.Option(help="Under shuffle and aggregate trust, how many silos may tell what they sent.")
    ] = 0
    recover: Annotated[
        bool,
        typer.Option("--recover", help="Under aggregate trust, go on without silos that are gone."),
    ] = False
    l1: Annotated[float, typer.Option(help="Strength of an L1 penalty.")] = 0.0
    l2: Annotated[float, typer.Option(help="Strength of a squared L2 penalty.")] = 0.0
    json: JsonFlag = False

    def problem(self) -> TrainingProblem:
        """Return the question, after checks that name the options."""
        from tacit.errors import check_count
        from tacit.learning.linear import is_network
        from tacit.means import MomentBound
        from tacit.planning import TrainingProblem
        from tacit.privacy import PrivacyBudget

        private = self.trust != "none"
        if private and self.epsilon is None:
            raise ParameterError(f"epsilon must be given with trust {self.trust!r}.")
        if not private and (self.epsilon is not None or self.delta is not None):
            raise ParameterError(
                "epsilon and delta must not be given with trust 'none', which protects nothing."
            )
        if self.non_smooth and self.smoothness is not None:
            raise ParameterError("smoothness must be left out with non-smooth losses, which have none.")
        check_count("records", self.records)
        delta = min(self.records**-2, 0.5) if self.delta is None else self.delta
        task = self._model()
        network = task is not None and is_network(task.objective)
        guessed = "strongly-convex" if self.strong_convexity > 0 else "non-convex" if network else "convex"
        dim = self.dim if task is None else task.objective.size
        return TrainingProblem(
            silos=self.silos,
            records=self.records,
            dim=dim,  # type: ignore[arg-type]  # given where there is no model
            trust=self.trust,  # type: ignore[arg-type]  # one of the names, which it checks
            budget=None if self.epsilon is None else PrivacyBudget(self.epsilon, delta),
            diameter=self._diameter(task),
            lipschitz=self.lipschitz,
            smoothness=math.inf if self.non_smooth else self.smoothness,
            moment=None if self.moment is None else MomentBound.parse(self.moment),
            convexity=self.convexity or guessed,  # type: ignore[arg-type]  # the same
            mu=self.strong_convexity,
            rounds=self.rounds,
            one_pass=self.one_pass,
            max_bits=self.max_bits,
            n_min=self.n_min,
            colluding=self.colluding,
            recover=self.recover,
            l1=self.l1,
            l2=self.l2,
            task=task,
        )

    def _diameter(self, task: Task | None) -> float:
        """Return the distance that was given, else that of the model; 0 is no distance, and is refused."""
        if self.diameter is not None:
            return self.diameter
        return 10.0 if task is None else task.diameter

    def _model(self) -> Task | None:
        """Return the model that was named, of features and targets within bounds; None where none was."""
        import numpy as np

        from tacit.errors import check_count
        from tacit.learning import LossChoice
        from tacit.learning.architecture import Architecture
        from tacit.learning.task import bounded_features

        if self.model is None:
            if self.dim is None:
                raise ParameterError("dim must be given, the number of parameters, or a model by its name.")
            for name in ("features", "classes", "task", "loss"):
                if getattr(self, name) is not None:
                    raise ParameterError(f"{name} needs a model, got {getattr(self, name)} without.")
            return None
        if self.dim is not None:
            raise ParameterError(f"dim must be left out with a model, which says it, got {self.dim}.")
        if self.features is None:
            raise ParameterError("features must be given with a model: their number.")
        check_count("features", self.features)
        classes = 2 if self.classes is None else check_count("classes", self.classes, low=2)
        numbers = self.task == "regression"
        if numbers and self.classes is not None:
            raise ParameterError(f"classes must be left out with task 'regression', got {classes}.")
        loss = None if self.loss in (None, "auto") else LossChoice.of(self.loss)
        bounded = bounded_features(
            np.zeros(self.features), np.ones(self.features), unit_rows=not numbers, sample=None
        )
        return Architecture.of(self.model).task(
            bounded,
            classes=None if numbers else np.arange(classes),
            target=(0.0, 1.0) if numbers else None,
            loss=loss,
        )


@takes(TrainingFlags)
def train(flags: TrainingFlags) -> None:
    """Rank training algorithms by the bounds on their error, or the noise of their rounds.

    With --model it is a model by name, as `tacit train` has it. No bound holds of a network: those of its
    algorithms that can run come by their noise, with their price.
    """
    from tacit.planning import plan_training

    with results_alone():
        problem = flags.problem()
    with progress("calibrating") as show:
        found = plan_training(problem, progress=show)
    if flags.json:
        print_json(_facts(flags, problem, found))
    elif problem.is_network:
        show_network(flags.model or "", problem, found)
    else:
        _show(problem, found)


def _facts(flags: TrainingFlags, problem: TrainingProblem, found: tuple[Prediction, ...]) -> dict[str, Any]:
    """Return the plan for programs."""
    from tacit.learning.algorithms import algorithm_name
    from tacit.planning.train import automatic_choice

    budget, auto = problem.budget, automatic_choice(problem)
    return {
        "version": _VERSION,
        "problem": {
            "silos": problem.silos,
            "records": problem.records,
            "dim": problem.dim,
            "model": flags.model,
            "features": flags.features,
            "classes": flags.classes,
            "task": flags.task,
            "loss": flags.loss,
            "trust": problem.trust,
            "epsilon": None if budget is None else budget.epsilon,
            "delta": None if budget is None else budget.delta,
            "lipschitz": _finite(problem.length) if problem.moment is None else None,
            **({} if problem.moment is None else {"moment": problem.moment}),
            "smoothness": _finite(problem.beta),
            "diameter": problem.diameter,
            "convexity": problem.convexity,
            "strong_convexity": problem.mu,
            "rounds": problem.rounds,
            "one_pass": problem.one_pass,
            "max_bits": problem.max_bits,
            "n_min": problem.n_min,
            "colluding": problem.colluding,
            "recover": problem.recover,
            "l1": problem.l1,
            "l2": problem.l2,
        },
        "excess_of_start": _finite(problem.start),
        "auto": None if auto is None else {"name": algorithm_name(auto.algorithm), "reason": auto.reason},
        "algorithms": [_line(one) for one in found],
        "orders": _orders(problem),
        "lower_bounds_miss": _missed(problem),
        "one_record_each": [
            {**vars(one), "bound": _finite(one.bound), "valid": one.valid}
            for one in _one_record_each(problem)
        ],
    }


def _line(one: Prediction) -> dict[str, Any]:
    """Return one algorithm for programs."""
    return {
        "name": one.name,
        "predicted_excess_risk": _finite(one.bound) if one.valid and one.bounded == "excess" else None,
        "predicted_squared_gradient": _finite(one.bound) if one.valid and one.bounded != "excess" else None,
        "valid": one.valid,
        "reason": one.reason,
        "bits_per_silo": one.bits_per_silo if one.runs else None,
        "rounds": one.rounds if one.runs else None,
        "noise_multiplier": one.noise_multiplier if one.runs else None,
        "gradient_error": one.gradient_error,
        "about": "population" if one.population else "records",
        "runs": one.runs,
        "caveat": one.caveat,
        "algorithm": one.algorithm,
    }


def _show(problem: TrainingProblem, found: tuple[Prediction, ...]) -> None:
    """Print the plan for people."""
    smooth = f"beta = {problem.beta:g}" if math.isfinite(problem.beta) else "not smooth"
    stated = problem.moment
    bounded = math.isfinite(problem.length)
    known = f"L = {problem.length:g}" if bounded else "gradients clipped"
    known = known if stated is None else f"moment {stated.order:g}:{stated.value:g}"
    strong = f" with mu = {problem.mu:g}" if problem.mu else ""
    print_text(
        f"{problem.silos} silos of {problem.records:,} records, {problem.dim} parameters, "
        f"{problem.convexity}{strong}: {known}, {smooth}, D = {problem.diameter:g}"
    )
    valid = [one for one in found if one.valid]
    columns = ("algorithm", "bound", "of", "about", "rounds", "noise", "bits a silo")
    rows = [
        (
            one.name,
            f"{one.bound:.3g}",
            one.bounded,
            "population" if one.population else "records",
            str(one.rounds),
            f"{one.noise_multiplier:.4g}",
            f"{one.bits_per_silo:,.0f}",
        )
        for one in valid
    ]
    if rows:
        print_table(columns, rows, right=("bound", "rounds", "noise", "bits a silo"))
    else:
        print_text("no algorithm has a bound here.")
    print_text("")
    if problem.convexity != "non-convex":
        print_text(
            f"- the start has an excess of at most {problem.start:.3g}: a bound above it promises nothing."
        )
    print_text("- bounds hold for every data set, and are loose: a higher one may do better on yours.")
    if not bounded:
        print_text("- no bound holds for gradients of this loss: errors are of what clipping makes of it.")
    for one in valid:
        if one.caveat:
            print_text(f"- {one.name}: {one.caveat}.")
    for order in _orders(problem):
        lower = "" if order["lower"] is None else f", nobody beats {order['lower']:.2g}"
        print_text(
            f"- order of the {order['of']}, {order['problem']}: {order['upper']:.2g} is reached{lower}, "
            f"constants and logarithms left out ({order['source']})."
        )
    for method in _one_record_each(problem):
        if method.valid:
            print_text(
                f"- with one record a party, {method.name} is promised {method.bound:.3g} over the "
                f"population, in {method.rounds} rounds of {method.batch:,} parties, {method.bits:,.0f} bits "
                f"each{f' ({method.note})' if method.note else ''}."
            )
    if missed := _missed(problem):
        print_text(f"- those lower bounds are not proven here: {'; '.join(missed)}.")
    for (runs, reason), names in left_out(one for one in found if not one.valid).items():
        said = as_typed(reason, TrainingFlags.__dataclass_fields__)
        print_text(f"- {'without a bound' if runs else 'not usable'}: {', '.join(names)}: {said}")


def _orders(problem: TrainingProblem) -> list[dict[str, Any]]:
    """Return what the literature says of such problems, up to constants; nothing where it says nothing."""
    from tacit.literature import silo_rates

    if problem.trust == "aggregate" or problem.moment:  # of which no table of rates says anything
        return []
    if problem.budget is None or problem.budget.delta == 0:
        return []
    if not math.isfinite(problem.beta) or not math.isfinite(problem.length):
        return []
    found = silo_rates(_paper(problem), trust=problem.trust)
    of_class = {"excess"} if problem.convexity != "non-convex" else {"squared gradient"}
    pl = problem.convexity == "prox-pl"
    return [
        vars(one)
        for one in found
        if one.of in of_class and (one.problem.startswith("proximal") == pl or problem.mu == 0)
    ]


def _one_record_each(problem: TrainingProblem) -> tuple[ScoMethod, ...]:
    """Return what the shuffled methods promise where every record is a party of its own."""
    from tacit.planning import sco_plan

    return () if problem.one_record_each is None else sco_plan(problem.one_record_each)


def _missed(problem: TrainingProblem) -> list[str]:
    """Return which conditions of the lower bounds are not met."""
    from tacit.literature import lower_bounds_miss

    if problem.trust != "local" or not _orders(problem):
        return []
    return list(lower_bounds_miss(_paper(problem)))


def _paper(problem: TrainingProblem) -> Any:
    """Return the problem as theorems take it."""
    from tacit.literature import PaperProblem

    return PaperProblem(
        n=problem.records,
        silos=problem.silos,
        dim=problem.dim,
        budget=problem.budget,  # type: ignore[arg-type]  # only asked where there is one
        smoothness=problem.beta,
        diameter=problem.diameter,
        lipschitz=problem.length,
        mu=problem.mu,
    )


def _finite(value: float) -> float | None:
    """Return a number that JSON has."""
    return value if math.isfinite(value) else None
