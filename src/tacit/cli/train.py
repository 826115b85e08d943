"""`tacit train`: train one model across silos."""

from __future__ import annotations

import shlex
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.interrupts import say_when_stopped
from tacit.cli.output import JsonFlag, print_json, print_line, print_table, print_text, progress
from tacit.cli.paying import warn_of_another
from tacit.errors import DataError, ParameterError, PrivacyWarning, TacitError, shown

if TYPE_CHECKING:
    from tacit.jobs import Job, JobConfig, JobResult, Ledgers
    from tacit.ledger import Entry

__all__ = ["train"]


def train(
    config: Annotated[Path | None, typer.Argument(help="TOML file with the same names as the flags.")] = None,
    data: Annotated[str | None, typer.Option(help="Named data set, or a CSV or Parquet table.")] = None,
    label: Annotated[str | None, typer.Option(help="Label column of a table.")] = None,
    silo_column: Annotated[
        str | None, typer.Option(help="Column that names the silo of each record.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Column that identifies the person of each record.")
    ] = None,
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
        str | None, typer.Option(help="Name of an algorithm; `list` shows all of them.")
    ] = None,
    rounds: Annotated[str | None, typer.Option(help="A number, or auto.")] = None,
    batch: Annotated[str | None, typer.Option(help="full, a number of records, or a share below 1.")] = None,
    sampling: Annotated[str | None, typer.Option(help="fixed or disjoint, for batches.")] = None,
    local_steps: Annotated[
        int | None, typer.Option(help="Steps inside a silo in each round (local).")
    ] = None,
    mu: Annotated[
        float | None,
        typer.Option(
            help="Strong convexity that the step sizes assume (multistage, accelerated, minibatch)."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another option of the algorithm; may be repeated."),
    ] = None,
    clip: Annotated[float | None, typer.Option(help="Norm bound of a gradient.")] = None,
    l1: Annotated[float | None, typer.Option(help="Strength of an L1 penalty.")] = None,
    l2: Annotated[float | None, typer.Option(help="Strength of a squared L2 penalty.")] = None,
    weights: Annotated[
        str | None, typer.Option(help="Weight of each silo: by its records, or silos (all alike).")
    ] = None,
    participants: Annotated[int | None, typer.Option(help="Silos drawn in each round; default: all.")] = None,
    noise: Annotated[str | None, typer.Option(help="auto, discrete-gaussian or gaussian.")] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of the records that is held out for scoring.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulation.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Folder of ledgers, from `tacit ledger create --silos`.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of run folders.")] = None,
    json: JsonFlag = False,
) -> None:
    """Train one model across silos that trust nobody.

    Without arguments, the demo: ten silos with different mixes of handwritten digits, trained without
    privacy, with a trusted server, and with no trust at all. The run folder holds the model, the statement,
    the plan and a report.
    """
    flags = dict(locals())
    if algorithm == "list":
        _list_algorithms(json=json)
        return
    given = {k: v for k, v in flags.items() if v is not None and k not in ("config", "json")}
    job = _job(config, given)
    # Imported here so that `tacit --help` does not wait for scipy, pandas and matplotlib.
    from tacit.jobs import Job
    from tacit.reports import claim_folder, results_json, write_run

    loaded = Job(job)
    ledgers = _ledgers(job, loaded.data.silo_names)
    spent = _Spent(loaded, ledgers, _command(config, given | {"name": job.run}, json=json))
    with say_when_stopped(spent.when_stopped):
        # Made first: that it cannot be made must not be found when the budget is spent.
        folder = claim_folder(job, again=spent.again)
        try:
            with spent.said_on_failure():
                with progress("training") as show:
                    result = loaded.run(
                        ledgers=ledgers, progress=lambda trust, done, total: show(done, total, note=trust)
                    )
                write_run(result, folder)
        finally:
            folder.give_back()
    if folder.path != folder.wanted:
        text = f"{folder.wanted} is there already and stays as it is; this run is in {folder.path}."
        print_line(to_error=True, label="note", text=text, colour="yellow")
    if json:
        print_json(results_json(result, folder=folder.path))
    else:
        _show(result, folder.path)


