"""`tacit model`: what a trained model says, in words and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.files import ModuleFlag, check_file, check_picture, find_run, note_unused
from tacit.cli.output import JsonFlag, print_facts, print_json, print_table, print_text, results_alone
from tacit.errors import ParameterError, check_count, printable

if TYPE_CHECKING:
    import pandas as pd

    from tacit.jobs import TrainedModel

__all__ = ["app"]

_AGAINST: Final = "#D55E00"  # Okabe and Ito (2008)
_FOR: Final = "#0072B2"

app = typer.Typer(help="Trained models: what they predict, and from what.", no_args_is_help=True)


@app.command()
def show(
    run: Annotated[
        Path, typer.Argument(help="Name or folder of a run, or its model.json.", show_default=False)
    ],
    top: Annotated[int, typer.Option(help="Number of features to show, those of most weight.")] = 20,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture of these weights: .svg, .png or .pdf.", show_default="no picture"),
    ] = None,
    module: ModuleFlag = None,
    json: JsonFlag = False,
) -> None:
    """Show the weights of a model in words.

    Features are scaled to [-1, 1] within their bounds, or by public records, so that weights can be compared:
    the largest matter most. Weights hold the noise of privacy too; small ones may be nothing but noise. A
    model that is not linear in its features has no such weights, and is only named.
    """
    check_count("top", top)
    if plot is not None:
        check_picture(plot)
    from tacit.jobs import load_model

    with results_alone():
        model = load_model(find_run(run), modules=module or ())
    note_unused(module, model)
    if model.fitted.why_no_weights:
        _show_parameters(model, str(run), json=json, plot=plot)
        return
    weights = model.coef_.T if model.coef_.ndim == 2 else model.coef_.to_frame()
    shown = weights.loc[weights.abs().max(axis=1).sort_values(ascending=False, kind="stable").index[:top]]
    if plot is not None:
        _draw(shown, model, plot)
    if json:
        print_json(_facts(model, weights))
        return
    print_facts(_summary(model), title=str(run))
    columns = ("feature", "weight", "a larger value speaks for")
    rows = [(_feature(str(name), model), *_words(row, model)) for name, row in shown.iterrows()]
    print_table(columns, rows, right=("weight",))
    if len(shown) < len(weights):
        print_text(f"\n{len(shown)} of {len(weights)} features; --top {len(weights)} shows all.")
    print_text(f"\n{model.privacy}")


@app.command()
def export(
    run: Annotated[
        Path, typer.Argument(help="Name or folder of a run, or its model.json.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File to write: .onnx.", show_default=False)],
    module: ModuleFlag = None,
) -> None:
    """Write a model for programs without Python, as an ONNX graph that takes columns.

    The graph is run once by ONNX Runtime, and must agree with the model. Needs the extra `onnx`.
    """
    if out.suffix.lower() != ".onnx":
        raise ParameterError(f"out must end with .onnx, got {str(out)!r}.")
    check_file("out", out)
    from tacit.jobs import load_model

    with results_alone():
        model = load_model(find_run(run), modules=module or ())
    note_unused(module, model)
    out.write_bytes(model.to_onnx())
    print_text(f"{out}: inputs {', '.join(model.used_columns) if model.columns else 'features'}")


def _show_parameters(model: TrainedModel, title: str, *, json: bool, plot: Path | None) -> None:
    """Show what is to be said of a model whose features have no weights."""
    if plot is not None:
        raise ParameterError(f"plot must be left out: {model.fitted.why_no_weights}")
    if json:
        print_json(
            {
                "version": 1,
                "run": model.run,
                "trust": model.trust,
                "task": model.task,
                "model": str(model.model),
                "parameters": model.fitted.w.size,
                "loss": model.fitted.chosen,
                "classes": None if model.task == "regression" else model.classes_,
                "columns": model.used_columns,
                "statement": model.statement_digest,
                "privacy": model.privacy,
            }
        )
        return
    print_facts({**_summary(model), "parameters": f"{model.fitted.w.size:,}"}, title=title)
    print_text(f"\n{model.fitted.why_no_weights}\n\n{model.privacy}")


def _facts(model: TrainedModel, weights: pd.DataFrame) -> dict[str, Any]:
    """Return a model for programs."""
    return {
        "version": 1,
        "run": model.run,
        "trust": model.trust,
        "task": model.task,
        "loss": model.fitted.chosen,
        "link": model.fitted.link,
        "classes": None if model.task == "regression" else model.classes_,
        "columns": model.used_columns,
        "intercept": model.intercept_,
        "weights": {name: row.to_dict() for name, row in weights.iterrows()},
        "statement": model.statement_digest,
        "privacy": model.privacy,
    }  # fmt: skip


def _summary(model: TrainedModel) -> dict[str, object]:
    """Return what a model is, in words."""
    label = None if model.columns is None or model.columns.label is None else model.columns.label.column
    if model.task == "regression":
        within = "" if model.fitted.target is None else " from {:g} to {:g}".format(*model.fitted.target)
        predicts = f"{label or 'a number'}{within}"
    else:
        predicts = f"{label or 'class'}: {', '.join(map(str, model.classes_))}"
    return {
        "run": model.run,
        "trust": model.trust,
        "predicts": predicts,
        "model": str(model.model),
        "loss": model.fitted.chosen.words,
        "columns": ", ".join(model.used_columns[:20]) + (", ..." if len(model.used_columns) > 20 else ""),
        "statement": model.statement_digest or "none beside the model",
    }


def _feature(name: str, model: TrainedModel) -> str:
    """Return what the larger value of a feature is: of a date, more years before the day of reference."""
    from tacit.data import Date

    column = None if model.columns is None else model.columns.columns.get(name)
    return f"{name} (years before {column.reference})" if isinstance(column, Date) else name


def _words(row: pd.Series[float], model: TrainedModel) -> tuple[str, str]:
    """Return the weight of a feature, and what it speaks for."""
    if not row.any():  # as penalties leave it
        return "0", "nothing"
    if len(row) > 1:
        return f"{row.max() - row.min():.3g}", f"{row.idxmax()}, against {row.idxmin()}"
    weight = float(row.iloc[0])
    if model.task == "regression":
        return f"{weight:+.3g}", "a larger prediction" if weight > 0 else "a smaller prediction"
    return f"{weight:+.3g}", f"{model.classes_[int(weight > 0)]}"


def _draw(weights: pd.DataFrame, model: TrainedModel, path: Path) -> None:
    """Draw weights by feature, the largest on top: bars, or a field of colours for several classes."""
    from matplotlib.figure import Figure

    height = 1.6 + 0.28 * len(weights)
    several = len(weights.columns) > 1
    width = 4.0 + 0.6 * len(weights.columns) if several else 8.0
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    most = float(weights.abs().to_numpy().max()) or 1.0
    if several:
        field = axes.imshow(weights.to_numpy(), cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
        figure.colorbar(field, label="weight: above 0 speaks for the class")
        axes.set_xticks(range(len(weights.columns)), [str(one) for one in weights.columns])
    else:
        values = weights.iloc[:, 0].to_numpy()
        axes.barh(range(len(values)), values, color=[_FOR if value > 0 else _AGAINST for value in values])
        axes.axvline(0, color="#111213", lw=0.8)
        axes.set_xlabel(_axis(model))
        axes.invert_yaxis()
        axes.grid(visible=True, axis="x", lw=0.4, color="#e1e2e3")
        axes.set_axisbelow(True)
    axes.set_yticks(range(len(weights)), [printable(_feature(str(name), model)) for name in weights.index])
    figure.suptitle(f"{model.run}: weights of features {_units(model)}", fontsize=11)
    figure.savefig(path, dpi=150)


def _units(model: TrainedModel) -> str:
    """Say what the units of features are."""
    from tacit.learning import FeatureMap

    mapped = model.fitted.features
    if not isinstance(mapped, FeatureMap):
        return "in their own units"
    return "scaled to [-1, 1]" if mapped.scaling is None else "scaled by public records"


def _axis(model: TrainedModel) -> str:
    """Say what the two directions of a weight mean."""
    if model.task == "regression":
        return "weight: a larger value of the feature makes the prediction smaller (left) or larger (right)"
    low, high = model.classes_
    return f"weight: a larger value of the feature speaks for {low} (left) or {high} (right)"
