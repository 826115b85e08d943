"""`tacit fairness curve`: accuracy against violation over weights of the penalty."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.choices import OneOf
from tacit.cli.fairness.train import curve_rows
from tacit.cli.files import check_picture
from tacit.cli.names import JOB
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, print_whole, progress
from tacit.errors import ParameterError

__all__ = ["curve"]


def curve(
    *,
    data: Annotated[
        list[str], typer.Option(help="Named data set, or tables; may be repeated.", show_default=False)
    ],
    label: Annotated[
        str | None,
        typer.Option(help="Label column of a table.", show_default="as the column description has it"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="TOML file with public bounds.", show_default="the one beside the tables"),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(help="Share of the records that is held out for scoring.")
    ] = 0.2,
    sensitive: Annotated[
        list[str],
        typer.Option(
            help="Sensitive column; may be repeated, and each combination is then a group.",
            show_default=False,
        ),
    ],
    fairness: Annotated[
        str, typer.Option(click_type=OneOf(JOB["fairness"]), help="What a classifier must not do: {names}.")
    ] = "demographic-parity",
    missing: Annotated[
        bool,
        typer.Option("--missing", help="Take records whose sensitive cell is empty, too; else refuse them."),
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(help="Weights of unfairness, with commas.", show_default="0,0.1,0.3,1,3,10,30"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the choice of held-out records.")] = 0,
    out: Annotated[Path, typer.Option(help="Picture to write: .png, .svg or .pdf.")] = Path("curve.png"),
    json: JsonFlag = False,
) -> None:
    """Train one model for each weight, and draw accuracy against violation on held-out records.

    Nothing is private: the picture stays with whoever owns the records.
    """
    check_picture(out, name="out")
    weights = _weights(at)
    from tacit.cli.job_words import with_slash
    from tacit.jobs import CURVE_WEIGHTS, FairJob, JobConfig
    from tacit.reports import draw_curve

    named = with_slash(data[0] if len(data) == 1 else data)
    said = {"label": label, "columns": columns}
    job = JobConfig.of(
        {
            "data": named,
            "sensitive": sensitive,
            "fairness": fairness,
            "missing": missing,
            "test_fraction": test_fraction,
            "seed": seed,
            **{name: value for name, value in said.items() if value is not None},
        }
    )
    loaded = FairJob(job)
    with progress("training") as show:
        points = loaded.curve(weights or CURVE_WEIGHTS, progress=show)
    title = f"{loaded.config.source}: {fairness} over {' x '.join(sensitive)}"
    draw_curve(out, points, notion=fairness, title=title)
    if json:
        facts = {"data": data, "sensitive": sensitive, "fairness": fairness, "out": out}
        print_json({"version": 1, **facts, "points": [asdict(point) for point in points]})
        return
    print_text(f"{title}, held-out records")
    columns_, rows = curve_rows(points)
    print_table(columns_, rows, right=columns_)
    print_whole(f"\nPicture:  {out}")


def _weights(text: str | None) -> tuple[float, ...] | None:
    """Return the weights that a person wrote; None where nothing was."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 <= one < float("inf") for one in found):
        raise ParameterError(f"at must be numbers >= 0 with commas, such as 0,1,10, got {text!r}.")
    return tuple(sorted(set(found)))