@dataclass(frozen=True)
class _Spent:
    """What a run leaves in ledgers when it does not end, and how it goes on.

    Attributes:
        job: With its data loaded.
        ledgers: The accounts; None keeps none.
        command: What goes on with the run.
    """

    job: Job
    ledgers: Ledgers | None
    command: str

    @property
    def again(self) -> str:
        """What a person reads in the folder of a run that was killed."""
        if self.ledgers is None:
            return "No ledger has counted it, and nothing of it was kept.\n"
        return f"What it has reserved stays spent. This goes on with it at no cost:\n\n{self.command}\n"

    def when_stopped(self) -> dict[str, str]:
        """Return what is said after Ctrl-C."""
        if self.ledgers is None:
            return {"tacit": "interrupted; no ledger counts this run, and nothing of it was kept."}
        lines = self._lines(self._reserved())
        if not lines:
            return {"tacit": "interrupted; nothing was spent."}
        return {"tacit": "interrupted.", **lines}

    @contextmanager
    def said_on_failure(self) -> Iterator[None]:
        """Say before the error of the block what it has spent; where that is nothing, nothing is said."""
        before = self._reserved()
        try:
            yield
        except (TacitError, OSError):
            after = [one for one in self._reserved() if one not in before]
            for label, text in self._lines(after).items():
                print_line(to_error=True, label=label, text=text)
            raise

    def _reserved(self) -> list[tuple[str, Entry]]:
        """Return what the run has reserved, with whose account it is."""
        if self.ledgers is None:
            return []
        return self.ledgers.reserved(self.job.data.silo_names, self.job.run_names)

    def _lines(self, reserved: list[tuple[str, Entry]]) -> dict[str, str]:
        """Return what stays spent, accounts of one price together, and the command that goes on."""
        by_price: dict[str, list[str]] = {}
        for owner, entry in reserved:
            price = f"epsilon {entry.epsilon!r} at delta {entry.delta!r} for run {entry.run!r}"
            by_price.setdefault(price, []).append(owner)
        if not by_price:
            return {}
        parts = [f"{price}, by {', '.join(owners)}" for price, owners in by_price.items()]
        return {"spent": f"{'; '.join(parts)}. It stays spent.", "resume at no cost": self.command}


def _list_algorithms(*, json: bool) -> None:
    """Print what `--algorithm` and `--option` take."""
    from tacit.learning import ALGORITHMS, about

    known = [about(name) for name in ALGORITHMS]
    if json:
        print_json([asdict(one) for one in known])
        return
    print_table(
        ("algorithm", "trust models", "asks for", "options", "paper"),
        [
            (one.name, ", ".join(one.trusts), ", ".join(one.statistics), ", ".join(one.options), one.paper)
            for one in known
        ],
    )


def _command(config: Path | None, given: Mapping[str, Any], *, json: bool) -> str:
    """Return the command line that says the same, under the name that the run has got."""
    words = ["tacit", "train", *([] if config is None else [str(config)])]
    pairs = [(name, one) for name, value in given.items() for one in (value if name == "option" else [value])]
    for name, value in pairs:
        flag, text = f"--{name.replace('_', '-')}", str(value)
        words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return shlex.join([*words, *(["--json"] if json else [])])


def _show(result: JobResult, folder: Path) -> None:
    """Print the table of results, what is guaranteed, and where everything lies."""
    from tacit.privacy.paragraphs import paragraphs
    from tacit.reports import guarantees_about, result_rows, silo_words

    rows = result_rows(result)
    metric = result.results[0].metric
    columns = ("trust", "algorithm", metric, "epsilon", "delta", "sent per silo", "rounds", "seconds")
    cells = [(r.trust, r.algorithm, r.score, r.epsilon, r.delta, r.size, r.rounds, r.seconds) for r in rows]
    print_text(f"{result.job.data}: {silo_words(result)}")
    print_table(columns, cells, right=columns[2:])
    if result.job.leaves_out_central:
        print_text("central is left out: no server sees the steps inside silos, to add noise to them.")
    print_text("")
    for who, said in paragraphs(*guarantees_about(result)):
        print_text(f"{who}: {said}")
    print_text(f"\nReport:  {folder / 'report.html'}")
    print_text(f"Check:   tacit account verify {folder / 'statement.json'}")


