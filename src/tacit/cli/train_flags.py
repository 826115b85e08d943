"""The flags of `tacit train`, and the job that they and a TOML file describe."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.choices import Helpful, OneOf
from tacit.cli.job_words import number_of, options_of, read_job, with_slash
from tacit.cli.names import ALGORITHMS, DOMAINS, JOB, JOB_DEFAULTS
from tacit.cli.output import JsonFlag
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.jobs import JobConfig

__all__ = ["TrainCommand", "TrainFlags"]

_UNSAID: Final = ("files", "data", "sensitive", "option", "dry_run", "json")
"""Flags that are no settings of a job, or several."""


def _word(setting: str, help: str, **told: str) -> Any:
    """Return an option that takes one of the words of a setting, with what some of them mean."""
    said = {word.replace("_", "-"): meaning for word, meaning in told.items()}
    return typer.Option(click_type=OneOf(JOB[setting], told=said, checked=False), help=help)


class TrainCommand(Helpful):
    """The command, whose defaults are those of a job."""

    defaults = JOB_DEFAULTS


@dataclass(frozen=True, kw_only=True)
class TrainFlags:
    """What the command line says of a job, by the names of a TOML file; None where it says nothing."""

    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables, a pattern in quotes or a folder, each file a silo; or a TOML file with the same "
            "names as the flags.",
            show_default="handwritten digits",
        ),
    ] = None
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Named data set, or tables as above, in a TOML file too; may be repeated.",
            show_default="as above",
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(help="Label column of a table.", show_default="as the column description has it"),
    ] = None
    silo_column: Annotated[
        str | None,
        typer.Option(help="Column that names the silo of each record.", show_default="each file is a silo"),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that identifies the person of each record, who is then protected.",
            show_default="as the column description has it, else records are protected",
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(help="TOML file with public bounds.", show_default="the one beside the tables"),
    ] = None
    public: Annotated[
        str | None,
        typer.Option(
            help="File of public records, none of them of the tables: they scale features, and with the "
            "label column algorithms that can train on them too.",
            show_default="scaled by their bounds",
        ),
    ] = None
    moment: Annotated[
        str | None,
        typer.Option(
            help="Instead of bounds, for heavy tails: ORDER:VALUE of a moment of gradients, such as 4:10.",
            show_default="columns have bounds",
        ),
    ] = None
    task: Annotated[
        str | None,
        _word("task", "What the label asks for: {names}."),
    ] = None
    loss: Annotated[
        str | None,
        _word(
            "loss",
            "What is minimised, of classes the first two and of numbers the others: {names}.",
            auto="logistic or squared",
            hinge="a linear support vector machine",
            huber="a line for large errors",
            absolute="the median",
            poisson="counts and amounts",
        ),
    ] = None
    quantile: Annotated[
        float | None,
        typer.Option(
            help="Share of labels that should lie below what is predicted, for the loss quantile.",
            show_default="0.5",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Error from which on the loss huber is a line, in units of the label.",
            show_default="a tenth of the width of its bounds",
        ),
    ] = None
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Half width over which the kink of absolute, quantile (in units of the label) or hinge (in "
            "margins) is rounded; 0 leaves it.",
            show_default="a fiftieth of the width of the label's bounds; 0.3 for hinge",
        ),
    ] = None
    silos: Annotated[
        str | None,
        _word("silos", "How records are split over silos: {names}."),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="Sensitive column, which is no feature: trains a fair classifier. May be repeated, and each "
            "combination is then a group.",
            show_default="fairness plays no part",
        ),
    ] = None
    fairness: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(JOB["fairness"], checked=False),
            help="What must not depend on the group in a fair model: {names}.",
            show_default="demographic-parity",
        ),
    ] = None
    fairness_weight: Annotated[
        float | None, typer.Option(help="Weight of unfairness beside the loss.", show_default="1")
    ] = None
    max_violation: Annotated[
        float | None,
        typer.Option(
            help="Largest violation on training records; searches the weight, with --protect by noisy counts "
            "at the price of the run.",
            show_default="as the weight has it",
        ),
    ] = None
    missing: Annotated[
        bool | None,
        typer.Option(
            "--missing",
            help="Train a fair model with records whose sensitive cell is empty, too, as --protect does in "
            "any case.",
        ),
    ] = None
    protect: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(JOB["protect"], checked=False),
            help="What a fair training keeps private: {names}.",
            show_default="nothing",
        ),
    ] = None
    trust: Annotated[
        str | None,
        _word(
            "trust",
            "Who is trusted: {names}.",
            all="for comparison",
            local="nobody",
            aggregate="nobody with a message, only with the sum of all",
            central="the server",
            shuffle="a shuffler, who mixes messages",
            none="everybody: no privacy",
        ),
    ] = None
    n_min: Annotated[
        int | None,
        typer.Option(
            help="Silos below which a round shows nothing, under shuffle trust, and under aggregate trust "
            "with --recover.",
            show_default="all of them",
        ),
    ] = None
    colluding: Annotated[
        int | None,
        typer.Option(
            help="Silos that may add no noise and tell what they sent, under shuffle and aggregate trust."
        ),
    ] = None
    recover: Annotated[
        bool | None,
        typer.Option(
            "--recover",
            help="Open sums without silos that drop out of a round, under aggregate trust.",
            show_default="every sum needs all silos",
        ),
    ] = None
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of every silo.")] = None
    delta: Annotated[
        str | None,
        typer.Option(help="Probability that the bound may fail; auto is 1/n^2 of the smallest silo."),
    ] = None
    neighbours: Annotated[
        str | None,
        _word("neighbours", "What may differ between data sets that nobody can tell apart: {names}."),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="What to train: linear, or linear@28x28 of images; for square ones scattering (linear, of "
            "fixed wavelet features) or cnn; mlp:64 or mlp:64,32 with hidden layers, mlp:64@28x28 of images; "
            "linear@pixels and mlp:64@pixels of images as they are; or your own package.module:Class of "
            "PyTorch.",
        ),
    ] = None
    algorithm: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(("auto", *ALGORITHMS), checked=False),
            help="How to train: {names}; auto goes by public facts, `list` shows what they are.",
        ),
    ] = None
    rounds: Annotated[str | None, typer.Option(help="Number of rounds; auto is the best by theory.")] = None
    batch: Annotated[
        str | None,
        typer.Option(
            help="Records of a silo in a round: full, a number, or a share below 1.",
            show_default="one for local, else full",
        ),
    ] = None
    sampling: Annotated[
        str | None,
        _word(
            "sampling",
            "How batches below a silo are drawn: {names}.",
            auto="the cheaper of the next two",
            fixed="always as many",
            poisson="every record on its own",
            disjoint="in one pass",
        ),
    ] = None
    local_steps: Annotated[
        int | None,
        typer.Option(
            help="Steps inside a silo in each round, for local.", show_default="as the algorithm has it"
        ),
    ] = None
    mu: Annotated[
        float | None,
        typer.Option(
            help="Strong convexity that step sizes assume, for multistage, accelerated and minibatch.",
            show_default="as the algorithm has it",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Another option of the algorithm; may be repeated.",
            show_default="as the algorithm has it",
        ),
    ] = None
    clip: Annotated[
        str | None,
        typer.Option(
            help="Clipping bound: the norm that a gradient of one record or person is clipped to; auto has a "
            "priced first round choose it.",
            show_default="0.3 of the Lipschitz constant; none without privacy",
        ),
    ] = None
    l1: Annotated[float | None, typer.Option(help="Strength of an L1 penalty.")] = None
    l2: Annotated[float | None, typer.Option(help="Strength of a squared L2 penalty.")] = None
    group_lasso: Annotated[
        float | None,
        typer.Option(help="Strength of a penalty on the length of each column's weights."),
    ] = None
    domain: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(DOMAINS, checked=False),
            help="Where parameters stay: {names}; all but a ball leave the constant free.",
            show_default="anywhere",
        ),
    ] = None
    weights: Annotated[
        str | None,
        _word("weights", "What each silo counts by: {names}.", silos="all alike"),
    ] = None
    participants: Annotated[
        int | None, typer.Option(help="Number of silos drawn in each round.", show_default="all")
    ] = None
    noise: Annotated[
        str | None,
        _word(
            "noise",
            "Noise that is added: {names}.",
            auto="continuous with a seed",
            gaussian="continuous, to simulate",
            discrete_gaussian="exact",
        ),
    ] = None
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of the records that is held out for scoring.")
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of a simulation, which protects nobody.",
            show_default="secret randomness; 0 on public data",
        ),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Ledgers that pay, from `tacit ledger create`: a folder, or a file for one payer.",
            show_default="those beside the tables",
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option(help="Name of the run.", show_default="made of the data and the time")
    ] = None
    out: Annotated[str | None, typer.Option(help="Folder that run folders lie in.")] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, its price and its noise; spend nothing.")
    ] = False
    json: JsonFlag = False

    def job(self) -> JobConfig:
        """Return the job of the TOML file and the flags; flags win, and no data at all is the demo."""
        from tacit.jobs import DEMO, JobConfig

        values = {} if self._config is None else read_job(self._config)
        if words := self._words():
            values["data"] = words[0] if len(words) == 1 else words
        if "data" in values:
            values["data"] = with_slash(values["data"])
        flags = self._said()
        values |= {
            k: number_of(v) if k in ("delta", "rounds", "batch", "clip") else v for k, v in flags.items()
        }
        if self.sensitive is not None:
            values["sensitive"] = self.sensitive
        if self.option is not None:
            values["options"] = {**values.get("options", {}), **options_of(self.option)}
        if "data" not in values:
            if "sensitive" in values:
                raise ParameterError(
                    f"sensitive needs data that has such a column, got {values['sensitive']!r} without any: "
                    "name tables, or --data adult."
                )
            return JobConfig.of(tomllib.loads(DEMO.to_toml()) | values)
        job = JobConfig.of(values)
        if job.is_table and job.name is None:
            # A name of its own for every run: ledgers know runs by name and answer a known one as before.
            moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
            return JobConfig.of(values | {"name": f"{job.run[:70]}-{moment}"})
        # On public data a run is an experiment, and experiments repeat.
        return job if job.is_table or job.seed is not None else JobConfig.of(values | {"seed": 0})

    def command(self, name: str) -> str:
        """Return the command line that says the same, under the name that the run has got."""
        words = ["tacit", "train", *(self.files or ())]
        pairs: list[tuple[str, Any]] = [("data", one) for one in self.data or ()]
        pairs += [("sensitive", one) for one in self.sensitive or ()]
        pairs += [*(self._said() | {"name": name}).items(), *(("option", one) for one in self.option or ())]
        for setting, value in pairs:
            flag, text = f"--{setting.replace('_', '-')}", str(value)
            if value is True:
                words.append(flag)
            else:
                words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
        return shlex.join([*words, *(["--json"] if self.json else [])])

    def _said(self) -> dict[str, Any]:
        """Return the settings that flags give one value, as they were written."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return {name: value for name, value in said.items() if name not in _UNSAID}

    @property
    def _config(self) -> Path | None:
        """The TOML file, where one was named."""
        one = Path(self.files[0]) if self.files and len(self.files) == 1 else None
        return one if one is not None and one.suffix.lower() == ".toml" else None

    def _words(self) -> list[str]:
        """Return the data that arguments name; none where they are in a TOML file, or nowhere."""
        files = [] if self._config is not None else self.files or []
        for name in files:
            if Path(name).suffix.lower() == ".toml":
                raise ParameterError(
                    f"a job is one TOML file, and tables are others, got {name!r} among {len(files)} files; "
                    "a folder of tables, or a pattern in quotes, leaves out what is no table."
                )
        if files and self.data:
            raise ParameterError("data must be named once, by arguments or by --data, got both.")
        return files or self.data or []
