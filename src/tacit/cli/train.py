"""`tacit train`: train one model across silos."""

from __future__ import annotations

import tomllib
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress
from tacit.errors import DataError, PrivacyWarning

if TYPE_CHECKING:
    from tacit.learning.job import JobResult, Ledgers
    from tacit.learning.job_config import JobConfig

__all__ = ["train"]


def train(
    config: Annotated[Path | None, typer.Argument(help="TOML file with the same names as the flags.")] = None,
    data: Annotated[str | None, typer.Option(help="Named data set, or a CSV or Parquet table.")] = None,
    label: Annotated[str | None, typer.Option(help="Label column of a table.")] = None,
    silo_column: Annotated[str | None, typer.Option(help="Column: which silo holds a record.")] = None,
    person: Annotated[str | None, typer.Option(help="Column: whose a record is.")] = None,
    columns: Annotated[str | None, typer.Option(help="TOML file with public bounds.")] = None,
    task: Annotated[str | None, typer.Option(help="classification or regression.")] = None,
    silos: Annotated[
        str | None,
        typer.Option(help="auto, column, pairs, label, iid:N, mixture:P, dirichlet:N:ALPHA, sorted:N."),
    ] = None,
    trust: Annotated[str | None, typer.Option(help="local, central, none, or all three.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of every silo.")] = None,
    delta: Annotated[str | None, typer.Option(help="A number, or auto: 1/n^2 of the smallest silo.")] = None,
    neighbours: Annotated[str | None, typer.Option(help="replace-one or zero-out.")] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="accelerated, minibatch, multistage, local or sign-vote.")
    ] = None,
    rounds: Annotated[str | None, typer.Option(help="A number, or auto.")] = None,
    batch: Annotated[str | None, typer.Option(help="full, a number of records, or a share below 1.")] = None,
    sampling: Annotated[str | None, typer.Option(help="fixed or disjoint, for batches.")] = None,
    local_steps: Annotated[int | None, typer.Option(help="Steps in a silo per round (local).")] = None,
    mu: Annotated[float | None, typer.Option(help="Strong convexity (multistage).")] = None,
    clip: Annotated[float | None, typer.Option(help="Norm bound of a gradient.")] = None,
    l1: Annotated[float | None, typer.Option(help="Strength of an L1 penalty.")] = None,
    l2: Annotated[float | None, typer.Option(help="Strength of a squared L2 penalty.")] = None,
    weights: Annotated[str | None, typer.Option(help="How silos count: records or silos.")] = None,
    participants: Annotated[int | None, typer.Option(help="Silos drawn per round; else all.")] = None,
    noise: Annotated[str | None, typer.Option(help="auto, discrete-gaussian or gaussian.")] = None,
    test_fraction: Annotated[float | None, typer.Option(help="Share of records held out.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulation.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Folder of ledgers, from `tacit ledger create --silos`.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of run folders.")] = None,
    json: JsonFlag = False,
) -> None:
    """Train one model across silos that trust nobody.

    Without arguments: ten silos with different mixes of handwritten digits, under no privacy, a trusted
    server, and no trust at all. The run folder holds the model, the statement, the plan and a report.
    """
    flags = dict(locals())
    given = {k: v for k, v in flags.items() if v is not None and k not in ("config", "json")}
    job = _job(config, given)
    # Imported here so that `tacit --help` does not wait for scipy, pandas and matplotlib.
    from tacit.learning.job import Job
    from tacit.reports import results_json, write_run

    loaded = Job(job)
    ledgers = _ledgers(job, loaded.data.silo_names)
    with progress("training") as show:
        result: JobResult = loaded.run(
            ledgers=ledgers, progress=lambda trust, done, total: show(done, total, note=trust)
        )
    folder = write_run(result)
    if json:
        print_json(results_json(result, folder=folder))
    else:
        _show(result, folder)


def _show(result: JobResult, folder: Path) -> None:
    """Print the table of results, what is guaranteed, and where everything lies."""
    from tacit.reports import result_rows

    rows = result_rows(result)
    metric = result.results[0].metric
    columns = ("trust", metric, "epsilon", "delta", "sent per silo", "rounds", "seconds")
    cells = [(r.trust, r.score, r.epsilon, r.delta, r.size, r.rounds, r.seconds) for r in rows]
    sizes = [len(index) for index in result.data.train]
    print_text(f"{result.job.data}: {len(sizes)} silos with {min(sizes)} to {max(sizes)} records")
    print_table(columns, cells, right=columns[1:])
    print_text("")
    for one in result.results:
        if one.trust != "none":
            print_text(f"{one.trust}: {one.guarantee}")
    print_text(f"\nReport:  {folder / 'report.html'}")
    print_text(f"Check:   tacit account verify {folder / 'statement.json'}")


def _job(config: Path | None, given: dict[str, Any]) -> JobConfig:
    """Return the job of a TOML file and flags; flags win, and no data at all is the demo."""
    from tacit.learning.job_config import DEMO, JobConfig

    values: dict[str, Any] = {}
    if config is not None:
        try:
            values = tomllib.loads(config.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise DataError(f"{config} cannot be read as TOML: {error}.") from error
    values |= {k: _number(v) if k in ("delta", "rounds", "batch") else v for k, v in given.items()}
    if "data" not in values:
        return JobConfig.of(tomllib.loads(DEMO.to_toml()) | values)
    job = JobConfig.of(values)
    if job.is_table and job.name is None:
        # A name of its own for every run: the ledger knows runs by name and answers a known one as before.
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        return JobConfig.of(values | {"name": f"{job.run}-{moment}"})
    # On public data a run is an experiment, and experiments repeat.
    return job if job.is_table or job.seed is not None else JobConfig.of(values | {"seed": 0})


def _number(text: str) -> str | int | float:
    """Return a flag that may be a word or a number as what it is."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _ledgers(job: JobConfig, names: list[str]) -> Ledgers | None:
    """Open the ledgers of a table: the folder that was named, or the one beside the table."""
    if not job.is_table:
        return None
    from tacit.learning.job import Ledgers
    from tacit.privacy.ledger_folder import CENTRAL, DATA_SET, open_ledgers

    beside = Path(job.data).with_suffix(".ledger")
    if job.ledger is None and (job.seed is not None or not beside.exists()):
        warnings.warn(
            f"no ledger counts this run; `tacit ledger create {beside} --silos-from {job.data} "
            f"--silo-column {job.silo_column or 'NAME'} --epsilon E --delta D"
            f"{' --unit person' if job.person else ''}` sets a limit.",
            PrivacyWarning,
            stacklevel=1,
        )
        return None
    folder = beside if job.ledger is None else Path(job.ledger)
    # The data set's first: where it is missing, that is what must be said.
    whole, *silos, central = open_ledgers(folder, [DATA_SET, *names, CENTRAL])
    return Ledgers(silos=silos, central=central, data=whole)