def _job(config: Path | None, given: dict[str, Any]) -> JobConfig:
    """Return the job of a TOML file and flags; flags win, and no data at all is the demo."""
    from tacit.data.kinds import utf8_text
    from tacit.jobs import DEMO, JobConfig

    values: dict[str, Any] = {}
    if config is not None:
        try:
            values = tomllib.loads(utf8_text(config.read_bytes(), str(config)))
        except OSError as error:
            raise DataError(f"the job {config} cannot be read: {error.strerror}.") from error
        except tomllib.TOMLDecodeError as error:
            table = config.suffix.lower() in (".csv", ".parquet")
            cure = f"; a table is named by `--data {config}`" if table else ""
            raise DataError(f"the job {config} is not TOML: {error}{cure}.") from error
    flags = {k: v for k, v in given.items() if k != "option"}
    values |= {k: _number(v) if k in ("delta", "rounds", "batch") else v for k, v in flags.items()}
    if "option" in given:
        values["options"] = {**values.get("options", {}), **_options(given["option"])}
    if "data" not in values:
        return JobConfig.of(tomllib.loads(DEMO.to_toml()) | values)
    job = JobConfig.of(values)
    if job.is_table and job.name is None:
        # A name of its own for every run: the ledger knows runs by name and answers a known one as before.
        moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        return JobConfig.of(values | {"name": f"{job.run[:70]}-{moment}"})
    # On public data a run is an experiment, and experiments repeat.
    return job if job.is_table or job.seed is not None else JobConfig.of(values | {"seed": 0})


def _options(given: list[str]) -> dict[str, Any]:
    """Return options that were written as NAME=VALUE."""
    pairs = [text.partition("=") for text in given]
    for text, (name, equals, value) in zip(given, pairs, strict=True):
        if not (name and equals and value):
            raise ParameterError(f"option must be NAME=VALUE, got {text!r}.")
    names = [name.replace("-", "_") for name, _, _ in pairs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ParameterError(f"option must name each option once, got {min(twice)} several times.")
    return {name: _value(name, text) for name, (_, _, text) in zip(names, pairs, strict=True)}


def _value(name: str, text: str) -> Any:
    """Return the value of an option: a number or a word, or what TOML marks as anything else."""
    if text[0] not in "{[\"'" and text not in ("true", "false"):
        return _number(text)
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        found = {}
    if len(found) != 1:  # more than one: the text goes on with settings of its own
        raise ParameterError(f"{name} must be a number, a word, or a value of TOML, got {shown(text)}.")
    return found["value"]


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
    from tacit.jobs import Ledgers
    from tacit.ledger import CENTRAL, DATA_SET, beside, open_ledgers

    if job.ledger is not None:
        folder = Path(job.ledger)
        warn_of_another(Path(job.data), folder)
    else:
        folder = beside(Path(job.data))
    if job.ledger is None and (job.seed is not None or not folder.exists()):
        warnings.warn(
            f"no ledger counts this run; `tacit ledger create {folder} --silos-from {job.data} "
            f"--silo-column {job.silo_column or 'NAME'}{f' --columns {job.columns}' if job.columns else ''} "
            "--epsilon E --delta D"
            f"{' --unit person' if job.person else ''}` sets a limit.",
            PrivacyWarning,
            stacklevel=1,
        )
        return None
    # The data set's first: where it is missing, that is what must be said.
    whole, *silos, central = open_ledgers(folder, [DATA_SET, *names, CENTRAL])
    return Ledgers(silos=silos, central=central, data=whole)
